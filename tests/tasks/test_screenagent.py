"""A format that a user brings: ScreenAgent's sessions, with what docs/add_dataset.md says alone."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from omnidata.data.validate import validate
from omnidata.tasks import get_task
from tests import plugs
from tests.cli.running import as_json, here
from tests.trees import NO_SHARED, SHARED

REAL = SHARED / "data" / "screenagent_sessions"
pytestmark = pytest.mark.skipif(not REAL.is_dir(), reason=NO_SHARED)

PLUGIN = """
import json
from collections import Counter, defaultdict

from omnidata.actions import Action, Point
from omnidata.jsontext import objects
from omnidata.tasks.benchmark import Benchmark, Card, ParsedAnswer, Rule, UnreadError
from omnidata.tasks.totals import RowTotals
from omnidata.types import MediaRef, Step, Target

KINDS = {"click": "TAP", "double_click": "DOUBLE_TAP", "text": "INPUT"}


def key(action, screen):
    kind = action.get("mouse_action_type") or action.get("keyboard_action_type")
    place = action.get("mouse_position", {})
    near = [round(5 * place.get(side, 0) / n) for side, n in zip(("width", "height"), screen)]
    return (action["action_type"], kind, near, *map(action.get, ("mouse_button", "keyboard_text")))


class AllRight(Rule):
    name = "screenagent-all-right"
    totals = RowTotals(by={"session": (), "turn": ("positive", "negative")})

    def judge(self, step, parsed):
        if step.tags["turn"] == "negative":
            return (None,)
        said = parsed.value if parsed else []
        want, got = ([key(a, step.screen) for a in one] for one in (step.source["actions"], said))
        return (want == got,)


class ScreenAgent(Benchmark):
    card = Card(title="ScreenAgent", tags=("session", "turn"), roles={"screenshot": "image"})
    question = "Task: {instruction}. Answer with a JSON list of actions."
    rules = (AllRight(),)

    def steps(self, data, note):
        turns = [(path, "negative" if "_neg" in path.stem else "positive")
                 for path in sorted(data.glob("*/*.json"))]
        lengths = Counter((path.parent, turn) for path, turn in turns)
        past = defaultdict(list)
        for path, turn in turns:
            row, home = json.loads(path.read_text("utf-8")), path.parent
            screen, before = (row["video_width"], row["video_height"]), past[home, turn]
            episode = home.name + ("-negative" if turn == "negative" else "")
            shot = f"{home.name}/images/{row['saved_image_name']}"
            yield Step(
                f"{episode}/{len(before)}", episode, len(before), lengths[home, turn],
                row["task_prompt_en"], screen, {"screenshot": MediaRef("image", data, shot)},
                tuple(action for action, _ in before), tuple(size for _, size in before),
                self.nearest(row["actions"]), {"session": home.name, "turn": turn}, row,
            )
            before.append((self.nearest(row["actions"]), screen))

    def nearest(self, actions):
        for one in actions:
            label = KINDS.get(one.get("mouse_action_type") or one.get("keyboard_action_type"))
            if label is not None:
                at = one.get("mouse_position")
                where = (Point(at["width"], at["height"], "px"),) if at else ()
                text, words = one.get("keyboard_text"), json.dumps(actions)
                return Action.of(label, where, text=text, words=words)

    def parse(self, text, step, receipt):
        if not (said := [one for one in objects(text) if "action_type" in one]):
            raise UnreadError("no action")
        return ParsedAnswer(said, {"actions": said})

    def target(self, step, *, space=None, size=None):
        text = json.dumps(step.source["actions"])
        return None if step.tags["turn"] == "negative" else Target(text, text)
"""


@pytest.fixture(autouse=True)
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = plugs.on_path(tmp_path / "site", "screenagent_plugin", monkeypatch)
    (site / "screenagent_plugin.py").write_text(PLUGIN, encoding="utf-8")
    points = "screenagent = screenagent_plugin:ScreenAgent"
    plugs.install(site, "omnidata-screenagent", "omnidata.tasks", points)


def test_a_users_format_takes_fewer_than_60_lines() -> None:
    assert sum(bool(line.strip()) for line in PLUGIN.splitlines()) < 60


def test_real_sessions_are_shown_checked_asked_and_scored(tmp_path: Path) -> None:
    run = tmp_path / "run"
    info = as_json(here("info", "screenagent", REAL, "--json"))
    assert (info["steps"], info["episodes"], info["findings"]) == (23, 6, [])
    turns = {turn: group["steps"] for turn, group in info["counts"]["tags"]["turn"].items()}
    assert turns == {"positive": 21, "negative": 2}
    assert validate(get_task("screenagent").load(REAL), workers=0).errors == 0
    here("evaluate", "screenagent", REAL, "--model", "baseline:oracle", "--out", run)
    found = as_json(here("score", "screenagent", REAL, run, "--json"))
    assert found["overall"] == {"accuracy": 1.0}
    assert found["counts"] == {"steps": 21, "without_usable_target": 2}


def test_one_action_of_several_is_not_all_of_them(tmp_path: Path) -> None:
    data, answers = tmp_path / "data", tmp_path / "answers.jsonl"
    shutil.copytree(REAL / "session47", data / "session47")
    click = {"action_type": "MouseAction", "mouse_action_type": "click", "mouse_button": "left",
             "mouse_position": {"width": 1, "height": 1}}  # fmt: skip
    row = json.loads(next((REAL / "session47").glob("*17-15-33*.json")).read_text("utf-8"))
    assert [one["action_type"] for one in row["actions"]] == ["MouseAction", "KeyboardAction"]
    for actions, right in ((row["actions"], 1), (row["actions"][:1], 0), ([click], 0)):
        line = {"sample_id": "session47/1", "output": json.dumps(actions)}
        answers.write_text(json.dumps(line) + "\n", encoding="utf-8")
        found = as_json(here("score", "screenagent", data, answers, "--json", code=1))
        assert found["by"]["session"]["session47"]["accuracy"] * 3 == pytest.approx(right)
