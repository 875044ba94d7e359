"""A part of the dataset: a small tree of its own, which a process makes from beginning to end."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import parent_process
from pathlib import Path
from typing import Any

from omnidata.errors import OmnidataError, RunError
from omnidata.loaders.episode_tree import TreeEpisode, TreeStep, TreeWriter
from omnidata.storage import read_json, write_json
from omnidata.synth.episodes.media import Files, make_files
from omnidata.synth.episodes.plans import GroupPlan, plan
from omnidata.synth.episodes.settings import Settings
from omnidata.synth.episodes.theme import CODES
from omnidata.synth.folder import SynthStaging

# What was made, counted; counts of parts add up to those of the whole.

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
"""What is counted by steps."""

AXES = (*AXES_OF_STEPS, "steps_per_episode")
"""What is counted; the last by episodes."""


class Tally:
    """Counts of episodes and steps."""

    def __init__(self) -> None:
        self._sizes: Counter[str] = Counter()
        self._axes: dict[str, Counter[str]] = {axis: Counter() for axis in AXES}
        self._bytes: Counter[str] = Counter()

    def add(self, group: GroupPlan, files: Sequence[Sequence[Files]], *, twins: int) -> None:
        """Count the first twins of a group; `files` by step and twin."""
        self._sizes.update(
            groups=1,
            incomplete_groups=int(twins < CODES),
            episodes=twins,
            steps=twins * len(group.steps),
        )
        self._axes["steps_per_episode"][str(len(group.steps))] += twins
        for step, made in zip(group.steps, files, strict=True):
            for twin in range(twins):
                self._axes["primitives"][step.action(twin).label] += 1
                self._bytes["screenshot"] += len(made[twin].screenshot)
                self._bytes["video"] += len(made[twin].video)
                self._bytes["audio"] += len(made[twin].audio)
            for axis, name in (
                ("media", step.medium),
                ("cues", step.cue),
                ("questions", step.question),
                ("apps", group.look.name),
                ("languages", group.look.language),
                ("words", group.look.words),
                *(("distractors", name) for name in step.distraction.names()),
            ):
                self._axes[axis][name] += twins

    def merge(self, other: Mapping[str, Any]) -> None:
        """Add what `as_dict` gave of another one."""
        self._sizes.update(other["sizes"])
        self._bytes.update(other["bytes"])
        for axis in AXES:
            self._axes[axis].update(other[axis])

    def as_dict(self) -> dict[str, Any]:
        """The counts as JSON values, every axis in the order of its names."""
        return {
            "sizes": dict(sorted(self._sizes.items())),
            "bytes": dict(sorted(self._bytes.items())),
            **{axis: dict(sorted(counts.items())) for axis, counts in self._axes.items()},
        }


GROUPS = 4
"""Groups of a part: so much is lost where a process is killed."""

TREE, TALLY, UNFINISHED = "tree", "tally.json", ".unfinished"


@dataclass(frozen=True, slots=True)
class Job:
    """A part to be made.

    Attributes:
        settings: of all parts.
        folder: of all parts.
        number: of the part, from 0 on.
        first, end: the dataset's first episode, and the one after its last.
    """

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
        return min(GROUPS * CODES, self.end - self.group * CODES)

    @property
    def group(self) -> int:
        """The first group of the part."""
        return self.first // CODES + self.number * GROUPS


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a part was not made."""

    why: str


def jobs(settings: Settings, folder: Path, *, first: int, episodes: int) -> list[Job]:
    """All parts of a dataset."""
    count = -(-episodes // (GROUPS * CODES))
    end = first + episodes
    return [Job(settings, folder, number, first, end) for number in range(count)]


def make(job: Job) -> int | Failure:
    """Make a part; the number of its episodes, or why there are none."""
    # Named after the process: one whose parent was killed may still be at the same part.
    unfinished = job.path.with_suffix(f".{os.getpid()}{UNFINISHED}")
    try:
        tally = Tally()
        with TreeWriter(unfinished / TREE) as tree:
            for episode in _episodes(job, tally):
                _check_parent()
                tree.add(episode)
        write_json(unfinished / TALLY, tally.as_dict())
        _check_parent()
        _put(unfinished, job.path)
    except (OSError, OmnidataError) as error:
        return Failure(str(error))
    return job.size


def _check_parent() -> None:
    """Stop where nobody waits any more.

    The same command may be at work again, and has removed what it found unfinished: whatever is
    written from now on would be half a part.
    """
    parent = parent_process()
    if parent is not None and not parent.is_alive():
        raise RunError("the process that asked for the part has ended")


def _put(unfinished: Path, path: Path) -> None:
    try:
        unfinished.rename(path)
    except OSError:
        if not path.is_dir():
            raise
        shutil.rmtree(unfinished)  # another process was faster, and made the same bytes


def _episodes(job: Job, tally: Tally) -> Iterator[TreeEpisode]:
    for number in range(job.group, job.group + GROUPS):
        twins = min(CODES, job.end - number * CODES)
        if twins <= 0:
            return
        group = plan(job.settings, number)
        files = [make_files(job.settings, group, index) for index in range(len(group.steps))]
        tally.add(group, files, twins=twins)
        for twin in range(twins):
            yield _episode(job.settings, group, twin, [made[twin] for made in files])


def _episode(settings: Settings, group: GroupPlan, twin: int, files: list[Files]) -> TreeEpisode:
    """The names have the settings' digest: episodes of two datasets are told apart by their ids."""
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


# A dataset in the making.

REPORT = "synth.json"
_PARTS = ".parts"


class EpisodesStaging(SynthStaging):
    """See `SynthStaging`.

    Attributes:
        parts: the folder of the parts.
    """

    noun = "episodes"
    work = "writing episodes"
    report = REPORT
    contents = frozenset()  # the apps have the names that they have

    def __init__(self, out: Path, *, plan: Mapping[str, Any]) -> None:
        super().__init__(out, plan=plan)
        self.parts = self.path / _PARTS

    def is_ours(self, folder: Path) -> bool:
        """Whether episodes were made there."""
        return not folder.is_symlink() and "made" in read_json(folder / REPORT)

    def begin(self) -> None:
        """Keep the whole parts that an interrupted call has left; see `SynthStaging`."""
        super().begin()
        self.parts.mkdir(exist_ok=True)
        for left in self.parts.glob(f"*{UNFINISHED}"):
            shutil.rmtree(left, ignore_errors=True)  # its process may be about to notice

    def made(self) -> Mapping[str, Any] | None:
        """What an interrupted call counted that had only to publish its work; else None."""
        return read_json(self.path / REPORT).get("made")
