"""`omnidata synth filter`: what a critic accepts is kept, and its precision comes out exactly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnidata.actions import Action, Box
from omnidata.metrics.intervals import wilson
from omnidata.tasks.omnigui.load import load
from tests.adapters.servers import Fault
from tests.cli.running import as_json, here
from tests.data.tiny import png
from tests.loaders import agentstudio
from tests.synth.recordings import (
    END,
    HIT,
    TAP,
    Rule,
    answering,
    ask,
    by_first,
    episodes,
    picture,
    recording,
    rows,
    says,
)
from tests.trees import read_lines

YES, NO = "Well.\nAnswer: True", "Answer: False"
BACK = Action("back")
TYPE = Action("type", text="hi")


def by_task(answers: dict[int, Fault | str], otherwise: Fault | str = NO) -> Rule:
    known = {f"Instruction: Task {number}\n": answer for number, answer in answers.items()}

    def rule(seen: list[str]) -> Fault | str:
        return next((told for text, told in known.items() if text in seen[-1]), otherwise)

    return rule


def test_the_accepted_are_kept_and_the_precision_is_exact(tmp_path: Path) -> None:
    truth: list[dict[str, Any]] = [{"is_success": n in (0, 1, 2, 3)} for n in range(8)]
    data = recording(tmp_path / "data", *[[TAP, END]] * 8, [TAP, END], of_episodes=[*truth, {}])
    answers: dict[int, Fault | str] = {0: YES, 1: YES, 2: NO, 3: "hm", 4: YES, 8: YES}
    answers[5] = Fault(text=YES, finish="length")
    with answering(by_task(answers)) as server:
        told = ask("filter", server, data, tmp_path / "out", code=1)  # one answer was cut short
        assert server.count == 9
    assert told["episodes"] == {"all": 9, "asked": 9, "accepted": 4, "rejected": 3, "undecided": 2}
    measured = told["precision"]
    assert measured["confusion"] == {
        "tp": 2,
        "fp": 1,
        "fn": 1,
        "tn": 2,
        "unread_positive": 1,
        "unread_negative": 0,
    }
    found = measured["precision"]
    assert found == {"hits": 2, "n": 3, "share": 2 / 3, "ci95": list(wilson(2, 3) or ())}
    assert (measured["recall"]["hits"], measured["recall"]["n"]) == (2, 4)
    assert (measured["known"], measured["unanswered"]) == (8, 1)
    assert measured["accept_all"]["share"] == 4 / 7
    assert [entry["episode"] for entry in told["rejected"]] == ["App/E2", "App/E6", "App/E7"]
    assert told["rejected"][0]["answer"] == NO
    assert [(e["episode"], e["outcome"]) for e in told["undecided"]] == [
        ("App/E3", "unparsed"),
        ("App/E5", "truncated"),
    ]
    kept = {step.episode_id for step in load(tmp_path / "out").steps}
    assert kept == {"E0", "E1", "E4", "E8"}


def test_every_episode_says_which_critics_accepted_it_in_what_words(tmp_path: Path) -> None:
    data = recording(tmp_path / "data", [TAP, END], [BACK, END])
    one, two = tmp_path / "one", tmp_path / "two"
    with answering(lambda seen: YES) as server:
        ask("filter", server, data, one)
    here("synth", "filter", one, two, "--model", "baseline:always-true")
    critics = [
        {"model": "openai:tiny", "answer": YES},
        {"model": "baseline:always-true", "answer": "Answer: True"},
    ]
    assert [row["critics"] for row in episodes(two)] == [critics, critics]
    assert [step.source["critics"] for step in load(two).steps] == [critics] * 4
    assert episodes(one)[0]["critics"] == critics[:1]
    before = rows(data)[0]
    assert {key: rows(two)[0][key] for key in before} == before


def test_the_question_is_that_of_criticbench_about_the_last_five_actions(tmp_path: Path) -> None:
    box = Action("long_press", (Box(0, 0, 72, 160, "px"),))
    data = recording(tmp_path / "data", [box, TAP, TYPE, BACK, TAP, END])
    with answering(lambda seen: YES) as server:
        ask("filter", server, data, tmp_path / "out")
    (asked,) = server.asked
    said = ["TAP at [375, 375]", 'INPUT text: "hi"', "BACK", "TAP at [375, 375]", "TASK_COMPLETE"]
    expected = []
    for number, words in enumerate(said, 1):
        expected += [picture(number), f"user: text {words}"]
    assert asked.seen[:-1] == expected
    assert "\nInstruction: Task 0\nAction space: NONE, TAP, DOUBLE_TAP, " in asked.seen[-1]
    assert asked.seen[-1].endswith("\nAnswer: False")


@pytest.mark.parametrize(("symmetric", "shown"), [("false", 3), ("true", 2)])
def test_a_last_step_without_an_action_is_what_was_seen_in_the_end(
    tmp_path: Path, symmetric: str, shown: int
) -> None:
    data = recording(tmp_path / "data", [TAP, BACK, None])
    with answering(lambda seen: YES) as server:
        ask("filter", server, data, tmp_path / "out", "-T", f"symmetric={symmetric}")
    (asked,) = server.asked
    pictures = [line for line in asked.seen if line.startswith("user: image")]
    assert pictures == [picture(n) for n in range(shown)]
    assert len(load(tmp_path / "out").steps) == 3


def test_recordings_are_labelled_then_filtered_then_exported(tmp_path: Path) -> None:
    bare = recording(tmp_path / "bare", [None] * 3, [None] * 3)
    with answering(lambda seen: says(0, HIT)) as server:
        ask("label", server, bare, tmp_path / "labelled")
    with answering(by_task({1: YES})) as server:
        ask("filter", server, tmp_path / "labelled", tmp_path / "kept")
    train = ("--format", "swift", "--workers", "1", "--split", "train=1")
    here("export", "omnigui", tmp_path / "kept", tmp_path / "train", *train)
    lines = read_lines(tmp_path / "train" / "train.jsonl")
    assert [line["sample_id"] for line in lines] == ["App/E1/0", "App/E1/1"]
    told = read_lines(tmp_path / "train" / "models.jsonl")
    assert [(line["idm"]["used"], line["critics"][0]["answer"]) for line in told] == [
        (True, YES)
    ] * 2
    first = load(tmp_path / "kept").steps[0].source
    assert first["idm"]["used"]
    assert first["critics"][0]["answer"] == YES


def test_an_episode_that_nobody_can_judge_is_neither_kept_nor_rejected(tmp_path: Path) -> None:
    data = recording(tmp_path / "data", [TAP, None, BACK, END], [TAP, END], [None], [TAP, END])
    (data / "App/media/E3/1.png").unlink()
    with answering(lambda seen: YES) as server:
        told = ask("filter", server, data, tmp_path / "out", code=1)
        assert server.count == 1
    assert {entry["episode"]: entry["outcome"] for entry in told["undecided"]} == {
        "App/E0": "unasked",
        "App/E2": "unasked",
        "App/E3": "media_error",
    }
    why = {entry["episode"]: entry["why"] for entry in told["undecided"]}
    assert why["App/E0"] == "step 1 has no action"
    assert why["App/E2"] == "the episode has no action"
    assert "image is missing" in why["App/E3"]
    assert {step.episode_id for step in load(tmp_path / "out").steps} == {"E1"}


def test_without_the_actions_an_episode_that_lacks_some_is_judged(tmp_path: Path) -> None:
    data = recording(tmp_path / "data", [TAP, None, BACK, END])
    with answering(lambda seen: YES) as server:
        ask("filter", server, data, tmp_path / "out", "-T", "observations_only=true")
    (asked,) = server.asked
    assert asked.seen[:-1] == [picture(n) for n in range(4)]


def test_rows_of_criticbench_measure_the_critic_and_are_not_written(tmp_path: Path) -> None:
    data = recording(tmp_path / "data", [TAP, END])
    bench = tmp_path / "bench" / "critic.jsonl"
    acts = [agentstudio.act(0), agentstudio.act(1, obs_after=None)]
    agentstudio.write(
        bench,
        *(
            agentstudio.trajectory(*acts, instruction=f"Task {9 - n}", is_success=n < 2)
            for n in range(4)
        ),
    )
    for number in range(2):
        path = bench.parent / "images" / "m2w" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png(50 + number))
    with answering(by_task({0: YES, 9: YES, 7: YES})) as server:
        told = ask("filter", server, data, tmp_path / "out", "--known", bench)
        assert server.count == 5
    assert told["known"] == {"data": 0, "criticbench": 4}
    assert told["precision"]["precision"]["share"] == 0.5
    assert told["precision"]["recall"]["share"] == 0.5
    assert told["precision"]["known"] == 4
    assert told["episodes"]["asked"] == 1
    assert "gives itself away" in told["warnings"][0]
    assert {step.episode_id for step in load(tmp_path / "out").steps} == {"E0"}


def test_rows_that_contradict_each_other_are_no_truth(tmp_path: Path) -> None:
    truth: list[dict[str, Any]] = [{"is_success": True}]
    data = recording(
        tmp_path / "data", [TAP, END], of_episodes=truth, extra={"is_success": [False]}
    )
    with answering(lambda seen: YES) as server:
        told = ask("filter", server, data, tmp_path / "one")
    assert told["known"]["data"] == 1  # a list says nothing
    steps = json.loads((data / "App/media/E0/E0.json").read_text())
    for row, success in zip(steps, (False, None), strict=True):
        row["is_success"] = success
    (data / "App/media/E0/E0.json").write_text(json.dumps(steps))
    with answering(lambda seen: YES) as server:
        told = ask("filter", server, data, tmp_path / "two")
    assert told["precision"] is None


def test_the_question_is_the_same_whether_it_succeeded_or_not(tmp_path: Path) -> None:
    asked = []
    for success in (True, False):
        data = recording(
            tmp_path / f"{success}", [TAP, END], [TAP], extra={"is_success": success},
            of_episodes=[{"is_success": success}] * 2,
        )  # fmt: skip
        with answering(lambda seen: YES) as server:
            told = ask("filter", server, data, tmp_path / f"{success}-out")
        asked.append(sorted((question.seen for question in server.asked), key=str))
        assert told["precision"]["precision"]["hits"] == 2 * success
    assert asked[0] == asked[1]


def test_a_critic_that_accepts_nothing_leaves_no_dataset(tmp_path: Path) -> None:
    data = recording(tmp_path / "data", [TAP, END])
    done = here(
        *("synth", "filter", data, tmp_path / "out", "--model", "baseline:always-false"), code=1
    )
    assert "no episode is accepted" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_failure_accepts_nothing_and_is_asked_again(tmp_path: Path) -> None:
    data, out = recording(tmp_path / "data", [TAP, END], [BACK, END]), tmp_path / "out"
    broken = [True]

    def rule(seen: list[str]) -> Fault | str:
        return by_first({0: Fault(status=500)} if broken[0] else {}, YES)(seen)

    with answering(rule) as server:
        assert ask("filter", server, data, out, code=1)["episodes"]["undecided"] == 1
        assert [row["ID"] for row in episodes(out)] == ["E1"]
        broken[0] = False
        assert ask("filter", server, data, out)["episodes"]["accepted"] == 2
        assert server.count == 3
    assert [row["ID"] for row in episodes(out)] == ["E0", "E1"]


def test_the_questions_are_a_task_that_evaluate_runs(tmp_path: Path) -> None:
    data = recording(tmp_path / "data", [TAP, END], [TAP, END], extra={"is_success": True})
    results = as_json(
        here(
            *("evaluate", "omnigui-critic", data, "--model", "baseline:oracle", "--json"),
            *("--out", tmp_path / "run"),
        )
    )
    assert results["overall"]["accuracy"] == 1.0
    assert results["counts"]["steps"] == 2
