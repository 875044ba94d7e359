"""Tables of predictions as VLMEvalKit writes them, scored by the command line.

VLMEvalKit (`vlmeval/smp/file.py`, `dump`) writes pandas frames: `to_csv` with tabs and quotes
around all cells, `to_excel`, or a JSON list of records.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from omnidata.run.logs import read_log
from omnidata.tasks import get_task
from tests.cli.running import as_json, omnidata
from tests.loaders.desk import screenspot, spot

SPOTS = [
    spot(instruction=f"open shop {number}", img_filename=f"web_{number}.png") for number in range(4)
]


def dumped(folder: Path, form: str, answers: Sequence[Any], *, order: Sequence[int]) -> Path:
    """The table of VLMEvalKit's own copy of the data, whose rows are numbered anew."""
    rows = [
        {
            "index": number + 100,
            "image_path": SPOTS[row]["img_filename"],
            "question": SPOTS[row]["instruction"],
            "bbox": str(SPOTS[row]["bbox"]),
            "data_type": SPOTS[row]["data_type"],
            "prediction": answers[row],
        }
        for number, row in enumerate(order)
    ]
    frame, path = pd.DataFrame(rows), folder / f"m_ScreenSpot_Web.{form}"
    if form == "tsv":
        frame.to_csv(path, sep="\t", index=False, encoding="utf-8", quoting=csv.QUOTE_ALL)
    elif form == "xlsx":
        frame.to_excel(path, index=False)
    else:
        path.write_text(json.dumps(frame.to_dict("records"), indent=4, ensure_ascii=False))
    return path


def middle(row: Mapping[str, Any], width: int, height: int) -> str:
    x, y, w, h = row["bbox"]
    return f"pyautogui.click(x={(x + w / 2) / width:.4f}, y={(y + h / 2) / height:.4f})"


def test_an_answer_that_a_spreadsheet_takes_for_a_formula_is_kept(tmp_path: Path) -> None:
    given = [f"={middle(SPOTS[0], 64, 36)}", "=1+1", "-1", "@x"]
    asking = get_task("screenspot", {"coordinates": "rel"})
    source = asking.load(screenspot(tmp_path / "data", *SPOTS))
    for form in ("tsv", "xlsx"):
        table = dumped(tmp_path, form, given, order=[0, 1, 2, 3])
        found = read_log("vlmevalkit", table, source, asking)
        assert [(one.output, one.delivery) for one in found] == [(text, "ok") for text in given]


@pytest.mark.parametrize("form", ["tsv", "json", "xlsx"])
def test_rows_are_found_by_what_they_say_and_failures_are_no_answers(
    tmp_path: Path, form: str
) -> None:
    data = screenspot(tmp_path / "data", *SPOTS)
    right = middle(SPOTS[0], 64, 36)
    answers = [right, "Failed to obtain answer via API. ", 'a\tb\n"c"', float("nan")]
    table = dumped(tmp_path, form, answers, order=[2, 0, 3, 1])
    arguments = ("score", "screenspot", data, table, "--from", "vlmevalkit", "--json")
    units = ("-T", "coordinates=rel", "--profile", "screenspot-fixed")
    results = as_json(omnidata(*arguments, *units, "--out", tmp_path / "scored", code=1))
    assert results["outcomes"] == {"ok": 1, "unparsed": 2, "api_error": 1}
    lines = (tmp_path / "scored" / "scores.jsonl").read_text().splitlines()
    found = {line["sample_id"]: line for line in map(json.loads, lines)}
    assert found["screenspot_web/0"]["score"] == 1
    assert found["screenspot_web/1"]["outcome"] == "api_error"

    # A unit that nobody states is not guessed.
    assert "coordinates=rel|px|norm1000" in omnidata(*arguments, code=2).stderr


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"data_type": "icon"}, "its data_type is 'text', that of screenspot_web/3 is 'icon'"),
        ({"bbox": [30, 2, 3, 4]}, "its bbox is"),
        ({"img_filename": "web_9.png"}, "its picture is 'web_3.png', that of screenspot_web/3 is"),
        ({"instruction": "shut it"}, "is no step of the data"),
    ],
)
def test_a_row_that_says_otherwise_is_refused(
    tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    data = screenspot(tmp_path / "data", *SPOTS[:3], {**SPOTS[3], **change})
    table = dumped(tmp_path, "tsv", ["x"] * 4, order=[0, 1, 2, 3])
    done = omnidata(
        "score", "screenspot", data, table, "--from", "vlmevalkit", "-T", "coordinates=rel", code=2
    )
    assert f"{table}:4" in done.stderr
    assert says in done.stderr


def test_an_answer_that_a_cell_cuts_off_is_truncated(tmp_path: Path) -> None:
    data = screenspot(tmp_path / "data", *SPOTS)
    whole = middle(SPOTS[0], 64, 36) + " " * 40_000
    table = dumped(tmp_path, "xlsx", [whole[:32_767], *["x"] * 3], order=[0, 1, 2, 3])
    how = ("--from", "vlmevalkit", "-T", "coordinates=rel", "--json")
    done = omnidata("score", "screenspot", data, table, *how, code=1)
    assert as_json(done)["outcomes"]["truncated"] == 1


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.pkl", b"", "pickle files are not opened"),
        ("a.csv", b"", ".tsv, .json or .xlsx"),
        ("a.tsv", b"index\tquestion\n1\tx\n", "has no prediction"),
        ("a.tsv", b"index\tprediction\n1\tx\ty\n", "more cells than the head"),
        ("a.tsv", b"index\tprediction\n1\n", "fewer cells than the head"),
        ("a.tsv", b'index\tprediction\n1\t"cut off he', "unexpected end of data"),
        ("a.tsv", b"\xff\xfei", "cannot be read"),
        ("a.json", b"{}", "no list of rows"),
        ("a.json", b"[", "cannot be read"),
        ("a.xlsx", b"PK", "cannot be read"),
    ],
)
def test_what_is_no_table_of_answers_is_refused(
    tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    data = screenspot(tmp_path / "data", *SPOTS)
    (tmp_path / name).write_bytes(content)
    done = omnidata(
        "score", "screenspot", data, tmp_path / name, "--from", "vlmevalkit",
        "-T", "coordinates=rel", code=2,
    )  # fmt: skip
    assert says in " ".join(done.stderr.split())
