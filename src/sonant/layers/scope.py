"""Weights by path: where a layer stands in the checkpoint, and in which type its weights are kept."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sonant.program.program import Program, Value

ARITHMETIC = {
    "f32": ("f32", "f32"),
    "f16": ("f16", "f32"),
    "bf16": ("bf16", "bf16"),
    "q8": ("q8", "int8"),
    "int8": ("i8", "int8_row"),
}
"""Of each precision that a model can be loaded in: the type its matrices are stored in, the arithmetic of products."""


@dataclass(frozen=True)
class Scope:
    """A place in the checkpoint's tree of names.

    dtype is how the matrices of dense ops are stored (f32, f16, bf16, q8, i8); vectors are always f32. precision is the
    arithmetic of the products (f32; bf16 inputs with f32 sums; int8 and int8_row inputs on q8 and i8 weights).
    """

    program: Program
    path: str = ""
    dtype: str = "f32"
    precision: str = "f32"

    @staticmethod
    def at(program: Program, path: str, precision: str) -> Scope:
        """The scope `path` of a model loaded in `precision`, a key of ARITHMETIC."""
        return Scope(program, path).within(precision)

    def __truediv__(self, name: str | int) -> Scope:
        """The scope one level down: `scope / "encoder" / 3`."""
        return replace(self, path=f"{self.path}.{name}" if self.path else str(name))

    def within(self, precision: str) -> Scope:
        """The same place, its matrices and products in `precision`, a key of ARITHMETIC."""
        dtype, arithmetic = ARITHMETIC[precision]
        return replace(self, dtype=dtype, precision=arithmetic)

    @property
    def exact(self) -> Scope:
        """The same place, its matrices and products in f32."""
        return self.within("f32")

    def matrix(self, name: str, *shape: int) -> Value:
        """A weight that a dense op multiplies with."""
        return self.program.weight((self / name).path, shape, self.dtype)

    def vector(self, name: str, *shape: int) -> Value:
        """A bias, gain, table or other weight kept in f32."""
        return self.program.weight((self / name).path, shape)
