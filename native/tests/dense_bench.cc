// Speed of the dense kernels on the shapes of the Kokoro vocoder, beside the peak of this core: multiply-adds on
// registers alone. The best of many short runs, the peak measured between them (a shared machine's clock moves).
//   dense_bench [threads] [name part] [divisor of the time axis of convolutions: shorter runs, fewer disturbed]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <utility>

#include "../simd/vec.h"
#include "dense_harness.h"

using namespace harness;
namespace isa = sonant::SONANT_ISA;

namespace {

int threads = 1;
const char* wanted = "";
int64_t divisor = 1;

// One thread: its own processor time, which other programs on the machine disturb least.
double now() {
  timespec t;
  clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// GFLOP/s of independent multiply-adds without memory. Twelve named sums: in an array they would go through memory.
double register_peak() {
  using namespace isa;
#if SONANT_ISA_ID == SONANT_ID_neon
#define SONANT_ONE(s) \
  s = fma(s, a, b);   \
  asm volatile("" : "+w"(s.v));
#elif SONANT_ISA_ID >= SONANT_ID_avx512
#define SONANT_ONE(s) \
  s = fma(s, a, b);   \
  asm volatile("" : "+v"(s.v));
#else
#define SONANT_ONE(s) \
  s = fma(s, a, b);   \
  asm volatile("" : "+x"(s.v));
#endif
  Vec a = set1(1.0001f), b = set1(0.5f), s0 = a, s1 = a, s2 = a, s3 = a, s4 = a, s5 = a, s6 = a, s7 = a, s8 = a, s9 = a,
      s10 = a, s11 = a;
  const int n = 10000;
  const double t = now();
  for (int k = 0; k < n; ++k) {
    SONANT_ONE(s0);
    SONANT_ONE(s1);
    SONANT_ONE(s2);
    SONANT_ONE(s3);
    SONANT_ONE(s4);
    SONANT_ONE(s5);
    SONANT_ONE(s6);
    SONANT_ONE(s7);
    SONANT_ONE(s8);
    SONANT_ONE(s9);
    SONANT_ONE(s10);
    SONANT_ONE(s11);
  }
  return 2.0 * n * 12 * kWidth / (now() - t) / 1e9;
}

struct Timing {
  double seconds, peak;
};

// The peak is the median of those measured between the runs: a clock that jumps would make the largest too large.
template <class F>
Timing best_time(F f, double budget = 0.5) {
  double best = 1e9;
  std::vector<double> peaks;
  const double start = now();
  for (int i = 0; i < 4 || (now() - start < budget && i < 200); ++i) {
    peaks.push_back(register_peak());
    const double t = now();
    f();
    best = std::min(best, now() - t);
  }
  std::sort(peaks.begin(), peaks.end());
  return {best, peaks[peaks.size() / 2]};
}

void line(const char* name, double flops, const Timing& t) {
  const double rate = flops / t.seconds / 1e9;
  std::printf("%-44s %9.3f ms %8.1f GFLOP/s  %5.1f %% of peak %.1f\n", name, t.seconds * 1e3, rate,
              100 * rate / t.peak / threads, t.peak);
  std::fflush(stdout);
}

struct Shape {
  int64_t t, c, n, k, stride, dilation, left, right, groups;
  bool transposed;
};

enum class Fuse { none, snake, leaky, elu };

void conv(const char* name, Shape s, Fuse fuse, bool residual = false, DType dtype = DType::f32,
          Precision precision = Precision::f32) {
  if (!std::strstr(name, wanted)) return;
  s.t = std::max<int64_t>(s.t / divisor, 48);
  const int64_t rows = s.transposed ? (s.t - 1) * s.stride + s.k - s.left - s.right
                                    : (s.t + s.left + s.right - (s.k - 1) * s.dilation - 1) / s.stride + 1;
  Floats x = random(s.t * s.c), w = random(s.n * s.k * s.c / s.groups), bias = random(s.n), y(rows * s.n),
         add = random(rows * s.n);
  Floats scale = random(s.c), shift = random(s.c), alpha = random(s.c);
  for (float& a : alpha) a += a < 0 ? -1 : 1;
  Node node;
  node.in = {tensor(x, {1, s.t, s.c}), node.weight(PackRole::conv, w, {s.n, s.k, s.c / s.groups}, s.groups, dtype),
             tensor(bias, {s.n}), Tensor()};
  Steps pro, epi;
  int64_t n_pro = 0;
  if (fuse == Fuse::snake) {
    pro = {{Op::affine, {0, 1, 2}}, {Op::snake, {4, 3}}};
    for (Floats* p : {&scale, &shift}) node.in.push_back(tensor(*p, {1, 1, s.c}));
    node.in.push_back(tensor(alpha, {s.c}));
    n_pro = 3;
  }
  if (fuse == Fuse::leaky) pro = {{Op::leaky_relu, {0, 0.1}}};
  if (fuse == Fuse::elu) pro = {{Op::elu, {0}}};
  if (residual) epi = {{Op::add, {0, 1}}, {Op::mul, {2, 0.5}}}, node.in.push_back(tensor(add, {1, rows, s.n}));
  node.out = {tensor(y, {1, rows, s.n})};
  if (s.transposed)
    node.attr = {s.stride, s.left, s.right, s.groups, -1};
  else
    node.attr = {s.stride, s.dilation, s.left, s.right, s.groups, -1};
  const int64_t p = node.steps(pro), e = node.steps(epi);
  node.attr.insert(node.attr.end(), {p, e, n_pro, static_cast<int64_t>(precision)});
  Threads pool(threads);
  const Call call = node.call();
  const Timing t = best_time([&] { (s.transposed ? isa::conv_transpose1d : isa::conv1d)(call, pool.context); });
  line(name, 2.0 * s.n * s.k * s.c / s.groups * (s.transposed ? s.t : rows), t);
}

void linear(const char* name, int64_t t, int64_t c, int64_t n, DType dtype = DType::f32,
            Precision precision = Precision::f32) {
  if (!std::strstr(name, wanted)) return;
  Floats x = random(t * c), w = random(n * c), bias = random(n), y(t * n);
  Node node;
  node.in = {tensor(x, {1, t, c}), node.weight(PackRole::linear, w, {n, c}, 1, dtype), tensor(bias, {n})};
  node.out = {tensor(y, {1, t, n})};
  node.attr = {-1, -1, 0, static_cast<int64_t>(precision)};
  Threads pool(threads);
  const Timing s = best_time([&] { isa::linear(node.call(), pool.context); }, 0.3);
  line(name, 2.0 * t * c * n, s);
  if (t == 1)
    std::printf(
        "%60s weights at %.1f GB/s\n", "",
        static_cast<double>(ceil_div(n, kPanel) * panel_tap_elements(c, dtype) * dtype_bytes(dtype)) / s.seconds / 1e9);
}

void lstm(const char* name, int64_t t, int64_t c, int64_t h, DType dtype) {
  if (!std::strstr(name, wanted)) return;
  Floats x = random(t * c), wi = random(8 * h * c), wh = random(8 * h * h), bias = random(8 * h), y(t * 2 * h);
  Node node;
  node.in = {tensor(x, {1, t, c}), node.weight(PackRole::lstm, wi, {2, 4 * h, c}, 1, dtype),
             node.weight(PackRole::lstm, wh, {2, 4 * h, h}, 1, dtype), tensor(bias, {2, 4 * h})};
  node.out = {tensor(y, {1, t, 2 * h})};
  Threads pool(threads);
  line(name, 2.0 * t * 8 * h * (c + h), best_time([&] { isa::lstm(node.call(), pool.context); }));
}

void attention(const char* name, int64_t t, int64_t keys, int64_t heads, int64_t kv, int64_t size, bool causal) {
  if (!std::strstr(name, wanted)) return;
  Floats q = random(t * heads * size), k = random(keys * kv * size), v = random(keys * kv * size), y(q.size());
  Node node;
  node.in = {tensor(q, {1, t, heads * size}), tensor(k, {1, keys, kv * size}), tensor(v, {1, keys, kv * size})};
  node.out = {tensor(y, {1, t, heads * size})};
  node.attr = {heads, kv, real_bits(0.125), causal, 0, -1, -1};
  Threads pool(threads);
  line(name, 4.0 * t * keys * heads * size, best_time([&] { isa::attention(node.call(), pool.context); }, 0.3));
}

// One query of each of `batch` streams at `position` of their states.
void attention_step(const char* name, int64_t batch, int64_t t, int64_t position, int64_t heads, int64_t size,
                    int64_t window) {
  if (!std::strstr(name, wanted)) return;
  const int64_t wide = heads * size, capacity = window > 0 ? window + t - 1 : position + t;
  Floats q = random(batch * t * wide), k = q, v = q, y(q.size());
  Floats state_k = random(batch * capacity * wide), state_v = random(batch * capacity * wide);
  std::vector<int32_t> rows, positions(static_cast<size_t>(batch), static_cast<int32_t>(position));
  for (int64_t b = 0; b < batch; ++b) rows.push_back(static_cast<int32_t>(b));
  const std::vector<Tensor> states = {tensor(state_k, {batch, capacity, wide}),
                                      tensor(state_v, {batch, capacity, wide})};
  Node node;
  node.in = {tensor(q, {batch, t, wide}), tensor(k, {batch, t, wide}), tensor(v, {batch, t, wide}),
             tensor(rows.data(), {batch}, DType::i32), tensor(positions.data(), {batch}, DType::i32)};
  node.out = {tensor(y, {batch, t, wide})};
  node.attr = {heads, 0, real_bits(0.125), 1, window, 0, 1};
  Threads pool(threads, states);
  const std::vector<uint8_t> rings(2, window > 0);
  pool.context.rings = rings.data();
  const int64_t keys = window > 0 ? window : position;
  const Timing s = best_time([&] { isa::attention(node.call(), pool.context); }, 0.3);
  line(name, 4.0 * batch * t * keys * wide, s);
  std::printf("%60s states at %.1f GB/s\n", "", 8.0 * batch * keys * wide / s.seconds / 1e9);
}

void vocoder(DType dtype, Precision precision) {
  const bool narrow = precision == Precision::bf16;
  char name[96];
  const auto named = [&](const char* what, int k = 0, int d = 0) {
    const int n = std::snprintf(name, sizeof name, narrow ? "bf16 " : "f32 ");
    std::snprintf(name + n, sizeof name - static_cast<size_t>(n), what, k, d);
    return name;
  };
  for (int k : {3, 7, 11})
    for (int d : {1, 5}) {
      const int64_t pad = (k - 1) * d / 2;
      conv(named("conv 128 k%d d%d T14400", k, d), {14400, 128, 128, k, 1, d, pad, pad, 1, false}, Fuse::none, false,
           dtype, precision);
      conv(named("conv 128 k%d d%d T14400 snake residual", k, d), {14400, 128, 128, k, 1, d, pad, pad, 1, false},
           Fuse::snake, true, dtype, precision);
      conv(named("conv 256 k%d d%d T2400 snake residual", k, d), {2400, 256, 256, k, 1, d, pad, pad, 1, false},
           Fuse::snake, true, dtype, precision);
    }
  conv(named("conv 128 k3 d1 T125000 snake residual"), {125000, 128, 128, 3, 1, 1, 1, 1, 1, false}, Fuse::snake, true,
       dtype, precision);
  conv(named("conv 512 k3 T1000"), {1000, 512, 512, 3, 1, 1, 1, 1, 1, false}, Fuse::leaky, false, dtype, precision);
  conv(named("conv 1090 to 1024 k3 T1000"), {1000, 1090, 1024, 3, 1, 1, 1, 1, 1, false}, Fuse::leaky, true, dtype,
       precision);
  conv(named("conv 1090 to 1024 k1 T500"), {500, 1090, 1024, 1, 1, 1, 0, 0, 1, false}, Fuse::none, false, dtype,
       precision);
  conv(named("conv 1024 k3 T240"), {240, 1024, 1024, 3, 1, 1, 1, 1, 1, false}, Fuse::leaky, false, dtype, precision);
  conv(named("conv 22 to 256 k12 s6"), {86400, 22, 256, 12, 6, 1, 3, 3, 1, false}, Fuse::none, false, dtype, precision);
  conv(named("conv 22 to 128 k1"), {14400, 22, 128, 1, 1, 1, 0, 0, 1, false}, Fuse::none, false, dtype, precision);
  conv(named("conv 128 to 22 k7"), {14400, 128, 22, 7, 1, 1, 3, 3, 1, false}, Fuse::leaky, false, dtype, precision);
  conv(named("transposed 512 to 256 k20 s10"), {240, 512, 256, 20, 10, 1, 5, 5, 1, true}, Fuse::leaky, false, dtype,
       precision);
  conv(named("transposed 256 to 128 k12 s6"), {2400, 256, 128, 12, 6, 1, 3, 3, 1, true}, Fuse::leaky, false, dtype,
       precision);
  if (narrow) return;
  conv(named("depthwise transposed 1090 k3 s2"), {500, 1090, 1090, 3, 2, 1, 1, 0, 1090, true}, Fuse::leaky);
}

void narrow() {
  for (DType dtype : {DType::f16, DType::bf16}) {
    conv("conv 128 k7 16-bit weights", {14400, 128, 128, 7, 1, 1, 3, 3, 1, false}, Fuse::snake, true, dtype);
    conv("conv 1024 k3 T240 16-bit weights", {240, 1024, 1024, 3, 1, 1, 1, 1, 1, false}, Fuse::leaky, true, dtype);
    conv("conv 128 k7 16-bit weights bf16", {14400, 128, 128, 7, 1, 1, 3, 3, 1, false}, Fuse::snake, true, dtype,
         Precision::bf16);
    linear("linear 768 to 2048, 30 rows 16-bit weights", 30, 768, 2048, dtype);
    linear("gemv 1024 to 4096, 1 row 16-bit weights", 1, 1024, 4096, dtype);
  }
}

// Reading alone, beside which the products of one row are to be seen.
void reading(int64_t bytes) {
  const Floats data = random(bytes / 4);
  isa::Vec kept = isa::zero();
  const Timing t = best_time(
      [&] {
        isa::Vec s[4] = {kept, kept, kept, kept};
        for (size_t i = 0; i + 4 * isa::kWidth <= data.size(); i += 4 * isa::kWidth)
          for (size_t j = 0; j < 4; ++j) s[j] = s[j] + isa::load(data.data() + i + j * isa::kWidth);
        kept = kept + s[0] + s[1] + s[2] + s[3];
      },
      0.3);
  std::printf("reading %lld kB: %.1f GB/s (%g)\n", static_cast<long long>(bytes >> 10), bytes / t.seconds / 1e9,
              isa::reduce_add(kept) > 1e30 ? 1.0 : 0.0);
}

// What Phonon's language model does: one row, or eight of eight streams.
void decoding() {
  for (int64_t bytes : {272 << 10, 1088 << 10, 4 << 20, 34 << 20}) reading(bytes);
  for (int64_t rows : {1, 8})
    for (auto [c, n] : {std::pair<int64_t, int64_t>{512, 512}, {512, 2048}, {2048, 512}, {512, 10240}, {4096, 8192}}) {
      char name[64];
      std::snprintf(name, sizeof name, "decode %d to %d, %d rows", int(c), int(n), int(rows));
      const std::string of = name;
      linear((of + " f32").c_str(), rows, c, n);
      linear((of + " f16").c_str(), rows, c, n, DType::f16);
      linear((of + " q8").c_str(), rows, c, n, DType::q8);
      linear((of + " int8").c_str(), rows, c, n, DType::q8, Precision::int8);
    }
}

// Mimi's decoder, `frames` a call.
void mimi(int64_t frames, DType dtype, Precision precision) {
  char name[96];
  const auto named = [&](const char* what) {
    std::snprintf(name, sizeof name, "mimi %d %s %s", int(frames), precision == Precision::int8 ? "int8" : "f32", what);
    return name;
  };
  const int64_t t = 16 * frames;
  linear(named("512 to 1536"), t, 512, 1536, dtype, precision);
  linear(named("512 to 2048"), t, 512, 2048, dtype, precision);
  linear(named("2048 to 512"), t, 2048, 512, dtype, precision);
  conv(named("conv 512 k7"), {t, 512, 512, 7, 1, 1, 6, 0, 1, false}, Fuse::none, false, dtype, precision);
  conv(named("up 512 to 256 k12 s6"), {t, 512, 256, 12, 6, 1, 0, 6, 1, true}, Fuse::elu, false, dtype, precision);
  conv(named("256 to 128 k3"), {6 * t, 256, 128, 3, 1, 1, 2, 0, 1, false}, Fuse::elu, false, dtype, precision);
  conv(named("128 to 256 k1"), {6 * t, 128, 256, 1, 1, 1, 0, 0, 1, false}, Fuse::elu, true, dtype, precision);
  conv(named("up 256 to 128 k10 s5"), {6 * t, 256, 128, 10, 5, 1, 0, 5, 1, true}, Fuse::none, false, dtype, precision);
  conv(named("128 to 64 k3"), {30 * t, 128, 64, 3, 1, 1, 2, 0, 1, false}, Fuse::elu, false, dtype, precision);
  conv(named("64 to 128 k1"), {30 * t, 64, 128, 1, 1, 1, 0, 0, 1, false}, Fuse::elu, true, dtype, precision);
  conv(named("up 128 to 64 k8 s4"), {30 * t, 128, 64, 8, 4, 1, 0, 4, 1, true}, Fuse::none, false, dtype, precision);
  conv(named("64 to 32 k3"), {120 * t, 64, 32, 3, 1, 1, 2, 0, 1, false}, Fuse::elu, false, dtype, precision);
  conv(named("32 to 64 k1"), {120 * t, 32, 64, 1, 1, 1, 0, 0, 1, false}, Fuse::elu, true, dtype, precision);
  conv(named("64 to 1 k3"), {120 * t, 64, 1, 3, 1, 1, 2, 0, 1, false}, Fuse::none, false);
  conv(named("depthwise up 512 k32 s16"), {frames, 512, 512, 32, 16, 1, 0, 16, 512, true}, Fuse::none);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) threads = std::atoi(argv[1]);
  if (argc > 2) wanted = argv[2];
  if (argc > 3) divisor = std::atoi(argv[3]);
  decoding();
  for (int64_t frames : {1, 8}) {
    mimi(frames, DType::f32, Precision::f32);
    mimi(frames, DType::q8, Precision::int8);
  }
  vocoder(DType::f32, Precision::f32);
  vocoder(DType::bf16, Precision::bf16);
  narrow();
  for (int64_t t : {30, 150, 200, 500}) {
    char name[64];
    std::snprintf(name, sizeof name, "linear 768 to 768, %d rows", int(t));
    linear(name, t, 768, 768);
    std::snprintf(name, sizeof name, "linear 768 to 2048, %d rows", int(t));
    linear(name, t, 768, 2048);
    std::snprintf(name, sizeof name, "linear 2048 to 768, %d rows", int(t));
    linear(name, t, 2048, 768);
  }
  linear("linear 9 to 1, 100000 rows", 100000, 9, 1);
  linear("gemv 1024 to 4096, 1 row", 1, 1024, 4096);
  linear("gemv 1024 to 32768, 1 row", 1, 1024, 32768);
  linear("gemv 1024 to 4096, 8 rows", 8, 1024, 4096);
  lstm("lstm 512 H256 T300", 300, 512, 256, DType::f32);
  lstm("lstm 512 H256 T300 f16", 300, 512, 256, DType::f16);
  attention("attention 12x64 T100", 100, 100, 12, 12, 64, false);
  attention("attention 12x64 T500", 500, 500, 12, 12, 64, false);
  attention_step("attention step 8x64 keys 300", 1, 1, 300, 8, 64, 0);
  attention_step("attention step 8x64 keys 1000", 1, 1, 1000, 8, 64, 0);
  attention_step("attention step 8x64 keys 300, 8 streams", 8, 1, 300, 8, 64, 0);
  attention_step("attention ring 8x64 window 251, 16 rows", 1, 16, 800, 8, 64, 251);
  attention_step("attention ring 8x64 window 251, 128 rows", 1, 128, 800, 8, 64, 251);
  attention_step("attention prefill 8x64, 160 rows", 1, 160, 0, 8, 64, 0);
  attention("attention decode 16/4x64 keys 1000", 1, 1000, 16, 4, 64, false);
  return 0;
}
