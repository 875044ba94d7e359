"""Export any benchmark as training data for TRL, LLaMA-Factory, ms-swift or Qwen-VL.

The prompt is the one of the evaluation, the answer is one that the evaluation calls an exact match.
"""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

from omnidata.adapters.media_budget import parts_of
from omnidata.errors import DataError, Finding, MediaError, UsageError, plural
from omnidata.jsontext import write_lines
from omnidata.loaders.episode_tree import CRITICAL
from omnidata.loaders.media_findings import refuse_closed
from omnidata.loaders.steps import media_of
from omnidata.run.engines import Cluster
from omnidata.run.errata import Errata, correct_labels
from omnidata.run.selection import SPLITS, Split, select, split_of, write_exclude
from omnidata.storage import PLAN, StagedFolder, atomic_write, is_unfinished, write_json
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.tasks.coordinates import answer_space
from omnidata.training import leaks
from omnidata.training.formats import OURS, Format, PromptFormat
from omnidata.training.media_store import MEDIA, Sizing, Store, Wanted
from omnidata.training.preferences import PreferenceRows, Preferences
from omnidata.training.reward_files import reward_plan
from omnidata.training.rewards import TERMS
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

# An export in the making.

REPORT, REWARD = "export.json", "reward.json"
SEEN, LEAKS, MODELS = "seen.txt", "leaks.txt", "models.jsonl"
_JOURNAL = ".media.jsonl"
_HASHED = re.compile(r"[0-9a-f]{32}\.[0-9a-z]{2,4}")


class _Staging(StagedFolder):
    """The folder of an export in the making.

    The files of an interrupted call with other settings are removed.
    """

    noun = "an export"
    work = "exporting"
    hidden = (PLAN,)

    def __init__(
        self,
        out: Path,
        form: Format,
        *,
        overwrite: bool,
        inputs: Iterable[Path],
        settings: Mapping[str, Any],
    ) -> None:
        super().__init__(out, overwrite=overwrite, inputs=inputs)
        self._settings = settings
        self.journal = self.path / _JOURNAL
        self._names = {MEDIA, REPORT, REWARD, SEEN, LEAKS, MODELS, PLAN}
        for one in (*OURS, form):
            self._names |= {*one.files("", {}), *(f"{split}{one.suffix}" for split in SPLITS)}

    def is_ours(self, folder: Path) -> bool:
        return (folder / REPORT).is_file() and self._holds(folder, half=False)

    def begin(self) -> None:
        if self.keep(self._settings, ours=self._holds(self.path, half=True)):
            for part in (self.path / MEDIA).glob(".*"):
                part.unlink()

    def _holds(self, folder: Path, *, half: bool) -> bool:
        inside, names = folder / MEDIA, self._names
        if folder.is_symlink() or not folder.is_dir() or inside.is_symlink():
            return False
        if half:
            names = names | {_JOURNAL}
        others = [path.name for path in folder.iterdir() if path.name not in names]
        if inside.exists():
            if not inside.is_dir():
                return False
            others += [path.name for path in inside.iterdir() if not _HASHED.fullmatch(path.name)]
        return not others or (half and all(map(is_unfinished, others)))

    def publish(self, wanted: Iterable[str]) -> None:
        """Move the folder to its destination, with the wanted files alone."""
        kept = {self.path / name for name in wanted}
        for path in [*self.path.iterdir(), *(self.path / MEDIA).iterdir()]:
            if path.name not in (MEDIA, PLAN) and path not in kept:
                path.unlink()
        self.move()


# The files of an export: JSON lines per split, and lists of sample ids.

_MODELS = ("idm", "critics")
"""The columns in which `synth label` and `synth filter` keep a model's name and its answer."""


@dataclass(slots=True)
class _SplitFile:
    """The file with the rows of a split.

    `datasets`, with which most trainers read, takes the types of all columns from the first few
    megabytes: a list that is empty until then would be a list of nothing. So the first rows that
    have something in a column go before all others.
    """

    name: str
    rest: IO[bytes]
    rows: int = 0
    steps: set[str] = field(default_factory=set)
    episodes: set[str] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    media: set[str] = field(default_factory=set)
    columns: set[str] = field(default_factory=set)
    first: list[bytes] = field(default_factory=list)

    def add(self, step: Step, line: Line) -> None:
        self.rows += 1
        self.steps.add(step.sample_id)
        self.episodes.add(step.episode)
        self.groups.add(step.group)
        self.media |= line.media
        if line.columns <= self.columns:
            self.rest.write(line.data)
        else:
            self.columns |= line.columns
            self.first.append(line.data)

    def write(self, folder: Path) -> None:
        with atomic_write(folder / self.name) as file:
            file.writelines(self.first)
            self.rest.seek(0)
            shutil.copyfileobj(self.rest, file)


def _write_models(path: Path, steps: Iterable[Step]) -> bool:
    """Write the models that labelled or accepted each step; return whether there are any."""
    models = (
        (step, {name: step.source[name] for name in _MODELS if step.source.get(name)})
        for step in steps
    )
    lines = ({"sample_id": step.sample_id, **found} for step, found in models if found)
    with atomic_write(path) as file:
        return write_lines(file, lines) > 0


_FAR_OFF = 2.0
"""Splits that miss their share by this factor are reported."""


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
        splits, findings = _split(made, options, staging.path)
        done = set[str]().union(*(file.steps for file in splits.values()))
        written = [step for step in steps if step.sample_id in done]
        findings += _remarks(task, source, options, splits)
        findings += _media_losses(whole, task, written, options)
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
        findings += _write_lists(staging.path, lists)
        choice = {"where": dict(where), "exclude": sorted(exclude), "limit": limit}
        report = {
            **_report(task, source, choice, against, options, splits, findings),
            **_report_sources(pairs, histories, errata),
        }
        if pairs:
            for split, file in splits.items():
                report["splits"][split]["rows"] = file.rows
        if any(wanted.size for wanted in needed):
            report["fixed_sizes"] = True
        if task.special_tokens:
            report["special_tokens"] = True
        columns = {file.name: file.columns for file in splits.values()}
        files = {**options.rows.files(task.name, columns)}
        if isinstance(options.rows, PromptFormat):
            files[REWARD] = reward_plan(task, source, options.reward)
        files[REPORT] = report
        _write_files(staging.path, files)
        has_models = _write_models(staging.path / MODELS, written)
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
) -> Iterator[tuple[_Staging, Store]]:
    """Yield the folder in which the export is made, and the store of its media there."""
    frames = options.frames if options.video == "frames" else None
    settings = {
        "omnidata": version("omnidata"),
        "sizing": asdict(options.sizing),
        "frames": frames,
        "copy": options.copy,
    }
    roots = {source.root, *(wanted.ref.root for wanted in needed)}
    staging = _Staging(out, options.rows, overwrite=overwrite, inputs=roots, settings=settings)
    with staging, staging.writing():
        yield (
            staging,
            Store(
                staging.path,
                staging.journal,
                sizing=options.sizing,
                frames=frames,
                copy=options.copy,
            ),
        )


def _not_for_testing(steps: Iterable[Step], options: Options) -> list[Step]:
    return [step for step in steps if split_of(step, options.shares) != "test"]


def _media_of_prompts(
    task: Asking, steps: Sequence[Step], options: Options
) -> tuple[list[Wanted], frozenset[Modality]]:
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


def _split(
    rows: Iterable[tuple[Step, Callable[[], Line]]], options: Options, folder: Path
) -> tuple[dict[Split, _SplitFile], list[Finding]]:
    files: dict[Split, _SplitFile] = {}
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
                files[split] = _SplitFile(f"{split}{options.rows.suffix}", rest)
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


def _remarks(
    task: Asking, source: LoadedDataset, options: Options, splits: Mapping[Split, _SplitFile]
) -> Iterator[Finding]:
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


def _media_losses(
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


def _shares_of(splits: Mapping[Split, _SplitFile]) -> dict[Split, dict[str, float]]:
    groups = sum(len(file.groups) for file in splits.values())
    steps = sum(len(file.steps) for file in splits.values())
    return {
        split: {"groups": len(file.groups) / groups, "steps": len(file.steps) / steps}
        for split, file in splits.items()
    }


def _write_lists(
    folder: Path, lists: Mapping[str, tuple[str, Sequence[Step]]]
) -> Iterator[Finding]:
    for name, (head, steps) in lists.items():
        ids = [step.sample_id for step in steps]
        for sample in write_exclude(folder / name, ids, head=f"{head}, by omnidata export"):
            yield Finding(
                "id-unlisted",
                "error",
                sample,
                f"{name} lacks the step: a file for --exclude cannot hold its id",
                "an id of one line without spaces at its ends",
                "rename the episode in the data",
            )


def _report(
    task: Asking,
    source: LoadedDataset,
    choice: Mapping[str, Any],
    against: LoadedDataset | None,
    options: Options,
    splits: Mapping[Split, _SplitFile],
    findings: Sequence[Finding],
) -> dict[str, Any]:
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
            }
            for split, file in splits.items()
        },
        "media": len({name for file in splits.values() for name in file.media}),
        "findings": [dict(finding.as_dict()) for finding in findings],
    }


def _report_sources(
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


def _write_files(folder: Path, files: Mapping[str, Any]) -> None:
    """Write files by name: texts as they are, other values as JSON."""
    for name, content in files.items():
        if isinstance(content, str):
            with atomic_write(folder / name) as file:
                file.write(content.encode())
        else:
            write_json(folder / name, content)
