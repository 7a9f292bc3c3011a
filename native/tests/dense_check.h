// Comparisons of the dense tests, and step lists in double.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "dense_harness.h"

namespace harness {

struct Tally {
  int checks = 0, failures = 0;
  double worst = 0;
};
inline Tally& tally() {
  static Tally t;
  return t;
}

inline int report() {
  std::printf("%d checks, %d failures, worst error %.2e\n", tally().checks, tally().failures, tally().worst);
  return tally().failures != 0;
}

inline void failed(const char* name, const char* what, double value, size_t at) {
  if (++tally().failures <= 20) std::printf("%s: %s %g at %zu\n", name, what, value, at);
}

// Relative to the largest number wanted.
inline void close(const char* name, const Floats& got, const std::vector<double>& want, double bound) {
  double scale = 1e-30, worst = 0;
  size_t at = 0;
  for (double w : want) scale = std::max(scale, std::fabs(w));
  for (size_t i = 0; i < want.size(); ++i) {
    const double e = std::fabs(got[i] - want[i]) / scale;
    if (!(e <= worst)) worst = e, at = i;
  }
  ++tally().checks;
  tally().worst = std::max(tally().worst, worst);
  if (got.size() != want.size() || !(worst <= bound)) failed(name, "error", worst, at);
}

inline void same(const char* name, const Floats& a, const Floats& b) {
  ++tally().checks;
  if (a.size() != b.size())
    return failed(name, "sizes differ by", static_cast<double>(a.size()) - static_cast<double>(b.size()), 0);
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], 4) != 0) return failed(name, "bits differ by", a[i] - b[i], i);
  }
}

inline float rounded(float x, DType dtype) {
  if (dtype == DType::f32) return x;
  if (dtype == DType::f16) {  // by arithmetic, apart from pack.cc
    int e;
    std::frexp(x, &e);
    const double unit = std::ldexp(1.0, std::max(e, -13) - 11);
    return static_cast<float>(std::nearbyint(x / unit) * unit);
  }
  uint32_t b;
  std::memcpy(&b, &x, 4);
  b = (b + 0x7FFF + ((b >> 16) & 1)) & 0xFFFF0000u;
  std::memcpy(&x, &b, 4);
  return x;
}

// What the rounding of a row multiplies or divides by: weights of q8 divide by an f16 scale, of i8 by an f32 one; rows
// of x are multiplied by its inverse.
enum class Rounding { q8, i8, row };

// Rows of `channels` numbers in blocks of `size`.
inline void round_blocks(Floats& v, int64_t channels, int64_t size, Rounding how) {
  for (int64_t row = 0; row < static_cast<int64_t>(v.size()); row += channels)
    for (int64_t c = 0; c < channels; c += size) {
      float* x = v.data() + row + c;
      const int64_t n = std::min(size, channels - c);
      float top = 0;
      for (int64_t i = 0; i < n; ++i) top = std::max(top, std::fabs(x[i]));
      const float scale = how == Rounding::q8 ? rounded(top / 127, DType::f16) : top / 127;
      for (int64_t i = 0; i < n; ++i)
        x[i] = scale == 0 ? 0 : std::nearbyint(how == Rounding::row ? x[i] * (127 / top) : x[i] / scale) * scale;
    }
}

// Weights [..., channels] as their dtype holds them.
inline void round_weights(Floats& w, int64_t channels, DType dtype) {
  if (dtype == DType::q8) return round_blocks(w, channels, 32, Rounding::q8);
  if (dtype == DType::i8) return round_blocks(w, channels, channels, Rounding::i8);
  for (float& v : w) v = rounded(v, dtype);
}

// Rows of x as the precision reads them.
inline void round_rows(Floats& x, int64_t channels, Precision precision) {
  if (precision == Precision::int8) return round_blocks(x, channels, 32, Rounding::row);
  if (precision == Precision::int8_row) return round_blocks(x, channels, channels, Rounding::row);
  if (precision == Precision::bf16)
    for (float& v : x) v = rounded(v, DType::bf16);
}

inline double real_of(int64_t bits) {
  double v;
  std::memcpy(&v, &bits, 8);
  return v;
}

inline double reference_op(Op op, double a, double b, double c) {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::sub:
      return a - b;
    case Op::mul:
      return a * b;
    case Op::tanh:
      return std::tanh(a);
    case Op::sigmoid:
      return 1 / (1 + std::exp(-a));
    case Op::silu:
      return a / (1 + std::exp(-a));
    case Op::gelu_tanh:
      return 0.5 * a * (1 + std::tanh(std::sqrt(2 / M_PI) * (a + 0.044715 * a * a * a)));
    case Op::leaky_relu:
      return a > 0 ? a : a * b;
    case Op::snake:
      return a + std::sin(b * a) * std::sin(b * a) / b;
    case Op::affine:
      return a * b + c;
    case Op::where:
      return a != 0 ? b : c;
    default:
      throw std::runtime_error("dense_check has no reference for this op");
  }
}

// The element of an operand that meets element i of a subject.
inline double broadcast(const Floats& v, const Dims& dims, const Dims& subject, int64_t i) {
  int64_t offset = 0, stride = 1;
  for (int64_t axis = static_cast<int64_t>(subject.size()) - 1; axis >= 0; --axis) {
    const int64_t at = axis - static_cast<int64_t>(subject.size()) + static_cast<int64_t>(dims.size());
    const int64_t index = i % subject[axis], size = at >= 0 ? dims[at] : 1;
    i /= subject[axis];
    offset += (size == 1 ? 0 : index) * stride;
    stride *= size;
  }
  return v[offset];
}

inline std::vector<double> reference_steps(const Steps& steps, std::vector<double> x, const Dims& dims,
                                           const std::vector<Floats>& operands, const std::vector<Dims>& operand_dims) {
  for (size_t i = 0; i < x.size(); ++i) {
    std::vector<double> reg = {x[i]};
    for (size_t k = 0; k < operands.size(); ++k)
      reg.push_back(broadcast(operands[k], operand_dims[k], dims, static_cast<int64_t>(i)));
    for (const StepText& s : steps) {
      double a[4] = {};
      for (size_t k = 0; k < s.args.size(); ++k) {
        a[k & 3] = s.args[k].kind == 0 ? reg[static_cast<size_t>(s.args[k].value)] : real_of(s.args[k].value);
      }
      reg.push_back(reference_op(s.op, a[0], a[1], a[2]));
    }
    x[i] = reg.back();
  }
  return x;
}

}  // namespace harness
