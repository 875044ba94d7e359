"""What can be asked for, and whether that is what is made."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.errors import UsageError
from omnidata.synth.episodes import Settings, make_episodes
from omnidata.synth.episodes.pages import Drawing
from omnidata.synth.episodes.plans import plan
from omnidata.synth.episodes.screens import layout, look
from omnidata.synth.episodes.settings import (
    CUES,
    LANGUAGES,
    MOST_APPS,
    QUESTIONS,
    Kind,
    QuestionKind,
    labels,
    texts,
)
from tests.synth.making import TINY, digests, make_steps


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"audio_share": 1.2}, "--audio-share"),
        ({"audio_share": 0.8, "video_share": 0.4}, "--audio-share + --video-share"),
        ({"video_share": float("nan")}, "--video-share"),
        ({"distractors": -0.1}, "--distractors"),
        ({"seconds": 0.2}, "--seconds"),
        ({"fps": 0}, "--fps"),
        ({"max_steps": 0}, "--max-steps"),
        ({"apps": MOST_APPS + 1}, "--apps"),
        ({"size": (8, 8)}, "--size"),
        ({"clip_size": (33, 64)}, "even"),
        ({"cues": ("pitch", "whistle")}, "whistle"),
        ({"cues": ("pitch", "pitch")}, "--cue"),
        ({"questions": ()}, "--answers"),
        ({"cues": ("pitch",)}, "no cue for the video steps"),
        ({"cues": None, "fps": 4}, "no cue for the video steps"),
        ({"cues": ("pitch", "digit", "lamp", "blink")}, "blink needs 16 frames"),
        ({"cues": ("pitch", "digit", "lamp", "speech")}, "speech needs 1 s"),
    ],
)
def test_what_cannot_be_made_is_refused(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        replace(TINY, **changes)
    assert told in str(caught.value)


@given(
    seed=st.integers(0, 10**9),
    audio=st.floats(0, 1),
    rest=st.floats(0, 1),
    first=st.integers(0, 10**6),
)
def test_a_few_hundred_steps_have_the_shares_that_were_asked_for(
    seed: int, audio: float, rest: float, first: int
) -> None:
    video = (1 - audio) * rest
    chosen = replace(TINY, seed=seed, audio_share=audio, video_share=video, max_steps=1)
    counts = Counter(chosen.medium(group, 0) for group in range(first, first + 300))
    for medium in ("audio", "video", "screen"):
        assert counts[medium] / 300 == pytest.approx(chosen.share(medium), abs=0.02)


@pytest.mark.parametrize("seed", [0, 1, -7, 10**30])
@pytest.mark.parametrize("most", [1, 2, 3, 8])
def test_episodes_of_several_steps_have_the_shares_and_all_lengths(seed: int, most: int) -> None:
    chosen = replace(TINY, seed=seed, max_steps=most)
    lengths = [chosen.length(group) for group in range(250)]
    counts = Counter(
        chosen.medium(group, step) for group, length in enumerate(lengths) for step in range(length)
    )
    for medium in ("audio", "video", "screen"):
        assert counts[medium] / sum(lengths) == pytest.approx(chosen.share(medium), abs=0.02)
    for length in range(1, most + 1):
        assert lengths.count(length) / 250 == pytest.approx(1 / most, abs=0.03)


@pytest.mark.parametrize(("medium", "shares"), [("audio", (1, 0)), ("video", (0, 1))])
def test_a_share_of_one_is_all_of_the_steps(medium: str, shares: tuple[float, float]) -> None:
    chosen = replace(TINY, audio_share=shares[0], video_share=shares[1])
    groups = [plan(chosen, number) for number in range(50)]
    assert {step.medium for group in groups for step in group.steps} == {medium}


@given(
    st.integers(0, 1000),
    st.integers(0, MOST_APPS - 1),
    st.integers(32, 4096),
    st.integers(32, 4096),
    st.sampled_from(QUESTIONS),
)
def test_every_screen_has_room_for_all_that_is_on_it(
    seed: int, number: int, width: int, height: int, question: QuestionKind
) -> None:
    where = layout(look(seed, number), (width, height), question)
    rects = [where.stage, where.page, where.panel, *where.options]
    for left, top, right, bottom in rects:
        assert 0 <= left < right - 1
        assert right <= width
        assert 0 <= top < bottom - 1
        assert bottom <= height
    for k, one in enumerate(where.options):
        for other in (*where.options[:k], where.stage):
            assert (
                one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
            )


def test_no_two_apps_have_one_name() -> None:
    names = [look(5, number).name.casefold() for number in range(MOST_APPS)]
    assert len(set(names)) == MOST_APPS


def test_the_report_counts_what_is_there(tmp_path: Path) -> None:
    report = make_episodes(tmp_path / "data", TINY, episodes=42)["made"]
    steps = make_steps(tmp_path / "data", TINY, episodes=42)
    assert report["sizes"] == {
        "episodes": 42, "groups": 11, "incomplete_groups": 1, "steps": len(steps),
    }  # fmt: skip
    assert report["media"] == Counter(step.source["cue"] for step in steps)
    assert report["cues"] == Counter(step.source["cue_kind"] for step in steps)
    assert report["questions"] == Counter(step.source["question"] for step in steps)
    assert report["apps"] == Counter(step.tags["app"] for step in steps)
    assert report["languages"] == Counter(step.tags["language"] for step in steps)
    assert report["primitives"] == Counter(
        step.action.label for step in steps if step.action is not None
    )
    for role, suffix in (("screenshot", "png"), ("video", "mp4"), ("audio", "wav")):
        files = (tmp_path / "data").rglob(f"*.{suffix}")
        assert report["bytes"][role] == sum(path.stat().st_size for path in files)


def test_the_defaults_make_all_primitives_cues_and_words() -> None:
    groups = [plan(Settings(), number) for number in range(400)]
    steps = [step for group in groups for step in group.steps]
    assert len({action.label for step in steps for action in step.actions}) == 13
    assert {step.cue for step in steps} == set(Settings().all_cues)
    assert len({group.look.name for group in groups}) == 24
    assert {group.look.language for group in groups} == {"en", "zh"}
    assert len({group.look.words for group in groups}) > 3
    assert {name for step in steps for name in step.distraction.names()} == {
        "noise", "sound", "drift", "motion", "sign",
    }  # fmt: skip


def test_left_to_themselves_cues_are_those_that_there_is_time_for() -> None:
    assert set(Settings().all_cues) == set(CUES) - {"speech"}
    assert set(CUES) - set(replace(TINY, cues=None).all_cues) == {
        "move", "number", "blink", "speech",
    }  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 1},
        {"audio_share": 0.41},
        {"size": (48, 66)},
        {"clip_size": (34, 48)},
        {"fps": 9},
        {"seconds": 0.6},
        {"max_steps": 2},
        {"apps": 23},
        {"cues": ("glide", "pitch", "lamp", "colour", "digit", "arrow")},
        {"questions": ("tap", "swipe")},
        {"shuffled": False},
        {"distractors": 0.4},
    ],
)
def test_other_settings_have_another_digest(changes: dict[str, Any]) -> None:
    assert replace(TINY, **changes).digest != TINY.digest


def test_the_digest_is_in_the_names_of_episodes_and_groups(tmp_path: Path) -> None:
    steps = make_steps(tmp_path / "data", TINY, episodes=4)
    names = {name for step in steps for name in (step.episode_id, step.source["twins"])}
    assert len(names) == 5
    assert all(TINY.digest in name for name in names)


def test_a_share_of_1_names_episodes_like_one_of_1_0(tmp_path: Path) -> None:
    one, other = (
        replace(TINY, audio_share=share(1), video_share=share(0), distractors=share(1))
        for share in (int, float)
    )
    assert one == other
    make_episodes(tmp_path / "one", one, episodes=4)
    make_episodes(tmp_path / "other", other, episodes=4)
    assert digests(tmp_path / "one") == digests(tmp_path / "other")


def test_in_order_the_first_code_is_the_first_answer() -> None:
    groups = [plan(replace(TINY, shuffled=False), number) for number in range(30)]
    assert {step.answer_of for group in groups for step in group.steps} == {(0, 1, 2, 3)}


def test_labels_belong_to_the_app_and_are_drawn_on_screens_of_any_shape() -> None:
    for number, size in enumerate([(720, 1600), (1600, 720), (400, 3000), (64, 48)]):
        app = look(3, number)
        group = plan(replace(Settings(), size=size), 0, app=app, questions=QUESTIONS)
        for step in group.steps:
            known = texts if step.question == "input" else labels
            assert set(step.labels) <= set(known(app.kind, app.words))
            drawn = Drawing(
                app, step.layout, size, question=step.question, labels=step.labels,
                icons=step.icons, passed=1, seed=step.seed,
            )  # fmt: skip
            assert drawn.plain.size == drawn.with_sign("arrow", 1).size == size
    for language in LANGUAGES:
        for kind in get_args(Kind):
            assert len(set(labels(kind, language))) == 8
            assert len(set(texts(kind, language))) >= 6
