"""Benchmarks whose published results say of each rollout whether it succeeded, and little else.

Their environments are not here, and nothing is run: what people publish of a run is read, success
rates come of it (`omnidata score`), and a model can be asked what the environment or a person said:
did the agent succeed?
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, Final, TypedDict

from omnidata.actions import Action
from omnidata.errors import DataError, Finding, plural
from omnidata.jsontext import hash_of
from omnidata.loaders.files import walk
from omnidata.loaders.load import Note, reading, refuse_findings, size_of
from omnidata.loaders.repository import is_repository
from omnidata.metrics.intervals import method_column
from omnidata.metrics.rollouts import (
    RATES,
    Attempt,
    Ending,
    Example,
    behaviour,
    repetition,
    total,
)
from omnidata.tasks import overview
from omnidata.tasks.base import Benchmark
from omnidata.tasks.profiles import OfflineScorer, RowProfile, Scored
from omnidata.types import Conversation, LoadedDataset, MediaRef, Message, Part, Step, Verdict


@dataclass(frozen=True, slots=True)
class Rollout:
    """What is published of one attempt of an agent.

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
        ending: how it ended; None where nothing says it.
        turns, seconds: how much it took; None where nothing says it.
        did: what was done, in words.
        shots: what was seen, in order.
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


class OutcomeScorer(OfflineScorer):
    """Success rates of what was published; a benchmark's own reads it.

    Attributes:
        name: of the benchmark.
        size: how many tasks it has.
        axes: of `Rollout.tags`, the groups in their order, and how many tasks each has; None where
            that is not known.
    """

    name: ClassVar[str]
    size: ClassVar[int]
    axes: ClassVar[Mapping[str, Mapping[str, int | None]]] = {}
    needs_answers = False
    right = "SR_finished"
    ranked_by = "SR_all"

    @abstractmethod
    def knows(self, path: Path) -> bool:
        """Whether a file has rows of the benchmark, by a look at its beginning.

        Raises:
            OSError: the file cannot be read.
        """

    @abstractmethod
    def rollouts(self, data: Path, note: Note) -> Iterable[Rollout]:
        """What the files say, an agent's attempts at a task in order.

        Args:
            data: as the user named it.
            note: takes the findings.

        Raises:
            DataError: nothing of the benchmark is there.
        """

    def paired(self, profile: str) -> Mapping[str, Any]:
        """Return the total over finished rollouts: only those can be paired."""
        return {"SR_finished": "share"}

    def score(
        self, data: Path, answers: Path | None, *, profile: str, strict: bool = False
    ) -> tuple[Sequence[Scored], Sequence[Finding]]:
        """What each agent reached, in the order of their names.

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
            told = [f"--profile {name}, which {count} rollouts have a score of"
                    for name, count in others.items() if count and name != profile]  # fmt: skip
            broken = next((one for one in findings if one.severity == "error"), None)
            raise DataError(
                f"no rollout has a score of {profile}"
                + (f": {broken.where}: {broken.what}" if broken else ""),
                where=str(data),
                expected=f"scores of one of {', '.join(self.profiles)}",
                remedy=f"name {' or '.join(['the files with the scores too', *told])}",
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
        for task, own in tasks.items():
            scores = [one.scores[profile] for one in own.values()]
            done = [score for score in scores if score is not None]
            mean = fmean(done) if done else None
            tags = next(iter(own.values())).tags
            examples.append(Example(self.name, mean, sum(done) / made, tags))
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
                    **tags,
                    "parsed": {one.where: one.scores[profile] for one in own.values()},
                }
            )
        table = total(examples, sizes={self.name: self.size}, groups={}, axes=self.axes)
        overall, finished = table["overall"], sum(one.score is not None for one in examples)
        told = {
            axis: {task: own[axis] for task, own in _tags(tasks).items() if axis in own}
            for axis in self.axes
        }
        went = behaviour(attempts, axes={axis: own for axis, own in told.items() if own})
        results = {
            "task": self.name,
            "profile": profile,
            "agent": agent,
            "overall": {name: overall[name] for name in RATES},
            "ci95": overall["ci95"],
            **method_column(overall.get("ci95_method", {})),
            "answered": {"SR_finished": overall["SR_finished"], "tasks": finished},
            "by": {axis: found for axis, found in table["by"].items() if axis in self.axes},
            **({"attempts": repetition(attempts, made, overall["tasks"])} if made > 1 else {}),
            **({"rollouts": went} if any(one.ending for one in attempts) else {}),
            "counts": {
                "tasks": overall["tasks"],
                "finished": finished,
                "unfinished": len(examples) - finished,
                "absent": overall["tasks"] - len(examples),
            },
            "outcomes": {
                name: count
                for name, count in (("ok", finished), ("missing", overall["tasks"] - finished))
                if count
            },
        }
        return Scored(agent, results, lines)


def _all(tasks: Mapping[str, Mapping[str, Rollout]]) -> Iterator[Rollout]:
    for own in tasks.values():
        yield from own.values()


def _tags(tasks: Mapping[str, Mapping[str, Rollout]]) -> Mapping[str, Mapping[str, str]]:
    return {task: next(iter(own.values())).tags for task, own in tasks.items()}


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
    """The outermost of some folders in which a folder lies: a rollout in it is no other agent's.

    Args:
        folder: that of a rollout.
        folders: those of all rollouts; where it lies in none, it stands for itself.
    """
    above = (one for one in reversed(folder.parents) if one in folders)
    return next(above, folder)


def outer_first(paths: Iterable[Path], folders: Collection[Path]) -> list[Path]:
    """The files in their order, but those in folders of rollouts within others last.

    What lies in the folder of another rollout repeats it, if it is of the same task.
    """
    return sorted(paths, key=lambda path: sum(one in folders for one in path.parent.parents))


_PEEKED: Final = 500


# The question: did the agent succeed?

_SAID: Final = re.compile(r"\b(success|succeeded|failure|failed)\b", re.IGNORECASE)
_LONGEST: Final = 100_000


class _Parsed(TypedDict):
    success: bool


def read_success(text: str) -> bool | None:
    """What an answer says of the outcome, by its last such word; None where it says nothing.

    Examples:
        >>> read_success("It found the page. Status: success"), read_success("I cannot tell")
        (True, None)
    """
    words = _SAID.findall(text) if len(text) <= _LONGEST else []
    return words[-1].lower().startswith("succe") if words else None


class OutcomeProfile(RowProfile):
    """Accuracy: how often a model says of a rollout what its score says.

    Args:
        name: of the profile.
        by: the axes of its table.
    """

    values = ("score",)
    source = "ours: the agreement of a judge with the published outcome"
    leaves_out = "rollouts without a score"

    def __init__(self, name: str, by: Sequence[str]) -> None:
        self.name = name
        self.by = dict.fromkeys(("outcome", *by), ())

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read the outcome and compare it with the published one."""
        truth, said = step.tags.get("outcome"), read_success(text)
        known = truth in ("success", "failure")
        right = (said == (truth == "success") if said is not None else False) if known else None
        if said is None:
            return Verdict("unparsed", (right,), None, "neither success nor failure")
        return Verdict("ok", (right,), {"success": said})


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


class Outcomes(Benchmark):
    """Results of rollouts: what agents reached, and whether a model sees it.

    A benchmark's own gives `score_files` and `title`.

    Args:
        options: `actions`, whether the prompt tells what was done; unknown ones are a `UsageError`.
    """

    score_files: OutcomeScorer
    overview = View
    roles: Mapping[str, Any] = {"screenshot": "image"}
    subsets = ("success", "failure")
    parsed_type = _Parsed
    allowed: Mapping[str, Sequence[str]] = {"actions": ("told", "untold")}

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        axes = ("agent", *self.score_files.axes)
        self.tags = (*axes, "outcome")
        profile = OutcomeProfile(f"{name}-judge", axes)
        self.profiles = {profile.name: profile}
        self.prompt_hash = hash_of([_ASKED, self.options["actions"]])

    def detect(self, data: Path) -> bool:
        """Return whether a rollout is there."""
        return any(map(self.score_files.knows, islice(walk(data), _PEEKED)))

    def steps(self, data: Path, note: Note) -> Iterator[Step]:
        """Yield a step for each rollout, with the last screenshot."""
        for one in unique(self.score_files.rollouts(data, note), note):
            name, score = _sample_name(one), one.score
            shot = one.shots[-1] if one.shots else None
            outcome = {} if score is None else {"outcome": "success" if score == 1 else "failure"}
            yield Step(
                name, name, 0, 1, one.instruction, size_of(shot),
                {"screenshot": shot} if shot else {}, (), (), None,
                {"agent": one.agent, **one.tags, **outcome},
                {"row": one.row, "actions": list(one.did), "score": score}, group=one.task,
            )  # fmt: skip

    def succeeded(self, steps: Sequence[Step], row: Mapping[str, Any]) -> bool | None:
        """Return whether the score is 1; None without one."""
        outcome = steps[-1].tags.get("outcome")
        return None if outcome is None else outcome == "success"

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        """Return the conversation about one rollout."""
        told = step.source["actions"] if self.options["actions"] == "told" else []
        did = "".join(f"{number}. {words}\n" for number, words in enumerate(told, 1))
        text = _ASKED.format(step.instruction, f"\nWhat it did:\n{did}" if did else "")
        shot = step.media.get("screenshot")
        seen = [Part("image", media=shot, role="screenshot")] if shot else []
        return (Message("user", (*seen, Part("text", text))),)

    def answer(self, step: Step) -> str | None:
        """Return the published outcome; None without one."""
        outcome = step.tags.get("outcome")
        return f"Status: {outcome}" if outcome else None


_ASKED: Final = """\
An agent was given this task:
{0}
{1}
Did it fulfil the task? The screenshot, if there is one, is the last that it saw. Answer with
"Status: success" or "Status: failure" and nothing else."""
