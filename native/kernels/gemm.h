// The innermost loops of the dense ops: a few rows times one packed panel of 32 outputs, the whole reduction in
// registers.
//
// Each output has one accumulator that takes taps, then channels, in order. So its bits depend on nothing but its own
// row: not on how many rows are computed together, nor on threads, nor on the width of the weights in memory (f16 and
// bf16 are widened exactly).
#pragma once

#include "../simd/vec.h"
#include "pack.h"

namespace sonant::SONANT_ISA {

// Outputs and rows a kernel takes at once, chosen so that the accumulators fill the register file and each number
// loaded meets as many others as it can. AVX-512 prefers 6 rows of 64 outputs: loading 12 broadcasts for 12 rows of 32
// costs more than the 24 products they feed (measured: 83 % of the peak against 98 %).
#if SONANT_ISA_ID >= SONANT_ID_avx512
constexpr int kMaxPanels = 2, kMaxRows = 12;
#elif SONANT_ISA_ID == SONANT_ID_generic
constexpr int kMaxPanels = 1, kMaxRows = 3;
#else
constexpr int kMaxPanels = 1, kMaxRows = 6;  // of 16 outputs: 12 of 16 registers (AVX2), 24 of 32 (NEON)
#endif
constexpr int kTile = kMaxPanels * static_cast<int>(kPanel);  // floats of a tile's row
constexpr int rows_at_once(int panels) { return kMaxRows / panels; }

constexpr int kMatrixRows = 32;                                    // at once, of those who have registers for matrices
constexpr int64_t kMatrixChannels = 32;                            // of bf16 that such a product sums
constexpr int kTileRows = SONANT_MATRIX ? kMatrixRows : kMaxRows;  // of a tile

struct Product {
  const void* input = nullptr;  // of row 0 and tap 0; f32, or bf16 for multiply_bf16
  int64_t step = 0;             // elements from one output row's input to the next
  int64_t tap_step = 0;         // from one tap to the next
  const void* weight = nullptr;
  int64_t weight_tap_step = 0;
  int64_t panel_step = 0;        // from the first panel to the second, where there are two
  int64_t weight_step = kPanel;  // from one channel to the next (f32 and f16 weights)
  int64_t taps = 1, channels = 0;
  bool resume = false;  // add to what the tile holds: the sums of earlier taps or channels
};

// The same with rows in integers (dense_round.h) and q8 or i8 weights. All steps are in bytes.
struct Int8Product {
  const char* input = nullptr;   // integers of row 0 and tap 0
  int64_t scales = 0, sums = 0;  // from there to the scales and the sums of the same blocks
  int64_t step = 0, tap_step = 0;
  const char* weight = nullptr;
  int64_t weight_tap_step = 0, panel_step = 0;
  int64_t taps = 1, blocks = 0, channels = 0;  // blocks of 32: for q8; channels: for i8
  bool resume = false;
};

// tile [rows][kTile] = the products with `panels` panels; 1 <= rows <= rows_at_once(panels). `dtype` is of the weights.
void multiply(const Product& p, int rows, int panels, DType dtype, float* tile);

// The same for inputs and weights in bf16 (two channels a step), where there is an instruction for it. With registers
// for matrices: up to kMatrixRows rows; those up to the next multiple of 16 are read and written as well.
void multiply_bf16(const Product& p, int rows, int panels, float* tile);

// A row for it: an odd last channel is followed by a zero. Subnormal numbers become zero, which they are to the
// product.
void narrow_bf16(const float* x, int64_t channels, uint16_t* row);

void multiply_q8(const Product& p, int rows, int panels, float* tile);

// A block's products are summed as integers, exactly; blocks, then taps, in f32 in order: sum * (x scale * w scale).
// `fast` takes the instruction for it, which has_fast_dot() must have found; the bits are the same.
void multiply_int8(const Int8Product& p, int rows, int panels, bool fast, float* tile);
bool has_fast_dot();

// The products of a tap are summed as integers, exactly; taps in f32 in order: sum * (x scale * w scale). `fast` as
// above; i8_row_offset(fast) must have been added to the integers of the rows, which take i8_row_bytes(fast) each. With
// registers for matrices: up to kMatrixRows rows; those up to the next multiple of 16 are read as well.
void multiply_i8(const Int8Product& p, int rows, int panels, bool fast, float* tile);
int i8_row_offset(bool fast);
int i8_row_bytes(bool fast);

// Each of `width` <= 32 neighbouring channels with its own weight at each tap.
void multiply_depthwise(const Product& p, int rows, int64_t width, float* tile);

// A few outputs with their weights channel by channel, panel_step apart. The sums are over channels in kWidth lanes,
// even and odd vectors apart, then taps; the lanes are folded at last.
void multiply_few(const Product& p, int rows, int64_t outputs, float* tile);

// One tap of a packed panel widened to f32 [channels][32].
void widen(const void* src, DType dtype, int64_t channels, float* dst);
void widen_q8(const void* src, int64_t channels, float* dst);

}  // namespace sonant::SONANT_ISA
