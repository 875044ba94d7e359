"""Runs are compared on the steps that both have, by the numbers that their tables show."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from omnidata.analysis.comparison import Comparison, compare
from omnidata.errors import RunError, UsageError
from omnidata.predictions import read
from omnidata.run.evaluate import evaluate
from omnidata.run.run_files import read_run
from omnidata.run.scoring import get_profile, score, write_scored
from omnidata.run.selection import whole_episodes
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset, Step
from tests.cli.running import omnidata
from tests.compare.making import LEVELS, Says, data, lines, loaded, run
from tests.conftest import Once
from tests.loaders import agentstudio as rows
from tests.loaders.omnibench import APPS, INTRODUCTION, task, write
from tests.report.made import replay
from tests.trees import row, write_lines, write_rows


@pytest.fixture(scope="module")
def source(once: Once) -> LoadedDataset:
    return loaded(once("compared", lambda folder: data(folder, episodes=36)) / "steps.json")


def number(step: Step) -> int:
    return int(step.episode_id[1:])


def better(step: Step) -> Says:
    return "right" if number(step) % 4 or step.step_index else "elsewhere"


def worse(step: Step) -> Says:
    if number(step) % 3 == 0:
        return "other"
    return "elsewhere" if number(step) % 5 == 0 else better(step)


@pytest.fixture(scope="module")
def pair(source: LoadedDataset, once: Once) -> tuple[Path, Path]:
    def write(folder: Path) -> None:
        run(folder / "a", source, better)
        run(folder / "b", source, worse)

    folder = once("compared-runs", write)
    return folder / "a", folder / "b"


def quick(a: Path, b: Path, **how: Any) -> Comparison:
    return compare(a, b, resamples=500, **how)


def assert_values_are_those_of_the_tables(found: Comparison) -> None:
    for side, own in (("a", found.a), ("b", found.b)):
        tables: Mapping[str, Any] = own.results
        for each in found.slices:
            table = tables["by"][each.axis][each.group] if each.axis else tables["overall"]
            assert {name: getattr(value, side) for name, value in each.metrics.items()} == {
                name: pytest.approx(table[name]) for name in found.columns
            }


@pytest.mark.parametrize("profile", ["omnigui-paper", "omnigui-release"])
def test_values_are_those_of_the_runs_own_tables(
    profile: str, source: LoadedDataset, tmp_path: Path
) -> None:
    a, b = (
        run(tmp_path / name, source, says, profile=profile)
        for name, says in (("a", better), ("b", worse))
    )
    found = quick(a, b)
    assert_values_are_those_of_the_tables(found)
    assert list(found.columns) == ["TM", "EM", "SR", "GP"]
    axes = {each.axis for each in found.slices}
    assert axes == {"", "dimension", "dependency", "app", "language"}


def test_flips_and_mcnemars_counts_are_those_of_the_answers(
    source: LoadedDataset, pair: tuple[Path, Path]
) -> None:
    found = quick(*pair)
    lost = [s.sample_id for s in source.steps if better(s) == "right" != worse(s)]
    assert [flip.sample_id for flip in found.flips] == lost
    assert {flip.direction for flip in found.flips} == {"right->wrong"}
    assert found.overall.flips is not None
    assert (found.overall.flips.a_only, found.overall.flips.b_only) == (len(lost), 0)
    again = quick(pair[1], pair[0])
    assert {flip.direction for flip in again.flips} == {"wrong->right"}
    critical = found.by("dependency")["critical"]
    assert critical.flips is not None and critical.flips_q is not None
    assert critical.flips.p <= critical.flips_q


def test_slices_are_corrected_together_and_all_steps_are_not(pair: tuple[Path, Path]) -> None:
    found = quick(*pair)
    assert set(found.overall.q.values()) == {None}
    assert found.tests == 4 * (len(found.slices) - 1)
    for each in found.slices[1:]:
        for name, value in each.metrics.items():
            q = each.q[name]
            assert q is not None and value.p is not None and q >= value.p - 1e-12


def test_only_steps_that_both_runs_have_count(source: LoadedDataset, tmp_path: Path) -> None:
    """A cut episode has no SR and no GP."""
    a = run(tmp_path / "a", source, better, limit=41)
    b = run(tmp_path / "b", source, worse, exclude=frozenset({source.steps[0].sample_id}))
    found = quick(a, b)
    assert len(found.aligned.ids) == 40
    assert found.unshared() == {"only_a": 1, "only_b": 31, "neither": 0}
    assert found.overall.metrics["EM"].episodes == 21
    assert found.overall.metrics["SR"].episodes == 19
    told = " ".join(found.warnings)
    assert "1 step that only A has is left out" in told
    assert "31 steps that only B has" in told


def test_twins_are_drawn_and_swapped_as_one(tmp_path: Path) -> None:
    """Each pair of twins adds what its two episodes add: six answers are sure of half as much."""
    rows = [
        row(f"E{n:02d}", k, app="TED", dependency=LEVELS[n % 3 // 2], twins=f"g{n // 2}")
        for n in range(12)
        for k in range(2)
    ]
    source = loaded(write_rows(tmp_path / "steps.json", rows))
    for name in ("center", "oracle"):
        evaluate(get_task("omnigui"), source, f"baseline:{name}", tmp_path / name)
    found = quick(tmp_path / "center", tmp_path / "oracle")
    assert_values_are_those_of_the_tables(found)
    assert_values_are_those_of_the_tables(quick(tmp_path / "oracle", tmp_path / "center"))
    for metric in ("EM", "SR", "GP"):
        value = found.overall.metrics[metric]
        assert (value.difference, value.p) == (1.0, 2 / 2**6)
        assert (value.episodes, value.differing) == (6, 6)
        assert value.why == "too few episodes (6)"
    assert found.overall.steps == 24
    done = omnidata("compare", tmp_path / "center", tmp_path / "oracle")
    assert "12 episodes form 6 groups" in done.stderr


def test_what_twins_share_in_another_order_is_no_difference(tmp_path: Path) -> None:
    """Fractions of GP add to the same, but for the last bits, whichever twin they are of."""
    rows = [row(f"E{n:03d}", k, app="TED", twins=f"g{n // 4}") for n in range(16) for k in range(3)]
    source = loaded(write_rows(tmp_path / "steps.json", rows))
    a = run(tmp_path / "a", source, lambda s: some(s, (1, 2, 3, 1)))
    b = run(tmp_path / "b", source, lambda s: some(s, (3, 2, 1, 1)))
    value = quick(a, b).overall.metrics["GP"]
    assert (value.episodes, value.differing, value.why) == (4, 0, "too few episodes (4)")
    assert value.difference == pytest.approx(0.0) and value.p == 1.0


def some(step: Step, right: tuple[int, ...]) -> Says:
    return "right" if step.step_index < right[number(step) % 4] else "other"


def test_failures_count_as_wrong_and_are_counted(source: LoadedDataset, tmp_path: Path) -> None:
    a = run(tmp_path / "a", source, lambda step: "right")
    b = run(tmp_path / "b", source, lambda step: "fails" if number(step) < 9 else "right")
    found = quick(a, b)
    assert found.overall.metrics["EM"].b == pytest.approx(27 / 36)
    assert found.failures() == [{}, {"api_error": 18}]
    assert "failed steps of run B count as wrong: 18 api_error" in found.warnings
    assert found.flips[0].b == "api_error"


def imported(source: LoadedDataset, out: Path, says: Any, missing: int = 0) -> Path:
    """Answers of elsewhere, scored into a folder."""
    task = get_task("omnigui")
    answers = write_lines(out.with_suffix(".log"), lines(source, says)[missing:])
    whole = whole_episodes(source.steps, source.steps)
    score(task, get_profile(task, None), source.steps, read(answers), whole=whole, out=out)
    return out


def test_imported_answers_are_compared_with_a_run_and_each_other(
    source: LoadedDataset, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    log = imported(source, tmp_path / "log", worse, missing=5)
    found = quick(pair[0], log)
    assert (len(found.aligned.ids), found.unshared()["only_a"]) == (67, 5)
    assert not found.settings
    assert any("run B is imported" in warning for warning in found.warnings)
    same = quick(pair[1], log)
    assert same.overall.metrics["EM"].difference == 0
    with pytest.raises(UsageError, match="no run names") as caught:
        quick(log, log)
    assert "--data" in caught.value.remedy
    assert not quick(log, log, data=source.root).flips


def test_other_settings_are_listed_and_other_models_are_none(
    source: LoadedDataset, tmp_path: Path
) -> None:
    a = run(tmp_path / "a", source, better)
    b = run(tmp_path / "b", source, better, options={"modalities": "I", "history": "none"})
    names = {each.name: (each.a, each.b) for each in quick(a, b).settings}
    assert names["options.modalities"] == ("IAV", "I")
    assert names["options.history"] == ("gold", "none")
    assert "prompt_hash" in names
    assert not any(name.startswith("dataset") or name == "model" for name in names)
    center = tmp_path / "center"
    evaluate(get_task("omnigui"), source, "baseline:center", center)
    other = tmp_path / "always-wait"
    evaluate(get_task("omnigui"), source, "baseline:always-wait", other)
    assert not quick(center, other).settings


def test_all_equal_runs_are_said_to_be_equal(pair: tuple[Path, Path]) -> None:
    found = quick(pair[0], pair[0])
    assert found.warnings == ["A and B are the same folder: no difference can be found"]
    for each in found.slices:
        for value in each.metrics.values():
            assert (value.difference, value.p, value.ci95) == (0.0, 1.0, None)
    assert not found.flips and not found.settings


def test_steps_that_no_rule_can_judge_are_left_out(tmp_path: Path) -> None:
    source = loaded(data(tmp_path / "data", episodes=12, result_touch_xy=""))
    found = quick(run(tmp_path / "a", source, better), run(tmp_path / "b", source, worse))
    assert found.as_dict()["steps"]["unjudged"] == 24
    assert found.overall.metrics["EM"].why == "undefined"
    assert found.overall.metrics["EM"].p is None
    assert not found.flips


def refused(a: Path, b: Path, **how: Any) -> str:
    with pytest.raises((RunError, UsageError)) as caught:
        quick(a, b, **how)
    return str(caught.value)


def test_other_data_are_refused_by_both_fingerprints(
    source: LoadedDataset, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    other = loaded(data(tmp_path / "data", episodes=35))
    foreign = run(tmp_path / "b", other, better)
    told = refused(pair[0], foreign)
    assert source.fingerprint[:16] in told and other.fingerprint[:16] in told
    assert str(pair[0]) in told and str(foreign) in told
    told = refused(*pair, data=other.root)
    assert source.fingerprint[:16] in told and other.fingerprint[:16] in told
    log = imported(source, tmp_path / "log", worse)
    assert "2 steps of the run are not in the data" in refused(foreign, log)


def test_other_rules_and_tasks_are_refused_by_both_names(
    source: LoadedDataset, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    released = run(tmp_path / "b", source, better, profile="omnigui-release")
    told = refused(pair[0], released)
    assert "omnigui-paper and omnigui-release" in told
    assert "--profile omnigui-paper" in told
    ground = studio(tmp_path, "groundui", [rows.ground()], ["(110, 11)"])
    assert "omnigui and groundui" in refused(pair[0], ground)


def test_runs_without_a_common_step_are_refused(source: LoadedDataset, tmp_path: Path) -> None:
    ids = [step.sample_id for step in source.steps]
    halves = (ids[:36], ids[36:])
    a, b = (
        run(tmp_path / name, source, better, exclude=frozenset(half))
        for name, half in zip("ab", halves, strict=True)
    )
    assert "no step in common" in refused(a, b)


def test_what_is_no_finished_run_is_refused(
    source: LoadedDataset, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    unfinished = run(tmp_path / "b", source, better)
    (unfinished / "results.json").unlink()
    assert "unfinished" in refused(pair[0], unfinished)
    assert "no run" in refused(tmp_path, pair[0])
    assert "no such folder" in refused(pair[0], tmp_path / "nowhere")
    broken = run(tmp_path / "c", source, better)
    text = (broken / "scores.jsonl").read_text().replace('"exact_match":true', '"exact_match":"?"')
    (broken / "scores.jsonl").write_text(text)
    assert "exact_match: Expected" in refused(pair[0], broken)


def test_a_run_that_stopped_early_is_named(
    source: LoadedDataset, pair: tuple[Path, Path], tmp_path: Path
) -> None:
    stopped = run(tmp_path / "b", source, better)
    results = json.loads((stopped / "results.json").read_text())
    (stopped / "results.json").write_text(json.dumps(results | {"stopped": "the budget is spent"}))
    assert "run B is unfinished: the budget is spent" in quick(pair[0], stopped).warnings


def test_data_that_have_moved_are_asked_for(source: LoadedDataset, tmp_path: Path) -> None:
    place = data(tmp_path / "here", episodes=2)
    a = run(tmp_path / "a", loaded(place), better)
    place.parent.rename(tmp_path / "there")
    assert "--data" in refused(a, a)
    assert quick(a, a, data=tmp_path / "there" / "steps.json").overall.steps == 4


def studio(
    folder: Path, name: str, given: list[dict[str, Any]], texts: list[str], label: str = "a"
) -> Path:
    """A run of one of AgentStudio's benchmarks, on data that are written once."""
    place = folder / f"{name}.jsonl"
    if not place.exists():
        rows.write(place, *given)
    asking = get_task(name)
    source = asking.load(place, check_media=False)
    return replay(folder / f"{name}-{label}", asking, source, texts)


def acts(number: int) -> list[dict[str, Any]]:
    """Two actions on screens that no other row shows."""
    return [rows.act(3 * number), rows.act(3 * number + 1)]


def test_letters_are_compared_by_accuracy_and_edit_distance(tmp_path: Path) -> None:
    given = [rows.trajectory(*acts(n), platform=("web", "mobile")[n % 2]) for n in range(24)]
    a = studio(tmp_path, "idm-multiple", given, ["Answer:\nA\nA"] * 24)
    texts = ["Answer:\nA\nB" if n % 3 else "Answer:\nA\nA" for n in range(24)]
    found = quick(a, studio(tmp_path, "idm-multiple", given, texts, "b"))
    assert_values_are_those_of_the_tables(found)
    assert dict(found.columns) == {"accuracy": "share", "edit_distance": "number"}
    distance = found.overall.metrics["edit_distance"]
    assert distance.difference == pytest.approx(16 / 24)
    assert (distance.episodes, distance.differing) == (24, 16)
    assert found.overall.flips is not None and found.overall.flips.a_only == 16


def test_critics_are_compared_by_their_confusions(tmp_path: Path) -> None:
    given = [
        rows.trajectory(*acts(n), is_success=n % 3 != 0, platform=("web", "mobile")[n % 2])
        for n in range(30)
    ]
    texts = {
        "a": ["Answer: True" if n % 3 else "Answer: False" for n in range(30)],
        "b": [("Answer: True", "Answer: False", "no idea")[n % 5 % 3] for n in range(30)],
    }
    a, b = (studio(tmp_path, "criticbench", given, texts[name], name) for name in "ab")
    found = quick(a, b)
    assert_values_are_those_of_the_tables(found)
    assert list(found.columns) == ["accuracy", "precision", "recall", "f1"]
    f1 = found.overall.metrics["f1"]
    assert f1.a == 1.0 and f1.ci95 is not None and f1.ci95[1] < 0


def test_task_graphs_are_compared_without_steps_or_data(tmp_path: Path) -> None:
    """LC is compared where both have one; a task that is missing is nobody's."""
    nodes = {name for key, after in INTRODUCTION.items() for name in (key, *after)}
    apps = {name: APPS.get(name[0], "Excel") for name in nodes}
    tasks = [task(str(n), INTRODUCTION, application=apps) for n in range(12)]
    place = write(tmp_path / "tasks.jsonl", *tasks)
    done = {"a": ["D", "A", "C"], "b": ["D"]}
    for name, nodes_done in done.items():
        given = [{"task_id": str(n), "executed": nodes_done} for n in range(12 - (name == "b"))]
        answers = write(tmp_path / f"{name}.jsonl", *given)
        scorer = get_task("omnibench").benchmark.rollouts
        assert scorer
        (scored,), _ = scorer.score(place, answers, profile="omnibench-paper")
        write_scored(tmp_path / name, scored)
    found = quick(tmp_path / "a", tmp_path / "b")
    assert (len(found.aligned.ids), found.unshared()["only_a"]) == (11, 1)
    assert list(found.columns) == ["CR", "LC"]
    assert found.overall.metrics["CR"].difference == pytest.approx(1 / 12 - 4 / 12)
    assert not found.flips and found.overall.flips is None
    assert read_run(tmp_path / "a").imported


def test_scores_without_the_profiles_values_are_refused(tmp_path: Path) -> None:
    """An older version named OSWorld's examples after their folders, other ones for each agent."""
    results = {"task": "osworld", "profile": "osworld", "overall": {}, "by": {}, "counts": {}}
    (tmp_path / "results.json").write_text(json.dumps(results))
    line = {"sample_id": "x", "outcome": "ok", "profile": "osworld", "score": 1.0, "domain": "os"}
    write_lines(tmp_path / "scores.jsonl", [line])
    assert "profile osworld cannot be compared" in refused(tmp_path, tmp_path)
