"""Any benchmark as training data for four trainers: TRL, LLaMA-Factory, ms-swift, Qwen-VL.

The prompt is the one of the evaluation, the answer is one that the evaluation calls an exact match.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from omnidata.errors import DataError, Finding, counted
from omnidata.loaders.files import refuse_closed
from omnidata.run.selection import SPLITS, Split, select, split_of
from omnidata.storage import write_json
from omnidata.tasks.coordinates import answer_space
from omnidata.training import leaks
from omnidata.training.media_store import (
    INFO,
    LEAKS,
    MODELS,
    REPORT,
    SEEN,
    ExportStaging,
    Media,
    Sizing,
    Store,
    key,
)
from omnidata.training.rows import Maker, Options, asked, unstated
from omnidata.training.split_files import SplitFile, dataset_info, write_ids, write_models
from omnidata.types import LoadedDataset, MediaRef, Modality, Step, Task

__all__ = ["Exported", "Options", "Sizing", "export"]

Progress = Callable[[int, int], None]
_FAR_OFF = 2.0
"""A split that got less or more than its share by this factor is told of."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What has been written.

    Attributes:
        report: as in `export.json`.
        findings: steps that are left out, leaks, and what is doubtful.
    """

    report: Mapping[str, Any]
    findings: Sequence[Finding]


def export(
    task: Task,
    source: LoadedDataset,
    out: Path,
    options: Options,
    *,
    where: Mapping[str, str] = {},
    exclude: frozenset[str] = frozenset(),
    limit: int | None = None,
    against: LoadedDataset | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write training data; they appear under their name only when they are whole.

    An interrupted export leaves a hidden folder beside `out`; the next call with the same settings
    goes on with the media that are there.

    Args:
        task: writes the prompts, with its options; `coordinates` is the unit of the answers.
        source: what the task's `load` gave, best without `check_media`: all media are decoded here.
        out: a new folder.
        options: of the export.
        where: tags of the steps that are exported (see `run.select`).
        exclude: ids of steps that are not.
        limit: the first so many steps.
        against: data of an evaluation with which the training data must share nothing.
        overwrite: replace an export that is there.
        progress: called with the media done and their number; then again for those of `against`.

    Raises:
        UsageError: the trainer has no form for the prompts or the options, nothing is chosen, or
            `out` is there and not to be replaced.
        DataError: no step can be exported, a voice instruction is missing, media lie in folders
            that nobody named, another process is exporting to the same place, or it cannot be
            written.
    """
    options.check(task)
    steps = select(source.steps, where=where, exclude=exclude, limit=limit, spelling=task.spelling)
    refuse_closed(steps)
    refs, kinds = _needed(task, steps, options)
    frames = options.frames if options.video == "frames" else None
    settings = {
        "omnidata": version("omnidata"),
        "sizing": asdict(options.sizing),
        "frames": frames,
        "copy": options.copy,
    }
    roots = {source.root, *(ref.root for ref in refs)}
    with (
        ExportStaging(out, overwrite=overwrite, inputs=roots, settings=settings) as staging,
        _explained(staging.out),
    ):
        store = Store(
            staging.path,
            staging.journal,
            sizing=options.sizing,
            frames=frames,
            copy=options.copy,
        )
        stored = store.fill(refs, progress)
        maker = Maker(task, options, stored, kinds, unstated(source))
        splits, findings = _split(steps, maker, options, staging.path)
        left_out = {finding.where for finding in findings}
        findings += _remarks(task, source, options, splits)
        seen = [step.sample_id for step in source.steps if split_of(step, options.shares) != "test"]
        lists = {SEEN: ("steps of episodes that are not for testing", seen)}
        if against is not None:
            found, ids = _leaks(task, source, steps, options, stored, against, progress)
            findings += found
            lists[LEAKS] = ("steps of episodes that are evaluated on", ids)
        for name, (head, ids) in lists.items():
            lacking = write_ids(staging.path / name, ids, head)
            findings += [_unlisted(name, sample) for sample in lacking]
        wanted = {REPORT, *lists}.union(*({file.name, *file.media} for file in splits.values()))
        kept = (step for step in steps if step.sample_id not in left_out)
        if write_models(staging.path / MODELS, kept):
            wanted.add(MODELS)
        if options.format == "llamafactory":
            write_json(staging.path / INFO, dataset_info(task.name, splits.values()))
            wanted.add(INFO)
        choice = {"where": dict(where), "exclude": sorted(exclude), "limit": limit}
        report = _report(task, source, choice, against, options, splits, findings)
        write_json(staging.path / REPORT, report)
        staging.publish(wanted)
    return Exported(report, findings)


@contextmanager
def _explained(out: Path) -> Iterator[None]:
    """Say of a file system's error what a person can do about it."""
    try:
        yield
    except OSError as error:
        raise DataError(
            f"the export cannot be written ({error.strerror or error})",
            where=str(out),
            expected="room on the disk and the right to write",
            remedy="make room; the same command goes on with the media that are there",
        ) from None


def _needed(
    task: Task, steps: Sequence[Step], options: Options
) -> tuple[list[MediaRef], frozenset[Modality]]:
    """The media of all prompts, each once, and the modalities that rows have files of."""
    refs: dict[Hashable, MediaRef] = {}
    kinds: set[Modality] = set()
    for step in steps:
        conversation, sent = asked(task, step, options.capabilities)
        kinds |= {part.media.kind for turn in conversation for part in turn.parts if part.media}
        for _, ref in sent:
            refs.setdefault(key(ref), ref)
    options.check_kinds(kinds)
    if options.video == "frames":
        kinds = {"image" if kind == "video" else kind for kind in kinds}
    return list(refs.values()), frozenset(kinds & options.capabilities.accepts)


def _split(
    steps: Sequence[Step], maker: Maker, options: Options, folder: Path
) -> tuple[dict[Split, SplitFile], list[Finding]]:
    """Write the rows; say which steps have none."""
    files: dict[Split, SplitFile] = {}
    findings: list[Finding] = []
    for step in steps:
        made = maker.make(step)
        if isinstance(made, Finding):
            findings.append(made)
            continue
        split = split_of(step, options.shares)
        if split not in files:
            files[split] = SplitFile(folder, split)
        files[split].add(step, made)
    if not files:
        raise DataError(
            f"none of {counted(len(steps), 'step')} can be exported, the first: {findings[0]}",
            expected="at least one step with its media and a target",
            remedy="mend the data",
        )
    for file in files.values():
        file.finish()
    return {split: files[split] for split in SPLITS if split in files}, findings


def _remarks(
    task: Task, source: LoadedDataset, options: Options, splits: Mapping[Split, SplitFile]
) -> Iterator[Finding]:
    """What is doubtful of the export as a whole."""
    if source.skipped:
        yield Finding(
            "rows-skipped",
            "error",
            "DATA",
            f"{counted(source.skipped, 'row')} of the data became no step",
            "a step for every row",
            f"mend them: `omnidata info {task.name} DATA` lists them",
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
    got = _got(splits)
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


def _got(splits: Mapping[Split, SplitFile]) -> dict[Split, dict[str, float]]:
    """The shares of the groups and of the steps that each split really got."""
    groups = sum(len(file.groups) for file in splits.values())
    steps = sum(file.steps for file in splits.values())
    return {
        split: {"groups": len(file.groups) / groups, "steps": file.steps / steps}
        for split, file in splits.items()
    }


def _unlisted(name: str, sample: str) -> Finding:
    return Finding(
        "id-unlisted",
        "error",
        sample,
        f"{name} lacks the step: a file for --exclude cannot hold its id",
        "an id of one line without spaces at its ends",
        "rename the episode in the data",
    )


def _leaks(
    task: Task,
    source: LoadedDataset,
    steps: Sequence[Step],
    options: Options,
    stored: Media,
    against: LoadedDataset,
    progress: Progress | None,
) -> tuple[list[Finding], list[str]]:
    """What training shares with an evaluation, and the ids of all steps of such episodes."""
    training: dict[str, list[leaks.Shown]] = defaultdict(list)
    for step in steps:
        if split_of(step, options.shares) != "test":
            refs = [ref for _, ref in asked(task, step, options.capabilities)[1]]
            training[step.group].append((step, refs))
    known = leaks.read(against, progress)
    found = list(leaks.findings(training, stored, known))
    groups = {name for _, name in found}
    ids = [step.sample_id for step in source.steps if step.group in groups]
    return [*(finding for finding, _ in found), *leaks.unchecked(known)], ids


def _report(
    task: Task,
    source: LoadedDataset,
    choice: Mapping[str, Any],
    against: LoadedDataset | None,
    options: Options,
    splits: Mapping[Split, SplitFile],
    findings: Sequence[Finding],
) -> dict[str, Any]:
    got = _got(splits)
    return {
        "omnidata": version("omnidata"),
        "task": task.name,
        "task_options": dict(task.options),
        "prompt_hash": task.prompt_hash,
        "dataset_fingerprint": source.fingerprint,
        **choice,
        "check_against": against.fingerprint if against else None,
        "options": asdict(options),
        "splits": {
            split: {
                "file": file.name,
                "episodes": len(file.episodes),
                "groups": len(file.groups),
                "steps": file.steps,
                "share": got[split],
            }
            for split, file in splits.items()
        },
        "media": len({name for file in splits.values() for name in file.media}),
        "findings": [dict(finding.as_dict()) for finding in findings],
    }
