// Reading the bytecode of a bound Plan: one array of int64 words.
//
//   [n_blocks, start of block 0, start of block 1, ...], then each block: [n_instructions, instructions...]
//   instruction: [length in words, opcode, n_in, n_out, n_attr, n_extra, tensors (inputs, then outputs), attrs, extra]
//   tensor, 11 words: [space, index, offset in bytes, dtype, rank, d0..d5]
//   space: 0 absent | 1 arena | 2 weights[index] | 3 inputs[index] | 4 outputs[index]; the offset counts from there
//
// Attributes: int and dim as they are; float as the bits of a double; strings as the index in their list (opset.gen.h),
// a dtype as its DType, a state as its index or -1; steps, dims and ints as an offset into `extra`. There, a list is
// its count and values; a step list is the number of steps, then per step the opcode of a pointwise op, the number of
// arguments, and pairs (0, register) or (1, bits of a double). Empty steps are -1.
//
// The table of states, beside the code: for each, in the order of Plan.states, the words of a tensor whose offset is
// its address and whose space is 0, or 1 for a ring (position p of a row lies at p % capacity).
//
// loop: inputs = [initial carries..., carry inputs of the body..., carry outputs of the body..., (done), values of the
// body to stack..., step i32 [1]], outputs = [final carries..., stacked [trips, ...]..., count i32 [1]], attrs =
// [block, n_carry, trips, has_done].
//
// Block sums, which are not in the opset (kernels/dense_sums.h): a convolution may have them as a second result,
// instance_affine takes them as a fourth operand and then reads nothing of x but its shape.
//
// Everything that could send the executor outside an array is checked here, so that malformed code raises
// std::invalid_argument. The shapes of a node's tensors are checked by its kernel.
#pragma once

#include <cstdint>
#include <vector>

#include "call.h"
#include "opset.gen.h"

namespace sonant {

// How much the spaces of tensors hold.
struct Sizes {
  int64_t arena_bytes = 0, n_weights = 0, n_inputs = 0, n_outputs = 0, n_states = 0;
};

// Where they begin: addresses.
struct Memory {
  char* arena = nullptr;
  const int64_t* weights = nullptr;
  const int64_t* inputs = nullptr;
  const int64_t* outputs = nullptr;
};

struct Place {
  int64_t space, index, offset;
};

struct Instruction {
  Op op;
  Call call;  // its tensors lie in Code::tensors
};

struct Code {
  std::vector<Tensor> tensors;
  std::vector<Place> places;  // of each tensor
  std::vector<std::vector<Instruction>> blocks;
};

constexpr int kTensorWords = 5 + kMaxRank;

// The code of `words`, which must outlive it. Its tensors have no addresses yet.
Code decode(const int64_t* words, int64_t n_words, const Sizes& sizes);

// Gives every tensor its address.
void attach(Code& code, const Memory& memory);

// The state at `words`, and whether it is a ring.
Tensor decode_state(const int64_t* words, bool* ring);

// The kernel's name for messages.
inline const OpRow& row_of(Op op) { return kOpRows[static_cast<int>(op)]; }

}  // namespace sonant
