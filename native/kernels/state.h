// Rows of state tensors, which may be f32, f16 or bf16, as f32.
#pragma once

#include "../runtime/call.h"
#include "../simd/vec.h"

namespace sonant::SONANT_ISA {

void read_state(const Tensor& state, int64_t at, int64_t n, float* dst);
void write_state(const Tensor& state, int64_t at, int64_t n, const float* src);

// The state of an attribute of kind state, or null for -1.
inline const Tensor* state_of(const Context& context, int64_t index) {
  return index < 0 ? nullptr : context.states + index;
}

}  // namespace sonant::SONANT_ISA
