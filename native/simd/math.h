// Elementary functions on Vec: polynomials of our own, so that every instruction set gives the same numbers within a
// few ulps of the true value. dense_test checks the errors stated here (relative, on normal results).
#pragma once

#include "vec.h"

namespace sonant::SONANT_ISA {

constexpr float kInfinity = __builtin_inff();

// x - n * pi for |n| below about 2^21. With a fused product two parts of pi are enough; without it each product must be
// exact, so pi comes in four parts of few bits.
inline Vec minus_pi_turns(Vec x, Vec n) {
#ifdef SONANT_FMA_NOT_FUSED
  x = fnma(n, set1(3.140625f), x);
  x = fnma(n, set1(0.0009670257568359375f), x);
  x = fnma(n, set1(6.2771141529083251953e-07f), x);
  return fnma(n, set1(1.2154201256553420762e-10f), x);
#else
  return fnma(n, set1(-8.74227765734758577e-08f), fnma(n, set1(3.14159274101257324f), x));
#endif
}

// sin on [-pi/2, pi/2].
inline Vec sin_poly(Vec r) {
  Vec s = r * r;
  Vec p = fma(set1(2.6083159809786593541503e-06f), s, set1(-0.0001981069071916863322258f));
  p = fma(p, s, set1(0.00833307858556509017944336f));
  p = fma(p, s, set1(-0.166666597127914428710938f));
  return fma(s * r, p, r);
}

// 2e-7 of the amplitude for |x| <= 1e4.
inline Vec sin(Vec x) {
  Vec n = round(x * set1(0.318309886183790672f));
  return from_bits(bits(sin_poly(minus_pi_turns(x, n))) ^ (to_int(n) << 31));
}

inline Vec cos(Vec x) {
  Vec k = round(fma(x, set1(0.318309886183790672f), set1(0.5f)));
  return from_bits(bits(sin_poly(minus_pi_turns(x, k - set1(0.5f)))) ^ (to_int(k) << 31));
}

// sin(x)^2: the half turn's sign falls away.
inline Vec sin_squared(Vec x) {
  Vec s = sin_poly(minus_pi_turns(x, round(x * set1(0.318309886183790672f))));
  return s * s;
}

// sin(pi h)^2: for the prologues, which know their factor of x beforehand. 4e-7 beside what the rounding of h costs.
inline Vec sin_squared_of_half_turns(Vec h) {
  Vec f = h - round(h);
  Vec s = f * f;
  Vec p = fma(set1(-3.357076644897461f), s, set1(13.05040168762207f));
  p = fma(p, s, set1(-30.101531982421875f));
  p = fma(p, s, set1(42.727203369140625f));
  p = fma(p, s, set1(-32.46967315673828f));
  p = fma(p, s, set1(9.869604110717773f));
  return p * s;
}

// e^x as 2^whole * (1 + rest), for |x| up to 104.
struct Power {
  IVec whole;
  Vec rest;

  // 2^whole, where that is a normal number.
  Vec scale() const { return from_bits((whole + iset1(127)) << 23); }
};

inline Power power_of_e(Vec x) {
  Vec n = round(x * set1(1.44269504088896341f));
  Vec r = fnma(n, set1(0.693359375f), x);
  r = fnma(n, set1(-2.12194440054690583e-4f), r);
  Vec p = fma(set1(1.9875691500e-4f), r, set1(1.3981999507e-3f));
  p = fma(p, r, set1(8.3334519073e-3f));
  p = fma(p, r, set1(4.1665795894e-2f));
  p = fma(p, r, set1(1.6666665459e-1f));
  p = fma(p, r, set1(5.0000001201e-1f));
  return {to_int(n), fma(p * r, r, r)};
}

// 2e-7; overflows to infinity above 88.72, to zero below -104.
inline Vec exp(Vec x) {
  const Power e = power_of_e(min(set1(89.0f), max(set1(-104.0f), x)));
  // 2^n in two factors: n = 128 and the subnormals do not fit one exponent field.
  const IVec half = sra(e.whole, 1);
  const Vec low = from_bits((half + iset1(127)) << 23), high = from_bits((e.whole - half + iset1(127)) << 23);
  return (e.rest + set1(1.0f)) * low * high;
}

// x, or e^x - 1 below zero; 2e-7 there too, however small x is.
inline Vec elu(Vec x) {
  const Power e = power_of_e(max(set1(-87.3f), min(zero(), x)));  // in this order a NaN is handed on
  const Vec scale = e.scale();
  return select(x > zero(), x, fma(e.rest, scale, scale - set1(1.0f)));
}

// exp for x <= 0 where results below 1e-38 may be zero (softmax, sigmoid): one factor is enough.
inline Vec exp_nonpositive(Vec x) {
  const Power e = power_of_e(max(set1(-87.3f), x));
  return select(x < set1(-87.3f), zero(), (e.rest + set1(1.0f)) * e.scale());
}

// 2e-7; 0 gives -inf, negative numbers NaN.
inline Vec log(Vec x) {
  Mask tiny = x < set1(1.17549435e-38f);
  Vec y = select(tiny, x * set1(8388608.0f), x);
  IVec b = bits(y) - iset1(0x3F3504F3);  // mantissa in [sqrt(1/2), sqrt(2))
  Vec e = to_float(sra(b, 23)) - select(tiny, set1(23.0f), zero());
  Vec m = from_bits((b & iset1(0x007FFFFF)) + iset1(0x3F3504F3)) - set1(1.0f);
  Vec p = fma(set1(7.0376836292e-2f), m, set1(-1.1514610310e-1f));
  p = fma(p, m, set1(1.1676998740e-1f));
  p = fma(p, m, set1(-1.2420140846e-1f));
  p = fma(p, m, set1(1.4249322787e-1f));
  p = fma(p, m, set1(-1.6668057665e-1f));
  p = fma(p, m, set1(2.0000714765e-1f));
  p = fma(p, m, set1(-2.4999993993e-1f));
  p = fma(p, m, set1(3.3333331174e-1f));
  Vec square = m * m;
  Vec tail = fma(e, set1(-2.12194440e-4f), fma(p, m * square, square * set1(-0.5f)));
  Vec result = fma(e, set1(0.693359375f), m + tail);
  result = select(x < set1(kInfinity), result, x);  // infinity and NaN
  result = select(x == zero(), set1(-kInfinity), result);
  return select(x < zero(), set1(__builtin_nanf("")), result);
}

// 4e-7; a quotient of polynomials.
inline Vec tanh(Vec x) {
  Vec c = min(set1(7.90531110763549805f), max(set1(-7.90531110763549805f), x));
  Vec s = c * c;
  Vec p = fma(set1(-2.76076847742355e-16f), s, set1(2.00018790482477e-13f));
  p = fma(p, s, set1(-8.60467152213735e-11f));
  p = fma(p, s, set1(5.12229709037114e-08f));
  p = fma(p, s, set1(1.48572235717979e-05f));
  p = fma(p, s, set1(6.37261928875436e-04f));
  p = fma(p, s, set1(4.89352455891786e-03f));
  Vec q = fma(set1(1.19825839466702e-06f), s, set1(1.18534705686654e-04f));
  q = fma(q, s, set1(2.26843463243900e-03f));
  q = fma(q, s, set1(4.89352518554385e-03f));
  return select(abs(x) < set1(0.0004f), x, c * p / q);
}

// 3e-7.
inline Vec sigmoid(Vec x) { return set1(1.0f) / (set1(1.0f) + exp(zero() - x)); }

// 5e-7; a quotient of polynomials on [-4, 4].
inline Vec erf(Vec x) {
  Vec c = min(set1(4.0f), max(set1(-4.0f), x));
  Vec s = c * c;
  Vec p = fma(set1(-2.72614225801306e-10f), s, set1(2.77068142495902e-08f));
  p = fma(p, s, set1(-2.10102402082508e-06f));
  p = fma(p, s, set1(-5.69250639462346e-05f));
  p = fma(p, s, set1(-7.34990630326855e-04f));
  p = fma(p, s, set1(-2.95459980854025e-03f));
  p = fma(p, s, set1(-1.60960333262415e-02f));
  Vec q = fma(set1(-1.45660718464996e-05f), s, set1(-2.13374055278905e-04f));
  q = fma(q, s, set1(-1.68282697438203e-03f));
  q = fma(q, s, set1(-7.37332916720468e-03f));
  q = fma(q, s, set1(-1.42647390514189e-02f));
  return c * p / q;
}

// Angle of the point (x, y), as std::atan2 (signed zeros and atan2(0, 0) = 0 included); 3e-7.
inline Vec atan2(Vec y, Vec x) {
  Vec ax = abs(x), ay = abs(y);
  Mask steep = ay > ax;
  Vec larger = select(steep, ay, ax), smaller = select(steep, ax, ay);
  Vec t = select(larger == zero(), zero(), smaller / larger);
  t = select((larger == set1(kInfinity)) & (smaller == set1(kInfinity)), set1(1.0f), t);
  Vec s = t * t;
  Vec p = fma(set1(0.00282363896258175373077393f), s, set1(-0.0159569028764963150024414f));
  p = fma(p, s, set1(0.0425049886107444763183594f));
  p = fma(p, s, set1(-0.0748900920152664184570312f));
  p = fma(p, s, set1(0.106347933411598205566406f));
  p = fma(p, s, set1(-0.142027363181114196777344f));
  p = fma(p, s, set1(0.199926957488059997558594f));
  p = fma(p, s, set1(-0.333331018686294555664062f));
  Vec angle = fma(p, s * t, t);
  angle = select(steep, set1(1.57079632679489662f) - angle, angle);
  angle = select(copysign(set1(1.0f), x) < zero(), set1(3.14159265358979324f) - angle, angle);
  return copysign(angle, y);
}

inline Vec silu(Vec x) { return x * sigmoid(x); }
inline Vec gelu(Vec x) { return set1(0.5f) * x * (set1(1.0f) + erf(x * set1(0.70710678118654752f))); }
inline Vec gelu_tanh(Vec x) {
  Vec cube = x * x * x;
  return set1(0.5f) * x * (set1(1.0f) + tanh(set1(0.79788456080286536f) * fma(cube, set1(0.044715f), x)));
}
inline Vec leaky_relu(Vec x, Vec slope) { return select(x > zero(), x, x * slope); }
inline Vec relu(Vec x) { return max(x, zero()); }

}  // namespace sonant::SONANT_ISA
