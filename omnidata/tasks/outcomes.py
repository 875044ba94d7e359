"""Benchmarks whose published results state whether each rollout succeeded, and little else.

No environment is run. `omnidata score` computes success rates from published results, and a model
can be asked whether the agent succeeded, by the environment or a person.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, Final, TypedDict

from omnidata.actions import Screen, Space
from omnidata.dialects import UnreadError
from omnidata.errors import DataError, Finding, plural
from omnidata.jsontext import hash_of
from omnidata.loaders.files import walk
from omnidata.loaders.load import Note, reading, refuse_findings, size_of
from omnidata.loaders.repository import is_repository
from omnidata.metrics.rollouts import Attempt, Ending, Example, behaviour, total
from omnidata.tasks import overview
from omnidata.tasks.benchmark import (
    Benchmark,
    Episodes,
    History,
    Paper,
    ParsedAnswer,
    Receipt,
    Rule,
    Values,
)
from omnidata.tasks.loading import fingerprint_all
from omnidata.tasks.rollouts import OfflineScorer, Scored, success_results
from omnidata.tasks.totals import RowTotals
from omnidata.types import Conversation, LoadedDataset, MediaRef, Message, Part, Step, Target


@dataclass(frozen=True, slots=True)
class Rollout:
    """The published facts about one attempt of an agent.

    Attributes:
        agent: who did it.
        task: names the task, whichever agent tried it.
        instruction: of the task; empty where nothing says it.
        scores: profile of the scorer -> 0 to 1, None where there is none; profiles that nothing is
            published for are absent.
        where: the file, with its line or item.
        row: the untouched row.
        attempt: which of several attempts of the agent at the task it is.
        tags: axis -> group of the task.
        ending: the kind of its end; None if unknown.
        turns, seconds: its length; None if unknown.
        did: its actions, in words.
        shots: its screenshots, in order.
    """

    agent: str
    task: str
    instruction: str
    scores: Mapping[str, float | None]
    where: str
    row: Mapping[str, Any]
    attempt: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    ending: Ending | None = None
    turns: int | None = None
    seconds: float | None = None
    did: Sequence[str] = ()
    shots: Sequence[MediaRef] = ()

    @property
    def score(self) -> float | None:
        """The score of the first profile that has one."""
        return next((score for score in self.scores.values() if score is not None), None)


_PEEKED: Final = 500


class OutcomeScorer(OfflineScorer):
    """Success rates of published results; a benchmark defines how its files are read.

    It is the `files` of the benchmark too.

    Attributes:
        name: of the benchmark.
        columns: the files in words.
        size: how many tasks it has.
        axes: of `Rollout.tags`, the groups in their order, and how many tasks each has; None where
            that is not known.
    """

    name: ClassVar[str]
    columns: ClassVar[str]
    size: ClassVar[int]
    axes: ClassVar[Mapping[str, Mapping[str, int | None]]] = {}
    needs_answers = False
    right = "SR_finished"
    ranked_by = "SR_all"

    @abstractmethod
    def knows(self, path: Path) -> bool:
        """Return whether the beginning of a file shows rows of the benchmark.

        Raises:
            OSError: the file cannot be read.
        """

    @abstractmethod
    def rollouts(self, data: Path, note: Note) -> Iterable[Rollout]:
        """Read the files: an agent's attempts at a task in order.

        Args:
            data: as the user named it.
            note: takes the findings.

        Raises:
            DataError: nothing of the benchmark is there.
        """

    def recognises(self, data: Path) -> bool:
        """Return whether a rollout is there."""
        return any(map(self.knows, islice(walk(data), _PEEKED)))

    def fingerprint(self, data: Path) -> str:
        """Return the SHA-256 over all files but media."""
        return fingerprint_all(data)

    def paired_totals(self, profile: str) -> Mapping[str, Any]:
        """Return the total over finished rollouts: only those can be paired."""
        return {"SR_finished": "share"}

    def score(
        self, data: Path, answers: Path | None, *, profile: str, strict: bool = False
    ) -> tuple[Sequence[Scored], Sequence[Finding]]:
        """Return the results of each agent, in the order of their names.

        Args:
            data: the published files.
            answers: nothing; the files hold the scores.
            profile: one of `profiles`: whose scores.
            strict: make the first finding an error.

        Raises:
            DataError: nothing of the benchmark is there, or no score of the profile; or `strict`
                and there is a finding.
        """
        if is_repository(data):
            raise DataError(
                "a Parquet repository has questions for a model, but no results of agents",
                where=str(data),
                expected="the published files",
                remedy="name the data it was converted from",
            )
        findings: list[Finding] = []
        agents: dict[str, dict[str, dict[str, Rollout]]] = {}
        others: dict[str, int] = {}
        with reading(data, self.name):
            if not data.exists():
                raise DataError(
                    "there is no such file or folder", where=str(data), expected=self.columns
                )
            for one in unique(self.rollouts(data, findings.append), findings.append):
                for name, score in one.scores.items():
                    others[name] = others.get(name, 0) + (score is not None)
                if profile in one.scores:
                    tried = agents.setdefault(one.agent, {}).setdefault(one.task, {})
                    tried[one.attempt] = one
        known = {
            agent: tasks
            for agent, tasks in agents.items()
            if any(
                one.scores[profile] is not None for own in tasks.values() for one in own.values()
            )
        }
        findings += [
            Finding(
                "agent-unscored",
                "warning",
                agent,
                "no rollout has a score",
                f"a score of {profile} for at least one rollout",
                "nothing to do: it is left out, since 0 % would mean that it always failed",
            )
            for agent in sorted(agents.keys() - known.keys())
        ]
        if not known:
            scored = [
                f"--profile {name}, which {count} rollouts have a score of"
                for name, count in others.items()
                if count and name != profile
            ]
            broken = next((one for one in findings if one.severity == "error"), None)
            raise DataError(
                f"no rollout has a score of {profile}"
                + (f": {broken.where}: {broken.what}" if broken else ""),
                where=str(data),
                expected=f"scores of one of {', '.join(self.profiles)}",
                remedy=f"name {' or '.join(['the files with the scores too', *scored])}",
            )
        if strict:
            refuse_findings(findings, data)
        return [
            self._score_agent(agent, known[agent], profile) for agent in sorted(known)
        ], findings

    def _score_agent(
        self, agent: str, tasks: Mapping[str, Mapping[str, Rollout]], profile: str
    ) -> Scored:
        made = max(len(own) for own in tasks.values())
        examples: list[Example] = []
        attempts: list[Attempt] = []
        lines: list[Mapping[str, Any]] = []
        tags = {task: next(iter(own.values())).tags for task, own in tasks.items()}
        for task, own in tasks.items():
            scores = [one.scores[profile] for one in own.values()]
            done = [score for score in scores if score is not None]
            mean = fmean(done) if done else None
            examples.append(Example(self.name, mean, sum(done) / made, tags[task]))
            attempts += [
                Attempt(task, score, one.ending, one.turns, one.seconds)
                for one, score in zip(own.values(), scores, strict=True)
            ]
            lines.append(
                {
                    "sample_id": task,
                    "outcome": "missing" if mean is None else "ok",
                    "profile": profile,
                    "score": mean,
                    "SR_finished": mean,
                    **({"scores": scores} if made > 1 else {}),
                    **tags[task],
                    "parsed": {one.where: one.scores[profile] for one in own.values()},
                }
            )
        table = total(examples, sizes={self.name: self.size}, groups={}, axes=self.axes)
        groups = {
            axis: {task: own[axis] for task, own in tags.items() if axis in own}
            for axis in self.axes
        }
        ended = any(one.ending for one in attempts)
        results = success_results(
            self.name,
            profile,
            agent,
            table,
            examples,
            attempts,
            most=made,
            by={axis: found for axis, found in table["by"].items() if axis in self.axes},
            behaviour=behaviour(attempts, axes={axis: own for axis, own in groups.items() if own})
            if ended
            else None,
        )
        return Scored(agent, results, lines)


def unique(rollouts: Iterable[Rollout], note: Note) -> Iterator[Rollout]:
    """Yield each attempt of an agent at a task once; repetitions become findings."""
    seen: set[tuple[str, str, str]] = set()
    for one in rollouts:
        key = one.agent, one.task, one.attempt
        if key in seen:
            note(
                Finding(
                    "attempt-repeated",
                    "error",
                    one.where,
                    f"another row has this attempt of {one.agent} at {one.task}",
                    "an instance_id, or an attempt, of its own",
                    "number the attempts; until then only the first is used",
                    (_sample_name(one),),
                )
            )
            continue
        seen.add(key)
        yield one


def _sample_name(one: Rollout) -> str:
    return "/".join(filter(None, (one.agent, one.task, one.attempt)))


def outermost(folder: Path, folders: Collection[Path]) -> Path:
    """Return the outermost folder of a rollout above a folder; without one, the folder itself.

    Args:
        folder: of a rollout.
        folders: of all rollouts.
    """
    above = (one for one in reversed(folder.parents) if one in folders)
    return next(above, folder)


def outer_first(paths: Iterable[Path], folders: Collection[Path]) -> list[Path]:
    """Return the files in their order, but those in folders of rollouts within others last.

    A file in the folder of another rollout repeats it, if it is of the same task.
    """
    return sorted(paths, key=lambda path: sum(one in folders for one in path.parent.parents))


# The question: did the agent succeed?

_SAID: Final = re.compile(r"\b(success|succeeded|failure|failed)\b", re.IGNORECASE)
_LONGEST: Final = 100_000


class _Record(TypedDict):
    success: bool


class Agreement(Rule[bool]):
    """The share of rollouts that a model judges as their scores do.

    Args:
        name: of the rule.
        axes: tags that its table has groups of, beside the outcome.
    """

    source = "ours: the agreement of a judge with the published outcome"
    leaves_out = "rollouts without a score"

    def __init__(self, name: str, axes: Sequence[str]) -> None:
        self.name = name
        self.totals = RowTotals(by=dict.fromkeys(("outcome", *axes), ()))

    def judge(self, step: Step, parsed: ParsedAnswer[bool] | None) -> Values:
        """Compare the answer with the published outcome."""
        truth = step.tags.get("outcome")
        if truth not in ("success", "failure"):
            return (None,)
        return (parsed is not None and parsed.value == (truth == "success"),)


class View(overview.View):
    """Counts that include tasks with rollouts of several agents."""

    def __init__(self, source: LoadedDataset) -> None:
        super().__init__(source)
        self.tasks = len({step.group for step in source.steps})

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return {"counts": self.counts, "tasks": self.tasks}

    def remarks(self) -> list[str]:
        """Return the number of tasks in a sentence."""
        return [plural(self.tasks, "task")]


class _Episodes(Episodes):
    def success(self, steps: Sequence[Step], row: Mapping[str, Any]) -> bool | None:
        outcome = steps[-1].tags.get("outcome")
        return None if outcome is None else outcome == "success"


_ASKED: Final = """\
An agent was given this task:
{0}
{1}
Did it fulfil the task? The screenshot, if there is one, is the last that it saw. Answer with
"Status: success" or "Status: failure" and nothing else."""


class Outcomes(Benchmark):
    """Results of rollouts; define `rollouts` and a `card` with title, platform and sources.

    Args:
        name: of the benchmark.
        options: `actions`, whether the prompt lists the agent's actions; unknown ones are a
            `UsageError`.
    """

    rollouts: OutcomeScorer
    allowed: Mapping[str, Sequence[str]] = {"actions": ("told", "untold")}
    paper = Paper(overview=View)
    episodes = _Episodes()

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        axes = ("agent", *self.rollouts.axes)
        self.card = replace(
            self.card,
            tags=(*axes, "outcome"),
            roles={"screenshot": "image"},
            subsets=("success", "failure"),
            answer_type=_Record,
        )
        self.files = self.rollouts
        self.rules = (Agreement(f"{name}-judge", axes),)
        self.prompt_hash = hash_of([_ASKED, self.options["actions"]])

    def steps(self, data: Path, note: Note) -> Iterator[Step]:
        """Yield a step for each rollout, with the last screenshot."""
        for one in unique(self.rollouts.rollouts(data, note), note):
            name, score = _sample_name(one), one.score
            shot = one.shots[-1] if one.shots else None
            outcome = {} if score is None else {"outcome": "success" if score == 1 else "failure"}
            yield Step(
                name, name, 0, 1, one.instruction, size_of(shot),
                {"screenshot": shot} if shot else {}, (), (), None,
                {"agent": one.agent, **one.tags, **outcome},
                {"row": one.row, "actions": list(one.did), "score": score}, group=one.task,
            )  # fmt: skip

    def prompt(self, step: Step, history: History) -> Conversation:
        """Return the conversation about one rollout."""
        actions = step.source["actions"] if self.options["actions"] == "told" else []
        did = "".join(f"{number}. {words}\n" for number, words in enumerate(actions, 1))
        text = _ASKED.format(step.instruction, f"\nWhat it did:\n{did}" if did else "")
        shot = step.media.get("screenshot")
        seen = [Part("image", media=shot, role="screenshot")] if shot else []
        return (Message("user", (*seen, Part("text", text))),)

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[bool]:
        """Read an answer by its last word for success or failure."""
        words = _SAID.findall(text) if len(text) <= _LONGEST else []
        if not words:
            raise UnreadError("neither success nor failure")
        success = words[-1].lower().startswith("succe")
        return ParsedAnswer(success, {"success": success})

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """Return the published outcome; None without one."""
        outcome = step.tags.get("outcome")
        return Target(text := f"Status: {outcome}", text) if outcome else None
