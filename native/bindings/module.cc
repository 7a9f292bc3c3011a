// The Python module `sonant._native`: pool, run, packing. Everything about Programs is on the Python side
// (sonant/backends/native).
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../kernels/pack.h"
#include "../runtime/executor.h"
#include "../runtime/isa.h"
#include "../runtime/platform.h"
#include "../runtime/pool.h"
#include "../runtime/probe.h"

namespace nb = nanobind;

namespace {

using sonant::DType;
using sonant::PackRole;
using sonant::Pool;

using Words = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Addresses = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

PackRole role_of(const std::string& name) {
  if (name == "linear") return PackRole::linear;
  if (name == "conv") return PackRole::conv;
  if (name == "lstm") return PackRole::lstm;
  throw std::invalid_argument("a packing role is linear, conv or lstm, not '" + name + "'");
}

DType dtype_of(const std::string& name) {
  if (name == "f32") return DType::f32;
  if (name == "f16") return DType::f16;
  if (name == "bf16") return DType::bf16;
  if (name == "q8") return DType::q8;
  if (name == "i8") return DType::i8;
  throw std::invalid_argument("packed weights are f32, f16, bf16, q8 or i8, not '" + name + "'");
}

// Dims of a weight for pack.h, checked against its role.
std::vector<int64_t> checked_dims(PackRole role, const std::vector<int64_t>& shape, int64_t groups) {
  if (shape.size() != (role == PackRole::linear ? 2u : 3u)) throw std::invalid_argument("a weight of an unfit rank");
  for (const int64_t d : shape) {
    if (d < 1) throw std::invalid_argument("a weight with an empty axis");
  }
  if (groups < 1 || shape[0] % groups != 0) throw std::invalid_argument("outputs that groups do not divide");
  return shape;
}

size_t packed_bytes(const std::string& role, const std::vector<int64_t>& shape, int64_t groups,
                    const std::string& dtype) {
  const std::vector<int64_t> dims = checked_dims(role_of(role), shape, groups);
  return sonant::packed_bytes(role_of(role), dims.data(), static_cast<int>(dims.size()), groups, dtype_of(dtype));
}

bool packed_in_f32(const std::string& role, const std::vector<int64_t>& shape, int64_t groups) {
  const std::vector<int64_t> dims = checked_dims(role_of(role), shape, groups);
  return sonant::packed_in_f32(role_of(role), dims.data(), static_cast<int>(dims.size()), groups);
}

void pack(const std::string& role, const nb::ndarray<const float, nb::c_contig, nb::device::cpu>& src, int64_t groups,
          const std::string& dtype, const nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>& dst) {
  std::vector<int64_t> shape;
  for (size_t i = 0; i < src.ndim(); ++i) shape.push_back(static_cast<int64_t>(src.shape(i)));
  const size_t bytes = packed_bytes(role, shape, groups, dtype);
  if (dst.shape(0) != bytes) {
    throw std::invalid_argument("the target of pack holds " + std::to_string(dst.shape(0)) + " bytes, not " +
                                std::to_string(bytes));
  }
  const PackRole r = role_of(role);
  const DType t = dtype_of(dtype);
  nb::gil_scoped_release release;
  sonant::pack(r, src.data(), shape.data(), static_cast<int>(shape.size()), groups, t, dst.data());
}

const int64_t* addresses(const Addresses& a) {
  const auto code = static_cast<nb::dlpack::dtype_code>(a.dtype().code);
  if (a.dtype().bits != 64 || (code != nb::dlpack::dtype_code::Int && code != nb::dlpack::dtype_code::UInt)) {
    throw std::invalid_argument("addresses must be int64 or uint64");
  }
  return static_cast<const int64_t*>(a.data());
}

int64_t size(const Addresses& a) { return static_cast<int64_t>(a.shape(0)); }

// States as runs take them, read once.
struct States {
  std::vector<sonant::Tensor> tensors;
  std::vector<uint8_t> rings;

  explicit States(const Words& words) {
    if (words.shape(0) % sonant::kTensorWords != 0) throw std::invalid_argument("a state has 11 words");
    for (size_t at = 0; at < words.shape(0); at += sonant::kTensorWords) {
      bool ring = false;
      tensors.push_back(sonant::decode_state(words.data() + at, &ring));
      rings.push_back(ring);
    }
  }
};

void make_plan(sonant::BoundPlan* plan, const Words& bytecode, const Addresses& weights, int64_t n_inputs,
               int64_t n_outputs, int64_t n_states, int64_t arena_bytes, const std::string& isa,
               const std::optional<Words>& releases) {
  const int64_t *words = bytecode.data(), *at = addresses(weights);
  if (releases && releases->shape(0) % 3 != 0) throw std::invalid_argument("a release has 3 words");
  std::vector<sonant::Release> found;
  for (size_t i = 0; releases && i < releases->shape(0); i += 3) {
    const int64_t* r = releases->data() + i;
    found.push_back({r[0], r[1], r[2]});
  }
  new (plan) sonant::BoundPlan({words, words + bytecode.shape(0)}, {at, at + size(weights)},
                               {arena_bytes, size(weights), n_inputs, n_outputs, n_states}, sonant::kernels_of(isa),
                               std::move(found));
}

int run(sonant::BoundPlan& plan, const Addresses& inputs, const Addresses& outputs, const States& states, Pool& pool,
        const std::optional<nb::ndarray<const int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>>& cancel,
        const std::optional<nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>>& seconds, int threads) {
  const sonant::Sizes& sizes = plan.sizes();
  if (size(inputs) != sizes.n_inputs || size(outputs) != sizes.n_outputs ||
      static_cast<int64_t>(states.tensors.size()) != sizes.n_states) {
    throw std::invalid_argument("a run with another number of inputs, outputs or states than its plan");
  }
  sonant::Run r;
  r.inputs = addresses(inputs);
  r.outputs = addresses(outputs);
  r.states = states.tensors;
  r.rings = states.rings;
  r.threads = threads;
  if (cancel && cancel->shape(0) > 0) r.cancel = cancel->data();
  if (seconds) {
    r.seconds = seconds->data();
    r.n_seconds = static_cast<int64_t>(seconds->shape(0));
  }
  nb::gil_scoped_release release;
  return static_cast<int>(plan.run(r, pool));
}

double peak_rate(const std::string& kind, const std::string& isa, Pool& pool, double budget_s) {
  const sonant::Probes& probes = sonant::kernels_of(isa).probes;
  nb::gil_scoped_release release;
  if (kind == "f32") return sonant::peak_rate(probes.f32, pool, budget_s);
  if (kind == "bf16") return sonant::peak_rate(probes.bf16, pool, budget_s);
  if (kind == "int8") return sonant::peak_rate(probes.int8, pool, budget_s);
  throw std::invalid_argument("products are f32, bf16 or int8, not '" + kind + "'");
}

std::vector<std::string> fast_products(const std::string& isa) {
  const auto& fast = sonant::kernels_of(isa).probes.fast;
  return {fast.begin(), fast.end()};
}

double read_rate(int64_t bytes, const std::string& isa, Pool& pool, double budget_s) {
  const sonant::Probes& probes = sonant::kernels_of(isa).probes;
  nb::gil_scoped_release release;
  return sonant::read_rate(probes.read, bytes, pool, budget_s);
}

}  // namespace

NB_MODULE(_native, m) {
  m.doc() = "Kernels and runtime of the native backend; used through sonant.backends.native.";
  m.def("opset_version", [] { return sonant::kOpsetVersion; });
  m.def("isas", &sonant::available_isas, "Instruction sets that this machine can run, best last.");
  m.def("fast_products", &fast_products, nb::arg("isa"),
        "bf16, int8: those that an instruction set has an instruction for on this machine, the fastest in use first.");
  m.def("available_cpus", &sonant::available_cpus, "CPUs that this process may use.");
  m.def("packed_bytes", &packed_bytes, nb::arg("role"), nb::arg("shape"), nb::arg("groups"), nb::arg("dtype"));
  m.def("packed_in_f32", &packed_in_f32, nb::arg("role"), nb::arg("shape"), nb::arg("groups"),
        "Whether a weight of this shape is packed in f32 whatever its dtype: round it to that first.");
  m.def("pack", &pack, nb::arg("role"), nb::arg("src"), nb::arg("groups"), nb::arg("dtype"), nb::arg("dst"));
  nb::class_<Pool>(m, "Pool", "Threads and workspaces for runs; the threads start with the first run that needs them.")
      .def(nb::init<int>(), nb::arg("n_threads"))
      .def_prop_ro("n_threads", &Pool::n_threads)
      .def("close", &Pool::close, nb::call_guard<nb::gil_scoped_release>(),
           "End the threads and free the kept workspaces; a later run starts them again.");
  nb::class_<States>(m, "States", "States of a run: 11 words each (native/runtime/bytecode.h).")
      .def(nb::init<const Words&>(), nb::arg("words"));
  nb::class_<sonant::BoundPlan>(m, "Plan", "Bytecode (native/runtime/bytecode.h), checked; ValueError where malformed.")
      .def("__init__", &make_plan, nb::arg("bytecode"), nb::arg("weights"), nb::arg("n_inputs"), nb::arg("n_outputs"),
           nb::arg("n_states"), nb::arg("arena_bytes"), nb::arg("isa"), nb::arg("releases").none() = nb::none())
      .def("run", &run, nb::arg("inputs"), nb::arg("outputs"), nb::arg("states"), nb::arg("pool"),
           nb::arg("cancel").none() = nb::none(), nb::arg("seconds").none() = nb::none(), nb::arg("threads") = 0,
           "Play it: 0 when done, 1 when cancelled. inputs, outputs: addresses. `seconds` (f64, one place per "
           "instruction, "
           "block after block; a loop has none) has the time of each added; `threads` is how many of the pool's may "
           "compute, 0 for all. RuntimeError is what "
           "a kernel refuses.");
  m.def("peak_rate", &peak_rate, nb::arg("kind"), nb::arg("isa"), nb::arg("pool"), nb::arg("budget_s"),
        "Arithmetic operations a second of f32, bf16 or int8 products on all threads of the pool, the best within "
        "`budget_s`; 0 where the instruction set has no such products.");
  m.def("read_rate", &read_rate, nb::arg("bytes"), nb::arg("isa"), nb::arg("pool"), nb::arg("budget_s"),
        "Bytes a second that all threads of the pool read, over and over, of `bytes` shared out among them.");
}
