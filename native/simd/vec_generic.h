// vec.h for any CPU, in the vector extension of g++ and clang. fma is a product and a sum here: without the instruction
// a fused one is a slow library call, so math.h does not lean on its exactness in this set.
#pragma once

#include <cmath>

#define SONANT_FMA_NOT_FUSED 1

namespace sonant::SONANT_ISA {

constexpr int kWidth = 4;

typedef float Float4 __attribute__((vector_size(16)));
typedef int32_t Int4 __attribute__((vector_size(16)));
typedef uint32_t Uint4 __attribute__((vector_size(16)));

struct Vec {
  Float4 v;
};
struct IVec {
  Int4 v;
};
struct Mask {
  Int4 v;
};

inline Vec set1(float x) { return {Float4{x, x, x, x}}; }
inline Vec zero() { return set1(0); }
inline Vec load(const float* p) {
  Vec a;
  std::memcpy(&a.v, p, 16);
  return a;
}
inline void store(float* p, Vec a) { std::memcpy(p, &a.v, 16); }
inline Vec load_n(const float* p, int64_t n) {
  float lane[4] = {};
  std::memcpy(lane, p, static_cast<size_t>(n) * 4);
  return load(lane);
}
inline void store_n(float* p, Vec a, int64_t n) { std::memcpy(p, &a.v, static_cast<size_t>(n) * 4); }

inline Vec operator+(Vec a, Vec b) { return {a.v + b.v}; }
inline Vec operator-(Vec a, Vec b) { return {a.v - b.v}; }
inline Vec operator*(Vec a, Vec b) { return {a.v * b.v}; }
inline Vec operator/(Vec a, Vec b) { return {a.v / b.v}; }
inline Vec fma(Vec a, Vec b, Vec c) { return {a.v * b.v + c.v}; }
inline Vec fnma(Vec a, Vec b, Vec c) { return {c.v - a.v * b.v}; }

inline IVec bits(Vec a) { return {reinterpret_cast<Int4>(a.v)}; }
inline Vec from_bits(IVec a) { return {reinterpret_cast<Float4>(a.v)}; }
inline Vec select(Mask m, Vec a, Vec b) { return from_bits({(m.v & bits(a).v) | (~m.v & bits(b).v)}); }
inline Mask operator<(Vec a, Vec b) { return {a.v < b.v}; }
inline Mask operator>(Vec a, Vec b) { return {a.v > b.v}; }
inline Mask operator<=(Vec a, Vec b) { return {a.v <= b.v}; }
inline Mask operator>=(Vec a, Vec b) { return {a.v >= b.v}; }
inline Mask operator==(Vec a, Vec b) { return {a.v == b.v}; }
inline Mask operator&(Mask a, Mask b) { return {a.v & b.v}; }
inline Mask operator|(Mask a, Mask b) { return {a.v | b.v}; }
inline Vec min(Vec a, Vec b) { return select(a < b, a, b); }
inline Vec max(Vec a, Vec b) { return select(a > b, a, b); }

inline IVec iset1(int32_t x) { return {Int4{x, x, x, x}}; }
// Unsigned inside: signed lanes must not overflow.
inline IVec operator+(IVec a, IVec b) {
  return {reinterpret_cast<Int4>(reinterpret_cast<Uint4>(a.v) + reinterpret_cast<Uint4>(b.v))};
}
inline IVec operator-(IVec a, IVec b) {
  return {reinterpret_cast<Int4>(reinterpret_cast<Uint4>(a.v) - reinterpret_cast<Uint4>(b.v))};
}
inline IVec operator&(IVec a, IVec b) { return {a.v & b.v}; }
inline IVec operator|(IVec a, IVec b) { return {a.v | b.v}; }
inline IVec operator^(IVec a, IVec b) { return {a.v ^ b.v}; }
inline IVec operator<<(IVec a, int n) { return {reinterpret_cast<Int4>(reinterpret_cast<Uint4>(a.v) << n)}; }
inline IVec operator>>(IVec a, int n) { return {reinterpret_cast<Int4>(reinterpret_cast<Uint4>(a.v) >> n)}; }
inline IVec sra(IVec a, int n) { return {a.v >> n}; }
inline Vec to_float(IVec a) {
  return {Float4{static_cast<float>(a.v[0]), static_cast<float>(a.v[1]), static_cast<float>(a.v[2]),
                 static_cast<float>(a.v[3])}};
}
inline Vec abs(Vec a) { return from_bits(bits(a) & iset1(INT32_MAX)); }
inline Vec copysign(Vec a, Vec b) { return from_bits((bits(a) & iset1(INT32_MAX)) | (bits(b) & iset1(INT32_MIN))); }

// Adding and taking away 2^23 leaves an integer, rounded half to even; larger numbers are integers already.
inline Vec round(Vec a) {
  Vec big = set1(8388608.0f), m = abs(a);
  return copysign(select(m < big, (m + big) - big, m), a);
}
inline Vec floor(Vec a) {
  Vec r = round(a);
  return select(r > a, r - set1(1), r);
}
inline Vec sqrt(Vec a) { return {Float4{std::sqrt(a.v[0]), std::sqrt(a.v[1]), std::sqrt(a.v[2]), std::sqrt(a.v[3])}}; }
// Out of range and NaN give INT32_MIN, as x86 does.
inline int32_t to_int1(float r) {
  return r >= -2147483648.0f && r < 2147483648.0f ? static_cast<int32_t>(r) : INT32_MIN;
}
inline IVec to_int(Vec a) {
  Vec r = round(a);
  return {Int4{to_int1(r.v[0]), to_int1(r.v[1]), to_int1(r.v[2]), to_int1(r.v[3])}};
}

// Exact for every half, subnormals, infinities and NaN included.
inline Vec load_f16(const uint16_t* p) {
  IVec h = {Int4{p[0], p[1], p[2], p[3]}};
  IVec magnitude = (h & iset1(0x7FFF)) << 13;
  Vec scaled = from_bits(magnitude) * set1(5.192296858534828e33f);  // 2^112 moves the exponent bias, subnormals too
  Vec value =
      select(from_bits(magnitude) >= from_bits(iset1(0x7C00 << 13)), from_bits(magnitude | iset1(0x7F800000)), scaled);
  return from_bits(bits(value) | ((h & iset1(0x8000)) << 16));
}
inline Vec load_bf16(const uint16_t* p) { return from_bits(IVec{Int4{p[0], p[1], p[2], p[3]}} << 16); }
inline void store_high16(uint16_t* p, IVec a) {
  for (int i = 0; i < 4; ++i) p[i] = static_cast<uint16_t>(static_cast<uint32_t>(a.v[i]) >> 16);
}

inline void store_bytes(int8_t* p, IVec a) {
  for (int i = 0; i < kWidth; ++i) p[i] = static_cast<int8_t>(a.v[i]);
}

inline float reduce_add(Vec a) { return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]); }
inline float reduce_max(Vec a) {
  float lo = a.v[0] > a.v[2] ? a.v[0] : a.v[2], hi = a.v[1] > a.v[3] ? a.v[1] : a.v[3];
  return lo > hi ? lo : hi;
}

}  // namespace sonant::SONANT_ISA
