"""Plans in files, beside the packed weights: a second start neither records nor lowers a Program.

`native-<program>-<key>.plan`. The key covers the code that recorded the Program and the code that lowered it, by
content, and what both were given: a Plan of another sonant is never found. The file is a SHA-256 of all that follows
it, the length of a JSON text, that text, then the arrays, one after another. It is parsed, nothing in it is run.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sonant.backends.native.lower import NativePlan, PackKey, lower
from sonant.backends.native.packed import appearing, note, pack_name
from sonant.errors import BackendError, ProgramError
from sonant.program.bounds import Bounds
from sonant.program.dims import Dim, DimLike, simplify
from sonant.program.program import Program, StateSpec, Value
from sonant.program.recipe import Recipe, folder_digest, recorded
from sonant.program.verify import verify

_ARRAYS = ("template", "dim_at", "dim_of", "offset_at", "offset_of", "tenants", "tenants_start", "last_used")
_DIGEST_BYTES = 32
_DTYPES: dict[str, np.dtype[Any]] = {"i": np.dtype("<i8"), "i32": np.dtype("<i4"), "f32": np.dtype("<f4")}


def kept_plan(program: Program | Recipe, cache: Path | None, hints: Mapping[str, int] | None = None) -> NativePlan:
    """The Plan in `cache`, else a new one, which is put there. Only that of a Recipe has a key to be found by."""
    name = plan_name(program, hints) if cache is not None and isinstance(program, Recipe) else None
    if name is None or cache is None:
        return _lowered(program, hints)
    path = cache / name
    try:
        return read_plan(path)
    except FileNotFoundError:
        pass
    except (BackendError, OSError) as error:
        note("%s: %s; it is made anew", path, error)
    plan = _lowered(program, hints)
    try:
        write_plan(path, plan)
    except OSError as error:
        note("%s: not kept (%s)", path, error)  # a shared cache may be read-only
    return plan


def plan_name(recipe: Recipe, hints: Mapping[str, int] | None = None) -> str | None:
    """The name of the file in which the Plan of a Recipe is kept; None where no key can be made."""
    recorder, lowerer = recipe.key(), folder_digest(Path(__file__).parent)
    if recorder is None or lowerer is None:
        return None
    key = hashlib.sha256(repr((recorder, lowerer, sorted((hints or {}).items()))).encode()).hexdigest()[:16]
    return f"native-{recipe.name}-{key}.plan"


def kept_names(programs: Sequence[Program | Recipe]) -> set[str]:
    """The names of the files that `load_all` of these Programs keeps in its cache folder; nothing is read or packed."""
    plans = {plan_name(p) for p in programs if isinstance(p, Recipe)}
    return {pack_name(programs), *(name for name in plans if name is not None)}


def _lowered(program: Program | Recipe, hints: Mapping[str, int] | None) -> NativePlan:
    fresh = recorded(program)
    verify(fresh)
    return lower(fresh, hints)


def write_plan(path: Path, plan: NativePlan) -> None:
    """Appears by an atomic rename. Raises OSError."""
    content = _encoded(plan)
    with appearing(path) as out:
        out.write(hashlib.sha256(content).digest() + content)


def read_plan(path: Path) -> NativePlan:
    """What `write_plan` wrote. Raises OSError, BackendError where it is not that."""
    content = path.read_bytes()
    if hashlib.sha256(content[_DIGEST_BYTES:]).digest() != content[:_DIGEST_BYTES]:
        raise BackendError("a damaged Plan")
    try:
        return _decoded(memoryview(content)[_DIGEST_BYTES:])
    except (KeyError, IndexError, TypeError, ValueError, struct.error, ProgramError) as error:
        raise BackendError(f"not a Plan ({type(error).__name__}: {error})") from error


def _encoded(plan: NativePlan) -> bytes:
    arrays = [("i", getattr(plan, name)) for name in _ARRAYS]
    arrays += [("i32" if c.dtype == np.int32 else "f32", c) for c in plan.constants]
    seen = plan.declared
    head = {
        "name": seen.name,
        "inputs": [[v.name, v.dtype, _dims(v.shape)] for v in seen.inputs],
        "outputs": [[v.name, v.dtype, _dims(v.shape)] for v in seen.outputs],
        "states": [[s.name, s.kind, s.shape, s.dtype] for s in seen.states.values()],
        "bounds": [[str(low), str(high), where] for (low, high), where in plan.bounds.bounds.items()],
        "dims": list(map(str, plan.dims)),
        "packs": [[k.name, k.role, k.groups, k.dtype, shape] for k, shape in plan.pack_shapes.items()],
        "arrays": [[kind, array.shape] for kind, array in arrays],
    }
    text = json.dumps(head).encode()
    return b"".join([struct.pack("<q", len(text)), text,
                     *(array.astype(_DTYPES[kind]).tobytes() for kind, array in arrays)])


def _decoded(content: memoryview) -> NativePlan:
    (size,) = struct.unpack_from("<q", content)
    head = json.loads(bytes(content[8:8 + size]))
    arrays = _arrays(head["arrays"], content[8 + size:])
    program = _declared(head)
    bounds = Bounds(program)
    parsed = {text: Dim.parse(text) for text in {*head["dims"], *(t for row in head["bounds"] for t in row[:2])}}
    bounds.bounds = {(parsed[low], parsed[high]): where for low, high, where in head["bounds"]}
    return NativePlan(
        declared=program, bounds=bounds, dims=tuple(parsed[text] for text in head["dims"]),
        pack_shapes={PackKey(*row[:4]): tuple(row[4]) for row in head["packs"]}, constants=arrays[len(_ARRAYS):],
        **dict(zip(_ARRAYS, arrays, strict=False)))


def _declared(head: Mapping[str, Any]) -> Program:
    program = Program(head["name"])
    for name, dtype, dims in head["inputs"]:
        program.input(name, _shape(dims), dtype)
    for name, kind, shape, dtype in head["states"]:
        program.states[name] = StateSpec(name, kind, tuple(shape), dtype)
    program.outputs = [Value(program, name, _shape(dims), dtype, "node") for name, dtype, dims in head["outputs"]]
    return program


def _arrays(rows: list[Any], content: memoryview) -> list[np.ndarray]:
    found: list[np.ndarray] = []
    at = 0
    for kind, shape in rows:
        dtype, count = _DTYPES[kind], int(np.prod(shape))
        found.append(np.frombuffer(content, dtype, count, at).reshape(shape).copy())
        at += count * dtype.itemsize
    return found


def _dims(shape: tuple[DimLike, ...]) -> list[int | str]:
    return [d if isinstance(d, int) else str(d) for d in shape]


def _shape(dims: list[int | str]) -> tuple[DimLike, ...]:
    return tuple(d if isinstance(d, int) else simplify(Dim.parse(d)) for d in dims)
