"""Base class for benchmarks."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from msgspec.structs import replace

from omnidata.actions import Action, Screen, Sense, Space, history_text
from omnidata.dialects import Asked
from omnidata.errors import Finding
from omnidata.jsontext import hash_of
from omnidata.loaders.files import RowFiles
from omnidata.loaders.load import load_data
from omnidata.loaders.steps_cache import reader_facts
from omnidata.mirror import local
from omnidata.tasks.baselines import answer_policy, check_baseline
from omnidata.tasks.class_checks import BLANKS, check_options, check_question, check_reach, fault
from omnidata.tasks.coordinates import answer_space
from omnidata.tasks.derivation import Derivation
from omnidata.tasks.diagnosis import REACH
from omnidata.tasks.explaining import RuleWords, by_action, explain_action, read_again
from omnidata.tasks.given_options import resolve
from omnidata.tasks.loading import fingerprint_all, read_steps
from omnidata.tasks.log_rows import Difference, step_difference
from omnidata.tasks.longest import read_beginning
from omnidata.tasks.observation import (
    Element,
    Kind,
    ScreenDisplay,
    effective_options,
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

_BLANK = re.compile(rf"\{{({'|'.join(BLANKS)})\}}")

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
        holds: one line about its questions and data.
        expects: the files of the data in words, for `omnidata info` and for errors. Defaults to the
            columns of `files`.
        sources: where the data are published, and under which licence. If several have the same
            tags, `omnidata fetch` takes the first by default.
        unpublished: why there is no source, if there is none.
        asks_about: the task whose data it asks about; empty if it has its own data.
        annotates: the annotation of its answers to those data, for `omnidata synth`; None for none.
        derivation: how its rows are derived from other tasks, for `omnidata synth`; None if they
            are not.
        platform: "web", "desktop" or "mobile" if all its data are of one; else empty, and a tag
            `platform` may say it.
        tags: names of its steps' tags; None if they depend on the data.
        roles: its steps' media and their kinds; None if they depend on the data.
        other_moments: roles whose media show an earlier moment, or the result of the action.
            `omnidata info` does not count them as input of an agent.
        subsets: subsets that all its data have; the data may have more.
        needs_predictions: whether prompts show the model's own earlier actions;
            `-T history=predicted` sets it.
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
        PluginError: a member has a value that would be misread.
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
        """Let data be URLs, and limit what `read` reads of an answer."""
        super().__init_subclass__(**options)
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
        kind = type(self)
        check_options(kind, self.allowed)
        profiles = getattr(kind, "profiles", None)
        for key, profile in profiles.items() if isinstance(profiles, Mapping) else ():
            if profile.name != key:
                raise fault(
                    kind,
                    f"has {profile!r:.80} as {key!r} in `profiles`",
                    "a profile by its own name: {Exact.name: Exact()} of a class Exact",
                )
            check_reach(kind, key, getattr(profile, "reach", 0))
        if kind.prompt is Benchmark.prompt:
            check_question(kind, getattr(self, "question", ""))

    @property
    def published(self) -> Published:
        """The published results of its paper; none by default."""
        return Published()

    def goal(self, step: Step) -> str:
        """Return the task of the model, or the element to point at: the instruction."""
        return step.instruction

    def right_actions(self, step: Step) -> Sequence[Action]:
        """Return the right actions in order, for dialects to write.

        By default the step's action and those after it; none for a step without an action.
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
        """Return width and height in pixels of the picture as fed, if the row states them.

        They apply to answers in pixels without a receipt. None by default.
        """
        return None

    def asked_of(self, step: Step) -> Asked | None:
        """Return the kind of question of one step; None if it is neither an action nor a place.

        Dialects do not support such a step, which keeps the task's prompt. By default `asked`.
        """
        return self.asked

    def takes(self, actions: Sequence[Action]) -> int:
        """Return how many of an agent's actions, from the first, one answer of the task can hold.

        By default one: the next action. The others are counted.
        """
        return 1

    def express(self, actions: Sequence[Action], step: Step) -> str:
        """Write actions as an answer to the question, for `profiles` to judge.

        A task that defines it also sets `asked`.

        Args:
            actions: one or more, at most as many as `takes` returns. Places are points in the unit
                of the option `coordinates`, or without this option in pixels of the sent
                screenshot; their numbers do not change.
            step: of the question.

        Raises:
            CannotSayError: the task's answers cannot express an action.
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
            episode_row: the row of its episode, if the data have rows of episodes.
        """
        return {}

    def action_log(self, events: Path) -> Log | None:
        """Read the log of a raw recording, for `omnidata segment`; None if it is not a log.

        By default None.

        Raises:
            DataError: the log cannot be read.
        """
        return None

    def log_difference(
        self, step: Step, row: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
    ) -> Difference | None:
        """Return the first column in which another harness's log contradicts the step.

        By default it compares the columns of the step's untouched row.

        Args:
            step: the candidate for the row.
            row: the columns of the row in the log; empty if it has none.
            records: the columns that metrics keep of the row, beside their own values.
        """
        return step_difference(step, row, records)

    @property
    def default_profile(self) -> str:
        """Return the name of the first profile.

        Raises:
            PluginError: there is none.
        """
        for name in self.profiles:
            return name
        raise fault(
            type(self), "has no profile", "`profiles` with at least one profile that judges answers"
        )

    @cached_property
    def prompt_hash(self) -> str:
        """SHA-256 of the question and the options.

        A task with its own prompt puts all texts of it into `question`, or overrides this hash:
        runs with different prompts must have different hashes.
        """
        return hash_of([self.name, self.question, dict(sorted(self.options.items())), *self._told])

    @cached_property
    def screens(self) -> ScreenDisplay:
        """How prompts show the screen, by the option `observation`."""
        return ScreenDisplay(self.options, self.elements)

    @property
    def observation(self) -> Kind:
        """The value of the option `observation`: how the prompt shows the screen."""
        return self.screens.kind

    @property
    def _told(self) -> Sequence[str]:
        return texts(self.observation)

    def elements(self, step: Step) -> Sequence[Element]:
        """Return the elements of a step's screen: its whole accessibility tree, in order.

        A task that defines it allows the options `omnidata.tasks.observation.OPTIONS`.

        Raises:
            MediaError: the step has no readable tree.
        """
        raise NotImplementedError

    @cached_property
    def baselines(self) -> Sequence[str]:
        """The names for `baseline`; with `center` if answers have places."""
        placed = answer_space(self.options) is not None
        return ("oracle", "majority", "center") if placed else ("oracle", "majority")

    def steps(self, data: Path, note: Callable[[Finding], None]) -> Iterable[Step | None]:
        """Read the benchmark's own files: the steps, each episode's in order.

        Args:
            data: as the user named it; it exists.
            note: takes the findings; the finding of a skipped row is an error and names no step.

        Yields:
            Steps; None for a skipped row if other harnesses number the rows.

        Raises:
            DataError: the data have nothing readable of this benchmark.
        """
        raise NotImplementedError

    @_of_urls_too
    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        """Read the dataset's annotations, from its own files or a Parquet repository of the task.

        Args:
            data: as the user named it.
            check_media: check that the media exist.
            strict: make the first finding an error.

        Raises:
            DataError: the data have nothing readable of this benchmark.
        """
        return load_data(
            data,
            self.name,
            self.tags or (),
            lambda: read_steps(
                self.name,
                data,
                self.steps,
                self.named,
                tags=self.tags,
                roles=self.roles,
                fingerprint=self.fingerprint,
                expected=self._expected,
                check_media=check_media,
            ),
            strict=strict,
            check_media=check_media,
            depends=reader_facts(self),
        )

    @property
    def _expected(self) -> str:
        columns = self.files.columns if self.files else ""
        return self.expects or columns or f"the data of {self.name}"

    def ask_about(self, source: LoadedDataset) -> Questions:
        """Return its steps about data of the task `asks_about`; its own data unchanged."""
        return Questions(source, {})

    def succeeded(self, steps: Sequence[Step], row: Mapping[str, Any]) -> bool | None:
        """Return whether an episode fulfilled its instruction; None if unknown.

        None by default: episodes of a dataset are assumed to be an expert's.

        Args:
            steps: all of the episode, in order.
            row: its own, from `LoadedDataset.episode_rows`; empty if the source has none.
        """
        return None

    @_of_urls_too
    def detect(self, data: Path) -> bool | None:
        """Return whether the data have rows of the task, from the beginning of the files.

        It lets `omnidata info DATA` and errors about the data name the task. `DataError` or
        `OSError` mean no.

        Returns:
            By default whether `files` recognises one, or else whether `steps` yields one; None if
            unknown, as for a task with only `load`.
        """
        if self.files:
            return self.files.recognises(data)
        if type(self).steps is Benchmark.steps:
            return None
        return any(step is not None for step in self.steps(data, lambda finding: None))

    @_of_urls_too
    def fingerprint(self, data: Path) -> str:
        """Return the SHA-256 of the annotations.

        By default over the files that `files` recognises, or else over all files but media.
        """
        if self.files:
            return self.files.fingerprint(data)
        if not data.exists():  # the loader may know a place that is no file
            return self.load(data, check_media=False).fingerprint
        return fingerprint_all(data)

    def named(self, step: Step) -> Step | None:
        """Return the step with its episode and its group, also for rows of a Parquet repository.

        None without such a rule, as by default: the group is then the step's episode or the
        repository's column.

        Raises:
            UnusableRowError: the step lacks a part that every step of the task has.
        """
        return None

    def together(self, steps: Sequence[Step], note: Callable[[Finding], None]) -> Sequence[Step]:
        """Return the steps, each episode in one group; unchanged by default.

        Args:
            steps: of a dataset, each episode's in order.
            note: takes the findings about episodes whose rows disagree.
        """
        return steps

    def answer(self, step: Step) -> str | None:
        """Return the right answer in the form that the question asks for; None if there is none."""
        found = self.target(step)
        return found.text if found else None

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        """Return the conversation for one step."""
        media = [
            Part(ref.kind, media=ref, role=role)
            for role, ref in step.media.items()
            if ref and (self.shown is None or role in self.shown)
        ]
        said = {"instruction": step.instruction, "history": self._history(step, predicted)}
        asked = _BLANK.sub(lambda blank: said[blank[1]], self.question)
        user = Message("user", (*self.screens.parts(step, media), Part("text", asked)))
        return (Message("system", (Part("text", self.system),)), user) if self.system else (user,)

    def earlier(
        self, step: Step, predicted: Sequence[Action | None] | None
    ) -> Sequence[Action | None]:
        """Return the earlier actions of a prompt, by the option `history`.

        Actions beyond `history_window` and missing steps are None.
        """
        wanted = self.options.get("history", "gold")
        past = () if wanted == "none" else step.history if wanted == "gold" else predicted or ()
        first = self.forgotten(len(past))
        return (*[None] * first, *past[first:]) if first else past

    def forgotten(self, count: int) -> int:
        """Return the number of earlier actions that `history_window` leaves out."""
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
            size: width and height in pixels of the screenshot as sent, for the unit "px"; None =
                the step's screen.

        Returns:
            The answer; None if the source has no usable one.
        """
        text = self.answer(step)
        return None if text is None else Target(text, text)

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """Return a baseline: a function from a step to its answer, see `answer_policy`.

        Raises:
            UsageError: the baseline or an option does not exist.
        """
        check_baseline(self.name, name, self.baselines, options)
        return self.policy(name, steps)

    def policy(self, name: str, steps: Sequence[Step]) -> Callable[[Step], str]:
        """Return the rule of a baseline, for a task with its own rules.

        Args:
            name: one of `baselines`.
            steps: the steps that the rule may use.
        """
        return answer_policy(name, steps, self.target, answer_space(self.options))

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """Return None: no prompt shows the model's own earlier answers."""
        return None

    def history_action(
        self, step: Step, text: str, receipt: Mapping[str, Any] | None = None
    ) -> Action | None:
        """Return an answer to a step as an action for histories of predictions."""
        return self.read(text, receipt)

    def explanation(
        self,
        step: Step,
        verdict: Verdict | None,
        text: str,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Explain a verdict on a text, by `explain`, which knows `Verdict.parsed` alone."""
        return self.explain(step, verdict, profile=profile, receipt=receipt)

    def diagram(self, source: LoadedDataset, step: Step) -> TaskDiagram | None:
        """Return the graph of subtasks of the step's task, for its page; None by default.

        Args:
            source: the loaded data.
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
        rules = self.profiles[profile]
        reach = getattr(rules, "reach", REACH)
        rule = RuleWords(borderline="", reach=reach)
        return by_action(
            step,
            verdict,
            rules,
            lambda: read_again(self, verdict),
            receipt=receipt,
            sentence=lambda wanted, said, places, right: explain_action(
                step, wanted, said, places, right=right, rule=rule
            ),
            reach=reach,
            rules_known=False,
        )
