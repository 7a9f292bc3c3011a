"""Check a whole Program: every value made before it is read, shapes and dtypes as the opset rules say, states known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sonant.errors import ProgramError
from sonant.program import opset, steps
from sonant.program.dims import Dim, DimLike
from sonant.program.program import Node, Program, Value, check_operands, complete_attrs


def verify(program: Program) -> None:
    """Raise ProgramError at the first rule that `program` breaks."""
    known = {id(v) for v in program.inputs} | {id(v) for v in program.weights.values()}
    known |= {id(v) for v, _ in program.constants.values()}
    symbols = set(program.symbols())
    for at, node in enumerate(program.nodes):
        where = f"{program.name}, node {at} ({node.op})"
        for v in node.inputs:
            if v is not None and id(v) not in known:
                raise ProgramError(f"{where}: {v} is read before it is made")
        try:
            _verify_node(node, symbols)
        except ProgramError as e:
            raise ProgramError(f"{where}: {e}") from e
        if "body" in node.attrs:
            verify(node.attrs["body"])
        for v in node.outputs:
            if id(v) in known:
                raise ProgramError(f"{where}: {v} is made twice")
            known.add(id(v))
    for v in program.outputs:
        if id(v) not in known:
            raise ProgramError(f"{program.name}: output {v} is never made")


def _verify_node(node: Node, symbols: set[str]) -> None:
    if complete_attrs(node.op, node.attrs) != node.attrs:
        raise ProgramError("attributes are missing or not in their stored form")
    check_operands(node.op, node.inputs)
    signatures = node.row.rule(node.inputs, node.attrs)
    if [(v.shape, v.dtype) for v in node.outputs] != signatures:
        raise ProgramError(f"results {list(map(str, node.outputs))} do not follow its rule {signatures}")
    _verify_fused(node)
    for v in node.outputs:
        _verify_dims(v.shape, symbols, str(v))
    for name, attr in node.row.attrs.items():
        if attr.kind in ("dim", "dims"):
            value = node.attrs[name]
            _verify_dims(value if isinstance(value, tuple) else (value,), symbols, name)


def _verify_fused(node: Node) -> None:
    """Registers of step lists exist, and the fused operands broadcast into what they meet."""
    if "steps" in node.attrs:
        _verify_steps(node.attrs["steps"], len(node.inputs))
    if "prologue" not in node.attrs:
        return
    first = sum(1 for i in node.row.inputs if not i.endswith("*"))
    fused, n_pro = [v for v in node.inputs[first:] if v is not None], node.attrs["n_pro"]
    if n_pro > len(fused):
        raise ProgramError(f"n_pro is {n_pro}, with {len(fused)} fused operands")
    x = node.inputs[0]
    assert x is not None
    _verify_steps(node.attrs["prologue"], 1 + n_pro)
    _verify_broadcast(x, fused[:n_pro])
    _verify_steps(node.attrs["epilogue"], 1 + len(fused) - n_pro)
    _verify_broadcast(node.outputs[0], fused[n_pro:])


def _verify_steps(text: str, operands: int) -> None:
    for at, step in enumerate(steps.parse(text)):
        row = opset.op(step.op)
        if not row.pointwise or step.op == "pointwise":
            raise ProgramError(f"step {step} is not a pointwise op")
        if len(step.args) != len(row.inputs) + len(row.attrs):
            raise ProgramError(f"step {step} wants {len(row.inputs) + len(row.attrs)} arguments")
        if not all(isinstance(a, float) or 0 <= a < operands + at for a in step.args):
            raise ProgramError(f"step {step} reads a register that does not exist yet")
        if not all(isinstance(a, float) for a in step.args[len(row.inputs):]):
            raise ProgramError(f"step {step}: an attribute of {step.op} must be a literal")


def _verify_broadcast(target: Value, operands: Sequence[Value]) -> None:
    for v in operands:
        pairs = zip(reversed(v.shape), reversed(target.shape), strict=False)
        if len(v.shape) > len(target.shape) or not all(d == 1 or Dim.of(d) == t for d, t in pairs):
            raise ProgramError(f"fused operand {v} does not broadcast into {target.shape_text}")


def _verify_dims(dims: Iterable[DimLike], symbols: set[str], what: str) -> None:
    unknown = {s for d in dims for s in Dim.of(d).symbols()} - symbols
    if unknown:
        raise ProgramError(f"{what} depends on {sorted(unknown)}, which no input binds")
