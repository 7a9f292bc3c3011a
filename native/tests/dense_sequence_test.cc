// lstm and attention against plain loops in double, and bit for bit against themselves: threads, batches, chunks.
#include "dense_check.h"

using namespace harness;
namespace isa = sonant::SONANT_ISA;

namespace {

struct Lstm {
  int64_t b, t, c, h, d;
  DType dtype;
};

std::vector<double> expected(const Lstm& s, const Floats& x, const Floats& wi, const Floats& wh, const Floats& bias) {
  std::vector<double> y(static_cast<size_t>(s.b * s.t * s.d * s.h));
  const auto sigmoid = [](double v) { return 1 / (1 + std::exp(-v)); };
  for (int64_t b = 0; b < s.b; ++b)
    for (int64_t d = 0; d < s.d; ++d) {
      std::vector<double> h(s.h), c(s.h), z(4 * s.h);
      for (int64_t step = 0; step < s.t; ++step) {
        const int64_t t = d ? s.t - 1 - step : step;
        for (int64_t n = 0; n < 4 * s.h; ++n) {
          z[n] = bias[d * 4 * s.h + n];
          for (int64_t k = 0; k < s.c; ++k)
            z[n] += double(x[(b * s.t + t) * s.c + k]) * wi[(d * 4 * s.h + n) * s.c + k];
          for (int64_t k = 0; k < s.h; ++k) z[n] += h[k] * wh[(d * 4 * s.h + n) * s.h + k];
        }
        for (int64_t j = 0; j < s.h; ++j) {
          c[j] = sigmoid(z[s.h + j]) * c[j] + sigmoid(z[j]) * std::tanh(z[2 * s.h + j]);
          h[j] = sigmoid(z[3 * s.h + j]) * std::tanh(c[j]);
          y[((b * s.t + t) * s.d + d) * s.h + j] = h[j];
        }
      }
    }
  return y;
}

void check_lstm(const Lstm& s) {
  Floats x = random(s.b * s.t * s.c), wi = random(s.d * 4 * s.h * s.c, 0.3f), wh = random(s.d * 4 * s.h * s.h, 0.3f);
  Floats bias = random(s.d * 4 * s.h);
  round_weights(wi, s.c, s.dtype);
  round_weights(wh, s.h, s.dtype);
  const auto run = [&](Floats in, int64_t b, int threads) {
    Node node;
    Floats y(static_cast<size_t>(b * s.t * s.d * s.h), NAN);
    node.in = {tensor(in, {b, s.t, s.c}), node.weight(PackRole::lstm, wi, {s.d, 4 * s.h, s.c}, 1, s.dtype),
               node.weight(PackRole::lstm, wh, {s.d, 4 * s.h, s.h}, 1, s.dtype), tensor(bias, {s.d, 4 * s.h})};
    node.out = {tensor(y, {b, s.t, s.d * s.h})};
    Threads pool(threads);
    isa::lstm(node.call(), pool.context);
    return y;
  };
  const Floats y = run(x, s.b, 1);
  close("lstm", y, expected(s, x, wi, wh, bias), 5e-6);
  same("lstm threads", y, run(x, s.b, 3));
  const int64_t each = s.t * s.d * s.h;
  for (int64_t b = 0; b < s.b; ++b) {
    const Floats one(x.begin() + b * s.t * s.c, x.begin() + (b + 1) * s.t * s.c);
    same("lstm row alone", run(one, 1, 2), Floats(y.begin() + b * each, y.begin() + (b + 1) * each));
  }
}

struct Att {
  int64_t b, t, keys, heads, kv, size, window;
  bool causal;
};

// k, v [B, keys, kv*size]; query i of row b is at start + i.
std::vector<double> expected(const Att& s, const Floats& q, const Floats& k, const Floats& v, double scale,
                             int64_t start) {
  std::vector<double> y(q.size());
  for (int64_t b = 0; b < s.b; ++b)
    for (int64_t i = 0; i < s.t; ++i)
      for (int64_t h = 0; h < s.heads; ++h) {
        const int64_t g = h / (s.heads / s.kv);
        const float* qi = &q[((b * s.t + i) * s.heads + h) * s.size];
        std::vector<double> w(s.keys);
        double top = -HUGE_VAL, sum = 0;
        for (int64_t j = 0; j < s.keys; ++j) {
          const int64_t age = start + i - j;
          w[j] = 0;
          for (int64_t c = 0; c < s.size; ++c) w[j] += double(qi[c]) * k[((b * s.keys + j) * s.kv + g) * s.size + c];
          w[j] *= scale;
          if (s.causal && (age < 0 || (s.window && age >= s.window))) w[j] = -HUGE_VAL;
          top = std::max(top, w[j]);
        }
        for (double& e : w) e = std::exp(e - top), sum += e;
        for (int64_t c = 0; c < s.size; ++c) {
          double& o = y[((b * s.t + i) * s.heads + h) * s.size + c];
          for (int64_t j = 0; j < s.keys; ++j) o += w[j] / sum * v[((b * s.keys + j) * s.kv + g) * s.size + c];
        }
      }
  return y;
}

Floats run(const Att& s, Floats q, Floats k, Floats v, double scale, int threads) {
  Node node;
  Floats y(q.size(), NAN);
  node.in = {tensor(q, {s.b, s.t, s.heads * s.size}), tensor(k, {s.b, s.keys, s.kv * s.size}),
             tensor(v, {s.b, s.keys, s.kv * s.size})};
  node.out = {tensor(y, {s.b, s.t, s.heads * s.size})};
  node.attr = {s.heads, s.kv == s.heads ? 0 : s.kv, real_bits(scale), s.causal, s.window, -1, -1};
  Threads pool(threads);
  isa::attention(node.call(), pool.context);
  return y;
}

// Chunks of queries through the states must give the bits of all at once.
void check_states(const Att& s, const Floats& q, const Floats& k, const Floats& v, double scale, const Floats* want,
                  DType dtype, bool ring = false) {
  // A ring a little larger than the longest chunk below and the window: it is gone round several times.
  const int64_t longest = static_cast<int64_t>(std::sqrt(2.0 * static_cast<double>(s.t))) + 1;
  const int64_t capacity = ring ? longest + s.window : s.t + 3, channels = s.kv * s.size, wide = s.heads * s.size;
  const int64_t bytes = dtype_bytes(dtype) * (s.b + 1) * capacity * channels;
  std::vector<uint8_t> state_k(bytes), state_v(bytes);
  const std::vector<Tensor> states = {tensor(state_k.data(), {s.b + 1, capacity, channels}, dtype),
                                      tensor(state_v.data(), {s.b + 1, capacity, channels}, dtype)};
  std::vector<int32_t> slots, position;
  for (int64_t b = 0; b < s.b; ++b) slots.push_back(static_cast<int32_t>(s.b - b)), position.push_back(0);
  Floats joined(q.size());
  int64_t size = 1, from = 0;
  const auto chunk = [&](int64_t n) {
    Floats cq, ck, cv;
    for (int64_t b = 0; b < s.b; ++b) {
      cq.insert(cq.end(), q.begin() + (b * s.t + from) * wide, q.begin() + (b * s.t + from + n) * wide);
      ck.insert(ck.end(), k.begin() + (b * s.t + from) * channels, k.begin() + (b * s.t + from + n) * channels);
      cv.insert(cv.end(), v.begin() + (b * s.t + from) * channels, v.begin() + (b * s.t + from + n) * channels);
    }
    Node node;
    Floats y(cq.size(), NAN);
    node.in = {tensor(cq, {s.b, n, wide}), tensor(ck, {s.b, n, channels}), tensor(cv, {s.b, n, channels}),
               tensor(slots.data(), {s.b}, DType::i32), tensor(position.data(), {s.b}, DType::i32)};
    node.out = {tensor(y, {s.b, n, wide})};
    node.attr = {s.heads, s.kv, real_bits(scale), s.causal, s.window, 0, 1};
    Threads pool(2, states);
    const std::vector<uint8_t> rings(2, ring);
    pool.context.rings = rings.data();
    isa::attention(node.call(), pool.context);
    for (int64_t b = 0; b < s.b; ++b)
      std::copy(y.begin() + b * n * wide, y.begin() + (b + 1) * n * wide, joined.begin() + (b * s.t + from) * wide);
    for (int32_t& p : position) p += static_cast<int32_t>(n);
    from += n;
  };
  for (; from < s.t; ++size) chunk(std::min(size, s.t - from));
  if (want)
    same(ring ? "attention ring" : "attention states", joined, *want);
  else {
    Floats rk = k, rv = v;
    for (float& e : rk) e = rounded(e, dtype);
    for (float& e : rv) e = rounded(e, dtype);
    close("attention 16-bit states", joined, expected(s, q, rk, rv, scale, 0), 1e-5);
  }
  if (ring) return;
  from = 0;
  bool refused = false;
  try {
    chunk(std::min<int64_t>(4, s.t));
  } catch (const std::runtime_error&) {
    refused = true;
  }
  if (refused != (std::min<int64_t>(4, s.t) == 4)) failed("attention capacity", "refused", refused, 0);
}

void check_attention(const Att& s) {
  Floats q = random(s.b * s.t * s.heads * s.size), k = random(s.b * s.keys * s.kv * s.size),
         v = random(s.b * s.keys * s.kv * s.size);
  const double scale = 3 / std::sqrt(double(s.size));
  const Floats y = run(s, q, k, v, scale, 1);
  close("attention", y, expected(s, q, k, v, scale, 0), 5e-6);
  same("attention threads", y, run(s, q, k, v, scale, 3));
  if (!s.causal || s.t != s.keys) return;
  check_states(s, q, k, v, scale, &y, DType::f32);
  if (s.window > 0) check_states(s, q, k, v, scale, &y, DType::f32, true);
  check_states(s, q, k, v, scale, nullptr, DType::f16);
  check_states(s, q, k, v, scale, nullptr, DType::bf16);
}

}  // namespace

int main() {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8})
    for (const Lstm& s : {Lstm{1, 1, 3, 5, 1, dtype}, Lstm{1, 9, 20, 32, 2, dtype}, Lstm{3, 17, 31, 40, 2, dtype},
                          Lstm{14, 5, 8, 16, 2, dtype}})
      check_lstm(s);
  for (int64_t size : {8, 20, 32, 64, 80})
    for (int64_t t : {1, 5, 33, 70})
      for (int64_t kv : {1, 2, 4}) {
        check_attention({2, t, t, 4, kv, size, 0, false});
        check_attention({2, t, t + 11, 4, kv, size, 0, false});
        check_attention({2, t, t, 4, kv, size, 0, true});
        check_attention({2, t, t, 4, kv, size, 7, true});
      }
  check_attention({1, 300, 300, 2, 2, 64, 0, true});
  check_attention({1, 300, 300, 2, 1, 64, 40, true});
  return report();
}
