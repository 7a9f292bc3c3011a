// layer_norm and instance_affine.
#include <algorithm>
#include <cmath>

#include "../runtime/call.h"
#include "../runtime/opset.gen.h"
#include "../simd/vec.h"

namespace sonant::SONANT_ISA {
namespace {

constexpr int64_t kPiece = 1 << 14;  // elements that one thread takes at a time

// Sum over one row of f(lanes); absent lanes of the last vector count as zero.
template <class F>
float row_sum(F f, const float* x, int64_t n) {
  Vec a = zero(), b = zero();
  int64_t i = 0;
  for (; i + 2 * kWidth <= n; i += 2 * kWidth) {
    a = a + f(load(x + i));
    b = b + f(load(x + i + kWidth));
  }
  float lane[kWidth];
  for (; i < n; i += kWidth) {
    const int64_t here = std::min<int64_t>(kWidth, n - i);
    store(lane, zero());
    store_n(lane, f(load_n(x + i, here)), here);
    a = a + load(lane);
  }
  return reduce_add(a + b);
}

void normalise_row(const float* x, const float* weight, const float* bias, int64_t n, float eps, float* y) {
  const float mean = row_sum([](Vec v) { return v; }, x, n) / static_cast<float>(n);
  const Vec centre = set1(mean);
  const float squares = row_sum([=](Vec v) { return (v - centre) * (v - centre); }, x, n);
  const Vec scale = set1(1.0f / std::sqrt(squares / static_cast<float>(n) + eps));
  for (int64_t i = 0; i < n; i += kWidth) {
    const int64_t here = std::min<int64_t>(kWidth, n - i);
    Vec v = (load_n(x + i, here) - centre) * scale;
    if (weight != nullptr) v = v * load_n(weight + i, here);
    if (bias != nullptr) v = v + load_n(bias + i, here);
    store_n(y + i, v, here);
  }
}

// --- instance_affine
// ---------------------------------------------------------------------------------------------------- Mean and
// variance over time in one pass over memory: blocks of kBlock rows are summed in f32 around a pivot (the mean of their
// first rows, so that little is lost when the squares of the sums are taken off), then merged in f64, in order: first
// within a section of kSection blocks, then the sections. The cuts depend on the length only.
constexpr int64_t kBlock = 128, kSection = 8, kPivotRows = 8;
// Vectors of channels that are summed at once: their sums, squares and pivots stay in registers.
constexpr int kStrip = SONANT_ISA_ID >= SONANT_ID_avx512 ? 8 : 16;

struct Moments {
  double mean = 0, squares = 0;  // squares of the distances from the mean
};

void merge(Moments& m, double n, double mean, double squares, double n_more) {
  const double total = n + n_more, apart = mean - m.mean;
  m.mean += apart * (n_more / total);
  m.squares += squares + apart * apart * (n * n_more / total);
}

// Sums of (x - pivot) and its square over `rows` rows, for the channels of `vectors` vectors, the last of `last` lanes.
template <int vectors>
void block_sums(const float* x, int64_t stride, int64_t rows, int64_t last, float* pivot, float* sum, float* square) {
  const auto at = [=](const float* row, int v) {
    return v + 1 < vectors || last == kWidth ? load(row + v * kWidth) : load_n(row + v * kWidth, last);
  };
  const int64_t first = std::min(rows, kPivotRows);
  Vec p[vectors], s[vectors], q[vectors];
  for (int v = 0; v < vectors; ++v) p[v] = s[v] = q[v] = zero();
  for (int64_t t = 0; t < first; ++t) {
    for (int v = 0; v < vectors; ++v) p[v] = p[v] + at(x + t * stride, v);
  }
  for (int v = 0; v < vectors; ++v) p[v] = p[v] * set1(1.0f / static_cast<float>(first));
  for (int64_t t = 0; t < rows; ++t) {
    for (int v = 0; v < vectors; ++v) {
      const Vec d = at(x + t * stride, v) - p[v];
      s[v] = s[v] + d;
      q[v] = fma(d, d, q[v]);
    }
  }
  for (int v = 0; v < vectors; ++v) {
    store(pivot + v * kWidth, p[v]);
    store(sum + v * kWidth, s[v]);
    store(square + v * kWidth, q[v]);
  }
}

template <int vectors = kStrip>
void strip_sums(int wanted, const float* x, int64_t stride, int64_t rows, int64_t last, float (*out)[kStrip * kWidth]) {
  if constexpr (vectors > 1) {
    if (wanted < vectors) return strip_sums<vectors - 1>(wanted, x, stride, rows, last, out);
  }
  block_sums<vectors>(x, stride, rows, last, out[0], out[1], out[2]);
}

// The moments of `rows` rows of all channels.
void section_moments(const float* x, int64_t rows, int64_t channels, Moments* out) {
  float sums[3][kStrip * kWidth];
  std::fill(out, out + channels, Moments());
  for (int64_t t = 0; t < rows; t += kBlock) {
    const int64_t n = std::min(kBlock, rows - t);
    for (int64_t c = 0; c < channels; c += kStrip * kWidth) {
      const int64_t width = std::min<int64_t>(kStrip * kWidth, channels - c);
      const auto vectors = static_cast<int>((width + kWidth - 1) / kWidth);
      strip_sums(vectors, x + t * channels + c, channels, n, width - (vectors - 1) * kWidth, sums);
      const double count = static_cast<double>(n);
      for (int64_t i = 0; i < width; ++i) {
        const double off = sums[1][i] / count;
        merge(out[c + i], static_cast<double>(t), sums[0][i] + off, std::max(0.0, sums[2][i] - off * off * count),
              count);
      }
    }
  }
}

}  // namespace

void layer_norm(const Call& call, Context& context) {
  const Tensor &x = call.in[0], &y = call.out[0];
  const int64_t n = x.rank > 0 ? x.dim[x.rank - 1] : 1, total = x.elements();
  const float* weight = call.has(1) ? call.in[1].f32() : nullptr;
  const float* bias = call.has(2) ? call.in[2].f32() : nullptr;
  if (y.elements() != total || (weight && call.in[1].elements() != n) || (bias && call.in[2].elements() != n)) {
    refuse("layer_norm: weight and bias [C] and a result of the shape of x wanted");
  }
  if (total == 0) return;
  const auto eps = static_cast<float>(call.real(attr::layer_norm::eps));
  context.for_each(total / n, std::max<int64_t>(1, kPiece / n), [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) normalise_row(x.f32() + r * n, weight, bias, n, eps, y.f32() + r * n);
  });
}

void instance_affine(const Call& call, Context& context) {
  const Tensor &x = call.in[0], &gamma = call.in[1], &beta = call.in[2];
  if (x.rank != 3) refuse("instance_affine: x [B,T,C] wanted");
  const int64_t batch = x.dim[0], length = x.dim[1], channels = x.dim[2];
  for (int i = 0; i < 2; ++i) {
    const int64_t n = call.in[1 + i].elements();
    if ((n != channels && n != batch * channels) || call.out[i].elements() != batch * channels) {
      refuse("instance_affine: gamma, beta [C] or [B,1,C] and results [B,1,C] wanted");
    }
  }
  const int64_t rows = kBlock * kSection, sections = (length + rows - 1) / rows;
  auto* parts =
      static_cast<Moments*>(scratch(0, static_cast<size_t>(batch * sections * channels + 1) * sizeof(Moments)));
  context.for_each(batch * sections, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / sections, t = i % sections * rows;
      section_moments(x.f32() + (b * length + t) * channels, std::min(rows, length - t), channels,
                      parts + i * channels);
    }
  });
  const double eps = call.real(attr::instance_affine::eps);
  for (int64_t i = 0; i < batch * channels; ++i) {
    const int64_t b = i / channels, c = i % channels;
    Moments m;
    for (int64_t s = 0; s < sections; ++s) {
      const Moments& part = parts[(b * sections + s) * channels + c];
      merge(m, static_cast<double>(s * rows), part.mean, part.squares,
            static_cast<double>(std::min(rows, length - s * rows)));
    }
    const double g = gamma.f32()[gamma.elements() == channels ? c : i],
                 h = beta.f32()[beta.elements() == channels ? c : i];
    const double scale = (1.0 + g) / std::sqrt(m.squares / static_cast<double>(length) + eps);
    call.out[0].f32()[i] = static_cast<float>(scale);
    call.out[1].f32()[i] = static_cast<float>(h - m.mean * scale);
  }
}

}  // namespace sonant::SONANT_ISA
