"""The task `agentnet`: steps of AgentNet and AgentNetBench, scored as OpenCUA scores them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypedDict

import numpy as np
from msgspec.structs import replace

from omnidata.actions import OPPOSITE, Action, Point, Region, Screen, Space, finger_way
from omnidata.dialects import CannotSayError
from omnidata.dialects.pyautogui import CLICKS
from omnidata.dialects.pyautogui_actions import as_action
from omnidata.errors import Finding, OmnidataError
from omnidata.jsontext import hash_of
from omnidata.loaders.action_log import Log
from omnidata.metrics.paired import Unit
from omnidata.metrics.row_tables import by_group
from omnidata.tasks.agentnet import load as loader
from omnidata.tasks.agentnet import recordings
from omnidata.tasks.agentnet.actions import (
    POINTED,
    boxes_of,
    code_line,
    place_of,
    terminate_action,
    turn_of,
    type_of,
)
from omnidata.tasks.agentnet.load import truths_of
from omnidata.tasks.agentnet.rules import REACH, Rule, judge, parse, relative
from omnidata.tasks.base import Benchmark
from omnidata.tasks.coordinates import answer_space, in_pixels, on_screen, place
from omnidata.tasks.desktops import is_told
from omnidata.tasks.diagnosis import diagnose
from omnidata.tasks.explaining import (
    SCREENSHOT,
    Turn,
    explain,
    format_point,
    gap,
    of_turns,
    quote,
)
from omnidata.tasks.profiles import RowProfile
from omnidata.types import (
    PLACE,
    Explanation,
    Profile,
    Publication,
    Remote,
    Step,
    Target,
    Verdict,
    VerdictColumns,
)

# `agentnetbench` and `agentnetbench-fixed`: OpenCUA's rule as released, and corrected.

KINDS: Final = ("coordinate", "content", "function")
"""What the first action of a step needs: a place or the wheel, something to type, or nothing."""

_CONTENT: Final = frozenset({"write", "press", "hotkey"})
_TURNED: Final = frozenset({"scroll", "hscroll"})


class BenchProfile(RowProfile):
    """The mean of the steps' scores, each from 0 to 1 (`omnidata.tasks.agentnet.rules`).

    "released" also reads answers as the released agent does; "fixed" reads code as Python.

    Args:
        rule: whose.
        space: the unit of coordinates in answers.
    """

    columns: Mapping[str, Unit] = {"score": "share"}
    by: Mapping[str, Sequence[str]] = {"form": (), "part": (), "completed": ()}

    def __init__(self, rule: Rule, space: Space) -> None:
        self.name = "agentnetbench" if rule == "released" else "agentnetbench-fixed"
        self.source = "AgentNetBench, OpenCUA (Wang et al., 2025)"
        if rule == "fixed":
            self.source += ", with its faults corrected"
        self._rule: Rule = rule
        self._space = space

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        try:
            truths = truths_of(step.source)
        except ValueError as error:
            return Verdict("ok", (None,), None, str(error))
        places = (place_of(action) for truth in truths for action in truth)
        if self._space == "px" and min(step.screen) < 1 and any(places):
            return Verdict("ok", (None,), None, "the size of the screen is unknown")
        found = parse(text, self._rule, space=self._space)
        if isinstance(found, str):
            return Verdict("unparsed", (0.0,), None, found)
        done = relative(found.actions, self._space, step, receipt)
        return Verdict("ok", (judge(truths, done, self._rule),), {"code": found.code})

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """Return the table of `RowProfile`, also by the need of the steps' first actions."""
        found = super().total(steps, rows)
        judged = ~np.isnan(rows.values[self.values[0]])
        found["by"]["kind"] = by_group(
            lambda mask: self._table(steps, rows, mask & judged),
            [_kind_of(step) for step in steps],
            KINDS,
        )
        return found


def _kind_of(step: Step) -> str | None:
    try:
        first = type_of(truths_of(step.source)[0][0])
    except ValueError:
        return None
    if first in POINTED or first in _TURNED:
        return "coordinate"
    return "content" if first in _CONTENT else "function"


# The task: its prompt is ours, in the words of OpenCUA's actions.

OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "history": ("gold", "none", "predicted"),
    "coordinates": ("rel", "px", "norm1000"),
}
"""The options of the task; the benchmark's own coordinates are shares of the screen."""

_UNITS: Final[Mapping[Space, str]] = {
    "rel": "shares of the screenshot, from 0 to 1, with four decimals.",
    "px": "pixels of the screenshot.",
    "norm1000": "from 0 to 1000, thousandths of the screenshot's width and height.",
}
_NOTHING: Final = "(none)"
_UNSAID: Final = "(an action that cannot be shown)"
_UNIT: Final[Screen] = (1, 1)
_MIDDLE: Final[Mapping[Space, str]] = {"rel": "0.5", "norm1000": "500"}


class _Parsed(TypedDict, total=False):
    code: str


class AgentNet(Benchmark):
    """AgentNet: what does a person do next on the desktop, given the screenshot?

    Args:
        options: `history`, `coordinates`; unknown ones are a `UsageError`.
    """

    title = "AgentNet"
    asked = "action"
    detailed_actions = True
    platform = "desktop"
    holds = (
        "predict the next action on a desktop from screenshots, and from clips if recorded "
        "(AgentNet, AgentNetBench)"
    )
    question = "Task: {instruction}\n\nActions so far:\n{history}"
    shown = ("screenshot",)
    files = loader.FILES
    sources = (
        Publication(
            "AgentNet",
            "https://huggingface.co/datasets/xlangai/AgentNet",
            "mit",
            paper="2508.09123",
            remote=Remote(
                "hf://datasets/xlangai/AgentNet",
                archives=("*.zip", "*.z[0-9]*"),
                bytes=200_000_000_000,
                note="about 200 GB, and as much again while the zips, each in several parts, are "
                "unpacked; the rows alone are --only '*.jsonl' (1.7 GB). The licence is that of "
                "the code's repository; that of the card was not seen",
            ),
        ),
    )
    parsed_type = _Parsed
    tags = loader.TAGS
    roles = loader.ROLES
    subsets = ("agentnet", "agentnetbench")
    baselines: Sequence[str] = ("oracle", "center")
    allowed: Mapping[str, Sequence[str]] = OPTIONS

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._space = answer_space(self.options) or "rel"
        prompts = resources.files("omnidata.tasks.agentnet").joinpath("prompts")
        system = prompts.joinpath("agentnet_v1.txt").read_text(encoding="utf-8")
        self.system = system.replace("{unit}", _UNITS[self._space])
        self.prompt_hash = hash_of(
            [self.options["history"], self.system, self.question, _NOTHING, _UNSAID]
        )
        profiles = [BenchProfile("released", self._space), BenchProfile("fixed", self._space)]
        self.profiles: Mapping[str, Profile] = {profile.name: profile for profile in profiles}

    def steps(self, data: Path, note: Callable[[Finding], None]) -> Iterable[Step]:
        return loader.read(data, note)

    def succeeded(self, steps: Sequence[Step], row: Mapping[str, Any]) -> bool | None:
        """Return the trajectory's column `task_completed`."""
        return {"true": True, "false": False}.get(steps[0].tags.get("completed", ""))

    def action_log(self, events: Path) -> Log | None:
        return recordings.read_log(events) if recordings.recognises(events) else None

    def _history(self, step: Step, predicted: Sequence[Action | None] | None) -> str:
        past = self.earlier(step, predicted)
        first = self.forgotten(len(past))
        lines = (
            f"{number}. {action.words if action and action.words and is_told(action) else _UNSAID}"
            for number, action in enumerate(past[first:], first + 1)
        )
        return "\n".join(lines) or _NOTHING

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        try:
            actions = truths_of(step.source)[0]
        except ValueError:
            return None
        space, screen, size = space or self._space, step.screen, size or step.screen
        if min(*screen, *size) < 1:
            if space == "px" and any(map(place_of, actions)):
                return None
            screen = size = _UNIT
        lines, marked, places = [], [], []
        for action in actions:
            point = place_of(action)
            pair = place(point, screen, space=space, size=size) if point else None
            places += [pair] if pair else []
            lines.append(code_line(action, f"x={pair[0]:g}, y={pair[1]:g}" if pair else ""))
            marked.append(code_line(action, PLACE) if pair else lines[-1].replace(PLACE, "bbox"))
        return Target(_code_block(lines), _code_block(marked), tuple(places))

    def right_actions(self, step: Step) -> Sequence[Action]:
        """The ground truth; nothing where it cannot be used.

        A drag begins where the pointer was moved before it.
        """
        try:
            truth = truths_of(step.source)[0]
        except ValueError:
            return ()
        found: list[Action] = []
        for action in truth:
            if action.kind == "drag" and found and found[-1].kind == "move":
                action = replace(action, start=found.pop().start)
            found.append(action)
        return found

    def takes(self, actions: Sequence[Action]) -> int:
        return len(actions)

    def express(self, actions: Sequence[Action], step: Step) -> str:
        return _code_block([line for action in actions for line in _code_lines(action)])

    def policy(self, name: str, steps: Sequence[Step]) -> Callable[[Step], str]:
        """`oracle` answers with the ground truth; `center` clicks the middle of the screen."""
        return super().policy(name, steps) if name == "oracle" else self._center

    def _center(self, step: Step) -> str:
        x, y = (_MIDDLE.get(self._space, str(extent // 2)) for extent in step.screen)
        return _code_block([f"pyautogui.click(x={x}, y={y})"])

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """A model's text as an action, for histories of predictions; None if it is none.

        Its words are the model's code, with places as it wrote them.
        """
        found = parse(text, "fixed")
        if isinstance(found, str):
            return None
        return as_action(found.calls, space=self._space, said=found.code)

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        rule: Rule = "fixed" if profile == "agentnetbench-fixed" else "released"
        truths = _truths(step)
        code = ((verdict and verdict.parsed) or {}).get("code", "")
        found = parse(code, rule, space=self._space) if code else ""
        read = () if isinstance(found, str) else found.actions
        done = _relative(read, self._space, step, receipt)
        target = _turn(truths[0], step) if truths else None
        return explain(
            verdict,
            self.profiles[profile],
            lambda parsed, right: _sentence(step, truths, done, rule, right=right),
            target_label=target.label if target else "",
            target_labels=target.kinds if target else (),
            answer_label=lambda parsed: Turn(tuple(map(type_of, read))).label,
            overlays=lambda: {SCREENSHOT: of_turns(target, _turn(done, step) if done else None)},
            noun="action",
            diagnosis=lambda parsed: diagnose(
                step, _nearest(truths, done, rule), read, receipt=receipt, reach=1000 * REACH
            ),
        )


def _code_lines(action: Action) -> Iterator[str]:
    """Return an action of any agent as lines of code.

    A drag with a start begins with a move. Text at a place is a click and a text, followed by the
    enter key if submitted. A turn not counted in notches has no amount; an end without a status is
    a success.
    """
    if action.kind == "type" and (action.start or action.submit):
        if action.start:
            yield from _code_lines(Action("tap", action.start))
        yield from _code_lines(Action("type", text=action.text))
        if action.submit:
            yield from _code_lines(Action("enter"))
        return
    if action.kind == "tap" and (action.button, action.count) not in CLICKS:
        raise CannotSayError(f"AgentNet has no {action.label}, {action.count} times")
    if action.kind == "drag" and action.start:
        yield from _code_lines(Action("move", action.start))
        action = replace(action, start=())
    if action.kind == "scroll":
        way = finger_way(action)
        if way is None and action.amount != 0:
            raise CannotSayError("nobody says which way the wheel turns")
        action = replace(
            action,
            words="hscroll" if action.direction in _ASIDE else "scroll",
            direction=OPPOSITE[way] if way else None,
            amount=action.amount if action.amount_unit == "notch" else None,
        )
    elif action.kind == "enter":
        action = Action("keys", keys=("enter",))
    elif action.kind == "type":
        action = replace(action, text=action.text or "")
    elif action.kind == "done":
        action = terminate_action(
            action.words if action.words in _STATUS else action.status or "success"
        )
    held = action.held or (action.kind == "drag" and action.button != "left")
    if type_of(action) == "other" or held:
        raise CannotSayError(f"AgentNet has no {action.label}")
    found = place_of(action)
    if found is None and type_of(action) in POINTED:
        raise CannotSayError(f"AgentNet has no {action.label} at no place")
    yield code_line(action, f"x={found.x!r}, y={found.y!r}" if found else "")


_ASIDE: Final = ("left", "right")
_STATUS: Final = ("success", "failure")


def _code_block(lines: list[str]) -> str:
    code = "\n".join(lines)
    return f"```python\n{code}\n```"


# How an answer differs from what is right, one action after the other.


def _truths(step: Step) -> Sequence[Sequence[Action]]:
    try:
        return truths_of(step.source)
    except ValueError:
        return ()


def _relative(
    actions: Sequence[Action], space: Space, step: Step, receipt: Mapping[str, Any] | None
) -> Sequence[Action]:
    try:
        return relative(actions, space, step, receipt)
    except OmnidataError:
        return ()


def _turn(actions: Sequence[Action], step: Step) -> Turn:
    starts: list[Region] = []
    ends: list[Region] = []
    for action in actions:
        if type_of(action) in POINTED:
            (ends if action.kind == "drag" else starts).extend(_regions(action, step))
    return Turn(tuple(map(type_of, actions)), tuple(starts), tuple(ends))


def _regions(action: Action, step: Step) -> tuple[Region, ...]:
    if boxes := boxes_of(action):
        return tuple(in_pixels(box, step.screen) for box in boxes)
    point = _point(action, step)
    return (point,) if point else ()


def _point(action: Action, step: Step) -> Point | None:
    place = place_of(action)
    return on_screen(step, Point(place.x, place.y, "rel"), {}) if place else None


def _nearest(
    truths: Sequence[Sequence[Action]], said: Sequence[Action], rule: Rule
) -> Sequence[Action]:
    return max(truths, key=lambda one: judge([one], said, rule), default=())


def _sentence(
    step: Step,
    truths: Sequence[Sequence[Action]],
    said: Sequence[Action],
    rule: Rule,
    *,
    right: bool,
) -> str:
    if not said:
        return "the answer does nothing"
    truth = _nearest(truths, said, rule)
    if right:
        return _rightly(step, truth, said)
    types, given = [type_of(one) for one in truth], [type_of(one) for one in said]
    if given[0] not in types:
        return f"the answer is {given[0]}, the target is {', '.join(types)}"
    differ = []
    for number, action in enumerate(truth):
        if number >= len(said):
            differ.append(f"{types[number]} is missing")
        elif given[number] != types[number]:
            differ.append(f"{given[number]} is in place of {types[number]}")
        elif judge([[action]], [said[number]], rule) < 1:
            differ.append(_differs(step, action, said[number], rule))
    if rule == "fixed" and len(said) > len(truth):
        differ.append(f"{len(said)} actions in place of {len(truth)}")
    return "; ".join(differ) or "the actions differ"


def _rightly(step: Step, truth: Sequence[Action], said: Sequence[Action]) -> str:
    action, answer = truth[0], said[0]
    name = type_of(action)
    if name == "scroll" and answer.direction != action.direction:
        return "the released evaluator accepts any scroll"
    if name in POINTED and name == type_of(answer):
        return _where(step, action, answer)
    return f"the answer has the right actions: {', '.join(map(type_of, truth))}"


def _where(step: Step, action: Action, said: Action) -> str:
    regions, point = _regions(action, step), _point(said, step)
    if point is None or not regions:
        return f"{type_of(said)} has no usable place"
    return f"the point {format_point(point)} is {gap(point, regions, step.screen)}"


def _differs(step: Step, action: Action, said: Action, rule: Rule) -> str:
    name = type_of(action)
    if name in POINTED:
        return _where(step, action, said)
    if name == "write":
        return f"the text differs: {quote(said.text)} in place of {quote(action.text)}"
    if name in ("press", "hotkey"):
        return f"the keys differ: {'+'.join(said.keys)} in place of {'+'.join(action.keys)}"
    if name == "terminate":
        return f"the status is {quote(said.words)} in place of {quote(action.words)}"
    if name in ("scroll", "hscroll") and rule == "fixed":
        return f"{name} goes {turn_of(said):+g} in place of {turn_of(action):+g}"
    return f"the released evaluator has no rule for {name}"
