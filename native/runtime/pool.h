// The threads that kernels share, and the workspaces that runs share.
//
// A Pool of n threads starts n-1 of its own, at the first piece of work that can be split; the caller is the last one.
// Several callers may use a pool at once: each works on its own job, idle threads help whichever has pieces left.
// Threads wait for work by spinning for a moment, then sleep. After a fork the child's pools start new threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "call.h"

namespace sonant {

class Pool {
 public:
  explicit Pool(int n_threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int n_threads() const { return n_threads_; }

  // As Context::for_each, on at most `threads` threads, the caller's included.
  void parallel(int64_t n, int64_t grain, const Range& f, int threads);

  // A workspace of at least `bytes` (64-byte aligned); give it back with release. A few are kept for later runs.
  void* acquire(size_t bytes);
  void release(void* workspace);

  // Ends the threads and frees the kept workspaces; the pool still works afterwards, starting anew.
  void close();

 private:
  struct Job;
  struct Shared;
  struct Workspace {
    void* data;
    size_t bytes;
  };
  friend struct ForkHandlers;

  void start_threads();
  void worker(Shared* shared);
  static void work_on(Job& job);

  const int n_threads_;
  // Mutexes, conditions and threads: one object, so that the child of a fork can leave the parent's behind.
  std::atomic<Shared*> shared_;
  std::mutex workspace_mutex_;
  std::vector<Workspace> idle_, busy_;
};

// One workspace for the length of a scope.
class WorkspaceLease {
 public:
  WorkspaceLease(Pool& pool, size_t bytes) : pool_(pool), data(pool.acquire(bytes)) {}
  ~WorkspaceLease() { pool_.release(data); }
  WorkspaceLease(const WorkspaceLease&) = delete;
  WorkspaceLease& operator=(const WorkspaceLease&) = delete;

 private:
  Pool& pool_;

 public:
  void* const data;
};

}  // namespace sonant
