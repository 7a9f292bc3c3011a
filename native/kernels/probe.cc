// The loops of the probe (runtime/probe.h): what one core does at best in this instruction set.
#include "../runtime/isa.h"
#include "../simd/dot.h"
#include "../simd/matrix.h"
#include "../simd/vec.h"
#include "gemm.h"

namespace sonant::SONANT_ISA {

Probes probes();

namespace {

// Sums that do not wait for each other: more than a product takes cycles times what begins in a cycle, and no more than
// there are registers for.
constexpr int kSums = 12;

thread_local volatile float sink;  // so that nothing is left out as unused

int64_t f32(int64_t rounds) {
  Vec s[kSums];
  for (int i = 0; i < kSums; ++i) s[i] = set1(1e-3f * static_cast<float>(i));
  const Vec x = set1(0.9999f), y = set1(1e-6f);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) s[i] = fma(s[i], x, y);
  }
  for (int i = 1; i < kSums; ++i) s[0] = s[0] + s[i];
  sink = reduce_add(s[0]);
  return rounds * kSums * kWidth * 2;
}

#if SONANT_MATRIX

// Four sums that do not wait for each other keep the unit busy.
template <void (*add0)(), void (*add1)(), void (*add2)(), void (*add3)()>
int64_t matrix_rounds(int64_t rounds, int64_t operations) {
  const MatrixRegisters registers;
  clear<0>(), clear<1>(), clear<2>(), clear<3>(), clear<4>(), clear<5>(), clear<6>(), clear<7>();
  for (int64_t r = 0; r < rounds; ++r) add0(), add1(), add2(), add3();
  return rounds * 4 * operations;
}

int64_t bf16(int64_t rounds) {
  return matrix_rounds<add_bf16<0, 4, 6>, add_bf16<1, 4, 7>, add_bf16<2, 5, 6>, add_bf16<3, 5, 7>>(rounds,
                                                                                                   16 * 16 * 32 * 2);
}

int64_t int8(int64_t rounds) {
  return matrix_rounds<add_bytes<0, 4, 6>, add_bytes<1, 4, 7>, add_bytes<2, 5, 6>, add_bytes<3, 5, 7>>(
      rounds, 16 * 16 * 64 * 2);
}

#else

#if SONANT_BF16
int64_t bf16(int64_t rounds) {
  __m512 s[kSums];
  for (int i = 0; i < kSums; ++i) s[i] = _mm512_set1_ps(1e-3f * static_cast<float>(i));
  const auto x = (__m512bh)_mm512_set1_epi16(0x3f7f), y = (__m512bh)_mm512_set1_epi16(0x3c00);
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (int i = 0; i < kSums; ++i) s[i] = _mm512_dpbf16_ps(s[i], x, y);
  }
  for (int i = 1; i < kSums; ++i) s[0] = _mm512_add_ps(s[0], s[i]);
  sink = _mm512_reduce_add_ps(s[0]);
  return rounds * kSums * 32 * 2;
}
#endif

// As gemm_q8.cc does it. Without the instruction a product takes three steps with rows that differ, or the compiler
// would do them once for all: as many rows as there are registers for.
template <bool kFast>
int64_t int8_rounds(int64_t rounds) {
  constexpr int kRows = kFast ? kSums : kWidth >= 16 ? 8 : 4, kInputs = kFast ? 1 : kRows, kWeights = 16;
  int8_t x[4 * kInputs], w[kWeights * 4 * kWidth];
  for (size_t i = 0; i < sizeof x; ++i) x[i] = static_cast<int8_t>(i % 7) - 3;
  for (size_t i = 0; i < sizeof w; ++i) w[i] = static_cast<int8_t>(i % 11) - 5;
  IVec s[kRows];
  for (int i = 0; i < kRows; ++i) s[i] = iset1(i);
  for (int64_t r = 0; r < rounds; ++r) {
    for (int k = 0; k < kWeights; ++k) {
      const IVec weights = load_bytes(w + k * 4 * kWidth);
#pragma GCC unroll 12
      for (int i = 0; i < kRows; ++i) s[i] = DotRow<kFast>(x + (kFast ? 0 : 4 * i)).add_products(s[i], weights);
    }
  }
  for (int i = 1; i < kRows; ++i) s[0] = s[0] + s[i];
  sink = reduce_add(to_float(s[0]));
  return rounds * kWeights * kRows * 4 * kWidth * 2;
}

int64_t int8(int64_t rounds) { return has_fast_dot() ? int8_rounds<true>(rounds) : int8_rounds<false>(rounds); }

#endif

float read(const float* data, int64_t n) {
  constexpr int kReads = 8;
  Vec s[kReads];
  for (int i = 0; i < kReads; ++i) s[i] = zero();
  for (int64_t at = 0; at + kReads * kWidth <= n; at += kReads * kWidth) {
#pragma GCC unroll 8
    for (int i = 0; i < kReads; ++i) s[i] = s[i] + load(data + at + i * kWidth);
  }
  for (int i = 1; i < kReads; ++i) s[0] = s[0] + s[i];
  return reduce_add(s[0]);
}

}  // namespace

Probes probes() {
  Probes p;
  p.f32 = f32;
#if SONANT_BF16
  p.bf16 = bf16;
#endif
  p.int8 = int8;
  if (has_fast_dot()) p.fast = {"int8"};
#if SONANT_BF16
  // Measured (docs/log.md): in registers for matrices the products of bytes take half the time, but their rows and sums
  // have to be scaled, tap by tap, and that takes more.
  p.fast.insert(SONANT_MATRIX ? p.fast.begin() : p.fast.end(), "bf16");
#endif
  p.read = read;
  return p;
}

}  // namespace sonant::SONANT_ISA
