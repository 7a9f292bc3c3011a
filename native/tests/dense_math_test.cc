// The error of every function of simd/math.h against double, for the instruction set it is compiled for.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "../simd/math.h"

using namespace sonant::SONANT_ISA;

namespace {

int failures = 0;

// Largest error relative to max(|truth|, floor) on n points of [lo, hi].
template <class F, class G>
void check(const char* name, F fast, G truth, double lo, double hi, double bound, double floor) {
  double worst = 0, at = 0;
  const int n = 1 << 20;
  float in[kWidth], out[kWidth];
  for (int i = 0; i < n; i += kWidth) {
    for (int j = 0; j < kWidth; ++j) in[j] = static_cast<float>(lo + (hi - lo) * (i + j) / (n - 1));
    store(out, fast(load(in)));
    for (int j = 0; j < kWidth; ++j) {
      double t = truth(static_cast<double>(in[j]));
      double e = std::fabs(out[j] - t) / std::max(std::fabs(t), floor);
      if (!(e <= worst)) worst = e, at = in[j];
    }
  }
  bool good = worst <= bound;
  failures += !good;
  std::printf("%-18s [%g, %g] worst %.2e at %g%s\n", name, lo, hi, worst, at, good ? "" : "  FAILED");
}

void value(const char* name, Vec got, double want) {
  float lane[kWidth];
  store(lane, got);
  bool good = std::isnan(want) ? std::isnan(lane[0])
                               : lane[0] == static_cast<float>(want) && std::signbit(lane[0]) == std::signbit(want);
  failures += !good;
  if (!good) std::printf("%s: got %g, wanted %g  FAILED\n", name, lane[0], want);
}

void ranges() {
  check(
      "sin", [](Vec x) { return sin(x); }, [](double x) { return std::sin(x); }, -1e4, 1e4, 2e-7, 1);
  check(
      "sin", [](Vec x) { return sin(x); }, [](double x) { return std::sin(x); }, -3, 3, 4e-7, 1e-3);
  check(
      "cos", [](Vec x) { return cos(x); }, [](double x) { return std::cos(x); }, -1e4, 1e4, 2e-7, 1);
  check(
      "sin_squared", [](Vec x) { return sin_squared(x); }, [](double x) { return std::sin(x) * std::sin(x); }, -1e3,
      1e3, 3e-7, 1);
  check(
      "sin_squared_of_half_turns", [](Vec x) { return sin_squared_of_half_turns(x); },
      [](double x) { return std::sin(3.14159265358979324 * x) * std::sin(3.14159265358979324 * x); }, -1e3, 1e3, 4e-7,
      1);
  check(
      "exp", [](Vec x) { return exp(x); }, [](double x) { return std::exp(x); }, -87, 88.7, 2e-7, 1e-38);
  check(
      "exp_nonpositive", [](Vec x) { return exp_nonpositive(x); }, [](double x) { return std::exp(x); }, -100, 0, 2e-7,
      1e-30);
  check(
      "elu", [](Vec x) { return elu(x); }, [](double x) { return x > 0 ? x : std::expm1(x); }, -90, 3, 2e-7, 1e-3);
  check(
      "elu", [](Vec x) { return elu(x); }, [](double x) { return x > 0 ? x : std::expm1(x); }, -1e-3, 1e-4, 2e-7, 1e-9);
  check(
      "log", [](Vec x) { return log(x); }, [](double x) { return std::log(x); }, 1e-6, 4, 3e-7, 1e-3);
  check(
      "log", [](Vec x) { return log(x); }, [](double x) { return std::log(x); }, 1, 1e9, 2e-7, 1e-3);
  check(
      "tanh", [](Vec x) { return tanh(x); }, [](double x) { return std::tanh(x); }, -12, 12, 4e-7, 1e-6);
  check(
      "sigmoid", [](Vec x) { return sigmoid(x); }, [](double x) { return 1 / (1 + std::exp(-x)); }, -30, 30, 3e-7, 0);
  check(
      "erf", [](Vec x) { return erf(x); }, [](double x) { return std::erf(x); }, -6, 6, 5e-7, 1e-6);
  for (double other : {-2.0, -1e-3, 0.5, 3.0}) {
    float o = static_cast<float>(other);
    check(
        "atan2(x, .)", [o](Vec x) { return atan2(x, set1(o)); }, [o](double x) { return std::atan2(x, double(o)); }, -5,
        5, 3e-7, 1e-3);
    check(
        "atan2(., x)", [o](Vec x) { return atan2(set1(o), x); }, [o](double x) { return std::atan2(double(o), x); }, -5,
        5, 3e-7, 1e-3);
  }
  check(
      "gelu", [](Vec x) { return gelu(x); }, [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, -8,
      8, 1.3e-6, 1);
  check(
      "round", [](Vec x) { return round(x); }, [](double x) { return std::nearbyint(x); }, -9, 9, 0, 1);
  check(
      "floor", [](Vec x) { return floor(x); }, [](double x) { return std::floor(x); }, -9, 9, 0, 1);
}

void edges() {
  const double inf = HUGE_VAL;
  value("exp(100)", exp(set1(100)), inf);
  value("exp(-inf)", exp(set1(-kInfinity)), 0);
  value("exp(nan)", exp(set1(NAN)), NAN);
  value("log(0)", log(zero()), -inf);
  value("log(-1)", log(set1(-1)), NAN);
  value("log(inf)", log(set1(kInfinity)), inf);
  value("tanh(0)", tanh(zero()), 0);
  value("tanh(nan)", tanh(set1(NAN)), NAN);
  value("atan2(0,0)", atan2(zero(), zero()), 0);
  value("atan2(0,-1)", atan2(zero(), set1(-1)), 3.14159265358979324);
  value("atan2(-0,-1)", atan2(set1(-0.0f), set1(-1)), -3.14159265358979324);
  value("round(2.5)", round(set1(2.5f)), 2);
  value("sigmoid(-200)", sigmoid(set1(-200)), 0);
}

void halves() {
  for (int h = 0; h < 65536; ++h) {
    uint16_t in[kWidth];
    std::fill(in, in + kWidth, static_cast<uint16_t>(h));
    int e = h >> 10 & 31, m = h & 1023;
    double v = e == 31 ? (m ? NAN : HUGE_VAL) : e ? std::ldexp(1024 + m, e - 25) : std::ldexp(m, -24);
    value("f16", load_f16(in), h >> 15 ? -v : v);
    float x = from_bf16(static_cast<uint16_t>(h));
    value("bf16", load_bf16(in), x);
    uint16_t back[kWidth];
    store_bf16(back, set1(x));
    if (x == x && back[0] != h) ++failures;
  }
}

}  // namespace

int main() {
  ranges();
  edges();
  halves();
  std::printf("%d failures\n", failures);
  return failures != 0;
}
