"""The cases that broke other engines, spoken and heard: does the listener hear the words that the vectors say?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from recogniser import Recogniser

import sonant

VECTORS = Path(__file__).parents[1] / "text" / "vectors" / "english.jsonl"
UNHEARABLE = {"en-digits-long", "nonwords", "md-ipa", "long-unpunctuated"}
"""Forty ones, a word that is none, given phonemes, a text that repeats itself: no recogniser writes these down."""
MAX_WER = 0.13
"""Measured 0.109, nearly all of it notation (5-3 a.m. for 5:03 am, 16,000 for 1.6k), the rest pears and 90210."""

pytestmark = pytest.mark.weights


def test_the_cases_are_heard(synth: sonant.Synthesizer, recogniser: Recogniser) -> None:
    """The recogniser may write in words (nineteen forty-five) or in signs (1945): the nearer one counts."""
    lines = [json.loads(line) for line in VECTORS.read_text(encoding="utf-8").splitlines()]
    cases = [c for c in lines if c["kind"] == "case" and c["id"] not in UNHEARABLE]
    cases = [c for c in cases if any(ch.isalnum() for ch in c.get("normalized", ""))]
    assert len(cases) >= 35
    wanted, heard = [], []
    for case in cases:
        options = {"text_format": "markdown"} if case["id"].startswith("md-") else {}
        speech = synth.speak(case["text"], **options)
        heard.append(recogniser.hear(speech.samples, speech.sample_rate))
        written = (case["normalized"], case["text"])
        wanted.append(min(written, key=lambda text, h=heard[-1]: recogniser.errors([text], [h]).rate))
    errors = recogniser.errors(wanted, heard)
    assert errors.rate <= MAX_WER, (str(errors), list(zip(wanted, heard, strict=True)))
