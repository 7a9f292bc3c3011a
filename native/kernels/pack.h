// The packed form of dense weights: panels of 32 outputs, one layout for every instruction set, for one row and for
// many.
//
//   f32, f16  [groups][ceil(N/groups / 32)][K][C/groups][32]             zero padded in N
//   bf16      [groups][ceil(N/groups / 32)][K][ceil(C/groups / 2)][32][2]  pairs along C, zero padded
//   q8        [groups][ceil(N/groups / 32)][K][ceil(C/groups / 32)] blocks of 1088 bytes: int8 [8][32][4], four
//             channels of every output side by side, then the f16 scales [32]; zero padded in N and C
//   i8        [groups][ceil(N/groups / 32)][K] taps: int8 [ceil(C/groups / 4)][32][4] as in q8, zero padded, then for
//             every output -128 times the sum of its integers, i32 [32], and its scale, f32 [32]
//
// Two forms are in f32 whatever the dtype asked for, of numbers that were rounded to it before:
//   depthwise (C/groups == 1 and N == groups)      [K][C]
//   few       (one group of at most three outputs)  [N][K][C]
// linear is [N,C] with K = 1; lstm weights [D,4H,C] are D groups that all read the same C.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../runtime/call.h"

namespace sonant {

enum class PackRole { linear, conv, lstm };
enum class PackForm { panels, few, depthwise };

constexpr int64_t kPanel = 32;
constexpr int64_t kQ8Block = 32;                        // channels
constexpr int64_t kQ8Integers = kQ8Block * kPanel;      // bytes of a block before its scales
constexpr int64_t kQ8Bytes = kQ8Integers + 2 * kPanel;  // of a block of one panel

// Whether a weight is packed in f32 although another dtype is asked for.
bool packed_in_f32(PackRole role, const int64_t* dims, int rank, int64_t groups);

size_t packed_bytes(PackRole role, const int64_t* dims, int rank, int64_t groups, DType dtype);

// src is the plain f32 weight ([N,C], [N,K,C/groups] or [D,4H,C]); dst holds packed_bytes.
void pack(PackRole role, const float* src, const int64_t* dims, int rank, int64_t groups, DType dtype, void* dst);

// Nearest half, ties to even; too large becomes infinity.
uint16_t narrow_f16(float x);

SONANT_INLINE int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The form of the weight of a dense op.
SONANT_INLINE PackForm pack_form(bool convolution, int64_t groups, int64_t outputs, int64_t group_channels) {
  if (convolution && group_channels == 1 && outputs == groups) return PackForm::depthwise;
  return groups == 1 && outputs < 4 ? PackForm::few : PackForm::panels;
}

// Elements (of dtype; bytes for q8 and i8) of one tap of one panel, and the size of an element.
SONANT_INLINE int64_t panel_tap_elements(int64_t channels, DType dtype) {
  if (dtype == DType::q8) return ceil_div(channels, kQ8Block) * kQ8Bytes;
  if (dtype == DType::i8) return (ceil_div(channels, 4) * 4 + 8) * kPanel;
  return dtype == DType::bf16 ? ceil_div(channels, 2) * 2 * kPanel : channels * kPanel;
}
SONANT_INLINE int64_t dtype_bytes(DType dtype) {
  return dtype == DType::q8 || dtype == DType::i8 ? 1 : dtype == DType::f16 || dtype == DType::bf16 ? 2 : 4;
}

}  // namespace sonant
