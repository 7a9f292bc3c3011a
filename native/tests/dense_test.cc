// linear, conv1d and conv_transpose1d against plain loops in double, and bit for bit against themselves: threads, rows
// alone or among others, chunks with state. For the instruction set it is compiled for.
#include "../kernels/dense_round.h"
#include "../kernels/dense_sums.h"
#include "../kernels/gemm.h"
#include "dense_check.h"

using namespace harness;
namespace isa = sonant::SONANT_ISA;

#ifdef SONANT_EMULATE_MATRIX
void isa::narrow_bf16(const float* x, int64_t channels, uint16_t* row) {
  for (int64_t c = 0; c < channels; ++c) row[c] = to_bf16(x[c]);
  if (channels % 2) row[channels] = 0;
}
#endif

namespace {

struct Conv {
  int64_t b = 1, t = 1, c = 1, n = 1, k = 1, stride = 1, dilation = 1, left = 0, right = 0, groups = 1;
  bool transposed = false, bias = true;
  Precision precision = Precision::f32;
  DType dtype = DType::f32;
  Steps pro, epi;
  std::vector<Dims> pro_dims, epi_dims;
  int64_t context = -1;  // rows of state, or none
};

int64_t out_rows(const Conv& s) {
  if (s.context >= 0)
    return s.transposed ? s.t * s.stride : (s.context + s.t - (s.k - 1) * s.dilation - 1) / s.stride + 1;
  if (s.transposed) return (s.t - 1) * s.stride + s.k - s.left - s.right;
  return (s.t + s.left + s.right - (s.k - 1) * s.dilation - 1) / s.stride + 1;
}

// Everything random of one case.
struct Data {
  Floats x, w, bias, state;
  std::vector<Floats> pro, epi;
  explicit Data(const Conv& s)
      : x(random(s.b * s.t * s.c)),
        w(random(s.n * s.k * s.c / s.groups)),
        bias(random(s.n)),
        state(random((s.b + 1) * (s.context > 0 ? s.context : 0) * s.c)) {
    round_weights(w, s.c / s.groups, s.dtype);
    for (const Dims& d : s.pro_dims) pro.push_back(random(product(d)));
    for (const Dims& d : s.epi_dims) epi.push_back(random(product(d)));
    round_rows(state, s.c / s.groups, s.precision);
    for (Floats& p : pro)
      for (float& v : p) v += v < 0 ? -0.5f : 0.5f;  // alpha away from zero
  }
};

std::vector<double> expected(const Conv& s, const Data& d, std::vector<int32_t>& slots) {
  std::vector<double> x = reference_steps(s.pro, {d.x.begin(), d.x.end()}, {s.b, s.t, s.c}, d.pro, s.pro_dims);
  Floats narrow(x.begin(), x.end());
  round_rows(narrow, s.c / s.groups, s.precision);
  if (s.precision != Precision::f32) x.assign(narrow.begin(), narrow.end());
  const int64_t rows = out_rows(s), cg = s.c / s.groups, ng = s.n / s.groups, kept = s.context > 0 ? s.context : 0;
  std::vector<double> y(static_cast<size_t>(s.b * rows * s.n));
  const auto input = [&](int64_t b, int64_t r, int64_t c) -> double {
    if (r >= 0 && r < s.t) return x[(b * s.t + r) * s.c + c];
    return r < 0 && r >= -kept ? d.state[(slots[b] * kept + kept + r) * s.c + c] : 0.0;
  };
  for (int64_t b = 0; b < s.b; ++b)
    for (int64_t o = 0; o < rows; ++o)
      for (int64_t n = 0; n < s.n; ++n) {
        double sum = s.bias ? d.bias[n] : 0;
        for (int64_t k = 0; k < s.k; ++k) {
          int64_t r = o * s.stride + k * s.dilation - (s.context >= 0 ? kept : s.left);
          if (s.transposed) {
            const int64_t u = o + (s.context >= 0 ? 0 : s.left) - k;
            if (u % s.stride != 0) continue;
            r = u / s.stride;
          }
          for (int64_t c = 0; c < cg; ++c) sum += input(b, r, n / ng * cg + c) * d.w[(n * s.k + k) * cg + c];
        }
        y[(b * rows + o) * s.n + n] = sum;
      }
  return reference_steps(s.epi, y, {s.b, rows, s.n}, d.epi, s.epi_dims);
}

Floats run(const Conv& s, Data& d, int threads, Floats* state, std::vector<int32_t>& slots, Floats* sums = nullptr) {
  Node node;
  const int64_t rows = out_rows(s);
  Floats y(static_cast<size_t>(s.b * rows * s.n), NAN);
  node.in = {tensor(d.x, {s.b, s.t, s.c}),
             node.weight(PackRole::conv, d.w, {s.n, s.k, s.c / s.groups}, s.groups, s.dtype)};
  node.in.push_back(s.bias ? tensor(d.bias, {s.n}) : Tensor());
  node.in.push_back(state ? tensor(slots.data(), {s.b}, DType::i32) : Tensor());
  for (size_t i = 0; i < d.pro.size(); ++i) node.in.push_back(tensor(d.pro[i], s.pro_dims[i]));
  for (size_t i = 0; i < d.epi.size(); ++i) node.in.push_back(tensor(d.epi[i], s.epi_dims[i]));
  node.out = {tensor(y, {s.b, rows, s.n})};
  if (sums) {
    const Dims dims = {s.b, isa::sums_blocks(rows), isa::kSumsRows, s.n};
    sums->assign(static_cast<size_t>(product(dims)), NAN);
    node.out.push_back(tensor(*sums, dims));
  }
  const int64_t which = state ? 0 : -1;
  if (s.transposed)
    node.attr = {s.stride, s.left, s.right, s.groups, which};
  else
    node.attr = {s.stride, s.dilation, s.left, s.right, s.groups, which};
  const int64_t pro = node.steps(s.pro), epi = node.steps(s.epi);
  node.attr.insert(node.attr.end(), {pro, epi, static_cast<int64_t>(d.pro.size()), static_cast<int64_t>(s.precision)});
  std::vector<Tensor> states;
  if (state) states.push_back(tensor(*state, {s.b + 1, s.context, s.c}));
  Threads pool(threads, states);
  (s.transposed ? isa::conv_transpose1d : isa::conv1d)(node.call(), pool.context);
  return y;
}

// A case against the reference, with 1 and 3 threads; returns the result.
Floats check(const char* name, const Conv& s) {
  Data d(s);
  std::vector<int32_t> slots;
  for (int64_t b = 0; b < s.b; ++b) slots.push_back(static_cast<int32_t>(s.b - b));
  const auto want = expected(s, d, slots);
  Floats state = d.state, again = d.state;
  Floats y = run(s, d, 1, s.context >= 0 ? &state : nullptr, slots);
  close(name, y, want, s.precision == Precision::bf16 ? 4e-5 : 5e-6);
  same(name, y, run(s, d, 3, s.context >= 0 ? &again : nullptr, slots));
  same("state", state, again);
  return y;
}

std::vector<Precision> precisions(DType dtype) {
  if (dtype == DType::i8) return {Precision::int8_row};
  return {Precision::f32, dtype == DType::q8 ? Precision::int8 : Precision::bf16};
}

void shapes() {
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8, DType::i8})
    for (Precision precision : precisions(dtype)) {
      for (int64_t n : {1, 22, 33, 64})
        for (int64_t c : {1, 9, 17, 64})
          for (int64_t t : {1, 2, 5, 13, 40}) {
            Conv s;
            s.t = t, s.c = c, s.n = n, s.dtype = dtype, s.precision = precision;
            check("k1", s);
            s.b = 2, s.k = 3, s.left = 2, s.right = 2, s.dilation = 2;
            check("k3 d2", s);
            s.k = 7, s.left = s.right = 5, s.dilation = 1, s.stride = 2;
            check("k7 s2", s);
            s.k = 12, s.left = 8, s.right = 3, s.stride = 6;
            check("k12 s6", s);
            s.transposed = true, s.left = s.right = 3;
            if (out_rows(s) > 0) check("transposed k12 s6", s);
            s.k = 3, s.stride = 2, s.left = 1, s.right = 0;
            check("transposed k3 s2", s);
            s.k = 2, s.stride = 3, s.left = 0;
            check("transposed k2 s3", s);
          }
    }
}

void groups() {
  for (DType dtype : {DType::f32, DType::bf16, DType::q8, DType::i8})
    for (int64_t t : {1, 7, 50})
      for (int64_t c : {3, 32, 70}) {
        Conv s;
        s.b = 2, s.t = t, s.c = s.n = s.groups = c, s.k = 3, s.left = s.right = 1, s.dtype = dtype;
        if (s.dtype == DType::f32) {
          check("depthwise", s);
          s.transposed = true, s.stride = 2, s.right = 0;
          check("depthwise transposed", s);
        }
        Conv g;
        g.t = t, g.c = 6 * 5, g.n = 6 * 7, g.groups = 6, g.k = 3, g.left = g.right = 1, g.dtype = dtype,
        g.precision = precisions(dtype).back();
        check("groups", g);
        g.transposed = true, g.stride = 2;
        check("groups transposed", g);
      }
}

void fused() {
  const auto lists = [](Conv s) {
    const Dims once = {s.b, 1, s.c}, fixed = {s.c}, full = {s.b, s.t, s.c};
    const std::vector<std::pair<Steps, std::vector<Dims>>> all = {
        {{{Op::affine, {0, 1, 2}}}, {once, once}},
        {{{Op::affine, {0, 1, 2}}, {Op::leaky_relu, {3, 0.1}}}, {once, once}},
        {{{Op::affine, {0, 1, 2}}, {Op::snake, {4, 3}}}, {once, once, fixed}},
        {{{Op::snake, {0, 1}}}, {{1, 1, s.c}}},
        {{{Op::leaky_relu, {0, 0.2}}}, {}},
        {{{Op::add, {0, 1}}, {Op::tanh, {2}}}, {full}},
        {{{Op::mul, {0, 0}}, {Op::sub, {2, 1}}, {Op::where, {0, 3, 2}}}, {{1}}},
    };
    for (const auto& [steps, dims] : all) {
      s.pro = steps, s.pro_dims = dims;
      check("prologue", s);
    }
    s.pro.clear(), s.pro_dims.clear();
    const int64_t rows = out_rows(s);
    const std::vector<std::pair<Steps, std::vector<Dims>>> ends = {
        {{{Op::add, {0, 1}}}, {{s.b, rows, s.n}}},
        {{{Op::add, {0, 1}}, {Op::mul, {2, 0.25}}}, {{s.b, rows, s.n}}},
        {{{Op::gelu_tanh, {0}}}, {}},
        {{{Op::silu, {0}}, {Op::mul, {2, 1}}}, {{s.b, 1, s.n}}},
        {{{Op::sigmoid, {0}}, {Op::mul, {0, 2}}, {Op::add, {3, 1}}}, {{rows, 1}}},
    };
    for (const auto& [steps, dims] : ends) {
      s.epi = steps, s.epi_dims = dims;
      check("epilogue", s);
    }
  };
  Conv s;
  s.b = 2, s.t = 37, s.c = 35, s.n = 41, s.k = 3, s.left = s.right = 3, s.dilation = 3;
  lists(s);
  s.c = 128, s.t = 700, s.n = 32, s.b = 1, s.k = 5;  // more than one tile
  lists(s);
  s.transposed = true, s.t = 23, s.c = 40, s.k = 20, s.stride = 10, s.left = s.right = 5, s.dilation = 1;
  lists(s);
  s = Conv();
  s.t = 60, s.c = 601, s.n = 70, s.k = 3, s.left = s.right = 1;  // weights in several passes
  lists(s);
}

// Convolutions long enough to be made by fours of rows, with a last four and a last block of every kind.
void winograd() {
  for (int64_t k : {3, 4, 7, 11, 13})
    for (int64_t dilation : {1, 2, 5})
      for (int64_t n : {22, 33, 70})
        for (int64_t t : {256, 257, 258, 259, 263, 701}) {
          Conv s;
          s.b = 2, s.t = t, s.c = t == 263 ? 128 : 35, s.n = n, s.k = k, s.dilation = dilation;
          s.left = (k - 1) * dilation, s.right = t == 701 ? 3 : 0, s.pro = {{Op::leaky_relu, {0, 0.1}}};
          if (t == 701) s.left = 1, s.t += (k - 1) * dilation;
          s.epi = {{Op::add, {0, 1}}}, s.epi_dims = {{s.b, out_rows(s), n}};
          check("winograd", s);
        }
}

// Rows [from, from + t) of a case as a case of its own.
Data part(const Conv& s, const Data& d, int64_t from, int64_t t) {
  Data p = d;
  p.x.clear();
  for (int64_t b = 0; b < s.b; ++b) {
    const auto begin = d.x.begin() + (b * s.t + from) * s.c;
    p.x.insert(p.x.end(), begin, begin + t * s.c);
  }
  return p;
}

void chunks(Conv s, const std::vector<int64_t>& sizes) {
  check("state", s);
  Data d(s);
  std::vector<int32_t> slots;
  for (int64_t b = 0; b < s.b; ++b) slots.push_back(static_cast<int32_t>(b));
  Floats state = d.state, whole_state = d.state;
  const Floats whole = run(s, d, 2, &whole_state, slots);
  std::vector<Floats> rows(static_cast<size_t>(s.b));
  int64_t from = 0;
  for (int64_t size : sizes) {
    Conv c = s;
    c.t = size;
    Data p = part(s, d, from, size);
    const Floats y = run(c, p, 1, &state, slots);
    const int64_t each = out_rows(c) * s.n;
    for (int64_t b = 0; b < s.b; ++b) rows[b].insert(rows[b].end(), y.begin() + b * each, y.begin() + (b + 1) * each);
    from += size;
  }
  Floats joined;
  for (const Floats& r : rows) joined.insert(joined.end(), r.begin(), r.end());
  same("chunked", joined, whole);
  same("chunked state", state, whole_state);
}

void states() {
  for (DType dtype : {DType::f32, DType::bf16, DType::q8, DType::i8})
    for (Precision precision : precisions(dtype)) {
      Conv s;
      s.b = 2, s.t = 34, s.c = 19, s.n = 37, s.k = 3, s.dilation = 4, s.context = 8, s.dtype = dtype;
      s.precision = precision;
      s.pro = {{Op::leaky_relu, {0, 0.1}}};
      chunks(s, {1, 2, 20, 1, 10});
      s.dilation = 1, s.k = 4, s.stride = 2, s.context = 2;
      chunks(s, {2, 2, 20, 4, 6});
      s.transposed = true, s.k = 6, s.stride = 3, s.context = 1;
      chunks(s, {1, 2, 20, 1, 10});
      s.k = 7, s.context = 2;
      chunks(s, {1, 2, 20, 1, 10});
      s.n = s.c = s.groups = 19, s.dtype = DType::f32;
      chunks(s, {1, 2, 20, 1, 10});
      s.transposed = false, s.k = 3, s.stride = 1, s.context = 2;
      chunks(s, {1, 2, 20, 1, 10});
    }
}

Floats run_linear(Floats& x, Floats& w, Floats& bias, int64_t t, int64_t n, int64_t c, DType dtype, int threads,
                  Precision precision = Precision::f32) {
  Node node;
  Floats y(static_cast<size_t>(t * n), NAN);
  node.in = {tensor(x, {1, t, c}), node.weight(PackRole::linear, w, {n, c}, 1, dtype), tensor(bias, {n})};
  node.out = {tensor(y, {1, t, n})};
  node.attr = {-1, -1, 0, static_cast<int64_t>(precision)};
  Threads pool(threads);
  isa::linear(node.call(), pool.context);
  return y;
}

// A row's bits must not depend on the rows beside it.
void rows_alone(DType dtype, Precision precision) {
  for (int64_t c : {33, 512, 1090, 2501}) {
    const int64_t t = 130, n = 70;
    Floats x = random(t * c), w = random(n * c), bias = random(n);
    round_weights(w, c, dtype);
    const Floats all = run_linear(x, w, bias, t, n, c, dtype, 2, precision);
    Floats read = x;
    round_rows(read, c, precision);
    std::vector<double> want(all.size());
    for (int64_t i = 0; i < t * n; ++i) {
      want[i] = bias[i % n];
      for (int64_t k = 0; k < c; ++k) want[i] += static_cast<double>(read[i / n * c + k]) * w[i % n * c + k];
    }
    close("linear", all, want, precision == Precision::bf16 ? 4e-5 : 5e-6);
    for (int64_t from = 0, size = 1; from + size <= t; from += size, ++size) {
      Floats some(x.begin() + from * c, x.begin() + (from + size) * c);
      const Floats y = run_linear(some, w, bias, size, n, c, dtype, 1, precision);
      same("rows alone", y, Floats(all.begin() + from * n, all.begin() + (from + size) * n));
    }
  }
}

// Every way of summing products of bytes gives the same bits.
void ways_of_bytes() {
  if (!isa::has_fast_dot()) return;
  const int64_t channels = 77, outputs = 64, blocks = 3;
  Floats w = random(outputs * channels), x = random(isa::kMaxRows * channels);
  Node node;
  const Tensor packed = node.weight(PackRole::linear, w, {outputs, channels}, 1, DType::q8);
  const isa::Int8Row form(Precision::int8, 1, channels);
  std::vector<char> rows(static_cast<size_t>(isa::kMaxRows * form.bytes()));
  for (int i = 0; i < isa::kMaxRows; ++i)
    isa::to_integers(form, x.data() + i * channels, false, rows.data() + i * form.bytes());
  isa::Int8Product p;
  p.input = rows.data(), p.scales = form.scales(), p.sums = form.sums(), p.step = form.bytes();
  p.weight = static_cast<const char*>(packed.data), p.panel_step = blocks * kQ8Bytes, p.blocks = blocks;
  for (int panels = 1; panels <= isa::kMaxPanels; ++panels)
    for (int n = 1; n <= isa::rows_at_once(panels); ++n) {
      Floats fast(isa::kMaxRows * isa::kTile, 0.0f), plain = fast;
      isa::multiply_int8(p, n, panels, true, fast.data());
      isa::multiply_int8(p, n, panels, false, plain.data());
      same("bytes", fast, plain);
    }
}

// The residual may be the output itself.
void in_place() {
  Conv s;
  s.t = 300, s.c = 40, s.n = 50, s.k = 3, s.left = s.right = 1, s.epi = {{Op::add, {0, 1}}},
  s.epi_dims = {{1, 300, 50}};
  Data d(s);
  std::vector<int32_t> slots = {0};
  const Floats apart = run(s, d, 1, nullptr, slots);
  Node node;
  Floats y = d.epi[0];
  node.in = {tensor(d.x, {1, s.t, s.c}), node.weight(PackRole::conv, d.w, {s.n, 3, s.c}, 1, s.dtype),
             tensor(d.bias, {s.n}), Tensor(), tensor(y, s.epi_dims[0])};
  node.out = {tensor(y, s.epi_dims[0])};
  node.attr = {1, 1, 1, 1, 1, -1, -1, node.steps(s.epi), 0, 0};
  Threads pool(2);
  isa::conv1d(node.call(), pool.context);
  same("in place", y, apart);
}

// What a convolution leaves for instance_affine: the sums of whole blocks of its result, whatever its tiles are.
void check_sums(const Conv& s) {
  Data d(s);
  std::vector<int32_t> slots;
  const int64_t rows = out_rows(s), blocks = isa::sums_blocks(rows);
  Floats found, want(static_cast<size_t>(s.b * blocks * isa::kSumsRows * s.n), 0.0f);
  const Floats y = run(s, d, 1, nullptr, slots, &found);
  for (int64_t i = 0; i < s.b * blocks; ++i) {
    const int64_t first = i % blocks * isa::kSumsBlock, n = std::min(isa::kSumsBlock, rows - first);
    isa::sum_block(y.data() + (i / blocks * rows + first) * s.n, s.n, n, s.n, want.data() + i * isa::kSumsRows * s.n,
                   s.n);
  }
  same("sums", found, want);
  for (int threads : {2, 3, 7}) {
    same("with sums", run(s, d, threads, nullptr, slots, &found), y);
    same("sums of threads", found, want);
  }
  same("without sums", run(s, d, 2, nullptr, slots), y);
}

void sums() {
  Conv s;
  for (int64_t t : {1, 127, 128, 129, 700, 2600})
    for (int64_t n : {1, 3, 37, 64, 130}) {
      s.b = 2, s.t = t, s.c = 24, s.n = n, s.k = 3, s.left = s.right = 1;
      check_sums(s);
    }
  s.b = 1, s.t = 1500, s.n = 70, s.k = 7, s.dilation = 3, s.left = s.right = 9;
  check_sums(s);
  s.dilation = 1, s.left = s.right = 3, s.stride = 3;
  check_sums(s);
  s.transposed = true, s.k = 20, s.stride = 10, s.left = s.right = 5, s.t = 150;
  check_sums(s);
  s.k = 2, s.stride = 3, s.left = s.right = 0;  // a phase without a tap
  check_sums(s);
  s.n = s.c = s.groups = 45, s.k = 4, s.stride = 2, s.left = 1;
  check_sums(s);
  s.transposed = false, s.stride = 1, s.t = 900, s.groups = 3;
  check_sums(s);
  for (DType dtype : {DType::bf16, DType::q8}) {
    s.dtype = dtype, s.precision = dtype == DType::q8 ? Precision::int8 : Precision::bf16;
    check_sums(s);
  }
}

}  // namespace

int main() {
  shapes();
  groups();
  fused();
  winograd();
  states();
  for (DType dtype : {DType::f32, DType::f16, DType::bf16, DType::q8}) rows_alone(dtype, Precision::f32);
  rows_alone(DType::q8, Precision::int8);
  rows_alone(DType::bf16, Precision::bf16);
  rows_alone(DType::i8, Precision::int8_row);
  ways_of_bytes();
  in_place();
  sums();
  return report();
}
