// Products with q8 weights: of floats with the weights widened exactly, and of integers with integers.
#include "../runtime/platform.h"
#include "../simd/dot.h"
#include "gemm.h"

namespace sonant::SONANT_ISA {
namespace {

constexpr int kPanelVectors = static_cast<int>(kPanel) / kWidth;
constexpr int64_t kAhead = 4 * kQ8Bytes;
// Sums of integers with a total of floats each that fit the registers.
constexpr int kSums = SONANT_ISA_ID >= SONANT_ID_avx512 ? 12 : 4;
constexpr int kFours = static_cast<int>(kQ8Block) / 4;  // of channels in a block

// Where the integers of vector `j` begin in a block of the panels; vectors past the first panel lie panel_step further.
inline const char* place(const char* block, int64_t panel_step, int column, int j) {
  return block + (j / kPanelVectors ? panel_step : 0) + 4 * (column + j % kPanelVectors * kWidth);
}

inline Vec scales_of(const char* block, int64_t panel_step, int column, int j) {
  uint16_t scale[kWidth];
  const int64_t at = (j / kPanelVectors ? panel_step : 0) + kQ8Integers;
  std::memcpy(scale, block + at + 2 * (column + j % kPanelVectors * kWidth), sizeof scale);
  return load_f16(scale);
}

// --- floats
// ----------------------------------------------------------------------------------------------------------- Byte k of
// every lane as a float, times 2^24.
template <int k>
inline Vec byte_of(IVec w) {
  const IVec top = k == 0 ? w << 24 : (k == 3 ? w : w << (24 - 8 * k)) & iset1(static_cast<int32_t>(0xFF000000u));
  return to_float(top);
}

// A scale that takes the 2^24 off; the product with the byte is exact, and so is this one.
inline Vec wide_scale(Vec scale) { return scale * set1(5.9604644775390625e-08f); }

template <int k, int R, int V>
inline __attribute__((always_inline)) void step(const float* x, int64_t row, const IVec (&w)[V], const Vec (&scale)[V],
                                                Vec (&sum)[R][V]) {
  Vec b[V];
#pragma GCC unroll 8
  for (int j = 0; j < V; ++j) b[j] = byte_of<k>(w[j]) * scale[j];
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
    const Vec a = set1(x[i * row]);
#pragma GCC unroll 8
    for (int j = 0; j < V; ++j) sum[i][j] = fma(a, b[j], sum[i][j]);
  }
}

template <int R, int V>
void float_columns(const Product& p, int column, float* tile) {
  Vec sum[R][V];
  for (int i = 0; i < R; ++i) {
    for (int j = 0; j < V; ++j) sum[i][j] = p.resume ? load(tile + i * kTile + column + j * kWidth) : zero();
  }
  const int64_t row = p.step;
  for (int64_t k = 0; k < p.taps; ++k) {
    const float* x = static_cast<const float*>(p.input) + k * p.tap_step;
    const char* block = static_cast<const char*>(p.weight) + k * p.weight_tap_step;
    for (int64_t c = 0; c < p.channels; c += kQ8Block, block += kQ8Bytes) {
      Vec scale[V];
      for (int j = 0; j < V; ++j) scale[j] = wide_scale(scales_of(block, p.panel_step, column, j));
      const int64_t count = p.channels - c < kQ8Block ? p.channels - c : kQ8Block;
      for (int64_t n = 0; n < count; n += 4, x += 4) {
        IVec w[V];
        for (int j = 0; j < V; ++j) w[j] = load_bytes(place(block + n * kPanel, p.panel_step, column, j));
        step<0, R, V>(x, row, w, scale, sum);
        if (n + 1 < count) step<1, R, V>(x + 1, row, w, scale, sum);
        if (n + 2 < count) step<2, R, V>(x + 2, row, w, scale, sum);
        if (n + 3 < count) step<3, R, V>(x + 3, row, w, scale, sum);
      }
    }
  }
  for (int i = 0; i < R; ++i) {
    for (int j = 0; j < V; ++j) store(tile + i * kTile + column + j * kWidth, sum[i][j]);
  }
}

// --- integers
// --------------------------------------------------------------------------------------------------------- R rows by V
// vectors of outputs. The sums over blocks are in registers where there are few, else in the tile.
template <bool kFast, int R, int V>
void int8_columns(const Int8Product& p, int column, float* tile) {
  constexpr bool kInRegisters = R * V <= kSums;
  Vec total[R][V];
  if (kInRegisters || !p.resume) {
    for (int i = 0; i < R; ++i) {
      for (int j = 0; j < V; ++j) {
        float* at = tile + i * kTile + column + j * kWidth;
        total[i][j] = p.resume ? load(at) : zero();
        if (!kInRegisters) store(at, total[i][j]);
      }
    }
  }
  for (int64_t k = 0; k < p.taps; ++k) {
    const char* x = p.input + k * p.tap_step;
    const char* block = p.weight + k * p.weight_tap_step;
    for (int64_t b = 0; b < p.blocks; ++b, block += kQ8Bytes) {
      IVec sum[R][V];
#pragma GCC unroll 12
      for (int i = 0; i < R; ++i) {
        int32_t t = 0;
        if (kFast) std::memcpy(&t, x + i * p.step + p.sums + 4 * b, 4);
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) sum[i][j] = iset1(first_sum<kFast>(t));
      }
#pragma GCC unroll 1
      for (int n = 0; n < kFours; ++n) {
        if (R * V <= 4) {  // few rows: the weights come from memory, faster than they are fetched unasked
          __builtin_prefetch(block + kAhead + n * 4 * kPanel, 0, 3);
          __builtin_prefetch(block + kAhead + n * 4 * kPanel + 64, 0, 3);
        }
        IVec w[V];
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j)
          w[j] = ready<kFast>(load_bytes(place(block + n * 4 * kPanel, p.panel_step, column, j)));
#pragma GCC unroll 12
        for (int i = 0; i < R; ++i) {
          const DotRow<kFast> four(reinterpret_cast<const int8_t*>(x + i * p.step + kQ8Block * b + 4 * n));
#pragma GCC unroll 8
          for (int j = 0; j < V; ++j) sum[i][j] = four.add_products(sum[i][j], w[j]);
        }
      }
      Vec scale[V];
#pragma GCC unroll 8
      for (int j = 0; j < V; ++j) scale[j] = scales_of(block, p.panel_step, column, j);
#pragma GCC unroll 12
      for (int i = 0; i < R; ++i) {
        float own;
        std::memcpy(&own, x + i * p.step + p.scales + 4 * b, 4);
#pragma GCC unroll 8
        for (int j = 0; j < V; ++j) {
          float* at = tile + i * kTile + column + j * kWidth;
          const Vec factor = set1(own) * scale[j];
          if (kInRegisters) {
            total[i][j] = fma(to_float(sum[i][j]), factor, total[i][j]);
          } else {
            store(at, fma(to_float(sum[i][j]), factor, load(at)));
          }
        }
      }
    }
  }
  if (!kInRegisters) return;
  for (int i = 0; i < R; ++i) {
    for (int j = 0; j < V; ++j) store(tile + i * kTile + column + j * kWidth, total[i][j]);
  }
}

// --- which kernel
// ----------------------------------------------------------------------------------------------------- Vectors of
// outputs that meet R rows at once: one row takes the whole panel, so that its weights stream in order.
constexpr int float_vectors(int rows) {
#if SONANT_ISA_ID >= SONANT_ID_avx512
  return rows > 0 ? 2 : 0;
#elif SONANT_ISA_ID == SONANT_ID_avx2
  return rows <= 1 ? 4 : 2;
#else
  return rows <= 1 ? 8 : 4;
#endif
}
constexpr int int8_vectors(int rows) { return float_vectors(rows); }

// Rows that one integer kernel takes: with 16 registers the sums of more would not stay in them.
constexpr int kInt8Rows = SONANT_ISA_ID == SONANT_ID_avx2 ? 4 : SONANT_ISA_ID >= SONANT_ID_avx512 ? 6 : kMaxRows;

template <int R>
void float_panel(const Product& p, float* tile) {
  constexpr int V = float_vectors(R);
  for (int column = 0; column < kPanel; column += V * kWidth) float_columns<R, V>(p, column, tile);
}

template <bool kFast, int R>
void int8_panel(const Int8Product& p, float* tile) {
  constexpr int V = int8_vectors(R);
  for (int column = 0; column < kPanel; column += V * kWidth) int8_columns<kFast, R, V>(p, column, tile);
}

template <int R = 1>
void float_rows(const Product& p, int rows, float* tile) {
  if (rows == R) return float_panel<R>(p, tile);
  if constexpr (R < kMaxRows) float_rows<R + 1>(p, rows, tile);
}

template <bool kFast, int R = 1>
void int8_rows(const Int8Product& p, int rows, float* tile) {
  if (rows == R) return int8_panel<kFast, R>(p, tile);
  if constexpr (R < kInt8Rows) int8_rows<kFast, R + 1>(p, rows, tile);
}

#if SONANT_ISA_ID >= SONANT_ID_avx512

template <int R = 1>
void float_rows_wide(const Product& p, int rows, float* tile) {
  if (rows == R) return float_columns<R, 4>(p, 0, tile);
  if constexpr (R < rows_at_once(2)) float_rows_wide<R + 1>(p, rows, tile);
}

template <bool kFast, int R = 1>
void int8_rows_wide(const Int8Product& p, int rows, float* tile) {
  if (rows == R) return int8_columns<kFast, R, 4>(p, 0, tile);
  if constexpr (R < kInt8Rows / 2) int8_rows_wide<kFast, R + 1>(p, rows, tile);
}

#endif

template <bool kFast>
void int8_any(const Int8Product& p, int rows, int panels, float* tile) {
  if (panels == 2 && rows == 1) {  // its weights come from memory, best in one stream
    Int8Product second = p;
    second.weight += p.panel_step;
    int8_panel<kFast, 1>(p, tile);
    return int8_panel<kFast, 1>(second, tile + kPanel);
  }
  const int most = kInt8Rows / panels, parts = (rows + most - 1) / most;
  for (int i = 0, from = 0; i < parts; ++i) {
    const int to = rows * (i + 1) / parts;
    Int8Product part = p;
    part.input += from * p.step;
#if SONANT_ISA_ID >= SONANT_ID_avx512
    if (panels == 2) {
      int8_rows_wide<kFast>(part, to - from, tile + from * kTile);
    } else {
      int8_rows<kFast>(part, to - from, tile + from * kTile);
    }
#else
    int8_rows<kFast>(part, to - from, tile + from * kTile);
#endif
    from = to;
  }
}

bool machine_has_fast_dot() {
  const CpuFeatures& cpu = cpu_features();
  return SONANT_ISA_ID >= SONANT_ID_avx512 ? cpu.avx512_vnni
         : SONANT_ISA_ID == SONANT_ID_avx2 ? cpu.avx_vnni
         : SONANT_ISA_ID == SONANT_ID_neon ? cpu.neon_dot
                                           : false;
}

}  // namespace

bool has_fast_dot() {
  static const bool found = machine_has_fast_dot();
  return found;
}

void multiply_q8(const Product& p, int rows, int panels, float* tile) {
#if SONANT_ISA_ID >= SONANT_ID_avx512
  if (panels == 2) return float_rows_wide(p, rows, tile);
#endif
  (void)panels;
  float_rows(p, rows, tile);
}

void multiply_int8(const Int8Product& p, int rows, int panels, bool fast, float* tile) {
  if (fast) {
    int8_any<true>(p, rows, panels, tile);
  } else {
    int8_any<false>(p, rows, panels, tile);
  }
}

void widen_q8(const void* src, int64_t channels, float* dst) {
  const auto* block = static_cast<const char*>(src);
  for (int64_t c = 0; c < channels; c += kQ8Block, block += kQ8Bytes) {
    const int64_t count = channels - c < kQ8Block ? channels - c : kQ8Block;
    for (int column = 0; column < kPanel; column += kWidth) {
      const Vec scale = wide_scale(scales_of(block, 0, column, 0));
      float* to = dst + c * kPanel + column;
      for (int64_t n = 0; n < count; n += 4, to += 4 * kPanel) {
        const IVec w = load_bytes(place(block + n * kPanel, 0, column, 0));
        store(to, byte_of<0>(w) * scale);
        if (n + 1 < count) store(to + kPanel, byte_of<1>(w) * scale);
        if (n + 2 < count) store(to + 2 * kPanel, byte_of<2>(w) * scale);
        if (n + 3 < count) store(to + 3 * kPanel, byte_of<3>(w) * scale);
      }
    }
  }
}

}  // namespace sonant::SONANT_ISA
