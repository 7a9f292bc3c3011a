// Ops that only move elements of 4 bytes: concat, slice, transpose, pad, gather, embedding, state_read, state_write;
// and cast. (expand is in pointwise.cc; reshape is no instruction.)
#include <algorithm>
#include <cstring>

#include "../runtime/call.h"
#include "../runtime/opset.gen.h"

namespace sonant::SONANT_ISA {
namespace {

constexpr int64_t kPiece = 1 << 15;  // elements that one thread takes at a time

void need(bool condition, const char* what) {
  if (!condition) refuse("%s", what);
}

uint32_t* words(const Tensor& t) { return static_cast<uint32_t*>(t.data); }

// `count` runs of `run` elements, from one stride to another.
struct Runs {
  const uint32_t* from;
  int64_t from_step;
  uint32_t* to;
  int64_t to_step, run, count;
};

void copy_range(const Runs& r, int64_t begin, int64_t end) {
  if (r.run == 1) {
    for (int64_t i = begin; i < end; ++i) r.to[i * r.to_step] = r.from[i * r.from_step];
    return;
  }
  for (int64_t i = begin; i < end; ++i) {
    std::memcpy(r.to + i * r.to_step, r.from + i * r.from_step, static_cast<size_t>(r.run) * 4);
  }
}

void copy_runs(Context& context, const Runs& r) {
  if (r.run <= 0 || r.count <= 0) return;
  if (r.run <= kPiece) {
    return context.for_each(r.count, kPiece / r.run, [&](int64_t begin, int64_t end) { copy_range(r, begin, end); });
  }
  for (int64_t i = 0; i < r.count; ++i) {
    context.for_each(r.run, kPiece, [&](int64_t begin, int64_t end) {
      std::memcpy(r.to + i * r.to_step + begin, r.from + i * r.from_step + begin, static_cast<size_t>(end - begin) * 4);
    });
  }
}

struct Axis {
  int64_t outer = 1, size = 1, inner = 1;  // elements before, along and after an axis
};

Axis split(const Tensor& t, int64_t axis, const char* op) {
  if (axis < 0) axis += t.rank;
  if (axis < 0 || axis >= t.rank) refuse("%s: axis outside a tensor of rank %d", op, t.rank);
  Axis a;
  for (int i = 0; i < axis; ++i) a.outer *= t.dim[i];
  a.size = t.dim[axis];
  for (int i = static_cast<int>(axis) + 1; i < t.rank; ++i) a.inner *= t.dim[i];
  return a;
}

// Position in [0, n) of index i of a signal mirrored at both ends, the edges not repeated.
int64_t mirrored(int64_t i, int64_t n) {
  if (n == 1) return 0;
  const int64_t period = 2 * (n - 1);
  i %= period;
  if (i < 0) i += period;
  return i < n ? i : period - i;
}

// rows[i] = the row of `from` that index[i] names.
void pick_rows(Context& context, const uint32_t* from, int64_t row, const int32_t* index, int64_t n, uint32_t* to) {
  if (row == 0) return;
  const size_t bytes = static_cast<size_t>(row) * 4;
  context.for_each(n, std::max<int64_t>(1, kPiece / row), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) std::memcpy(to + i * row, from + index[i] * row, bytes);
  });
}

void check_index(const Tensor& index, int64_t n, const char* op, const char* what) {
  need(index.dtype == DType::i32, "an index must be i32");
  const int64_t count = index.elements();
  if (count == 0) return;
  const auto [low, high] = std::minmax_element(index.i32(), index.i32() + count);
  if (*low < 0 || *high >= n)
    refuse("%s: %s %d..%d outside %lld rows", op, what, *low, *high, static_cast<long long>(n));
}

// --- transpose
// ----------------------------------------------------------------------------------------------------------
struct Transposition {
  int rank = 0;
  int64_t size[kMaxRank] = {}, step[kMaxRank] = {};  // of the result's axes: their length and their step in x
};

// Axes of length 1 are dropped and neighbours that stay neighbours merged.
Transposition simplified(const Tensor& x, const int64_t* perm) {
  int64_t stride[kMaxRank], step = 1;
  for (int i = x.rank - 1; i >= 0; --i) {
    stride[i] = step;
    step *= x.dim[i];
  }
  Transposition t;
  for (int i = 0; i < x.rank; ++i) {
    const int64_t n = x.dim[perm[i]], s = stride[perm[i]];
    if (n == 1) continue;
    if (t.rank > 0 && t.step[t.rank - 1] == n * s) {
      t.size[t.rank - 1] *= n;
      t.step[t.rank - 1] = s;
    } else {
      t.size[t.rank] = n;
      t.step[t.rank++] = s;
    }
  }
  if (t.rank == 0) t.size[t.rank] = 1, t.step[t.rank++] = 1;
  return t;
}

// The offset in x of plane `i`: the indices of the axes but the ones in `inner`.
int64_t plane_offset(const Transposition& t, int64_t i, int skip_a, int skip_b) {
  int64_t offset = 0;
  for (int a = t.rank - 1; a >= 0; --a) {
    if (a == skip_a || a == skip_b) continue;
    offset += i % t.size[a] * t.step[a];
    i /= t.size[a];
  }
  return offset;
}

// The last axis of the result is not the last of x: squares of the two axes, so that both sides use whole cache lines.
void transpose_squares(Context& context, const Transposition& t, const uint32_t* x, uint32_t* y) {
  constexpr int64_t kSide = 16;
  const int last = t.rank - 1;
  int fast = 0;  // the axis that is contiguous in x
  while (t.step[fast] != 1) ++fast;
  int64_t stride[kMaxRank], step = 1;
  for (int a = last; a >= 0; --a) {
    stride[a] = step;
    step *= t.size[a];
  }
  Transposition of_y = t;
  std::copy(stride, stride + t.rank, of_y.step);
  const int64_t n = t.size[last], m = t.size[fast], planes = step / (n * m), strips = (m + kSide - 1) / kSide;
  const int64_t from_step = t.step[last], to_step = stride[fast];
  context.for_each(planes * strips, std::max<int64_t>(1, kPiece / (n * kSide)), [&](int64_t begin, int64_t end) {
    for (int64_t piece = begin; piece < end; ++piece) {
      const uint32_t* from = x + plane_offset(t, piece / strips, last, fast);
      uint32_t* to = y + plane_offset(of_y, piece / strips, last, fast);
      const int64_t first = piece % strips * kSide, stop = std::min(first + kSide, m);
      for (int64_t i = 0; i < n; i += kSide) {
        const int64_t i_stop = std::min(i + kSide, n);
        for (int64_t j = first; j < stop; ++j) {
          for (int64_t k = i; k < i_stop; ++k) to[j * to_step + k] = from[k * from_step + j];
        }
      }
    }
  });
}

}  // namespace

void concat(const Call& call, Context& context) {
  const Tensor& y = call.out[0];
  const Axis whole = split(y, call.integer(attr::concat::axis), "concat");
  int64_t at = 0;
  for (int i = 0; i < call.n_in; ++i) {
    const Axis part = split(call.in[i], call.integer(attr::concat::axis), "concat");
    need(part.outer == whole.outer && part.inner == whole.inner && at + part.size <= whole.size,
         "concat: parts that do not make up the result");
    const int64_t run = part.size * part.inner;
    copy_runs(context,
              {words(call.in[i]), run, words(y) + at * whole.inner, whole.size * whole.inner, run, whole.outer});
    at += part.size;
  }
  need(at == whole.size, "concat: parts that do not make up the result");
}

void slice(const Call& call, Context& context) {
  const int64_t axis = call.integer(attr::slice::axis);
  const Axis x = split(call.in[0], axis, "slice"), y = split(call.out[0], axis, "slice");
  int64_t start = call.integer(attr::slice::start);
  if (start < 0) start += x.size;
  need(start >= 0 && start + y.size <= x.size && x.outer == y.outer && x.inner == y.inner, "slice: a part outside x");
  copy_runs(context, {words(call.in[0]) + start * x.inner, x.size * x.inner, words(call.out[0]), y.size * y.inner,
                      y.size * y.inner, y.outer});
}

void transpose(const Call& call, Context& context) {
  const Tensor &x = call.in[0], &y = call.out[0];
  const int64_t* list = call.extra + call.integer(attr::transpose::perm);
  need(list[0] == x.rank && y.rank == x.rank, "transpose: a perm of another rank");
  int seen = 0;
  for (int i = 0; i < x.rank; ++i) {
    need(list[1 + i] >= 0 && list[1 + i] < x.rank && y.dim[i] == x.dim[list[1 + i]],
         "transpose: a perm that does not fit");
    seen |= 1 << list[1 + i];
  }
  need(seen == (1 << x.rank) - 1, "transpose: a perm that does not fit");
  if (x.elements() == 0) return;
  const Transposition t = simplified(x, list + 1);
  const int last = t.rank - 1;
  if (t.step[last] != 1) return transpose_squares(context, t, words(x), words(y));
  const int64_t run = t.size[last], count = x.elements() / run;
  context.for_each(count, std::max<int64_t>(1, kPiece / run), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      std::memcpy(words(y) + i * run, words(x) + plane_offset(t, i, last, last), static_cast<size_t>(run) * 4);
    }
  });
}

void pad(const Call& call, Context& context) {
  const int64_t axis = call.integer(attr::pad::axis), left = call.integer(attr::pad::left);
  const Axis x = split(call.in[0], axis, "pad"), y = split(call.out[0], axis, "pad");
  const int64_t right = call.integer(attr::pad::right);
  need(left >= 0 && right >= 0 && y.size == left + x.size + right && x.outer == y.outer && x.inner == y.inner,
       "pad: a result of another shape");
  const auto mode = static_cast<PadMode>(call.integer(attr::pad::mode));
  need(mode == PadMode::zero || x.size > 0 || y.size == 0, "pad: nothing to reflect or to repeat");
  const size_t bytes = static_cast<size_t>(x.inner) * 4;
  copy_runs(context, {words(call.in[0]), x.size * x.inner, words(call.out[0]) + left * y.inner, y.size * y.inner,
                      x.size * x.inner, x.outer});
  for (int64_t o = 0; o < x.outer; ++o) {
    const uint32_t* from = words(call.in[0]) + o * x.size * x.inner;
    uint32_t* to = words(call.out[0]) + o * y.size * y.inner;
    for (int64_t i = 0; i < left + right; ++i) {
      const int64_t at = i < left ? i : x.size + i;
      if (bytes == 0) continue;
      if (mode != PadMode::zero) {
        const int64_t edge = i < left ? 0 : x.size - 1;
        const int64_t source = mode == PadMode::reflect ? mirrored(at - left, x.size) : edge;
        std::memcpy(to + at * y.inner, from + source * x.inner, bytes);
      } else {
        std::memset(to + at * y.inner, 0, bytes);
      }
    }
  }
}

void gather(const Call& call, Context& context) {
  const Tensor &x = call.in[0], &index = call.in[1], &y = call.out[0];
  need(x.rank == 3 && index.rank == 2 && index.dim[0] == x.dim[0], "gather: x [B,T,C] and index [B,N] wanted");
  need(y.elements() == index.elements() * x.dim[2], "gather: a result of another shape");
  check_index(index, x.dim[1], "gather", "index");
  const int64_t n = index.dim[1], row = x.dim[2];
  for (int64_t b = 0; b < x.dim[0]; ++b) {
    pick_rows(context, words(x) + b * x.dim[1] * row, row, index.i32() + b * n, n, words(y) + b * n * row);
  }
}

void embedding(const Call& call, Context& context) {
  const Tensor &ids = call.in[0], &table = call.in[1], &y = call.out[0];
  need(table.rank == 2 && table.dtype == DType::f32, "embedding: a table f32 [N,C] wanted");
  need(y.elements() == ids.elements() * table.dim[1], "embedding: a result of another shape");
  check_index(ids, table.dim[0], "embedding", "id");
  pick_rows(context, words(table), table.dim[1], ids.i32(), ids.elements(), words(y));
}

void state_read(const Call& call, Context& context) {
  need(call.integer(attr::state_read::state) >= 0, "state_read: no state named");
  const Tensor &state = context.states[call.integer(attr::state_read::state)], &rows = call.in[0];
  check_index(rows, state.dim[0], "state_read", "row");
  if (rows.elements() == 0) return;
  const int64_t row = state.elements() / state.dim[0];
  need(call.out[0].elements() == rows.elements() * row, "state_read: a result of another shape");
  pick_rows(context, words(state), row, rows.i32(), rows.elements(), words(call.out[0]));
}

void state_write(const Call& call, Context& context) {
  need(call.integer(attr::state_write::state) >= 0, "state_write: no state named");
  const Tensor &state = context.states[call.integer(attr::state_write::state)], &rows = call.in[0], &value = call.in[1];
  check_index(rows, state.dim[0], "state_write", "row");
  const int64_t n = rows.elements();
  if (n == 0) return;
  const int64_t row = state.elements() / state.dim[0];
  need(value.elements() == n * row || value.elements() == row, "state_write: a value of another shape");
  const int64_t step = value.elements() == n * row ? row : 0;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) {
      if (rows.i32()[j] == rows.i32()[i]) refuse("state_write: row %d is named twice", rows.i32()[i]);
    }
    std::memcpy(words(state) + rows.i32()[i] * row, words(value) + i * step, static_cast<size_t>(row) * 4);
  }
}

void cast(const Call& call, Context& context) {
  const Tensor &x = call.in[0], &y = call.out[0];
  const int64_t n = x.elements();
  need(y.elements() == n, "cast: a result of another shape");
  if (x.dtype == y.dtype) return copy_runs(context, {words(x), n, words(y), n, n, 1});
  need((x.dtype == DType::f32 && y.dtype == DType::i32) || (x.dtype == DType::i32 && y.dtype == DType::f32),
       "cast: f32 and i32 only");
  context.for_each(n, kPiece, [&](int64_t begin, int64_t end) {
    if (y.dtype == DType::f32) {
      for (int64_t i = begin; i < end; ++i) y.f32()[i] = static_cast<float>(x.i32()[i]);
    } else {
      for (int64_t i = begin; i < end; ++i) {
        const float v = x.f32()[i];
        const bool fits = v > -2147483904.0f && v < 2147483648.0f;  // NaN does not
        y.i32()[i] = fits ? static_cast<int32_t>(v) : INT32_MIN;
      }
    }
  });
}

}  // namespace sonant::SONANT_ISA
