"""Logs of other harnesses, scored by the command line."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from omnidata.errors import PredictionError
from omnidata.run.logs import read_log
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.benchmark import LogRows
from omnidata.tasks.log_rows import Difference
from omnidata.tasks.omnigui.load import load
from omnidata.types import LoadedDataset, Step
from tests.cli.running import as_json, omnidata
from tests.loaders.agentstudio import ground, pictures, write
from tests.loaders.desk import screenspot as desk_spots
from tests.loaders.desk import spot
from tests.loaders.phones import zoo, zoo_episode
from tests.trees import row, write_lines, write_rows


def lmms_log(few: Path, path: Path, form: str) -> Path:
    """A samples log as lmms-eval writes it: newer versions drop the row and flatten the lists."""
    lines = []
    for number, step in enumerate(load(few).steps):
        target = get_task("omnigui").target(step)
        assert target
        text = target.text if number % 2 else "nothing"
        line: dict[str, Any] = {"doc_id": number, "target": "{}", "filtered_resps": [text]}
        if form == "doc":
            doc = {**step.source, "app": step.tags["app"]}
            line = {**line, "doc_id": 0, "doc": doc, "resps": [[text]], "filtered_resps": [[text]]}
        if form == "metrics":
            named = {
                "subset": step.tags["app"].lower(),
                "episode_id": step.episode_id,
                "step_id": step.step_index,
                "exact_match": True,
            }
            line = {**line, "doc_id": 10**6, "type_match": named, "exact_match": named}
        lines.append(line)
    return write_lines(path, lines)


@pytest.mark.parametrize("form", ["doc_id", "doc", "metrics"])
def test_a_log_of_lmms_eval_is_scored_in_its_forms(few: Path, tmp_path: Path, form: str) -> None:
    log = lmms_log(few, tmp_path / "samples_omnigui.jsonl", form)
    done = omnidata("score", "omnigui", few, log, "--from", "lmms-eval", "--json")
    results = as_json(done)
    steps = len(load(few).steps)
    assert results["outcomes"] == {"ok": steps // 2, "unparsed": steps - steps // 2}
    assert results["overall"]["EM"] == pytest.approx((steps // 2) / steps)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["evaluate", "omnigui", "{empty}", "--model", "baseline:center", "--out", "{out}"],
         "dataset_<APP>.json"),
        (["evaluate", "nothing", "{data}", "--model", "baseline:center", "--out", "{out}"],
         "one of agentnet"),
        (["evaluate", "omnigui", "{data}", "--model", "gpt", "--out", "{out}"], "baseline:oracle"),
        (["evaluate", "omnigui", "{data}", "--model", "baseline:center", "--out", "{out}",
          "-T", "modalities"], "key=value"),
        (["evaluate", "omnigui", "{data}", "--model", "baseline:center", "--out", "{out}",
          "-T", "modalities=X"], "IAV"),
        (["evaluate", "omnigui", "{data}", "--model", "baseline:center", "--out", "{out}",
          "--profile", "strict"], "omnigui-release"),
        (["evaluate", "omnigui", "{data}", "--model", "baseline:center", "--out", "{out}",
          "--where", "app=Nobody"], "Chirp"),
        (["evaluate", "omnigui", "{data}", "--model", "baseline:center", "--out", "{out}",
          "--limit", "0"], "--limit"),
        (["evaluate", "omnigui", "{data}", "--model", "baseline:center", "--out", "{out}",
          "--exclude", "{empty}"], "one sample id per line"),
        (["score", "omnigui", "{data}", "{empty}"], "run.json"),
        (["score", "omnigui", "{data}", "{empty}/none.jsonl"], "sample_id"),
        (["score", "omnigui", "{data}", "{data}/dependency.jsonl"], "dependency.jsonl:1"),
        (["score", "omnigui", "{data}", "{data}/dependency.jsonl", "--from", "helm"], "lmms-eval"),
        (["score", "omnigui", "{data}", "{data}/dependency.jsonl", "-T", "coordinates=rel",
          "--profile", "omnigui-release"], "omnigui-paper"),
        (["info", "{data}", "--expect", "table3"], "table7"),
        (["info", "--strict"], "info DATA"),
        (["fly"], "No such command"),
    ],
)  # fmt: skip
def test_bad_usage_and_bad_input_exit_with_2_and_the_remedy(
    few: Path, tmp_path: Path, arguments: list[str], says: str
) -> None:
    (tmp_path / "empty").mkdir()
    places = {"data": few, "empty": tmp_path / "empty", "out": tmp_path / "out"}
    done = omnidata(*(argument.format(**places) for argument in arguments), code=2)
    assert says in done.stderr
    assert done.stdout == ""


def test_a_failed_request_in_a_log_is_no_answer(few: Path, tmp_path: Path) -> None:
    failed = "[LMMS_EVAL_REQUEST_FAILED after 5 retries] 503"
    lines: list[dict[str, Any]] = [
        {"doc_id": 0, "filtered_resps": [failed]},
        {"doc_id": 1, "resps": [[None]]},
        {"doc_id": 2, "filtered_resps": ["?"]},
    ]
    log = write_lines(tmp_path / "log.jsonl", lines)
    done = omnidata("score", "omnigui", few, log, "--from", "lmms-eval", "--json", code=1)
    assert as_json(done)["outcomes"]["api_error"] == 2
    write_lines(log, lines[:2])  # no answer at all is no score
    done = omnidata("score", "omnigui", few, log, "--from", "lmms-eval", "--json", code=1)
    assert "none of 28 steps was answered: 2 requests failed" in done.stderr
    assert done.stdout == ""


X = {"filtered_resps": ["x"]}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"doc": {"episode_id": "other", "step_id": 7}, **X}, "episode 'other', step 7"),
        ({"doc_id": True, **X}, "doc_id True"),
        ({"doc_id": 10**6, **X}, "doc_id 1000000"),
        ({"doc_id": 0, "filtered_resps": [3]}, "the answer is a int"),
        ({"doc_id": 1}, "the line has no answer"),
        ({"doc": "first", **X}, "result_action_type"),
    ],
)
def test_a_line_without_an_answer_to_a_step_of_the_data_is_refused(
    few: Path, tmp_path: Path, line: dict[str, Any], says: str
) -> None:
    if line.get("doc") == "first":  # but its target is another
        step = load(few).steps[0]
        line = {**line, "doc": {**step.source, "app": step.tags["app"], "result_action_type": 11}}
    good: dict[str, Any] = {"doc_id": 0, **X}
    log = write_lines(tmp_path / "log.jsonl", [good, line])
    done = omnidata("score", "omnigui", few, log, "--from", "lmms-eval", code=2)
    assert f"{log}:2" in done.stderr
    assert says in done.stderr


def test_a_log_that_is_not_text_is_refused(few: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    for content, says in ((b"\xfe\xfd{}\n", "log.jsonl:1"), (b"\xff\xfe{}\n", "as utf-16")):
        log.write_bytes(content)
        done = omnidata("score", "omnigui", few, log, "--from", "lmms-eval", code=2)
        assert says in done.stderr


def log_of(path: Path, *lines: dict[str, Any]) -> Path:
    return write_lines(path, [{"filtered_resps": ['{"action_type": 8}'], **line} for line in lines])


def named(app: str, **changes: Any) -> dict[str, Any]:
    return {"app": app, "episode_id": "T1", "step_id": 0, **changes}


def test_a_log_of_another_app_is_refused_and_of_another_spelling_is_not(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "steps.json", [row(app="GTrans", result_action_type=8)])
    for app, code in (("googletranslate", 0), ("Google_Translate", 0), ("youtube", 2)):
        log = log_of(tmp_path / f"{app}.jsonl", {"doc_id": 7, "doc": named(app)})
        omnidata("score", "omnigui", data, log, "--from", "lmms-eval", code=code)


def test_a_log_of_rows_that_the_loader_skipped_is_scored_without_them(tmp_path: Path) -> None:
    back = {"app": "ted", "result_action_type": 8}
    first = {**row(), **back}
    rows = [first, first, {**first, "step_id": None}, {**row("U"), **back}]
    data = write_rows(tmp_path / "steps.json", rows)
    lines = [{"doc_id": number, "doc": item} for number, item in enumerate(rows)]
    for form in (lines, [{"doc_id": number} for number in range(4)]):
        log = log_of(tmp_path / "log.jsonl", *form)
        results = as_json(omnidata("score", "omnigui", data, log, "--from", "lmms-eval", "--json"))
        assert results["outcomes"] == {"ok": 2}


def test_apps_that_share_a_subset_are_told_apart_by_the_rows_number(tmp_path: Path) -> None:
    rows = [row(app=app, subset="train", result_action_type=8) for app in ("ted", "imdb")]
    data = write_rows(tmp_path / "steps.json", rows)
    metric = {"subset": "train", "episode_id": "T1", "step_id": 0.0, "gt_action_type": 8}
    log = log_of(tmp_path / "log.jsonl", *({"doc_id": n, "type_match": metric} for n in (0, 1)))
    done = omnidata("score", "omnigui", data, log, "--from", "lmms-eval", "--json")
    assert as_json(done)["outcomes"] == {"ok": 2}
    lost = log_of(tmp_path / "lost.jsonl", {"type_match": metric})
    omnidata("score", "omnigui", data, lost, "--from", "lmms-eval", code=2)


def paired_steps(data: Path, *lines: dict[str, Any]) -> dict[str, str | None]:
    """The answer of each line, its place in the log, that a step of OmniGUI gets."""
    numbered = [{**line, "filtered_resps": [str(n)]} for n, line in enumerate(lines)]
    log = write_lines(data.with_name("log.jsonl"), numbered)
    return answers_of(log, load(data))


def answers_of(log: Path, source: LoadedDataset) -> dict[str, str | None]:
    found = read_log("lmms-eval", log, source, get_task(source.task))
    return {one.sample_id: one.output for one in found}


def test_a_log_of_a_copy_without_the_repeated_row_loses_no_answer(tmp_path: Path) -> None:
    known = [row("A", 0, app="ted"), row("A", 1, app="ted"), row("B", 0, app="ted")]
    data = write_rows(tmp_path / "steps.json", [known[0], *known])
    lines = [
        {"doc_id": n, "doc": {key: one[key] for key in ("episode_id", "step_id", "app")}}
        for n, one in enumerate(known)
    ]
    assert paired_steps(data, *lines) == {"ted/A/0": "0", "ted/A/1": "1", "ted/B/0": "2"}
    # Of a log with the repeated row, it is the repetition's answer that is not counted.
    own = [{**lines[0], "doc_id": n} for n in (1, 0)]
    assert paired_steps(data, *own) == {"ted/A/0": "1"}


def test_steps_of_two_apps_are_not_exchanged_where_rows_are_elsewhere(tmp_path: Path) -> None:
    rows = [
        row("A", app="ted"),
        row("A", app="imdb", result_touch_xy="[[1,2],[3,4]]"),
        row("B", app="ted"),
    ]
    data = write_rows(tmp_path / "steps.json", rows)
    docs = [{key: one[key] for key in ("episode_id", "step_id")} for one in rows]
    good = [{"doc_id": n, "doc": doc} for n, doc in enumerate(docs)]
    found = {"ted/A/0": "0", "imdb/A/0": "1", "ted/B/0": "2"}
    assert paired_steps(data, *good) == found
    # What else the rows say tells them apart.
    told = [
        {**doc, "result_touch_xy": one["result_touch_xy"]}
        for doc, one in zip(docs, rows, strict=True)
    ]
    moved = [{"doc_id": 2 - n, "doc": doc} for n, doc in enumerate(told)]
    assert paired_steps(data, *moved) == found
    with pytest.raises(PredictionError, match=r"one of imdb/A/0, ted/A/0, and rows are at other"):
        paired_steps(data, {"doc_id": 1, "doc": docs[0]}, {"doc_id": 0, "doc": docs[2]})


@pytest.mark.parametrize("empty", [[], None, [[]]])
def test_an_empty_filtered_answer_gives_way_to_the_whole_one(tmp_path: Path, empty: Any) -> None:
    data = write_rows(tmp_path / "steps.json", [row(app="ted", result_action_type=8)])
    line = {"doc_id": 0, "filtered_resps": empty, "resps": [['{"action_type": 8}']]}
    log = log_of(tmp_path / "log.jsonl", line)
    done = omnidata("score", "omnigui", data, log, "--from", "lmms-eval", "--json")
    assert as_json(done)["overall"]["EM"] == 1.0


def test_a_deeply_nested_log_line_is_no_traceback(few: Path, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"doc_id": 0, "resps": ' + "[" * 200_000 + "]" * 200_000 + "}\n")
    omnidata("score", "omnigui", few, log, "--from", "lmms-eval", code=2)


SPOTS = [
    spot(img_filename=f"web_{n % 4}.png", instruction=f"open shop {n // 2}", bbox=[n, 2, 3, 4])
    for n in range(8)
]
"""Each instruction stands in two rows, of different pictures."""


def logged(row: dict[str, Any], number: int, form: str) -> dict[str, Any]:
    """What lmms-eval keeps of a row of ScreenSpot: all of it, a record of it, or the prompt."""
    known = {key: row[key] for key in ("instruction", "bbox", "data_type", "data_source")}
    forms: dict[str, dict[str, Any]] = {
        "doc": {"doc": {**row, "image": None}},
        "record": {
            "screenspot_IoU": {**known, "pred": [0, 0, 0, 0], "ann_id": row["img_filename"]}
        },
        "target": {"input": f"Point at it.\nInstruction: {row['instruction']}"},
        "prompt": {"input": f"Click on the command: {row['instruction']}"},
        "number": {},
    }
    target = str(row["bbox"]) if form in ("doc", "target") else "[0.1, 0.2, 0.3, 0.4]"
    return {
        "doc_id": number,
        "target": target,
        "filtered_resps": [row["img_filename"]],
        **forms[form],
    }


def paired(data: Path, log: Path) -> dict[str, str | None]:
    source = get_task("screenspot").load(data, check_media=False)
    return answers_of(log, source)


@pytest.mark.parametrize("form", ["doc", "record", "target"])
def test_rows_of_a_log_in_another_order_are_found_by_what_they_say(
    tmp_path: Path, form: str
) -> None:
    data = desk_spots(tmp_path / "data", *SPOTS)
    shuffled = [SPOTS[n] for n in (5, 2, 7, 0, 1, 6, 3, 4)]
    lines = [logged(row, number, form) for number, row in enumerate(shuffled)]
    log = write_lines(tmp_path / "log.jsonl", lines)
    assert paired(data, log) == {
        f"screenspot_web/{n}": row["img_filename"] for n, row in enumerate(SPOTS)
    }


def test_alike_rows_of_groundui_are_told_apart_by_the_box(tmp_path: Path) -> None:
    rows = [
        ground(instruction="uniq"),
        ground(instruction="same", bbox=[10, 10, 20, 20]),
        ground(instruction="same", bbox=[100, 60, 120, 80]),
    ]
    write(tmp_path / "data" / "metadata.jsonl", *rows)
    pictures(tmp_path / "data" / "images", ["a.png"])
    lines = []
    for number, logged_row in enumerate(rows[n] for n in (0, 2, 1)):
        left, top, right, bottom = logged_row["bbox"]
        doc = {key: value for key, value in logged_row.items() if key != "image"}
        point = f"({(left + right) / 288:.4f}, {(top + bottom) / 180:.4f})"
        lines.append({"doc_id": number, "doc": doc, "filtered_resps": [point]})
    log = write_lines(tmp_path / "log.jsonl", lines)
    data = tmp_path / "data"
    done = omnidata("score", "groundui", data, log, "--from", "lmms-eval", "--json")
    assert as_json(done)["overall"]["accuracy"] == 1.0


@pytest.mark.parametrize("form", ["doc", "record", "target"])
def test_whole_numbers_of_a_box_may_be_floats_in_a_log(tmp_path: Path, form: str) -> None:
    rows = [spot(bbox=[8, 9, 16, 9]), spot(bbox=[30, 9, 16, 9]), spot(instruction="only here")]
    data = desk_spots(tmp_path / "data", *rows)
    floats = [{**row, "bbox": list(map(float, row["bbox"]))} for row in rows]
    lines = [
        {**logged(floats[row], number, form), "filtered_resps": [str(row)]}
        for number, row in enumerate((1, 0, 2))
    ]
    log = write_lines(tmp_path / "log.jsonl", lines)
    assert paired(data, log) == {f"screenspot_web/{n}": str(n) for n in range(3)}


@pytest.mark.parametrize(
    "box",
    [
        [8, 9, 24, 18],  # two corners
        [16, 13.5, 16, 9],  # the middle and the size
        [16, 13, 16, 9],  # rounded down
        [0.125, 0.25, 0.375, 0.5],  # two corners, fractions of 64 x 36
        [0.12, 0.25, 0.37, 0.5],  # rounded down
        [0.12500001, 0.25, 0.25, 0.25],  # the corner and the size, as floats of four bytes
        [125, 250, 375, 500],  # thousandths
        [250, 375, 250, 250],  # thousandths of the middle and the size
    ],
)
def test_a_box_in_other_units_is_taken(tmp_path: Path, box: list[float]) -> None:
    data = desk_spots(tmp_path / "data", spot())
    line = {"doc_id": 0, "doc": spot(bbox=box), "filtered_resps": ["x"]}
    assert paired(data, write_lines(tmp_path / "log.jsonl", [line])) == {"screenspot_web/0": "x"}


@pytest.mark.parametrize(
    "box",
    [
        [9, 9, 16, 9],
        [30, 9, 16, 9],
        [8, 9, 16, 19],
        [40, 2, 50, 30],
        [1, 1, 4, 4],  # no multiple of it, but where numbers are rounded coarsely
        [16, 18, 32, 18],  # of a picture of twice the size, which no log has
        [0.1, 0.2, 0.3, 0.4],
        [0.13, 0.25, 0.39, 0.5],
        [0.125, 0.25, 0.375, 0.501],
        [126, 250, 375, 500],
        [8, 9, 8, 0],  # what it would be if the data's numbers were two corners
    ],
)
def test_another_box_is_refused_in_any_unit(tmp_path: Path, box: list[float]) -> None:
    data = desk_spots(tmp_path / "data", spot(instruction="first"), spot())
    lines = [
        {"doc_id": 0, "doc": spot(instruction="first"), "filtered_resps": ["x"]},
        {"doc_id": 1, "doc": spot(bbox=box), "filtered_resps": ["x"]},
    ]
    log = write_lines(tmp_path / "log.jsonl", lines)
    refused(data, log, ":2", f"its bbox is {box}, that of screenspot_web/1 is [8, 9, 16, 9]")


def test_a_box_of_data_in_fractions_may_be_pixels_in_a_log(tmp_path: Path) -> None:
    own = spot(bbox=[0.1251, 0.2519, 0.3742, 0.5019])  # 8.0064, 9.0684, 23.9488, 18.0684
    data = desk_spots(tmp_path / "data", own)
    source = get_task("screenspot", {"boxes": "xyxy-rel"}).load(data, check_media=False)
    for box, fits in (([8, 9, 24, 18], True), ([8, 9, 16, 9], True), ([8, 9, 24, 19], False)):
        line = {"doc_id": 0, "doc": {**own, "bbox": box}, "filtered_resps": ["x"]}
        log = write_lines(tmp_path / "log.jsonl", [line])
        if fits:
            assert answers_of(log, source) == {"screenspot_web/0": "x"}
        else:
            refused(source, log, ":1", "its bbox is")


def test_the_number_decides_between_rows_that_are_alike(tmp_path: Path) -> None:
    rows = [*SPOTS, spot(instruction="only here")]
    data = desk_spots(tmp_path / "data", *rows)
    lines = [logged(row, n, "prompt") for n, row in enumerate(rows)]
    log = write_lines(tmp_path / "log.jsonl", lines[::-1])
    assert paired(data, log)["screenspot_web/1"] == "web_1.png"
    assert paired(data, log)["screenspot_web/3"] == "web_3.png"
    # Where no row is known by itself, or one lies elsewhere, it does not.
    write_lines(log, lines[:8])
    refused(data, log, ":1", "nothing confirms its number")
    write_lines(log, [*lines[:7], {**lines[8], "doc_id": 2}])
    refused(data, log, ":1", f"rows are at other places there ({log}:8)")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (logged(SPOTS[0], 0, "number"), "nothing in it says 'open shop 0', as screenspot_web/0"),
        (logged(SPOTS[0], 99, "number"), "(doc_id 99) is no step of the data"),
        ({"doc_id": 0, "doc": {"question": "How many?", "data_type": "text"}}, "nothing in it"),
        ({"doc_id": 0, "doc": {**SPOTS[0], "data_type": "icon"}},
         "its data_type is 'icon', that of screenspot_web/0 is 'text'"),
        ({"doc_id": 0, "doc": {**SPOTS[0], "img_filename": "web_9.png"}},
         "its img_filename is 'web_9.png', that of screenspot_web/0 is 'web_0.png'"),
        ({"doc_id": 1, "input": "Click: open shop 00"}, "nothing in it says 'open shop 0'"),
        ({"doc_id": 5, "input": "Click: open shop 0"}, "several rows of the data are like"),
    ],
)  # fmt: skip
def test_a_row_that_is_none_of_the_data_is_refused_with_what_differs(
    tmp_path: Path, line: dict[str, Any], says: str
) -> None:
    data = desk_spots(tmp_path / "data", *SPOTS)
    good = logged(SPOTS[3], 3, "doc")
    log = write_lines(tmp_path / "log.jsonl", [good, {"filtered_resps": "x", **line}])
    refused(data, log, ":2", says)


def test_a_benchmark_may_say_that_a_number_names_a_row_and_which_columns_count(
    tmp_path: Path,
) -> None:
    asked: Any = get_task("screenspot")

    class Numbered(LogRows):
        by_number = True

        def difference(
            self, step: Step, row: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
        ) -> Difference | None:
            said, own = row.get("data_type"), step.tags["ui_type"]
            return Difference("data_type", said, own) if said not in (None, own) else None

    class Spots(type(asked.benchmark)):  # type: ignore[misc]  # a class known at run time
        log_rows = Numbered()

    numbered: Any = Asking(Spots("screenspot", {}))
    source = asked.load(desk_spots(tmp_path / "data", *SPOTS), check_media=False)
    lines: list[dict[str, Any]] = [{"doc_id": n, "filtered_resps": [str(n)]} for n in (2, 0, 1)]
    lines.append({"doc_id": 3, "doc": {"bbox": [9, 9, 9, 9]}, "filtered_resps": ["3"]})
    log = write_lines(tmp_path / "log.jsonl", lines)
    found = read_log("lmms-eval", log, source, numbered)
    assert {one.sample_id: one.output for one in found} == {
        f"screenspot_web/{n}": str(n) for n in range(4)
    }
    other = {"sample_id": "screenspot_web/1", "data_type": "icon"}
    write_lines(log, [{"doc_id": 0, "doc": other, "filtered_resps": ["x"]}])
    with pytest.raises(PredictionError, match="its data_type is 'icon', that of screenspot_web/1 "):
        list(read_log("lmms-eval", log, source, numbered))


def test_a_log_must_say_which_step_of_an_episode_it_is(tmp_path: Path) -> None:
    rows = [zoo(n, coat_action_desc=f"do {n}") for n in range(3)]
    zoo_episode(tmp_path / "data", *rows)
    source = get_task("aitw").load(tmp_path / "data")
    lines = [{"doc_id": n, "filtered_resps": str(n)} for n in range(3)]
    told = [
        {**line, "doc": {**row, "step_id": str(n)}}
        for n, (line, row) in enumerate(zip(lines, rows, strict=True))
    ]
    log = write_lines(tmp_path / "log.jsonl", told[::-1])
    found = answers_of(log, source)
    assert found == {step.sample_id: str(step.step_index) for step in source.steps}
    write_lines(log, [{**line, "input": "Goal: open the clock"} for line in lines])
    refused(source, log, ":1", "does not say which of 3 steps of episode 'GENERAL-5'")


def refused(data: Path | LoadedDataset, log: Path, where: str, says: str) -> None:
    source = (
        get_task("screenspot").load(data, check_media=False) if isinstance(data, Path) else data
    )
    with pytest.raises(PredictionError) as told:
        answers_of(log, source)
    # One reason has its lines behind the file's name, several have theirs in a list.
    assert re.search(rf"{re.escape(f'{log}{where}')}\b|\({where[1:]}[,)]", str(told.value))
    assert says in str(told.value)
