#include "fused.h"

#include <utility>

#include "gemm.h"

namespace sonant::SONANT_ISA {
namespace {

Operand bind(const Tensor& t, const int64_t* shape, int rank) {
  Operand o;
  o.data = t.f32();
  const int64_t channels = shape[rank - 1];
  o.channel_step = t.rank == 0 || (t.dim[t.rank - 1] == 1 && channels != 1) ? 0 : 1;
  int64_t stride = t.rank == 0 ? 1 : t.dim[t.rank - 1];
  bool once = true, same = o.channel_step == 1 || channels == 1;
  o.n_axes = rank - 1;
  for (int i = rank - 2; i >= 0; --i) {
    const int at = i - rank + t.rank;
    const int64_t size = at >= 0 ? t.dim[at] : 1;
    o.size[i] = shape[i];
    o.stride[i] = size == 1 ? 0 : stride;
    once = once && size == 1;
    same = same && size == shape[i];
    stride *= size;
  }
  o.row_step = once ? 0 : same ? channels : -1;
  return o;
}

// Gives `use` the function of a pointwise op, once, so that the loop in `use` is compiled for each.
template <class Use>
void with_function(Op op, Use use) {
  const Vec one = set1(1.0f);
  switch (op) {
    case Op::add:
      return use([](Vec a, Vec b, Vec) { return a + b; });
    case Op::sub:
      return use([](Vec a, Vec b, Vec) { return a - b; });
    case Op::mul:
      return use([](Vec a, Vec b, Vec) { return a * b; });
    case Op::div:
      return use([](Vec a, Vec b, Vec) { return a / b; });
    case Op::minimum:
      return use([](Vec a, Vec b, Vec) { return min(a, b); });
    case Op::maximum:
      return use([](Vec a, Vec b, Vec) { return max(a, b); });
    case Op::greater:
      return use([=](Vec a, Vec b, Vec) { return select(a > b, one, zero()); });
    case Op::equal:
      return use([=](Vec a, Vec b, Vec) { return select(a == b, one, zero()); });
    case Op::atan2:
      return use([](Vec a, Vec b, Vec) { return atan2(a, b); });
    case Op::exp:
      return use([](Vec a, Vec, Vec) { return exp(a); });
    case Op::log:
      return use([](Vec a, Vec, Vec) { return log(a); });
    case Op::sin:
      return use([](Vec a, Vec, Vec) { return sin(a); });
    case Op::cos:
      return use([](Vec a, Vec, Vec) { return cos(a); });
    case Op::tanh:
      return use([](Vec a, Vec, Vec) { return tanh(a); });
    case Op::sigmoid:
      return use([](Vec a, Vec, Vec) { return sigmoid(a); });
    case Op::relu:
      return use([](Vec a, Vec, Vec) { return relu(a); });
    case Op::silu:
      return use([](Vec a, Vec, Vec) { return silu(a); });
    case Op::gelu:
      return use([](Vec a, Vec, Vec) { return gelu(a); });
    case Op::gelu_tanh:
      return use([](Vec a, Vec, Vec) { return gelu_tanh(a); });
    case Op::elu:
      return use([](Vec a, Vec, Vec) { return elu(a); });
    case Op::sqrt:
      return use([](Vec a, Vec, Vec) { return sqrt(a); });
    case Op::abs:
      return use([](Vec a, Vec, Vec) { return abs(a); });
    case Op::floor:
      return use([](Vec a, Vec, Vec) { return floor(a); });
    case Op::round:
      return use([](Vec a, Vec, Vec) { return round(a); });
    case Op::leaky_relu:
      return use([](Vec a, Vec b, Vec) { return leaky_relu(a, b); });
    case Op::snake:
      return use([](Vec a, Vec b, Vec) { return a + sin_squared(b * a) / b; });
    case Op::affine:
      return use([](Vec a, Vec b, Vec c) { return fma(a, b, c); });
    case Op::where:
      return use([](Vec a, Vec b, Vec c) { return select(a == zero(), c, b); });
    default:
      refuse("a dense op was given a fused step that is not pointwise");
  }
}

bool is(const Step& s, Op op, int a, int b = -1, int c = -1) {
  return s.op == op && s.arg[0].reg == a && s.arg[1].reg == b && s.arg[2].reg == c;
}

// The subject, or the last result, first where the order is free, so that more lists are chains.
void put_in_order(Fused& f) {
  for (int i = 0; i < f.n; ++i) {
    Step& s = f.step[i];
    const int last = i == 0 ? 0 : f.n_operands + i;
    if ((s.op == Op::add || s.op == Op::mul) && s.arg[1].reg == last) std::swap(s.arg[0], s.arg[1]);
  }
}

// In a chain every step takes the last result first and no other result.
bool is_chain(const Fused& f) {
  for (int i = 0; i < f.n; ++i) {
    if (f.step[i].arg[0].reg != (i == 0 ? 0 : f.n_operands + i)) return false;
    for (int k = 1; k < 3; ++k) {
      const int reg = f.step[i].arg[k].reg;
      if (reg == 0 || reg > f.n_operands) return false;
    }
  }
  return true;
}

Fused::Pattern pattern_of(const Fused& f) {
  using Pattern = Fused::Pattern;
  if (f.n == 0) return Pattern::none;
  const Step *s = f.step, *t = f.step + 1;
  const auto wide = [&](int reg) { return f.operand[reg - 1].channel_step == 1; };
  const auto fixed = [&](int reg) { return wide(reg) && f.operand[reg - 1].row_step == 0; };
  const int result = f.n_operands + 1;
  const bool affine = is(s[0], Op::affine, 0, 1, 2) && wide(1) && wide(2);
  if (f.n == 1 && affine) return Pattern::affine;
  if (f.n == 1 && is(s[0], Op::leaky_relu, 0)) return Pattern::leaky;
  if (f.n == 1 && is(s[0], Op::snake, 0, 1) && fixed(1)) return Pattern::snake;
  if (f.n == 2 && affine && is(t[0], Op::leaky_relu, result)) return Pattern::affine_leaky;
  if (f.n == 2 && affine && is(t[0], Op::snake, result, 3) && fixed(3)) return Pattern::affine_snake;
  return is_chain(f) ? Pattern::chain : Pattern::general;
}

// Lanes [c, c + n) of one row: `x` through all steps.
Vec evaluate(const Fused& f, const float* const* operand_row, Vec x, int64_t c, int64_t n) {
  Vec reg[1 + 2 * Fused::kMost];
  reg[0] = x;
  for (int i = 0; i < f.n_operands; ++i) reg[1 + i] = f.operand[i].at(operand_row[i], c, n);
  for (int i = 0; i < f.n; ++i) {
    const Argument* arg = f.step[i].arg;
    const auto value = [&](int k) { return arg[k].reg < 0 ? set1(arg[k].literal) : reg[arg[k].reg]; };
    Vec& result = reg[1 + f.n_operands + i];
    with_function(f.step[i].op, [&](auto function) { result = function(value(0), value(1), value(2)); });
  }
  return reg[f.n_operands + f.n];
}

// y[c] = op(x[c], c, lanes) over one row.
template <class F>
inline void map(const float* x, int64_t channels, float* y, F op) {
  int64_t c = 0;
  for (; c + kWidth <= channels; c += kWidth) store(y + c, op(load(x + c), c, int64_t{kWidth}));
  if (c < channels) store_n(y + c, op(load_n(x + c, channels - c), c, channels - c), channels - c);
}

inline Vec get(const float* p, int64_t c, int64_t n) { return n == kWidth ? load(p + c) : load_n(p + c, n); }

void general_row(const Fused& f, const float* x, int64_t flat, int64_t channels, float* y) {
  const float* row[Fused::kMost];
  for (int i = 0; i < f.n_operands; ++i) row[i] = f.operand[i].row(flat);
  map(x, channels, y, [&](Vec v, int64_t c, int64_t n) { return evaluate(f, row, v, c, n); });
}

// An argument of a step of a chain in one row of the subject, as its vectors.
struct Values {
  const float* row = nullptr;  // null: the literal
  bool wide = false;
  Vec one;

  Values(const Fused& f, const Argument& a, int64_t flat, int64_t c) : one(set1(a.literal)) {
    if (a.reg < 1) return;
    const Operand& o = f.operand[a.reg - 1];
    wide = o.channel_step != 0;
    row = o.row(flat) + (wide ? c : 0);
    if (!wide) one = set1(row[0]);
  }
  Vec at(int64_t j, int64_t n) const { return wide ? get(row + j, 0, n) : one; }
};

void chain_row(const Fused& f, const float* x, int64_t flat, int64_t channels, float* y) {
  for (int i = 0; i < f.n; ++i, x = y) {
    const Values b(f, f.step[i].arg[1], flat, 0), c(f, f.step[i].arg[2], flat, 0);
    with_function(f.step[i].op, [&](auto function) {
      map(x, channels, y, [&](Vec v, int64_t j, int64_t n) { return function(v, b.at(j, n), c.at(j, n)); });
    });
  }
}

// `snakes` are 1 / alpha, then alpha / pi.
void prologue_row(const Fused& f, const float* x, int64_t flat, int64_t channels, const float* snakes, float* y) {
  using Pattern = Fused::Pattern;
  const bool affine =
      f.pattern == Pattern::affine || f.pattern == Pattern::affine_leaky || f.pattern == Pattern::affine_snake;
  const float *scale = affine ? f.operand[0].row(flat) : nullptr, *shift = affine ? f.operand[1].row(flat) : nullptr;
  const float *inverse = snakes, *half_turns = snakes + channels;
  const Vec slope = set1(f.step[f.n - 1].arg[1].literal);
  const auto snake = [=](Vec v, int64_t c, int64_t n) {
    return fma(sin_squared_of_half_turns(get(half_turns, c, n) * v), get(inverse, c, n), v);
  };
  const auto norm = [=](Vec v, int64_t c, int64_t n) { return fma(v, get(scale, c, n), get(shift, c, n)); };
  switch (f.pattern) {
    case Pattern::affine:
      return map(x, channels, y, norm);
    case Pattern::leaky:
      return map(x, channels, y, [=](Vec v, int64_t, int64_t) { return leaky_relu(v, slope); });
    case Pattern::snake:
      return map(x, channels, y, snake);
    case Pattern::affine_leaky:
      return map(x, channels, y, [=](Vec v, int64_t c, int64_t n) { return leaky_relu(norm(v, c, n), slope); });
    case Pattern::affine_snake:
      return map(x, channels, y, [=](Vec v, int64_t c, int64_t n) { return snake(norm(v, c, n), c, n); });
    case Pattern::chain:
      return chain_row(f, x, flat, channels, y);
    default:
      return general_row(f, x, flat, channels, y);
  }
}

struct Place {
  int64_t flat, flat_step, c;
};

void general_tile(const Fused& f, float* tile, int rows, int64_t width, const Place& at) {
  for (int i = 0; i < rows; ++i) {
    const float* row[Fused::kMost];
    for (int k = 0; k < f.n_operands; ++k) {
      const Operand& o = f.operand[k];
      row[k] = o.row(at.flat + i * at.flat_step) + at.c * o.channel_step;
    }
    float* t = tile + i * kTile;
    map(t, width, t, [&](Vec v, int64_t c, int64_t n) { return evaluate(f, row, v, c, n); });
  }
}

// out = op(tile), row by row.
template <class F>
inline void put(const float* tile, int rows, int64_t width, const Place& at, float* out, int64_t channels, F op) {
  for (int i = 0; i < rows; ++i) {
    float* to = out + (at.flat + i * at.flat_step) * channels + at.c;
    const float* from = tile + i * kTile;
    int64_t j = 0;
    for (; j + kWidth <= width; j += kWidth) store(to + j, op(load(from + j), i, j, int64_t{kWidth}));
    if (j < width) store_n(to + j, op(load(from + j), i, j, width - j), width - j);
  }
}

// What most lists begin with, done where a result is read: the bias, a residual, a factor.
struct Beginning {
  int n = 0;  // steps that it covers
  const float *bias = nullptr, *residual[kTileRows];
  bool adds = false, scales = false;
  Vec factor;

  Beginning(const Fused& f, const float* bias_of_all, int rows, const Place& at)
      : bias(bias_of_all ? bias_of_all + at.c : nullptr) {
    const int operand = f.n > 0 ? f.step[0].arg[1].reg : 0, result = f.n_operands + 1;
    if (f.pattern != Fused::Pattern::chain || f.step[0].op != Op::add || operand < 1) return;
    const Operand& o = f.operand[operand - 1];
    if (o.channel_step == 0) return;
    n = 1, adds = true;
    for (int i = 0; i < rows; ++i) residual[i] = o.row(at.flat + i * at.flat_step) + at.c;
    scales = f.n > 1 && is(f.step[1], Op::mul, result);
    if (scales) factor = set1(f.step[1].arg[1].literal), n = 2;
  }

  Vec operator()(Vec v, int i, int64_t j, int64_t lanes) const {
    if (bias) v = v + get(bias, j, lanes);
    if (adds) v = v + get(residual[i], j, lanes);
    return scales ? v * factor : v;
  }
};

// One step of a chain: op(tile), or op(what `before` makes of it), to the rows of `to`.
template <class Before, class Store>
void chain_step(const Fused& f, const Step& s, const float* tile, int rows, int64_t width, const Place& at,
                const Before& before, Store to) {
  with_function(s.op, [&](auto function) {
    for (int i = 0; i < rows; ++i) {
      const int64_t flat = at.flat + i * at.flat_step;
      const Values b(f, s.arg[1], flat, at.c), c(f, s.arg[2], flat, at.c);
      const float* from = tile + i * kTile;
      float* y = to(i);
      int64_t j = 0;
      for (; j + kWidth <= width; j += kWidth) {
        store(y + j, function(before(load(from + j), i, j, int64_t{kWidth}), b.at(j, kWidth), c.at(j, kWidth)));
      }
      const int64_t n = width - j;
      if (n > 0) store_n(y + j, function(before(load(from + j), i, j, n), b.at(j, n), c.at(j, n)), n);
    }
  });
}

}  // namespace

const float* Operand::row(int64_t flat) const {
  if (row_step >= 0) return data + flat * row_step;
  int64_t offset = 0;
  for (int i = n_axes - 1; i >= 0; --i) {
    offset += flat % size[i] * stride[i];
    flat /= size[i];
  }
  return data + offset;
}

Fused decode(const Call& call, int64_t steps, const Tensor* operands, int n, const int64_t* shape, int rank) {
  Fused f;
  if (steps < 0) return f;
  const int64_t* word = call.extra + steps;
  f.n = static_cast<int>(*word++);
  f.n_operands = n;
  if (f.n > Fused::kMost || n > Fused::kMost)
    refuse("a dense op was given more than %d fused steps or operands", Fused::kMost);
  for (int i = 0; i < n; ++i) f.operand[i] = bind(operands[i], shape, rank);
  for (int i = 0; i < f.n; ++i) {
    f.step[i] = {static_cast<Op>(*word++), {{-1, 0}, {-1, 0}, {-1, 0}}};
    const int64_t n_args = *word++;
    for (int64_t k = 0; k < n_args; ++k, word += 2) {
      double literal = 0;
      if (word[0] == 1) std::memcpy(&literal, &word[1], sizeof literal);
      if (k < 3) f.step[i].arg[k] = {word[0] == 1 ? -1 : static_cast<int>(word[1]), static_cast<float>(literal)};
    }
  }
  put_in_order(f);
  f.pattern = pattern_of(f);
  return f;
}

void apply_prologue(const Fused& f, const float* x, int64_t flat, int64_t rows, int64_t channels, float* dst,
                    int64_t dst_step) {
  using Pattern = Fused::Pattern;
  float* snakes = nullptr;
  if (f.pattern == Pattern::snake || f.pattern == Pattern::affine_snake) {
    snakes = static_cast<float*>(scratch(2, static_cast<size_t>(channels) * 8));
    const float* alpha = f.operand[f.pattern == Pattern::snake ? 0 : 2].data;
    map(alpha, channels, snakes, [](Vec a, int64_t, int64_t) { return set1(1.0f) / a; });
    map(alpha, channels, snakes + channels, [](Vec a, int64_t, int64_t) { return a * set1(0.318309886183790672f); });
  }
  for (int64_t i = 0; i < rows; ++i) {
    float* to = dst + i * dst_step;
    if (f.pattern == Pattern::none) {
      std::memcpy(to, x + i * channels, static_cast<size_t>(channels) * 4);
    } else {
      prologue_row(f, x + i * channels, flat + i, channels, snakes, to);
    }
  }
}

void prefetch(const Fused& f, int rows, int64_t width, int64_t flat, int64_t flat_step, int64_t c, const float* out,
              int64_t channels) {
  const float* full = nullptr;
  for (int k = 0; k < f.n_operands; ++k) {
    if (f.operand[k].row_step == channels && f.operand[k].data != out) full = f.operand[k].data;
  }
  for (int i = 0; i < rows; ++i) {
    const int64_t offset = (flat + i * flat_step) * channels + c;
    for (int64_t j = 0; j < width; j += 16) {
      if (full) __builtin_prefetch(full + offset + j, 0);
      __builtin_prefetch(out + offset + j, 1);
    }
  }
}

void finish(const Fused& f, float* tile, int rows, int64_t width, int64_t flat, int64_t flat_step, int64_t c,
            const float* bias, float* out, int64_t channels) {
  const Place at = {flat, flat_step, c};
  const auto same = [](Vec v, int, int64_t, int64_t) { return v; };
  const auto in_tile = [=](int i) { return tile + i * kTile; };
  const Beginning begin(f, bias, rows, at);
  const auto begin_in_tile = [&] { put(tile, rows, width, {0, 1, 0}, tile, kTile, begin); };
  if (begin.n == f.n) return put(tile, rows, width, at, out, channels, begin);
  if (f.pattern == Fused::Pattern::general) {
    begin_in_tile();
    general_tile(f, tile, rows, width, at);
    return put(tile, rows, width, at, out, channels, same);
  }
  const auto to_out = [=](int i) { return out + (flat + i * flat_step) * channels + c; };
  const Step& last = f.step[f.n - 1];
  if (begin.n + 1 == f.n) return chain_step(f, last, tile, rows, width, at, begin, to_out);
  begin_in_tile();
  for (int i = begin.n; i + 1 < f.n; ++i) chain_step(f, f.step[i], tile, rows, width, at, same, in_tile);
  chain_step(f, last, tile, rows, width, at, same, to_out);
}

}  // namespace sonant::SONANT_ISA
