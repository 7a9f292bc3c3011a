#include "bytecode.h"

#include <stdexcept>
#include <string>

namespace sonant {

namespace {

constexpr int64_t kInstructionWords = 6;
constexpr int64_t kMostElements = int64_t{1} << 40;

[[noreturn]] void malformed(const std::string& what) { throw std::invalid_argument("bytecode: " + what); }

void check(bool condition, const char* what) {
  if (!condition) malformed(what);
}

int64_t dtype_bytes(DType t) {
  return t == DType::q8 || t == DType::i8 ? 1 : t == DType::f16 || t == DType::bf16 ? 2 : 4;
}

// Words [at, end) of one block or instruction.
struct Cursor {
  const int64_t* words;
  int64_t at, end;

  int64_t take() {
    check(at < end, "it ends within an instruction");
    return words[at++];
  }
  int64_t take_count(int64_t most, const char* what) {
    const int64_t n = take();
    check(n >= 0 && n <= most, what);
    return n;
  }
  const int64_t* take_words(int64_t n) {
    check(n <= end - at, "it ends within an instruction");
    const int64_t* found = words + at;
    at += n;
    return found;
  }
};

// dtype, rank and dims of a tensor; the number of its bytes (as plain elements).
int64_t read_signature(const int64_t* words, Tensor& t) {
  check(words[3] >= 0 && words[3] <= static_cast<int64_t>(DType::i8), "a tensor of an unknown dtype");
  check(words[4] >= 0 && words[4] <= kMaxRank, "a tensor of an impossible rank");
  t.dtype = static_cast<DType>(words[3]);
  t.rank = static_cast<int32_t>(words[4]);
  int64_t n = 1;
  for (int i = 0; i < t.rank; ++i) {
    const int64_t d = words[5 + i];
    check(d >= 0 && d <= kMostElements, "a tensor with an impossible dim");
    t.dim[i] = d;
    check(d == 0 || n <= kMostElements / d, "a tensor that is too large");
    n *= d;
  }
  return n * dtype_bytes(t.dtype);
}

void check_index(int64_t index, int64_t n, const char* what) { check(index >= 0 && index < n, what); }

char kSomewhere;  // what a tensor that is there points to before it is attached

Tensor read_tensor(const int64_t* words, const Sizes& sizes) {
  Tensor t;
  if (words[0] == 0) return t;
  const int64_t bytes = read_signature(words, t), index = words[1], offset = words[2];
  check(offset >= 0 && offset % 4 == 0, "an offset that is negative or not that of an element");
  switch (words[0]) {
    case 1:
      check(offset <= sizes.arena_bytes && bytes <= sizes.arena_bytes - offset, "a tensor outside the arena");
      break;
    case 2:
      check_index(index, sizes.n_weights, "a weight outside the table");
      break;
    case 3:
      check_index(index, sizes.n_inputs, "an input outside the table");
      break;
    case 4:
      check_index(index, sizes.n_outputs, "an output outside the table");
      break;
    default:
      malformed("a tensor in no known space");
  }
  t.data = &kSomewhere;
  return t;
}

char* address(const int64_t* table, int64_t index) {
  check(table[index] != 0, "an operand at address 0");
  return reinterpret_cast<char*>(table[index]);
}

// Arguments that a pointwise op takes in a step: its operands, then its attributes.
int64_t step_arity(const OpRow& row) { return row.n_named + row.n_attrs; }

void check_steps(const Call& c, int64_t at, int64_t n_registers) {
  if (at == -1) return;
  check(at >= 0 && at <= c.n_extra, "a step list outside its instruction");
  Cursor cursor{c.extra, at, c.n_extra};
  const int64_t n_steps = cursor.take_count(1000, "a step list that is too long");
  for (int64_t i = 0; i < n_steps; ++i) {
    const int64_t op = cursor.take();
    check(op >= 0 && op < kOps && kOpRows[op].pointwise && op != static_cast<int64_t>(Op::pointwise),
          "a step that is not pointwise");
    const int64_t n_args = cursor.take();
    check(n_args == step_arity(kOpRows[op]), "a step with a wrong number of arguments");
    for (int64_t a = 0; a < n_args; ++a) {
      const int64_t literal = cursor.take(), value = cursor.take();
      check(literal == 1 || (literal == 0 && value >= 0 && value < n_registers + i), "a step that reads no register");
    }
  }
}

void check_list(const Call& c, int64_t at) {
  check(at >= 0 && at <= c.n_extra, "a list outside its instruction");
  Cursor cursor{c.extra, at, c.n_extra};
  cursor.take_words(cursor.take_count(c.n_extra, "a list that is too long"));
}

// Registers before the first step. A dense op has n_pro (the attribute before precision) operands for the prologue
// after its named ones, the others belong to the epilogue.
int64_t step_registers(const OpRow& row, const Call& c, int attr) {
  if (row.n_attrs == 1) return c.n_in;
  const int64_t n_pro = c.attr[row.n_attrs - 2], fused = c.n_in > row.n_named - 1 ? c.n_in - (row.n_named - 1) : 0;
  check(n_pro >= 0 && n_pro <= fused, "more prologue operands than there are");
  return 1 + (attr == row.n_attrs - 4 ? n_pro : fused - n_pro);
}

void check_attr(const OpRow& row, const Call& c, int i, int64_t n_states) {
  const int64_t v = c.attr[i];
  switch (row.attrs[i]) {
    case AttrKind::steps:
      check_steps(c, v, step_registers(row, c, i));
      break;
    case AttrKind::dims:
    case AttrKind::ints:
      check_list(c, v);
      break;
    case AttrKind::state:
      check(v >= -1 && v < n_states, "a state outside the table");
      break;
    case AttrKind::dtype:
      check(v >= 0 && v <= 3, "an unknown dtype");
      break;
    default: {
      const int64_t choices = kChoices[static_cast<int>(row.attrs[i])];
      check(choices == 0 || (v >= 0 && v < choices), "an attribute outside its list");
    }
  }
}

// Block sums, which Plans have and the opset has not: a result after those of the op that makes them, an operand after
// those of the op that takes them.
bool may_make_sums(Op op) { return op == Op::conv1d || op == Op::conv_transpose1d; }
bool may_take_sums(Op op) { return op == Op::instance_affine; }

void check_operands(Op op, const Call& c) {
  const OpRow& row = row_of(op);
  const int most = row.n_most < 0 ? c.n_in : row.n_most + may_take_sums(op);
  check(c.n_attr == row.n_attrs, "an op with a wrong number of attributes");
  check(row.n_outputs < 0 || c.n_out == row.n_outputs || (may_make_sums(op) && c.n_out == row.n_outputs + 1),
        "an op with a wrong number of results");
  check(c.n_in >= row.n_required && c.n_in <= most, "an op with a wrong number of operands");
  for (int i = 0; i < row.n_required; ++i) check(c.in[i].data != nullptr, "an op without a required operand");
  for (int i = row.n_named - 1; row.n_most < 0 && i < c.n_in; ++i) {
    check(c.in[i].data != nullptr, "a repeated operand that is absent");
  }
  for (int i = 0; i < c.n_out; ++i) check(c.out[i].data != nullptr, "an op without a result");
}

int64_t elements_after(const Tensor& t, int first) {
  int64_t n = 1;
  for (int i = first; i < t.rank; ++i) n *= t.dim[i];
  return n;
}

void check_loop(const Call& c, size_t n_blocks) {
  const int64_t n_carry = c.attr[attr::loop::n_carry], has_done = c.attr[attr::loop::has_done];
  const int64_t block = c.attr[attr::loop::body], trips = c.attr[attr::loop::trips];
  check(block >= 0 && static_cast<size_t>(block) < n_blocks, "a loop over a block that is not there");
  check(has_done == 0 || has_done == 1, "a loop with a wrong done flag");
  check(n_carry >= 0 && n_carry < c.n_out, "a loop with a wrong number of carries");
  const int64_t n_stack = c.n_out - n_carry - 1;
  check(c.n_in == 3 * n_carry + has_done + n_stack + 1, "a loop with a wrong number of operands");
  for (int i = 0; i < c.n_in; ++i) check(c.in[i].data != nullptr, "a loop without an operand");
  for (int64_t i = 0; i < n_carry; ++i) {
    for (const Tensor* t : {&c.in[n_carry + i], &c.in[2 * n_carry + i], &c.out[i]}) {
      check(t->dtype == c.in[i].dtype && t->elements() == c.in[i].elements(), "a loop carry that changes its shape");
    }
  }
  for (int64_t i = 0; i < n_stack; ++i) {
    const Tensor &value = c.in[3 * n_carry + has_done + i], &stack = c.out[n_carry + i];
    check(stack.rank >= 1 && stack.dim[0] >= trips && stack.dtype == value.dtype &&
              elements_after(stack, 1) == value.elements(),
          "a loop result that its values do not fit");
  }
  for (const Tensor* t : {&c.in[c.n_in - 1], &c.out[c.n_out - 1]}) {
    check(t->dtype == DType::i32 && t->elements() == 1, "a loop counter that is not i32 [1]");
  }
  if (has_done) {
    const DType t = c.in[3 * n_carry].dtype;
    check(t == DType::f32 || t == DType::i32, "a done flag that is neither f32 nor i32");
  }
}

Instruction read_instruction(Cursor& block, const Sizes& sizes, size_t n_blocks, Code& code) {
  std::vector<Tensor>& tensors = code.tensors;
  const int64_t length = block.take();
  check(length >= kInstructionWords && length - 1 <= block.end - block.at, "an instruction of a wrong length");
  Cursor cursor{block.words, block.at, block.at + length - 1};
  block.at = cursor.end;
  const int64_t op = cursor.take();
  check(op >= 0 && op < kOps, "an unknown opcode");
  Instruction found{static_cast<Op>(op), Call()};
  Call& c = found.call;
  c.n_in = static_cast<int32_t>(cursor.take_count(length, "an instruction with too many operands"));
  c.n_out = static_cast<int32_t>(cursor.take_count(length, "an instruction with too many results"));
  c.n_attr = static_cast<int32_t>(cursor.take_count(length, "an instruction with too many attributes"));
  c.n_extra = static_cast<int32_t>(cursor.take_count(length, "an instruction with too many extra words"));
  // The vector was reserved for every word of the code, so that these addresses stay good.
  c.in = tensors.data() + tensors.size();
  c.out = c.in + c.n_in;
  for (int i = 0; i < c.n_in + c.n_out; ++i) {
    const int64_t* words = cursor.take_words(kTensorWords);
    tensors.push_back(read_tensor(words, sizes));
    code.places.push_back({words[0], words[1], words[2]});
  }
  c.attr = cursor.take_words(c.n_attr);
  c.extra = cursor.take_words(c.n_extra);
  check(cursor.at == cursor.end, "an instruction of a wrong length");
  const OpRow& row = row_of(found.op);
  check_operands(found.op, c);
  for (int i = 0; i < c.n_attr; ++i) check_attr(row, c, i, sizes.n_states);
  if (found.op == Op::loop) check_loop(c, n_blocks);
  return found;
}

}  // namespace

Code decode(const int64_t* words, int64_t n_words, const Sizes& sizes) {
  Cursor head{words, 0, n_words};
  const auto n_blocks = static_cast<size_t>(head.take_count(n_words, "a wrong number of blocks"));
  check(n_blocks > 0, "no block");
  const int64_t* starts = head.take_words(static_cast<int64_t>(n_blocks));
  Code code;
  code.tensors.reserve(static_cast<size_t>(n_words / kTensorWords) + 1);
  code.places.reserve(code.tensors.capacity());
  code.blocks.resize(n_blocks);
  for (size_t b = 0; b < n_blocks; ++b) {
    check(starts[b] >= head.at && starts[b] < n_words, "a block outside the code");
    check(b == 0 || starts[b] > starts[b - 1], "blocks out of order");
  }
  for (size_t b = 0; b < n_blocks; ++b) {
    Cursor cursor{words, starts[b], b + 1 < n_blocks ? starts[b + 1] : n_words};
    const int64_t n = cursor.take_count(n_words / kInstructionWords, "a wrong number of instructions");
    code.blocks[b].reserve(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) {
      code.blocks[b].push_back(read_instruction(cursor, sizes, n_blocks, code));
    }
  }
  return code;
}

void attach(Code& code, const Memory& memory) {
  for (size_t i = 0; i < code.tensors.size(); ++i) {
    const Place& p = code.places[i];
    if (p.space == 0) continue;
    char* base = p.space == 1   ? memory.arena
                 : p.space == 2 ? address(memory.weights, p.index)
                 : p.space == 3 ? address(memory.inputs, p.index)
                                : address(memory.outputs, p.index);
    code.tensors[i].data = base + p.offset;
  }
}

Tensor decode_state(const int64_t* words, bool* ring) {
  Tensor t;
  check(words[0] == 0 || words[0] == 1, "a state of an unknown kind");
  *ring = words[0] == 1;
  read_signature(words, t);
  check(t.rank >= 1, "a state without rows");
  check(words[2] != 0, "a state at address 0");
  t.data = reinterpret_cast<char*>(words[2]);
  return t;
}

}  // namespace sonant
