"""One medium alone tells the answer: shown on generated data."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnidata.actions import NUMBERS
from omnidata.media import frames, image, samples
from omnidata.synth.episodes import Settings
from omnidata.synth.episodes.settings import CUES, QUESTIONS
from omnidata.types import MediaRef, Step
from tests.full import FULL, in_gate
from tests.synth.making import ROLES, TINY, content, make_steps, only, right, twins

ALL_CUES = tuple(name for name in CUES if name != "speech")


@st.composite
def any_settings(draw: st.DrawFn) -> Settings:
    audio = draw(st.floats(0, 1))
    return replace(
        TINY,
        seed=draw(st.integers(0, 10**6)),
        audio_share=audio,
        video_share=(1 - audio) * draw(st.floats(0, 1)),
        fps=16,
        seconds=draw(st.sampled_from([1.0, 1.3])),
        size=(draw(st.integers(32, 120)), draw(st.integers(32, 160))),
        max_steps=draw(st.integers(1, 4)),
        apps=draw(st.integers(1, 96)),
        cues=ALL_CUES,
        questions=draw(st.sampled_from([QUESTIONS, *[(kind,) for kind in QUESTIONS]])),
        shuffled=draw(st.booleans()),
        distractors=draw(st.floats(0, 1)),
    )


@settings(max_examples=20 if FULL else 8)
@given(any_settings())
def test_twins_differ_in_the_deciding_medium_and_the_answer_alone(chosen: Settings) -> None:
    with tempfile.TemporaryDirectory() as name:
        steps = make_steps(Path(name) / "data", chosen, episodes=8)
        for group in twins(steps):
            first = group[0]
            assert len(group) == 4
            assert len({right(step) for step in group}) == 4
            for field in ("cue", "cue_kind", "question", "distractors", "episode_length"):
                assert all(step.source[field] == first.source[field] for step in group)
            assert len({(step.instruction, step.screen) for step in group}) == 1
            assert len({tuple(sorted(step.tags.items())) for step in group}) == 1
            if first.step_index:
                (before,) = (step for step in steps if step.sample_id == _before(first))
                assert content(before, "screenshot") != content(first, "screenshot")
            for medium, role in ROLES.items():
                different = len({content(step, role) for step in group})
                assert different == (4 if medium == first.source["cue"] else 1)
                assert len({len(content(step, role)) for step in group}) == 1


def _before(step: Step) -> str:
    return f"{step.tags['app']}/{step.episode_id}/{step.step_index - 1}"


@pytest.mark.parametrize("cue", [name for name in CUES if name != "speech"])
def test_a_cue_can_be_told_apart_by_what_is_decoded(tmp_path: Path, cue: str) -> None:
    medium = CUES[cue].medium
    chosen = only(medium, cues=(cue,), fps=16, seconds=1.0, max_steps=1, size=(96, 128))
    chosen = replace(chosen, clip_size=(48, 64), distractors=0.0)
    for group in twins(make_steps(tmp_path / "data", chosen, episodes=8)):
        seen = [_decoded(step, ROLES[medium]) for step in group]
        for number, one in enumerate(seen):
            for other in seen[:number]:
                # Of 255, or of a full scale of 1: far more than what coding loses.
                assert np.abs(one - other).max() > (0.1 if medium == "audio" else 40)


@pytest.mark.parametrize(
    "cue", in_gate([name for name in CUES if CUES[name].medium == "video"], 1, "seconds of films")
)
def test_a_sign_does_not_hide_what_is_to_be_seen_in_the_clip(tmp_path: Path, cue: str) -> None:
    """While it moves the sign is gone: a number is not written on a number."""
    chosen = replace(
        only("video", cues=(cue,), fps=16, seconds=1.0, max_steps=1, size=(96, 128), apps=1),
        clip_size=(96, 128),
    )
    least = {}
    for distractors in (0.0, 1.0):
        steps = make_steps(tmp_path / str(distractors), replace(chosen, distractors=distractors))
        least[distractors] = min(_changed(group) for group in twins(steps))
    assert least[1.0] >= 0.8 * least[0.0]


def _changed(group: Sequence[Step]) -> int:
    """Of the two twins that are most alike, the pixels that differ in a frame."""
    seen = [_decoded(step, "video") for step in group]
    return min(
        int((np.abs(one - other).max(axis=3) > 40).sum(axis=(1, 2)).max())
        for number, one in enumerate(seen)
        for other in seen[:number]
    )


def _decoded(step: Step, role: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    ref = _ref(step, role)
    if role == "audio":
        return samples(ref, rate=16_000).astype(np.float64)
    if role == "video":
        return frames(ref, which="all").pixels.astype(np.float64)
    return image(ref).pixels.astype(np.float64)


def _ref(step: Step, role: str) -> MediaRef:
    ref = step.media[role]
    assert ref is not None
    return ref


def test_the_history_says_nothing_about_the_answer(tmp_path: Path) -> None:
    chosen = only(
        "audio", cues=("pitch",), questions=("leave",), max_steps=2, shuffled=False,
        size=(32, 32), clip_size=(32, 32), fps=4,
    )  # fmt: skip
    steps = make_steps(tmp_path / "data", chosen, episodes=480 if FULL else 256)
    second = [step for step in steps if step.step_index == 1]
    pairs = Counter(
        (NUMBERS[step.history[0].label], NUMBERS[step.action.label])
        for step in second
        if step.action is not None and step.history[0] is not None
    )
    expected = len(second) / 16
    away = [pairs[a, b] - expected for a in range(8, 12) for b in range(8, 12)]
    chi2 = sum(number * number for number in away) / expected
    assert expected >= 5  # a count, as the test needs it
    assert chi2 < 37.7  # 15 degrees of freedom, p = 0.001


def test_a_sign_is_not_in_the_clip(tmp_path: Path) -> None:
    chosen = only("screen", cues=("digit",), max_steps=1, distractors=0.0, size=(64, 96))
    for step in make_steps(tmp_path / "data", replace(chosen, clip_size=(64, 96))):
        last = frames(_ref(step, "video"), which="all").pixels[-1].astype(int)
        assert np.abs(last - image(_ref(step, "screenshot")).pixels.astype(int)).max() > 60
