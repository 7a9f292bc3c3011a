// Convolutions of stride one, four output rows at a time with fewer products (Winograd's F(4,4), nested).
//
// The rows of a four are one dilation apart. Let x0 to x6 be the prologued rows at the first tap of the four and 1 to 6
// dilations on, g0 to g3 four taps. The rows of results are the coefficients of a product of polynomials, which seven
// of its values determine: at 0, 1, -1, 2, -2, -1/2, and its highest coefficient. So seven products do for sixteen:
//
//   p = x4 + x3/2, q = x2 + x1/2, and P = x5 + x4/2, Q = x3 + x2/2 one row on
//   s0 = (P - 5 Q + 4 (x1 + x0/2)) g0 / 2            s6 = ((x6 + x5/2) - 5 p + 4 q) g3
//   s1 = ((P - 4 Q) + (p - 4 q)) (g0 + g1 + g2 + g3) / -9
//   s2 = ((P - 4 Q) - (p - 4 q)) (g0 - g1 + g2 - g3) / 3
//   s3 = ((P - Q) + 2 (p - q)) (g0 + 2 g1 + 4 g2 + 8 g3) / 60
//   s4 = ((P - Q) - 2 (p - q)) (g0 - 2 g1 + 4 g2 - 8 g3) / -36
//   s5 = (x5 - 5 x3 + 4 x1) (g0 - g1/2 + g2/4 - g3/8) * -32/45
//   y0 = s0 + s1 + s2 + s3 + s4 + s5                 y2 = (s1 + s2) + 4 (s3 + s4) + s5/4
//   y1 = (s1 - s2) + 2 (s3 - s4) - s5/2              y3 = (s1 - s2) + 8 (s3 - s4) - s5/8 + s6
//
// Of these points the numbers stay smallest: the error is three times that of plain sums (docs/log.md). A longer kernel
// is groups of four taps, the last of up to four; where it has fewer, g3 = 0 and s6 has a group less. Each group begins
// four dilations further on, which is the next four: so each sum is itself a convolution over fours, of transformed
// rows and weights. Fours are counted from the first output row, so a row's bits depend on the shapes alone.
#include "dense_winograd.h"

#include "dense_tile.h"

namespace sonant::SONANT_ISA {
namespace {

constexpr int64_t kTileBytes = 256 << 10;    // of transformed rows: a pass reads one of the seven kinds only
constexpr int64_t kWeightBytes = 448 << 10;  // of a unit: more are taken sum by sum, each over all rows
constexpr int64_t kFloatsAtOnce = 4096;      // of prologued rows on their way there
constexpr int64_t kFewestRows = 256;         // fewer would not repay the transformed weights
constexpr int kOutputs = 4;                  // rows of a four; also taps of a group
constexpr int kPoints = 6;                   // sums that every group has a part in
constexpr int kMostSums = kPoints + 1;

// What run_winograd decides once per call. A block is 4 * dilation output rows: the first rows of its fours, then their
// second rows, and so on.
struct Fours {
  int64_t dilation, groups, block_rows;
  int64_t full_groups;                 // of four taps: those that s6 is of
  int sums;                            // 7, or 6 where no group is full
  int64_t row;                         // floats of the transformed rows of a four
  int64_t tap, panel;                  // floats of transformed weights
  int64_t blocks, tile_blocks, tiles;  // of one batch row
  int64_t units, unit_splits;
  const float* weights;
};

Fours layout_of(const Dense& d, int threads) {
  Fours l;
  l.dilation = d.tap_rows, l.groups = ceil_div(d.kernel, kOutputs), l.block_rows = kOutputs * d.tap_rows;
  l.full_groups = d.kernel / kOutputs;
  l.sums = l.full_groups > 0 ? kMostSums : kPoints;
  l.row = (ceil_div(l.sums * d.channels, 16) | 1) * 16;  // an odd number of cache lines
  l.tap = d.channels * kPanel;
  l.panel = (kPoints * l.groups + l.full_groups) * l.tap;
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

// One panel: the weights of s0 for every group, those of s1, and so on; then those of s6 for every full one.
void transform_weights(const Dense& d, const Fours& l, int64_t panel, float* to) {
  const int64_t tap = panel_tap_elements(d.channels, d.weight.dtype) * dtype_bytes(d.weight.dtype);
  const char* from = static_cast<const char*>(d.weight.data) + panel * d.kernel * tap;
  const auto weights = [&](int64_t k) { return reinterpret_cast<const float*>(from + k * tap); };
  for (int64_t g = 0; g < l.groups; ++g, to += l.tap) {
    const int64_t first = g * kOutputs, taps = d.kernel - first;
    const float* of[kOutputs] = {};
    for (int64_t k = 0; k < kOutputs && k < taps; ++k) of[k] = weights(first + k);
    for (int64_t i = 0; i < l.tap; i += kWidth) {
      const auto weight = [&](int k) { return of[k] ? load(of[k] + i) : zero(); };
      const Vec g0 = weight(0), g1 = weight(1), g2 = weight(2), g3 = weight(3);
      const Vec even = g0 + g2, odd = g1 + g3;
      const Vec even2 = fma(g2, set1(4), g0), odd2 = fma(g3, set1(8), g1 + g1);
      const Vec even_half = fma(g2, set1(0.25f), g0), odd_half = fma(g3, set1(0.125f), g1 * set1(0.5f));
      const Vec all[kPoints] = {g0 * set1(0.5f),
                                (even + odd) * set1(-1.0f / 9),
                                (even - odd) * set1(1.0f / 3),
                                (even2 + odd2) * set1(1.0f / 60),
                                (even2 - odd2) * set1(-1.0f / 36),
                                (even_half - odd_half) * set1(-32.0f / 45)};
      for (int sum = 0; sum < kPoints; ++sum) store(to + sum * l.groups * l.tap + i, all[sum]);
      if (of[3]) store(to + kPoints * l.groups * l.tap + i, g3);
    }
  }
}

// One thread's share: a tile of transformed rows, and the units of outputs made from it.
class FoursTile {
 public:
  FoursTile(const Dense& d, const Fours& l) : d_(d), l_(l) {
    const int64_t some = kFloatsAtOnce / (l.block_rows * d.channels);
    some_ = some > 0 ? some : 1;
    const int64_t tile = (l.tile_blocks + l.groups - 1) * l.dilation * l.row;
    const int64_t sums = l.dilation * l.tile_blocks * l.sums * kTile, rows = (some_ + 1) * l.block_rows * d.channels;
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
    const int64_t blocks = l_.units * l_.sums * l_.dilation * ceil_div(l_.tile_blocks, rows_at_once(kMaxPanels));
    next_input_.start(next, !more || next > last ? 0 : bytes < last - next ? bytes : last - next, blocks);
  }

  void unit(int64_t index) {
    const int64_t output = index * kTile, left = d_.outputs - output, width = left < kTile ? left : kTile;
    const int panels = static_cast<int>(ceil_div(width, kPanel)), most = rows_at_once(panels);
    const int some = panels * l_.panel * 4 <= kWeightBytes ? l_.sums : 1;
    for (int first = 0; first < l_.sums; first += some) {
      for (int64_t r = 0; r < l_.dilation; ++r) {
        const int64_t fours = rows_of(r), blocks = ceil_div(fours, most);
        for (int64_t k = 0; k < blocks; ++k) {
          const int64_t q = fours * k / blocks;
          const int rows = static_cast<int>(fours * (k + 1) / blocks - q);
          float* sums = sums_ + (some == l_.sums ? 0 : (r * l_.tile_blocks + q) * l_.sums * kTile);
          const int64_t flat = b_ * d_.out_rows + (begin_ + q) * l_.block_rows + r;
          int there[kOutputs];  // of the first rows of fours, of the second, ...
          for (int i = 0; i < kOutputs; ++i) {
            const int64_t left = rows_of(i * l_.dilation + r) - q;
            there[i] = static_cast<int>(left < 0 ? 0 : left < rows ? left : rows);
          }
          const bool last = first + some == l_.sums;
          for (int i = 0; last && i < kOutputs; ++i) {
            const int64_t row = flat + i * l_.dilation;
            prefetch(d_.epilogue, there[i], width, row, l_.block_rows, output, d_.out, d_.outputs);
          }
          for (int sum = first; sum < first + some; ++sum) {
            next_input_.advance();
            add_up(sum, index, r, q, rows, panels, sums + sum * rows * kTile);
          }
          if (!last) continue;
          const int64_t n = rows * kTile;
          to_outputs(sums, n);
          for (int i = 0; i < kOutputs; ++i) {
            const int64_t row = flat + i * l_.dilation;
            finish(d_.epilogue, sums + i * n, there[i], width, row, l_.block_rows, output, d_.bias, d_.out, d_.outputs);
          }
        }
      }
    }
  }

  // The sums over time of the outputs of units [first, last), which are done.
  void sum(int64_t first, int64_t last) const {
    const int64_t c = first * kTile, end = last * kTile < d_.outputs ? last * kTile : d_.outputs;
    d_.sums.add(b_, begin_ * l_.block_rows, end_ * l_.block_rows, c, end - c);
  }

 private:
  // y0 to y3 in the places of s0 to s3, each of n numbers.
  void to_outputs(float* sums, int64_t n) const {
    const bool full = l_.sums == kMostSums;
    for (int64_t i = 0; i < n; i += kWidth) {
      const auto sum = [&](int k) { return load(sums + k * n + i); };
      const Vec s0 = sum(0), s1 = sum(1), s2 = sum(2), s3 = sum(3), s4 = sum(4), s5 = sum(5);
      const Vec even = s1 + s2, odd = s1 - s2, even2 = s3 + s4, odd2 = s3 - s4;
      const Vec third = fma(odd2, set1(8), fma(s5, set1(-0.125f), odd));
      store(sums + i, (s0 + s5) + (even + even2));
      store(sums + n + i, fma(odd2, set1(2), fma(s5, set1(-0.5f), odd)));
      store(sums + 2 * n + i, fma(even2, set1(4), fma(s5, set1(0.25f), even)));
      store(sums + 3 * n + i, full ? third + sum(6) : third);
    }
  }

  // One sum of `rows` fours from place r of block q of the tile on, for the outputs of a unit.
  void add_up(int sum, int64_t unit, int64_t r, int64_t q, int rows, int panels, float* to) const {
    Product p;
    p.step = p.tap_step = l_.dilation * l_.row;
    p.taps = sum < kPoints ? l_.groups : l_.full_groups;
    p.channels = d_.channels;
    p.weight = l_.weights + unit * kMaxPanels * l_.panel + sum * l_.groups * l_.tap;
    p.weight_tap_step = l_.tap;
    p.panel_step = l_.panel;
    p.input = tile_ + r * l_.row + q * p.step + sum * d_.channels;
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

  // Some blocks at a time, and the one after them, whose rows are the x4 to x6 of the last.
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
    const bool full = l_.sums == kMostSums;
    const auto lanes = [&](int64_t c, auto get, auto put) {
      const auto row = [&](int i) { return get(x + i * next + c); };
      const Vec half = set1(0.5f), four = set1(4), five = set1(5);
      const Vec x1 = row(1), x2 = row(2), x3 = row(3), x4 = row(4), x5 = row(5);
      const Vec p = fma(x3, half, x4), q = fma(x1, half, x2), next_p = fma(x4, half, x5), next_q = fma(x2, half, x3);
      const Vec ones = fnma(four, q, p), next_ones = fnma(four, next_q, next_p), twos = (p - q) + (p - q),
                next_twos = next_p - next_q;
      put(to + c, fma(four, fma(row(0), half, x1), fnma(five, next_q, next_p)));
      put(to + channels + c, next_ones + ones);
      put(to + 2 * channels + c, next_ones - ones);
      put(to + 3 * channels + c, next_twos + twos);
      put(to + 4 * channels + c, next_twos - twos);
      put(to + 5 * channels + c, fma(four, x1, fnma(five, x3, x5)));
      if (full) put(to + 6 * channels + c, fma(four, q, fnma(five, p, fma(x5, half, row(6)))));
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
  const Fours& l_;
  float *tile_, *sums_, *rows_;  // sums_: all of a block of rows, those of each block apart
  Stream next_input_;
  int64_t some_, index_ = -1, b_ = 0, begin_ = 0, end_ = 0;  // blocks [begin, end)
};

}  // namespace

bool by_winograd(const Dense& d) {
  return d.precision == Precision::f32 && d.weight.dtype == DType::f32 && d.weight.rank == 3 && d.groups == 1 &&
         d.phases == 1 && d.step == 1 && d.tap_rows > 0 && d.kernel > 2 && d.outputs > 3 && d.channels > 15 &&
         d.out_rows >= kFewestRows && d.state == nullptr;
}

void run_winograd(const Dense& d, const Context& context) {
  Fours l = layout_of(d, context.n_threads);
  const int64_t panels = ceil_div(d.outputs, kPanel);
  auto* weights = static_cast<float*>(scratch(1, static_cast<size_t>(panels * l.panel) * 4));
  l.weights = weights;
  context.for_each(panels, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) transform_weights(d, l, p, weights + p * l.panel);
  });
  context.for_each(l.tiles * d.batch * l.unit_splits, 1, [&](int64_t begin, int64_t end) {
    FoursTile tile(d, l);
    for (int64_t i = begin; i < end; ++i) run_item(tile, i, l.unit_splits, l.units, bool(d.sums));
  });
}

}  // namespace sonant::SONANT_ISA
