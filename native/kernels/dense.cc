#include "dense.h"

#include "state.h"

namespace sonant::SONANT_ISA {
namespace {

// What run_dense decides once per call.
struct Layout {
  bool depthwise, bf16_dot;  // bf16_dot: inputs stay in bf16 and meet paired weights
  DType dtype;
  int64_t group_channels, group_outputs, group_panels, panels;
  int64_t tap, taps;  // weight elements of one tap; taps of the longest phase
  int64_t row;        // elements from one input row to the next in the tile
  int64_t q_begin, q_end, q_tile, tiles;
  int64_t panel_splits;
};

constexpr int64_t kTileBytes = 512 << 10;       // of a second-level cache of 1 MB and more, beside a panel
constexpr int64_t kDepthwiseBytes = 24 << 10;   // no panel to share the rows with: the first level
constexpr int64_t kWidePanelBytes = 768 << 10;  // larger panels are widened in registers, over and over
constexpr int64_t kSmallWork = 100000;          // multiplications not worth waking a thread for

// Rows a power of two apart would fall on the same few lines of the first-level cache: an odd number of lines instead.
int64_t spread(int64_t channels) {
  if (channels < 64) return ceil_div(channels, 2) * 2;
  const int64_t lines = ceil_div(channels, 16);
  return (lines + 1 - lines % 2) * 16;
}

// Tiles of equal size; panels are split as well where there are too few tiles for the threads.
void split(const Dense& d, int threads, Layout& l) {
  const int64_t count = l.q_end - l.q_begin, halo = (l.taps - 1) * (d.tap_rows < 0 ? -d.tap_rows : d.tap_rows);
  const int64_t row_bytes = d.step * l.row * 4, budget = l.depthwise ? kDepthwiseBytes : kTileBytes;
  int64_t most = (budget - halo * l.row * 4) / row_bytes / kMaxRows * kMaxRows;
  if (most < 2 * kMaxRows) most = 2 * kMaxRows;
  const int64_t least = 4 * kMaxRows + 4 * halo / d.step;  // below it the halo and the weights cost more than balance
  const int64_t wanted = threads == 1 ? 1 : ceil_div(4 * threads, d.batch);
  int64_t pieces = ceil_div(count, most);
  if (pieces < wanted) pieces = count / least < 1 ? pieces : (count / least < wanted ? count / least : wanted);
  if (pieces < ceil_div(count, most)) pieces = ceil_div(count, most);
  l.q_tile = ceil_div(ceil_div(count, pieces), kMaxRows) * kMaxRows;
  l.tiles = ceil_div(count, l.q_tile);
  const int64_t work = d.batch * d.out_rows * d.outputs * d.kernel * l.group_channels;
  const int64_t items = l.tiles * d.batch;
  l.panel_splits = items >= wanted || work < kSmallWork ? 1 : ceil_div(wanted, items);
  if (l.panel_splits > l.panels) l.panel_splits = l.panels;
}

Layout layout_of(const Dense& d, int threads) {
  Layout l;
  l.group_channels = d.channels / d.groups;
  l.group_outputs = d.outputs / d.groups;
  l.depthwise = d.weight.rank == 3 && l.group_channels == 1 && d.outputs == d.groups;
  l.dtype = l.depthwise ? DType::f32 : d.weight.dtype;
  l.group_panels = ceil_div(l.group_outputs, kPanel);
  l.panels = l.depthwise ? ceil_div(d.channels, kPanel) : l.group_panels * d.groups;
  l.tap = l.depthwise ? d.channels : panel_tap_elements(l.group_channels, l.dtype);
  l.bf16_dot = SONANT_ISA_ID == SONANT_ID_avx512bf16 && d.bf16 && l.dtype == DType::bf16;
  l.taps = ceil_div(d.kernel, d.phases);
  l.row = spread(d.channels);
  l.q_begin = d.trim / d.phases;
  l.q_end = ceil_div(d.out_rows + d.trim, d.phases);
  split(d, threads, l);
  return l;
}

// One thread's tile: the input rows of output rows [q0, q1) of one batch row.
class Tile {
 public:
  Tile(const Dense& d, const Layout& l) : d_(d), l_(l) {}

  void move_to(int64_t index) {
    if (index == index_) return;
    index_ = index;
    b_ = index / l_.tiles;
    q0_ = l_.q_begin + index % l_.tiles * l_.q_tile;
    q1_ = q0_ + l_.q_tile < l_.q_end ? q0_ + l_.q_tile : l_.q_end;
    const int64_t reach = (l_.taps - 1) * d_.tap_rows, last = d_.first + (q1_ - 1) * d_.step;
    low_ = d_.first + q0_ * d_.step + (reach < 0 ? reach : 0);
    const int64_t rows = last + (reach > 0 ? reach : 0) + 1 - low_;
    input_ = static_cast<float*>(scratch(0, static_cast<size_t>(rows * l_.row + kPanel) * 4));
    fill(rows);
  }

  void panel(int64_t index) {
    for (int64_t p = 0; p < d_.phases; ++p) phase(index, p);
  }

 private:
  void fill(int64_t rows) {
    const int64_t high = low_ + rows, inside = low_ < 0 ? 0 : low_, end = high < d_.in_rows ? high : d_.in_rows;
    for (int64_t r = low_; r < high && r < inside; ++r) input_row(d_, b_, r, at(r));
    if (end > inside) {
      const int64_t flat = b_ * d_.in_rows + inside;
      apply_prologue(d_.prologue, d_.x + flat * d_.channels, flat, end - inside, d_.channels, at(inside), l_.row);
      if (d_.bf16) {
        for (int64_t r = inside; r < end; ++r) round_row(at(r), d_.channels);
      }
    }
    for (int64_t r = end > inside ? end : inside; r < high; ++r) input_row(d_, b_, r, at(r));
    if (l_.bf16_dot) {
      for (int64_t r = low_; r < high; ++r) narrow_row(at(r));
    }
  }

  // In place: the row's bf16 numbers take the first half of its floats. An odd last channel meets a zero.
  void narrow_row(float* row) {
    auto* to = reinterpret_cast<uint16_t*>(row);
    for (int64_t c = 0; c < d_.channels; ++c) {
      uint32_t b;
      std::memcpy(&b, row + c, 4);
      const auto high = static_cast<uint16_t>(b >> 16);
      std::memcpy(to + c, &high, 2);
    }
    const uint16_t none = 0;
    if (d_.channels % 2) std::memcpy(to + d_.channels, &none, 2);
  }

  void phase(int64_t index, int64_t p) {
    int64_t begin = ceil_div(d_.trim - p > 0 ? d_.trim - p : 0, d_.phases);
    int64_t end = ceil_div(d_.out_rows + d_.trim - p, d_.phases);
    if (begin < q0_) begin = q0_;
    if (end > q1_) end = q1_;
    if (end <= begin) return;
    const int64_t group = l_.depthwise ? 0 : index / l_.group_panels, within = index - group * l_.group_panels;
    const int64_t outputs = l_.depthwise ? d_.channels : l_.group_outputs;
    const int64_t n0 = within * kPanel, width = outputs - n0 < kPanel ? outputs - n0 : kPanel;
    const int64_t blocks = ceil_div(end - begin, kMaxRows);
    DType dtype = l_.dtype;
    Product product = product_of(index, p, group, blocks, &dtype);
    alignas(64) float tile[kMaxRows * kPanel];
    for (int64_t k = 0, q = begin; k < blocks; ++k) {
      const auto rows = static_cast<int>((end - begin) * (k + 1) / blocks - (q - begin));
      Product block = product;
      move(block, d_.first + q * d_.step);
      multiply_block(block, rows, width, dtype, tile);
      const int64_t flat = b_ * d_.out_rows + q * d_.phases + p - d_.trim;
      finish(d_.epilogue, tile, rows, width, flat, d_.phases, group * l_.group_outputs + n0, d_.bias, d_.out,
             d_.outputs);
      q += rows;
    }
  }

  // All of a product that does not depend on the rows; its weights are widened first where many rows will use them.
  Product product_of(int64_t index, int64_t p, int64_t group, int64_t blocks, DType* dtype) {
    Product product;
    const int64_t element = l_.bf16_dot ? 2 : 1;
    product.step = d_.step * l_.row * element;
    product.tap_step = d_.tap_rows * l_.row * element;
    product.taps = d_.kernel > p ? ceil_div(d_.kernel - p, d_.phases) : 0;
    product.channels = l_.group_channels;
    product.weight_tap_step = l_.tap * d_.phases;
    channel_ = l_.depthwise ? index * kPanel : group * l_.group_channels;
    const int64_t offset = l_.depthwise ? index * kPanel + p * l_.tap : (index * d_.kernel + p) * l_.tap;
    product.weight = static_cast<const char*>(d_.weight.data) + offset * dtype_bytes(l_.dtype);
    const int64_t wide = l_.group_channels * kPanel;
    if (*dtype == DType::f32 || l_.bf16_dot || blocks < 4 || product.taps * wide * 4 > kWidePanelBytes) return product;
    auto* widened = static_cast<float*>(scratch(1, static_cast<size_t>(product.taps * wide) * 4));
    for (int64_t j = 0; j < product.taps; ++j) {
      const char* from = static_cast<const char*>(product.weight) + j * product.weight_tap_step * 2;
      widen(from, *dtype, l_.group_channels, widened + j * wide);
    }
    product.weight = widened;
    product.weight_tap_step = wide;
    *dtype = DType::f32;
    return product;
  }

  void move(Product& block, int64_t row) {
    float* base = at(row);
    block.input =
        l_.bf16_dot ? static_cast<const void*>(reinterpret_cast<uint16_t*>(base) + channel_) : base + channel_;
  }

  void multiply_block(const Product& block, int rows, int64_t width, DType dtype, float* tile) {
    if (l_.depthwise) return multiply_depthwise(block, rows, width, tile);
#if SONANT_ISA_ID == SONANT_ID_avx512bf16
    if (l_.bf16_dot) return multiply_bf16(block, rows, tile);
#endif
    multiply(block, rows, dtype, tile);
  }

  static void round_row(float* row, int64_t channels) {
    for (int64_t c = 0; c < channels; c += kWidth) {
      const int64_t n = channels - c < kWidth ? channels - c : int64_t{kWidth};
      store_n(row + c, round_bf16(load_n(row + c, n)), n);
    }
  }

  float* at(int64_t row) { return input_ + (row - low_) * l_.row; }

  const Dense& d_;
  const Layout& l_;
  float* input_ = nullptr;
  int64_t index_ = -1, b_ = 0, q0_ = 0, q1_ = 0, low_ = 0, channel_ = 0;
};

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
  d.slots = d.state ? call.in[3].i32() : nullptr;
  const int n_pro = static_cast<int>(call.integer(first_fused + 2)), n_fused = call.n_in > 4 ? call.n_in - 4 : 0;
  d.prologue = decode(call, call.integer(first_fused), call.in + 4, n_pro, x.dim, x.rank);
  d.epilogue = decode(call, call.integer(first_fused + 1), call.in + 4 + n_pro, n_fused - n_pro, out.dim, out.rank);
  d.bf16 = call.integer(first_fused + 3) == static_cast<int64_t>(Precision::bf16);
  return d;
}

void run_dense(const Dense& d, const Context& context) {
  if (d.out_rows <= 0 || d.batch <= 0) return;
  const Layout l = layout_of(d, context.n_threads);
  const int64_t items = l.tiles * d.batch * l.panel_splits;
  context.for_each(items, 1, [&](int64_t begin, int64_t end) {
    Tile tile(d, l);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t part = i % l.panel_splits;
      tile.move_to(i / l.panel_splits);
      const int64_t last = (part + 1) * l.panels / l.panel_splits;
      for (int64_t panel = part * l.panels / l.panel_splits; panel < last; ++panel) tile.panel(panel);
    }
  });
}

void input_row(const Dense& d, int64_t b, int64_t row, float* dst) {
  if (row >= 0 && row < d.in_rows) {
    const int64_t flat = b * d.in_rows + row;
    apply_prologue(d.prologue, d.x + flat * d.channels, flat, 1, d.channels, dst, d.channels);
    for (int64_t c = 0; d.bf16 && c < d.channels; ++c) dst[c] = from_bf16(to_bf16(dst[c]));
    return;
  }
  const int64_t kept = d.state ? d.state->dim[1] : 0;
  if (row < 0 && row >= -kept) {
    read_state(*d.state, (d.slots[b] * kept + kept + row) * d.channels, d.channels, dst);
  } else {
    std::memset(dst, 0, static_cast<size_t>(d.channels) * 4);
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
