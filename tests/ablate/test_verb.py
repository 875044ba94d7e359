"""`omnidata ablate`, with a model that hears and one that is deaf."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from omnidata.analysis.ablation import settings
from omnidata.errors import UsageError
from omnidata.loaders.instructions import voice_file
from omnidata.tasks import get_task
from omnidata.tasks.omnigui.load import load
from omnidata.types import Modality
from tests import plugs
from tests.ablate import senses
from tests.cli.running import here, omnidata
from tests.conftest import Once
from tests.data.tiny import wav
from tests.export.small import tree
from tests.synth.making import make_steps, only
from tests.trees import read_lines

GRID = ["text-IAV", "text-IV", "text-IA", "text-I"]
WRONG = ["other-sound", "silence", "other-clip", "frozen-clip"]
EPISODES = 40


@pytest.fixture(scope="module")
def heard(once: Once) -> Path:
    """Episodes whose answers are only in the sound; groups of four twins."""
    taps = only("audio", max_steps=1, questions=("tap",))
    return once("heard", lambda folder: make_steps(folder, taps, episodes=EPISODES))


def test_a_model_that_hears_is_misled_by_other_sounds_and_by_no_clip(
    heard: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    senses.install(tmp_path / "site", monkeypatch)
    source = load(heard)
    known = senses.learn(source, "audio", tmp_path / "known.json")
    out = tmp_path / "out"
    command = ("omnigui", heard, "--model", "senses:audio", "-M", f"known={known}", "--out", out)
    found = json.loads(here("ablate", *command, "--json").stdout)
    rows = {row["name"]: row for row in found["settings"]}
    assert list(rows) == [*GRID, *(f"text-IAV-{name}" for name in WRONG)]
    exact = {name: row["results"]["overall"]["EM"] for name, row in rows.items()}
    deaf = ("text-IA", "text-IAV", "text-IAV-other-clip", "text-IAV-frozen-clip")
    assert exact == {name: float(name in deaf) for name in rows}
    change = rows["text-IAV-other-sound"]["differences"]["overall"]["metrics"]["EM"]
    assert (change["difference"], change["episodes"]) == (-1.0, EPISODES // 4)
    assert change["ci95"] == [-1.0, -1.0] and change["q"] < 0.05
    assert set(rows["text-I"]["differences"]) == {"critical", "overall"}
    assert rows["text-IAV"]["compared_with"] is None and not rows["text-IAV"]["differences"]
    assert found == json.loads((out / "ablation.json").read_text())
    steps = {step.sample_id: step for step in source.steps}
    for line in read_lines(out / "controls" / "other-sound" / "given.jsonl"):
        own, other = steps[line["sample_id"]], steps[line["given"]]
        assert own.source["twins"] == other.source["twins"]
        assert own.action != other.action
    run = json.loads((out / "runs" / "text-IAV-silence" / "run.json").read_text())
    assert run["control"]["name"] == "silence"
    assert (run["options"]["modalities"], run["steps"]) == ("IAV", EPISODES)
    before = {path: path.read_bytes() for path in out.rglob("predictions.jsonl")}
    known.write_text("{}")  # a model that is asked again would say something else
    again = here("ablate", *command, "--format", "md")
    assert {path: path.read_bytes() for path in out.rglob("predictions.jsonl")} == before
    (title,) = [line for line in again.stdout.splitlines() if "EM" in line]
    assert title == "### EM (%)"
    assert "| text-IAV-other-sound | " in again.stdout
    assert "-100.0\\* (-100.0 to -100.0)" in again.stdout


def test_the_command_prints_all_steps_then_the_papers_table_and_keeps_every_run(
    heard: Path, tmp_path: Path
) -> None:
    some = ("--limit", "20", "--modalities", "IAV,I", "--controls", "other-sound")
    out = tmp_path / "out"
    done = omnidata("ablate", "omnigui", heard, "--model", "baseline:random", "--out", out, *some)
    assert "Overall" in done.stdout and "change" in done.stdout
    assert "AV-Critical" not in done.stdout and "breakdown: --by dependency" in done.stderr
    names = [line.split()[0] for line in done.stdout.splitlines() if line.strip()[:5] == "text-"]
    left_out = done.stderr.count("left out, 0 in all runs")
    assert names == ["text-IAV", "text-I", "text-IAV-other-sound"] * (4 - left_out)
    assert "Benjamini-Hochberg" in " ".join(done.stderr.split())
    model = ("--model", "baseline:random", "--out", out)
    again = omnidata("ablate", "omnigui", heard, *model, *some, "--by", "dependency")
    assert "AV-Critical" in again.stdout and "Overall" in again.stdout
    refused = omnidata("ablate", "omnigui", heard, *model, *some, "--by", "colour", code=2)
    assert "--by colour: the results of the task have no such tag" in refused.stderr
    runs = [out / "runs" / name for name in ("text-IAV", "text-IAV-other-sound")]
    compared = json.loads(omnidata("compare", *runs, "--json").stdout)
    assert [each["name"] for each in compared["settings"]] == [
        "control.name", "control.seed", "control.steps"
    ]  # fmt: skip
    assert compared["b"]["model"] == "baseline:random [other-sound]"


def test_spoken_instructions_are_compared_with_written_ones(tmp_path: Path) -> None:
    data = tree(tmp_path / "data", episodes=2)
    voice = tmp_path / "voice"
    voice.mkdir()
    for step in load(data).steps:
        (voice / voice_file(step.instruction)).write_bytes(wav(0))
    given = ("--model", "baseline:center", "-T", f"voice={voice}", "--controls", "none")
    how = ("--modalities", "IAV,I", "--format", "csv")
    done = here("ablate", "omnigui", data, "--out", tmp_path / "out", *given, *how)
    lines = list(csv.DictReader(io.StringIO(done.stdout)))
    against = {line["setting"]: line["compared_with"] for line in lines}
    assert against == {
        "text-IAV": "",
        "text-I": "text-IAV",
        "voice-IAV": "text-IAV",
        "voice-I": "voice-IAV",
    }
    spoken = {
        name: json.loads((tmp_path / "out" / "runs" / name / "run.json").read_text())["options"]
        for name in against
    }
    assert [spoken[name]["voice"] for name in against] == ["", "", str(voice), str(voice)]
    assert {line["level"] for line in lines} == {"overall"}  # the data have no levels


def test_a_run_that_fails_stops_no_other_and_exits_with_1(tmp_path: Path) -> None:
    data, out = tree(tmp_path / "data", episodes=1), tmp_path / "out"
    broken = out / "runs" / "text-I"
    broken.mkdir(parents=True)
    (broken / "run.json").write_text("of somebody else", encoding="utf-8")
    arguments = ("--modalities", "I,IV", "--controls", "none")
    done = here(
        "ablate", "omnigui", data, "--model", "baseline:center", "--out", out, *arguments, code=1
    )
    assert "text-I: failed" in done.stderr
    rows = {row["name"]: row for row in json.loads((out / "ablation.json").read_text())["settings"]}
    assert rows["text-I"]["results"] is None and rows["text-I"]["error"]
    assert rows["text-IV"]["results"]["counts"]["steps"] == 4


def test_a_control_that_alters_nothing_is_left_out_with_its_reason(tmp_path: Path) -> None:
    """An episode alone has no other's sound to get."""
    data, out = tree(tmp_path / "data", episodes=1), tmp_path / "out"
    arguments = ("--modalities", "IAV", "--controls", "other-sound,silence")
    done = here("ablate", "omnigui", data, "--model", "baseline:center", "--out", out, *arguments)
    why = "other-sound: no episode can be altered: no other episode has audio"
    assert f"[control-impossible] {why}" in done.stderr
    rows = json.loads((out / "ablation.json").read_text())["settings"]
    assert [row["name"] for row in rows] == ["text-IAV", "text-IAV-silence"]


def test_steps_that_a_control_leaves_out_are_left_out_of_its_differences(tmp_path: Path) -> None:
    data = tree(tmp_path / "data", episodes=3)
    (data / "App" / "media" / "E00" / "2.wav").write_bytes(b"no sound")
    excluded = tmp_path / "exclude.txt"
    excluded.write_text("App/E02/3\n")
    arguments = ("--modalities", "IAV", "--controls", "silence", "--exclude", excluded)
    center = {"model": "baseline:center"}
    full, silent = senses.ablate(data, tmp_path / "out", *arguments, **center)["settings"]
    first = senses.ablate(data, tmp_path / "few", "--limit", "6", *arguments, **center)
    assert [row["results"]["counts"]["steps"] for row in first["settings"]] == [6, 2]
    assert full["results"]["counts"]["steps"] == 11
    assert silent["results"]["counts"]["steps"] == 7
    assert silent["differences"]["overall"]["steps"] == 7
    assert silent["warnings"] == ["4 steps that only A has are left out"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("IAV,XY", None, None, {}), 'there is no "XY"'),
        (("IAV,I,IAV", None, None, {}), '"IAV" is given twice'),
        (("IAV", "voice", None, {}), "no folder of spoken instructions"),
        (("IAV", "sung", None, {}), 'there is no "sung"'),
        (("I,IAV", None, "silence", {}), "alters a medium that the full setting I does not show"),
        (("IAV", None, "none,silence", {}), "none excludes other controls"),
        (("IAV", None, None, {"modalities": "I"}), "sets the modalities itself"),
    ],
)
def test_what_cannot_be_run_is_refused_before_anything_is(given: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        settings(get_task("omnigui"), *given)


@pytest.mark.parametrize("model", ["baseline:centre", "openai:m", "nobody:m"])
def test_a_model_that_no_run_could_ask_is_refused_before_any_control_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    data, out = tree(tmp_path / "data", episodes=2), tmp_path / "out"
    done = omnidata("ablate", "omnigui", data, "--model", model, "--out", out, code=2)
    assert f"--model {model}" in done.stderr
    assert not out.exists()


def test_unless_told_otherwise_the_controls_are_those_of_what_is_shown() -> None:
    names = [each.name for each in settings(get_task("omnigui"), "IA,I", None, None, {})]
    assert names == ["text-IA", "text-I", "text-IA-other-sound", "text-IA-silence"]
    assert [each.name for each in settings(get_task("omnigui"), "I", None, None, {})] == ["text-I"]


@pytest.mark.parametrize(
    ("accepts", "names"),
    [
        ({"image"}, ["text-I", "text-I-other-picture"]),
        ({"image", "video"}, ["text-IV", "text-I", "text-IV-other-clip", "text-IV-frozen-clip"]),
        ({"image", "audio"}, ["text-IA", "text-I", "text-IA-other-sound", "text-IA-silence"]),
        ({"image", "audio", "video"}, [*GRID, *(f"text-IAV-{name}" for name in WRONG)]),
        (None, [*GRID, *(f"text-IAV-{name}" for name in WRONG)]),
    ],
)
def test_the_grid_begins_with_what_the_model_accepts(accepts: Any, names: list[str]) -> None:
    task = get_task("omnigui")
    kinds: set[Modality] = {"image", "audio", "video"}
    found = settings(task, None, None, None, {"voice": "V"}, kinds=kinds, accepts=accepts)
    assert [each.name for each in found if each.instruction == "text"] == names
    heard = accepts is None or "audio" in accepts
    assert any(each.instruction == "voice" for each in found) == heard
    named = settings(task, "IAV,I", None, "none", {}, kinds=kinds, accepts=accepts)
    assert [each.name for each in named] == ["text-IAV", "text-I"], "what is named is run"


BLIND = '''
"""`still:m` looks at pictures alone."""

from omnidata.adapters import Model
from omnidata.types import Completion


class Still(Model):
    accepts = frozenset({"image"})

    def __init__(self, name, options):
        self.name = f"still:{name}"

    async def generate(self, batch, params):
        return [Completion(text=\'{"action_type": -1}\') for item in batch]
'''


def test_no_run_fails_with_a_model_for_pictures_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = plugs.on_path(tmp_path / "site", "still_plugin", monkeypatch)
    (site / "still_plugin.py").write_text(BLIND, encoding="utf-8")
    plugs.install(site, "still", "omnidata.adapters", "still = still_plugin:Still")
    data, out = tree(tmp_path / "data", episodes=2), tmp_path / "out"
    done = here("ablate", "omnigui", data, "--model", "still:m", "--out", out, "--json")
    rows = json.loads(done.stdout)["settings"]
    assert [row["name"] for row in rows] == ["text-I", "text-I-other-picture"]
    assert all(row["results"] and not row["error"] for row in rows)
    assert "still:m accepts image: the full setting is I" in done.stderr


def test_data_without_media_are_refused() -> None:
    with pytest.raises(UsageError, match="the steps of screenspot have no media"):
        settings(get_task("screenspot"), None, None, None, {})


@pytest.mark.parametrize(
    ("kinds", "names"),
    [
        ({"image"}, ["text-I", "text-none", "text-I-other-picture"]),
        ({"audio"}, ["text-A", "text-none", "text-A-other-sound", "text-A-silence"]),
    ],
)
def test_the_grid_comes_from_the_media_that_the_data_have(kinds: Any, names: list[str]) -> None:
    found = settings(get_task("screenspot"), None, None, None, {}, kinds=kinds)
    assert [each.name for each in found] == names
