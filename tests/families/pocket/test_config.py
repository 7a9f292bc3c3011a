"""Configurations of Pocket TTS: those of the releases, YAML files, and what is refused."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pocket_variants as variants
import pytest

from sonant.errors import CheckpointError, UnknownName
from sonant.families.latent.stated import Stated
from sonant.families.pocket.config import parse, released
from sonant.families.pocket.heads import PUBLISHED
from sonant.families.pocket.yaml_subset import read_yaml
from sonant.hub.pocket_entries import POCKET
from sonant.layers.mimi import MOST_FRAMES


@pytest.mark.parametrize("name", sorted({e.recipe for e in POCKET if e.recipe} | set(PUBLISHED)))
def test_every_release_has_its_configuration(name: str) -> None:
    config = parse(released(name), name)
    assert config.sample_rate == 24_000
    assert config.decoder.frame_samples == config.encoder.frame_samples == 1920
    assert config.decoder.capacity >= config.decoder.transformer.window + 16 * MOST_FRAMES - 1
    for layer, head in PUBLISHED[name].heads:
        assert layer < config.lm.layers
        assert head < config.lm.heads


def test_the_sizes_of_the_releases() -> None:
    """As pocket_tts 4.0.1 builds them."""
    small = parse(released("english_2m_2026-10"), "2m")
    assert (small.lm.attention_width, small.lm.kv_width, small.lm.inner, small.lm.width) == (192, 64, 96, 112)
    assert (small.flow.kind, small.flow.condition, small.text_rank, small.z_width) == ("pointwise", 64, 32, 64)
    decoder, encoder = small.decoder, small.encoder
    assert (decoder.transformer.window, decoder.transformer.layers, decoder.seanet.kernel) == (50, 4, 3)
    assert (encoder.transformer.window, encoder.transformer.layers, encoder.seanet.kernel) == (250, 2, 7)
    assert small.eos_threshold == -1.0
    large = parse(released("french_24l"), "24l")
    assert (large.lm.layers, large.lm.inner, large.eos_threshold, large.temperature) == (24, 4096, -4.0, 0.3)
    assert large.rules.remove_semicolons
    assert large.rules.replace_characters["«"] == ""
    first = parse(released("english_2026-01"), "first")
    assert (first.encoder.latent, first.decoder.latent, first.bos_before_voice) == (512, 32, False)
    assert first.rules.pad_with_spaces_for_short_inputs


def test_a_release_that_there_is_not() -> None:
    with pytest.raises(UnknownName, match="english_2m_2026-10"):
        released("english_2m")


YAML = """
# a comment
name: plain text   # another
'’': "'"
"a: b": ''
count: 12
share: -0.5e-3
yes: true
no: ~
empty:
inner:
  list:
  - 6
  - five
  deeper:
    - 1
    - 2
  x: 'it''s # not a comment'
last: hf://a/b@c
"""


def test_yaml_is_read(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(YAML, encoding="utf-8")
    assert read_yaml(tmp_path / "c.yaml") == {
        "name": "plain text", "’": "'", "a: b": "", "count": 12, "share": -0.0005, "yes": True, "no": None,
        "empty": None, "inner": {"list": [6, "five"], "deeper": [1, 2], "x": "it's # not a comment"}, "last": "hf://a/b@c",
    }


@pytest.mark.parametrize(("text", "said"), [
    ("a: 1\na: 2", "line 2: states 'a' twice"), ("a: {b: 1}", "line 1"), ("a: [1]", "line 1"), ("a: &x 1", "line 1"),
    ("a: |\n  text", "line 1"), ("a: !t 1", "line 1"), ("a:\n    b: 1\n  c: 2", "line 3"), ("just text", "line 1"),
    ("  a: 1", "line 1"), ("- 1", "line 1"),
])
def test_yaml_beyond_the_subset_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(CheckpointError, match=said):
        read_yaml(tmp_path / "c.yaml")


@pytest.mark.parametrize(("place", "value", "said"), [
    (("flow_lm", "flow", "type"), "diffusion", "pointwise"),
    (("flow_lm", "transformer", "d_model"), 0, "positive integer"),
    (("flow_lm", "lookup_table", "dim"), 63, "dim is 63"),
    (("mimi", "seanet", "pad_mode"), "reflect", "pad_mode"),
    (("mimi", "channels"), 2, "channels"),
    (("mimi", "frame_rate"), 13.0, "13.0 Hz"),
    (("mimi", "transformer", "output_dimensions"), [16], "output_dimensions"),
    (("mimi", "quantizer"), None, "quantizer"),
])
def test_what_cannot_be_run_is_refused(place: tuple[str, ...], value: Any, said: str) -> None:
    config = copy.deepcopy(variants.config("large"))
    inner = config
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(CheckpointError, match=said):
        parse(Stated(config), "config")
