"""Export any benchmark as training data for TRL, LLaMA-Factory, ms-swift or Qwen-VL.

The prompt is the one of the evaluation, the answer is one that the evaluation calls an exact match.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from omnidata.adapters.media_budget import parts_of
from omnidata.errors import DataError, Finding, MediaError, UsageError, plural
from omnidata.loaders.media_findings import refuse_closed
from omnidata.loaders.steps import media_of
from omnidata.run.engines import Cluster
from omnidata.run.errata import Errata, correct_labels
from omnidata.run.selection import SPLITS, Split, select, split_of
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.training import leaks
from omnidata.training.export_files import (
    LEAKS,
    MODELS,
    REPORT,
    REWARD,
    SEEN,
    ExportStaging,
    SplitFile,
    write_files,
    write_lists,
    write_models,
)
from omnidata.training.export_report import media_losses, remarks, report_of, report_sources
from omnidata.training.formats import PromptFormat
from omnidata.training.media_store import Sizing, Store, Wanted
from omnidata.training.preferences import PreferenceRows, Preferences
from omnidata.training.reward_files import reward_plan
from omnidata.training.rows import (
    ExclusionError,
    Line,
    Maker,
    Options,
    places_without_target,
    prompt_with_media,
)
from omnidata.training.semi_online import RunHistories
from omnidata.types import LoadedDataset, Modality, Progress, Step

__all__ = ["Exported", "Options", "Sizing", "export"]


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export.

    Attributes:
        report: as in `export.json`.
        findings: steps that are left out, leaks and doubts.
    """

    report: Mapping[str, Any]
    findings: Sequence[Finding]


def export(
    task: Asking,
    source: LoadedDataset,
    out: Path,
    options: Options,
    *,
    where: Mapping[str, str] = {},
    exclude: frozenset[str] = frozenset(),
    limit: int | None = None,
    against: LoadedDataset | None = None,
    preferences: Preferences | None = None,
    histories: RunHistories | None = None,
    overwrite: bool = False,
    workers: int | None = 1,
    cluster: Cluster | None = None,
    progress: Progress | None = None,
    errata: Sequence[Errata] = (),
) -> Exported:
    """Write training data; they appear under their name only when they are complete.

    An interrupted export leaves a hidden folder beside `out`; the next call with the same settings
    resumes with the media that are there. The bytes do not depend on the workers.

    Args:
        task: writes the prompts, with its options; `coordinates` is the unit of the answers.
        source: the result of the task's `load`, best with `check_media=False`: all media are
            decoded here.
        out: a new folder.
        options: of the export.
        where: tags of the steps that are exported (see `run.select`).
        exclude: ids of steps that are not.
        limit: the first so many steps.
        against: data of an evaluation; the training data must share nothing with them.
        preferences: rows have pairs of answers of runs in place of right answers.
        histories: the actions of a run, for the histories in prompts; only steps that the run
            reached have rows.
        overwrite: replace an export that is there.
        workers: processes that look at media and write them, one per core if None; 1 = this one.
        cluster: its workers do; None for this machine.
        progress: called with the media done and their number; then again for those of `against`.
        errata: corrections of labels, in order.

    Raises:
        UsageError: the trainer has no format for the prompts or the options, no step is selected,
            pictures are to be resized although the prompts state their size, `out` exists and
            `overwrite` is not set, or a run is of other data or prompts.
        RunError, PredictionError: a run is unfinished or broken, or media have changed since.
        DataError: no step can be exported, a voice instruction is missing, media lie in folders
            that are not allowed, another process is exporting to the same place, or it cannot be
            written.
        OmnidataError: as `run.engines.each`.
    """
    if histories:
        task = histories.task
    options.check(task, with_runs=preferences is not None)
    steps = select(source.steps, where=where, exclude=exclude, limit=limit, task=task)
    if histories:
        steps = [step for step in steps if step.sample_id in histories.past]
    if errata and not preferences:
        steps = correct_labels(task, steps, errata)
    refuse_closed(media_of(steps))
    pairs = PreferenceRows(task, source, preferences, options, errata) if preferences else None
    if pairs:
        steps = pairs.choose(steps)
    whole, task = task, options.reword(task)
    needed, kinds = _media_of_prompts(task, steps, options)
    with _begin_staging(out, source, options, needed, overwrite=overwrite) as (staging, store):
        stored = store.fill(needed, progress, workers=workers, cluster=cluster)
        maker = Maker(task, options, stored, kinds, places_without_target(source), staging.out)
        made = pairs.lines(maker) if pairs else ((one, partial(maker.make, one)) for one in steps)
        splits, findings = _write_splits(made, options, staging.path)
        done = set[str]().union(*(file.steps for file in splits.values()))
        written = [step for step in steps if step.sample_id in done]
        findings += remarks(task, source, options, splits)
        findings += media_losses(whole, task, written, options)
        seen = _not_for_testing(source.steps, options)
        lists = {SEEN: ("steps of episodes that are not for testing", seen)}
        if against is not None:
            known = leaks.read(
                get_task(against.task), against, progress, workers=workers, cluster=cluster
            )
            training = _not_for_testing(steps, options)
            found, groups = leaks.compare(
                task, source, training, options.capabilities, stored, known
            )
            findings += found
            leaking = [step for step in source.steps if step.group in groups]
            lists[LEAKS] = ("steps of episodes that are evaluated on", leaking)
        findings += write_lists(staging.path, lists)
        choice = {"where": dict(where), "exclude": sorted(exclude), "limit": limit}
        has_pairs = pairs is not None
        report = {
            **report_of(
                task, source, choice, against, options, splits, findings, with_rows=has_pairs
            ),
            **report_sources(pairs, histories, errata),
            **({"fixed_sizes": True} if any(wanted.size for wanted in needed) else {}),
            **({"special_tokens": True} if task.special_tokens else {}),
        }
        columns = {file.name: file.columns for file in splits.values()}
        files = {**options.rows.files(task.name, columns), REPORT: report}
        if isinstance(options.rows, PromptFormat):
            files[REWARD] = reward_plan(task, source, options.reward)
        write_files(staging.path, files)
        has_models = write_models(staging.path / MODELS, written)
        media = set[str]().union(*(file.media for file in splits.values()))
        staging.publish({*columns, *media, *lists, *files, *([MODELS] if has_models else [])})
    return Exported(report, findings)


@contextmanager
def _begin_staging(
    out: Path,
    source: LoadedDataset,
    options: Options,
    needed: Sequence[Wanted],
    *,
    overwrite: bool,
) -> Iterator[tuple[ExportStaging, Store]]:
    """Yield the folder in which the export is made, and the store for its media."""
    frames = options.frames if options.video == "frames" else None
    settings = {
        "omnidata": version("omnidata"),
        "sizing": asdict(options.sizing),
        "frames": frames,
        "copy": options.copy,
    }
    roots = {source.root, *(wanted.ref.root for wanted in needed)}
    staging = ExportStaging(out, options.rows, overwrite=overwrite, inputs=roots, settings=settings)
    with staging, staging.writing():
        store = Store(
            staging.path,
            staging.journal,
            sizing=options.sizing,
            frames=frames,
            copy=options.copy,
        )
        yield staging, store


def _not_for_testing(steps: Iterable[Step], options: Options) -> list[Step]:
    return [step for step in steps if split_of(step, options.shares) != "test"]


def _media_of_prompts(
    task: Asking, steps: Sequence[Step], options: Options
) -> tuple[list[Wanted], frozenset[Modality]]:
    """Return the media that the prompts need, each once, and the kinds that the rows will have."""
    needed: dict[Hashable, Wanted] = {}
    kinds: set[Modality] = set()
    for step in steps:
        try:
            conversation, sent = prompt_with_media(task, step, options.capabilities)
        except MediaError:
            continue  # making its row reports the reason
        if any(part.kind == "tool" for part in parts_of(conversation)):
            raise UsageError(
                "prompts declare a provider's own tool, which trainers' rows have no place for",
                where=f"-T dialect={task.options.get('dialect')}",
                expected="a dialect in which models answer in text",
                remedy="leave dialect out, or name that of the model you train",
            )
        kinds |= {part.media.kind for part in parts_of(conversation) if part.media}
        for _, wanted in sent:
            needed.setdefault(wanted.key, wanted)
    if options.sizing != Sizing() and any(wanted.size for wanted in needed.values()):
        raise UsageError(
            "the prompts say in what size pictures are shown",
            where="--image-size, --smart-resize",
            expected="pictures of that size, which is a multiple of what the models look at",
            remedy="leave the sizes to the dialect",
        )
    options.check_kinds(task, kinds)
    if options.video == "frames":
        kinds = {"image" if kind == "video" else kind for kind in kinds}
    return list(needed.values()), frozenset(kinds & options.capabilities.accepts)


def _write_splits(
    rows: Iterable[tuple[Step, Callable[[], Line]]], options: Options, folder: Path
) -> tuple[dict[Split, SplitFile], list[Finding]]:
    """Write the rows; return the files by split, and the findings about steps without a row."""
    files: dict[Split, SplitFile] = {}
    excluded: dict[Finding, None] = {}  # a step of several rows is reported once
    with ExitStack() as opened:
        for step, make in rows:
            try:
                made = make()
            except ExclusionError as error:
                excluded[error.finding] = None
                continue
            split = split_of(step, options.shares)
            if split not in files:
                rest = opened.enter_context(TemporaryFile(dir=folder))
                files[split] = SplitFile(f"{split}{options.rows.suffix}", rest)
            files[split].add(step, made)
        if not files:
            raise DataError(
                f"none of {plural(len(excluded), 'step')} can be exported, the first: "
                f"{next(iter(excluded))}",
                expected="at least one step with its media and a target",
                remedy="correct the data",
            )
        for file in files.values():
            file.write(folder)
    return {split: files[split] for split in SPLITS if split in files}, [*excluded]
