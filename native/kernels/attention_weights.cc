// The softmax of named heads over named keys of a state: what an aligner reads. A query's result depends on itself and
// its keys alone: sums over channels and keys in order.
#include <algorithm>
#include <cmath>

#include "state.h"

namespace sonant::SONANT_ISA {
namespace {

float product(const float* a, const float* b, int64_t n) {
  Vec sum = zero();
  for (int64_t i = 0; i < n; i += kWidth) {
    const int64_t here = std::min<int64_t>(kWidth, n - i);
    sum = here == kWidth ? fma(load(a + i), load(b + i), sum) : fma(load_n(a + i, here), load_n(b + i, here), sum);
  }
  return reduce_add(sum);
}

// The weights of the n keys that are not below zero, in `y`; the others get 0.
void weigh(const float* q, const float* k, int64_t step, const int32_t* keys, int64_t n, int64_t size, float scale,
           float* y) {
  float top = -__builtin_inff(), sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (keys[i] < 0) continue;
    y[i] = product(q, k + keys[i] * step, size) * scale;
    top = std::max(top, y[i]);
  }
  for (int64_t i = 0; i < n; ++i) {
    y[i] = keys[i] < 0 ? 0.0f : std::exp(y[i] - top);
    sum += y[i];
  }
  for (int64_t i = 0; i < n && sum != 0; ++i) y[i] /= sum;
}

}  // namespace

void attention_weights(const Call& call, Context& context) {
  namespace at = attr::attention_weights;
  const Tensor &q = call.in[0], &keys = call.in[1], &y = call.out[0];
  const Tensor* k = state_of(context, call.integer(at::state_k));
  const int64_t heads = call.integer(at::heads), *ids = call.extra + call.integer(at::head_ids);
  const int64_t kv_heads = call.integer(at::kv_heads) > 0 ? call.integer(at::kv_heads) : heads;
  if (k == nullptr || k->rank != 3 || q.rank != 3 || keys.rank != 2 || heads < 1 || keys.dim[0] != q.dim[0] ||
      call.in[2].elements() != q.dim[0] || k->dim[2] * heads != q.dim[2] * kv_heads ||
      y.elements() != q.dim[0] * q.dim[1] * ids[0] * keys.dim[1]) {
    refuse(
        "attention_weights: q [B,T,C], keys [B,N], rows [B], a state [rows, capacity, C] and a result "
        "[B,T,heads,N] wanted");
  }
  for (int64_t i = 0; i < ids[0]; ++i) {
    if (ids[1 + i] < 0 || ids[1 + i] >= heads) refuse("attention_weights: a head that is not there");
  }
  const int64_t capacity = k->dim[1], channels = k->dim[2], n = keys.dim[1], size = q.dim[2] / heads;
  for (int64_t i = 0; i < keys.elements(); ++i) {
    if (keys.i32()[i] < capacity) continue;
    refuse("attention_weights: key %d is not within the capacity %lld of its state", keys.i32()[i],
           static_cast<long long>(capacity));
  }
  const int32_t* rows = slots_of(call.in[2], *k, "attention_weights", false);
  const auto scale = static_cast<float>(call.real(at::scale));
  context.for_each(q.dim[0] * q.dim[1], std::max<int64_t>(1, (1 << 15) / (1 + ids[0] * n * size)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t b = i / q.dim[1];
                       for (int64_t h = 0; h < ids[0]; ++h) {
                         const int64_t head = ids[1 + h], of_k = head / (heads / kv_heads) * size;
                         weigh(q.f32() + i * q.dim[2] + head * size, k->f32() + rows[b] * capacity * channels + of_k,
                               channels, keys.i32() + b * n, n, size, scale, y.f32() + (i * ids[0] + h) * n);
                       }
                     }
                   });
}

}  // namespace sonant::SONANT_ISA
