"""Addresses: a.b@gra-dium.fr → a dot b at gra dash dium dot F-R; https://x.io/v2 → H-T-T-P-S colon slash slash …"""

from __future__ import annotations

import re

from sonant.families.latent.normalize.languages import Language, word_list
from sonant.families.latent.normalize.numbers import ENDS

_END = f"(?P<end>[{re.escape(ENDS)}]*)"
_LABEL = r"[^\W_]|-"
_EMAIL = re.compile(rf"(?P<user>[A-Za-z0-9._+-]+)@(?P<domain>[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+){_END}")
_WEB = re.compile(
    rf"(?P<scheme>https?://)?(?P<domain>(?:{_LABEL})+(?:\.(?:{_LABEL})+)+)(?P<path>/(?:{_LABEL}|/)*)?{_END}"
)
_UNIT = re.compile(r"[-/._+]|[0-9]|[^-/._+0-9]+")
_EMAIL_UNIT = re.compile(r"[-._+]|[^-._+]+")


def email(word: str, language: Language) -> str | None:
    """An e-mail address; any domain of two labels or more will do."""
    match = _EMAIL.fullmatch(word)
    if not match:
        return None
    domain, _, top = match["domain"].rpartition(".")
    words = [*_spoken(_EMAIL_UNIT, match["user"], language), language.at, *_spoken(_EMAIL_UNIT, domain, language)]
    return " ".join((*words, language.dot, _short(top))) + match["end"]


def web_address(word: str, language: Language) -> str | None:
    """A web address whose last label is a domain of the world; it.Now is a sentence that lost its space."""
    match = _WEB.fullmatch(word)
    if not match:
        return None
    labels = match["domain"].split(".")
    top = labels[-1]
    if top.lower() not in word_list("domains"):
        return None
    if not match["scheme"] and labels[0].lower() != "www" and any(map(str.isupper, top)) and any(map(str.islower, top)):
        return None
    words = []
    if match["scheme"]:
        words = ["-".join(match["scheme"][:-3].upper()), language.colon, language.slash, language.slash]
    for number, label in enumerate(labels):
        words += [language.dot] if number else []
        words += (_short(unit) for unit in _spoken(_UNIT, label, language, is_web=True))
    words += (_short(unit) for unit in _spoken(_UNIT, match["path"] or "", language, is_web=True))
    return " ".join(words) + match["end"]


def _spoken(units: re.Pattern[str], text: str, language: Language, *, is_web: bool = False) -> list[str]:
    names = {"-": language.dash, ".": language.dot, "_": language.underscore, "+": language.plus, "/": language.slash}
    return [names.get(unit, unit) for unit in units.findall(text)]


def _short(label: str) -> str:
    """Two letters are spelled, and so is www."""
    if label in ("www", "WWW") or (len(label) == 2 and label.isascii()):
        return "-".join(label.upper())
    return label
