"""What an export says of itself: doubtful settings, media that rows lack, and its report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from omnidata.adapters.media_budget import parts_of
from omnidata.errors import Finding, MediaError, plural
from omnidata.loaders.episode_tree import CRITICAL
from omnidata.run.errata import Errata
from omnidata.run.selection import Split
from omnidata.tasks.asking import Asking
from omnidata.tasks.coordinates import answer_space
from omnidata.training.export_files import SplitFile
from omnidata.training.formats import PromptFormat
from omnidata.training.preferences import PreferenceRows
from omnidata.training.rewards import TERMS
from omnidata.training.rows import Options
from omnidata.training.semi_online import RunHistories
from omnidata.types import LoadedDataset, Modality, Step

_FAR_OFF = 2.0
"""Splits that miss their share by this factor are reported."""


def remarks(
    task: Asking, source: LoadedDataset, options: Options, splits: Mapping[Split, SplitFile]
) -> Iterator[Finding]:
    """Yield findings about rows that became no step, units of coordinates and shares of splits."""
    if source.skipped:
        yield Finding(
            "rows-skipped",
            "error",
            "DATA",
            f"{plural(source.skipped, 'row')} of the data became no step",
            "a step for every row",
            f"correct them: `omnidata info {task.name} DATA` lists them",
        )
    asked_for, given = task.prompted_space, answer_space(task.options)
    if asked_for and given != asked_for:
        yield Finding(
            "unit-differs",
            "warning",
            f"-T coordinates={task.options['coordinates']}",
            f"the prompt asks for coordinates in {asked_for}, the answers have {given}",
            "one unit in both",
            "evaluate the trained model with the same -T coordinates",
        )
    got = _shares_of(splits)
    wanted = {split: share for split, share in options.shares.items() if share}
    most = _FAR_OFF if splits.keys() >= wanted.keys() else math.inf  # an empty one fills others
    for split, share in wanted.items():
        if split in splits and not all(
            share / _FAR_OFF <= part <= share * most for part in got[split].values()
        ):
            yield Finding(
                "split-uneven",
                "warning",
                split,
                f"the split got {got[split]['groups']:.1%} of the groups and "
                f"{got[split]['steps']:.1%} of the steps",
                f"about {share:.0%}",
                "export more episodes, or give other shares with --split: a hash of the group's "
                "name decides, and few groups fall unevenly",
            )
        if split not in splits:
            yield Finding(
                "split-empty",
                "warning",
                split,
                "no episode falls into the split, so that it has no file",
                f"about {share:.0%} of the episodes",
                "export more episodes, or give other shares with --split",
            )


def media_losses(
    whole: Asking, task: Asking, steps: Sequence[Step], options: Options
) -> Iterator[Finding]:
    """Yield the finding that counts rows without the sound or motion that explains their answers.

    `whole` writes the prompts with all media, `task` as they are exported; `steps` have rows.
    """
    dropped, accepts = options.drop_audio, options.capabilities.accepts
    if "modalities" not in task.options and not dropped:
        return  # the prompts of other benchmarks leave out the same media always
    critical: list[str] = []
    unlabelled = 0
    lost: set[Modality] = set()
    for step in steps:
        own = {ref.kind for ref in step.media.values() if ref} - {"image"}
        lacks = own - (_modalities_of(task, step) & accepts) if own else own
        level = step.tags.get("dependency")
        if lacks and level == CRITICAL:
            critical.append(step.sample_id)
            lost |= lacks
        elif lacks and level is None and dropped and "audio" in _modalities_of(whole, step):
            unlabelled += 1
            lost |= lacks
    if not lost:
        return
    nouns = " and ".join({"audio": "sound", "video": "clip"}[kind] for kind in sorted(lost))
    found = []
    if critical:
        found.append(
            f"{plural(len(critical), 'step')} of episodes with dependency=critical, some of whose "
            "answers nothing else explains"
        )
    if unlabelled:
        found.append(f"{plural(unlabelled, 'step')} without a label that says if it matters")
    yield Finding(
        "media-dropped",
        "warning",
        "--drop-audio" if options.drop_audio else f"-T modalities={task.options['modalities']}",
        f"rows lack the {nouns} of {' and of '.join(found)}",
        "rows that show what their answers were made from",
        "leave such steps out (--where dependency=present, --exclude), or take a trainer that "
        "holds all media",
        tuple(critical),
    )


def _modalities_of(task: Asking, step: Step) -> set[Modality]:
    try:
        parts = parts_of(task.conversation(step))
    except MediaError:
        return set()
    return {part.media.kind for part in parts if part.media}


def _shares_of(splits: Mapping[Split, SplitFile]) -> dict[Split, dict[str, float]]:
    groups = sum(len(file.groups) for file in splits.values())
    steps = sum(len(file.steps) for file in splits.values())
    return {
        split: {"groups": len(file.groups) / groups, "steps": len(file.steps) / steps}
        for split, file in splits.items()
    }


def report_of(
    task: Asking,
    source: LoadedDataset,
    choice: Mapping[str, Any],
    against: LoadedDataset | None,
    options: Options,
    splits: Mapping[Split, SplitFile],
    findings: Sequence[Finding],
    *,
    with_rows: bool,
) -> dict[str, Any]:
    """Return the report of an export.

    Args:
        task: with the options of the export.
        source: the exported dataset.
        choice: how steps were chosen, as keys of the report.
        against: data of an evaluation, if any.
        options: of the export.
        splits: the files.
        findings: of the export.
        with_rows: whether to count rows: a step may have several.
    """
    got, chosen = _shares_of(splits), asdict(options)
    reward = chosen.pop("reward")
    if isinstance(options.rows, PromptFormat):
        chosen["reward"] = reward or dict(TERMS)
    return {
        "omnidata": version("omnidata"),
        "task": task.name,
        "task_options": dict(task.options),
        "prompt_hash": task.prompt_hash,
        "dataset_fingerprint": source.fingerprint,
        **choice,
        "check_against": against.fingerprint if against else None,
        "options": chosen,
        "splits": {
            split: {
                "file": file.name,
                "episodes": len(file.episodes),
                "groups": len(file.groups),
                "steps": len(file.steps),
                "share": got[split],
                **({"rows": file.rows} if with_rows else {}),
            }
            for split, file in splits.items()
        },
        "media": len({name for file in splits.values() for name in file.media}),
        "findings": [dict(finding.as_dict()) for finding in findings],
    }


def report_sources(
    pairs: PreferenceRows | None, histories: RunHistories | None, errata: Sequence[Errata]
) -> dict[str, Any]:
    """Return the parts of the report about runs and corrections, as far as there are any."""
    found: dict[str, Any] = {}
    if pairs:
        found["preferences"] = pairs.report()
    if histories:
        found["histories"] = dict(histories.report)
    if errata:
        about = ("name", "version", "hash")
        found["errata"] = [{key: getattr(one, key) for key in about} for one in errata]
    return found
