"""OmniBench's graph metrics over files: tasks, and the subtasks that an agent completed.

The subtasks are sequences, or found by the evaluator in the log of an agent's actions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import msgspec

from omnidata.errors import DataError, Finding, PredictionError
from omnidata.jsontext import BROKEN, decode
from omnidata.loaders.load import reading, refuse_findings
from omnidata.loaders.repository import is_repository
from omnidata.loaders.task_library import TaskGraph
from omnidata.metrics.graph_evaluator import LoggedAction, Walk, walk
from omnidata.metrics.graphs import GraphProfile, TaskScore, coverage, score_task, total
from omnidata.metrics.intervals import method_column
from omnidata.metrics.rollouts import Attempt, behaviour
from omnidata.predictions import numbered_lines
from omnidata.tasks.omnibench.load import read_library
from omnidata.tasks.published import TableSpec, Variation
from omnidata.tasks.rollouts import Columns, OfflineScorer, Scored

_COLUMNS: Mapping[GraphProfile, Sequence[str]] = {
    "paper": ("CR", "LC"),
    "release": ("completion", "coherence"),
}
_PROFILES: Mapping[str, GraphProfile] = {
    "omnibench-paper": "paper",
    "omnibench-release": "release",
}


_CAPABILITIES = {
    "Parallel Planning": "PP",
    "Long-Range Planning": "LRP",
    "Cross-Domain Decision-Making": "CDDK",
    "Sequential Decision-Making": "SDK",
    "Subtask Identification": "SI",
    "Dependency Identification": "DI",
    "Long-Sequence Reasoning": "LSR",
    "Long Instruction Following": "LIF",
    "Domain-Specific Knowledge": "DSK",
    "Cross-Domain Knowledge": "CDK",
}
_LEVELS = {"easy": "Easy", "medium": "Medium", "hard": "Hard"}
_GRAPHS = tuple(_PROFILES)
TABLES = (
    *(
        TableSpec(
            "main", title, axis, _CAPABILITIES, most=1, like="OmniBench, Table 4", profiles=_GRAPHS
        )
        for axis, title in (
            ("capability", "Capabilities"),
            ("eligible", "Capabilities that Table 11 admits"),
        )
    ),
    *(
        TableSpec(
            dimension,
            f"Complexity of {dimension}",
            dimension,
            _LEVELS,
            most=1,
            like="OmniBench, Table 5",
            profiles=_GRAPHS,
            rising=True,
        )
        for dimension in ("dependency", "branch", "instruction", "knowledge", "hierarchy")
    ),
    TableSpec(
        "shape",
        "Chains and graphs with equal numbers of subtasks and dependencies and equal categories",
        "shape",
        most=1,
        like="OmniBench, Figure 6",
        profiles=_GRAPHS,
    ),
)


INTENT = Variation(
    "intent",
    "off",
    {"off": "Not told", "on": "Told"},
    "Steps without and with the task's intent",
    "Intent",
)
"""As in Table 7, whose figures are of whole tasks."""


class _Sequence(msgspec.Struct):
    task_id: str | int
    executed: list[str | int]


class _Action(msgspec.Struct):
    task_id: str | int
    passed: list[str | int]
    status: str | None = None


@dataclass(frozen=True, slots=True)
class Executed:
    """The subtasks of a task that an agent completed.

    Attributes:
        task_id: the task.
        nodes: in the order of their completion.
        where: file and line.
        walk: of the evaluator; None for a sequence.
    """

    task_id: str
    nodes: Sequence[str]
    where: str
    walk: Walk | None = None


class GraphScorer(OfflineScorer):
    """Scores the subtasks of task graphs that an agent completed."""

    profiles: ClassVar[Mapping[str, Columns]] = {
        name: dict.fromkeys(_COLUMNS[rules], "share") for name, rules in _PROFILES.items()
    }

    def takes(self, answers: Path) -> bool:
        """Return whether the first line of a file has no sample id, unlike predictions."""
        if answers.is_dir():
            return False
        try:
            _, line = next(numbered_lines(answers, expected="JSON lines"), (0, b""))
        except PredictionError:
            return True
        return b'"sample_id"' not in line

    def score(
        self, data: Path, answers: Path | None, *, profile: str, strict: bool = False
    ) -> tuple[Sequence[Scored], Sequence[Finding]]:
        """Score the sequences of completed subtasks.

        Args:
            data: tasks (`omnidata.tasks.omnibench.load.read_library`), with the applications of
                their nodes or with the subtasks.
            answers: JSON lines of {"task_id", "executed": [node, ...]}, at most one for each task.
            profile: one of `profiles`.
            strict: make the first finding an error.

        Returns:
            One agent, without a name, and the findings. Sequences of unknown tasks are skipped. A
            task without a sequence is `missing` and counts as one with no completed subtask.

        Raises:
            DataError: a task cannot be read or scored, a sequence is no order of its task, or
                `strict` and there is a finding.
            PredictionError: a line is no sequence, or there are two for one task.
        """
        assert answers is not None  # as `needs_answers` says
        tasks, findings = _tasks(data)
        done: dict[str, Executed] = {}
        expected = '{"task_id": "...", "executed": ["node", ...]}'
        for where, line in _read_lines(answers, _Sequence, "sequence", expected):
            found = Executed(str(line.task_id), [str(node) for node in line.executed], where)
            if found.task_id in done:
                raise PredictionError(
                    f"task {found.task_id!r:.80} already has a sequence",
                    where=found.where,
                    expected=f"one line for each task; the first is {done[found.task_id].where}",
                    remedy="remove one of the two lines",
                )
            done[found.task_id] = found
        findings += [_unknown(found) for found in done.values() if found.task_id not in tasks]
        return _of_agent(data, profile, tasks, done, findings, strict=strict)

    def score_actions(
        self, data: Path, log: Path, *, profile: str, strict: bool = False
    ) -> tuple[Sequence[Scored], Sequence[Finding]]:
        """Evaluate the log of an agent's actions, task by task.

        Args:
            data: as in `score`.
            log: JSON lines of {"task_id", "passed": [node, ...], "status"}, one for each action in
                order: `passed` are the subtasks whose evaluation functions succeed after it, and
                the status FINISH ends the task. Lines of several tasks may alternate.
            profile: one of `profiles`; the release evaluates in its own way.
            strict: make the first finding an error.

        Returns:
            As `score`, with how the attempts ended. Actions after the end of a task are skipped and
            counted as `actions_after_end`, subtasks that passed too early as `passed_early`.

        Raises:
            DataError: a task cannot be read or scored, or `strict` and there is a finding.
            PredictionError: a line is no action, or names a node that its task does not have.
        """
        tasks, findings = _tasks(data)
        lines: dict[str, list[tuple[str, LoggedAction]]] = {}
        expected = '{"task_id": "...", "passed": ["node", ...]}'
        for where, line in _read_lines(log, _Action, "action", expected):
            task_id, finished = str(line.task_id), (line.status or "").strip().upper() == "FINISH"
            action = LoggedAction(frozenset(map(str, line.passed)), finished)
            if (task := tasks.get(task_id)) and not task.graph.index.keys() >= set(action.passed):
                unknown = min(set(action.passed) - task.graph.index.keys())
                raise PredictionError(
                    f"task {task_id!r:.80} has no node {unknown!r:.80}",
                    where=where,
                    expected=f"some of {', '.join(task.graph.nodes[:12])}",
                    remedy="score against the tasks that were run",
                )
            lines.setdefault(task_id, []).append((where, action))
        done = {}
        after = 0
        for task_id, found in lines.items():
            where = found[0][0]
            if task_id not in tasks:
                findings.append(_unknown(Executed(task_id, (), where)))
                continue
            walked = walk(
                tasks[task_id].graph, [action for _, action in found], rules=_PROFILES[profile]
            )
            done[task_id] = Executed(task_id, walked.executed, where, walked)
            after += len(found) - walked.steps
        counts = {
            "unknown_tasks": len(lines) - len(done),
            "actions_after_end": after,
            "passed_early": sum(found.walk.early for found in done.values() if found.walk),
        }
        return _of_agent(data, profile, tasks, done, findings, counts, strict=strict)


def _of_agent(
    data: Path,
    profile: str,
    tasks: Mapping[str, TaskGraph],
    done: Mapping[str, Executed],
    findings: Sequence[Finding],
    counts: Mapping[str, int] = {},
    *,
    strict: bool,
) -> tuple[Sequence[Scored], Sequence[Finding]]:
    if strict:
        refuse_findings(findings, data)
    scores, attempts = [], []
    for task in tasks.values():
        found = done.get(task.id)
        where = f"task {task.id} ({found.where if found else data})"
        nodes = found.nodes if found else ()
        score = score_task(task.graph, task.applications, task.categories, nodes, where=where)
        scores.append(score)
        if found and (walked := found.walk):
            parts = [float(coverage(task.graph, [node])) for node in walked.executed]
            gains = list(zip(walked.at, parts, strict=True))
            cr = float(score.cr)
            attempts.append(Attempt(task.id, cr, walked.ending, walked.steps, gains=gains))
    results = _results(profile, list(tasks.values()), scores, done)
    results["counts"] |= counts
    if attempts:
        results["rollouts"] = behaviour(attempts)
    return [Scored("", results, list(_lines(profile, tasks, scores, done)))], findings


def _tasks(data: Path) -> tuple[Mapping[str, TaskGraph], list[Finding]]:
    """Return the tasks; an unreadable one is an error, since it would be missing from the means."""
    if is_repository(data):
        raise DataError(
            "a Parquet repository has steps, but no task graph",
            where=str(data),
            expected="tasks with a dag",
            remedy="name the data it was converted from",
        )
    with reading(data, "omnibench"):
        library = read_library(data, check_orders=False)
        error = next((f for f in library.findings if f.severity == "error"), None)
        if error:
            raise DataError(
                error.what, where=error.where, expected=error.expected, remedy=error.remedy
            )
        if not library.tasks:
            raise DataError(
                "the data have no task",
                where=str(data),
                expected="tasks with a dag",
                remedy="name the file or folder of the tasks",
            )
    return library.tasks, list(library.findings)


Line = TypeVar("Line", _Action, _Sequence)


def _read_lines(
    path: Path, kind: type[Line], noun: str, expected: str
) -> Iterator[tuple[str, Line]]:
    for number, line in numbered_lines(path, expected=f"JSON lines of {expected}"):
        where = f"{path}:{number}"
        try:
            value = decode(line.decode("utf-8-sig"))
            if value is BROKEN:
                raise ValueError("it is not JSON")
            found = msgspec.convert(value, kind)
        except (ValueError, RecursionError, msgspec.ValidationError) as error:
            raise PredictionError(
                f"the line has no valid {noun}: {str(error).splitlines()[0]}",
                where=where,
                expected=expected,
                remedy="correct or remove the line",
            ) from None
        yield where, found


def _unknown(found: Executed) -> Finding:
    return Finding(
        "task-unknown",
        "warning",
        found.where,
        f"the data have no task {found.task_id!r:.80}",
        "the id of a task",
        "score against the tasks that were run; the line is skipped until then",
    )


def _results(
    profile: str,
    tasks: Sequence[TaskGraph],
    scores: Sequence[TaskScore],
    done: Mapping[str, Executed],
) -> dict[str, Any]:
    intents = [task.intent or None for task in tasks]
    labels = []
    for task in tasks:
        value = task.source.get("capability")
        names = value if isinstance(value, list) else [value]
        labels.append(tuple(name for name in names if isinstance(name, str) and name))
    rules = _PROFILES[profile]
    table = total(
        scores,
        profile=rules,
        intents=intents if any(intents) else None,
        labels=labels if any(labels) else None,
    )
    overall = table["overall"]
    answered = [found for task, found in zip(tasks, scores, strict=True) if task.id in done]
    shown = (*_COLUMNS[rules], "LC_bounds")
    counts = {key: overall[key] for key in ("tasks", "undefined_LC", "capped_LC") if key in overall}
    outcomes = {"ok": len(answered), "missing": len(tasks) - len(answered)}
    return {
        "task": "omnibench",
        "profile": profile,
        "overall": {key: overall[key] for key in shown if key in overall},
        "ci95": overall["ci95"],
        **method_column(overall.get("ci95_method", {})),
        "answered": total(answered, profile=rules)["overall"],
        "by": table["by"],
        "counts": {**counts, "unknown_tasks": len(done) - len(answered)},
        "outcomes": {name: count for name, count in outcomes.items() if count},
    }


def _lines(
    profile: str,
    tasks: Mapping[str, TaskGraph],
    scores: Sequence[TaskScore],
    done: Mapping[str, Executed],
) -> Iterator[dict[str, Any]]:
    for own, found in zip(tasks, scores, strict=True):
        sequence = done.get(own)
        walked = sequence.walk if sequence else None
        at: dict[str, Any] = {"at": list(walked.at)} if walked else {}
        yield {
            "sample_id": own,
            "outcome": "ok" if sequence else "missing",
            "profile": profile,
            **found.values(_PROFILES[profile]),
            **({"ending": walked.ending, "turns": walked.steps} if walked else {}),
            "parsed": {"executed": list(sequence.nodes), **at} if sequence else None,
        }
