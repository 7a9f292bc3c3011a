#include "pool.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>

#include "platform.h"

namespace sonant {

namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kSpin = std::chrono::microseconds(30);
constexpr size_t kKeptWorkspaces = 2;
constexpr int kMostThreads = 256;

// Spins until `ready`, for kSpin at most.
template <typename Ready>
bool spin_until(const Ready& ready) {
  const auto end = Clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      spin_pause();
    }
  } while (Clock::now() < end);
  return ready();
}

}  // namespace

// One call of parallel(). Lives on the caller's stack; `helpers` and the list of jobs change under Shared::mutex only.
struct Pool::Job {
  const Range& f;
  const int64_t n, grain;
  const int most_helpers;
  std::atomic<int64_t> next{0};
  std::atomic<int> helpers{0};
  std::mutex error_mutex;
  std::exception_ptr error;

  Job(const Range& f, int64_t n, int64_t grain, int most_helpers)
      : f(f), n(n), grain(grain), most_helpers(most_helpers) {}
  bool wants_help() const {
    return next.load(std::memory_order_relaxed) < n && helpers.load(std::memory_order_relaxed) < most_helpers;
  }
};

struct Pool::Shared {
  std::mutex mutex;
  std::condition_variable work, done;
  std::vector<Job*> jobs;
  std::vector<std::thread> threads;
  std::atomic<uint64_t> submitted{0};
  int sleeping = 0;
  bool started = false, stopping = false;
};

// Every pool of the process, so that a fork finds their mutexes free and the child's pools without threads. Never
// destroyed: a pool may outlive the statics at exit.
struct ForkHandlers {
  static std::mutex& mutex() {
    static auto* m = new std::mutex;
    return *m;
  }
  static std::vector<Pool*>& pools() {
    static auto* all = new std::vector<Pool*>;
    return *all;
  }

  static void add(Pool* pool) {
    static const bool registered = [] {
      on_fork(prepare, parent, child);
      return true;
    }();
    static_cast<void>(registered);
    std::lock_guard<std::mutex> lock(mutex());
    pools().push_back(pool);
  }
  static void remove(Pool* pool) {
    std::lock_guard<std::mutex> lock(mutex());
    pools().erase(std::find(pools().begin(), pools().end(), pool));
  }

  static void prepare() {
    mutex().lock();
    for (Pool* p : pools()) {
      p->workspace_mutex_.lock();
      p->shared_.load()->mutex.lock();
    }
  }
  static void unlock_all() {
    for (Pool* p : pools()) {
      p->shared_.load()->mutex.unlock();
      p->workspace_mutex_.unlock();
    }
    mutex().unlock();
  }
  static void parent() { unlock_all(); }
  static void child() {
    unlock_all();
    // The old Shared is left behind on purpose: its threads do not exist here, so neither they nor the conditions they
    // slept on can be destroyed.
    for (Pool* p : pools()) p->shared_ = new Pool::Shared;
  }
};

Pool::Pool(int n_threads) : n_threads_(n_threads), shared_(nullptr) {
  if (n_threads < 1 || n_threads > kMostThreads) {
    throw std::invalid_argument("a pool has 1 to " + std::to_string(kMostThreads) + " threads, not " +
                                std::to_string(n_threads));
  }
  shared_ = new Shared;
  ForkHandlers::add(this);
}

Pool::~Pool() {
  ForkHandlers::remove(this);
  close();
  delete shared_.load();
}

void Pool::close() {
  Shared* shared = shared_;
  std::vector<std::thread> threads;
  {
    std::lock_guard<std::mutex> lock(shared->mutex);
    shared->stopping = true;
    threads.swap(shared->threads);
  }
  shared->submitted.fetch_add(1);
  shared->work.notify_all();
  for (std::thread& t : threads) t.join();
  {
    std::lock_guard<std::mutex> lock(shared->mutex);
    shared->stopping = shared->started = false;
  }
  std::lock_guard<std::mutex> lock(workspace_mutex_);
  for (const Workspace& w : idle_) free_aligned(w.data);
  idle_.clear();
}

void Pool::start_threads() {
  Shared* shared = shared_;
  shared->started = true;
  for (int i = 1; i < n_threads_; ++i) shared->threads.emplace_back(&Pool::worker, this, shared);
}

void Pool::work_on(Job& job) {
  for (;;) {
    const int64_t begin = job.next.fetch_add(job.grain, std::memory_order_relaxed);
    if (begin >= job.n) return;
    try {
      job.f(begin, std::min(begin + job.grain, job.n));
    } catch (...) {
      job.next.store(job.n, std::memory_order_relaxed);  // the rest is not worth doing
      std::lock_guard<std::mutex> lock(job.error_mutex);
      if (!job.error) job.error = std::current_exception();
    }
  }
}

void Pool::worker(Shared* shared) {
  std::unique_lock<std::mutex> lock(shared->mutex);
  while (!shared->stopping) {
    const auto found = std::find_if(shared->jobs.begin(), shared->jobs.end(), [](Job* j) { return j->wants_help(); });
    if (found != shared->jobs.end()) {
      Job& job = **found;
      job.helpers.fetch_add(1, std::memory_order_relaxed);
      lock.unlock();
      work_on(job);
      lock.lock();
      // Released last: the caller may return as soon as it sees no helper.
      if (job.helpers.fetch_sub(1, std::memory_order_release) == 1) shared->done.notify_all();
      continue;
    }
    const uint64_t seen = shared->submitted.load();
    lock.unlock();
    const bool more = spin_until([&] { return shared->submitted.load(std::memory_order_relaxed) != seen; });
    lock.lock();
    if (more) continue;
    ++shared->sleeping;
    shared->work.wait(lock, [&] { return shared->submitted.load() != seen || shared->stopping; });
    --shared->sleeping;
  }
}

void Pool::parallel(int64_t n, int64_t grain, const Range& f, int threads) {
  grain = std::max<int64_t>(grain, 1);
  if (threads <= 1 || n_threads_ == 1 || n <= grain) {
    for (int64_t begin = 0; begin < n; begin += grain) f(begin, std::min(begin + grain, n));
    return;
  }
  Shared* shared = shared_;
  Job job(f, n, grain, threads - 1);
  bool wake = false;
  {
    std::lock_guard<std::mutex> lock(shared->mutex);
    if (!shared->started) start_threads();
    shared->jobs.push_back(&job);
    shared->submitted.fetch_add(1);
    wake = shared->sleeping > 0;
  }
  if (wake) {
    if (n <= 2 * grain || threads == 2) {
      shared->work.notify_one();
    } else {
      shared->work.notify_all();
    }
  }
  work_on(job);
  {
    std::lock_guard<std::mutex> lock(shared->mutex);
    shared->jobs.erase(std::find(shared->jobs.begin(), shared->jobs.end(), &job));
  }
  const auto alone = [&] { return job.helpers.load(std::memory_order_acquire) == 0; };
  if (!spin_until(alone)) {
    std::unique_lock<std::mutex> lock(shared->mutex);
    shared->done.wait(lock, alone);
  }
  if (job.error) std::rethrow_exception(job.error);
}

void* Pool::acquire(size_t bytes) {
  std::lock_guard<std::mutex> lock(workspace_mutex_);
  auto best = idle_.end();
  for (auto i = idle_.begin(); i != idle_.end(); ++i) {
    if (i->bytes >= bytes && (best == idle_.end() || i->bytes < best->bytes)) best = i;
  }
  if (best == idle_.end()) {
    // All idle ones are too small: one of them makes room, or a run of growing sizes would keep them all.
    if (!idle_.empty()) {
      free_aligned(idle_.back().data);
      idle_.pop_back();
    }
    const Workspace fresh{allocate_aligned(bytes), bytes};
    busy_.push_back(fresh);
    return fresh.data;
  }
  busy_.push_back(*best);
  idle_.erase(best);
  return busy_.back().data;
}

void Pool::release(void* workspace) {
  std::lock_guard<std::mutex> lock(workspace_mutex_);
  const auto found = std::find_if(busy_.begin(), busy_.end(), [&](const Workspace& w) { return w.data == workspace; });
  idle_.push_back(*found);
  busy_.erase(found);
  if (idle_.size() <= kKeptWorkspaces) return;
  const auto smallest = std::min_element(idle_.begin(), idle_.end(),
                                         [](const Workspace& a, const Workspace& b) { return a.bytes < b.bytes; });
  free_aligned(smallest->data);
  idle_.erase(smallest);
}

}  // namespace sonant
