"""Files of corrections: what is read, and what is refused at the door."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnidata.actions import Action, Box, Point
from omnidata.errors import DataError, UsageError
from omnidata.run.errata import read_errata
from omnidata.types import Step
from tests.errata import made
from tests.tasks.scored import scored
from tests.tasks.test_contract import ROWS, Buttons
from tests.trees import write_lines

HEAD = '{"errata": "a", "version": "1", "benchmark": "omnigui"}'
DROP = '{"sample_id": "x", "kind": "drop", "reason": "blurred"}'


def line(value: Any, kind: str = "replace", **more: Any) -> str:
    return json.dumps({"sample_id": "x", "kind": kind, "value": value, "reason": "seen", **more})


def tap(**edges: Any) -> dict[str, Any]:
    return {"kind": "TAP", "start": [{**made.box(1, 2, 3, 4), **edges}]}


def test_actions_have_the_fields_of_the_columns(tmp_path: Path) -> None:
    several = {"kind": "TAP", "start": [made.box(1, 2, 3, 4), made.box(5, 6, 5, 6)]}
    keys = {"kind": "HOTKEY", "keys": ["ctrl", "s"], "then": [{"kind": "WAIT", "seconds": 2}]}
    path = tmp_path / "e.jsonl"
    text = "\n".join([HEAD, line(several), line(keys, "also_right"), "", line("Go", "instruction")])
    path.write_text(text, encoding="utf-8-sig")
    found = read_errata(path, "omnigui")
    assert (found.name, found.version, found.fingerprint) == ("a", "1", "")
    places = (Box(1, 2, 3, 4, "px"), Point(5, 6, "px"))
    then = (Action("wait", seconds=2),)
    assert [one.action for one in found.corrections] == [
        Action("tap", places),
        Action("hotkey", keys=("ctrl", "s"), then=then),
        None,
    ]
    assert found.corrections[2].instruction == "Go"
    assert found.corrections[2].where == f"{path}:5"


@pytest.mark.parametrize(
    ("lines", "number", "what"),
    [
        ([], 1, "missing required field `errata`"),
        ([HEAD.replace("omnigui", "aitw")], 1, "the errata correct aitw, and the task is omnigui"),
        ([HEAD.replace("version", "versoin")], 1, "unknown field `versoin`"),
        ([HEAD, "[1]"], 2, "Expected `object`, got `array`"),
        ([HEAD, '{"sample_id": "x"'], 2, "it is no JSON"),
        ([HEAD, "[" * 5000], 2, "more than 200 levels"),
        ([HEAD, line("é" * 2**20, "instruction")], 2, "more than 1,048,576 bytes"),
        ([HEAD, '{"sample_id": "x", "kind": "drop"}'], 2, "required field `reason`"),
        ([HEAD, line(None, "remove")], 2, "Invalid enum value 'remove'"),
        ([HEAD, line(None, "also_right")], 2, "the value of also_right is no action"),
        ([HEAD, line("BACK")], 2, "the value of replace is no action"),
        ([HEAD, line({"kind": "FLY"})], 2, "no action has the label 'FLY'"),
        ([HEAD, line({"kind": "BACK", "key": "x"})], 2, "an action has no field 'key'"),
        ([HEAD, line({"kind": "TAP", "start": [1]})], 2, "Expected `object`, got `int`"),
        ([HEAD, line(tap(left=float("nan")))], 2, "left is at most right"),
        ([HEAD, line(tap(left=9))], 2, "left is at most right"),
        ([HEAD, line(tap()).replace("4", "1e999")], 2, "an edge is a finite number"),
        ([HEAD, line({"kind": "WAIT", "then": {}})], 2, "`then` is a list of actions"),
        ([HEAD, line(7, "instruction")], 2, "the value of instruction is no text"),
        ([HEAD, line(" ", "instruction")], 2, "the value of instruction is no text"),
        ([HEAD, line("x", "drop")], 2, "drop has no value"),
        ([HEAD, DROP, DROP], 3, "two such lines"),
        ([HEAD, line(tap()), "", line(tap())], 4, "two such lines"),
        ([HEAD, line(tap()), line({"kind": "BACK"})], 3, "the step has two targets"),
        ([HEAD, DROP, line("Go", "instruction")], 3, "dropped, and has another correction"),
    ],
)
def test_a_hostile_line_is_refused_with_its_place(
    lines: list[str], number: int, what: str, tmp_path: Path
) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError, match=what) as refused:
        read_errata(path, "omnigui")
    assert refused.value.where == f"{path}:{number}"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be read") as refused:
        read_errata(tmp_path / "none.jsonl")
    assert refused.value.where == str(tmp_path / "none.jsonl")


class Retargeted(Buttons):
    """Buttons, whose right answers are in the row too."""

    def retarget(self, step: Step, action: Action) -> Step:
        if action.kind != "back":
            raise ValueError("only going back is known")
        return replace(step, action=action, source={**step.source, "do": "back"})


def test_a_plug_in_whose_answers_are_in_the_row_says_how_a_row_gets_another(tmp_path: Path) -> None:
    data = write_lines(tmp_path / "buttons.jsonl", ROWS)
    back = {"sample_id": "b/0", "kind": "replace", "value": {"kind": "BACK"}}
    errata = [read_errata(made.errata(tmp_path / "e.jsonl", "buttons", back))]

    def answered(task: Buttons) -> dict[str, Any]:
        return scored(task, task.load(data).steps, ['{"do": "back"}'] * 3, errata=errata)

    found = answered(Retargeted("buttons", {}))
    assert found["overall"] == {"Step": 1 / 3, "SR": 0}
    assert found["with_errata"]["overall"] == {"Step": 2 / 3, "SR": 1 / 2}
    with pytest.raises(UsageError, match="the profile near reads the row"):
        answered(Buttons("buttons", {}))
    errata = [read_errata(made.errata(tmp_path / "w.jsonl", "buttons", back | {"value": tap()}))]
    with pytest.raises(DataError, match="buttons cannot say the action TAP here: only going back"):
        answered(Retargeted("buttons", {}))
