// y[b, t, n] = sum_kc x[b, t*stride + k*dilation - pad_left, c] w[n, k, c] + bias[n]
#include "dense.h"
#include "state.h"

namespace sonant::SONANT_ISA {

void conv1d(const Call& call, Context& context) {
  namespace at = attr::conv1d;
  Dense d = convolution(call, context, call.integer(at::groups), call.integer(at::state), at::prologue);
  d.step = call.integer(at::stride);
  d.tap_rows = call.integer(at::dilation);
  d.first = d.state ? -d.state->dim[1] : -call.integer(at::pad_left);
  run_dense(d, context);
  keep_context(d);
}

}  // namespace sonant::SONANT_ISA
