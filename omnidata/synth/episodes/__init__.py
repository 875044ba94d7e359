"""Episodes for training: made-up apps whose steps one medium alone decides.

The sample dataset at scale. Episodes come in groups of four twins, see `plans`. Parts of a few
groups are made in processes of their own, each in a folder that is renamed when it is whole, so an
interrupted run goes on; at the end they are joined.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from omnidata.data.validate.pool import Lost, each
from omnidata.errors import DataError, RunError, UsageError
from omnidata.loaders.omnigui_tree import check_new
from omnidata.synth.episodes import joining, parts
from omnidata.synth.episodes.settings import Settings
from omnidata.synth.episodes.tally import Tally
from omnidata.synth.episodes.vocabulary import CODES, MEDIA

__all__ = ["MOST_EPISODES", "REPORT", "Settings", "make_episodes", "with_speech"]

REPORT = "synth.json"
MOST_EPISODES = 9_999_999
_PLAN = "plan.json"
_MADE_BY = ("omnidata", "av", "numpy", "pillow")


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

    Equal settings make equal bytes, with the same versions of Pillow, PyAV, NumPy (and espeak-ng)
    on the same kind of machine, whatever the number of processes, and whether or not the run was
    interrupted; episode k is the same in a dataset of any length.

    Args:
        out: the folder of the app folders; new, empty, or what the same call made before. Until
            all is whole the work lies beside it, in `.<name>.unfinished`.
        settings: what decides the episodes.
        episodes: how many; a multiple of four makes all groups of twins whole.
        first: the number of the first, a multiple of four: what comes before is left out, so that
            two datasets of one seed have the same apps and no episode in common.
        workers: processes; 1 = this one.
        progress: called with the number of episodes that are there and of all.

    Returns:
        The report, as it lies in `synth.json`.

    Raises:
        UsageError: `episodes` or `first` is out of range.
        DataError: `out` holds something else, or another process is writing there.
        RunError: a part could not be made.
    """
    _check_range(first, episodes)
    out = out.resolve()
    wanted = _plan(settings, first, episodes)
    report = _there_already(out, wanted)
    if report is not None:
        shutil.rmtree(_hidden(out), ignore_errors=True)  # if a call was killed at its very end
        return report
    with _unfinished(out) as folder:
        _keep_plan(folder / _PLAN, wanted, out)
        for left in (folder / "parts").glob(f"*{parts.UNFINISHED}"):
            shutil.rmtree(left, ignore_errors=True)
        todo = parts.jobs(settings, folder / "parts", first=first, episodes=episodes)
        _make(todo, workers, progress or (lambda done, total: None))
        tree = folder / "tree"
        joining.join(todo, tree)
        report = _report(wanted, settings, todo)
        (tree / REPORT).write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
        if out.exists():
            out.rmdir()  # empty: `_there_already` saw to it
        tree.rename(out)
    return report


def with_speech(settings: Settings) -> Settings:
    """The settings with spoken numbers among the cues, where the extra `voice` works."""
    from omnidata.errors import PlatformError
    from omnidata.synth.episodes.sounds import speech

    try:
        speech("en")
    except PlatformError:
        return settings
    return replace(settings, cues=(*settings.cues, "speech"))


def _check_range(first: int, episodes: int) -> None:
    if first % CODES or not 0 <= first <= MOST_EPISODES - episodes or episodes < 1:
        raise UsageError(
            f"episodes {first} to {first + episodes - 1} cannot be made",
            expected=f"1 to {MOST_EPISODES:,} episodes, the first a multiple of {CODES}: the "
            "twins of a group stay together",
        )


def _plan(settings: Settings, first: int, episodes: int) -> dict[str, Any]:
    made_by = {name: version(name) for name in _MADE_BY}
    if "speech" in settings.cues:
        from omnidata.data.voice import Espeak

        made_by["speech"] = Espeak().name
    return {
        "first": first,
        "episodes": episodes,
        "settings": settings.as_dict(),
        "made_by": made_by,
    }


def _there_already(out: Path, wanted: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The report of the same call that has ended; None where there is nothing.

    Raises:
        DataError: there is something else.
    """
    path = out / REPORT
    if not path.is_file():
        check_new(out)
        return None
    report = _read(path)
    differing = _differences({name: report.get(name) for name in wanted}, wanted)
    if differing:
        raise DataError(
            f"the folder holds other episodes ({differing})",
            where=str(out),
            expected="a new or empty folder, or the same settings",
            remedy="choose another folder, or remove this one",
        )
    return report


def _keep_plan(path: Path, wanted: Mapping[str, Any], out: Path) -> None:
    if path.is_file():
        differing = _differences(_read(path), wanted)
        if differing:
            raise DataError(
                f"an interrupted run had other settings ({differing})",
                where=str(path.parent),
                expected="the same settings, so that what it made can be used",
                remedy=f"give them, or remove {path.parent}, or choose another folder than {out}",
            )
        return
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(wanted), encoding="utf-8")
    partial.replace(path)


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        content = None
    return content if isinstance(content, dict) else {}


def _differences(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """What differs, as "name: there, now wanted"."""
    found = []
    for name, value in json.loads(json.dumps(wanted)).items():
        other = there.get(name)
        if isinstance(value, dict) and isinstance(other, dict):
            keys = sorted(value.keys() | other.keys())
            pairs = [(key, other.get(key), value.get(key)) for key in keys]
        else:
            pairs = [(name, other, value)]
        found += [f"{key}: {old}, now {new}" for key, old, new in pairs if old != new]
    return "; ".join(found)


def _hidden(out: Path) -> Path:
    return out.with_name(f".{out.name}.unfinished")


@contextmanager
def _unfinished(out: Path) -> Iterator[Path]:
    """The folder of the work, for one process; it goes when the work is done."""
    folder = _hidden(out)
    (folder / "parts").mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise DataError(
            "another process is making episodes at the same place",
            where=str(out),
            expected="one at a time",
            remedy="wait until it has ended, or choose another folder",
        ) from None
    try:
        yield folder
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        lock.release()


def _make(todo: list[parts.Job], workers: int, progress: Callable[[int, int], None]) -> None:
    missing = [job for job in todo if not job.path.is_dir()]
    total = sum(job.size for job in todo)
    done = total - sum(job.size for job in missing)
    progress(done, total)
    answers = (
        map(parts.make, missing)
        if workers == 1
        else each(parts.make, missing, workers=workers, limit_s=math.inf)
    )
    for job, made in zip(missing, answers, strict=True):
        if isinstance(made, Lost | parts.Failure):
            raise RunError(
                f"a part could not be made: {made.why}",
                where=str(job.path),
                expected="room on the disk and in memory",
                remedy="mend what is said above; the same command goes on where this one stopped",
            )
        done += made
        progress(done, total)


def _report(wanted: Mapping[str, Any], settings: Settings, todo: list[parts.Job]) -> dict[str, Any]:
    tally = Tally()
    for job in todo:
        tally.merge(_read(job.path / parts.TALLY))
    counts = tally.as_dict()
    steps = counts["sizes"]["steps"]
    return {
        **wanted,
        "made": {
            **counts,
            "shares": {
                medium: {
                    "wanted": round(settings.share(medium), 6),
                    "made": round(counts["media"].get(medium, 0) / steps, 6),
                }
                for medium in MEDIA
            },
            "bytes_per_step": round(sum(counts["bytes"].values()) / steps),
        },
    }
