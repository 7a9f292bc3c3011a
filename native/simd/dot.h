// Products of bytes in fours, summed into 32-bit integers. Exact, so every way of doing it gives the same bits; `kFast`
// chooses the instruction made for it, where the machine has one (has_fast_dot).
//
//   DotRow<kFast> x(p)            four bytes of a row of x, each in -127..127, made ready to meet weights
//   sum = x.add_products(sum, w)  sum[i] += x[0] w[4i] + x[1] w[4i+1] + x[2] w[4i+2] + x[3] w[4i+3]; w int8, 4 kWidth
//   of
//                                 them in an IVec
//   first_sum<kFast>(t)           what a sum must start from, t the sum of all the bytes of x that it will meet
//   ready<kFast>(w)               w as add_products wants it
#pragma once

#include <type_traits>

#include "vec.h"

namespace sonant::SONANT_ISA {

// As load does it: g++ makes two halves of a memcpy of 32 bytes, and a stall of the loads that join them again.
inline IVec load_bytes(const void* p) { return bits(load(static_cast<const float*>(p))); }

inline int32_t four_bytes(const int8_t* p) {
  int32_t v;
  std::memcpy(&v, p, 4);
  return v;
}

#if SONANT_ISA_ID >= SONANT_ID_avx2

// The fast instruction multiplies bytes without a sign by bytes with one: 128 is added to the weights and taken off
// the first sum. As assembler text it needs no compiler flag, which would spread over all of this file.
template <bool kFast>
IVec ready(IVec w) {
  return kFast ? w ^ iset1(static_cast<int32_t>(0x80808080u)) : w;
}

template <bool kFast>
int32_t first_sum(int32_t t) {
  return kFast ? -128 * t : 0;
}

template <bool kFast>
constexpr bool kUnsignedRows = kFast;

// sum[i] plus four products of bytes without a sign and bytes with one.
inline IVec add_dots(IVec sum, IVec plain, IVec with_sign) {
#if SONANT_ISA_ID >= SONANT_ID_avx512
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.v) : "v"(plain.v), "v"(with_sign.v));
#else
  asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.v) : "x"(plain.v), "x"(with_sign.v));
#endif
  return sum;
}

// A row whose bytes have 128 added already, for weights as they are.
struct UnsignedDotRow {
  IVec x;
  explicit UnsignedDotRow(const int8_t* p) : x(iset1(four_bytes(p))) {}
  IVec add_products(IVec sum, IVec w) const { return add_dots(sum, x, w); }
};

template <bool kFast>
struct DotRow;

template <>
struct DotRow<true> {
  IVec x;
  explicit DotRow(const int8_t* p) : x(iset1(four_bytes(p))) {}
  IVec add_products(IVec sum, IVec w) const { return add_dots(sum, w, x); }
};

#if SONANT_ISA_ID >= SONANT_ID_avx512

template <>
struct DotRow<false> {
  __m512i size;
  __mmask64 negative;
  explicit DotRow(const int8_t* p) {
    const __m512i x = _mm512_set1_epi32(four_bytes(p));
    size = _mm512_abs_epi8(x);
    negative = _mm512_movepi8_mask(x);
  }
  IVec add_products(IVec sum, IVec w) const {
    const __m512i signed_w = _mm512_mask_sub_epi8(w.v, negative, _mm512_setzero_si512(), w.v);
    const __m512i pairs = _mm512_maddubs_epi16(size, signed_w);  // at most 2 * 127 * 127: no saturation
    return {_mm512_add_epi32(sum.v, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))};
  }
};

#else

template <>
struct DotRow<false> {
  __m256i x, size;
  explicit DotRow(const int8_t* p) : x(_mm256_set1_epi32(four_bytes(p))), size(_mm256_abs_epi8(x)) {}
  IVec add_products(IVec sum, IVec w) const {
    const __m256i pairs = _mm256_maddubs_epi16(size, _mm256_sign_epi8(w.v, x));  // at most 2 * 127 * 127: no saturation
    return {_mm256_add_epi32(sum.v, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))};
  }
};

#endif

#else

template <bool kFast>
IVec ready(IVec w) {
  return w;
}

template <bool kFast>
int32_t first_sum(int32_t) {
  return 0;
}

template <bool kFast>
constexpr bool kUnsignedRows = false;

template <bool kFast>
struct DotRow;

#if SONANT_ISA_ID == SONANT_ID_neon

template <>
struct DotRow<true> {
  int8x16_t x;
  explicit DotRow(const int8_t* p) : x(vreinterpretq_s8_s32(vdupq_n_s32(four_bytes(p)))) {}
  IVec add_products(IVec sum, IVec w) const {
    const int8x16_t bytes = vreinterpretq_s8_s32(w.v);
#if defined(__ARM_FEATURE_DOTPROD)
    sum.v = vdotq_s32(sum.v, bytes, x);
#else
    asm(".arch armv8.2-a+dotprod\n\tsdot %0.4s, %1.16b, %2.16b" : "+w"(sum.v) : "w"(bytes), "w"(x));
#endif
    return sum;
  }
};

template <>
struct DotRow<false> {
  int8x8_t x;
  explicit DotRow(const int8_t* p) : x(vreinterpret_s8_s32(vdup_n_s32(four_bytes(p)))) {}
  IVec add_products(IVec sum, IVec w) const {
    const int8x16_t bytes = vreinterpretq_s8_s32(w.v);
    const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(bytes), x));
    const int32x4_t high = vpaddlq_s16(vmull_s8(vget_high_s8(bytes), x));
    return {vaddq_s32(sum.v, vpaddq_s32(low, high))};
  }
};

#else

template <bool kFast>
struct DotRow {
  int8_t x[4];
  explicit DotRow(const int8_t* p) { std::memcpy(x, p, 4); }
  IVec add_products(IVec sum, IVec w) const {
    int8_t b[4 * kWidth];
    std::memcpy(b, &w, sizeof b);
    for (int i = 0; i < kWidth; ++i) {
      sum.v[i] += x[0] * b[4 * i] + x[1] * b[4 * i + 1] + x[2] * b[4 * i + 2] + x[3] * b[4 * i + 3];
    }
    return sum;
  }
};

#endif

using UnsignedDotRow = DotRow<true>;

#endif

// How rows of int8_row meet i8 weights. Where kUnsignedRows<kFast>, the rows of x have 128 added to every byte, and
// sums begin with -128 times the sum of the weights that they will meet.
template <bool kFast>
using RowOfFour = std::conditional_t<kUnsignedRows<kFast>, UnsignedDotRow, DotRow<kFast>>;

#if SONANT_ISA_ID == SONANT_ID_avx2

// Products in 16 bits, of rows that are kept so: of every four integers the first and third, then the second and
// fourth, which is how the weights come apart. As many steps as with bytes, whose sign must move to the weights first,
// but half of them are sums, which more units of a core can do.
struct PairRow {
  __m256i x;
  explicit PairRow(const char* p) : x(_mm256_set1_epi32(four_bytes(reinterpret_cast<const int8_t*>(p)))) {}
  // As assembler text a sum stays in its register: g++ moves twelve of them through memory.
  IVec add_products(IVec sum, IVec w) const {
    __m256i products;
    asm("vpmaddwd %2, %3, %1\n\tvpaddd %1, %0, %0" : "+x"(sum.v), "=&x"(products) : "x"(x), "x"(w.v));
    return sum;
  }
  static IVec first_third(IVec w) { return {_mm256_srai_epi16(_mm256_slli_epi16(w.v, 8), 8)}; }
  static IVec second_fourth(IVec w) { return {_mm256_srai_epi16(w.v, 8)}; }
};

inline void store_pairs(char* p, IVec a) {
  const __m256i order = _mm256_setr_epi8(0, 1, 8, 9, 4, 5, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1,  //
                                         0, 1, 8, 9, 4, 5, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m256i fours = _mm256_permute4x64_epi64(_mm256_shuffle_epi8(a.v, order), 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(fours));
}

#endif

}  // namespace sonant::SONANT_ISA
