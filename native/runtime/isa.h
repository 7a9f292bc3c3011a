// Which instruction sets this build has and this machine can run, and the kernels of each.
#pragma once

#include <string>
#include <vector>

#include "call.h"
#include "opset.gen.h"

namespace sonant {

using Kernel = void (*)(const Call&, Context&);

// Loops that do nothing but what they are named for, to find out what a core can do at best (probe.h). f32, bf16, int8:
// `rounds` of products and sums in registers; the number of operations that were done, and null where the set has no
// such products. read: all of data [n], n a multiple of 256; a number that is worthless.
struct Probes {
  int64_t (*f32)(int64_t rounds) = nullptr;
  int64_t (*bf16)(int64_t rounds) = nullptr;
  int64_t (*int8)(int64_t rounds) = nullptr;
  float (*read)(const float* data, int64_t n) = nullptr;
  // bf16 and int8, where the machine has an instruction for them; first what convolutions are faster with.
  std::vector<const char*> fast;
};

// The kernel of every opcode; null where an op has none (pointwise ops come as step lists, reshape and loop are no
// kernels).
struct KernelTable {
  Kernel kernels[kOps] = {};
  Probes probes;
};

// Names, the fastest last: generic, avx2, avx512, avx512bf16, amx or generic, neon.
std::vector<std::string> available_isas();

// Throws std::invalid_argument for a name that is not among available_isas().
const KernelTable& kernels_of(const std::string& isa);

}  // namespace sonant
