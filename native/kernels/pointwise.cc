// pointwise and expand: step lists on operands that broadcast against the result.
//
// The result is walked in blocks that fit the L1 cache. In every block each register is a run of contiguous numbers: an
// operand of the result's shape is read in place, any other is laid out for the block, and what repeats from block to
// block (numbers, vectors over the last axes) is laid out once. Then each step is one plain loop.
#include <algorithm>

#include "../runtime/call.h"
#include "../runtime/opset.gen.h"
#include "../simd/math.h"

namespace sonant::SONANT_ISA {
namespace {

constexpr int64_t kBlock = 1024;         // elements
constexpr int64_t kPiece = 16 * kBlock;  // what one thread takes at a time
constexpr int kMostSteps = 48, kMostOperands = 32;

// --- steps
// ------------------------------------------------------------------------------------------------------------
template <class F>
void map(F f, const float* a, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(y + i, f(load(a + i)));
  if (i < n) store_n(y + i, f(load_n(a + i, n - i)), n - i);
}

template <class F>
void map(F f, const float* a, const float* b, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(y + i, f(load(a + i), load(b + i)));
  if (i < n) store_n(y + i, f(load_n(a + i, n - i), load_n(b + i, n - i)), n - i);
}

template <class F>
void map(F f, const float* a, const float* b, const float* c, float* y, int64_t n) {
  int64_t i = 0;
  for (; i + kWidth <= n; i += kWidth) store(y + i, f(load(a + i), load(b + i), load(c + i)));
  if (i < n) store_n(y + i, f(load_n(a + i, n - i), load_n(b + i, n - i), load_n(c + i, n - i)), n - i);
}

// min and max that hand a NaN of either operand on.
Vec minimum(Vec a, Vec b) { return select(a == a, min(a, b), a); }
Vec maximum(Vec a, Vec b) { return select(a == a, max(a, b), a); }

void step_f32(Op op, const float* const* arg, float* y, int64_t n) {
  const float *a = arg[0], *b = arg[1], *c = arg[2];
  const Vec one = set1(1.0f), none = zero();
  switch (op) {
    case Op::add:
      return map([](Vec p, Vec q) { return p + q; }, a, b, y, n);
    case Op::sub:
      return map([](Vec p, Vec q) { return p - q; }, a, b, y, n);
    case Op::mul:
      return map([](Vec p, Vec q) { return p * q; }, a, b, y, n);
    case Op::div:
      return map([](Vec p, Vec q) { return p / q; }, a, b, y, n);
    case Op::minimum:
      return map([](Vec p, Vec q) { return minimum(p, q); }, a, b, y, n);
    case Op::maximum:
      return map([](Vec p, Vec q) { return maximum(p, q); }, a, b, y, n);
    case Op::greater:
      return map([=](Vec p, Vec q) { return select(p > q, one, none); }, a, b, y, n);
    case Op::equal:
      return map([=](Vec p, Vec q) { return select(p == q, one, none); }, a, b, y, n);
    case Op::atan2:
      return map([](Vec p, Vec q) { return atan2(p, q); }, a, b, y, n);
    case Op::leaky_relu:
      return map([](Vec p, Vec q) { return leaky_relu(p, q); }, a, b, y, n);
    case Op::snake:
      return map([](Vec p, Vec q) { return p + sin_squared(p * q) / q; }, a, b, y, n);
    case Op::affine:
      return map([](Vec p, Vec q, Vec r) { return fma(p, q, r); }, a, b, c, y, n);
    case Op::where:
      return map([=](Vec p, Vec q, Vec r) { return select(p == none, r, q); }, a, b, c, y, n);
    case Op::exp:
      return map([](Vec p) { return exp(p); }, a, y, n);
    case Op::log:
      return map([](Vec p) { return log(p); }, a, y, n);
    case Op::sin:
      return map([](Vec p) { return sin(p); }, a, y, n);
    case Op::cos:
      return map([](Vec p) { return cos(p); }, a, y, n);
    case Op::tanh:
      return map([](Vec p) { return tanh(p); }, a, y, n);
    case Op::sigmoid:
      return map([](Vec p) { return sigmoid(p); }, a, y, n);
    case Op::relu:
      return map([=](Vec p) { return max(none, p); }, a, y, n);  // this order hands a NaN on
    case Op::silu:
      return map([](Vec p) { return silu(p); }, a, y, n);
    case Op::gelu:
      return map([](Vec p) { return gelu(p); }, a, y, n);
    case Op::gelu_tanh:
      return map([](Vec p) { return gelu_tanh(p); }, a, y, n);
    case Op::elu:
      return map([](Vec p) { return elu(p); }, a, y, n);
    case Op::sqrt:
      return map([](Vec p) { return sqrt(p); }, a, y, n);
    case Op::abs:
      return map([](Vec p) { return abs(p); }, a, y, n);
    case Op::floor:
      return map([](Vec p) { return floor(p); }, a, y, n);
    case Op::round:
      return map([](Vec p) { return round(p); }, a, y, n);
    default:
      refuse("pointwise: no step '%s'", kOpRows[static_cast<int>(op)].name);
  }
}

int32_t wrap(int64_t v) { return static_cast<int32_t>(static_cast<uint32_t>(static_cast<uint64_t>(v))); }

void step_i32(Op op, const int32_t* const* arg, int32_t* y, int64_t n) {
  const int32_t *a = arg[0], *b = arg[1], *c = arg[2];
  for (int64_t i = 0; i < n; ++i) {
    switch (op) {
      case Op::add:
        y[i] = wrap(int64_t{a[i]} + b[i]);
        break;
      case Op::sub:
        y[i] = wrap(int64_t{a[i]} - b[i]);
        break;
      case Op::mul:
        y[i] = wrap(int64_t{a[i]} * b[i]);
        break;
      case Op::minimum:
        y[i] = std::min(a[i], b[i]);
        break;
      case Op::maximum:
        y[i] = std::max(a[i], b[i]);
        break;
      case Op::greater:
        y[i] = a[i] > b[i];
        break;
      case Op::equal:
        y[i] = a[i] == b[i];
        break;
      case Op::affine:
        y[i] = wrap(int64_t{a[i]} * b[i] + c[i]);
        break;
      case Op::where:
        y[i] = a[i] != 0 ? b[i] : c[i];
        break;
      case Op::relu:
        y[i] = std::max(a[i], 0);
        break;
      case Op::abs:
        y[i] = wrap(a[i] < 0 ? -int64_t{a[i]} : a[i]);
        break;
      case Op::floor:
      case Op::round:
        y[i] = a[i];
        break;
      default:
        refuse("pointwise: no step '%s' on i32", kOpRows[static_cast<int>(op)].name);
    }
  }
}

void run_step(DType t, Op op, const void* const* arg, void* y, int64_t n) {
  if (t == DType::f32) {
    const float* a[3] = {static_cast<const float*>(arg[0]), static_cast<const float*>(arg[1]),
                         static_cast<const float*>(arg[2])};
    return step_f32(op, a, static_cast<float*>(y), n);
  }
  const int32_t* a[3] = {static_cast<const int32_t*>(arg[0]), static_cast<const int32_t*>(arg[1]),
                         static_cast<const int32_t*>(arg[2])};
  step_i32(op, a, static_cast<int32_t*>(y), n);
}

// --- operands
// --------------------------------------------------------------------------------------------------------- Words of 4
// bytes (f32 or i32) broadcast against the flat result. Axes from the innermost on, neighbours merged: each is walked
// in the operand (step > 0) or repeats it (step 0).
struct Source {
  enum class Kind { in_place, tiled, laid_out };

  const uint32_t* data = nullptr;
  int n_axes = 0;
  int64_t size[kMaxRank] = {}, step[kMaxRank] = {};
  Kind kind = Kind::laid_out;
  int64_t period = 1;  // tiled: the block repeats after so many elements...
  int64_t reach = 0;   // ...as far as the next multiple of this

  void bind(const Tensor& t, const Tensor& y) {
    data = static_cast<const uint32_t*>(t.data);
    if (t.rank > y.rank || (t.dtype != DType::f32 && t.dtype != DType::i32))
      refuse("pointwise: an operand of an unfit rank or dtype");
    int64_t step_here = 1;
    for (int i = 1; i <= y.rank; ++i) {
      const int64_t n = y.dim[y.rank - i], own = i <= t.rank ? t.dim[t.rank - i] : 1;
      if (own != n && own != 1) refuse("pointwise: an operand that does not broadcast to the result");
      if (n != 1) add_axis(n, own == 1 ? 0 : step_here);
      step_here *= own;
    }
    if (n_axes == 0) add_axis(1, 1);
    choose_kind();
  }

  // The n elements from `at` on.
  void lay_out(int64_t at, int64_t n, uint32_t* to) const {
    int64_t index[kMaxRank], offset = 0;
    for (int a = 0; a < n_axes; ++a) {
      index[a] = at % size[a];
      at /= size[a];
      offset += index[a] * step[a];
    }
    while (n > 0) {
      const int64_t run = std::min(n, size[0] - index[0]);
      const uint32_t* from = data + offset;
      if (step[0] == 0) {
        std::fill(to, to + run, *from);
      } else {
        std::copy(from, from + run, to);
      }
      to += run;
      n -= run;
      offset -= index[0] * step[0];
      index[0] = 0;
      for (int a = 1; a < n_axes; ++a) {
        offset += step[a];
        if (++index[a] < size[a]) break;
        offset -= size[a] * step[a];
        index[a] = 0;
      }
    }
  }

 private:
  void add_axis(int64_t n, int64_t step_here) {
    const bool repeats = step_here == 0;
    if (n_axes > 0 && (step[n_axes - 1] == 0) == repeats) {  // a tensor's walked neighbours are contiguous
      size[n_axes - 1] *= n;
      return;
    }
    size[n_axes] = n;
    step[n_axes++] = step_here;
  }

  void choose_kind() {
    if (n_axes == 1 && step[0] != 0) {
      kind = Kind::in_place;
      return;
    }
    const bool repeats_first = step[0] == 0;
    period = repeats_first ? 1 : size[0];
    reach = repeats_first ? size[0] : size[0] * size[1];
    if (period <= kBlock / 2 && (reach >= 4 * kBlock || n_axes <= (repeats_first ? 1 : 2))) kind = Kind::tiled;
  }
};

// --- the list as a plan for blocks
// --------------------------------------------------------------------------------------
struct Line {
  Op op = Op::add;
  int arg[3] = {0, 0, 0};  // registers; literals have registers of their own, after all others
  int slot = -1;           // of the result; -1: the output itself
};

struct List {
  DType dtype = DType::f32;
  int n_operands = 0, n_lines = 0, n_literals = 0, n_slots = 0;
  Line line[kMostSteps];
  uint32_t literal[kMostSteps * 2];
  int64_t block = kBlock;

  int result_register(int i) const { return n_operands + i; }
  int literal_register(int i) const { return n_operands + n_lines + i; }
};

uint32_t literal_bits(DType t, int64_t word) {
  double value;
  std::memcpy(&value, &word, sizeof value);
  uint32_t bits_of = 0;
  if (t == DType::f32) {
    const auto f = static_cast<float>(value);
    std::memcpy(&bits_of, &f, 4);
  } else {
    bits_of = static_cast<uint32_t>(static_cast<int32_t>(std::clamp(value, -2147483648.0, 2147483647.0)));
  }
  return bits_of;
}

// A result's slot is free again after the last line that reads it; a line may write the slot of its own argument.
void assign_slots(List& list) {
  int last[kMostSteps] = {};
  for (int i = 0; i < list.n_lines; ++i) {
    for (const int r : list.line[i].arg) {
      const int from = r - list.n_operands;
      if (from >= 0 && from < list.n_lines) last[from] = i;
    }
  }
  bool taken[kMostSteps] = {};
  for (int i = 0; i + 1 < list.n_lines; ++i) {
    for (int j = 0; j < i; ++j) {
      if (last[j] == i && list.line[j].slot >= 0) taken[list.line[j].slot] = false;
    }
    int slot = 0;
    while (taken[slot]) ++slot;
    taken[slot] = last[i] > i;
    list.line[i].slot = slot;
    list.n_slots = std::max(list.n_slots, slot + 1);
  }
}

List read_list(const Call& call, int64_t at, DType t) {
  List list;
  list.dtype = t;
  list.n_operands = call.n_in;
  if (at < 0) return list;
  const int64_t* word = call.extra + at;
  list.n_lines = static_cast<int>(*word++);
  if (list.n_lines > kMostSteps) refuse("pointwise: %d steps, %d at most", list.n_lines, kMostSteps);
  for (int i = 0; i < list.n_lines; ++i) {
    list.line[i].op = static_cast<Op>(*word++);
    const int64_t n_args = *word++;
    for (int64_t a = 0; a < n_args; ++a, word += 2) {
      if (word[0] == 0) {
        list.line[i].arg[a] = static_cast<int>(word[1]);
      } else {
        list.line[i].arg[a] = list.literal_register(list.n_literals);
        list.literal[list.n_literals++] = literal_bits(t, word[1]);
      }
    }
    for (int64_t a = n_args; a < 3; ++a) list.line[i].arg[a] = list.line[i].arg[0];
  }
  assign_slots(list);
  return list;
}

// One thread's walk over [begin, end) of the flat result.
class Walk {
 public:
  Walk(const List& list, const Source* sources, uint32_t* y, int64_t longest)
      : list_(list), sources_(sources), y_(y), row_((longest + kWidth - 1) / kWidth * kWidth) {
    const int rows = list.n_operands + list.n_slots + list.n_literals;
    buffers_ = static_cast<uint32_t*>(scratch(0, static_cast<size_t>(rows * row_) * 4));
    for (int i = 0; i < list.n_operands; ++i) tiled_from_[i] = -1;
    for (int i = 0; i < list.n_lines; ++i) {
      if (list.line[i].slot >= 0) registers_[list.result_register(i)] = row(list.n_operands + list.line[i].slot);
    }
    for (int i = 0; i < list.n_literals; ++i) {
      uint32_t* to = row(list.n_operands + list.n_slots + i);
      std::fill(to, to + row_, list.literal[i]);
      registers_[list.literal_register(i)] = to;
    }
  }

  void run(int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end;) {
      int64_t stop = std::min(end, at + list_.block);
      for (int i = 0; i < list_.n_operands; ++i) {
        if (sources_[i].kind == Source::Kind::tiled)
          stop = std::min(stop, (at / sources_[i].reach + 1) * sources_[i].reach);
      }
      block(at, stop - at);
      at = stop;
    }
  }

 private:
  uint32_t* row(int i) { return buffers_ + i * row_; }

  void block(int64_t at, int64_t n) {
    for (int i = 0; i < list_.n_operands; ++i) registers_[i] = operand(i, at, n);
    if (list_.n_lines == 0) {
      std::copy(registers_[0], registers_[0] + n, y_ + at);
      return;
    }
    for (int i = 0; i < list_.n_lines; ++i) {
      const Line& line = list_.line[i];
      const void* args[3] = {registers_[line.arg[0]], registers_[line.arg[1]], registers_[line.arg[2]]};
      uint32_t* to = line.slot < 0 ? y_ + at : row(list_.n_operands + line.slot);
      run_step(list_.dtype, line.op, args, to, n);
    }
  }

  const uint32_t* operand(int i, int64_t at, int64_t n) {
    const Source& s = sources_[i];
    if (s.kind == Source::Kind::in_place) return s.data + at;
    uint32_t* to = row(i);
    if (s.kind == Source::Kind::laid_out) {
      s.lay_out(at, n, to);
    } else {
      // Blocks begin at multiples of the period, so that the tile fits all up to `reach`.
      if (tiled_from_[i] != at / s.reach || tiled_[i] < n) {
        s.lay_out(at, n, to);
        tiled_from_[i] = at / s.reach;
        tiled_[i] = n;
      }
    }
    return to;
  }

  const List& list_;
  const Source* sources_;
  uint32_t* y_;
  const int64_t row_;
  uint32_t* buffers_ = nullptr;
  const uint32_t* registers_[kMostOperands + 3 * kMostSteps] = {};
  int64_t tiled_from_[kMostOperands], tiled_[kMostOperands] = {};
};

void run_list(List list, const Call& call, Context& context) {
  const Tensor& y = call.out[0];
  if (list.n_operands > kMostOperands) refuse("pointwise: %d operands, %d at most", list.n_operands, kMostOperands);
  Source sources[kMostOperands];
  int64_t period = 1;
  for (int i = 0; i < list.n_operands; ++i) {
    if (call.in[i].dtype != list.dtype) refuse("pointwise: operands of different dtypes");
    sources[i].bind(call.in[i], y);
    if (sources[i].kind == Source::Kind::tiled) period = std::max(period, sources[i].period);
  }
  // Periods are products of the result's last axes, so the longest is a multiple of the others.
  list.block = kBlock / period * period;
  const int64_t n = y.elements(), piece = kPiece / list.block * list.block;
  auto* to = static_cast<uint32_t*>(y.data);
  context.for_each(n, piece, [&](int64_t begin, int64_t end) {
    Walk(list, sources, to, std::min(list.block, end - begin)).run(begin, end);
  });
}

}  // namespace

void pointwise(const Call& call, Context& context) {
  run_list(read_list(call, call.integer(attr::pointwise::steps), call.out[0].dtype), call, context);
}

void expand(const Call& call, Context& context) { run_list(read_list(call, -1, call.out[0].dtype), call, context); }

}  // namespace sonant::SONANT_ISA
