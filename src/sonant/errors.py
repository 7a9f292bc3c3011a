"""The error tree.

SonantError
├── InputError            what the caller passed is wrong (text, option, voice name)
│   ├── UnknownName       a name that no catalogue, voice list or option has; carries the nearest ones
│   └── TextError         text that cannot be read as asked (bad markup, impossible piece)
├── CheckpointError       a weight, voice or lexicon file is missing, truncated, malformed or refused
├── ProgramError          a Program breaks a rule of the opset (a bug in a family or a pass)
├── BackendError          a backend cannot run this Program on this machine
├── MissingExtra          an optional package is not installed; says the pip command
└── Cancelled             the run was cancelled by its owner
"""

from __future__ import annotations

from collections.abc import Iterable


class SonantError(Exception):
    """Base of every error that sonant raises on purpose."""


class InputError(SonantError, ValueError):
    """What the caller passed is wrong; the message says what came, what was wanted and what to do."""


class UnknownName(InputError):
    """A name that is not in the list it was looked up in."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind, self.name, self.known = kind, name, sorted(known)
        import difflib  # only where something went wrong

        near = difflib.get_close_matches(name, self.known, n=3, cutoff=0.5)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        shown = ", ".join(self.known[:20]) + (", …" if len(self.known) > 20 else "")
        super().__init__(f"unknown {kind} {name!r}{hint} Known: {shown or 'none'}")


class TextError(InputError):
    """Text that cannot be read the way the caller asked."""


class CheckpointError(SonantError):
    """A weight, voice or lexicon file is missing, truncated, malformed or refused."""


class ProgramError(SonantError):
    """A Program breaks a rule of the opset."""


class BackendError(SonantError):
    """A backend cannot run this Program on this machine."""


class MissingExtra(SonantError, ImportError):
    """An optional package is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{what} needs an optional package: pip install 'sonant[{extra}]'")


class Cancelled(SonantError):
    """The run was cancelled by its owner; no result exists."""
