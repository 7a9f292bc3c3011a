"""The tokenizer against `tokenizers` and `sentencepiece`; its spans; files that are broken on purpose."""

import json
import random
import unicodedata

import pytest
from golden_text import DATA, recorded, tokenizer
from hypothesis import given
from hypothesis import strategies as st

from sonant.errors import CheckpointError, InputError
from sonant.families.latent.normalizers import composed
from sonant.families.latent.tokenizer import Tokenizer, versioned_file
from sonant.families.latent.traced import Traced

GOLDEN = recorded("tokenizer")
TREE = json.loads((DATA / "unigram.json").read_bytes())
# Text that the symbols model takes away: it drops white space at the ends and has no bytes for what it does not know.
TEXT = st.text(alphabet=st.one_of(st.sampled_from("abcdeghijk  .,!?'0159éß—日😀\n"), st.characters()), max_size=40)


def changed(**entries):
    return json.dumps({**TREE, **entries}).encode()


def load(tmp_path, data, name="tokenizer.json"):
    path = tmp_path / name
    path.write_bytes(data)
    return Tokenizer.load(path)


@pytest.mark.parametrize("name", GOLDEN["models"])
def test_ids_are_those_of_sentencepiece(name):
    own = tokenizer(f"{name}.model")
    for text, ids in zip(GOLDEN["texts"], GOLDEN["models"][name], strict=True):
        assert list(own.encode(text).ids) == ids, text


@pytest.mark.parametrize("name", GOLDEN["files"])
def test_ids_are_those_of_tokenizers(name, tmp_path):
    steps = dict(GOLDEN["files"][name])
    ids = steps.pop("ids")
    own = load(tmp_path, changed(**steps))
    for text, wanted in zip(GOLDEN["texts"], ids, strict=True):
        assert list(own.encode(text).ids) == wanted, text


@pytest.mark.parametrize("name", ["unigram.json", "identity.model"])
@given(TEXT)
def test_spans_cover_the_text(name, text):
    found = tokenizer(name).encode(text)
    assert len(found.ids) == len(found.spans) == len(found.said)
    covered = [place for start, end in dict.fromkeys(found.spans) for place in range(start, end)]
    assert sorted(set(covered)) == list(range(len(text)))
    assert list(found.spans) == sorted(found.spans)


@given(TEXT)
def test_what_is_said_is_the_text(text):
    found = tokenizer().encode(text)
    assert found.text(0, len(found.ids)).text == text.replace("▁", " ").removeprefix(" " * text.startswith("▁"))


def test_a_span_is_the_characters_of_its_token():
    text = "The 日 end."
    found = tokenizer().encode(text)
    spelled = [number for number, span in enumerate(found.spans) if text[slice(*span)] == "日"]
    assert [found.ids[i] for i in spelled] == [tokenizer().token_id(f"<0x{byte:02X}>") for byte in "日".encode()]


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@pytest.mark.parametrize(
    "text", ["e\u0301x ﬁ ½ Å\u0327\u0301", "한국어", unicodedata.normalize("NFD", "한국어 각ệ"), "\u0b47\u0b57"]
)
def test_normal_forms_keep_places(form, text):
    done = composed(Traced.of(text), form)
    assert done.text == unicodedata.normalize(form, text)
    assert list(done.starts) == sorted(done.starts)
    assert done.end == len(text)


def test_a_lone_surrogate_is_a_replacement_character():
    assert tokenizer().encode("a\ud800").ids == tokenizer().encode("a\ufffd").ids


@pytest.mark.parametrize("name", ["unigram.json", "identity.model"])
def test_a_text_cannot_say_control_signs(name):
    for sign in ("<s>", "</s>", "<unk>", "<0x41>"):
        assert tokenizer(name).token_id(sign) not in tokenizer(name).encode(f"a {sign} b").ids


def test_names_of_pieces():
    assert tokenizer().vocab_size == len(TREE["model"]["vocab"])
    with pytest.raises(InputError, match="no piece 'qqqq'"):
        tokenizer().token_id("qqqq")


def test_an_added_symbol_is_one_token(tmp_path):
    size = len(TREE["model"]["vocab"])
    symbol = {"id": size, "content": "<laugh>", "special": False}
    own = load(tmp_path, changed(added_tokens=[*TREE["added_tokens"], symbol]))
    assert size in own.encode("well <laugh> yes").ids
    assert own.vocab_size == size + 1


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"model": {"type": "BPE"}}, "only Unigram"),
        ({"model": {"type": "Unigram", "vocab": []}}, "vocab"),
        ({"model": {"type": "Unigram", "vocab": [["a", "b"]], "unk_id": 0}}, "piece 0"),
        ({"model": {"type": "Unigram", "vocab": [["a", float("nan")]], "unk_id": 0}}, "piece 0"),
        ({"model": {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 7}}, "unk_id"),
        ({"model": {"type": "Unigram", "vocab": [["a", 0.0]]}}, "byte_fallback"),
        ({"model": {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": 0, "byte_fallback": True}}, "<0x00>"),
        ({"normalizer": {"type": "BertNormalizer"}}, "'BertNormalizer' is not known"),
        ({"normalizer": {"type": "Replace", "pattern": {"Regex": "(a"}, "content": ""}}, "pattern"),
        ({"normalizer": {"type": "Replace", "pattern": {"Regex": r"\p{Qq}"}, "content": ""}}, "pattern"),
        ({"normalizer": {"type": "Replace", "pattern": "a", "content": ""}}, "wanted one of String and Regex"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, "character map"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "*"}}, "base64"),
        ({"normalizer": "NFC"}, "object with a type"),
        ({"pre_tokenizer": {"type": "ByteLevel"}}, "pre-tokenizer 'ByteLevel'"),
        ({"pre_tokenizer": {"type": "Metaspace", "prepend_scheme": "maybe"}}, "Metaspace"),
        ({"added_tokens": [{"id": -1, "content": "x"}]}, "added token"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(tmp_path, entries, message):
    with pytest.raises(CheckpointError, match=message):
        load(tmp_path, changed(**entries))


def test_missing_file_and_other_contents(tmp_path):
    with pytest.raises(CheckpointError, match="cannot be read"):
        Tokenizer.load(tmp_path / "tokenizer.json")
    for data in (b"", b"{", b"[1]", b"{}", b"[" * 100_000, b"\xff" * 50):
        with pytest.raises(CheckpointError):
            load(tmp_path, data)


@pytest.mark.parametrize("name", ["symbols.model", "identity.model"])
def test_a_damaged_model_is_refused_or_read(tmp_path, name):
    """Nothing but a CheckpointError comes out of cuts and changed bytes, neither in loading nor in reading a text."""
    data = (DATA / name).read_bytes()
    rng = random.Random(3)
    for _ in range(150):
        broken = bytearray(data[: rng.randrange(len(data))] if rng.random() < 0.3 else data)
        for _ in range(rng.randint(1, 8)):
            if broken:
                broken[rng.randrange(len(broken))] = rng.randrange(256)
        try:
            load(tmp_path, bytes(broken), name).encode("A’ﬁ A\u030a text <laugh>")
        except CheckpointError:
            continue


def test_the_file_for_the_newest_readers(tmp_path):
    assert versioned_file(tmp_path).name == "tokenizer.json"
    config = tmp_path / "tokenizer_config.json"
    names = ["tokenizer.json", "tokenizer.4.0.0.json", "tokenizer.5.0.0.json", "../tokenizer.9.json"]
    config.write_text(json.dumps({"fast_tokenizer_files": names}))
    assert versioned_file(tmp_path) == tmp_path / "tokenizer.5.0.0.json"
    config.write_text("[")
    with pytest.raises(CheckpointError, match=r"tokenizer_config\.json"):
        versioned_file(tmp_path)
