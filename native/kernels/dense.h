// What linear, conv1d and conv_transpose1d share: rows of a padded, prologued input times packed panels.
//
// A convolution is one phase: output row q reads input rows first + q*step + j*tap_rows. A transposed convolution of
// stride s is s phases: phase p makes the output rows u = q*s + p from input rows q - j with taps k = p + j*s, and
// output row o = u - trim.
#pragma once

#include "dense_sums.h"
#include "fused.h"
#include "gemm.h"

namespace sonant::SONANT_ISA {

struct Dense {
  const float* x = nullptr;
  int64_t batch = 1, in_rows = 0, channels = 0;
  Tensor weight;
  const float* bias = nullptr;
  float* out = nullptr;
  int64_t out_rows = 0, outputs = 0, kernel = 1, groups = 1;
  GrowingSums sums;  // of out, where they are wanted

  int64_t first = 0, step = 1, tap_rows = 1;
  int64_t phases = 1, trim = 0;

  const Tensor* state = nullptr;  // context [slots, rows, channels]: the input rows before x
  const int32_t* slots = nullptr;

  Fused prologue, epilogue;
  Precision precision = Precision::f32;  // of the prologued input
};

// All of conv1d or conv_transpose1d but the geometry; `first_fused` is the position of the attribute prologue, which
// epilogue, n_pro and precision follow.
Dense convolution(const Call& call, const Context& context, int64_t groups, int64_t state, int first_fused);

void run_dense(const Dense& d, const Context& context);

// The channels of one input row (any integer) after the prologue, rounded as the precision says, from x, the state, or
// zero outside both.
void input_row(const Dense& d, int64_t b, int64_t row, float* dst);

// Rounds one prologued row as the precision says.
void round_row(const Dense& d, float* row);

// Moves the last rows of state and x into the state; after every reader of the state is done.
void keep_context(const Dense& d);

}  // namespace sonant::SONANT_ISA
