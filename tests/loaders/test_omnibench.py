"""OmniBench's metadata, read and written."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnidata
from omnidata import following
from omnidata.errors import DataError, FileError, MediaError
from omnidata.graphs import Graph
from omnidata.loaders.task_library import (
    CONTENTS,
    Library,
    Subtask,
    TaskGraph,
    Trajectory,
    copy_pictures,
    row_of,
    write_library,
)
from omnidata.tasks.omnibench.load import load, read_library
from tests.loaders.omnibench import (
    APPS,
    COMPARISON,
    INTRODUCTION,
    act,
    codes,
    library,
    pictures,
    plain,
    subtask,
    task,
    trajectory,
    write,
    written,
)


def tasks_of(tmp_path: Path, *rows: dict[str, Any]) -> Library:
    subtasks = [subtask(own) for own in APPS]
    return read_library(written(tmp_path, {"s.jsonl": subtasks, "t.jsonl": list(rows)}))


def test_all_four_kinds_are_read(tmp_path: Path) -> None:
    found = read_library(library(tmp_path))
    assert list(found.subtasks) == ["A", "E"]
    own = found.subtasks["A"]
    assert (own.application, own.os, own.inputs, own.outputs) == (
        "PowerPoint", "Windows", (), ("ppt_path",),
    )  # fmt: skip
    assert [binding["path"] for binding in own.parameters] == ["C:\\one.ppt", "C:\\two.ppt"]
    graph = found.tasks["1"]
    assert (graph.graph.nodes, graph.graph.edges) == (("A", "E"), (("A", "E"),))
    assert graph.applications == {"A": "PowerPoint", "E": "Outlook"}
    assert graph.categories == {"PowerPoint": "Office", "Outlook": "Outlook"}
    assert graph.orders == (("A", "E"),)
    part, whole = found.trajectories
    assert (part.subtask_id, part.task_id, part.order) == ("A", "", ())
    assert (whole.task_id, whole.order, whole.intent) == ("1", ("A", "E"), "Send a presentation")
    assert codes(found.findings) == {"app-unknown": 1}


def test_an_evaluation_function_is_text_of_the_folder_that_nobody_runs(tmp_path: Path) -> None:
    text = "open('ran', 'w')\nraise SystemExit\r\n"
    (tmp_path / "secret.txt").write_text("x")
    ids = ("A", "B", "C", "../../secret", "../secret")
    data = written(tmp_path / "data", {"s.jsonl": [*map(subtask, ids)]})
    (data / "evaluations").mkdir()
    (data / "evaluations" / "A.txt").write_bytes(text.encode())
    (data / "B.txt").write_bytes(b"\xff")
    (data / "evaluations" / "C.txt").symlink_to(tmp_path / "secret.txt")
    found = read_library(data)
    told = [each.evaluation for each in found.subtasks.values()]
    assert told == [text, *[None] * 4]
    assert codes(found.findings) == {"evaluation-unreadable": 4}
    assert not Path("ran").exists()


def test_files_are_known_by_their_columns_and_not_by_their_names(tmp_path: Path) -> None:
    data = written(
        tmp_path,
        {
            "notes.json": {"a": 1},
            "x.jsonl": [subtask("A"), task("7"), trajectory()],
            "tasks/12.json": {key: v for key, v in task().items() if key != "task_id"},
            "many.json": [subtask("E"), subtask("F")],
            "broken/13.json": '{"dag": ',
            ".hidden.json": subtask("G"),
        },
    )
    found = read_library(data)
    assert list(found.subtasks) == ["E", "F", "A"]
    assert list(found.tasks) == ["12", "7"]
    (broken,) = (f for f in found.findings if f.code == "json-invalid")
    assert broken.where == str(data / "broken/13.json")
    assert "no JSON (column 9" in broken.what
    assert list(read_library(data / "many.json").subtasks) == ["E", "F"]


def test_the_reviews_examples_are_read(tmp_path: Path) -> None:
    found = tasks_of(tmp_path, task("1", INTRODUCTION), task("2", COMPARISON))
    first, second = found.tasks.values()
    assert first.graph.nodes == ("A", "C", "D", "F", "G", "E")
    assert second.graph.nodes == ("D", "C1", "A", "C2", "B", "E")
    assert second.applications == {
        "D": "Outlook", "C1": "PowerPoint", "A": "PowerPoint", "C2": "PowerPoint",
        "B": "Adobe Photoshop Express", "E": "Outlook",
    }  # fmt: skip
    assert len(first.orders) == first.graph.count_orders() == 8
    assert set(second.orders) == {
        ("D", "A", "C1", "B", "C2", "E"),
        ("A", "D", "C1", "B", "C2", "E"),
    }
    assert codes(found.findings) == {"app-unknown": 1, "orders-missing": 1}


def test_the_papers_example_of_a_trajectory_breaks_off(tmp_path: Path) -> None:
    row = trajectory(act(), {"function": "...", "args": {"...": "..."}}, "...")
    row["observations"] = ["obs1.png", "obs2.png", "..."]
    source = load(write(tmp_path / "t.jsonl", row), check_media=False)
    assert [step.action is None for step in source.steps] == [False, True, True]
    assert [step.media["screenshot"] is None for step in source.steps] == [False, False, True]
    assert codes(source.findings) == {"action-unusable": 2}
    assert [f.where for f in source.findings] == [
        f"A(0)/1 ({tmp_path / 't.jsonl'}:1)", f"A(0)/2 ({tmp_path / 't.jsonl'}:1)",
    ]  # fmt: skip
    assert [f.sample_ids for f in source.findings] == [("A(0)/1",), ("A(0)/2",)]


@pytest.mark.parametrize(
    ("dag", "says"),
    [
        ({"A": ["C"], "C": ["A"]}, "cycle"),
        ({"nodes": ["A"], "edges": {"A": ["E"]}}, "no node"),
        ({"nodes": ["A", "A"], "edges": {}}, "repeated"),
        ({"A": ["A"]}, "waits for itself"),
        ([], "list"),
        ({"nodes": [], "edges": {}}, "0 nodes"),
    ],
)
def test_a_graph_that_is_none_is_found_where_it_is(tmp_path: Path, dag: Any, says: str) -> None:
    same = [{"A": ["E"]}, {"nodes": ["A", "E"], "edges": {"A": ["E"]}}, None]  # E is a sink
    found = tasks_of(tmp_path, *(task(str(n), each) for n, each in enumerate([*same, dag])))
    assert list(found.tasks) == ["0", "1", "2"]
    assert len({each.graph for each in found.tasks.values()}) == 1
    (broken,) = (f for f in found.findings if f.code == "graph-broken")
    assert (broken.severity, broken.where) == ("error", f"task 3 ({tmp_path / 't.jsonl'}:4)")
    assert says in broken.what
    assert broken.remedy


def test_orders_are_checked_and_found_anew(tmp_path: Path) -> None:
    fork = {"A": ["C"], "D": ["C"]}
    right, other = ["A", "D", "C"], ["D", "A", "C"]
    wide = {"nodes": [f"A{n}" for n in range(12)], "edges": {}}
    rows = [
        task("whole", fork, successful_topo=[other, right]),
        task("sample", fork, successful_topo=[other], orders_total=2),
        task("part", fork, successful_topo=[other], orders_total=3),
        task("wrong", fork, successful_topo=[["C", "A", "D"], right, ["A"], 7]),
        task("twice", fork, successful_topo=[right, right, other]),
        task("none", fork),
        task("text", fork, successful_topo="A D C"),
        task("most", wide, successful_topo=[wide["nodes"]]),
        task("many", wide),
        task("lost", {"A": ["Z"]}, successful_topo=[["A", "Z"]]),
    ]
    found = tasks_of(tmp_path, *rows)
    both = {tuple(right), tuple(other)}
    assert all(set(found.tasks[row["task_id"]].orders) == both for row in rows[:7])
    assert found.tasks["whole"].orders == (tuple(other), tuple(right))
    # Of a task with too many orders those that it lists are kept.
    assert [found.tasks[own].orders for own in ("most", "many")] == [(tuple(wide["nodes"]),), ()]
    places: dict[str, list[str]] = {}
    for each in found.findings:
        places.setdefault(each.code, []).append(each.where.rpartition(":")[2])
    assert places == {
        "app-unknown": ["1"],
        "subtask-missing": ["10"],
        "orders-incomplete": ["3", "4", "7", "8"],
        "order-wrong": [f"4, successful_topo {n}" for n in (0, 2, 3)],
        "order-repeated": ["5, successful_topo 1"],
        "orders-missing": ["6"],
        "orders-unusable": ["7"],
    }
    (lost,) = (f for f in found.findings if f.code == "subtask-missing")
    assert lost.severity == "error" and "'Z'" in lost.what


def test_a_row_may_name_the_subtask_of_a_node_or_its_application(tmp_path: Path) -> None:
    found = tasks_of(tmp_path, task("1", {"x": ["C1"]}, subtasks={"x": "G", "C1": "D"}))
    assert found.tasks["1"].applications == {"x": "PowerPoint", "C1": "Outlook"}
    assert "subtask-missing" not in codes(found.findings)
    own = {"A": "Word", "E": "Mail"}
    found = read_library(written(tmp_path / "own", {"t.jsonl": [task(application=own)]}))
    assert found.tasks["1"].applications == own
    assert codes(found.findings) == {"orders-missing": 1}


def test_ids_may_be_whole_numbers_everywhere(tmp_path: Path) -> None:
    fork = {"nodes": [1, 2, 31], "edges": {"1": [31], "2": [31]}}
    orders = [[1, 2, 31], [2, 1, 31]]
    whole = trajectory(
        trajectory_id="7(1)", subtask_id=None, task_id=7, topological_order=orders[1]
    )
    files = {
        "s.jsonl": [subtask(1), subtask(2, application="Word"), subtask(3)],
        "t.jsonl": [task(7, fork, successful_topo=orders), task(8, {"x": []}, subtasks={"x": 2})],
        "r.jsonl": [whole],
    }
    found = read_library(written(tmp_path, files))
    assert codes(found.findings) == {"orders-missing": 1}
    first, second = found.tasks["7"], found.tasks["8"]
    assert first.orders == (("1", "2", "31"), ("2", "1", "31"))
    assert first.applications == {"1": "Excel", "2": "Word", "31": "Excel"}
    assert second.applications == {"x": "Word"}
    assert found.trajectories[0].order == ("2", "1", "31")


def test_a_trajectory_is_held_against_its_task(tmp_path: Path) -> None:
    fork = {"A": ["C"], "D": ["C"]}
    orders = [["A", "D", "C"], ["D", "A", "C"]]
    rows = [
        trajectory(trajectory_id=own, subtask_id=None, task_id=of, topological_order=order)
        for own, of, order in (
            ("1(0)", 1, orders[0]),
            ("1(1)", "1", orders[0]),
            ("1(7)", "1", orders[1]),
            ("1(x)", "1", ["C", "A", "D"]),
            ("9(0)", "9", ["A"]),
        )
    ]
    tasks = [task("1", fork, successful_topo=orders)]
    found = read_library(written(tmp_path, {"r.jsonl": rows, "t.jsonl": tasks}))
    assert len(found.trajectories) == 5
    kinds = codes(found.findings)
    assert (kinds["order-number-wrong"], kinds["order-wrong"], kinds["task-missing"]) == (2, 1, 1)


def test_an_application_that_table_10_lacks_is_its_own_category(tmp_path: Path) -> None:
    found = tasks_of(
        tmp_path, task("1", {"A": ["D"]}), task("2", {"D": ["E"]}, category={"Outlook": "Mailing"})
    )
    assert found.tasks["1"].categories["Outlook"] == "Outlook"
    assert found.tasks["2"].categories["Outlook"] == "Mailing"
    (unknown,) = (f for f in found.findings if f.code == "app-unknown")
    assert unknown.where == f"{tmp_path / 't.jsonl'}:1"


def test_bad_rows_are_skipped_with_their_line(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    rows = [
        subtask("A"), subtask("A"), subtask(id=None), subtask("B", instruction_template=7),
        {"nothing": 1}, trajectory(trajectory_id=""), trajectory(actions="none"),
        trajectory(*[act()] * 2001, trajectory_id="long"),
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "[1]\n{\n")
    found = read_library(path)
    assert list(found.subtasks) == ["A"]
    assert not found.trajectories
    assert {f.where: f.code for f in found.findings} == {
        f"{path}:2": "id-repeated", f"{path}:3": "id-missing", f"{path}:4": "column-wrong",
        f"{path}:5": "columns-unknown", f"{path}:6": "id-missing", f"{path}:7": "column-wrong",
        f"{path}:8": "actions-many", f"{path}:9": "json-invalid", f"{path}:10": "json-invalid",
    }  # fmt: skip
    assert all(f.severity == "error" for f in found.findings)


def test_doubtful_columns_are_told_and_kept(tmp_path: Path) -> None:
    rows = [
        subtask("A", available_parameters={"path": "one"}, application=None),
        subtask("B", available_parameters=[{}], input_resources="path"),
        subtask("C", available_parameters="x", output_resources=None),
        trajectory(observations=[], instruction=None, topological_order=7, subtask_id=None),
    ]
    found = read_library(write(tmp_path / "x.jsonl", *rows))
    assert found.subtasks["A"].parameters == ({"path": "one"},)
    assert (found.subtasks["B"].inputs, found.subtasks["C"].outputs) == ((), ())
    assert codes(found.findings) == dict.fromkeys(
        ("application-missing", "parameter-missing", "resources-unusable", "parameters-unusable",
         "observations-differ", "instruction-missing", "order-unusable", "owner-missing"), 1,
    )  # fmt: skip


def test_a_step_for_each_action(tmp_path: Path) -> None:
    source = load(library(tmp_path))
    assert [step.sample_id for step in source.steps] == [
        "A(0)/0", "A(0)/1", "1(0)/0", "1(0)/1", "1(0)/2",
    ]  # fmt: skip
    last = source.steps[-1]
    assert last.source == {"function": "", "args": {}, "task_id": "1"}
    assert source.steps[0].source == act() | {"subtask_id": "A"}
    assert (last.num_steps, last.step_index, last.screen) == (3, 2, (200, 100))
    assert [past.words for past in last.history if past] == [
        'click_input(button="left", double=false) on "Save"',
        'wheel_mouse_input(wheel_dist=-3) on "Save"',
    ]
    assert last.history == tuple(step.action for step in source.steps[2:4])
    assert last.media["screenshot"] and last.media["screenshot"].path == "shots/2.png"
    assert last.tags == {
        "kind": "task", "app": "several", "category": "several", "platform": "Windows",
        "intent": "Send a presentation",
    }  # fmt: skip
    assert source.steps[0].tags == {
        "kind": "subtask", "app": "PowerPoint", "category": "Office", "platform": "Windows",
    }  # fmt: skip
    assert codes(source.findings) == {"app-unknown": 1}


def test_pictures_that_are_not_there_or_lie_outside_are_found(tmp_path: Path) -> None:
    (tmp_path / "out.png").write_bytes(b"x")
    shots = ["shots/0.png", "../out.png", "/etc/passwd", "file:///etc/passwd", "none.png"]
    pictures(tmp_path / "data", shots[:1])
    row = trajectory(*[act()] * 5, observations=shots)
    source = load(write(tmp_path / "data" / "t.jsonl", row))
    assert codes(source.findings) == {"path-unsafe": 3, "media-broken": 1}
    assert [step.screen != (0, 0) for step in source.steps] == [True, *[False] * 4]


@pytest.mark.parametrize("link", ["linked.jsonl", "more"])
def test_a_link_out_of_the_folder_is_refused_until_it_is_named(tmp_path: Path, link: str) -> None:
    outside = written(tmp_path / "outside", {"s.jsonl": [subtask("A"), trajectory(act())]})
    data = written(tmp_path / "data", {"s.jsonl": [subtask("B")]})
    (data / link).symlink_to(outside / "s.jsonl" if link.endswith("l") else outside)
    with pytest.raises(FileError, match=f"--media-root {outside}"):
        load(data, check_media=False)
    with following([outside]):
        assert len(load(data, check_media=False).steps) == 1


def test_rects_are_checked(tmp_path: Path) -> None:
    pictures(tmp_path, ["a.png"], size=(50, 50))
    rects = [[10, 20, 30, 40], [30, 20, 10, 40], [0, 0, 51, 10], None, [float("nan")] * 4]
    row = trajectory(*[act(rect=rect) for rect in rects], observations=["a.png"] * 5)
    source = load(write(tmp_path / "t.jsonl", row))
    kinds = codes(source.findings)
    assert (kinds["rect-unusable"], kinds["rect-outside"], kinds["click-without-rect"]) == (2, 1, 1)
    assert [step.action and bool(step.action.start) for step in source.steps] == [
        True, False, True, False, False,
    ]  # fmt: skip


def test_data_of_something_else_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_library(tmp_path / "none")
    with pytest.raises(DataError, match="columns of the benchmark"):
        read_library(written(tmp_path, {"a.jsonl": [{"a": 1}]}))
    with pytest.raises(DataError, match="no trajectory"):
        load(written(tmp_path, {"t.jsonl": [task()]}))
    assert load(tmp_path, needs_steps=False).steps == []
    with pytest.raises(DataError, match="--strict"):
        load(tmp_path, needs_steps=False, strict=True)


def test_what_is_written_is_what_was_read(tmp_path: Path) -> None:
    data = library(tmp_path / "data")
    odd = [
        task("2", COMPARISON, extra={"nested": [None, 1e-9, "\ud800", "字"]}),
        task("3", {"A": ["E"]}, score=float("inf")),
    ]
    write(data / "more.jsonl", *odd, trajectory(trajectory_id="B(0)", observations=["..."]))
    found = read_library(data)
    out = tmp_path / "out"
    out.mkdir()
    write_library(found, out)
    again = read_library(out)
    assert canonical(again) == canonical(found)
    assert (again.subtasks, again.tasks) == (found.subtasks, found.tasks)
    for part in ("", "A"):
        both = ([t for t in one.trajectories if t.subtask_id == part] for one in (again, found))
        assert next(both) == next(both)
    assert (out / "shots/2.png").read_bytes() == (data / "shots/2.png").read_bytes()
    assert {path.name for path in out.iterdir()} == {*CONTENTS, "shots"}


def canonical(found: Library) -> set[str]:
    values: list[Any] = [*found.subtasks.values(), *found.tasks.values(), *found.trajectories]
    return {json.dumps(row_of(value), sort_keys=True) for value in values}


IDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="/\\:\0"), min_size=1)
NAMES = IDS.filter(lambda own: bool(own.strip().strip(".")) and len(own.encode()) < 100)


@given(
    st.builds(
        Subtask,
        id=NAMES,
        template=st.just("Do '{x}'."),
        application=st.text(min_size=1),
        parameters=st.lists(st.fixed_dictionaries({"x": st.text()}), max_size=3).map(tuple),
        os=st.text(),
        inputs=st.lists(st.text(min_size=1), max_size=3).map(tuple),
        outputs=st.lists(st.text(min_size=1), max_size=3).map(tuple),
        evaluation=st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    ),
    st.lists(st.sampled_from([act(), plain("keyboard_input", keys="x")]), min_size=1, max_size=3),
)
def test_values_that_were_never_read_are_written_in_the_papers_schema(
    tmp_path_factory: pytest.TempPathFactory, own: Subtask, actions: list[dict[str, Any]]
) -> None:
    out = tmp_path_factory.mktemp("out")
    graph = Graph((own.id, "B"), ((own.id, "B"),)) if own.id != "B" else Graph((own.id,), ())
    apps = dict.fromkeys(graph.nodes, "Word")
    whole = TaskGraph("t", "Do it.", graph, "why", apps, {"Word": "Office"}, tuple(graph.orders()))
    shots = ("s.png",) * len(actions)
    part = Trajectory("p", "Do one.", shots, tuple(actions), subtask_id=own.id)
    way = Trajectory(
        "t(0)", "Do it.", shots, tuple(actions), task_id="t", order=graph.nodes, intent="why"
    )
    given = Library(out, {own.id: own}, (part, way), {"t": whole})
    write_library(given, out, pictures=False)
    found = read_library(out)
    for before, after in ((own, found.subtasks[own.id]), (whole, found.tasks["t"])):
        assert after == replace(before, source=row_of(before))
    assert list(found.trajectories) == [replace(t, source=row_of(t)) for t in (part, way)]


def test_the_writer_refuses_what_would_lead_out_of_its_folder(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    evil = Subtask("../x", "", "Word", evaluation="text")
    with pytest.raises(DataError, match="cannot name a file"):
        write_library(Library(tmp_path, {"../x": evil}), out)
    pictures(tmp_path, ["a.png"])
    (tmp_path / "tasks.jsonl").write_text("x")
    for name, error in (("../a.png", MediaError), ("none.png", MediaError)):
        with pytest.raises(error):
            copy_pictures(tmp_path, [name], out)
    with pytest.raises(DataError, match="is called"):
        copy_pictures(tmp_path, ["tasks.jsonl"], out)
    assert list(out.iterdir()) == []


def test_it_is_a_dataset(tmp_path: Path) -> None:
    data = library(tmp_path)
    whole = omnidata.load_dataset("omnibench", data, split="test")
    assert whole["sample_id"] == [step.sample_id for step in load(data).steps]
    assert json.loads(whole[4]["source"]) == {"function": "", "args": {}, "task_id": "1"}
    part = omnidata.load_dataset("omnibench", data, "office", split="test")
    assert part["kind"] == ["subtask"] * 2
