"""OSWorld's success rates over a tree of results, which holds the scores.

A tree may hold results of several agents: each action space, observation type and model has rates
of its own. Attempts of one agent at an example are one line.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from omnidata.errors import DataError, Finding, plural
from omnidata.loaders.load import Note, RowContext, reading, refuse_findings
from omnidata.loaders.repository import is_repository
from omnidata.metrics.rollouts import RATES, Attempt, Example, behaviour, total
from omnidata.tasks.osworld.endings import attempt_of
from omnidata.tasks.osworld.load import rollouts, runs_of
from omnidata.tasks.osworld.suite import (
    DIFFICULTIES,
    LIST,
    WORKFLOWS,
    Suite,
    TaskFiles,
    suite_of,
)
from omnidata.tasks.osworld.tree import (
    EVALUATION,
    GROUP_OF,
    INFEASIBLE,
    RESULT,
    SETS,
    TRAJECTORY,
    Result,
    Rollout,
    read_result,
)
from omnidata.tasks.osworld.turns import MOST_TURNS
from omnidata.tasks.rollouts import Columns, OfflineScorer, Scored, success_results

Key = tuple[str, str, str]
"""Agent, domain and example."""
_Known = Mapping[tuple[str, str], "_Tried"]
"""An agent's examples by domain and id."""


@dataclass(slots=True)
class _Tried:
    results: dict[str, list[tuple[Rollout, Result]]] = field(default_factory=dict)
    attempts: list[Attempt] = field(default_factory=list)
    axes: Mapping[str, str] = field(default_factory=dict)

    @property
    def scores(self) -> list[float | None]:
        """Each attempt's mean over its folders with a score."""
        return [_mean(result.score for _, result in each) for each in self.results.values()]

    @property
    def score(self) -> float | None:
        return _mean(self.scores)

    @property
    def folders(self) -> Iterator[tuple[Rollout, Result]]:
        for each in self.results.values():
            yield from each


def _mean(scores: Iterable[float | None]) -> float | None:
    known = [score for score in scores if score is not None]
    return fmean(known) if known else None


class RolloutScorer(OfflineScorer):
    """Reads the scores of a tree of results.

    Profiles are named after the paper's sets of examples, over which `SR_all` is.

    Args:
        files: list the suite's tasks; None for those in the tree.
    """

    profiles: ClassVar[Mapping[str, Columns]] = dict.fromkeys(
        ("osworld", "osworld-windows"), dict.fromkeys(RATES, "share")
    )
    needs_answers = False
    right = "SR_finished"
    ranked_by = "SR_all"
    options = ("examples",)

    def __init__(self, files: TaskFiles | None = None) -> None:
        self._files = files

    def paired_totals(self, profile: str) -> Columns:
        """Return the total over finished rollouts, the only ones that can be paired."""
        return {"SR_finished": "share"}

    def score(
        self, data: Path, answers: Path | None, *, profile: str, strict: bool = False
    ) -> tuple[Sequence[Scored], Sequence[Finding]]:
        """Read every `result.txt` and trajectory of a tree; no media.

        Args:
            data: the tree, from any of its levels downwards.
            answers: none; the tree holds the scores.
            profile: one of `profiles`.
            strict: make the first finding an error.

        Returns:
            The scores of each agent, by their names, and the findings. Examples that are none of
            the suite's tasks are counted and left out.

        Raises:
            DataError: nothing like OSWorld's results is there, or none of the set's domains; a list
                of tasks is unusable; an agent has no usable result, or its attempts had other
                limits of turns; or `strict` and there is a finding.
        """
        findings: list[Finding] = []
        if is_repository(data):
            raise DataError(
                "a Parquet repository has steps, but no results of examples without steps",
                where=str(data),
                expected="a tree of results",
                remedy="name the data it was converted from",
            )
        with reading(data, "osworld", *(self._files.places if self._files else ())):
            files = self._files or TaskFiles.beside(data)
            tried: dict[Key, _Tried] = {}
            for rollout in rollouts(data, findings.append, files):
                key = rollout.run, rollout.domain, rollout.example_id
                result = read_result(rollout, findings.append)
                attempts = tried.setdefault(key, _Tried()).results
                attempts.setdefault(rollout.attempt, []).append((rollout, result))
            suite = self._suite(data, profile, tried, files)
            for (_, *task), found in tried.items():
                _read_attempts(found, "/".join(task), suite, findings)
        known = {key: found for key, found in tried.items() if suite.has(key[1:])}
        _check_results(known, findings, data)
        _report_outside(tried, suite, profile, data, findings.append)
        if strict:
            refuse_findings(findings, data)
        scored = []
        for agent in sorted({key[0] for key in known}):
            own = {key[1:]: found for key, found in tried.items() if key[0] == agent}
            kept = {task: found for task, found in own.items() if suite.has(task)}
            results = _results(agent, profile, suite, kept, len(own) - len(kept), data)
            scored.append(Scored(agent, results, list(_lines(profile, kept))))
        return scored, findings

    def _suite(
        self, data: Path, profile: str, tried: Mapping[Key, _Tried], files: TaskFiles
    ) -> Suite:
        suite = suite_of(profile, (key[1:] for key in tried), files)
        own = SETS[profile]
        others = {one for name, found in SETS.items() if name != profile for one in found}
        domains = {domain for _, domain, _ in tried}
        # Other suites are scored by the first profile, or by one with a domain of theirs.
        is_own = not domains.isdisjoint(own)
        if not is_own and (profile != next(iter(self.profiles)) or domains <= others):
            raise DataError(
                f"no example belongs to a domain of {profile}",
                where=str(data),
                expected=f"folders of {', '.join(own)}",
                remedy=f"name the results, or another --profile ({', '.join(self.profiles)})",
            )
        if not any(suite.has(key[1:]) for key in tried):
            raise DataError(
                "no example is one of the listed tasks",
                where=str(data),
                expected=f"<domain>/<id> as in {suite.files.listing}",
                remedy="name the list of these tasks",
            )
        return suite


def _read_attempts(tried: _Tried, task: str, suite: Suite, findings: list[Finding]) -> None:

    def note(finding: Finding) -> None:
        if finding.severity == "error":  # doubts about a turn do not change the rates
            findings.append(finding)

    first = next(tried.folders)[0]
    tried.axes = suite.axes((first.domain, first.example_id))
    for score, folders in zip(tried.scores, tried.results.values(), strict=True):
        # Of several instructions there is a trajectory each: which of them is the attempt's?
        rollout = folders[0][0] if len(folders) == 1 else None
        runs = runs_of(rollout, TRAJECTORY, note) if rollout else []
        can = tried.axes.get("feasibility")
        made = attempt_of(
            runs[-1] if runs else None,
            task=task,
            score=score,
            action_space=first.action_space,
            limit=_limit(rollout),
            feasible=None if can is None else can == "feasible",
        )
        tried.attempts.append(made)


def _limit(rollout: Rollout | None) -> int | None:
    limit = rollout.max_steps if rollout else None
    return limit if limit is None or limit <= MOST_TURNS else None


def _check_results(known: Mapping[Key, _Tried], findings: Sequence[Finding], data: Path) -> None:
    """Refuse agents without any result: a rate of 0 % would claim that they failed everywhere."""
    scored = {agent for (agent, _, _), found in known.items() if found.score is not None}
    without = next((agent for agent, _, _ in sorted(known) if agent not in scored), None)
    if without is None:
        return
    paths = {
        rollout.name(RESULT)
        for (agent, _, _), found in known.items()
        if agent == without
        for rollout, _ in found.folders
    }
    broken = next((finding for finding in findings if finding.where in paths), None)
    raise DataError(
        f"{without} has no result that can be used"
        + (f": {broken.where}: {broken.what}" if broken else f", but {len(paths)} folders"),
        where=str(data),
        expected=f"a {RESULT} with a score in at least one folder",
        remedy="correct the files, or name results of agents that finished an example",
    )


def _report_outside(
    tried: Mapping[Key, _Tried], suite: Suite, profile: str, data: Path, note: Note
) -> None:
    """Report the tasks that the rates do not include, and domains with too many examples."""
    if suite.source == "data":
        unknown = ", ".join(sorted(suite.sizes.keys() - GROUP_OF.keys()))
        RowContext(str(data), note).warn(
            "domain-unknown",
            f"{profile} has no {unknown}: SR_all is over the {sum(suite.sizes.values())} tasks "
            "that agents tried here",
            f"a list of all tasks, or the domains {', '.join(SETS[profile])} alone",
            f"name the suite's {EVALUATION} or {LIST} with -T examples=PATH, or put it into the "
            "folder; remove folders that are not domains",
        )
    left = [key for key in tried if not suite.has(key[1:])]
    if suite.tasks is not None and left:
        where = suite.files.listing or suite.files.examples or data
        RowContext(str(where), note).warn(
            "task-unlisted",
            f"it lacks {plural(len({key[1:] for key in left}), 'task')} that agents tried, e.g. "
            f"{'/'.join(min(key[1:] for key in left))}",
            "the list of all tasks",
            "name the list that was run; the tasks are left out until then",
        )
        left = []
    for domain, count in sorted(Counter(key[1] for key in left).items()):
        RowContext(domain or "(no domain)", note).warn(
            "domain-unknown",
            f"{count} examples are of a domain that {profile} does not have",
            ", ".join(suite.sizes),
            "rename the folder if it is one of these domains; the examples are left out until then",
        )
    counts = Counter((key[0], key[1]) for key in tried if suite.has(key[1:]))
    for (agent, domain), count in counts.items():
        if count > suite.sizes[domain]:
            RowContext(f"{agent}: {domain}", note).warn(
                "examples-many",
                f"the domain has {count} examples",
                f"the {suite.sizes[domain]} of {profile}",
                "remove the examples that do not belong there; until then SR_all is over "
                "all of them",
            )


def _results(
    agent: str, profile: str, suite: Suite, known: _Known, outside: int, data: Path
) -> dict[str, Any]:
    made = len({attempt for found in known.values() for attempt in found.results})
    examples = []
    for (domain, _), found in known.items():
        total_score = sum(score or 0.0 for score in found.scores)
        examples.append(Example(domain, found.score, total_score / made, found.axes))
    axes = _axes(suite, examples)
    table = total(examples, sizes=suite.sizes, groups=suite.groups, axes=axes)
    attempts = [one for found in known.values() for one in found.attempts]
    return success_results(
        "osworld",
        profile,
        agent,
        table,
        examples,
        attempts,
        most=made,
        by=table["by"],
        behaviour=_behaviour(agent, suite, known, attempts, axes, data),
        counts={"unknown_tasks": outside},
    )


def _axes(suite: Suite, examples: Sequence[Example]) -> dict[str, dict[str, int | None]]:
    apps = {one.tags["apps"] for one in examples if "apps" in one.tags}
    named: dict[str, Sequence[str]] = {
        "feasibility": ("feasible", "infeasible"),
        "workflow": ("single app", "several apps"),
        "apps": sorted(apps, key=int),
        "difficulty": tuple(DIFFICULTIES),
    }
    whole = sum(suite.sizes.values())
    counts: dict[str, Mapping[str, int]] = {}
    if suite.tasks is None:
        several = sum(size for domain, size in suite.sizes.items() if domain in WORKFLOWS)
        never = sum(task.partition("/")[0] in suite.sizes for task in INFEASIBLE)
        counts["feasibility"] = {"feasible": whole - never, "infeasible": never}
        counts["workflow"] = {"single app": whole - several, "several apps": several}
    else:
        groups: dict[str, Counter[str]] = {}
        for task in sorted(suite.tasks):
            for axis, group in suite.axes(task).items():
                groups.setdefault(axis, Counter())[group] += 1
        counts |= {axis: found for axis, found in groups.items() if found.total() == whole}
    empty: dict[str, dict[str, int | None]] = {
        axis: dict.fromkeys(names) for axis, names in named.items()
    }
    return empty | {
        axis: {group: found.get(group, 0) for group in {**empty[axis], **found}}
        for axis, found in counts.items()
    }


def _behaviour(
    agent: str,
    suite: Suite,
    known: _Known,
    attempts: Sequence[Attempt],
    axes: Mapping[str, Mapping[str, int | None]],
    data: Path,
) -> dict[str, Any] | None:
    folders = [rollout for found in known.values() for rollout, _ in found.folders]
    limits = {limit for rollout in folders if (limit := _limit(rollout))}
    if len(limits) > 1 and len({rollout.attempt for rollout in folders}) > 1:
        raise DataError(
            f"{agent} was given {' and '.join(map(str, sorted(limits)))} turns",
            where=str(data),
            expected="one `max_steps` in the files args.json of an agent's attempts",
            remedy="name their folders as other agents, since different settings are not pooled",
        )
    if not any(attempt.ending for attempt in attempts):
        return None
    found: dict[str, dict[str, str]] = {name: {} for name in ("domain", "group", *axes)}
    for (domain, example), one in known.items():
        group = {"group": GROUP_OF[domain]} if suite.groups and domain in GROUP_OF else {}
        for axis, value in {"domain": domain, **group, **one.axes}.items():
            found[axis][f"{domain}/{example}"] = value
    used = {axis: groups for axis, groups in found.items() if groups}
    return behaviour(attempts, limit=max(limits, default=None), axes=used)


def _lines(profile: str, known: _Known) -> Iterator[Mapping[str, Any]]:
    for (domain, example), found in known.items():
        columns: dict[str, list[Any]] = {
            "scores": found.scores if len(found.attempts) > 1 else [None],
            **{
                name: [getattr(attempt, name) for attempt in found.attempts]
                for name in ("ending", "turns", "seconds", "tokens")
            },
        }
        yield {
            "sample_id": f"{domain}/{example}",
            "outcome": "missing" if found.score is None else "ok",
            "profile": profile,
            "score": found.score,
            "SR_finished": found.score,
            "domain": domain,
            **{
                name: values if len(values) > 1 else values[0]
                for name, values in columns.items()
                if any(value is not None for value in values)
            },
            "parsed": {rollout.path: result.text for rollout, result in found.folders},
        }
