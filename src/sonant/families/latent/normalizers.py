"""The normalizer and pre-tokenizer steps that a tokenizer.json may name. Any other is refused, none is guessed."""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from sonant.errors import CheckpointError
from sonant.families.latent.charsmap import CharsMap
from sonant.families.latent.traced import Traced

Step = Callable[[Traced], Traced]
Split = Callable[[list[Traced], int], list[Traced]]
_LONGEST_PATTERN = 2000
Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
_FORMS: tuple[Form, ...] = ("NFC", "NFD", "NFKC", "NFKD")
# What "Nmt" takes away, and what it makes a space.
_NMT_DROPPED = dict.fromkeys(map(chr, (*range(1, 9), 0x0B, *range(0x0E, 0x20), 0x7F, 0x8F, 0x9F)), "")
_NMT_SPACES = dict.fromkeys(
    map(chr, (9, 10, 12, 13, 0x1680, *range(0x200B, 0x2010), 0x2028, 0x2029, 0x2581, 0xFEFF, 0xFFFD)), " "
)
_CLASS = re.compile(r"\\([pP])\{(\^?)(\w{1,2})\}")
_DIGIT = re.compile(r"\d")
_DIGITS = re.compile(r"\d+")


def read_normalizer(spec: Any, name: str) -> Step:
    """The function that a `normalizer` entry describes; None stands for "leave it". Raises CheckpointError."""
    if spec is None:
        return lambda text: text
    kind = _kind(spec, "normalizer", name)
    if kind == "Sequence":
        steps = [read_normalizer(part, name) for part in _list(spec, "normalizers", name)]
        return lambda text: _run(steps, text)
    if kind == "Replace":
        pattern, new = read_pattern(spec.get("pattern"), name), _text(spec, "content", name)
        return lambda text: text.sub(pattern, new)
    if kind == "Prepend":
        front = _text(spec, "prepend", name)
        return lambda text: Traced.made(front, text.start, text.start) + text if text else text
    if kind == "Strip":
        left, right = spec.get("strip_left", True) is True, spec.get("strip_right", True) is True
        return lambda text: _stripped(text, left, right)
    if kind == "Precompiled":
        chars = CharsMap(_base64(spec, name), name)
        return lambda text: mapped(text, chars)
    if kind in _FORMS:
        form = _FORMS[_FORMS.index(kind)]
        return lambda text: composed(text, form)
    simple = _SIMPLE.get(kind)
    if simple is None:
        raise CheckpointError(f"{name}: normalizer {kind!r} is not known; known are {', '.join(sorted(_KNOWN))}")
    return simple


def read_split(spec: Any, name: str) -> Split:
    """The function that a `pre_tokenizer` entry describes. Raises CheckpointError."""
    if spec is None:
        return lambda parts, origin: parts
    kind = _kind(spec, "pre-tokenizer", name)
    if kind == "Sequence":
        steps = [read_split(part, name) for part in _list(spec, "pretokenizers", name)]
        return lambda parts, origin: _split_all(steps, parts, origin)
    if kind == "Metaspace":
        return _metaspace(spec, name)
    if kind == "WhitespaceSplit":
        return lambda parts, origin: [word for part in parts for word in part.split()]
    if kind == "Digits":
        pattern = _DIGIT if spec.get("individual_digits") is True else _DIGITS
        return lambda parts, origin: [piece for part in parts for piece in _isolated(part, pattern)]
    raise CheckpointError(
        f"{name}: pre-tokenizer {kind!r} is not known; known are Digits, Metaspace, Sequence, WhitespaceSplit"
    )


def read_pattern(spec: Any, name: str) -> re.Pattern[str]:
    """{"String": …} or {"Regex": …}. A regex that Python has no way to say is a CheckpointError."""
    if isinstance(spec, Mapping) and len(spec) == 1:
        (kind, text), = spec.items()
        if isinstance(text, str) and 0 < len(text) <= _LONGEST_PATTERN:
            if kind == "String":
                return re.compile(re.escape(text))
            if kind == "Regex":
                try:
                    return re.compile(_CLASS.sub(_expanded, text))
                except (re.error, OverflowError, RecursionError) as error:
                    raise CheckpointError(f"{name}: the pattern {text!r} cannot be read: {error}") from error
    raise CheckpointError(f"{name}: a pattern is {str(spec)[:80]}; wanted one of String and Regex, not empty")


def mapped(text: Traced, chars: CharsMap) -> Traced:
    """Every stretch that the character map knows turned into its replacement, the longest first, as SentencePiece does.

    `tokenizers` looks up whole graphemes and loses a mark behind a mapped letter (ｂ with an accent); here it stays.
    """
    parts: list[Traced] = []
    kept = at = 0
    while at < len(text):
        found = chars.longest(text.text, at)
        if found is None:
            at += 1
            continue
        parts += (text[kept:at], text[at : at + found[0]].turned(found[1]))
        kept = at = at + found[0]
    return Traced.join((*parts, text[kept:])) if parts else text


def composed(text: Traced, form: Form) -> Traced:
    """A Unicode normal form; a changed stretch came from all the characters that it was made of."""
    if text.text.isascii() or unicodedata.is_normalized(form, text.text):
        return text
    new = unicodedata.normalize(form, text.text)
    clusters = [match.span() for match in _clusters().finditer(text.text)]
    pieces = [unicodedata.normalize(form, text.text[a:b]) for a, b in clusters]
    if "".join(pieces) == new:
        whole = ((text[a:b], piece) for (a, b), piece in zip(clusters, pieces, strict=True))
        return Traced.join(part if part.text == piece else part.turned(piece) for part, piece in whole)
    return text.respelled(new)


@lru_cache(maxsize=1)
def _clusters() -> re.Pattern[str]:
    """A character with the marks that follow it; the vowels and finals of Hangul join their syllable likewise."""
    marks = _ranges(lambda c: unicodedata.combining(c) > 0 or "\u1160" <= c <= "\u11ff")
    return re.compile(f"(?s).[{marks}]*")


@lru_cache(maxsize=64)
def _category(name: str) -> str:
    return _ranges(lambda c: unicodedata.category(c).startswith(name))


def _ranges(wanted: Callable[[str], bool]) -> str:
    """The inside of a character class with every character that is wanted."""
    found: list[str] = []
    start = None
    for code in range(0x110001):
        inside = code < 0x110000 and wanted(chr(code))
        if inside and start is None:
            start = code
        elif not inside and start is not None:
            found.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = None
    return "".join(found)


def _expanded(match: re.Match[str]) -> str:
    r"""\p{L} written out, within brackets or on its own; Python's re has no such classes."""
    inside = _category(match[3])
    if not inside:
        raise re.error(f"unknown class {match[0]}")
    before = re.sub(r"\\.", "", match.string[: match.start()])
    in_brackets = before.rfind("[") > before.rfind("]")
    is_negative = (match[1] == "P") != bool(match[2])
    if in_brackets and is_negative:
        raise re.error(f"{match[0]} within brackets")
    return inside if in_brackets else f"[{'^' if is_negative else ''}{inside}]"


def _run(steps: Sequence[Step], text: Traced) -> Traced:
    for step in steps:
        text = step(text)
    return text


def _split_all(steps: Sequence[Split], parts: list[Traced], origin: int) -> list[Traced]:
    for step in steps:
        parts = step(parts, origin)
    return parts


def _stripped(text: Traced, left: bool, right: bool) -> Traced:
    if left:
        text = text[len(text) - len(text.text.lstrip()) :]
    return text.rstrip() if right else text


def _metaspace(spec: Mapping[str, Any], name: str) -> Split:
    sign = spec.get("replacement", "▁")
    scheme = spec.get("prepend_scheme", "always" if spec.get("add_prefix_space", True) else "never")
    if scheme not in ("always", "first", "never") or not isinstance(sign, str) or len(sign) != 1:
        raise CheckpointError(f"{name}: Metaspace has scheme {scheme!r} and sign {sign!r}; neither can be used")
    cuts = spec.get("split", True) is not False
    starts = re.compile(f"{re.escape(sign)}?[^{re.escape(sign)}]*")

    def split(parts: list[Traced], origin: int) -> list[Traced]:
        found: list[Traced] = []
        for part in parts:
            part = part.translate({" ": sign})
            wanted = scheme == "always" or (scheme == "first" and part.start == origin)
            if part and wanted and not part.text.startswith(sign):
                part = Traced.made(sign, part.start, part.start) + part
            found += [part[m.start() : m.end()] for m in starts.finditer(part.text) if m[0]] if cuts else [part]
        return found

    return split


def _isolated(text: Traced, pattern: re.Pattern[str]) -> list[Traced]:
    """The matches and what is between them."""
    found = []
    at = 0
    for match in pattern.finditer(text.text):
        found += [text[at : match.start()], text[match.start() : match.end()]]
        at = match.end()
    return [part for part in (*found, text[at:]) if part]


def _without_accents(text: Traced) -> Traced:
    return text.translate({c: "" for c in set(text.text) if unicodedata.category(c).startswith("M")})


def _lower(text: Traced) -> Traced:
    return text.translate({c: c.lower() for c in set(text.text) if c.lower() != c})


_SIMPLE: dict[str, Step] = {
    "StripAccents": _without_accents,
    "Lowercase": _lower,
    "Nmt": lambda text: text.translate(_NMT_DROPPED | _NMT_SPACES),
}
_KNOWN = (*_FORMS, *_SIMPLE, "Precompiled", "Prepend", "Replace", "Sequence", "Strip")


def _kind(spec: Any, what: str, name: str) -> str:
    kind = spec.get("type") if isinstance(spec, Mapping) else None
    if not isinstance(kind, str):
        raise CheckpointError(f"{name}: a {what} is {str(spec)[:80]}; wanted an object with a type")
    return kind


def _list(spec: Mapping[str, Any], key: str, name: str) -> list[Any]:
    found = spec.get(key)
    if not isinstance(found, list) or len(found) > 10_000:
        raise CheckpointError(f"{name}: {key} is {str(found)[:80]}; wanted a list")
    return found


def _text(spec: Mapping[str, Any], key: str, name: str) -> str:
    found = spec.get(key)
    if not isinstance(found, str):
        raise CheckpointError(f"{name}: {key} of {spec.get('type')} is {str(found)[:80]}; wanted a string")
    return found


def _base64(spec: Mapping[str, Any], name: str) -> bytes:
    try:
        return base64.b64decode(_text(spec, "precompiled_charsmap", name), validate=True)
    except (binascii.Error, ValueError) as error:
        raise CheckpointError(f"{name}: the character map is not base64: {error}") from error
