#include "dense_sums.h"

#include <algorithm>

#include "../simd/vec.h"

namespace sonant::SONANT_ISA {
namespace {

constexpr int64_t kPivotRows = 8, kCount = 3;
// Vectors of channels that are summed at once: of rows in the cache, so many that their sums stay in registers; from
// memory, longer pieces of a row.
constexpr int kCached = SONANT_ISA_ID >= SONANT_ID_avx512 || SONANT_ISA_ID == SONANT_ID_neon ? 8 : 4;
constexpr int kStreamed = SONANT_ISA_ID >= SONANT_ID_avx512 ? 8 : 16;

// The channels of `vectors` vectors, the last of `last` lanes.
template <int vectors>
void block_sums(const float* x, int64_t stride, int64_t rows, int64_t last, float* to, int64_t to_step) {
  const auto at = [=](const float* row, int v) {
    return v + 1 < vectors || last == kWidth ? load(row + v * kWidth) : load_n(row + v * kWidth, last);
  };
  const auto put = [=](float* row, int v, Vec a) {
    v + 1 < vectors || last == kWidth ? store(row + v * kWidth, a) : store_n(row + v * kWidth, a, last);
  };
  const int64_t first = std::min(rows, kPivotRows);
  Vec p[vectors], s[vectors], q[vectors];
#pragma GCC unroll 16
  for (int v = 0; v < vectors; ++v) p[v] = s[v] = q[v] = zero();
  for (int64_t t = 0; t < first; ++t) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) p[v] = p[v] + at(x + t * stride, v);
  }
#pragma GCC unroll 16
  for (int v = 0; v < vectors; ++v) p[v] = p[v] * set1(1.0f / static_cast<float>(first));
  for (int64_t t = 0; t < rows; ++t) {
#pragma GCC unroll 16
    for (int v = 0; v < vectors; ++v) {
      const Vec d = at(x + t * stride, v) - p[v];
      s[v] = s[v] + d;
      q[v] = fma(d, d, q[v]);
    }
  }
#pragma GCC unroll 16
  for (int v = 0; v < vectors; ++v) {
    put(to, v, p[v]), put(to + to_step, v, s[v]), put(to + 2 * to_step, v, q[v]);
  }
}

template <int vectors>
void strip_sums(int wanted, const float* x, int64_t stride, int64_t rows, int64_t last, float* to, int64_t to_step) {
  if constexpr (vectors > 1) {
    if (wanted < vectors) return strip_sums<vectors - 1>(wanted, x, stride, rows, last, to, to_step);
  }
  block_sums<vectors>(x, stride, rows, last, to, to_step);
}

template <int most>
void all_sums(const float* x, int64_t stride, int64_t rows, int64_t width, float* to, int64_t to_step) {
  for (int64_t c = 0; c < width; c += most * kWidth) {
    const int64_t here = std::min<int64_t>(most * kWidth, width - c);
    const auto vectors = static_cast<int>((here + kWidth - 1) / kWidth);
    strip_sums<most>(vectors, x + c, stride, rows, here - (vectors - 1) * kWidth, to + c, to_step);
  }
}

}  // namespace

void check_sums(const Tensor& sums, int64_t batch, int64_t length, int64_t channels, const char* what) {
  const int64_t wanted[] = {batch, sums_blocks(length), kSumsRows, channels};
  if (sums.dtype == DType::f32 && sums.rank == 4 && std::equal(wanted, wanted + 4, sums.dim)) return;
  refuse("%s: f32 sums [%lld,%lld,%lld,%lld] wanted", what, static_cast<long long>(wanted[0]),
         static_cast<long long>(wanted[1]), static_cast<long long>(wanted[2]), static_cast<long long>(wanted[3]));
}

void sum_block(const float* x, int64_t stride, int64_t rows, int64_t width, float* to, int64_t to_step) {
  all_sums<kStreamed>(x, stride, rows, width, to, to_step);
}

void GrowingSums::start(int64_t batch) const {
  for (int64_t i = 0; i < batch * sums_blocks(length_); ++i) {
    std::memset(at(0, i, kCount), 0, static_cast<size_t>(channels_) * 4);
  }
}

void GrowingSums::add(int64_t b, int64_t begin, int64_t end, int64_t c, int64_t width) const {
  begin = std::max<int64_t>(begin, 0);
  end = std::min(end, length_);
  for (int64_t block = begin / kSumsBlock; block * kSumsBlock < end; ++block) {
    const int64_t first = block * kSumsBlock, last = std::min(first + kSumsBlock, length_), rows = last - first;
    const int64_t here = std::min(end, last) - std::max(begin, first);
    if (here < rows) {
      auto* count = reinterpret_cast<int32_t*>(at(b, block, kCount) + c);
      if (__atomic_add_fetch(count, static_cast<int32_t>(here), __ATOMIC_ACQ_REL) < rows) continue;
      *count = 0;
    }
    const float* x = x_ + (b * length_ + first) * channels_ + c;
    all_sums<kCached>(x, channels_, rows, width, at(b, block, 0) + c, channels_);
  }
}

}  // namespace sonant::SONANT_ISA
