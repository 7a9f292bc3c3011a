// Prologues and epilogues of the dense ops: step lists decoded for one call, applied to rows of x or to tiles of
// results.
//
// The lists that matter have loops of their own (see Pattern and finish); any other is evaluated step by step on one
// vector at a time.
#pragma once

#include "../runtime/call.h"
#include "../runtime/opset.gen.h"
#include "../simd/math.h"

namespace sonant::SONANT_ISA {

// An operand broadcast against a subject [..., channels]: one pointer per row of the subject.
struct Operand {
  const float* data;
  int64_t channel_step;  // 1, or 0: one number for all channels
  int64_t row_step;      // in elements, or -1: by the axes below
  int n_axes;
  int64_t size[kMaxRank], stride[kMaxRank];

  const float* row(int64_t flat) const;
  Vec at(const float* row, int64_t c, int64_t n) const {
    if (channel_step == 0) return set1(row[0]);
    return n == kWidth ? load(row + c) : load_n(row + c, n);
  }
};

struct Argument {
  int reg;  // -1: the literal
  float literal;
};

struct Step {
  Op op;
  Argument arg[3];
};

struct Fused {
  static constexpr int kMost = 16;
  enum class Pattern { none, affine, affine_leaky, affine_snake, leaky, snake, chain, general };

  Pattern pattern = Pattern::none;
  int n = 0, n_operands = 0;
  // Operands are left as they are until they are used: there is a list for every call.
  Step step[kMost] = {};
  Operand operand[kMost];  // register 1 is operand[0]

  Fused() {}
};

// The step list of attribute `steps` with its n operands, for a subject of the given shape.
Fused decode(const Call& call, int64_t steps, const Tensor* operands, int n, const int64_t* shape, int rank);

// dst[i] = the prologue of x[i], for `rows` rows of `channels` numbers; row 0 is row `flat` of the subject.
void apply_prologue(const Fused& f, const float* x, int64_t flat, int64_t rows, int64_t channels, float* dst,
                    int64_t dst_step);

// Starts bringing in what finish will touch for the same tile.
void prefetch(const Fused& f, int rows, int64_t width, int64_t flat, int64_t flat_step, int64_t c, const float* out,
              int64_t channels);

// The epilogue on `width` columns of tile [rows][kTile], whose row i is row flat + i * flat_step of the subject and
// whose first column is channel c; then out[row] = the tile. bias may be null. Reads every operand element before it
// writes the same element of out, so that an operand may be the output itself.
void finish(const Fused& f, float* tile, int rows, int64_t width, int64_t flat, int64_t flat_step, int64_t c,
            const float* bias, float* out, int64_t channels);

}  // namespace sonant::SONANT_ISA
