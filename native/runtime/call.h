// What a kernel sees: tensors, attributes, and the context of the run. Every kernel is `void name(const Call&,
// Context&)`, compiled once per instruction set inside `namespace sonant::SONANT_ISA`.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>

// These functions are inlined everywhere: an out-of-line copy made by a file compiled for one instruction set could be
// the one that the linker keeps for all.
#define SONANT_INLINE inline __attribute__((always_inline))

namespace sonant {

enum class DType : int32_t { f32 = 0, f16 = 1, bf16 = 2, i32 = 3, q8 = 4, i8 = 5 };  // q8, i8: packed weights only

constexpr int kMaxRank = 6;

// A contiguous tensor; data is null for an absent optional operand. A dense weight keeps its logical dims
// ([N,K,C/groups], [N,C], [D,4H,C]) while data points at its packed panels (kernels/pack.h).
struct Tensor {
  void* data = nullptr;
  DType dtype = DType::f32;
  int32_t rank = 0;
  int64_t dim[kMaxRank] = {};

  SONANT_INLINE int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= dim[i];
    return n;
  }
  SONANT_INLINE float* f32() const { return static_cast<float*>(data); }
  SONANT_INLINE int32_t* i32() const { return static_cast<int32_t*>(data); }
};

// One node of a bound Plan. Attributes come in the order of the opset row (runtime/opset.gen.h names the indices): ints
// as they are, floats as the bits of a double, enumerated strings as their index, a state as its index or -1, and
// steps, dims or ints as an offset into `extra` (steps: n_steps, then op, n_args, (tag, value)... each; lists: count,
// values...).
struct Call {
  const Tensor* in = nullptr;
  const Tensor* out = nullptr;
  const int64_t* attr = nullptr;
  const int64_t* extra = nullptr;
  int32_t n_in = 0, n_out = 0, n_attr = 0, n_extra = 0;

  SONANT_INLINE bool has(int i) const { return i < n_in && in[i].data != nullptr; }
  SONANT_INLINE int64_t integer(int i) const { return attr[i]; }
  SONANT_INLINE double real(int i) const {
    double v;
    std::memcpy(&v, &attr[i], sizeof v);
    return v;
  }
};

// Runs f(begin, end) over [0, n) on the pool's threads, in pieces of `grain` (the last may be shorter); blocks until
// all are done and throws what a piece threw. The split never changes a result: a kernel must compute each output in
// one piece, in a fixed order.
//
// Range: something that is called with (begin, end), lent by its owner; unlike std::function it takes no memory.
class Range {
 public:
  template <class F>
  SONANT_INLINE Range(const F& f)
      : of_(&f), call_([](const void* of, int64_t begin, int64_t end) { (*static_cast<const F*>(of))(begin, end); }) {}
  SONANT_INLINE void operator()(int64_t begin, int64_t end) const { call_(of_, begin, end); }

 private:
  const void* of_;
  void (*call_)(const void*, int64_t, int64_t);
};

struct Context {
  void (*parallel)(void* pool, int64_t n, int64_t grain, const Range& f) = nullptr;
  void* pool = nullptr;
  int32_t n_threads = 1;
  const Tensor* states = nullptr;  // [n_rows, ...] each; attributes of kind state index this array
  const uint8_t* rings = nullptr;  // for each state: 1 where position p of a row lies at p % capacity
  int32_t n_states = 0;

  SONANT_INLINE void for_each(int64_t n, int64_t grain, const Range& f) const { parallel(pool, n, grain, f); }
};

// Throws std::runtime_error with a printf-like message that begins with the op's name.
[[noreturn]] __attribute__((format(printf, 1, 2))) void refuse(const char* format, ...);

// Thread-local scratch of at least `bytes`, 64-byte aligned; `slot` 0..3 lets one kernel hold several at once.
void* scratch(int slot, size_t bytes);

}  // namespace sonant
