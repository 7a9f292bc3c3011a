// What the runtime needs of the machine. platform.cc is the only file that calls the operating system or reads CPU
// registers.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sonant {

struct CpuFeatures {
  bool avx2 = false;        // AVX2, FMA and F16C, with the operating system saving the registers
  bool avx512 = false;      // AVX-512 F, BW, DQ, VL
  bool avx512bf16 = false;  // and BF16
  bool slow_bf16 = false;   // whose dot product runs at half the rate of the f32 one
  bool amx = false;         // and tile registers for products of bf16 and of bytes, which this process may use
  bool neon = false;
  // Products of bytes in fours (integers, so that the bits are the same without): of 256 and of 512 bits, of NEON.
  bool avx_vnni = false, avx512_vnni = false, neon_dot = false;
};

// What this machine has; found out once.
const CpuFeatures& cpu_features();

// CPUs that this process may use.
int available_cpus();

// 64-byte aligned; large blocks ask for huge pages. Throws std::bad_alloc.
void* allocate_aligned(size_t bytes);
void free_aligned(void* p);

// The whole pages in these bytes of a read-only mapping of a file leave memory; whoever reads them brings them back.
// Never to be used on other memory, which would be lost. Does nothing where the system has no such call.
void forget_pages(int64_t address, int64_t bytes);

// Calls `prepare` before a fork, `parent` and `child` after it, each in its process. To be called once.
void on_fork(void (*prepare)(), void (*parent)(), void (*child)());

// Tells the CPU that this is a spin loop.
void spin_pause();

}  // namespace sonant
