// Products of rows in integers with i8 weights: the whole reduction of a tap is exact, in integers, and scaled once.
#include "../simd/dot.h"
#include "gemm.h"

#if !SONANT_MATRIX

namespace sonant::SONANT_ISA {
namespace {

constexpr int kPanelVectors = static_cast<int>(kPanel) / kWidth;

// Of vector `j` of the panels, where each output takes `size` bytes; past the first panel they lie panel_step further.
inline const char* place(const char* tap, int64_t panel_step, int column, int j, int size = 4) {
  return tap + (j / kPanelVectors ? panel_step : 0) + size * (column + j % kPanelVectors * kWidth);
}

// Rows of integers in 16 bits (PairRow), where there is no instruction for bytes.
constexpr bool kPairRows = SONANT_ISA_ID == SONANT_ID_avx2;

// Bytes of four integers of a row.
template <bool kFast>
constexpr int kFourBytes = kFast || !kPairRows ? 4 : 8;

// The products of four channels of R rows, `step` bytes apart, with V vectors of outputs.
template <bool kFast, int R, int V>
inline void add_products(const char* x, int64_t step, const IVec (&four)[V], IVec (&sum)[R][V]) {
#if SONANT_ISA_ID == SONANT_ID_avx2
  if constexpr (!kFast) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      IVec pair[V];
#pragma GCC unroll 8
      for (int j = 0; j < V; ++j) pair[j] = half ? PairRow::second_fourth(four[j]) : PairRow::first_third(four[j]);
#pragma GCC unroll 12
      for (int i = 0; i < R; ++i) {
        const PairRow own(x + i * step + 4 * half);
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) sum[i][j] = own.add_products(sum[i][j], pair[j]);
      }
    }
    return;
  }
#endif
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
    const RowOfFour<kFast> own(reinterpret_cast<const int8_t*>(x + i * step));
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) sum[i][j] = own.add_products(sum[i][j], four[j]);
  }
}

// R rows by V vectors of outputs.
template <bool kFast, int R, int V>
void columns(const Int8Product& p, int column, float* tile) {
  const int64_t fours = ceil_div(p.channels, 4), numbers = fours * 4 * kPanel;
  for (int i = 0; p.taps == 0 && !p.resume && i < R; ++i) {  // a phase of a transposed convolution without any
    for (int j = 0; j < V; ++j) store(tile + i * kTile + column + j * kWidth, zero());
  }
  for (int64_t k = 0; k < p.taps; ++k) {
    const char *x = p.input + k * p.tap_step, *w = p.weight + k * p.weight_tap_step;
    IVec sum[R][V];
    for (int j = 0; j < V; ++j) {
      const IVec first = kUnsignedRows<kFast> ? load_bytes(place(w + numbers, p.panel_step, column, j)) : iset1(0);
#pragma GCC unroll 12
      for (int i = 0; i < R; ++i) sum[i][j] = first;
    }
#pragma GCC unroll 1
    for (int64_t n = 0; n < fours; ++n) {
      IVec four[V];
#pragma GCC unroll 8
      for (int j = 0; j < V; ++j) four[j] = load_bytes(place(w + n * 4 * kPanel, p.panel_step, column, j));
      add_products<kFast>(x + n * kFourBytes<kFast>, p.step, four, sum);
    }
    Vec scale[V];
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j)
      scale[j] = from_bits(load_bytes(place(w + numbers + 4 * kPanel, p.panel_step, column, j)));
    const bool adds = p.resume || k > 0;
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) {
      float own;
      std::memcpy(&own, x + i * p.step + p.scales, 4);
#pragma GCC unroll 8
      for (int j = 0; j < V; ++j) {
        float* at = tile + i * kTile + column + j * kWidth;
        store(at, fma(to_float(sum[i][j]), set1(own) * scale[j], adds ? load(at) : zero()));
      }
    }
  }
}

// Vectors of outputs and rows at once, so that the sums fill the registers; one row takes the whole panel.
constexpr int vectors(int rows) {
#if SONANT_ISA_ID >= SONANT_ID_avx512
  return rows > 0 ? kPanelVectors : 0;
#elif SONANT_ISA_ID == SONANT_ID_avx2
  return rows <= 1 ? 4 : 2;
#else
  return rows <= 1 ? kPanelVectors : 4;
#endif
}

// Rows at once. Six rows of bytes are slower than four where there are 16 registers (7 % of Mimi with AVX-VNNI).
template <bool kFast>
constexpr int kRows = (kFast && SONANT_ISA_ID == SONANT_ID_avx2) ? 4 : kMaxRows;

template <bool kFast, int R = 1>
void one_panel(const Int8Product& p, int rows, float* tile) {
  if (rows == R) {
    constexpr int V = vectors(R);
    for (int column = 0; column < kPanel; column += V * kWidth) columns<kFast, R, V>(p, column, tile);
    return;
  }
  if constexpr (R < kRows<kFast>) one_panel<kFast, R + 1>(p, rows, tile);
}

template <bool kFast, int R = 1>
void two_panels(const Int8Product& p, int rows, float* tile) {
  if (rows == R) return columns<kFast, R, 2 * kPanelVectors>(p, 0, tile);
  if constexpr (R < rows_at_once(2)) two_panels<kFast, R + 1>(p, rows, tile);
}

template <bool kFast>
void any(const Int8Product& p, int rows, int panels, float* tile) {
  if constexpr (kMaxPanels == 2) {
    if (panels == 2) return two_panels<kFast>(p, rows, tile);
  }
  const int parts = (rows + kRows<kFast> - 1) / kRows<kFast>;
  for (int i = 0, from = 0; i < parts; ++i) {
    const int to = rows * (i + 1) / parts;
    Int8Product part = p;
    part.input += from * p.step;
    one_panel<kFast>(part, to - from, tile + from * kTile);
    from = to;
  }
}

}  // namespace

void multiply_i8(const Int8Product& p, int rows, int panels, bool fast, float* tile) {
  if (fast) {
    any<true>(p, rows, panels, tile);
  } else {
    any<false>(p, rows, panels, tile);
  }
}

int i8_row_offset(bool fast) { return fast && kUnsignedRows<true> ? 128 : 0; }

int i8_row_bytes(bool fast) { return fast || !kPairRows ? 1 : 2; }

}  // namespace sonant::SONANT_ISA

#endif
