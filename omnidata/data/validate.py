"""Check a dataset: its media, decoded from end to end, and its annotations.

`omnidata.data.media_outcomes.look` decodes, `report` compares, and `validate` does both: a report
is also possible after an interrupted `look`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from omnidata.data.media_checks import MediaChecks, finding
from omnidata.data.media_outcomes import LIMIT_S, Outcomes, key, look, references
from omnidata.errors import Finding
from omnidata.loaders.instructions import foreign
from omnidata.loaders.steps import ids_of, select_steps
from omnidata.media import DEFAULT_BUDGET, Budget
from omnidata.run.engines import Cluster
from omnidata.types import LoadedDataset, Modality, Progress, Step


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a validation.

    Attributes:
        findings: the loader's, then those of each episode in the order of the source.
        quarantine: ids of the steps that an error makes unusable, in the order of the source.
        checked: numbers of episodes, steps, skipped rows, and media that are there, by kind.
    """

    findings: Sequence[Finding]
    quarantine: Sequence[str]
    checked: Mapping[str, Any]

    @property
    def errors(self) -> int:
        """Number of findings that are errors."""
        return sum(finding.severity == "error" for finding in self.findings)

    def summary(self) -> dict[str, Any]:
        """Return the counts: errors, warnings, findings by code, steps to leave out."""
        codes = Counter(finding.code for finding in self.findings)
        return {
            "errors": self.errors,
            "warnings": len(self.findings) - self.errors,
            "codes": dict(codes.most_common()),
            "quarantined": len(self.quarantine),
        }


def validate(
    source: LoadedDataset,
    *,
    workers: int | None = None,
    cluster: Cluster | None = None,
    limit_s: float = LIMIT_S,
    budget: Budget = DEFAULT_BUDGET,
    progress: Progress | None = None,
) -> Report:
    """Decode every medium of a dataset and report all problems.

    Processes are started with `spawn`: in a script, call it from below
    `if __name__ == "__main__":`.

    Args:
        source: the result of a task's `load` with `check_media=False`; else media are reported
            twice.
        workers: processes; as many as there are cores if None, and none, thus no limit, if 0.
        cluster: its workers decode; None for this machine.
        limit_s: seconds that one medium may take.
        budget: limits of one medium.
        progress: called with the number of media looked at and of all.

    Raises:
        PlatformError: processes cannot be started.
    """
    refs = references(source.steps)
    seen = look(
        refs, workers=workers, cluster=cluster, limit_s=limit_s, budget=budget, progress=progress
    )
    return report(source, {key(ref): outcome for ref, outcome in seen})


def report(source: LoadedDataset, outcomes: Outcomes) -> Report:
    """Compare a dataset with its decoded media.

    Args:
        source: the dataset.
        outcomes: of `look`, by `key`; possibly not of all media.
    """
    checks = MediaChecks(source, outcomes)
    own = list(_findings(source, checks))
    # A repository remembers what was broken when it was written; ours is the newer finding.
    reported = _unusable(own)
    findings = [
        found
        for found in source.findings
        if found.code != "media-broken" or reported.isdisjoint(found.sample_ids)
    ]
    findings += own
    unusable = _unusable(findings)
    kinds = checks.present()
    return Report(
        findings,
        [sample_id for sample_id in ids_of(source.steps) if sample_id in unusable],
        {
            "episodes": len(checks.episodes),
            "steps": len(source.steps),
            "skipped": source.skipped,
            "media": {kind: kinds[kind] for kind in get_args(Modality)},
        },
    )


def _unusable(findings: Iterable[Finding]) -> set[str]:
    """Return the ids of steps with errors."""
    return {
        sample for found in findings if found.severity == "error" for sample in found.sample_ids
    }


def _findings(source: LoadedDataset, checks: MediaChecks) -> Iterator[Finding]:
    """Yield the findings that the loader has not, by episode."""
    absent = checks.absent()
    if absent is not None and absent.code not in {finding.code for finding in source.findings}:
        yield absent
    reported = {
        sample
        for finding in source.findings
        if finding.code in ("language-differs", "instruction-missing")
        for sample in finding.sample_ids
    }
    for numbers in checks.episodes.values():
        steps = sorted(select_steps(source.steps, numbers), key=lambda step: step.step_index)
        language = reported.isdisjoint(step.sample_id for step in steps)
        yield from _check_annotations(steps, language=language)
        if absent is None:
            yield from checks.of_episode(steps)
    if (turned := checks.turned_media()) is not None:
        yield turned


# What the annotations say about each other; the columns of a format are its loader's business.


def _check_annotations(steps: Sequence[Step], *, language: bool) -> Iterator[Finding]:
    """Yield findings about the histories and instructions of one episode.

    Args:
        steps: of the episode, by index.
        language: whether to look at the language; a loader may have done so already.
    """
    if language and (reason := foreign(steps[0].instruction, steps[0].tags.get("language", ""))):
        stated = steps[0].tags["language"]
        yield finding(
            "language-differs",
            steps[0].sample_id,
            f"the instruction, {reason}: {steps[0].instruction[:60]!r}",
            f'the language of the episode, "{stated}"',
            tuple(step.sample_id for step in steps),
        )
    targets = {step.step_index: step for step in steps}
    has_history = any(step.history for step in steps)  # without any, nothing is contradicted
    for step in steps if has_history else ():
        if reason := _contradiction(step, targets):
            yield finding(
                "history-differs",
                step.sample_id,
                f"the history {reason}",
                "the earlier targets",
                (step.sample_id,),
            )


def _contradiction(step: Step, targets: dict[int, Step]) -> str:
    if len(step.history) != step.step_index:
        return f"has {len(step.history)} actions, and {step.step_index} steps came before"
    for index, past in enumerate(step.history):
        target = targets[index].action if index in targets else None
        if past is target or past is None or target is None:
            continue
        if past != target:
            return f"has another {past.label} for step {index} than its target"
    return ""
