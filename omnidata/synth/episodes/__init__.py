"""Episodes for training: invented apps in which one medium alone decides each step.

Episodes come in groups of four twins, see `plans`. Processes make parts of a few groups, each in a
folder that is renamed when it is whole, so that an interrupted run resumes; at the end the parts
are joined.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from multiprocessing import parent_process
from pathlib import Path
from typing import Any, NamedTuple

from omnidata.errors import OmnidataError, PlatformError, RunError, UsageError
from omnidata.loaders.tree_writer import TreeEpisode, TreeStep, TreeWriter, join
from omnidata.run.engines import Cluster
from omnidata.run.engines.ray import machine
from omnidata.storage import read_json, wrap_os_error, write_json
from omnidata.synth.episodes.media import Files, make_files
from omnidata.synth.episodes.plans import GroupPlan, plan
from omnidata.synth.episodes.settings import CODES, MEDIA, Settings
from omnidata.synth.folder import Failure, SynthStaging, add_tallies, make_parts
from omnidata.synth.sounds import speech
from omnidata.types import Progress

__all__ = ["MOST_EPISODES", "REPORT", "Settings", "make_episodes", "with_speech"]

MOST_EPISODES = 9_999_999
REPORT = "synth.json"
_MADE_BY = ("omnidata", "av", "isal", "numpy", "pillow")
_PARTS, _TREE, _TALLY, _UNFINISHED = ".parts", "tree", "tally.json", ".unfinished"
_GROUPS = 4
"""Groups of twins in a part: the most that a killed process loses."""


def make_episodes(
    out: Path,
    settings: Settings,
    *,
    episodes: int,
    first: int = 0,
    workers: int = 1,
    cluster: Cluster | None = None,
    progress: Progress | None = None,
) -> Mapping[str, Any]:
    """Write a tree of synthetic episodes.

    Equal settings make equal bytes, and screenshots of equal pixels, with the same versions of
    Pillow, PyAV, NumPy (and espeak-ng) on the same kind of machine, with any number of processes,
    interrupted or not. Episode k is the same in a dataset of any length.

    Args:
        out: the folder of the app folders; new, empty, or the result of the same call. Unfinished
            work is beside it, in `.<name>.unfinished`; `.<name>.lock` stays.
        settings: of the episodes.
        episodes: how many; a multiple of four makes all groups of twins whole.
        first: the number of the first, a multiple of four. Two datasets of one seed with other
            numbers have the same apps and no common episode.
        workers: processes; 1 = this one.
        cluster: its workers make the parts; None = this machine.
        progress: called with the number of finished episodes and of all.

    Returns:
        The report, as in `synth.json`.

    Raises:
        UsageError: `episodes` or `first` is out of range, or nothing can be written at `out`.
        DataError: `out` or the unfinished work has other settings, or another process is writing
            there.
        RunError: a part could not be made, or the disk is full.
        PlatformError: speech is asked for, and the extra `voice` does not work here.
    """
    if first % CODES or not 0 <= first <= MOST_EPISODES - episodes or episodes < 1:
        raise UsageError(
            f"episodes {first} to {first + episodes - 1} cannot be made",
            expected=f"1 to {MOST_EPISODES:,} episodes, the first a multiple of {CODES}: the "
            "twins of a group stay together",
        )
    made_by = {name: version(name) for name in _MADE_BY}
    if "speech" in settings.all_cues:
        from omnidata.data.voice_engines import Espeak

        made_by["speech"] = Espeak().name
    staging = EpisodesStaging(
        out,
        plan={
            "first": first,
            "episodes": episodes,
            "settings": settings.as_dict(),
            "made_by": made_by,
        },
    )
    if report := staging.earlier_report():
        return report
    with wrap_os_error(out), staging:
        made = staging.counts()
        if made is None:
            todo = [
                Job(settings, staging.parts, number, first, first + episodes)
                for number in range(-(-episodes // (_GROUPS * CODES)))
            ]
            make_parts(
                make,
                todo,
                workers=workers,
                cluster=cluster,
                folder=staging.path,
                progress=progress or (lambda done, total: None),
            )
            join([part.path / _TREE for part in todo], staging.path)
            made = _total(settings, todo)
        return staging.publish({"made": made}, scratch=(staging.parts.name,))


def with_speech(settings: Settings) -> Settings:
    """Return the settings with spoken numbers as cues, if there is time and `voice` works."""
    if not settings.has_time_for("speech"):
        return settings
    try:
        speech("en")
    except PlatformError:
        return settings
    return replace(settings, cues=(*settings.all_cues, "speech"))


def _total(settings: Settings, todo: Sequence[Job]) -> dict[str, Any]:
    tally = add_tallies(_AXES, (job.path / _TALLY for job in todo))
    counts = {axis: dict(sorted(found.items())) for axis, found in tally.items()}
    steps = counts["sizes"]["steps"]
    return {
        **counts,
        "shares": {
            medium: {
                "wanted": round(settings.share(medium), 6),
                "made": round(counts["media"].get(medium, 0) / steps, 6),
            }
            for medium in MEDIA
        },
        "bytes_per_step": round(sum(counts["bytes"].values()) / steps),
    }


AXES_OF_STEPS = (
    "media",
    "cues",
    "questions",
    "primitives",
    "apps",
    "languages",
    "words",
    "distractors",
)
"""Counts over steps."""

_AXES = ("sizes", "bytes", *AXES_OF_STEPS, "steps_per_episode")
Tally = dict[str, Counter[str]]
"""Counts by axis; those of parts add up to those of the whole."""


def _count_group(tally: Tally, group: GroupPlan, files: Sequence[Sequence[Files]]) -> None:
    """Count the first twins of a group; `files` by step and twin."""
    twins, length = len(files[0]), len(group.steps)
    sizes = {"episodes": twins, "groups": 1, "incomplete_groups": int(twins < CODES)}
    tally["sizes"].update(**sizes, steps=twins * length)
    tally["steps_per_episode"][str(length)] += twins
    look = group.look
    for step, made in zip(group.steps, files, strict=True):
        for twin, media in enumerate(made):
            tally["primitives"][step.action(twin).label] += 1
            tally["bytes"].update({role: len(data) for role, data in media._asdict().items()})
        for axis, name in (
            ("media", step.medium),
            ("cues", step.cue),
            ("questions", step.question),
            ("apps", look.name),
            ("languages", look.language),
            ("words", look.words),
            *(("distractors", name) for name in step.distraction.names()),
        ):
            tally[axis][name] += twins


class Job(NamedTuple):
    """A part of the dataset's episodes from `first` to `end` - 1."""

    settings: Settings
    folder: Path
    number: int
    first: int
    end: int

    @property
    def path(self) -> Path:
        """The folder of the part; it is there when the part is whole."""
        return self.folder / f"{self.number:07d}"

    @property
    def size(self) -> int:
        """Episodes of the part."""
        return min(_GROUPS * CODES, self.end - self.group * CODES)

    @property
    def whole(self) -> bool:
        """Whether the part has been made."""
        return self.path.is_dir()

    @property
    def group(self) -> int:
        """The first group of the part."""
        return self.first // CODES + self.number * _GROUPS


def make(job: Job) -> Failure | None:
    """Make a part."""
    # Named after the process: one whose parent was killed may still be at the same part.
    unfinished = job.path.with_name(f"{job.path.name}.{machine()}.{os.getpid()}{_UNFINISHED}")
    try:
        tally: Tally = {axis: Counter() for axis in _AXES}
        with TreeWriter(unfinished / _TREE) as tree:
            for episode in _episodes(job, tally):
                _check_parent()
                tree.add(episode)
        write_json(unfinished / _TALLY, tally)
        _check_parent()
        try:
            unfinished.rename(job.path)
        except OSError:
            if not job.path.is_dir():
                raise
            shutil.rmtree(unfinished)  # another process was faster, and made the same bytes
    except (OSError, OmnidataError) as error:
        return Failure(str(error))
    return None


def _check_parent() -> None:
    """Stop if the parent has ended.

    The same command may be at work again and has removed unfinished parts, so this one would be
    incomplete.
    """
    parent = parent_process()
    if parent is not None and not parent.is_alive():
        raise RunError("the process that asked for the part has ended")


def _episodes(job: Job, tally: Tally) -> Iterator[TreeEpisode]:
    for number in range(job.group, job.group + _GROUPS):
        twins = min(CODES, job.end - number * CODES)
        if twins <= 0:
            return
        group = plan(job.settings, number)
        files = [
            make_files(job.settings, group, index)[:twins]  # padded as if all were there
            for index in range(len(group.steps))
        ]
        _count_group(tally, group, files)
        for twin in range(twins):
            yield tree_episode(job.settings, group, twin, [made[twin] for made in files])


def tree_episode(
    settings: Settings, group: GroupPlan, twin: int, files: Sequence[Files]
) -> TreeEpisode:
    """Return an episode; the settings' digest in its name keeps datasets apart."""
    twins = f"G{settings.digest}-{group.number:07d}"
    steps = []
    for step, media in zip(group.steps, files, strict=True):
        extra: dict[str, Any] = {
            "cue": step.medium,
            "cue_kind": step.cue,
            "question": step.question,
            "answers": CODES,
            "twins": twins,
            "distractors": step.distraction.names(),
        }
        steps.append(
            TreeStep(
                step.action(twin),
                screen=settings.size,
                screenshot=media.screenshot,
                video=media.video,
                audio=media.audio,
                extra=extra,
            )
        )
    return TreeEpisode(
        f"E{settings.digest}-{group.number * CODES + twin:07d}",
        app=group.look.name,
        dimension=group.dimension,
        steps=steps,
        instruction_en=group.instruction("en"),
        instruction_zh=group.instruction("zh"),
        dependency=group.dependency,
        language=group.look.language,
        extra={"twins": twins},
    )


class EpisodesStaging(SynthStaging):
    """See `SynthStaging`; `parts` is the folder of the parts."""

    noun = "episodes"
    work = "writing episodes"
    report = REPORT
    contents = frozenset()  # the apps have the names that they have

    def __init__(self, out: Path, *, plan: Mapping[str, Any]) -> None:
        super().__init__(out, plan=plan)
        self.parts = self.path / _PARTS

    def is_ours(self, folder: Path) -> bool:
        """Return whether episodes were made there."""
        return not folder.is_symlink() and "made" in read_json(folder / REPORT)

    def begin(self) -> None:
        """Keep the whole parts that an interrupted call has left; see `SynthStaging`."""
        super().begin()
        self.parts.mkdir(exist_ok=True)
        for left in self.parts.glob(f"*{_UNFINISHED}"):
            shutil.rmtree(left, ignore_errors=True)  # its process may be about to notice

    def counts(self) -> Mapping[str, Any] | None:
        """Return the counts of an interrupted call that had only to publish its work, else None."""
        return read_json(self.path / REPORT).get("made")
