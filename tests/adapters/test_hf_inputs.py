"""What a local model gets is what calling processor and model by hand gives it."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from omnidata.errors import UsageError
from omnidata.media import encode_wav
from omnidata.types import MediaRef, Message, Part, Request
from tests.adapters.local_models import (
    APART,
    FAMILIES,
    QWEN,
    SAMPLED,
    Family,
    Parts,
    Spy,
    ask,
    checkpoint,
    conversation,
    decoded_frames,
    decoded_image,
    decoded_samples,
    local,
    logits,
    speech,
    torch,
)
from tests.adapters.media import FPS, colours, picture, shown, tone
from tests.conftest import Once
from tests.full import in_gate

OTHERS = ("history_screenshot", "video", "audio")
ROLES = [
    ("audio", "screenshot", "video", "history_screenshot"),  # an unusual order
    *((*chosen, "screenshot") for size in (3, 0, 1, 2) for chosen in combinations(OTHERS, size)),
]
TICKS = [0, 5, 10]  # frames of a clip of 10 frames per second that are shown at 0, 0.5 and 1 s


def by_hand(folder: Path, made: Parts, roles: tuple[str, ...]) -> tuple[Any, Any]:
    """Processor and model called without omnidata; the media decoded with PyAV and Pillow."""
    from transformers import AutoModelForMultimodalLM, AutoProcessor

    files = made["video"].media.root  # type: ignore[union-attr]  # it has one
    shown_as: dict[str, Any] = {
        "history_screenshot": lambda: ("image", decoded_image(files / "history.png")),
        "screenshot": lambda: ("image", decoded_image(files / "screenshot.png")),
        "video": lambda: ("video", decoded_frames(files / "clip.mp4", TICKS)),
        "audio": lambda: ("audio", decoded_samples(files / "sound.wav")),
    }
    parts = [{"type": kind, kind: value} for kind, value in (shown_as[role]() for role in roles)]
    messages = [
        {"role": "system", "content": [{"type": "text", "text": "You are an agent."}]},
        {"role": "user", "content": [*parts, {"type": "text", "text": "Goal: Tap Share"}]},
    ]
    how: dict[str, Any] = {"return_tensors": "pt"}
    if "video" in roles:
        seen = {"total_num_frames": 3, "fps": SAMPLED, "frames_indices": [0, 1, 2]}
        how |= {"do_sample_frames": False, "fps": SAMPLED, "video_metadata": [seen]}
    processor = AutoProcessor.from_pretrained(folder)
    model = AutoModelForMultimodalLM.from_pretrained(folder, dtype=torch.float32).eval()
    inputs = processor.apply_chat_template(
        messages, tokenize=True, return_dict=True, add_generation_prompt=True, processor_kwargs=how
    )
    return inputs, model


@pytest.mark.parametrize("family", in_gate(APART, 2, "a second Qwen"))
@pytest.mark.parametrize("roles", in_gate(ROLES, 1, "all stand for some"))
def test_logits_equal_those_of_processor_and_model_called_by_hand(
    once: Once,
    parts: Parts,
    spy: Spy,
    family: Family,
    roles: tuple[str, ...],
) -> None:
    folder = checkpoint(once, family)
    [answer] = ask(local(folder), conversation(parts, roles))
    assert answer.delivery in ("ok", "truncated"), answer.error
    inputs, model = by_hand(folder, parts, roles)
    assert spy.tensors.keys() == inputs.keys()
    assert torch.equal(spy.tensors["input_ids"], inputs["input_ids"])  # in the order of the prompt
    assert torch.allclose(spy.logits, logits(model, inputs), atol=1e-5)
    told = model.generate(**inputs, max_new_tokens=4, do_sample=False)
    words = told[0, inputs["input_ids"].shape[1] :]
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(folder)
    assert answer.text == processor.decode(words, skip_special_tokens=True)


@pytest.mark.parametrize("family", in_gate(FAMILIES, 1, "four steps of each family"))
def test_changing_one_medium_alone_changes_what_comes_next(
    once: Once, tmp_path: Path, spy: Spy, family: Family, parts: Parts
) -> None:
    others = {
        role: shown("image", picture(tmp_path, f"other_{role}.png", colours(9)), role)
        for role in ("history_screenshot", "screenshot")
    }
    others["video"] = shown("video", _backwards(tmp_path), "video")
    others["audio"] = shown("audio", speech(tmp_path, "b.wav", 1.5, ending=0.5), "audio")
    changed = [parts, *(parts | {role: other} for role, other in others.items())]
    asked = [conversation(each, tuple(parts)) for each in changed]
    ask(local(checkpoint(once, family), max_new_tokens="1"), *asked)
    before, *after = spy.coming
    for role, found in zip(others, after, strict=True):
        assert (before - found).abs().max() > 1e-3, role


def _backwards(folder: Path) -> Any:
    import numpy as np

    from omnidata.media import encode_mp4

    greys = [np.full((64, 48, 3), 20 * number, np.uint8) for number in reversed(range(12))]
    (folder / "b.mp4").write_bytes(encode_mp4(greys, fps=FPS, crf=0))
    return MediaRef("video", folder, "b.mp4")


@pytest.mark.parametrize("family", in_gate(FAMILIES, 1, "two long tracks of each family"))
def test_a_track_of_40_seconds_is_heard_to_its_end(
    once: Once, tmp_path: Path, spy: Spy, family: Family, parts: Parts
) -> None:
    tracks = [speech(tmp_path, f"{end}.wav", 40.0, ending=end) for end in (0.0, 0.5)]
    asked = [
        conversation(parts | {"audio": shown("audio", track, "audio")}, ("audio", "screenshot"))
        for track in tracks
    ]
    answers = ask(local(checkpoint(once, family), max_new_tokens="1"), *asked)
    for answer in answers:
        [sound, _] = answer.receipt["parts"]
        assert sound["seconds"] == 40.0
        assert "cut" not in sound and "degraded" not in answer.receipt
        # Qwen3's encoder makes 13 tokens of a second, the others 25.
        per_second = 13 if family == "qwen3-omni" else 25
        assert answer.receipt["tokens"]["audio"] == pytest.approx(40 * per_second, abs=5)
    one, other = spy.coming
    assert (one - other).abs().max() > 1e-4


def test_a_track_is_resampled_to_the_rate_that_is_asked_for(
    once: Once, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two tones the one above half of the rate is gone."""
    (tmp_path / "tones.wav").write_bytes(encode_wav(tone(2.0) / 2 + tone(2.0, 3000.0) / 2))
    part = Part("audio", media=MediaRef("audio", tmp_path, "tones.wav"), role="audio")
    spy, features = Spy(monkeypatch), []
    for options in ({}, {"audio_rate": "4000"}):
        model = local(checkpoint(once, "qwen2.5-omni"), max_new_tokens="1", **options)
        [answer] = ask(model, (Message("user", (part,)),))
        assert answer.receipt["parts"][0].get("rate") == (4000 if options else None)
        features.append(spy.tensors["input_features"][0][:, 50:150].mean(-1))
    plain, limited = features
    high = 64 + int(plain[64:].argmax())
    assert plain[high] - limited[high] > 0.5
    assert abs(plain[:64].max() - limited[:64].max()) < 0.1


@pytest.mark.parametrize("family", in_gate(APART, 2, "a second Qwen"))
def test_the_rate_at_which_a_clip_was_read_reaches_the_model(
    once: Once, parts: Parts, spy: Spy, family: Family
) -> None:
    folder = checkpoint(once, family)
    asked = conversation(parts, ("video", "screenshot"))
    [answer] = ask(local(folder, fps="5"), asked)
    line = answer.receipt["parts"][0]
    assert (line["frames"], line["fps"]) == (6, 5.0)
    assert line["times_s"] == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    if family != "gemma4":  # two frames make one step in time
        assert list(spy.tensors["video_second_per_grid"]) == [pytest.approx(2 / 5)]


@pytest.mark.parametrize("family", in_gate(QWEN, 1, "seconds of large frames"))
def test_the_size_of_frames_can_be_limited(once: Once, parts: Parts, family: Family) -> None:
    asked = conversation(parts, ("video", "screenshot"))
    folder = checkpoint(once, family)

    def tokens(**options: str) -> int:
        [answer] = ask(local(folder, max_new_tokens="1", **options), asked)
        return int(answer.receipt["tokens"]["video"])

    area = 28 * 28 if family == "qwen2.5-omni" else 32 * 32  # pixels behind a token
    pairs = 2  # three frames make two steps in time
    own = tokens()
    assert pairs * 64 * 784 < own * area
    assert tokens(max_video_pixels=str(64 * 784)) * area <= pairs * 64 * 784
    assert tokens(min_video_pixels=str(400 * 784)) * area >= pairs * 400 * 784
    assert tokens(max_video_pixels=str(9 * 784), min_video_pixels="784") < own / 10


def test_limits_that_a_family_does_not_have_are_refused(once: Once) -> None:
    with pytest.raises(UsageError, match="cannot be set"):
        local(checkpoint(once, "gemma4"), max_video_pixels="50176")
    with pytest.raises(UsageError, match="minimum exceeds the maximum"):
        local(checkpoint(once, "qwen3-omni"), max_video_pixels="50176", min_video_pixels="60000")


def test_media_without_text_around_them_are_told_apart_by_the_key(
    once: Once, tmp_path: Path, parts: Parts
) -> None:
    model = local(checkpoint(once, "qwen2.5-omni"))
    roles = ("history_screenshot", "video", "audio", "screenshot")
    keys = {model.prepare(Request("a", conversation(parts, roles))).key for _ in range(2)}
    assert len(keys) == 1
    swapped = ("screenshot", "video", "audio", "history_screenshot")
    keys.add(model.prepare(Request("a", conversation(parts, swapped))).key)
    louder = parts | {"audio": shown("audio", speech(tmp_path, "l.wav", 1.5, ending=0.5), "audio")}
    keys.add(model.prepare(Request("a", conversation(louder, roles))).key)
    assert len(keys) == 3
