"""Voices: every file form, look-up by listing only, blends, and the packaged voice."""

from __future__ import annotations

import io
import re
import runpy
import zipfile
from pathlib import Path

import numpy as np
import pytest

from sonant.checkpoint.safetensors import write_safetensors
from sonant.errors import CheckpointError, InputError, UnknownName
from sonant.families.kokoro.voices import VoiceCatalog, VoicePack, parse_blend, read_voices

torch_file = runpy.run_path(str(Path(__file__).parents[2] / "checkpoint" / "crafted.py"))["torch_file"]
PACK = np.random.default_rng(7).normal(size=(510, 256)).astype(np.float32)
OTHER = np.random.default_rng(8).normal(size=(510, 256)).astype(np.float32)


def npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def torch_tensor(array: np.ndarray) -> bytes:
    return torch_file(array)


@pytest.fixture
def folder(tmp_path):
    """af_one in every form, and another voice."""
    forms = {
        "af_f32.bin": PACK.tobytes(),
        "af_f16.f16.bin": PACK.astype(np.float16).tobytes(),
        "af_npy.npy": npy(PACK),
        "af_pt.pt": torch_tensor(PACK[:, None]),
        "am_other.bin": OTHER.tobytes(),
        "README.md": b"not a voice",
        ".hidden.bin": b"not a voice",
    }
    for name, raw in forms.items():
        (tmp_path / name).write_bytes(raw)
    np.savez(tmp_path / "several.npz", bf_a=PACK, bm_b=OTHER[:, None])
    np.savez_compressed(tmp_path / "packed.npz", jf_c=PACK)
    write_safetensors(tmp_path / "zf_one.safetensors", {"voice": PACK})
    write_safetensors(tmp_path / "many.safetensors", {"ef_x": PACK, "em_y": OTHER})
    return tmp_path


class TestForms:
    @pytest.mark.parametrize("name", ["af_f32", "af_npy", "af_pt", "bf_a", "jf_c", "zf_one", "ef_x"])
    def test_exact(self, folder, name):
        voice = VoiceCatalog([folder]).get(name)
        np.testing.assert_array_equal(voice.pack, PACK)
        assert voice.pack.dtype == np.float32
        assert not voice.pack.flags.writeable

    def test_half_precision(self, folder):
        np.testing.assert_allclose(VoiceCatalog([folder]).get("af_f16").pack, PACK, rtol=2**-11, atol=1e-7)

    def test_listing(self, folder):
        names = ["af_f16", "af_f32", "af_heart", "af_npy", "af_pt", "am_other", "bf_a", "bm_b", "ef_x", "em_y", "jf_c"]
        assert VoiceCatalog([folder]).names() == [*names, "zf_one"]

    def test_read_one_file(self, folder):
        assert list(read_voices(folder / "several.npz")) == ["bf_a", "bm_b"]
        with pytest.raises(CheckpointError, match=r"README\.md: not a voice file"):
            read_voices(folder / "README.md")

    @pytest.mark.parametrize(
        ("name", "raw", "says"),
        [
            ("x.bin", PACK.tobytes()[:-1], "522239 bytes, wanted 522240"),
            ("x.bin", b"", "is empty"),
            ("x.bin", b"PK\3\4" + bytes(100), "must be named .npz"),
            ("x.f16.bin", PACK.tobytes(), "wanted 261120"),
            ("x.npy", npy(PACK)[:-1], "not a whole .npy"),
            ("x.npy", npy(PACK.T), "not a whole .npy"),  # Fortran order
            ("x.npy", npy(np.array([{"a": 1}], object)), "not a whole .npy"),
            ("x.npy", npy(PACK[:, :128]), r"shape \(510, 128\)"),
            ("x.npy", npy(PACK.astype(np.int32)), "not a whole .npy"),
            ("x.npy", npy(np.full((510, 256), np.nan, np.float32)), "NaN"),
            ("x.pt", b"garbage", "not a zip archive"),
            ("x.pt", torch_file({"a": PACK}), "holds a dict"),
            ("x.pt", torch_file(PACK[:500]), r"shape \(500, 256\)"),
            ("x.pt", torch_file(np.zeros((510, 256), np.int64)), "holds i64 numbers"),
        ],
    )
    def test_damaged(self, tmp_path, name, raw, says):
        (tmp_path / name).write_bytes(raw)
        with pytest.raises(CheckpointError, match=says) as caught:
            VoiceCatalog([tmp_path]).get("x")
        assert name in str(caught.value)

    def test_a_damaged_archive_of_voices_is_named(self, tmp_path):
        (tmp_path / "x.npz").write_bytes(b"PK")
        with pytest.raises(CheckpointError, match=r"x\.npz"):
            VoiceCatalog([tmp_path])

    def test_a_bomb_in_an_npz(self, tmp_path):
        with zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
            file.writestr("af_x.npy", bytes(2 << 20))
        with pytest.raises(CheckpointError, match="claims 2097152 bytes"):
            VoiceCatalog([tmp_path]).get("af_x")


class TestLookUp:
    @pytest.mark.parametrize(
        "name", ["../../x", "/etc/passwd", "af_heart.f16.bin", "data/af_heart", "AF_HEART", "af_hart", "\0"]
    )
    def test_unknown(self, name):
        with pytest.raises(UnknownName, match="unknown voice"):
            VoiceCatalog().get(name)

    def test_a_path_outside_is_not_opened(self, tmp_path):
        (tmp_path / "secret.bin").write_bytes(PACK.tobytes())
        (tmp_path / "voices").mkdir()
        with pytest.raises(UnknownName):
            VoiceCatalog([tmp_path / "voices"]).get("../secret")

    def test_the_nearest_names_are_given(self):
        with pytest.raises(UnknownName, match="did you mean 'af_heart'"):
            VoiceCatalog().get("af_hart")

    def test_earlier_folders_win(self, tmp_path):
        (tmp_path / "af_heart.bin").write_bytes(PACK.tobytes())
        np.testing.assert_array_equal(VoiceCatalog([tmp_path]).get("af_heart").pack, PACK)

    def test_a_folder_that_is_not_there(self, tmp_path):
        with pytest.raises(CheckpointError, match="cannot be listed"):
            VoiceCatalog([tmp_path / "nothing"])


class TestBlends:
    def test_mean(self, folder):
        blend = VoiceCatalog([folder]).get("af_f32, am_other")
        np.testing.assert_allclose(blend.pack, (PACK + OTHER) / 2, atol=1e-6)
        assert blend.name == "af_f32,am_other"
        assert blend.language == "en-US"
        assert blend.gender is None

    def test_weights_are_normalised(self, folder):
        catalog = VoiceCatalog([folder])
        wanted = catalog.get("af_f32:0.75,am_other:0.25").pack
        np.testing.assert_allclose(wanted, 0.75 * PACK + 0.25 * OTHER, atol=1e-6)
        np.testing.assert_allclose(catalog.get("af_f32:3 , am_other:1").pack, wanted, atol=1e-7)

    def test_a_zero_weight_drops_a_voice(self, folder):
        np.testing.assert_array_equal(VoiceCatalog([folder]).get("af_f32:1,am_other:0").pack, PACK)

    def test_one_voice_with_a_weight(self, folder):
        assert VoiceCatalog([folder]).get("af_f32:3").name == "af_f32"

    def test_three(self):
        assert parse_blend("a,b,a") == [("a", 1 / 3), ("b", 1 / 3), ("a", 1 / 3)]

    @pytest.mark.parametrize(
        ("spec", "says"),
        [
            ("", "an empty name"),
            ("a,", "an empty name"),
            (",a", "an empty name"),
            ("a,,b", "an empty name"),
            ("a:1,b", "some have none"),
            ("a:,b:1", "weight '' is not a number"),
            ("a:x,b:1", "weight 'x' is not a number"),
            ("a:-1,b:2", "weight '-1' is not a number of at least 0"),
            ("a:nan,b:1", "'nan'"),
            ("a:inf,b:1", "'inf'"),
            ("a:1e999", "'1e999'"),
            ("a:0,b:0", "add up to 0"),
            ("a:1e308,b:1e308", "add up to inf"),
        ],
    )
    def test_nonsense(self, spec, says):
        with pytest.raises(InputError, match=re.escape(says)):
            parse_blend(spec)

    def test_unknown_voice_in_a_blend(self):
        with pytest.raises(UnknownName, match="'nobody'"):
            VoiceCatalog().get("af_heart,nobody")


class TestPack:
    def test_style_is_the_row_of_the_length(self):
        voice = VoicePack("af_x", PACK)
        np.testing.assert_array_equal(voice.style(1), PACK[0])
        np.testing.assert_array_equal(voice.style(510), PACK[509])

    @pytest.mark.parametrize("n", [0, -1, 511])
    def test_no_style_for(self, n):
        with pytest.raises(InputError, match="wanted 1 to 510"):
            VoicePack("af_x", PACK).style(n)

    @pytest.mark.parametrize(
        ("name", "language", "gender"),
        [
            ("af_heart", "en-US", "female"),
            ("bm_george", "en-GB", "male"),
            ("ef_dora", "es", "female"),
            ("ff_siwis", "fr-FR", "female"),
            ("hm_omega", "hi", "male"),
            ("if_sara", "it", "female"),
            ("jf_alpha", "ja", "female"),
            ("pm_alex", "pt-BR", "male"),
            ("zf_xiaoni", "zh", "female"),
            ("myvoice", None, None),
            ("ax_y", None, None),
            ("af_a,af_b", "en-US", "female"),
            ("af_a:1,bm_b:2", "en-US", None),
            ("mine,am_b", None, None),
        ],
    )
    def test_metadata(self, name, language, gender):
        voice = VoicePack(name, PACK)
        assert (voice.language, voice.gender) == (language, gender)


def test_the_packaged_voice():
    voice = VoiceCatalog().get("af_heart")
    assert voice.pack.shape == (510, 256)
    assert (voice.language, voice.gender) == ("en-US", "female")
    assert np.abs(voice.pack).max() == pytest.approx(1.757, abs=1e-3)
    notice = Path(__file__).parents[3] / "src/sonant/families/kokoro/data/NOTICE"
    assert "Apache License 2.0" in notice.read_text("utf-8")
