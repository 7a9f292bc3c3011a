// The ceilings that kernels are compared with, measured on all threads of a pool: the best of the rounds that fit into
// a budget, since everything that disturbs a round makes it slower.
#pragma once

#include <cstdint>

#include "isa.h"
#include "pool.h"

namespace sonant {

// Operations a second (a product and its sum are two); 0 without a probe.
double peak_rate(int64_t (*probe)(int64_t rounds), Pool& pool, double budget_s);

// Bytes a second, reading `bytes` over and over, each thread a part of its own. Throws std::invalid_argument for fewer
// than 1024 bytes a thread, std::bad_alloc.
double read_rate(float (*probe)(const float* data, int64_t n), int64_t bytes, Pool& pool, double budget_s);

}  // namespace sonant
