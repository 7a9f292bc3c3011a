#include "platform.h"

#include <cstdlib>
#include <new>
#include <thread>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif
#if defined(_WIN32)
#include <malloc.h>
#else
#include <pthread.h>
#endif
#if defined(__aarch64__) && defined(_WIN32)
#include <windows.h>
#endif
#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif
#if defined(__linux__)
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sonant {

namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = size_t{8} << 20;

#if defined(__aarch64__)
bool has_neon_dot() {
#if defined(__ARM_FEATURE_DOTPROD)
  return true;
#elif defined(__linux__)
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#elif defined(_WIN32)
  return IsProcessorFeaturePresent(43) != 0;  // PF_ARM_V82_DP_INSTRUCTIONS_AVAILABLE
#else
  return false;
#endif
}
#endif

#if defined(__x86_64__) || defined(__i386__)
// Tile registers are 8 KiB more to save at every switch of threads: a process has to ask for them.
bool may_use_tiles(unsigned xcr0) {
#if defined(__linux__) && defined(__x86_64__)
  constexpr unsigned kSavesTiles = 3u << 17;
  constexpr long kAskForFeature = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM of Linux 5.16
  return (xcr0 & kSavesTiles) == kSavesTiles && syscall(SYS_arch_prctl, kAskForFeature, kTileData) == 0;
#else
  static_cast<void>(xcr0);
  return false;
#endif
}

CpuFeatures find_features() {
  CpuFeatures found;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return found;
  constexpr unsigned kFma = 1u << 12, kOsxsave = 1u << 27, kAvx = 1u << 28, kF16c = 1u << 29;
  constexpr unsigned kWanted = kFma | kOsxsave | kAvx | kF16c;
  if ((c & kWanted) != kWanted) return found;
  unsigned xcr0 = 0, high = 0;
  __asm__("xgetbv" : "=a"(xcr0), "=d"(high) : "c"(0));
  const bool saves_ymm = (xcr0 & 0x6) == 0x6, saves_zmm = (xcr0 & 0xE6) == 0xE6;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
  constexpr unsigned kAvx2 = 1u << 5, kF = 1u << 16, kDq = 1u << 17, kBw = 1u << 30, kVl = 1u << 31;
  constexpr unsigned kAvx512 = kF | kDq | kBw | kVl;
  found.avx2 = saves_ymm && (b & kAvx2) != 0;
  found.avx512 = found.avx2 && saves_zmm && (b & kAvx512) == kAvx512;
  found.avx512_vnni = found.avx512 && (c & (1u << 11)) != 0;
  constexpr unsigned kTileBf16 = 1u << 22, kTile = 1u << 24, kTileInt8 = 1u << 25, kAmx = kTileBf16 | kTile | kTileInt8;
  const bool has_tiles = (d & kAmx) == kAmx;
  if (__get_cpuid_count(7, 1, &a, &b, &c, &d)) {
    found.avx_vnni = found.avx2 && (a & (1u << 4)) != 0;
    found.avx512bf16 = found.avx512 && (a & (1u << 5)) != 0;
  }
  found.amx = has_tiles && found.avx512bf16 && found.avx512_vnni && may_use_tiles(xcr0);
  // Measured (docs/log.md): full rate on AMD's Zen 4 and 5, half rate on Intel's Sapphire Rapids.
  constexpr unsigned kFromAuthenticAMD = 0x68747541;  // "Auth"
  found.slow_bf16 = found.avx512bf16 && __get_cpuid(0, &a, &b, &c, &d) != 0 && b != kFromAuthenticAMD;
  return found;
}

#else
CpuFeatures find_features() {
  CpuFeatures found;
#if defined(__aarch64__)
  found.neon = true;  // part of the base instruction set
  found.neon_dot = has_neon_dot();
#endif
  return found;
}
#endif

}  // namespace

void spin_pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

const CpuFeatures& cpu_features() {
  static const CpuFeatures found = find_features();
  return found;
}

int available_cpus() {
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  const unsigned n = std::thread::hardware_concurrency();
  return n ? static_cast<int>(n) : 1;
}

void* allocate_aligned(size_t bytes) {
  const size_t alignment = bytes >= kHugeFrom ? kHugePage : 64;
  const size_t rounded = (bytes + alignment - 1) / alignment * alignment;
#if defined(_WIN32)
  void* p = _aligned_malloc(rounded ? rounded : alignment, alignment);
  if (p == nullptr) throw std::bad_alloc();
#else
  void* p = nullptr;
  if (posix_memalign(&p, alignment, rounded ? rounded : alignment) != 0) throw std::bad_alloc();
#endif
#if defined(__linux__)
  if (bytes >= kHugeFrom) madvise(p, rounded, MADV_HUGEPAGE);
#endif
  return p;
}

void free_aligned(void* p) {
#if defined(_WIN32)
  _aligned_free(p);
#else
  std::free(p);
#endif
}

void forget_pages(int64_t address, int64_t bytes) {
#if defined(__linux__)
  const int64_t page = sysconf(_SC_PAGESIZE), first = (address + page - 1) / page * page;
  const int64_t last = (address + bytes) / page * page;
  if (last > first) madvise(reinterpret_cast<void*>(first), static_cast<size_t>(last - first), MADV_DONTNEED);
#else
  static_cast<void>(address), static_cast<void>(bytes);
#endif
}

void on_fork(void (*prepare)(), void (*parent)(), void (*child)()) {
#if defined(_WIN32)
  static_cast<void>(prepare), static_cast<void>(parent), static_cast<void>(child);  // Windows has no fork
#else
  pthread_atfork(prepare, parent, child);
#endif
}

}  // namespace sonant
