"""The contract of a benchmark: from files to steps, from a step to a question, to a verdict.

A benchmark describes itself (`card`, `allowed`), reads its files (`steps`), asks (`question` or
`prompt`), reads an answer (`parse`), knows the right one (`target`) and judges (`rules`). Features
of some benchmarks are optional objects, None by default; one part of omnidata asks for each.
`docs/design/contract.md` gives the reasons. `omnidata.tasks.asking.Asking` asks
and judges with a benchmark.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from omnidata.actions import Action, Screen, Sense, Space, history_text
from omnidata.dialects import Asked, UnreadError
from omnidata.errors import Finding
from omnidata.jsontext import hash_of
from omnidata.loaders.load import load_data
from omnidata.loaders.steps_cache import reader_facts
from omnidata.tasks.baselines import answer_policy
from omnidata.tasks.class_checks import check_option, check_question, check_rule, fault
from omnidata.tasks.coordinates import answer_space, in_shares
from omnidata.tasks.diagnosis import REACH
from omnidata.tasks.explaining import explain_by_action
from omnidata.tasks.given_options import resolve
from omnidata.tasks.loading import fingerprint_all, read_steps
from omnidata.tasks.log_rows import Difference, step_difference
from omnidata.tasks.observation import ScreenDisplay, texts
from omnidata.tasks.overview import View
from omnidata.tasks.published import HISTORY, Published, TableSpec, Variation
from omnidata.tasks.sentences import RuleWords, explain_action
from omnidata.tasks.totals import EpisodeTotals, RowTotals
from omnidata.types import (
    Annotation,
    Conversation,
    Explanation,
    LoadedDataset,
    Message,
    Modality,
    Part,
    Publication,
    Questions,
    Remote,
    Step,
    Target,
    Verdict,
)

if TYPE_CHECKING:
    from omnidata.loaders.action_log import Log
    from omnidata.loaders.task_library import Library
    from omnidata.tasks.derivation import Derivation
    from omnidata.tasks.observation import Element
    from omnidata.tasks.profile import Profile
    from omnidata.tasks.rollouts import OfflineScorer
    from omnidata.types import TaskDiagram

__all__ = [
    "About",
    "AnswerReader",
    "Benchmark",
    "Card",
    "Episodes",
    "Files",
    "History",
    "LogRows",
    "Paper",
    "ParsedAnswer",
    "Rule",
    "Speech",
    "UnreadError",
    "Values",
    "Wordings",
    "hub_publication",
]

Value = TypeVar("Value")
Values = tuple[float | bool | None, ...]
Receipt = Mapping[str, Any] | None
Note = Callable[[Finding], None]
Corrections = Callable[
    [Path, Sequence[Step], Callable[[str, str], None]], Iterable[Mapping[str, Any]]
]
"""Makes the lines of an errata out of a file and the steps that it corrects: a head with `errata`
and `version`, then a correction a line. Rows that are of no use are reported by place and reason.
"""


class ParsedAnswer(Struct, Generic[Value], frozen=True):
    """An answer that was read.

    Attributes:
        value: the object that rules judge: actions, a place, letters, ... Pixels are those of
            the step's screen, whatever size the model was sent.
        record: the same as a JSON object, with numbers as the model wrote them: `Verdict.parsed`.
        written: the actions of the answer in their own unit, to explain places; empty where the
            answer is none.
        is_exact: whether the answer keeps to the letter of the prompt.
        note: a remark on an answer that was read, e.g. that a part of it was ignored.
    """

    value: Value
    record: dict[str, Any]
    written: tuple[Action, ...] = ()
    is_exact: bool = True
    note: str = ""


Parse = Callable[[str, Step, Receipt], ParsedAnswer[Value]]
"""Reads an answer to a step; raises `UnreadError` with the reason if it cannot."""


class AnswerReader(Protocol):
    """Reads answers in one dialect, for a rule that includes the released parser.

    It changes the values of a verdict, not whether the answer was read.

    Attributes:
        dialect: the name of the dialect.
    """

    dialect: str

    def judge(
        self,
        step: Step,
        text: str,
        action: Action | None,
        verdict: Verdict,
        receipt: Receipt,
    ) -> Verdict:
        """Return the verdict with the values that the released parser leads to.

        Args:
            step: the step.
            text: the whole answer.
            action: the first action of the answer, in the dialect's unit; None if it is unreadable.
            verdict: on the answer in the task's own words.
            receipt: has the size of the picture as fed, in pixels.
        """


class Rule(ABC, Generic[Value]):
    """A way to judge answers, and how its verdicts are added up.

    Attributes:
        name: as in `--profile NAME`.
        source: the paper, and the code, that the rule comes from.
        leaves_out: the steps that are left out, or other differences from published numbers.
        reach: allowed distance from a target point, in thousandths of the screen, which
            explanations of places take as near enough.
        totals: names of the values of a verdict, and the columns and axes of the table.
        parse: reads answers, where a released evaluator's reader is part of its verdict; None for
            `Benchmark.parse`.
        without_answer: returns the values of a step without an answer, where they differ from
            those of an empty answer.
        answer_reader: reads answers in the dialect whose released parser is part of the rule.
    """

    name: str
    source: str = ""
    leaves_out: str = ""
    reach: float = REACH
    totals: RowTotals | EpisodeTotals
    parse: Parse[Value] | None = None
    without_answer: Callable[[Step], Values] | None = None
    answer_reader: AnswerReader | None = None

    @abstractmethod
    def judge(self, step: Step, parsed: ParsedAnswer[Value] | None) -> Values | Verdict:
        """Compare an answer with the right one.

        Args:
            step: the step.
            parsed: the answer; None if it could not be read.

        Returns:
            The values that `totals` names, None for what cannot be judged. A whole verdict where
            the outcome does not follow from `parsed`, e.g. for a row that is at fault itself.
        """


@dataclass(frozen=True, kw_only=True)
class Card:
    """A benchmark in words and names.

    Attributes:
        title: display name.
        holds: one line about its questions and data.
        sources: where the data are published, and under which licence. If several have the same
            tags, `omnidata fetch` takes the first by default.
        unpublished: the reason why there is no source; empty if there is one.
        expects: the files of the data in words, for errors; those of `Benchmark.files` if empty.
        platform: "web", "desktop" or "mobile" if all its data are of one; else empty, and a tag
            `platform` may say it.
        tags: names of its steps' tags; None if they depend on the data.
        roles: its steps' media and their kinds; None if they depend on the data.
        other_moments: roles whose media show an earlier moment, or the result of the action.
        subsets: subsets that all its data have; the data may have more.
        detailed_actions: whether rows of `datasets` have the column `action_details`: actions have
            more than a label, places, a text and words. None if it depends on the data.
        history_window: the largest number of earlier actions in a prompt, the last ones; None for
            all. `-T history_window` sets it.
        prompted_space: the unit of coordinates that the prompt asks for, whatever
            `-T coordinates` says; None if the prompt follows the option, or there is no such one.
        answer_type: the type of `ParsedAnswer.record`, by which edited lines of scores are checked.
    """

    title: str
    holds: str = ""
    sources: Sequence[Publication] = ()
    unpublished: str = ""
    expects: str = ""
    platform: str = ""
    tags: Sequence[str] | None = None
    roles: Mapping[str, Modality] | None = None
    other_moments: Collection[str] = ("history_screenshot",)
    subsets: Sequence[str] = ()
    detailed_actions: bool | None = None
    history_window: int | None = None
    prompted_space: Space | None = None
    answer_type: Any = dict[str, Any]


def hub_publication(
    name: str,
    dataset: str,
    licence: str = "",
    *,
    paper: str = "",
    where: Mapping[str, str] | None = None,
    **facts: Any,
) -> Publication:
    """Return the publication of a dataset on the Hub, "OWNER/NAME".

    The other arguments are those of `Publication`, and `facts` those of `Remote`.
    """
    url, remote = f"https://huggingface.co/datasets/{dataset}", f"hf://datasets/{dataset}"
    return Publication(name, url, licence, where or {}, Remote(remote, **facts), paper=paper)


# The optional objects.


class Files(Protocol):
    """The files of a benchmark, recognised by their content."""

    @property
    def columns(self) -> str:
        """A description of the files, for errors."""

    def recognises(self, data: Path) -> bool:
        """Return whether the data have such a file."""

    def fingerprint(self, data: Path) -> str:
        """Return the SHA-256 of the annotations, in hexadecimal."""


@dataclass(frozen=True, kw_only=True)
class Paper:
    """The results and tables of a benchmark's paper.

    Attributes:
        published: reads the published results.
        tables: of the paper, the main one first; without one, reports show the first axis.
        variations: options that get a table of the runs that differ only in them.
        overview: counts the data for `omnidata info`.
    """

    published: Callable[[], Published] = Published
    tables: Sequence[TableSpec] = ()
    variations: Sequence[Variation] = (HISTORY,)
    overview: type[View] = View


class Speech(ABC):
    """The link to dialects, which ask for an action or a place in their own form.

    Attributes:
        asked: whether the prompt asks for the next action or for a place on the screen.
        label_sense: whose direction the labels of scrolls state, from which models learn.
    """

    asked: ClassVar[Asked]
    label_sense: Sense = "content"

    def question_kind(self, step: Step) -> Asked | None:
        """Return what one step asks for; None keeps the benchmark's own words."""
        return self.asked

    def goal(self, step: Step) -> str:
        """Return the task of the agent, or the element to point at."""
        return step.instruction

    def right_actions(self, step: Step) -> Sequence[Action]:
        """Return the right actions in order, in one of the ways if several are right."""
        if step.action is None:
            return ()
        return (replace(step.action, then=()), *step.action.then)

    def fed_size(self, step: Step) -> Screen | None:
        """Return width and height in pixels of the picture as fed, if the row states them."""
        return None

    def takes(self, actions: Sequence[Action]) -> int:
        """Return how many actions, from the first, one answer can hold; the others are counted."""
        return 1

    @abstractmethod
    def adopt(self, actions: Sequence[Action], step: Step, receipt: Receipt) -> ParsedAnswer[Any]:
        """Return an agent's actions as the answer that rules judge.

        Args:
            actions: one or more, at most as many as `takes` returns. Places are points in the unit
                of the option `coordinates`, or without this option in pixels of the sent picture.
            step: of the question.
            receipt: has the size of the sent picture.

        Raises:
            CannotSayError: the benchmark's answers cannot express an action.
        """


class Wordings:
    """Instructions in several wordings or languages, and names of tags in several spellings.

    Attributes:
        task_of: names the task if a step's instruction is one of its wordings, for `report`; an
            empty text for steps of no such task; None if no task has several.
    """

    task_of: Callable[[Step], str] | None = None

    def spelling(self, tag: str, value: str) -> str:
        """Return the normal form of a tag's value, so that spellings of one value are equal."""
        return value

    def application(self, step: Step) -> str:
        """Return the step's app, the tag `app` or `application`, or an empty string."""
        return step.tags.get("app") or step.tags.get("application") or ""

    def language_of(self, app: str) -> str | None:
        """Return the language of an app, for episodes that state none."""
        return None

    def spoken_texts(self, step: Step) -> Sequence[str]:
        """Return the texts that `omnidata voice` speaks."""
        return (step.instruction,)

    def instructions(self, step: Step, episode_row: Mapping[str, Any]) -> Sequence[str]:
        """Return the instruction in each wording and language of its rows, to find leaks."""
        return (step.instruction,)

    def instruction_by_language(
        self, step: Step, episode_row: Mapping[str, Any]
    ) -> Mapping[str, str]:
        """Return the instruction by language ("en", "zh"), for `-T language`."""
        return {}


class LogRows:
    """The names of a benchmark's rows in logs of other harnesses.

    Attributes:
        by_number: whether rows are numbered in the order of the data.
    """

    by_number: ClassVar[bool] = False

    def difference(
        self, step: Step, row: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
    ) -> Difference | None:
        """Return the first column in which a log contradicts the untouched row of a step.

        Args:
            step: the candidate for the row.
            row: the columns of the row in the log; empty if it has none.
            records: the columns that metrics keep of the row, beside their own values.
        """
        return step_difference(step, row, records)


class Episodes:
    """The relations between the steps of an episode.

    Attributes:
        history_lag: steps between a step and its `history_screenshot`, which `omnidata validate`
            checks; None if unknown.
        has_tree: whether the files are the tree that the demo, `segment` and `synth` write,
            `omnidata.loaders.episode_tree`.
    """

    history_lag: ClassVar[int | None] = None
    has_tree: ClassVar[bool] = False

    def success(self, steps: Sequence[Step], row: Mapping[str, Any]) -> bool | None:
        """Return whether an episode fulfilled its instruction; None if unknown.

        Args:
            steps: all of the episode, in order.
            row: its own, from `LoadedDataset.episode_rows`; empty if the source has none.
        """
        return None

    def merge_groups(self, steps: Sequence[Step], note: Note) -> Sequence[Step]:
        """Return the steps, each episode in one group.

        Args:
            steps: of a dataset, each episode's in order.
            note: takes the findings about episodes whose rows disagree.
        """
        return steps


@dataclass(frozen=True, kw_only=True)
class About:
    """Questions about the data of another benchmark.

    Attributes:
        benchmark: its name.
        annotation: what answers say about its data, for `omnidata synth`.
        questions: returns the questions about its data.
    """

    benchmark: str
    annotation: Annotation
    questions: Callable[[LoadedDataset], Questions]


@dataclass(frozen=True, slots=True)
class History:
    """The earlier actions that a prompt shows.

    Attributes:
        source: whose they are: "gold" for the expert's, "predicted" for the model's own, "none".
        predicted: the model's own, as far as they are known; None where an answer was no action.
        window: how many are shown at most, the last ones; None for all.
    """

    source: str = "gold"
    predicted: Sequence[Action | None] = ()
    window: int | None = None

    def actions(self, step: Step) -> Sequence[Action | None]:
        """Return the actions before a step; None for unknown ones and beyond the window."""
        if self.source == "none":
            return ()
        past = self.predicted if self.source == "predicted" else step.history
        first = self.first_shown(len(past))
        return (*[None] * first, *past[first:]) if first else past

    def lines(self, step: Step) -> list[str]:
        """Return a line for each known action before a step.

        Points in pixels of a screen of unknown size are left out.
        """
        found = []
        for number, (action, screen) in enumerate(
            zip(self.actions(step), step.history_screens, strict=False)
        ):
            if action is not None:
                if min(screen) < 1:
                    action, screen = in_shares(action, screen), (1, 1)
                found.append(f"Step {number}: {history_text(action, screen)}")
        return found

    def first_shown(self, count: int) -> int:
        """Return the index of the first of so many actions that is within the window."""
        return 0 if self.window is None else max(0, count - self.window)


_BLANK: Final = re.compile(r"\{(instruction|history)\}")


class Benchmark(ABC):
    """A benchmark: define `card`, `question`, `steps`, `parse`, `target` and `rules`.

    The prompt is one user message: the step's media in their order, the elements of the screen if
    the option `observation` asks for them, then the question. A benchmark with another prompt
    overrides `prompt` and `prompt_hash`.

    Attributes:
        card: the benchmark in words and names.
        allowed: its options and their values, the default first; "" allows any text. Places in
            answers are in the unit of the option `coordinates`; an option `history` is "gold" for
            the expert's earlier actions, "predicted" for the model's own, or "none".
        question: text of the prompt. `{instruction}` is the step's instruction, `{history}` the
            earlier actions.
        system: text of a system message; empty for none.
        shown: roles of the media in the prompt; None for all.
        rules: ways to judge, the default first.
        baselines: names of answers without a model.
        constants: the baselines that answer every step with the same text, and their texts.
        files: which files are its own; None if only `steps` can tell.
        paper: results and tables of its paper.
        rollouts: scores results without a model's text.
        speech: what dialects ask, and how they are judged; None if it asks for no action or place.
        elements: returns the accessibility tree of a step, for `-T observation`.
        wordings: instructions and names in several forms.
        episodes: how steps of an episode are related.
        about: the benchmark whose data it asks about; None if it has its own data.
        random: draws an answer to a step by a seed, for a baseline `random`.
        derivation: how its rows are made out of other benchmarks.
        library: reads its data as subtasks for composed tasks; None if they are none.
        recorder: reads raw logs of its recordings.
        log_rows: how other harnesses' logs name its rows.
        diagram: returns the graph of subtasks of a step's task.
        retarget: returns a step with another right action, for errata; a ValueError if the row
            cannot have it. None if `Step.action` alone says what is right.
        corrections: reads another project's file of corrected labels; None if none is known.

    Args:
        name: as in `omnidata evaluate NAME`.
        options: as given with `-T key=value`.

    Raises:
        UsageError: an option has an unknown name or value.
    """

    card: Card
    allowed: Mapping[str, Sequence[str]] = {}
    question: str = ""
    system: str = ""
    shown: Sequence[str] | None = None
    rules: Sequence[Rule[Any]]
    baselines: Sequence[str] = ("oracle", "majority")
    constants: Mapping[str, str] = {}

    files: Files | None = None
    paper: Paper = Paper()
    rollouts: OfflineScorer | None = None
    speech: Speech | None = None
    elements: Callable[[Step], Sequence[Element]] | None = None
    wordings: Wordings = Wordings()
    episodes: Episodes = Episodes()
    about: About | None = None
    random: Callable[[Step, int], str] | None = None
    derivation: Derivation | None = None
    library: Callable[[Path], Library] | None = None
    recorder: Callable[[Path], Log | None] | None = None
    log_rows: LogRows = LogRows()
    diagram: Callable[[LoadedDataset, Step], TaskDiagram | None] | None = None
    retarget: Callable[[Step, Action], Step] | None = None
    corrections: Corrections | None = None

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        self.name = name
        self.options: Mapping[str, str] = resolve(options, self.allowed, "-T")

    def check(self) -> None:
        """Refuse mistakes in the class that would change prompts or numbers without an error.

        Raises:
            PluginError: there is one.
        """
        kind = type(self)
        if not isinstance(getattr(self, "card", None), Card):
            raise fault(kind, "has no card", "`card = Card(title=...)`")
        rules = getattr(self, "rules", ())
        if not rules:
            raise fault(kind, "has no rule", "`rules` with at least one rule that judges answers")
        for option, values in self.allowed.items():
            check_option(kind, option, values)
        for rule in rules:
            check_rule(kind, rule)
        if kind.prompt is Benchmark.prompt:
            check_question(kind, self.question)

    # From files to steps.

    @abstractmethod
    def steps(self, data: Path, note: Note) -> Iterable[Step | None]:
        """Read the benchmark's own files: the steps, each episode's in order.

        Args:
            data: as the user named it; it exists.
            note: takes the findings; the finding of a skipped row is an error and names no step.

        Yields:
            Steps; None for a skipped row if other harnesses number the rows.

        Raises:
            DataError: the data have nothing readable of this benchmark.
        """

    def group(self, step: Step) -> Step | None:
        """Return the step with its episode and group, also for rows of a Parquet repository.

        By default None: the step and the columns of the repository say it.

        Raises:
            UnusableRowError: the step lacks a part that every step of the benchmark has.
        """
        return None

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        """Read the dataset's annotations, from its own files or a Parquet repository of the task.

        A benchmark whose dataset holds more than steps, such as rows of episodes, overrides this;
        its `steps` then returns those of the dataset.

        Args:
            data: as the user named it.
            check_media: check that the media exist.
            strict: make the first finding an error.

        Raises:
            DataError: the data have nothing readable of this benchmark.
        """
        expected = self.card.expects or (self.files.columns if self.files else "")
        return load_data(
            data,
            self.name,
            self.card.tags,
            lambda: read_steps(
                self.name,
                data,
                self.steps,
                self.group,
                tags=self.card.tags,
                roles=self.card.roles,
                fingerprint=self.files.fingerprint if self.files else fingerprint_all,
                expected=expected or f"the data of {self.name}",
                check_media=check_media,
            ),
            strict=strict,
            check_media=check_media,
            depends=reader_facts(self),
        )

    @property
    def data_of(self) -> str:
        """Name of the benchmark that its data belong to: its own, or that of `about`."""
        return self.about.benchmark if self.about else self.name

    def recognises(self, data: Path) -> bool | None:
        """Return whether the data are its own; None if it asks about data of another benchmark."""
        if self.about:
            return None
        if self.files:
            return self.files.recognises(data)
        return any(step is not None for step in self.steps(data, lambda finding: None))

    def fingerprint(self, data: Path) -> str:
        """Return the SHA-256 of the annotations, in hexadecimal."""
        if self.files:
            return self.files.fingerprint(data)
        return self.load(data, check_media=False).fingerprint

    # From a step to a question.

    def prompt(self, step: Step, history: History) -> Conversation:
        """Return the conversation for one step.

        Args:
            step: the step.
            history: the earlier actions to show.
        """
        media = [
            Part(ref.kind, media=ref, role=role)
            for role, ref in step.media.items()
            if ref and (self.shown is None or role in self.shown)
        ]
        shown = ScreenDisplay(self.options, self.elements).parts(step, media)
        past = "\n".join(history.lines(step)) or "nothing"
        texts = {"instruction": step.instruction, "history": past}
        question = _BLANK.sub(lambda blank: texts[blank[1]], self.question)
        user = Message("user", (*shown, Part("text", question)))
        return (Message("system", (Part("text", self.system),)), user) if self.system else (user,)

    @cached_property
    def prompt_hash(self) -> str:
        """SHA-256 of the prompt texts and the options; changes with every word of the prompt."""
        trees = texts(ScreenDisplay(self.options, self.elements).kind) if self.elements else ()
        return hash_of([self.name, self.question, dict(sorted(self.options.items())), *trees])

    # From an answer to a verdict.

    @abstractmethod
    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[Any]:
        """Read a model's answer.

        Args:
            text: the untrusted answer. Reading takes time linear in its length.
            step: of the question.
            receipt: what the model got; has the size of the sent picture.

        Raises:
            UnreadError: the text is no answer; the message says why.
        """

    @abstractmethod
    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """Return the right answer, for training data and `oracle`.

        Args:
            step: one of the benchmark's.
            space: the unit of coordinates; None = that of the options.
            size: width and height in pixels of the screenshot as sent, for the unit "px"; None =
                the step's screen.

        Returns:
            The answer; None if the source has no usable one.
        """

    def policy(self, name: str, steps: Sequence[Step]) -> Callable[[Step], str]:
        """Return a baseline: a function from a step to its answer.

        Args:
            name: one of `baselines`.
            steps: the steps that the rule may use.
        """
        if name in self.constants:
            return lambda step: self.constants[name]
        return answer_policy(name, steps, self.target, answer_space(self.options))

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        parsed: ParsedAnswer[Any] | None,
        profile: Profile,
        receipt: Receipt,
    ) -> Explanation:
        """Explain a verdict in words and pictures; without one, explain the step.

        By default the answer's actions are compared with the step's.

        Args:
            step: the step.
            verdict: on the answer; None without one.
            parsed: the answer; None if it could not be read.
            profile: whose verdict it is.
            receipt: of the answer.
        """
        written = parsed.written if parsed else ()
        words = RuleWords(borderline="", reach=profile.reach)
        return explain_by_action(
            step,
            verdict,
            profile,
            replace(written[0], then=written[1:]) if written else None,
            receipt=receipt,
            sentence=lambda wanted, said, places, right: explain_action(
                step, wanted, said, places, right=right, rule=words
            ),
            reach=profile.reach,
            rules_known=False,
        )
