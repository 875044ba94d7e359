"""The task `osworld`: turns of OSWorld's rollouts, the paper's prompt, and a profile of our own.

What the paper scores, the share of examples that succeed, needs no model's text:
`omnidata score osworld RESULTS`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, Final

from omnidata.actions import Action, Pair, Point, Screen, Space
from omnidata.errors import UsageError
from omnidata.tasks.base import Benchmark
from omnidata.tasks.coordinates import place, resizing
from omnidata.tasks.desktops import WORDS, Call, Code, as_action, is_told, spelled
from omnidata.tasks.osworld import load as loader
from omnidata.tasks.osworld.actions import (
    Said,
    actions_of,
    calls_of,
    is_whole,
    judge,
    moved,
    needs_places,
    parse,
)
from omnidata.tasks.osworld.explanations import explain
from omnidata.tasks.osworld.load import AlignBy
from omnidata.tasks.osworld.overview import View
from omnidata.tasks.osworld.scoring import RolloutScorer
from omnidata.tasks.osworld.tree import groups, recognises, sets
from omnidata.tasks.profiles import EpisodeProfile
from omnidata.types import (
    PLACE,
    Conversation,
    Explanation,
    LoadedDataset,
    Message,
    Outcome,
    Part,
    Profile,
    Step,
    Target,
    Verdict,
)

# `osworld-step`: does an answer do what the recorded agent did? Ours; the paper has no such rule.
#
# The recorded agent may be wrong: this compares models with a rollout, or one rollout with another,
# and says nothing of success, which `omnidata score osworld RESULTS` does.


class StepProfile(EpisodeProfile):
    """The rules of `omnidata.tasks.osworld.actions.judge`."""

    name = "osworld-step"
    by: Mapping[str, Sequence[str]] = {
        "group": tuple(groups()),
        "domain": tuple(sets()["osworld"]),
        "model": (),
        "outcome": ("success", "partial", "failure", "unfinished"),
    }

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read one answer and hold it against the recorded turn.

        Pixels are those of the screenshot as the model was shown it, which the receipt tells.
        """
        said = parse(text)
        if isinstance(said, str):
            return Verdict("unparsed", self._values(step, None, None), None, said)
        found = actions_of(said.statements)
        resized = resizing(receipt, where=step.sample_id)
        if found is not None and resized is not None:
            found = moved(found, resized.to_screen)
        return Verdict("ok", self._values(step, said, found), {"code": said.code})

    def failed(self, step: Step, outcome: Outcome) -> Verdict:
        """The verdict on a step without an answer: wrong, with the reason as its outcome."""
        return Verdict(outcome, self._values(step, None, None))

    def _values(
        self, step: Step, said: Said | None, found: Sequence[Action] | None
    ) -> tuple[bool | None, bool | None, bool]:
        recorded = actions_of(calls_of(step.source).calls)
        match = judge(recorded, found, step.screen)
        return *match, said is not None and said.as_prompted


# OSWorld's prompt for agents that see the screenshot alone (paper, Appendix C.2.1).
#
# The lines around it are those of the release's agent. It shows the last three screenshots with the
# answers to them; a step holds one screenshot, and so the last three actions are said in words
# here.

OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "history": ("gold", "none", "predicted"),
    "alignment": ("clock", "pictures"),
    "examples": ("",),
}
"""The options of the task. `alignment` says how clips are cut out of recordings; `examples` is the
release's folder of that name, which has the instructions."""

_TASK: Final = "\nYou are asked to complete the following task: {}"
_NEXT: Final = (
    "Given the screenshot as below. What's the next step that you will do to help with the task?"
)
_BEFORE: Final = "\nThe last actions, the latest at the end:"
_UNSAID: Final = "(an action that cannot be shown)"
_LAST: Final = 3
"""Rounds that an agent is reminded of (section 4.1)."""


@cache
def system_prompt() -> str:
    """The system prompt without the task.

    Examples:
        >>> system_prompt().splitlines()[0]
        'You are an agent which follow my instruction and perform desktop computer tasks ...'
    """
    folder = resources.files("omnidata.tasks.osworld").joinpath("prompts")
    return folder.joinpath("osworld.txt").read_text(encoding="utf-8")


class Prompt:
    """The conversation about a step.

    Args:
        options: resolved (`OPTIONS`).
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        self._history = options["history"]
        said = [self._history, system_prompt(), _TASK, _NEXT, _BEFORE, _UNSAID, _LAST]
        self.hash = hashlib.sha256(json.dumps(said).encode()).hexdigest()

    def conversation(
        self, step: Step, predicted: Sequence[Action | None] | None = None
    ) -> Conversation:
        """The system and user message for one step.

        Args:
            step: of OSWorld.
            predicted: the model's own actions so far; used with `history=predicted` only.
        """
        shot = step.media.get("screenshot")
        shown = (Part("image", media=shot, role="screenshot"),) if shot else ()
        return (
            Message("system", (Part("text", system_prompt() + _TASK.format(step.instruction)),)),
            Message("user", (Part("text", _NEXT + self._past(step, predicted)), *shown)),
        )

    def _past(self, step: Step, predicted: Sequence[Action | None] | None) -> str:
        past = step.history if self._history == "gold" else predicted or ()
        if self._history == "none" or not past:
            return ""
        first = max(0, len(past) - _LAST)
        said = [
            f"\n{number}. {action.words if action and is_told(action) else _UNSAID}"
            for number, action in enumerate(past[first:], first + 1)
        ]
        return _BEFORE + "".join(said)


# What the recorded agent did, in the form that OSWorld's prompt asks for, and the baselines.

BASELINES: Final = ("oracle", "center")
"""`oracle` answers with what the recorded agent did; `center` clicks the middle of the screen."""

_USUAL: Final[Screen] = (1920, 1080)  # paper, Appendix C.3
_HOLE: Final = "\0"  # which no code has: Python spells it out
_BY: Final = frozenset({"move_by", "drag_by"})


def target(step: Step, *, size: Screen) -> Target | None:
    """The recorded turn as code, also where it was said in another action space.

    Args:
        step: of OSWorld.
        size: width and height of the screenshot as the model is shown it, in pixels.

    Returns:
        None where the turn is not understood, or does something at a place that nobody says, or
        on a screen of unknown size.
    """
    calls = calls_of(step.source).calls
    found = actions_of(calls)
    if not found or not is_whole(found):
        return None
    by = any(isinstance(call, Call) and call.kind in _BY for call in calls)
    if (needs_places(found) and min(step.screen) < 1) or (by and size != step.screen):
        return None
    lines, marked, places = [], [], []
    for call in calls:
        assert not isinstance(call, Code)  # `actions_of` understood them all
        pair = _place(call, step.screen, size)
        lines.append(spelled(call, f"{pair[0]:g}, {pair[1]:g}" if pair else ""))
        shown = spelled(call, _HOLE if pair else "")
        marked.append(shown.replace(PLACE, "bbox").replace(_HOLE, PLACE))
        places += [pair] if pair else []
    return Target(_fenced(lines), _fenced(marked), tuple(places))


def _place(call: Call, screen: Screen, size: Screen) -> Pair | None:
    if call.kind in _BY or call.x is None or call.y is None:
        return None
    if min(screen) < 1:
        return call.x, call.y
    return place(Point(call.x, call.y, "px"), screen, space="px", size=size)


def _fenced(lines: Sequence[str]) -> str:
    """Code in a block; a word in a block of its own, as the prompt asks for it."""
    blocks: list[str] = []
    code: list[str] = []
    for line in [*lines, ""]:
        if line in WORDS or not line:
            blocks += ["```python\n" + "\n".join(code) + "\n```"] if code else []
            blocks += [f"```{line}```"] if line else []
            code = []
        else:
            code.append(line)
    return "\n".join(blocks)


def policy(name: str, options: Mapping[str, str]) -> Callable[[Step], str]:
    """The rule of that name: a step's answer.

    Args:
        name: one of `BASELINES`.
        options: as given with `-M key=value`; there are none.

    Raises:
        UsageError: there is no such rule, or an option is given.
    """
    if name not in BASELINES:
        raise UsageError(
            f'osworld has no baseline "{name}"',
            where=f"--model baseline:{name}",
            expected=f"one of {', '.join(BASELINES)}",
        )
    for option in options:
        raise UsageError(f"baseline:{name} has no options", where=f"-M {option}={options[option]}")
    return _oracle if name == "oracle" else _center


def _oracle(step: Step) -> str:
    found = target(step, size=step.screen)
    return found.text if found else ""


def _center(step: Step) -> str:
    width, height = step.screen if min(step.screen) > 0 else _USUAL
    return _fenced([f"pyautogui.click({width // 2}, {height // 2})"])


class OsWorld(Benchmark):
    """OSWorld: what does the agent do next on the desktop, given the screenshot?

    Args:
        options: `history`, `alignment`, `examples`; unknown ones are a `UsageError`.
    """

    title = "OSWorld"
    detailed_actions = True
    holds = "rollouts of agents on desktops: screenshots, recordings, results; the next action"
    tags = loader.TAGS
    roles = loader.ROLES
    subsets = (*groups(), *sets()["osworld"])
    overview = View
    score_files = RolloutScorer()
    baselines: Sequence[str] = BASELINES
    allowed: Mapping[str, Sequence[str]] = OPTIONS

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._examples = Path(self.options["examples"]) if self.options["examples"] else None
        if self._examples is not None and not self._examples.is_dir():
            raise UsageError(
                "there is no such folder",
                where=f"-T examples={self._examples}",
                expected="OSWorld's evaluation_examples/examples",
            )
        self._align: AlignBy = "pictures" if self.options["alignment"] == "pictures" else "clock"
        self._prompt = Prompt(self.options)
        self.prompt_hash = self._prompt.hash
        profile = StepProfile()
        self.profiles: Mapping[str, Profile] = {profile.name: profile}

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        """Read the rollouts."""
        return loader.load(
            data,
            examples=self._examples,
            align=self._align,
            check_media=check_media,
            strict=strict,
        )

    def detect(self, data: Path) -> bool:
        """Whether a trajectory is there, or a result of a known domain."""
        return recognises(data)

    def fingerprint(self, data: Path) -> str:
        """SHA-256 over trajectories, results and instructions."""
        return loader.fingerprint(data)

    def named(self, step: Step) -> Step:
        """The step with its group: all rollouts of one example."""
        return loader.named(step)

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        """The conversation for one step; `predicted` is used with `history=predicted` only."""
        return self._prompt.conversation(step, predicted)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """What the recorded agent did, as code; None where it cannot be said.

        Raises:
            UsageError: a unit other than pixels, in which code has its places.
        """
        if space not in (None, "px"):
            raise UsageError(
                f"code has its places in pixels, not in {space}",
                expected="px",
                remedy="leave the unit out",
            )
        return target(step, size=size or step.screen)

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """The rule of that name: a step's answer."""
        return policy(name, options)

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """A model's text as an action, for histories of predictions; None if it is none.

        Its words are the model's code, with places as it wrote them.
        """
        said = parse(text)
        return (
            None
            if isinstance(said, str)
            else as_action(said.statements, space="px", said=said.code)
        )

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Why a verdict is what it is, and what can be drawn of it."""
        return explain(step, verdict, self.profiles[profile], receipt=receipt)
