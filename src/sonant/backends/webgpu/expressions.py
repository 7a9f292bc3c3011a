"""Integer expressions in text, as a Plan holds them: + - * // (floor), unary minus, parentheses, names, integers.

The same grammar is read by web/runtime/expressions.mjs. Text from a Plan file is checked before it is compiled.
"""

from __future__ import annotations

import ast
import keyword
from collections.abc import Callable, Iterable, Mapping, Sequence

from sonant.errors import BackendError

Expression = int | str
Evaluate = Callable[[Mapping[str, int]], dict[Expression, int]]

_ALLOWED = (ast.Expression, ast.BinOp, ast.UnaryOp, ast.USub, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Name,
            ast.Load)


def compile_all(expressions: Iterable[Expression], symbols: Sequence[str]) -> Evaluate:
    """A function from the sizes of `symbols` to the value of every expression, by its text."""
    if not all(s.isidentifier() and not keyword.iskeyword(s) for s in symbols):
        raise BackendError(f"a Plan names the sizes {list(symbols)}; each must be an identifier")
    texts = list(dict.fromkeys(expressions))
    for text in texts:
        _check(str(text), symbols)
    body = ", ".join(f"({text})" for text in texts)
    values = eval(f"lambda {', '.join(symbols)}: ({body},)", {"__builtins__": {}})  # every part was checked above

    def evaluate(sizes: Mapping[str, int]) -> dict[Expression, int]:
        return dict(zip(texts, values(*(sizes[s] for s in symbols)), strict=True))

    return evaluate


def _check(text: str, symbols: Sequence[str]) -> None:
    try:
        nodes = list(ast.walk(ast.parse(text, mode="eval")))
    except SyntaxError as e:
        raise BackendError(f"a Plan holds {text!r}, which is not an expression") from e
    for node in nodes:
        fine = isinstance(node, _ALLOWED) or (isinstance(node, ast.Constant) and type(node.value) is int)
        if not fine or (isinstance(node, ast.Name) and node.id not in symbols):
            raise BackendError(f"a Plan holds {text!r}; only + - * // of {list(symbols)} and integers are read")
