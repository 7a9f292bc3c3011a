"""Words that the lexicon does not have: CMUdict's names, else a letters-to-sounds transformer (BART) in numpy.

Weights: data/en.oov.npz, from PeterReid/graphemes_to_phonemes_en_us (Apache-2.0), packed by tools/build_oov.py.
They were trained on the same lexicons, so a guess uses the same alphabet. Greedy decoding; the file loads on the
first unknown word.
"""

from __future__ import annotations

import re
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from sonant.errors import CheckpointError
from sonant.text.phonemize.lexicon import Lexicon
from sonant.text.phonemize.stress import PRIMARY, SECONDARY, VOWELS
from sonant.text.phonemize.suffixes_en import plural_sound

if TYPE_CHECKING:
    import numpy as np

    Linear = tuple[np.ndarray, np.ndarray]

STRESSES = PRIMARY + SECONDARY
_BOS, _EOS, _UNKNOWN, _FIRST_LETTER = 1, 2, 3, 4
_POSITION_OFFSET = 2  # BART's position table starts with two reserved rows
_EPS = 1e-5
_DRAWN_OUT = re.compile(r"(.)\1\1")
_VOWEL_LETTERS = frozenset("aeiouy")
# Longer than any word: such a run is a code, and its letters are named.
LONGEST_WORD = 40
_LETTERS = {
    "a": "ˈA", "b": "bˈi", "c": "sˈi", "d": "dˈi", "e": "ˈi", "f": "ˈɛf", "g": "ʤˈi", "h": "ˈAʧ", "i": "ˈI", "j": "ʤˈA",
    "k": "kˈA", "l": "ˈɛl", "m": "ˈɛm", "n": "ˈɛn", "o": "ˈO", "p": "pˈi", "q": "kjˈu", "r": "ˈɑɹ", "s": "ˈɛs",
    "t": "tˈi", "u": "jˈu", "v": "vˈi", "w": "dˈʌbᵊlju", "x": "ˈɛks", "y": "wˈI", "z": "zˈi",
}  # fmt: skip


class Guesser:
    """Letters → phonemes for any word of Latin letters."""

    def __init__(self, path: Path, names: Path, *, british: bool) -> None:
        self._path, self._names, self._british = path, Lexicon(names), british
        self._guess_word = lru_cache(maxsize=4096)(self._guess)

    @cached_property
    def _model(self) -> Model:
        return Model(self._path)

    def guess(self, word: str) -> str:
        """Phonemes of one word; "" when it has no letter of the Latin alphabet."""
        letters = "".join(letter for letter in word if (letter.isascii() and letter.isalpha()) or letter in "'-.")
        bare = letters.strip("'-.")
        if not bare:
            return ""
        return self._name_letters(bare) if len(bare) > LONGEST_WORD else self._guess_word(bare)

    def _name_letters(self, word: str) -> str:
        names = (_LETTERS.get(letter, "") for letter in word.lower())
        return "".join(to_british(name) if self._british else name for name in names)

    def _guess(self, bare: str) -> str:
        possessive = bare.lower().endswith("'s")
        stem = bare[:-2] if possessive else bare
        entry = self._names.get(stem.lower())
        said = entry.variants["DEFAULT"] if entry else None
        if not said and len(stem) > 1 and not _VOWEL_LETTERS & set(stem.lower()) and not _DRAWN_OUT.search(stem):
            said = self._name_letters(stem)  # https, but not brrr
        said = said or self._model.decode(stem.lower() if stem.isupper() else stem)
        said = (to_british(said) if self._british else said) or self._name_letters(stem)
        return plural_sound(said, british=self._british) if possessive and said else said


class Model:
    """The forward pass. Arrays are float16 on disk, float32 and transposed in memory; the decoder keeps its keys."""

    def __init__(self, path: Path) -> None:
        """Raises CheckpointError when the file is missing or lacks an array."""
        import numpy as np

        try:
            with np.load(path, allow_pickle=False) as file:
                raw = {name: file[name] for name in file.files}
            self._graphemes = {letter: i for i, letter in enumerate(str(raw["graphemes"])) if i >= _FIRST_LETTER}
            self._phonemes = str(raw["phonemes"])
            w = {name: array.astype(np.float32) for name, array in raw.items() if array.dtype.kind == "f"}
            self._embedding = w["embedding"]  # [V, D]
            self._logits = (np.ascontiguousarray(w["embedding"].T), w["logit_bias"])
            self._encoder = _Side(w, "encoder", ("self",))
            self._decoder = _Side(w, "decoder", ("self", "cross"))
        except (OSError, ValueError, KeyError) as error:
            raise CheckpointError(f"guesser {path.name}: cannot be read ({error})") from error

    def decode(self, word: str) -> str:
        """Greedy phonemes; the sequence ends at the end mark or at the last position."""
        import numpy as np

        memory = self._encode([_BOS, *(self._graphemes.get(letter, _UNKNOWN) for letter in word), _EOS])
        side, limit = self._decoder, len(self._decoder.positions) - _POSITION_OFFSET
        crossed = side.keys("cross", memory)  # [N, D] twice
        keys, values = np.empty((2, limit, memory.shape[1]), np.float32)
        token, said = _BOS, []
        for at in range(limit - 1):
            x = side.embed(self._embedding[token : token + 1], at)  # [1, D]
            keys[at], values[at] = side.keys("self", x)
            x = side.attend("self", x, keys[: at + 1], values[: at + 1])
            x = side.feed_forward(side.attend("cross", x, *crossed))
            token = int((x[0] @ self._logits[0] + self._logits[1]).argmax())
            if token == _EOS:
                break
            said.append(self._phonemes[token] if _FIRST_LETTER <= token < len(self._phonemes) else "")
        return "".join(said)

    def _encode(self, ids: list[int]) -> np.ndarray:
        side = self._encoder
        x = side.embed(self._embedding[ids], 0)  # [N, D]
        return side.feed_forward(side.attend("self", x, *side.keys("self", x)))


class _Side:
    """One layer of the encoder or of the decoder: post-norm blocks, one head."""

    def __init__(self, w: dict[str, np.ndarray], side: str, attentions: tuple[str, ...]) -> None:
        import numpy as np

        def linear(name: str) -> Linear:
            return np.ascontiguousarray(w[f"{side}.{name}.weight"].T), w[f"{side}.{name}.bias"]

        def norm(name: str) -> Linear:
            return w[f"{side}.{name}.norm.weight"], w[f"{side}.{name}.norm.bias"]

        self.positions = w[f"{side}.positions"]
        self._linears = {f"{name}.{part}": linear(f"{name}.{part}") for name in attentions for part in ("q", "out")}
        for name in attentions:  # keys and values in one product
            (key, key_bias), (value, value_bias) = linear(f"{name}.k"), linear(f"{name}.v")
            self._linears[f"{name}.kv"] = np.hstack((key, value)), np.hstack((key_bias, value_bias))
        self._fc1, self._fc2 = linear("fc1"), linear("fc2")
        self._norms = {name: norm(name) for name in ("embedding", *attentions, "final")}
        self._size = self.positions.shape[1]

    def embed(self, rows: np.ndarray, at: int) -> np.ndarray:
        first = _POSITION_OFFSET + at
        return self._norm("embedding", rows + self.positions[first : first + len(rows)])

    def keys(self, name: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        both = self._apply(f"{name}.kv", x)
        return both[:, : self._size], both[:, self._size :]

    def attend(self, name: str, x: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
        """x plus what it attends to, normed."""
        import numpy as np

        scores = self._apply(f"{name}.q", x) @ keys.T * self._size**-0.5  # [M, N]
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        mixed = weights @ values / weights.sum(axis=1, keepdims=True)
        return self._norm(name, x + self._apply(f"{name}.out", mixed))

    def feed_forward(self, x: np.ndarray) -> np.ndarray:
        import numpy as np

        inner: np.ndarray = x @ self._fc1[0] + self._fc1[1]
        # x Φ(x) with Φ by the tanh form: its error, 5e-4, is far below the gaps between letters.
        inner *= 0.5 + 0.5 * np.tanh(inner * (0.7978845608 + 0.0356774081 * inner * inner))
        return self._norm("final", x + inner @ self._fc2[0] + self._fc2[1])

    def _apply(self, name: str, x: np.ndarray) -> np.ndarray:
        weight, bias = self._linears[name]
        product: np.ndarray = x @ weight
        return product + bias

    def _norm(self, name: str, x: np.ndarray) -> np.ndarray:
        import numpy as np

        centred: np.ndarray = x - x.sum(axis=1, keepdims=True) / self._size
        variance = np.einsum("nd,nd->n", centred, centred)[:, None] / self._size
        weight, bias = self._norms[name]
        normed: np.ndarray = centred / np.sqrt(variance + _EPS) * weight + bias
        return normed


_R_COLOURED = (("ɜɹ", "ɜːɹ"), ("ɑɹ", "ɑːɹ"), ("ɔɹ", "ɔːɹ"), ("ɪɹ", "ɪəɹ"), ("ɛɹ", "ɛːɹ"), ("ʊɹ", "ʊəɹ"))
_BRITISH = str.maketrans({"ɾ": "t", "ʔ": "t", "ᵻ": "ɪ", "O": "Q", "æ": "a"})
_SHORT_O_BEFORE = frozenset("fsθɡŋ")


def to_british(said: str) -> str:
    """American phonemes → British ones, as far as letters alone can tell: no r without a vowel behind it."""
    said = said.translate(_BRITISH)
    for american, british in _R_COLOURED:
        said = said.replace(american, british)
    out = []
    for at, letter in enumerate(said):
        following = said[at + 1 : at + 2]
        if letter == "ɹ" and said[at + 1 :].lstrip(STRESSES)[:1] not in VOWELS:
            continue
        if letter == "ɑ" and following != "ː":
            letter = "ɒ"
        elif letter == "ɔ" and following != "ː":
            letter = "ɒ" if following in _SHORT_O_BEFORE else "ɔː"
        elif letter in "iu" and said[at - 1 : at] and said[at - 1] in STRESSES:
            letter += "ː"
        out.append(letter)
    return "".join(out)
