"""OSWorld's success rates over a tree of results, which holds the scores itself.

A tree may hold several agents' results: each action space, observation type and model is an agent
with rates of its own, which are never pooled. Examples have the same ids whoever tried them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

from omnidata.errors import DataError, Finding
from omnidata.loaders.load import reading, refuse_findings
from omnidata.loaders.repository import is_repository
from omnidata.metrics.intervals import named_methods
from omnidata.metrics.rollouts import RATES, Example, total
from omnidata.tasks.osworld.load import rollouts
from omnidata.tasks.osworld.tree import RESULT, Result, Rollout, groups, read_result, sets
from omnidata.tasks.profiles import Columns, OfflineScorer, Scored

Key = tuple[str, str, str]
"""Agent, domain and example."""


@dataclass(slots=True)
class _Tried:
    """One example of an agent; more than one folder where there is one for each instruction."""

    results: list[tuple[Rollout, Result]] = field(default_factory=list)

    @property
    def score(self) -> float | None:
        """The mean over the folders with a score; None where none has one."""
        scores = [result.score for _, result in self.results if result.score is not None]
        return fmean(scores) if scores else None


class RolloutScorer(OfflineScorer):
    """Reads the scores that a tree of results holds.

    The profiles are named after the sets of examples that are the whole of `SR_all`.
    """

    profiles: ClassVar[Mapping[str, Columns]] = dict.fromkeys(
        ("osworld", "osworld-windows"), dict.fromkeys(RATES, "share")
    )
    needs_answers = False
    right = "SR_finished"

    def paired(self, profile: str) -> Columns:
        """That over what finished: what an agent never tried is no line that could be paired."""
        return {"SR_finished": "share"}

    def score(
        self, data: Path, answers: Path | None, *, profile: str, strict: bool = False
    ) -> tuple[Sequence[Scored], Sequence[Finding]]:
        """Read every `result.txt` of a tree; trajectories and media are not looked at.

        Args:
            data: the tree, from any of its levels downwards.
            answers: nothing; the tree holds the scores.
            profile: one of `profiles`.
            strict: make the first finding an error.

        Returns:
            What each agent reached, in the order of their names, and what is doubtful. Examples of
            domains that the set does not have are counted and left out.

        Raises:
            DataError: nothing like OSWorld's results is there, or none of the set's domains; of an
                agent no result can be used; or `strict` and there is a finding.
        """
        findings: list[Finding] = []
        sizes = sets()[profile]
        tried = _tried(data, findings)
        known = {key: found for key, found in tried.items() if key[1] in sizes}
        if not known:
            raise DataError(
                f"no example is of a domain of {profile}",
                where=str(data),
                expected=f"folders of {', '.join(sizes)}",
                remedy=f"name the results, or another --profile ({', '.join(self.profiles)})",
            )
        _check_results(known, findings, data)
        findings += _outside(tried, sizes, profile)
        findings += _too_many(known, sizes, profile)
        if strict:
            refuse_findings(findings, data)
        return [
            _scored(agent, tried, profile) for agent in sorted({key[0] for key in known})
        ], findings


def _tried(data: Path, findings: list[Finding]) -> dict[Key, _Tried]:
    if is_repository(data):
        raise DataError(
            "a Parquet repository holds steps, and no results of examples without any",
            where=str(data),
            expected="a tree of results",
            remedy="name the data that it was converted from",
        )
    tried: dict[Key, _Tried] = {}
    with reading(data, "osworld"):
        for rollout in rollouts(data, findings.append):
            key = rollout.run, rollout.domain, rollout.example_id
            result = read_result(rollout, findings.append)
            tried.setdefault(key, _Tried()).results.append((rollout, result))
    return tried


def _check_results(known: Mapping[Key, _Tried], findings: Sequence[Finding], data: Path) -> None:
    """Refuse an agent without any score: 0 % would say that it has failed everywhere."""
    scored = {agent for (agent, _, _), found in known.items() if found.score is not None}
    without = next((agent for agent, _, _ in sorted(known) if agent not in scored), None)
    if without is None:
        return
    paths = {
        rollout.name(RESULT)
        for (agent, _, _), found in known.items()
        if agent == without
        for rollout, _ in found.results
    }
    broken = next((finding for finding in findings if finding.where in paths), None)
    raise DataError(
        f"{without} has no result that can be used"
        + (f": {broken.where}: {broken.what}" if broken else f", but {len(paths)} folders"),
        where=str(data),
        expected=f"a {RESULT} with a score in one of the folders at least",
        remedy="mend the files, or name the results of agents that have finished an example",
    )


def _outside(
    tried: Mapping[Key, _Tried], sizes: Mapping[str, int], profile: str
) -> Iterator[Finding]:
    for domain in sorted({domain for _, domain, _ in tried if domain not in sizes}):
        count = sum(key[1] == domain for key in tried)
        yield Finding(
            "domain-unknown",
            "warning",
            domain or "(no domain)",
            f"{count} examples are of a domain that {profile} does not have",
            ", ".join(sizes),
            "rename the folder if it is one of them; the examples are left out until then",
        )


def _too_many(
    known: Mapping[Key, _Tried], sizes: Mapping[str, int], profile: str
) -> Iterator[Finding]:
    counts: dict[tuple[str, str], int] = {}
    for agent, domain, _ in known:
        counts[agent, domain] = counts.get((agent, domain), 0) + 1
    for (agent, domain), count in counts.items():
        if count > sizes[domain]:
            yield Finding(
                "examples-many",
                "warning",
                f"{agent}: {domain}",
                f"there are {count} examples",
                f"the {sizes[domain]} of {profile}",
                "remove what does not belong there; until then SR_all is over all of them",
            )


def _scored(agent: str, tried: Mapping[Key, _Tried], profile: str) -> Scored:
    """One agent's results, and a line for each of its examples."""
    sizes = sets()[profile]
    own = {key[1:]: found for key, found in tried.items() if key[0] == agent}
    known = {key: found for key, found in own.items() if key[0] in sizes}
    results = _results(agent, profile, known, len(own) - len(known))
    return Scored(agent, results, list(_lines(profile, known)))


def _results(
    agent: str, profile: str, known: Mapping[tuple[str, str], _Tried], outside: int
) -> dict[str, Any]:
    """The content of `results.json`."""
    examples = [Example(domain, found.score) for (domain, _), found in known.items()]
    table = total(examples, sizes=sets()[profile], groups=groups())
    overall = table["overall"]
    done = [example for example in examples if example.score is not None]
    answered = {"SR_finished": overall["SR_finished"], "tasks": len(done)}
    return {
        "task": "osworld",
        "profile": profile,
        "agent": agent,
        "overall": {name: overall[name] for name in RATES},
        "ci95": overall["ci95"],
        **named_methods(overall.get("ci95_method", {})),
        "answered": answered,
        "by": table["by"],
        "counts": {
            "tasks": overall["tasks"],
            "finished": len(done),
            "unfinished": len(examples) - len(done),
            "absent": overall["tasks"] - len(examples),
            "unknown_tasks": outside,
        },
        "outcomes": {
            name: count
            for name, count in (("ok", len(done)), ("missing", overall["tasks"] - len(done)))
            if count
        },
    }


def _lines(profile: str, known: Mapping[tuple[str, str], _Tried]) -> Iterator[Mapping[str, Any]]:
    for (domain, example), found in known.items():
        yield {
            "sample_id": f"{domain}/{example}",
            "outcome": "missing" if found.score is None else "ok",
            "profile": profile,
            "score": found.score,
            "SR_finished": found.score,
            "domain": domain,
            "parsed": {rollout.path: result.text for rollout, result in found.results},
        }
