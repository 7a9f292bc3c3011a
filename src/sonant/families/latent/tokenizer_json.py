"""Reads tokenizer.json: a Unigram model in the format of Hugging Face's tokenizers. Nothing in the file is executed."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from sonant.errors import CheckpointError
from sonant.families.latent.normalizers import read_normalizer, read_split
from sonant.families.latent.tokenizer import Tokenizer, Vocabulary
from sonant.families.latent.traced import Traced

_MOST_PIECES = 1_000_000
# Signs of control that a text must not be able to say; the file marks its own as special.
_CONTROL = frozenset(("<s>", "</s>", "<pad>", "<unk>"))


def read_tokenizer_json(data: bytes, name: str) -> Tokenizer:
    """The tokenizer of these bytes. Raises CheckpointError naming the entry that cannot be used."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{name} is not JSON: {error}") from error
    if not isinstance(tree, Mapping) or not isinstance(tree.get("model"), Mapping):
        raise CheckpointError(f"{name} has no model; wanted a tokenizer.json")
    model = tree["model"]
    kind = model.get("type", "Unigram" if "vocab" in model else None)
    if kind != "Unigram":
        raise CheckpointError(f"{name}: the model is {kind!r}; only Unigram can be read")
    special, symbols = _added(tree.get("added_tokens") or [], name)
    vocabulary = _vocabulary(model, special, symbols, name)
    try:
        normalize = read_normalizer(tree.get("normalizer"), name)
        split = read_split(tree.get("pre_tokenizer"), name)
    except RecursionError as error:
        raise CheckpointError(f"{name}: steps are nested too deep") from error
    return Tokenizer(vocabulary, normalize, _one(split))


def _one(split: Callable[[list[Traced], int], list[Traced]]) -> Callable[[Traced, int], list[Traced]]:
    return lambda text, origin: [part for part in split([text], origin) if part]


def _vocabulary(
    model: Mapping[str, Any], special: Mapping[str, int], symbols: Mapping[str, int], name: str
) -> Vocabulary:
    vocab = model.get("vocab")
    if not isinstance(vocab, list) or not 0 < len(vocab) <= _MOST_PIECES:
        raise CheckpointError(f"{name}: vocab is not a list of 1 to {_MOST_PIECES} pieces")
    names: dict[str, int] = {}
    scores: dict[str, tuple[int, float]] = {}
    for number, row in enumerate(vocab):
        if not (isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and _is_number(row[1])):
            raise CheckpointError(f"{name}: piece {number} is {str(row)[:80]}; wanted [text, score]")
        names.setdefault(row[0], number)
        scores[row[0]] = number, float(row[1])
    unknown = model.get("unk_id")
    if unknown is not None and not (type(unknown) is int and 0 <= unknown < len(vocab)):
        raise CheckpointError(f"{name}: unk_id is {unknown!r}; wanted a number below {len(vocab)}")
    lowest = min(score for _, score in scores.values())
    spelled = _byte_ids(names, name) if model.get("byte_fallback") is True else ()
    if unknown is None and not spelled:
        raise CheckpointError(f"{name}: neither unk_id nor byte_fallback; a character without a piece has no token")
    hidden = set(special) | _CONTROL | {f"<0x{byte:02X}>" for byte in range(256 if spelled else 0)}
    if unknown is not None:
        hidden.add(vocab[unknown][0])
    kept = {piece: entry for piece, entry in scores.items() if piece and piece not in hidden}
    # Symbols that were added always win over the pieces they are made of.
    highest = max(0.0, *(score for _, score in kept.values())) + 1.0
    kept.update((symbol, (number, highest)) for symbol, number in symbols.items() if symbol)
    added = {**special, **symbols}
    size = max((len(vocab), *(number + 1 for number in added.values())))
    return Vocabulary(kept, {**added, **names}, size, unknown, lowest, spelled)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _byte_ids(names: Mapping[str, int], name: str) -> tuple[int, ...]:
    missing = [byte for byte in range(256) if f"<0x{byte:02X}>" not in names]
    if missing:
        raise CheckpointError(f"{name}: byte fallback without the piece <0x{missing[0]:02X}>")
    return tuple(names[f"<0x{byte:02X}>"] for byte in range(256))


def _added(tokens: Any, name: str) -> tuple[dict[str, int], dict[str, int]]:
    """The special tokens, and the others, with their ids."""
    found: tuple[dict[str, int], dict[str, int]] = ({}, {})
    if not isinstance(tokens, list):
        raise CheckpointError(f"{name}: added_tokens is not a list")
    for token in tokens:
        content = token.get("content") if isinstance(token, Mapping) else None
        number = token.get("id") if isinstance(token, Mapping) else None
        if not isinstance(content, str) or type(number) is not int or not 0 <= number < 2 * _MOST_PIECES:
            raise CheckpointError(f"{name}: an added token is {str(token)[:80]}; wanted an id and its content")
        found[token.get("special") is not True][content] = number
    return found
