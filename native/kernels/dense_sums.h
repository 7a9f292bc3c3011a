// Sums over time for instance_affine: of blocks of rows around a pivot, made by instance_affine itself, or by the dense
// op whose result it reads, while that is still in the cache. The bits are the same.
#pragma once

#include <cstdint>

#include "../runtime/call.h"

namespace sonant::SONANT_ISA {

constexpr int64_t kSumsBlock = 128;  // rows

// As a tensor [B, blocks, kSumsRows, C]: for each block of rows of [B,T,C] a row of pivots (the mean of its first rows,
// so that little is lost when the squares of the sums are taken off), one of the sums of x - pivot, and one of their
// squares. The last row belongs to the dense op while it runs, and is zero afterwards: an int32 at the first of the
// channels that are finished together counts their finished rows.
constexpr int64_t kSumsRows = 4;

inline int64_t sums_blocks(int64_t length) { return (length + kSumsBlock - 1) / kSumsBlock; }

// Refuses `sums` that are not those of rows [batch, length, channels].
void check_sums(const Tensor& sums, int64_t batch, int64_t length, int64_t channels, const char* what);

// Pivots, sums and squares of `width` channels over at most kSumsBlock rows, `stride` floats apart, to to[0],
// to[to_step] and to[2 * to_step].
void sum_block(const float* x, int64_t stride, int64_t rows, int64_t width, float* to, int64_t to_step);

// Sums of a tensor [B, length, channels] that grows in any order.
class GrowingSums {
 public:
  GrowingSums() = default;
  GrowingSums(const float* x, float* sums, int64_t length, int64_t channels)
      : x_(x), sums_(sums), length_(length), channels_(channels) {}

  explicit operator bool() const { return sums_ != nullptr; }

  // Before anything is added.
  void start(int64_t batch) const;

  // Rows [begin, end) of batch row b, cut to those there are, have their `width` numbers from channel c on: makes the
  // sums of the blocks which are complete with them. Each row and channel is added once, with the same c and width in
  // all rows; threads may add at the same time, and whoever completes a block sums all of it.
  void add(int64_t b, int64_t begin, int64_t end, int64_t c, int64_t width) const;

 private:
  float* at(int64_t b, int64_t block, int64_t row) const {
    return sums_ + ((b * sums_blocks(length_) + block) * kSumsRows + row) * channels_;
  }

  const float* x_ = nullptr;
  float* sums_ = nullptr;
  int64_t length_ = 0, channels_ = 0;
};

}  // namespace sonant::SONANT_ISA
