// vec.h for AVX-512 (F, BW, DQ, VL).
#pragma once

// g++ 12 takes the undefined pass-through operand of its own AVX-512 intrinsics for a mistake.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#else
#include <immintrin.h>
#endif

namespace sonant::SONANT_ISA {

constexpr int kWidth = 16;

struct Vec {
  __m512 v;
};
struct IVec {
  __m512i v;
};
struct Mask {
  __mmask16 v;
};

inline __mmask16 lanes(int64_t n) { return static_cast<__mmask16>((1u << n) - 1); }

inline Vec zero() { return {_mm512_setzero_ps()}; }
inline Vec set1(float x) { return {_mm512_set1_ps(x)}; }
inline Vec load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store(float* p, Vec a) { _mm512_storeu_ps(p, a.v); }
inline Vec load_n(const float* p, int64_t n) { return {_mm512_maskz_loadu_ps(lanes(n), p)}; }
inline void store_n(float* p, Vec a, int64_t n) { _mm512_mask_storeu_ps(p, lanes(n), a.v); }

inline Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline Vec fnma(Vec a, Vec b, Vec c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
inline Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
inline Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
inline Vec sqrt(Vec a) { return {_mm512_sqrt_ps(a.v)}; }
inline Vec floor(Vec a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)}; }
inline Vec round(Vec a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline Vec abs(Vec a) { return {_mm512_abs_ps(a.v)}; }

inline Mask operator<(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
inline Mask operator>(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
inline Mask operator<=(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
inline Mask operator>=(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ)}; }
inline Mask operator==(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
inline Mask operator&(Mask a, Mask b) { return {static_cast<__mmask16>(a.v & b.v)}; }
inline Mask operator|(Mask a, Mask b) { return {static_cast<__mmask16>(a.v | b.v)}; }
inline Vec select(Mask m, Vec a, Vec b) { return {_mm512_mask_blend_ps(m.v, b.v, a.v)}; }

inline IVec iset1(int32_t x) { return {_mm512_set1_epi32(x)}; }
inline IVec operator+(IVec a, IVec b) { return {_mm512_add_epi32(a.v, b.v)}; }
inline IVec operator-(IVec a, IVec b) { return {_mm512_sub_epi32(a.v, b.v)}; }
inline IVec operator&(IVec a, IVec b) { return {_mm512_and_si512(a.v, b.v)}; }
inline IVec operator|(IVec a, IVec b) { return {_mm512_or_si512(a.v, b.v)}; }
inline IVec operator^(IVec a, IVec b) { return {_mm512_xor_si512(a.v, b.v)}; }
inline IVec operator<<(IVec a, int n) { return {_mm512_slli_epi32(a.v, static_cast<unsigned>(n))}; }
inline IVec operator>>(IVec a, int n) { return {_mm512_srli_epi32(a.v, static_cast<unsigned>(n))}; }
inline IVec sra(IVec a, int n) { return {_mm512_srai_epi32(a.v, static_cast<unsigned>(n))}; }
inline IVec to_int(Vec a) { return {_mm512_cvtps_epi32(a.v)}; }
inline Vec to_float(IVec a) { return {_mm512_cvtepi32_ps(a.v)}; }
inline IVec bits(Vec a) { return {_mm512_castps_si512(a.v)}; }
inline Vec from_bits(IVec a) { return {_mm512_castsi512_ps(a.v)}; }

inline Vec copysign(Vec a, Vec b) {
  IVec sign = iset1(INT32_MIN);
  return from_bits({_mm512_ternarylogic_epi32(sign.v, bits(b).v, bits(a).v, 0xCA)});
}

inline Vec load_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
inline Vec load_bf16(const uint16_t* p) {
  __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
inline void store_high16(uint16_t* p, IVec a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(a.v, 16)));
}

inline void store_bytes(int8_t* p, IVec a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}

inline float reduce_add(Vec a) {
  __m256 s = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
inline float reduce_max(Vec a) {
  __m256 s = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  __m128 q = _mm_max_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
  q = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

}  // namespace sonant::SONANT_ISA
