"""`omnidata ablate --vary`: options of the task and of the model, one at a time or all together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnidata.analysis.report import report
from omnidata.analysis.runs import read_runs
from omnidata.tasks.omnigui.load import load
from tests.ablate import senses
from tests.cli.running import here, omnidata
from tests.conftest import Once
from tests.export.small import tree
from tests.goldens.worlds import build
from tests.plugin import data as odyssey
from tests.synth.making import make_steps, only


def settings_of(found: Any) -> dict[str, Any]:
    return {row["name"]: row for row in found["settings"]}


def info(out: Path, row: Any) -> Any:
    assert Path(row["run"]).parent == out / "runs"
    return json.loads((Path(row["run"]) / "run.json").read_text())


def test_options_of_task_and_model_are_varied_one_at_a_time_from_a_base(tmp_path: Path) -> None:
    data, out = tree(tmp_path / "data", episodes=3), tmp_path / "out"
    vary = ("--vary", "history=gold,none", "--vary", "seed=1,2", "--controls", "silence")
    some = ("-T", "modalities=IA", *vary)
    found = settings_of(senses.ablate(data, out, *some, model="baseline:random"))
    base = "history=gold, seed=1"
    assert list(found) == [base, "history=none", "seed=2", f"{base}, silence"]
    assert [row["compared_with"] for row in found.values()] == [None, base, base, base]
    said = [info(out, row) for row in found.values()]
    assert [each["options"]["history"] for each in said] == ["gold", "none", "gold", "gold"]
    assert [each["model_options"]["seed"] for each in said] == ["1", "1", "2", "1"]
    assert {each["options"]["modalities"] for each in said} == {"IA"}
    assert said[3]["control"]["name"] == "silence"
    change = found["history=none"]["differences"]["overall"]["metrics"]["EM"]
    assert change["difference"] == 0.0  # the same draws
    again = ("--model", "baseline:random", "--out", out, *some, "--format", "md")
    shown = here("ablate", "omnigui", data, *again).stdout
    assert "| history=none | " in shown


def test_a_grid_has_every_combination_and_works_for_a_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odyssey.install(tmp_path / "site", monkeypatch)
    data = odyssey.write(tmp_path / "data", episodes=3)
    vary = ("--grid", "--vary", "history=gold,none", "--vary", "history_screenshots=0,1")
    oracle = {"model": "baseline:oracle", "task": "odyssey"}
    found = settings_of(senses.ablate(data, tmp_path / "out", *vary, **oracle))
    assert list(found) == [
        f"history={history}, history_screenshots={shots}"
        for history in ("gold", "none")
        for shots in (0, 1)
    ]
    assert len({info(tmp_path / "out", row)["prompt_hash"] for row in found.values()}) == 4
    assert len({row["run"] for row in found.values()}) == 4


def test_a_model_that_needs_the_whole_sound_decides_at_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, once: Once
) -> None:
    taps = only("audio", max_steps=1, questions=("tap",))
    data = once("heard", lambda folder: make_steps(folder, taps, episodes=40))
    senses.install(tmp_path / "site", monkeypatch)
    known = senses.learn(load(data), "audio", tmp_path / "known.json")
    out = tmp_path / "out"
    asked = ("-M", f"known={known}", "--limit", "8", "--vary", "media_until=1.0,0.5")
    found = settings_of(senses.ablate(data, out, *asked, model="senses:audio"))
    exact = {name: row["results"]["overall"]["EM"] for name, row in found.items()}
    assert exact == {"media_until=1.0": 1.0, "media_until=0.5": 0.0}
    line = (Path(found["media_until=0.5"]["run"]) / "predictions.jsonl").read_text().splitlines()[0]
    shown = json.loads(line)["receipt"]["media"]
    assert {role: stamp.get("until") for role, stamp in shown.items()} == {
        "screenshot": None, "video": 0.5, "audio": 0.5
    }  # fmt: skip
    runs = read_runs([Path(row["run"]) for row in found.values()])
    (table,) = [each for each in report(runs).tables if each.name == "decisions"]
    whole = [cell.value for cell in table.rows[0].cells]
    assert whole == [8, 0.0, 1.0, 1.0, 0.0]  # it waits until it has heard all


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("--vary", "frames"), "two different values are needed"),
        (("--vary", "frames=4"), "two different values are needed"),
        (("--vary", "frames=4,4"), "two different values are needed"),
        (("--vary", "frames=4,4.0"), "two different values are needed"),
        (("--vary", "media_until=0.5,0.50"), "two different values are needed"),
        (("--vary", "history_window=own,1,01"), "two different values are needed"),
        (("--vary", "frames=4,8", "--vary", "frames=1,2"), "given twice"),
        (("--vary", "frames=4,8", "-M", "frames=4"), "given twice"),
        (("--vary", "history=gold,silver"), '"history" has no value "silver"'),
        (("--vary", "media_until=1,2"), '"media_until" has no value "2"'),
        (("--vary", "seed=1,x"), "the seed is not a number"),
        (("--vary", "language=own,zh"), "no row has an instruction in that language"),
        (("--vary", "history_window=1,2", "-T", "history=none"), "the option changes no prompt"),
        (("--vary", "history_window=all,1"), "a whole number from 0 to 999, or own"),
        (("--vary", "history_window=own,50", "--strict"), "because of --strict"),
        (("--vary", "history=gold,none", "--modalities", "IAV"), "--vary excludes --modalities"),
        (("--grid",), "--vary"),
    ],
)
def test_a_value_that_no_run_can_have_is_refused_before_any_run(
    tmp_path: Path, wrong: tuple[str, ...], said: str
) -> None:
    data, out = tree(tmp_path / "data"), tmp_path / "out"
    done = omnidata(
        "ablate", "omnigui", data, "--model", "baseline:random", "--out", out, *wrong, code=2
    )
    assert said in " ".join(done.stderr.split())
    assert not out.exists()


def test_rows_say_what_their_own_runs_show(tmp_path: Path) -> None:
    data, out = tree(tmp_path / "data"), tmp_path / "out"
    some = ("--model", "baseline:oracle", "--out", out, "--vary", "history_window=own,0")
    shown = ("--vary", "modalities=IAV,I")
    found = settings_of(json.loads(here("ablate", "omnigui", data, *some, *shown, "--json").stdout))
    base = "history_window=own, modalities=IAV"
    assert list(found) == [base, "history_window=0", "modalities=I"]
    assert [row["modalities"] for row in found.values()] == ["IAV", "IAV", "I"]
    options = [info(out, row)["options"] for row in found.values()]
    assert [each.get("history_window") for each in options] == [None, "0", None]
    lines = here("ablate", "omnigui", data, *some, *shown, "--format", "csv").stdout.splitlines()
    assert {tuple(line.split(",")[:3]) for line in lines if "modalities=I," in line} == {
        ("modalities=I", "text", "I")
    }


BOTH = ("--vary", "a11y_tokens=1500,3000")
TREE, SHOT = "observation=a11y", "observation=screenshot"


@pytest.mark.parametrize(
    ("vary", "runs", "said"),
    [
        (
            (*BOTH, "--vary", "observation=screenshot,a11y"),
            [SHOT, f"a11y_tokens=1500, {TREE}", f"a11y_tokens=3000, {TREE}"],
            "it is run as observation=screenshot",
        ),
        (
            (*BOTH, "--vary", "observation=a11y,screenshot"),
            [f"a11y_tokens=1500, {TREE}", "a11y_tokens=3000", SHOT],
            "it is run as observation=screenshot",
        ),
        (
            (*BOTH, "--vary", "observation=screenshot,a11y",
             "--vary", "history=none,gold", "--vary", "history_window=0,1"),
            [f"{SHOT}, history=none", f"a11y_tokens=1500, {TREE}", f"a11y_tokens=3000, {TREE}",
             "history=gold, history_window=0", "history=gold, history_window=1"],
            "it is run as observation=screenshot, history=none",
        ),
        (
            (*BOTH, "--vary", "observation=screenshot,a11y", "--grid"),
            [SHOT, f"a11y_tokens=1500, {TREE}", f"a11y_tokens=3000, {TREE}"],
            "it is run as observation=screenshot",
        ),
        (
            (*("--vary", "observation=som,a11y"), "--vary", "history=gold,predicted", "--grid"),
            [f"observation={seen}, history={past}" for seen, past in
             (("som", "gold"), ("a11y", "gold"), ("a11y", "predicted"))],
            "cannot be shown as history: another screen has other marks; it is left out",
        ),
    ],
)  # fmt: skip
def test_what_means_nothing_together_does_not_cost_the_other_runs(
    vary: tuple[str, ...], runs: list[str], said: str, tmp_path: Path
) -> None:
    data = build("androidcontrol", tmp_path / "data")
    some = ("--model", "baseline:majority", "--limit", "1", "--out", tmp_path / "out", "--json")
    done = here("ablate", "androidcontrol", data, *some, *vary)
    found = settings_of(json.loads(done.stdout))
    assert list(found) == runs
    assert {row["compared_with"] for row in found.values()} == {None, runs[0]}
    assert said in " ".join(done.stderr.split())
    told = [info(tmp_path / "out", row)["options"] for row in found.values()]
    kept = ("observation", "a11y_tokens", "history", "history_window")
    assert len({tuple(each.get(name) for name in kept) for each in told}) == len(runs)
