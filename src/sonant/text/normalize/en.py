"""English: source words → tokens to speak. Each rule looks at the words from one on and may take several.

Numbers and their kin are in quantities_en.py, the tables in tables_en.py. A rule never sees the attached marks of a
word; it may only drop the dot of an abbreviation.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence

from sonant.text.lexicon_file import UserLexicon
from sonant.text.normalize import numbers_en as numbers
from sonant.text.normalize import quantities_en as quantities
from sonant.text.normalize import tables_en as tables
from sonant.text.normalize.given_en import NOTHING, Known, listed, stretch_tokens, with_listed
from sonant.text.normalize.written_en import Written, lone_marks, marks, take_apart
from sonant.text.spans import SAID, SPELLED, SourceWord, Token

Bodies = list[list[Token]]
Rule = Callable[[list[Written], int], "Bodies | None"]

_INITIALS = re.compile(r"[^\W\d_]{1,2}(?:\.[^\W\d_]{1,2})+$")
_ROMAN = re.compile(r"(?:X{0,3})(?:IX|IV|V?I{0,3})$")
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+$|[\w.+-]+@[\w-]+(?:\.[\w-]+)+$", re.IGNORECASE)
_DOMAIN = re.compile(r"(?:[\w-]+\.)+([a-z]{2,4})(?:[/:?]\S*)?$", re.IGNORECASE)
_PARTS = re.compile(r"[^\W\d_²³]+(?:[-'][^\W\d_²³]+)*'?|\d+|.", re.DOTALL)
_PIECES = re.compile(r"'n'$|[^\W\d_]+(?:'[^\W\d_]+)*'?|[-']")
_SPELLED_BESIDE_AND = 3  # AT&T, R&D
_DASHES = re.compile(r"--+|–")
_DAY_HALF = re.compile(r"[ap]\.?m\.?$", re.IGNORECASE)


def normalize(words: Sequence[SourceWord], *, british: bool = False, known: Known = NOTHING) -> list[Token]:
    """Tokens of one sentence, in order; a source word without tokens is silent."""
    line = take_apart(words)
    rules = _rules(british, known.lexicon)
    tokens: list[Token] = []
    i = 0
    while i < len(line):
        if i in known.stretches:
            tokens += stretch_tokens(words[i], i, known.stretches[i], british=british)
            i += 1
            continue
        if not line[i].core:
            tokens += lone_marks(line[i])
            i += 1
            continue
        for body in next(found for rule in rules if (found := rule(line, i)) is not None):
            if i not in known.stretches:  # a rule that takes two words takes no given one
                tokens += marks(line[i].lead, i, opening=True)
                tokens += body
                tokens += marks(line[i].tail, i, opening=False)
                i += 1
    return with_listed(tokens, known.lexicon) if known.lexicon else tokens


def _rules(british: bool, lexicon: UserLexicon | None) -> tuple[Rule, ...]:
    def in_lexicon(line: list[Written], i: int) -> Bodies | None:
        found = listed(line, i, lexicon, british=british) if lexicon else None
        return None if found is None else [found]

    def dated(line: list[Written], i: int) -> Bodies | None:
        return quantities.numeric_date(line, i, day_first=british)

    return (
        *((in_lexicon,) if lexicon else ()),
        address,
        dated,
        quantities.quantity,
        number_sign,
        day_half,
        title,
        roman,
        initials,
        initial,
        symbol,
        plain_word,
    )


def address(line: list[Written], i: int) -> Bodies | None:
    """Mail and web addresses, character class by character class."""
    core = line[i].core
    domain = _DOMAIN.match(core)
    if not _ADDRESS.match(core) and not (domain and domain[1].lower() in tables.DOMAINS and not core[0].isdecimal()):
        return None
    core = re.sub(r"^https?://", "", core, flags=re.IGNORECASE)
    return [[token for part in re.findall(r"[^\W\d_]+|\d+|.", core) for token in _address_part(part, line[i].index)]]


def _address_part(part: str, index: int) -> list[Token]:
    if part.isdecimal():
        return [Token(numbers.grouped(part), index, SAID)]
    if part in tables.ADDRESS_SYMBOLS:
        return [Token(tables.ADDRESS_SYMBOLS[part], index, SAID)]
    if part.lower() == "www":
        return [Token("www", index, SPELLED, spoken="w w w")]
    if not part.isalpha():
        return []
    # Short unknown parts of an address are spelled, but .gov is said as a word.
    return [Token(part, index, tag=None if part.lower() == "gov" else "ADD")]


def number_sign(line: list[Written], i: int) -> Bodies | None:
    """No. 5 → number five; a "no." without a number is a no."""
    after = line[i + 1].core if i + 1 < len(line) else ""
    if line[i].core not in ("No", "Nos", "no", "nos") or not line[i].tail.startswith(".") or not after[:1].isdecimal():
        return None
    line[i].drop_dot()
    return [[Token("No.", line[i].index, spoken="number" if line[i].lower == "no" else "numbers")]]


def day_half(line: list[Written], i: int) -> Bodies | None:
    """am, p.m. after a time."""
    before = line[i - 1].core if i else ""
    if not _DAY_HALF.match(line[i].core) or not (before[-1:].isdecimal() or "." in line[i].core):
        return None
    line[i].drop_dot()
    letters = line[i].core.replace(".", "").upper()
    return [[Token(letters, line[i].index, SPELLED, spoken=" ".join(letters.lower()))]]


def title(line: list[Written], i: int) -> Bodies | None:
    """Abbreviations with a dot, and the few that go without one."""
    written = line[i]
    dotted = written.tail.startswith(".")
    key = written.lower + "."
    after = line[i + 1] if i + 1 < len(line) else None
    if written.core == "St" and dotted:
        is_saint = after and after.is_capital and (written.lead or not _is_name_before(line, i))
        said = ("saint" if is_saint else "street", "")
    elif key in tables.ABBREVIATIONS and (dotted or _goes_without_dot(written)):
        if not _is_in_place(key, written, after):
            return None
        said = tables.ABBREVIATIONS[key]
    else:
        return None
    if dotted:
        written.drop_dot()
    text, shown = said
    return [[Token(text, written.index, spoken=shown)]]


def _is_name_before(line: list[Written], i: int) -> bool:
    return i > 0 and line[i - 1].is_capital and not line[i - 1].tail and line[i - 1].lower not in ("the", "in", "at")


def _goes_without_dot(written: Written) -> bool:
    return written.lower in tables.WITHOUT_DOT and not (written.core.isupper() and written.core != "VS")


def _is_in_place(key: str, written: Written, after: Written | None) -> bool:
    """Whether the words around allow the abbreviation: "Rep. Smith", "fig. 3", "in Jan."."""
    following = after.core[:1] if after else ""
    if key == "al.":
        return written.core == "al"
    if key in tables.NUMBER_LABELS:
        return following.isdecimal() or (following.isupper() and written.is_capital and key != "p.")
    if key in tables.NEED_CAPITAL:
        return written.is_capital and (following.isupper() or following.isdecimal() or key in ("co.", "inc.", "corp."))
    return written.is_capital or key not in tables.OWN_CAPITAL


def roman(line: list[Written], i: int) -> Bodies | None:
    """World War II → two, Henry VIII → the eighth, Henry the VIII → eighth; never the pronoun I."""
    core = line[i].core
    if not i or not _ROMAN.match(core) or line[i - 1].tail:
        return None
    before = line[i - 1].lower
    has_article = before == "the" and i > 1 and line[i - 2].lower in tables.REGNAL
    regnal = has_article or before in tables.REGNAL
    if not (has_article or line[i - 1].is_capital):
        return None
    if len(core) == 1 and before not in tables.NUMBERED and not (regnal and (core != "I" or line[i].tail)):
        return None
    value = str(_roman_value(core))
    if regnal:
        said = numbers.ordinal(value) if has_article else f"the {numbers.ordinal(value)}"
        return [[Token(said, line[i].index, SAID)]]
    said = numbers.cardinal(value)
    return [[Token(said, line[i].index, SAID, spoken=said.title())]]


def _roman_value(core: str) -> int:
    values = [{"I": 1, "V": 5, "X": 10}[letter] for letter in core]
    following = [*values[1:], 0]
    return sum(-value if value < after else value for value, after in zip(values, following, strict=True))


def initials(line: list[Written], i: int) -> Bodies | None:
    """U.S., e.g., Ph.D.: letter by letter. The last dot is theirs."""
    if not _INITIALS.match(line[i].core):
        return None
    line[i].drop_dot()
    letters = line[i].core.replace(".", "")
    return [[Token(letters, line[i].index, SPELLED, spoken=" ".join(letters))]]


def initial(line: list[Written], i: int) -> Bodies | None:
    """The J of J. Smith: its dot is no pause."""
    written = line[i]
    if len(written.core) != 1 or not written.core.isupper() or not written.tail.startswith(".") or written.last:
        return None
    written.drop_dot()
    return [[Token(written.core, written.index, tag="NNP")]]


def symbol(line: list[Written], i: int) -> Bodies | None:
    """A symbol on its own."""
    core = line[i].core
    if core not in tables.SYMBOLS:
        return None
    said = tables.SYMBOLS[core]
    return [[Token(said, line[i].index, SAID)]] if said else [[]]


def plain_word(line: list[Written], i: int) -> Bodies:
    """Everything else: words, joined words, digits among letters. Always matches."""
    index = line[i].index
    core = _DASHES.sub("—", line[i].core)
    if core in ("a", "A") and line[i].tail.startswith(")"):  # a letter that numbers a list
        return [[Token(core, index, tag="NN")]]
    if len(core) == 1 and (name := unicodedata.name(core, "")).startswith("GREEK"):
        return [[Token(name.split(" WITH ")[0].split()[-1].lower(), index)]]
    if core[0] == "'" and core[1:].rstrip("'").isalpha():  # 'tis, 'em, 'n'
        return [word_tokens(core, index)]
    parts = _PARTS.findall(core)
    tokens: list[Token] = []
    for at, part in enumerate(parts):
        before, after = parts[at - 1] if at else "", parts[at + 1] if at + 1 < len(parts) else ""
        if part[0].isalpha():
            spelled = "&" in (before, after) and part.isupper() and len(part) <= _SPELLED_BESIDE_AND
            tokens += [Token(part, index, SPELLED, spoken=" ".join(part))] if spelled else word_tokens(part, index)
        elif part.isdecimal():
            between = before[-1:].isalpha() and after[:1].isalpha()
            tokens.append(Token("to" if part == "2" and between else numbers.grouped(part), index, SAID))
        else:
            tokens += _joint(part, before, after, index)
    return [tokens]


def _joint(part: str, before: str, after: str, index: int) -> list[Token]:
    """What stands between the parts of a word."""
    if part == "." and before and after[:1].islower():
        return [Token("dot", index, SAID)]
    if part in tables.SYMBOLS and tables.SYMBOLS[part] and (before or after):
        return [Token(tables.SYMBOLS[part], index, SAID)]
    return marks(part, index, opening=part in '"([{' and not before)


def word_tokens(word: str, index: int) -> list[Token]:
    """A word of letters, hyphens and apostrophes as glued tokens: pieces that may be looked up apart."""
    pieces = [piece for run in _PIECES.findall(word) for piece in _humps(run)]
    return [Token(piece, index, glued=at > 0) for at, piece in enumerate(pieces)]


def _humps(run: str) -> list[str]:
    """iPhone → i, Phone; a single capital before a capitalised word stands apart."""
    if run.islower() or run.isupper() or (run[1:].islower() and run[0].isupper()):
        return [run]
    cuts = [0]
    for at in range(1, len(run)):
        hump = run[at].isupper() and run[at - 1].islower()
        # The last capital of a row begins the next word (USAGov), unless only a plural follows (APIs).
        row_ends = run[at].isupper() and run[at - 1].isupper() and run[at + 1 : at + 2].islower()
        if hump or (row_ends and (at == 1 or (run[at + 1 : at + 3].islower() and len(run) > at + 2))):
            cuts.append(at)
    return [run[start:end] for start, end in zip(cuts, [*cuts[1:], len(run)], strict=True)]
