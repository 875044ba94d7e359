"""What is wrong with a dataset: its media, decoded from end to end, and its annotations.

Two halves, so that an interrupted look at the media still gives a report: `look` decodes, `report`
judges. `validate` is both.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnidata.data.validate.episodes import check_annotations
from omnidata.data.validate.media import LIMIT_S, Fault, Outcomes, key, look, references
from omnidata.data.validate.steps import MediaChecks, Remark
from omnidata.errors import Finding
from omnidata.media import DEFAULT_BUDGET, Budget
from omnidata.types import Source, Step

__all__ = ["LIMIT_S", "Report", "key", "look", "references", "report", "validate"]


@dataclass(frozen=True, slots=True)
class Report:
    """What was found.

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
        """How many findings are errors."""
        return sum(finding.severity == "error" for finding in self.findings)

    def summary(self) -> dict[str, Any]:
        """The counts: errors, warnings, findings by code, steps to leave out."""
        codes = Counter(finding.code for finding in self.findings)
        return {
            "errors": self.errors,
            "warnings": len(self.findings) - self.errors,
            "codes": dict(codes.most_common()),
            "quarantined": len(self.quarantine),
        }


def validate(
    source: Source,
    *,
    workers: int | None = None,
    limit_s: float = LIMIT_S,
    budget: Budget = DEFAULT_BUDGET,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Look at every medium of a dataset and say what is wrong.

    Processes are started with `spawn`: in a script, call it from below
    `if __name__ == "__main__":`.

    Args:
        source: what a task's `load` gave; with `check_media=False`, or media are reported twice.
        workers: processes; as many as there are cores if None.
        limit_s: seconds that one medium may take.
        budget: limits of one medium.
        progress: called with the number of media looked at and of all.

    Raises:
        PlatformError: processes cannot be started.
    """
    seen = look(
        references(source.steps), workers=workers, limit_s=limit_s, budget=budget, progress=progress
    )
    return report(source, {key(ref): outcome for ref, outcome in seen})


def report(source: Source, outcomes: Outcomes) -> Report:
    """Hold a dataset against what is known of its media.

    Args:
        source: the dataset.
        outcomes: what `look` gave, by `key`; possibly not of all media.
    """
    episodes: dict[str, list[Step]] = defaultdict(list)
    for step in source.steps:
        episodes[step.episode].append(step)
    judged = list(_judged(source, episodes, outcomes))
    # A repository remembers what was broken when it was written; we have looked.
    wrong = {remark.finding.where for remark in judged if remark.finding.severity == "error"}
    remarks = [
        remark
        for remark in _loaded(source)
        if remark.finding.code != "media-broken" or wrong.isdisjoint(remark.samples)
    ]
    remarks += judged
    unusable = {
        sample
        for remark in remarks
        if remark.finding.severity == "error"
        for sample in remark.samples
    }
    found = ((ref, outcomes.get(key(ref))) for ref in references(source.steps))
    kinds = Counter(
        ref.kind
        for ref, seen in found
        if seen is not None and not (isinstance(seen, Fault) and seen.kind == "missing")
    )
    return Report(
        [remark.finding for remark in remarks],
        [step.sample_id for step in source.steps if step.sample_id in unusable],
        {
            "episodes": len(episodes),
            "steps": len(source.steps),
            "skipped": source.skipped,
            "media": {kind: kinds[kind] for kind in ("image", "video", "audio")},
        },
    )


def _judged(
    source: Source, episodes: Mapping[str, list[Step]], outcomes: Outcomes
) -> Iterator[Remark]:
    checks = MediaChecks(source, outcomes)
    absent = checks.absent()
    if absent is not None and absent.code not in {finding.code for finding in source.findings}:
        yield Remark(absent, ())
    told = {"language-differs", "instruction-missing"}
    read = {
        place
        for finding in source.findings
        if finding.code in told
        for place in _places(finding.where)
    }
    for steps in episodes.values():
        steps.sort(key=lambda step: step.step_index)
        place = f"{steps[0].tags.get('app', '')}/{steps[0].episode_id}"
        yield from check_annotations(steps, language=place not in read)
        if absent is None:
            yield from checks.of_episode(steps)


def _places(where: str) -> list[str]:
    """An episode, a step or a file, with everything that it lies in: "a/b/1 (c)" lies in "a/b"."""
    return [where, *(where[: end.start()] for end in re.finditer("[ /]", where))]


def _loaded(source: Source) -> Iterator[Remark]:
    """The loader's findings, with the steps that they name, else those that their places do."""
    places: dict[str, list[str]] = defaultdict(list)
    for step in source.steps:
        episode = f"{step.tags.get('app', '')}/{step.episode_id}"
        names = {episode, f"{episode}/{step.step_index}", step.sample_id}
        for name in names:
            places[name].append(step.sample_id)
    for finding in source.findings:
        parts = finding.where.split(" (")  # "app/episode/step (file)"; names may hold " (" as well
        starts = (" (".join(parts[:count]) for count in range(len(parts), 0, -1))
        named = next((places[start] for start in starts if start in places), [])
        yield Remark(finding, finding.sample_ids or tuple(named))
