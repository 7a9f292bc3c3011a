"""Lowering a fused Program to a WebGpuPlan: chooses kernels, writes prologues and epilogues, numbers the buffers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sonant.backends.webgpu import kernels
from sonant.backends.webgpu.expressions import Expression
from sonant.backends.webgpu.packing import packed_elements
from sonant.backends.webgpu.plan import Buffer, Constant, Dispatch, Kernel, Symbol, Tensor, WebGpuPlan, Weight
from sonant.backends.webgpu.pointwise import chain_function, element_index
from sonant.backends.webgpu.unfuse import unfuse
from sonant.errors import BackendError
from sonant.program.dims import Dim, DimLike, product
from sonant.program.layout import Layout, assign
from sonant.program.opset import DENSE_FUSED_AT
from sonant.program.program import Node, Program, Value
from sonant.program.shapes import Shape

GRID_AXIS = 65535
"""Workgroups along one axis that every WebGPU device takes."""


def lower(program: Program, hints: Mapping[str, int] | None = None) -> WebGpuPlan:
    """The Plan of a Program that was fused (`passes.fuse`). BackendError names what has no kernel here yet."""
    if program.states:
        raise BackendError(f"{program.name} keeps states: {', '.join(program.states)}; the webgpu backend has none yet")
    return _Lowering(unfuse(program), hints).plan()


class _Lowering:
    def __init__(self, program: Program, hints: Mapping[str, int] | None) -> None:
        self.program = program
        self.layout: Layout = assign(program, hints)
        self.buffers: list[Buffer] = []
        self.numbers: dict[tuple[str, int, str], int] = {}
        self.weights: list[Weight] = []
        self.constants: list[Constant] = []
        self.kernels: list[Kernel] = []
        self.dispatches: list[Dispatch] = []

    def plan(self) -> WebGpuPlan:
        inputs = [self._tensor(v) for v in self.program.inputs]
        writers: dict[str, Callable[[Node], None]] = {"linear": self._linear, "conv1d": self._conv1d,
                                                      "pointwise": self._pointwise}
        for node in self.program.nodes:
            if node.op == "reshape":
                continue  # another name for the same memory
            if node.op not in writers:
                raise BackendError(f"the webgpu backend has no kernel for {node.op} ({node.outputs[0]} of "
                                   f"{self.program.name}); it has {', '.join(kernels.ops())}")
            if any(v is not None and v.dtype == "i32" for v in (*node.inputs, *node.outputs)):
                raise BackendError(f"the webgpu backend computes {node.op} in f32 only; {node.outputs[0]} needs i32")
            if any(v is not None and v.dtype in ("q8", "i8") for v in node.inputs):
                raise BackendError(f"the webgpu backend has no q8 and no i8 weights; {node.op} ({node.outputs[0]} of "
                                   f"{self.program.name}) has one: load f32, f16 or bf16")
            writers[node.op](node)
        outputs = [self._tensor(v) for v in self.program.outputs]
        return WebGpuPlan(self.program.name, symbols(self.program), inputs, outputs, self.weights, self.constants,
                          self.buffers, self.kernels, self.dispatches)

    # --- buffers ---
    def _tensor(self, v: Value) -> Tensor:
        return Tensor(v.name, v.dtype, [expression(d) for d in v.shape], self.buffer(v))

    def buffer(self, v: Value, pack: str = "plain") -> int:
        """The number of the buffer that holds `v`, made when first asked for."""
        location = self.layout.of(v)
        key = (location.space, location.index, pack)
        if key not in self.numbers:
            number = self.numbers[key] = len(self.buffers)
            self.buffers.append(Buffer(location.space, self._elements(v, pack)))
            if location.space == "weight":
                self.weights.append(Weight(v.name, v.dtype, [int(d) for d in v.shape], pack, number))
            elif location.space == "constant":
                array = v.program.constants[v.name][1]
                self.constants.append(Constant(v.dtype, array.ravel().tolist(), number))
        return self.numbers[key]

    def _elements(self, v: Value, pack: str) -> list[Expression]:
        location = self.layout.of(v)
        if location.space == "arena":
            return list(dict.fromkeys(expression(d) for d in self.layout.buffers[location.index]))
        if location.space == "weight":
            return [packed_elements(tuple(int(d) for d in v.shape), pack)]
        return [expression(product(v.shape))]

    # --- kernels ---
    def _linear(self, node: Node) -> None:
        x, w = _value(node.inputs[0]), _value(node.inputs[1])
        out, channels, outputs = node.outputs[0], w.shape[1], w.shape[0]
        rows = product(x.shape[:-1])
        call = _Call(self, node, "linear", [rows, channels, outputs, product(x.shape[1:-1])])
        self._dense(call)
        call.finish([*_tiles(call.row, outputs, rows), 1])
        assert Dim.of(out.shape[-1]) == outputs

    def _conv1d(self, node: Node) -> None:
        x, w, a = _value(node.inputs[0]), _value(node.inputs[1]), node.attrs
        (batch, length, outputs), groups = node.outputs[0].shape, a["groups"]
        sizes = [x.shape[1], x.shape[2], outputs, length, w.shape[1], a["stride"], a["dilation"], a["pad_left"]]
        if groups > 1:
            sizes += [w.shape[2], int(w.shape[0]) // groups]
        call = _Call(self, node, "conv1d_grouped" if groups > 1 else "conv1d", sizes)
        self._dense(call)
        call.finish([*_tiles(call.row, outputs, length), batch])

    def _dense(self, call: _Call) -> None:
        """Bindings, prologue and epilogue, the same for linear and conv1d."""
        node, start = call.node, DENSE_FUSED_AT[call.node.op]
        x, w, bias, *_ = *node.inputs, None, None
        middle = start + node.attrs["n_pro"]
        call.bind(node.outputs[0], "y")
        call.bind(_value(x), "x")
        assert call.row.weight is not None
        call.bind(_value(w), "w", pack=call.row.weight["pack"], element=call.row.weight["type"])
        in_shape, out_shape = _value(x).shape, node.outputs[0].shape
        rounding = "sonant_to_bf16({0})" if node.attrs["precision"] == "bf16" else "{0}"
        call.functions.append(chain_function(
            "prologue", node.attrs["prologue"], ["value", *call.operands(node.inputs[start:middle], in_shape)],
            call.word, subject="value", result=rounding))
        biased = "value" if bias is None else f"value + {call.operands([bias], out_shape)[0]}"
        call.functions.append(chain_function(
            "epilogue", node.attrs["epilogue"], [biased, *call.operands(node.inputs[middle:], out_shape)],
            call.word, subject="value"))

    def _pointwise(self, node: Node) -> None:
        shape = node.outputs[0].shape
        elements = product(shape)
        call = _Call(self, node, "pointwise", [elements, shape[-1] if shape else 1, product(shape[1:])])
        call.bind(node.outputs[0], "y")
        operands = call.operands(node.inputs, shape)
        call.functions.append(chain_function("chain", node.attrs["steps"], operands, call.word))
        call.finish([*_line(ceil_div(elements, call.row.workgroup_x)), 1])

    def kernel(self, made: Kernel) -> int:
        if made not in self.kernels:
            self.kernels.append(made)
        return self.kernels.index(made)


class _Call:
    """One dispatch while it is written: its bindings, its uniform words and the functions put into the template.

    Binding 0 is the uniform words, 1 the result `y` (read_write), the others are read.
    """

    def __init__(self, lowering: _Lowering, node: Node, kernel: str, sizes: Sequence[DimLike]) -> None:
        self.lowering, self.node, self.row = lowering, node, kernels.rows()[kernel]
        self.uniforms: list[Expression] = [expression(d) for d in sizes]
        self.words: dict[Expression, str] = {}
        self.names: dict[int, str] = {}
        self.declarations: list[str] = []
        self.functions: list[str] = []

    def word(self, size: DimLike) -> str:
        text = expression(size)
        if text not in self.words:
            self.words[text] = f"n{len(self.words)}"
        return f"sizes.{self.words[text]}"

    def bind(self, v: Value, name: str, *, pack: str = "plain", element: str = "f32") -> str:
        """The WGSL name of the buffer of `v`; a buffer that is bound already keeps its first name."""
        buffer = self.lowering.buffer(v, pack)
        if buffer not in self.names:
            if len(self.names) == kernels.STORAGE_BUFFERS:
                raise BackendError(f"{self._title()} needs more tensors than the {len(self.names)} a kernel may bind")
            self.names[buffer] = name
            access = "read_write" if name == "y" else "read"
            place = f"@group(0) @binding({len(self.names)})"
            self.declarations.append(f"{place} var<storage, {access}> {name}: array<{element}>;")
        return self.names[buffer]

    def operands(self, values: Sequence[Value | None], subject: Shape) -> list[str]:
        """A WGSL expression for the element of each value that is broadcast to the subject's element (i, b, c)."""
        found = []
        for v in map(_value, values):
            name = self.bind(v, f"v{len(self.names)}")
            found.append(f"{name}[{element_index(v.shape, subject, self.word)}]")
        return found

    def finish(self, workgroups: Sequence[DimLike | str]) -> None:
        row, declarations = self.row, list(self.declarations)
        if row.tile_rows > 1:
            declarations.append(f"const TILE_ROWS: u32 = {row.tile_rows}u;")
        text = "\n".join([*declarations, *self.functions])
        files = ["math.wgsl", row.file] if "sonant_" in text else [row.file]
        sections = {"sizes": [f"  {n}: u32," for n in self.words.values()], "declarations": text.split("\n")}
        kernel = Kernel(files, sections, dict(row.workgroup))
        grid = [d if isinstance(d, str) else expression(d) for d in workgroups]
        self.lowering.dispatches.append(Dispatch(self._title(), self.lowering.kernel(kernel), list(self.names), grid,
                                                 [*self.uniforms, *self.words]))

    def _title(self) -> str:
        return f"{self.node.op} {self.node.outputs[0].name}"


def symbols(program: Program) -> list[Symbol]:
    """How each dim symbol follows from the inputs' shapes: an axis of size a*symbol + b gives it."""
    found: dict[str, Symbol] = {}
    for v in program.inputs:
        for axis, dim in enumerate(map(Dim.of, v.shape)):
            for name in dim.symbols() if len(dim.symbols()) == 1 else ():
                b = dim.evaluate({name: 0})
                a = dim.evaluate({name: 1}) - b
                if a > 0 and dim == Dim.symbol(name) * a + b:
                    found.setdefault(name, Symbol(name, v.name, axis, expression((Dim.symbol("size") - b) // a)))
    unbound = [s for s in program.symbols() if s not in found]
    if unbound:
        raise BackendError(f"no input of {program.name} has an axis that gives {', '.join(unbound)}")
    return [found[s] for s in program.symbols()]


def expression(d: DimLike) -> Expression:
    dim = Dim.of(d)
    return int(dim) if dim.is_constant else str(dim)


def ceil_div(d: DimLike, divisor: int) -> Dim:
    return (Dim.of(d) + divisor - 1) // divisor


def _tiles(row: kernels.KernelRow, outputs: DimLike, rows: DimLike) -> list[Dim]:
    return [ceil_div(outputs, row.tile_outputs * row.workgroup_x), ceil_div(rows, row.tile_rows * row.workgroup_y)]


def _line(groups: Dim) -> list[DimLike | str]:
    """`groups` workgroups in a row, folded into as few lines of equal length as an axis allows."""
    lines = groups // GRID_AXIS + 1
    if groups.is_constant:
        return [-(-int(groups) // int(lines)), lines]
    return [f"({groups}+{lines}-1)//({lines})", lines]


def _value(v: Value | None) -> Value:
    assert v is not None
    return v
