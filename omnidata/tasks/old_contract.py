"""The bridge between the two contracts, until all benchmarks and callers have moved.

`OldNames` lets callers ask a benchmark of `tasks.benchmark` for the members that
`tasks.base.Benchmark` has. `adopt` and `judge_adopted` let a dialect serve both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from omnidata import remote
from omnidata.actions import Action, Screen, Sense, Space
from omnidata.dialects import Asked, UnreadError
from omnidata.tasks.coordinates import format_place
from omnidata.tasks.explaining import read_again
from omnidata.types import (
    Annotation,
    LoadedDataset,
    Modality,
    Profile,
    Publication,
    Questions,
    Step,
    Task,
    TaskDiagram,
    Verdict,
)

if TYPE_CHECKING:
    from omnidata.tasks.base import Benchmark as OldBenchmark
    from omnidata.tasks.benchmark import Benchmark, History, ParsedAnswer
    from omnidata.tasks.log_rows import Difference
    from omnidata.tasks.overview import View
    from omnidata.tasks.profiles import OfflineScorer
    from omnidata.tasks.published import Published, TableSpec, Variation

# ruff: noqa: D102  the names are documented in `omnidata.types.Task`


def adopt(
    task: Task, actions: Sequence[Action], step: Step, receipt: Mapping[str, Any] | None
) -> ParsedAnswer[Any] | str:
    """Return an agent's actions as an answer that a benchmark judges.

    Args:
        task: as `omnidata.tasks.get_task` returns it.
        actions: as in `Speech.adopt`.
        step: of the question.
        receipt: of the answer.

    Raises:
        CannotSayError: the benchmark's answers cannot express an action.
    """
    if speech := getattr(task, "speech", None):
        found: ParsedAnswer[Any] = speech.adopt(actions, step, receipt)
        return found
    return cast("OldBenchmark", task).express(actions, step)


def judge_adopted(
    profile: Profile,
    step: Step,
    answer: ParsedAnswer[Any] | str,
    receipt: Mapping[str, Any] | None,
) -> Verdict:
    """Judge what `adopt` returned, by a profile of the same task."""
    if isinstance(answer, str):
        return profile.judge(step, answer, receipt)
    verdict: Verdict = cast("Any", profile).judge_parsed(step, answer)
    return verdict


def action_as_written(
    task: Task,
    step: Step,
    verdict: Verdict,
    text: str,
    receipt: Mapping[str, Any] | None,
    *,
    profile: str,
) -> Action | None:
    """Return the first action of an answer as the model wrote it; None if it is none.

    Args:
        task: as `omnidata.tasks.get_task` returns it.
        step: of the question.
        verdict: on the answer.
        text: the answer.
        receipt: of the answer.
        profile: whose verdict it is.
    """
    if not isinstance(task, OldNames):
        return read_again(cast("OldBenchmark", task), verdict)
    if verdict.parsed is None:
        return None
    try:
        parsed = cast("Any", task).parse(text, step, receipt, profile=profile)
    except UnreadError:
        return None
    return parsed.written[0] if parsed.written else None


class OldNames:
    """Members of the old contract, from those of the new one."""

    benchmark: Benchmark
    history: Callable[[Sequence[Action | None] | None], History]

    @property
    def asks_about(self) -> str:
        return self.benchmark.about.benchmark if self.benchmark.about else ""

    @property
    def annotates(self) -> Annotation | None:
        return self.benchmark.about.annotation if self.benchmark.about else None

    @property
    def history_lag(self) -> int | None:
        return self.benchmark.episodes.history_lag

    @property
    def reads_episode_tree(self) -> bool:
        return self.benchmark.episodes.has_tree

    @property
    def title(self) -> str:
        return self.benchmark.card.title

    @property
    def holds(self) -> str:
        return self.benchmark.card.holds

    @property
    def sources(self) -> Sequence[Publication]:
        return self.benchmark.card.sources

    @property
    def unpublished(self) -> str:
        return self.benchmark.card.unpublished

    @property
    def platform(self) -> str:
        return self.benchmark.card.platform

    @property
    def tags(self) -> Sequence[str] | None:
        return self.benchmark.card.tags

    @property
    def roles(self) -> Mapping[str, Modality] | None:
        return self.benchmark.card.roles

    @property
    def other_moments(self) -> Collection[str]:
        return self.benchmark.card.other_moments

    @property
    def subsets(self) -> Sequence[str]:
        return self.benchmark.card.subsets

    @property
    def detailed_actions(self) -> bool | None:
        return self.benchmark.card.detailed_actions

    @property
    def prompted_space(self) -> Space | None:
        return self.benchmark.card.prompted_space

    @property
    def parsed_type(self) -> Any:
        return self.benchmark.card.answer_type

    def ask_about(self, source: LoadedDataset) -> Questions:
        return (
            self.benchmark.about.questions(source)
            if self.benchmark.about
            else Questions(source, {})
        )

    def succeeded(self, steps: Sequence[Step], row: Mapping[str, Any]) -> bool | None:
        return self.benchmark.episodes.success(steps, row)

    def detect(self, data: str | Path) -> bool | None:
        data = remote.get(data)
        if self.benchmark.about:
            return None
        if self.benchmark.files:
            return self.benchmark.files.recognises(data)
        return any(step is not None for step in self.benchmark.steps(data, lambda finding: None))

    def fingerprint(self, data: str | Path) -> str:
        data = remote.get(data)
        if self.benchmark.files:
            return self.benchmark.files.fingerprint(data)
        return self.benchmark.load(data, check_media=False).fingerprint

    def named(self, step: Step) -> Step | None:
        return self.benchmark.group(step)

    def together(self, steps: Sequence[Step], note: Callable[[Any], None]) -> Sequence[Step]:
        return self.benchmark.episodes.merge_groups(steps, note)

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        return None

    # Of the optional objects.

    @property
    def published(self) -> Published:
        return self.benchmark.paper.published()

    @property
    def tables(self) -> Sequence[TableSpec]:
        return self.benchmark.paper.tables

    @property
    def variations(self) -> Sequence[Variation]:
        return self.benchmark.paper.variations

    @property
    def overview(self) -> type[View]:
        return self.benchmark.paper.overview

    @property
    def score_files(self) -> OfflineScorer | None:
        return self.benchmark.rollouts

    @property
    def derivation(self) -> Any | None:
        return self.benchmark.derivation

    def action_log(self, events: Path) -> Any | None:
        return self.benchmark.recorder(events) if self.benchmark.recorder else None

    def diagram(self, source: LoadedDataset, step: Step) -> TaskDiagram | None:
        return self.benchmark.diagram(source, step) if self.benchmark.diagram else None

    @property
    def logs_by_number(self) -> bool:
        return self.benchmark.log_rows.by_number

    def log_difference(
        self, step: Step, row: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
    ) -> Difference | None:
        return self.benchmark.log_rows.difference(step, row, records)

    @property
    def library(self) -> Any | None:
        return self.benchmark.library

    # Of its wordings.

    @property
    def task_of(self) -> Callable[[Step], str] | None:
        return self.benchmark.wordings.task_of

    def application(self, step: Step) -> str:
        return self.benchmark.wordings.application(step)

    def spelling(self, tag: str, value: str) -> str:
        return self.benchmark.wordings.spelling(tag, value)

    def language_of(self, app: str) -> str | None:
        return self.benchmark.wordings.language_of(app)

    def spoken(self, step: Step) -> Sequence[str]:
        return self.benchmark.wordings.spoken_texts(step)

    def instructions(self, step: Step, episode_row: Mapping[str, Any]) -> Sequence[str]:
        return self.benchmark.wordings.instructions(step, episode_row)

    def instruction_by_language(
        self, step: Step, episode_row: Mapping[str, Any]
    ) -> Mapping[str, str]:
        return self.benchmark.wordings.instruction_by_language(step, episode_row)

    # Of its histories and its speech.

    def earlier(
        self, step: Step, predicted: Sequence[Action | None] | None
    ) -> Sequence[Action | None]:
        return self.history(predicted).actions(step)

    def forgotten(self, count: int) -> int:
        return self.history(None).first_shown(count)

    @property
    def speech(self) -> Any | None:
        return self.benchmark.speech

    @property
    def asked(self) -> Asked | None:
        return self.benchmark.speech.asked if self.benchmark.speech else None

    @property
    def label_sense(self) -> Sense:
        return self.benchmark.speech.label_sense if self.benchmark.speech else "content"

    def asked_of(self, step: Step) -> Asked | None:
        return self.benchmark.speech.question_kind(step) if self.benchmark.speech else None

    def goal(self, step: Step) -> str:
        return self.benchmark.speech.goal(step) if self.benchmark.speech else step.instruction

    def right_actions(self, step: Step) -> Sequence[Action]:
        return self.benchmark.speech.right_actions(step) if self.benchmark.speech else ()

    def fed_size(self, step: Step) -> Screen | None:
        return self.benchmark.speech.fed_size(step) if self.benchmark.speech else None

    def express(self, actions: Sequence[Action], step: Step) -> str:
        if self.asked != "point":
            raise NotImplementedError
        return format_place(actions[0])

    def takes(self, actions: Sequence[Action]) -> int:
        return self.benchmark.speech.takes(actions) if self.benchmark.speech else 1
