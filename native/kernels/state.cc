#include "state.h"

#include <cstring>

#include "pack.h"

namespace sonant::SONANT_ISA {

void read_state(const Tensor& state, int64_t at, int64_t n, float* dst) {
  if (state.dtype == DType::f32) {
    std::memcpy(dst, state.f32() + at, static_cast<size_t>(n) * 4);
    return;
  }
  const uint16_t* src = static_cast<const uint16_t*>(state.data) + at;
  const bool half = state.dtype == DType::f16;
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(dst + i, half ? load_f16(src + i) : load_bf16(src + i));
  if (i == n) return;
  uint16_t rest[kWidth] = {};
  std::memcpy(rest, src + i, static_cast<size_t>(n - i) * 2);
  store_n(dst + i, half ? load_f16(rest) : load_bf16(rest), n - i);
}

void write_state(const Tensor& state, int64_t at, int64_t n, const float* src) {
  if (state.dtype == DType::f32) {
    std::memcpy(state.f32() + at, src, static_cast<size_t>(n) * 4);
    return;
  }
  uint16_t* dst = static_cast<uint16_t*>(state.data) + at;
  for (int64_t i = 0; i < n; ++i) dst[i] = state.dtype == DType::f16 ? narrow_f16(src[i]) : to_bf16(src[i]);
}

}  // namespace sonant::SONANT_ISA
