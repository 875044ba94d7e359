"""Episodes for training: made-up apps whose steps one medium alone decides.

The sample dataset at scale. Episodes come in groups of four twins, see `plans`. Parts of a few
groups are made in processes of their own, each in a folder that is renamed when it is whole, so an
interrupted run goes on; at the end they are joined.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from omnidata.data.media_checks import Lost, each
from omnidata.errors import PlatformError, RunError, UsageError
from omnidata.loaders.episode_tree import join
from omnidata.storage import wrap_os_error
from omnidata.synth.episodes import parts
from omnidata.synth.episodes.parts import REPORT, EpisodesStaging, Tally
from omnidata.synth.episodes.settings import Settings
from omnidata.synth.episodes.signals import speech
from omnidata.synth.episodes.theme import CODES, MEDIA

__all__ = ["MOST_EPISODES", "REPORT", "Settings", "make_episodes", "with_speech"]

MOST_EPISODES = 9_999_999
_MADE_BY = ("omnidata", "av", "isal", "numpy", "pillow")


def make_episodes(
    out: Path,
    settings: Settings,
    *,
    episodes: int,
    first: int = 0,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Mapping[str, Any]:
    """Write an OmniGUI tree of made-up episodes.

    Equal settings make equal bytes, with the same versions of Pillow, PyAV, NumPy, isal (and
    espeak-ng) on the same kind of machine, whatever the number of processes, and whether or not
    the run was interrupted; episode k is the same in a dataset of any length.

    Args:
        out: the folder of the app folders; new, empty, or what the same call made before. Until
            all is whole the work lies beside it, in `.<name>.unfinished`; `.<name>.lock` stays.
        settings: what decides the episodes.
        episodes: how many; a multiple of four makes all groups of twins whole.
        first: the number of the first, a multiple of four: what comes before is left out, so that
            two datasets of one seed have the same apps and no episode in common.
        workers: processes; 1 = this one.
        progress: called with the number of episodes that are there and of all.

    Returns:
        The report, as it lies in `synth.json`.

    Raises:
        UsageError: `episodes` or `first` is out of range, or nothing can be written at `out`.
        DataError: `out` or the unfinished work has other settings, or another process is writing
            there.
        RunError: a part could not be made, or the disk takes no more.
        PlatformError: speech is asked for, and the extra `voice` does not work here.
    """
    _check_range(first, episodes)
    staging = EpisodesStaging(out, plan=_plan(settings, first, episodes))
    if report := staging.finished():
        return report
    with wrap_os_error(out), staging:
        made = staging.made()
        if made is None:
            todo = parts.jobs(settings, staging.parts, first=first, episodes=episodes)
            _make(todo, workers, progress or (lambda done, total: None))
            join([part.path / parts.TREE for part in todo], staging.path)
            made = _counted(settings, todo)
        staging.publish({"made": made}, scratch=(staging.parts.name,))
    return {**staging.plan, "made": made}


def with_speech(settings: Settings) -> Settings:
    """The settings with spoken numbers among the cues, where there is time and `voice` works."""
    if not settings.has_time_for("speech"):
        return settings
    try:
        speech("en")
    except PlatformError:
        return settings
    return replace(settings, cues=(*settings.all_cues, "speech"))


def _check_range(first: int, episodes: int) -> None:
    if first % CODES or not 0 <= first <= MOST_EPISODES - episodes or episodes < 1:
        raise UsageError(
            f"episodes {first} to {first + episodes - 1} cannot be made",
            expected=f"1 to {MOST_EPISODES:,} episodes, the first a multiple of {CODES}: the "
            "twins of a group stay together",
        )


def _plan(settings: Settings, first: int, episodes: int) -> dict[str, Any]:
    made_by = {name: version(name) for name in _MADE_BY}
    if "speech" in settings.all_cues:
        from omnidata.data.voice_engines import Espeak

        made_by["speech"] = Espeak().name
    return {
        "first": first,
        "episodes": episodes,
        "settings": settings.as_dict(),
        "made_by": made_by,
    }


def _make(todo: list[parts.Job], workers: int, progress: Callable[[int, int], None]) -> None:
    missing = [job for job in todo if not job.path.is_dir()]
    total = sum(job.size for job in todo)
    done = total - sum(job.size for job in missing)
    progress(done, total)
    with closing(_made(missing, workers)) as answers:
        for job, made in zip(missing, answers, strict=True):
            if isinstance(made, Lost | parts.Failure):
                raise RunError(
                    f"a part could not be made: {made.why}",
                    where=str(job.path),
                    expected="room on the disk and in memory",
                    remedy="mend what is said above; the same command goes on where this one "
                    "stopped",
                )
            done += made
            progress(done, total)


def _made(
    jobs: Sequence[parts.Job], workers: int
) -> Generator[int | parts.Failure | Lost, None, None]:
    if workers == 1:
        yield from map(parts.make, jobs)
    else:
        yield from each(parts.make, jobs, workers=workers, limit_s=math.inf)


def _counted(settings: Settings, todo: list[parts.Job]) -> dict[str, Any]:
    """What is in all parts."""
    tally = Tally()
    for job in todo:
        tally.merge(json.loads((job.path / parts.TALLY).read_text(encoding="utf-8")))
    counts = tally.as_dict()
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
