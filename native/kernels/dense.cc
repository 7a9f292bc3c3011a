#include "dense.h"

#include <optional>

#include "../simd/matrix.h"
#include "dense_round.h"
#include "dense_tile.h"
#include "dense_winograd.h"
#include "state.h"

namespace sonant::SONANT_ISA {
namespace {

// A tile and the weights of a unit share a second-level cache of 1 MB and more. Weights that all fit leave less to gain
// from a large tile than x, residuals and results gain from room to stream through.
constexpr int64_t kTileBytes = 512 << 10, kStreamingTileBytes = 256 << 10, kFewWeightBytes = 448 << 10;
constexpr int64_t kIntegerTileBytes = 128 << 10;  // many rows already: more leave no room for results and residuals
constexpr int64_t kDepthwiseBytes = 24 << 10;     // no weights to share the rows with: the first level
constexpr int64_t kSmallWork = 100000;            // multiplications not worth waking a thread for

// Rows a power of two apart would fall on the same few lines of the first-level cache: an odd number of lines instead.
int64_t spread(int64_t channels) {
  if (channels < 64) return ceil_div(channels, 2) * 2;
  return (ceil_div(channels, 16) | 1) * 16;
}

bool by_integers(Precision p) { return p == Precision::int8 || p == Precision::int8_row; }

// Tiles of equal size, as many for every thread; units are split as well where there are too few tiles for the threads.
void split(const Dense& d, int threads, Layout& l) {
  const int64_t count = l.q_end - l.q_begin, halo = (l.taps - 1) * (d.tap_rows < 0 ? -d.tap_rows : d.tap_rows);
  const int64_t row_bytes = d.step * l.row * 4, weight_bytes = d.outputs * d.kernel * l.group_channels * 4;
  const int64_t dense = weight_bytes <= kFewWeightBytes ? kStreamingTileBytes : kTileBytes;
  const int64_t budget = l.form == PackForm::depthwise ? kDepthwiseBytes : l.integers ? kIntegerTileBytes : dense;
  const int64_t block = l.matrix ? kMatrixRows : kMaxRows;
  int64_t most = (budget - halo * l.row * 4) / row_bytes / block * block;
  const int64_t fewest = (l.form == PackForm::depthwise ? 1 : 4) * block;
  if (most < fewest) most = fewest;
  const int64_t least = 8 * block + 4 * halo / d.step;  // below it the halo and the weights cost more than balance
  const int64_t work = d.batch * d.out_rows * d.outputs * d.kernel * l.group_channels;
  const bool alone = threads == 1 || work < kSmallWork;
  const int64_t wanted = alone ? 1 : ceil_div(4 * threads, d.batch);
  int64_t pieces = count / least < wanted ? count / least : wanted;
  if (pieces < ceil_div(count, most)) pieces = ceil_div(count, most);
  l.tiles = alone ? pieces : even_pieces(pieces, threads);
  const int64_t items = l.tiles * d.batch;
  const int64_t parts = 2 * threads;  // each part of the units prologues the tile again: fewer than tiles
  l.unit_splits = alone || items >= parts ? 1 : ceil_div(parts, items);
  if (l.unit_splits > l.units) l.unit_splits = l.units;
}

Layout layout_of(const Dense& d, int threads) {
  Layout l;
  l.group_channels = d.channels / d.groups;
  l.group_outputs = d.outputs / d.groups;
  l.form = pack_form(d.weight.rank == 3, d.groups, d.outputs, l.group_channels);
  l.dtype = l.form == PackForm::panels ? d.weight.dtype : DType::f32;
  l.group_panels = ceil_div(l.group_outputs, kPanel);
  l.group_units = ceil_div(l.group_panels, kMaxPanels);
  l.units = l.form == PackForm::depthwise ? ceil_div(d.channels, kPanel) : l.group_units * d.groups;
  l.tap = l.form == PackForm::panels ? panel_tap_elements(l.group_channels, l.dtype) : d.channels;
  l.bf16_dot = SONANT_BF16 && d.precision == Precision::bf16 && l.dtype == DType::bf16;
  l.integers = by_integers(d.precision) && l.form == PackForm::panels;
  if (l.integers && l.dtype != (d.precision == Precision::int8 ? DType::q8 : DType::i8)) {
    refuse("a dense op of precision int8 wants q8 weights, one of int8_row i8 weights");
  }
  l.fast_dot = l.integers && has_fast_dot();
  l.matrix = SONANT_MATRIX && (l.bf16_dot || (l.integers && l.dtype == DType::i8));
  l.taps = ceil_div(d.kernel, d.phases);
  const int width = l.dtype == DType::i8 ? i8_row_bytes(l.fast_dot) : 1;
  l.row = spread(l.integers   ? ceil_div(Int8Row(d.precision, d.groups, l.group_channels, 0, width).bytes(), 4)
                 : l.bf16_dot ? ceil_div(d.channels, 2)
                              : d.channels);
  l.q_begin = d.trim / d.phases;
  l.q_end = ceil_div(d.out_rows + d.trim, d.phases);
  split(d, threads, l);
  return l;
}

}  // namespace

Dense convolution(const Call& call, const Context& context, int64_t groups, int64_t state, int first_fused) {
  const Tensor &x = call.in[0], &w = call.in[1], &out = call.out[0];
  Dense d;
  d.x = x.f32();
  d.batch = x.dim[0];
  d.in_rows = x.dim[1];
  d.channels = x.dim[2];
  d.weight = w;
  d.bias = call.has(2) ? call.in[2].f32() : nullptr;
  d.out = out.f32();
  d.out_rows = out.dim[1];
  d.outputs = w.dim[0];
  d.kernel = w.dim[1];
  d.groups = groups;
  d.state = state_of(context, state);
  d.slots = d.state ? slots_of(call.in[3], *d.state, "a convolution") : nullptr;
  const int n_pro = static_cast<int>(call.integer(first_fused + 2)), n_fused = call.n_in > 4 ? call.n_in - 4 : 0;
  d.prologue = decode(call, call.integer(first_fused), call.in + 4, n_pro, x.dim, x.rank);
  d.epilogue = decode(call, call.integer(first_fused + 1), call.in + 4 + n_pro, n_fused - n_pro, out.dim, out.rank);
  d.precision = static_cast<Precision>(call.integer(first_fused + 3));
  if (call.n_out > 1) {
    check_sums(call.out[1], d.batch, d.out_rows, d.outputs, "a convolution");
    d.sums = GrowingSums(d.out, call.out[1].f32(), d.out_rows, d.outputs);
  }
  return d;
}

void run_dense(const Dense& d, const Context& context) {
  if (d.out_rows <= 0 || d.batch <= 0) return;
  if (d.sums) d.sums.start(d.batch);
  if (by_winograd(d)) return run_winograd(d, context);
  const Layout l = layout_of(d, context.n_threads);
  const int64_t items = l.tiles * d.batch * l.unit_splits;
  context.for_each(items, 1, [&](int64_t begin, int64_t end) {
#if SONANT_MATRIX
    std::optional<MatrixRegisters> registers;
    if (l.matrix) registers.emplace();
#endif
    Tile tile(d, l);
    for (int64_t i = begin; i < end; ++i) run_item(tile, i, l.unit_splits, l.units, d.sums && d.phases > 1);
  });
}

void input_row(const Dense& d, int64_t b, int64_t row, float* dst) {
  if (row >= 0 && row < d.in_rows) {
    const int64_t flat = b * d.in_rows + row;
    apply_prologue(d.prologue, d.x + flat * d.channels, flat, 1, d.channels, dst, d.channels);
    return round_row(d, dst);
  }
  const int64_t kept = d.state ? d.state->dim[1] : 0;
  if (row < 0 && row >= -kept) {
    read_state(*d.state, (d.slots[b] * kept + kept + row) * d.channels, d.channels, dst);
  } else {
    std::memset(dst, 0, static_cast<size_t>(d.channels) * 4);
  }
}

void round_row(const Dense& d, float* row) {
  if (by_integers(d.precision)) return round_int8({d.precision, d.groups, d.channels / d.groups}, row);
  if (d.precision != Precision::bf16) return;
  for (int64_t c = 0; c < d.channels; c += kWidth) {
    const int64_t n = d.channels - c < kWidth ? d.channels - c : int64_t{kWidth};
    store_n(row + c, round_bf16(load_n(row + c, n)), n);
  }
}

void keep_context(const Dense& d) {
  if (!d.state) return;
  const int64_t kept = d.state->dim[1];
  auto* row = static_cast<float*>(scratch(0, static_cast<size_t>(d.channels) * 4));
  for (int64_t b = 0; b < d.batch; ++b) {
    for (int64_t i = 0; i < kept; ++i) {  // upwards: each row comes from a later one
      input_row(d, b, d.in_rows - kept + i, row);
      write_state(*d.state, (d.slots[b] * kept + i) * d.channels, d.channels, row);
    }
  }
}

}  // namespace sonant::SONANT_ISA
