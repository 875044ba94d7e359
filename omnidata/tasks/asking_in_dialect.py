"""`-T dialect=NAME`: a task that is asked, answered and learnt as one family of models does it.

The task stays as it is: a dialect's answer is read as actions (`dialect_answers`), the task takes
them as an answer of its own (`Speech.adopt`), and its profiles judge that (`dialect_profile`). So a
verdict means the same in every dialect. An action that one side cannot express is wrong, and
counted.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, get_args

from msgspec import structs

from omnidata.actions import Action, Point, Region, Screen, Space, convert
from omnidata.adapters.media_budget import HISTORY
from omnidata.dialects import (
    CannotSayError,
    Dialect,
    Frame,
    Past,
    Platform,
    Question,
    Rules,
    UnreadError,
)
from omnidata.errors import UsageError
from omnidata.files import SETTINGS, read_file
from omnidata.jsontext import hash_of
from omnidata.tasks.asking import Asking
from omnidata.tasks.asking_under_options import (
    earlier_roles,
    earlier_screenshots,
    without_history_shots,
)
from omnidata.tasks.benchmark import Benchmark, ParsedAnswer, Receipt
from omnidata.tasks.coordinates import place, sent_size
from omnidata.tasks.dialect_answers import (
    DialectReader,
    move_places,
    refuse_dialect,
    to_original,
)
from omnidata.tasks.dialect_profile import STRICT, UNEXPRESSED, DialectProfile, rules_of
from omnidata.tasks.marks import mark_of
from omnidata.types import (
    Conversation,
    Diagnosis,
    Explanation,
    LoadedDataset,
    Part,
    Step,
    Target,
    Verdict,
)

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


def unit_for(benchmark: Benchmark, dialect: Dialect) -> Space | None:
    """Return the unit in which the task takes the dialect's places; None if it has no choice.

    The dialect's own, if the task knows it: then numbers are passed on as the model wrote them.
    """
    known = benchmark.allowed.get("coordinates", ())
    wanted: Sequence[Space] = (dialect.frame.space, "norm1000", "rel", "px")
    return next((space for space in wanted if space in known), None)


class AskingInDialect(Asking):
    """A task whose prompts, answers and targets are a dialect's.

    Attributes:
        task: the benchmark, under common options where there are any.
        dialect: the dialect, with directions in the sense of the task's labels.
        reader: reads answers.

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
        _check(task, dialect)
        assert task.benchmark.speech
        self.speech = task.benchmark.speech
        self.dialect = dialect.in_sense(self.speech.label_sense)
        self.reader = DialectReader(self.dialect, self.speech, unit_for(task.benchmark, dialect))
        profiles = (
            DialectProfile(self, own, rules)
            for rules in get_args(Rules)
            for own in task.profiles.values()
        )
        self.profiles = {profile.name: profile for profile in profiles}

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
        from omnidata.adapters.hf.options import CONTROLS

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
        form = [*layouts, repr(dialect.frame), *dialect.stop, dialect.special_tokens]
        return hash_of([self.task.prompt_hash, dialect.name, form, texts])

    def platform_of(self, step: Step) -> Platform:
        """Return the task's platform, or the step's tag `platform`."""
        name = self.benchmark.card.platform or step.tags.get("platform", "")
        found = PLATFORMS.get(name.lower())
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
        own = self.task.conversation(without_history_shots(step), predicted)
        parts = [
            self._resize(part, fed) if part.role == "screenshot" else part
            for message in own
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
            what = f"fails on {actions[0].label}: {error!r:.200}"
            raise refuse_dialect(self.dialect, "write", what) from error
        if not isinstance(text, str):
            what = f"gives {text!r:.80} for {actions[0].label}"
            raise refuse_dialect(self.dialect, "write", what)
        return text

    def can_express(self, step: Step) -> bool:
        """Return whether the dialect has words for the right answer."""
        try:
            self.answer_text(step)
        except CannotSayError:
            return False
        return True

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
        known, fed = self.reader.receipt_and_size(step, receipt)
        found = self.reader.adopt(step, text, known, fed, rules_of(profile))
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
            answer = self.reader.read(text, fed)
        except UnreadError:
            return None
        original = sent.original if sent else fed
        actions = [
            move_places(action, lambda region: to_original(region, fed, original))
            for action in answer.actions
        ]
        return structs.replace(actions[0], then=tuple(actions[1:]))

    def explanation(
        self,
        step: Step,
        verdict: Verdict | None,
        text: str,
        *,
        profile: str,
        receipt: Receipt = None,
    ) -> Explanation:
        """Explain as the task does, or state that it cannot express the action."""
        own, plain = profile.removesuffix(STRICT), verdict
        if verdict:
            values = verdict.values[: len(self.task.profiles[own].values)]
            plain = Verdict(verdict.outcome, values, verdict.parsed, verdict.reason)
        if self.in_own_words(step):
            return self.task.explanation(step, plain, text, profile=own, receipt=receipt)
        receipt, fed = self.reader.receipt_and_size(step, receipt)
        if plain and plain.parsed and UNEXPRESSED in plain.parsed:
            return self._explain_unexpressed(step, plain, profile=own, receipt=receipt)
        adopted = None
        if plain and plain.parsed is not None:
            adopted = self.reader.adopt(step, text, receipt, fed, rules_of(profile)).adopted
        return self.benchmark.explain(step, plain, adopted, self.task.profiles[own], receipt)

    def _explain_unexpressed(
        self, step: Step, verdict: Verdict, *, profile: str, receipt: Receipt
    ) -> Explanation:
        assert verdict.parsed
        said = verdict.parsed[UNEXPRESSED]
        names = self.task.profiles[profile].values
        mark = mark_of(verdict.outcome, dict(zip(names, verdict.values, strict=True)))
        sentence = f"the answer is {said}, for which {self.benchmark.card.title} has no words"
        bare = self.task.explanation(step, None, "", profile=profile, receipt=receipt)
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


def _check(task: Asking, dialect: Dialect) -> None:
    own_platform = task.benchmark.card.platform
    platform = PLATFORMS.get(own_platform)
    if task.benchmark.speech is None:
        raise UsageError(
            f"dialects only ask for an action or a place, and {task.name} says in no `speech` "
            "that it asks for one",
            where=f"-T dialect={dialect.name}",
            expected="unified",
            remedy="leave out dialect; for a benchmark of your own, see "
            "docs/add_dataset.md#speak-dialects",
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


def _short_point(region: Region, screen: Screen, space: Space, fed: Screen) -> Point:
    """Return a point of a region as short numbers; a point moves by a thousandth at most."""
    x, y = place(region, screen, space=space, size=fed)
    if space == "px" and isinstance(region, Point):
        exact = convert(region, "rel", screen)
        own = exact.x * fed[0], exact.y * fed[1]
        if abs(own[0] - x) * 1000 > fed[0] or abs(own[1] - y) * 1000 > fed[1]:
            x, y = own
    return Point(x, y, space)


def prompt_texts(task: Asking) -> dict[str, str]:
    """Return the prompt texts from files that options name, by option, for `run.json`.

    Raises:
        UsageError: a file cannot be read.
    """
    own = task.own_words if isinstance(task, AskingInDialect) else None
    return {} if own is None else {"system": own}
