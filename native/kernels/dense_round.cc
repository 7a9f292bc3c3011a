#include "dense_round.h"

#include "../simd/vec.h"

namespace sonant::SONANT_ISA {
namespace {

constexpr int kBlock = 32;
constexpr int kVectors = kBlock / kWidth;

// At most 32 neighbouring channels.
struct Block {
  Vec x[kVectors];
  float top, invalid;  // the largest magnitude; 0, or NaN where a number is not finite

  Block(const float* from, int64_t n) {
    Vec most = zero(), none = zero();
    for (int i = 0; i < kVectors; ++i) {
      const int64_t left = n - i * kWidth;
      x[i] = left >= kWidth ? load(from + i * kWidth) : left > 0 ? load_n(from + i * kWidth, left) : zero();
      most = max(most, abs(x[i]));
      none = fma(x[i], zero(), none);
    }
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
      const int64_t left = form.group_channels - b * kBlock;
      f(g * form.group_channels + b * kBlock, left < kBlock ? left : kBlock, g * form.blocks + b);
    }
  }
}

}  // namespace

void round_int8(const Int8Row& form, float* row) {
  each_block(form, [&](int64_t at, int64_t n, int64_t) {
    const Block block(row + at, n);
    const Vec inverse = set1(block.inverse(false)), scale = set1(block.top / 127.0f + block.invalid);
    for (int i = 0; i * kWidth < n; ++i) {
      const int64_t left = n - i * kWidth;
      store_n(row + at + i * kWidth, round(block.x[i] * inverse) * scale, left < kWidth ? left : int64_t{kWidth});
    }
  });
}

void to_integers(const Int8Row& form, const float* x, bool rounded, char* row) {
  each_block(form, [&](int64_t at, int64_t n, int64_t index) {
    const Block block(x + at, n);
    const Vec inverse = set1(block.inverse(rounded));
    int32_t wide[kBlock];
    for (int i = 0; i < kVectors; ++i) {
      store(reinterpret_cast<float*>(wide) + i * kWidth, from_bits(to_int(block.x[i] * inverse)));
    }
    int8_t* to = reinterpret_cast<int8_t*>(row) + index * kBlock;
    int32_t sum = 0;
    for (int i = 0; i < kBlock; ++i) {
      to[i] = static_cast<int8_t>(wide[i]);
      sum += to[i];
    }
    // What a block rounded before has for its largest magnitude is 127 times the scale: the same scale from both.
    const float scale = block.top / 127.0f;
    const float final_scale = (rounded ? scale : 127.0f * scale / 127.0f) + block.invalid;
    std::memcpy(row + form.scales() + 4 * index, &final_scale, 4);
    std::memcpy(row + form.sums() + 4 * index, &sum, 4);
  });
}

}  // namespace sonant::SONANT_ISA
