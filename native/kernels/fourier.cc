// stft and istft. Frames of a few samples are products with a small table (window and scale included); longer ones go
// through a mixed-radix FFT in f64.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "../runtime/call.h"
#include "../runtime/opset.gen.h"
#include "../simd/vec.h"

namespace sonant::SONANT_ISA {
namespace {

constexpr double kTurn = 6.283185307179586476925;
constexpr int64_t kTableMost = 64;          // longest frame that is done by table
constexpr int64_t kLongestFrame = 1 << 20;  // samples
constexpr int64_t kPiece = 1 << 13;         // samples that one thread takes at a time

struct Complex {
  double re, im;
};

Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

double hann(int64_t i, int64_t n) {
  return 0.5 - 0.5 * std::cos(kTurn * static_cast<double>(i) / static_cast<double>(n));
}

int64_t round_up(int64_t n) { return (n + kWidth - 1) / kWidth * kWidth; }

// Position in [0, n) of index i of a signal mirrored at both ends, the edges not repeated.
int64_t mirrored(int64_t i, int64_t n) {
  if (n == 1) return 0;
  const int64_t period = 2 * (n - 1);
  i %= period;
  if (i < 0) i += period;
  return i < n ? i : period - i;
}

// --- by table
// -----------------------------------------------------------------------------------------------------------
// y[0..n_out) = sum_i x[i] table[i][..], or added to y. Rows of the table are padded to whole vectors.
template <int vectors, bool add>
void product(const float* x, int64_t n_in, const float* table, int64_t row, int64_t n_out, float* y) {
  Vec sum[vectors];
  for (int v = 0; v < vectors; ++v) sum[v] = zero();
  for (int64_t i = 0; i < n_in; ++i) {
    const Vec a = set1(x[i]);
    for (int v = 0; v < vectors; ++v) sum[v] = fma(a, load(table + i * row + v * kWidth), sum[v]);
  }
  for (int v = 0; v < vectors; ++v) {
    const int64_t here = std::min<int64_t>(kWidth, n_out - v * kWidth);
    float* to = y + v * kWidth;
    if (here == kWidth) {
      store(to, add ? sum[v] + load(to) : sum[v]);
    } else {
      store_n(to, add ? sum[v] + load_n(to, here) : sum[v], here);
    }
  }
}

template <bool add>
void multiply_table(const float* x, int64_t n_in, const float* table, int64_t n_out, float* y) {
  const int64_t row = round_up(n_out);
  for (int64_t at = 0; at < n_out; at += 4 * kWidth) {
    const int64_t left = n_out - at;
    switch (std::min<int64_t>(4, (left + kWidth - 1) / kWidth)) {
      case 1:
        product<1, add>(x, n_in, table + at, row, left, y + at);
        break;
      case 2:
        product<2, add>(x, n_in, table + at, row, left, y + at);
        break;
      case 3:
        product<3, add>(x, n_in, table + at, row, left, y + at);
        break;
      default:
        product<4, add>(x, n_in, table + at, row, std::min<int64_t>(left, 4 * kWidth), y + at);
        break;
    }
  }
}

// [n][2*bins]: frame to spectrum.
void forward_table(int64_t n, float* table) {
  const int64_t bins = n / 2 + 1, row = round_up(2 * bins);
  std::fill(table, table + n * row, 0.0f);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < bins; ++k) {
      const double angle = kTurn * static_cast<double>(i * k % n) / static_cast<double>(n);
      table[i * row + k] = static_cast<float>(hann(i, n) * std::cos(angle));
      table[i * row + bins + k] = static_cast<float>(-hann(i, n) * std::sin(angle));
    }
  }
}

// [2*bins][n]: spectrum to windowed frame. The bins but the first and, of an even n, the last stand for two each.
void inverse_table(int64_t n, float* table) {
  const int64_t bins = n / 2 + 1, row = round_up(n);
  std::fill(table, table + 2 * bins * row, 0.0f);
  for (int64_t k = 0; k < bins; ++k) {
    const bool lone = k == 0 || 2 * k == n;
    for (int64_t i = 0; i < n; ++i) {
      const double angle = kTurn * static_cast<double>(i * k % n) / static_cast<double>(n);
      const double weight = (lone ? 1.0 : 2.0) * hann(i, n) / static_cast<double>(n);
      table[k * row + i] = static_cast<float>(weight * std::cos(angle));
      table[(bins + k) * row + i] = lone ? 0.0f : static_cast<float>(-weight * std::sin(angle));
    }
  }
}

// --- by FFT
// -------------------------------------------------------------------------------------------------------------
// turns[i] = e^(-2 pi i / n). `room` holds the arms of one butterfly.
struct Fft {
  int64_t n;
  const Complex* turns;
  Complex* room;

  // out[0..m) = transform of in[0], in[step], ...; m * step == n.
  void transform(const Complex* in, int64_t step, int64_t m, Complex* out) const {
    if (m == 1) {
      out[0] = in[0];
      return;
    }
    const int64_t radix = smallest_radix(m), part = m / radix;
    for (int64_t r = 0; r < radix; ++r) transform(in + r * step, step * radix, part, out + r * part);
    for (int64_t k = 0; k < part; ++k) butterfly(out + k, part, radix, k * step);
  }

 private:
  static int64_t smallest_radix(int64_t m) {
    if (m % 4 == 0) return 4;
    for (int64_t p = 2; p * p <= m; ++p) {
      if (m % p == 0) return p;
    }
    return m;
  }

  void butterfly(Complex* x, int64_t part, int64_t radix, int64_t turn) const {
    for (int64_t r = 0; r < radix; ++r) room[r] = x[r * part] * turns[r * turn];
    if (radix == 4) {
      const Complex a = room[0] + room[2], b = room[0] - room[2], c = room[1] + room[3], d = room[1] - room[3];
      const Complex e = {d.im, -d.re};  // -i d
      x[0] = a + c, x[part] = b + e, x[2 * part] = a - c, x[3 * part] = b - e;
      return;
    }
    for (int64_t q = 0; q < radix; ++q) {
      Complex sum = room[0];
      for (int64_t r = 1; r < radix; ++r) sum = sum + room[r] * turns[r * q % radix * (n / radix)];
      x[q * part] = sum;
    }
  }
};

struct Frames {
  int64_t n = 0, hop = 0, bins = 0, batch = 0, count = 0;
  bool by_table = false;

  // Words of the shared table: the small one, or turns and window.
  size_t table_bytes() const {
    return by_table ? static_cast<size_t>(2 * (bins + kWidth) * round_up(n + 2)) * 4
                    : static_cast<size_t>(n) * (sizeof(Complex) + 8);
  }
  // The FFT with a thread's own room (two signals and the arms of a butterfly).
  Fft fft(const void* table, Complex** in, Complex** out) const {
    auto* room = static_cast<Complex*>(scratch(1, static_cast<size_t>(3 * n) * sizeof(Complex)));
    *in = room + n, *out = room + 2 * n;
    return {n, static_cast<const Complex*>(table), room};
  }
  const double* window(const void* table) const {
    return reinterpret_cast<const double*>(static_cast<const Complex*>(table) + n);
  }

  void fill_turns(void* table) const {
    auto* turns = static_cast<Complex*>(table);
    auto* w = reinterpret_cast<double*>(turns + n);
    for (int64_t i = 0; i < n; ++i) {
      const double angle = kTurn * static_cast<double>(i) / static_cast<double>(n);
      turns[i] = {std::cos(angle), -std::sin(angle)};
      w[i] = hann(i, n);
    }
  }
};

Frames frames_of(const Call& call, const Tensor& samples, const Tensor& spectrum, int64_t n, int64_t hop,
                 const char* op) {
  Frames f;
  f.n = n, f.hop = hop, f.bins = n / 2 + 1;
  if (n < 1 || n > kLongestFrame || hop < 1 || samples.rank != 2 || spectrum.rank != 3 ||
      spectrum.dim[0] != samples.dim[0] || spectrum.dim[2] != 2 * f.bins || call.in[0].dtype != DType::f32) {
    refuse("%s: samples f32 [B,S] and spectra [B,F,2*(n_fft//2+1)] wanted", op);
  }
  f.batch = samples.dim[0], f.count = spectrum.dim[1];
  f.by_table = n <= kTableMost;
  return f;
}

// --- stft
// --------------------------------------------------------------------------------------------------------------- The
// frame that begins at `start`; read in place where it lies within the signal.
const float* frame_at(const float* x, int64_t length, int64_t start, int64_t n, float* room) {
  if (start >= 0 && start + n <= length) return x + start;
  for (int64_t i = 0; i < n; ++i) room[i] = x[mirrored(start + i, length)];
  return room;
}

void analyse(const Frames& f, const void* table, const float* frame, float* spectrum) {
  if (f.by_table) return multiply_table<false>(frame, f.n, static_cast<const float*>(table), 2 * f.bins, spectrum);
  Complex *in, *out;
  const Fft fft = f.fft(table, &in, &out);
  const double* window = f.window(table);
  for (int64_t i = 0; i < f.n; ++i) in[i] = {window[i] * frame[i], 0.0};
  fft.transform(in, 1, f.n, out);
  for (int64_t k = 0; k < f.bins; ++k) {
    spectrum[k] = static_cast<float>(out[k].re);
    spectrum[f.bins + k] = static_cast<float>(out[k].im);
  }
}

// --- istft
// -------------------------------------------------------------------------------------------------------------- Adds
// the windowed frame to sum[0..n).
void synthesise(const Frames& f, const void* table, const float* spectrum, float* sum) {
  if (f.by_table) return multiply_table<true>(spectrum, 2 * f.bins, static_cast<const float*>(table), f.n, sum);
  Complex *in, *out;
  const Fft fft = f.fft(table, &in, &out);
  const double* window = f.window(table);
  // A real signal from its half spectrum: transform the conjugate, whose other half mirrors this one.
  for (int64_t k = 0; k < f.bins; ++k) {
    const bool lone = k == 0 || 2 * k == f.n;
    const double re = spectrum[k], im = lone ? 0.0 : spectrum[f.bins + k];
    in[k] = {re, -im};
    if (!lone) in[f.n - k] = {re, im};
  }
  fft.transform(in, 1, f.n, out);
  const double scale = 1.0 / static_cast<double>(f.n);
  for (int64_t i = 0; i < f.n; ++i) sum[i] += static_cast<float>(out[i].re * scale * window[i]);
}

// The sum of the squared windows over the sample at `at`, counted from the first sample of frame 0.
double window_sum(const Frames& f, int64_t at) {
  double sum = 0;
  const int64_t first = at < f.n ? 0 : (at - f.n) / f.hop + 1, last = std::min(f.count - 1, at / f.hop);
  for (int64_t k = first; k <= last; ++k) sum += hann(at - k * f.hop, f.n) * hann(at - k * f.hop, f.n);
  return sum;
}

// Samples [begin, end) of the padded signal: the frames that reach into it, in order; `inner` holds 1 / window_sum of a
// sample that all its frames reach, by its place between two hops.
void overlap_add(const Frames& f, const void* table, const float* inner, const float* spectra, int64_t begin,
                 int64_t end, float* y) {
  const int64_t first = begin < f.n ? 0 : (begin - f.n) / f.hop + 1, last = std::min(f.count - 1, (end - 1) / f.hop);
  const int64_t base = first * f.hop, reach = std::max(end, last * f.hop + f.n) - base;
  auto* sum = static_cast<float*>(scratch(2, static_cast<size_t>(reach) * 4));
  std::fill(sum, sum + reach, 0.0f);
  for (int64_t k = first; k <= last; ++k) synthesise(f, table, spectra + k * 2 * f.bins, sum + (k * f.hop - base));
  const int64_t overlaps = (f.n + f.hop - 1) / f.hop;
  for (int64_t at = begin; at < end; ++at) {
    const int64_t hop = at / f.hop;
    const bool whole = hop + 1 >= overlaps && hop < f.count;
    y[at - begin] = sum[at - base] * (whole ? inner[at - hop * f.hop] : static_cast<float>(1.0 / window_sum(f, at)));
  }
}

}  // namespace

void stft(const Call& call, Context& context) {
  const Tensor &x = call.in[0], &y = call.out[0];
  const Frames f = frames_of(call, x, y, call.integer(attr::stft::n_fft), call.integer(attr::stft::hop), "stft");
  const int64_t length = x.dim[1];
  if (length == 0) refuse("stft: no samples");
  void* table = scratch(0, f.table_bytes());
  if (f.by_table) {
    forward_table(f.n, static_cast<float*>(table));
  } else {
    f.fill_turns(table);
  }
  context.for_each(f.batch * f.count, std::max<int64_t>(1, kPiece / f.n), [&](int64_t begin, int64_t end) {
    auto* room = static_cast<float*>(scratch(2, static_cast<size_t>(f.n) * 4));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / f.count, start = i % f.count * f.hop - f.n / 2;
      analyse(f, table, frame_at(x.f32() + b * length, length, start, f.n, room), y.f32() + i * 2 * f.bins);
    }
  });
}

void istft(const Call& call, Context& context) {
  const Tensor &x = call.in[0], &y = call.out[0];
  const Frames f = frames_of(call, y, x, call.integer(attr::istft::n_fft), call.integer(attr::istft::hop), "istft");
  const int64_t length = y.dim[1];
  if (f.count == 0 ? length != 0 : length != (f.count - 1) * f.hop) refuse("istft: a result of another length");
  if (length == 0) return;
  auto* inner = static_cast<float*>(scratch(0, f.table_bytes() + static_cast<size_t>(f.hop + 16) * 4));
  void* table = inner + (f.hop + 15) / 16 * 16;
  if (f.by_table) {
    inverse_table(f.n, static_cast<float*>(table));
  } else {
    f.fill_turns(table);
  }
  for (int64_t r = 0; r < f.hop; ++r) {
    double sum = 0;
    for (int64_t i = r; i < f.n; i += f.hop) sum += hann(i, f.n) * hann(i, f.n);
    inner[r] = static_cast<float>(1.0 / sum);
  }
  const int64_t trimmed = f.n / 2, piece = std::max(kPiece, 4 * f.n), pieces = (length + piece - 1) / piece;
  context.for_each(f.batch * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / pieces, from = i % pieces * piece, to = std::min(from + piece, length);
      overlap_add(f, table, inner, x.f32() + b * f.count * 2 * f.bins, trimmed + from, trimmed + to,
                  y.f32() + b * length + from);
    }
  });
}

}  // namespace sonant::SONANT_ISA
