// Rows of state tensors, which may be f32, f16 or bf16, as f32.
#pragma once

#include "../runtime/call.h"
#include "../runtime/opset.gen.h"
#include "../simd/vec.h"

namespace sonant::SONANT_ISA {

void read_state(const Tensor& state, int64_t at, int64_t n, float* dst);
void write_state(const Tensor& state, int64_t at, int64_t n, const float* src);

// The state of an attribute of kind state, or null for -1.
inline const Tensor* state_of(const Context& context, int64_t index) {
  return index < 0 ? nullptr : context.states + index;
}

// The slots that `rows` names, once each is known to be a row of the state, and, where they are written to, none to be
// named twice.
inline const int32_t* slots_of(const Tensor& rows, const Tensor& state, const char* op, bool written = true) {
  if (rows.data == nullptr) refuse("%s: a state without rows", op);
  const int64_t n = rows.elements();
  for (int64_t i = 0; i < n; ++i) {
    const int32_t slot = rows.i32()[i];
    if (slot < 0 || slot >= state.dim[0]) {
      refuse("%s: row %d is not one of the %lld rows of its state", op, slot, static_cast<long long>(state.dim[0]));
    }
    for (int64_t j = 0; written && j < i; ++j) {
      if (rows.i32()[j] == slot) refuse("%s: row %d is named twice", op, slot);
    }
  }
  return rows.i32();
}

}  // namespace sonant::SONANT_ISA
