"""`-T dialect=NAME`: a task that is asked, answered and learnt as one family of models does it.

The task stays as it is: a dialect's answer is read as actions, the task takes them as an answer of
its own (`Speech.adopt`), and its profiles judge that. So a verdict means the same in every dialect.
An action that one side cannot express is wrong, and counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np
from msgspec import structs

from omnidata.actions import Action, Box, Point, Region, Screen, Space, centre, convert, ratio
from omnidata.adapters.hf.options import CONTROLS
from omnidata.adapters.media_budget import HISTORY
from omnidata.dialects import (
    Answer,
    CannotSayError,
    Dialect,
    Frame,
    Past,
    Platform,
    Question,
    Rules,
    UnreadError,
)
from omnidata.dialects.points import read_place
from omnidata.errors import PluginError, UsageError
from omnidata.files import SETTINGS, read_file
from omnidata.jsontext import hash_of, is_number
from omnidata.tasks.asking import Asking
from omnidata.tasks.asking_under_options import earlier_roles, earlier_screenshots
from omnidata.tasks.benchmark import Benchmark, ParsedAnswer, Receipt
from omnidata.tasks.coordinates import place, sent_size
from omnidata.tasks.explaining import mark_of
from omnidata.tasks.profile import LONGEST, Profile
from omnidata.types import (
    Conversation,
    Diagnosis,
    Explanation,
    LoadedDataset,
    Outcome,
    Part,
    Step,
    Target,
    Verdict,
    VerdictColumns,
)

STRICT: Final = "+strict"
"""Suffix of profiles that read answers as the dialect's released parser does."""
COUNTS: Final = ("read", "read_strict", "expressed", "expressible", "left_out")
"""Values of a verdict beside the profile's own: whether the answer was read, also as the
released parser reads, whether the task could express what was read, whether the dialect can say
what is right; and how many actions the task left out, as it takes one a step."""
_UNCOUNTED: Final = (None,) * len(COUNTS)
"""The same of a step that is asked in the task's own words."""
_UNEXPRESSED: Final = "unexpressed"
PLATFORMS: Final[Mapping[str, Platform]] = {
    "mobile": "mobile",
    "desktop": "desktop",
    "web": "web",
    "phone": "mobile",
    "android": "mobile",
    "ios": "mobile",
    "windows": "desktop",
    "macos": "desktop",
    "linux": "desktop",
    "ubuntu": "desktop",
}
"""Names of platforms in tasks and tags."""
_UNIT: Final[Screen] = (1000, 1000)
_SAID: Final = frozenset({"none", "wait", "look", "done", "ask"})
"""Kinds of action that a reader may find in a text that acts on nothing."""


def unit_for(benchmark: Benchmark, dialect: Dialect) -> Space | None:
    """Return the unit in which the task takes the dialect's places; None if it has no choice.

    The dialect's own, if the task knows it: then numbers are passed on as the model wrote them.
    """
    known = benchmark.allowed.get("coordinates", ())
    wanted: Sequence[Space] = (dialect.frame.space, "norm1000", "rel", "px")
    return next((space for space in wanted if space in known), None)


@dataclass(frozen=True, slots=True)
class _Read:
    answer: Answer | None
    adopted: ParsedAnswer[Any] | None
    reason: str = ""
    left_out: int = 0


class AskingInDialect(Asking):
    """A task whose prompts, answers and targets are a dialect's.

    Attributes:
        task: the benchmark, under common options where there are any.
        dialect: the dialect.

    Args:
        task: see above; its places are in `unit_for` the dialect.
        dialect: see above.
        system: a file whose text stands in place of the dialect's own words; empty for none.
        words: its text; the file is opened, once it is needed, if None.

    Raises:
        UsageError: the task asks for more than an action or a place, or the dialect has no words
            for it.
    """

    def __init__(
        self, task: Asking, dialect: Dialect, system: str = "", words: str | None = None
    ) -> None:
        super().__init__(task.benchmark)
        self.history_window = task.history_window
        self.task = task
        self._system, self._known_words = system, words
        own_platform = task.benchmark.card.platform
        platform = PLATFORMS.get(own_platform)
        if task.benchmark.speech is None:
            raise UsageError(
                f"dialects only ask for an action or a place, and {task.name} also asks for other "
                "things",
                where=f"-T dialect={dialect.name}",
                expected="unified",
                remedy="leave out dialect",
            )
        if platform and platform not in dialect.says:
            raise UsageError(
                f"{dialect.name} has no actions on {own_platform}",
                where=f"-T dialect={dialect.name}",
                expected=f"a task of {', '.join(dialect.says)}",
                remedy="see `omnidata info dialects` for the dialects of each platform",
            )
        if task.options.get("observation", "screenshot") != "screenshot":
            raise UsageError(
                "a dialect needs the screenshot itself",
                where=f"-T observation={task.options['observation']}",
                expected="observation=screenshot",
                remedy="leave out observation or dialect",
            )
        self.speech = task.benchmark.speech
        self.dialect = dialect.in_sense(self.speech.label_sense)
        self._space = unit_for(task.benchmark, dialect)
        self.profiles = {
            **{name: self._profile(name, "lenient") for name in task.profiles},
            **{name + STRICT: self._profile(name, "strict") for name in task.profiles},
        }

    def _profile(self, name: str, rules: Rules) -> Profile:
        called = name + STRICT if rules == "strict" else name
        return _DialectProfile(self, self.task.profiles[name], rules, called)

    @property
    def options(self) -> Mapping[str, str]:
        """All options; the unit of coordinates is the dialect's."""
        own = {name: value for name, value in self.task.options.items() if name != "coordinates"}
        return {**own, "dialect": self.dialect.name, **self._file}

    @property
    def prompted_space(self) -> None:
        """None: prompts have the dialect's own unit."""

    @property
    def stop(self) -> Sequence[str]:
        """Texts at which answers end."""
        return self.dialect.stop

    @property
    def special_tokens(self) -> bool:
        """Whether answers consist of special tokens."""
        return self.dialect.special_tokens

    @property
    def own_controls(self) -> Collection[str]:
        """The control tokens that the dialect's answers contain."""
        words = " ".join(
            self.dialect.vocabulary(self.speech.asked, platform, _UNIT)
            for platform in self.dialect.says
        )
        return frozenset(token for token in CONTROLS if token in words)

    @property
    def _file(self) -> Mapping[str, str]:
        return {"system": self._system} if self._system else {}

    @cached_property
    def own_words(self) -> str | None:
        """The user's text in place of the vocabulary.

        Raises:
            UsageError: the file cannot be read.
        """
        if not self._system or self._known_words is not None:
            return self._known_words
        try:
            return read_file(Path(self._system), SETTINGS).decode("utf-8-sig")
        except (OSError, ValueError) as error:
            raise UsageError(
                f"the system text cannot be read: {error}",
                where=f"-T system={self._system}",
                expected="a file of UTF-8 text",
                remedy="name another file, or leave out system",
            ) from None

    @property
    def default_profile(self) -> str:
        """The task's default profile, which reads answers leniently."""
        return self.task.default_profile

    @property
    def prompt_hash(self) -> str:
        """SHA-256 of the task's own hash and the dialect's words."""
        dialect = self.dialect
        past = (Past((Action("wait"),)),)
        examples = [
            dialect.conversation(
                Question(self.speech.asked, platform, "", (), past, 0, _UNIT, self.own_words)
            )
            for platform in sorted(dialect.says)
        ]
        texts = [
            [message.role, *(part.text for part in message.parts)]
            for example in examples
            for message in example
        ]
        layouts = [repr(dialect.layout_on(platform)) for platform in sorted(dialect.says)]
        told = [*layouts, repr(dialect.frame), *dialect.stop, dialect.special_tokens]
        return hash_of([self.task.prompt_hash, dialect.name, told, texts])

    def platform_of(self, step: Step) -> Platform:
        """Return the task's platform, or the step's tag `platform`."""
        said = self.benchmark.card.platform or step.tags.get("platform", "")
        found = PLATFORMS.get(said.lower())
        return found if found and found in self.dialect.says else next(iter(self.dialect.says))

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        """Read the dataset's annotations; steps include the earlier screenshots of prompts."""
        source = self.task.load(data, check_media=check_media, strict=strict)
        own = PLATFORMS.get(self.benchmark.card.platform)
        platforms = [own] if own else [*self.dialect.says]
        most = max(self.dialect.layout_on(each).screenshots for each in platforms) - 1
        if self.speech.asked == "point" or most < 1 or "history_screenshots" in self.task.options:
            return source
        return earlier_screenshots(source, most)

    # What is asked.

    def in_own_words(self, step: Step) -> bool:
        """Return whether the dialect does not support the step's question."""
        return self.speech.question_kind(step) is None

    def conversation(
        self, step: Step, predicted: Sequence[Action | None] | None = None
    ) -> Conversation:
        """Return the dialect's conversation for one step, with the media of the task's own.

        A step that is asked for neither an action nor a place keeps the task's own words.
        """
        predicted = self.own_actions(step, predicted)
        if self.in_own_words(step):
            return self.task.conversation(step, predicted)
        fed = self._fed_size(step.screen)
        told = self.task.conversation(_without_history(step), predicted)
        parts = [
            self._resize(part, fed) if part.role == "screenshot" else part
            for message in told
            if message.role == "user"
            for part in message.parts
            if (part.media or part.role) and not part.role.startswith(HISTORY)
        ]
        past, first = self._past(step, predicted) if self.speech.asked == "action" else ((), 0)
        question = Question(
            self.speech.asked,
            self.platform_of(step),
            self.speech.goal(step),
            tuple(parts),
            past,
            first,
            fed,
            self.own_words,
        )
        return self.dialect.conversation(question)

    def _fed_size(self, screen: Screen) -> Screen:
        return self.dialect.frame.fed_size(screen)

    def _resize(self, part: Part, fed: Screen) -> Part:
        frame = self.dialect.frame
        fixed = frame.space == "px" or frame != Frame(frame.space)
        return replace(part, size=fed) if fixed and part.media and min(fed) > 0 else part

    def _past(
        self, step: Step, predicted: Sequence[Action | None] | None
    ) -> tuple[tuple[Past, ...], int]:
        history, layout = self.history(predicted), self.dialect.layout_on(self.platform_of(step))
        if history.source == "none":
            return (), 0
        actions = history.actions(step)
        first = history.first_shown(len(actions))
        if layout.actions is not None and history.window is None:
            first = max(first, len(actions) - layout.actions)
        found: list[Past] = []
        for index in range(first, len(actions)):
            action, screen = actions[index], step.history_screens[index]
            fed = self._fed_size(screen)
            back = step.step_index - index
            shown = back < layout.screenshots or "history_screenshots" in self.task.options
            shot = step.media.get(earlier_roles(back)[-1]) if shown else None
            part = Part("image", media=shot, role=f"{HISTORY}_{back}")
            done = () if action is None else (structs.replace(action, then=()), *action.then)
            placed = tuple(self.in_dialect_unit(one, screen) for one in done)
            found.append(Past(placed, self._resize(part, fed) if shot else None, fed))
        return tuple(found), first

    def in_dialect_unit(self, action: Action, screen: Screen) -> Action:
        """Return the action with points in the unit of the dialect, as it writes them.

        Args:
            action: with places in any unit; pixels are those of the screen.
            screen: width and height of the screenshot in pixels.
        """
        if not (action.start or action.end or action.path):
            return action
        fed = self._fed_size(screen)
        return structs.replace(
            action,
            start=self._points(action.start[:1], screen, fed),
            end=self._points(action.end[:1], screen, fed),
            path=self._points(action.path, screen, fed),
        )

    def _points(self, regions: Sequence[Region], screen: Screen, fed: Screen) -> tuple[Point, ...]:
        space = self.dialect.frame.space
        if min(*screen, *fed) < 1:  # shares are known on screens of unknown size
            if any("px" in (space, region.space) and space != region.space for region in regions):
                return ()
            screen = fed = _UNIT
        return tuple(_short_point(region, screen, space, fed) for region in regions)

    # What is right.

    def answer_text(self, step: Step) -> str:
        """Return the right answer in the dialect.

        Raises:
            CannotSayError: the dialect has no words for it, or there is none.
        """
        actions = self.speech.right_actions(step)
        if not actions:
            raise CannotSayError("the step has no right answer that could be used")
        fed = self._fed_size(step.screen)
        placed = [self.in_dialect_unit(action, step.screen) for action in actions]
        for before, after in zip(actions, placed, strict=True):
            if len(before.start[:1]) != len(after.start) or len(before.end[:1]) != len(after.end):
                raise CannotSayError("nobody knows the size of the screen")
        try:
            text = self.dialect.write(placed, fed, self.platform_of(step))
        except CannotSayError:
            raise
        except Exception as error:
            raise self._plugin_error(
                "write", f"fails on {actions[0].label}: {error!r:.200}"
            ) from error
        if not isinstance(text, str):
            raise self._plugin_error("write", f"gives {text!r:.80} for {actions[0].label}")
        return text

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """Return the right answer in the dialect and its unit; None if it has no words for it.

        What the prompt says of it already, the dialect's prefix, is left out.
        """
        if self.in_own_words(step):
            return self.task.target(step)
        try:
            text = self.answer_text(step).removeprefix(self.dialect.prefix)
        except CannotSayError:
            return None
        return Target(text, text)

    @property
    def baselines(self) -> Sequence[str]:
        """`oracle`, for answers that the dialect can express."""
        return ("oracle",)

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """Return the right answers; an empty text where the dialect has no words for one.

        Raises:
            UsageError: another baseline, or an option.
        """
        if name not in self.baselines or options:
            raise UsageError(
                f'dialects have no baseline "{name}" with these options',
                where=f"--model baseline:{name}",
                expected="baseline:oracle without options",
                remedy="leave out -T dialect to use the task's other baselines",
            )
        return lambda step: found.text if (found := self.target(step)) else ""

    # What was answered.

    def parse(
        self, text: str, step: Step, receipt: Receipt = None, *, profile: str = ""
    ) -> ParsedAnswer[Any]:
        """Read an answer in the dialect, as `Asking.parse`.

        Raises:
            UnreadError: the text is no answer in the dialect, or the benchmark has no words for it.
        """
        if self.in_own_words(step):
            return super().parse(text, step, receipt, profile=profile.removesuffix(STRICT))
        rules: Rules = "strict" if profile.endswith(STRICT) else "lenient"
        known, fed = self.receipt_and_size(step, receipt)
        found = self.interpret(step, text, known, fed, rules)
        if found.adopted is None:
            raise UnreadError(found.reason)
        return found.adopted

    def history_action(self, step: Step, text: str, receipt: Receipt = None) -> Action | None:
        """Return an answer as an action, for predicted histories; None if unreadable."""
        if self.in_own_words(step):
            return self.task.history_action(step, text, receipt)
        sent = sent_size(receipt, where="the step before")
        fed = sent.size if sent else (0, 0)
        try:
            answer = self._read_answer(text, fed)
        except UnreadError:
            return None
        original = sent.original if sent else fed
        actions = [
            _move(action, lambda point: _on(point, fed, original)) for action in answer.actions
        ]
        return structs.replace(actions[0], then=tuple(actions[1:]))

    def _read_answer(self, text: str, fed: Screen, rules: Rules = "lenient") -> Answer:
        prefix, text = self.dialect.prefix, text[:LONGEST]
        whole = text if text.startswith(prefix) else prefix + text
        try:
            found = self.dialect.read(whole, fed, rules=rules)
        except UnreadError:
            named = self._read_place(whole) if rules == "lenient" else None
            if named is None:
                raise
            found = Answer((Action("tap", (named,)),))
        except OverflowError:  # of an integer beyond all floats, wherever a reader reckons with it
            raise UnreadError("a number in the answer is beyond all reckoning") from None
        except Exception as error:
            what = f"fails on the answer {text[:60]!r}: {error!r:.200}"
            raise self._plugin_error("read", what) from error
        made = isinstance(found, Answer) and found.actions and all(map(_is_made, found.actions))
        if not made:
            raise self._plugin_error("read", f"gives {found!r:.80} for the answer {text[:60]!r}")
        placed = rules == "strict" or any(action.start for action in found.actions)
        if not placed and (named := self._read_place(whole)):  # words beside no call end a turn
            found = replace(found, actions=(Action("tap", (named,)),))
        for action in found.actions:
            for region in (*action.start, *action.end, *action.path):
                for number in _numbers(region):
                    if not abs(number) <= _FARTHEST:  # NaN too
                        raise UnreadError("a place is on no screen of this world")
        return found

    def _read_place(self, text: str) -> Region | None:
        if self.speech.asked != "point":
            return None
        try:
            return read_place(text, self.dialect.frame.space)
        except ValueError:
            return None

    def _plugin_error(self, method: str, what: str) -> PluginError:
        kind = type(self.dialect)
        right = {"read": "an Answer with an action, or an UnreadError"}
        return PluginError(
            f"`{method}` of the dialect {self.dialect.name} {what}",
            where=f"{kind.__module__}.{kind.__qualname__}",
            expected=right.get(method, "a text, or a CannotSayError"),
            remedy="fix the dialect, or report it to its authors",
        )

    def interpret(
        self,
        step: Step,
        text: str,
        receipt: Mapping[str, Any] | None,
        fed: Screen,
        rules: Rules,
    ) -> _Read:
        """Read an answer, and return it as the task's profiles judge it.

        Args:
            step: of the question.
            text: the whole answer.
            receipt: for judging.
            fed: width and height of the picture as it was fed, in pixels.
            rules: of the reader.
        """
        try:
            answer = self._read_answer(text, fed, rules)
        except UnreadError as error:
            return _Read(None, None, str(error))
        actions = [self._plain_keys(self.in_unit(action, fed)) for action in answer.actions]
        taken = actions[: self.speech.takes(actions)]
        try:
            adopted = self.speech.adopt(taken, step, receipt)
        except CannotSayError as error:
            return _Read(answer, None, str(error), len(actions) - len(taken))
        return _Read(answer, adopted, "", len(actions) - len(taken))

    def receipt_and_size(
        self, step: Step, receipt: Mapping[str, Any] | None
    ) -> tuple[Mapping[str, Any] | None, Screen]:
        """Return the receipt for judging, and the size of the picture as it was fed, in pixels."""
        receipt = self._receipt(step, receipt)
        sent = sent_size(receipt, where=step.sample_id)
        return receipt, sent.size if sent else self._fed_size(step.screen)

    def _receipt(self, step: Step, receipt: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return the receipt; for pixels one of the row or of the frame, if it has no size.

        The row's fed size counts only if it is a multiple of the frame's factor.
        """
        pixels = "px" in (self.dialect.frame.space, self._space or "px")
        if not pixels or min(step.screen) < 1 or sent_size(receipt, where=step.sample_id):
            return receipt
        told, frame = self.speech.fed_size(step), self.dialect.frame
        resized = frame.factor > 1 and told is not None and not any(n % frame.factor for n in told)
        width, height = told if told and resized else self._fed_size(step.screen)
        line = {"role": "screenshot", "width": width, "height": height}
        return {"parts": [{**line, "original": list(step.screen)}]}

    def in_unit(self, action: Action, fed: Screen) -> Action:
        """An action that was read, with points in the unit that the task takes.

        Args:
            action: as the dialect gave it; pixels are those of the picture as it was fed.
            fed: its width and height in pixels.
        """
        unit = self._space or "px"
        return _move(action, lambda region: _as_unit(region, unit, fed))

    def _plain_keys(self, action: Action) -> Action:
        if not action.keys and not action.held:
            return action
        plain = self.dialect.plain_keys
        return structs.replace(action, keys=plain(action.keys), held=plain(action.held))

    def is_read(self, text: str, fed: Screen, rules: Rules) -> bool:
        """Return whether a text is an answer by these rules to a picture that was fed so."""
        try:
            self._read_answer(text, fed, rules)
        except UnreadError:
            return False
        return True

    def acts(self, step: Step, text: str, receipt: Mapping[str, Any] | None) -> bool:
        """Return whether a text has an action in the dialect's own form.

        Ends, waits and questions are none: many readers take any prose for one of them.
        """
        prefix, sent = self.dialect.prefix, sent_size(receipt, where=step.sample_id)
        text = text[:LONGEST]
        whole = text if text.startswith(prefix) else prefix + text
        try:
            found = self.dialect.read(whole, sent.size if sent else self._fed_size(step.screen))
        except (UnreadError, OverflowError):
            return False
        except Exception as error:
            what = f"fails on the answer {text[:60]!r}: {error!r:.200}"
            raise self._plugin_error("read", what) from error
        return any(action.kind not in _SAID for action in found.actions)

    def explanation(
        self,
        step: Step,
        verdict: Verdict | None,
        text: str,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Explain as the task does, or state that it cannot express the action."""
        own, plain = profile.removesuffix(STRICT), verdict
        if verdict:
            values = verdict.values[: len(self.task.profiles[own].values)]
            plain = Verdict(verdict.outcome, values, verdict.parsed, verdict.reason)
        if self.in_own_words(step):
            return self.task.explanation(step, plain, text, profile=own, receipt=receipt)
        receipt, fed = self.receipt_and_size(step, receipt)
        said = (verdict.parsed or {}).get(_UNEXPRESSED) if verdict else None
        if verdict is None or said is None:
            adopted = None
            if plain and plain.parsed is not None:
                rules: Rules = "strict" if profile.endswith(STRICT) else "lenient"
                adopted = self.interpret(step, text, receipt, fed, rules).adopted
            return self.benchmark.explain(step, plain, adopted, self.task.profiles[own], receipt)
        bare = self.task.explanation(step, None, "", profile=own, receipt=receipt)
        names = self.task.profiles[own].values
        mark = mark_of(verdict.outcome, dict(zip(names, verdict.values, strict=False)))
        sentence = f"the answer is {said}, for which {self.benchmark.card.title} has no words"
        if mark == "right":
            sentence += ", but the profile accepts it"
            return replace(bare, mark=mark, sentence=sentence, answer_label=said, diagnosis=None)
        return replace(
            bare,
            mark="near" if mark == "near" else "wrong",
            sentence=sentence,
            answer_label=said,
            diagnosis=Diagnosis("rule" if mark == "near" else "wrong_type"),
        )


def _short_point(region: Region, screen: Screen, space: Space, fed: Screen) -> Point:
    """Return a point of a region as short numbers; a point moves by a thousandth at most."""
    x, y = place(region, screen, space=space, size=fed)
    if space == "px" and isinstance(region, Point):
        exact = convert(region, "rel", screen)
        own = exact.x * fed[0], exact.y * fed[1]
        if abs(own[0] - x) * 1000 > fed[0] or abs(own[1] - y) * 1000 > fed[1]:
            x, y = own
    return Point(x, y, space)


def _without_history(step: Step) -> Step:
    media = {role: ref for role, ref in step.media.items() if not role.startswith(HISTORY)}
    return replace(step, media=media)


_FARTHEST: Final = 1e9


_SPACES: Final = frozenset(get_args(Space))


def _numbers(region: Region) -> tuple[float, ...]:
    if isinstance(region, Box):
        return region.left, region.top, region.right, region.bottom
    return region.x, region.y


def _is_made(action: object) -> bool:
    if not isinstance(action, Action) or not isinstance(action.text, str | None):
        return False
    for region in (*action.start, *action.end, *action.path):
        if not isinstance(region, Point | Box) or region.space not in _SPACES:
            return False
        if not all(map(is_number, _numbers(region))):
            return False
    return all(isinstance(key, str) for key in (*action.keys, *action.held))


def _move(action: Action, there: Callable[[Region], Point]) -> Action:
    if not (action.start or action.end or action.path):
        return action
    start, end, path = (tuple(map(there, one)) for one in (action.start, action.end, action.path))
    return structs.replace(action, start=start, end=end, path=path)


def _on(region: Region, fed: Screen, original: Screen) -> Point:
    point = centre(region)
    if point.space != "px" or min(*fed, *original) < 1:
        return point
    (width, height), (across, down) = original, fed
    return Point(point.x * width / across, point.y * height / down, "px")


def _as_unit(region: Region, unit: Space, fed: Screen) -> Point:
    point = centre(region)
    if point.space == unit:
        return point
    if "px" not in (point.space, unit):
        (_, had), (_, has) = ratio(point.space, 1), ratio(unit, 1)
        return Point(point.x * has / had, point.y * has / had, unit)
    return convert(point, unit, fed) if min(fed) > 0 else point


class _DialectProfile(Profile):
    def __init__(self, asking: AskingInDialect, own: Profile, rules: Rules, name: str) -> None:
        super().__init__(asking.benchmark, own.rule)
        self._asking, self._own, self._rules = asking, own, rules
        self.name = name
        self.values = (*own.values, *COUNTS)
        if rules == "strict":
            read = f"answers read as {asking.dialect.source}"
            self.source = "; ".join(filter(None, (own.source, read)))

    def judge_text(self, step: Step, text: str, receipt: Receipt) -> Verdict:
        asking = self._asking
        if asking.in_own_words(step):
            return _count_nothing(self._own.judge_text(step, text, receipt))
        known, fed = asking.receipt_and_size(step, receipt)
        found = asking.interpret(step, text, known, fed, self._rules)
        other: Rules = "lenient" if self._rules == "strict" else "strict"
        also = asking.is_read(text, fed, other)
        itself = found.answer is not None
        both = (also, itself) if self._rules == "strict" else (itself, also)
        counts = (*both, found.adopted is not None, self._expressible(step), found.left_out)
        verdict = self._judge_read(step, found, receipt)
        reader = self.answer_reader
        if reader and reader.dialect == asking.dialect.name:
            action = found.answer.actions[0] if found.answer else None
            verdict = reader.judge(step, text, action, verdict, known)
        return structs.replace(verdict, values=(*verdict.values, *counts))

    def judge_parsed(
        self, step: Step, parsed: ParsedAnswer[Any] | None, reason: str = ""
    ) -> Verdict:
        return _count_nothing(self._own.judge_parsed(step, parsed, reason))

    def _judge_read(
        self,
        step: Step,
        found: _Read,
        receipt: Receipt,
    ) -> Verdict:
        if found.adopted is not None:
            return self._own.judge_parsed(step, found.adopted)
        bare = self._own.judge(step, "", receipt)
        if found.answer is None:
            return Verdict("unparsed", bare.values, None, found.reason)
        return Verdict("ok", bare.values, {_UNEXPRESSED: found.answer.actions[0].label})

    def _expressible(self, step: Step) -> bool:
        try:
            self._asking.answer_text(step)
        except CannotSayError:
            return False
        return True

    def without_answer(self, step: Step, outcome: Outcome) -> Verdict:
        bare = self._own.without_answer(step, outcome)
        nothing: tuple[bool | None, ...] = (None, None, None, self._expressible(step), None)
        if self._asking.in_own_words(step):
            nothing = _UNCOUNTED
        return Verdict(outcome, (*bare.values, *nothing), bare.parsed, bare.reason)

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        own = {name: rows.values[name] for name in self._own.values}
        found = self._own.total(steps, replace(rows, values=own))
        counts = {name: rows.values[name] for name in COUNTS}
        answered = int((~np.isnan(counts["read"])).sum())
        sums = {name: int(np.nansum(counts[name])) for name in COUNTS[:3]}
        own_words = sum(map(self._asking.in_own_words, steps))
        return {
            **found,
            "dialect": {
                "name": self._asking.dialect.name,
                "rules": self._rules,
                "answers": answered,
                **sums,
                "several": int((np.nan_to_num(counts["left_out"]) > 0).sum()),
                "steps": len(steps) - own_words,
                "expressible": int(np.nansum(counts["expressible"])),
                **({"in_own_words": own_words} if own_words else {}),
            },
        }


def _count_nothing(verdict: Verdict) -> Verdict:
    return structs.replace(verdict, values=(*verdict.values, *_UNCOUNTED))


def prompt_texts(task: Asking) -> dict[str, str]:
    """Return the prompt texts from files that options name, by option, for `run.json`.

    Raises:
        UsageError: a file cannot be read.
    """
    own = task.own_words if isinstance(task, AskingInDialect) else None
    return {} if own is None else {"system": own}
