// y[b, t*stride + k - trim_left, n] += x[b, t, c] w[n, k, c]; + bias
#include "dense.h"
#include "state.h"

namespace sonant::SONANT_ISA {

void conv_transpose1d(const Call& call, Context& context) {
  namespace at = attr::conv_transpose1d;
  Dense d = convolution(call, context, call.integer(at::groups), call.integer(at::state), at::prologue);
  d.phases = call.integer(at::stride);
  d.tap_rows = -1;
  d.trim = d.state ? 0 : call.integer(at::trim_left);
  run_dense(d, context);
  keep_context(d);
}

}  // namespace sonant::SONANT_ISA
