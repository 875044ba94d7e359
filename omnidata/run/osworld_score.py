"""OSWorld's success rates over a tree of results, which holds the scores itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Literal

from omnidata.errors import DataError, Finding
from omnidata.jsontext import encode
from omnidata.loaders.osworld import rollouts
from omnidata.loaders.osworld_domains import groups, sets
from omnidata.loaders.osworld_result import Result, read_result
from omnidata.loaders.osworld_tree import Rollout
from omnidata.loaders.recognition import naming_the_right_task
from omnidata.loaders.repository import is_repository
from omnidata.loaders.strict import refuse_findings
from omnidata.metrics.osworld import RATES, Example, total
from omnidata.run.folder import explained, replacing, write_json

PROFILES: Final[Sequence[str]] = ("osworld", "osworld-windows")
"""Named after the sets of examples that are the whole of `SR_all`."""

NEEDS_ANSWERS: Final = False

Key = tuple[str, str, str]
"""Run, domain and example."""


@dataclass(slots=True)
class _Tried:
    """One example of a run; more than one folder where there is one for each instruction."""

    results: list[tuple[Rollout, Result]] = field(default_factory=list)

    @property
    def score(self) -> float | None:
        """The mean over the folders with a score; None where none has one."""
        scores = [result.score for _, result in self.results if result.score is not None]
        return fmean(scores) if scores else None


def takes(answers: Path) -> bool:
    """No file of answers belongs to it: what is given there are texts of a model."""
    return False


def columns(profile: str) -> Mapping[str, Literal["share", "number"]]:
    """The totals that a table shows, in order."""
    return dict.fromkeys(RATES, "share")


def score(
    data: Path,
    answers: Path | None,
    *,
    profile: str,
    out: Path | None = None,
    strict: bool = False,
) -> tuple[dict[str, Any], Sequence[Finding]]:
    """Read every `result.txt` of a tree; trajectories and media are not looked at.

    Args:
        data: the tree, from any of its levels downwards.
        answers: nothing; the tree holds the scores.
        profile: one of `PROFILES`.
        out: folder for `scores.jsonl` and `results.json`; None writes nothing.
        strict: make the first finding an error.

    Returns:
        The content of `results.json`, and what is doubtful. Examples of domains that the set does
        not have are counted and left out.

    Raises:
        DataError: nothing like OSWorld's results is there, or none of the set's domains, or
            `strict` and there is a finding.
        RunError: the folder cannot be written.
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
            remedy=f"name the results, or another --profile ({', '.join(PROFILES)})",
        )
    findings += _outside(tried, sizes, profile)
    findings += _too_many(known, sizes, profile)
    if strict:
        refuse_findings(findings, data)
    results = _results(profile, known, len(tried) - len(known))
    if out is not None:
        with explained(out):
            out.mkdir(parents=True, exist_ok=True)
            with replacing(out / "scores.jsonl") as file:
                file.writelines(_lines(profile, known))
            write_json(out / "results.json", results)
    return results, findings


def _tried(data: Path, findings: list[Finding]) -> dict[Key, _Tried]:
    if is_repository(data):
        raise DataError(
            "a Parquet repository holds steps, and no results of examples without any",
            where=str(data),
            expected="a tree of results",
            remedy="name the data that it was converted from",
        )
    tried: dict[Key, _Tried] = {}
    with naming_the_right_task(data, "osworld"):
        for rollout in rollouts(data, findings.append):
            key = rollout.run, rollout.domain, rollout.example_id
            result = read_result(rollout, findings.append)
            tried.setdefault(key, _Tried()).results.append((rollout, result))
    return tried


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
    for run, domain, _ in known:
        counts[run, domain] = counts.get((run, domain), 0) + 1
    for (run, domain), count in counts.items():
        if count > sizes[domain]:
            yield Finding(
                "examples-many",
                "warning",
                f"{run}: {domain}",
                f"there are {count} examples",
                f"the {sizes[domain]} of {profile}",
                "remove what does not belong there; until then SR_all is over all of them",
            )


def _results(profile: str, known: Mapping[Key, _Tried], outside: int) -> dict[str, Any]:
    """The content of `results.json`."""
    examples = [Example(domain, run, found.score) for (run, domain, _), found in known.items()]
    table = total(examples, sizes=sets()[profile], groups=groups())
    overall = table["overall"]
    done = [example for example in examples if example.score is not None]
    answered = {"SR_finished": overall["SR_finished"], "tasks": len(done)}
    return {
        "task": "osworld",
        "profile": profile,
        "overall": {name: overall[name] for name in RATES},
        "ci95": overall["ci95"],
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


def _lines(profile: str, known: Mapping[Key, _Tried]) -> Iterator[bytes]:
    for (_, domain, _), found in known.items():
        shown = found.results[0][0]
        line = {
            "sample_id": shown.path if len(found.results) == 1 else shown.path.rpartition("/")[0],
            "outcome": "missing" if found.score is None else "ok",
            "profile": profile,
            "score": found.score,
            "domain": domain,
            "parsed": {rollout.path: result.text for rollout, result in found.results},
        }
        yield encode(line) + b"\n"
