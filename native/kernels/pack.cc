#include "pack.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace sonant {
namespace {

// Every role as a grouped convolution.
struct Shape {
  int64_t groups, outputs, taps, channels;  // outputs per group, channels per output
  PackForm form;
};

Shape shape_of(PackRole role, const int64_t* dims, int rank, int64_t groups) {
  if (rank != (role == PackRole::linear ? 2 : 3)) throw std::runtime_error("pack: a weight of the wrong rank");
  if (role == PackRole::linear) return {1, dims[0], 1, dims[1], pack_form(false, 1, dims[0], dims[1])};
  if (role == PackRole::lstm) return {dims[0], dims[1], 1, dims[2], PackForm::panels};
  if (groups < 1 || dims[0] % groups != 0) throw std::runtime_error("pack: outputs are not a multiple of groups");
  return {groups, dims[0] / groups, dims[1], dims[2], pack_form(true, groups, dims[0], dims[2])};
}

uint32_t bits_of(float x) {
  uint32_t b;
  std::memcpy(&b, &x, 4);
  return b;
}

uint16_t narrow_bf16(float x) {
  uint32_t b = bits_of(x);
  return static_cast<uint16_t>((b + 0x7FFF + ((b >> 16) & 1)) >> 16);
}

}  // namespace

uint16_t narrow_f16(float x) {
  uint32_t b = bits_of(x), sign = (b >> 16) & 0x8000, m = b & 0x7FFFFFFF;
  if (m >= 0x7F800000) return static_cast<uint16_t>(sign | 0x7C00 | (m > 0x7F800000 ? 0x200 : 0));
  if (m >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);
  if (m < 0x38800000) {  // subnormal half: adding 0.5 leaves the rounded multiple of 2^-24 in the low bits
    float magic;
    std::memcpy(&magic, &m, 4);
    return static_cast<uint16_t>(sign | (bits_of(magic + 0.5f) - 0x3F000000));
  }
  return static_cast<uint16_t>(sign | ((m - 0x38000000 + 0xFFF + ((m >> 13) & 1)) >> 13));
}

namespace {

void put(void* dst, int64_t at, float x, DType dtype) {
  if (dtype == DType::f16) {
    static_cast<uint16_t*>(dst)[at] = narrow_f16(x);
  } else if (dtype == DType::bf16) {
    static_cast<uint16_t*>(dst)[at] = narrow_bf16(x);
  } else {
    static_cast<float*>(dst)[at] = x;
  }
}

void pack_depthwise(const float* src, const Shape& s, float* dst) {
  for (int64_t c = 0; c < s.groups; ++c) {
    for (int64_t k = 0; k < s.taps; ++k) dst[k * s.groups + c] = src[c * s.taps + k];
  }
}

float widen_f16(uint16_t h) {
  const float magnitude = std::ldexp(static_cast<float>(h & 0x3FF) + ((h & 0x7C00) ? 1024.0f : 0.0f),
                                     ((h & 0x7C00) ? (h >> 10 & 31) : 1) - 25);
  return h & 0x8000 ? -magnitude : magnitude;
}

// At most 32 channels of one output: integers (every fourth byte of four of `to` on) and their scale, as to_q8 in
// backends/backend.py.
void pack_q8_block(const float* src, int64_t channels, int8_t* to, uint16_t* scale) {
  float top = 0;
  for (int64_t c = 0; c < channels; ++c) top = std::isnan(src[c]) ? src[c] : std::max(top, std::fabs(src[c]));
  top /= 127.0f;
  if (!(top < 65520.0f)) throw std::runtime_error("a weight is not finite, or too large for the f16 scale of q8");
  *scale = narrow_f16(top);
  const float wide = widen_f16(*scale);
  for (int64_t c = 0; c < channels && wide > 0; ++c) {
    const float rounded = std::nearbyint(src[c] / wide);
    to[c / 4 * 4 * kPanel + c % 4] = static_cast<int8_t>(std::min(127.0f, std::max(-127.0f, rounded)));
  }
}

void pack_tap_q8(const float* src, int64_t row, int64_t outputs, int64_t channels, char* dst) {
  for (int64_t c = 0; c < channels; c += kQ8Block, dst += kQ8Bytes) {
    std::memset(dst, 0, static_cast<size_t>(kQ8Bytes));
    for (int64_t lane = 0; lane < std::min(outputs, kPanel); ++lane) {
      uint16_t scale = 0;
      pack_q8_block(src + lane * row + c, std::min(channels - c, kQ8Block), reinterpret_cast<int8_t*>(dst) + 4 * lane,
                    &scale);
      std::memcpy(dst + kQ8Integers + 2 * lane, &scale, 2);
    }
  }
}

// As round_to(array, "i8") in backends/backend.py.
void pack_tap_i8(const float* src, int64_t row, int64_t outputs, int64_t channels, char* dst) {
  std::memset(dst, 0, static_cast<size_t>(panel_tap_elements(channels, DType::i8)));
  char* first = dst + ceil_div(channels, 4) * 4 * kPanel;
  for (int64_t lane = 0; lane < std::min(outputs, kPanel); ++lane) {
    const float* from = src + lane * row;
    float top = 0;
    for (int64_t c = 0; c < channels; ++c) top = std::isnan(from[c]) ? from[c] : std::max(top, std::fabs(from[c]));
    if (!std::isfinite(top)) throw std::runtime_error("a weight is not finite: i8 cannot hold it");
    const float scale = top / 127.0f;
    int32_t sum = 0;
    for (int64_t c = 0; c < channels && scale > 0; ++c) {
      const auto whole = static_cast<int8_t>(std::nearbyint(from[c] / scale));
      reinterpret_cast<int8_t*>(dst)[(c / 4 * kPanel + lane) * 4 + c % 4] = whole;
      sum += whole;
    }
    sum *= -128;
    std::memcpy(first + 4 * lane, &sum, 4);
    std::memcpy(first + 4 * (kPanel + lane), &scale, 4);
  }
}

// One tap of one panel; `outputs` of its 32 lanes exist.
void pack_tap(const float* src, int64_t row, int64_t outputs, int64_t channels, DType dtype, void* dst, int64_t at) {
  const int64_t pair = dtype == DType::bf16 ? 2 : 1;
  for (int64_t c = 0; c < ceil_div(channels, pair) * pair; ++c) {
    for (int64_t lane = 0; lane < kPanel; ++lane) {
      float x = lane < outputs && c < channels ? src[lane * row + c] : 0.0f;
      put(dst, at + (c / pair * kPanel + lane) * pair + c % pair, x, dtype);
    }
  }
}

}  // namespace

bool packed_in_f32(PackRole role, const int64_t* dims, int rank, int64_t groups) {
  return shape_of(role, dims, rank, groups).form != PackForm::panels;
}

size_t packed_bytes(PackRole role, const int64_t* dims, int rank, int64_t groups, DType dtype) {
  Shape s = shape_of(role, dims, rank, groups);
  if (s.form != PackForm::panels) return static_cast<size_t>(s.groups * s.outputs * s.taps * s.channels) * 4;
  int64_t tap = panel_tap_elements(s.channels, dtype) * dtype_bytes(dtype);
  return static_cast<size_t>(s.groups * ceil_div(s.outputs, kPanel) * s.taps * tap);
}

void pack(PackRole role, const float* src, const int64_t* dims, int rank, int64_t groups, DType dtype, void* dst) {
  Shape s = shape_of(role, dims, rank, groups);
  if (s.form == PackForm::depthwise) return pack_depthwise(src, s, static_cast<float*>(dst));
  if (s.form == PackForm::few) {
    std::memcpy(dst, src, packed_bytes(role, dims, rank, groups, dtype));
    return;
  }
  const int64_t tap = panel_tap_elements(s.channels, dtype), row = s.taps * s.channels;
  int64_t at = 0;
  for (int64_t g = 0; g < s.groups; ++g) {
    for (int64_t n = 0; n < s.outputs; n += kPanel) {
      for (int64_t k = 0; k < s.taps; ++k, at += tap) {
        const float* from = src + (g * s.outputs + n) * row + k * s.channels;
        if (dtype == DType::q8) {
          pack_tap_q8(from, row, s.outputs - n, s.channels, static_cast<char*>(dst) + at);
        } else if (dtype == DType::i8) {
          pack_tap_i8(from, row, s.outputs - n, s.channels, static_cast<char*>(dst) + at);
        } else {
          pack_tap(from, row, s.outputs - n, s.channels, dtype, dst, at);
        }
      }
    }
  }
}

}  // namespace sonant
