"""How a text is to be read: its format, its markup, its pauses, the user's own words. A value, checked once."""

from __future__ import annotations

from dataclasses import dataclass

from sonant.options import check_reading
from sonant.text.lexicon_file import UserLexicon
from sonant.text.markup import read_markup
from sonant.text.script import Script


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a text is read.

    markup: auto (unknown tags are read), strict (left out with a note) or off. text_format: plain or markdown.
    paragraph_pause_s, heading_pause_s: silence added after a blank line, after a heading. lexicon: the user's words.
    """

    markup: str = "auto"
    text_format: str = "plain"
    paragraph_pause_s: float = 0.3
    heading_pause_s: float = 0.5
    lexicon: UserLexicon | None = None

    def __post_init__(self) -> None:
        check_reading(self.markup, self.text_format, self.paragraph_pause_s, self.heading_pause_s)

    def script(self, text: str) -> Script:
        """What is to be read of `text`. What is left out of it is a note in the Script and in the log sonant.text."""
        if self.text_format == "markdown":
            from sonant.text.markdown import read_markdown

            script = read_markdown(text, self.markup)
        else:
            script = read_markup(text, self.markup)
        for note in script.notes:
            import logging  # slow to import, and hardly any text needs it

            logging.getLogger("sonant.text").warning("%s", note)
        return script


AS_WRITTEN = Reading()
"""The default: plain text with the known tags."""
