#include "dense_tile.h"

#include "dense_round.h"

namespace sonant::SONANT_ISA {
namespace {

// Weights of a unit beside the tile in the second-level cache; more are taken in several passes over the rows.
constexpr int64_t kChunkBytes = 448 << 10;
constexpr int64_t kLine = 64;
constexpr int64_t kFloatsAtOnce = 2048;  // of prologued rows on their way to integers

}  // namespace

void Tile::move_to(int64_t index) {
  if (index == index_) return;
  index_ = index;
  b_ = index / l_.tiles;
  const int64_t tile = index % l_.tiles, count = l_.q_end - l_.q_begin;
  q0_ = l_.q_begin + count * tile / l_.tiles;
  q1_ = l_.q_begin + count * (tile + 1) / l_.tiles;
  const int64_t reach = (l_.taps - 1) * d_.tap_rows, last = d_.first + (q1_ - 1) * d_.step;
  low_ = d_.first + q0_ * d_.step + (reach < 0 ? reach : 0);
  high_ = last + (reach > 0 ? reach : 0) + 1;
  const int64_t rows = high_ - low_, read = rows + (l_.matrix ? kMatrixRows * d_.step : 0);
  input_ = static_cast<float*>(scratch(0, static_cast<size_t>(read * l_.row) * 4));
  fill();
  const bool more = index + 1 < d_.batch * l_.tiles && l_.unit_splits == 1;
  const char* next = reinterpret_cast<const char*>(d_.x + (b_ * d_.in_rows + last + 1) * d_.channels);
  const char* end = reinterpret_cast<const char*>(d_.x + d_.batch * d_.in_rows * d_.channels);
  const int64_t bytes = (q1_ - q0_) * d_.step * d_.channels * 4;
  const int64_t blocks = ceil_div(q1_ - q0_, l_.block_rows(kMaxPanels)) * l_.units;
  next_input_.start(next, !more || next > end ? 0 : bytes < end - next ? bytes : end - next, blocks);
}

void Stream::start(const void* from, int64_t size, int64_t blocks) {
  at = static_cast<const char*>(from);
  bytes = size;
  share = ceil_div(size, blocks > 0 ? blocks : 1);
}

void Stream::advance() {
  const int64_t n = bytes < share ? bytes : share;
  for (int64_t i = 0; i < n; i += kLine) __builtin_prefetch(at + i, 0, 2);
  at += n;
  bytes -= n;
}

void Tile::fill() {
  const int64_t high = high_, begin = low_ < 0 ? 0 : low_, end = high < d_.in_rows ? high : d_.in_rows;
  if (l_.integers || l_.bf16_dot) return fill_narrow(begin < high ? begin : high, end > begin ? end : begin);
  for (int64_t r = low_; r < high && r < begin; ++r) input_row(d_, b_, r, at(r));
  if (end > begin) {
    const int64_t flat = b_ * d_.in_rows + begin;
    apply_prologue(d_.prologue, d_.x + flat * d_.channels, flat, end - begin, d_.channels, at(begin), l_.row);
    for (int64_t r = begin; d_.precision != Precision::f32 && r < end; ++r) round_row(d_, at(r));
  }
  for (int64_t r = end > begin ? end : begin; r < high; ++r) input_row(d_, b_, r, at(r));
}

// Rows that the tile holds as integers or in bf16, a few at a time: their floats stay in the first-level cache. The
// rows [begin, end) come from x, those before and after from the state or zeros.
void Tile::fill_narrow(int64_t begin, int64_t end) {
  const Int8Row form = row_form();
  const int64_t some = kFloatsAtOnce / d_.channels > 0 ? kFloatsAtOnce / d_.channels : 1;
  auto* floats = static_cast<float*>(scratch(3, static_cast<size_t>(some * d_.channels) * 4));
  const auto put = [&](int64_t r, const float* x, bool rounded) {
#if SONANT_BF16
    if (l_.bf16_dot) return narrow_bf16(x, d_.channels, reinterpret_cast<uint16_t*>(at(r)));
#endif
    to_integers(form, x, rounded, reinterpret_cast<char*>(at(r)));
  };
  for (int64_t r = begin; r < end; r += some) {
    const int64_t n = end - r < some ? end - r : some, flat = b_ * d_.in_rows + r;
    const float* x = d_.x + flat * d_.channels;
    if (d_.prologue.n > 0) {
      apply_prologue(d_.prologue, x, flat, n, d_.channels, floats, d_.channels);
      x = floats;
    }
    for (int64_t i = 0; i < n; ++i) put(r + i, x + i * d_.channels, false);
  }
  for (int64_t r = low_; r < high_; ++r) {
    if (r >= begin && r < end) continue;
    input_row(d_, b_, r, floats);
    put(r, floats, true);
  }
}

void Tile::unit(int64_t index) {
  for (int64_t p = 0; p < d_.phases; ++p) phase(index, p);
}

void Tile::sum(int64_t first, int64_t last) const {
  const auto unit = [&](int64_t i) { return l_.form == PackForm::panels ? dense_unit(i, 0, 1) : plain_unit(i, 0); };
  const Unit from = unit(first), to = unit(last - 1);
  d_.sums.add(b_, q0_ * d_.phases - d_.trim, q1_ * d_.phases - d_.trim, from.output,
              to.output + to.width - from.output);
}

void Tile::phase(int64_t index, int64_t p) {
  int64_t begin = ceil_div(d_.trim - p > 0 ? d_.trim - p : 0, d_.phases);
  int64_t end = ceil_div(d_.out_rows + d_.trim - p, d_.phases);
  if (begin < q0_) begin = q0_;
  if (end > q1_) end = q1_;
  if (end <= begin) return;
  const Unit u = l_.form == PackForm::panels ? dense_unit(index, p, end - begin) : plain_unit(index, p);
  alignas(64) float one[kTileRows * kTile];
  const int64_t block = l_.block_rows(u.panels), blocks = ceil_div(end - begin, block);
  float* all =
      u.passes > 1 ? static_cast<float*>(scratch(2, static_cast<size_t>(blocks * block * kTile) * 4)) : nullptr;
  int64_t summed = begin;
  for (int64_t i = 0; i < u.passes; ++i) {
    const Pass pass = pass_of(u, i);
    stream_weights(u, pass, blocks);
    for (int64_t k = 0, q = begin; k < blocks; ++k) {
      const int64_t share =
          l_.matrix ? (k + 1 < blocks ? (k + 1) * block : end - begin) : (end - begin) * (k + 1) / blocks;
      const auto rows = static_cast<int>(share - (q - begin));
      const int64_t flat = b_ * d_.out_rows + q * d_.phases + p - d_.trim;
      const bool done = i + 1 == u.passes;
      float* tile = all ? all + (q - begin) * kTile : one;
      next_input_.advance();
      for (Stream& s : next_weights_) s.advance();
      if (done) prefetch(d_.epilogue, rows, u.width, flat, d_.phases, u.output, d_.out, d_.outputs);
      multiply_block(u, pass, q, rows, tile);
      if (done) finish(d_.epilogue, tile, rows, u.width, flat, d_.phases, u.output, d_.bias, d_.out, d_.outputs);
      q += rows;
      if (done && d_.sums && d_.phases == 1 && (q == end || q / kSumsBlock > summed / kSumsBlock)) {
        d_.sums.add(b_, summed, q, u.output, u.width);
        summed = q;
      }
    }
  }
}

// The weights that follow these: the next pass's, or the next unit's. Only where they cannot all be in the cache.
void Tile::stream_weights(const Unit& u, const Pass& pass, int64_t blocks) {
  for (Stream& s : next_weights_) s.bytes = 0;
  const Product& m = u.product;
  const int64_t size = dtype_bytes(l_.dtype), all = l_.units * kMaxPanels * d_.kernel * l_.tap * size;
  if (l_.form != PackForm::panels || d_.phases > 1 || all < 2 * kChunkBytes || blocks < 2) return;
  const int64_t bytes = pass.product.taps * pass.product.channels * kPanel * size;
  const char* limit =
      static_cast<const char*>(d_.weight.data) + d_.groups * l_.group_panels * d_.kernel * l_.tap * size;
  for (int i = 0; i < u.panels; ++i) {
    const char* here = static_cast<const char*>(m.weight) + i * m.panel_step * size;
    const char* next = here + (pass.index + 1) * bytes;  // of equal passes
    if (pass.index + 1 == u.passes) next = here + u.panels * m.panel_step * size;
    const int64_t left = limit - next;
    if (left > 0) next_weights_[i].start(next, bytes < left ? bytes : left, blocks);
  }
}

// Depthwise or of few outputs: weights that no panel holds.
Tile::Unit Tile::plain_unit(int64_t index, int64_t p) const {
  Unit u;
  const int64_t outputs = d_.outputs - index * kPanel;
  u.output = index * kPanel;
  u.channel = l_.form == PackForm::depthwise ? u.output : 0;
  u.width = outputs < kPanel ? outputs : kPanel;
  u.product.channels = d_.channels;
  u.product.panel_step = d_.kernel * l_.tap;
  u.product.step = d_.step * l_.row;
  u.product.tap_step = d_.tap_rows * l_.row;
  u.product.taps = d_.kernel > p ? ceil_div(d_.kernel - p, d_.phases) : 0;
  u.product.weight = static_cast<const float*>(d_.weight.data) + u.output + p * l_.tap;
  u.product.weight_tap_step = l_.tap * d_.phases;
  return u;
}

Tile::Unit Tile::dense_unit(int64_t index, int64_t p, int64_t rows) const {
  Unit u;
  const int64_t group = index / l_.group_units, panel = index % l_.group_units * kMaxPanels;
  const int64_t left = l_.group_outputs - panel * kPanel;
  u.output = group * l_.group_outputs + panel * kPanel;
  u.width = left < kTile ? left : kTile;
  u.channel = group * (l_.integers ? row_form().group_bytes() : l_.group_channels);
  u.panels = static_cast<int>(ceil_div(u.width, kPanel));
  u.dtype = l_.dtype;
  u.widen = u.dtype != DType::f32 && !l_.bf16_dot && !l_.integers && rows >= 4 * l_.block_rows(u.panels);

  Product& m = u.product;
  const int64_t row = l_.row * (l_.integers ? 4 : l_.bf16_dot ? 2 : 1);
  m.step = d_.step * row;
  m.tap_step = d_.tap_rows * row;
  m.taps = d_.kernel > p ? ceil_div(d_.kernel - p, d_.phases) : 0;
  m.channels = l_.group_channels;
  m.panel_step = d_.kernel * l_.tap;
  m.weight_tap_step = l_.tap * d_.phases;
  const int64_t offset = ((group * l_.group_panels + panel) * d_.kernel + p) * l_.tap;
  m.weight = static_cast<const char*>(d_.weight.data) + offset * dtype_bytes(l_.dtype);

  const int64_t tap_bytes = u.widen ? m.channels * kPanel * 4 : l_.tap * dtype_bytes(l_.dtype);
  const int64_t bytes = m.taps * tap_bytes * u.panels;
  const bool whole = u.dtype == DType::i8;  // its channels share one sum of integers
  const int64_t parts = m.taps > 1 ? m.taps : whole ? 1 : m.channels / 128;
  const int64_t together = parts > 0 && bytes > 0 ? kChunkBytes * parts / bytes : 1;
  if (rows > 2 * l_.block_rows(u.panels) && parts > 0) u.passes = ceil_div(parts, together > 0 ? together : 1);
  return u;
}

Tile::Pass Tile::pass_of(const Unit& u, int64_t index) const {
  Pass pass = {u.product, u.dtype, u.channel, 0, index};
  Product& m = pass.product;
  m.resume = index > 0;
  int64_t weight = 0;
  if (u.passes > 1 && m.taps > 1) {
    const int64_t from = m.taps * index / u.passes, to = m.taps * (index + 1) / u.passes;
    pass.taps = from * m.tap_step;
    weight = from * m.weight_tap_step;
    m.taps = to - from;
  } else if (u.passes > 1) {  // from the first channel of what one product sums (bf16) or of a block (q8)
    const int64_t unit = u.dtype == DType::q8 ? kQ8Block
                         : l_.matrix          ? kMatrixChannels
                                              : 2,
                  units = ceil_div(m.channels, unit);
    const int64_t from = units * index / u.passes * unit, to = units * (index + 1) / u.passes * unit;
    pass.channel += from;
    weight = u.dtype == DType::q8 ? from / kQ8Block * kQ8Bytes : from * kPanel;
    m.channels = (to < m.channels ? to : m.channels) - from;
  }
  m.weight = static_cast<const char*>(m.weight) + weight * dtype_bytes(u.dtype);
  if (u.widen) widen_weights(u, pass);
  return pass;
}

void Tile::widen_weights(const Unit& u, Pass& pass) const {
  Product& m = pass.product;
  const int64_t tap = m.channels * kPanel;
  auto* wide = static_cast<float*>(scratch(1, static_cast<size_t>(u.panels * m.taps * tap) * 4));
  for (int64_t i = 0; i < u.panels; ++i) {
    for (int64_t k = 0; k < m.taps; ++k) {
      const int64_t from = (i * m.panel_step + k * m.weight_tap_step) * dtype_bytes(u.dtype);
      widen(static_cast<const char*>(m.weight) + from, u.dtype, m.channels, wide + (i * m.taps + k) * tap);
    }
  }
  m.weight = wide;
  m.weight_tap_step = tap;
  m.panel_step = m.taps * tap;
  pass.dtype = DType::f32;
}

void Tile::multiply_block(const Unit& u, const Pass& pass, int64_t q, int rows, float* tile) const {
  Product m = pass.product;
  const float* base = at(d_.first + q * d_.step);
  m.input = base + pass.taps + pass.channel;
  if (l_.integers) return multiply_integers(pass, base, rows, u.panels, tile);
  if (l_.form == PackForm::depthwise) return multiply_depthwise(m, rows, u.width, tile);
  if (l_.form == PackForm::few) return multiply_few(m, rows, u.width, tile);
#if SONANT_BF16
  if (l_.bf16_dot) {
    m.input = reinterpret_cast<const uint16_t*>(base) + pass.taps + pass.channel;
    return multiply_bf16(m, rows, u.panels, tile);
  }
#endif
  multiply(m, rows, u.panels, pass.dtype, tile);
}

void Tile::multiply_integers(const Pass& pass, const float* base, int rows, int panels, float* tile) const {
  const Product& m = pass.product;
  const Int8Row form = row_form();
  const int64_t from = pass.channel / form.room * 4 - pass.channel;  // scales and sums take 4 bytes a block
  Int8Product p;
  p.input = reinterpret_cast<const char*>(base) + pass.taps + pass.channel;
  p.scales = form.scales() + from;
  p.sums = form.sums() + from;
  p.step = m.step;
  p.tap_step = m.tap_step;
  p.weight = static_cast<const char*>(m.weight);
  p.weight_tap_step = m.weight_tap_step;
  p.panel_step = m.panel_step;
  p.taps = m.taps;
  p.blocks = ceil_div(m.channels, kQ8Block);
  p.channels = m.channels;
  p.resume = m.resume;
  (pass.dtype == DType::i8 ? multiply_i8 : multiply_int8)(p, rows, panels, l_.fast_dot, tile);
}

Int8Row Tile::row_form() const {
  if (l_.dtype != DType::i8) return {d_.precision, d_.groups, l_.group_channels};
  return {d_.precision, d_.groups, l_.group_channels, i8_row_offset(l_.fast_dot), i8_row_bytes(l_.fast_dot)};
}

}  // namespace sonant::SONANT_ISA
