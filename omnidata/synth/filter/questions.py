"""Which episodes a critic is asked about, and where it is known whether they succeeded."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from omnidata.errors import DataError, Finding
from omnidata.synth.retelling import Episode, read_episodes
from omnidata.tasks.omnigui_critic import OmniGuiCritic, agreed, known
from omnidata.types import Source, Step

COLUMN = "critics"
"""The column of an episode, and of its steps, with the critics that accepted it and their words."""

_PREFIX = "known:"


@dataclass(frozen=True, slots=True)
class Questions:
    """Episodes to ask about.

    Attributes:
        source: a step for each, as `OmniGuiCritic` has them; then rows of CriticBench, which are
            asked about to measure the model.
        episodes: of the data, those that can be written.
        unasked: keys of episodes that nobody is asked about, and why.
        known: of how many it is known whether they succeeded: episodes of the "data", and rows of
            "criticbench".
        findings: episodes that are left out, and doubts.
    """

    source: Source
    episodes: Sequence[Episode]
    unasked: Mapping[str, str]
    known: Mapping[str, int]
    findings: Sequence[Finding]


def questions(task: OmniGuiCritic, source: Source, bench: Source | None = None) -> Questions:
    """Choose what to ask about.

    Args:
        task: makes rows of CriticBench from episodes.
        source: of OmniGUI.
        bench: of CriticBench.

    Raises:
        DataError: nothing can be asked about, or the data use our column for something else.
    """
    _check_column(source)
    episodes, findings = read_episodes(source)
    unasked = {e.key: reason for e in episodes if (reason := task.unaskable(e.steps))}
    asked = task.ask_about(replace(source, steps=[s for e in episodes for s in e.steps]))
    by_key = {episode.key: episode for episode in episodes}
    asked = replace(asked, steps=[_informed(s, by_key[s.sample_id]) for s in asked.steps])
    if not asked.steps:
        reasons = [*unasked.values(), *(finding.what for finding in findings)]
        raise DataError(
            f"no episode can be judged: {reasons[0]}",
            where=str(source.root),
            expected="episodes with screenshots and actions",
            remedy="label the steps first (`omnidata synth label`), or judge without the actions: "
            "-T observations_only=true",
        )
    counts = {"data": sum(known(step) is not None for step in asked.steps)}
    if bench is not None:
        rows = [replace(step, sample_id=_PREFIX + step.sample_id) for step in bench.steps]
        both = f"{source.fingerprint} {bench.fingerprint}"
        asked = replace(
            asked,
            steps=[*asked.steps, *rows],
            fingerprint=hashlib.sha256(both.encode()).hexdigest(),
        )
        counts["criticbench"] = len(rows)
    return Questions(asked, episodes, unasked, counts, findings)


def _informed(question: Step, episode: Episode) -> Step:
    """The question, which knows what the episode's own row says of its success as well."""
    success = agreed((episode.row, *(step.source for step in episode.steps)))
    return replace(question, source={**question.source, "is_success": success})


def _check_column(source: Source) -> None:
    for step in source.steps:
        value = step.source.get(COLUMN)
        if value is not None and not isinstance(value, list):
            raise DataError(
                f'the rows have a column "{COLUMN}" that is not ours',
                where=step.sample_id,
                expected="no such column, or what `omnidata synth filter` writes",
                remedy="rename the column",
            )
