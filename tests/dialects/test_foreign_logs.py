"""Raw answers of agents, in the files that others publish, through their dialects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import here
from tests.loaders import desk
from tests.trees import write_lines

ROWS = [desk.spot(), desk.spot(img_filename="web_2.png", instruction="close it", bbox=[0, 0, 4, 4])]
HIT = (
    '<tool_call>\n{"name": "computer_use", "arguments": {"action": "left_click", '
    '"coordinate": [%s]}}\n</tool_call>'
)


def line(row: dict[str, Any], answer: object, **more: Any) -> dict[str, Any]:
    """A line of `predictions.jsonl` of clawgui-eval, by its README."""
    left, top, width, height = row["bbox"]
    return {
        "id": f"claw-{row['img_filename']}",
        "question": row["instruction"],
        "answer": [left, top, left + width, top + height],
        "image": f"image/{row['img_filename']}",
        "image_size": list(desk.SCREEN),
        "qwen3vl_infer": answer,
        **more,
    }


def score(data: Path, log: Path, code: int = 0) -> tuple[dict[str, Any], str]:
    command = ["score", "screenspot", str(data), str(log), "--from", "clawgui-eval"]
    done = here(*command, "--dialect", "qwen3", "--json", code=code)
    return (json.loads(done.stdout) if code < 2 else {}), done.stderr


def test_a_log_of_clawgui_eval_is_read_in_the_dialect_of_its_model(tmp_path: Path) -> None:
    data = desk.screenspot(tmp_path / "data", *ROWS)
    x, y = (999 * 12 / desk.SCREEN[0], 999 * 12 / desk.SCREEN[1])
    lines = [line(ROWS[1], HIT % "990, 990"), line(ROWS[0], HIT % f"{x}, {y}")]
    found, _ = score(data, write_lines(tmp_path / "predictions.jsonl", lines))
    assert found["overall"]["accuracy"] == 0.5
    assert found["dialect"]["read"] == found["dialect"]["read_strict"] == 2
    lines = [line(ROWS[0], "", error="out of memory"), line(ROWS[1], "I cannot see it")]
    found, _ = score(data, write_lines(tmp_path / "failed.jsonl", lines), code=1)
    assert found["outcomes"] == {"unparsed": 1, "api_error": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"question": "something else", "image": "x.png"}, "is no step of the data"),
        ({"uitars_infer": "x"}, "2 keys that end in _infer"),
    ],
)
def test_a_line_that_names_no_row_or_two_answers_is_refused(
    change: dict[str, Any], message: str, tmp_path: Path
) -> None:
    data = desk.screenspot(tmp_path / "data", *ROWS)
    log = write_lines(tmp_path / "predictions.jsonl", [line(ROWS[0], HIT % "1, 1", **change)])
    _, said = score(data, log, code=2)
    assert message in said
