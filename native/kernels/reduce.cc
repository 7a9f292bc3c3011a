// sum, mean and max over one axis.
#include <algorithm>
#include <limits>

#include "../runtime/call.h"
#include "../runtime/opset.gen.h"

namespace sonant::SONANT_ISA {
namespace {

constexpr int64_t kPiece = 1 << 14;  // elements that one thread takes at a time
constexpr int64_t kStrip = 64;       // neighbouring results that are computed together

struct Sum {
  using Total = double;
  static constexpr Total kStart = 0;
  static Total join(Total total, double v) { return total + v; }
};

struct Max {
  using Total = double;
  static constexpr Total kStart = -std::numeric_limits<double>::infinity();
  static Total join(Total total, double v) { return v > total || v != v ? v : total; }  // a NaN stays
};

// Each result takes the axis in order, in f64 (which holds every f32 and i32).
template <class R, class T>
void reduce_strip(const T* x, int64_t size, int64_t inner, int64_t width, double scale, T* y) {
  typename R::Total total[kStrip];
  std::fill(total, total + width, R::kStart);
  for (int64_t i = 0; i < size; ++i) {
    for (int64_t j = 0; j < width; ++j) total[j] = R::join(total[j], static_cast<double>(x[i * inner + j]));
  }
  for (int64_t j = 0; j < width; ++j) {
    const double v = total[j] * scale;
    if constexpr (std::numeric_limits<T>::is_integer) {
      y[j] = static_cast<T>(static_cast<int64_t>(v));
    } else {
      y[j] = static_cast<T>(v);
    }
  }
}

// One result over neighbouring elements: eight running totals, joined in order.
template <class R, class T>
void reduce_row(const T* x, int64_t size, double scale, T* y) {
  constexpr int64_t kTotals = 8;
  typename R::Total total[kTotals];
  std::fill(total, total + kTotals, R::kStart);
  int64_t i = 0;
  for (; i + kTotals <= size; i += kTotals) {
    for (int64_t j = 0; j < kTotals; ++j) total[j] = R::join(total[j], static_cast<double>(x[i + j]));
  }
  for (; i < size; ++i) total[0] = R::join(total[0], static_cast<double>(x[i]));
  for (int64_t j = 1; j < kTotals; ++j) total[0] = R::join(total[0], total[j]);
  const double v = total[0] * scale;
  if constexpr (std::numeric_limits<T>::is_integer) {
    *y = static_cast<T>(static_cast<int64_t>(v));
  } else {
    *y = static_cast<T>(v);
  }
}

template <class R, class T>
void reduce(const Call& call, Context& context, int axis, bool mean) {
  const Tensor& t = call.in[0];
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < axis; ++i) outer *= t.dim[i];
  for (int i = axis + 1; i < t.rank; ++i) inner *= t.dim[i];
  const int64_t size = t.dim[axis], strips = (inner + kStrip - 1) / kStrip;
  if (call.out[0].elements() != outer * inner || call.out[0].dtype != t.dtype) {
    refuse("%s", "reduction: a result of another shape or dtype");
  }
  const double scale = mean ? 1.0 / static_cast<double>(size) : 1.0;
  const T* x = static_cast<const T*>(t.data);
  T* y = static_cast<T*>(call.out[0].data);
  const int64_t width = std::min(inner, kStrip);
  context.for_each(outer * strips, std::max<int64_t>(1, kPiece / std::max<int64_t>(1, size * width)),
                   [&](int64_t begin, int64_t end) {
                     for (int64_t i = begin; i < end; ++i) {
                       const int64_t o = i / strips, first = i % strips * kStrip;
                       if (inner == 1) {
                         reduce_row<R, T>(x + o * size, size, scale, y + o);
                       } else {
                         reduce_strip<R, T>(x + o * size * inner + first, size, inner, std::min(kStrip, inner - first),
                                            scale, y + o * inner + first);
                       }
                     }
                   });
}

template <class R>
void reduce(const Call& call, Context& context, int64_t axis, bool mean, const char* op) {
  const Tensor& x = call.in[0];
  if (axis < 0) axis += x.rank;
  if (axis < 0 || axis >= x.rank) refuse("%s: axis outside a tensor of rank %d", op, x.rank);
  const auto a = static_cast<int>(axis);
  if (x.dtype == DType::f32) return reduce<R, float>(call, context, a, mean);
  if (x.dtype == DType::i32 && !mean) return reduce<R, int32_t>(call, context, a, mean);
  refuse("%s: f32 wanted", op);
}

}  // namespace

void sum(const Call& call, Context& context) {
  reduce<Sum>(call, context, call.integer(attr::sum::axis), false, "sum");
}
void mean(const Call& call, Context& context) {
  reduce<Sum>(call, context, call.integer(attr::mean::axis), true, "mean");
}

void max(const Call& call, Context& context) {
  const Tensor& x = call.in[0];
  if (x.elements() == 0 && call.out[0].elements() != 0) refuse("max: nothing to take the largest of");
  reduce<Max>(call, context, call.integer(attr::max::axis), false, "max");
}

}  // namespace sonant::SONANT_ISA
