// Rows of x for the precision int8: blocks of 32 channels as integers from -127 to 127 times one f32 number each.
#pragma once

#include <cstdint>

namespace sonant::SONANT_ISA {

// A row in integers: int8 [blocks][32] (zero past the channels of a group), then the f32 scale and the i32 sum of the
// integers of each block. Every group of channels begins a block.
struct Int8Row {
  int64_t groups, group_channels, blocks;  // blocks: of one group

  Int8Row(int64_t groups, int64_t group_channels)
      : groups(groups), group_channels(group_channels), blocks((group_channels + 31) / 32) {}
  int64_t scales() const { return groups * blocks * 32; }  // bytes from the beginning of the row
  int64_t sums() const { return groups * blocks * 36; }
  int64_t bytes() const { return groups * blocks * 40; }
};

// Rounds a row in place. A block that is not finite becomes NaN, one whose largest magnitude is below 2e-30 zero.
void round_int8(const Int8Row& form, float* row);

// The row x in integers. Both ways here give the same bits for the same row: x as it comes, or rounded before
// (`rounded`: by round_int8, perhaps kept in a state since).
void to_integers(const Int8Row& form, const float* x, bool rounded, char* row);

}  // namespace sonant::SONANT_ISA
