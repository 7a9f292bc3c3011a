"""Check a whole Program: every value defined before it is read, shapes and dtypes as the opset rules say, states known."""

from __future__ import annotations

from sonant.errors import ProgramError
from sonant.program import opset, steps
from sonant.program.dims import Dim
from sonant.program.program import Program, Value

FUSED_ATTRS = ("prologue", "epilogue", "steps")


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
        signatures = opset.op(node.op).rule(node.inputs, node.attrs)
        if [(v.shape, v.dtype) for v in node.outputs] != signatures:
            raise ProgramError(f"{where}: results {list(map(str, node.outputs))} do not follow its rule {signatures}")
        for name in FUSED_ATTRS:
            _verify_steps(node.attrs.get(name, ""), where)
        for kind in ("state", "state_k", "state_v"):
            if node.attrs.get(kind):
                program.state(node.attrs[kind])
        if "body" in node.attrs:
            verify(node.attrs["body"])
        _verify_dims(node.outputs, symbols, where)
        known |= {id(v) for v in node.outputs}
    for v in program.outputs:
        if id(v) not in known:
            raise ProgramError(f"{program.name}: output {v} is never made")


def _verify_steps(text: str, where: str) -> None:
    for step in steps.parse(text):
        if not opset.op(step.op).pointwise or step.op == "pointwise":
            raise ProgramError(f"{where}: step {step} is not a pointwise op")


def _verify_dims(values: tuple[Value, ...], symbols: set[str], where: str) -> None:
    for v in values:
        unknown = {s for d in v.shape for s in Dim.of(d).symbols()} - symbols
        if unknown:
            raise ProgramError(f"{where}: {v} depends on {sorted(unknown)}, which no input binds")
