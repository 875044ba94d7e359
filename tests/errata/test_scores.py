"""Numbers with errata, beside those without."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import as_json, omnidata
from tests.errata import made
from tests.loaders import omnibench as bench
from tests.loaders import phones
from tests.loaders import published_forms as forms
from tests.loaders.agentstudio import pictures
from tests.trees import write_lines

HERE, THERE = [[210, 786], [351, 850]], [[10, 20], [50, 60]]
TAP_HERE = {"kind": "TAP", "start": [made.box(210, 786, 351, 850)]}
TAP_THERE = {"kind": "TAP", "start": [made.box(10, 20, 50, 60)]}
CLICK, WAIT = phones.CLICK, {"action_type": "wait"}
OPEN, TYPE = (
    {"action_type": "open_app", "app_name": "Clock"},
    {"action_type": "input_text", "text": "a"},
)
PLACE, OTHER = [100, 100, 160, 140], [900, 900, 960, 940]


def names(task: str, data: Path) -> list[str]:
    return [step.sample_id for step in made.loaded(task, data).steps]


def omnigui(folder: Path) -> tuple[str, Path, Path, list[dict[str, Any]]]:
    good = made.taps(folder / "good", HERE, THERE, HERE, HERE)
    bad = made.taps(folder / "bad", HERE, HERE, THERE, HERE)
    return "omnigui", good, bad, [{}, TAP_THERE, TAP_HERE, {}]


def androidcontrol(folder: Path) -> tuple[str, Path, Path, list[dict[str, Any]]]:
    good = made.control(folder / "good", CLICK, WAIT, TYPE, OPEN)
    bad = made.control(folder / "bad", CLICK, CLICK, WAIT, CLICK)
    texts = {"kind": "INPUT", "text": "a"}, {"kind": "OPEN_APP", "app": "Clock"}
    return "androidcontrol", good, bad, [{}, {"kind": "WAIT"}, *texts]


def screenspot(folder: Path) -> tuple[str, Path, Path, list[dict[str, Any]]]:
    good = made.spots(folder / "good", PLACE, OTHER, PLACE)
    bad = made.spots(folder / "bad", PLACE, PLACE, OTHER)
    found = [{"kind": "TAP", "start": [made.box(*edges)]} for edges in (PLACE, OTHER, PLACE)]
    return "screenspot", good, bad, [{}, *found[1:]]


def omnibench(folder: Path) -> tuple[str, Path, Path, list[dict[str, Any]]]:
    done = bench.act(), bench.plain("keyboard_input", keys="^s")
    for name, actions in (("good", done), ("bad", done[::-1])):
        row = bench.trajectory(*actions)
        bench.written(folder / name, {"rows.jsonl": [row]})
        pictures(folder / name, row["observations"])
    tap = {"kind": "TAP", "start": [made.box(10, 20, 30, 40)]}
    return "omnibench", folder / "good", folder / "bad", [tap, {"kind": "INPUT", "text": "^s"}]


def cagui(folder: Path) -> tuple[str, Path, Path, list[dict[str, Any]]]:
    good = forms.grounding(folder / "good", [], [forms.label()])
    moved = forms.label(abs_position="<50, 50, 60, 70>", text="other")
    bad = forms.grounding(folder / "bad", [], [moved])
    tap = {"kind": "TAP", "start": [made.box(9, 20, 27, 40)]}
    return "cagui-grounding", good, bad, [tap, {"kind": "INPUT", "text": forms.label()["text"]}]


@pytest.mark.parametrize("kind", ["replace", "also_right"])
@pytest.mark.parametrize("world", [omnigui, androidcontrol, screenspot, omnibench, cagui])
def test_errata_of_broken_targets_restore_the_oracle_by_every_profile(
    world: Any, kind: str, tmp_path: Path
) -> None:
    task, good, bad, values = world(tmp_path)
    answers = made.oracle(task, good, tmp_path / "oracle.jsonl")
    lines = [
        {"sample_id": name, "kind": "replace" if "app" in value else kind, "value": value}
        for name, value in zip(names(task, bad), values, strict=True)
        if value
    ]
    file = made.errata(tmp_path / "restored.jsonl", task, *lines)
    every = ("--profile", "all", "--json")
    wanted = as_json(omnidata("score", task, good, answers, *every))
    without = as_json(omnidata("score", task, bad, answers, *every))
    found = as_json(omnidata("score", task, bad, answers, *every, "--errata", file))
    for name, results in found.items():
        (effect,), corrected = results.pop("errata"), results.pop("with_errata")
        assert results == without[name], "the usual numbers do not change"
        assert corrected["overall"] == wanted[name]["overall"]
        assert results["overall"] != corrected["overall"]
        assert effect["steps"] == len(lines)
        assert effect["now_wrong"] == 0 < effect["now_right"] <= effect["verdicts_changed"]


def test_empty_errata_change_nothing(tmp_path: Path) -> None:
    data = made.taps(tmp_path / "data", HERE, THERE)
    answers = made.oracle("omnigui", data, tmp_path / "a.jsonl")
    file = made.errata(tmp_path / "empty.jsonl", "omnigui")
    plain, beside = tmp_path / "plain", tmp_path / "beside"
    omnidata("score", "omnigui", data, answers, "--out", plain)
    shown = omnidata("score", "omnigui", data, answers, "--out", beside, "--errata", file)
    assert (plain / "scores.jsonl").read_bytes() == (beside / "scores.jsonl").read_bytes()
    results = json.loads((beside / "results.json").read_text())
    (effect,), corrected = results.pop("errata"), results.pop("with_errata")
    assert results == json.loads((plain / "results.json").read_text())
    assert corrected == {key: results[key] for key in corrected}
    assert (effect["name"], effect["version"], effect["steps"]) == ("empty", "1", 0)
    assert "without errata" in shown.stdout and "with errata" in shown.stdout


def test_the_effects_of_several_add_up_in_their_order(tmp_path: Path) -> None:
    data = made.taps(tmp_path / "data", HERE, HERE, HERE, HERE)
    first, second, third, fourth = names("omnigui", data)
    places = zip(names("omnigui", data), ([390, 511], [40, 25], [390, 511], [9, 9]), strict=True)
    said = [
        {"sample_id": name, "output": json.dumps({"action_type": 0, "coordinate": place})}
        for name, place in places
    ]
    answers = write_lines(tmp_path / "a.jsonl", said)
    one = made.errata(
        tmp_path / "one.jsonl",
        "omnigui",
        {"sample_id": first, "kind": "replace", "value": TAP_THERE},
        {"sample_id": second, "kind": "also_right", "value": TAP_THERE},
        {"sample_id": "another", "kind": "drop"},
    )
    two = made.errata(
        tmp_path / "two.jsonl",
        "omnigui",
        {"sample_id": first, "kind": "also_right", "value": TAP_HERE},
        {"sample_id": third, "kind": "instruction", "value": "Tap the other one"},
        {"sample_id": fourth, "kind": "drop"},
    )

    def score(*files: Path) -> dict[str, Any]:
        given = [part for file in files for part in ("--errata", file)]
        found: dict[str, Any] = as_json(
            omnidata("score", "omnigui", data, answers, "--json", *given)
        )
        return found

    def effects(found: Mapping[str, Any]) -> list[list[int]]:
        keys = ("steps", "verdicts_changed", "now_right", "now_wrong", "dropped")
        return [[each[key] for key in keys] for each in found["errata"]]

    found = score(one, two)
    assert effects(found) == [[2, 2, 1, 1, 0], [3, 1, 1, 0, 1]]
    assert [each.get("unknown") for each in found["errata"]] == [1, None]
    assert found["overall"]["EM"] == 2 / 4, "the first and the third"
    assert found["with_errata"]["overall"]["EM"] == 3 / 3, "two more, one less, one left out"
    assert found["with_errata"]["counts"]["without_usable_target"] == 1
    assert (found["overall"]["SR"], found["with_errata"]["overall"]["SR"]) == (0, 1)
    assert effects(score(two, one)) == [[3, 0, 0, 0, 1], [2, 2, 1, 1, 0]]
    more = {"sample_id": fourth, "kind": "also_right", "value": TAP_THERE}
    late = made.errata(tmp_path / "late.jsonl", "omnigui", more)
    assert effects(score(two, late))[1] == [1, 0, 0, 0, 0], "it was dropped before"
    more["kind"] = "replace"
    back = made.errata(tmp_path / "back.jsonl", "omnigui", more)
    restored = score(two, back)
    assert effects(restored)[1] == [1, 1, 0, 0, 0]
    assert restored["with_errata"]["counts"]["without_usable_target"] == 0


def test_a_profile_that_cannot_take_a_correction_is_named(tmp_path: Path) -> None:
    data = made.taps(tmp_path / "data", HERE, HERE)
    answers = made.oracle("omnigui", data, tmp_path / "a.jsonl")
    value = {"kind": "DOUBLE_TAP", "start": TAP_HERE["start"]}
    line = {"sample_id": names("omnigui", data)[0], "kind": "replace", "value": value}
    file = made.errata(tmp_path / "e.jsonl", "omnigui", line)
    score = ("score", "omnigui", data, answers, "--errata", file)
    refused = omnidata(*score, "--profile", "omnigui-release", code=2)
    assert "the profile omnigui-release reads the row" in refused.stderr
    assert f"{file}:2: TED/E0/0" in refused.stderr
    assert "0 now right, 1 now wrong" in omnidata(*score).stderr


def test_evaluate_shows_both_numbers_and_refuses_before_it_asks(tmp_path: Path) -> None:
    data, run = made.taps(tmp_path / "data", HERE, THERE), tmp_path / "run"
    first = names("omnigui", data)[0]
    line = {"sample_id": first, "kind": "replace", "value": TAP_THERE}
    file = made.errata(tmp_path / "e.jsonl", "omnigui", line, fingerprint="0" * 64)
    evaluate = ("evaluate", "omnigui", data, "--model", "baseline:oracle", "--out")
    shown = omnidata(*evaluate, run, "--errata", file)
    assert "0 now right, 1 now wrong" in shown.stderr
    assert "made for other data: fingerprint 0000000000000000" in shown.stderr
    results = json.loads((run / "results.json").read_text())
    assert (results["overall"]["EM"], results["with_errata"]["overall"]["EM"]) == (1, 0.5)
    line["value"] = {"kind": "HOTKEY", "keys": ["ctrl", "s"]}
    never = made.errata(tmp_path / "never.jsonl", "omnigui", line)
    refused = omnidata(*evaluate, tmp_path / "none", "--errata", never, code=2)
    assert "omnigui cannot say the action HOTKEY" in refused.stderr
    assert not (tmp_path / "none").exists()
