#include "probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>

#include "platform.h"

namespace sonant {

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kRoundS = 8e-3;    // long beside the time in which threads meet, also on a busy machine
constexpr int64_t kReadStep = 256;  // floats; what Probes::read wants a multiple of

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// The best rate of f(part, repeats), which gives the amount of what it did, with a part for every thread.
template <class F>
double best_rate(Pool& pool, double budget_s, const F& f) {
  int64_t repeats = 1;
  double best = 0, round_s = 0;
  const auto start = Clock::now();
  do {
    if (round_s > 0 && round_s < kRoundS) repeats *= 2;
    std::atomic<int64_t> amount{0};
    const auto began = Clock::now();
    pool.parallel(
        pool.n_threads(), 1,
        [&](int64_t begin, int64_t end) {
          for (int64_t part = begin; part < end; ++part) amount += f(part, repeats);
        },
        pool.n_threads());
    round_s = since(began);
    best = std::max(best, static_cast<double>(amount.load()) / round_s);
  } while (since(start) < budget_s);
  return best;
}

}  // namespace

double peak_rate(int64_t (*probe)(int64_t rounds), Pool& pool, double budget_s) {
  if (probe == nullptr) return 0;
  return best_rate(pool, budget_s, [&](int64_t, int64_t repeats) { return probe(1000 * repeats); });
}

double read_rate(float (*probe)(const float* data, int64_t n), int64_t bytes, Pool& pool, double budget_s) {
  const int64_t n = bytes / 4 / pool.n_threads() / kReadStep * kReadStep;
  if (n < kReadStep) throw std::invalid_argument("read_rate: fewer than 1024 bytes a thread");
  const auto total = static_cast<size_t>(n) * static_cast<size_t>(pool.n_threads());
  const std::unique_ptr<float, void (*)(void*)> data(static_cast<float*>(allocate_aligned(total * 4)), free_aligned);
  std::fill_n(data.get(), total, 1.0f);
  std::atomic<bool> odd{false};  // so that no sum is left out as unused
  const double rate = best_rate(pool, budget_s, [&](int64_t part, int64_t repeats) {
    for (int64_t r = 0; r < repeats; ++r) {
      if (probe(data.get() + part * n, n) < 0) odd = true;
    }
    return repeats * n * 4;
  });
  if (odd) throw std::runtime_error("read_rate: the memory changed");
  return rate;
}

}  // namespace sonant
