// One vector type per instruction set, so that a kernel is written once and compiled for each.
//
// A kernel file is compiled with -DSONANT_ISA=<amx|avx512bf16|avx512|avx2|neon|generic> and the flags of that set; all
// that depends on it lives in `namespace sonant::SONANT_ISA`, so no inline function of one set can be linked into
// another.
//
// The wrapper: Vec (kWidth floats), IVec (as many int32), Mask. Free functions:
//   zero() set1(x) load(p) store(p, v) load_n(p, n) store_n(p, v, n)       n <= kWidth lanes, the rest read as zero
//   + - * /  fma(a, b, c) = a*b + c  fnma(a, b, c) = c - a*b  min max      min/max give b when a or b is NaN
//   abs sqrt floor round (half to even) copysign(a, sign of b)
//   < > <= >= == (Mask)  select(m, a, b)  m1 & m2  m1 | m2
//   iset1 + - & | ^ << >> (logical) sra to_int (rounds half to even) to_float  bits(Vec)  from_bits(IVec)
//   store_bytes(p, IVec) (the low byte of each lane)
//   load_f16 load_bf16 (widen kWidth numbers exactly)  round_bf16(v)  store_bf16(p, v)  (nearest, ties to even)
//   reduce_add reduce_max (halves folded onto each other: one fixed order)
#pragma once

#include <cstdint>
#include <cstring>

#define SONANT_JOIN_(a, b) a##b
#define SONANT_JOIN(a, b) SONANT_JOIN_(a, b)
#define SONANT_ID_generic 1
#define SONANT_ID_neon 2
#define SONANT_ID_avx2 3
#define SONANT_ID_avx512 4
#define SONANT_ID_avx512bf16 5
#define SONANT_ID_amx 6
#define SONANT_ISA_ID SONANT_JOIN(SONANT_ID_, SONANT_ISA)

// Whether there are registers for matrices (matrix.h), and products of bf16 at all.
#if SONANT_ISA_ID == SONANT_ID_amx || defined(SONANT_EMULATE_MATRIX)
#define SONANT_MATRIX 1
#else
#define SONANT_MATRIX 0
#endif
#define SONANT_BF16 (SONANT_MATRIX || SONANT_ISA_ID == SONANT_ID_avx512bf16)

#if SONANT_ISA_ID >= SONANT_ID_avx512
#include "vec_avx512.h"
#elif SONANT_ISA_ID == SONANT_ID_avx2
#include "vec_avx2.h"
#elif SONANT_ISA_ID == SONANT_ID_neon
#include "vec_neon.h"
#else
#include "vec_generic.h"
#endif

namespace sonant::SONANT_ISA {

// Bits of f32 rounded to bf16 stay in the high half of each lane.
inline IVec bf16_bits(Vec a) {
  IVec b = bits(a);
  IVec odd = (b >> 16) & iset1(1);
  return (b + iset1(0x7FFF) + odd) & iset1(static_cast<int32_t>(0xFFFF0000u));
}

inline void store_bf16(uint16_t* p, Vec a) { store_high16(p, bf16_bits(a)); }
inline Vec round_bf16(Vec a) { return from_bits(bf16_bits(a)); }

inline uint16_t to_bf16(float x) {
  uint32_t b;
  std::memcpy(&b, &x, 4);
  return static_cast<uint16_t>((b + 0x7FFF + ((b >> 16) & 1)) >> 16);
}

inline float from_bf16(uint16_t h) {
  uint32_t b = static_cast<uint32_t>(h) << 16;
  float x;
  std::memcpy(&x, &b, 4);
  return x;
}

}  // namespace sonant::SONANT_ISA
