"""`omnidata synth criticbench` and `synth idm`: true rows whose form says nothing."""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnidata
from omnidata.actions import Action, Box, Point
from omnidata.analysis.audit import audit
from omnidata.synth.derive import Recording, make_pieces, read_recordings, windows
from omnidata.tasks import get_task
from omnidata.types import MediaRef, Step
from tests import plugs
from tests.cli.running import as_json, here
from tests.data.tiny import png
from tests.synth.recordings import END, TAP, recording
from tests.trees import NO_SHARED, SHARED, read_lines, write_lines

CRITIC, SINGLE, SEVERAL = (
    "metadata_success_detection.jsonl",
    "metadata_idm.jsonl",
    "metadata_idmn2n.jsonl",
)
BACK = Action("back")


def said(*argv: str | Path, code: int = 0) -> Any:
    done = here("synth", *argv, *(["--json"] if code == 0 else []), code=code)
    return done.stderr if code else as_json(done)


def acts(rng: random.Random) -> Action:
    """Something that is done at a place, or in words, of its own."""
    x, y = rng.randint(0, 50), rng.randint(0, 120)
    return rng.choice(
        [
            Action("tap", (Box(x, y, x + 10, y + 10, "px"),)),
            Action("tap", (Box(x, y, x + 20, y + 20, "px"),)),
            Action("swipe", (Point(30, 100, "px"),), (Point(30, y, "px"),), direction="up"),
            Action("type", text="milk " * rng.randint(1, 4)),
            BACK,
        ]
    )


@pytest.fixture(scope="module")
def episodes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty episodes of 1 to 8 actions; the last of each is always to go back."""
    rng = random.Random(0)
    told = [[*(acts(rng) for _ in range(rng.randint(0, 7))), BACK, END] for _ in range(40)]
    return recording(tmp_path_factory.mktemp("episodes") / "data", *told)


@pytest.fixture(scope="module")
def critic(episodes: Path) -> tuple[Path, Any]:
    """Rows of CriticBench that are made of them, and what the verb says; nobody writes there."""
    out = episodes.parent / "critic"
    return out, said("criticbench", episodes, out)


def seen(name: str, data: Path) -> tuple[int, int]:
    found = re.fullmatch(r"e(\d{6})_(\d+)\.png", name)
    assert found
    return order(data)[int(found[1])], int(found[2])


@cache
def order(data: Path) -> list[int]:
    """The numbers of the episodes, as the loader gives them."""
    names = [step.episode_id for step in get_task("omnigui").load(data).steps]
    return [int(name[1:]) for name in dict.fromkeys(names)]


def form(row: dict[str, Any]) -> tuple[Any, ...]:
    ops = tuple(action["operation"] for action in row["actions"])
    return ops, row["actions"][-1]["obs_after"] is None


def length(tree: Path, episode: int) -> int:
    """The number of actions, without the word that it is the end."""
    return len(json.loads((tree / f"App/media/E{episode}/E{episode}.json").read_text())) - 1


def test_successes_and_failures_have_the_same_forms_and_instructions(
    critic: tuple[Path, Any],
) -> None:
    out, told = critic
    rows = read_lines(out / CRITIC)
    assert told["made"]["criticbench"]["rows"] == len(rows) > 150
    assert told["made"]["criticbench"]["successes"] == len(rows) / 2
    sides: dict[str, list[Counter[Any]]] = defaultdict(lambda: [Counter(), Counter()])
    for row in rows:
        for key in ("form", "instruction"):
            of = form(row) if key == "form" else row["instruction"]
            sides[f"{row['source']} {key}"][row["is_success"]][of] += 1
    assert {name.split()[0] for name in sides} == {
        "omnigui-cut", "omnigui-extended", "omnigui-swapped",
    }  # fmt: skip
    for name, (failures, successes) in sides.items():
        assert failures == successes, name


def test_what_is_said_to_succeed_ends_where_its_own_episode_does(
    episodes: Path, critic: tuple[Path, Any]
) -> None:
    for row in read_lines(critic[0] / CRITIC):
        asked = int(row["instruction"].removeprefix("Task "))
        places = [seen(action["obs_before"], episodes) for action in row["actions"]]
        last, stop = seen(row["actions"][-1]["obs_after"], episodes)
        assert last == places[-1][0]
        ended = last == asked and stop == length(episodes, asked)
        assert row["is_success"] == ended
        assert len(places) <= 5
        assert {f"App/E{n}" for n, _ in places} | {f"App/E{asked}"} == set(
            row["metadata"]["made_of"]
        )
        if row["source"] == "omnigui-cut":
            assert {n for n, _ in places} == {asked}
            assert places[0][1] > 0
        if row["source"] == "omnigui-extended":
            assert len({n for n, _ in places}) == 2
            assert places[0][1] == 0
            assert stop == length(episodes, last)


def test_rows_load_and_are_judged_and_couples_stay_together(
    critic: tuple[Path, Any], tmp_path: Path
) -> None:
    out, _ = critic
    rows = omnidata.load_dataset("criticbench", out, split="test")
    task = get_task("criticbench")
    source = task.load(out)
    assert not source.findings
    assert len(rows) == len(source.steps)
    groups: dict[str, set[str]] = defaultdict(set)
    for step in source.steps:
        for name in step.source["metadata"]["made_of"]:
            groups[name].add(step.group)
    assert all(len(found) == 1 for found in groups.values())
    results = omnidata.evaluate(task, source, "baseline:oracle", tmp_path / "run")
    assert results["overall"]["accuracy"] == 1
    assert {*results["by"]["platform"]} == {"mobile"}
    drawn = task.explanation(source.steps[-1], None, "", profile=task.default_profile)
    assert drawn.frames == "recorded action"


def test_an_audit_finds_no_leak(episodes: Path, critic: tuple[Path, Any], tmp_path: Path) -> None:
    said("idm", episodes, tmp_path / "idm")
    for name, options in (
        ("criticbench", {}),
        ("criticbench", {"observations_only": "true"}),
        ("idm-single", {}),
        ("idm-multiple", {}),
    ):
        task = get_task(name, options)
        data = critic[0] if name == "criticbench" else tmp_path / "idm"
        found = audit(task, task.load(data).steps, task.profiles[task.default_profile])
        assert not found.leak, (name, found.carriers)


def test_two_languages_whose_actions_differ_are_told_apart_by_no_form(tmp_path: Path) -> None:
    # What is typed is in the language of the instruction, and one of them ends where it began.
    rng = random.Random(0)
    typed, last = ("milk", "牛奶"), (BACK, Action("home"))
    told = [
        [*[TAP] * rng.randint(1, 2), Action("type", text=typed[n % 2]), last[n % 2], END]
        for n in range(60)
    ]
    data = recording(tmp_path / "data", *told, languages=("en", "zh"))
    said("criticbench", data, tmp_path / "out")
    rows = read_lines(tmp_path / "out" / CRITIC)
    assert len(rows) > 100
    for row in rows:
        assert ("打开" in row["instruction"]) == ("牛奶" in str(row["actions"]))
    task = get_task("criticbench")
    found = audit(task, task.load(tmp_path / "out").steps, task.profiles[task.default_profile])
    assert not found.leak, found.carriers


def test_what_was_done_is_asked_of_neighbouring_screenshots(episodes: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    told = said("idm", episodes, out)
    source = get_task("omnigui").load(episodes)
    labels = {
        (int(step.episode_id[1:]), step.step_index): step.action.label
        for step in source.steps
        if step.action and step.action.kind != "done"
    }
    singles, several = read_lines(out / SINGLE), read_lines(out / SEVERAL)
    assert {seen(row["obs_before"], episodes): row["operation"] for row in singles} == labels
    assert len(singles) == len(labels) == told["made"]["idm-single"]["rows"]
    (count,) = {len(row["actions"]) for row in several}
    assert count == 5
    met: Counter[Any] = Counter()
    for act in (*singles, *(action for row in several for action in row["actions"])):
        episode, step = seen(act["obs_before"], episodes)
        assert seen(act["obs_after"], episodes) == (episode, step + 1)
        assert act["operation"] == labels[episode, step]
        met[episode, step] += 1
    assert max(met.values()) == 2  # windows do not overlap
    picture = out / "images" / singles[3]["obs_before"]
    episode, step = seen(picture.name, episodes)
    assert picture.read_bytes() == png(100 * episode + step)
    for name in ("idm-single", "idm-multiple"):
        task = get_task(name)
        results = omnidata.evaluate(task, task.load(out), "baseline:oracle", tmp_path / name)
        assert results["overall"]["accuracy"] == 1


def test_episodes_that_are_no_success_are_left_out_and_counted(tmp_path: Path) -> None:
    impossible = Action.of("TASK_IMPOSSIBLE")
    truths = [
        {},
        {"is_success": False},
        {"is_success": True},
        *[{}] * 5,
        *[{"is_success": True}] * 2,
    ]
    data = recording(
        tmp_path / "data", [TAP, BACK, END], [TAP, END], [BACK, TAP, END], [TAP, impossible],
        [TAP, None, BACK, END], [TAP, BACK, END], [END], [TAP, BACK, TAP], [BACK, TAP, END],
        [TAP, BACK, None], of_episodes=truths,
    )  # fmt: skip
    for episode, more in (
        ("E7", {"result_action_type": 99}),
        ("E8", {"is_success": False}),
        ("E9", {"instruction_zh": "Task 9", "audio_path": "E9/gone.wav"}),
    ):
        path = data / f"App/media/{episode}/{episode}.json"
        *rest, last = json.loads(path.read_text())
        path.write_text(json.dumps([*rest, {**last, **more}]))
    (data / "App/media/E5/2.png").unlink()
    told = said("criticbench", data, tmp_path / "out")
    assert told["episodes"] == {
        "used": 3,
        "left_out": {
            "did not succeed": 3,
            "has a step without an action": 1,
            "lacks a screenshot": 1,
            "does nothing": 1,
            "has a last action that cannot be read": 1,
        },
    }
    rows = read_lines(tmp_path / "out" / CRITIC)
    assert {row["instruction"] for row in rows} < {"Task 0", "Task 2", "Task 9"}
    task = get_task("omnigui")
    source = task.load(data)
    codes = {each.code: each.sample_ids for each in source.findings}
    assert codes["success-unusable"] == ("App/E8/0", "App/E8/1", "App/E8/2")
    assert {"media-broken", "copies-differ"} <= {
        each.code for each in source.findings if "App/E9/2" in each.sample_ids
    }, "what is wrong with what was only seen is not wrong with an action"
    kept = [step for step in source.steps if step.sample_id != "App/E0/2"]  # a row was skipped
    _, left_out = read_recordings(task, replace(source, steps=kept), [])
    assert left_out["lacks steps"] == 1


def test_the_same_call_gives_the_same_rows_and_other_settings_are_refused(tmp_path: Path) -> None:
    data, out = recording(tmp_path / "data", *[[TAP, BACK, TAP, END]] * 6), tmp_path / "out"
    told = said("criticbench", data, out)
    assert said("criticbench", data, out) == told
    said("criticbench", data, tmp_path / "again")
    assert (tmp_path / "again" / CRITIC).read_bytes() == (out / CRITIC).read_bytes()
    assert "seed" in said("criticbench", data, out, "--seed", "1", code=2)
    (out / "mine.txt").touch()
    assert "already" in said("criticbench", data, out, code=2)
    lone = recording(tmp_path / "lone", [TAP, END])
    assert "no row can be made" in said("criticbench", lone, tmp_path / "none", code=2)
    assert not (tmp_path / "none").exists()
    assert "No such command 'nonsense'" in said("nonsense", data, out, code=2)


def test_rows_are_not_written_into_the_data_that_they_are_made_of(tmp_path: Path) -> None:
    data = recording(tmp_path / "data", *[[TAP, BACK, TAP, END]] * 6)
    model = ("--model", "baseline:oracle")
    for verb, *more in (("criticbench",), ("idm",), ("recaption", *model), ("label", *model)):
        assert f"it lies in {data}" in said(verb, data, data / "x", *more, code=2)
    assert not (data / "x").exists()


real = pytest.mark.skipif(not SHARED.is_dir(), reason=NO_SHARED)


@real
@pytest.mark.parametrize(
    ("data", "task", "screen", "first", "rows"),
    [
        ("aitz_google_apps", "aitw", (270, 600), ["HOME", "SWIPE_UP", "TAP"], 3),
        ("agentnet_raw_win10", "agentnet", (1276, 718), ["TAP", "RIGHT_CLICK", "TAP", "DRAG"], 14),
    ],
)
def test_a_real_episode_of_another_benchmark_becomes_rows(
    tmp_path: Path, data: str, task: str, screen: Any, first: Any, rows: int
) -> None:
    out = tmp_path / "out"
    told = said("idm", SHARED / "data" / data, out)
    assert told["task"] == task
    source = get_task("idm-single").load(out)
    assert not source.findings
    assert [step.source["operation"] for step in source.steps][: len(first)] == first
    assert len(source.steps) == rows
    assert source.steps[0].screen == screen


@real
def test_a_real_episode_is_cut_where_it_looks_like_its_end(tmp_path: Path) -> None:
    real_one = SHARED / "data" / "agentnet_raw_win10"
    told = said("criticbench", real_one, tmp_path / "out")
    assert told["made"]["criticbench"]["designs"] == {"cut": 2}
    whole, part = read_lines(tmp_path / "out" / CRITIC)
    assert whole["is_success"] and not part["is_success"]
    assert whole["actions"][-1]["obs_after"] == "e000000_14.png"
    assert form(whole) == form(part)
    row = json.loads((real_one / "raw_example.jsonl").read_text())
    write_lines(tmp_path / "failed.jsonl", [{**row, "task_completed": False}])
    assert "1 left out: did not succeed" in said(
        "criticbench", tmp_path / "failed.jsonl", tmp_path / "none", code=2
    )


def test_rollouts_are_a_success_only_where_they_have_been_scored_as_one() -> None:
    (step,) = made(0, ["TAP"], ends=False).steps
    task = get_task("osworld")
    told = {
        outcome: task.benchmark.episodes.success([replace(step, tags={"outcome": outcome})], {})
        for outcome in ("success", "partial", "unfinished")
    }
    assert told == {"success": True, "partial": False, "unfinished": False}


def test_a_plug_in_s_rows_are_made_of_ours_and_its_faults_are_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = plugs.on_path(tmp_path / "site", "verdicts_plugin", monkeypatch)
    (site / "verdicts_plugin.py").write_text(PLUGIN, encoding="utf-8")
    plugs.install(
        site, "omnidata-verdicts", "omnidata.tasks", "verdicts = verdicts_plugin:Verdicts"
    )
    data = recording(tmp_path / "data", *[[TAP, BACK, TAP, END]] * 6)
    told = said("verdicts", data, tmp_path / "out")
    rows = read_lines(tmp_path / "out" / "verdicts.jsonl")
    assert told["made"]["verdicts"]["rows"] == len(rows)
    assert {len(row["shown"]) for row in rows} <= {2, 3}
    (tmp_path / "fail").touch()
    monkeypatch.chdir(tmp_path)
    error = said("verdicts", data, tmp_path / "other", code=2)
    assert "omnidata-verdicts 1.2" in error
    assert "verdicts_plugin.py" in error


PLUGIN = '''
from pathlib import Path

from omnidata.tasks.benchmark import Benchmark, Card, Rule
from omnidata.tasks.derivation import Derivation
from omnidata.tasks.totals import RowTotals


class Exact(Rule):
    name = "verdicts-exact"
    totals = RowTotals()

    def judge(self, step, parsed):
        raise NotImplementedError


def row(trajectory):
    if Path("fail").exists():
        raise LookupError("no pen")
    return {"shown": trajectory.observations, "fine": trajectory.success}


class Verdicts(Benchmark):
    """Did it go well?"""

    card = Card(title="Verdicts")
    question = "{instruction}"
    rules = (Exact(),)
    derivation = Derivation("verdicts", "success", "verdicts.jsonl", row, 2)

    def steps(self, data, note):
        return []

    def parse(self, text, step, receipt):
        raise NotImplementedError

    def target(self, step, *, space=None, size=None):
        return None
'''


def made(
    number: int, kinds: Sequence[str], *, ends: bool, platform: str = "", language: str = ""
) -> Recording:
    """An episode of these actions, without media; seen to its end or not."""
    shot = MediaRef("image", Path("x"), "a.png")
    steps = tuple(
        Step(
            f"{number}/{at}", str(number), at, len(kinds), f"Do {number}", (72, 160),
            {"screenshot": shot}, (), (), Action.of(kind), {}, {},
        )
        for at, kind in enumerate(kinds)
    )  # fmt: skip
    shots = (shot,) * (len(kinds) + ends)
    return Recording(number, "", platform, language, frozenset({str(number)}), steps, shots)


KINDS = st.lists(st.sampled_from(["TAP", "BACK", "HOME", "WAIT"]), min_size=1, max_size=9)


PLATFORMS, LANGUAGES = st.sampled_from(["web", "mobile"]), st.sampled_from(["en", "zh"])


@given(
    st.lists(st.tuples(KINDS, st.booleans(), PLATFORMS, LANGUAGES), min_size=1, max_size=8),
    st.integers(1, 5),
)
def test_whatever_the_episodes_each_design_is_balanced(
    told: list[tuple[list[str], bool, str, str]], most: int
) -> None:
    recordings = [
        made(n, kinds, ends=ends, platform=platform, language=language)
        for n, (kinds, ends, platform, language) in enumerate(told)
    ]
    forms: dict[tuple[str, bool], Counter[Any]] = defaultdict(Counter)
    for piece in make_pieces(recordings, most=most, seed=0):
        labels = tuple(r.actions[at].label for r, at in piece.moments)
        assert 1 <= len(labels) <= most
        assert piece.success is not None
        done = piece.moments[-1][0]  # a long instruction above a short trajectory would tell
        assert min(most, len(done.steps)) == min(most, len(piece.asked.steps))
        assert {(each.platform, each.language) for each, _ in piece.moments} == {
            (piece.asked.platform, piece.asked.language)
        }
        forms[piece.design, piece.success][labels, piece.end is None] += 1
    for design in ("cut", "extended", "swapped"):
        assert forms[design, True] == forms[design, False]
    places: Counter[Any] = Counter()
    found = windows(recordings, ["TAP", "BACK", "HOME"], most=most)
    for piece in found:
        assert piece.end is not None
        places.update((r.number, at) for r, at in piece.moments)
        assert all(r.actions[at].label != "WAIT" for r, at in piece.moments)
    assert max(places.values(), default=1) == 1
    assert len({len(piece.moments) for piece in found}) <= 1
