// rope_table and rope: rotary positions.
#include <algorithm>
#include <cmath>

#include "../runtime/call.h"
#include "../runtime/opset.gen.h"

namespace sonant::SONANT_ISA {
namespace {

constexpr int64_t kPiece = 1 << 14;  // elements that one thread takes at a time

void turn(const float* x, const float* table, int64_t half, bool interleaved, float* y) {
  const float *cos = table, *sin = table + half;
  if (interleaved) {
    for (int64_t i = 0; i < half; ++i) {
      const float u = x[2 * i], v = x[2 * i + 1];
      y[2 * i] = u * cos[i] - v * sin[i];
      y[2 * i + 1] = u * sin[i] + v * cos[i];
    }
    return;
  }
  for (int64_t i = 0; i < half; ++i) {
    const float u = x[i], v = x[i + half];
    y[i] = u * cos[i] - v * sin[i];
    y[i + half] = u * sin[i] + v * cos[i];
  }
}

}  // namespace

void rope_table(const Call& call, Context& context) {
  namespace at = attr::rope_table;
  const Tensor &position = call.in[0], &y = call.out[0];
  const int64_t length = call.integer(at::length), half = call.integer(at::size) / 2;
  if (half < 1 || length < 0 || y.elements() != position.elements() * length * 2 * half) {
    refuse("rope_table: position [B] and a result [B,length,size] wanted");
  }
  auto* rate = static_cast<double*>(scratch(0, static_cast<size_t>(half) * 8));
  for (int64_t i = 0; i < half; ++i) {
    rate[i] = std::pow(call.real(at::theta), -static_cast<double>(i) / static_cast<double>(half));
  }
  context.for_each(position.elements() * length, std::max<int64_t>(1, 2048 / half), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const double at_row = static_cast<double>(position.i32()[row / length] + row % length);
      float* to = y.f32() + row * 2 * half;
      for (int64_t i = 0; i < half; ++i) {
        to[i] = static_cast<float>(std::cos(at_row * rate[i]));
        to[i + half] = static_cast<float>(std::sin(at_row * rate[i]));
      }
    }
  });
}

void rope(const Call& call, Context& context) {
  const Tensor &x = call.in[0], &table = call.in[1], &y = call.out[0];
  const int64_t heads = call.integer(attr::rope::heads);
  if (x.rank != 3 || heads < 1 || x.dim[2] % (2 * heads) != 0 || y.elements() != x.elements() ||
      table.elements() * heads != x.elements()) {
    refuse("rope: x [B,T,heads*size] and a table [B,T,size] wanted");
  }
  const int64_t size = x.dim[2] / heads, rows = x.dim[0] * x.dim[1];
  const bool interleaved = call.integer(attr::rope::layout) == static_cast<int64_t>(RopeLayout::interleaved);
  context.for_each(rows, std::max<int64_t>(1, kPiece / x.dim[2]), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t h = 0; h < heads; ++h) {
        const int64_t at = row * x.dim[2] + h * size;
        turn(x.f32() + at, table.f32() + row * size, size / 2, interleaved, y.f32() + at);
      }
    }
  });
}

}  // namespace sonant::SONANT_ISA
