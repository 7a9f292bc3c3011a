// What dense_test and dense_bench share: calls built by hand, random tensors, a pool of a few threads.
#pragma once

#include <initializer_list>
#include <memory>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "../kernels/pack.h"
#include "../runtime/call.h"
#include "../runtime/opset.gen.h"

namespace sonant::SONANT_ISA {
void linear(const Call&, Context&);
void conv1d(const Call&, Context&);
void conv_transpose1d(const Call&, Context&);
void lstm(const Call&, Context&);
void attention(const Call&, Context&);
}  // namespace sonant::SONANT_ISA

namespace harness {

using namespace sonant;
using Floats = std::vector<float>;
using Dims = std::vector<int64_t>;

inline std::mt19937& generator() {
  static std::mt19937 g(7);
  return g;
}

inline Floats random(int64_t n, float scale = 1) {
  std::uniform_real_distribution<float> d(-scale, scale);
  Floats v(static_cast<size_t>(n));
  for (float& x : v) x = d(generator());
  return v;
}

inline int64_t product(const Dims& d) {
  int64_t n = 1;
  for (int64_t x : d) n *= x;
  return n;
}

inline Tensor tensor(void* data, const Dims& dims, DType dtype = DType::f32) {
  Tensor t;
  t.data = data;
  t.dtype = dtype;
  t.rank = static_cast<int32_t>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) t.dim[i] = dims[i];
  return t;
}

inline Tensor tensor(Floats& v, const Dims& dims) { return tensor(v.data(), dims); }

// A step list: registers as they are, literals through lit().
struct Arg {
  int64_t kind, value;
  Arg(int reg) : kind(0), value(reg) {}
  Arg(double literal) : kind(1) { std::memcpy(&value, &literal, 8); }
};
struct StepText {
  Op op;
  std::vector<Arg> args;
};
using Steps = std::vector<StepText>;

// A call that owns its lists.
struct Node {
  std::vector<Tensor> in, out;
  std::vector<int64_t> attr, extra;
  std::vector<std::vector<uint8_t>> packed;

  int64_t steps(const Steps& list) {
    if (list.empty()) return -1;
    const auto at = static_cast<int64_t>(extra.size());
    extra.push_back(static_cast<int64_t>(list.size()));
    for (const StepText& s : list) {
      extra.push_back(static_cast<int64_t>(s.op));
      extra.push_back(static_cast<int64_t>(s.args.size()));
      for (const Arg& a : s.args) extra.insert(extra.end(), {a.kind, a.value});
    }
    return at;
  }

  Tensor weight(PackRole role, const Floats& w, const Dims& dims, int64_t groups, DType dtype) {
    const int rank = static_cast<int>(dims.size());
    packed.emplace_back(packed_bytes(role, dims.data(), rank, groups, dtype) + 64);
    auto* aligned =
        reinterpret_cast<uint8_t*>((reinterpret_cast<uintptr_t>(packed.back().data()) + 63) & ~uintptr_t{63});
    pack(role, w.data(), dims.data(), rank, groups, dtype, aligned);
    return tensor(aligned, dims, dtype);
  }

  Call call() const {
    Call c;
    c.in = in.data(), c.out = out.data(), c.attr = attr.data(), c.extra = extra.data();
    c.n_in = static_cast<int32_t>(in.size()), c.n_out = static_cast<int32_t>(out.size());
    c.n_attr = static_cast<int32_t>(attr.size()), c.n_extra = static_cast<int32_t>(extra.size());
    return c;
  }
};

inline int64_t real_bits(double v) {
  int64_t b;
  std::memcpy(&b, &v, 8);
  return b;
}

// Splits the range in as many parts as threads, each on a fresh thread: slow to start, but free of any pool's faults.
inline void run_parallel(void* pool, int64_t n, int64_t grain, const Range& f) {
  const int64_t threads = *static_cast<int*>(pool);
  if (threads <= 1) {
    if (n > 0) f(0, n);
    return;
  }
  std::vector<std::thread> workers;
  const int64_t pieces = ceil_div(n, grain);
  for (int64_t t = 0; t < threads; ++t) {
    workers.emplace_back([=, &f] {
      for (int64_t p = t; p < pieces; p += threads) f(p * grain, (p + 1) * grain < n ? (p + 1) * grain : n);
    });
  }
  for (std::thread& w : workers) w.join();
}

struct Threads {
  int count;
  Context context;
  explicit Threads(int n, const std::vector<Tensor>& states = {}) : count(n) {
    context.parallel = run_parallel;
    context.pool = &count;
    context.n_threads = n;
    context.states = states.data();
    context.n_states = static_cast<int32_t>(states.size());
    static const std::vector<uint8_t> none(64, 0);
    context.rings = none.data();
  }
};

}  // namespace harness
