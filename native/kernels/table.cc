// The kernel table of one instruction set. avx512bf16 and amx differ from avx512 only in the ops that have a precision.
#include "../runtime/isa.h"

namespace sonant {

namespace avx512 {
const KernelTable& table();
}

namespace SONANT_ISA {

Probes probes();

#define SONANT_DECLARE(name) void name(const Call&, Context&);
#define SONANT_ENTER(name) t.kernels[static_cast<int>(Op::name)] = name;

#ifdef SONANT_PRECISION_ONLY
SONANT_PRECISION_KERNELS(SONANT_DECLARE)

const KernelTable& table() {
  static const KernelTable all = [] {
    KernelTable t = avx512::table();
    SONANT_PRECISION_KERNELS(SONANT_ENTER)
    t.probes = probes();
    return t;
  }();
  return all;
}
#else
SONANT_KERNELS(SONANT_DECLARE)

const KernelTable& table() {
  static const KernelTable all = [] {
    KernelTable t;
    SONANT_KERNELS(SONANT_ENTER)
    t.probes = probes();
    return t;
  }();
  return all;
}
#endif

}  // namespace SONANT_ISA
}  // namespace sonant
