"""`sonant perf` without weights."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from sonant.cli.main import main


def test_ceilings_as_json() -> None:
    result = CliRunner().invoke(main, ["perf", "--ceilings", "--threads", "1", "--json"])
    assert result.exit_code == 0
    found = json.loads(result.output)
    assert found["threads"] == 1
    assert found["flops"]["f32"] > 1e8


def test_what_it_refuses(tmp_path: Path) -> None:
    for arguments, message in (
        (["perf"], "perf wants a model"),
        (["perf", "kokoro-82m", "--picture", "a.png"], "a picture is written as .svg"),
        (["perf", "kokoro-8m"], "unknown model 'kokoro-8m'"),
        (["perf", "kokoro-82m", "--threads", "0"], "threads is 0"),
    ):
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 2, arguments
        assert message in result.output
