#include "dense_round.h"

#include <cstring>

#include "../simd/dot.h"

namespace sonant::SONANT_ISA {
namespace {

// f(vector, its first place, how many lanes it has) for each vector of n numbers.
template <class F>
inline void each_vector(const float* from, int64_t n, F f) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) f(load(from + i), i, int64_t{kWidth});
  if (i < n) f(load_n(from + i, n - i), i, n - i);
}

// What the integers of a block are made with.
struct Measure {
  float top, invalid;  // the largest magnitude; 0, or NaN where a number is not finite

  Measure(const float* from, int64_t n) {
    Vec most = zero(), none = zero();
    each_vector(from, n, [&](Vec x, int64_t, int64_t) {
      most = max(most, abs(x));
      none = fma(x, zero(), none);
    });
    top = reduce_max(most);
    invalid = reduce_add(none);
  }

  // What was rounded before is zero or above 1.9e-30.
  float inverse(bool rounded) const { return top > (rounded ? 1e-30f : 2e-30f) ? 127.0f / top : 0.0f; }
};

template <class F>
void each_block(const Int8Row& form, F f) {
  for (int64_t g = 0; g < form.groups; ++g) {
    for (int64_t b = 0; b < form.blocks; ++b) {
      const int64_t left = form.group_channels - b * form.block;
      f(g * form.group_channels + b * form.block, left < form.block ? left : form.block, g * form.blocks + b);
    }
  }
}

}  // namespace

void round_int8(const Int8Row& form, float* row) {
  each_block(form, [&](int64_t at, int64_t n, int64_t) {
    const Measure block(row + at, n);
    const Vec inverse = set1(block.inverse(false)), scale = set1(block.top / 127.0f + block.invalid);
    each_vector(row + at, n,
                [&](Vec x, int64_t i, int64_t lanes) { store_n(row + at + i, round(x * inverse) * scale, lanes); });
  });
}

void to_integers(const Int8Row& form, const float* x, bool rounded, char* row) {
  const IVec offset = iset1(form.offset);
  each_block(form, [&](int64_t at, int64_t n, int64_t index) {
    const Measure block(x + at, n);
    const Vec inverse = set1(block.inverse(rounded));
    auto* to = reinterpret_cast<int8_t*>(row) + index * form.room;
    IVec total = iset1(0);
    each_vector(x + at, n, [&](Vec v, int64_t i, int64_t) {
      const IVec whole = to_int(v * inverse);
      total = total + whole;
#if SONANT_ISA_ID == SONANT_ID_avx2
      if (form.width == 2) return store_pairs(reinterpret_cast<char*>(to + 2 * i), whole);
#endif
      store_bytes(to + i, whole + offset);
    });
    // What a block rounded before has for its largest magnitude is 127 times the scale: the same scale from both.
    const float scale = block.top / 127.0f;
    const float final_scale = (rounded ? scale : 127.0f * scale / 127.0f) + block.invalid;
    std::memcpy(row + form.scales() + 4 * index, &final_scale, 4);
    if (!form.summed) return;
    for (int64_t i = (n + kWidth - 1) / kWidth * kWidth; i < form.room; ++i) to[i] = 0;
    const auto sum = static_cast<int32_t>(reduce_add(to_float(total)));  // exact: at most 32 times 127
    std::memcpy(row + form.sums() + 4 * index, &sum, 4);
  });
}

}  // namespace sonant::SONANT_ISA
