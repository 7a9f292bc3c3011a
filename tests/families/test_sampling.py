"""Choices that only some families have: refused by the others, never dropped."""

from __future__ import annotations

import pytest

from sonant.errors import InputError
from sonant.families.family import check_sampling
from sonant.options import SpeakOptions
from sonant.types import Capabilities


def able(*, temperature: bool = False, guidance: bool = False) -> Capabilities:
    return Capabilities(languages=("en",), named_voices=True, voice_blending=False, cloning=False, speed=False,
                        streaming_grain="frame", word_source="none", licence="", temperature=temperature,
                        guidance=guidance)


@pytest.mark.parametrize("name", ["temperature", "guidance"])
def test_a_choice_is_taken_or_refused(name: str) -> None:
    wish = SpeakOptions(**{name: 0.5})
    check_sampling(wish, able(temperature=True, guidance=True))
    check_sampling(SpeakOptions(), able())
    with pytest.raises(InputError, match=f"{name} is 0.5; this model has none"):
        check_sampling(wish, able())


@pytest.mark.parametrize("wish", [{"temperature": -0.1}, {"temperature": 3}, {"guidance": float("nan")},
                                  {"guidance": "much"}])
def test_values_out_of_range(wish: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wish))):
        SpeakOptions(**wish)
