"""Phonon and Pocket TTS: their engines and texts. Folders of weights are written by streaming_checkpoints.py.

Temperature 0 everywhere, so that every engine says the same; end of speech never comes, so that a text is spoken in a
fixed number of frames.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from engines import Engine, Given, Model, Speaker, Text

FRAMES = 100
VOICE = "bench"
POCKET_CONFIGS = {
    "pocket-100m": "english_2026-10",
    "pocket-2m": "english_2m_2026-10",
    "pocket-24l": "english_2026-09_24l",
}


def texts(folder: Path) -> list[Text]:
    by_frames = json.loads((folder / "bench.json").read_text(encoding="utf-8"))["texts"]
    return [Text(by_frames[str(FRAMES)], frames=FRAMES)]


def ptts(given: Given, quant: str) -> Speaker:
    import ptts as engine

    engine.set_num_threads(given.threads)
    tts = engine.TTS(str(given.folder), device="cpu", lang="none", quant=quant)
    tts.add_voice(VOICE, str(given.folder / "voices" / f"{VOICE}.safetensors"))
    return Speaker(*2 * [lambda text: tts.stream(text.text, voice=VOICE, temperature=0.0)])


def transformers(given: Given) -> Speaker:
    """Has no stream, and is built for one text."""
    from streaming_transformers import builder

    (only,) = given.texts
    speak = builder(given.folder, given.threads, only.text, only.frames)
    return Speaker(lambda _: [speak().numpy()])


def pocket_tts(given: Given) -> Speaker:
    import logging
    import tempfile

    import pocket_tts as engine
    import torch
    import yaml
    from pocket_tts.modules.stateful_module import init_states
    from pocket_tts.utils.config import CONFIGS_DIR

    logging.disable()
    config = yaml.safe_load((CONFIGS_DIR / f"{POCKET_CONFIGS[given.model]}.yaml").read_text(encoding="utf-8"))
    config |= {"weights_path": str(given.folder / "model.safetensors"), "weights_path_without_voice_cloning": None}
    table = config["flow_lm"]["lookup_table"]
    table["tokenizer_path"] = str(next(given.folder.glob("tokenizer.*")))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        tts = engine.TTSModel.load_model(config=path, temp=0.0)
    torch.set_num_threads(given.threads)  # the package sets 1 when it is imported
    torch.set_grad_enabled(False)
    prompt = torch.cat([tts.flow_lm.bos_before_voice, _projected(tts, given)], dim=1)
    state = init_states(tts.flow_lm, batch_size=1, sequence_length=prompt.shape[1])
    tts._run_flow_lm_and_increment_step(model_state=state, audio_conditioning=prompt)
    return Speaker(*2 * [lambda text: (c.numpy() for c in tts.generate_audio_stream(state, text.text))])


def _projected(tts: Any, given: Given) -> Any:
    import numpy as np
    import torch

    latents = torch.from_numpy(np.load(given.folder / "voice_latents.npy"))
    return (latents @ tts.flow_lm.speaker_proj_weight.T)[None]


def _model(name: str, engines: dict[str, Engine]) -> Model:
    sonant = ("sonant-f32", "sonant-q8")
    return Model(name=name, voice=VOICE, voices=True, engines=engines, texts=texts, sonant=sonant, calls=3)


_PTTS = {f"ptts-{quant}": Engine(("ptts",), partial(ptts, quant=quant)) for quant in ("f32", "q8_0")}
_TRANSFORMERS = {"transformers": Engine(("transformers", "torch"), transformers)}
_POCKET = {"pocket_tts": Engine(("pocket-tts", "torch"), pocket_tts)}
STREAMING = {
    "phonon": _model("phonon-31m-en", _PTTS | _TRANSFORMERS),
    "pocket-100m": _model("pocket-tts-en", _POCKET | _TRANSFORMERS),
    "pocket-2m": _model("pocket-tts-2m-en", _POCKET),
    "pocket-24l": _model("pocket-tts-24l-en", _POCKET | _TRANSFORMERS),
}
