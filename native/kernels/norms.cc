// layer_norm and instance_affine.
#include <algorithm>
#include <cmath>

#include "../runtime/call.h"
#include "../runtime/opset.gen.h"
#include "../simd/vec.h"
#include "dense_sums.h"

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
// variance over time in one pass over memory, or in none where the maker of x has left its sums: those of blocks of
// kSumsBlock rows in f32 are merged in f64, in order: first within a section of kSection blocks, then the sections. The
// cuts depend on the length only.
constexpr int64_t kSection = 8, kStrip = 128;  // blocks; channels whose sums lie side by side

struct Moments {
  double mean = 0, squares = 0;  // squares of the distances from the mean
};

void merge(Moments& m, double n, double mean, double squares, double n_more) {
  const double total = n + n_more, apart = mean - m.mean;
  m.mean += apart * (n_more / total);
  m.squares += squares + apart * apart * (n * n_more / total);
}

// Adds a block of `count` rows to the moments of `before` rows; sums as sum_block leaves them.
void merge_block(const float* sums, int64_t step, int64_t width, double before, double count, Moments* m) {
  for (int64_t i = 0; i < width; ++i) {
    const double sum = sums[step + i], off = sum / count;
    merge(m[i], before, sums[i] + off, std::max(0.0, sums[2 * step + i] - off * off * count), count);
  }
}

// The moments of `rows` rows of all channels; `sums` of the first of their blocks, or null.
void section_moments(const float* x, const float* sums, int64_t rows, int64_t channels, Moments* out) {
  float own[3 * kStrip];
  std::fill(out, out + channels, Moments());
  for (int64_t t = 0; t < rows; t += kSumsBlock) {
    const int64_t n = std::min(kSumsBlock, rows - t);
    const auto before = static_cast<double>(t), count = static_cast<double>(n);
    if (sums != nullptr) {
      merge_block(sums + t / kSumsBlock * kSumsRows * channels, channels, channels, before, count, out);
      continue;
    }
    for (int64_t c = 0; c < channels; c += kStrip) {
      const int64_t width = std::min(kStrip, channels - c);
      sum_block(x + t * channels + c, channels, n, width, own, kStrip);
      merge_block(own, kStrip, width, before, count, out + c);
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
  const bool summed = call.has(3);
  if (summed) check_sums(call.in[3], batch, length, channels, "instance_affine");
  const int64_t rows = kSumsBlock * kSection, sections = (length + rows - 1) / rows;
  auto* parts =
      static_cast<Moments*>(scratch(0, static_cast<size_t>(batch * sections * channels + 1) * sizeof(Moments)));
  context.for_each(batch * sections, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / sections, t = i % sections * rows;
      const int64_t block = b * sums_blocks(length) + t / kSumsBlock;
      section_moments(x.f32() + (b * length + t) * channels,
                      summed ? call.in[3].f32() + block * kSumsRows * channels : nullptr, std::min(rows, length - t),
                      channels, parts + i * channels);
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
