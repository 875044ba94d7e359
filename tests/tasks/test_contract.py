"""A benchmark of episodes by the contract of `omnidata.tasks.benchmark`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from omnidata.actions import Action, Point, Screen, Space, centre
from omnidata.dialects import CannotSayError, UnreadError
from omnidata.errors import UsageError
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.benchmark import (
    Benchmark,
    Card,
    Note,
    ParsedAnswer,
    Receipt,
    Rule,
    Speech,
    Values,
)
from omnidata.tasks.coordinates import resizing
from omnidata.tasks.totals import Column, EpisodeTotals
from omnidata.types import Completion, Step, Target, VerdictColumns
from tests import plugs
from tests.run.scripted import Scripted
from tests.tasks.scored import scored
from tests.trees import read_lines, write_lines

SCREEN = (200, 400)
ROWS: list[dict[str, Any]] = [
    {"episode": "a", "do": "tap", "at": [20, 40]},
    {"episode": "a", "do": "back"},
    {"episode": "b", "do": "tap", "at": [150, 300]},
]


def action_of(row: Mapping[str, Any]) -> Action:
    if row["do"] == "back":
        return Action("back")
    x, y = row["at"]
    return Action("tap", (Point(x, y, "px"),))


class Near(Rule[Action]):
    """Right by the kind, and a tap within 20 pixels."""

    name = "near"
    totals = EpisodeTotals(
        [Column("Step", metric="EM", meaning="right steps"), Column("SR")],
        values=("exact_match", "type_match"),
        by={"app": ()},
    )

    def judge(self, step: Step, parsed: ParsedAnswer[Action] | None) -> Values:
        wanted = step.action
        if wanted is None:
            return (None, None)
        if parsed is None or parsed.value.kind != wanted.kind:
            return (False, False)
        places = zip(map(centre, parsed.value.start), map(centre, wanted.start), strict=True)
        return (all(abs(a.x - b.x) < 20 and abs(a.y - b.y) < 20 for a, b in places), True)


class TapOrBack(Speech):
    asked = "action"

    def adopt(self, actions: Sequence[Action], step: Step, receipt: Receipt) -> ParsedAnswer[Any]:
        (action,) = actions
        if action.kind not in ("tap", "back"):
            raise CannotSayError(action.label)
        return parsed(action, step, receipt)


def parsed(action: Action, step: Step, receipt: Receipt) -> ParsedAnswer[Action]:
    points = [centre(region) for region in action.start]
    if sent := resizing(receipt, step.screen, where=step.sample_id):
        points = [Point(*sent.to_screen((point.x, point.y)), "px") for point in points]
    on_screen = Action(action.kind, tuple(points))
    return ParsedAnswer(on_screen, {"do": action.kind}, written=(action,))


class Buttons(Benchmark):
    card = Card(title="Buttons", holds="tap or go back", platform="mobile", tags=("app",))
    allowed: Mapping[str, Sequence[str]] = {"history": ("gold", "none", "predicted")}
    question = "Goal: {instruction}\nDone:\n{history}\nNext?"
    rules = (Near(),)
    speech = TapOrBack()

    def steps(self, data: Path, note: Note) -> Iterable[Step | None]:
        rows = read_lines(data)
        for name in dict.fromkeys(row["episode"] for row in rows):
            own = [row for row in rows if row["episode"] == name]
            actions = tuple(map(action_of, own))
            for number, row in enumerate(own):
                yield Step(
                    f"{name}/{number}", name, number, len(own), f"do {name}", SCREEN, {},
                    actions[:number], (SCREEN,) * number, actions[number], {"app": "Desk"}, row,
                )  # fmt: skip

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[Action]:
        try:
            return parsed(action_of(json.loads(text)), step, receipt)
        except (ValueError, KeyError, TypeError) as error:
            raise UnreadError(f"no action: {error!r:.40}") from None

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        text = json.dumps({key: step.source[key] for key in ("do", "at") if key in step.source})
        return Target(text, text)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "buttons.jsonl", ROWS)


def buttons(**options: str) -> Asking:
    return Asking(Buttons("buttons", options))


def test_verdicts_add_up_by_the_columns_that_a_rule_declares(rows: Path, tmp_path: Path) -> None:
    task = buttons()
    answers = iter(['{"do": "tap", "at": [25, 40]}', '{"do": "back"}', "I give up"])
    model = Scripted(lambda *_: Completion(text=next(answers)))
    found = evaluate(task, task.load(rows), model, tmp_path / "run")
    assert found["overall"] == pytest.approx({"Step": 2 / 3, "SR": 1 / 2})
    unread = read_lines(tmp_path / "run" / "scores.jsonl")[2]
    assert unread["outcome"] == "unparsed" and unread["reason"].startswith("no action")
    assert unread["cause"] == "format"


def test_a_text_in_constants_is_a_baseline(rows: Path, tmp_path: Path) -> None:
    made = Buttons("buttons", {})
    made.constants = {"always-back": '{"do": "back"}'}
    found = evaluate(made, made.load(rows), "baseline:always-back", tmp_path / "run")
    assert found["overall"]["Step"] == pytest.approx(1 / 3)


def test_the_mean_of_the_value_that_decides_is_the_share_of_right_steps(rows: Path) -> None:
    totals = EpisodeTotals([Column("SR"), Column("Step", "exact_match")], values=("exact_match",))
    assert totals.step_metric == ("Step", "exact_match")
    steps = buttons().load(rows).steps
    right, whole = np.array([1.0, 0.0, 1.0]), np.ones(3, dtype=np.bool_)
    verdicts = VerdictColumns(np.zeros(3, dtype=np.uint8), {"exact_match": right}, whole)
    assert totals.measures(steps, verdicts, verdicts).flips == ("Step", "exact_match")


def test_evaluate_takes_the_benchmark_itself_but_no_name(rows: Path, tmp_path: Path) -> None:
    made = Buttons("buttons", {})
    found = evaluate(made, made.load(rows), "baseline:oracle", tmp_path / "run")
    assert found["overall"] == {"Step": 1.0, "SR": 1.0}
    with pytest.raises(UsageError, match="'buttons' is no task"):
        evaluate(cast("Any", "buttons"), made.load(rows), "baseline:oracle", tmp_path / "run")


@pytest.mark.parametrize("name", ["buttons", "omnigui"])
def test_other_processes_do_not_judge_for_a_benchmark_that_its_name_does_not_lead_to(
    rows: Path, name: str
) -> None:
    task = Asking(Buttons(name, {}))
    steps = task.load(rows).steps
    found = scored(task, steps, ['{"do": "back"}'] * 3, workers=2)
    assert found["overall"]["Step"] == pytest.approx(1 / 3)


def test_the_prompt_tells_the_history_that_the_option_names(rows: Path) -> None:
    step = buttons().load(rows).steps[1]
    told = {
        wanted: buttons(history=wanted).conversation(step, [Action("back")])[-1].parts[-1].text
        for wanted in ("gold", "none", "predicted")
    }
    assert "Step 0: TAP at [100, 100]" in told["gold"]
    assert "Done:\nnothing" in told["none"]
    assert "Step 0: BACK" in told["predicted"]


def test_pixels_of_a_resized_picture_are_judged_and_remembered_on_the_screen(rows: Path) -> None:
    task = buttons(history="predicted")
    step = task.load(rows).steps[0]
    line = {"role": "screenshot", "width": 100, "height": 200, "original": [200, 400]}
    text, receipt = '{"do": "tap", "at": [10, 20]}', {"parts": [line]}
    assert task.verdict(step, text, receipt).values == (True, True)
    far = '{"do": "tap", "at": [75, 150]}'
    assert task.verdict(step, far).values == (False, True)
    assert task.history_action(step, far, receipt) == Action("tap", (Point(150, 300, "px"),))
    assert task.history_action(step, "nothing", receipt) is None


def test_an_answer_in_own_words_is_explained_by_the_receipt_that_it_was_judged_by(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = plugs.on_path(tmp_path / "site", "buttons", monkeypatch)
    plugs.install(site, "buttons", "omnidata.tasks", f"buttons = {__name__}:Buttons")
    monkeypatch.setattr(TapOrBack, "question_kind", lambda *_: None)
    task = get_task("buttons", {"dialect": "qwen2.5"})
    step, text = task.load(rows).steps[0], '{"do": "tap", "at": [150, 300]}'
    verdict = task.verdict(step, text)
    found = task.explanation(step, verdict, text, profile="near")
    assert (found.mark, found.answer_label) == ("near", "TAP")
    assert found.overlays["screenshot"].answer == Point(150, 300, "px")
    assert task.history_action(step, text) == Action("tap", (Point(150, 300, "px"),))
