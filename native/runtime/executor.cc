#include "executor.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "platform.h"

namespace sonant {

namespace {

using Clock = std::chrono::steady_clock;
constexpr int kMostNested = 8;

size_t bytes_of(const Tensor& t) { return static_cast<size_t>(t.elements()) * 4; }  // loops carry f32 and i32 only

void copy(const Tensor& from, const Tensor& to) {
  if (from.data != to.data) std::memmove(to.data, from.data, bytes_of(from));
}

bool overlap(const Tensor& a, const Tensor& b) {
  const auto *pa = static_cast<const char*>(a.data), *pb = static_cast<const char*>(b.data);
  return pa < pb + bytes_of(b) && pb < pa + bytes_of(a);
}

// All elements non-zero.
bool all_set(const Tensor& t) {
  const int64_t n = t.elements();
  if (t.dtype == DType::i32) return std::all_of(t.i32(), t.i32() + n, [](int32_t v) { return v != 0; });
  return std::all_of(t.f32(), t.f32() + n, [](float v) { return v != 0.0f; });
}

class Player {
 public:
  Player(const Run& run, const Code& code, const KernelTable& kernels, const std::vector<Release>& releases,
         Context context)
      : run_(run), code_(code), kernels_(kernels), releases_(releases), context_(context) {
    int64_t n = 0;
    for (const auto& block : code.blocks) {
      if (run.seconds != nullptr) clocks_.push_back(run.seconds + n);
      n += static_cast<int64_t>(block.size());
    }
    if (run.seconds != nullptr && n != run.n_seconds) {
      throw std::invalid_argument("seconds has " + std::to_string(run.n_seconds) + " places for " + std::to_string(n) +
                                  " instructions");
    }
  }

  Outcome play(size_t block, int depth) {
    if (depth > kMostNested) throw std::invalid_argument("bytecode: loops nested too deeply");
    const std::vector<Instruction>& instructions = code_.blocks[block];
    for (size_t at = 0; at < instructions.size(); ++at) {
      const Instruction& i = instructions[at];
      if (run_.cancel != nullptr && __atomic_load_n(run_.cancel, __ATOMIC_RELAXED) != 0) return Outcome::cancelled;
      if (i.op == Op::loop) {
        if (loop(i.call, depth) == Outcome::cancelled) return Outcome::cancelled;
      } else {
        kernel(i, clocks_.empty() ? nullptr : clocks_[block] + at);
      }
      if (depth == 0) release(static_cast<int64_t>(at));
    }
    return Outcome::done;
  }

 private:
  void release(int64_t at) {
    for (; released_ < releases_.size() && releases_[released_].after <= at; ++released_) {
      forget_pages(releases_[released_].address, releases_[released_].bytes);
    }
  }

  void kernel(const Instruction& i, double* seconds) {
    const Kernel f = kernels_.kernels[static_cast<int>(i.op)];
    if (f == nullptr) {
      throw std::runtime_error(std::string(row_of(i.op).name) + ": the native backend has no kernel for this op");
    }
    if (seconds == nullptr) return f(i.call, context_);
    const auto start = Clock::now();
    f(i.call, context_);
    *seconds += std::chrono::duration<double>(Clock::now() - start).count();
  }

  Outcome loop(const Call& c, int depth) {
    const auto n_carry = static_cast<int>(c.attr[attr::loop::n_carry]);
    const auto has_done = static_cast<int>(c.attr[attr::loop::has_done]);
    const int64_t trips = c.attr[attr::loop::trips];
    const int n_stack = c.n_out - n_carry - 1;
    const Tensor *init = c.in, *carry = c.in + n_carry, *next = c.in + 2 * n_carry,
                 *values = c.in + 3 * n_carry + has_done;
    const Tensor &step = c.in[c.n_in - 1], &count = c.out[c.n_out - 1];
    move(init, carry, n_carry);
    for (int i = 0; i < n_stack; ++i) std::memset(c.out[n_carry + i].data, 0, bytes_of(c.out[n_carry + i]));
    int64_t done = 0;
    while (done < trips) {
      *step.i32() = static_cast<int32_t>(done);
      if (play(static_cast<size_t>(c.attr[attr::loop::body]), depth + 1) == Outcome::cancelled)
        return Outcome::cancelled;
      for (int i = 0; i < n_stack; ++i) {
        const size_t bytes = bytes_of(values[i]);
        std::memcpy(static_cast<char*>(c.out[n_carry + i].data) + static_cast<size_t>(done) * bytes, values[i].data,
                    bytes);
      }
      const bool stop = has_done != 0 && all_set(c.in[3 * n_carry]);
      move(next, carry, n_carry);
      ++done;
      if (stop) break;
    }
    for (int i = 0; i < n_carry; ++i) copy(carry[i], c.out[i]);
    *count.i32() = static_cast<int32_t>(done);
    return Outcome::done;
  }

  // from[i] to to[i] for all i, as if at once (a body may hand back its carries in another order).
  void move(const Tensor* from, const Tensor* to, int n) {
    bool crossed = false;
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < i; ++j) crossed |= overlap(from[i], to[j]);
    }
    if (!crossed) {
      for (int i = 0; i < n; ++i) copy(from[i], to[i]);
      return;
    }
    std::vector<std::vector<char>> held;
    for (int i = 0; i < n; ++i) {
      const auto* data = static_cast<const char*>(from[i].data);
      held.emplace_back(data, data + bytes_of(from[i]));
    }
    for (int i = 0; i < n; ++i) std::memcpy(to[i].data, held[static_cast<size_t>(i)].data(), bytes_of(to[i]));
  }

  const Run& run_;
  const Code& code_;
  const KernelTable& kernels_;
  const std::vector<Release>& releases_;
  size_t released_ = 0;
  Context context_;
  std::vector<double*> clocks_;  // where the places of each block begin in `seconds`; empty where nobody asks
};

// A pool as one run sees it.
struct PoolShare {
  Pool* pool;
  int threads;
};

}  // namespace

BoundPlan::BoundPlan(std::vector<int64_t> words, std::vector<int64_t> weights, const Sizes& sizes,
                     const KernelTable& kernels, std::vector<Release> releases)
    : words_(std::move(words)),
      weights_(std::move(weights)),
      sizes_(sizes),
      kernels_(kernels),
      releases_(std::move(releases)) {
  if (sizes.arena_bytes < 0) throw std::invalid_argument("an arena of a negative size");
  keep(take());
}

std::unique_ptr<Code> BoundPlan::take() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      auto code = std::move(idle_.back());
      idle_.pop_back();
      return code;
    }
  }
  return std::make_unique<Code>(decode(words_.data(), static_cast<int64_t>(words_.size()), sizes_));
}

void BoundPlan::keep(std::unique_ptr<Code> code) {
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back(std::move(code));
}

Outcome BoundPlan::run(const Run& run, Pool& pool) {
  const WorkspaceLease arena(pool, static_cast<size_t>(sizes_.arena_bytes));
  std::unique_ptr<Code> code = take();
  attach(*code, {static_cast<char*>(arena.data), weights_.data(), run.inputs, run.outputs});
  PoolShare share = {&pool, run.threads > 0 ? std::min(run.threads, pool.n_threads()) : pool.n_threads()};
  Context context;
  context.parallel = [](void* p, int64_t n, int64_t grain, const Range& f) {
    const auto* of = static_cast<PoolShare*>(p);
    of->pool->parallel(n, grain, f, of->threads);
  };
  context.pool = &share;
  context.n_threads = share.threads;
  context.states = run.states.data();
  context.rings = run.rings.data();
  context.n_states = static_cast<int32_t>(run.states.size());
  const Outcome outcome = Player(run, *code, kernels_, releases_, context).play(0, 0);
  keep(std::move(code));  // after an error it is left to be decoded anew
  return outcome;
}

}  // namespace sonant
