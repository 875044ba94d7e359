"""`omnidata synth criticbench --run`: rows that ask whether a run's answers are right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from omnidata.analysis.figures import drawings
from omnidata.errors import RunError
from omnidata.run.answer_choice import answer_key, answer_screen_size
from omnidata.run.run_files import read_run
from omnidata.tasks import get_task
from omnidata.types import Completion, Step
from tests.adapters.servers import Asked, ChatCompletions, Fault, running
from tests.cli.running import as_json, here
from tests.cli.test_samples import FAR, HOME, RIGHT, SAID, command, server
from tests.export.small import BACK, SWIPE, TAP, tree
from tests.loaders.phones import episode, records
from tests.loaders.published_forms import TAP as CLICK
from tests.loaders.published_forms import act, odyssey
from tests.trees import read_lines

YES, NO = "I looked.\n**Answer:** Yes\nConfidence: 0.9", "Answer: No\nConfidence: 80%"
STEPS, EPISODES = "step-critic", "trajectory-critic"


class Critic(ChatCompletions):
    def reply(self, asked: Asked, text: str | None, fault: Fault) -> Any:
        return super().reply(asked, YES if RIGHT in "\n".join(asked.seen) else NO, fault)


@contextmanager
def criticised(rows: Path, out: Path) -> Iterator[dict[str, Any]]:
    with running(Critic()) as asked:
        address = ["--model", "openai:tiny", "--base-url", f"{asked.url}/v1", "--json"]
        yield as_json(here("evaluate", STEPS, rows, *address, "--out", out))


def made(data: Path, out: Path, *runs: Path) -> dict[str, Any]:
    named = [word for run in runs for word in ("--run", run)]
    found: dict[str, Any] = as_json(here("synth", "criticbench", data, out, *named, "--json"))
    return found


def baseline(data: Path, name: str, run: Path, *more: str | Path) -> Path:
    here("evaluate", "omnigui", data, "--model", f"baseline:{name}", "--out", run, *more)
    return run


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tree(tmp_path / "data", episodes=2, actions=[TAP])


@pytest.fixture
def several(tmp_path: Path) -> Path:
    return tree(tmp_path / "several", episodes=2, actions=[TAP, SWIPE, BACK])


def test_a_critic_of_all_samples_is_their_verifier(data: Path, tmp_path: Path) -> None:
    run, rows, critic = tmp_path / "run", tmp_path / "rows", tmp_path / "critic"
    with server() as asked:
        here(*command(asked, data, run))
        report = made(data, rows, run)
        lines = {line["sample_id"]: line for line in read_lines(rows / "steps.jsonl")}
        assert report["made"][STEPS] == {"rows": 6, "groups": 2, "right": 3, "wrong": 3}
        said = {(line["of"]["sample_id"], line["of"]["sample"]): line for line in lines.values()}
        assert {key: line["turns"][0]["answer"] for key, line in said.items()} == {
            (f"App/E0{episode}/0", sample): SAID[episode][sample - 1]
            for episode in SAID
            for sample in (1, 2, 3)
        }
        assert [said["App/E01/0", n]["right"] for n in (1, 2, 3)] == [False, False, True]
        with criticised(rows, critic) as found:
            # 2 of 6 times it says yes (0.9), and is right; 3 of the 4 times it says no (0.8).
            assert found["overall"]["accuracy"] == pytest.approx(5 / 6)
            assert found["overall"]["recall"] == pytest.approx(2 / 3)
            assert found["overall"]["precision"] == 1.0
            assert found["overall"]["ece"] == pytest.approx((2 * 0.1 + 4 * 0.05) / 6)
            assert [each["coverage"] for each in found["calibration"]["selective"]] == [
                pytest.approx(1 / 3),
                1.0,
            ]
            wrong = found["by"]["cause"]
            assert sum(group["rows"] for group in wrong.values()) == 3
        (figure,) = (one for one in drawings([read_run(critic)]) if "reliability" in one.name)
        (axes,) = figure.make().axes
        assert axes.get_title(loc="left").endswith("6 answers, ECE 0.067")
        places = np.array([line.get_xydata() for line in axes.lines if line.get_marker() == "o"])
        assert places[0] == pytest.approx(np.array([[0.8, 0.75], [0.9, 1.0]]))
        (rows / "steps.jsonl").unlink()  # the run says all that is needed
        table = as_json(here(*command(asked, data, run, "--verifier", critic)))["samples"]
    assert (table["best"]["scored"], table["best"]["unscored"]) == (6, 0)
    chosen = {line["sample_id"]: line["best"] for line in read_lines(run / "samples.jsonl")}
    assert chosen == {"App/E00/0": 1, "App/E01/0": 3}
    assert table["best"]["overall"]["EM"] == 1.0


def test_answers_that_the_critic_did_not_judge_are_counted_and_not_paired_by_place(
    data: Path, tmp_path: Path
) -> None:
    run, rows, critic = tmp_path / "run", tmp_path / "rows", tmp_path / "critic"
    other = {0: [FAR, HOME, RIGHT], 1: [HOME, HOME, HOME]}
    with server(lambda episode, sample: other[episode][sample]) as asked:
        here(*command(asked, data, tmp_path / "other"))
    report = made(data, rows, tmp_path / "other")
    assert report["made"][STEPS]["rows"] == 4
    assert sum(each["steps"].get("repeated", 0) for each in report["answers"]) == 2
    with criticised(rows, critic), server() as asked:
        table = as_json(here(*command(asked, data, run, "--verifier", critic)))["samples"]
        assert (table["best"]["scored"], table["best"]["unscored"]) == (3, 3)
        chosen = {line["sample_id"]: line["best"] for line in read_lines(run / "samples.jsonl")}
        # Of the first step RIGHT and FAR are known, of the second HOME alone.
        assert chosen == {"App/E00/0": 1, "App/E01/0": 1}
        with server(lambda episode, sample: '{"action_type":8}') as third:
            done = here(*command(third, data, tmp_path / "third", "--verifier", critic), code=2)
        assert "has no score for any answer" in " ".join(done.stderr.split())
        done = here(*command(asked, data, run, "--verifier", run), code=2)
        assert "judges no answers" in " ".join(done.stderr.split())


def test_an_episode_is_right_if_all_of_its_answers_are(several: Path, tmp_path: Path) -> None:
    oracle = baseline(several, "oracle", tmp_path / "oracle")
    center = baseline(several, "center", tmp_path / "center")
    rows = tmp_path / "rows"
    report = made(several, rows, oracle, center)
    assert report["made"][EPISODES] == {"rows": 4, "groups": 2, "right": 2, "wrong": 2}
    assert report["answers"][0]["steps"] == {"right": 6}
    task = get_task(EPISODES)
    source = task.load(rows)
    assert not source.findings
    assert {step.group for step in source.steps} == {"app/E00", "app/E01"}
    for step in source.steps:
        assert step.source["right"] == (not step.source["wrong_steps"])
        (message,) = task.conversation(step)
        shown = [part.role for part in message.parts if part.media]
        assert shown.count("screenshot_0") == shown.count("screenshot_2") == 1
        assert not [role for role in shown if role.startswith("history")]
        texts = "\n".join(part.text for part in message.parts)
        assert texts.count("The agent answered:") == 3
        (action,) = [each for each in texts.split("\n") if each.startswith("Goal")][:1]
        assert "Task number" in action
    own = several / "App" / "media" / "E00" / "1.png"
    linked = [path for path in (rows / "media").iterdir() if path.samefile(own)]
    assert len(linked) == 1
    audited = as_json(here("audit", STEPS, rows / "steps.jsonl", "--json"))
    blind = {rule["name"]: rule["metric"] for rule in audited["rules"]}
    truths = [step.source["right"] for step in get_task(STEPS).load(rows).steps]
    assert blind["baseline always-yes"] == pytest.approx(sum(truths) / len(truths))


def test_what_is_no_verdict_on_an_answer_is_left_out_and_counted(
    several: Path, tmp_path: Path
) -> None:
    rows = tmp_path / "rows"
    oracle = baseline(several, "oracle", tmp_path / "oracle", "--limit", "4")
    lines = read_lines(oracle / "predictions.jsonl")
    cut = {**lines[1], "delivery": "truncated"}
    (oracle / "predictions.jsonl").write_text(
        "".join(json.dumps(each) + "\n" for each in (lines[0], cut, *lines[2:]))
    )
    report = made(several, rows, oracle)
    (told,) = report["answers"]
    assert told["steps"] == {"right": 3, "truncated": 1}
    assert told["episodes"] == {"truncated": 1, "cut": 1}
    assert list(report["files"]) == ["steps.jsonl"]


def test_the_same_command_gives_the_report_and_other_answers_are_refused(
    data: Path, tmp_path: Path
) -> None:
    oracle = baseline(data, "oracle", tmp_path / "oracle")
    rows = tmp_path / "rows"
    report = made(data, rows, oracle)
    assert made(data, rows, oracle) == report
    center = baseline(data, "center", tmp_path / "center")
    done = here("synth", "criticbench", data, rows, "--run", center, code=2)
    assert "other settings" in " ".join(done.stderr.split())


def test_what_cannot_be_meant_is_bad_usage(data: Path, tmp_path: Path) -> None:
    oracle = baseline(data, "oracle", tmp_path / "oracle")
    pixels = baseline(data, "oracle", tmp_path / "pixels", "-T", "coordinates=px")
    elsewhere = tree(tmp_path / "elsewhere", episodes=1, actions=[BACK])
    for words, said in (
        (("criticbench", elsewhere, tmp_path / "a", "--run", oracle), "other annotations"),
        (("criticbench", data, tmp_path / "a", "--run", oracle, "--run", oracle), "named twice"),
        (("idm", data, tmp_path / "a", "--run", oracle), "cannot make rows from answers"),
        (
            ("criticbench", data, tmp_path / "a", "--profile", "x"),
            "this option is for answers of a run",
        ),
        (
            ("criticbench", data, tmp_path / "a", "--run", oracle, "--run", pixels),
            "the run had other options: -T coordinates=px",
        ),
        (
            ("criticbench", data, tmp_path / "a", "--run", oracle, "-T", "history=none"),
            "the run had other prompts",
        ),
    ):
        done = here("synth", *words, code=2)
        assert said in " ".join(done.stderr.split()), words
    assert not (tmp_path / "a").exists()


def test_answers_in_pixels_are_others_where_the_picture_had_another_size(data: Path) -> None:
    def answer(width: int, height: int) -> Completion:
        line = {"role": "screenshot", "width": width, "height": height, "original": [72, 160]}
        return Completion(text=RIGHT, receipt={"parts": [line]})

    for unit, differs in (("px", True), ("norm1000", False)):
        task = get_task("omnigui", {"coordinates": unit})
        step = task.load(data, check_media=False).steps[0]
        keys = {answer_key(task, "", step, answer(*size)) for size in ((72, 160), (36, 80))}
        assert (len(keys) == 2) == differs
        assert answer_key(task, "", step, Completion(text=RIGHT)) in keys
        assert (answer_screen_size(task, step, answer(36, 80)) == (36, 80)) == differs


def test_no_curve_is_drawn_of_what_is_no_confidence(data: Path, tmp_path: Path) -> None:
    rows, critic = tmp_path / "rows", tmp_path / "critic"
    made(data, rows, baseline(data, "oracle", tmp_path / "oracle"))
    here("evaluate", STEPS, rows, "--model", "baseline:oracle", "--out", critic)
    scores = critic / "scores.jsonl"
    scores.write_text(scores.read_text().replace('"confidence":1.0', '"confidence":7'))
    with pytest.raises(RunError, match="a confidence is 7"):
        drawings([read_run(critic)])


def test_rows_that_name_no_medium_of_theirs_are_skipped(data: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    made(data, rows, baseline(data, "oracle", tmp_path / "oracle"))
    (first, second) = read_lines(rows / "steps.jsonl")
    first["turns"][0]["shown"].append({"medium": "other"})
    second["media"]["screenshot"]["path"] = "../data/App/media/E00/1.png"
    (rows / "steps.jsonl").write_text("\n".join(map(json.dumps, (first, second))))
    source = get_task(STEPS).load(rows)
    assert source.skipped == 1
    assert {"medium-unknown", "path-unsafe"} <= {found.code for found in source.findings}


def test_the_same_words_to_other_prompts_or_on_other_data_are_other_answers(
    data: Path, tmp_path: Path
) -> None:
    run, rows, critic = tmp_path / "run", tmp_path / "rows", tmp_path / "critic"
    with server() as asked:
        here(*command(asked, data, tmp_path / "judged"))
        made(data, rows, tmp_path / "judged")
        same = tree(tmp_path / "same", episodes=2, actions=[TAP, BACK])
        with criticised(rows, critic):
            for name, folder, more in (
                ("pixels", data, ["-T", "coordinates=px"]),
                ("longer", same, ["--where", "app=app"]),
            ):
                words = command(asked, folder, run / name, *more, "--verifier", critic)
                done = here(*words, code=2)
                assert "has no score for any answer" in " ".join(done.stderr.split())


def test_instructions_of_steps_are_told_beside_their_answers(tmp_path: Path) -> None:
    data = odyssey(tmp_path / "data", CLICK, act("SCROLL", [[500, 900], [500, 100]]), CLICK)
    for level in ("low", "high"):
        run, rows = tmp_path / level, tmp_path / f"rows-{level}"
        words = ("--model", "baseline:oracle", "-T", f"level={level}")
        here("evaluate", "gui-odyssey", data, *words, "--out", run)
        made(data, rows, run)
        (row,) = read_lines(rows / "trajectories.jsonl")
        told = [[each for each in turn["shown"] if isinstance(each, str)] for turn in row["turns"]]
        assert "Goal" in told[0][-1]
        if level == "high":
            assert told[1:] == [[], []]
        else:
            assert told[1:] == [["Goal: Now SCROLL"], ["Goal: Now CLICK"]]


def test_trees_of_all_steps_are_told_whole(tmp_path: Path) -> None:
    """A screen that is shown as a text is the same screen twice where the text is the same."""
    data, run, rows = tmp_path / "data", tmp_path / "run", tmp_path / "rows"
    records(data / "android_control-00000-of-00001", episode())
    words = ("--model", "baseline:oracle", "-T", "observation=a11y", "-T", "coordinates=px")
    here("evaluate", "androidcontrol", data, *words, "--out", run)
    here("synth", "criticbench", data, rows, "--run", run)
    (row,) = read_lines(rows / "trajectories.jsonl")
    shown = [[each for each in turn["shown"] if "tag\t" in str(each)] for turn in row["turns"]]
    assert len(shown[0]) == 1
    assert shown[0] == shown[1]


def test_a_verifier_that_is_none_is_told_before_anything_is_asked(
    data: Path, tmp_path: Path
) -> None:
    oracle = baseline(data, "oracle", tmp_path / "oracle")
    (tmp_path / "no.jsonl").write_text("{}\n")
    with server() as asked:
        for verifier in (tmp_path / "nowhere", tmp_path / "no.jsonl", data, oracle):
            words = command(asked, data, tmp_path / "run", "--verifier", verifier)
            here(*words, code=2)
        assert asked.count == 0
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("said", "sure"),
    [
        ("0.9.", 0.9),
        ("95 percent", 0.95),
        ("1%", 0.01),
        ("0.9\n1. It taps the icon.", 0.9),
        ("1e-3", None),
        ("1 in 10", None),
        ("1 (out of 10)", None),
        ("0.5 to 0.9", None),
    ],
)
def test_a_confidence_is_read_on_its_own_scale_alone(said: str, sure: float | None) -> None:
    step = Step("a", "a", 0, 1, "i", (9, 9), {}, (), (), None, {}, {"right": True})
    text = f"Answer: Yes\nConfidence: {said}"
    verdict = get_task("step-critic").profiles["critic"].judge(step, text)
    assert verdict.values[2] == sure
