// LSTM: one product for the gates of the whole sequence, then a step at a time. A direction, or a group of batch rows
// of a direction, stays on one thread from the first step to the last.
#include "dense.h"

namespace sonant::SONANT_ISA {
namespace {

struct Lstm {
  const float* gates;  // [D, B, T, 4H] without the recurrent part
  const Tensor* w_hh;
  float* out;
  int64_t batch, length, directions, hidden;
};

// gates[d] = x w_ih[d]^T + bias[d]
void input_gates(const Call& call, const Context& context, const Lstm& s, float* gates) {
  const Tensor &x = call.in[0], &w = call.in[1];
  const int64_t channels = w.dim[2], wide = 4 * s.hidden, rows = s.batch * s.length;
  const int64_t bytes = ceil_div(wide, kPanel) * panel_tap_elements(channels, w.dtype) * dtype_bytes(w.dtype);
  for (int64_t d = 0; d < s.directions; ++d) {
    Dense g;
    g.x = x.f32();
    g.channels = channels;
    g.in_rows = g.out_rows = rows;
    g.outputs = wide;
    g.weight.data = static_cast<char*>(w.data) + d * bytes;
    g.weight.dtype = w.dtype;
    g.weight.rank = 2;
    g.bias = call.in[3].f32() + d * wide;
    g.out = gates + d * rows * wide;
    run_dense(g, context);
  }
}

// h and c of one row from its gates i f g o.
void cell(const float* z, int64_t hidden, float* c, float* h) {
  for (int64_t j = 0; j < hidden; j += kWidth) {
    const int64_t n = hidden - j < kWidth ? hidden - j : int64_t{kWidth};
    const Vec i = load_n(z + j, n), f = load_n(z + hidden + j, n);
    const Vec g = load_n(z + 2 * hidden + j, n), o = load_n(z + 3 * hidden + j, n);
    const Vec next = fma(sigmoid(f), load_n(c + j, n), sigmoid(i) * tanh(g));
    store_n(c + j, next, n);
    store_n(h + j, sigmoid(o) * tanh(next), n);
  }
}

void add_to(float* z, const float* tile, int64_t width) {
  for (int64_t j = 0; j < width; j += kWidth) {
    const int64_t n = width - j < kWidth ? width - j : int64_t{kWidth};
    store_n(z + j, load_n(z + j, n) + load(tile + j), n);
  }
}

// z[rows, 4H] += h w_hh^T
void recur(const Lstm& s, const char* w, const float* h, int rows, float* z) {
  const int64_t wide = 4 * s.hidden,
                panel_bytes = panel_tap_elements(s.hidden, s.w_hh->dtype) * dtype_bytes(s.w_hh->dtype);
  Product p;
  p.input = h;
  p.step = p.channels = s.hidden;
  p.panel_step = panel_tap_elements(s.hidden, s.w_hh->dtype);
  alignas(64) float tile[kMaxRows * kTile];
  for (int64_t n = 0; n < wide; n += kTile) {
    p.weight = w + n / kPanel * panel_bytes;
    const int64_t width = wide - n < kTile ? wide - n : kTile;
    const int panels = static_cast<int>(ceil_div(width, kPanel));
    for (int r0 = 0; r0 < rows; r0 += rows_at_once(panels)) {
      const int some = rows - r0 < rows_at_once(panels) ? rows - r0 : rows_at_once(panels);
      p.input = h + r0 * s.hidden;
      multiply(p, some, panels, s.w_hh->dtype, tile);
      for (int r = 0; r < some; ++r) add_to(z + (r0 + r) * wide + n, tile + r * kTile, width);
    }
  }
}

// Batch rows [b0, b0 + rows) of direction d, all steps.
void sequence(const Lstm& s, int64_t d, int64_t b0, int rows) {
  const int64_t wide = 4 * s.hidden, hidden = s.hidden;
  const int64_t bytes = ceil_div(wide, kPanel) * panel_tap_elements(hidden, s.w_hh->dtype) * dtype_bytes(s.w_hh->dtype);
  const char* w = static_cast<const char*>(s.w_hh->data) + d * bytes;
  auto* h = static_cast<float*>(scratch(0, static_cast<size_t>(rows * (2 * hidden + wide)) * 4));
  float *c = h + rows * hidden, *z = c + rows * hidden;
  std::memset(h, 0, static_cast<size_t>(rows * 2 * hidden) * 4);
  for (int64_t step = 0; step < s.length; ++step) {
    const int64_t t = d == 0 ? step : s.length - 1 - step;
    for (int r = 0; r < rows; ++r) {
      std::memcpy(z + r * wide, s.gates + ((d * s.batch + b0 + r) * s.length + t) * wide,
                  static_cast<size_t>(wide) * 4);
    }
    recur(s, w, h, rows, z);
    for (int r = 0; r < rows; ++r) {
      cell(z + r * wide, hidden, c + r * hidden, h + r * hidden);
      float* to = s.out + (((b0 + r) * s.length + t) * s.directions + d) * hidden;
      std::memcpy(to, h + r * hidden, static_cast<size_t>(hidden) * 4);
    }
  }
}

}  // namespace

void lstm(const Call& call, Context& context) {
  const Tensor &x = call.in[0], &w_hh = call.in[2];
  Lstm s = {nullptr, &w_hh, call.out[0].f32(), x.dim[0], x.dim[1], w_hh.dim[0], w_hh.dim[2]};
  if (s.batch == 0 || s.length == 0) return;
  const int64_t size = s.directions * s.batch * s.length * 4 * s.hidden;
  auto* gates = static_cast<float*>(scratch(3, static_cast<size_t>(size) * 4));
  input_gates(call, context, s, gates);
  s.gates = gates;
  // Rows of one group share the weights they stream; more groups than threads would only stream them again.
  int64_t groups = ceil_div(context.n_threads, s.directions), most = ceil_div(s.batch, kMaxRows);
  if (groups > s.batch) groups = s.batch;
  if (groups < most) groups = most;
  context.for_each(s.directions * groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t group = i % groups, b0 = group * s.batch / groups;
      sequence(s, i / groups, b0, static_cast<int>((group + 1) * s.batch / groups - b0));
    }
  });
}

}  // namespace sonant::SONANT_ISA
