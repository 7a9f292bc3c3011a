"""Where the weights of a latent language model come from, and the file that sonant keeps of them.

A source is a folder with config.json and model.safetensors (or, without that, model.q8.gguf), or such a file with its
configuration given. It is converted once into the conversion cache; the engine opens only the converted file, which has
its configuration inside. A file in q8 (checkpoint/quantize.py) is a converted file already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from sonant.checkpoint.cache import ConversionCache
from sonant.checkpoint.gguf import open_gguf
from sonant.checkpoint.name_map import check_shapes, map_tensors, rename
from sonant.checkpoint.quantize import StoredWeights, open_weights
from sonant.checkpoint.safetensors import SafetensorsWriter, open_safetensors
from sonant.checkpoint.tensor import LazyTensor
from sonant.errors import CheckpointError
from sonant.families.latent import port
from sonant.families.latent.fields import Fields
from sonant.families.latent.stated import Stated
from sonant.families.latent.weights import ORIGINAL_NAMES, UNUSED, Array, Specs, folded, folded_specs
from sonant.layers.flow import FlowShape
from sonant.layers.mimi import MimiShape
from sonant.layers.transformer import TransformerShape

WEIGHTS, GGUF = "model.safetensors", "model.q8.gguf"
Config = TypeVar("Config")


@dataclass(frozen=True)
class Layout(Generic[Config]):
    """What a family says of its checkpoints. format: of the converted file; a change makes old caches unused."""

    format: str
    parse: Callable[[Stated, str], Config]
    lm: Callable[[Config], TransformerShape]
    flow: Callable[[Config], FlowShape]
    codec: Callable[[Config], MimiShape]
    specs: Callable[[Config, frozenset[str]], Specs]
    """The tensors that a checkpoint must have; given the names that it has, for those that it may have."""

    def convert(self, prefix: str, weights: Path, stated: Stated, cache_root: Path) -> Path:
        """sonant's own file of a source, made on the first call: `<cache_root>/<prefix>-<hash>/model.safetensors`."""
        salt = f"{self.format}\0{stated.to_json()}"
        cache = ConversionCache(cache_root, prefix, WEIGHTS, salt)
        return cache.get(weight_files(weights, stated), lambda target, sha256: self._write(weights, stated, target),
                         self._usable)

    def open(self, path: Path) -> tuple[Config, StoredWeights]:
        """A converted file: its configuration, and its tensors."""
        weights = open_weights(path)
        found = weights.metadata.get("sonant_format")
        if found != self.format:
            raise CheckpointError(f"{path}: has format {found!r}, wanted {self.format!r}; delete it to convert again")
        config = self.parse(Stated.of_json(weights.metadata.get("config", ""), str(path)), str(path))
        specs = folded_specs(self.specs(config, frozenset(weights)), self.flow(config))
        check_shapes({name: spec.shape for name, spec in specs.items()},
                     {name: weights.shape(name) for name in weights}, str(path))
        return config, weights

    def read(self, weights: Path, stated: Stated) -> tuple[Config, dict[str, Array]]:
        """The same from the source itself, in memory."""
        config = self.parse(stated, f"the configuration of {weights}")
        return config, dict(self._mapped(config, weights, stated)[1])

    def _mapped(self, config: Config, weights: Path, stated: Stated) -> tuple[Specs, Iterator[tuple[str, Array]]]:
        tensors = _ported(weights, self.lm(config), self.codec(config)) if stated.is_port else _named(weights)
        specs, flow = self.specs(config, frozenset(tensors)), self.flow(config)
        unused = UNUSED + (port.UNUSED if stated.is_port else ())
        mapped = map_tensors(specs, tensors, str(weights), unused)
        return folded_specs(specs, flow), folded(mapped, flow)

    def _write(self, weights: Path, stated: Stated, target: Path) -> None:
        config = self.parse(stated, f"the configuration of {weights}")
        specs, tensors = self._mapped(config, weights, stated)
        metadata = {"sonant_format": self.format, "config": stated.to_json()}
        with SafetensorsWriter(target, {n: ("f32", s.shape) for n, s in specs.items()}, metadata) as writer:
            for name, array in tensors:
                writer.write(name, array)

    def _usable(self, path: Path) -> bool:
        try:
            self.open(path)
        except CheckpointError:
            return False
        return True


def weight_files(weights: Path, stated: Stated) -> list[Path]:
    """The files whose change means another model."""
    files = [weights]
    return [*files, weights.parent / port.CODEC_FOLDER / WEIGHTS] if stated.is_port else files


def folder_of(source: Path) -> tuple[Path, Stated]:
    """The weights and the configuration in a folder (or beside a .safetensors file)."""
    folder = source if source.is_dir() else source.parent
    weights = weights_in(folder) if source.is_dir() else source
    model = Fields.of_json(folder / "config.json").values
    codec = folder / port.CODEC_FOLDER / "config.json"
    return weights, Stated(model, Fields.of_json(codec).values if "model_type" in model else None)


def is_converted(path: Path) -> bool:
    """Whether this is a file of sonant's own, in floats or in q8."""
    return path.suffix == ".safetensors" and path.is_file() and "sonant_format" in open_safetensors(path).metadata


def weights_in(folder: Path) -> Path:
    """The file of the weights: the floats, where both are there."""
    return folder / GGUF if (folder / GGUF).is_file() and not (folder / WEIGHTS).is_file() else folder / WEIGHTS


def _named(weights: Path) -> dict[str, LazyTensor]:
    """The tensors of an original checkpoint under the one spelling of their names."""
    checkpoint = open_gguf(weights) if weights.suffix == ".gguf" else _tensors(weights)
    out = {rename(name, ORIGINAL_NAMES): checkpoint[name] for name in checkpoint}
    if len(out) != len(checkpoint):
        raise CheckpointError(f"{weights}: two of its tensors have the same name in two spellings")
    return out


def _tensors(weights: Path) -> dict[str, LazyTensor]:
    checkpoint = open_safetensors(weights)
    return {name: LazyTensor.of(checkpoint.tensor(name)) for name in checkpoint}


def _ported(weights: Path, lm: TransformerShape, codec: MimiShape) -> dict[str, LazyTensor]:
    """Those of the port, as the original has them: of the model, and of the codec beside it."""
    folder = weights.parent / port.CODEC_FOLDER / WEIGHTS
    out: dict[str, LazyTensor] = {}
    for path, rules, size in ((weights, port.LM_NAMES, lm.head_size),
                              (folder, port.codec_names(codec), codec.transformer.head_size)):
        out |= port.original_names(_tensors(path), rules, size, str(path))
    return out
