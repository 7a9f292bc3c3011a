"""Phonon from a folder of files to speech: streams, words, voices, speeds; the weights are random, the speech noise."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import latent_golden as golden
import numpy as np
import phonon_models as models
import pytest

import sonant
from sonant.backends.backend import CancelFlag
from sonant.checkpoint.safetensors import write_safetensors
from sonant.errors import CheckpointError, InputError, TextError, UnknownName
from sonant.families.latent.heads import FILENAME, AlignmentHeads, written_heads
from sonant.options import SpeakOptions

TEXT = "Hello there, my friend. It costs $5 today!"
HEADS = AlignmentHeads(((1, 0), (0, 1)), lead_frames=0.0, lead_source="assumed")


def make_folder(folder: Path, *, heads: bool = True, variant: str = "plain") -> Path:
    """A checkpoint as a user has it. Its end logit is raised so that it stops by itself."""
    models.write(folder, models.shapes(), {**models.config(variant), "eos_threshold": 2.1})
    golden.write_tokenizer(folder, 4000)
    (folder / "voices").mkdir()
    write_safetensors(folder / "voices" / "ada.safetensors", {"emb": models.voice()})
    latents = golden.random_array("latents", (32, 9), 0.3)
    write_safetensors(folder / "voices" / "bob.safetensors", {"speaker_wavs": latents})
    write_safetensors(folder / "default-voice.safetensors", {"audio_prompt": models.voice()[None] * 0.5})
    if heads:
        (folder / FILENAME).write_text(written_heads(HEADS))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("phonon"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def synth(folder: Path, cache: Path) -> sonant.Synthesizer:
    return sonant.load("phonon-31m-en", weights=folder, cache=cache, threads=2)


def test_every_word_is_told_once_within_the_speech(synth: sonant.Synthesizer) -> None:
    speech = synth.speak(TEXT)
    assert speech.word_source == "attention"
    assert [w.text for w in speech.words] == ["Hello", "there,", "my", "friend.", "It", "costs", "$5", "today!"]
    for word in speech.words:
        assert TEXT[word.char_start : word.char_end] == word.text
    times = [t for w in speech.words for t in (w.start_s, w.end_s)]
    assert times == sorted(times)
    assert 0 <= times[0] <= times[-1] <= speech.duration_s + 1e-6


def test_a_stream_is_the_whole_in_growing_stretches(synth: sonant.Synthesizer) -> None:
    whole, chunks = synth.speak(TEXT), list(synth.stream(TEXT))
    np.testing.assert_array_equal(np.concatenate([c.samples for c in chunks]), whole.samples)
    assert [w for c in chunks for w in c.words] == list(whole.words)
    assert len(chunks[0].samples) == 1920
    assert len(chunks[1].samples) == 3840


def test_streams_at_once_are_those_alone(synth: sonant.Synthesizer) -> None:
    texts = [TEXT, "Yes.", "One two three four five six seven.", "Bread, butter, and honey."]
    alone = [synth.speak(t, seed=i).samples for i, t in enumerate(texts)]
    with ThreadPoolExecutor(len(texts)) as pool:
        together = list(pool.map(lambda job: synth.speak(job[1], seed=job[0]).samples, enumerate(texts)))
    for a, b in zip(alone, together, strict=True):
        np.testing.assert_array_equal(a, b)


def test_seeds_and_voices_differ_and_repeat(synth: sonant.Synthesizer) -> None:
    assert [v.name for v in synth.voices()] == ["ada", "bob", "default-voice"]
    first = synth.speak("Yes.", voice="ada", seed=3).samples
    np.testing.assert_array_equal(first, synth.speak("Yes.", voice="ada", seed=3).samples)
    for other in (synth.speak("Yes.", voice="ada", seed=4), synth.speak("Yes.", voice="bob", seed=3),
                  synth.speak("Yes.", seed=3)):
        assert first.shape != other.samples.shape or not np.array_equal(first, other.samples)


def test_speed_is_a_condition_within_its_range(synth: sonant.Synthesizer) -> None:
    plain, fast = synth.speak("Yes.").samples, synth.speak("Yes.", speed=1.2).samples
    assert plain.shape != fast.shape or not np.array_equal(plain, fast)
    with pytest.raises(InputError, match=r"0\.77 to 1\.3"):
        synth.speak("Yes.", speed=2.0)


@pytest.mark.parametrize("name", ["nobody", "../voices/ada", "/etc/passwd", "ada.safetensors", "ada,bob"])
def test_a_voice_that_is_not_listed_is_unknown(name: str, synth: sonant.Synthesizer) -> None:
    with pytest.raises(UnknownName, match="voice"):
        synth.speak("Yes.", voice=name)


def test_a_language_that_the_model_does_not_read_is_refused(synth: sonant.Synthesizer) -> None:
    np.testing.assert_array_equal(synth.speak("Yes.", language="en-US").samples, synth.speak("Yes.").samples)
    with pytest.raises(UnknownName, match="language"):
        synth.speak("Oui.", language="fr")


def test_numbers_are_read_in_the_language_asked_for_or_the_voice_s(tmp_path: Path, cache: Path) -> None:
    folder = make_folder(tmp_path / "m")
    index = [{"name": "ada", "filename": "ada.safetensors", "language": "de"},
             {"name": "eve", "filename": "ada.safetensors", "language": "xx"},
             {"name": "out", "filename": "away.safetensors", "language": "de"}]
    (folder / "voices" / "voices.jsonl").write_text("\n".join(map(json.dumps, index)))
    driver = sonant.load("phonon-40m-multilingual", weights=folder, cache=cache, device="numpy")._driver

    def read(**options: str) -> str:
        return next(iter(driver.pieces("It is 20 °C.", SpeakOptions(**options)))).text

    assert "Grad" in read(voice="ada")
    assert "degrees" in read(voice="eve")
    assert "degrees" in read(voice="ada", language="en-GB")
    assert "Grad" in read(language="de")
    assert [v.name for v in driver.voices()] == ["ada", "default-voice", "eve"]


def test_an_index_that_leaves_its_folder_is_refused(tmp_path: Path, cache: Path) -> None:
    folder = make_folder(tmp_path / "m")
    (folder / "voices" / "voices.jsonl").write_text(json.dumps({"name": "x", "filename": "../model.safetensors"}))
    with pytest.raises(CheckpointError, match="does not name a file of this folder"):
        sonant.load("phonon-31m-en", weights=folder, cache=cache, device="numpy")


def test_nothing_to_say_and_pauses(synth: sonant.Synthesizer) -> None:
    assert len(synth.speak("").samples) == 0
    assert len(synth.speak("[pause 500ms]").samples) == 12_000


def test_without_heads_times_are_estimates(tmp_path: Path, cache: Path) -> None:
    """A model of another name, for which no heads are published."""
    synth = sonant.load("phonon-40m-en", weights=make_folder(tmp_path / "m", heads=False), cache=cache, device="numpy")
    speech = synth.speak("Hello there, my friend.")
    assert speech.word_source == "estimate"
    assert [w.text for w in speech.words] == ["Hello", "there,", "my", "friend."]
    assert 0 <= speech.words[0].start_s < speech.words[-1].end_s <= speech.duration_s + 1e-6


def test_heads_of_another_model_are_refused(tmp_path: Path, cache: Path) -> None:
    """The published heads of the released model are in its fourth layer."""
    with pytest.raises(CheckpointError, match="heads"):
        sonant.load("phonon-31m-en", weights=make_folder(tmp_path / "m", heads=False), cache=cache)


def test_voice_files_of_another_model_are_refused(tmp_path: Path, cache: Path) -> None:
    folder = make_folder(tmp_path / "m")
    wrong = {"width": ("emb", (4, 63)), "latents": ("speaker_wavs", (31, 4)), "kind": ("style", (4, 64)),
             "long": ("emb", (600, 64)), "nan": ("emb", (4, 64))}
    for name, (tensor, shape) in wrong.items():
        values = np.full(shape, np.nan if name == "nan" else 0.0, np.float32)
        write_safetensors(folder / "voices" / f"{name}.safetensors", {tensor: values})
    synth = sonant.load("phonon-31m-en", weights=folder, cache=cache, device="numpy")
    for name in wrong:
        with pytest.raises(CheckpointError):
            synth.speak("Yes.", voice=name)


@pytest.mark.parametrize(("change", "said"), [
    ({"flow_lm": None}, "flow_lm"),
    ({"mimi": {"channels": 2}}, "channels"),
    ({"flow_lm": {"d_model": "64"}}, "d_model"),
    ({"flow_lm": {"dim_feedforward": 128}}, "linear1"),
    ({"flow_lm": {"time_rms_norm": "layer"}}, "rms_var"),
    ({"conditioners": []}, "num_speakers"),
])
def test_a_configuration_that_does_not_fit_is_refused(change: dict[str, object], said: str, tmp_path: Path,
                                                      cache: Path) -> None:
    folder = make_folder(tmp_path / "m")
    config = models.config("plain")
    for key, value in change.items():
        if value is None:
            del config[key]
        else:
            config[key] = {**config[key], **value} if isinstance(value, dict) else value
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(CheckpointError, match=said):
        sonant.load("phonon-31m-en", weights=folder, cache=cache)


def test_a_chunk_beyond_the_cache_is_refused(synth: sonant.Synthesizer) -> None:
    driver = synth._driver
    request = driver.request(next(iter(driver.pieces("Yes.", SpeakOptions()))), 0, SpeakOptions())
    long = type(request)(**{**request.__dict__, "ids": np.zeros(400, np.int32)})
    with pytest.raises(TextError, match="400 tokens"):
        driver._frames.begin(0, long, CancelFlag())


def test_without_temperature_the_seed_is_nothing(synth: sonant.Synthesizer) -> None:
    still = [synth.speak("Hello there.", seed=seed, temperature=0.0).samples for seed in (1, 2)]
    np.testing.assert_array_equal(*still)
    own = synth.speak("Hello there.", seed=1).samples
    assert own.shape != still[0].shape or np.abs(own - still[0]).max() > 1e-3


def test_guidance_needs_a_checkpoint_that_was_trained_for_it(synth: sonant.Synthesizer) -> None:
    with pytest.raises(InputError, match=r"guidance is 2\.0"):
        synth.speak("Hello there.", guidance=2.0)


@pytest.mark.parametrize("variant", ["guided", "padded"])
def test_guidance_pushes_away_from_speech_without_a_prompt(variant: str, tmp_path: Path, cache: Path) -> None:
    synth = sonant.load("phonon-31m-en", weights=make_folder(tmp_path, variant=variant), cache=cache, threads=2)
    assert synth.capabilities.guidance
    own, same, other = (synth.speak("Hello there.", seed=3, guidance=g).samples for g in (None, 1.0, 3.0))
    n = min(len(own), len(same), 5 * 1920)  # adding and taking off the other branch rounds, and that grows with frames
    np.testing.assert_allclose(same[:n], own[:n], atol=1e-3)
    assert other.shape != own.shape or np.abs(other - own).max() > 1e-2
