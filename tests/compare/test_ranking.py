"""Intervals of ranks hold for all runs together, and tell apart what differs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from omnidata.analysis.ranking import GroupSums, rank, significant_order
from omnidata.errors import RunError, UsageError
from omnidata.metrics.intervals import Floats
from omnidata.types import LoadedDataset, Step
from tests.cli.running import here
from tests.compare.making import Says, data, loaded, run

EPISODES = 24


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> LoadedDataset:
    return loaded(data(tmp_path_factory.mktemp("data"), episodes=EPISODES))


def number(step: Step) -> int:
    return int(step.episode_id.removeprefix("E"))


def right_if(rule: Callable[[int], bool]) -> Callable[[Step], Says]:
    return lambda step: "right" if rule(number(step)) else "elsewhere"


@pytest.fixture(scope="module")
def runs(source: LoadedDataset, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """EM of 100, twice 50 on other episodes, 50 and one episode less, 0."""
    rules: dict[str, Callable[[int], bool]] = {
        "all": lambda n: True,
        "even": lambda n: n % 2 == 0,
        "odd": lambda n: n % 2 == 1,
        "less": lambda n: n % 2 == 0 and n > 0,
        "none": lambda n: False,
    }
    folder = tmp_path_factory.mktemp("runs")
    return {name: run(folder / name, source, right_if(rule)) for name, rule in rules.items()}


def ranks(source: LoadedDataset, *folders: Path) -> dict[str, tuple[int, tuple[int, int]]]:
    found = rank(folders, source=source, resamples=2000)
    return {Path(place.run).name: (place.rank, place.ranks) for place in found.places}


def test_ranks_are_sure_where_runs_differ_and_open_where_they_do_not(
    source: LoadedDataset, runs: dict[str, Path]
) -> None:
    found = ranks(source, runs["none"], runs["odd"], runs["all"], runs["even"])
    assert [*found] == ["all", "odd", "even", "none"]
    assert found == {
        "all": (1, (1, 1)),
        "odd": (2, (2, 3)),
        "even": (2, (2, 3)),
        "none": (4, (4, 4)),
    }


def test_a_difference_in_few_groups_tells_nothing(
    source: LoadedDataset, runs: dict[str, Path]
) -> None:
    found = ranks(source, runs["even"], runs["less"], runs["all"])
    assert (found["even"], found["less"]) == ((2, (2, 3)), (3, (2, 3)))


def test_what_belongs_together_counts_once(tmp_path: Path, runs: dict[str, Path]) -> None:
    from dataclasses import replace

    source = loaded(data(tmp_path / "data", episodes=EPISODES))
    twins = [replace(step, group=f"G{number(step) // 4}") for step in source.steps]
    folders = [runs[name] for name in ("all", "even", "none")]
    found = rank(folders, source=replace(source, steps=twins))
    assert (found.groups, found.critical) == (6, None)
    assert found.why == "too few groups of episodes (6)"
    assert [place.ranks for place in found.places] == [(1, 3)] * 3


def ratio(sums: Floats) -> Floats:
    found: Floats = sums[..., :1] / sums[..., 1:]
    return found


def drawn(rng: np.random.Generator, shares: list[float], groups: int = 40) -> GroupSums:
    """Runs of such accuracy over groups of 1 to 6 steps."""
    steps = rng.integers(1, 7, groups)
    hits = [rng.binomial(steps, share) for share in shares]
    added = np.stack([np.column_stack([each, steps]).astype(np.float64) for each in hits])
    judged = np.ones(int(steps.sum()), dtype=np.bool_)
    return GroupSums("EM", "share", 1, judged, added, ratio, 0)


def test_all_intervals_hold_together_and_cost_more_than_one() -> None:
    """With equal runs no order is right; one by one, every fourth ranking would claim some."""
    rng = np.random.default_rng(0)
    claims, critical = 0, []
    for _ in range(100):
        value, ahead = significant_order(drawn(rng, [0.6] * 5), seed=0, resamples=300)
        claims += bool(ahead.any())
        critical.append(value or 0.0)
    assert claims <= 11  # 5 expected; more than 11 has p < 0.005
    assert 2.4 < float(np.mean(critical)) < 3.0  # of the studentised range of five: 2.73
    pair, _ = significant_order(drawn(rng, [0.6, 0.6]), seed=0, resamples=2000)
    assert pair == pytest.approx(1.96, abs=0.2)


def test_a_run_that_is_twice_as_good_is_ahead() -> None:
    _, ahead = significant_order(drawn(np.random.default_rng(1), [0.4, 0.8]), seed=0, resamples=500)
    assert ahead.tolist() == [[False, False], [True, False]]


def test_runs_whose_metric_few_draws_have_hide_no_difference_and_make_none() -> None:
    """All draws have that of the first two runs, and hardly any that of all the others."""
    groups, others = 60, 30
    added = np.zeros((2 + others, groups, 2))
    added[0] = added[1] = (1, 1)
    added[1, :40, 0] = 0
    for each in range(others):
        added[2 + each, each] = (0, 1)
    sums = GroupSums("F1", "share", 1, np.ones(groups, dtype=np.bool_), added, ratio, 0)
    critical, ahead = significant_order(sums, seed=0, resamples=500)
    assert critical is not None and np.isfinite(critical)
    assert ahead[0, 1] and not ahead[1, 0]
    alike = added.copy()
    alike[1, :] = (1, 1)
    alike[1, ::10, 0], alike[0, 5::10, 0] = 0, 0
    alike[0, 5, 0] = 1
    sums = GroupSums("F1", "share", 1, np.ones(groups, dtype=np.bool_), alike, ratio, 0)
    assert not significant_order(sums, seed=0, resamples=500)[1][:2, :2].any()


def test_draws_without_the_metric_of_any_two_runs_do_not_narrow_intervals() -> None:
    """The metric is over one group of forty, which a third of all draws lack."""
    added = np.zeros((2, 40, 2))
    added[:, 0, 1] = 40
    added[:, :, 0] = np.random.default_rng(0).normal(size=(2, 40))
    sums = GroupSums("F1", "share", 1, np.ones(40, dtype=np.bool_), added, ratio, 0)
    have = sums.of(_resampled(added, 4000))
    found = have[np.isfinite(have).all(axis=1)] - sums.values
    apart = found[:, 0] - found[:, 1]
    critical, _ = significant_order(sums, seed=0, resamples=4000)
    expected = np.quantile(np.abs(apart), 0.95) / apart.std()
    assert critical == pytest.approx(expected, rel=0.05)


def _resampled(added: Floats, draws: int) -> Floats:
    """(D, K, C): the sums of runs over groups that are drawn with replacement."""
    groups = added.shape[1]
    chosen = np.random.default_rng(1).integers(0, groups, (draws, groups))
    found: Floats = added[:, chosen].sum(axis=2).transpose(1, 0, 2)
    return found


def invoke(*arguments: str | Path, code: int = 0) -> str:
    return here(*arguments, code=code).stdout


def compared(*arguments: str | Path) -> str:
    return invoke("compare", *arguments)


def test_the_verb_ranks_three_runs_in_every_format(runs: dict[str, Path]) -> None:
    three = [runs[name] for name in ("none", "even", "all")]
    assert "Ranks by EM (%): omnigui by omnigui-paper" in compared(*three)
    assert "| 1 | 1 - 1 |" in compared(*three, "--format", "md")
    told = json.loads(compared(*three, "--json"))
    assert [place["value"] for place in told["places"]] == [1.0, 0.5, 0.0]
    lines = list(csv.DictReader(io.StringIO(compared(*three, "--format", "csv"))))
    assert [(line["rank"], line["low"], line["high"]) for line in lines] == [
        (str(place), str(place), str(place)) for place in (1, 2, 3)
    ]


def test_what_becomes_of_steps_without_an_answer_is_told(
    source: LoadedDataset, runs: dict[str, Path], tmp_path: Path
) -> None:
    """Of what failed as of what is not there at all, in all verbs for several runs."""
    fails = run(tmp_path / "fails", source, lambda step: "fails" if number(step) < 2 else "right")
    answers, lacks = tmp_path / "answers.jsonl", tmp_path / "lacks"
    lines = (runs["even"] / "predictions.jsonl").read_text().splitlines(keepends=True)
    answers.write_text("".join(lines[3:]))
    place = json.loads((fails / "run.json").read_text())["data"]
    invoke("score", "omnigui", place, answers, "--out", lacks, code=1)
    three = [runs["all"], fails, lacks]
    for verb in (["compare"], ["items"], ["items", "--subset", "0.5"]):
        told = json.loads(invoke(*verb, *three, "--data", place, "--json"))["warnings"]
        assert f"{lacks}: 3 steps without an answer are left out for all runs" in told
        assert f"{fails}: failed steps count as wrong: 1 api_error" in told
    shown = " ".join(json.loads(invoke("report", *three, "--json"))["warnings"])
    assert f"{lacks}: 3 steps without an answer count as wrong" in shown
    assert f"{fails}: 4 steps without an answer count as wrong" in shown


def test_what_cannot_be_ranked_is_refused(
    runs: dict[str, Path], source: LoadedDataset, tmp_path: Path
) -> None:
    page = tmp_path / "pages.html"
    page.write_text("")
    folders = [runs[name] for name in ("all", "even", "none")]
    for arguments in (folders[:1], [*folders, "--pages-a", page]):
        assert here("compare", *arguments, code=2).stderr.startswith("UsageError")
    with pytest.raises(UsageError, match="named twice"):
        rank([folders[0], *folders], source=source)
    other = run(tmp_path / "other", source, lambda step: "right", profile="omnigui-release")
    with pytest.raises(RunError, match="different rules"):
        rank([*folders, other], source=source)
