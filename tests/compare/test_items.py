"""Hard steps, steps that tell models apart, labels that look wrong, and parts that rank alike."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.analysis.items import Item, analyse, discriminations
from omnidata.analysis.subsets import choose, facts
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset, Step
from tests.cli.running import here
from tests.compare.making import TEXTS, data, loaded
from tests.report.made import replay

EPISODES = 20
NEARBY = '{"action_type": 0, "coordinate": [20, 25]}'  # of "elsewhere", by 20 thousandths


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> LoadedDataset:
    return loaded(data(tmp_path_factory.mktemp("data"), episodes=EPISODES))


def place(step: Step) -> int:
    return 2 * int(step.episode_id.removeprefix("E")) + step.step_index


def write(out: Path, source: LoadedDataset, text: Callable[[int], str]) -> Path:
    return replay(out, get_task("omnigui"), source, [text(place(s)) for s in source.steps])


@pytest.fixture(scope="module")
def runs(source: LoadedDataset, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two strong runs and two weak ones, with the first steps by hand.

    Step 0: the strong agree on another place. 1: they name places far from each other. 2: another
    primitive. 3: one of them is not read. 4: the weak alone are right. 5: one strong run is right.
    """
    right, away, far = (
        TEXTS["right"],
        TEXTS["elsewhere"],
        '{"action_type": 0, "coordinate": [900, 9]}',
    )
    by_hand: Mapping[int, tuple[str, str, str, str]] = {
        0: (away, NEARBY, right, away),
        1: (away, far, away, away),
        2: (TEXTS["other"], TEXTS["other"], TEXTS["other"], right),
        3: (away, "?", away, away),
        4: (away, far, right, right),
        5: (right, away, away, away),
    }
    folder = tmp_path_factory.mktemp("runs")

    def model(number: int) -> Callable[[int], str]:
        share = (1.0, 0.9, 0.4, 0.2)[number]
        return lambda n: (
            by_hand[n][number] if n in by_hand else (right if n % 10 < 10 * share else away)
        )

    return [write(folder / name, source, model(n)) for n, name in enumerate("abcd")]


def test_labels_are_contradicted_where_all_strong_runs_say_one_other_thing(
    source: LoadedDataset, runs: list[Path]
) -> None:
    found = analyse(runs, source=source)
    assert [Path(each).name for each in found.strong] == ["a", "b"]
    by_place = {place(step): item for step, item in zip(source.steps, found.items, strict=True)}
    assert [n for n, item in by_place.items() if item.said] == [0, 2]
    assert by_place[0].said.startswith("TAP at ")
    assert (by_place[2].target, by_place[2].said) == ("TAP", "BACK")


def test_difficulty_and_discrimination_are_those_of_the_runs(
    source: LoadedDataset, runs: list[Path]
) -> None:
    items = {
        place(s): item
        for s, item in zip(source.steps, analyse(runs, source=source).items, strict=True)
    }
    assert [items[n].difficulty for n in range(6)] == [0.25, 0.0, 0.25, 0.0, 0.5, 0.25]
    assert items[1].discrimination is None
    weak, strong = items[4].discrimination, items[5].discrimination
    assert weak is not None and strong is not None and weak < 0 < strong


@given(st.integers(0, 2**32 - 1))
def test_discrimination_is_the_correlation_with_the_rest(seed: int) -> None:
    right = np.random.default_rng(seed).integers(0, 2, (5, 6)).astype(np.float64)
    for item, found in enumerate(discriminations(right)):
        rest = np.delete(right, item, axis=1).sum(axis=1)
        if np.ptp(right[:, item]) and np.ptp(rest):
            assert found == pytest.approx(np.corrcoef(right[:, item], rest)[0, 1], abs=1e-9)
        else:
            assert found is None


@pytest.mark.parametrize("groups", [EPISODES, EPISODES // 2])
def test_a_subset_is_of_whole_groups_and_keeps_the_order(
    source: LoadedDataset, runs: list[Path], groups: int
) -> None:
    twins = [replace(step, group=f"G{place(step) // 2 % groups}") for step in source.steps]
    source = replace(source, steps=twins)
    found = choose(runs, 0.3, source=source)
    chosen = set(found.ids)
    assert chosen.isdisjoint(found.left_out)
    assert chosen.union(found.left_out) == {step.sample_id for step in source.steps}
    kept = [step for step in source.steps if step.sample_id in chosen]
    inside, outside = {s.group for s in kept}, {s.group for s in source.steps if s not in kept}
    assert inside.isdisjoint(outside)
    assert (len(kept), found.groups, found.order) == (12, (groups * 3 // 10, groups), 1.0)
    for run, folder in zip(found.runs, runs, strict=True):
        scores = [json.loads(line) for line in (folder / "scores.jsonl").read_text().splitlines()]
        right = {score["sample_id"]: score["exact_match"] for score in scores}
        assert run.part == pytest.approx(np.mean([right[step.sample_id] for step in kept]))
        assert run.whole == pytest.approx(np.mean([*right.values()]))
    errors = [abs(run.unseen - run.whole) for run in found.runs]
    assert (found.unseen_mean, found.unseen_most) == pytest.approx((np.mean(errors), max(errors)))
    fitted = np.mean([abs(run.part - run.whole) for run in found.runs])
    assert fitted <= found.unseen_mean  # what was fitted to a run says too little of its error


def test_a_subset_is_counted_in_the_steps_that_all_runs_have(
    source: LoadedDataset, runs: list[Path], tmp_path: Path
) -> None:
    short = tmp_path / "short"
    evaluate(get_task("omnigui"), source, "baseline:center", short, limit=10)
    found = choose([*runs, short], 0.5, source=source)
    assert found.steps == (4, 10)
    assert facts(found)[0] == "4 steps of the 10 that all runs have, in 2 of 5 groups of episodes"


def invoke(*arguments: object) -> str:
    return here("items", *arguments).stdout


def test_the_verb_writes_lists_that_evaluate_takes(
    source: LoadedDataset, runs: list[Path], tmp_path: Path
) -> None:
    recheck, rest = tmp_path / "recheck.txt", tmp_path / "rest.txt"
    shown = invoke(*runs, "--to", recheck)
    assert "Labels that all strong runs contradict" in shown
    ids = [step.sample_id for step in source.steps if place(step) in (0, 2)]
    assert recheck.read_text().splitlines()[1:] == ids
    shown = invoke(*runs, "--subset", "0.3", "--to", rest, "--format", "md")
    assert "| Model | all steps | subset | chosen without it |" in shown.replace("| Setting ", "")
    part = tmp_path / "part"
    place_of_data = json.loads((runs[0] / "run.json").read_text())["data"]
    model = ("--model", "baseline:oracle")
    here("evaluate", "omnigui", place_of_data, *model, "--exclude", rest, "--out", part)
    counts = json.loads((part / "results.json").read_text())["counts"]
    assert (counts["steps"], counts["whole_episodes"]) == (12, 6)
    lines = list(csv.DictReader(io.StringIO(invoke(*runs, "--format", "csv"))))
    assert [*lines[0]] == [*Item.__slots__]
    assert json.loads(invoke(*runs, "--json"))["items"][2]["said"] == "BACK"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{a}", "{b}"], "2 runs cannot rate"),
        (["{a}", "{b}", "{c}", "--subset", "0.01"], "no subset of this size"),
        (["{a}", "{b}", "{c}", "--subset", "1"], "a subset cannot have this size"),
        (["{a}", "{b}", "{c}", "--to", "{a}/run.json"], "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_refused(runs: list[Path], arguments: list[str], said: str) -> None:
    names = dict(zip("abcd", map(str, runs), strict=True))
    assert said in here("items", *(each.format(**names) for each in arguments), code=2).stderr
