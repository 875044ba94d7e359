"""Composition from a pool to a folder that everything else reads."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from omnidata.errors import DataError, OmnidataError, UsageError
from omnidata.metrics.graph_complexity import DIMENSIONS
from omnidata.run.selection import split_of
from omnidata.synth.compose import Settings, compose
from omnidata.synth.compose.pool import read_pool
from omnidata.synth.compose.settings import parse_levels
from omnidata.tasks import get_task
from omnidata.tasks.omnibench.load import load
from omnidata.tasks.statistics import words
from tests.full import FULL, in_gate
from tests.synth.composing import (
    EMILY,
    full_disk,
    no_links,
    pair,
    sample_pool,
    shown,
    subtask,
    write_pool,
)
from tests.synth.making import digests
from tests.synth.oracle import changes, check_task, connected, edges_told, key, read_rows

GRAPHS_ALONE = Settings(trajectories=0)
TASKS = 1000 if FULL else 60
Rows = list[dict[str, Any]]


@cache
def known() -> Mapping[str, Mapping[str, Any]]:
    return {row["id"]: row for row in read_rows(sample_pool() / "subtasks.jsonl")}


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what no search finds, however long it takes."""
    monkeypatch.setattr("omnidata.synth.compose.search.PATIENCE", 2)
    monkeypatch.setattr("omnidata.synth.compose.search.BATCH", 64)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("compose") / "tasks"
    compose(sample_pool(), out, Settings(), tasks=TASKS)
    return out


def test_many_distinct_tasks_satisfy_every_constraint(many: Path) -> None:
    rows = read_rows(many / "tasks.jsonl")
    initial = json.loads((many / "compose.json").read_text())["made"]["initial"]
    for row in rows:
        check_task(row, known(), initial=initial)
        assert connected(row)
        for name in row["subtasks"].values():
            assert row["task_intent"] in known()[name]["task_intents"]
        nodes = row["dag"]["nodes"]
        edges = sorted(
            (nodes.index(first), nodes.index(second))
            for first, others in row["dag"]["edges"].items()
            for second in others
        )
        assert edges_told(row["task_instruction"]) == edges
    assert len({row["task_intent"] for row in rows}) == 12
    assert len({key(row) for row in rows}) == len(rows) == TASKS
    assert [row["task_id"] for row in rows] == [str(number) for number in range(TASKS)]


def test_some_tasks_have_a_subtask_more_than_once(many: Path) -> None:
    rows = read_rows(many / "tasks.jsonl")
    repeated = [row for row in rows if len(set(row["subtasks"].values())) < len(row["subtasks"])]
    assert len(repeated) > TASKS / 10
    for row in repeated:
        for node, name in row["subtasks"].items():
            assert node.startswith(name)
            alone = list(row["subtasks"].values()).count(name) == 1
            assert (node == name) == alone


def test_a_trajectory_is_that_of_its_subtasks_and_rarely_changes_applications(many: Path) -> None:
    tasks = {row["task_id"]: row for row in read_rows(many / "tasks.jsonl")}
    done = {
        (row["subtask_id"], row["instruction"]): row
        for row in read_rows(sample_pool() / "subtask_trajectories.jsonl")
    }
    rows = read_rows(many / "trajectories.jsonl")
    assert len(rows) == TASKS
    for row in rows:
        task = tasks[row["task_id"]]
        number = int(row["trajectory_id"].removeprefix(f"{row['task_id']}(").rstrip(")"))
        assert task["successful_topo"][number] == row["topological_order"]
        counts = [changes(order, task["application"]) for order in task["successful_topo"]]
        assert changes(row["topological_order"], task["application"]) == min(counts)
        assert row["instruction"] == task["task_instruction"]
        assert len(row["observations"]) == len(row["actions"])
        parts = []
        for node in row["topological_order"]:
            name, binding = task["subtasks"][node], task["parameters"][node]
            text = known()[name]["instruction_template"]
            for place, value in binding.items():
                text = text.replace(f"{{{place}}}", value)
            parts.append(done[name, text])
        pictures = [shot for part in parts for shot in part["observations"][:-1]]
        assert row["observations"] == [*pictures, parts[-1]["observations"][-1]]
        actions = [one for part in parts for one in part["actions"][:-1]]
        expected = [*actions, parts[-1]["actions"][-1]]
        for place, (mine, theirs) in enumerate(zip(row["actions"], expected, strict=True)):
            assert mine == {**theirs, "step": place}


def test_the_folder_loads_with_its_media(many: Path) -> None:
    source = load(many)
    assert not [finding for finding in source.findings if finding.severity == "error"]
    assert {finding.code for finding in source.findings} <= {"orders-incomplete"}
    assert {step.screen for step in source.steps} == {(640, 400)}
    task = get_task("omnibench")
    assert all(task.target(step) for step in source.steps[:500])


def test_pictures_are_there_once_and_cost_nothing(many: Path) -> None:
    pictures = list((many / "observations").iterdir())
    rows = read_rows(many / "trajectories.jsonl")
    named = {shot for row in rows for shot in row["observations"]}
    assert named <= {f"observations/{path.name}" for path in pictures}
    for path in pictures:
        assert path.samefile(sample_pool() / "observations" / path.name)


def test_the_report_counts_what_is_there(many: Path) -> None:
    report = json.loads((many / "compose.json").read_text())
    rows, made = read_rows(many / "tasks.jsonl"), report["made"]
    for name in DIMENSIONS:
        counted = Counter(row["levels"][name] for row in rows)
        assert {level: count for level, count in made["levels"][name].items() if count} == counted
    assert made["intents"] == Counter(row["task_intent"] for row in rows)
    apps = Counter(app for row in rows for app in set(row["application"].values()))
    assert made["apps"] == apps
    sizes = Counter(str(len(row["dag"]["nodes"])) for row in rows)
    assert made["values"]["instruction"] == sizes
    assert made["sums"]["words"] == sum(words(row["task_instruction"]) for row in rows)
    assert made["sums"]["words"] == sum(len(row["task_instruction"].split()) for row in rows)
    assert made["sums"]["steps"] == len(load(many, check_media=False).steps)
    search = made["search"]
    others = sum(search[name] for name in ("isomorphic_copies", "other_levels", "no_graph"))
    assert search["attempts"] == len(rows) + others
    assert search["isomorphic_copies"] >= 0
    unused = {finding["where"].split()[1] for finding in made["findings"]}
    assert len(unused) == 2
    assert unused.isdisjoint(name for row in rows for name in row["subtasks"].values())


@pytest.mark.parametrize(
    "levels",
    in_gate(
        [
            "dependency=easy instruction=hard",
            "dependency=hard instruction=hard knowledge=hard hierarchy=hard branch=hard",
            "dependency=easy instruction=easy knowledge=medium hierarchy=easy branch=easy",
            "hierarchy=hard",
            "branch=hard",
            "knowledge=hard dependency=hard",
            "instruction=hard knowledge=easy",
        ],
        3,
        "a second each",
    ),
)
def test_levels_that_are_asked_for_are_met(tmp_path: Path, levels: str) -> None:
    settings = Settings(levels=parse_levels(levels.split()), trajectories=0, seed=5)
    compose(sample_pool(), tmp_path / "out", settings, tasks=10 if FULL else 4)
    rows = read_rows(tmp_path / "out" / "tasks.jsonl")
    for row in rows:
        assert row["levels"].items() >= settings.levels.items()
        check_task(row, known(), initial=[k for k in _kinds() if k.endswith("_path")])
        assert connected(row) == ("dependency=easy instruction=hard" not in levels)


def _kinds() -> set[str]:
    return {kind for row in known().values() for kind in row["input_resources"]}


def test_intents_can_be_chosen(tmp_path: Path) -> None:
    settings = Settings(intents=("DINNER", "gallery"), trajectories=0)
    compose(sample_pool(), tmp_path / "out", settings, tasks=12)
    found = {row["task_intent"] for row in read_rows(tmp_path / "out" / "tasks.jsonl")}
    assert found == {"Plan a dinner and tell the guests", "Prepare pictures for a gallery"}


def test_without_files_everything_is_made_by_somebody(tmp_path: Path) -> None:
    settings = Settings(initial=(), trajectories=0)
    compose(sample_pool(), tmp_path / "out", settings, tasks=10 if FULL else 5)
    for row in read_rows(tmp_path / "out" / "tasks.jsonl"):
        check_task(row, known(), initial=())
        assert row["initial_resources"] == []


def test_every_matching_pair_is_an_edge_where_that_is_asked_for(tmp_path: Path) -> None:
    settings = Settings(edges="every", trajectories=0)
    report = compose(sample_pool(), tmp_path / "out", settings, tasks=15)
    for row in read_rows(tmp_path / "out" / "tasks.jsonl"):
        check_task(row, known(), initial=report["made"]["initial"], every_edge=True)


def test_all_orders_of_a_task_are_on_one_side_of_a_split(tmp_path: Path) -> None:
    settings = Settings(orders=6, trajectories=6, levels=parse_levels(["branch=medium"]))
    compose(sample_pool(), tmp_path / "out", settings, tasks=25)
    sides: dict[str, set[str]] = defaultdict(set)
    orders: dict[str, set[str]] = defaultdict(set)
    for step in load(tmp_path / "out", check_media=False).steps:
        task = step.episode_id.partition("(")[0]
        sides[task].add(split_of(step))
        orders[task].add(step.episode_id)
    assert len(sides) == 25
    assert all(len(found) == 1 for found in sides.values())
    assert {side for found in sides.values() for side in found} == {"train", "validation", "test"}
    assert max(map(len, orders.values())) == 6


def test_a_task_is_the_same_among_any_number(tmp_path: Path, many: Path) -> None:
    compose(sample_pool(), tmp_path / "few", Settings(), tasks=8)
    few, all_of_them = (read_rows(folder / "tasks.jsonl") for folder in (tmp_path / "few", many))
    assert len(few) == 8
    assert all_of_them[:8] == few


def test_another_seed_makes_other_tasks(tmp_path: Path, many: Path) -> None:
    compose(sample_pool(), tmp_path / "other", Settings(seed=1, trajectories=0), tasks=20)
    one, other = (
        {key(row) for row in read_rows(folder / "tasks.jsonl")[:20]}
        for folder in (many, tmp_path / "other")
    )
    assert len(one & other) < 10


def test_the_authors_subtasks_come_to_the_authors_first_task(tmp_path: Path) -> None:
    report = compose(
        write_pool(tmp_path / "pool", EMILY),
        tmp_path / "out",
        Settings(most=6, trajectories=0, initial=()),
        tasks=20,
    )
    wanted = {"A": ["C"], "D": ["C"], "F": ["G"], "C": ["G"], "G": ["E"], "E": []}
    dags = [row["dag"]["edges"] for row in read_rows(tmp_path / "out" / "tasks.jsonl")]
    assert wanted in dags
    assert report["made"]["intents"] == {"": 20}


@pytest.mark.parametrize("tasks", [0, 10**9])
def test_a_number_of_tasks_out_of_range_is_refused(tmp_path: Path, tasks: int) -> None:
    with pytest.raises(UsageError):
        compose(sample_pool(), tmp_path / "out", Settings(), tasks=tasks)


def refused(folder: Path, rows: Rows, **settings: Any) -> str:
    pool = write_pool(folder / "pool", rows)
    with pytest.raises((DataError, UsageError)) as raised:
        compose(pool, folder / "out", Settings(**{"trajectories": 0, **settings}), tasks=5)
    assert {path.name for path in folder.iterdir()} <= {"pool", "secret.png", ".out.lock"}
    return str(raised.value)


def test_an_empty_pool_is_refused(tmp_path: Path) -> None:
    row = {"task_id": "1", "dag": {"A": []}, "task_instruction": "x"}
    assert "the pool has no subtasks" in refused(tmp_path, [row])
    assert "no file has the columns" in refused(tmp_path / "nothing", [])


ONE = {"doc_path": "a"}
MAKES = subtask("make", ("x_ready",), ("doc_path",), ONE)


@pytest.mark.parametrize(
    ("rows", "settings", "told"),
    [
        pytest.param(
            [subtask("A", ("vpn_connected",), ("doc_path",), ONE)], {},
            ("resource-unprovided", "no subtask provides vpn_connected", "subtask A"),
            id="a resource that nobody provides",
        ),
        pytest.param(
            [subtask("send", ("doc_path",), (), {"doc_path": "b"}), MAKES], {"initial": ()},
            ("values-disagree", "no subtask provides doc_path 'b', but other values"),
            id="parameters that cannot agree",
        ),
        pytest.param(
            [
                subtask("hen", ("egg_in_nest",), ("hen_in_house",)),
                subtask("egg", ("hen_in_house",), ("egg_in_nest",)),
            ],
            {}, ("resources-cyclic", "egg_in_nest", "waits for others in turn: egg"),
            id="subtasks that wait for each other",
        ),
        pytest.param(
            [subtask("A", (), ("doc_path",), {"name": "x"})], {},
            ("no parameter says which doc_path",), id="a file that no parameter names",
        ),
        pytest.param(
            [subtask("A", (), ("doc_path",), ONE, template="Do {doc_path} {what}")], {},
            ("binding 0 has no what",), id="a binding that lacks a parameter",
        ),
        pytest.param(
            [subtask("A", (), ("doc_path",), ONE)], {"trajectories": 1},
            ("trajectory-missing", "1 of 1 bindings"), id="subtasks without trajectories",
        ),
        pytest.param(
            [subtask("A", (), ("doc_path",), ONE, task_intents=["Write a letter"])],
            {"intents": ("tunnel",)}, ("'tunnel'", "Write a letter"),
            id="an intent that is not there",
        ),
    ],
)  # fmt: skip
def test_why_no_subtask_can_be_used_is_said(
    tmp_path: Path, rows: Rows, settings: dict[str, Any], told: tuple[str, ...]
) -> None:
    message = refused(tmp_path, rows, **settings)
    assert all(words in message for words in told)


@pytest.mark.usefixtures("impatient")
def test_levels_that_the_pool_cannot_have_are_refused_with_the_nearest(tmp_path: Path) -> None:
    rows = [
        subtask("A", (), ("doc_path",), {"doc_path": "a"}),
        subtask("B", ("doc_path",), ("pdf_path",), {"doc_path": "a", "pdf_path": "b"}),
        subtask("C", ("pdf_path",), (), {"pdf_path": "b"}),
    ]
    told = refused(tmp_path, rows, levels={"hierarchy": "hard"})
    assert "none of 128 attempts gave a task with hierarchy=hard" in told
    assert "hierarchy 3 (medium)" in told


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("times", [1, 3])
def test_more_tasks_than_the_pool_has_are_refused_with_their_number(
    tmp_path: Path, times: int
) -> None:
    rows = [
        subtask("A", (), ("doc_path",), *[{"doc_path": "a"}] * times),
        subtask("B", ("doc_path",), (), *[{"doc_path": "a"}] * times),
    ]
    told = refused(tmp_path, rows)
    assert "the pool has 1 distinct tasks" in told
    assert "--tasks 5" in told


@pytest.mark.usefixtures("impatient")
def test_the_clipboard_holds_one_thing(tmp_path: Path) -> None:
    rows = [
        subtask("text", (), ("text_in_clipboard",)),
        subtask("table", (), ("table_in_clipboard",)),
        subtask("paste", ("text_in_clipboard",), ()),
        subtask("both", ("text_in_clipboard", "table_in_clipboard"), ()),
    ]
    assert "the pool has 1 distinct tasks" in refused(tmp_path, rows)


def test_a_trajectory_whose_picture_is_missing_is_not_used(tmp_path: Path) -> None:
    rows: Rows = [subtask("A", (), ("doc_path",), {"doc_path": "a"}, {"doc_path": "b"})]
    rows.append(subtask("B", ("doc_path",), (), {"doc_path": "a"}, {"doc_path": "b"}))
    for name in "AB":
        for value in "ab":
            file = "gone.png" if (name, value) == ("A", "b") else "there.png"
            rows.append(shown(name, f"Do {name} with '{value}'", file))
    pool = write_pool(tmp_path / "pool", rows)
    picture = next((sample_pool() / "observations").iterdir())
    (pool / "there.png").write_bytes(picture.read_bytes())
    report = compose(pool, tmp_path / "out", Settings(), tasks=1)
    (row,) = read_rows(tmp_path / "out" / "tasks.jsonl")
    assert row["parameters"] == {"A": {"doc_path": "a"}, "B": {"doc_path": "a"}}
    told = [finding["code"] for finding in report["made"]["findings"]]
    assert told == ["trajectory-unusable", "trajectory-missing"]


def test_a_picture_outside_the_pool_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "secret.png").write_bytes(b"secret")
    rows: Rows = [
        subtask("A", (), ("doc_path",), {"doc_path": "a"}),
        subtask("B", ("doc_path",), (), {"doc_path": "a"}),
    ]
    rows += [shown(name, f"Do {name} with 'a'", "../secret.png") for name in "AB"]
    assert "trajectory-missing" in refused(tmp_path, rows, trajectories=1)


def test_an_attribute_of_a_parameter_is_never_looked_up(tmp_path: Path) -> None:
    template = "Do '{doc_path}' {doc_path.__class__} {}"
    rows = [
        subtask("A", (), ("doc_path",), {"doc_path": "a{x}"}, template=template),
        subtask("B", ("doc_path",), (), {"doc_path": "a{x}"}, template=template),
    ]
    compose(write_pool(tmp_path / "pool", rows), tmp_path / "out", GRAPHS_ALONE, tasks=1)
    (row,) = read_rows(tmp_path / "out" / "tasks.jsonl")
    assert "Do 'a{x}' {doc_path.__class__} {}." in row["task_instruction"]


def test_a_finished_folder_is_not_made_again_and_not_overwritten(tmp_path: Path) -> None:
    pool, out = write_pool(tmp_path / "pool", EMILY), tmp_path / "out"
    report = compose(pool, out, GRAPHS_ALONE, tasks=3)
    before = digests(out)
    assert compose(pool, out, GRAPHS_ALONE, tasks=3) == report
    with pytest.raises(DataError, match="tasks: 3 there, 4 now"):
        compose(pool, out, GRAPHS_ALONE, tasks=4)
    (out / "note.txt").write_text("mine")
    with pytest.raises(UsageError, match="something here already"):
        compose(pool, out, GRAPHS_ALONE, tasks=3)
    (out / "note.txt").unlink()
    assert digests(out) == before


def test_a_pool_that_has_changed_is_other_tasks(tmp_path: Path) -> None:
    pool = write_pool(tmp_path / "pool", EMILY)
    compose(pool, tmp_path / "out", GRAPHS_ALONE, tasks=3)
    write_pool(tmp_path / "pool", EMILY[:-1])
    with pytest.raises(DataError, match="fingerprint"):
        compose(pool, tmp_path / "out", GRAPHS_ALONE, tasks=3)


def codes(folder: Path, rows: Rows, **settings: Any) -> dict[str, str]:
    """Why subtasks are not used, where others are."""
    rest = [
        subtask("A", (), ("doc_path",), {"doc_path": "a"}, task_intents=["Write"]),
        subtask("B", ("doc_path",), (), {"doc_path": "a"}, task_intents=["Write"]),
    ]
    pool = write_pool(folder / "pool", [*rest, *rows])
    report = compose(pool, folder / "out", Settings(trajectories=0, **settings), tasks=1)
    return {one["where"].split()[1]: one["code"] for one in report["made"]["findings"]}


def test_who_waits_for_what_is_told_apart(tmp_path: Path) -> None:
    rows = [
        subtask("C", ("vpn_connected",), ("site_in_browser",), task_intents=["Write"]),
        subtask("D", ("site_in_browser",), (), task_intents=["Write"]),
        subtask("E", ("egg_in_nest",), ("hen_in_house",), task_intents=["Write"]),
        subtask("F", ("hen_in_house",), ("egg_in_nest",), task_intents=["Write"]),
        subtask("G", (), ("mail_in_inbox",), task_intents=["Surf"]),
        subtask("H", ("mail_in_inbox",), (), task_intents=["Write"]),
        subtask("I", ("song_in_player",), ("song_in_player",), task_intents=["Write"]),
    ]
    assert codes(tmp_path, rows) == {
        "C": "resource-unprovided",
        "D": "provider-unused",
        "E": "resources-cyclic",
        "F": "resources-cyclic",
        "H": "provider-without-intent",
        "I": "resource-unprovided",  # who only changes a thing does not provide it
    }


def test_a_trajectory_of_other_parameters_is_not_used(tmp_path: Path) -> None:
    makes = {"doc_path": "a.doc", "pdf_path": "a.pdf"}, {"doc_path": "a.pdf", "pdf_path": "a.doc"}
    rows: Rows = [
        subtask("swap", (), ("doc_path", "pdf_path"), *makes),
        subtask("send", ("doc_path",), (), {"doc_path": "a.doc"}, {"doc_path": "a.docx"}),
        shown("swap", "Do swap with 'a.doc' with 'a.pdf'", "1.png"),
        shown("send", "Do send with 'a.docx'", "2.png"),
        shown("send", "Please send a.docx", "2.png"),
    ]
    pool = write_pool(tmp_path / "pool", rows)
    picture = next((sample_pool() / "observations").iterdir()).read_bytes()
    for name in ("1.png", "2.png"):
        (pool / name).write_bytes(picture)
    found = read_pool(pool, Settings())
    assert [(card.subtask, card.binding) for card in found.cards] == [
        ("swap", makes[0]),
        ("send", {"doc_path": "a.docx"}),
    ]


def test_a_trajectory_in_other_words_is_that_of_the_only_binding_it_names(tmp_path: Path) -> None:
    bindings = {"doc_path": "a.doc"}, {"doc_path": "b.doc"}
    rows: Rows = [
        subtask("send", ("doc_path",), (), *bindings),
        shown("send", "Please send b.doc", "gone.png"),
        shown("send", "Please send b.doc", "there.png"),
        shown("send", "Please send what is there", "there.png"),
    ]
    pool = write_pool(tmp_path / "pool", rows)
    picture = next((sample_pool() / "observations").iterdir()).read_bytes()
    (pool / "there.png").write_bytes(picture)
    (card,) = read_pool(pool, Settings()).cards
    assert card.binding == bindings[1]
    assert card.recorded is not None
    assert card.recorded.observations == ("there.png",)


def test_a_picture_that_a_full_disk_cut_off_is_copied_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "link", no_links)
    picture = bytes(range(256)) * 4000
    pool, out = pair(tmp_path, "there.png", picture), tmp_path / "out"
    with full_disk(500_000), pytest.raises(OmnidataError):
        compose(pool, out, Settings(), tasks=1)
    compose(pool, out, Settings(), tasks=1)
    assert (out / "there.png").read_bytes() == picture


@pytest.mark.parametrize("name", [".plan.json", "compose.json", "lots"])
def test_a_picture_called_like_a_file_of_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="a picture is called"):
        compose(pair(tmp_path, name, b"picture"), tmp_path / "out", Settings(), tasks=1)
    assert not (tmp_path / "out").exists()


def test_a_folder_in_the_pool_is_refused(tmp_path: Path) -> None:
    pool = write_pool(tmp_path / "pool", EMILY)
    with pytest.raises(UsageError, match="would become part of it"):
        compose(pool, pool / "out", GRAPHS_ALONE, tasks=3)
    assert [path.name for path in pool.iterdir()] == ["subtasks.jsonl"]
