"""Kokoro's network as four Programs: text → durations, prosody → f0 and energy, source → harmonic spectrum, decoder →
audio.

Axes: B batch (1), P token ids (phonemes with 0 at both ends), T frames of 25 ms. Sources: kokoro 0.9.4 (model.py,
modules.py, istftnet.py), itself StyleTTS 2 with an iSTFTNet vocoder. Reference figures: docs/families/kokoro.md.
"""

from __future__ import annotations

import math

import numpy as np

from sonant.families.kokoro.config import KokoroConfig
from sonant.layers.dense import bilstm, conv1d, conv_transpose1d, layer_norm, linear
from sonant.layers.scope import Scope
from sonant.program import ops
from sonant.program.dims import Dim
from sonant.program.program import Program, Value

SAMPLE_RATE = 24_000
F0_PER_FRAME = 2
"""f0 and energy run at twice the frame rate, 80 Hz."""

HARMONICS = 9
SINE_AMPLITUDE, NOISE_STD, VOICED_HZ = 0.1, 0.003, 10.0
NOISE_SITE = 1
"""Philox draw site of the source noise."""

POLICY = {"f32": ("f32", "f32"), "f16": ("f16", "f16"), "bf16": ("bf16", "bf16"), "int8": ("bf16", "int8")}
"""Of each precision of the decoder: what most of it is in, and what the vocoder's residual blocks and upsampling, nine
tenths of the work, are in. What each costs in quality: docs/families/kokoro.md."""

P, T = Dim.symbol("P"), Dim.symbol("T")


# --- text: ids → durations --------------------------------------------------------------------------------------------
def text_program(config: KokoroConfig) -> Program:
    """ids [1,P], prosody style [1,S], speed [1] → frames [1,P] (not rounded), encoding [1,P,D+S], text [1,P,D].

    All in f32: what this decides is a length.
    """
    p = Program("kokoro.text")
    ids = p.input("ids", (1, P), "i32")
    style = p.input("style", (1, config.style_dim))
    speed = p.input("speed", (1,))
    root = Scope(p)
    context = linear(root / "bert_encoder", _albert(root / "bert", ids, config), config.hidden_dim)  # [1,P,D]
    encoding = _duration_encoder(root / "predictor" / "text_encoder", context, style, config)  # [1,P,D+S]
    h = bilstm(root / "predictor" / "lstm", encoding, config.hidden_dim // 2)  # [1,P,D]
    logits = linear(root / "predictor" / "duration_proj" / "linear_layer", h, config.max_dur)  # [1,P,50]
    frames = ops.div(ops.reshape(ops.sum(ops.sigmoid(logits), axis=2), (1, P)), speed)
    p.outputs = [frames, encoding, _text_encoder(root / "text_encoder", ids, config)]
    return p


def _albert(s: Scope, ids: Value, config: KokoroConfig) -> Value:
    """[1,P] → [1,P,H]: one transformer layer, applied num_hidden_layers times; post-norm; eps 1e-12."""
    plbert = config.plbert
    table = s / "embeddings"
    words = ops.embedding(ids, table.vector("word_embeddings.weight", config.n_token, 128))
    positions = table.vector("position_embeddings.weight", plbert.max_position_embeddings, 128)
    kinds = table.vector("token_type_embeddings.weight", 2, 128)
    x = ops.add(words, ops.reshape(ops.slice(positions, 0, 0, P), (1, P, 128)))
    x = ops.add(x, ops.reshape(ops.slice(kinds, 0, 0, 1), (128,)))
    x = layer_norm(table / "LayerNorm", x, eps=1e-12)  # [1,P,128]
    x = linear(s / "encoder" / "embedding_hidden_mapping_in", x, plbert.hidden_size)  # [1,P,H]
    layer = s / "encoder" / "albert_layer_groups" / 0 / "albert_layers" / 0
    for _ in range(plbert.num_hidden_layers):
        x = _albert_layer(layer, x, plbert.num_attention_heads, plbert.intermediate_size)
    return x


def _albert_layer(s: Scope, x: Value, heads: int, inner: int) -> Value:
    h, attend = int(x.shape[-1]), s / "attention"
    q, k, v = (linear(attend / name, x, h) for name in ("query", "key", "value"))
    y = linear(attend / "dense", ops.attention(q, k, v, heads=heads, scale=(h // heads) ** -0.5), h)
    x = layer_norm(attend / "LayerNorm", ops.add(x, y), eps=1e-12)
    y = linear(s / "ffn_output", ops.gelu_tanh(linear(s / "ffn", x, inner)), h)
    return layer_norm(s / "full_layer_layer_norm", ops.add(y, x), eps=1e-12)


def _duration_encoder(s: Scope, x: Value, style: Value, config: KokoroConfig) -> Value:
    """[1,P,D] → [1,P,D+S]: bidirectional LSTMs and style-modulated layer norms, the style joined again after each."""
    d, s_dim = config.hidden_dim, config.style_dim
    repeated = ops.expand(ops.reshape(style, (1, 1, s_dim)), (1, P, s_dim))
    x = ops.concat([x, repeated], axis=2)
    for i in range(config.n_layer):
        x = bilstm(s / "lstms" / (2 * i), x, d // 2)  # [1,P,D]
        gamma, beta = _gamma_beta(s / "lstms" / (2 * i + 1) / "fc", style, d)
        x = ops.affine(ops.layer_norm(x), ops.add(gamma, 1.0), beta)
        x = ops.concat([x, repeated], axis=2)  # [1,P,D+S]
    return x


def _gamma_beta(s: Scope, style: Value, c: int) -> tuple[Value, Value]:
    """Two [1,C] from one linear of the style."""
    both = linear(s, style, 2 * c)
    return ops.slice(both, 1, 0, c), ops.slice(both, 1, c, 2 * c)


def _text_encoder(s: Scope, ids: Value, config: KokoroConfig) -> Value:
    """[1,P] → [1,P,D]"""
    d, k = config.hidden_dim, config.text_encoder_kernel_size
    x = ops.embedding(ids, s.vector("embedding.weight", config.n_token, d))
    for i in range(config.n_layer):
        x = conv1d(s / "cnn" / i / 0, x, d, k, padding=(k - 1) // 2)
        x = ops.leaky_relu(layer_norm(s / "cnn" / i / 1, x, names=("gamma", "beta")), 0.2)
    return bilstm(s / "lstm", x, d // 2)


# --- prosody: encoding at frame rate → f0, energy ---------------------------------------------------------------------
def prosody_program(config: KokoroConfig) -> Program:
    """encoding [1,P,D+S], index [1,T] (the token of each frame), prosody style [1,S] → f0_hz [1,2T,1], energy
    [1,2T,1]."""
    p = Program("kokoro.prosody")
    d = config.hidden_dim
    encoding = p.input("encoding", (1, P, d + config.style_dim))
    index = p.input("index", (1, T), "i32")
    style = p.input("style", (1, config.style_dim))
    root = Scope(p) / "predictor"
    shared = bilstm(root / "shared", ops.gather(encoding, index), d // 2)  # [1,T,D]
    for branch in ("F0", "N"):
        x = adain_resblk1d(root / branch / 0, shared, style, d)
        x = adain_resblk1d(root / branch / 1, x, style, d // 2, upsample=True)  # [1,2T,D/2]
        x = adain_resblk1d(root / branch / 2, x, style, d // 2)
        p.outputs.append(conv1d(root / f"{branch}_proj", x, 1, 1))  # [1,2T,1]
    return p


def adain(s: Scope, x: Value, style: Value) -> Value:
    """Instance norm over time, scaled and shifted by the style."""
    return ops.affine(x, *ops.instance_affine(x, *_gamma_beta(s / "fc", style, int(x.shape[-1]))))


def adain_resblk1d(s: Scope, x: Value, style: Value, n: int, *, upsample: bool = False) -> Value:
    """[B,T,C] → [B,T,n], or [B,2T,n] with `upsample`"""
    c, shortcut = int(x.shape[-1]), x
    y = ops.leaky_relu(adain(s / "norm1", x, style), 0.2)
    if upsample:
        y = conv_transpose1d(s / "pool", y, c, 3, stride=2, padding=1, output_padding=1, groups=c)
        shortcut = ops.interpolate(shortcut, 2)
    y = conv1d(s / "conv1", y, n, 3, padding=1)
    if c != n:
        shortcut = conv1d(s / "conv1x1", shortcut, n, 1, bias=False)
    y = conv1d(s / "conv2", ops.leaky_relu(adain(s / "norm2", y, style), 0.2), n, 3, padding=1)
    return ops.mul(ops.add(y, shortcut), math.sqrt(0.5))


# --- source: f0 → harmonic spectrum -----------------------------------------------------------------------------------
def source_program(config: KokoroConfig) -> Program:
    """f0_hz [1,2T,1], seed [1,2] → spectrum [1,120T+1,22] (magnitude, then angle) of the excitation.

    Nine sines whose phases run in turns at frame rate, plus Gaussian noise. The official model draws noise per harmonic
    and mixes the nine with one linear layer; the mix of nine independent normals is one normal of the layer's norm,
    drawn once.
    """
    p = Program("kokoro.source")
    f0 = p.input("f0_hz", (1, F0_PER_FRAME * T, 1))
    seed = p.input("seed", (1, 2), "i32")
    vocoder = config.istftnet
    factor = math.prod(vocoder.upsample_rates) * vocoder.gen_istft_hop_size  # 300 samples per f0 value
    mix = Scope(p) / "decoder" / "generator" / "m_source" / "l_linear"
    turns = ops.mul(f0, p.constant(np.arange(1, HARMONICS + 1) / SAMPLE_RATE))  # [1,2T,9] per sample
    turns = ops.sub(turns, ops.floor(turns))
    sines = ops.sin(ops.mul(ops.cumsum_turns(turns, factor), 2 * math.pi))  # [1,600T,9]
    voiced = ops.interpolate(ops.greater(f0, VOICED_HZ), factor)  # [1,600T,1]
    tone = ops.mul(ops.mul(sines, SINE_AMPLITUDE), voiced)
    noise_std = ops.add(ops.mul(voiced, NOISE_STD - SINE_AMPLITUDE / 3), SINE_AMPLITUDE / 3)
    weight = mix.vector("weight", 1, HARMONICS)
    norm = ops.reshape(ops.sqrt(ops.sum(ops.mul(weight, weight), axis=1)), (1,))
    first = p.constant(np.zeros(1, np.int32))
    length = F0_PER_FRAME * T * factor
    noise = ops.mul(ops.mul(ops.randn(seed, first, length=length, channels=1, site=NOISE_SITE), norm), noise_std)
    excitation = ops.tanh(ops.add(ops.linear(tone, weight, mix.vector("bias", 1)), noise))  # [1,600T,1]
    spectrum = ops.stft(ops.reshape(excitation, (1, length)), vocoder.gen_istft_n_fft, vocoder.gen_istft_hop_size)
    bins = vocoder.gen_istft_n_fft // 2 + 1
    real, imaginary = ops.slice(spectrum, 2, 0, bins), ops.slice(spectrum, 2, bins, 2 * bins)
    magnitude = ops.sqrt(ops.add(ops.mul(real, real), ops.mul(imaginary, imaginary)))
    p.outputs = [ops.concat([magnitude, ops.atan2(imaginary, real)], axis=2)]
    return p


# --- decoder: text at frame rate, f0, energy, spectrum → audio --------------------------------------------------------
def decoder_program(config: KokoroConfig, precision: str = "f32") -> Program:
    """text [1,P,D], index [1,T], f0_hz [1,2T,1], energy [1,2T,1], spectrum [1,120T+1,22], style [1,S] → audio
    [1,600T]."""
    p = Program("kokoro.decoder")
    text = p.input("text", (1, P, config.hidden_dim))
    index = p.input("index", (1, T), "i32")
    f0 = p.input("f0_hz", (1, F0_PER_FRAME * T, 1))
    energy = p.input("energy", (1, F0_PER_FRAME * T, 1))
    bins = config.istftnet.gen_istft_n_fft + 2
    rate = F0_PER_FRAME * math.prod(config.istftnet.upsample_rates)
    spectrum = p.input("spectrum", (1, rate * T + 1, bins))
    style = p.input("style", (1, config.style_dim))
    most, bulk = POLICY[precision]
    s = Scope.at(p, "decoder", most)
    aligned = ops.gather(text, index)  # [1,T,D]
    f0 = conv1d(s / "F0_conv", f0, 1, 3, stride=2, padding=1)  # [1,T,1]
    energy = conv1d(s / "N_conv", energy, 1, 3, stride=2, padding=1)
    x = adain_resblk1d(s / "encode", ops.concat([aligned, f0, energy], axis=2), style, 1024)
    residual = conv1d(s / "asr_res" / 0, aligned, 64, 1)
    for i in range(4):
        x = ops.concat([x, residual, f0, energy], axis=2)  # [1,T,1090]
        x = adain_resblk1d(s / "decode" / i, x, style, 512 if i == 3 else 1024, upsample=i == 3)
    p.outputs = [_generator(s / "generator", x, spectrum, style, config, bulk)]
    return p


def _generator(s: Scope, x: Value, spectrum: Value, style: Value, config: KokoroConfig, bulk: str) -> Value:
    """[1,2T,512] → [1,600T]"""
    vocoder, heavy = config.istftnet, s.within(bulk)
    rates, c = vocoder.upsample_rates, vocoder.upsample_initial_channel
    for i, (rate, kernel) in enumerate(zip(rates, vocoder.upsample_kernel_sizes, strict=True)):
        c, last = c // 2, i + 1 == len(rates)
        x = conv_transpose1d(
            heavy / "ups" / i, ops.leaky_relu(x, 0.1), c, kernel, stride=rate, padding=(kernel - rate) // 2
        )
        if last:
            x = ops.pad(x, 1, 1, 0, "reflect")
        x = ops.add(x, _source_branch(s, i, spectrum, style, c, rates, bulk))
        first = len(vocoder.resblock_kernel_sizes) * i
        branches = list(zip(vocoder.resblock_kernel_sizes, vocoder.resblock_dilation_sizes, strict=True))
        total = adain_resblock1(heavy / "resblocks" / first, x, style, *branches[0])
        for j, (k, dilations) in enumerate(branches[1:], first + 1):  # added one by one, so that two are held at most
            total = ops.add(adain_resblock1(heavy / "resblocks" / j, x, style, k, dilations), total)
        x = ops.mul(total, 1 / len(branches))
    x = conv1d(s / "conv_post", ops.leaky_relu(x, 0.01), vocoder.gen_istft_n_fft + 2, 7, padding=3)
    bins = vocoder.gen_istft_n_fft // 2 + 1
    magnitude, phase = ops.exp(ops.slice(x, 2, 0, bins)), ops.sin(ops.slice(x, 2, bins, 2 * bins))
    polar = ops.concat([ops.mul(magnitude, ops.cos(phase)), ops.mul(magnitude, ops.sin(phase))], axis=2)
    return ops.istft(polar, vocoder.gen_istft_n_fft, vocoder.gen_istft_hop_size)


def _source_branch(
    s: Scope, i: int, spectrum: Value, style: Value, c: int, rates: tuple[int, ...], bulk: str
) -> Value:
    """The harmonic spectrum brought to stage i: a strided convolution and a residual block."""
    stride = math.prod(rates[i + 1 :])
    last = i + 1 == len(rates)
    kernel, padding = (1, 0) if last else (2 * stride, (stride + 1) // 2)
    x = conv1d(s / "noise_convs" / i, spectrum, c, kernel, stride=stride, padding=padding)
    return adain_resblock1((s / "noise_res" / i).within(bulk), x, style, 11 if last else 7, (1, 3, 5))


def adain_resblock1(s: Scope, x: Value, style: Value, kernel: int, dilations: tuple[int, ...]) -> Value:
    """[B,T,C] → [B,T,C]: per dilation AdaIN, Snake, dilated conv, AdaIN, Snake, conv, added to x"""
    c = int(x.shape[-1])
    for i, dilation in enumerate(dilations):
        y = ops.snake(adain(s / "adain1" / i, x, style), s.vector(f"alpha1.{i}", c))
        y = conv1d(s / "convs1" / i, y, c, kernel, dilation=dilation, padding=dilation * (kernel - 1) // 2)
        y = ops.snake(adain(s / "adain2" / i, y, style), s.vector(f"alpha2.{i}", c))
        x = ops.add(conv1d(s / "convs2" / i, y, c, kernel, padding=(kernel - 1) // 2), x)
    return x
