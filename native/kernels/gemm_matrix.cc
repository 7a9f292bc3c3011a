// The products of rows in bf16, and of rows in integers with i8 weights, for processors with registers for small
// matrices: up to 32 rows by a panel of 32 outputs at once. Packed weights are as those registers want them.
#include "../simd/dot.h"
#include "../simd/matrix.h"
#include "gemm.h"

#if SONANT_MATRIX

namespace sonant::SONANT_ISA {
namespace {

constexpr int kHalf = 16;                   // rows of a register; also outputs of one
constexpr int64_t kRowBytes = 64;           // of a row of x that one product takes
constexpr int64_t kSteps = 16;              // groups of 4 bytes in them, each with a row of weights
constexpr int64_t kStepBytes = 4 * kPanel;  // such a row of a whole panel

// What is left of the channels of a tap when whole registers were taken: copies with zeros behind them.
class Rest {
 public:
  // bytes: of a row of x, and of all of it that whole registers take.
  Rest(int64_t bytes, int n) : from_(bytes / kRowBytes * kRowBytes), bytes_(bytes - from_), n_(n) {
    if (!any()) return;
    std::memset(rows, 0, sizeof rows);
    std::memset(weights, 0, sizeof weights);
  }

  bool any() const { return bytes_ > 0; }
  void read_rows(const char* x, int64_t stride) {
    for (int i = 0; i < n_; ++i) std::memcpy(rows[i], x + i * stride + from_, static_cast<size_t>(bytes_));
  }
  void read_weights(const char* w) {
    std::memcpy(weights, w + from_ / 4 * kStepBytes, static_cast<size_t>(bytes_ / 4 * kStepBytes));
  }

  alignas(64) char rows[2 * kHalf][kRowBytes];
  alignas(64) char weights[kSteps][kStepBytes];

 private:
  int64_t from_, bytes_;
  int n_;  // rows that exist
};

template <bool kBytes, int s, int a, int b>
inline void add_products() {
  if constexpr (kBytes) {
    add_bytes<s, a, b>();
  } else {
    add_bf16<s, a, b>();
  }
}

// Registers 0 to 3 are the sums of [rows 0 and 16][outputs 0 and 16], 4 and 5 rows of x, 6 and 7 weights.
template <bool kBytes, bool kBoth>
inline void add_step(const char* x, int64_t stride, const char* w) {
  load<4>(x, stride);
  load<6>(w, kStepBytes);
  load<7>(w + kRowBytes, kStepBytes);
  add_products<kBytes, 0, 4, 6>();
  add_products<kBytes, 1, 4, 7>();
  if constexpr (kBoth) {
    load<5>(x + kHalf * stride, stride);
    add_products<kBytes, 2, 5, 6>();
    add_products<kBytes, 3, 5, 7>();
  }
}

// The products of one tap. `bytes`: of a row of x, rounded up to whole groups of 4.
template <bool kBytes, bool kBoth>
inline void add_tap(const char* x, int64_t stride, const char* w, int64_t bytes, Rest& rest) {
  int64_t at = 0;
  for (; at + kRowBytes <= bytes; at += kRowBytes) add_step<kBytes, kBoth>(x + at, stride, w + at / 4 * kStepBytes);
  if (!rest.any()) return;
  rest.read_rows(x, stride);
  rest.read_weights(w);
  add_step<kBytes, kBoth>(rest.rows[0], kRowBytes, rest.weights[0]);
}

template <bool kBoth>
inline void store_sums(char* to, int64_t stride) {
  store<0>(to, stride);
  store<1>(to + kRowBytes, stride);
  if constexpr (kBoth) {
    store<2>(to + kHalf * stride, stride);
    store<3>(to + kHalf * stride + kRowBytes, stride);
  }
}

template <bool kBoth>
void bf16_panel(const Product& p, int rows, const char* weight, float* tile) {
  const int64_t stride = 2 * p.step, bytes = ceil_div(p.channels, 2) * 4;
  auto* sums = reinterpret_cast<char*>(tile);
  constexpr int64_t kSumStride = 4 * kTile;
  if (p.resume) {
    load<0>(sums, kSumStride);
    load<1>(sums + kRowBytes, kSumStride);
    if constexpr (kBoth) {
      load<2>(sums + kHalf * kSumStride, kSumStride);
      load<3>(sums + kHalf * kSumStride + kRowBytes, kSumStride);
    }
  } else {
    clear<0>();
    clear<1>();
    clear<2>();
    clear<3>();
  }
  Rest rest(bytes, rows);
  for (int64_t k = 0; k < p.taps; ++k) {
    const char* x = static_cast<const char*>(p.input) + 2 * k * p.tap_step;
    add_tap<false, kBoth>(x, stride, weight + 2 * k * p.weight_tap_step, bytes, rest);
  }
  store_sums<kBoth>(sums, kSumStride);
}

// Sums begin at -128 times the sum of the weights, for 128 is added to the integers of x.
template <bool kBoth>
void i8_panel(const Int8Product& p, int rows, const char* weight, float* tile) {
  const int64_t bytes = ceil_div(p.channels, 4) * 4;
  alignas(64) int32_t sums[2 * kHalf][kPanel];
  Rest rest(bytes, rows);
  for (int i = 0; p.taps == 0 && !p.resume && i < rows; ++i) {  // a phase of a transposed convolution without any
    std::memset(tile + i * kTile, 0, 4 * kPanel);
  }
  for (int64_t k = 0; k < p.taps; ++k) {
    const char *x = p.input + k * p.tap_step, *w = weight + k * p.weight_tap_step, *first = w + bytes * kPanel;
    load<0>(first, 0);
    load<1>(first + kRowBytes, 0);
    if constexpr (kBoth) {
      load<2>(first, 0);
      load<3>(first + kRowBytes, 0);
    }
    add_tap<true, kBoth>(x, p.step, w, bytes, rest);
    store_sums<kBoth>(reinterpret_cast<char*>(sums), 4 * kPanel);
    const auto* scales = reinterpret_cast<const float*>(first + 4 * kPanel);
    const bool adds = p.resume || k > 0;
    for (int i = 0; i < rows; ++i) {
      float own;
      std::memcpy(&own, x + i * p.step + p.scales, 4);
      for (int j = 0; j < kPanel; j += kWidth) {
        float* at = tile + i * kTile + j;
        store(at, fma(to_float(load_bytes(sums[i] + j)), set1(own) * load(scales + j), adds ? load(at) : zero()));
      }
    }
  }
}

}  // namespace

void multiply_bf16(const Product& p, int rows, int panels, float* tile) {
  for (int i = 0; i < panels; ++i) {
    const char* weight = static_cast<const char*>(p.weight) + 2 * i * p.panel_step;
    (rows > kHalf ? bf16_panel<true> : bf16_panel<false>)(p, rows, weight, tile + i * kPanel);
  }
}

void multiply_i8(const Int8Product& p, int rows, int panels, bool, float* tile) {
  for (int i = 0; i < panels; ++i) {
    const char* weight = p.weight + i * p.panel_step;
    (rows > kHalf ? i8_panel<true> : i8_panel<false>)(p, rows, weight, tile + i * kPanel);
  }
}

int i8_row_offset(bool) { return 128; }

int i8_row_bytes(bool) { return 1; }

}  // namespace sonant::SONANT_ISA

#endif
