// y[..., n] = sum_c x[..., c] w[n, c] + bias[n]
#include "dense.h"

namespace sonant::SONANT_ISA {

void linear(const Call& call, Context& context) {
  namespace at = attr::linear;
  const Tensor &x = call.in[0], &out = call.out[0];
  Dense d;
  d.x = x.f32();
  d.channels = x.dim[x.rank - 1];
  d.outputs = out.dim[out.rank - 1];
  d.in_rows = d.out_rows = 1;
  for (int i = 0; i + 1 < x.rank; ++i) d.in_rows *= x.dim[i];
  d.out_rows = d.in_rows;
  d.weight = call.in[1];
  d.bias = call.has(2) ? call.in[2].f32() : nullptr;
  d.out = out.f32();
  const int n_pro = static_cast<int>(call.integer(at::n_pro)), n_fused = call.n_in > 3 ? call.n_in - 3 : 0;
  d.prologue = decode(call, call.integer(at::prologue), call.in + 3, n_pro, x.dim, x.rank);
  d.epilogue = decode(call, call.integer(at::epilogue), call.in + 3 + n_pro, n_fused - n_pro, out.dim, out.rank);
  d.precision = static_cast<Precision>(call.integer(at::precision));
  run_dense(d, context);
}

}  // namespace sonant::SONANT_ISA
