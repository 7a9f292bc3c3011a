"""Strict maps from the names and layouts of a checkpoint to sonant's own.

A family declares each tensor it wants (`TensorSpec`: shape and layout in sonant's terms). `map_tensors` finds it under
torch's names, folds weight norm, changes the layout and refuses everything that does not match, all at once: the
error lists missing, unexpected and misshapen tensors together. A layout is declared, never guessed from a shape.

Layouts (sonant ← torch):
    plain             as is (linear [N, C], embedding, bias)
    conv1d            [N, K, C/groups] ← [N, C/groups, K]
    conv_transpose1d  [N, K, C/groups] ← [C, N/groups, K]
    channels          [C] ← [1, C, 1]
    lstm_w_ih, lstm_w_hh, lstm_bias   [D, 4H, ...] ← weight_ih_l0, weight_hh_l0, bias_ih_l0 + bias_hh_l0
                      and their _reverse; gate order i, f, g, o
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from sonant.checkpoint.tensor import Array, LazyTensor
from sonant.errors import CheckpointError

LISTED = 12  # names shown of each kind of mismatch

# (direction-vector, length) of one weight-normed weight, old hook names and torch >= 2.0 parametrizations
_WEIGHT_NORM_NAMES = (
    ("weight_v", "weight_g"),
    ("parametrizations.weight.original1", "parametrizations.weight.original0"),
)


@dataclass(frozen=True)
class TensorSpec:
    """A tensor in sonant's layout. `weight_norm`: the checkpoint may hold it as g and v instead of folded."""

    shape: tuple[int, ...]
    layout: str = "plain"
    groups: int = 1
    weight_norm: bool = False


@dataclass(frozen=True)
class ConstantRule:
    """Tensors whose names match `pattern` may be present but must hold `value` everywhere; then they are dropped."""

    pattern: str
    value: float


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """A written name pattern: `{name}` is one dotted part, `{name*}` any number of them; a name seen twice is equal."""
    out, seen = "", set()
    for literal, name, many in re.findall(r"([^{}]*)(?:\{(\w+)(\*?)\})?", pattern):
        out += re.escape(literal)
        if name in seen:
            out += f"(?P={name})"
        elif name:
            seen.add(name)
            out += f"(?P<{name}>{'.+' if many else '[^.]+'})"
    return re.compile(out)


def rename(name: str, rules: Sequence[tuple[str, str]]) -> str:
    """The name after every (pattern, replacement) that matches it whole, in order; `{name}` is filled in."""
    for pattern, replacement in rules:
        if match := compile_pattern(pattern).fullmatch(name):
            name = replacement.format_map(match.groupdict())
    return name


def map_tensors(
    specs: Mapping[str, TensorSpec],
    source: Mapping[str, LazyTensor],
    where: str,
    unused: Sequence[str] = (),
    constants: Sequence[ConstantRule] = (),
) -> Iterator[tuple[str, NDArray[np.float32]]]:
    """Check all names and shapes of `source`, then yield (name, C-contiguous float32 array) in the order of `specs`.

    `unused`: patterns of tensors that are known and not wanted. CheckpointError before the first tensor if names or
    shapes do not match; on the way if a value is not finite or a constant is not the one expected.
    """
    match = _Match(specs, source)
    match.set_aside(unused, constants)
    _raise_mismatches(where, match.missing, match.left, match.misshapen)
    return match.read(where)


def check_shapes(wanted: Mapping[str, tuple[int, ...]], found: Mapping[str, tuple[int, ...]], where: str) -> None:
    """CheckpointError unless both hold the same names with the same shapes (a file in sonant's own layout)."""
    misshapen = [
        f"{name} {list(found[name])}, wanted {list(shape)}"
        for name, shape in wanted.items()
        if name in found and found[name] != shape
    ]
    _raise_mismatches(where, [n for n in wanted if n not in found], found.keys() - wanted.keys(), misshapen)


def fold_weight_norm(v: Array, g: Array) -> NDArray[np.float32]:
    """w = g * v / ||v||, the norm over all axes but the first (torch's dim=0); a zero row stays zero.

    In float64, rounded once, so that the result does not depend on the order of the sum.
    """
    v64 = v.astype(np.float64)
    norm = np.sqrt((v64 * v64).sum(axis=tuple(range(1, v.ndim)), keepdims=True))
    scale = np.divide(g.astype(np.float64).reshape(norm.shape), norm, out=np.zeros_like(norm), where=norm > 0)
    return np.asarray(v64 * scale, np.float32)


class _Match:
    """The wanted tensors against the found ones: what reads each, and what is wrong."""

    def __init__(self, specs: Mapping[str, TensorSpec], source: Mapping[str, LazyTensor]):
        self.specs, self.source = specs, source
        self.left = set(source)
        self.missing: list[str] = []
        self.misshapen: list[str] = []
        self.constants: list[tuple[str, float]] = []
        self.readers = {name: self._reader(name, spec) for name, spec in specs.items()}

    def _reader(self, name: str, spec: TensorSpec) -> Callable[[], Array]:
        if spec.layout.startswith("lstm_"):
            return self._lstm_reader(name, spec)
        shape, change = _LAYOUTS[spec.layout](spec)
        read = self._folded_reader(name, shape) if spec.weight_norm else self._plain_reader(name, shape)
        return lambda: change(read())

    def _plain_reader(self, name: str, shape: tuple[int, ...]) -> Callable[[], Array]:
        self.left.discard(name)
        tensor = self.source.get(name)
        if tensor is None:
            self.missing.append(name)
            return _unreachable
        if tensor.shape != shape:
            self.misshapen.append(f"{name} {list(tensor.shape)}, wanted {list(shape)}")
        return tensor.read

    def _folded_reader(self, name: str, shape: tuple[int, ...]) -> Callable[[], Array]:
        """g and v under either pair of names, or the weight already folded."""
        module = name.removesuffix("weight")
        for v_name, g_name in _WEIGHT_NORM_NAMES:
            if module + v_name in self.source or module + g_name in self.source:
                v = self._plain_reader(module + v_name, shape)
                g = self._plain_reader(module + g_name, shape[:1] + (1,) * (len(shape) - 1))
                return lambda: fold_weight_norm(v(), g())
        return self._plain_reader(name, shape)

    def _lstm_reader(self, name: str, spec: TensorSpec) -> Callable[[], Array]:
        module = name.rpartition(".")[0]
        kinds = {"lstm_w_ih": ("weight_ih",), "lstm_w_hh": ("weight_hh",), "lstm_bias": ("bias_ih", "bias_hh")}
        directions = [
            [self._plain_reader(f"{module}.{kind}_l0{suffix}", spec.shape[1:]) for kind in kinds[spec.layout]]
            for suffix in ("", "_reverse")[: spec.shape[0]]
        ]
        return lambda: np.stack([_sum([read() for read in reads]) for reads in directions])

    def set_aside(self, unused: Sequence[str], constants: Sequence[ConstantRule]) -> None:
        patterns = [compile_pattern(pattern) for pattern in unused]
        self.left = {name for name in self.left if not any(p.fullmatch(name) for p in patterns)}
        for rule in constants:
            pattern = compile_pattern(rule.pattern)
            self.constants += [(name, rule.value) for name in sorted(self.left) if pattern.fullmatch(name)]
        self.left -= {name for name, _ in self.constants}

    def read(self, where: str) -> Iterator[tuple[str, NDArray[np.float32]]]:
        for name, value in self.constants:
            if not (self.source[name].read() == value).all():
                raise CheckpointError(f"{where}: {name} is not {value:g} everywhere; this model has no place for it")
        for name, spec in self.specs.items():
            array = np.ascontiguousarray(self.readers[name](), np.float32)
            if array.shape != spec.shape:
                raise AssertionError(f"{name}: layout {spec.layout} gave {array.shape}, declared {spec.shape}")
            if not np.isfinite(array).all():
                raise CheckpointError(f"{where}: {name} holds NaN or infinity; the file is damaged")
            yield name, array


def _raise_mismatches(where: str, missing: Sequence[str], unexpected: Iterable[str], misshapen: Sequence[str]) -> None:
    kinds = (("missing", missing), ("unexpected", sorted(unexpected)), ("wrong shape", misshapen))
    found = [f"{len(names)} {kind}: {_listed(names)}" for kind, names in kinds if names]
    if found:
        raise CheckpointError(
            f"{where}: not the tensors this model wants. {'; '.join(found)}. "
            "Check that the config belongs to these weights and that they are of this model family"
        )


def _unreachable() -> Array:
    raise AssertionError("a missing tensor is reported before anything is read")


def _sum(arrays: list[Array]) -> Array:
    return arrays[0] if len(arrays) == 1 else arrays[0] + arrays[1]


def _listed(names: Sequence[str]) -> str:
    more = f", … {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


_Change = Callable[[Array], Array]


def _plain(spec: TensorSpec) -> tuple[tuple[int, ...], _Change]:
    return spec.shape, lambda array: array


def _channels(spec: TensorSpec) -> tuple[tuple[int, ...], _Change]:
    return (1, spec.shape[0], 1), lambda array: array.reshape(spec.shape)


def _conv1d(spec: TensorSpec) -> tuple[tuple[int, ...], _Change]:
    n, k, c = spec.shape
    return (n, c, k), lambda array: array.transpose(0, 2, 1)


def _conv_transpose1d(spec: TensorSpec) -> tuple[tuple[int, ...], _Change]:
    n, k, c = spec.shape  # c = C / groups
    split = (spec.groups, c, n // spec.groups, k)
    return (spec.groups * c, n // spec.groups, k), partial(_transpose_groups, split=split, shape=spec.shape)


def _transpose_groups(array: Array, split: tuple[int, ...], shape: tuple[int, ...]) -> Array:
    return array.reshape(split).transpose(0, 2, 3, 1).reshape(shape)


# layout → (torch's shape, change from torch's layout to sonant's)
_LAYOUTS: dict[str, Callable[[TensorSpec], tuple[tuple[int, ...], _Change]]] = {
    "plain": _plain,
    "channels": _channels,
    "conv1d": _conv1d,
    "conv_transpose1d": _conv_transpose1d,
}
