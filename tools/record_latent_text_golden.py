"""Record what the official packages make of texts: tests/families/latent/data.

Needs, in a virtual environment of its own, ptts 0.4.2, pocket_tts 4.0.1, tokenizers and sentencepiece, and a Phonon
checkpoint as a folder (random weights will do: config.json, model.safetensors):

    PYTHONPATH=src python tools/record_latent_text_golden.py FOLDER

normalize_golden.json.gz   [language, text, none, default, all] from ptts.normalize; null: as the one before
unigram.json, symbols.model  two small tokenizers, trained here
tokenizer_golden.json.gz   the ids of `tokenizers` and `sentencepiece` for texts, for every normalizer that may occur
chunks_golden.json.gz      the chunks of pocket_tts, and those of ptts
ptts does not show its chunks. What is recorded is sonant's, after this check: the audio of the whole text is the
audio of its chunks, one after the other. Where ptts would cut a chunk's text anew ("2.5" has become "2. 5"), only the
length is compared: that of a chunk that never ends follows from its tokens.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import latent_text_cases as cases
import numpy as np
import ptts
import sentencepiece
from pocket_tts.models.text_chunking import prepare_text_prompt, split_into_best_sentences
from pocket_tts.modules.text_conditioner import build_tokenizer
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from sonant.families.latent.chunks import cut, frame_cap
from sonant.families.latent.prepare import PhononRules
from sonant.families.latent.tokenizer import Tokenizer as OurTokenizer
from sonant.families.latent.traced import Traced

ROOT = Path(__file__).parent.parent
DATA = ROOT / "tests/families/latent/data"
FOREIGN = [
    "Il coûte 5 euros, l'été dernier où nous étions à la plage près de l'hôtel.",
    "Das ist größer, schöner, über Straßen.", "El niño comió mañana; ¿dónde está? ¡Aquí!",
    "A ação não é só informação, coração. Está bem?",
]  # fmt: skip
SAMPLES_PER_FRAME = 1920
POCKET_OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "english": {"replace_characters": {"’": "'", "‘": "'"}},
    "french": {
        "replace_characters": {**dict.fromkeys('"“”„«»', ""), "’": "'", "‘": "'", ":": ","}, "remove_semicolons": True,
    },
    "padded": {"pad_with_spaces_for_short_inputs": True},
    "bare": {"append_terminal_punctuation": False, "capitalize_first_letter": False},
}  # fmt: skip


def write(name: str, value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    (DATA / name).write_bytes(gzip.compress(text, 9, mtime=0))


def record_normalize() -> None:
    rows = []
    for language in cases.LANGUAGES:
        for text in (*cases.normalize_lines(), *cases.random_texts(language, 1, 400)):
            none, default, every = (ptts.normalize(text, lang=language, rewrites=r) for r in ("none", "default", "all"))
            row = [language, text, none, None if default == none else default, None if every == default else every]
            rows.append(row)
    write("normalize_golden.json.gz", rows)


def train(sentences: list[str], **options: Any) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=model, model_type="unigram", hard_vocab_limit=False,
        num_threads=1, minloglevel=2, **options,
    )  # fmt: skip
    return model.getvalue()


def with_steps(model: sentencepiece.SentencePieceProcessor, normalizer: Any, pre_tokenizer: Any) -> Tokenizer:
    """A tokenizer.json of a SentencePiece model, as the families' own files are made."""
    vocab = [(model.id_to_piece(i), model.get_score(i)) for i in range(model.get_piece_size())]
    made = Tokenizer(models.Unigram(vocab, unk_id=model.unk_id(), byte_fallback=True))
    made.normalizer, made.pre_tokenizer = normalizer, pre_tokenizer
    steps = [decoders.Metaspace(prepend_scheme="always"), decoders.ByteFallback(), decoders.Fuse()]
    made.decoder = decoders.Sequence(steps)
    special = [i for i in range(model.get_piece_size()) if model.is_control(i) or model.is_unknown(i)]
    made.add_special_tokens([AddedToken(model.id_to_piece(i), special=True) for i in special])
    return made


def variants() -> dict[str, tuple[Any, Any]]:
    n, p = normalizers, pre_tokenizers
    rules = [n.Replace("’", "'"), n.Replace("—", " "), n.Replace(Regex(r"\s+"), " "), n.Replace(Regex(r"[\p{So}]"), "")]
    rules += [n.Replace(Regex(r"(?<=\d)[,.](?=\d)"), " point "), n.NFC()]
    return {
        "convert": (n.Prepend("▁"), p.Metaspace(prepend_scheme="always")),
        "replace": (n.Sequence([n.Replace(" ", "▁"), n.Prepend("▁")]), None),
        "rules": (n.Sequence(rules), p.Metaspace()),
        "accents": (
            n.Sequence([n.NFD(), n.StripAccents(), n.Lowercase(), n.Strip(), n.Nmt()]),
            p.Metaspace(prepend_scheme="never"),
        ),
        "nfkc": (
            n.Sequence([n.NFKC(), n.Strip(left=False, right=True)]),
            p.Sequence([p.Digits(individual_digits=True), p.Metaspace(prepend_scheme="first", split=False)]),
        ),
        "words": (None, p.Sequence([p.WhitespaceSplit(), p.Metaspace(prepend_scheme="always")])),
    }  # fmt: skip


def record_tokenizers(sentences: list[str]) -> None:
    corpus = sentences + FOREIGN * 6
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        # The model keeps the name of this file. Rows of code points: ’ → ', ﬁ → fi, Å in two characters → Å, line end →
        # space.
        Path("rules.tsv").write_text("2019\t27\nFB01\t66 69\n41 30A\tC5\nA\t20\n", encoding="ascii")
        symbols = train(
            corpus, vocab_size=400, normalization_rule_tsv="rules.tsv", user_defined_symbols=["<laugh>", "@@"],
            character_coverage=0.98,
        )  # fmt: skip
    (DATA / "symbols.model").write_bytes(symbols)
    identity = train(
        corpus, vocab_size=700, normalization_rule_name="identity", byte_fallback=True, remove_extra_whitespaces=False,
        character_coverage=0.98,
    )  # fmt: skip
    (DATA / "identity.model").write_bytes(identity)
    processors = {name: sentencepiece.SentencePieceProcessor(model_file=str(DATA / f"{name}.model"))
                  for name in ("identity", "symbols")}  # fmt: skip
    rng = random.Random(1)
    letters = "abcdefghijklmnopqrstuvwxyz    ABC.,!?'0123456789éàüßñç“”’—…日本½ﬁÅ\u0301\u00a0\t\n@<>-😀"
    texts = rng.sample(sentences, 120) + FOREIGN
    texts += ["  hello   world  ", "", "  ", " ", "Hi <laugh> you @@ there", "A\u030a"]
    texts += ["".join(rng.choice(letters) for _ in range(rng.randint(1, 40))) for _ in range(200)]
    golden: dict[str, Any] = {"texts": texts, "models": {}, "files": {}}
    for name, processor in processors.items():
        golden["models"][name] = [processor.encode(text, out_type=int) for text in texts]
    for name, (normalizer, pre_tokenizer) in variants().items():
        made = with_steps(processors["identity"], normalizer, pre_tokenizer)
        tree = json.loads(made.to_str())
        steps = {key: tree[key] for key in ("normalizer", "pre_tokenizer")}
        golden["files"][name] = {**steps, "ids": [made.encode(text).ids for text in texts]}
    whole = with_steps(processors["identity"], *variants()["convert"])
    whole.save(str(DATA / "unigram.json"), pretty=False)
    write("tokenizer_golden.json.gz", golden)


def pocket_chunks(tokenizer: Any, text: str, options: dict[str, Any]) -> list[list[Any]]:
    given = {"pad_with_spaces_for_short_inputs": False, "remove_semicolons": False, **options}
    rows = []
    for chunk in split_into_best_sentences(tokenizer, text, 50, **given):
        prepared, frames = prepare_text_prompt(chunk, **given)
        rows.append([prepared, tokenizer.encode(prepared), frames])
    return rows


def phonon_chunks(folder: Path, texts: list[str]) -> list[list[list[Any]] | None]:
    """The chunks that give the same audio as the whole; None where a sentence is longer than ptts would cut."""
    ours = OurTokenizer.load(DATA / "unigram.json")
    with tempfile.TemporaryDirectory() as made:
        for name in ("config.json", "model.safetensors"):
            shutil.copy(folder / name, made)
        shutil.copy(DATA / "unigram.json", Path(made) / "tokenizer.json")
        ptts.set_num_threads(1)
        model = ptts.TTS(made, device="cpu", lang="none", quant="f32", eos_threshold=1e9)
        width = json.loads((folder / "config.json").read_text())["flow_lm"]["d_model"]
        model.add_voice_from_embedding("v", np.random.default_rng(0).standard_normal((5, width)).astype("f4") * 0.3)
        rows: list[list[list[Any]] | None] = []
        for text in texts:
            found = phonon_rows(ours, text)
            whole = model.synth(text, voice="v", temperature=0.0)
            same = len(whole) == SAMPLES_PER_FRAME * sum(frame_cap(len(ids), 12.5) for _, ids in found)
            if same and all(phonon_rows(ours, row[0]) == [row] for row in found):
                parts = np.concatenate([model.synth(row[0], voice="v", temperature=0.0) for row in found])
                same = bool(np.abs(whole - parts).max() < 1e-5)
            rows.append(found if same else None)
    return rows


def phonon_rows(tokenizer: OurTokenizer, text: str) -> list[list[Any]]:
    return [[c.text.text, list(c.encoding.ids)] for c in cut([Traced.of(text)], tokenizer, PhononRules())]


def record_chunks(folder: Path, sentences: list[str]) -> None:
    texts = list(cases.chunk_texts(sentences))
    golden: dict[str, Any] = {"texts": texts, "options": POCKET_OPTIONS, "pocket": {}}
    for file, kind in (("unigram.json", "tokenizers"), ("identity.model", "sentencepiece")):
        size = OurTokenizer.load(DATA / file).vocab_size
        tokenizer = build_tokenizer(size, str(DATA / file), kind)
        golden["pocket"][file] = {
            name: [pocket_chunks(tokenizer, text, options) for text in texts]
            for name, options in POCKET_OPTIONS.items()
        }
    golden["phonon"] = phonon_chunks(folder, texts)
    missing = [text for text, row in zip(texts, golden["phonon"], strict=True) if row is None]
    sys.stderr.write(f"{len(texts)} texts, {len(missing)} of them cut by sonant only\n" + "\n".join(missing) + "\n")
    write("chunks_golden.json.gz", golden)


def main(folder: str) -> None:
    lines = (ROOT / "tests/text/vectors/english.jsonl").read_text(encoding="utf-8").splitlines()
    sentences = list(dict.fromkeys(row["text"] for row in map(json.loads, lines) if 20 < len(row["text"]) < 200))
    record_normalize()
    record_tokenizers(sentences)
    record_chunks(Path(folder), sentences)


if __name__ == "__main__":
    main(*sys.argv[1:])
