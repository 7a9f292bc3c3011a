// interpolate and cumsum_turns: longer time axes.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "../runtime/call.h"
#include "../runtime/opset.gen.h"

namespace sonant::SONANT_ISA {
namespace {

constexpr int64_t kPiece = 1 << 14;  // elements that one thread takes at a time

struct Shape {
  int64_t batch, length, channels, factor;
};

Shape shape_of(const Call& call, int64_t factor, const char* op) {
  const Tensor &x = call.in[0], &y = call.out[0];
  if (x.rank != 3 || y.rank != 3 || x.dtype != DType::f32 || factor < 1 || y.dim[0] != x.dim[0] ||
      y.dim[1] != x.dim[1] * factor || y.dim[2] != x.dim[2]) {
    refuse("%s: x f32 [B,T,C] and a result [B,T*factor,C] wanted", op);
  }
  return {x.dim[0], x.dim[1], x.dim[2], factor};
}

int64_t rows_per_piece(int64_t elements) { return std::max<int64_t>(1, kPiece / std::max<int64_t>(1, elements)); }

void repeat(const Shape& s, const float* x, float* y, Context& context) {
  context.for_each(s.batch * s.length, rows_per_piece(s.factor * s.channels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* from = x + row * s.channels;
      float* to = y + row * s.factor * s.channels;
      if (s.channels == 1) {
        std::fill(to, to + s.factor, *from);
      } else {
        for (int64_t i = 0; i < s.factor; ++i, to += s.channels) std::copy(from, from + s.channels, to);
      }
    }
  });
}

void blend(const Shape& s, const float* x, float* y, Context& context) {
  const int64_t long_length = s.length * s.factor;
  context.for_each(s.batch * long_length, rows_per_piece(s.channels), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const int64_t batch = row / long_length, t = row - batch * long_length;
      const double at = std::max(0.0, (static_cast<double>(t) + 0.5) / static_cast<double>(s.factor) - 0.5);
      const auto left = static_cast<int64_t>(at);
      const auto part = static_cast<float>(at - static_cast<double>(left));
      const float* a = x + (batch * s.length + left) * s.channels;
      const float* b = x + (batch * s.length + std::min(left + 1, s.length - 1)) * s.channels;
      float* to = y + row * s.channels;
      for (int64_t c = 0; c < s.channels; ++c) to[c] = a[c] * (1.0f - part) + b[c] * part;
    }
  });
}

// --- cumsum_turns
// ------------------------------------------------------------------------------------------------------- Phases only
// count modulo one turn, 2^32 units: unsigned 32-bit numbers hold all that matters. Between the centres of frames l and
// l+1 the phase is phase[l] + (step[l+1] * beyond >> 1), where beyond grows by 2 with each sample; so it starts at
// phase[l] + (step[l+1] * beyond_0 >> 1) and grows by exactly step[l+1].
struct Frame {
  uint32_t phase = 0;
  int64_t step = 0;
};

int64_t to_fixed_point(float turns) {
  const double units = std::nearbyint(static_cast<double>(turns) * 4294967296.0);
  return std::fabs(units) < 4611686018427387904.0 ? static_cast<int64_t>(units) : 0;  // NaN and the absurd: no turn
}

float to_turns(uint32_t units) { return static_cast<float>(units) * 2.3283064365386963e-10f; }

void write_samples(uint32_t* phase, const uint32_t* step, int64_t channels, int64_t n, float* y) {
  if (channels == 1) {
    const uint32_t first = phase[0], each = step[0];
    for (int64_t i = 0; i < n; ++i) y[i] = to_turns(first + each * static_cast<uint32_t>(i));
    return;
  }
  for (int64_t i = 0; i < n; ++i, y += channels) {
    for (int64_t c = 0; c < channels; ++c) {
      y[c] = to_turns(phase[c]);
      phase[c] += step[c];
    }
  }
}

}  // namespace

void interpolate(const Call& call, Context& context) {
  const Shape s = shape_of(call, call.integer(attr::interpolate::factor), "interpolate");
  const bool linear = call.integer(attr::interpolate::mode) == static_cast<int64_t>(InterpolateMode::linear);
  (linear ? blend : repeat)(s, call.in[0].f32(), call.out[0].f32(), context);
}

void cumsum_turns(const Call& call, Context& context) {
  const Shape s = shape_of(call, call.integer(attr::cumsum_turns::factor), "cumsum_turns");
  const int64_t per_batch = s.length * s.channels;
  if (per_batch == 0) return;
  auto* frames = static_cast<Frame*>(scratch(0, static_cast<size_t>(s.batch * per_batch) * sizeof(Frame)));
  for (int64_t i = 0; i < s.batch * per_batch; ++i) {
    Frame& f = frames[i];
    f.step = to_fixed_point(call.in[0].f32()[i]);
    f.phase = static_cast<uint32_t>(static_cast<uint64_t>(f.step) * static_cast<uint64_t>(s.factor));
    if (i % per_batch >= s.channels) f.phase += frames[i - s.channels].phase;
  }
  // Segment 0 is held before the first centre; segment l+1 begins at the centre of frame l, the last is held again.
  const int64_t segments = s.length + 1, half = s.factor / 2, long_length = s.length * s.factor;
  const int64_t beyond = s.factor % 2 == 0 ? 1 : 0;  // in half samples, at the first sample of a segment
  context.for_each(s.batch * segments, rows_per_piece(s.factor * s.channels), [&](int64_t begin, int64_t end) {
    auto* phase = static_cast<uint32_t*>(scratch(1, static_cast<size_t>(s.channels) * 8));
    uint32_t* step = phase + s.channels;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t batch = i / segments, segment = i % segments;
      const int64_t first = segment == 0 ? 0 : (segment - 1) * s.factor + half;
      const int64_t stop = segment == s.length ? long_length : segment * s.factor + half;
      const Frame* here = frames + batch * per_batch + std::max<int64_t>(segment - 1, 0) * s.channels;
      const bool moving = segment > 0 && segment < s.length;
      for (int64_t c = 0; c < s.channels; ++c) {
        phase[c] = here[c].phase;
        step[c] = 0;
        if (!moving) continue;
        const int64_t following = here[s.channels + c].step;
        phase[c] += static_cast<uint32_t>(static_cast<uint64_t>((following * beyond) >> 1));
        step[c] = static_cast<uint32_t>(static_cast<uint64_t>(following));
      }
      write_samples(phase, step, s.channels, stop - first,
                    call.out[0].f32() + (batch * long_length + first) * s.channels);
    }
  });
}

}  // namespace sonant::SONANT_ISA
