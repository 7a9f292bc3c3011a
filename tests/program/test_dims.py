"""Dims: one normal form, a text form that reads back, and the values that Python's integers give."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sonant.errors import ProgramError
from sonant.program.dims import Dim, product, simplify

T, F, P = Dim.symbol("T"), Dim.symbol("F"), Dim.symbol("P")
SIZES = st.fixed_dictionaries({name: st.integers(0, 300) for name in "TFP"})


def _grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Expressions as a person might write them, not in normal form."""
    two = st.tuples(inner, st.sampled_from("+-*"), inner).map(lambda e: f"({e[0]}){e[1]}({e[2]})")
    divided = st.tuples(inner, st.integers(1, 9)).map(lambda e: f"({e[0]})//{e[1]}")
    return two | divided | inner.map(lambda e: f"-({e})")


EXPRESSIONS = st.recursive(st.sampled_from(["T", "F", "P"]) | st.integers(0, 12).map(str), _grow, max_leaves=7)


@given(EXPRESSIONS, SIZES)
def test_evaluates_as_python_integers_do(text: str, sizes: dict[str, int]) -> None:
    assert Dim.parse(text).evaluate(sizes) == eval(text, {}, dict(sizes))


@given(EXPRESSIONS)
def test_the_text_form_reads_back(text: str) -> None:
    dim = Dim.parse(text)
    assert Dim.parse(str(dim)) == dim
    assert str(Dim.parse(str(dim))) == str(dim)


@given(EXPRESSIONS, EXPRESSIONS, EXPRESSIONS)
def test_arithmetic_obeys_the_laws_of_rings(a: str, b: str, c: str) -> None:
    x, y, z = map(Dim.parse, (a, b, c))
    assert x + y == y + x
    assert x * y == y * x
    assert (x + y) * z == x * z + y * z
    assert x - x == 0
    assert hash(x + y) == hash(y + x)


@given(EXPRESSIONS, st.integers(1, 9), st.integers(-20, 20))
def test_whole_multiples_leave_a_floor_division(text: str, divisor: int, whole: int) -> None:
    dim = Dim.parse(text)
    assert (dim + divisor * whole) // divisor == dim // divisor + whole
    assert (dim * divisor) // divisor == dim
    assert (dim * 3) // (divisor * 3) == dim // divisor


@pytest.mark.parametrize(("one", "other"), [
    ((T - 1) // 2 + 1, (T + 1) // 2),
    (2 * T // 2, T),
    ((2 * T + 1) // 2, T),
    ((3 * T) // 2, T + T // 2),
    ((2 * T + 1) // 4, T // 2),
    ((4 * T + 8 * F + 5) // 4, T + 2 * F + 1),
    (T // 1, T),
])
def test_floor_division_normal_form(one: Dim, other: Dim) -> None:
    assert one == other
    assert str(one) == str(other)


@pytest.mark.parametrize(("dim", "text"), [
    (T + 0, "T"), (2 * T + 1, "2*T+1"), (1 - T, "-T+1"), (T * F - 3, "F*T-3"), (-(T // 2), "-(T//2)"),
    (F - T // 2, "F-(T//2)"), ((T + 1) // 2 * F, "((T+1)//2)*F"), (T // 2 + T, "T+T//2"),
    (Dim.of(0), "0"), (Dim.of(-4), "-4"),
])
def test_text(dim: Dim, text: str) -> None:
    assert Dim.parse(str(dim)) == dim
    assert str(dim) == text


def test_a_constant_dim_is_its_integer() -> None:
    assert T - T + 4 == 4
    assert hash(T - T + 4) == hash(4)
    assert simplify(T - T + 4) == 4
    assert isinstance(simplify(T - T + 4), int)
    assert simplify(T) is T
    assert int(Dim.of(3) * 2) == 6
    assert T != "T"
    assert product((2, T, F)) == 2 * T * F
    assert product(()) == 1


def test_symbols() -> None:
    assert ((T + 1) // 2 * F + 3).symbols() == {"T", "F"}
    assert Dim.of(3).symbols() == frozenset()


@given(st.integers(-5, 5).filter(bool), st.integers(-9, 9), st.integers(0, 100))
def test_solve_finds_the_symbol(factor: int, offset: int, size: int) -> None:
    dim = factor * T + offset
    assert dim.solve(dim.evaluate({"T": size})) == ("T", size)


@pytest.mark.parametrize(("dim", "size"), [(2 * T, 5), (T * F, 4), (T + F, 4), (T // 2, 4), (T * T, 4), (Dim.of(4), 4)])
def test_solve_gives_none_where_no_symbol_follows(dim: Dim, size: int) -> None:
    assert dim.solve(size) is None


def test_a_size_that_is_not_given_is_named() -> None:
    with pytest.raises(ProgramError, match=r"T\+1 needs a size for 'T'"):
        (T + 1).evaluate({"F": 2})


@pytest.mark.parametrize("text", [
    "", "T+", "T/2", "T//F", "T//0", "T//-2", "T**2", "f(T)", "1.5", "T.x", "T[0]", "True", "lambda", "if", "é",
    "T\0", "(" * 500 + "T" + ")" * 500, "-" * 20000 + "T", "'T'", "T if T else F", "T < 3", "not T", "a:=3",
])
def test_what_is_not_a_dim_is_a_program_error(text: str) -> None:
    with pytest.raises(ProgramError):
        Dim.parse(text)


@given(st.text(max_size=30))
def test_parse_never_fails_otherwise(text: str) -> None:
    with contextlib.suppress(ProgramError):
        Dim.parse(text)


@pytest.mark.parametrize("name", ["", "2T", "T-F", "for", "None", "é"])
def test_symbol_names_are_plain_identifiers(name: str) -> None:
    with pytest.raises(ProgramError, match="identifier"):
        Dim.symbol(name)


def test_dividing_by_nothing_positive_is_an_error() -> None:
    with pytest.raises(ProgramError, match="positive integer"):
        T // 0
    with pytest.raises(ProgramError, match="has no value before it is bound"):
        int(T)
