// Rows of x for the precisions int8 and int8_row: blocks of channels as integers from -127 to 127 times one f32 number
// each.
#pragma once

#include <cstdint>

#include "../runtime/opset.gen.h"

namespace sonant::SONANT_ISA {

// A row in integers: int8 [groups][blocks][room], then the f32 scale of each block. Every group of channels begins a
// block. Rows of int8_row may hold them in 16 bits instead (i8_row_bytes). Rows of int8 have the i32 sum of each
// block's integers as well, and zeros past its channels; in rows of int8_row what lies there is of no matter.
struct Int8Row {
  int64_t groups, group_channels;
  int64_t block, blocks;  // channels that share a scale, and how many such blocks a group has
  int64_t room;           // bytes from one block to the next: whole vectors
  int offset;             // added to every integer: 128 where they meet weights as bytes without a sign
  int width;              // bytes of an integer
  bool summed;            // of int8

  Int8Row(Precision precision, int64_t groups, int64_t group_channels, int offset = 0, int width = 1)
      : groups(groups),
        group_channels(group_channels),
        block(precision == Precision::int8 ? 32 : group_channels),
        blocks((group_channels + block - 1) / block),
        room((block + 15) / 16 * 16 * width),
        offset(offset),
        width(width),
        summed(precision == Precision::int8) {}
  int64_t group_bytes() const { return blocks * room; }
  int64_t scales() const { return groups * group_bytes(); }  // bytes from the beginning of the row
  int64_t sums() const { return scales() + groups * blocks * 4; }
  int64_t bytes() const { return sums() + (summed ? groups * blocks * 4 : 0); }
};

// Rounds a row in place. A block that is not finite becomes NaN, one whose largest magnitude is below 2e-30 zero.
void round_int8(const Int8Row& form, float* row);

// The row x in integers. Both ways here give the same bits for the same row: x as it comes, or rounded before
// (`rounded`: by round_int8, perhaps kept in a state since).
void to_integers(const Int8Row& form, const float* x, bool rounded, char* row);

}  // namespace sonant::SONANT_ISA
