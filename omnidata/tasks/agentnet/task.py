"""The task `agentnet`: steps of AgentNet and AgentNetBench, scored as OpenCUA scores them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypedDict

from msgspec.structs import replace

from omnidata.actions import Action, Point, Region, Screen, Space
from omnidata.jsontext import hash_of
from omnidata.tasks.agentnet import load as loader
from omnidata.tasks.agentnet.actions import (
    POINTED,
    boxes_of,
    code_line,
    own_actions,
    place_of,
    turn_of,
    type_of,
)
from omnidata.tasks.agentnet.answers import Response, Version, as_answer, parse
from omnidata.tasks.agentnet.load import usable_truths
from omnidata.tasks.agentnet.recordings import read_log
from omnidata.tasks.agentnet.rules import REACH, StepScore, judge
from omnidata.tasks.benchmark import (
    Benchmark,
    Card,
    Episodes,
    History,
    Note,
    ParsedAnswer,
    Receipt,
    Speech,
    hub_publication,
)
from omnidata.tasks.coordinates import answer_space, in_pixels, on_screen, place
from omnidata.tasks.desktops import UNSAID, history_words
from omnidata.tasks.diagnosis import diagnose
from omnidata.tasks.explaining import SCREENSHOT, Turn, explain, overlays_of
from omnidata.tasks.loading import prompt_text
from omnidata.tasks.profile import Profile
from omnidata.tasks.sentences import format_point, gap, quote
from omnidata.types import (
    PLACE,
    Conversation,
    Explanation,
    Message,
    Part,
    Step,
    Target,
    Verdict,
)

_UNITS: Final[Mapping[Space, str]] = {
    "rel": "shares of the screenshot, from 0 to 1, with four decimals.",
    "px": "pixels of the screenshot.",
    "norm1000": "from 0 to 1000, thousandths of the screenshot's width and height.",
}
_NOTHING: Final = "(none)"
_UNIT: Final[Screen] = (1, 1)
_MIDDLE: Final[Mapping[Space, str]] = {"rel": "0.5", "norm1000": "500"}


class _Record(TypedDict, total=False):
    code: str


class _Speech(Speech):
    asked = "action"

    def __init__(self, space: Space) -> None:
        self._space = space

    def right_actions(self, step: Step) -> Sequence[Action]:
        """Return the ground truth; a drag begins where the pointer was moved before it."""
        found: list[Action] = []
        for action in next(iter(usable_truths(step)), ()):
            if action.kind == "drag" and found and found[-1].kind == "move":
                action = replace(action, start=found.pop().start)
            found.append(action)
        return found

    def takes(self, actions: Sequence[Action]) -> int:
        return len(actions)

    def adopt(
        self, actions: Sequence[Action], step: Step, receipt: Receipt
    ) -> ParsedAnswer[Response]:
        own = [each for action in actions for each in own_actions(action)]
        return as_answer(own, "\n".join(map(code_line, own)), step, receipt, self._space)


class _Episodes(Episodes):
    def success(self, steps: Sequence[Step], row: Mapping[str, Any]) -> bool | None:
        """Return the trajectory's column `task_completed`."""
        return {"true": True, "false": False}.get(steps[0].tags.get("completed", ""))


_SOURCE: Final = hub_publication(
    "AgentNet",
    "xlangai/AgentNet",
    "mit",
    paper="2508.09123",
    archives=("*.zip", "*.z[0-9]*"),
    bytes=200_000_000_000,
    note="about 200 GB, and as much again while the zips, each in several parts, are "
    "unpacked; the rows alone are --only '*.jsonl' (1.7 GB). The licence is that of "
    "the code's repository; that of the card was not seen",
)


class AgentNet(Benchmark):
    """AgentNet: what does a person do next on the desktop, given the screenshot?

    The prompt is ours, in the words of OpenCUA's actions.
    """

    card = Card(
        title="AgentNet",
        holds="predict the next action on a desktop from screenshots, and from clips if recorded "
        "(AgentNet, AgentNetBench)",
        sources=(_SOURCE,),
        platform="desktop",
        tags=loader.TAGS,
        roles=loader.ROLES,
        subsets=("agentnet", "agentnetbench"),
        detailed_actions=True,
        answer_type=_Record,
    )
    allowed: Mapping[str, Sequence[str]] = {
        "history": ("gold", "none", "predicted"),
        "coordinates": ("rel", "px", "norm1000"),
    }
    question = "Task: {instruction}\n\nActions so far:\n{history}"
    shown = ("screenshot",)
    baselines = ("oracle", "center")
    files = loader.FILES
    episodes = _Episodes()
    recorder = staticmethod(read_log)

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._space = answer_space(self.options) or "rel"
        system = prompt_text("agentnet", "agentnet_v1")
        self.system = system.replace("{unit}", _UNITS[self._space])
        self.prompt_hash = hash_of(
            [self.options["history"], self.system, self.question, _NOTHING, UNSAID]
        )
        self.speech = _Speech(self._space)
        released = StepScore("released", self._space)
        released.parse = partial(parse, version="released", space=self._space)
        self.rules = (released, StepScore("fixed", self._space))

    def steps(self, data: Path, note: Note) -> Iterable[Step]:
        return loader.read(data, note)

    def prompt(self, step: Step, history: History) -> Conversation:
        """Return the conversation for one step; the history is the code of the steps before."""
        past = history.actions(step)
        first = history.first_shown(len(past))
        lines = (
            f"{number}. {history_words(action)}"
            for number, action in enumerate(past[first:], first + 1)
        )
        question = self.question.format(
            instruction=step.instruction, history="\n".join(lines) or _NOTHING
        )
        ref = step.media.get("screenshot")
        shot = (Part(ref.kind, media=ref, role="screenshot"),) if ref else ()
        user = Message("user", (*shot, Part("text", question)))
        return (Message("system", (Part("text", self.system),)), user)

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[Response]:
        return parse(text, step, receipt, version="fixed", space=self._space)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        actions = next(iter(usable_truths(step)), None)
        if actions is None:
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
        return Target(_code_block("\n".join(lines)), _code_block("\n".join(marked)), tuple(places))

    def policy(self, name: str, steps: Sequence[Step]) -> Callable[[Step], str]:
        """`oracle` answers with the ground truth; `center` clicks the middle of the screen."""
        return super().policy(name, steps) if name == "oracle" else self._center

    def _center(self, step: Step) -> str:
        x, y = (_MIDDLE.get(self._space, str(extent // 2)) for extent in step.screen)
        return _code_block(f"pyautogui.click(x={x}, y={y})")

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        parsed: ParsedAnswer[Response] | None,
        profile: Profile,
        receipt: Receipt,
    ) -> Explanation:
        version: Version = "fixed" if profile.name == "agentnetbench-fixed" else "released"
        truths = usable_truths(step)
        done = parsed.value.actions if parsed else ()
        written = parsed.value.written if parsed else ()
        target = _turn(truths[0], step) if truths else None

        def nearest() -> Sequence[Action]:
            return max(truths, key=lambda one: judge([one], done, version), default=())

        return explain(
            verdict,
            profile,
            lambda record, right: _sentence(step, nearest(), done, version, right=right),
            target_label=target.label if target else "",
            target_labels=target.kinds if target else (),
            answer_label=lambda record: Turn(tuple(map(type_of, written))).label,
            overlays=lambda: {SCREENSHOT: overlays_of(target, _turn(done, step) if done else None)},
            noun="action",
            diagnosis=lambda record: diagnose(
                step, nearest(), written, receipt=receipt, reach=1000 * REACH
            ),
        )


def _code_block(code: str) -> str:
    return f"```python\n{code}\n```"


# How an answer differs from the right actions, one action after the other.


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


def _sentence(
    step: Step, truth: Sequence[Action], done: Sequence[Action], version: Version, *, right: bool
) -> str:
    if not done:
        return "the answer does nothing"
    if right:
        name = type_of(truth[0])
        if name == "scroll" and done[0].direction != truth[0].direction:
            return "the released evaluator accepts any scroll"
        if name in POINTED and name == type_of(done[0]):
            return _where(step, truth[0], done[0])
        return f"the answer has the right actions: {', '.join(map(type_of, truth))}"
    types, given = [type_of(one) for one in truth], [type_of(one) for one in done]
    if given[0] not in types:
        return f"the answer is {given[0]}, the target is {', '.join(types)}"
    differ = []
    for number, action in enumerate(truth):
        if number >= len(done):
            differ.append(f"{types[number]} is missing")
        elif given[number] != types[number]:
            differ.append(f"{given[number]} is in place of {types[number]}")
        elif judge([[action]], [done[number]], version) < 1:
            differ.append(_difference(step, action, done[number], version))
    if version == "fixed" and len(done) > len(truth):
        differ.append(f"{len(done)} actions in place of {len(truth)}")
    return "; ".join(differ) or "the actions differ"


def _where(step: Step, action: Action, done: Action) -> str:
    regions, point = _regions(action, step), _point(done, step)
    if point is None or not regions:
        return f"{type_of(done)} has no usable place"
    return f"the point {format_point(point)} is {gap(point, regions, step.screen)}"


def _difference(step: Step, action: Action, done: Action, version: Version) -> str:
    name = type_of(action)
    if name in POINTED:
        return _where(step, action, done)
    if name == "write":
        return f"the text differs: {quote(done.text)} in place of {quote(action.text)}"
    if name in ("press", "hotkey"):
        return f"the keys differ: {'+'.join(done.keys)} in place of {'+'.join(action.keys)}"
    if name == "terminate":
        return f"the status is {quote(done.words)} in place of {quote(action.words)}"
    if name in ("scroll", "hscroll") and version == "fixed":
        return f"{name} goes {turn_of(done):+g} in place of {turn_of(action):+g}"
    return f"the released evaluator has no rule for {name}"
