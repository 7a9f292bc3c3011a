"""Train data/en.tagger, the averaged perceptron of sonant.text.phonemize.tagger_en.

    PYTHONPATH=src python tools/train_tagger.py tagged.jsonl src/sonant/text/data/en.tagger [--test 0.05] [--epochs 5]

Each line of the input is {"t": [[token, Penn tag, ...], ...]}: one paragraph, as docs/text.md says where from.
Every `1/test`-th paragraph is kept out of training and measured.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sonant.text.phonemize.tagger_en import (
    HEADER,
    MAGIC,
    TAGS,
    Tagger,
    coarse,
    history_features,
    known_tag,
    written_features,
)

Sentence = tuple[list[str], list[str]]
RARE = 3  # a feature seen less often than this says nothing about other texts
ENDS = frozenset((".", "?", "!"))
CLOSERS = frozenset(("”", '"', "'", ")"))


def read(path: Path) -> list[list[Sentence]]:
    """Paragraphs of sentences: which paragraphs are kept out must not depend on how they are cut."""
    paragraphs = []
    for line in path.read_text(encoding="utf-8").splitlines():
        tokens = [(text.replace("’", "'").replace("‘", "'"), tag) for text, tag, *_ in json.loads(line)["t"]]
        tokens = [(text, tag) for text, tag in tokens if text.strip()]
        paragraphs.append([part for part in split(tokens) if part[0]])
    return paragraphs


def split(tokens: list[tuple[str, str]]) -> Iterator[Sentence]:
    """Sentences, as the front end tags them: cut behind a full stop and the quotes that close it."""
    start = 0
    for i, (text, _) in enumerate(tokens):
        following = tokens[i + 1][0] if i + 1 < len(tokens) else ""
        ended = text in ENDS or (text in CLOSERS and i and tokens[i - 1][0] in ENDS)
        if not following or (ended and following not in CLOSERS and not following[0].islower()):
            part = tokens[start : i + 1]
            yield [text for text, _ in part], [known_tag(text) or coarse(tag) for text, tag in part]
            start = i + 1


class Trainer:
    """Weights and the running sum that averages them."""

    def __init__(self, rows: int) -> None:
        self.mask = rows - 1
        self.weights = np.zeros((rows, len(TAGS)), np.float32)
        self.summed = np.zeros((rows, len(TAGS)), np.float64)
        self.step = 1

    def learn(self, words: list[str], gold: list[str], written: np.ndarray, common: list[list[int]]) -> int:
        """One sentence; returns the number of mistakes. Rare features are summed but not learned: they only learn
        this sentence by heart."""
        mistakes, tag1, tag2 = 0, "^", "^"
        for i, word in enumerate(words):
            tag = gold[i]
            if known_tag(word) is None:
                after = words[i + 1].lower() if i + 1 < len(words) else ""
                history = [value & self.mask for value in history_features(word.lower(), tag1, tag2, after)]
                rows = [*written[i], *history]
                guess, right = int(self.weights[rows].sum(axis=0).argmax()), TAGS.index(tag)
                if guess != right:
                    mistakes += 1
                    learned = [*common[i], *history]
                    for column, change in ((right, 1), (guess, -1)):
                        self.weights[learned, column] += change
                        self.summed[learned, column] += change * self.step
                    tag = TAGS[guess]
                self.step += 1
            tag1, tag2 = tag, tag1
        return mistakes

    def average(self) -> np.ndarray:
        return self.weights - self.summed / self.step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tagged", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--test", type=float, default=0.05)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--bits", type=int, default=16, help="log2 of the number of rows")
    options = parser.parse_args()
    paragraphs = read(options.tagged)
    every = round(1 / options.test)
    train = [item for i, paragraph in enumerate(paragraphs) if i % every for item in paragraph]
    test = [item for i, paragraph in enumerate(paragraphs) if i % every == 0 for item in paragraph]
    trainer = Trainer(1 << options.bits)
    features = [np.array(written_features(words), np.uint32) for words, _ in train]
    values, counts = np.unique(np.concatenate(features).ravel(), return_counts=True)
    rare = values[counts < RARE]
    hashed = [rows & trainer.mask for rows in features]
    common = [keep_common(rows, rare, trainer.mask) for rows in features]
    order = list(range(len(train)))
    for epoch in range(options.epochs):
        random.Random(epoch).shuffle(order)
        mistakes = sum(trainer.learn(*train[i], hashed[i], common[i]) for i in order)
        print(f"epoch {epoch}: {mistakes} mistakes", flush=True)  # noqa: T201 - a command's report
        save(trainer.average(), options.out)
    report(Tagger(options.out), test)


def keep_common(rows: np.ndarray, rare: np.ndarray, mask: int) -> list[list[int]]:
    """Of each token's features [N, K] those that are not in the sorted `rare`, as table rows."""
    at = np.minimum(np.searchsorted(rare, rows), len(rare) - 1)
    kept = rare[at] != rows
    return [(row[keep] & mask).tolist() for row, keep in zip(rows, kept, strict=True)]


def save(average: np.ndarray, path: Path) -> None:
    """int8 with one scale for all: the greatest column of a sum does not mind the scale."""
    scale = 127 / np.quantile(np.abs(average[average != 0]), 0.9995)
    weights = np.clip(np.round(average * scale), -127, 127).astype(np.int8)
    path.write_bytes(HEADER.pack(MAGIC, *weights.shape) + weights.tobytes())


def report(tagger: Tagger, test: list[Sentence]) -> None:
    right = total = 0
    wrong: Counter[str] = Counter()
    for words, gold in test:
        for word, guess, tag in zip(words, tagger.tag(words), gold, strict=True):
            if known_tag(word) is None:
                total += 1
                right += guess == tag
                wrong[f"{word.lower()} {tag}->{guess}"] += guess != tag
    print(f"held out: {right / total:.4f} of {total}")  # noqa: T201 - a command's report
    print(wrong.most_common(40))  # noqa: T201 - a command's report


if __name__ == "__main__":
    main()
