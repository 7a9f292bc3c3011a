// vec.h for AArch64 NEON (baseline armv8-a).
#pragma once

#include <arm_neon.h>

namespace sonant::SONANT_ISA {

constexpr int kWidth = 4;

struct Vec {
  float32x4_t v;
};
struct IVec {
  int32x4_t v;
};
struct Mask {
  uint32x4_t v;
};

inline Vec zero() { return {vdupq_n_f32(0)}; }
inline Vec set1(float x) { return {vdupq_n_f32(x)}; }
inline Vec load(const float* p) { return {vld1q_f32(p)}; }
inline void store(float* p, Vec a) { vst1q_f32(p, a.v); }
inline Vec load_n(const float* p, int64_t n) {
  float lane[4] = {};
  std::memcpy(lane, p, static_cast<size_t>(n) * 4);
  return {vld1q_f32(lane)};
}
inline void store_n(float* p, Vec a, int64_t n) {
  float lane[4];
  vst1q_f32(lane, a.v);
  std::memcpy(p, lane, static_cast<size_t>(n) * 4);
}

inline Vec operator+(Vec a, Vec b) { return {vaddq_f32(a.v, b.v)}; }
inline Vec operator-(Vec a, Vec b) { return {vsubq_f32(a.v, b.v)}; }
inline Vec operator*(Vec a, Vec b) { return {vmulq_f32(a.v, b.v)}; }
inline Vec operator/(Vec a, Vec b) { return {vdivq_f32(a.v, b.v)}; }
inline Vec fma(Vec a, Vec b, Vec c) { return {vfmaq_f32(c.v, a.v, b.v)}; }
inline Vec fnma(Vec a, Vec b, Vec c) { return {vfmsq_f32(c.v, a.v, b.v)}; }
// By comparison, not vminq/vmaxq: the NaN rule of vec.h.
inline Vec min(Vec a, Vec b) { return {vbslq_f32(vcltq_f32(a.v, b.v), a.v, b.v)}; }
inline Vec max(Vec a, Vec b) { return {vbslq_f32(vcgtq_f32(a.v, b.v), a.v, b.v)}; }
inline Vec sqrt(Vec a) { return {vsqrtq_f32(a.v)}; }
inline Vec floor(Vec a) { return {vrndmq_f32(a.v)}; }
inline Vec round(Vec a) { return {vrndnq_f32(a.v)}; }
inline Vec abs(Vec a) { return {vabsq_f32(a.v)}; }
inline Vec copysign(Vec a, Vec b) { return {vbslq_f32(vdupq_n_u32(0x80000000u), b.v, a.v)}; }

inline Mask operator<(Vec a, Vec b) { return {vcltq_f32(a.v, b.v)}; }
inline Mask operator>(Vec a, Vec b) { return {vcgtq_f32(a.v, b.v)}; }
inline Mask operator<=(Vec a, Vec b) { return {vcleq_f32(a.v, b.v)}; }
inline Mask operator>=(Vec a, Vec b) { return {vcgeq_f32(a.v, b.v)}; }
inline Mask operator==(Vec a, Vec b) { return {vceqq_f32(a.v, b.v)}; }
inline Mask operator&(Mask a, Mask b) { return {vandq_u32(a.v, b.v)}; }
inline Mask operator|(Mask a, Mask b) { return {vorrq_u32(a.v, b.v)}; }
inline Vec select(Mask m, Vec a, Vec b) { return {vbslq_f32(m.v, a.v, b.v)}; }

inline IVec iset1(int32_t x) { return {vdupq_n_s32(x)}; }
inline IVec operator+(IVec a, IVec b) { return {vaddq_s32(a.v, b.v)}; }
inline IVec operator-(IVec a, IVec b) { return {vsubq_s32(a.v, b.v)}; }
inline IVec operator&(IVec a, IVec b) { return {vandq_s32(a.v, b.v)}; }
inline IVec operator|(IVec a, IVec b) { return {vorrq_s32(a.v, b.v)}; }
inline IVec operator^(IVec a, IVec b) { return {veorq_s32(a.v, b.v)}; }
inline IVec operator<<(IVec a, int n) { return {vshlq_s32(a.v, vdupq_n_s32(n))}; }
inline IVec operator>>(IVec a, int n) {
  return {vreinterpretq_s32_u32(vshlq_u32(vreinterpretq_u32_s32(a.v), vdupq_n_s32(-n)))};
}
inline IVec sra(IVec a, int n) { return {vshlq_s32(a.v, vdupq_n_s32(-n))}; }
inline IVec to_int(Vec a) { return {vcvtnq_s32_f32(a.v)}; }
inline Vec to_float(IVec a) { return {vcvtq_f32_s32(a.v)}; }
inline IVec bits(Vec a) { return {vreinterpretq_s32_f32(a.v)}; }
inline Vec from_bits(IVec a) { return {vreinterpretq_f32_s32(a.v)}; }

inline Vec load_f16(const uint16_t* p) { return {vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)))}; }
inline Vec load_bf16(const uint16_t* p) { return {vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16))}; }
inline void store_high16(uint16_t* p, IVec a) { vst1_u16(p, vshrn_n_u32(vreinterpretq_u32_s32(a.v), 16)); }

inline void store_bytes(int8_t* p, IVec a) {
  const int16x4_t half = vmovn_s32(a.v);
  const int8x8_t low = vmovn_s16(vcombine_s16(half, half));
  vst1_lane_s32(reinterpret_cast<int32_t*>(p), vreinterpret_s32_s8(low), 0);
}

inline float reduce_add(Vec a) {
  float32x2_t h = vadd_f32(vget_low_f32(a.v), vget_high_f32(a.v));
  return vget_lane_f32(h, 0) + vget_lane_f32(h, 1);
}
inline float reduce_max(Vec a) { return vmaxvq_f32(a.v); }

}  // namespace sonant::SONANT_ISA
