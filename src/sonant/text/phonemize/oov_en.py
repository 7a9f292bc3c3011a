"""Words that no lexicon has: a small letters-to-sounds transformer (BART, one layer each way) in numpy.

Weights: data/en.oov.npz, from PeterReid/graphemes_to_phonemes_en_us (Apache-2.0), packed by tools/build_oov.py.
They were trained on the same lexicons, so a guess uses the same alphabet. Greedy decoding; the file loads on the
first unknown word.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sonant.errors import CheckpointError
from sonant.text.phonemize.stress import PRIMARY, SECONDARY, VOWELS
from sonant.text.phonemize.suffixes_en import plural_sound

if TYPE_CHECKING:
    import numpy as np

STRESSES = PRIMARY + SECONDARY
_BOS, _EOS, _UNKNOWN, _FIRST_LETTER = 1, 2, 3, 4
_POSITION_OFFSET = 2  # BART's position table starts with two reserved rows
_EPS = 1e-5
# Longer than any word: such a run is a code, and its letters are named.
LONGEST_WORD = 40
_LETTERS = {
    "a": "ˈA", "b": "bˈi", "c": "sˈi", "d": "dˈi", "e": "ˈi", "f": "ˈɛf", "g": "ʤˈi", "h": "ˈAʧ", "i": "ˈI", "j": "ʤˈA",
    "k": "kˈA", "l": "ˈɛl", "m": "ˈɛm", "n": "ˈɛn", "o": "ˈO", "p": "pˈi", "q": "kjˈu", "r": "ˈɑɹ", "s": "ˈɛs",
    "t": "tˈi", "u": "jˈu", "v": "vˈi", "w": "dˈʌbᵊlju", "x": "ˈɛks", "y": "wˈI", "z": "zˈi",
}  # fmt: skip


class Guesser:
    """Letters → phonemes for any word of Latin letters."""

    def __init__(self, path: Path, *, british: bool) -> None:
        self._path, self._british = path, british
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
        said = self._model.decode(stem.lower() if stem.isupper() else stem)
        said = (to_british(said) if self._british else said) or self._name_letters(stem)
        return plural_sound(said, british=self._british) if possessive and said else said


class Model:
    """The forward pass. Arrays are float32 in memory, float16 on disk."""

    def __init__(self, path: Path) -> None:
        """Raises CheckpointError when the file is missing or lacks an array."""
        import numpy as np

        try:
            with np.load(path, allow_pickle=False) as file:
                self._w = {name: file[name].astype(np.float32) for name in file.files if file[name].dtype.kind == "f"}
                self._graphemes = {letter: i for i, letter in enumerate(str(file["graphemes"])) if i >= _FIRST_LETTER}
                self._phonemes = str(file["phonemes"])
        except (OSError, ValueError, KeyError) as error:
            raise CheckpointError(f"guesser {path.name}: cannot be read ({error})") from error
        self._limit = self._w["encoder.positions"].shape[0] - _POSITION_OFFSET
        self._scale = self._w["embedding"].shape[1] ** -0.5

    def decode(self, word: str) -> str:
        """Greedy phonemes; the sequence ends at the end mark or at the last position."""
        import numpy as np

        memory = self._encode([_BOS, *(self._graphemes.get(letter, _UNKNOWN) for letter in word), _EOS])
        crossed = self._keys("decoder.cross", memory)  # [N, D] twice
        keys = values = np.zeros((0, memory.shape[1]), np.float32)
        token, said = _BOS, []
        for at in range(self._limit - 1):
            x = self._embed("decoder", [token], at)  # [1, D]
            key, value = self._keys("decoder.self", x)
            keys, values = np.concatenate([keys, key]), np.concatenate([values, value])
            x = self._norm("decoder.self.norm", x + self._attend("decoder.self", x, keys, values))
            x = self._norm("decoder.cross.norm", x + self._attend("decoder.cross", x, *crossed))
            x = self._feed_forward("decoder", x)
            token = int((x[0] @ self._w["embedding"].T + self._w["logit_bias"]).argmax())
            if token == _EOS:
                break
            said.append(self._phonemes[token] if _FIRST_LETTER <= token < len(self._phonemes) else "")
        return "".join(said)

    def _encode(self, ids: list[int]) -> np.ndarray:
        x = self._embed("encoder", ids, 0)  # [N, D]
        x = self._norm("encoder.self.norm", x + self._attend("encoder.self", x, *self._keys("encoder.self", x)))
        return self._feed_forward("encoder", x)

    def _embed(self, side: str, ids: list[int], at: int) -> np.ndarray:
        first = _POSITION_OFFSET + at
        x = self._w["embedding"][ids] + self._w[f"{side}.positions"][first : first + len(ids)]
        return self._norm(f"{side}.embedding.norm", x)

    def _keys(self, name: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self._linear(f"{name}.k", x), self._linear(f"{name}.v", x)

    def _attend(self, name: str, x: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
        import numpy as np

        scores = self._linear(f"{name}.q", x) @ keys.T * self._scale  # [M, N]
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return self._linear(f"{name}.out", weights / weights.sum(axis=1, keepdims=True) @ values)

    def _feed_forward(self, side: str, x: np.ndarray) -> np.ndarray:
        inner = _gelu(self._linear(f"{side}.fc1", x))
        return self._norm(f"{side}.final.norm", x + self._linear(f"{side}.fc2", inner))

    def _linear(self, name: str, x: np.ndarray) -> np.ndarray:
        return x @ self._w[f"{name}.weight"].T + self._w[f"{name}.bias"]

    def _norm(self, name: str, x: np.ndarray) -> np.ndarray:
        import numpy as np

        centred = x - x.mean(axis=1, keepdims=True)
        spread = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + _EPS)
        return centred / spread * self._w[f"{name}.weight"] + self._w[f"{name}.bias"]


def _gelu(x: Any) -> Any:
    """x Φ(x) with Φ by the tanh form: its error, 5e-4, is far below the gaps between letters."""
    import numpy as np

    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


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
