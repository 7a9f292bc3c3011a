"""The public names, and that the docs of audio and captions say what is true."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from dataclasses import fields
from pathlib import Path

import pytest
from counting import CountingDriver

import sonant
from sonant.audio.formats import FORMATS
from sonant.engine.synthesizer import SpeakArguments, Synthesizer
from sonant.options import SpeakOptions

DOCS = Path(__file__).parents[2] / "docs"

NAMES = [
    "AudioChunk",
    "BackendError",
    "Cancelled",
    "CheckpointError",
    "InputError",
    "MissingExtra",
    "PhonemeTiming",
    "Session",
    "SonantError",
    "Speech",
    "Synthesizer",
    "TextError",
    "UnknownName",
    "VoiceInfo",
    "WordTiming",
    "load",
]

METHODS = {
    "Synthesizer": "align aspeak astream background capabilities clone sample_rate session speak stream voices",
    "Session": "cancel close end feed flush notes pending_text ready set_pending set_text spoken_text text",
    "Speech": "duration_s save to_bytes to_json to_lrc to_srt to_textgrid to_vtt",
}


def test_public_names() -> None:
    assert sonant.__all__ == NAMES == dir(sonant)
    for name in NAMES:
        assert inspect.getdoc(getattr(sonant, name)), f"{name} has no docstring"


@pytest.mark.parametrize("name", METHODS)
def test_public_methods_are_documented(name: str) -> None:
    found = {n: v for n, v in vars(getattr(sonant, name)).items() if not n.startswith("_")}
    behaviour = {n for n, v in found.items() if callable(v) or isinstance(v, property)}
    assert " ".join(sorted(behaviour)) == METHODS[name]
    assert all(found[n].__doc__ for n in behaviour)


def test_every_option_of_speaking_can_be_given_by_name() -> None:
    assert set(SpeakArguments.__annotations__) == {f.name for f in fields(SpeakOptions)}
    for name in ("speak", "stream", "astream", "aspeak", "background", "session"):
        assert "options" in inspect.signature(getattr(Synthesizer, name)).parameters


@pytest.mark.parametrize("page", ["audio.md", "captions.md"])
def test_snippets_of_the_docs_run(
    page: str, driver: CountingDriver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pytest.importorskip("soundfile")
    pytest.importorskip("soxr")
    monkeypatch.chdir(tmp_path)
    driver.sample_rate = 24_000
    synth = Synthesizer("counting", driver)
    names = {"synth": synth, "speech": synth.speak("It cost $5. Why?")}
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    for block in blocks:
        exec(block, names)
    if "talk" in names:
        assert len(asyncio.run(names["talk"]()).words) == 3  # type: ignore[operator]


def test_the_table_of_formats_is_complete() -> None:
    page = (DOCS / "audio.md").read_text(encoding="utf-8")
    for kind in FORMATS.values():
        row = re.search(rf"^\| {kind.name} \|.*$", page, re.MULTILINE)
        assert row, kind.name
        assert all(suffix in row[0] for suffix in kind.suffixes)
        assert ("sonant[audio]" in row[0]) == (kind.codec is not None)


def test_the_json_schema_has_the_keys_of_the_json(driver: CountingDriver) -> None:
    page = (DOCS / "captions.md").read_text(encoding="utf-8")
    block = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert block
    schema = json.loads(block[1])
    found = json.loads(Synthesizer("counting", driver).speak("a b").to_json())
    optional = {"word_match"}  # of an aligned recording
    assert list(found) == schema["required"] == [k for k in schema["properties"] if k not in optional]
    word = schema["properties"]["words"]["items"]
    assert list(found["words"][0]) == word["required"] == list(word["properties"])
