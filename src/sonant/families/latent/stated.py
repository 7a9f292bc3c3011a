"""A configuration as it was stated, before it is read into shapes: what a converted file keeps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sonant.errors import CheckpointError


@dataclass(frozen=True)
class Stated:
    """Configurations as they were stated: of the model, and of its codec where that has its own (the port's)."""

    model: Mapping[str, Any]
    codec: Mapping[str, Any] | None = None

    @property
    def is_port(self) -> bool:
        return "model_type" in self.model

    def to_json(self) -> str:
        return json.dumps({"model": self.model, "codec": self.codec}, ensure_ascii=False)

    @staticmethod
    def of_json(text: str, where: str) -> Stated:
        try:
            value = json.loads(text)
            return Stated(value["model"], value["codec"])
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(f"{where}: its configuration cannot be read ({error!r})") from error
