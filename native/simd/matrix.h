// Products of small matrices in the registers made for them (AMX): each holds 16 rows of 64 bytes.
//
//   MatrixRegisters            this thread's registers, all of them whole, as long as it lives; none of their contents
//   clear<r>()                 register r becomes zeros
//   load<r>(p, stride)         its rows from p on, `stride` bytes apart, perhaps 0
//   store<r>(p, stride)
//   add_bf16<s, a, b>()        s[i][n] += sum over k of a[i][2k] b[k][2n], plus that of a[i][2k+1] b[k][2n+1]; the two
//                              sums begin at zero and are added before they meet s
//   add_bytes<s, a, b>()       s[i][n] += the sum of a[i][4k+j] b[k][4n+j], bytes of a without a sign, of b with one
//
// As assembler text they need no compiler flag. A row of s depends on no other row of a: rows beyond those wanted may
// hold anything.
#pragma once

#include "vec.h"

#if SONANT_MATRIX

#ifdef SONANT_EMULATE_MATRIX
#include "../tests/emulated_matrix.h"
#else

namespace sonant::SONANT_ISA {

struct MatrixRegisters {
  MatrixRegisters() {
    struct alignas(64) {
      uint8_t palette = 1, start_row = 0, reserved[14] = {};
      uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
      uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    } whole;
    asm volatile("ldtilecfg %0" : : "m"(whole));
  }
  ~MatrixRegisters() { asm volatile("tilerelease"); }
  MatrixRegisters(const MatrixRegisters&) = delete;
  MatrixRegisters& operator=(const MatrixRegisters&) = delete;
};

template <int r>
void clear() {
  asm volatile("tilezero %%tmm%c0" : : "i"(r));
}

template <int r>
void load(const void* p, int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(r) : "memory");
}

template <int r>
void store(void* p, int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(p), "r"(stride), "i"(r) : "memory");
}

template <int s, int a, int b>
void add_bf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(s), "i"(a), "i"(b));
}

template <int s, int a, int b>
void add_bytes() {
  asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(s), "i"(a), "i"(b));
}

}  // namespace sonant::SONANT_ISA

#endif
#endif
