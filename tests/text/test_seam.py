"""What a stretch of a text leaves to the next: its speed, and the silence that a blank line or a heading asks for."""

from __future__ import annotations

import pytest

from sonant.errors import TextError
from sonant.options import SpeakOptions
from sonant.text.seam import Seams, Stretch


def stretches(*parts: str, **options: object) -> list[Stretch]:
    seams, text, found = Seams(SpeakOptions(**options)), "".join(parts), []  # type: ignore[arg-type]
    start = 0
    for part in parts:
        found.append(seams.stretch(text, start, start + len(part)))
        start += len(part)
    return found


def test_a_speed_stays_in_force() -> None:
    first, second, third, fourth = stretches("One [speed 1.25] two.", " Three.", " [speed 0.5] four.", " Five.")
    assert (first.text, first.shift) == ("One [speed 1.25] two.", 0)
    assert second.text == "[speed 1.25]\n Three."
    assert "One [speed 1.25] two. Three."[second.text.index("Three") + second.shift :] == "Three."
    assert third.text == "[speed 1.25]\n [speed 0.5] four."
    assert fourth.text == "[speed 0.5]\n Five."
    assert stretches("a [speed 2]", " b", markup="off")[1].text == " b"


@pytest.mark.parametrize(
    ("parts", "pauses"),
    [
        (("One.", " Two."), [0, 0]),
        (("One.", "\nTwo."), [0, 0]),
        (("One.", "\n\nTwo."), [0, 0.3]),
        (("One.\n", "\nTwo."), [0, 0.3]),
        (("One.", "\n\n[pause 1s] Two."), [0, 0]),
        (("One. [pause 1s]", "\n\nTwo."), [0, 0]),
        (("One.", "\n\n* * *", "\n\nTwo."), [0, 0, 0.3]),
        (("* * *", "\n\nTwo."), [0, 0]),
    ],
)
def test_a_blank_line_is_a_pause(parts: tuple[str, ...], pauses: list[float]) -> None:
    assert [s.pause_s for s in stretches(*parts)] == pauses


def test_a_heading_is_a_pause() -> None:
    found = stretches("# One", "\n\nTwo.", "\n\nThree.", text_format="markdown", heading_pause_s=0.7)
    assert [s.pause_s for s in found] == [0, 0.7, 0.3]


def test_a_stretch_that_is_read_again_replaces_what_followed() -> None:
    seams = Seams(SpeakOptions())
    text = "One. [speed 2] Two. Three."
    assert seams.stretch(text, 0, 4).text == "One."
    assert seams.stretch(text, 4, 19).text == " [speed 2] Two."
    assert seams.stretch("One. Zwei. Drei.", 4, 10).text == " Zwei."


def test_notes_and_errors_of_the_text() -> None:
    assert stretches("A [b] c.", markup="strict")[0].notes == ("unknown tag [b] left out",)
    with pytest.raises(TextError, match="pause of 99 s"):
        stretches("A.", " [pause 99s]")
