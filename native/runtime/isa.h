// Which instruction sets this build has and this machine can run, and the kernels of each.
#pragma once

#include <string>
#include <vector>

#include "call.h"
#include "opset.gen.h"

namespace sonant {

using Kernel = void (*)(const Call&, Context&);

// The kernel of every opcode; null where an op has none (pointwise ops come as step lists, reshape and loop are no
// kernels).
struct KernelTable {
  Kernel kernels[kOps] = {};
};

// Names, the fastest last: generic, avx2, avx512, avx512bf16 or generic, neon.
std::vector<std::string> available_isas();

// Throws std::invalid_argument for a name that is not among available_isas().
const KernelTable& kernels_of(const std::string& isa);

}  // namespace sonant
