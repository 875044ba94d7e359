"""`omnigui-idm` and `omnigui-critic`: OmniGUI's episodes as other questions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from omnidata import get_task, registry
from omnidata.types import LoadedDataset, Questions, Step
from tests.trees import load_rows, row


@pytest.fixture
def source(tmp_path: Path) -> LoadedDataset:
    """Two episodes, of three steps and of one."""
    return load_rows(tmp_path, *(row("T1", n) for n in range(3)), row("T2", 0, image_path=""))


def ask(name: str, source: LoadedDataset, **options: str) -> Questions:
    about = get_task(name, options).benchmark.about
    assert about
    return about.questions(source)


def test_they_can_be_asked_for_by_name_and_are_no_benchmarks() -> None:
    for name in ("omnigui-idm", "omnigui-critic"):
        assert get_task(name).name == name
        assert get_task(name).benchmark.data_of == "omnigui"
        assert name not in registry.benchmarks()


def test_the_hash_of_the_question_follows_its_options() -> None:
    hashes = {
        get_task("omnigui-idm", {"clip": clip}).prompt_hash for clip in ("between", "before", "off")
    }
    assert len(hashes) == 3
    in_pixels = get_task("omnigui-idm", {"coordinates": "px"})
    assert in_pixels.prompt_hash == get_task("omnigui-idm").prompt_hash


def test_a_step_is_followed_by_the_next_of_its_episode_alone(source: LoadedDataset) -> None:
    found = ask("omnigui-idm", source)
    first, second, third, _ = source.steps
    after = {step.sample_id: step.media["after"] for step in found.source.steps}
    assert after == {
        first.sample_id: second.media["screenshot"],
        second.sample_id: third.media["screenshot"],
    }
    gap = ask("omnigui-idm", replace(source, steps=[first, third]))
    assert list(gap.unasked.values()) == ["no-screenshot-after"] * 2
    assert not ask("omnigui-idm", replace(source, steps=[])).unasked


def test_what_lacks_a_screenshot_cannot_be_asked_about(source: LoadedDataset) -> None:
    first, second, *_ = source.steps
    blank = replace(second, media={**second.media, "screenshot": None})
    blanks = ask("omnigui-idm", replace(source, steps=[first, blank])).unasked
    assert list(blanks.values()) == ["no-screenshot-after", "no-screenshot"]
    questions = ask("omnigui-idm", source)
    assert list(questions.unasked.values()) == ["no-screenshot-after", "no-screenshot"]
    asked = questions.source
    assert [step.step_index for step in asked.steps] == [0, 1]
    assert asked.roles == {"screenshot": "image", "after": "image", "video": "video"}


def test_the_clip_is_the_one_that_was_asked_for(source: LoadedDataset) -> None:
    clips = {
        clip: ask("omnigui-idm", source, clip=clip).source.steps[0]
        for clip in ("between", "before", "off")
    }
    videos = {clip: step.media["video"] for clip, step in clips.items()}
    assert {clip: ref and ref.path for clip, ref in videos.items()} == {
        "between": "T1/2.mp4",
        "before": "T1/1.mp4",
        "off": None,
    }


def _episode(tmp_path: Path, *changes: dict[str, object]) -> Step:
    rows = [row("T1", n, **change) for n, change in enumerate(changes)]
    return ask("omnigui-critic", load_rows(tmp_path, *rows)).source.steps[0]


def test_an_episode_is_a_row_of_criticbench(tmp_path: Path) -> None:
    made = _episode(tmp_path, {}, {"result_action_type": 10, "result_touch_xy": ""})
    assert made.sample_id.endswith("/T1")
    assert list(made.media) == ["observation_0", "observation_1"]
    acts = made.source["actions"]
    assert [act["operation"] for act in acts] == ["TAP", "TASK_COMPLETE"]
    assert [act["metadata"]["repr"] for act in acts] == ["TAP at [390, 511]", "TASK_COMPLETE"]
    assert [act["obs_after"] for act in acts] == ["T1/2.png", None]
    assert made.source["is_success"] is None


@pytest.mark.parametrize(
    ("said", "known"),
    [
        (({"is_success": True}, {}), True),
        (({"is_success": False}, {"is_success": False}), False),
        (({"is_success": True}, {"is_success": False}), None),
        (({"is_success": "true"}, {"is_success": 1}), None),
    ],
)
def test_success_is_what_all_rows_say_that_say_something(
    tmp_path: Path, said: tuple[dict[str, object], ...], known: bool | None
) -> None:
    assert _episode(tmp_path, *said).source["is_success"] is known


def test_a_broken_target_at_the_end_is_an_action_that_cannot_be_shown(tmp_path: Path) -> None:
    broken = [row("T1", 0), row("T1", 1, result_touch_xy="[[")]
    source = load_rows(tmp_path, *broken)
    assert list(ask("omnigui-critic", source).unasked.values()) == ["step 1 has no action"]
    assert not ask("omnigui-critic", source, observations_only="true").unasked


def test_only_the_last_five_actions_must_be_there(tmp_path: Path) -> None:
    lacking = [row("T1", n, **({"result_action_type": None} if n == 0 else {})) for n in range(6)]
    source = load_rows(tmp_path, *lacking)
    assert source.steps[0].action is None
    assert not ask("omnigui-critic", source).unasked
    shorter = replace(source, steps=source.steps[:5])
    assert list(ask("omnigui-critic", shorter).unasked.values()) == ["step 0 has no action"]


def test_targets_are_what_the_profiles_call_right(sample: Path) -> None:
    data = get_task("omnigui").load(sample)
    idm = get_task("omnigui-idm")
    for step in ask("omnigui-idm", data).source.steps:
        target = idm.target(step)
        assert target is not None
        assert idm.profiles[idm.default_profile].judge(step, target.text).values[1]
    critic = get_task("omnigui-critic")
    assert {critic.target(step) for step in ask("omnigui-critic", data).source.steps} == {None}
