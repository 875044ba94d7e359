"""Why an answer is wrong: right answers that are mutated in one way are named as that way."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

from omnidata.actions import Action, Box, Point, Space, convert
from omnidata.analysis.report import report
from omnidata.errors import Finding, PluginError
from omnidata.predictions import Prediction
from omnidata.run.run_files import read_run
from omnidata.run.scoring import get_profile, score
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.benchmark import Benchmark, Card, ParsedAnswer, Receipt, Rule
from omnidata.tasks.coordinates import in_pixels, replace_places
from omnidata.tasks.diagnosis import diagnose
from omnidata.tasks.profile import Profile
from omnidata.tasks.statistics import statistics
from omnidata.tasks.totals import RowTotals
from omnidata.types import Cause, Diagnosis, Explanation, Outcome, Step, Target, Verdict
from tests.goldens.worlds import WORLDS
from tests.plugin import data as odyssey

IDLE = ("none", "wait")
SPACES: Mapping[str, Space] = {
    "norm1000": "norm1000", "auto": "norm1000", "rel": "rel", "px": "px"
}  # fmt: skip
UNITS: tuple[Space, ...] = get_args(Space)
Mutation = tuple[Cause, str]


def type_of(action: Action) -> tuple[Any, ...]:
    return action.kind, action.status, action.button, action.count


class Mutator:
    """Mutates the right answers of a task.

    Args:
        task: with the unit of its answers.
        steps: of its data; right answers to some are wrong ones to others.
        reach: how far from a target point answers are right, in thousandths of the screen.
        same: kinds of action that the profile counts as presses of keys, all of one type.
    """

    def __init__(
        self, task: Asking, steps: Sequence[Step], reach: float, same: frozenset[str]
    ) -> None:
        self.reach, self.same = reach, same
        self.unit = SPACES.get(task.options.get("coordinates", "")) or task.prompted_space or "px"
        self.right = [
            (step, step.action, target)
            for step in steps
            if step.action and (target := task.target(step))
        ]

    def of(self, step: Step, action: Action, target: Target) -> Iterator[Mutation]:
        """Every mutation that the answer to a step has."""
        yield "format", "I do not know."
        yield from self.types(action)
        yield from self.texts(action, target)
        if action.keys:
            key = action.keys[-1]
            yield "wrong_key", target.text.replace(f"'{key}'", "'f7'")
        if action.kind in ("tap", "long_press") and action.start and len(target.points) == 1:
            yield from self.places(step, action, target)

    def types(self, action: Action) -> Iterator[Mutation]:
        """The right answers to a step of each other type and direction."""
        found: dict[tuple[Any, ...], Mutation] = {}
        for _, other, target in self.right:
            if action.kind == "done":
                cause: Cause = "wrong_type" if other.kind == "done" else "went_on"
            elif other.kind == "done":
                cause = "stopped_early"
            elif action.kind in IDLE:
                cause = "acted_early"
            elif other.kind in IDLE:
                cause = "waited_too_long"
            elif {action.kind, other.kind} <= self.same:
                cause = "wrong_key"
            else:
                cause = "wrong_type"
            if other.kind in IDLE and action.kind in IDLE:
                continue
            if type_of(other) != type_of(action):
                found[type_of(other)] = cause, target.text
            elif other.direction and action.direction and other.direction != action.direction:
                found[other.kind, other.direction] = "wrong_direction", target.text
        yield from found.values()

    def texts(self, action: Action, target: Target) -> Iterator[Mutation]:
        text = action.text or action.app
        if text and len(text) > 3:
            for cause, other in (("near_text", text[:-1]), ("wrong_text", "qzx" * len(text))):
                for left, right in ((json.dumps(text), json.dumps(other)), (text, other)):
                    if left in target.text:
                        yield cause, target.text.replace(left, right)  # type: ignore[misc]
                        break

    def places(self, step: Step, action: Action, target: Target) -> Iterator[Mutation]:
        regions = [in_pixels(region, step.screen) for region in action.start]
        width, height = step.screen

        def away(x: float, y: float) -> float:
            """Thousandths of the screen from the nearest region, for a point in pixels."""
            found: list[float] = []
            for region in regions:
                if isinstance(region, Point):
                    far = math.hypot((x - region.x) / width, (y - region.y) / height)
                    found.append(1000 * far - self.reach)
                else:
                    beyond_x = max(region.left - x, 0, x - region.right) / width
                    beyond_y = max(region.top - y, 0, y - region.bottom) / height
                    found.append(1000 * math.hypot(beyond_x, beyond_y))
            return max(0.0, min(found))

        def read(pair: tuple[float, float], unit: Space) -> float:
            point = convert(Point(*pair, unit), "px", step.screen)
            return away(point.x, point.y)

        def spelled(x: float, y: float) -> tuple[float, float]:
            """A point in pixels, as the task's answers have it."""
            point = convert(Point(x, y, "px"), self.unit, step.screen)
            digits = 4 if self.unit == "rel" else 2
            return round(point.x, digits), round(point.y, digits)

        grid = list(product(range(1, 100, 2), repeat=2))
        for x, y in grid:
            if 15 < away(x * width / 100, y * height / 100) < 45:
                yield (
                    "near_miss",
                    replace_places(target, [spelled(x * width / 100, y * height / 100)]),
                )
                break
        for x, y in grid:
            pair = spelled(x * width / 100, y * height / 100)
            read_so = [read(each, unit) for each in (pair, pair[::-1]) for unit in UNITS]
            if min(read_so) > 1 and read(pair, self.unit) > 60:
                yield "wrong_element", replace_places(target, [pair])
                break
        right = target.points[0]
        others = [  # of readings that are right the nearest to a point is named, a box has none
            read(right[::-1], unit)
            for unit in UNITS
            if unit != self.unit and not all(isinstance(region, Point) for region in regions)
        ]
        if read(right[::-1], self.unit) > 60 and min(others, default=1) > 0:
            yield "axes_swapped", replace_places(target, [right[::-1]])
        for unit in (unit for unit in UNITS if unit != self.unit):
            point = convert(Point(*right, self.unit), unit, step.screen)
            other = round(point.x, 3), round(point.y, 3)
            if read(other, self.unit) > 60 and read(other[::-1], self.unit) > 0:
                yield "other_unit", replace_places(target, [other])


def wrong(profile: Profile, verdict: Verdict) -> bool:
    values = dict(zip(profile.values, verdict.values, strict=True))
    found = values.get("exact_match", values.get("score"))
    return found is not None and found < 1


def named(
    task: Asking, profile: str, step: Step, verdict: Verdict, text: str = ""
) -> Diagnosis | None:
    return task.explanation(step, verdict, text, profile=profile).diagnosis


@dataclass(frozen=True)
class Case:
    """A benchmark, and what is known of a profile of it.

    Attributes:
        world: of its data.
        causes: what at least one mutation is of.
        reach, same: as in `Mutator`.
        profile: by which answers are judged; the task's own where it is empty.
    """

    world: str
    causes: set[Cause]
    reach: float = 140
    same: frozenset[str] = frozenset()
    profile: str = ""


def check(task: Asking, steps: Sequence[Step], case: Case) -> Counter[Cause]:
    """Hold what every mutation is named against what it is; how many there were of each kind."""
    name = case.profile or task.default_profile
    profile = task.profiles[name]
    mutator = Mutator(task, steps, case.reach, case.same)
    seen: Counter[Cause] = Counter()
    missed: dict[Cause, list[Any]] = {}
    for step, action, target in mutator.right:
        verdict = profile.judge(step, target.text)
        found = named(task, name, step, verdict, target.text)
        assert (found is not None) == wrong(profile, verdict)
        for cause, text in mutator.of(step, action, target):
            verdict = profile.judge(step, text)
            if not wrong(profile, verdict):
                continue
            seen[cause] += 1
            found = named(task, name, step, verdict, text)
            if found is None or found.cause != cause:
                missed.setdefault(cause, []).append((step.sample_id, target.text, text, found))
        for outcome, cause in UNANSWERED.items():
            verdict = profile.without_answer(step, outcome)
            if wrong(profile, verdict):
                seen[cause] += 1
                assert named(task, name, step, verdict) == Diagnosis(cause)
    assert not [
        (cause, missed[cause][:3]) for cause in missed if len(missed[cause]) > seen[cause] / 100
    ]
    return seen


UNANSWERED: dict[Outcome, Cause] = {
    "truncated": "truncated", "refused": "refused", "api_error": "no_answer",
    "media_error": "no_answer", "missing": "no_answer",
}  # fmt: skip
ALWAYS: set[Cause] = {"format", "truncated", "refused", "no_answer", "wrong_type"}
PLACES: set[Cause] = {"near_miss", "wrong_element", "axes_swapped", "other_unit"}
TEXTS: set[Cause] = {"near_text", "wrong_text"}
IDLING: set[Cause] = {"acted_early", "waited_too_long"}
ENDS: set[Cause] = {"stopped_early", "went_on"}
CASES = [
    Case("omnigui", ALWAYS | PLACES | TEXTS | IDLING | ENDS | {"wrong_direction"}),
    Case("aitw", ALWAYS | PLACES | ENDS),
    Case(
        "androidcontrol",
        ALWAYS | TEXTS | IDLING | {"wrong_element", "other_unit", "wrong_key"},
        reach=40,
        same=frozenset({"back", "home"}),
    ),
    Case(
        "agentnet",
        ALWAYS | PLACES | IDLING | ENDS | {"wrong_text", "wrong_key"},
        reach=10 * 2**0.5,
        profile="agentnetbench-fixed",
    ),
    Case(
        "osworld",
        ALWAYS | PLACES | IDLING | ENDS | {"wrong_key"},
        reach=10 * 2**0.5,
        same=frozenset({"type", "keys"}),
    ),
    Case("screenspot", {"format", "near_miss", "wrong_element", "other_unit"}, 0),
    Case("omnibench", ALWAYS | ENDS | {"near_miss", "wrong_element", "other_unit"}),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.world)
def test_a_mutated_answer_is_named_as_its_mutation(case: Case, tmp_path: Path, few: Path) -> None:
    name, write = WORLDS[case.world]
    task = get_task(name)
    data = few if name == "omnigui" else write(tmp_path / "data")
    seen = check(task, task.load(data, check_media=False).steps, case)
    assert case.causes <= seen.keys()

    check_scores(task, data, case, tmp_path / "scored")


def test_a_plug_in_has_causes_for_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    odyssey.install(tmp_path / "site", monkeypatch)
    task = get_task("odyssey")
    data = odyssey.write(tmp_path / "data")
    case = Case("odyssey", ALWAYS | PLACES | TEXTS | ENDS)
    assert case.causes <= check(task, task.load(data).steps, case).keys()
    check_scores(task, data, case, tmp_path / "scored")


def test_a_value_may_not_be_called_as_what_a_line_of_scores_has_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odyssey.install(tmp_path / "site", monkeypatch)
    task = get_task("odyssey")
    ours = task.profiles["odyssey-ams"]
    monkeypatch.setattr(ours, "values", ("exact_match", "cause_distance"))
    with pytest.raises(PluginError, match="cause_distance") as caught:
        get_profile(task, None)
    assert caught.value.where == "odyssey_like.Ams"


def check_scores(task: Asking, data: Path, case: Case, out: Path) -> None:
    """Score one mutation of each step's answer; look at every sum of causes in the folder."""
    source = task.load(data, check_media=False)
    profile = task.profiles[case.profile or task.default_profile]
    mutator = Mutator(task, source.steps, case.reach, case.same)
    meant: dict[str, Cause] = {}
    said = []
    for number, (step, action, target) in enumerate(mutator.right):
        mutations = list(mutator.of(step, action, target))
        meant[step.sample_id], text = mutations[number % len(mutations)]
        said.append(Prediction(sample_id=step.sample_id, output=text))
    whole = np.ones(len(source.steps), dtype=np.bool_)
    results = score(task, profile, source.steps, said, whole=whole, out=out)
    run = read_run(out)
    assert run.results["causes"] == results["causes"]

    wrong, named = [], 0
    for step in source.steps:
        line = run.scores[step.sample_id]
        value = line.get("exact_match", line.get("score"))
        is_wrong = value is not None and (value < 1 or line["outcome"] not in ("ok", "unparsed"))
        assert ("cause" in line) == is_wrong, line
        if is_wrong:
            wrong.append((step, line["cause"]))
            named += meant.get(step.sample_id, "no_answer") == line["cause"]
    assert wrong and named >= 0.99 * len(wrong)

    causes = run.results["causes"]
    assert causes["overall"] == dict(Counter(cause for _, cause in wrong))
    for axis, groups in run.results["by"].items():
        assert causes["by"][axis].keys() == groups.keys()
        for group, counts in causes["by"][axis].items():
            own = Counter(cause for step, cause in wrong if step.tags.get(axis) == group)
            assert counts == own, (axis, group)
    assert causes["by"].keys() == run.results["by"].keys()
    if causes["by_target"]:
        added = sum((Counter(found) for found in causes["by_target"].values()), Counter())
        assert added == Counter(causes["overall"])
        labels = statistics(task, source).targets
        assert causes["by_target"].keys() <= labels.keys(), "info calls them what the tables do"

    (shares,) = (each for each in report([run], errors=True).tables if each.name == "errors")
    cells = shares.rows[0].cells
    assert cells[0].value == len(wrong)
    assert sum(cell.value or 0 for cell in cells[1:]) == pytest.approx(1)


class Near(Rule[Action]):
    """Takes places that are near enough, within a distance of its own."""

    name = "near"
    totals = RowTotals()

    def __init__(self, takes: float, reach: float | None) -> None:
        self.takes = takes
        if reach is not None:
            self.reach = reach

    def judge(self, step: Step, parsed: ParsedAnswer[Action] | None) -> tuple[bool]:
        assert step.action and parsed
        (target,), (said,) = step.action.start, parsed.value.start
        assert isinstance(target, Point) and isinstance(said, Point)
        return (math.dist((target.x, target.y), (said.x, said.y)) <= self.takes,)


class Placing(Benchmark):
    """Taps at points, in thousandths."""

    card = Card(title="Placing")

    def __init__(self, rule: Rule[Action]) -> None:
        self.rules = (rule,)
        super().__init__("placing", {})

    def steps(self, data: Path, note: Callable[[Finding], None]) -> list[Step]:
        return []

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[Action]:
        x, y = json.loads(text)
        action = Action("tap", (Point(x, y, "norm1000"),))
        return ParsedAnswer(action, {"at": [x, y]}, written=(action,))

    def target(self, step: Step, **_: object) -> None:
        return None


UNSAID = ", which the profile does not count as right"


@pytest.mark.parametrize(
    ("takes", "reach", "target", "said", "cause", "reading", "ends"),
    [
        (50, None, (800, 120), (855, 120), "near_miss", "", f"point{UNSAID}"),
        (50, 50, (800, 120), (855, 120), "near_miss", "", "55 of 1000 away from the target point"),
        (50, None, (250, 400), (400, 250), "axes_swapped", "y before x", "target point"),
        (50, 50, (250, 400), (350, 350), "wrong_element", "", "target point"),
        (50, None, (800, 120), (720, 144), "other_unit", "px", UNSAID),
        (50, None, (100, 150), (150, 100), "axes_swapped", "y before x", UNSAID),
        (-1, None, (800, 120), (800, 120), "rule", "", UNSAID),
        (200, None, (800, 120), (800, 301), None, "", ", which the profile counts as right"),
        (200, 200, (800, 120), (800, 301), None, "", "181 of 1000 away from the target point"),
        (200, 200, (800, 120), (800, 350), "near_miss", "", "target point"),
    ],
)
def test_the_causes_of_a_plug_in_follow_its_verdict_and_the_reach_that_it_says(
    takes: float,
    reach: float | None,
    target: tuple[float, float],
    said: tuple[float, float],
    cause: Cause | None,
    reading: str,
    ends: str,
) -> None:
    task = Asking(Placing(Near(takes, reach)))
    # In pixels of the first screen the swapped answer is within 140 of the target.
    screen = (1280, 800) if said == (400, 250) else (900, 1200)
    action = Action("tap", (Point(*target, "norm1000"),))
    step = Step("1", "1", 0, 1, "do it", screen, {}, (), (), action, {}, {})
    verdict = task.verdict(step, json.dumps(said))
    found = task.explanation(step, verdict, json.dumps(said), profile="near")
    assert found.diagnosis == (Diagnosis(cause, reading) if cause else None)
    assert found.sentence.endswith(ends)


class Pressed(Rule[Action]):
    name = "pressed"
    totals = RowTotals()

    def __init__(self, right: bool) -> None:
        self.right = right

    def judge(self, step: Step, parsed: ParsedAnswer[Action] | None) -> tuple[bool]:
        return (self.right,)


class Pressing(Placing):
    """Keys, apps and ends, and no places."""

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[Action]:
        row = json.loads(text)
        action = Action(**row | {"keys": tuple(row.get("keys", ()))})
        return ParsedAnswer(action, row, written=(action,))


def explain_press(wanted: dict[str, Any], said: dict[str, Any], *, right: bool) -> Explanation:
    task = Asking(Pressing(Pressed(right)))
    step = Step("1", "1", 0, 1, "do it", (100, 100), {}, (), (), None, {}, {})
    step = replace(step, action=task.parse(json.dumps(wanted), step).value)
    verdict = task.verdict(step, json.dumps(said))
    return task.explanation(step, verdict, json.dumps(said), profile="pressed")


@pytest.mark.parametrize("screen", [(0, 0), (1000, 2000)])
def test_places_on_one_screen_are_diagnosed_alike_however_many_came_before(
    screen: tuple[int, int],
) -> None:
    step = Step("a/0", "a", 0, 1, "Tap.", screen, {}, (), (), None, {}, {})
    boxes = Box(100, 800, 200, 900, "norm1000"), Box(300, 800, 400, 900, "norm1000")

    def diagnosis(x: float, y: float, space: Space = "norm1000") -> Diagnosis:
        wanted, said = Action("tap", boxes), Action("tap", (Point(x, y, space),))
        return diagnose(step, (wanted,), (said,), receipt=None)

    for _ in range(2):
        assert diagnosis(850, 350) == Diagnosis("axes_swapped", "y before x")
        assert diagnosis(350, 850, space="rel") == Diagnosis("other_unit", "norm1000")
        assert diagnosis(600, 100).cause == "wrong_element"
        assert diagnosis(250, 850).cause == "near_miss"


def test_an_explanation_can_be_said_otherwise_by_who_gets_it() -> None:
    found = explain_press({"kind": "back"}, {"kind": "home"}, right=False)
    again = replace(found, sentence="not that key")
    assert (again.sentence, again.mark, again.diagnosis, again.overlays) == (
        "not that key",
        "wrong",
        found.diagnosis,
        found.overlays,
    )
    assert not hasattr(copy(found), "nothing")


@pytest.mark.parametrize(
    ("wanted", "said", "right", "sentence"),
    [
        (("keys", "Enter"), ("keys", "Return"), False, "the keys differ: Return in place of Enter"),
        (("keys", "Enter"), ("keys", "enter"), True, "both have the keys enter"),
        (
            ("hotkey", "ctrl", "s"),
            ("hotkey", "ctrl", "x"),
            False,
            "the keys differ: ctrl+x in place of ctrl+s",
        ),
        (("hotkey", "ctrl", "s"), ("hotkey", "control", "s"), True, "accepts control+s for ctrl+s"),
        (("hotkey", "ctrl", "s"), ("hotkey",), False, "has no keys, the expert's action has ctrl"),
        (
            ("keys", "Enter"),
            ("keys", "Enter"),
            False,
            "both have the keys Enter, and the profile distinguishes them",
        ),
        (("open_app", "Mail"), ("open_app", "Maps"), False, "app differs: Maps in place of Mail"),
        (("open_app", "Mail"), ("open_app", "Mail"), True, "both open Mail"),
        (("back",), ("back",), False, "both are BACK, and the profile distinguishes them"),
        (("back",), ("back",), True, "both are BACK"),
    ],
)
def test_the_sentence_of_a_plug_in_names_what_differs_where_the_types_are_the_same(
    wanted: tuple[str, ...], said: tuple[str, ...], right: bool, sentence: str
) -> None:
    def told(kind: str, *more: str) -> dict[str, Any]:
        return {"kind": kind} | (
            {"app": more[0]} if kind == "open_app" else {"keys": [*more]} if more else {}
        )

    found = explain_press(told(*wanted), told(*said), right=right)
    assert found.mark == ("right" if right else "wrong")
    assert sentence in found.sentence
    assert right or not found.sentence.startswith("both") or "distinguishes" in found.sentence


class Boxing(Placing):
    """Answers with a box and a point to lift the finger at, in any unit."""

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[Action]:
        unit, left, top, right, bottom = json.loads(text)
        box, point = Box(left, top, right, bottom, unit), Point(left, top, unit)
        action = Action("swipe", (box,), (point,))
        if step.action and step.action.kind == "tap":
            action = Action("tap", action.start)
        return ParsedAnswer(action, {}, written=(action,))


@pytest.mark.parametrize("number", [10**306, 10**308, -(10**308), 10**309, -(10**400)])
@pytest.mark.parametrize("unit", UNITS)
def test_whole_numbers_beyond_floats_are_explained_in_answers_of_plug_ins(
    number: int, unit: Space
) -> None:
    task = Asking(Boxing(Pressed(right=False)))
    target = (Point(40, 50, "px"), Box(1, 1, 9, 9, "px"))
    for action in (Action("swipe", target, target), Action("tap", target)):
        step = Step("1", "1", 0, 1, "do it", (32, 32), {}, (), (), action, {}, {})
        for text in (json.dumps([unit, number, 1, number, 5]), json.dumps([unit, 1, number, 5, 6])):
            verdict = task.verdict(step, text)
            found = task.explanation(step, verdict, text, profile="pressed")
            assert found.diagnosis and found.sentence and found.overlays


def test_a_step_with_a_place_beyond_floats_is_refused_where_it_is_made() -> None:
    action = Action("tap", (Point(5, 10**400, "px"),))
    with pytest.raises(ValueError, match="the step '1' has a place with a whole number beyond"):
        Step("1", "1", 0, 1, "do it", (32, 32), {}, (), (), action, {}, {})
