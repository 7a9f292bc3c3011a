#include "gemm.h"

namespace sonant::SONANT_ISA {
namespace {

// Loads kWidth weights of a channel. A bf16 weight shares a 32-bit lane with that of the next channel: `odd` picks it.
struct WeightF32 {
  using Element = float;
  static constexpr int kPair = 1;
  static Vec at(const float* w, int) { return load(w); }
};
struct WeightF16 {
  using Element = uint16_t;
  static constexpr int kPair = 1;
  static Vec at(const uint16_t* w, int) { return load_f16(w); }
};
struct WeightBf16 {
  using Element = uint16_t;
  static constexpr int kPair = 2;
  static Vec at(const uint16_t* w, int odd) {
    const IVec both = bits(load(reinterpret_cast<const float*>(w)));
    return from_bits(odd ? both & iset1(static_cast<int32_t>(0xFFFF0000u)) : both << 16);
  }
};

constexpr int kPanelVectors = static_cast<int>(kPanel) / kWidth;

// One channel of R rows by V vectors of outputs; vectors past the first panel lie panel_step further on.
template <int R, int V, class W>
inline __attribute__((always_inline)) void step(const float* x, int64_t row, const typename W::Element* w,
                                                int64_t panel_step, int odd, Vec (&sum)[R][V]) {
  Vec b[V];
#pragma GCC unroll 8
  for (int j = 0; j < V; ++j) {
    b[j] = W::at(w + (j / kPanelVectors ? panel_step : 0) + j % kPanelVectors * kWidth * W::kPair, odd);
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
    const Vec a = set1(x[i * row]);
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) sum[i][j] = fma(a, b[j], sum[i][j]);
  }
}

// R rows by V vectors of outputs, starting at output `column` of the panel.
template <int R, int V, class W>
void columns(const Product& p, int column, float* tile) {
  Vec sum[R][V];
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) sum[i][j] = p.resume ? load(tile + i * kTile + column + j * kWidth) : zero();
  }
  const int64_t row = p.step, channels = p.channels, panel_step = p.panel_step;
  for (int64_t k = 0; k < p.taps; ++k) {
    const float* x = static_cast<const float*>(p.input) + k * p.tap_step;
    const auto* w = static_cast<const typename W::Element*>(p.weight) + k * p.weight_tap_step + column * W::kPair;
    if constexpr (W::kPair == 1) {
      const int64_t next = p.weight_step;
#pragma GCC unroll 2
      for (int64_t c = 0; c < channels; ++c, w += next) step<R, V, W>(x + c, row, w, panel_step, 0, sum);
    } else {
      int64_t c = 0;
      for (; c + 1 < channels; c += 2, w += 2 * kPanel) {
        step<R, V, W>(x + c, row, w, panel_step, 0, sum);
        step<R, V, W>(x + c + 1, row, w, panel_step, 1, sum);
      }
      if (c < channels) step<R, V, W>(x + c, row, w, panel_step, 0, sum);
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) store(tile + i * kTile + column + j * kWidth, sum[i][j]);
  }
}

// Few rows take the panel in one pass, so that its weights stream from memory once and in order; more rows leave room
// for fewer outputs at a time.
constexpr int vectors_at_once(int rows) {
#if SONANT_ISA_ID >= SONANT_ID_avx512
  return rows > 0 ? 2 : 0;
#elif SONANT_ISA_ID == SONANT_ID_avx2
  return rows <= 2 ? 4 : 2;
#elif SONANT_ISA_ID == SONANT_ID_neon
  return rows <= 2 ? 8 : 4;
#else
  return rows <= 1 ? 8 : 4;
#endif
}

template <int R, class W>
void panel(const Product& p, float* tile) {
  constexpr int V = vectors_at_once(R);
  for (int column = 0; column < kPanel; column += V * kWidth) columns<R, V, W>(p, column, tile);
}

using Kernel = void (*)(const Product&, float*);

template <class W>
Kernel one_panel(int rows) {
  switch (rows) {
    case 1:
      return panel<1, W>;
    case 2:
      return panel<2, W>;
    case 3:
      return panel<3, W>;
#if SONANT_ISA_ID != SONANT_ID_generic
    case 4:
      return panel<4, W>;
    case 5:
      return panel<5, W>;
    case 6:
      return panel<6, W>;
#endif
#if SONANT_ISA_ID >= SONANT_ID_avx512
    case 7:
      return panel<7, W>;
    case 8:
      return panel<8, W>;
    case 9:
      return panel<9, W>;
    case 10:
      return panel<10, W>;
    case 11:
      return panel<11, W>;
    case 12:
      return panel<12, W>;
#endif
    default:
      return nullptr;
  }
}

template <class W>
void multiply_as(const Product& p, int rows, int panels, float* tile) {
#if SONANT_ISA_ID >= SONANT_ID_avx512
  if (panels == 2) {
    switch (rows) {
      case 1:
        return columns<1, 4, W>(p, 0, tile);
      case 2:
        return columns<2, 4, W>(p, 0, tile);
      case 3:
        return columns<3, 4, W>(p, 0, tile);
      case 4:
        return columns<4, 4, W>(p, 0, tile);
      case 5:
        return columns<5, 4, W>(p, 0, tile);
      default:
        return columns<6, 4, W>(p, 0, tile);
    }
  }
#endif
  (void)panels;
  one_panel<W>(rows)(p, tile);
}

}  // namespace

void multiply(const Product& p, int rows, int panels, DType dtype, float* tile) {
  switch (dtype) {
    case DType::f16:
      return multiply_as<WeightF16>(p, rows, panels, tile);
    case DType::bf16:
      return multiply_as<WeightBf16>(p, rows, panels, tile);
    case DType::q8:
      return multiply_q8(p, rows, panels, tile);
    default:
      return multiply_as<WeightF32>(p, rows, panels, tile);
  }
}

void multiply_depthwise(const Product& p, int rows, int64_t width, float* tile) {
  for (int i = 0; i < rows; ++i) {
    const float* x = static_cast<const float*>(p.input) + i * p.step;
    const float* w = static_cast<const float*>(p.weight);
    for (int64_t c = 0; c < width; c += kWidth) {
      const int64_t n = width - c < kWidth ? width - c : kWidth;
      Vec sum = zero();
      for (int64_t k = 0; k < p.taps; ++k) {
        const float *xk = x + k * p.tap_step + c, *wk = w + k * p.weight_tap_step + c;
        sum = n == kWidth ? fma(load(xk), load(wk), sum) : fma(load_n(xk, n), load_n(wk, n), sum);
      }
      store(tile + i * kTile + c, sum);
    }
  }
}

void multiply_few(const Product& p, int rows, int64_t outputs, float* tile) {
  for (int i = 0; i < rows; ++i) {
    for (int64_t n = 0; n < outputs; ++n) {
      Vec even = zero(), odd = zero();
      for (int64_t k = 0; k < p.taps; ++k) {
        const float* x = static_cast<const float*>(p.input) + i * p.step + k * p.tap_step;
        const float* w = static_cast<const float*>(p.weight) + n * p.panel_step + k * p.weight_tap_step;
        int64_t c = 0;
        for (; c + 2 * kWidth <= p.channels; c += 2 * kWidth) {
          even = fma(load(x + c), load(w + c), even);
          odd = fma(load(x + c + kWidth), load(w + c + kWidth), odd);
        }
        for (; c < p.channels; c += kWidth) {
          const int64_t lanes = p.channels - c < kWidth ? p.channels - c : int64_t{kWidth};
          even = fma(load_n(x + c, lanes), load_n(w + c, lanes), even);
        }
      }
      tile[i * kTile + n] = reduce_add(even + odd);
    }
  }
}

void widen(const void* src, DType dtype, int64_t channels, float* dst) {
  if (dtype == DType::q8) return widen_q8(src, channels, dst);
  const auto* w = static_cast<const uint16_t*>(src);
  if (dtype == DType::f16) {
    for (int64_t i = 0; i < channels * kPanel; i += kWidth) store(dst + i, load_f16(w + i));
    return;
  }
  for (int64_t c = 0; c < channels; ++c) {
    const uint16_t* pair = w + (c / 2) * 2 * kPanel;
    for (int j = 0; j < kPanel; j += kWidth) {
      store(dst + c * kPanel + j, WeightBf16::at(pair + 2 * j, static_cast<int>(c % 2)));
    }
  }
}

}  // namespace sonant::SONANT_ISA
