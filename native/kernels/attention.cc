// softmax(q k^T * scale) v. Scores have keys across lanes, in blocks from absolute position 0; values have
// channels across lanes, keys in order. A hidden key adds an exact zero to sums, so a query's bits do not depend on the
// other queries, the batch, chunking, or how many keys lie beyond those it sees.

#include "../simd/transpose.h"
#include "dense.h"
#include "state.h"

namespace sonant::SONANT_ISA {
namespace {

constexpr int64_t kScoreBytes = 256 << 10;  // scores of one query block
constexpr int64_t kMostRows = 96;           // of a block: enough to share the turned keys
constexpr int64_t kSmallWork = 100000;

struct Attention {
  const float* q;
  Tensor k, v;  // [B or slots, keys or capacity, kv_heads * size]
  const int32_t *slots, *position;
  float* out;
  bool ring;  // position p of a row lies at p % capacity
  int64_t batch, queries, heads, kv_heads, size, window;
  float scale;
  bool causal;

  int64_t start(int64_t b) const { return position ? position[b] : 0; }
  int64_t keys(int64_t b) const { return position ? position[b] + queries : k.dim[1]; }
  int64_t at(int64_t b, int64_t key, int64_t kv) const {
    return ((slots ? slots[b] : b) * k.dim[1] + (ring ? key % k.dim[1] : key)) * kv_heads * size + kv * size;
  }
  // How many of n keys from `key` on lie one after another.
  int64_t together(int64_t key, int64_t n) const {
    const int64_t left = ring ? k.dim[1] - key % k.dim[1] : n;
    return left < n ? left : n;
  }
};

// The keys a query at `position` sees: [first, last).
struct Span {
  int64_t first, last;
};
Span visible(const Attention& a, int64_t keys, int64_t position) {
  if (!a.causal) return {0, keys};
  const int64_t last = position + 1 < keys ? position + 1 : keys, first = position + 1 - a.window;
  return {a.window > 0 && first > 0 ? first : 0, last};
}

// Queries [q0, q1) of all heads that share key head `kv`. Row r is head r / n, query q0 + r % n.
class Block {
 public:
  Block(const Attention& a, int64_t b, int64_t kv, int64_t q0, int64_t q1)
      : a_(a), b_(b), kv_(kv), q0_(q0), n_(q1 - q0), group_(a.heads / a.kv_heads), rows_(n_ * group_) {
    const int64_t start = a.start(b), keys = a.keys(b);
    first_ = visible(a, keys, start + q0).first / kTile * kTile;
    last_ = visible(a, keys, start + q1 - 1).last;
    step_ = (ceil_div(last_ - first_, kTile) * kTile / 16 + 1) * 16;  // whole blocks, in an odd number of cache lines
    const int64_t turned = a.size * kTile, loaded = kTile * a.size;
    auto* s = static_cast<float*>(scratch(0, static_cast<size_t>(rows_ * (a.size + step_ + 1) + turned + loaded) * 4));
    turned_ = s, loaded_ = s + turned, queries_ = loaded_ + loaded, scores_ = queries_ + rows_ * a.size;
    sums_ = scores_ + rows_ * step_;
  }

  void run() {
    for (int64_t r = 0; r < rows_; ++r) {
      std::memcpy(queries_ + r * a_.size, a_.q + place(r), static_cast<size_t>(a_.size) * 4);
    }
    for (int64_t key = first_; key < last_; key += kTile) score(key);
    for (int64_t r = 0; r < rows_; ++r) softmax(r);
    values();
  }

 private:
  int64_t place(int64_t r) const {
    return ((b_ * a_.queries + q0_ + r % n_) * a_.heads + kv_ * group_ + r / n_) * a_.size;
  }

  // f32 rows of k or v, in place where they are f32 already and lie together.
  const float* rows_of(const Tensor& t, int64_t key, int64_t n, float* buffer, int64_t* step) {
    *step = a_.kv_heads * a_.size;
    if (t.dtype == DType::f32 && a_.together(key, n) == n) return t.f32() + a_.at(b_, key, kv_);
    for (int64_t i = 0; i < n; ++i) read_state(t, a_.at(b_, key + i, kv_), a_.size, buffer + i * a_.size);
    *step = a_.size;
    return buffer;
  }

  void score(int64_t key) {
    const int64_t n = last_ - key < kTile ? last_ - key : kTile;
    int64_t step = 0;
    const float* k = rows_of(a_.k, key, n, loaded_, &step);
    for (int i = 0; i < kMaxPanels; ++i) {
      const int64_t from = i * kPanel, count = n - from < kPanel ? n - from : kPanel;
      turn(k + from * step, step, count, a_.size, turned_ + from * a_.size);
    }
    Product p;
    p.step = p.channels = a_.size;
    p.weight = turned_;
    p.panel_step = kPanel * a_.size;
    constexpr int kRows = rows_at_once(kMaxPanels);
    alignas(64) float tile[kRows * kTile];
    const Vec scale = set1(a_.scale);
    for (int64_t r = 0; r < rows_; r += kRows) {
      const int rows = static_cast<int>(rows_ - r < kRows ? rows_ - r : kRows);
      p.input = queries_ + r * a_.size;
      multiply(p, rows, kMaxPanels, DType::f32, tile);
      for (int i = 0; i < rows; ++i) {
        float* to = scores_ + (r + i) * step_ + key - first_;
        for (int j = 0; j < kTile; j += kWidth) store(to + j, load(tile + i * kTile + j) * scale);
      }
    }
  }

  // [n keys][size] to [size][32 keys]; lanes past n are zero.
  static void turn(const float* k, int64_t step, int64_t n, int64_t size, float* to) {
    if (n < kPanel) std::memset(to, 0, static_cast<size_t>(size * kPanel) * 4);
    int64_t lane = 0;
    for (; lane + kTurn <= n; lane += kTurn) {
      const float* from = k + lane * step;
      int64_t c = 0;
      for (; c + kTurn <= size; c += kTurn) turn_block(from + c, step, to + c * kPanel + lane, kPanel);
      for (; c < size; ++c) {
        for (int i = 0; i < kTurn; ++i) to[c * kPanel + lane + i] = from[i * step + c];
      }
    }
    for (; lane < n; ++lane) {
      for (int64_t c = 0; c < size; ++c) to[c * kPanel + lane] = k[lane * step + c];
    }
  }

  void softmax(int64_t r) {
    float* s = scores_ + r * step_;
    const Span seen = visible(a_, a_.keys(b_), a_.start(b_) + q0_ + r % n_);
    const int64_t end = ceil_div(last_ - first_, kTile) * kTile;
    for (int64_t i = 0; i < seen.first - first_; ++i) s[i] = -kInfinity;
    for (int64_t i = seen.last - first_; i < end; ++i) s[i] = -kInfinity;
    Vec top = set1(-kInfinity), sum = zero();
    for (int64_t i = 0; i < end; i += kWidth) top = max(load(s + i), top);
    top = set1(reduce_max(top));
    for (int64_t i = 0; i < end; i += kWidth) {
      const Vec e = exp_nonpositive(load(s + i) - top);
      store(s + i, e);
      sum = sum + e;
    }
    sums_[r] = reduce_add(sum);
  }

  void values() {
    const int64_t keys = last_ - first_, size = a_.size;
    if (size % kPanel == 0 && a_.v.dtype == DType::f32) {
      for (int64_t c = 0; c < size; c += kTile) {
        value_columns(c, size - c < kTile ? size - c : kTile, a_.kv_heads * size, [&](int64_t from, int64_t* n) {
          *n = a_.together(first_ + from, *n);
          return a_.v.f32() + a_.at(b_, first_ + from, kv_) + c;
        });
      }
      return;
    }
    // The kernel reads whole panels: they are laid out, from rows in f32.
    auto* room = static_cast<float*>(scratch(1, static_cast<size_t>(keys * (size + kPanel)) * 4));
    float* panel = room + keys * size;
    int64_t step = 0;
    const float* v = rows_of(a_.v, first_, keys, room, &step);
    std::memset(panel, 0, static_cast<size_t>(keys * kPanel) * 4);
    for (int64_t c = 0; c < size; c += kPanel) {
      const int64_t width = size - c < kPanel ? size - c : kPanel;
      for (int64_t i = 0; i < keys; ++i) {
        std::memcpy(panel + i * kPanel, v + i * step + c, static_cast<size_t>(width) * 4);
      }
      value_columns(c, width, kPanel, [&](int64_t from, int64_t*) { return panel + from * kPanel; });
    }
  }

  // Channels [c, c + width) of all rows. weights(from, &n): of the keys from first_ + from on, and of how many of the n
  // that are left they lie together.
  template <class F>
  void value_columns(int64_t c, int64_t width, int64_t weight_step, F weights) {
    const int panels = static_cast<int>(ceil_div(width, kPanel)), most = rows_at_once(panels);
    alignas(64) float tile[kMaxRows * kTile];
    Product p;
    p.step = step_;
    p.panel_step = kPanel;
    p.weight_step = weight_step;
    for (int64_t r = 0; r < rows_; r += most) {
      const int rows = static_cast<int>(rows_ - r < most ? rows_ - r : most);
      for (int64_t from = 0, n = 0; from < last_ - first_; from += n) {
        n = last_ - first_ - from;
        p.weight = weights(from, &n);
        p.input = scores_ + r * step_ + from;
        p.channels = n;
        p.resume = from > 0;
        multiply(p, rows, panels, DType::f32, tile);
      }
      for (int i = 0; i < rows; ++i) {
        float* to = a_.out + place(r + i) + c;
        const Vec total = set1(sums_[r + i]);
        for (int64_t j = 0; j < width; j += kWidth) {
          store_n(to + j, load(tile + i * kTile + j) / total, width - j < kWidth ? width - j : int64_t{kWidth});
        }
      }
    }
  }

  const Attention& a_;
  int64_t b_, kv_, q0_, n_, group_, rows_, first_, last_, step_;
  float *turned_, *loaded_, *queries_, *scores_, *sums_;
};

// Puts k and v at their positions of the states and makes the states the keys and values.
void use_states(const Call& call, const Context& context, Attention& a) {
  namespace at = attr::attention;
  const Tensor *k = state_of(context, call.integer(at::state_k)), *v = state_of(context, call.integer(at::state_v));
  if (!k || !v) return;
  if (k->rank != 3 || k->dim[2] != a.kv_heads * a.size || v->elements() != k->elements()) {
    refuse("attention: states [rows, capacity, channels of k] wanted");
  }
  a.ring = context.rings[call.integer(at::state_k)] != 0;
  if (a.ring && (!a.causal || a.window < 1)) refuse("attention: ring states want a causal mask and a window");
  const Tensor new_k = a.k, new_v = a.v;
  a.k = *k, a.v = *v;
  a.slots = slots_of(call.in[3], *k, "attention");
  a.position = call.in[4].i32();
  for (int64_t b = 0; b < a.batch; ++b) {
    if (a.position[b] >= 0 && (a.ring ? a.queries + a.window - 1 : a.keys(b)) <= k->dim[1]) continue;
    refuse("attention: positions %d..%lld are not all within the capacity %lld of its state", a.position[b],
           static_cast<long long>(a.keys(b) - 1), static_cast<long long>(k->dim[1]));
  }
  const int64_t channels = a.kv_heads * a.size;
  for (int64_t b = 0; b < a.batch; ++b) {
    for (int64_t t = 0, n = 0; t < a.queries; t += n) {
      n = a.together(a.start(b) + t, a.queries - t);
      const int64_t to = a.at(b, a.start(b) + t, 0), from = (b * a.queries + t) * channels;
      write_state(a.k, to, n * channels, new_k.f32() + from);
      write_state(a.v, to, n * channels, new_v.f32() + from);
    }
  }
}

}  // namespace

void attention(const Call& call, Context& context) {
  namespace at = attr::attention;
  const Tensor& q = call.in[0];
  Attention a = {};
  a.q = q.f32();
  a.k = call.in[1], a.v = call.in[2];
  a.out = call.out[0].f32();
  a.batch = q.dim[0], a.queries = q.dim[1];
  a.heads = call.integer(at::heads);
  a.kv_heads = call.integer(at::kv_heads) > 0 ? call.integer(at::kv_heads) : a.heads;
  a.size = q.dim[2] / a.heads;
  a.scale = static_cast<float>(call.real(at::scale));
  a.causal = call.integer(at::mask) == static_cast<int64_t>(sonant::Mask::causal);
  a.window = call.integer(at::window);
  use_states(call, context, a);
  if (a.batch == 0 || a.queries == 0) return;

  int64_t keys = 0;
  for (int64_t b = 0; b < a.batch; ++b) keys = a.keys(b) > keys ? a.keys(b) : keys;
  int64_t rows = kScoreBytes / 4 / (keys + kPanel);
  if (rows > kMostRows) rows = kMostRows;
  const int64_t group = a.heads / a.kv_heads, most = rows > group ? rows / group : 1;
  const int64_t blocks = ceil_div(a.queries, most), items = a.batch * a.kv_heads * blocks;
  const bool small = a.batch * a.queries * a.heads * keys * a.size < kSmallWork;
  context.for_each(items, small ? items : 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i % blocks, kv = i / blocks % a.kv_heads;
      Block(a, i / blocks / a.kv_heads, kv, block * a.queries / blocks, (block + 1) * a.queries / blocks).run();
    }
  });
}

}  // namespace sonant::SONANT_ISA
