"""Full-size random checkpoints of the streaming models, in the layouts of their publishers.

    python benchmarks/streaming_checkpoints.py FOLDER [phonon pocket-100m pocket-2m pocket-24l]

Needs numpy and safetensors. Each model gets FOLDER/MODEL with the weights (f32), the tokenizer, Phonon's config.json, a
voice of 125 rows (`voices/bench.safetensors` as a catalogue publishes it, `voice_latents.npy` before the projection),
`bench.json`: texts by the number of frames that every engine speaks of them.

End of speech never comes (a bias far below every threshold), so an engine goes on to its cap, which is the same in all:
ceil((tokens / 3 + 2) · 12.5) frames. A text of n tokens is therefore a number of frames.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

VOICE_ROWS = 125
LATENT = 32
PIECES = 4000
SEED = 20261130
Shapes = Iterator[tuple[str, tuple[int, ...]]]


@dataclass(frozen=True)
class Transformer:
    """A stack of layers. attention: width of the queries; kv: width of keys and of values."""

    width: int
    layers: int
    feed_forward: int
    attention: int
    kv: int


@dataclass(frozen=True)
class Flow:
    """The head that makes a latent. times: how many time embeddings it has."""

    width: int
    depth: int
    times: int


@dataclass(frozen=True)
class Codec:
    transformer: Transformer
    filters: int
    kernel: int


@dataclass(frozen=True)
class Model:
    """text_rank: inner width of a factored text table; condition: width of what the flow head gets, where projected."""

    lm: Transformer
    flow: Flow
    codec: Codec
    text_rank: int | None = None
    condition: int | None = None


def _plain(width: int, layers: int, feed_forward: int) -> Transformer:
    return Transformer(width, layers, feed_forward, width, width)


BIG_FLOW = Flow(512, 6, 2)
BIG_CODEC = Codec(_plain(512, 2, 2048), filters=64, kernel=7)
MODELS = {
    "phonon": Model(_plain(512, 6, 2048), BIG_FLOW, BIG_CODEC),
    "pocket-100m": Model(_plain(1024, 6, 4096), BIG_FLOW, BIG_CODEC),
    "pocket-24l": Model(_plain(1024, 24, 4096), BIG_FLOW, BIG_CODEC),
    "pocket-2m": Model(
        Transformer(112, 8, 96, attention=192, kv=64),
        Flow(64, 4, 0),
        Codec(_plain(128, 4, 384), filters=24, kernel=3),
        text_rank=32,
        condition=64,
    ),
}


def layers(prefix: str, t: Transformer, *, scaled: bool) -> Shapes:
    """scaled: with a learnt scale after attention and feed-forward, as in the codec."""
    for i in range(t.layers):
        at = f"{prefix}.layers.{i}"
        yield f"{at}.self_attn.in_proj.weight", (t.attention + 2 * t.kv, t.width)
        yield f"{at}.self_attn.out_proj.weight", (t.width, t.attention)
        yield f"{at}.linear1.weight", (t.feed_forward, t.width)
        yield f"{at}.linear2.weight", (t.width, t.feed_forward)
        for norm in ("norm1", "norm2"):
            yield from affine(f"{at}.{norm}", t.width)
        if scaled:
            yield f"{at}.layer_scale_1.scale", (t.width,)
            yield f"{at}.layer_scale_2.scale", (t.width,)


def affine(name: str, *shape: int) -> Shapes:
    """A weight of that shape and a bias of its first axis."""
    yield f"{name}.weight", shape
    yield f"{name}.bias", shape[:1]


def flow_net(flow: Flow, condition: int) -> Shapes:
    at, width = "flow_lm.flow_net", flow.width
    for i in range(flow.times):
        yield f"{at}.time_embed.{i}.freqs", (128,)
        yield from affine(f"{at}.time_embed.{i}.mlp.0", width, 256)
        yield from affine(f"{at}.time_embed.{i}.mlp.2", width, width)
        yield f"{at}.time_embed.{i}.mlp.3.alpha", (width,)
    yield from affine(f"{at}.cond_embed", width, condition)
    yield from affine(f"{at}.input_proj", width, LATENT)
    for i in range(flow.depth):
        yield from affine(f"{at}.res_blocks.{i}.in_ln", width)
        yield from affine(f"{at}.res_blocks.{i}.mlp.0", width, width)
        yield from affine(f"{at}.res_blocks.{i}.mlp.2", width, width)
        yield from affine(f"{at}.res_blocks.{i}.adaLN_modulation.1", 3 * width, width)
    yield from affine(f"{at}.final_layer.linear", LATENT, width)
    yield from affine(f"{at}.final_layer.adaLN_modulation.1", 2 * width, width)


def language_model(model: Model) -> Shapes:
    width, condition = model.lm.width, model.condition or model.lm.width
    yield "flow_lm.input_linear.weight", (width, LATENT)
    for name in ("bos_emb", "emb_mean", "emb_std"):
        yield f"flow_lm.{name}", (LATENT,)
    yield from layers("flow_lm.transformer", model.lm, scaled=False)
    yield from affine("flow_lm.out_norm", width)
    if model.condition:
        yield "flow_lm.z_proj.weight", (condition, width)
    yield from affine("flow_lm.out_eos", 1, condition)
    yield from flow_net(model.flow, condition)


def phonon_conditions(width: int) -> Shapes:
    at = "flow_lm.condition_provider.conditioners"
    yield f"{at}.transcript_in_segment.embed.weight", (PIECES + 1, width)
    yield f"{at}.speaker_wavs.output_proj.weight", (width, 512)
    yield f"{at}.num_speakers.embed.weight", (32, 16)
    yield f"{at}.num_speakers.output_proj.weight", (width, 16)
    yield f"{at}.duration_delta.output_proj.weight", (width, 128)


def pocket_conditions(model: Model) -> Shapes:
    width = model.lm.width
    yield "flow_lm.conditioner.embed.weight", (PIECES + 1, model.text_rank or width)
    if model.text_rank:
        yield "flow_lm.conditioner.proj.weight", (width, model.text_rank)
    yield "flow_lm.speaker_proj_weight", (width, LATENT)
    yield "flow_lm.bos_before_voice", (1, 1, width)


def residual_block(name: str, channels: int) -> Shapes:
    yield from affine(f"{name}.block.1.conv", channels // 2, channels, 3)
    yield from affine(f"{name}.block.3.conv", channels, channels // 2, 1)


def decoder(codec: Codec) -> Shapes:
    width, channels, at = codec.transformer.width, 8 * codec.filters, "mimi.decoder.model"
    yield "mimi.quantizer.output_proj.weight", (width, LATENT, 1)
    yield "mimi.upsample.convtr.convtr.weight", (width, 1, 32)
    yield from layers("mimi.decoder_transformer.transformer", codec.transformer, scaled=True)
    yield from affine(f"{at}.0.conv", channels, width, codec.kernel)
    for i, stride in zip((2, 5, 8), (6, 5, 4), strict=True):
        yield f"{at}.{i}.convtr.weight", (channels, channels // 2, 2 * stride)
        channels //= 2
        yield f"{at}.{i}.convtr.bias", (channels,)
        yield from residual_block(f"{at}.{i + 1}", channels)
    yield from affine(f"{at}.11.conv", 1, channels, 3)


def encoder() -> Shapes:
    """The side that hears a voice; the same in all Pocket models."""
    at, channels = "mimi.encoder.model", 64
    yield from affine(f"{at}.0.conv", channels, 1, 7)
    for i, stride in zip((3, 6, 9), (4, 5, 6), strict=True):
        yield from residual_block(f"{at}.{i - 2}", channels)
        yield from affine(f"{at}.{i}.conv", 2 * channels, channels, 2 * stride)
        channels *= 2
    yield from affine(f"{at}.11.conv", 512, channels, 3)
    yield from layers("mimi.encoder_transformer.transformer", BIG_CODEC.transformer, scaled=True)
    yield "mimi.downsample.conv.conv.weight", (LATENT, 512, 32)


# (names, mean, deviation): the first pattern that is found in a name says how its numbers are drawn; deviation None is
# 1 / sqrt(inputs). Chosen so that activations stay of the size of one through every stage, and so that a frame depends
# little on the one before: else differences in the last bit grow until no two engines say the same.
DRAWN: tuple[tuple[str, float, float | None], ...] = (
    (r"out_eos\.bias$", -1e4, 0.0),
    (r"(norm\d?|in_ln)\.weight$|alpha$|emb_std$", 1.0, 0.1),
    (r"layer_scale_\d\.scale$", 0.3, 0.05),
    (r"bias$", 0.0, 0.05),
    (r"\.embed\.weight$", 0.0, 0.5),
    (r"bos_emb$|bos_before_voice$", 0.0, 1.0),
    (r"emb_mean$", 0.0, 0.3),
    (r"upsample", 0.0, 0.7),
    (r"decoder\.model\.11\.conv\.weight$", 0.0, 0.02),
    (r"", 0.0, None),
)


def tensor(name: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    if name.endswith("freqs"):
        return np.exp(-math.log(10_000) * np.arange(shape[0]) / shape[0]).astype(np.float32)
    mean, deviation = next((m, d) for pattern, m, d in DRAWN if re.search(pattern, name))
    # A transposed convolution of kernel 2·stride [in, out, k] adds two inputs' worth of channels up for a sample.
    inputs = 2 * shape[0] if "convtr" in name else math.prod(shape[1:])
    deviation = inputs**-0.5 if deviation is None else deviation
    return rng.standard_normal(shape, np.float32) * np.float32(deviation) + np.float32(mean)


def pieces() -> list[tuple[str, float]]:
    """A Unigram vocabulary of 4000: specials, bytes, characters, and words of two syllables, each one piece."""
    syllables = [c + v for c in "bcdfghjklmnpqrstvwxz" for v in "aeiou"]
    words = (f"▁{a}{b}" for b in syllables for a in syllables)
    characters = "▁abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,!?'-:;"
    found = [(special, 0.0) for special in ("<unk>", "<s>", "</s>", "<pad>")]
    found += [(f"<0x{byte:02X}>", -30.0) for byte in range(256)]
    found += [(c, -12.0) for c in characters] + [("▁I", -5.0)]
    return found + [(word, -5.0) for word, _ in zip(words, range(PIECES - len(found)), strict=False)]


def texts() -> dict[int, str]:
    """frames → a text of just the tokens whose cap that is. It needs no preparation: a capital, a full stop."""
    words = [p[1:] for p, _ in pieces() if p.startswith("▁") and len(p) == 5]
    found = {}
    for frames in range(50, 226, 25):
        tokens = round(3 * (frames / 12.5 - 2))
        found[frames] = " ".join(["I", *words[7 :: len(words) // tokens][: tokens - 2]]) + "."
    return found


def tokenizer_json() -> dict[str, object]:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {
            "type": "Sequence",
            "normalizers": [
                {"type": "Replace", "pattern": {"String": " "}, "content": "▁"},
                {"type": "Prepend", "prepend": "▁"},
            ],
        },
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
                {"type": "Strip", "content": " ", "start": 1, "stop": 0},
            ],
        },
        "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": True, "vocab": pieces()},
    }


def sentencepiece_model() -> bytes:
    """The same vocabulary as SentencePiece's ModelProto (sentencepiece_model.proto gives the field numbers)."""
    model = b""
    for number, (piece, score) in enumerate(pieces()):
        kind = 2 if number == 0 else 3 if number < 4 else 6 if number < 260 else 1  # unknown, control, byte, normal
        model += _bytes(1, _bytes(1, piece.encode()) + _float(2, score) + _int(3, kind))
    trainer = _int(3, 1) + _int(4, PIECES) + _int(35, 1) + _int(40, 0) + _int(41, 1) + _int(42, 2) + _int(43, 3)
    normalizer = _bytes(1, b"identity") + _int(3, 1) + _int(4, 1) + _int(5, 1)
    return model + _bytes(2, trainer) + _bytes(3, normalizer)


def _varint(value: int) -> bytes:
    low, rest = value & 0x7F, value >> 7
    return bytes([low]) if not rest else bytes([low | 0x80]) + _varint(rest)


def _int(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _float(field: int, value: float) -> bytes:
    return _varint(field << 3 | 5) + np.float32(value).tobytes()


def phonon_config(model: Model) -> dict[str, object]:
    lm, codec, flow = model.lm, model.codec, model.flow
    return {
        "flow_lm": {
            "d_model": lm.width,
            "num_heads": lm.width // 64,
            "num_layers": lm.layers,
            "dim_feedforward": lm.feed_forward,
            "max_period": 10_000.0,
            "n_bins": PIECES,
            "lut_dim": lm.width,
            "flow_dim": flow.width,
            "flow_depth": flow.depth,
            "ldim": LATENT,
            "time_rms_norm": "rms",
        },
        "mimi": {
            "channels": 1,
            "sample_rate": 24_000,
            "frame_rate": 12.5,
            "dimension": codec.transformer.width,
            "quantizer_dimension": LATENT,
            "quantizer_output_dimension": codec.transformer.width,
            "n_filters": codec.filters,
            "n_residual_layers": 1,
            "ratios": [6, 5, 4],
            "kernel_size": codec.kernel,
            "last_kernel_size": 3,
            "residual_kernel_size": 3,
            "dilation_base": 2,
            "compress": 2,
            "transformer_d_model": codec.transformer.width,
            "transformer_num_heads": codec.transformer.width // 64,
            "transformer_num_layers": codec.transformer.layers,
            "transformer_layer_scale": 0.01,
            "transformer_context": 250,
            "transformer_max_period": 10_000.0,
            "transformer_dim_feedforward": codec.transformer.feed_forward,
        },
        "temp": 0.3,
        "lsd_decode_steps": 1,
        "eos_threshold": 4.0,
        "fuser": {"sum": ["num_speakers", "duration_delta"], "prepend": ["speaker_wavs", "transcript_in_segment"]},
        "conditioners": [
            {
                "name": "num_speakers",
                "type": "lut",
                "lut": {"n_bins": 31, "dim": 16, "possible_values": [*map(str, range(31))], "tokenizer": "noop"},
            },
            {
                "name": "duration_delta",
                "type": "continuous",
                "continuous": {"dim": 128, "scale_factor": 1000.0, "max_period": 10_000.0},
            },
        ],
    }


def write(name: str, folder: Path) -> int:
    """Returns the number of parameters."""
    model, rng = MODELS[name], np.random.default_rng(SEED)
    phonon = name == "phonon"
    shapes = [*(phonon_conditions(model.lm.width) if phonon else pocket_conditions(model))]
    shapes += [*language_model(model), *decoder(model.codec), *(() if phonon else encoder())]
    weights = {n: tensor(n, shape, rng) for n, shape in shapes}
    (folder / "voices").mkdir(parents=True, exist_ok=True)
    save_file(weights, folder / "model.safetensors")
    latents = 0.3 * rng.standard_normal((VOICE_ROWS, 512 if phonon else LATENT), np.float32)
    np.save(folder / "voice_latents.npy", latents)
    if phonon:
        voice = {"speaker_wavs": np.ascontiguousarray(latents.T)}
        (folder / "config.json").write_text(json.dumps(phonon_config(model), indent=1), encoding="utf-8")
    else:
        voice = {"audio_prompt": (latents @ weights["flow_lm.speaker_proj_weight"].T)[None]}
    save_file(voice, folder / "voices" / "bench.safetensors")
    if model.text_rank:  # the small models are published with a SentencePiece model, the others with a tokenizer.json
        (folder / "tokenizer.model").write_bytes(sentencepiece_model())
    else:
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer_json(), ensure_ascii=False), encoding="utf-8")
    (folder / "bench.json").write_text(json.dumps({"texts": texts()}, indent=1), encoding="utf-8")
    return sum(w.size for w in weights.values())


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("folder", type=Path)
    arguments.add_argument("models", nargs="*", default=[*MODELS], metavar="MODEL")
    given = arguments.parse_args()
    for name in given.models:
        print(f"{name}: {write(name, given.folder / name):,} parameters")  # noqa: T201


if __name__ == "__main__":
    main()
