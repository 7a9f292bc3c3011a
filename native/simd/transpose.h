// Square blocks of floats turned in registers.
#pragma once

#include "vec.h"

namespace sonant::SONANT_ISA {

#if SONANT_ISA_ID >= SONANT_ID_avx2

constexpr int kTurn = 8;

// to[j * to_step + i] = from[i * from_step + j] for i, j < kTurn
inline void turn_block(const float* from, int64_t from_step, float* to, int64_t to_step) {
  __m256 r[8], pair[8], quad[8];
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from + i * from_step);
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pair[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    pair[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {  // quad[i + j]: column j (low half) and j + 4 (high half) of rows i..i+3
    quad[i] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0x44);
    quad[i + 1] = _mm256_shuffle_ps(pair[i], pair[i + 2], 0xEE);
    quad[i + 2] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0x44);
    quad[i + 3] = _mm256_shuffle_ps(pair[i + 1], pair[i + 3], 0xEE);
  }
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    _mm256_storeu_ps(to + j * to_step, _mm256_permute2f128_ps(quad[j], quad[j + 4], 0x20));
    _mm256_storeu_ps(to + (j + 4) * to_step, _mm256_permute2f128_ps(quad[j], quad[j + 4], 0x31));
  }
}

#elif SONANT_ISA_ID == SONANT_ID_neon

constexpr int kTurn = 4;

inline void turn_block(const float* from, int64_t from_step, float* to, int64_t to_step) {
  const float32x4_t a = vld1q_f32(from), b = vld1q_f32(from + from_step);
  const float32x4_t c = vld1q_f32(from + 2 * from_step), d = vld1q_f32(from + 3 * from_step);
  const float32x4x2_t ac = vzipq_f32(a, c), bd = vzipq_f32(b, d);  // a0 c0 a1 c1 | a2 c2 a3 c3
  const float32x4x2_t low = vzipq_f32(ac.val[0], bd.val[0]), high = vzipq_f32(ac.val[1], bd.val[1]);
  vst1q_f32(to, low.val[0]);
  vst1q_f32(to + to_step, low.val[1]);
  vst1q_f32(to + 2 * to_step, high.val[0]);
  vst1q_f32(to + 3 * to_step, high.val[1]);
}

#else

constexpr int kTurn = 4;

inline void turn_block(const float* from, int64_t from_step, float* to, int64_t to_step) {
  for (int j = 0; j < 4; ++j) {
    for (int i = 0; i < 4; ++i) to[j * to_step + i] = from[i * from_step + j];
  }
}

#endif

}  // namespace sonant::SONANT_ISA
