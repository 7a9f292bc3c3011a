"""The two written forms of a Program: text, for people and reviews, and JSON, for files and other runtimes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from sonant.errors import ProgramError
from sonant.program import opset
from sonant.program.dims import Dim, DimLike, simplify
from sonant.program.program import Program, Value, complete_attrs
from sonant.program.verify import verify


def to_text(program: Program, indent: str = "") -> str:
    """One line per declaration and node; attributes at their defaults are left out."""
    lines = [f"program {program.name} (opset {opset.VERSION})"]
    lines += [f"  input {v}" for v in program.inputs]
    lines += [f"  state {s.name}: {s.kind} {s.dtype} {list(s.shape)}" for s in program.states.values()]
    lines += [f"  weight {v}" for v in program.weights.values()]
    lines += [f"  constant {v} = {_array_text(a)}" for v, a in program.constants.values()]
    for node in program.nodes:
        operands = ", ".join("-" if v is None else v.name for v in node.inputs)
        defaults = {k: a.default for k, a in node.row.attrs.items()}
        attrs = {k: v for k, v in node.attrs.items() if k == "body" or v != defaults[k]}
        shown = ", ".join(f"{k}={_attr_text(v)}" for k, v in attrs.items())
        results = ", ".join(map(str, node.outputs))
        lines.append(f"  {results or '()'} = {node.op}({operands})" + (f" {{{shown}}}" if shown else ""))
        if "body" in node.attrs:
            lines.append(to_text(node.attrs["body"], "    "))
    lines.append("  return " + ", ".join(v.name for v in program.outputs))
    return "\n".join(indent + line for line in lines)


def _array_text(array: np.ndarray) -> str:
    return np.array2string(array, threshold=12, separator=", ").replace("\n", "")


def _attr_text(value: Any) -> str:
    if isinstance(value, Program):
        return value.name
    if isinstance(value, tuple):
        return "[" + ", ".join(map(str, value)) + "]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def to_json(program: Program) -> str:
    return json.dumps(_encode(program), indent=1)


def from_json(text: str) -> Program:
    """The Program written by `to_json`; ProgramError when the text is malformed or of another opset version."""
    try:
        program = _decode(json.loads(text))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as e:
        raise ProgramError(f"not a serialized Program: {type(e).__name__}: {e}") from e
    verify(program)
    return program


def _dims(shape: tuple[DimLike, ...]) -> list[int | str]:
    return [d if isinstance(d, int) else str(d) for d in shape]


def _undim(value: Any) -> DimLike:
    if type(value) is int:
        return value
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a dim")
    return simplify(Dim.parse(value))


def _undims(shape: list[Any]) -> tuple[DimLike, ...]:
    if not isinstance(shape, list):
        raise TypeError(f"{shape!r} is not a list of dims")
    return tuple(map(_undim, shape))


def _sizes(shape: list[Any]) -> tuple[int, ...]:
    return tuple(map(int, _undims(shape)))


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a name")
    return value


def _declare(v: Value) -> dict[str, Any]:
    return {"name": v.name, "dtype": v.dtype, "shape": _dims(v.shape)}


def _encode(program: Program) -> dict[str, Any]:
    nodes = []
    for node in program.nodes:
        attrs = {k: _encode_attr(node.row.attrs[k].kind, v) for k, v in node.attrs.items()}
        nodes.append({"op": node.op, "inputs": [v.name if v else None for v in node.inputs], "attrs": attrs,
                      "outputs": [_declare(v) for v in node.outputs]})
    return {
        "opset": opset.VERSION, "name": program.name,
        "inputs": [_declare(v) for v in program.inputs],
        "weights": [_declare(v) for v in program.weights.values()],
        "constants": [{**_declare(v), "data": a.ravel().tolist()} for v, a in program.constants.values()],
        "states": [{"name": s.name, "kind": s.kind, "shape": list(s.shape), "dtype": s.dtype}
                   for s in program.states.values()],
        "nodes": nodes, "outputs": [v.name for v in program.outputs],
    }


def _encode_attr(kind: str, value: Any) -> Any:
    if kind == "program":
        return _encode(value)
    if kind == "dim":
        return value if isinstance(value, int) else str(value)
    return _dims(value) if kind in ("dims", "ints") else value


def _decode_attr(kind: str, value: Any) -> Any:
    if kind == "program":
        return _decode(value)
    if kind == "dim":
        return _undim(value)
    return _undims(value) if kind in ("dims", "ints") else value


def _decode(data: dict[str, Any]) -> Program:
    if data["opset"] != opset.VERSION:
        raise ProgramError(f"Program {data['name']!r} is of opset {data['opset']}, this sonant reads {opset.VERSION}")
    program = Program(_name(data["name"]))
    for d in data["inputs"]:
        program.input(_name(d["name"]), _undims(d["shape"]), d["dtype"])
    for d in data["weights"]:
        program.weight(_name(d["name"]), _sizes(d["shape"]), d["dtype"])
    names = {v.name: v for v in (*program.inputs, *program.weights.values())}
    for d in data["constants"]:
        array = np.array(d["data"], np.int32 if d["dtype"] == "i32" else np.float32).reshape(_sizes(d["shape"]))
        names[_name(d["name"])] = program.constant(array)
    for d in data["states"]:
        program.add_state(_name(d["name"]), d["kind"], _sizes(d["shape"]), d["dtype"])
    for d in data["nodes"]:
        _decode_node(program, names, d)
    program.outputs = [names[n] for n in data["outputs"]]
    return program


def _decode_node(program: Program, names: dict[str, Value], data: dict[str, Any]) -> None:
    kinds = opset.op(data["op"]).attrs
    attrs = complete_attrs(data["op"], {k: _decode_attr(kinds[k].kind, v) for k, v in data["attrs"].items()})
    results = program.record(data["op"], [None if n is None else names[n] for n in data["inputs"]], **attrs)
    for declared, v in zip(data["outputs"], results, strict=True):
        if (declared["dtype"], _undims(declared["shape"])) != (v.dtype, v.shape):
            raise ProgramError(f"{data['op']} gives {v}, the file says {declared['dtype']} {declared['shape']}")
        names[_name(declared["name"])] = v
