"""Step lists: chains of pointwise operations in text, `"affine 0 1 2; leaky_relu 3 f0.1"`.

Register 0 is the subject and 1.. are further operands; every step adds a register, the last one is the result.
An argument is a register number or a literal `f<float>` (also used for an op's attribute, such as the slope).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

from sonant.errors import ProgramError

Argument = int | float
"""An int names a register, a float is a literal."""


@dataclass(frozen=True)
class Step:
    op: str
    args: tuple[Argument, ...]

    def __str__(self) -> str:
        return " ".join([self.op, *(f"f{a!r}" if isinstance(a, float) else str(a) for a in self.args)])


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> tuple[Step, ...]:
    """The steps of a step list; `""` has none."""
    steps = []
    for part in filter(None, (p.strip() for p in text.split(";"))):
        op, *args = part.split()
        try:
            steps.append(Step(op, tuple(float(a[1:]) if a.startswith("f") else int(a) for a in args)))
        except ValueError as e:
            raise ProgramError(f"bad step {part!r} in {text!r}") from e
    return tuple(steps)


def render(steps: tuple[Step, ...] | list[Step]) -> str:
    return "; ".join(map(str, steps))


def renumber(step: Step, registers: dict[int, int]) -> Step:
    """The step with every register number replaced through `registers`."""
    return Step(step.op, tuple(a if isinstance(a, float) else registers[a] for a in step.args))
