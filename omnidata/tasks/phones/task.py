"""What tasks on phones share: prompt, targets, baselines, profiles, explanations."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from typing import Any, ClassVar, Literal, TypedDict, get_args

from msgspec.structs import replace

from omnidata.actions import (
    Action,
    Box,
    Pair,
    Point,
    Region,
    Screen,
    Space,
    centre,
    convert,
    history_text,
)
from omnidata.dialects import CannotSayError
from omnidata.errors import plural
from omnidata.jsontext import compact, hash_of, is_integer
from omnidata.loaders.row_sizes import fed_size
from omnidata.tasks.base import Benchmark
from omnidata.tasks.coordinates import Resizing, Side, place, resizing
from omnidata.tasks.explaining import (
    Reader,
    RuleWords,
    by_action,
    explain_place,
    explain_text,
    format_point,
    gap,
    is_inside,
    quote,
    read_again,
)
from omnidata.tasks.json_answers import ParseFailure
from omnidata.tasks.observation import TELLS_PLACES, Element, resolve_mark, reword, tag_at, tags
from omnidata.tasks.overview import View
from omnidata.tasks.phones import gui_r1
from omnidata.tasks.phones.actions import (
    WAIT,
    Truth,
    as_finger,
    direction_of,
    middle,
    touch_of,
    with_direction,
)
from omnidata.tasks.phones.answers import (
    Answer,
    Command,
    Form,
    Read,
    as_dict,
    from_dict,
    no_command,
    parse,
)
from omnidata.tasks.phones.step_rows import ROW, SCROLL, WordSense
from omnidata.tasks.profiles import EpisodeProfile
from omnidata.types import (
    PLACE,
    Conversation,
    Explanation,
    Message,
    Outcome,
    Overlays,
    Part,
    Profile,
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
    """What a dataset puts into the prompt.

    Attributes:
        actions: the rows of the table: name and parameters.
        rules: its own, one sentence each.
        examples: what for, and the answer.
    """

    actions: Sequence[tuple[str, str]]
    rules: Sequence[str]
    examples: Sequence[tuple[str, str]]

    def system(self, space: Space) -> str:
        """The system prompt.

        Args:
            space: the unit of coordinates that is asked for.
        """
        folder = resources.files("omnidata.tasks.phones").joinpath("prompts")
        text = folder.joinpath("phone_v1.txt").read_text(encoding="utf-8").rstrip("\n")
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
"""`oracle` answers with the expert's action; `center` taps the middle of the screen; `majority`
always gives the data's most frequent action, in the middle of the screen; `always-wait` waits."""

Body = Callable[[Action, Sequence[Any]], dict[str, Any]]
"""An action as the object that the prompt asks for, with these values in place of its places."""

PlacesOf = Callable[[Action], Sequence[Pair]]
"""The places that the answer of an action has, from 0 to 1."""

CENTRE = Point(0.5, 0.5, "rel")


def target(
    action: Action, screen: Screen, body: Body, places: PlacesOf, *, space: Space, size: Screen
) -> Target | None:
    """The expert's action, as `Task.target` gives it.

    Args:
        action: its places from 0 to 1.
        screen: width and height of the screenshot in pixels; (0, 0) where nobody knows.
        body: the dataset's.
        places: the dataset's.
        space: the unit of coordinates.
        size: width and height of the screenshot as the model is shown it, in pixels.

    Returns:
        None where it lacks a place, or pixels are asked of a screen of unknown size.
    """
    wanted = places(action)
    if wanted and space == "px" and min(screen) < 1:
        return None
    known = screen if min(screen) > 0 else (1, 1)
    found = [place(Point(x, y, "rel"), known, space=space, size=size) for x, y in wanted]
    try:
        text = compact(body(action, [list(pair) for pair in found]))
        unmarked = replace(action, text=_without_marks(action.text), app=_without_marks(action.app))
        marked = compact(body(unmarked, [PLACE] * len(found)))
    except ValueError:
        return None
    return Target(text, marked.replace(f'"{PLACE}"', PLACE), tuple(found))


def _without_marks(text: str | None) -> str | None:
    return text.replace(PLACE, "bbox") if text else text


def blind(name: str, actions: Iterable[Action]) -> Action:
    """The one action of a rule that does not look.

    Args:
        name: one of `BASELINES` but "oracle".
        actions: those of the data.
    """
    if name == "always-wait":
        return WAIT
    if name == "majority":
        usual = Counter(map(_without_places, actions)).most_common(1)
        if usual:
            return replace(usual[0][0], start=(CENTRE,))
    return Action("tap", (CENTRE,))


def _without_places(action: Action) -> Action:
    return replace(action, start=(), end=(), direction=direction_of(action))


def _write_answer(action: Action, step: Step, body: Body, places: PlacesOf, space: Space) -> str:
    """Pixels of an unknown screen are those of 1 x 1."""
    screen = step.screen if min(step.screen) > 0 else (1, 1)
    found = [convert(Point(x, y, "rel"), space, screen) for x, y in places(action)]
    return compact(body(action, [[point.x, point.y] for point in found]))


# Profiles for phones: an answer is read as an action and held against the expert's.

TruthOf = Callable[[Mapping[str, Any], Screen], Truth | None]
Matching = Callable[[Truth, Action, Screen], tuple[bool, bool] | None]
"""Type match and exact match; None for a step that the rule's source leaves out."""

_UNIT: Screen = (1, 1)
_UNSIZED: Screen = (0, 0)


def without_size(
    rule: Callable[[Truth, Action], tuple[bool, bool] | None],
) -> Matching:
    """Return a rule that needs no size of the screen."""
    return lambda truth, said, screen: rule(truth, said)


@dataclass(frozen=True, slots=True)
class Evaluator:
    """The rule of a profile, and what goes with it.

    Attributes:
        rule: holds an answer against the truth.
        reach: how far from the expert's a tap may be, in thousandths of the screen; 0 where boxes
            alone decide.
        goal_progress: which of the two is its GP.
        as_released: the form of answers that is read as its own released code does; others are read
            as they are meant.
        misses: why a tap is wrong that lies where it should; empty where the rule has no quirk.
        source, leaves_out: as `EpisodeProfile`.
        truth: what a row says was done and what was there, for a rule that looks at other elements
            than the task's; None for the task's own.
    """

    rule: Matching
    reach: int = 0
    goal_progress: Literal["GP_ratio", "GP_prefix"] = "GP_prefix"
    as_released: Form | None = None
    misses: str = ""
    source: str = ""
    leaves_out: str = ""
    truth: TruthOf | None = None


GUI_R1 = Evaluator(
    without_size(gui_r1.rule), 140, source=gui_r1.SOURCE, leaves_out=gui_r1.LEAVES_OUT
)
"""GUI-R1's own rule, whose profile has other metrics (`gui_r1.GuiR1Profile`)."""


class PhoneProfile(EpisodeProfile):
    """An evaluator over the steps of a phone dataset.

    Args:
        name: of the profile.
        evaluator: its rule, and what goes with it.
        truth: what a row says was done, and what was there.
        read: reads an answer in the form that the task's prompt asks for.
        body: writes an action in that form; a `ValueError` for what has none.
        by: the axes of the table.
        space: the unit of coordinates that the prompt asks for.
        marked: the elements that answers may name by their marks; None where there are no marks.
        command: reads the dataset's own commands.
    """

    def __init__(
        self,
        name: str,
        evaluator: Evaluator,
        truth: TruthOf,
        read: Read,
        body: Body,
        by: Mapping[str, Sequence[str]],
        space: Space,
        marked: Callable[[Step], Sequence[Element]] | None = None,
        command: Command = no_command,
    ) -> None:
        self._space, self._body = space, body
        self._command = command
        self._marked = marked
        self.name = name
        self.by = by
        self.goal_progress = evaluator.goal_progress
        self.source, self.leaves_out = evaluator.source, evaluator.leaves_out
        self._rule = evaluator.rule
        self._truth = truth
        self._read = read
        self._as_released = evaluator.as_released

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read one answer and hold it against the step's truth.

        Pixels are those of the screenshot as the model was shown it, which the receipt tells.
        """
        answer = parse(
            text,
            self._reader(step, receipt),
            as_released=self._as_released,
            command=self._command,
        )
        if isinstance(answer, ParseFailure):
            return Verdict(
                "unparsed", self._values(step, None, as_prompted=False), None, answer.reason
            )
        space = self._space if answer.form == "prompted" else "norm1000"
        resized = resizing(receipt, step.screen, where=step.sample_id) if space == "px" else None
        action = relative(answer.action, step.screen, resized)
        values = self._values(step, action, as_prompted=answer.as_prompted)
        return Verdict("ok", values, self._parsed_body(answer, space))

    def _reader(self, step: Step, receipt: Mapping[str, Any] | None) -> Read:
        if self._marked is None:
            return self._read
        resized = (
            resizing(receipt, step.screen, where=step.sample_id) if self._space == "px" else None
        )
        truth = self._truth(step.source, step.screen)
        touch = touch_of(truth.action) if truth else None
        acted = [(touch[0] * step.screen[0], touch[1] * step.screen[1])] if touch else []
        marked = self._marked(step)
        places = tags(marked, step.screen, acted, space=self._space, resized=resized)
        return lambda body: self._read(resolve_mark(body, places))

    def _parsed_body(self, answer: Answer, space: Space) -> dict[str, Any]:
        action = answer.action
        if space == self._space:
            ends = action.start, action.end if action.kind == "swipe" else ()
            with suppress(ValueError):
                return self._body(action, [list(pair) for pair in map(middle, ends) if pair])
        return {"form": answer.form, **as_dict(action)}

    def failed(self, step: Step, outcome: Outcome) -> Verdict:
        return Verdict(outcome, self._values(step, None, as_prompted=False))

    def _values(
        self, step: Step, said: Action | None, *, as_prompted: bool
    ) -> tuple[bool | None, bool | None, bool]:
        truth = self._truth(step.source, step.screen)
        unplaced = self._space == "px" and min(step.screen) < 1
        if truth is None or (unplaced and truth.action.start):
            return None, None, as_prompted
        # What no answer can be held against is left out for all models alike: the expert's own
        # action tells whether the rule's source has such a step.
        found = self._rule(truth, said or truth.action, step.screen)
        if found is None:
            return None, None, as_prompted
        return (*found, as_prompted) if said is not None else (False, False, as_prompted)

    def _stated_length(self, step: Step) -> int | None:
        value = step.source.get("episode_length")
        if isinstance(value, list):
            value = value[0] if value else None
        return value if is_integer(value) else None


def relative(action: Action, screen: Screen, resized: Resizing | None) -> Action:
    """An action with its points from 0 to 1 of the screen.

    Boxes stay as they are: the middle of one in another unit may differ in its last digit.

    Args:
        action: as a model wrote it.
        screen: width and height of the screenshot in pixels; (0, 0) where nobody knows, and then
            no place in pixels is left.
        resized: how the picture was sent to the model, for places in pixels.
    """

    def to_relative(regions: tuple[Region, ...]) -> tuple[Region, ...]:
        found = (_relative(region, screen, resized) for region in regions)
        return tuple(region for region in found if region)

    return replace(action, start=to_relative(action.start), end=to_relative(action.end))


def _relative(region: Region, screen: Screen, resized: Resizing | None) -> Region | None:
    if isinstance(region, Box):
        return region
    if region.space != "px":
        return convert(region, "rel", _UNIT)
    if min(screen) < 1:
        return None
    pair = (region.x, region.y)
    return convert(Point(*(resized.to_screen(pair) if resized else pair), "px"), "rel", screen)


class _Parsed(TypedDict, total=False):
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


def _history_text(action: Action, screen: Screen) -> str:
    """Leaves out pixels where the screen's size is unknown."""
    if min(screen) < 1:
        action = relative(action, screen, None)
    return history_text(action, screen if min(screen) > 0 else _UNIT)


class PhoneTask(Benchmark):
    """What does the agent do next, given the screen?

    Attributes:
        evaluators: by the names of their profiles, the default first.
        by: the axes of their tables.
        wording: what the dataset puts into the prompt.
        labels: what a direction is said of in the labels that others make of the dataset.

    Args:
        options: as given with `-T key=value`.

    Raises:
        UsageError: an option has an unknown name or value.
    """

    evaluators: ClassVar[Mapping[str, Evaluator]]
    by: ClassVar[Mapping[str, Sequence[str]]]
    wording: ClassVar[Wording]
    labels: ClassVar[WordSense] = "content"
    platform = "mobile"
    overview = PhoneView
    parsed_type = _Parsed
    allowed: Mapping[str, Sequence[str]] = {"history": HISTORY, "coordinates": SPACES}
    baselines: Sequence[str] = BASELINES
    asked = "action"

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        # The default stands in no run, as in those from before there was the option.
        self.options = {
            key: value for key, value in self.options.items() if (key, value) != _OWN_SENSE
        }
        self._space = next(space for space in SPACES if space == self.options["coordinates"])
        self.system = reword(self.wording.system(self._space), self.observation)
        self.prompt_hash = hash_of([dict(self.options), self.system, _ASK, *self._told])
        self.profiles: Mapping[str, Profile] = {
            name: self._profile(name, evaluator) for name, evaluator in self.evaluators.items()
        }

    def _profile(self, name: str, evaluator: Evaluator) -> Profile:
        found = PhoneProfile(
            name,
            evaluator,
            evaluator.truth or self.truth,
            self.read_prompted,
            self.body,
            self.by,
            self._space,
            self.marked if self.observation == "som" else None,
            self.command,
        )
        if evaluator is not GUI_R1:
            return found
        return gui_r1.GuiR1Profile(found, lambda step: self.truth(step.source, step.screen))

    @property
    def said_sense(self) -> WordSense | None:
        """The user's sense of directions in words; None for that of the rows."""
        said = self.options.get("scroll")
        return next((sense for sense in get_args(WordSense) if sense == said), None)

    @property
    def label_sense(self) -> WordSense:
        """The sense of directions in labels, for dialects that keep their words."""
        return self.said_sense or self.labels

    def fed_size(self, step: Step) -> Screen | None:
        """Return the fed size that the row states."""
        row = step.source.get(ROW)
        return fed_size(row) if isinstance(row, Mapping) else None

    @abstractmethod
    def truth(self, row: Mapping[str, Any], screen: Screen) -> Truth | None:
        """Return the expert's action and the elements; None if unreadable."""

    @abstractmethod
    def read_prompted(self, body: Mapping[str, Any]) -> tuple[Action, bool]:
        """Read an answer in the prompt's form; the flag is whether it obeys the form exactly."""

    def command(self, text: str) -> Action | None:
        """A whole output as a command of the dataset's own, its places from 0 to 1000.

        None for what is none, as by default everything is.
        """
        return None

    @abstractmethod
    def body(self, action: Action, places: Sequence[Any]) -> dict[str, Any]:
        """Return an action in the prompt's form; raise a `ValueError` if it has none."""

    @abstractmethod
    def places(self, action: Action) -> Sequence[Pair]:
        """Return the places of an action's answer, from 0 to 1."""

    def goal(self, step: Step) -> str:
        return step.instruction

    def right_actions(self, step: Step) -> Sequence[Action]:
        truth = self.truth(step.source, step.screen)
        if truth is None:
            return ()
        places = tuple(Point(*pair, "rel") for pair in self.places(truth.action))
        return (replace(truth.action, start=places[:1], end=places[1:]),)

    def express(self, actions: Sequence[Action], step: Step) -> str:
        """An action as compact JSON; what a finger, a key or a wheel does alike is one.

        What the task's own reader does not take, as a tap at no place may be, is not said.
        """
        action = as_finger(actions[0])
        ends = [centre(region) for region in (*action.start[:1], *action.end[:1])]
        try:
            body = self.body(action, [[point.x, point.y] for point in ends])
            self.read_prompted(body)
            return compact(body)
        except ValueError as error:
            raise CannotSayError(str(error)) from None

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        past = zip(self.earlier(step, predicted), step.history_screens, strict=False)
        lines = [
            f"Step {number}: {_history_text(action, screen)}"
            for number, (action, screen) in enumerate(past)
            if action is not None
        ]
        blocks = [f"Goal: {self.goal(step)}", f"Step: {step.step_index}"]
        if lines:
            blocks.append("Action History:\n" + "\n".join(lines))
        shot = step.media.get("screenshot")
        shown = (Part("image", media=shot, role="screenshot"),) if shot else ()
        asked = "\n\n".join([*blocks, reword(_ASK, self.observation)])
        return (
            Message("system", (Part("text", self.system),)),
            Message("user", (*self.with_observation(step, shown), Part("text", asked))),
        )

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        truth = self.truth(step.source, step.screen)
        if truth is None:
            return None
        if named := self._mark_target(step, truth.action):
            return named
        return target(
            truth.action,
            step.screen,
            self.body,
            self.places,
            space=space or self._space,
            size=step.screen if self.observation in TELLS_PLACES else size or step.screen,
        )

    def _mark_target(self, step: Step, action: Action) -> Target | None:
        places = self.places(action) if self.observation == "som" else ()
        if not places or min(step.screen) < 1:
            return None
        width, height = step.screen
        marked = self.marked(step)
        found = [tag_at(marked, (x * width, y * height)) for x, y in places]
        if None in found:
            return None
        text = compact(self.body(action, found))
        return Target(text, text)

    def policy(self, name: str, steps: Sequence[Step]) -> Callable[[Step], str]:
        """Return the rule of a baseline; see `BASELINES`."""
        if name == "oracle":
            return super().policy(name, steps)
        truths = (self.truth(step.source, step.screen) for step in steps)
        action = blind(name, (truth.action for truth in truths if truth))
        return lambda step: _write_answer(action, step, self.body, self.places, self._space)

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """A model's text as an action, for histories of predictions; None if it is none.

        Pixels are those of the screenshot as the model was shown it, which the receipt tells.
        """
        answer = parse(text, self.read_prompted, command=self.command)
        if isinstance(answer, ParseFailure):
            return None
        action = answer.action
        if resized := resizing(receipt, _UNSIZED, where="the step before"):
            action = relative(action, resized.original, resized)
        return self.past(action)

    def past(self, action: Action) -> Action | None:
        """Return an action for histories; None for a swipe without a known direction."""
        return with_direction(action)

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        evaluator = self.evaluators[profile]
        reach, misses = evaluator.reach, evaluator.misses

        def sentence(wanted: Action, said: Action, overlays: Overlays, right: bool) -> str:
            if evaluator is GUI_R1 and right and said.label != wanted.label:
                types = f"the answer is {said.label}, the expert's action is {wanted.label}"
                return f"{types}; the profile judges the place or the text alone"
            return _sentence(step, wanted, said, overlays, reach, misses, right=right)

        def read() -> Action | None:
            return _answer_action(self, verdict, self._space)

        judge = self.profiles[profile]
        return by_action(
            step, verdict, judge, read, receipt=receipt, sentence=sentence, reach=reach
        )


# Why an answer to a step on a phone is right or wrong, by the rules of the phones' evaluators.


def _answer_action(reader: Reader, verdict: Verdict | None, space: Space) -> Action | None:
    parsed = verdict.parsed if verdict else None
    if parsed is None or "form" not in parsed:
        return read_again(reader, verdict)
    try:
        return with_direction(
            from_dict(parsed, space if parsed["form"] == "prompted" else "norm1000")
        )
    except (LookupError, TypeError, ValueError, OverflowError):
        return None


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
