#include "isa.h"

#include <algorithm>
#include <stdexcept>

#include "platform.h"

namespace sonant {

#define SONANT_DECLARE_TABLE(isa) \
  namespace isa {                 \
  const KernelTable& table();     \
  }
SONANT_DECLARE_TABLE(generic)
#if defined(__x86_64__)
SONANT_DECLARE_TABLE(avx2)
SONANT_DECLARE_TABLE(avx512)
SONANT_DECLARE_TABLE(avx512bf16)
SONANT_DECLARE_TABLE(amx)
#elif defined(__aarch64__)
SONANT_DECLARE_TABLE(neon)
#endif
#undef SONANT_DECLARE_TABLE

namespace {

struct Isa {
  const char* name;
  bool available;
  const KernelTable& (*table)();
};

const std::vector<Isa>& all_isas() {
  static const CpuFeatures& cpu = cpu_features();
  static const std::vector<Isa> all = {
    {"generic", true, generic::table},
#if defined(__x86_64__)
    {"avx2", cpu.avx2, avx2::table},
    {"avx512", cpu.avx512, avx512::table},
    {"avx512bf16", cpu.avx512bf16, avx512bf16::table},
    {"amx", cpu.amx, amx::table},
#elif defined(__aarch64__)
    {"neon", cpu.neon, neon::table},
#endif
  };
  return all;
}

}  // namespace

// Best last.
std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (const Isa& isa : all_isas()) {
    if (isa.available) names.push_back(isa.name);
  }
  const auto bf16 = std::find(names.begin(), names.end(), "avx512bf16");
  if (cpu_features().slow_bf16) std::iter_swap(bf16 - 1, bf16);  // with avx512
  return names;
}

const KernelTable& kernels_of(const std::string& name) {
  for (const Isa& isa : all_isas()) {
    if (isa.available && name == isa.name) return isa.table();
  }
  std::string known;
  for (const std::string& n : available_isas()) known += " " + n;
  throw std::invalid_argument("no instruction set '" + name + "' on this machine; it has:" + known);
}

}  // namespace sonant
