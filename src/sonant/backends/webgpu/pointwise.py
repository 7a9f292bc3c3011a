"""Step lists in WGSL: the table of pointwise ops, and the function that one step list becomes.

Such a function is what a kernel template calls `prologue`, `epilogue` or `chain`. It is given where the element lies in
the tensor it works on (its subject): the flat index i, the coordinate b on the first axis and c on the last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from sonant.errors import BackendError
from sonant.program import steps
from sonant.program.dims import Dim, DimLike, product
from sonant.program.shapes import Shape
from sonant.program.steps import Argument

EXPRESSIONS: dict[str, str] = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}",
    "minimum": "min({0}, {1})", "maximum": "max({0}, {1})",
    "greater": "select(0.0, 1.0, {0} > {1})", "equal": "select(0.0, 1.0, {0} == {1})",
    "atan2": "sonant_atan2({0}, {1})", "exp": "sonant_exp({0})", "log": "sonant_log({0})", "sin": "sonant_sin({0})",
    "cos": "sonant_cos({0})", "tanh": "sonant_tanh({0})", "sigmoid": "sonant_sigmoid({0})", "relu": "max({0}, 0.0)",
    "silu": "{0} * sonant_sigmoid({0})", "gelu": "sonant_gelu({0})", "gelu_tanh": "sonant_gelu_tanh({0})",
    "elu": "select(sonant_exp(min({0}, 0.0)) - 1.0, {0}, {0} > 0.0)",
    "sqrt": "sqrt({0})", "abs": "abs({0})", "floor": "floor({0})", "round": "round({0})",
    "leaky_relu": "select({0} * {1}, {0}, {0} > 0.0)", "snake": "sonant_snake({0}, {1})",
    "affine": "{0} * {1} + {2}", "where": "select({2}, {1}, {0} != 0.0)",
}
"""Each pointwise op of the opset; the sonant_ functions are in shaders/math.wgsl. WGSL's own round is half to even."""

Words = Callable[[DimLike], str]
"""Gives the WGSL name of the uniform word that holds a size (or bits)."""


def chain_function(name: str, text: str, operands: Sequence[str], words: Words, *, subject: str | None = None,
                   result: str = "{0}") -> str:
    """WGSL of the step list `text`: registers are `operands` (WGSL expressions, in order), then one per step.

    subject: the name of the first parameter when the value of register 0 is passed in (a prologue or an epilogue).
    result: what is returned, around the last register.
    """
    first = f"{subject}: f32, " if subject else ""
    lines = [f"fn {name}({first}i: u32, b: u32, c: u32) -> f32 {{"]
    lines += [f"  let r{n} = {operand};" for n, operand in enumerate(operands)]
    count = len(operands)
    for step in steps.parse(text):
        if step.op not in EXPRESSIONS:
            raise BackendError(f"the webgpu backend has no WGSL for the pointwise op {step.op!r}")
        lines.append(f"  let r{count} = {EXPRESSIONS[step.op].format(*(_argument(a, words) for a in step.args))};")
        count += 1
    last = f"r{count - 1}" if steps.parse(text) else "r0"
    return "\n".join([*lines, f"  return {result.format(last)};", "}"])


def _argument(a: Argument, words: Words) -> str:
    if not isinstance(a, float):
        return f"r{a}"
    value = np.float32(a)
    if math.isfinite(value):
        return f"({value!s}f)" if np.signbit(value) else f"{value!s}f"
    return f"bitcast<f32>({words(int(value.view(np.uint32)))})"  # WGSL refuses infinity in a constant expression


def element_index(operand: Shape, subject: Shape, words: Words) -> str:
    """WGSL for the flat index of the operand's element that is broadcast to element (i, b, c) of the subject."""
    shape = (1,) * (len(subject) - len(operand)) + tuple(operand)
    terms = []
    for start, stop in _runs(shape, subject):
        run = _coordinate(start, stop, subject, words)
        stride = product(shape[stop:])
        terms.append(run if stride == 1 else f"{run} * {words(stride)}")
    return " + ".join(terms) or "0u"


def _runs(operand: Shape, subject: Shape) -> list[tuple[int, int]]:
    """Ranges of neighbouring axes over which the operand varies; axes where the subject has size 1 join either side."""
    runs: list[tuple[int, int]] = []
    inside = False
    for axis, (own, size) in enumerate(zip(operand, subject, strict=True)):
        if Dim.of(size) == 1:
            continue
        if Dim.of(own) == 1:
            inside = False
        elif inside:
            runs[-1] = (runs[-1][0], axis + 1)
        else:
            runs.append((axis, axis + 1))
            inside = True
    return runs


def _coordinate(start: int, stop: int, subject: Shape, words: Words) -> str:
    before, after = product(subject[:start]), product(subject[stop:])
    if before == 1 and after == 1:
        return "i"
    if (start, stop) == (0, 1):
        return "b"
    if (start, stop) == (len(subject) - 1, len(subject)):
        return "c"
    inner = "i" if after == 1 else f"i / {words(after)}"
    return inner if before == 1 else f"({inner}) % {words(product(subject[start:stop]))}"
