"""The task `osworld`: turns of OSWorld's rollouts, the paper's prompt, and a profile of our own.

The paper scores the share of examples that succeed, which needs no model's text: `omnidata score
osworld RESULTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, TypedDict

from msgspec import structs

from omnidata.actions import Action, Pair, Point, Screen, Space, centre
from omnidata.dialects.code_values import Names
from omnidata.dialects.pyautogui import WORDS, Call, Code, as_action, code_of
from omnidata.errors import UsageError
from omnidata.jsontext import hash_of
from omnidata.tasks.benchmark import (
    Benchmark,
    Card,
    Episodes,
    History,
    Note,
    Paper,
    ParsedAnswer,
    Receipt,
    Speech,
)
from omnidata.tasks.coordinates import place, resizing
from omnidata.tasks.desktops import UNSAID, history_words
from omnidata.tasks.diagnosis import diagnose
from omnidata.tasks.explaining import SCREENSHOT, Turn, explain, overlays_of
from omnidata.tasks.loading import prompt_text
from omnidata.tasks.observation import OPTIONS as OPTIONS_OF_TREES
from omnidata.tasks.observation import (
    TELLS_PLACES,
    VARIATION,
    Element,
    Kind,
    ScreenDisplay,
    effective_options,
    screenshot_part,
    tag_at,
    tags,
)
from omnidata.tasks.osworld import load as loader
from omnidata.tasks.osworld.actions import (
    ParsedResponse,
    actions_of,
    calls_for,
    calls_of,
    move,
    parse,
)
from omnidata.tasks.osworld.overview import View
from omnidata.tasks.osworld.rules import (
    NEAR,
    Done,
    StepRule,
    details_of,
    is_whole,
    judge,
    needs_places,
    type_of,
)
from omnidata.tasks.osworld.scoring import RolloutScorer
from omnidata.tasks.osworld.suite import LIST, TaskFiles
from omnidata.tasks.osworld.tree import EVALUATION, GROUPS, SETS
from omnidata.tasks.profile import Profile
from omnidata.tasks.published import HISTORY, read_published
from omnidata.tasks.sentences import format_point, gap, quote
from omnidata.types import (
    PLACE,
    Conversation,
    Explanation,
    LoadedDataset,
    Message,
    Part,
    Publication,
    Remote,
    Step,
    Target,
    Verdict,
)


class _Record(TypedDict, total=False):
    code: str


def _answer(answer: ParsedResponse, step: Step, receipt: Receipt) -> ParsedAnswer[Done]:
    found = actions_of(answer.statements)
    resized = resizing(receipt, step.screen, where=step.sample_id)
    on_screen = move(found, resized.to_screen) if found and resized else found
    action = as_action(answer.statements, space="px", said=answer.code)
    return ParsedAnswer(
        Done(on_screen, found),
        {"code": answer.code},
        (structs.replace(action, then=()), *action.then) if action else (),
        is_exact=answer.as_prompted,
    )


# OSWorld's prompt for agents that see the screenshot alone (paper, Appendix C.2.1).
#
# The lines around it are those of the release's agent. It shows the last three screenshots with the
# answers to them; here the last three actions are texts, since a step holds one screenshot.

OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "history": ("gold", "none", "predicted"),
    "alignment": ("clock", "pictures"),
    "examples": ("",),
    **OPTIONS_OF_TREES,
}
"""`alignment` sets how clips are cut out of recordings; `examples` is the suite's folder of that
name, with the instructions, or a list of its tasks."""

_TASK: Final = "\nYou are asked to complete the following task: {}"
_NEXT: Final = (
    "Given the screenshot as below. What's the next step that you will do to help with the task?"
)
_NEXT_OF: Final[Mapping[Kind, str]] = {
    "a11y": "Given the info from accessibility tree as below:\n{}\nWhat's the next step that you "
    "will do to help with the task?",
    "screenshot+a11y": "Given the screenshot and info from accessibility tree as below:\n{}\n"
    "What's the next step that you will do to help with the task?",
    "som": "Given the tagged screenshot and info from accessibility tree as below:\n{}\nWhat's the "
    "next step that you will do to help with the task?",
}
_SEEN: Final[Mapping[Kind, str]] = {
    "screenshot": "of an image, which is the screenshot of the computer screen and you will "
    "predict the action of the computer based on the image.",
    "a11y": "of the desktop by accessibility tree, which is based on AT-SPI library. And you will "
    "predict the action of the computer based on the accessibility tree.",
    "screenshot+a11y": "of the desktop by 1) a screenshot; and 2) accessibility tree, which is "
    "based on AT-SPI library. \nAnd you will predict the action of the computer based on the "
    "screenshot and accessibility tree.",
    "som": "of the desktop by 1) a screenshot with interact-able elements marked with numerical "
    "tags; and 2) accessibility tree, which is based on AT-SPI library. And you will predict the "
    "action of the computer based on the image and text information.",
}
"""The parts that differ by observation: of Appendix C.2.2 for marks, else of the release."""
_CODE: Final = "Return one line or multiple lines"
_MARKS: Final = """\
You can replace x, y in the code with the tag of the element you want to operate with. such as:
```python
pyautogui.moveTo(tag_3)
pyautogui.click(tag_2)
pyautogui.dragTo(tag_1, button='left')
```
When you think you can directly output precise x and y coordinates or there is no tag on which you \
want to interact, you can also use them directly.
But you should be careful to ensure that the coordinates are correct.
"""
_BEFORE: Final = "\nThe last actions, the latest at the end:"
_LAST: Final = 3
"""Rounds that an agent is reminded of (section 4.1)."""

_USUAL: Final[Screen] = (1920, 1080)  # paper, Appendix C.3
_HOLE: Final = "\0"  # which no code has: Python spells it out
_BY: Final = frozenset({"move_by", "drag_by"})


@cache
def system_prompt(kind: Kind = "screenshot") -> str:
    """Return the system prompt without the task.

    Examples:
        >>> system_prompt().splitlines()[0]
        'You are an agent which follow my instruction and perform desktop computer tasks ...'
    """
    text = prompt_text("osworld", "osworld").replace(_SEEN["screenshot"], _SEEN[kind])
    return text.replace(_CODE, _MARKS + _CODE) if kind == "som" else text


class _Speech(Speech):
    asked = "action"

    def right_actions(self, step: Step) -> Sequence[Action]:
        found = as_action(calls_of(step.source).calls, space="px")
        return (structs.replace(found, then=()), *found.then) if found and is_whole([found]) else ()

    def takes(self, actions: Sequence[Action]) -> int:
        return len(actions)

    def adopt(self, actions: Sequence[Action], step: Step, receipt: Receipt) -> ParsedAnswer[Done]:
        """Return the actions as calls of pyautogui, in pixels of the sent screenshot."""
        calls = [call for action in actions for call in calls_for(action)]
        lines = [
            code_of(call, f"{call.x!r}, {call.y!r}" if call.x is not None else "") for call in calls
        ]
        return _answer(ParsedResponse(tuple(calls), "\n".join(lines)), step, receipt)


class _Episodes(Episodes):
    def success(self, steps: Sequence[Step], row: Mapping[str, Any]) -> bool:
        """Return whether the rollout's score is 1; an unscored one has not succeeded."""
        return steps[-1].tags.get("outcome") == "success"


class OsWorld(Benchmark):
    """OSWorld: what does the agent do next on the desktop, given the screenshot?

    Args:
        name: "osworld".
        options: of `allowed`; unknown ones are a `UsageError`.
    """

    card = Card(
        title="OSWorld",
        holds="predict the next action on a desktop from screenshots and recordings; score results",
        sources=(
            Publication(
                "OSWorld, verified trajectories",
                "https://huggingface.co/datasets/xlangai/ubuntu_osworld_verified_trajs",
                "mit",
                remote=Remote(
                    "hf://datasets/xlangai/ubuntu_osworld_verified_trajs",
                    archives=("*.zip",),
                    note="a zip per model and run: choose with --only. The images of the "
                    "virtual machine are another dataset, which is not fetched",
                ),
                paper="2404.07972",
            ),
        ),
        platform="desktop",
        tags=loader.TAGS,
        roles=loader.ROLES,
        other_moments=("screenshot_after", "video_after"),
        subsets=(*GROUPS, *SETS["osworld"]),
        detailed_actions=True,
        answer_type=_Record,
    )
    allowed: Mapping[str, Sequence[str]] = OPTIONS
    rules = (StepRule(),)
    baselines = ("oracle", "center")
    files = loader.ResultTree()
    paper = Paper(
        published=partial(read_published, "omnidata.tasks.osworld", "osworld"),
        variations=(HISTORY, VARIATION),
        overview=View,
    )
    speech = _Speech()
    episodes = _Episodes()

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self.options = effective_options(options, dict(self.options))
        place = Path(self.options["examples"]) if self.options["examples"] else None
        if place is not None and not place.exists():
            raise UsageError(
                "there is no such file or folder",
                where=f"-T examples={place}",
                expected=f"OSWorld's {EVALUATION}, its folder of examples, or a list like {LIST}",
            )
        files = None if place is None else TaskFiles.at(place)
        self._examples = files.examples if files else None
        self.rollouts = RolloutScorer(files)
        self._screens = ScreenDisplay(self.options, loader.elements)
        kind = self._screens.kind
        seen = [self.options[name] for name in OPTIONS_OF_TREES if name in self.options]
        words = [system_prompt(kind), _TASK, _NEXT_OF.get(kind, _NEXT)]
        self.prompt_hash = hash_of([self.options["history"], *words, _BEFORE, UNSAID, _LAST, *seen])

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        return loader.load(
            data,
            examples=self._examples,
            align="pictures" if self.options["alignment"] == "pictures" else "clock",
            check_media=check_media,
            strict=strict,
        )

    def steps(self, data: Path, note: Note) -> Iterable[Step]:
        return self.load(data, check_media=False).steps

    def group(self, step: Step) -> Step:
        """Group all rollouts of one example, of any agent."""
        return replace(step, group=step.source["example_id"])

    def elements(self, step: Step) -> Sequence[Element]:
        return loader.elements(step)

    def prompt(self, step: Step, history: History) -> Conversation:
        shot = step.media.get("screenshot")
        shown = [Part("image", media=shot, role="screenshot")] if shot else []
        actions = history.actions(step)
        first = max(0, len(actions) - (_LAST if history.window is None else history.window))
        lines = [
            f"\n{number}. {history_words(action)}"
            for number, action in enumerate(actions[first:], first + 1)
        ]
        past = _BEFORE + "".join(lines) if lines else ""
        asked = Part("text", _NEXT + past)
        if seen := self._screens.observation(step):
            text = _NEXT_OF[seen.kind].format(seen.text.rstrip("\n"))
            asked = Part("text", text + past, about=seen.about)
            shown = [found for part in shown if (found := screenshot_part(seen, part))]
        system = system_prompt(self._screens.kind) + _TASK.format(step.instruction)
        return (
            Message("system", (Part("text", system),)),
            Message("user", (asked, *shown)),
        )

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[Done]:
        names: Names = {}
        if marked := self._screens.marked_elements(step):
            done = actions_of(calls_of(step.source).calls) or ()
            acted = [centre(region) for one in done for region in (*one.start, *one.end)]
            resized = resizing(receipt, step.screen, where=step.sample_id)
            places = [(point.x, point.y) for point in acted]
            names = tags(marked, step.screen, places, resized=resized)
        return _answer(parse(text, names), step, receipt)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """Return the recorded turn as code, whatever its action space.

        Args:
            step: of OSWorld.
            space: "px" or None.
            size: width and height of the screenshot as sent, in pixels.

        Returns:
            None if the turn is not understood, lacks a place, or needs the unknown size of the
            screen.

        Raises:
            UsageError: a unit other than pixels.
        """
        if space not in (None, "px"):
            raise UsageError(
                f"code has its places in pixels, not in {space}",
                expected="px",
                remedy="leave out coordinates",
            )
        size = step.screen if self._screens.kind in TELLS_PLACES else size or step.screen
        marked = self._screens.marked_elements(step)
        calls = calls_of(step.source).calls
        found = actions_of(calls)
        if not found or not is_whole(found):
            return None
        by = any(isinstance(call, Call) and call.kind in _BY for call in calls)
        if (needs_places(found) and min(step.screen) < 1) or (by and size != step.screen):
            return None
        lines: list[str] = []
        template: list[str] = []
        points: list[Pair] = []
        for call in calls:
            assert not isinstance(call, Code)  # `actions_of` understood them all
            pair = None
            if call.kind not in _BY and call.x is not None and call.y is not None:
                pair = call.x, call.y
                if min(step.screen) >= 1:
                    point = Point(*pair, "px")
                    pair = place(point, step.screen, space="px", size=size)
            tag = tag_at(marked, (call.x or 0, call.y or 0)) if pair else None
            if tag:
                lines.append(code_of(call, tag))
                template.append(code_of(call, tag).replace(PLACE, "bbox"))
                continue
            lines.append(code_of(call, f"{pair[0]:g}, {pair[1]:g}" if pair else ""))
            held = code_of(call, _HOLE if pair else "")
            template.append(held.replace(PLACE, "bbox").replace(_HOLE, PLACE))
            points += [pair] if pair else []
        return Target(_code_blocks(lines), _code_blocks(template), tuple(points))

    def policy(self, name: str, steps: Sequence[Step]) -> Callable[[Step], str]:
        """`oracle` repeats the recorded agent; `center` clicks the middle."""
        return super().policy(name, steps) if name == "oracle" else _center

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        parsed: ParsedAnswer[Done] | None,
        profile: Profile,
        receipt: Receipt,
    ) -> Explanation:
        recorded = actions_of(calls_of(step.source).calls)
        said, written = parsed.value if parsed else (None, None)
        target = _turn(recorded)
        return explain(
            verdict,
            profile,
            lambda record, right: _sentence(recorded or [], said, step.screen, right=right),
            target_label=target.label if target else "",
            target_labels=target.kinds if target else (),
            answer_label=lambda record: turn.label if (turn := _turn(said)) else "",
            overlays=lambda: {SCREENSHOT: overlays_of(target, _turn(said))},
            noun="action",
            diagnosis=lambda record: diagnose(
                step, recorded or (), written or (), receipt=receipt, reach=1000 * NEAR
            ),
        )


def _code_blocks(lines: Sequence[str]) -> str:
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


def _center(step: Step) -> str:
    width, height = step.screen if min(step.screen) > 0 else _USUAL
    return _code_blocks([f"pyautogui.click({width // 2}, {height // 2})"])


# How an answer differs from the recorded turn.


def _turn(found: Sequence[Action] | None) -> Turn | None:
    if found is None:
        return None
    starts = tuple(region for one in found for region in one.start)
    ends = tuple(region for one in found for region in one.end)
    return Turn(tuple(map(type_of, found)), starts, ends)


def _sentence(
    done: Sequence[Action], said: Sequence[Action] | None, screen: Screen, *, right: bool
) -> str:
    if said is None:
        return "a line of the answer is unreadable"
    if right:
        return f"the answer has the actions of the recorded agent: {_type_names(done)}"
    if list(map(type_of, said)) != list(map(type_of, done)):
        given = _type_names(said) or "nothing"
        return f"the answer is {given}, the recorded agent's is {_type_names(done)}"
    pairs = zip(done, said, strict=True)
    unlike = ((one, other) for one, other in pairs if not judge([one], [other], screen)[1])
    return next((_unlike(one, other, screen) for one, other in unlike), "the actions differ")


def _type_names(found: Sequence[Action]) -> str:
    return ", ".join(map(type_of, found))


def _unlike(done: Action, said: Action, screen: Screen) -> str:
    if details_of(done) != details_of(said):
        return f"{type_of(done)}: {quote(_detail(said))} in place of {quote(_detail(done))}"
    found = []
    for name, wanted_at, given_at in (
        ("point", done.start, said.start),
        ("end", done.end, said.end),
    ):
        if wanted_at and given_at and wanted_at != given_at:
            point = centre(given_at[0])
            where = gap(point, wanted_at, screen, noun="recorded")
            found.append(f"the {name} {format_point(point)} is {where}")
        elif wanted_at and not given_at:
            found.append(f"{type_of(done)} has no place")
    return "; ".join(found)


def _detail(action: Action) -> str:
    if action.kind != "keys":
        return " ".join(map(str, details_of(action)))
    keys = (" " if key == "space" else key for key in action.keys)
    return "".join(key if len(key) == 1 else f"[{key}]" for key in keys)
