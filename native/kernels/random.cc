// randn and sample: everything drawn from Philox4x32-10 (Salmon et al. 2011), so that a number depends on its seed and
// place alone.
#include <algorithm>
#include <cmath>
#include <limits>

#include "../runtime/call.h"
#include "../runtime/opset.gen.h"
#include "../simd/math.h"

namespace sonant::SONANT_ISA {
namespace {

constexpr int kLanes = 16;  // counters that are encrypted at once, on every instruction set

struct Block {
  uint32_t word[4][kLanes];
};

void philox(uint32_t key0, uint32_t key1, Block& x) {
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < kLanes; ++i) {
      const uint64_t p0 = uint64_t{x.word[0][i]} * 0xD2511F53u, p1 = uint64_t{x.word[2][i]} * 0xCD9E8D57u;
      const uint32_t y0 = static_cast<uint32_t>(p1 >> 32) ^ x.word[1][i] ^ key0;
      const uint32_t y2 = static_cast<uint32_t>(p0 >> 32) ^ x.word[3][i] ^ key1;
      x.word[0][i] = y0, x.word[1][i] = static_cast<uint32_t>(p1);
      x.word[2][i] = y2, x.word[3][i] = static_cast<uint32_t>(p0);
    }
    key0 += 0x9E3779B9u, key1 += 0xBB67AE85u;
  }
}

// log(1 + m) for m in [-1/4, 0]: the Taylor series, 2e-8.
Vec log_near_one(Vec m) {
  Vec p = set1(-1.0f / 12);
  for (int k = 11; k >= 2; --k) p = fma(p, m, set1((k % 2 == 0 ? -1.0f : 1.0f) / static_cast<float>(k)));
  return fma(p, m * m, m);
}

// log((k + 1/2) / 2^24) for k in [0, 2^24). Above 3/4 the number itself does not fit an f32, its distance from 1 does.
Vec log_uniform(IVec k) {
  const Vec whole = to_float(k), scale = set1(5.9604644775390625e-08f);
  const Vec below = fma(whole, scale, set1(2.98023223876953125e-08f));
  const Vec apart = (to_float(k - iset1(1 << 24)) + set1(0.5f)) * scale;
  return select(whole < set1(12582912.0f), log(below), log_near_one(apart));
}

// Box-Muller: kLanes pairs of normal numbers.
void normal_pairs(const uint32_t* a, const uint32_t* b, float* first, float* second) {
  static_assert(kLanes % kWidth == 0, "whole vectors");
  int32_t ka[kLanes], kb[kLanes];
  float fa[kLanes], fb[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    ka[i] = static_cast<int32_t>(a[i] >> 8), kb[i] = static_cast<int32_t>(b[i] >> 8);
    std::memcpy(&fa[i], &ka[i], 4);
    std::memcpy(&fb[i], &kb[i], 4);
  }
  for (int i = 0; i < kLanes; i += kWidth) {
    const IVec u = bits(load(fa + i)), v = bits(load(fb + i));
    const Vec radius = sqrt(set1(-2.0f) * log_uniform(u));
    const Vec angle = fma(to_float(v), set1(3.7450703e-07f), set1(1.8725352e-07f));  // 2 pi (v + 1/2) / 2^24
    store(first + i, radius * cos(angle));
    store(second + i, radius * sin(angle));
  }
}

double uniform(uint32_t bits_of) { return (static_cast<double>(bits_of >> 8) + 0.5) * 5.9604644775390625e-08; }

struct Place {
  int64_t t = 0, group = 0;
};

// Numbers of the groups (of four channels) [begin, end), counted over time and groups.
void fill_normals(const uint32_t* key, uint32_t frame, uint32_t site, int64_t begin, int64_t end, int64_t channels,
                  float* y) {
  const int64_t groups = (channels + 3) / 4;
  Place at{begin / groups, begin % groups};
  float normal[4][kLanes];
  for (int64_t i = begin; i < end; i += kLanes) {
    const auto n = static_cast<int>(std::min<int64_t>(kLanes, end - i));
    Block x;
    Place p = at;
    for (int j = 0; j < kLanes; ++j) {
      x.word[0][j] = frame + static_cast<uint32_t>(p.t);
      x.word[1][j] = site;
      x.word[2][j] = static_cast<uint32_t>(p.group);
      x.word[3][j] = 0;
      if (++p.group == groups) p.group = 0, ++p.t;
    }
    philox(key[0], key[1], x);
    normal_pairs(x.word[0], x.word[1], normal[0], normal[1]);
    if (channels > 2) normal_pairs(x.word[2], x.word[3], normal[2], normal[3]);
    for (int j = 0; j < n; ++j) {
      float* to = y + at.t * channels + at.group * 4;
      const int64_t width = std::min<int64_t>(4, channels - at.group * 4);
      for (int64_t c = 0; c < width; ++c) to[c] = normal[c][j];
      if (++at.group == groups) at.group = 0, ++at.t;
    }
  }
}

// --- sample
// -------------------------------------------------------------------------------------------------------------
struct Candidate {
  float logit;
  int32_t id;
};

struct Choice {
  double temperature, top_p;
  int64_t top_k;
  double uniform;
};

int32_t largest(const float* logits, int64_t n) {
  return static_cast<int32_t>(std::max_element(logits, logits + n) - logits);
}

// `pool` and `weights` have room for n each.
int32_t choose(const float* logits, int64_t n, const Choice& choice, Candidate* pool, double* weights) {
  if (!(choice.temperature > 0)) return largest(logits, n);
  for (int64_t i = 0; i < n; ++i) {
    const float v = logits[i];
    pool[i] = {v == v ? v : -std::numeric_limits<float>::infinity(), static_cast<int32_t>(i)};
  }
  const auto by_logit = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
  };
  int64_t kept = choice.top_k > 0 && choice.top_k < n ? choice.top_k : n;
  std::partial_sort(pool, pool + kept, pool + n, by_logit);
  double sum = 0;
  for (int64_t i = 0; i < kept; ++i) {
    weights[i] = std::exp((double{pool[i].logit} - double{pool[0].logit}) / choice.temperature);
    sum += weights[i];
  }
  // The smallest set that reaches top_p: those before which less than top_p lies, and the first in any case.
  double before = 0;
  int64_t inside = 0;
  while (inside < kept && (inside == 0 || before / sum < choice.top_p)) before += weights[inside++];
  std::sort(pool, pool + inside, [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  double total = 0;
  const double top = std::max_element(pool, pool + inside, [](const Candidate& a, const Candidate& b) {
                       return a.logit < b.logit;
                     })->logit;
  for (int64_t i = 0; i < inside; ++i) {
    total += std::exp((double{pool[i].logit} - top) / choice.temperature);
    weights[i] = total;
  }
  const int64_t chosen = std::upper_bound(weights, weights + inside, choice.uniform * total) - weights;
  return pool[std::min(chosen, inside - 1)].id;
}

}  // namespace

void randn(const Call& call, Context& context) {
  const Tensor &seed = call.in[0], &frame = call.in[1], &y = call.out[0];
  if (seed.rank != 2 || seed.dim[1] != 2 || y.rank != 3 || y.dim[0] != seed.dim[0] || frame.elements() != seed.dim[0] ||
      seed.dtype != DType::i32 || frame.dtype != DType::i32) {
    refuse("randn: seed i32 [B,2] and frame i32 [B] wanted");
  }
  const int64_t length = y.dim[1], channels = y.dim[2], groups = length * ((channels + 3) / 4);
  const auto site = static_cast<uint32_t>(call.integer(attr::randn::site));
  for (int64_t b = 0; b < y.dim[0]; ++b) {
    const uint32_t key[2] = {static_cast<uint32_t>(seed.i32()[2 * b]), static_cast<uint32_t>(seed.i32()[2 * b + 1])};
    const auto first = static_cast<uint32_t>(frame.i32()[b]);
    context.for_each(groups, 1 << 11, [&](int64_t begin, int64_t end) {
      fill_normals(key, first, site, begin, end, channels, y.f32() + b * length * channels);
    });
  }
}

void sample(const Call& call, Context& context) {
  const Tensor& logits = call.in[0];
  if (logits.rank != 2 || logits.dim[1] < 1 || logits.dtype != DType::f32) refuse("sample: logits f32 [B,V] wanted");
  const int64_t batch = logits.dim[0], n = logits.dim[1];
  for (int i = 1; i < 6; ++i) {
    if (call.in[i].elements() != batch * (i == 4 ? 2 : 1)) refuse("sample: one setting per row wanted");
  }
  const auto site = static_cast<uint32_t>(call.integer(attr::sample::site));
  context.for_each(batch, 1, [&](int64_t begin, int64_t end) {
    auto* pool = static_cast<Candidate*>(scratch(0, static_cast<size_t>(n) * sizeof(Candidate)));
    auto* weights = static_cast<double*>(scratch(1, static_cast<size_t>(n) * sizeof(double)));
    for (int64_t b = begin; b < end; ++b) {
      Block x = {};
      x.word[0][0] = static_cast<uint32_t>(call.in[5].i32()[b]);
      x.word[1][0] = site;
      philox(static_cast<uint32_t>(call.in[4].i32()[2 * b]), static_cast<uint32_t>(call.in[4].i32()[2 * b + 1]), x);
      const Choice choice{call.in[1].f32()[b], call.in[3].f32()[b], call.in[2].i32()[b], uniform(x.word[0][0])};
      call.out[0].i32()[b] = choose(logits.f32() + b * n, n, choice, pool, weights);
    }
  });
}

}  // namespace sonant::SONANT_ISA
