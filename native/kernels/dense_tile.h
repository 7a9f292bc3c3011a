// One thread's share of a dense op: a tile of prologued input rows, and the units of outputs made from it.
#pragma once

#include "dense.h"
#include "dense_round.h"

namespace sonant::SONANT_ISA {

// What run_dense decides once per call. A unit is what one pass of the kernel makes: one or two panels of one group.
struct Layout {
  PackForm form;
  bool bf16_dot;            // bf16_dot: inputs stay in bf16 and meet paired weights
  bool integers, fast_dot;  // integers: of the inputs too (dense_round.h)
  bool matrix;              // the products are made in registers for matrices
  DType dtype;
  int64_t group_channels, group_outputs, group_panels, group_units, units;
  int64_t tap, taps;  // weight elements (bytes for q8) of one tap; taps of the longest phase
  int64_t row;        // floats from one input row to the next in the tile
  int64_t q_begin, q_end, tiles;
  int64_t unit_splits;

  int block_rows(int panels) const { return matrix ? kMatrixRows : rows_at_once(panels); }
};

// Several pieces become as many for every thread: the last one would have the others wait for it.
inline int64_t even_pieces(int64_t pieces, int threads) {
  return pieces > 1 ? ceil_div(pieces, threads) * threads : pieces;
}

// Item `i` of a dense op: a tile, and one of the `unit_splits` parts of its units; at last their sums over time, where
// they are not made before.
template <class AnyTile>
void run_item(AnyTile& tile, int64_t i, int64_t unit_splits, int64_t units, bool sums) {
  const int64_t part = i % unit_splits, first = part * units / unit_splits, last = (part + 1) * units / unit_splits;
  tile.move_to(i / unit_splits);
  for (int64_t unit = first; unit < last; ++unit) tile.unit(unit);
  if (sums) tile.sum(first, last);
}

// Memory that will be wanted soon, brought into the second-level cache a little with every block of rows.
struct Stream {
  const char* at = nullptr;
  int64_t bytes = 0, share = 0;  // what is left, and how much a block takes
  void start(const void* from, int64_t size, int64_t blocks);
  void advance();
};

class Tile {
 public:
  Tile(const Dense& d, const Layout& l) : d_(d), l_(l) {}

  // Loads the input rows of tile `index` (of batch rows times tiles), unless they are there already.
  void move_to(int64_t index);

  // The outputs of one unit for all rows of the tile.
  void unit(int64_t index);

  // Of several phases, the sums over time of the outputs of units [first, last), which are done. Those of one phase are
  // made as soon as its rows fill a block.
  void sum(int64_t first, int64_t last) const;

 private:
  // The outputs of a unit and their weights in one phase.
  struct Unit {
    int64_t output = 0, width = 0;  // first output, and how many
    int64_t channel = 0;            // first input channel
    int panels = 1;
    DType dtype = DType::f32;
    bool widen = false;  // a pass widens its 16-bit weights first, for all its rows
    int64_t passes = 1;  // over the rows, each with a share of the taps (or of the channels, where there is one tap)
    Product product;     // all but the input
  };
  // A pass of a unit: its part of the product, and where its input begins: `taps` further on, at `channel`.
  struct Pass {
    Product product;
    DType dtype;
    int64_t channel, taps, index;
  };

  void fill();
  void fill_narrow(int64_t begin, int64_t end);
  Int8Row row_form() const;
  void phase(int64_t index, int64_t p);
  Unit plain_unit(int64_t index, int64_t p) const;
  Unit dense_unit(int64_t index, int64_t p, int64_t rows) const;
  Pass pass_of(const Unit& u, int64_t index) const;
  void widen_weights(const Unit& u, Pass& pass) const;
  void stream_weights(const Unit& u, const Pass& pass, int64_t blocks);
  void multiply_block(const Unit& u, const Pass& pass, int64_t q, int rows, float* tile) const;
  void multiply_integers(const Pass& pass, const float* base, int rows, int panels, float* tile) const;
  float* at(int64_t row) const { return input_ + (row - low_) * l_.row; }

  const Dense& d_;
  const Layout& l_;
  float* input_ = nullptr;
  Stream next_input_, next_weights_[kMaxPanels];
  int64_t index_ = -1, b_ = 0, q0_ = 0, q1_ = 0, low_ = 0, high_ = 0;  // input rows [low, high)
};

}  // namespace sonant::SONANT_ISA
