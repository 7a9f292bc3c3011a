"""Reading a configuration strictly: every value by its name, its type checked, the file named in what goes wrong."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sonant.errors import CheckpointError

REQUIRED: Any = object()
_MOST = 1 << 20


class Fields:
    """One object of a configuration. A value is read by kind; without a default it must be there."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values, self.where = values, where

    @staticmethod
    def of_json(path: Path) -> Fields:
        """The object that a JSON file holds. CheckpointError if it cannot be read or is no object."""
        try:
            values = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise CheckpointError(f"{path}: cannot be read as JSON ({error})") from error
        if not isinstance(values, dict):
            raise CheckpointError(f"{path}: a {type(values).__name__}, wanted an object")
        return Fields(values, str(path))

    def has(self, name: str) -> bool:
        """Whether the value is stated, and not as null."""
        return self.values.get(name) is not None

    def size(self, name: str, default: Any = REQUIRED) -> int:
        value = self._value(name, default)
        self._require(type(value) is int and 0 < value < _MOST, name, "a positive integer")
        return int(value)

    def number(self, name: str, default: Any = REQUIRED) -> float:
        value = self._value(name, default)
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
        self._require(plain and math.isfinite(value), name, "a number")
        return float(value)

    def flag(self, name: str, default: Any = REQUIRED) -> bool:
        value = self._value(name, default)
        self._require(isinstance(value, bool), name, "true or false")
        return bool(value)

    def choice(self, name: str, known: Sequence[str], default: Any = REQUIRED) -> str:
        value = self._value(name, default)
        self._require(value in known, name, f"one of {', '.join(known)}")
        return str(value)

    def sizes(self, name: str) -> tuple[int, ...]:
        value = self._value(name, REQUIRED)
        good = isinstance(value, list) and value and all(type(v) is int and 0 < v < _MOST for v in value)
        self._require(bool(good), name, "a list of positive integers")
        return tuple(value)

    def strings(self, name: str) -> tuple[str, ...]:
        value = self._value(name, REQUIRED)
        self._require(isinstance(value, list) and all(isinstance(v, str) for v in value), name, "a list of strings")
        return tuple(value)

    def sub(self, name: str) -> Fields:
        """The object under `name`."""
        value = self._value(name, REQUIRED)
        self._require(isinstance(value, dict), name, "an object")
        return Fields(value, f"{self.where}: {name}")

    def must_be(self, name: str, wanted: Any, default: Any = REQUIRED) -> None:
        """For what the model's code has no other way to be."""
        self._require(self._value(name, default) == wanted, name, f"{wanted!r}, which is all that this engine runs")

    def _value(self, name: str, default: Any) -> Any:
        if self.has(name):
            return self.values[name]
        if default is REQUIRED:
            raise CheckpointError(f"{self.where}: no {name!r}; is this the configuration of another model?")
        return default

    def _require(self, good: bool, name: str, wanted: str) -> None:
        if not good:
            raise CheckpointError(f"{self.where}: {name} is {self.values.get(name)!r:.80}, wanted {wanted}")
