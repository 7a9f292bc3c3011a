"""The configuration of a Kokoro checkpoint, as its config.json states it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sonant.errors import CheckpointError


@dataclass(frozen=True)
class PlbertConfig:
    """The ALBERT text encoder (PL-BERT)."""

    hidden_size: int
    num_attention_heads: int
    intermediate_size: int
    max_position_embeddings: int
    num_hidden_layers: int


@dataclass(frozen=True)
class IstftnetConfig:
    """The vocoder (iSTFTNet with harmonic source)."""

    upsample_rates: tuple[int, ...]
    upsample_kernel_sizes: tuple[int, ...]
    gen_istft_n_fft: int
    gen_istft_hop_size: int
    resblock_kernel_sizes: tuple[int, ...]
    resblock_dilation_sizes: tuple[tuple[int, ...], ...]
    upsample_initial_channel: int


@dataclass(frozen=True)
class KokoroConfig:
    """Field names are those of config.json; keys that only training used (dropout, dim_in, …) are not kept."""

    n_token: int
    hidden_dim: int
    style_dim: int
    n_layer: int
    max_dur: int
    text_encoder_kernel_size: int
    n_mels: int
    plbert: PlbertConfig
    istftnet: IstftnetConfig
    vocab: dict[str, int]

    @staticmethod
    def from_json(config: Mapping[str, Any]) -> KokoroConfig:
        """From the parsed config.json. CheckpointError names a key that is missing or of a wrong type."""
        sizes = {name: _read(config, name, _size) for name in _SIZES}
        plbert = _read(config, "plbert", _mapping)
        istftnet = _read(config, "istftnet", _mapping)
        return KokoroConfig(
            **sizes,
            plbert=PlbertConfig(**{name: _read(plbert, name, _size) for name in PlbertConfig.__dataclass_fields__}),
            istftnet=IstftnetConfig(
                upsample_rates=_read(istftnet, "upsample_rates", _sizes),
                upsample_kernel_sizes=_read(istftnet, "upsample_kernel_sizes", _sizes),
                gen_istft_n_fft=_read(istftnet, "gen_istft_n_fft", _size),
                gen_istft_hop_size=_read(istftnet, "gen_istft_hop_size", _size),
                resblock_kernel_sizes=_read(istftnet, "resblock_kernel_sizes", _sizes),
                resblock_dilation_sizes=_read(istftnet, "resblock_dilation_sizes", lambda v: tuple(map(_sizes, v))),
                upsample_initial_channel=_read(istftnet, "upsample_initial_channel", _size),
            ),
            vocab=_read(config, "vocab", _vocab),
        )


_SIZES = ("n_token", "hidden_dim", "style_dim", "n_layer", "max_dur", "text_encoder_kernel_size", "n_mels")


def _read(config: Mapping[str, Any], name: str, check: Callable[[Any], Any]) -> Any:
    if name not in config:
        raise CheckpointError(f"config.json: no key {name!r}; wanted the config of a Kokoro checkpoint")
    try:
        return check(config[name])
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"config.json: {name} is {config[name]!r:.80}, wanted {error}") from error


def _size(value: Any) -> int:
    if type(value) is not int or not 0 < value < 1 << 20:
        raise ValueError("a positive integer")
    return value


def _sizes(value: Any) -> tuple[int, ...]:
    if not isinstance(value, (list, tuple)):
        raise ValueError("a list of positive integers")
    return tuple(map(_size, value))


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("an object")
    return value


def _vocab(value: Any) -> dict[str, int]:
    if not isinstance(value, Mapping) or not all(isinstance(k, str) and type(v) is int for k, v in value.items()):
        raise ValueError("an object of symbol ids")
    return dict(value)
