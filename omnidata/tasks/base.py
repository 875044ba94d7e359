"""What every task has unless it says otherwise: the start of a benchmark of your own."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, wraps
from pathlib import Path
from types import GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar, cast, get_args

import msgspec

from omnidata.actions import Action, Box, Screen, Sense, Space, history_text
from omnidata.dialects import Asked
from omnidata.errors import DataError, Finding, MediaError, PluginError, UsageError, meant
from omnidata.jsontext import hash_of, is_number
from omnidata.loaders import files
from omnidata.loaders.files import RowFiles
from omnidata.loaders.load import load_data
from omnidata.loaders.stored_steps import Positions, collect, numbered, row_ids
from omnidata.mirror import local
from omnidata.plugins import warn_of_misspelt
from omnidata.registry import ANSWER, STEP, STEPS, TARGET
from omnidata.tasks.common_options import OPTIONS as COMMON
from omnidata.tasks.coordinates import answer_space, center_places, in_pixels
from omnidata.tasks.derivation import Derivation
from omnidata.tasks.diagnosis import REACH
from omnidata.tasks.explaining import Reader, Rule, by_action, explain_action, read_again
from omnidata.tasks.log_rows import Difference, difference
from omnidata.tasks.longest import read_beginning
from omnidata.tasks.observation import (
    OPTIONS,
    UNLIMITED,
    Element,
    Kind,
    Observation,
    effective_options,
    parts_of,
    tell,
    texts,
)
from omnidata.tasks.overview import View
from omnidata.tasks.published import HISTORY, Published, TableSpec, Variation
from omnidata.types import (
    Annotation,
    Conversation,
    Explanation,
    LoadedDataset,
    Message,
    Modality,
    Part,
    Profile,
    Publication,
    Questions,
    Step,
    Target,
    TaskDiagram,
    Verdict,
)

if TYPE_CHECKING:
    from omnidata.loaders.action_log import Log
    from omnidata.loaders.task_library import Library
    from omnidata.tasks.profiles import OfflineScorer

# Options given as `key=value`, checked against what exists.


def resolve(
    given: Mapping[str, str], allowed: Mapping[str, Sequence[str]], flag: str
) -> dict[str, str]:
    """The options in force: what was given, else each option's first value.

    Args:
        given: as the user wrote them.
        allowed: option -> its values, the default first; a single value "" allows any text.
        flag: how the options are given, for the message.

    Raises:
        UsageError: an option or a value that does not exist.

    Examples:
        >>> resolve({"history": "none"}, {"history": ("gold", "none"), "voice": ("",)}, "-T")
        {'history': 'none', 'voice': ''}
    """
    for name, value in given.items():
        if name not in allowed:
            raise UsageError(
                f'unknown option "{name}"',
                where=f"{flag} {name}={value}",
                expected=f"one of {', '.join([*allowed, *COMMON])}",
                remedy="choose one of these, or drop the option",
            )
        values = allowed[name]
        if values != ("",) and value not in values:
            raise UsageError(
                f'"{name}" has no value "{value}"',
                where=f"{flag} {name}={value}",
                expected=f"one of {', '.join(values)}",
                remedy="choose one of these, or drop the option",
            )
    return {name: given.get(name, values[0]) for name, values in allowed.items()}


def parse(pairs: Sequence[str], flag: str) -> dict[str, str]:
    """`["a=1", "b=2"]` as a mapping.

    Raises:
        UsageError: an item without "=", or a key given twice.
    """
    options: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key or key in options:
            raise UsageError(
                "the option is given twice" if key in options else "the option has no value",
                where=f"{flag} {pair}",
                expected=f"{flag} key=value, with each key once",
                remedy="drop one of them"
                if key in options
                else f"write {flag} {key or 'key'}=VALUE",
            )
        options[key] = value
    return options


_MEDIA = frozenset(
    {".png", ".jpg", ".jpeg", ".webp", ".gif", ".bmp"}
    | {".mp4", ".mov", ".mkv", ".webm", ".avi"}
    | {".wav", ".mp3", ".m4a", ".ogg", ".flac", ".aac"}
)


_FILLED = ("instruction", "history")
_BLANK = re.compile(rf"\{{({'|'.join(_FILLED)})\}}")
_ALONE = re.compile(r"(?<!\w)\{\s*[^\W\d]\w*\s*\}")
"""A word alone in braces, but for an argument of TeX: no JSON has one."""


Method = TypeVar("Method", bound=Callable[..., Any])
_TAKING_DATA = frozenset({"load", "detect", "fingerprint"})


def _of_urls_too(method: Method) -> Method:
    """Lets a method that takes a data folder take a URL or a string too."""

    @wraps(method)
    def call(self: Any, data: str | Path, *given: Any, **options: Any) -> Any:
        return method(self, local(data), *given, **options)

    return cast("Method", call)


class Benchmark:
    """Base class for benchmarks: define `question`, `profiles`, `steps` and `answer`.

    The prompt is one user message: the step's media in their order, then the question. A benchmark
    with places in its answers defines `target` instead of `answer`, and has an option `coordinates`
    with the allowed units. A benchmark that needs more than `steps` to load its data overrides
    `load` instead.

    Attributes:
        system: text of a system message; empty for none.
        shown: roles of the media in the prompt; None for all.
        files: finds the benchmark's files by their columns; None if only `steps` can.
        question: text of the prompt. `{instruction}` is the step's instruction. `{history}` is the
            history, set by an option `history`: "gold" for the expert's actions, "predicted" for
            the model's own, "none".
        profiles: by name, the default first.
        title: display name. Defaults to `name`.
        holds: what is asked, and from what, in one line.
        expects: the files of the data in words, for `omnidata info` and for errors. Defaults to the
            columns of `files`.
        sources: where the data are published, and under which licence. If several have the same
            tags, `omnidata fetch` takes the first by default.
        unpublished: why there is no source, if there is none.
        asks_about: the task whose data it asks about; empty if it has its own data.
        annotates: what its answers add to those data, for `omnidata synth`; None for nothing.
        derivation: how its rows are derived from other tasks, for `omnidata synth`; None if they
            are not.
        platform: "web", "desktop" or "mobile" if all its data are of one; else empty, and a tag
            `platform` may say it.
        tags: names of its steps' tags; None if they depend on the data.
        roles: its steps' media and their kinds; None if they depend on the data.
        other_moments: roles whose media show an earlier moment, or the result of the action.
            `omnidata info` does not count them as input of an agent.
        subsets: subsets that all its data have; the data may have more.
        allowed: the task's options and their values, the default first; "" allows any text.
        stop: texts at which answers end, beside the model's own end.
        special_tokens: whether answers consist of special tokens, so models have to keep them.
        own_controls: control tokens of models, such as `<think>`, that its prompts and answers
            contain. Any other in a text of the data excludes a step from an export.
        overview: counts the data for `omnidata info`.
        library: reads its data as subtasks for composed tasks; None if they are none.
        parsed_type: type of `Verdict.parsed` in the lines of scores, such as a TypedDict. Edited
            lines are checked against it with `msgspec` before `explain` reads them. By default any
            JSON object.
        task_of: names the task if a step's instruction is one of its wordings, for `report`;
            returns an empty text for steps of no such task; None if unknown.
        score_files: scores results without a model's text; None if there are none.
        asked: "action" if the prompt asks for the next action, "point" if it asks for a place on
            the screen; None for anything else, which dialects do not support.
        tables: of its paper, the main one first; without one, reports show the first axis.
        variations: options that get a table of the runs that differ only in them.
        detailed_actions: whether its actions have more than a label, places, a text and words, so
            rows of `datasets` have the column `action_details`; None if it depends on the data.
        prompted_space: the unit of coordinates that the prompt asks for, whatever `-T coordinates`
            says; None if the prompt follows the option, or there is no such option.
        history_window: the largest number of earlier actions in a prompt, the last ones; None for
            all. `-T history_window` sets it.
        history_lag: how many steps back a step's `history_screenshot` was taken, which
            `omnidata validate` checks; None if unknown.
        reads_episode_tree: whether its files are the tree that the demo, `segment` and `synth`
            write, `omnidata.loaders.episode_tree`.
        logs_by_number: whether other harnesses number its rows in the order of the data, so that a
            number identifies a row in their logs.

    Args:
        name: as in `omnidata evaluate NAME`.
        options: as given with `-T key=value`.

    Raises:
        UsageError: an option has an unknown name or value.
        PluginError: the class lacks a member, or a member has an unusable value.
    """

    question: str
    profiles: Mapping[str, Profile]
    system: str = ""
    shown: Sequence[str] | None = None
    files: RowFiles | None = None
    title: str = ""
    holds: str = ""
    expects: str = ""
    platform: str = ""
    sources: Sequence[Publication] = ()
    unpublished: str = ""
    asks_about: str = ""
    annotates: Annotation | None = None
    derivation: Derivation | None = None
    tags: Sequence[str] | None = None
    roles: Mapping[str, Modality] | None = None
    other_moments: Collection[str] = ("history_screenshot",)
    subsets: Sequence[str] = ()
    allowed: Mapping[str, Sequence[str]] = {}
    needs_predictions: bool = False
    stop: Sequence[str] = ()
    special_tokens: bool = False
    own_controls: Collection[str] = ()
    overview: type[View] = View
    library: Callable[[Path], Library] | None = None
    parsed_type: Any = dict[str, Any]
    task_of: Callable[[Step], str] | None = None
    score_files: OfflineScorer | None = None
    asked: Asked | None = None
    tables: Sequence[TableSpec] = ()
    variations: Sequence[Variation] = (HISTORY,)
    prompted_space: Space | None = None
    detailed_actions: bool | None = None
    history_window: int | None = None
    history_lag: int | None = None
    reads_episode_tree: bool = False
    logs_by_number: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        warn_of_misspelt(cls, Benchmark, stacklevel=2)
        for name in _TAKING_DATA & vars(cls).keys():
            setattr(cls, name, _of_urls_too(getattr(cls, name)))
        if "read" in vars(cls):
            cls.read = read_beginning(cls.read)  # type: ignore[method-assign]

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        self._check_members()
        self.name = name
        self.title = self.title or name
        self.options: Mapping[str, str] = effective_options(
            options, resolve(options, self.allowed, "-T")
        )
        if self.options.get("history") == "predicted":
            self.needs_predictions = True

    def _check_members(self) -> None:
        """Members that `__init__` sets are not checked."""
        kind, fault = type(self), self._fault
        if kind.answer is Benchmark.answer and kind.target is Benchmark.target:
            raise fault(
                "has neither `answer` nor `target`", "one of them: it returns the right answer"
            )
        if self.asked and kind.express is Benchmark.express:
            raise fault(
                f"has {self.asked!r:.40} as `asked`, and no `express`",
                "a method that writes actions as an answer to the question",
            )
        if kind.load is Benchmark.load and kind.steps is Benchmark.steps:
            raise fault("has neither `steps` nor `load`", "one of them: it reads the data")
        for option, values in self.allowed.items():
            if isinstance(values, str) or not values:
                raise fault(
                    f"has {values!r} as the values of the option {option} in `allowed`",
                    'a tuple of texts, the default first; ("",) where any text is one',
                )
        units = self.allowed.get("coordinates", ())
        if unknown := [unit for unit in units if answer_space({"coordinates": unit}) is None]:
            raise fault(
                f"has {unknown[0]!r} as a value of the option coordinates in `allowed`",
                f"units that places may be in: {', '.join(get_args(Space))}",
                meant(str(unknown[0]), get_args(Space)),
            )
        try:
            msgspec.inspect.type_info(self.parsed_type)
        except (NameError, TypeError) as error:
            raise fault(
                f"has {self.parsed_type!r:.80} as `parsed_type`: {error}",
                "a type that msgspec supports, such as a TypedDict",
            ) from None
        profiles = getattr(kind, "profiles", None)
        for key, profile in profiles.items() if isinstance(profiles, Mapping) else ():
            if isinstance(profile, type) or profile.name != key:
                raise fault(
                    f"has {profile!r:.80} as {key!r} in `profiles`",
                    "a profile by its own name: {Exact.name: Exact()} of a class Exact",
                )
            reach = getattr(profile, "reach", 0)
            if not is_number(reach) or not (reach == 0 or 1 <= reach < math.inf):
                raise fault(
                    f"has {reach!r:.80} as `reach` of its profile {key}",
                    "the allowed distance from a target point, in thousandths of the screen: "
                    "140 for 14 %",
                )
        if kind.prompt is not Benchmark.prompt:
            return
        question = getattr(self, "question", None)
        if question is None and kind.__init__ is Benchmark.__init__:
            raise fault("has neither `question` nor `prompt`", "one of them: it asks the question")
        if OPTIONS.keys() <= self.allowed.keys() and kind.elements is Benchmark.elements:
            raise fault(
                f"has the options {' and '.join(OPTIONS)}, and no `elements`",
                "a method that returns the elements of a step's screen",
            )
        for found in _ALONE.findall(question or ""):
            if not _BLANK.fullmatch(found):
                blanks = [f"{{{name}}}" for name in _FILLED]
                raise fault(
                    f"has {found} in `question`, which is no placeholder",
                    f"{' or '.join(blanks)}; braces around several words stay as they are",
                    meant(found, blanks)
                    or "use other characters than braces, or override `prompt`",
                )

    def _fault(self, what: str, expected: str, remedy: str = "") -> PluginError:
        kind = type(self)
        return PluginError(
            f"{kind.__name__} {what}",
            where=f"{kind.__module__}.{kind.__qualname__}",
            expected=expected,
            remedy=remedy or "fix the class, or report it to the authors of the plug-in",
        )

    @property
    def published(self) -> Published:
        """The published results of its paper; none by default."""
        return Published()

    def goal(self, step: Step) -> str:
        """Return the task of the model, or the element to point at: the instruction."""
        return step.instruction

    def right_actions(self, step: Step) -> Sequence[Action]:
        """Return the right actions in order, for dialects to write.

        By default the step's action, and what is done after it; nothing where there is none.
        """
        if step.action is None:
            return ()
        return (replace(step.action, then=()), *step.action.then)

    @property
    def label_sense(self) -> Sense:
        """The sense of directions in the labels from which models learn the benchmark.

        A dialect that keeps the words of labels is read and written in this sense.
        """
        return "content"

    def fed_size(self, step: Step) -> Screen | None:
        """Return width and height in pixels of the picture as fed, as the row states them.

        They count for an answer in pixels without a receipt. By default rows do not say it.
        """
        return None

    def asked_of(self, step: Step) -> Asked | None:
        """Return what the prompt asks of one step; None if it is neither an action nor a place.

        Dialects have no words for such a step: it keeps the task's own. By default all steps are
        asked for what `asked` says.
        """
        return self.asked

    def takes(self, actions: Sequence[Action]) -> int:
        """Return how many of an agent's actions, from the first, one answer of the task can hold.

        One by default, as most tasks ask for the next action alone; the others are counted.
        """
        return 1

    def express(self, actions: Sequence[Action], step: Step) -> str:
        """Write actions as an answer to the question, for `profiles` to judge.

        A task that defines it says in `asked` what it asks for.

        Args:
            actions: one or more, as many as `takes` says. Places are points in the unit of the
                option `coordinates`, or in pixels of the screenshot as it was sent where there is
                no such option; their numbers stay as they are.
            step: what was asked about.

        Raises:
            CannotSayError: the answers of the task have no words for one of them.
        """
        raise NotImplementedError

    def application(self, step: Step) -> str:
        """Return the step's app, the tag `app` or `application`, or an empty string."""
        return step.tags.get("app") or step.tags.get("application") or ""

    def spelling(self, tag: str, value: str) -> str:
        """Return the normal form of a tag's value, so that spellings of one value are equal."""
        return value

    def language_of(self, app: str) -> str | None:
        """Return the language of an app whose episodes state none; None by default."""
        return None

    def spoken(self, step: Step) -> Sequence[str]:
        """Return the texts that `omnidata voice` speaks: the instruction."""
        return (step.instruction,)

    def instructions(self, step: Step, episode_row: Mapping[str, Any]) -> Sequence[str]:
        """Return the instruction in each wording and language of its rows, to find leaks.

        Args:
            step: of the data.
            episode_row: as in `instruction_by_language`.
        """
        return (step.instruction,)

    def instruction_by_language(
        self, step: Step, episode_row: Mapping[str, Any]
    ) -> Mapping[str, str]:
        """Return the instruction by language ("en", "zh"), for `-T language`; empty by default.

        Args:
            step: of the data.
            episode_row: the row of its episode, where the data have any beside those of steps.
        """
        return {}

    def action_log(self, events: Path) -> Log | None:
        """Read the log of a raw recording, for `omnidata segment`; None if it is none.

        By default nothing is one.

        Raises:
            DataError: it is one, and cannot be read.
        """
        return None

    def log_difference(
        self, step: Step, row: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
    ) -> Difference | None:
        """Return the first column in which another harness's log contradicts the step.

        By default any column that the step's untouched row has too.

        Args:
            step: what the row may be.
            row: the row as the log has it, or what it keeps of it; empty where it keeps nothing.
            records: what metrics keep of it, beside their own values.
        """
        places = step.action.start if step.action and all(step.screen) else ()
        regions = [in_pixels(place, step.screen) for place in places]
        targets = [region for region in regions if isinstance(region, Box)]
        return difference(step.source, row, records, screen=step.screen, targets=targets)

    @property
    def default_profile(self) -> str:
        """The first of the profiles.

        Raises:
            PluginError: there is none.
        """
        for name in self.profiles:
            return name
        raise self._fault(
            "has no profile", "`profiles` with at least one profile that judges answers"
        )

    @cached_property
    def prompt_hash(self) -> str:
        """SHA-256 of the question and the options.

        A task with a prompt of its own puts all of the prompt's texts into `question`, or says here
        what else its prompt depends on: runs with other prompts must have other hashes.
        """
        return hash_of([self.name, self.question, dict(sorted(self.options.items())), *self._told])

    @property
    def observation(self) -> Kind:
        """The value of the option `observation`: how the prompt shows the screen."""
        if not OPTIONS.keys() <= self.options.keys():
            return "screenshot"
        return next(kind for kind in get_args(Kind) if kind == self.options["observation"])

    @property
    def _told(self) -> Sequence[str]:
        return texts(self.observation)

    def elements(self, step: Step) -> Sequence[Element]:
        """Return the elements of a step's screen: its whole accessibility tree, in order.

        A task that defines it allows the options `omnidata.tasks.observation.OPTIONS`.

        Raises:
            MediaError: the step has no tree, or one that cannot be read.
        """
        raise NotImplementedError

    def observed(self, step: Step) -> Observation | None:
        """Return the tree as the prompt has it; None if the prompt has only the screenshot.

        Raises:
            MediaError: there is no tree that could be shown.
        """
        kind = self.observation
        if kind == "screenshot":
            return None
        most = self.options["a11y_tokens"]
        return tell(
            self.elements(step),
            kind,
            step=step,
            space=answer_space(self.options) or "px",
            most=None if most == UNLIMITED else int(most),
        )

    def marked(self, step: Step) -> Sequence[Element]:
        """Return the elements with marks, in the order of their numbers."""
        if self.observation != "som":
            return ()
        try:
            found = self.observed(step)
        except MediaError:
            return ()
        return found.elements if found else ()

    def with_observation(self, step: Step, media: Sequence[Part]) -> Sequence[Part]:
        """Return the media of a prompt, the screenshot replaced as `observation` asks.

        Raises:
            MediaError: there is no tree that could be shown.
        """
        found = self.observed(step)
        return parts_of(found, media, answer_space(self.options) or "px") if found else media

    @cached_property
    def baselines(self) -> Sequence[str]:
        """The names for `baseline`; with `center` if answers have places."""
        placed = answer_space(self.options) is not None
        return ("oracle", "majority", "center") if placed else ("oracle", "majority")

    def steps(self, data: Path, note: Callable[[Finding], None]) -> Iterable[Step | None]:
        """Read the benchmark's own files: the steps, each episode's in order.

        Args:
            data: as the user named it; it exists.
            note: is told what is wrong with a row; of one that becomes no step it is an error that
                names no step which is there.

        Yields:
            Steps; None for a row that becomes none, where other harnesses number the rows.

        Raises:
            DataError: nothing readable as this benchmark is there.
        """
        raise NotImplementedError

    @_of_urls_too
    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        """Read the dataset's annotations: `steps`, or those of a Parquet repository of the task.

        Args:
            data: as the user named it.
            check_media: look whether the media exist.
            strict: make the first finding an error.

        Raises:
            DataError: nothing readable as this benchmark is there.
        """
        return load_data(
            data,
            self.name,
            self.tags or (),
            lambda: self._source(data, check_media=check_media),
            strict=strict,
            check_media=check_media,
        )

    def _source(self, data: Path, *, check_media: bool) -> LoadedDataset:
        if not data.exists():
            raise DataError(
                "there is no such file or folder",
                where=str(data),
                expected=self._expected,
                remedy="check the path",
            )
        findings: list[Finding] = []
        places = array("q")  # of each row the number of its step, -1 for none
        rows = numbered(self._rows(data, findings), places)
        steps = collect(self.named(step) or step for step in rows)
        if not steps:
            raise self._nothing(data, findings)
        there = Positions(steps)
        errors = (found for found in findings if found.severity == "error")
        skipped = sum(not any(name in there for name in found.sample_ids) for found in errors)
        roles = self.roles
        if roles is None:
            shown = (item for step in steps for item in step.media.items())
            roles = {role: ref.kind for role, ref in shown if ref}
        if check_media:
            shot = "screenshot" in roles
            files.check_media_files(steps, findings.append, always_shown=shot)
        return LoadedDataset(
            self.name,
            data,
            steps,
            findings,
            skipped,
            self.fingerprint(data),
            row_ids(steps, places),
            tuple(dict.fromkeys(tag for step in steps for tag in step.tags))
            if self.tags is None
            else self.tags,
            roles,
        )

    def _rows(self, data: Path, findings: list[Finding]) -> Iterator[Step | None]:

        def note(found: Finding) -> None:
            if not isinstance(found, Finding):
                raise TypeError(
                    f"`note` received {found!r:.300}: expected Finding(code, severity, "
                    "where, what, "
                    "expected, remedy, sample_ids) of omnidata.errors"
                )
            findings.append(found)

        given = self.steps(data, note)
        function = f"`steps` of {self.name}"
        for step in STEPS.of(given, function, str(data)):
            if not (step is None or isinstance(step, Step)):
                frame = given.gi_frame if isinstance(given, GeneratorType) else None
                line = f"{frame.f_code.co_filename}:{frame.f_lineno}: " if frame else ""
                STEP.of(step, line + function, str(data))
            yield step

    @property
    def _expected(self) -> str:
        columns = self.files.columns if self.files else ""
        return self.expects or columns or f"the data of {self.name}"

    def _nothing(self, data: Path, findings: Sequence[Finding]) -> DataError:
        if not findings:
            return DataError(
                f"the data have no row of {self.name}",
                where=str(data),
                expected=self._expected,
                remedy=files.OTHER_DATA,
            )
        return DataError(
            f"no row of {self.name} could be read: {findings[0].what}",
            where=findings[0].where,
            expected=findings[0].expected or self._expected,
            remedy="correct the rows, or name other data",
        )

    def ask_about(self, source: LoadedDataset) -> Questions:
        """Return its steps about data of the task `asks_about`; its own data unchanged."""
        return Questions(source, {})

    def succeeded(self, steps: Sequence[Step], row: Mapping[str, Any]) -> bool | None:
        """Return whether an episode fulfilled its instruction; None if its rows do not say it.

        By default they do not: the episodes of a dataset are taken for an expert's.

        Args:
            steps: all of the episode, in order.
            row: its own, from `LoadedDataset.episode_rows`; empty where the source has none.
        """
        return None

    @_of_urls_too
    def detect(self, data: Path) -> bool | None:
        """Return whether the data have rows of the task, from the beginning of the files.

        A task that says it is found by `omnidata info DATA`, and errors about data that are its
        rows name it. `DataError` or `OSError` mean no.

        Returns:
            By default whether `files` knows one there, or else whether `steps` gives one; None
            where the task does not say it, as where `load` alone reads the data.
        """
        if self.files:
            return self.files.recognises(data)
        if type(self).steps is Benchmark.steps:
            return None
        return any(step is not None for step in self.steps(data, lambda finding: None))

    @_of_urls_too
    def fingerprint(self, data: Path) -> str:
        """Return the SHA-256 of the annotations.

        By default over those that `files` knows, or else over all but those with the endings of
        media.
        """
        if self.files:
            return self.files.fingerprint(data)
        if not data.exists():  # the loader may know a place that is no file
            return self.load(data, check_media=False).fingerprint
        paths = [path for path in files.walk(data) if path.suffix.lower() not in _MEDIA]
        return files.fingerprint(paths, data if data.is_dir() else data.parent)

    def named(self, step: Step) -> Step | None:
        """Return the step with its episode and its group, also for rows of a Parquet repository.

        None where there is no such rule, as by default: such steps belong to their episodes, as
        `Step` names them, or to what the repository says.

        Raises:
            UnusableRowError: the step lacks what every step of the task has.
        """
        return None

    def together(self, steps: Sequence[Step], note: Callable[[Finding], None]) -> Sequence[Step]:
        """Return the steps, each episode in one group; unchanged by default.

        Args:
            steps: of a dataset, each episode's in order.
            note: is told of the episodes whose rows disagree.
        """
        return steps

    def answer(self, step: Step) -> str | None:
        """Return the right answer in the form that the question asks for; None if there is none."""
        found = self._right(step)
        return found.text if found else None

    def _right(self, step: Step) -> Target | None:
        found: Target | None = TARGET.of(
            self.target(step), f"`target` of {self.name}", step.sample_id
        )
        return found

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        """Return the conversation for one step."""
        media = [
            Part(ref.kind, media=ref, role=role)
            for role, ref in step.media.items()
            if ref and (self.shown is None or role in self.shown)
        ]
        said = {"instruction": step.instruction, "history": self._history(step, predicted)}
        asked = _BLANK.sub(lambda blank: said[blank[1]], self.question)
        user = Message("user", (*self.with_observation(step, media), Part("text", asked)))
        return (Message("system", (Part("text", self.system),)), user) if self.system else (user,)

    def earlier(
        self, step: Step, predicted: Sequence[Action | None] | None
    ) -> Sequence[Action | None]:
        """Return the earlier actions of a prompt, by the option `history`.

        In the place of those beyond `history_window` is None, as in the place of missing steps.
        """
        wanted = self.options.get("history", "gold")
        past = () if wanted == "none" else step.history if wanted == "gold" else predicted or ()
        first = self.forgotten(len(past))
        return (*[None] * first, *past[first:]) if first else past

    def forgotten(self, count: int) -> int:
        """Return how many of the earlier actions `history_window` leaves out."""
        return 0 if self.history_window is None else max(0, count - self.history_window)

    def _history(self, step: Step, predicted: Sequence[Action | None] | None) -> str:
        past = self.earlier(step, predicted)
        lines = [
            f"Step {number}: {history_text(action, screen)}"
            for number, (action, screen) in enumerate(zip(past, step.history_screens, strict=False))
            if action is not None
        ]
        return "\n".join(lines) or "nothing"

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """Return the right answer, for training data and `oracle`.

        Args:
            step: one of the task's.
            space: the unit of coordinates; None = that of the task's options.
            size: width and height of the screenshot as the model is shown it, whose pixels "px"
                means; None = the step's screen.

        Returns:
            None where the source has none that can be used.
        """
        text = ANSWER.of(self.answer(step), f"`answer` of {self.name}", step.sample_id)
        return None if text is None else Target(text, text)

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """Return a baseline: the right answers (`oracle`), or one answer for all steps.

        `majority` gives the most frequent right answer, whose places are in the middle of the
        screen; `center` the most frequent one that has one place. Answers that differ in their
        places alone are one; of several that are as frequent it is the one that comes first in
        the steps.

        Raises:
            UsageError: another baseline, or an option.
        """
        if name not in self.baselines:
            raise UsageError(
                f'{self.name} has no baseline "{name}"',
                where=f"--model baseline:{name}",
                expected=f"one of {', '.join(f'baseline:{each}' for each in self.baselines)}",
                remedy="choose one of these",
            )
        for option, value in options.items():
            raise UsageError(
                f"baseline:{name} has no options",
                where=f"-M {option}={value}",
                remedy="leave it out",
            )
        return self.policy(name, steps)

    def policy(self, name: str, steps: Sequence[Step]) -> Callable[[Step], str]:
        """Return the rule of a baseline, for a task with its own rules.

        Args:
            name: one of `baselines`.
            steps: those it may look at.
        """
        if name == "oracle":
            return lambda step: found.text if (found := self._right(step)) else ""
        targets = [found for step in steps if (found := self._right(step))]
        if name == "center":
            targets = [target for target in targets if len(target.points) == 1]
        if not targets:
            return lambda step: ""
        counts = Counter(target.template for target in targets)
        usual = max(targets, key=lambda target: counts[target.template])
        space = answer_space(self.options)
        return lambda step: center_places(usual, step.screen, space=space) if space else usual.text

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """Return None: no prompt shows the model's own earlier answers."""
        return None

    def diagram(self, source: LoadedDataset, step: Step) -> TaskDiagram | None:
        """Return the graph of subtasks of the step's task, for its page; None by default.

        Args:
            source: what `load` gave.
            step: one of its steps.
        """
        return None

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Explain a verdict from the step's action, `read` and the values."""
        return explain(self, self.profiles[profile], step, verdict, receipt=receipt)


def explain(
    reader: Reader,
    profile: Profile,
    step: Step,
    verdict: Verdict | None,
    *,
    receipt: Mapping[str, Any] | None,
) -> Explanation:
    """Return the explanation for a benchmark without its own.

    Args:
        reader: reads what the profile read in an answer, as JSON or code, as an action.
        profile: whose verdict it is.
        step: the step.
        verdict: on an answer to it; None tells of the step alone.
        receipt: of the answer.
    """
    reach = getattr(profile, "reach", REACH)  # one that has the contract's members alone has none
    rule = Rule(borderline="", reach=reach)
    return by_action(
        step,
        verdict,
        profile,
        lambda: read_again(reader, verdict),
        receipt=receipt,
        sentence=lambda wanted, said, places, right: explain_action(
            step, wanted, said, places, right=right, rule=rule
        ),
        reach=reach,
        rules_known=False,
    )
