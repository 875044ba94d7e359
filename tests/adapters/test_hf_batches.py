"""Steps of one batch do not change each other, and a batch that is too large loses nothing."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import pytest

from omnidata.types import Completion, Conversation, Request
from tests.adapters.local_models import (
    FAMILIES,
    QWEN,
    Family,
    Parts,
    Spy,
    ask,
    checkpoint,
    conversation,
    local,
    runs,
    speech,
    torch,
)
from tests.adapters.media import shown
from tests.conftest import Once
from tests.full import in_gate

MIXED = (
    ("history_screenshot", "video", "audio", "screenshot"),
    ("screenshot",),
    ("audio", "screenshot"),
    ("video", "screenshot"),
    ("history_screenshot", "screenshot"),
)

NUMPY_2 = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
"""transformers counts tokens in a way that NumPy will give up."""


def mixed(made: Parts, folder: Path) -> list[Conversation]:
    """Steps with and without sound, clips and histories; tracks of several lengths."""
    other = shown("audio", speech(folder, "other.wav", 3.1, ending=0.4), "audio")
    asked = [conversation(made, roles) for roles in MIXED]
    return [*asked, conversation(made | {"audio": other}, ("audio", "video", "screenshot"))]


@pytest.mark.parametrize("family", in_gate(FAMILIES, 1, "a batch of each family"))
def test_a_batch_says_what_its_steps_say_alone(
    once: Once,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    family: Family,
    parts: Parts,
) -> None:
    asked = mixed(parts, tmp_path)
    folder = checkpoint(once, family)
    model = local(folder, max_new_tokens="6")

    async def alone() -> list[Completion]:
        ready = [model.prepare(Request("a", each)) for each in asked]
        return [(await model.generate([each], model.params))[0] for each in ready]

    single = asyncio.run(alone())
    spy = Spy(monkeypatch)
    batched = ask(local(folder, max_new_tokens="6", batch_size="8"), *asked)
    assert len(spy.inputs) == 1
    assert len(spy.inputs[0]["input_ids"]) == len(asked)
    assert [each.text for each in batched] == [each.text for each in single]
    assert len({each.text for each in single}) > 1
    for one, other in zip(batched, single, strict=True):
        assert (one.delivery, one.usage) == (other.delivery, other.usage)
        assert one.receipt == {**other.receipt, "batch": len(asked)}
    padded = spy.inputs[0]["attention_mask"]
    assert padded[:, -1].all() and not padded[:, 0].all()  # on the left


@NUMPY_2
@pytest.mark.parametrize("family", in_gate(QWEN, 1, "three batches"))
def test_sound_inside_clips_changes_no_other_step_of_the_batch(
    once: Once, tmp_path: Path, family: Family, parts: Parts
) -> None:
    asked = [mixed(parts, tmp_path)[number] for number in (0, 2, 3, -1)]
    options = {"audio_in_video": "true", "max_new_tokens": "5"}
    folder = checkpoint(once, family)
    single = [each.text for each in ask(local(folder, **options), *asked)]
    batched = ask(local(folder, **options, batch_size="8"), *asked)
    assert [each.error for each in batched if each.delivery == "api_error"] == []
    assert [each.text for each in batched] == single
    beside = [each.text for each in ask(local(folder, max_new_tokens="5"), *asked)]
    same = [one == other for one, other in zip(single, beside, strict=True)]
    assert same == [False, True, True, False]  # the first and the last have a clip and a track


@NUMPY_2
@pytest.mark.parametrize("family", in_gate(QWEN, 1, "a long clip of each family"))
def test_sound_inside_a_clip_stands_between_its_frames(
    once: Once, tmp_path: Path, spy: Spy, family: Family, parts: Parts
) -> None:
    from transformers import AutoProcessor

    folder = checkpoint(once, family)
    sound = shown("audio", speech(tmp_path, "s.wav", 3.0), "audio")
    long = parts | {"video": _slow_clip(tmp_path), "audio": sound}
    asked = conversation(long, ("video", "audio", "screenshot"))
    [answer] = ask(local(folder, audio_in_video="true"), asked)
    assert spy.inputs[0]["use_audio_in_video"] is True
    processor = AutoProcessor.from_pretrained(folder)
    seen = [kind for kind in runs(processor, spy.tensors["input_ids"][0]) if kind != "text"]
    assert seen[:4] == ["video", "audio", "video", "audio"]
    assert seen[-1] == "image"
    [beside] = ask(local(folder), asked)
    for kind in ("video", "audio", "image"):
        assert answer.receipt["tokens"][kind] == beside.receipt["tokens"][kind]
    assert "use_audio_in_video" not in spy.inputs[1]


def _slow_clip(folder: Path) -> Any:
    import numpy as np

    from omnidata.media import encode_mp4
    from omnidata.types import MediaRef

    greys = [np.full((64, 48, 3), 20 * number, np.uint8) for number in range(9)]
    (folder / "slow.mp4").write_bytes(encode_mp4(greys, fps=2, crf=0))
    return shown("video", MediaRef("video", folder, "slow.mp4"), "video")


class Small:
    """A `generate` of transformers on a machine that has memory for so many steps at a time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
        from transformers import GenerationMixin

        self.sizes: list[int] = []
        self.held: list[weakref.ref[Any]] = []
        self.still_held = 0
        own = GenerationMixin.generate

        def generate(model: Any, **kwargs: Any) -> Any:
            self.still_held += sum(held() is not None for held in self.held)
            self.sizes.append(len(kwargs["input_ids"]))
            taken = torch.zeros(8)  # as a cache that does not fit
            self.held.append(weakref.ref(taken))
            if self.sizes[-1] > most:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 1 GiB")
            del taken
            return own(model, **kwargs)

        monkeypatch.setattr(GenerationMixin, "generate", generate)


@pytest.mark.parametrize("most", in_gate([1, 3], 1, "one at a time is reached through three"))
def test_a_batch_that_does_not_fit_is_halved_until_it_does(
    once: Once,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    most: int,
    parts: Parts,
) -> None:
    asked = mixed(parts, tmp_path)
    folder = checkpoint(once, "qwen2.5-omni")
    whole = ask(local(folder, batch_size="8"), *asked)
    small = Small(monkeypatch, most)
    model = local(folder, batch_size="8")
    halved = ask(model, *asked)
    assert [each.text for each in halved] == [each.text for each in whole]
    assert max(each.receipt["batch"] for each in halved) <= most
    assert small.still_held == 0  # what a failed call took is free before the next one
    assert "out of memory with 6 steps; now 3 at a time" in caplog.text
    assert model.run_metadata()["batch_size"] <= max(most, 1)


def test_after_a_halving_no_step_of_a_later_batch_is_lost(
    once: Once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: Parts
) -> None:
    asked = mixed(parts, tmp_path)[:5]
    model = local(checkpoint(once, "qwen2.5-omni"), batch_size="5")

    async def twice(small_first: int) -> list[list[Completion]]:
        ready = [model.prepare(Request(f"{at}", each)) for at, each in enumerate(asked)]
        with monkeypatch.context() as patch:
            Small(patch, small_first)
            first = await model.generate(ready, model.params)
        with monkeypatch.context() as patch:
            small = Small(patch, 1)
            second = await model.generate(ready, model.params)
            assert small.sizes[0] == 2
        return [list(first), list(second)]

    first, second = asyncio.run(twice(2))
    assert [each.text for each in first] == [each.text for each in second]
    assert len(first) == len(second) == 5


def test_one_step_that_does_not_fit_fails_alone(
    once: Once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: Parts
) -> None:
    from transformers import GenerationMixin

    own = GenerationMixin.generate

    def generate(model: Any, **kwargs: Any) -> Any:
        if kwargs["attention_mask"].sum(dim=1).max() > 330:
            raise torch.OutOfMemoryError("CUDA out of memory.\nMore about it")
        return own(model, **kwargs)

    asked = mixed(parts, tmp_path)
    monkeypatch.setattr(GenerationMixin, "generate", generate)
    answers = ask(local(checkpoint(once, "qwen2.5-omni"), batch_size="8"), *asked)
    failed = [at for at, each in enumerate(answers) if each.delivery == "api_error"]
    assert 0 in failed and 1 not in failed
    assert answers[0].error.startswith("step 0: transformers failed (OutOfMemoryError: CUDA out")
    assert "\n" not in answers[0].error
    assert len(answers[0].receipt["parts"]) == 4


def test_a_device_that_has_failed_ends_the_run(
    once: Once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: Parts
) -> None:
    from transformers import GenerationMixin

    from omnidata.errors import CallError

    def generate(model: Any, **kwargs: Any) -> Any:
        raise torch.AcceleratorError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(GenerationMixin, "generate", generate)
    with pytest.raises(CallError, match="device-side assert") as caught:
        ask(local(checkpoint(once, "qwen2.5-omni"), batch_size="8"), *mixed(parts, tmp_path))
    assert caught.value.hopeless and not caught.value.transient


def test_a_cancelled_call_ends_with_the_next_token(
    once: Once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: Parts
) -> None:
    from transformers import GenerationMixin

    own: Any = GenerationMixin.generate
    made: list[int] = []
    began = threading.Event()

    def generate(model: Any, **kwargs: Any) -> Any:
        began.set()
        found = own(model, **{**kwargs, "eos_token_id": [], "min_new_tokens": 2000})
        made.append(found.shape[1] - kwargs["input_ids"].shape[1])
        return found

    monkeypatch.setattr(GenerationMixin, "generate", generate)
    model = local(checkpoint(once, "qwen2.5-omni"), max_new_tokens="2000")
    ready = [model.prepare(Request("a", mixed(parts, tmp_path)[1]))]

    async def cancelled() -> None:
        call = asyncio.create_task(model.generate(ready, model.params))
        await asyncio.to_thread(began.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await model.close()

    asyncio.run(cancelled())
    for _ in range(600):
        if made:
            break
        time.sleep(0.05)
    assert made and made[0] < 2000
