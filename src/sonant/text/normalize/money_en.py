"""English money: $5.30, -€6.9 million, $10–20, 50 USD, a $3 million deal, 99¢."""

from __future__ import annotations

import re

from sonant.text.normalize import numbers_en as numbers
from sonant.text.normalize import tables_en as tables
from sonant.text.normalize.written_en import Bodies, Written, is_attribute, say, trailing

CURRENCY = "|".join(sorted(map(re.escape, tables.CURRENCIES), key=len, reverse=True))
_AMOUNT = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(k|m|bn|b|tn|K|M|B|T)?$")
_CODE_FIRST = re.compile(rf"({'|'.join(tables.CURRENCY_CODES)})(\d.*)$")
_CODE_LAST = re.compile(rf"(\d.*?)({'|'.join(tables.CURRENCY_CODES)})$")


def money(line: list[Written], i: int, match: re.Match[str], sign: str) -> Bodies | None:
    """$5 → five dollars; $5.30 → five dollars and thirty cents; $5.3 billion → five point three billion dollars."""
    one, many, cent, cents = tables.CURRENCIES[match["currency"]]
    suffix = match["suffix"].removesuffix("+")
    scale = tables.SCALES.get(suffix, "")
    rest = [] if scale else trailing(line[i], suffix)
    if rest is None:
        return None
    said = f"{tables.SIGNS[sign]} " if sign else ""
    amount = match["number"]
    after = line[i + 1] if i + 1 < len(line) and not line[i].tail and not match["suffix"] else None
    in_words = after is not None and after.lower in tables.SCALE_WORDS
    if suffix != match["suffix"]:
        rest = [*(rest or []), *say(line[i], "plus")]
    if is_attribute(line, i, i + in_words):
        many = one
    if match["second"]:
        said += f"{money_number(amount)} to {money_number(match['second'])}"
    elif not scale and not in_words:
        return [[*say(line[i], said + _coins(amount, one, many, cent, cents)), *rest]]
    else:
        said += money_number(amount)
    if after and in_words:
        return [say(line[i], said), say(after, f"{after.lower} {many}")]
    return [[*say(line[i], f"{said} {scale} {many}" if scale else f"{said} {many}"), *rest]]


def money_number(number: str) -> str:
    """Amounts are never years."""
    whole, _, fraction = number.replace(",", "").partition(".")
    return numbers.decimal(whole, fraction) if fraction else numbers.cardinal(whole)


def _coins(amount: str, one: str, many: str, cent: str, cents: str) -> str:
    whole, _, fraction = amount.replace(",", "").partition(".")
    if len(fraction) > 2 or not cent:
        return f"{money_number(amount)} {many}"
    small = int(fraction.ljust(2, "0")) if fraction else 0
    big = whole.lstrip("0")
    parts = []
    if big or not small:
        parts.append(f"{numbers.cardinal(whole)} {one if big == '1' else many}")
    if small:
        parts.append(f"{numbers.cardinal(str(small))} {cent if small == 1 else cents}")
    return " and ".join(parts)


def behind(line: list[Written], i: int, number: str, symbol: str) -> Bodies | None:
    """5€, 3.50 €: the sign of the currency comes last, in the word or in the next one."""
    if symbol in tables.CURRENCIES:
        return [say(line[i], _coins(number, *tables.CURRENCIES[symbol]))]
    after = line[i + 1] if not symbol and i + 1 < len(line) and not line[i].tail else None
    if after is None or after.core not in tables.CURRENCIES or after.lead or "." not in number:
        return None
    return [say(line[i], _coins(number, *tables.CURRENCIES[after.core])), []]


def coded(line: list[Written], i: int) -> Bodies | None:
    """50 USD, EUR 30, CHF20: amounts with the code of a currency."""
    core = line[i].core
    is_next = i + 1 < len(line) and line[i].tail in ("", ".") and not line[i + 1].lead
    after = line[i + 1] if is_next and (not line[i].tail or core == "Rs") else None
    if match := _CODE_FIRST.match(core):
        code, amount = match.groups()
    elif match := _CODE_LAST.match(core):
        amount, code = match.groups()
    elif after and core in tables.CURRENCY_CODES and _AMOUNT.match(after.core):
        line[i].drop_dot()
        amount, name = _coded(after.core, core, parted=True).split("\n")
        return [say(line[i], amount), say(after, name)]
    elif after and after.core in tables.CURRENCY_CODES and _AMOUNT.match(core):
        amount, name = _coded(core, after.core, parted=True).split("\n")
        return [say(line[i], amount), say(after, name)]
    else:
        return None
    return [say(line[i], _coded(amount, code))] if _AMOUNT.match(amount) else None


def _coded(amount: str, code: str, *, parted: bool = False) -> str:
    one, many = tables.CURRENCY_CODES[code]
    digits = amount.rstrip("kmbtnKMBT")
    said = money_number(digits)
    if scale := tables.SCALES.get(amount[len(digits) :]):
        said += " " + scale
    return said + ("\n" if parted else " ") + (one if amount == "1" else many)
