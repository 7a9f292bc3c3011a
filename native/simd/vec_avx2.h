// vec.h for AVX2 with FMA and F16C.
#pragma once

#include <immintrin.h>

namespace sonant::SONANT_ISA {

constexpr int kWidth = 8;

struct Vec {
  __m256 v;
};
struct IVec {
  __m256i v;
};
struct Mask {
  __m256 v;
};

inline __m256i lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

inline Vec zero() { return {_mm256_setzero_ps()}; }
inline Vec set1(float x) { return {_mm256_set1_ps(x)}; }
inline Vec load(const float* p) { return {_mm256_loadu_ps(p)}; }
inline void store(float* p, Vec a) { _mm256_storeu_ps(p, a.v); }
inline Vec load_n(const float* p, int64_t n) { return {_mm256_maskload_ps(p, lanes(n))}; }
inline void store_n(float* p, Vec a, int64_t n) { _mm256_maskstore_ps(p, lanes(n), a.v); }

inline Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.v, b.v)}; }
inline Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.v, b.v)}; }
inline Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
inline Vec fnma(Vec a, Vec b, Vec c) { return {_mm256_fnmadd_ps(a.v, b.v, c.v)}; }
inline Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.v, b.v)}; }
inline Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.v, b.v)}; }
inline Vec sqrt(Vec a) { return {_mm256_sqrt_ps(a.v)}; }
inline Vec floor(Vec a) { return {_mm256_floor_ps(a.v)}; }
inline Vec round(Vec a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline Vec abs(Vec a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
inline Vec copysign(Vec a, Vec b) {
  __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_or_ps(_mm256_andnot_ps(sign, a.v), _mm256_and_ps(sign, b.v))};
}

inline Mask operator<(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
inline Mask operator>(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ)}; }
inline Mask operator<=(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)}; }
inline Mask operator>=(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GE_OQ)}; }
inline Mask operator==(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
inline Mask operator&(Mask a, Mask b) { return {_mm256_and_ps(a.v, b.v)}; }
inline Mask operator|(Mask a, Mask b) { return {_mm256_or_ps(a.v, b.v)}; }
inline Vec select(Mask m, Vec a, Vec b) { return {_mm256_blendv_ps(b.v, a.v, m.v)}; }

inline IVec iset1(int32_t x) { return {_mm256_set1_epi32(x)}; }
inline IVec operator+(IVec a, IVec b) { return {_mm256_add_epi32(a.v, b.v)}; }
inline IVec operator-(IVec a, IVec b) { return {_mm256_sub_epi32(a.v, b.v)}; }
inline IVec operator&(IVec a, IVec b) { return {_mm256_and_si256(a.v, b.v)}; }
inline IVec operator|(IVec a, IVec b) { return {_mm256_or_si256(a.v, b.v)}; }
inline IVec operator^(IVec a, IVec b) { return {_mm256_xor_si256(a.v, b.v)}; }
inline IVec operator<<(IVec a, int n) { return {_mm256_slli_epi32(a.v, n)}; }
inline IVec operator>>(IVec a, int n) { return {_mm256_srli_epi32(a.v, n)}; }
inline IVec sra(IVec a, int n) { return {_mm256_srai_epi32(a.v, n)}; }
inline IVec to_int(Vec a) { return {_mm256_cvtps_epi32(a.v)}; }
inline Vec to_float(IVec a) { return {_mm256_cvtepi32_ps(a.v)}; }
inline IVec bits(Vec a) { return {_mm256_castps_si256(a.v)}; }
inline Vec from_bits(IVec a) { return {_mm256_castsi256_ps(a.v)}; }

inline Vec load_f16(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
inline Vec load_bf16(const uint16_t* p) {
  __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
}
inline void store_high16(uint16_t* p, IVec a) {
  __m256i low = _mm256_srli_epi32(a.v, 16);
  __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
}

inline void store_bytes(int8_t* p, IVec a) {
  const __m256i low = _mm256_shuffle_epi8(a.v, _mm256_set1_epi32(0x0C080400));  // of each half, in its first lane
  const __m128i both = _mm_unpacklo_epi32(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), both);
}

inline float reduce_add(Vec a) {
  __m128 q = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  q = _mm_add_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}
inline float reduce_max(Vec a) {
  __m128 q = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  q = _mm_max_ps(q, _mm_movehl_ps(q, q));
  return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

}  // namespace sonant::SONANT_ISA
