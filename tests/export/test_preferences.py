"""Preferences out of runs: which answers make a pair, in which order, and in what rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.actions import Action, Box
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from omnidata.training.formats import PreferenceFormat, formats
from omnidata.training.preferences import Order, Pair, apart, sort_pairs, tier
from omnidata.types import CAUSES, Completion
from tests.adapters.servers import Fault
from tests.cli.asking import evaluate as evaluate_by
from tests.cli.asking import server
from tests.cli.running import EXPORT, as_json, omnidata
from tests.export.small import TAP, folder, rows, tree
from tests.run.scripted import Scripted

Reply = str | Completion
NEAR = '{"action_type":0,"coordinate":[278,300]}'
FAR = '{"action_type":0,"coordinate":[900,900]}'
TYPO = '{"action_type":7,"text":"你好 \\"y\\""}'
HOME = '{"action_type":9}'
CUT = Completion(delivery="truncated", text=NEAR)
REFUSED = Completion(delivery="refused", error="no")
TRAINERS = {
    name: form.answers.name
    for name, form in formats().items()
    if isinstance(form, PreferenceFormat)
}
WRONG: Mapping[int, Reply] = {0: NEAR, 1: FAR, 2: TYPO, 3: HOME}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tree(tmp_path / "data")


def asked(data: Path, out: Path, replies: Mapping[int, Reply] = {}, **options: str) -> Path:
    task = get_task("omnigui", options)
    source = task.load(data, check_media=False)
    said: dict[str, Reply] = {}
    for step in source.steps:
        target = task.target(step)
        assert target
        said[step.sample_id] = replies.get(step.step_index, target.text)

    def reply(sample_id: str, attempt: int) -> Completion:
        found = said[sample_id]
        return found if isinstance(found, Completion) else Completion(text=found)

    evaluate(task, source, Scripted(reply), out)
    return out


def exported(
    data: Path, out: Path, runs: Sequence[Path], form: str = "swift-dpo", *more: str, code: int = 0
) -> Any:
    named = [item for run in runs for item in ("--pairs", str(run))]
    own = ("--video", "frames", "--drop-audio") if form.startswith("trl") else ()
    return omnidata(
        *EXPORT, "omnigui", data, out, *named, "--format", form, "--split", "train=1", *own,
        "--json", *more, code=code,
    )  # fmt: skip


def steps_of(found: Sequence[Mapping[str, Any]]) -> list[int]:
    return [int(one["sample_id"].rpartition("/")[2]) for one in found]


def test_a_right_answer_and_a_wrong_one_to_a_step_are_a_pair_the_nearest_first(
    data: Path, tmp_path: Path
) -> None:
    good = asked(data, tmp_path / "a", {3: HOME})
    bad = asked(data, tmp_path / "b", WRONG)
    cut = asked(data, tmp_path / "c", {0: CUT, 1: REFUSED, 2: HOME, 3: HOME})
    said = as_json(exported(data, tmp_path / "out", [good, bad, cut]))
    found = rows(tmp_path / "out")
    assert [(one["cause"], one["rejected_response"]) for one in found] == [
        ("near_miss", NEAR), ("near_text", TYPO), ("wrong_type", FAR), ("wrong_type", HOME),
    ]  # fmt: skip
    assert steps_of(found) == [0, 2, 1, 2]
    assert said["preferences"]["steps"] == {
        "paired": 3, "all_right": 0, "all_wrong": 1, "without": 0,
    }  # fmt: skip
    assert [run["answers"] for run in said["preferences"]["runs"]] == [
        {"right": 3, "wrong": 1},
        {"wrong": 3, "repeated": 1},
        {"truncated": 1, "refused": 1, "wrong": 1, "repeated": 1},
    ]
    assert said["preferences"]["written"] == {"right": 4, "wrong": 4}
    assert said["preferences"]["causes"] == {"wrong_type": 2, "near_miss": 1, "near_text": 1}
    assert said["splits"]["train"]["rows"] == 4
    assert said["splits"]["train"]["steps"] == 3


def test_prompts_and_media_are_those_of_the_export_with_right_answers(
    data: Path, tmp_path: Path
) -> None:
    runs = [asked(data, tmp_path / "a"), asked(data, tmp_path / "b", WRONG)]
    for form, trainer in TRAINERS.items():
        exported(data, tmp_path / form, runs, form)
        plain = tmp_path / f"{form}-plain"
        own = ("--video", "frames", "--drop-audio") if trainer == "trl" else ()
        omnidata(
            *EXPORT, "omnigui", data, plain, "--format", trainer, "--split", "train=1", *own
        )  # fmt: skip
        right = {one["sample_id"]: one for one in rows(plain)}
        for made in rows(tmp_path / form):
            told = right[made["sample_id"]]
            assert _prompt(made, form) == _prompt(told, form), form
            assert made["roles"] == told["roles"]
            media = [made.get(kind) for kind in ("images", "videos", "audios")]
            assert media == [told.get(kind) for kind in ("images", "videos", "audios")]
        names = {name for one in rows(tmp_path / form) for name in one["images"]}
        assert names <= {f"media/{path.name}" for path in (tmp_path / form / "media").iterdir()}


def _prompt(made: Mapping[str, Any], form: str) -> Any:
    if form.startswith("trl"):
        return made["prompt"]
    messages = made["messages"]
    return messages if messages[-1]["role"] == "user" else messages[:-1]


def test_the_rows_of_each_trainer(data: Path, tmp_path: Path) -> None:
    runs = [asked(data, tmp_path / "a"), asked(data, tmp_path / "b", {0: NEAR})]
    made = {}
    for form in TRAINERS:
        exported(data, tmp_path / form, runs, form)
        made[form] = rows(tmp_path / form)
    right = '{"action_type":0,"coordinate":[278,200]}'

    def turn(text: str) -> list[dict[str, Any]]:
        return [{"role": "assistant", "content": [{"type": "text", "text": text}]}]

    (one,) = made["trl-dpo"]
    assert (one["chosen"], one["rejected"]) == (turn(right), turn(NEAR))
    assert "completion" not in one
    (one,) = made["swift-dpo"]
    assert one["messages"][-1] == {"role": "assistant", "content": right}
    assert one["rejected_response"] == NEAR
    (one,) = made["llamafactory-dpo"]
    assert one["messages"][-1]["role"] == "user"
    assert one["chosen"] == {"role": "assistant", "content": right}
    assert one["rejected"] == {"role": "assistant", "content": NEAR}
    first, second, *others = made["trl-kto"]
    assert [(each["completion"], each["label"]) for each in (first, second)] == [
        (turn(right), True), (turn(NEAR), False),
    ]  # fmt: skip
    assert [each["label"] for each in others] == [True] * 3  # steps without a wrong answer
    answers = [
        (each["messages"][-1]["content"], each["kto_tag"]) for each in made["llamafactory-kto"]
    ]
    assert answers[:2] == [(right, True), (NEAR, False)]
    info = json.loads((tmp_path / "llamafactory-dpo" / "dataset_info.json").read_text())
    assert info["omnigui_train"]["ranking"] is True
    assert {"messages", "chosen", "rejected", "images"} <= info["omnigui_train"]["columns"].keys()
    info = json.loads((tmp_path / "llamafactory-kto" / "dataset_info.json").read_text())
    assert info["omnigui_train"]["columns"]["kto_tag"] == "kto_tag"


def test_causes_come_in_turn_and_the_first_rows_are_a_balanced_choice(tmp_path: Path) -> None:
    data = tree(tmp_path / "data", episodes=3)
    runs = [asked(data, tmp_path / "a"), asked(data, tmp_path / "b", {0: NEAR, 1: FAR})]
    exported(data, tmp_path / "out", runs, "swift-dpo", "--order", "balanced", "--max-rows", "4")
    causes = [one["cause"] for one in rows(tmp_path / "out")]
    assert causes == ["wrong_type", "near_miss"] * 2


def test_answers_with_other_prompts_are_refused_and_those_of_the_first_run_are_taken(
    data: Path, tmp_path: Path
) -> None:
    good = asked(data, tmp_path / "a", history="none")
    bad = asked(data, tmp_path / "b", WRONG)
    done = exported(data, tmp_path / "out", [good, bad], code=2)
    assert "the run had other prompts: -T history=gold" in " ".join(done.stderr.split())
    worse = asked(data, tmp_path / "c", WRONG, history="none")
    said = as_json(exported(data, tmp_path / "out", [good, worse]))
    assert said["task_options"]["history"] == "none"


def test_answers_to_other_data_are_refused(data: Path, tmp_path: Path) -> None:
    other = tree(tmp_path / "other", episodes=2)
    runs = [asked(data, tmp_path / "a"), asked(other, tmp_path / "b", WRONG)]
    done = exported(data, tmp_path / "out", runs, code=2)
    assert "the run was made on other annotations" in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()


def test_answers_in_pixels_of_another_picture_are_left_out(data: Path, tmp_path: Path) -> None:
    low = '{"action_type":0,"coordinate":[20,60]}'
    runs = [
        asked(data, tmp_path / "a", coordinates="px"),
        asked(data, tmp_path / "b", {0: low, 2: TYPO}, coordinates="px"),
    ]
    exported(data, tmp_path / "same", runs)
    assert steps_of(rows(tmp_path / "same")) == [2, 0]
    done = exported(data, tmp_path / "out", runs, "swift-dpo", "--image-size", "80")
    assert steps_of(rows(tmp_path / "out")) == [2]
    finding, differs = as_json(done)["findings"]
    assert (finding["code"], differs["code"]) == ("answer-unusable", "unit-differs")
    assert (
        "the answer is for a picture of 72 x 160 pixels, the row's has 36 x 80" in finding["what"]
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--format", "trl-dpo"), "rows of trl-dpo hold answers of runs, and no run is named"),
        (
            ("--format", "swift", "--order", "nearest"),
            "--order nearest: this option is for answers",
        ),
        (("--format", "swift", "--pairs", "a"), "one of trl-dpo, trl-kto, swift-dpo"),
        (("--format", "swift-dpo", "--pairs", "a", "--pairs", "a"), "the run is named twice"),
        (("--format", "swift-dpo", "--pairs", "a"), "no preference in 4 steps: 4 with right"),
        (
            ("--format", "swift-dpo", "--pairs", "a", "--objects", "norm1"),
            "cannot store coordinates apart",
        ),
        (("--format", "swift-dpo", "--pairs", "nowhere"), "run.json is missing"),
    ],
)
def test_what_cannot_be_meant_is_bad_usage(
    data: Path, tmp_path: Path, more: tuple[str, ...], said: str
) -> None:
    run = asked(data, tmp_path / "a")
    given_ = [str(run) if item == "a" else item for item in more]
    done = omnidata(*EXPORT, "omnigui", data, tmp_path / "out", *given_, code=2)
    assert said in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()


def test_media_that_changed_since_the_answers_are_told(data: Path, tmp_path: Path) -> None:
    task = get_task("omnigui")
    model = Scripted(lambda sample_id, attempt: Completion(text=HOME))
    model.accepts = ("image", "video", "audio")
    evaluate(task, task.load(data, check_media=False), model, tmp_path / "run")
    (folder(data) / "1.png").write_bytes((folder(data) / "2.png").read_bytes())
    runs = [tmp_path / "run"]
    done = exported(data, tmp_path / "out", runs, "llamafactory-kto", code=2)
    assert "have changed since the model was asked" in " ".join(done.stderr.split())
    exported(data, tmp_path / "out", runs, "llamafactory-kto", "--changed-media")
    assert [one["kto_tag"] for one in rows(tmp_path / "out")] == [False] * 4


def test_an_answer_that_a_model_would_obey_is_left_out(data: Path, tmp_path: Path) -> None:
    runs = [
        asked(data, tmp_path / "a"),
        asked(data, tmp_path / "b", {0: NEAR, 1: f"<|im_end|>{FAR}", 2: f"<image>{TYPO}"}),
    ]
    said = as_json(exported(data, tmp_path / "out", runs))
    assert steps_of(rows(tmp_path / "out")) == [0]
    assert [each["code"] for each in said["findings"]] == ["answer-unusable"] * 2


pairs = st.builds(
    Pair,
    st.integers(0, 9),
    st.integers(0, 3),
    st.integers(4, 6),
    st.sampled_from([*CAUSES, None]),
    st.floats(0, 100) | st.just(float("inf")),
)


@given(st.lists(pairs), st.sampled_from(["nearest", "balanced"]))
def test_an_order_keeps_every_pair_and_each_cause_from_near_to_far(
    found: list[Pair], order: Order
) -> None:
    told = sort_pairs(found, order)
    assert sorted(map(repr, told)) == sorted(map(repr, found))
    for cause in {pair.cause for pair in found}:
        far = [pair.distance for pair in told if pair.cause == cause]
        assert far == sorted(far)
    if order == "nearest":
        tiers = [tier(pair.cause) for pair in told]
        assert tiers == sorted(tiers)


@given(st.lists(pairs))
def test_the_first_rows_of_a_balanced_order_differ_by_one_at_most_in_each_cause(
    found: list[Pair],
) -> None:
    told = sort_pairs(found, "balanced")
    whole = {cause: sum(pair.cause == cause for pair in found) for cause in [*CAUSES, None]}
    for end in range(len(told) + 1):
        counts = {
            cause: sum(pair.cause == cause for pair in told[:end])
            for cause in whole
            if whole[cause]
        }
        open_ = [count for cause, count in counts.items() if count < whole[cause]]
        assert not open_ or max(counts.values()) <= min(open_) + 1


@given(st.lists(pairs))
def test_answers_alone_come_once_and_are_all_of_the_pairs(found: list[Pair]) -> None:
    told = [(one.step, one.chosen, one.rejected) for one in apart(found)]
    assert len(told) == len(set(told))
    assert set(told) == {
        each
        for pair in found
        for each in ((pair.step, pair.chosen, None), (pair.step, None, pair.rejected))
    }


@pytest.mark.parametrize("dialect", ["qwen2.5", "qwen3"])
def test_answers_in_a_dialect_are_for_pictures_of_its_size(dialect: str, tmp_path: Path) -> None:
    """In pixels of what is fed, and in thousandths."""
    low = Action("tap", (Box(10, 90, 30, 120, "px"),))
    data = tree(tmp_path / "data", actions=[TAP, low])
    task = get_task("omnigui", {"dialect": dialect, "modalities": "I"})
    step, other = task.load(data, check_media=False).steps
    prompt = [part for turn in task.conversation(step) for part in turn.parts]
    size = next(part.size for part in prompt if part.role == "screenshot")
    right, wrong = (task.target(each, size=size or step.screen) for each in (step, other))
    assert right
    assert wrong
    for name, text in (("a", right.text), ("b", wrong.text)):
        with server([Fault(text=text)]) as asked_:
            omnidata(
                *evaluate_by(asked_, data, "--out", tmp_path / name), "-T", f"dialect={dialect}",
                "-T", "modalities=I", "--limit", "1",
            )  # fmt: skip
    said = as_json(exported(data, tmp_path / "out", [tmp_path / "a", tmp_path / "b"], "trl-dpo"))
    assert said["task_options"]["dialect"] == dialect
    (one,) = rows(tmp_path / "out")
    told = [one[side][0]["content"][0]["text"] for side in ("chosen", "rejected")]
    assert told[0].endswith(right.text)
    assert told[1].endswith(wrong.text)
    assert said["findings"] == []
