// The pool under stress: several callers, pieces of every size, errors, close in between. Meant for -fsanitize=thread:
//   cmake -S . -B build/tsan -G Ninja -DSONANT_PYTHON=OFF -DSONANT_TESTS=ON -DSONANT_SANITIZE=thread
//   cmake --build build/tsan --target sonant_pool_test && build/tsan/sonant_pool_test
#include "../runtime/pool.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

namespace {

using sonant::Pool;

std::atomic<int> failures{0};

void check(bool good, const char* what) {
  if (good) return;
  ++failures;
  std::printf("%s\n", what);
}

// Every element of [0, n) exactly once, in pieces that begin at multiples of the grain.
void cover(Pool& pool, int64_t n, int64_t grain) {
  std::vector<int> seen(static_cast<size_t>(n));
  std::atomic<bool> cut_well{true};
  pool.parallel(
      n, grain,
      [&](int64_t begin, int64_t end) {
        if (begin % grain != 0 || end - begin > grain) cut_well = false;
        for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
      },
      pool.n_threads());
  bool once = true;
  for (const int s : seen) once &= s == 1;
  check(once, "an element was left out or done twice");
  check(cut_well, "a piece of another size than the grain");
}

void fail(Pool& pool) {
  bool caught = false;
  try {
    pool.parallel(
        1000, 1,
        [](int64_t begin, int64_t) {
          if (begin == 500) throw std::runtime_error("wanted");
        },
        pool.n_threads());
  } catch (const std::runtime_error& e) {
    caught = std::strcmp(e.what(), "wanted") == 0;
  }
  check(caught, "an error of a piece was lost");
}

void nested(Pool& pool) {
  std::atomic<int64_t> total{0};
  pool.parallel(
      8, 1,
      [&](int64_t, int64_t) {
        pool.parallel(
            100, 7, [&](int64_t begin, int64_t end) { total += end - begin; }, 2);
      },
      pool.n_threads());
  check(total == 800, "work within work was lost");
}

// No more threads than asked for work at once, and one alone is the caller.
void limited(Pool& pool, int threads) {
  std::atomic<int> now{0}, most{0};
  std::atomic<bool> elsewhere{false};
  const auto caller = std::this_thread::get_id();
  pool.parallel(
      40, 1,
      [&](int64_t, int64_t) {
        const int here = ++now;
        for (int seen = most; here > seen && !most.compare_exchange_weak(seen, here);) {
        }
        if (std::this_thread::get_id() != caller) elsewhere = true;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        --now;
      },
      threads);
  check(most <= threads, "more threads than a run may have");
  check(threads > 1 || !elsewhere, "a run of one thread went elsewhere");
}

void workspaces(Pool& pool) {
  for (size_t bytes : {size_t{1}, size_t{5000}, size_t{9} << 20}) {
    sonant::WorkspaceLease a(pool, bytes), b(pool, bytes / 2);
    check(a.data != b.data && reinterpret_cast<uintptr_t>(a.data) % 64 == 0,
          "a workspace that is shared or not aligned");
    std::memset(a.data, 1, bytes);
  }
}

void caller(Pool& pool) {
  for (int i = 0; i < 300; ++i) {
    cover(pool, i % 97, 1 + i % 5);
    if (i % 10 == 0) fail(pool);
    if (i % 10 == 5) nested(pool);
    if (i % 50 == 7) workspaces(pool);
    if (i % 50 == 9) limited(pool, 1 + i / 50 % 3);
    if (i % 25 == 3) std::this_thread::sleep_for(std::chrono::microseconds(200));  // the others go to sleep
  }
}

}  // namespace

int main() {
  for (const int n : {1, 2, 4}) {
    Pool pool(n);
    for (int round = 0; round < 3; ++round) {
      std::vector<std::thread> callers;
      for (int i = 0; i < 4; ++i) callers.emplace_back([&] { caller(pool); });
      for (std::thread& t : callers) t.join();
      pool.close();
    }
  }
  std::printf("pool: %d failures\n", failures.load());
  return failures == 0 ? 0 : 1;
}
