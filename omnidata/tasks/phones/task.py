"""The base class of phone benchmarks: prompt, reading, targets, baselines, explanations."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypedDict, get_args

from msgspec.structs import replace

from omnidata.actions import Action, Kind, Pair, Point, Screen, Space, centre, convert
from omnidata.dialects import Asked, CannotSayError
from omnidata.errors import plural
from omnidata.jsontext import compact, hash_of
from omnidata.loaders.row_sizes import fed_size
from omnidata.loaders.rows import action_fields
from omnidata.tasks.benchmark import Benchmark, History, ParsedAnswer, Receipt, Speech
from omnidata.tasks.coordinates import Side, in_shares, place, to_screen
from omnidata.tasks.explaining import explain_by_action
from omnidata.tasks.loading import prompt_text
from omnidata.tasks.observation import (
    TELLS_PLACES,
    ScreenDisplay,
    effective_options,
    resolve_mark,
    reword,
    tag_at,
    tags,
    texts,
)
from omnidata.tasks.overview import View
from omnidata.tasks.phones.actions import (
    CORRECTED,
    WAIT,
    Truth,
    as_finger,
    direction_of,
    middle,
    place_in_shares,
    touch_of,
    with_direction,
)
from omnidata.tasks.phones.answers import Form, as_dict
from omnidata.tasks.phones.answers import parse as parse_form
from omnidata.tasks.phones.gui_r1 import GUI_R1, GuiR1Rule
from omnidata.tasks.phones.rules import Evaluator, PhoneRule
from omnidata.tasks.phones.step_rows import ROW, SCROLL, WordSense
from omnidata.tasks.pointing import resizing_of
from omnidata.tasks.profile import Profile
from omnidata.tasks.sentences import (
    RuleWords,
    explain_place,
    explain_text,
    format_point,
    gap,
    is_inside,
    quote,
)
from omnidata.types import (
    PLACE,
    Conversation,
    Explanation,
    Message,
    Overlays,
    Part,
    Step,
    Target,
    Verdict,
)

# The prompt for phones: OmniGUI's unified prompt, its actions those of the dataset, by name.
#
# Actions have names here where OmniGUI's prompt has numbers: Android in the Wild has numbers of its
# own, and the same ones for other actions.

SPACES: tuple[Space, ...] = ("norm1000", "px", "rel")
HISTORY = ("gold", "none", "predicted")
SENSES = ("own", "content", "finger")
"""What directions in words are said of, in rows and in dialects that keep the words of rows: what
the maker of each form means, or what the user says of them all."""
_UNITS: Mapping[Space, str] = {
    "norm1000": "Range: 0-1000 (normalized). [0, 0] = top-left, [1000, 1000] = bottom-right.",
    "px": "In pixels of the screenshot.",
    "rel": "Range: 0-1 (normalized). [0, 0] = top-left, [1, 1] = bottom-right.",
}
_OWN_SENSE = ("scroll", SENSES[0])
_ASK = "Analyze the current screenshot and output the next action as JSON."


@dataclass(frozen=True, slots=True)
class Wording:
    """The dataset's part of the prompt.

    Attributes:
        actions: the rows of the table: name and parameters.
        rules: its own, one sentence each.
        examples: the purpose, and the answer.
    """

    actions: Sequence[tuple[str, str]]
    rules: Sequence[str]
    examples: Sequence[tuple[str, str]]

    def system(self, space: Space) -> str:
        """Return the system prompt, which asks for places in a unit of coordinates."""
        text = prompt_text("phones", "phone_v1").rstrip("\n")
        actions = "\n".join(f"| {name} | {given or '(none)'} |" for name, given in self.actions)
        rules = "\n".join(f"- {rule}" for rule in self.rules)
        examples = "\n".join(f"- {what}: {answer}" for what, answer in self.examples)
        for key, value in (
            ("{actions}", actions),
            ("{unit}", _UNITS[space]),
            ("{rules}", rules),
            ("{examples}", examples),
        ):
            text = text.replace(key, value)
        return text


# Right answers of phone datasets as JSON with places, and the rules that need no model.

BASELINES = ("oracle", "center", "majority", "always-wait")
_CENTRE = Point(0.5, 0.5, "rel")


def _without_marks(text: str | None) -> str | None:
    return text.replace(PLACE, "bbox") if text else text


class PhoneRecord(TypedDict, total=False):
    """An answer in lines of scores."""

    form: str
    kind: str
    direction: str | None
    text: Any
    touch: tuple[Side, Side] | None
    lift: tuple[Side, Side] | None


class PhoneView(View):
    """The counts, and the senses of directions in rows."""

    def remarks(self) -> list[str]:
        senses = Counter(
            str(step.source[SCROLL]) for step in self.source.steps if SCROLL in step.source
        )
        return [
            f"{plural(count, 'scroll')} in words: directions of the {sense}"
            for sense, count in senses.items()
        ]


class PhoneSpeech(Speech):
    """Dialects ask a benchmark of phones for the next action.

    Args:
        benchmark: writes and reads actions in its own form.
    """

    asked: ClassVar[Asked] = "action"

    def __init__(self, benchmark: PhoneBenchmark) -> None:
        self._benchmark = benchmark
        self.label_sense = benchmark.given_sense or benchmark.labels

    def goal(self, step: Step) -> str:
        return self._benchmark.goal(step)

    def fed_size(self, step: Step) -> Screen | None:
        row = step.source.get(ROW)
        return fed_size(row) if isinstance(row, Mapping) else None

    def right_actions(self, step: Step) -> Sequence[Action]:
        truth = self._benchmark.truth(step.source, step.screen)
        if truth is None:
            return ()
        places = tuple(Point(*pair, "rel") for pair in self._benchmark.places(truth.action))
        return (replace(truth.action, start=places[:1], end=places[1:]),)

    def adopt(self, actions: Sequence[Action], step: Step, receipt: Receipt) -> ParsedAnswer[Any]:
        """Return the action in the benchmark's form, which has one for a finger, key or wheel.

        Raises:
            CannotSayError: the form has no such action, or it lacks a part, e.g. its place.
        """
        action = as_finger(actions[0])
        ends = [centre(region) for region in (*action.start[:1], *action.end[:1])]
        try:
            body = self._benchmark.body(action, [[point.x, point.y] for point in ends])
            taken, exact = self._benchmark.read_prompted(body)
        except ValueError as error:
            raise CannotSayError(str(error)) from None
        return self._benchmark.answer(taken, "prompted", step, receipt, is_exact=exact)


class PhoneBenchmark(Benchmark):
    """What does the agent do next, given the screen?

    Attributes:
        evaluators: by the names of their rules, the default first.
        by: the axes of their tables.
        wording: the dataset's part of the prompt.
        labels: the sense of directions in the labels that others make of the dataset.
        names: of actions in the prompt, by the labels of actions; those that `body` writes itself
            need none.
        placed: the kinds of actions whose answers have a coordinate.

    Args:
        name: of the benchmark.
        options: as given with `-T key=value`.

    Raises:
        UsageError: an option has an unknown name or value.
    """

    evaluators: ClassVar[Mapping[str, Evaluator]]
    by: ClassVar[Mapping[str, Sequence[str]]]
    wording: ClassVar[Wording]
    labels: ClassVar[WordSense] = "content"
    names: ClassVar[Mapping[str, str]]
    placed: ClassVar[Collection[Kind]] = ("tap", "long_press")
    allowed: Mapping[str, Sequence[str]] = {"history": HISTORY, "coordinates": SPACES}
    baselines: Sequence[str] = BASELINES

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        # The default stands in no run, as in those from before there was the option.
        given = {key: value for key, value in self.options.items() if (key, value) != _OWN_SENSE}
        self.options = effective_options(options, given)
        self._space = next(space for space in SPACES if space == self.options["coordinates"])
        self.screens = ScreenDisplay(self.options, self.elements)
        kind = self.screens.kind
        self.system = reword(self.wording.system(self._space), kind)
        self.prompt_hash = hash_of([dict(self.options), self.system, _ASK, *texts(kind)])
        self.speech = PhoneSpeech(self)
        rules: list[PhoneRule] = []
        for each, evaluator in self.evaluators.items():
            made = GuiR1Rule if evaluator is GUI_R1 else PhoneRule
            rules.append(made(each, evaluator, self.truth, self.by, self._space))
            if evaluator.as_released:
                rules[-1].parse = partial(self.parse, as_released=evaluator.as_released)
        self.rules = rules

    @property
    def given_sense(self) -> WordSense | None:
        """The user's sense of directions in words; None for that of the rows."""
        given = self.options.get("scroll")
        return next((sense for sense in get_args(WordSense) if sense == given), None)

    @abstractmethod
    def truth(self, row: Mapping[str, Any], screen: Screen) -> Truth | None:
        """Return the expert's action and the elements; None if unreadable."""

    @abstractmethod
    def read_prompted(self, body: Mapping[str, Any]) -> tuple[Action, bool]:
        """Read an answer in the prompt's form; the flag is whether it obeys the form exactly."""

    def command(self, text: str) -> Action | None:
        """Read a whole output as a command of the dataset's own, its places from 0 to 1000.

        By default no text is one.
        """
        return None

    def body(self, action: Action, places: Sequence[Any]) -> dict[str, Any]:
        """Return an action in the prompt's form.

        Raises:
            ValueError: it has no form.
        """
        if action.label not in self.names:
            raise ValueError(f"{self.card.title} has no {action.label}")
        named = {"action_type": self.names[action.label]}
        return {**named, "coordinate": places[0]} if places else named

    def places(self, action: Action) -> Sequence[Pair]:
        """Return the places of an action's answer, in the action's unit: that of its touch."""
        touch = middle(action.start) if action.kind in self.placed else None
        return (touch,) if touch else ()

    def goal(self, step: Step) -> str:
        """Return the task of the agent."""
        return step.instruction

    def past(self, action: Action) -> Action | None:
        """Return an action for histories; None for a swipe without a known direction."""
        return with_direction(action)

    def prompt(self, step: Step, history: History) -> Conversation:
        """Return the system prompt, then the screen, the goal and the earlier actions."""
        lines = history.lines(step)
        blocks = [f"Goal: {self.goal(step)}", f"Step: {step.step_index}"]
        if lines:
            blocks.append("Action History:\n" + "\n".join(lines))
        shot = step.media.get("screenshot")
        shown = (Part("image", media=shot, role="screenshot"),) if shot else ()
        asked = "\n\n".join([*blocks, reword(_ASK, self.screens.kind)])
        return (
            Message("system", (Part("text", self.system),)),
            Message("user", (*self.screens.parts(step, shown), Part("text", asked))),
        )

    def parse(
        self, text: str, step: Step, receipt: Receipt, as_released: Form | None = None
    ) -> ParsedAnswer[Action]:
        """Read an answer in any of the forms of `omnidata.tasks.phones.answers`."""
        marks = self._marks(step, receipt) if self.screens.kind == "som" else None

        def read(body: Mapping[str, Any]) -> tuple[Action, bool]:
            return self.read_prompted(body if marks is None else resolve_mark(body, marks))

        found = parse_form(text, read, as_released=as_released, command=self.command)
        return self.answer(found.action, found.form, step, receipt, is_exact=found.as_prompted)

    def _marks(self, step: Step, receipt: Receipt) -> Mapping[str, Pair]:
        truth = self.truth(step.source, step.screen)
        touch = touch_of(truth.action) if truth else None
        acted = [(touch[0] * step.screen[0], touch[1] * step.screen[1])] if touch else []
        marked = self.screens.marked_elements(step)
        resized = resizing_of(step, receipt, self._space)
        return tags(marked, step.screen, acted, space=self._space, resized=resized)

    def answer(
        self, action: Action, form: Form, step: Step, receipt: Receipt, *, is_exact: bool
    ) -> ParsedAnswer[Action]:
        """Return an action as an answer, whose value has points from 0 to 1 of the screen.

        Args:
            action: as it was read.
            form: of the answer; it sets the unit of its places.
            step: of the question.
            receipt: has the size of the sent picture.
            is_exact: whether the answer is exactly as prompted.
        """
        space = self._space if form == "prompted" else "norm1000"
        ends = (action.start, action.end if action.kind == "swipe" else ())
        start, end = (tuple(map(centre, regions[:1])) for regions in ends)
        done = self.past(replace(action, start=start, end=end))
        record = {"form": form, **as_dict(action)}
        if space == self._space:
            with suppress(ValueError):
                record = self.body(action, [[point.x, point.y] for point in (*start, *end)])
        value = in_shares(to_screen(action, resizing_of(step, receipt, space)), step.screen)
        return ParsedAnswer(value, record, (done,) if done else (), is_exact)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        truth = self.truth(step.source, step.screen)
        if truth is None:
            return None
        action, unit, screen = truth.action, space or self._space, step.screen
        if found := self._mark_target(step, action):
            return found
        wanted = self.places(action)
        if wanted and unit == "px" and min(screen) < 1:
            return None
        if size is None or self.screens.kind in TELLS_PLACES:
            size = screen
        known = screen if min(screen) > 0 else (1, 1)
        points = [place(Point(x, y, "rel"), known, space=unit, size=size) for x, y in wanted]
        unmarked = replace(action, text=_without_marks(action.text), app=_without_marks(action.app))
        try:
            text = compact(self.body(action, [list(pair) for pair in points]))
            marked = compact(self.body(unmarked, [PLACE] * len(points)))
        except ValueError:
            return None
        return Target(text, marked.replace(f'"{PLACE}"', PLACE), tuple(points))

    def _mark_target(self, step: Step, action: Action) -> Target | None:
        places = self.places(action) if self.screens.kind == "som" else ()
        if not places or min(step.screen) < 1:
            return None
        width, height = step.screen
        marked = self.screens.marked_elements(step)
        found = [tag_at(marked, (x * width, y * height)) for x, y in places]
        if None in found:
            return None
        text = compact(self.body(action, found))
        return Target(text, text)

    def retarget(self, step: Step, action: Action) -> Step:
        """Return the step with another right action, its first place from 0 to 1.

        To a rule that knows elements, a box is the element.

        Raises:
            ValueError: a place on a screen of unknown size.
            CannotSayError: no finger does it.
        """
        if action.start and min(step.screen) < 1 and action.start[0].space == "px":
            raise ValueError("the size of the screen is unknown: give the place in `rel`")
        action = as_finger(action)
        start = tuple(place_in_shares(each, step.screen) for each in action.start[:1])
        end = tuple(map(centre, action.end[:1]))
        action = in_shares(replace(action, start=start, end=end), step.screen)
        source = {**step.source, CORRECTED: action_fields(action)}
        return dataclasses.replace(step, action=action, source=source)

    def policy(self, name: str, steps: Sequence[Step]) -> Callable[[Step], str]:
        """Return a baseline.

        `center` taps the middle of the screen. `majority` always gives the data's most frequent
        action, in the middle. `always-wait` waits.
        """
        if name == "oracle":
            return super().policy(name, steps)
        action = WAIT if name == "always-wait" else Action("tap", (_CENTRE,))
        if name == "majority":
            truths = (self.truth(step.source, step.screen) for step in steps)
            actions = [truth.action for truth in truths if truth]
            counts = Counter(
                replace(done, start=(), end=(), direction=direction_of(done)) for done in actions
            )
            if counts:
                action = replace(counts.most_common(1)[0][0], start=(_CENTRE,))

        def answer(step: Step) -> str:  # pixels of an unknown screen are those of 1 x 1
            screen = step.screen if min(step.screen) > 0 else (1, 1)
            pairs = self.places(action)
            points = [convert(Point(x, y, "rel"), self._space, screen) for x, y in pairs]
            return compact(self.body(action, [[point.x, point.y] for point in points]))

        return answer

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        parsed: ParsedAnswer[Action] | None,
        profile: Profile,
        receipt: Receipt,
    ) -> Explanation:
        evaluator = self.evaluators[profile.name]

        def sentence(wanted: Action, said: Action, overlays: Overlays, right: bool) -> str:
            if evaluator is GUI_R1 and right and said.label != wanted.label:
                types = f"the answer is {said.label}, the expert's action is {wanted.label}"
                return f"{types}; the profile judges the place or the text alone"
            reach, misses = evaluator.reach, evaluator.misses
            return _sentence(step, wanted, said, overlays, reach, misses, right=right)

        written = parsed.written if parsed else ()
        return explain_by_action(
            step,
            verdict,
            profile,
            written[0] if written else None,
            receipt=receipt,
            sentence=sentence,
            reach=evaluator.reach,
        )


# Why an answer to a step on a phone is right or wrong, by the rules of the phones' evaluators.


def _sentence(
    step: Step,
    wanted: Action,
    said: Action,
    overlays: Overlays,
    reach: int,
    misses: str,
    *,
    right: bool,
) -> str:
    label = said.label
    if label != wanted.label:
        sentence = f"the answer is {label}, the expert's action is {wanted.label}"
        return f"{sentence}, which the profile accepts as the same" if right else sentence
    if said.kind == "type" and (right or said.text != wanted.text):
        if right and said.text != wanted.text:
            return f"the profile accepts {quote(said.text)} for {quote(wanted.text)}"
        return explain_text(wanted, said, right=right, rule=RuleWords())
    # Of a text that is typed at a place and is the right one, the place decides.
    if said.kind not in ("tap", "long_press") and not (said.kind == "type" and wanted.start):
        return f"both are {label}" + ("" if right else ", and the profile distinguishes them")
    point, regions = overlays.answer, overlays.target
    if point is None or not regions or min(step.screen) < 1:
        return explain_place(step, "the point", point, regions, right=right, rule=RuleWords())
    sentence = f"the point {format_point(point)} is {gap(point, regions, step.screen)}"
    near = is_inside(point, regions, step.screen, reach=reach)
    if right:
        return sentence if near else f"{sentence}, which the profile's boxes allow"
    if misses:
        return f"{sentence}, but {misses}"
    return f"{sentence}, but the profile distinguishes them" if near else f"{sentence}, too far"
