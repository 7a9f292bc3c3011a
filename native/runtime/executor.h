// Plays the bytecode of a bound Plan. See bytecode.h for its form.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "bytecode.h"
#include "isa.h"
#include "pool.h"

namespace sonant {

// What one run brings along.
struct Run {
  const int64_t* inputs = nullptr;  // addresses
  const int64_t* outputs = nullptr;
  std::vector<Tensor> states;
  std::vector<uint8_t> rings;       // of each state: whether it is one
  const int32_t* cancel = nullptr;  // looked at between kernels; may be null
  double* seconds = nullptr;        // of each instruction, block after block; its time is added there. A loop has none
  int64_t n_seconds = 0;            // of its own: its body's instructions have. May be null
  int threads = 0;                  // how many of the pool's may compute; 0: all
};

// Bytes of a mapped file that no instruction of the first block reads after number `after`: they leave memory there.
struct Release {
  int64_t after, address, bytes;
};

enum class Outcome : int { done = 0, cancelled = 1 };

// The bytecode of a bound Plan, checked and decoded once, to be run any number of times, also at the same time: what a
// run has to itself is kept for the next one.
class BoundPlan {
 public:
  // `releases` in the order of `after`. Throws std::invalid_argument for malformed code.
  BoundPlan(std::vector<int64_t> words, std::vector<int64_t> weights, const Sizes& sizes, const KernelTable& kernels,
            std::vector<Release> releases = {});

  const Sizes& sizes() const { return sizes_; }

  // Throws std::runtime_error for what a kernel refuses.
  Outcome run(const Run& run, Pool& pool);

 private:
  std::unique_ptr<Code> take();
  void keep(std::unique_ptr<Code> code);

  const std::vector<int64_t> words_, weights_;
  const Sizes sizes_;
  const KernelTable& kernels_;
  const std::vector<Release> releases_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Code>> idle_;
};

}  // namespace sonant
