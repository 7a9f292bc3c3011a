"""Pocket TTS from a folder of files to speech: published voices, cloning, what it cannot do; the weights are random."""

from __future__ import annotations

import wave
from pathlib import Path
from typing import Any

import latent_golden as golden
import numpy as np
import pocket_models as models
import pocket_variants as variants
import pytest

import sonant
from sonant.audio.reader import Recording, read_audio
from sonant.backends.backend import CancelFlag
from sonant.checkpoint.safetensors import write_safetensors
from sonant.errors import CheckpointError, InputError, TextError
from sonant.families.latent.heads import FILENAME, AlignmentHeads, written_heads
from sonant.families.pocket.cloning import clip_of, end_on_pause

RATE = 24_000
TEXT = "Hello there, my friend. How are you?"


def make_folder(folder: Path, name: str = "large") -> Path:
    """A checkpoint as a user has it: the tiny variant, its configuration in YAML, one voice as rows."""
    config = variants.config(name)
    shapes = models.text_of(models.recorded(name)["shapes"])
    shapes["flow_lm.conditioner.embed.weight"][0] = 1001
    config["flow_lm"]["lookup_table"]["n_bins"] = 1000
    models.write(folder / "model.safetensors", shapes)
    (folder / f"{name}.yaml").write_text(as_yaml({**config, "default_eos_threshold": 0.2}), encoding="utf-8")
    golden.write_tokenizer(folder, 1000)
    (folder / "voices").mkdir()
    width = config["flow_lm"]["transformer"]["d_model"]
    rows = golden.random_array("voice", (1, 9, width), 0.3)
    write_safetensors(folder / "voices" / "alba.safetensors", {"audio_prompt": rows})
    (folder / FILENAME).write_text(written_heads(AlignmentHeads(((0, 1), (1, 0)), 0.0, "assumed")))
    return folder


def as_yaml(values: dict[str, Any], indent: str = "") -> str:
    out = ""
    for key, value in values.items():
        quoted = "'" + key.replace("'", "''") + "'" if not key.isidentifier() else key
        if isinstance(value, dict):
            out += f"{indent}{quoted}:\n{as_yaml(value, indent + '  ')}"
        elif isinstance(value, list):
            out += f"{indent}{quoted}:\n" + "".join(f"{indent}- {v}\n" for v in value)
        else:
            plain = {True: "true", False: "false", None: "null"}.get(value) if not isinstance(value, (int, float)) or (
                isinstance(value, bool)) else str(value)
            text = plain if plain is not None else "'" + str(value).replace("'", "''") + "'"
            out += f"{indent}{quoted}: {text}\n"
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("pocket"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def synth(folder: Path, cache: Path) -> sonant.Synthesizer:
    return sonant.load("pocket-tts-en-cloning", weights=folder, cache=cache, threads=2)


def speech_like(seconds: float, rate: int = RATE) -> np.ndarray:
    t = np.arange(round(seconds * rate)) / rate
    return (0.3 * np.sin(2 * np.pi * 150 * t) * (0.6 + 0.4 * np.sin(2 * np.pi * 3 * t))).astype(np.float32)


def test_speech_and_its_words(synth: sonant.Synthesizer) -> None:
    speech, chunks = synth.speak(TEXT), list(synth.stream(TEXT))
    assert [w.text for w in speech.words] == TEXT.split()
    assert all(TEXT[w.char_start : w.char_end] == w.text for w in speech.words)
    np.testing.assert_array_equal(np.concatenate([c.samples for c in chunks]), speech.samples)
    assert [w for c in chunks for w in c.words] == list(speech.words)
    assert speech.words[-1].end_s <= speech.duration_s + 1e-6


def test_speed_is_refused_with_a_reason(synth: sonant.Synthesizer) -> None:
    assert not synth.capabilities.speed
    with pytest.raises(InputError, match="no control of its speed"):
        synth.speak(TEXT, speed=1.1)
    with pytest.raises(TextError, match="no control of it"):
        synth.speak("[speed 1.5] Hello there.")


def test_an_exported_cache_speaks_as_the_rows_do(folder: Path, cache: Path, tmp_path: Path) -> None:
    """The keys and values that pocket_tts publishes voices as, put in instead of computed."""
    synth = sonant.load("pocket-tts-en-cloning", weights=folder, cache=cache, device="numpy", voices=tmp_path)
    driver = synth._driver
    wanted = synth.speak("Yes.").samples
    prompt = driver._read_voice("alba")
    frames, lm = driver._frames, driver.config.lm
    row = frames._voices[prompt]
    exported: dict[str, np.ndarray] = {}
    for i in range(lm.layers):
        pair = [frames._states.read(f"flow_lm.transformer.layers.{i}.{n}", row) for n in "kv"]
        whole = np.full((2, 1, 40, lm.kv_heads, lm.head_size), np.nan, np.float32)
        whole[:, 0, : prompt.length] = np.stack(pair)[:, : prompt.length].reshape(2, -1, lm.kv_heads, lm.head_size)
        exported[f"transformer.layers.{i}.self_attn/cache"] = whole
        exported[f"transformer.layers.{i}.self_attn/offset"] = np.array([prompt.length], np.int64)
    write_safetensors(tmp_path / "exported.safetensors", exported)
    old = {k.replace("offset", "current_end"): (v if "cache" in k else np.zeros(prompt.length, np.int64))
           for k, v in exported.items()}
    write_safetensors(tmp_path / "old.safetensors", old)
    write_safetensors(tmp_path / "part.safetensors", {k: v for k, v in exported.items() if "layers.0." in k})
    synth = sonant.load("pocket-tts-en-cloning", weights=folder, cache=cache, device="numpy", voices=tmp_path)
    for name in ("exported", "old"):
        np.testing.assert_array_equal(synth.speak("Yes.", voice=name).samples, wanted)
    with pytest.raises(CheckpointError, match="1 layers"):
        synth.speak("Yes.", voice="part")


def test_a_cloned_voice_speaks_and_is_kept(synth: sonant.Synthesizer, folder: Path, cache: Path,
                                           tmp_path: Path) -> None:
    assert synth.clone("me", speech_like(2.0), RATE, keep=tmp_path / "me.safetensors").name == "me"
    assert "me" in [v.name for v in synth.voices()]
    spoken = synth.speak("Yes.", voice="me").samples
    again = sonant.load("pocket-tts-en-cloning", weights=folder, cache=cache, threads=2, voices=tmp_path)
    np.testing.assert_array_equal(again.speak("Yes.", voice="me").samples, spoken)
    for taken in ("alba", "../me", ""):
        with pytest.raises(InputError, match="voice name"):
            synth.clone(taken, speech_like(2.0), RATE)
    with pytest.raises(InputError, match="without a sample_rate"):
        synth.clone("you", speech_like(2.0))


@pytest.mark.parametrize(("samples", "said"), [
    (np.zeros(RATE * 3, np.float32), "silent"),
    (speech_like(0.5), "0.50 s"),
    (np.concatenate([speech_like(0.4), np.zeros(RATE * 5, np.float32)]), "0.40 s"),
    (np.clip(speech_like(3.0) * 20, -1, 1), "clipped"),
])
def test_recordings_that_make_no_voice(samples: np.ndarray, said: str, synth: sonant.Synthesizer) -> None:
    with pytest.raises(InputError, match=said):
        synth.clone("you", samples, RATE)


def test_a_long_recording_is_cut(synth: sonant.Synthesizer, caplog: pytest.LogCaptureFixture) -> None:
    synth.clone("long", speech_like(31.0), RATE)
    assert "first 30 s" in caplog.text
    assert synth._driver._cloned["long"].length == 1 + 376  # bos; 30 s and 80 ms in frames of 80 ms


def test_a_checkpoint_without_encoder_says_so(folder: Path, cache: Path, tmp_path: Path) -> None:
    shapes = models.text_of(models.recorded("large")["shapes"])
    shapes["flow_lm.conditioner.embed.weight"][0] = 1001
    public = make_folder(tmp_path / "public")
    models.write(public / "model.safetensors", {k: v for k, v in shapes.items() if "encoder" not in k and
                                                "downsample" not in k and "speaker_proj" not in k})
    synth = sonant.load("pocket-tts-en", weights=public, cache=cache, device="numpy")
    assert not synth.capabilities.cloning
    with pytest.raises(CheckpointError, match="-cloning"):
        synth.clone("me", speech_like(2.0), RATE)


def test_a_clip_ends_on_a_pause_as_the_official_one_does() -> None:
    figures = models.recorded("large")
    assert golden.error("prepared", end_on_pause(variants.clip(), RATE), figures) <= 1e-6


@pytest.mark.parametrize("rate", [8000, 24_000, 44_100])
@pytest.mark.parametrize("encoding", ["int16", "int24", "float32", "stereo", "flac"])
def test_recordings_of_every_kind_give_the_same_clip(encoding: str, rate: int, tmp_path: Path) -> None:
    """Within the resolution of 16 bits."""
    if encoding == "flac":
        pytest.importorskip("soundfile", reason="pip install 'sonant[audio]'")
    if rate != RATE:
        pytest.importorskip("soxr", reason="pip install 'sonant[audio]'")
    samples = speech_like(1.5, rate)
    path = write_as(tmp_path / f"clip.{'flac' if encoding == 'flac' else 'wav'}", samples, rate, encoding)
    found, wanted = clip_of(read_audio(path), RATE), clip_of(Recording(samples, rate), RATE)
    np.testing.assert_allclose(found, wanted, atol=1.1 / 2**15)


def write_as(path: Path, samples: np.ndarray, rate: int, encoding: str) -> Path:
    if encoding in ("float32", "flac"):
        sonant.Speech(samples, rate, (), "none").save(path, encoding=encoding if encoding == "float32" else None)
        return path
    channels = np.stack([samples * 1.5, samples * 0.5], 1) if encoding == "stereo" else samples[:, None]
    with wave.open(str(path), "wb") as file:
        width = 3 if encoding == "int24" else 2
        file.setnchannels(channels.shape[1])
        file.setsampwidth(width)
        file.setframerate(rate)
        whole = np.rint(channels * (2 ** (8 * width - 1) - 1)).astype("<i4")
        file.writeframes(whole.reshape(-1, 1).view(np.uint8)[:, :width].tobytes())
    return path


def test_streams_stop_when_they_are_cancelled(synth: sonant.Synthesizer) -> None:
    flag = CancelFlag()
    chunks = synth.stream(TEXT, cancel=flag)
    next(chunks)
    flag.set()
    with pytest.raises(sonant.Cancelled):
        list(chunks)
