"""Tiny models load like real ones, see and hear, and are the same each time."""

from __future__ import annotations

import random
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnidata.adapters.tiny import make_tiny
from omnidata.errors import UsageError
from tests.adapters.local_models import APART, Family
from tests.conftest import Once
from tests.full import in_gate

torch = pytest.importorskip("torch", reason="needs the extra `local`")
pytestmark = pytest.mark.skipif(
    not all(map(find_spec, ("torchvision", "transformers"))), reason="needs the extra `local`"
)

FPS = 2.0
ANSWER = '{"action_type": -1}'


@pytest.fixture(params=in_gate(APART, 2, "a second Qwen"), scope="module")
def family(request: pytest.FixtureRequest) -> Family:
    chosen: Family = request.param
    return chosen


@pytest.fixture(scope="module")
def folder(once: Once, family: Family) -> Path:
    """A tiny model of seed 0; nobody writes into it."""
    return once(f"tiny-{family}", lambda path: make_tiny(family, path))


@pytest.fixture(scope="module")
def loaded(folder: Path) -> tuple[Any, Any]:
    """Processor and model, by transformers' own automatic classes."""
    from transformers import AutoModelForMultimodalLM, AutoProcessor

    model = AutoModelForMultimodalLM.from_pretrained(folder, dtype=torch.float32)
    processor = AutoProcessor.from_pretrained(folder)
    return processor, model.eval()


def message(*kinds: str, seeds: dict[str, int] | None = None) -> dict[str, Any]:
    """A user's message with random media of these kinds, and a question."""
    drawn = {kind: np.random.default_rng((seeds or {}).get(kind, 0)) for kind in kinds}
    media: dict[str, Any] = {
        "image": lambda: drawn["image"].integers(0, 256, (160, 72, 3), np.uint8),
        "video": lambda: drawn["video"].integers(0, 256, (4, 160, 72, 3), np.uint8),
        "audio": lambda: drawn["audio"].normal(0, 0.1, 32_000).astype(np.float32),
    }
    parts = [{"type": kind, kind: media[kind]()} for kind in kinds]
    return {"role": "user", "content": [*parts, {"type": "text", "text": "Go on. 你好"}]}


def read(processor: Any, *messages: dict[str, Any], **options: Any) -> Any:
    """The model's input; clips were sampled at two frames per second."""
    clip = {"total_num_frames": 4, "fps": FPS, "frames_indices": [0, 1, 2, 3]}
    clips = [part for said in messages for part in said["content"] if part["type"] == "video"]
    inputs: dict[str, Any] = {"return_tensors": "pt", "do_sample_frames": False}
    if clips:
        inputs["videos_kwargs"] = {"video_metadata": [clip]}
    return processor.apply_chat_template(
        list(messages), tokenize=True, return_dict=True, processor_kwargs=inputs, **options
    )


def logits(model: Any, inputs: Any) -> Any:
    """Of the next token."""
    with torch.inference_mode():
        return model(**inputs).logits[0, -1]


def test_a_model_answers_text_pictures_clips_and_sound(loaded: tuple[Any, Any]) -> None:
    processor, model = loaded
    assert sum(weights.numel() for weights in model.parameters()) < 1_000_000
    asked = message("image", "video", "audio")
    inputs = read(processor, asked, add_generation_prompt=True)
    answer = model.generate(**inputs, max_new_tokens=6, do_sample=False)
    assert inputs["input_ids"].shape[1] < answer.shape[1] <= inputs["input_ids"].shape[1] + 6
    assert torch.equal(answer, model.generate(**inputs, max_new_tokens=6, do_sample=False))


@pytest.mark.parametrize(
    "kinds",
    in_gate([(), ("image", "audio"), ("image",), ("video",), ("audio",)], 2, "some for others"),
)
def test_a_model_takes_any_set_of_media(loaded: tuple[Any, Any], kinds: tuple[str, ...]) -> None:
    processor, model = loaded
    found = logits(model, read(processor, message(*kinds)))
    assert torch.isfinite(found).all()


def test_the_template_marks_what_the_assistant_says(loaded: tuple[Any, Any]) -> None:
    processor, _ = loaded
    said = {"role": "assistant", "content": [{"type": "text", "text": ANSWER}]}
    inputs = read(processor, message("image"), said, return_assistant_tokens_mask=True)
    mask = torch.as_tensor(inputs["assistant_masks"]).bool()
    marked = processor.tokenizer.decode(inputs["input_ids"][mask])
    assert marked == f"{ANSWER}{processor.tokenizer.eos_token}\n"
    assert 5 <= int(mask.sum()) <= 20


def test_any_text_comes_back(loaded: tuple[Any, Any]) -> None:
    words = loaded[0].tokenizer
    for text in ('{"action_type": 7, "text": "点击 – naïve 🎉"}', "\x00 \t\r\n", "a  b"):
        assert words.decode(words(text)["input_ids"]) == text


def test_a_seed_gives_one_model_and_leaves_the_generators_alone(
    folder: Path, tmp_path: Path, family: Family
) -> None:
    torch.manual_seed(7)
    random.seed(7)
    states = torch.get_rng_state(), random.getstate()
    again = make_tiny(family, tmp_path / "again")
    other = make_tiny(family, tmp_path / "new" / "other", seed=1)
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == random.getstate()
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(path.name for path in again.iterdir())
    differing = [name for name in names if _bytes(folder, name) != _bytes(other, name)]
    assert [name for name in names if _bytes(folder, name) != _bytes(again, name)] == []
    assert differing == ["model.safetensors"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again", "new"]


def _bytes(folder: Path, name: str) -> bytes:
    return (folder / name).read_bytes()


def test_nothing_is_written_over(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="exists"):
        make_tiny("qwen2.5-omni", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_family_is_named_beside_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        make_tiny("gpt-2", tmp_path / "x")  # type: ignore[arg-type]  # none of the literals
    assert "gpt-2" in str(caught.value) and "qwen3-omni" in str(caught.value)
    assert list(tmp_path.iterdir()) == []
