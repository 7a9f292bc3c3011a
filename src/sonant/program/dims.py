"""Symbolic dimensions: integer expressions such as `T`, `2*F` or `(F+1)//2`.

A Dim is kept in one normal form, a polynomial over symbols and floor divisions with integer coefficients, so two
equal sizes written differently compare equal (except where only a proof about floor division would show it). What a
divisor divides evenly stands outside the floor division: `(F-1)//2+1` is kept as `(F+1)//2`.
The text form is Python; `+ - *`, parentheses and `//` are all it uses.
"""

from __future__ import annotations

import ast
import functools
import keyword
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Union

from sonant.errors import ProgramError

Atom = Union[str, "FloorDiv"]
Monomial = tuple[Atom, ...]
DimLike = Union["Dim", int]
_SYMBOL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class FloorDiv:
    """`numerator // divisor` that does not divide evenly as a polynomial; an atom of a Dim."""

    __slots__ = ("divisor", "numerator")

    def __init__(self, numerator: Dim, divisor: int) -> None:
        self.numerator, self.divisor = numerator, divisor

    def __str__(self) -> str:
        text = str(self.numerator)
        return f"{text}//{self.divisor}" if _SYMBOL.fullmatch(text) else f"({text})//{self.divisor}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FloorDiv) and (self.divisor, self.numerator) == (other.divisor, other.numerator)

    def __hash__(self) -> int:
        return hash((self.numerator, self.divisor))


class Dim:
    """An integer expression over named sizes. Immutable, hashable; made by `Dim.symbol`, `Dim.parse` or arithmetic."""

    __slots__ = ("_hash", "is_constant", "terms")

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        kept = [(m, c) for m, c in terms.items() if c]
        if len(kept) > 1:
            kept.sort(key=lambda item: (-len(item[0]), [str(a) for a in item[0]]))
        self.terms: tuple[tuple[Monomial, int], ...] = tuple(kept)
        self.is_constant = not kept or (len(kept) == 1 and kept[0][0] == ())
        # A constant Dim equals its int, so it must hash like it.
        self._hash = hash(int(self)) if self.is_constant else hash(self.terms)

    @staticmethod
    def symbol(name: str) -> Dim:
        if not _SYMBOL.fullmatch(name) or keyword.iskeyword(name):
            raise ProgramError(f"a dim symbol must be an identifier, not {name!r}")
        return Dim({(name,): 1})

    @staticmethod
    def of(value: DimLike) -> Dim:
        return value if isinstance(value, Dim) else _constant(int(value))

    @staticmethod
    def parse(text: str) -> Dim:
        """The Dim whose text form is `text`. Only + - * // of names and integers are read."""
        try:
            return Dim.of(_from_ast(ast.parse(text, mode="eval").body))
        except (SyntaxError, ValueError, AttributeError, TypeError, RecursionError, MemoryError) as e:
            raise ProgramError(f"not a dim expression: {text!r}") from e

    def __add__(self, other: DimLike) -> Dim:
        terms = dict(self.terms)
        for monomial, coefficient in Dim.of(other).terms:
            terms[monomial] = terms.get(monomial, 0) + coefficient
        return Dim(terms)

    def __mul__(self, other: DimLike) -> Dim:
        terms: dict[Monomial, int] = {}
        for a, ca in self.terms:
            for b, cb in Dim.of(other).terms:
                monomial = tuple(sorted(a + b, key=str))
                terms[monomial] = terms.get(monomial, 0) + ca * cb
        return Dim(terms)

    def __floordiv__(self, divisor: int) -> Dim:
        if divisor <= 0:
            raise ProgramError(f"a dim can be divided by a positive integer only, not {divisor}")
        whole = Dim({m: c // divisor for m, c in self.terms})
        rest = Dim({m: c % divisor for m, c in self.terms})
        if rest.is_constant:  # smaller than the divisor
            return whole
        shared = math.gcd(divisor, *(c for m, c in rest.terms if m))  # (2*T+1)//4 is T//2
        return whole + Dim({(FloorDiv(Dim({m: c // shared for m, c in rest.terms}), divisor // shared),): 1})

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: DimLike) -> Dim:
        return self + Dim.of(other) * -1

    def __rsub__(self, other: DimLike) -> Dim:
        return Dim.of(other) - self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (int, Dim)):
            return self.terms == Dim.of(other).terms
        return NotImplemented

    def __hash__(self) -> int:
        return self._hash

    def __int__(self) -> int:
        if not self.is_constant:
            raise ProgramError(f"dim {self} has no value before it is bound")
        return self.terms[0][1] if self.terms else 0

    def symbols(self) -> frozenset[str]:
        found: set[str] = set()
        for monomial, _ in self.terms:
            for atom in monomial:
                found |= {atom} if isinstance(atom, str) else atom.numerator.symbols()
        return frozenset(found)

    def solve(self, size: int) -> tuple[str, int] | None:
        """(symbol, value) for which this dim is `size`, where it has the form a*symbol + b and divides; else None."""
        variable = [(m, c) for m, c in self.terms if m]
        if len(variable) != 1:
            return None
        (symbol, *others), factor = variable[0]
        if others or not isinstance(symbol, str):
            return None
        rest = size - sum(c for m, c in self.terms if not m)
        return None if rest % factor else (symbol, rest // factor)

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        try:
            return int(_compiled(str(self))(sizes))
        except KeyError as e:
            raise ProgramError(f"dim {self} needs a size for {e.args[0]!r}; given: {dict(sizes)}") from e

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        parts: list[str] = []
        for monomial, coefficient in self.terms:
            alone = len(monomial) == 1 and coefficient == 1  # a sign or a factor would bind tighter than //
            factors = [str(a) if alone or isinstance(a, str) else f"({a})" for a in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.insert(0, str(abs(coefficient)))
            sign = "-" if coefficient < 0 else "+" if parts else ""
            parts.append(sign + "*".join(factors))
        return "".join(parts)

    def __repr__(self) -> str:
        return f"Dim({str(self)!r})"


@functools.lru_cache(maxsize=4096)
def _constant(value: int) -> Dim:
    return Dim({(): value})


@functools.lru_cache(maxsize=4096)
def _compiled(text: str) -> Callable[[Mapping[str, int]], int]:
    names = {n.id for n in ast.walk(ast.parse(text, mode="eval")) if isinstance(n, ast.Name)}
    arguments = ", ".join(f"{n}=s[{n!r}]" for n in sorted(names))
    source = f"lambda s: (lambda {arguments}: {text})()"
    function: Callable[[Mapping[str, int]], int] = eval(source, {})  # text printed by Dim, never taken from a file
    return function


def _from_ast(node: ast.AST) -> DimLike:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name):
        return Dim.symbol(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -Dim.of(_from_ast(node.operand))
    if isinstance(node, ast.BinOp):
        left, right = Dim.of(_from_ast(node.left)), Dim.of(_from_ast(node.right))
        if isinstance(node.op, ast.Add):
            return left + right
        if isinstance(node.op, ast.Sub):
            return left - right
        if isinstance(node.op, ast.Mult):
            return left * right
        if isinstance(node.op, ast.FloorDiv):
            return left // int(right)
    raise TypeError(ast.dump(node))


def simplify(value: DimLike) -> DimLike:
    """An int where the Dim is constant, the Dim itself otherwise."""
    return int(value) if isinstance(value, Dim) and value.is_constant else value


def product(dims: Iterable[DimLike]) -> Dim:
    return functools.reduce(lambda a, b: a * b, dims, Dim.of(1))
