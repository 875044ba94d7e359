"""Local models on tiny checkpoints, and what reaches transformers' own `generate`."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

import av
import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from omnidata.adapters import get_adapter
from omnidata.adapters.tiny import make_tiny
from omnidata.media import encode_wav
from omnidata.types import (
    Adapter,
    Completion,
    Conversation,
    GenerationParams,
    MediaRef,
    Message,
    Part,
    Request,
)
from tests.adapters.media import RATE, clip, colours, picture
from tests.conftest import Once

torch: Any = pytest.importorskip("torch", reason="needs the extra `local`")
if find_spec("transformers") is None:  # an import takes seconds of every process of tests
    pytest.skip("needs the extra `local`", allow_module_level=True)

# Tests run side by side, and threads of tiny models wait for each other more than they work.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)

Family = Literal["qwen2.5-omni", "qwen3-omni", "gemma4"]
FAMILIES: tuple[Family, ...] = get_args(get_type_hints(make_tiny)["family"])
APART: tuple[Family, ...] = ("qwen2.5-omni", "gemma4", "qwen3-omni")
"""The same; those with least in common are first."""
QWEN: tuple[Family, ...] = ("qwen2.5-omni", "qwen3-omni")
KINDS = ("image", "video", "audio")
Parts = dict[str, Part]
SAMPLED = 2.0  # frames per second that are read of a clip unless told otherwise


def checkpoint(once: Once, family: Family) -> Path:
    """A tiny checkpoint; nobody writes into it.

    Where it hears by Whisper's features, tracks are filled up to 4 s instead of 30.
    """

    def write(path: Path) -> None:
        shutil.copytree(once(f"tiny-{family}", lambda made: make_tiny(family, made)), path)
        about = path / "processor_config.json"
        processor = json.loads(about.read_text(encoding="utf-8"))
        if "chunk_length" in processor["feature_extractor"]:
            processor["feature_extractor"]["chunk_length"] = 4
        about.write_text(json.dumps(processor), encoding="utf-8")

    return once(f"short-{family}", write)


def local(folder: str | Path, **options: str) -> Adapter:
    """A model in float32 that says four tokens; options are as given with -M."""
    return get_adapter(f"hf:{folder}", None, (), options={"max_new_tokens": "4", **options})


def ask(
    model: Adapter, *conversations: Conversation, params: GenerationParams | None = None
) -> list[Completion]:
    """One batch, then close."""

    async def once() -> list[Completion]:
        try:
            ready = [
                model.prepare(Request(f"step {number}", conversation))
                for number, conversation in enumerate(conversations)
            ]
            return list(await model.generate(ready, params or model.params))
        finally:
            await model.close()

    return asyncio.run(once())


class Spy:
    """Keeps what `generate` was given and by which model; transformers' own one does the work.

    Attributes:
        inputs, models, outputs: of each call.
        coming: of each call, what the model finds likely right after its prompts, (batch,
            vocabulary).
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from transformers import GenerationMixin

        self.inputs: list[dict[str, Any]] = []
        self.outputs: list[Any] = []
        self.models: list[Any] = []
        self.coming: list[Any] = []
        own = GenerationMixin.generate

        def generate(model: Any, **kwargs: Any) -> Any:
            self.models.append(model)
            self.inputs.append(kwargs)
            found: list[Any] = []
            hook = model.register_forward_hook(lambda _, given, made: found.append(made.logits))
            self.outputs.append(own(model, **kwargs))
            hook.remove()
            self.coming.append(found[0][:, -1].float())
            return self.outputs[-1]

        monkeypatch.setattr(GenerationMixin, "generate", generate)

    @staticmethod
    def tensors_of(inputs: dict[str, Any]) -> dict[str, Any]:
        """What the model reads, without how to decode."""
        how = ("video_second_per_grid", "use_audio_in_video")
        return {
            name: value
            for name, value in inputs.items()
            if isinstance(value, torch.Tensor) or name in how
        }

    @property
    def tensors(self) -> dict[str, Any]:
        """What the model of the last call read."""
        return self.tensors_of(self.inputs[-1])

    @property
    def logits(self) -> Any:
        """What the model of the last call finds likely at every position."""
        return logits(self.models[-1], self.tensors)


def logits(model: Any, inputs: Any) -> Any:
    """Of every position, float32 (batch, tokens, vocabulary)."""
    with torch.inference_mode():
        return model(**inputs).logits


def speech(folder: Path, name: str, seconds: float, *, ending: float = 0.0) -> MediaRef:
    """A chirp; its last second is louder by `ending`."""
    times = np.arange(int(seconds * RATE)) / RATE
    wave = 0.3 * np.sin(2 * np.pi * (200 + 20 * times) * times)
    wave[-RATE:] += ending * np.sin(2 * np.pi * 1_500 * times[-RATE:])
    (folder / name).write_bytes(encode_wav(wave))
    return MediaRef("audio", folder, name)


def media(folder: Path) -> Parts:
    """One medium of each role, by role."""
    folder.mkdir(parents=True, exist_ok=True)
    return {
        "history_screenshot": Part(
            "image", media=picture(folder, "history.png", colours(1)), role="history_screenshot"
        ),
        "video": Part("video", media=clip(folder), role="video"),
        "audio": Part("audio", media=speech(folder, "sound.wav", 1.5), role="audio"),
        "screenshot": Part(
            "image", media=picture(folder, "screenshot.png", colours(2)), role="screenshot"
        ),
    }


def conversation(made: Parts, roles: Sequence[str]) -> Conversation:
    """A system prompt, and a turn with media of these roles in this order, then the goal."""
    parts = (*(made[role] for role in roles), Part("text", "Goal: Tap Share"))
    return (Message("system", (Part("text", "You are an agent."),)), Message("user", parts))


def decoded_frames(path: Path, numbers: Sequence[int]) -> npt.NDArray[np.uint8]:
    """Frames of a clip by PyAV."""
    with av.open(str(path)) as container:
        found = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    return np.stack([found[number] for number in numbers]).astype(np.uint8)


def decoded_samples(path: Path) -> npt.NDArray[np.float32]:
    """A track by PyAV."""
    resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
    with av.open(str(path)) as container:
        frames = [
            piece for frame in container.decode(audio=0) for piece in resampler.resample(frame)
        ]
        frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray()[0] for frame in frames]).astype(np.float32)


def decoded_image(path: Path) -> Image.Image:
    with Image.open(path) as opened:
        return opened.convert("RGB")


def runs(processor: Any, ids: Any) -> list[str]:
    """The kinds of tokens of one row in order; neighbours of a kind once, padding left out."""
    tokens = {getattr(processor, f"{kind}_token_id", None): kind for kind in KINDS}
    found: list[str] = []
    for number in ids.tolist():
        kind = tokens.get(number, "text")
        if number != processor.tokenizer.pad_token_id and (not found or found[-1] != kind):
            found.append(kind)
    return found
