"""The command, run as a user runs it, without weights: what it prints and its exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sonant.cli.main import main


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=given)


def test_models_and_help() -> None:
    assert "kokoro-82m" in run("models").output
    for verb in ("say", "voices", "models", "inspect", "phonemize", "doctor"):
        assert verb in run("--help").output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("say", "hi", "-o", "a.wav", "--model", "kokoro-82"), "unknown model 'kokoro-82'; did you mean 'kokoro-82m'?"),
        (("say", "hi", "-o", "a.wav", "--device", "gpu"), "unknown device 'gpu'"),
        (
            ("say", "hi", "-o", "a.wav", "--precision", "fp16"),
            "unknown precision 'fp16'; did you mean 'f16' or 'bf16'?",
        ),
        (("say", "hi", "-o", "a.wav", "--threads", "0"), "threads is 0"),
        (("say", "hi", "-o", "nowhere/a.wav"), "there is no folder nowhere"),
        (("inspect", "nothing-here"), "no file 'nothing-here', and no model of that name"),
        (("inspect", "phonon-40m-fr"), "the sizes of phonon-40m-fr are in its own config.json"),
        (("inspect", "kokoro-82m", "--program", "decode"), "unknown program 'decode'; did you mean 'decoder'?"),
        (("phonemize", "hola", "--language", "eo"), "unknown language 'eo'"),
    ],
)
def test_wrong_input_is_one_line_and_exit_code_2(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_missing_weights_say_what_to_install(tmp_path: Path) -> None:
    result = run("say", "hi", "-o", str(tmp_path / "a.wav"), "--weights", str(tmp_path / "none"))
    assert result.exit_code == 3
    assert "none" in result.stderr


def test_phonemize_and_normalize() -> None:
    assert run("phonemize", "Hello there.").output == "həlˈO ðˈɛɹ.\n"
    assert run("phonemize", "--normalized", "-", given="It cost $5.").output == "It cost five dollars.\n"


def test_inspect_shows_programs_and_tensors(tmp_path: Path) -> None:
    from sonant.checkpoint.safetensors import write_safetensors
    from sonant.checkpoint.tensor import Tensor

    assert "kokoro.decoder" in run("inspect", "kokoro-82m").output
    assert "phonon.step" in run("inspect", "phonon-31m-en").output
    assert "pocket.encoder" in run("inspect", "pocket-tts-2m-en").output
    assert "conv_transpose1d" in run("inspect", "kokoro-82m", "--program", "decoder", "--fused").output
    import numpy as np

    path = tmp_path / "a.safetensors"
    write_safetensors(path, {"w": Tensor(np.zeros((2, 3), np.float32), "f32")}, {})
    assert "1 tensors" in run("inspect", str(path)).output
    small = Path(__file__).parents[1] / "checkpoint" / "data" / "torch_small.pt"
    assert "f32" in run("inspect", str(small)).output


def test_standard_input_must_be_utf8() -> None:
    result = CliRunner().invoke(main, ["phonemize", "-"], input=b"\xff\xfe")
    assert result.exit_code == 2
    assert "not UTF-8" in result.stderr
