"""The task `omnibench`: steps of OmniBench's trajectories, its prompt, and a profile of our own.

What the paper scores, coverage and consistency of task graphs, needs no model's text:
`omnidata score omnibench TASKS SEQUENCES`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from omnidata.actions import Action, Box, Point, Region, Screen, Space, centre, convert
from omnidata.errors import UsageError
from omnidata.loaders.rows import canonical
from omnidata.tasks.base import Benchmark
from omnidata.tasks.coordinates import place, resizing
from omnidata.tasks.json_answers import Pair, ParseFailure
from omnidata.tasks.omnibench import load as loader
from omnidata.tasks.omnibench.actions import (
    Answer,
    notches,
    parse,
    read_call,
    same_keys,
    spelled,
    words,
)
from omnidata.tasks.omnibench.explanations import explain
from omnidata.tasks.omnibench.files import fingerprint, recognises, table10
from omnidata.tasks.omnibench.overview import View
from omnidata.tasks.omnibench.prompt import OPTIONS, Prompt
from omnidata.tasks.omnibench.rows import action_of, text_of
from omnidata.tasks.omnibench.scoring import TABLES, GraphScorer
from omnidata.tasks.profiles import EpisodeProfile
from omnidata.tasks.published import Published, read_published
from omnidata.types import (
    PLACE,
    Conversation,
    Explanation,
    LoadedDataset,
    Outcome,
    Profile,
    Step,
    Target,
    Verdict,
)

# OmniBench's right answers, in the form that the prompt asks for, and the baselines.

BASELINES = ("oracle", "center", "majority")
"""`oracle` answers with the expert's action; `center` clicks at the middle of the screen;
`majority` always gives the data's most frequent call, a click at the middle of the screen."""


def target(step: Step, *, space: Space, size: Screen) -> Target | None:
    """The expert's action, with its description and thought where the source has them.

    Args:
        step: of OmniBench.
        space: the unit of coordinates.
        size: width and height of the screenshot as the model is shown it, in pixels.

    Returns:
        None where the action cannot be read, or is a click of which nobody says where it goes, or
        that goes to a screen of unknown size.
    """
    action = action_of(step.source)
    if action is None:
        return None
    if action.kind != "tap":
        text = _written(action, [], step)
        return Target(text, text.replace(PLACE, "bbox"))
    if not action.start or min(step.screen) < 1:
        return None
    found = place(action.start[0], step.screen, space=space, size=size)
    marked = _written(action, PLACE, step).replace(f'"{PLACE}"', PLACE)
    return Target(_written(action, list(found), step), marked, (found,))


def _written(action: Action, point: Any, step: Step | None = None) -> str:
    function, args = spelled(action)
    row: Mapping[str, Any] = step.source if step else {}
    said = (text_of(row, "description"), text_of(row, "thought"))
    if point == PLACE:  # what stands for a place stands for nothing else
        said = said[0].replace(PLACE, "bbox"), said[1].replace(PLACE, "bbox")
    body = {
        "Status": "FINISH" if action.kind == "done" else "CONTINUE",
        "Observation": said[0],
        "Thought": said[1],
        "coordinates": point,
        "Function": function,
        "Args": args,
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


def policy(
    name: str, steps: Sequence[Step], *, space: Space, options: Mapping[str, str]
) -> Callable[[Step], str]:
    """The rule of that name: a step's answer.

    Args:
        name: one of `BASELINES`.
        steps: those it may look at.
        space: the unit in which it writes coordinates.
        options: as given with `-M key=value`; there are none.

    Raises:
        UsageError: there is no such rule, or an option is given.
    """
    if name not in BASELINES:
        raise UsageError(
            f'omnibench has no baseline "{name}"',
            where=f"--model baseline:{name}",
            expected=f"one of {', '.join(BASELINES)}",
        )
    for option in options:
        raise UsageError(f"baseline:{name} has no options", where=f"-M {option}={options[option]}")
    if name == "oracle":
        return lambda step: _oracle(step, space)
    usual = read_call("click_input")
    if name == "majority":
        actions = (action for step in steps if (action := action_of(step.source)))
        calls = Counter(replace(action, start=(), words=None) for action in actions)
        usual = calls.most_common(1)[0][0] if calls else read_call("")
    return lambda step: _blind(usual, step, space)


def _oracle(step: Step, space: Space) -> str:
    """The target; pixels need no screen. An empty text where the row has no usable action."""
    found = target(step, space=space, size=step.screen)
    action = action_of(step.source)
    if found is None and action and action.start and space == "px":
        middle = centre(action.start[0])
        return _written(action, [middle.x, middle.y], step)
    return found.text if found else ""


def _blind(action: Action, step: Step, space: Space) -> str:
    middle: Pair = (0.5, 0.5)
    if space != "rel":
        found = convert(Point(0.5, 0.5, "rel"), space, step.screen if space == "px" else (1, 1))
        middle = found.x, found.y
    return _written(action, list(middle) if action.kind == "tap" else [])


# Is an answer the expert's next action? A step metric for OmniBench's trajectories, ours.
#
# The paper scores task graphs (coverage and consistency) in an environment; it has no metric of a
# step. These rules judge what its trajectories hold.

Match = tuple[bool | None, bool | None]


def judge(target: Action | None, answer: Answer | None, point: Pair | None) -> Match:
    """Hold an answer against the expert's action.

    `type_match`: the function is the same. `exact_match`: it is, and

    * click_input: the same button, double or not, and the point lies in the control's rectangle,
      edges included;
    * wheel_mouse_input: the same direction, and at least half and at most twice as far, for where
      a scroll ends is seldom a matter of one notch;
    * keyboard_input: the same keys (`same_keys`);
    * no function: the answer's status, if it has one, is FINISH.

    Args:
        target: what the expert did, a click in pixels of the screenshot; None where the row cannot
            be read.
        answer: as the model wrote it; None where nothing could be read.
        point: where the answer points, in pixels of the screenshot; None if nowhere.

    Returns:
        type_match and exact_match; None and None where the row says too little to judge by.

    Examples:
        >>> said, box = Answer("click_input", Action("tap")), Box(0, 0, 9, 9, "px")
        >>> judge(Action("tap", (box,)), said, (9, 9))
        (True, True)
        >>> judge(Action("tap", (box,), count=2), said, (9, 9))
        (True, False)
    """
    if target is None or (target.kind == "tap" and not target.start):
        return None, None
    if answer is None or answer.function != spelled(target)[0]:
        return False, False
    return True, _is_exact(target, answer, point)


def _is_exact(target: Action, answer: Answer, point: Pair | None) -> bool:
    """Whether arguments and place are the same, given that the function is."""
    action = answer.action
    if action is None:
        return False
    if target.kind == "tap":
        alike = (action.button, action.count) == (target.button, target.count)
        return alike and point is not None and _inside(target.start[0], point)
    if target.kind == "scroll":
        return 0.5 <= notches(action) / notches(target) <= 2
    if target.kind == "type":
        return same_keys(action.text or "", target.text or "")
    return answer.status != "CONTINUE"


def _inside(region: Region, point: Pair) -> bool:
    assert isinstance(region, Box)  # rows have rectangles
    return region.left <= point[0] <= region.right and region.top <= point[1] <= region.bottom


# `omnibench-step`: is an answer the expert's next action? Ours; the paper has no such metric.


class StepProfile(EpisodeProfile):
    """The rules of `omnidata.tasks.omnibench.task`.

    Args:
        space: the unit of coordinates in answers.
    """

    name = "omnibench-step"
    by: Mapping[str, Sequence[str]] = {
        "kind": ("subtask", "task"),
        "app": (),
        "category": tuple(dict.fromkeys(table10().values())),
        "platform": (),
        "intent": (),
    }

    def __init__(self, space: Space = "px") -> None:
        self.space = space

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read one answer and hold it against the step's action.

        Pixels are those of the screenshot as the model was shown it, which the receipt tells.
        """
        answer = parse(text)
        if isinstance(answer, ParseFailure):
            return Verdict("unparsed", self._values(step, None, None), None, answer.reason)
        point = self._on_screen(answer.point, step, receipt)
        return Verdict("ok", self._values(step, answer, point), answer.as_dict(), answer.fault)

    def failed(self, step: Step, outcome: Outcome) -> Verdict:
        """The verdict on a step without an answer: wrong, with the reason as its outcome."""
        return Verdict(outcome, self._values(step, None, None))

    def _values(
        self, step: Step, answer: Answer | None, point: Pair | None
    ) -> tuple[bool | None, bool | None, bool]:
        match = judge(self._target(step), answer, point)
        return *match, answer is not None and answer.as_prompted

    def _target(self, step: Step) -> Action | None:
        """The expert's action, at no place where no answer in this unit can be held against it."""
        action = action_of(step.source)
        known = self.space == "px" or min(step.screen) > 0
        return action if known or action is None else replace(action, start=())

    def _on_screen(
        self, point: Pair | None, step: Step, receipt: Mapping[str, Any] | None
    ) -> Pair | None:
        """A point of the answer in pixels of the screenshot."""
        if point is None:
            return None
        if self.space == "px":
            resized = resizing(receipt, where=step.sample_id)
            return resized.to_screen(point) if resized else point
        found = convert(Point(point[0], point[1], self.space), "px", step.screen)
        return found.x, found.y


class OmniBench(Benchmark):
    """OmniBench: what does the agent click, turn or type next, given the screen?

    Args:
        options: `history`, `intent`, `coordinates`; unknown ones are a `UsageError`.
    """

    title = "OmniBench"
    detailed_actions = True
    holds = "graphs of desktop tasks, and trajectories with screenshots; the next action"
    tags = loader.TAGS
    roles = loader.ROLES
    subsets = ("subtask", "task", *dict.fromkeys(table10().values()))
    overview = View
    library = staticmethod(loader.read_library)
    score_files = GraphScorer()
    tables = TABLES
    baselines: Sequence[str] = BASELINES
    allowed: Mapping[str, Sequence[str]] = OPTIONS

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._prompt = Prompt(self.options)
        self.prompt_hash = self._prompt.hash
        self._space: Space = self._prompt.space
        profile = StepProfile(self._space)
        self.profiles: Mapping[str, Profile] = {profile.name: profile}

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        """Read the dataset's annotations."""
        return loader.load(data, check_media=check_media, strict=strict)

    def detect(self, data: Path) -> bool:
        """Whether a file there has rows of OmniBench."""
        return recognises(data)

    def fingerprint(self, data: Path) -> str:
        """SHA-256 over the annotations."""
        return fingerprint(data)

    def named(self, step: Step) -> Step:
        """The step with its episode, and its group: its task or subtask."""
        return loader.named(step)

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        """The conversation for one step; `predicted` is used with `history=predicted` only."""
        return self._prompt.conversation(step, predicted)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """The expert's action as compact JSON; None where the source has no usable one."""
        return target(step, space=space or self._space, size=size or step.screen)

    @property
    def published(self) -> Published:
        """What the paper and its release print."""
        return read_published("omnidata.tasks.omnibench", self.name)

    def spelling(self, tag: str, value: str) -> str:
        """An app is known by any of its spellings."""
        return canonical(value) if tag == "app" else value

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """The rule of that name: a step's answer."""
        return policy(name, steps, space=self._space, options=options)

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """A model's text as an action, for histories of predictions; None if it is none.

        Its words have the point as the model wrote it, in the unit that it was asked for.
        """
        answer = parse(text)
        if isinstance(answer, ParseFailure) or answer.action is None:
            return None
        where = f"[{answer.point[0]:g}, {answer.point[1]:g}]" if answer.point else ""
        return replace(answer.action, words=words(answer.action, where))

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Why a verdict is what it is, and what can be drawn of it."""
        return explain(step, verdict, self.profiles[profile], space=self._space, receipt=receipt)
