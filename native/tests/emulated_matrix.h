// What simd/matrix.h says, in plain C++: so that the kernels made of it are tested on machines without the registers.
// A test is compiled with -DSONANT_EMULATE_MATRIX for any instruction set.
#pragma once

#include <cmath>
#include <cstdlib>

namespace sonant::SONANT_ISA {

inline bool& matrix_registers_are_there() {
  thread_local bool there = false;
  return there;
}

// Ends the program where the processor would refuse.
inline char (&matrix_register(int r))[16][64] {
  thread_local char all[8][16][64];
  if (!matrix_registers_are_there()) std::abort();
  return all[r];
}

struct MatrixRegisters {
  MatrixRegisters() {
    matrix_registers_are_there() = true;
    for (int r = 0; r < 8; ++r) std::memset(matrix_register(r), 0x7f, sizeof matrix_register(r));  // nobody's
  }
  ~MatrixRegisters() { matrix_registers_are_there() = false; }
  MatrixRegisters(const MatrixRegisters&) = delete;
  MatrixRegisters& operator=(const MatrixRegisters&) = delete;
};

template <int r>
void clear() {
  std::memset(matrix_register(r), 0, sizeof matrix_register(r));
}

template <int r>
void load(const void* p, int64_t stride) {
  for (int i = 0; i < 16; ++i) std::memcpy(matrix_register(r)[i], static_cast<const char*>(p) + i * stride, 64);
}

template <int r>
void store(void* p, int64_t stride) {
  for (int i = 0; i < 16; ++i) std::memcpy(static_cast<char*>(p) + i * stride, matrix_register(r)[i], 64);
}

template <int s, int a, int b>
void add_bf16() {
  for (int i = 0; i < 16; ++i) {
    uint16_t row[32];
    std::memcpy(row, matrix_register(a)[i], 64);
    float sum[16];
    std::memcpy(sum, matrix_register(s)[i], 64);
    for (int n = 0; n < 16; ++n) {
      float even = 0, odd = 0;
      for (int k = 0; k < 16; ++k) {
        uint16_t pair[2];
        std::memcpy(pair, matrix_register(b)[k] + 4 * n, 4);
        even = std::fma(from_bf16(row[2 * k]), from_bf16(pair[0]), even);
        odd = std::fma(from_bf16(row[2 * k + 1]), from_bf16(pair[1]), odd);
      }
      sum[n] += even + odd;
    }
    std::memcpy(matrix_register(s)[i], sum, 64);
  }
}

template <int s, int a, int b>
void add_bytes() {
  for (int i = 0; i < 16; ++i) {
    int32_t sum[16];
    std::memcpy(sum, matrix_register(s)[i], 64);
    for (int n = 0; n < 16; ++n) {
      for (int k = 0; k < 64; ++k) {
        const auto x = static_cast<uint8_t>(matrix_register(a)[i][k]);
        sum[n] += x * static_cast<int8_t>(matrix_register(b)[k / 4][4 * n + k % 4]);
      }
    }
    std::memcpy(matrix_register(s)[i], sum, 64);
  }
}

}  // namespace sonant::SONANT_ISA
