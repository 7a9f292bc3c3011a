"""Kokoro: its engines and texts. A folder of weights is made as README.md says."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from engines import Engine, Given, Model, Speaker, Text

DATA = Path(__file__).parent.parent / "tests" / "families" / "kokoro" / "data"
VOICE = "af_heart"
SENTENCES = 5


def texts(folder: Path) -> list[Text]:
    """Harvard sentences, then a paragraph, with the official front end's phonemes."""
    both = (json.loads((DATA / f"benchmark_{kind}.json").read_text(encoding="utf-8")) for kind in ("texts", "phonemes"))
    found = [Text(text, phonemes) for text, phonemes in zip(*both, strict=True)]
    return [*found[:SENTENCES], found[-1]]


def onnxruntime(given: Given, file: str) -> Speaker:
    import numpy as np
    import onnxruntime as ort

    ort.set_default_logger_severity(3)
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = given.threads, 1
    session = ort.InferenceSession(str(given.folder / file), options, providers=["CPUExecutionProvider"])
    names, voice = [i.name for i in session.get_inputs()], _voice(given.folder)
    vocab = json.loads((given.folder / "config.json").read_text(encoding="utf-8"))["vocab"]

    def say(text: Text) -> list[Any]:
        ids = [0, *(vocab[c] for c in text.phonemes), 0]
        inputs = (np.array([ids], np.int64), voice[len(text.phonemes) - 1][None], np.ones(1, np.float32))
        return [session.run(None, dict(zip(names, inputs, strict=True)))[0].ravel()]

    return Speaker(say, read=misaki)


def torch(given: Given) -> Speaker:
    import warnings

    warnings.filterwarnings("ignore")
    import torch as t
    from kokoro.model import KModel

    t.set_num_threads(given.threads)
    config, weights = str(given.folder / "config.json"), str(given.folder / "kokoro-v1_0.pth")
    model = KModel(repo_id="hexgrad/Kokoro-82M", config=config, model=weights).eval()
    voice = t.from_numpy(_voice(given.folder))
    return Speaker(lambda text: [model(text.phonemes, voice[len(text.phonemes) - 1][None], 1.0).numpy()], read=misaki)


def vox(given: Given, dtype: str) -> Speaker:
    """Its stream gives the first chunk when the last is there."""
    import vox

    engine = vox.Engine(str(given.folder / f"kokoro.{dtype}.tmod"), device="cpu", threads=given.threads)
    voice = engine.speaker_voice(VOICE)
    return Speaker(
        lambda text: [engine.synthesize(text.phonemes, voice, phonemes=True)],
        read=lambda: lambda text: engine.phonemize(text, g2p="builtin")["phonemes"],
    )


def misaki() -> Callable[[str], str]:
    """The official front end, without its fallback for unknown words."""
    from misaki.en import G2P

    read = G2P(trf=False, british=False, fallback=None, unk="")
    return lambda text: read(text)[0]


def _voice(folder: Path) -> Any:
    import numpy as np

    return np.fromfile(folder / f"{VOICE}.bin", "<f4").reshape(510, 256)


ONNX_INT8, ONNX_F32 = "kokoro-v1.0.int8.onnx", "kokoro-v1.0.f32-export.onnx"
KOKORO = Model(
    name="kokoro-82m",
    voice=VOICE,
    voices=False,
    engines={
        "onnxruntime-int8": Engine(("onnxruntime", "misaki"), partial(onnxruntime, file=ONNX_INT8), (ONNX_INT8,)),
        "onnxruntime-f32": Engine(("onnxruntime", "misaki"), partial(onnxruntime, file=ONNX_F32), (ONNX_F32,)),
        "torch": Engine(("kokoro", "torch"), torch, ("kokoro-v1_0.pth",)),
        "vox-f32": Engine(("vox-tts",), partial(vox, dtype="f32"), ("kokoro.f32.tmod",)),
        "vox-bf16": Engine(("vox-tts",), partial(vox, dtype="bf16"), ("kokoro.bf16.tmod",)),
    },
    texts=texts,
    sonant=("sonant-f32", "sonant-bf16", "sonant-int8", "sonant-f32-avx2"),
    calls=1,
)
