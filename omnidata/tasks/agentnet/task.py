"""The task `agentnet`: steps of AgentNet and AgentNetBench, scored as OpenCUA scores them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

import numpy as np

from omnidata.actions import Action, Screen, Space
from omnidata.errors import UsageError
from omnidata.metrics.row_tables import by_group
from omnidata.tasks.agentnet import load as loader
from omnidata.tasks.agentnet.actions import POINTED, place_of, spelled, type_of
from omnidata.tasks.agentnet.explanations import explain
from omnidata.tasks.agentnet.rows import fingerprint, recognises, truths_of
from omnidata.tasks.agentnet.rules import Rule, judge, parse, relative
from omnidata.tasks.base import Benchmark
from omnidata.tasks.coordinates import place
from omnidata.tasks.desktops import as_action, is_told, read_code
from omnidata.tasks.profiles import RowProfile, Unit
from omnidata.types import (
    PLACE,
    Conversation,
    Explanation,
    LoadedDataset,
    Message,
    Part,
    Profile,
    Step,
    Target,
    Verdict,
    VerdictColumns,
)

# `agentnetbench` and `agentnetbench-fixed`: OpenCUA's rule as released, and mended.

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
        self._rule: Rule = rule
        self._space = space

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read one answer and hold it against the ground truth and its alternatives."""
        try:
            truths = truths_of(step.source)
        except ValueError as error:
            return Verdict("ok", (None,), None, str(error))
        if self._space == "px" and min(step.screen) < 1 and _has_places(truths):
            return Verdict("ok", (None,), None, "the size of the screen is not known")
        said = parse(text, self._rule, space=self._space)
        if isinstance(said, str):
            return Verdict("unparsed", (0.0,), None, said)
        done = relative(said.actions, self._space, step, receipt)
        return Verdict("ok", (judge(truths, done, self._rule),), {"code": said.code})

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """The table of `RowProfile`, and by what the steps' first actions need."""
        found = super().total(steps, rows)
        judged = ~np.isnan(rows.values[self.values[0]])
        found["by"]["kind"] = by_group(
            lambda mask: self._table(steps, rows, mask & judged),
            [kind_of(step) for step in steps],
            KINDS,
        )
        return found


def kind_of(step: Step) -> str | None:
    """What the first action of the ground truth needs; None where it cannot be used."""
    try:
        first = type_of(truths_of(step.source)[0][0])
    except ValueError:
        return None
    if first in POINTED or first in _TURNED:
        return "coordinate"
    return "content" if first in _CONTENT else "function"


def _has_places(truths: Sequence[Sequence[Action]]) -> bool:
    return any(place_of(action) for truth in truths for action in truth)


# The prompt of `agentnet`: ours, in the words of OpenCUA's actions.

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
_TASK: Final = "Task: {instruction}\n\nActions so far:\n{history}"
_NOTHING: Final = "(none)"
_UNSAID: Final = "(an action that cannot be shown)"


@cache
def template() -> str:
    """The system prompt, with a place for the unit of coordinates.

    Examples:
        >>> template().count("{unit}")
        1
    """
    folder = resources.files("omnidata.tasks.agentnet").joinpath("prompts")
    return folder.joinpath("agentnet_v1.txt").read_text(encoding="utf-8")


class Prompt:
    """The conversation about a step.

    Args:
        options: resolved (`OPTIONS`).
        space: the unit of coordinates.
    """

    def __init__(self, options: Mapping[str, str], space: Space) -> None:
        self._history = options["history"]
        self._system = template().replace("{unit}", _UNITS[space])
        said = [self._history, self._system, _TASK, _NOTHING, _UNSAID]
        self.hash = hashlib.sha256(json.dumps(said).encode()).hexdigest()

    def conversation(
        self, step: Step, predicted: Sequence[Action | None] | None = None
    ) -> Conversation:
        """The system and user message for one step.

        Args:
            step: of AgentNet.
            predicted: the model's own actions so far; used with `history=predicted` only.
        """
        shot = step.media.get("screenshot")
        shown = (Part("image", media=shot, role="screenshot"),) if shot else ()
        asked = _TASK.format(instruction=step.instruction, history=self._past(step, predicted))
        return (
            Message("system", (Part("text", self._system),)),
            Message("user", (*shown, Part("text", asked))),
        )

    def _past(self, step: Step, predicted: Sequence[Action | None] | None) -> str:
        past = step.history if self._history == "gold" else predicted or ()
        if self._history == "none" or not past:
            return _NOTHING
        return "\n".join(
            f"{number}. {action.words if action and action.words and is_told(action) else _UNSAID}"
            for number, action in enumerate(past, 1)
        )


# What is right in a step of AgentNet, as code, and the baselines.

BASELINES: Final = ("oracle", "center")
"""`oracle` answers with the ground truth; `center` clicks the middle of the screen."""

_UNIT: Final[Screen] = (1, 1)
_MIDDLE: Final[Mapping[Space, str]] = {"rel": "0.5", "norm1000": "500"}


def target(step: Step, *, space: Space, size: Screen) -> Target | None:
    """The ground truth as code.

    Args:
        step: of AgentNet.
        space: the unit of coordinates.
        size: width and height of the screenshot as the model is shown it, in pixels.

    Returns:
        None where it cannot be used, or its pixels cannot be told.
    """
    try:
        actions = truths_of(step.source)[0]
    except ValueError:
        return None
    screen = step.screen
    if min(*screen, *size) < 1:
        if space == "px" and any(map(place_of, actions)):
            return None
        screen = size = _UNIT
    lines, marked, places = [], [], []
    for action in actions:
        point = place_of(action)
        pair = place(point, screen, space=space, size=size) if point else None
        places += [pair] if pair else []
        lines.append(spelled(action, f"x={pair[0]:g}, y={pair[1]:g}" if pair else ""))
        marked.append(spelled(action, PLACE) if pair else lines[-1].replace(PLACE, "bbox"))
    return Target(_fenced(lines), _fenced(marked), tuple(places))


def _fenced(lines: list[str]) -> str:
    code = "\n".join(lines)
    return f"```python\n{code}\n```"


def policy(name: str, options: Mapping[str, str], *, space: Space) -> Callable[[Step], str]:
    """The rule of that name: a step's answer.

    Args:
        name: one of `BASELINES`.
        options: as given with `-M key=value`; there are none.
        space: the unit of coordinates.

    Raises:
        UsageError: there is no such rule, or an option is given.
    """
    if name not in BASELINES:
        raise UsageError(
            f'agentnet has no baseline "{name}"',
            where=f"--model baseline:{name}",
            expected=f"one of {', '.join(BASELINES)}",
        )
    for option in options:
        raise UsageError(f"baseline:{name} has no options", where=f"-M {option}={options[option]}")

    def oracle(step: Step) -> str:
        found = target(step, space=space, size=step.screen)
        return found.text if found else ""

    def center(step: Step) -> str:
        x, y = (_MIDDLE.get(space, str(extent // 2)) for extent in step.screen)
        return _fenced([f"pyautogui.click(x={x}, y={y})"])

    return oracle if name == "oracle" else center


SPACES: tuple[Space, ...] = ("rel", "px", "norm1000")


class AgentNet(Benchmark):
    """AgentNet: what does a person do next on the desktop, given the screenshot?

    Args:
        options: `history`, `coordinates`; unknown ones are a `UsageError`.
    """

    title = "AgentNet"
    detailed_actions = True
    holds = (
        "trajectories on desktops (AgentNet, AgentNetBench): screenshots, clips where there is a "
        "recording; the next action"
    )
    tags = loader.TAGS
    roles = loader.ROLES
    subsets = ("agentnet", "agentnetbench")
    baselines: Sequence[str] = BASELINES
    allowed: Mapping[str, Sequence[str]] = OPTIONS

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._space = next(space for space in SPACES if space == self.options["coordinates"])
        self._prompt = Prompt(self.options, self._space)
        self.prompt_hash = self._prompt.hash
        profiles = [BenchProfile("released", self._space), BenchProfile("fixed", self._space)]
        self.profiles: Mapping[str, Profile] = {profile.name: profile for profile in profiles}

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        """Read the trajectories."""
        return loader.load(data, check_media=check_media, strict=strict)

    def detect(self, data: Path) -> bool:
        """Whether one of the first files there is AgentNet's."""
        return recognises(data)

    def fingerprint(self, data: Path) -> str:
        """SHA-256 over the files, media left out."""
        return fingerprint(data)

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        """The conversation for one step; `predicted` is used with `history=predicted` only."""
        return self._prompt.conversation(step, predicted)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """The ground truth, as code; None where it cannot be used."""
        return target(step, space=space or self._space, size=size or step.screen)

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """The rule of that name: a step's answer."""
        return policy(name, options, space=self._space)

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """A model's text as an action, for histories of predictions; None if it is none.

        Its words are the model's code, with places as it wrote them.
        """
        said = parse(text, "fixed")
        if isinstance(said, str):
            return None
        return as_action(read_code(said.code), space=self._space, said=said.code)

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Why a verdict is what it is, and what can be drawn of it."""
        return explain(
            step,
            verdict,
            self.profiles[profile],
            rule="fixed" if profile == "agentnetbench-fixed" else "released",
            space=self._space,
            receipt=receipt,
        )
