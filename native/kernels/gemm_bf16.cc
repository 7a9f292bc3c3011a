// The product of bf16 inputs and paired bf16 weights, for processors that have the instruction.
#include "gemm.h"

#if SONANT_ISA_ID >= SONANT_ID_avx512bf16

namespace sonant::SONANT_ISA {

#if !SONANT_MATRIX
namespace {

// R rows by V vectors of 16 outputs, two channels a step. An odd last channel of the input is followed by a zero, and
// so is that of the weights.
template <int R, int V>
void columns(const Product& p, float* tile) {
  __m512 sum[R][V];
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) sum[i][j] = p.resume ? _mm512_loadu_ps(tile + i * kTile + 16 * j) : _mm512_setzero_ps();
  }
  const int64_t row = p.step, channels = p.channels, panel_step = p.panel_step;
  for (int64_t k = 0; k < p.taps; ++k) {
    const uint16_t* x = static_cast<const uint16_t*>(p.input) + k * p.tap_step;
    const uint16_t* w = static_cast<const uint16_t*>(p.weight) + k * p.weight_tap_step;
    for (int64_t c = 0; c < channels; c += 2, w += 2 * kPanel) {
      __m512bh b[V];
#pragma GCC unroll 4
      for (int j = 0; j < V; ++j) b[j] = (__m512bh)_mm512_loadu_si512(w + (j / 2 ? panel_step : 0) + j % 2 * kPanel);
#pragma GCC unroll 12
      for (int i = 0; i < R; ++i) {
        int32_t pair;
        std::memcpy(&pair, x + i * row + c, 4);
        const auto a = (__m512bh)_mm512_set1_epi32(pair);
#pragma GCC unroll 4
        for (int j = 0; j < V; ++j) sum[i][j] = _mm512_dpbf16_ps(sum[i][j], a, b[j]);
      }
    }
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < V; ++j) _mm512_storeu_ps(tile + i * kTile + 16 * j, sum[i][j]);
  }
}

}  // namespace

void multiply_bf16(const Product& p, int rows, int panels, float* tile) {
  using Kernel = void (*)(const Product&, float*);
  static constexpr Kernel kOne[] = {columns<1, 2>, columns<2, 2>,  columns<3, 2>,  columns<4, 2>,
                                    columns<5, 2>, columns<6, 2>,  columns<7, 2>,  columns<8, 2>,
                                    columns<9, 2>, columns<10, 2>, columns<11, 2>, columns<12, 2>};
  static constexpr Kernel kTwo[] = {columns<1, 4>, columns<2, 4>, columns<3, 4>,
                                    columns<4, 4>, columns<5, 4>, columns<6, 4>};
  (panels == 2 ? kTwo : kOne)[rows - 1](p, tile);
}
#endif

void narrow_bf16(const float* x, int64_t channels, uint16_t* row) {
  int64_t c = 0;
  for (; c + 32 <= channels; c += 32) {
    const __m512bh both = _mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + c + 16), _mm512_loadu_ps(x + c));
    _mm512_storeu_si512(row + c, (__m512i)both);
  }
  for (; c < channels; c += kWidth) {
    const int64_t n = channels - c < kWidth ? channels - c : int64_t{kWidth};
    const __m256bh narrow = _mm512_cvtneps_pbh(load_n(x + c, n).v);
    _mm256_mask_storeu_epi16(row + c, lanes(ceil_div(n, 2) * 2), (__m256i)narrow);
  }
}

}  // namespace sonant::SONANT_ISA

#endif
