// Convolutions of stride one, two output rows at a time with fewer products (Winograd's F(2,3), nested).
//
// The rows of a pair are one dilation apart. With x0 to x3 the prologued rows at the first tap of the pair and 1, 2, 3
// dilations on, three taps give both rows by four products instead of six:
//
//   s0 = (x0 - x2) g0,  s1 = (x1 + x2) (g0 + g2 + g1) / 2,  s2 = (x2 - x1) (g0 + g2 - g1) / 2,  s3 = (x1 - x3) g2
//   y0 = s0 + s1 + s2,  y1 = s1 - s2 - s3
//
// A longer kernel is groups of two taps (g2 = 0, so no s3) and a last one of three. Each group begins two dilations
// further on, which is the next pair: so each of the four sums is itself a convolution over pairs, of transformed rows
// and weights. Pairs are counted from the first output row, so a row's bits depend on the shapes alone.
#include "dense_pairs.h"

#include "dense_tile.h"

namespace sonant::SONANT_ISA {
namespace {

constexpr int64_t kTileBytes = 256 << 10;    // of transformed rows: a pass reads one of the four kinds only
constexpr int64_t kWeightBytes = 448 << 10;  // of a unit: more are taken sum by sum, each over all rows
constexpr int64_t kFloatsAtOnce = 4096;      // of prologued rows on their way there
constexpr int64_t kFewestRows = 256;         // fewer would not repay the transformed weights
constexpr int kSums = 4;

// What run_pairs decides once per call. A block is 2 * dilation output rows: the first rows of its pairs, then their
// second rows.
struct Pairs {
  int64_t dilation, groups, block_rows;
  int64_t row;                         // floats of the four transformed rows of a pair
  int64_t tap, panel;                  // floats of transformed weights
  int64_t blocks, tile_blocks, tiles;  // of one batch row
  int64_t units, unit_splits;
  const float* weights;
};

Pairs layout_of(const Dense& d, int threads) {
  Pairs l;
  l.dilation = d.tap_rows, l.groups = (d.kernel - 1) / 2, l.block_rows = 2 * d.tap_rows;
  l.row = (ceil_div(kSums * d.channels, 16) | 1) * 16;  // an odd number of cache lines
  l.tap = d.channels * kPanel;
  l.panel = (3 * l.groups + 1) * l.tap;
  l.blocks = ceil_div(d.out_rows, l.block_rows);
  l.units = ceil_div(d.outputs, kTile);
  constexpr int kRows = rows_at_once(kMaxPanels);
  const int64_t fewest = 4 * kRows, halo = l.groups;
  int64_t most = kTileBytes / (l.dilation * l.row * 4);
  if (most < fewest) most = fewest;
  const int64_t wanted = threads == 1 ? 1 : ceil_div(4 * threads, d.batch), least = 4 * (halo + kRows);
  int64_t pieces = l.blocks / least < wanted ? l.blocks / least : wanted;
  if (pieces < ceil_div(l.blocks, most)) pieces = ceil_div(l.blocks, most);
  l.tiles = even_pieces(pieces, threads);
  l.tile_blocks = ceil_div(l.blocks, l.tiles);
  const int64_t items = l.tiles * d.batch, parts = 2 * threads;
  l.unit_splits = threads == 1 || items >= parts ? 1 : ceil_div(parts, items);
  if (l.unit_splits > l.units) l.unit_splits = l.units;
  l.weights = nullptr;
  return l;
}

// One panel: the weights of s0, s1 and s2 for every group, then those of s3.
void transform_weights(const Dense& d, const Pairs& l, int64_t panel, float* to) {
  const int64_t tap = panel_tap_elements(d.channels, d.weight.dtype) * dtype_bytes(d.weight.dtype);
  const char* from = static_cast<const char*>(d.weight.data) + panel * d.kernel * tap;
  const auto weights = [&](int64_t k) { return reinterpret_cast<const float*>(from + k * tap); };
  for (int64_t g = 0; g < l.groups; ++g, to += l.tap) {
    const float *g0 = weights(2 * g), *g1 = weights(2 * g + 1), *g2 = weights(2 * g + 2);
    const bool last = g + 1 == l.groups;
    const Vec half = set1(0.5f);
    for (int64_t i = 0; i < l.tap; i += kWidth) {
      const Vec a = load(g0 + i), b = load(g1 + i), c = last ? load(g2 + i) : zero();
      store(to + i, a);
      store(to + l.groups * l.tap + i, ((a + c) + b) * half);
      store(to + 2 * l.groups * l.tap + i, ((a + c) - b) * half);
      if (last) store(to + (2 * l.groups + 1) * l.tap + i, c);
    }
  }
}

// One thread's share: a tile of transformed rows, and the units of outputs made from it.
class PairTile {
 public:
  PairTile(const Dense& d, const Pairs& l) : d_(d), l_(l) {
    const int64_t some = kFloatsAtOnce / (l.block_rows * d.channels);
    some_ = some > 0 ? some : 1;
    const int64_t tile = (l.tile_blocks + l.groups - 1) * l.dilation * l.row;
    const int64_t sums = l.dilation * l.tile_blocks * kSums * kTile, rows = (some_ + 1) * l.block_rows * d.channels;
    tile_ = static_cast<float*>(scratch(0, static_cast<size_t>(tile + sums + rows) * 4));
    sums_ = tile_ + tile;
    rows_ = sums_ + sums;
  }

  void move_to(int64_t index) {
    if (index == index_) return;
    index_ = index;
    b_ = index / l_.tiles;
    begin_ = l_.blocks * (index % l_.tiles) / l_.tiles;
    end_ = l_.blocks * (index % l_.tiles + 1) / l_.tiles;
    fill();
    const bool more = index + 1 < d_.batch * l_.tiles && l_.unit_splits == 1;
    const char* next = x_row(end_ + l_.groups);
    const char* last = reinterpret_cast<const char*>(d_.x + d_.batch * d_.in_rows * d_.channels);
    const int64_t bytes = l_.tile_blocks * l_.block_rows * d_.channels * 4;
    const int64_t blocks = l_.units * kSums * l_.dilation * ceil_div(l_.tile_blocks, rows_at_once(kMaxPanels));
    next_input_.start(next, !more || next > last ? 0 : bytes < last - next ? bytes : last - next, blocks);
  }

  void unit(int64_t index) {
    const int64_t output = index * kTile, left = d_.outputs - output, width = left < kTile ? left : kTile;
    const int panels = static_cast<int>(ceil_div(width, kPanel)), most = rows_at_once(panels);
    const int some = panels * l_.panel * 4 <= kWeightBytes ? kSums : 1;
    for (int first = 0; first < kSums; first += some) {
      for (int64_t r = 0; r < l_.dilation; ++r) {
        const int64_t pairs = rows_of(r), blocks = ceil_div(pairs, most);
        for (int64_t k = 0; k < blocks; ++k) {
          const int64_t q = pairs * k / blocks;
          const int rows = static_cast<int>(pairs * (k + 1) / blocks - q);
          float* sums = sums_ + (some == kSums ? 0 : (r * l_.tile_blocks + q) * kSums * kTile);
          const int64_t flat = b_ * d_.out_rows + (begin_ + q) * l_.block_rows + r;
          const int64_t seconds = rows_of(l_.dilation + r) - q;
          const int second = static_cast<int>(seconds < rows ? seconds : rows);
          const bool last = first + some == kSums;
          if (last) {
            prefetch(d_.epilogue, rows, width, flat, l_.block_rows, output, d_.out, d_.outputs);
            prefetch(d_.epilogue, second, width, flat + l_.dilation, l_.block_rows, output, d_.out, d_.outputs);
          }
          for (int sum = first; sum < first + some; ++sum) {
            next_input_.advance();
            add_up(sum, index, r, q, rows, panels, sums + sum * rows * kTile);
          }
          if (!last) continue;
          const int64_t n = rows * kTile;
          for (int64_t i = 0; i < n; i += kWidth) {
            const Vec s1 = load(sums + n + i), s2 = load(sums + 2 * n + i);
            store(sums + i, (load(sums + i) + s1) + s2);
            store(sums + n + i, (s1 - s2) - load(sums + 3 * n + i));
          }
          finish(d_.epilogue, sums, rows, width, flat, l_.block_rows, output, d_.bias, d_.out, d_.outputs);
          finish(d_.epilogue, sums + n, second, width, flat + l_.dilation, l_.block_rows, output, d_.bias, d_.out,
                 d_.outputs);
        }
      }
    }
  }

 private:
  // One sum of `rows` pairs from place r of block q of the tile on, for the outputs of a unit.
  void add_up(int sum, int64_t unit, int64_t r, int64_t q, int rows, int panels, float* to) const {
    const bool last = sum + 1 == kSums;
    Product p;
    p.step = p.tap_step = l_.dilation * l_.row;
    p.taps = last ? 1 : l_.groups;
    p.channels = d_.channels;
    p.weight = l_.weights + unit * kMaxPanels * l_.panel + sum * l_.groups * l_.tap;
    p.weight_tap_step = l_.tap;
    p.panel_step = l_.panel;
    p.input = tile_ + r * l_.row + (q + (last ? l_.groups - 1 : 0)) * p.step + sum * d_.channels;
    multiply(p, rows, panels, DType::f32, to);
  }

  // Output rows of the tile at place `r` of their blocks.
  int64_t rows_of(int64_t r) const {
    const int64_t all = d_.out_rows > r ? ceil_div(d_.out_rows - r, l_.block_rows) : 0;
    const int64_t end = all < end_ ? all : end_;
    return end > begin_ ? end - begin_ : 0;
  }

  const char* x_row(int64_t block) const {
    const int64_t row = b_ * d_.in_rows + d_.first + block * l_.block_rows;
    return reinterpret_cast<const char*>(d_.x + row * d_.channels);
  }

  // Some blocks at a time, and the one after them, whose rows are the x2 and x3 of the last.
  void fill() {
    const int64_t block = l_.block_rows * d_.channels, end = end_ + l_.groups - 1;
    load_block_rows(begin_, 1, rows_);
    for (int64_t b = begin_; b < end; b += some_) {
      const int64_t n = end - b < some_ ? end - b : some_;
      load_block_rows(b + 1, n, rows_ + block);
      for (int64_t i = 0; i < n * l_.dilation; ++i) {
        const float* x = rows_ + (i / l_.dilation * l_.block_rows + i % l_.dilation) * d_.channels;
        transform(x, tile_ + ((b - begin_) * l_.dilation + i) * l_.row);
      }
      std::memcpy(rows_, rows_ + n * block, static_cast<size_t>(block) * 4);
    }
  }

  void load_block_rows(int64_t b, int64_t n, float* to) const {
    const int64_t first = d_.first + b * l_.block_rows, rows = n * l_.block_rows, channels = d_.channels;
    int64_t i = 0;
    for (; i < rows && first + i < 0; ++i) input_row(d_, b_, first + i, to + i * channels);
    const int64_t inside = rows < d_.in_rows - first ? rows : d_.in_rows - first;
    if (inside > i) {
      const int64_t flat = b_ * d_.in_rows + first + i;
      apply_prologue(d_.prologue, d_.x + flat * channels, flat, inside - i, channels, to + i * channels, channels);
      i = inside;
    }
    for (; i < rows; ++i) input_row(d_, b_, first + i, to + i * channels);
  }

  void transform(const float* x, float* to) const {
    const int64_t channels = d_.channels, next = l_.dilation * channels;
    const auto lanes = [&](int64_t c, auto get, auto put) {
      const Vec x0 = get(x + c), x1 = get(x + next + c), x2 = get(x + 2 * next + c), x3 = get(x + 3 * next + c);
      put(to + c, x0 - x2);
      put(to + channels + c, x1 + x2);
      put(to + 2 * channels + c, x2 - x1);
      put(to + 3 * channels + c, x1 - x3);
    };
    int64_t c = 0;
    for (; c + kWidth <= channels; c += kWidth) {
      lanes(
          c, [](const float* p) { return load(p); }, [](float* p, Vec v) { store(p, v); });
    }
    const int64_t n = channels - c;
    if (n > 0)
      lanes(
          c, [=](const float* p) { return load_n(p, n); }, [=](float* p, Vec v) { store_n(p, v, n); });
  }

  const Dense& d_;
  const Pairs& l_;
  float *tile_, *sums_, *rows_;  // sums_: the four of a block of rows, those of each block apart
  Stream next_input_;
  int64_t some_, index_ = -1, b_ = 0, begin_ = 0, end_ = 0;  // blocks [begin, end)
};

}  // namespace

bool by_pairs(const Dense& d) {
  return d.precision == Precision::f32 && d.weight.dtype == DType::f32 && d.weight.rank == 3 && d.groups == 1 &&
         d.phases == 1 && d.step == 1 && d.tap_rows > 0 && d.kernel > 2 && d.kernel % 2 == 1 && d.outputs > 3 &&
         d.channels > 15 && d.out_rows >= kFewestRows && d.state == nullptr;
}

void run_pairs(const Dense& d, const Context& context) {
  Pairs l = layout_of(d, context.n_threads);
  const int64_t panels = ceil_div(d.outputs, kPanel);
  auto* weights = static_cast<float*>(scratch(1, static_cast<size_t>(panels * l.panel) * 4));
  l.weights = weights;
  context.for_each(panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) transform_weights(d, l, p, weights + p * l.panel);
  });
  context.for_each(l.tiles * d.batch * l.unit_splits, 1, [&](int64_t begin, int64_t end) {
    PairTile tile(d, l);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t part = i % l.unit_splits, last = (part + 1) * l.units / l.unit_splits;
      tile.move_to(i / l.unit_splits);
      for (int64_t unit = part * l.units / l.unit_splits; unit < last; ++unit) tile.unit(unit);
    }
  });
}

}  // namespace sonant::SONANT_ISA
