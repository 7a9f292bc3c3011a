// Plays the bytecode of a bound Plan. See bytecode.h for its form.
#pragma once

#include <string>
#include <vector>

#include "bytecode.h"
#include "isa.h"
#include "pool.h"

namespace sonant {

struct Run {
  const int64_t* words = nullptr;
  int64_t n_words = 0;
  Memory memory;  // `arena` is set by run()
  std::vector<Tensor> states;
  std::vector<uint8_t> rings;       // of each state: whether it is one
  int threads = 0;                  // how many of the pool's may compute; 0: all
  const int32_t* cancel = nullptr;  // looked at between kernels; may be null
  double* seconds = nullptr;        // of each instruction, block after block; its time is added there. A loop has none
  int64_t n_seconds = 0;            // of its own: its body's instructions have. May be null
};

enum class Outcome : int { done = 0, cancelled = 1 };

// Throws std::invalid_argument for malformed code, std::runtime_error for what a kernel refuses.
Outcome run(const Run& run, const KernelTable& kernels, Pool& pool);

}  // namespace sonant
