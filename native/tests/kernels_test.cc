// The runtime and the kernels without Python: hand-written bytecode, each instruction set against the generic one, one
// thread against three. What each op means is tested in tests/ops; this file is for machines that Python does not reach
// (cross builds under an emulator).
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "../kernels/pack.h"
#include "../runtime/executor.h"

namespace {

using namespace sonant;
using Dims = std::vector<int64_t>;

int failures = 0;

int64_t bits_of(double v) {
  int64_t b;
  std::memcpy(&b, &v, sizeof b);
  return b;
}

float noise(uint32_t& state) {
  state = state * 1664525u + 1013904223u;
  return static_cast<float>(state >> 8) * (2.0f / 16777216.0f) - 1.0f;
}

struct Operand {
  Dims dims;
  DType dtype = DType::f32;
};

struct Case {
  const char* name;
  Op op;
  std::vector<Operand> in;  // filled with noise; i32 with zeros
  std::vector<Dims> out;
  std::vector<int64_t> attrs, extra;
  int packed = -1;  // the operand that is a packed weight
  PackRole role = PackRole::linear;
};

int64_t elements(const Dims& d) {
  int64_t n = 1;
  for (const int64_t v : d) n *= v;
  return n;
}

void add_tensor(std::vector<int64_t>& code, int64_t space, int64_t index, const Operand& t) {
  code.insert(code.end(), {space, index, 0, static_cast<int64_t>(t.dtype), static_cast<int64_t>(t.dims.size())});
  for (size_t i = 0; i < kMaxRank; ++i) code.push_back(i < t.dims.size() ? t.dims[i] : 0);
}

std::vector<int64_t> code_of(const Case& c) {
  const auto count = [](const auto& v) { return static_cast<int64_t>(v.size()); };
  const int64_t words = 6 + 11 * (count(c.in) + count(c.out)) + count(c.attrs) + count(c.extra);
  std::vector<int64_t> code = {
      1, 2, 1, words, static_cast<int64_t>(c.op), count(c.in), count(c.out), count(c.attrs), count(c.extra)};
  for (size_t i = 0; i < c.in.size(); ++i) add_tensor(code, 3, static_cast<int64_t>(i), c.in[i]);
  for (size_t i = 0; i < c.out.size(); ++i) add_tensor(code, 4, static_cast<int64_t>(i), {c.out[i], DType::f32});
  code.insert(code.end(), c.attrs.begin(), c.attrs.end());
  code.insert(code.end(), c.extra.begin(), c.extra.end());
  return code;
}

std::vector<std::vector<float>> inputs_of(const Case& c) {
  std::vector<std::vector<float>> found;
  uint32_t state = 1;
  for (size_t i = 0; i < c.in.size(); ++i) {
    std::vector<float> v(static_cast<size_t>(elements(c.in[i].dims)));
    if (c.in[i].dtype != DType::i32) std::generate(v.begin(), v.end(), [&] { return noise(state); });
    if (static_cast<int>(i) == c.packed) {
      const Dims& d = c.in[i].dims;
      std::vector<float> p(packed_bytes(c.role, d.data(), static_cast<int>(d.size()), 1, c.in[i].dtype) / 4);
      pack(c.role, v.data(), d.data(), static_cast<int>(d.size()), 1, c.in[i].dtype, p.data());
      v = p;
    }
    found.push_back(v);
  }
  return found;
}

std::vector<std::vector<float>> play(const Case& c, const std::string& isa, Pool& pool) {
  const std::vector<int64_t> code = code_of(c);
  std::vector<std::vector<float>> in = inputs_of(c), out;
  std::vector<int64_t> from, to;
  for (const Dims& d : c.out) out.emplace_back(static_cast<size_t>(elements(d)));
  for (auto& v : in) from.push_back(reinterpret_cast<int64_t>(v.data()));
  for (auto& v : out) to.push_back(reinterpret_cast<int64_t>(v.data()));
  Sizes sizes;
  sizes.n_inputs = static_cast<int64_t>(from.size());
  sizes.n_outputs = static_cast<int64_t>(to.size());
  Run r;
  r.inputs = from.data(), r.outputs = to.data();
  BoundPlan(code, {}, sizes, kernels_of(isa)).run(r, pool);
  return out;
}

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double worst = 0, scale = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::isfinite(a[i]) ? std::fabs(static_cast<double>(a[i]) - b[i]) : 1e9);
    scale = std::max(scale, std::fabs(static_cast<double>(b[i])));
  }
  return scale > 0 ? worst / scale : worst;
}

void check(const Case& c) {
  Pool one(1), three(3);
  const auto truth = play(c, "generic", one);
  for (const std::string& isa : available_isas()) {
    const auto found = play(c, isa, one), again = play(c, isa, three);
    for (size_t i = 0; i < truth.size(); ++i) {
      const double apart = difference(found[i], truth[i]);
      const bool same = std::memcmp(found[i].data(), again[i].data(), found[i].size() * 4) == 0;
      if (apart < 1e-5 && same) continue;
      ++failures;
      std::printf("%s, %s: %.2e from generic%s\n", c.name, isa.c_str(), apart, same ? "" : ", other bits with threads");
    }
  }
}

int64_t op(Op o) { return static_cast<int64_t>(o); }

std::vector<Case> cases() {
  const int64_t eps = bits_of(1e-5);
  return {
      // "affine 0 1 2; leaky_relu 3 f0.2"
      {"pointwise",
       Op::pointwise,
       {{{2, 3000, 33}}, {{2, 1, 33}}, {{33}}},
       {{2, 3000, 33}},
       {0},
       {2, op(Op::affine), 3, 0, 0, 0, 1, 0, 2, op(Op::leaky_relu), 2, 0, 3, 1, bits_of(0.2)}},
      {"tanh", Op::pointwise, {{{70001}}}, {{70001}}, {0}, {1, op(Op::tanh), 1, 0, 0}},
      {"instance_affine",
       Op::instance_affine,
       {{{2, 3000, 37}}, {{2, 1, 37}}, {{37}}},
       {{2, 1, 37}, {2, 1, 37}},
       {eps},
       {}},
      {"instance_affine of sums",
       Op::instance_affine,
       {{{2, 3000, 37}}, {{2, 1, 37}}, {{37}}, {{2, 24, 4, 37}}},
       {{2, 1, 37}, {2, 1, 37}},
       {eps},
       {}},
      {"layer_norm", Op::layer_norm, {{{400, 129}}, {{129}}, {{129}}}, {{400, 129}}, {eps}, {}},
      {"transpose", Op::transpose, {{{2, 300, 65}}}, {{2, 65, 300}}, {0}, {3, 0, 2, 1}},
      {"stft", Op::stft, {{{1, 9000}}}, {{1, 1801, 22}}, {20, 5}, {}},
      {"istft", Op::istft, {{{1, 9001, 22}}}, {{1, 45000}}, {20, 5}, {}},
      {"istft long", Op::istft, {{{1, 40, 402}}}, {{1, 3900}}, {400, 100}, {}},
      {"randn", Op::randn, {{{2, 2}, DType::i32}, {{2}, DType::i32}}, {{2, 9000, 9}}, {9000, 9, 3}, {}},
      {"cumsum_turns", Op::cumsum_turns, {{{1, 300, 9}}}, {{1, 90000, 9}}, {300}, {}},
      {"linear",
       Op::linear,
       {{{1, 130, 65}}, {{70, 65}}, {{70}}},
       {{1, 130, 70}},
       {-1, -1, 0, 0},
       {},
       1,
       PackRole::linear},
      {"linear int8",
       Op::linear,
       {{{1, 130, 65}}, {{70, 65}, DType::q8}, {{70}}},
       {{1, 130, 70}},
       {-1, -1, 0, static_cast<int64_t>(Precision::int8)},
       {},
       1,
       PackRole::linear},
      {"linear int8_row",
       Op::linear,
       {{{1, 130, 65}}, {{70, 65}, DType::i8}, {{70}}},
       {{1, 130, 70}},
       {-1, -1, 0, static_cast<int64_t>(Precision::int8_row)},
       {},
       1,
       PackRole::linear},
      {"conv1d int8_row",
       Op::conv1d,
       {{{1, 200, 33}}, {{40, 3, 33}, DType::i8}, {{40}}},
       {{1, 200, 40}},
       {1, 1, 1, 1, 1, -1, -1, -1, 0, static_cast<int64_t>(Precision::int8_row)},
       {},
       1,
       PackRole::conv},
      {"conv1d",
       Op::conv1d,
       {{{1, 200, 33}}, {{40, 3, 33}}, {{40}}},
       {{1, 200, 40}},
       {1, 1, 1, 1, 1, -1, -1, -1, 0, 0},
       {},
       1,
       PackRole::conv},
      {"conv1d with sums",
       Op::conv1d,
       {{{2, 900, 20}}, {{40, 3, 20}}, {{40}}},
       {{2, 900, 40}, {2, 8, 4, 40}},
       {1, 1, 1, 1, 1, -1, -1, -1, 0, 0},
       {},
       1,
       PackRole::conv},
      {"conv_transpose1d with sums",
       Op::conv_transpose1d,
       {{{1, 130, 33}}, {{40, 7, 33}}, {{40}}},
       {{1, 390, 40}, {1, 4, 4, 40}},
       {3, 2, 2, 1, -1, -1, -1, 0, 0},
       {},
       1,
       PackRole::conv},
      {"attention",
       Op::attention,
       {{{1, 90, 64}}, {{1, 90, 64}}, {{1, 90, 64}}},
       {{1, 90, 64}},
       {4, 0, bits_of(0.25), 0, 0, -1, -1},
       {}},
  };
}

}  // namespace

int main() {
  for (const Case& c : cases()) check(c);
  std::string isas;
  for (const std::string& isa : available_isas()) isas += " " + isa;
  std::printf("%zu kernels on%s: %d failures\n", cases().size(), isas.c_str(), failures);
  return failures == 0 ? 0 : 1;
}
