"""How the time to read an answer grows with its length.

A reader that is not linear is found by doubling a run of a character, or of two, wherever it may
stand in an answer. CPU time is measured, the best of several, and a ratio of them is held against a
bound that no linear reader comes near to, so that a busy machine fails no test.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, get_args

from omnidata.actions import Action, Kind, Point
from omnidata.dialects import CannotSayError, Dialect, Rules, UnreadError, dialects
from omnidata.registry import benchmarks
from omnidata.tasks import get_task
from tests.loaders.every import rows_of

Frame = tuple[str, str]
"""What stands before a run, and behind it."""
ASCII: Final = tuple(map(chr, range(128)))
PAIRS: Final = tuple(a + b for a in ASCII for b in ASCII if a != b)
FED: Final = (1000, 1000)
NOTICED_S: Final = 0.004
"""Seconds of CPU below which nothing is said of a reader: they are the clock's, not its own."""
STEEP: Final = 3.0
"""A linear reader takes twice the time for twice the length, a quadratic one four times."""
_TEXT: Final = "QQQ"
_SPLIT: Final = 12
_PLAIN: Final[tuple[Frame, ...]] = (
    *(("", ""), ('"', '"'), ("'", "'"), ('{"a": "', '"}'), ("{", ""), ("[", ""), ("(", "")),
    *(("Thought: ", "\nAction: "), ("<think>", "</think>"), ("```", "```"), ("Answer: ", "")),
)


@dataclass(frozen=True, slots=True)
class Reader:
    """What reads answers.

    Attributes:
        name: for people.
        read: reads one.
        frames: where in its answers a run may stand.
    """

    name: str
    read: Callable[[str], object]
    frames: Sequence[Frame]


@dataclass(frozen=True, slots=True)
class Steep:
    """A run on which a reader's time grew too fast: seconds for a length, twice and four times."""

    reader: str
    frame: Frame
    run: str
    seconds: tuple[float, float, float]


def dialect_readers(names: Iterable[str] = ()) -> Iterator[Reader]:
    """Every dialect by both rules."""
    for name, dialect in dialects().items():
        if names and name not in names:
            continue
        for rules in get_args(Rules):
            frames = (*_PLAIN, *_frames(_answers(dialect)))
            yield Reader(f"{name} {rules}", _reading(dialect, rules), frames)


def task_readers(folder: Path, names: Iterable[str] = ()) -> Iterator[Reader]:
    """Every profile of every benchmark, and what it reads for histories."""
    for name in benchmarks():
        if names and name not in names:
            continue
        task: Any = get_task(name)
        step = task.load(rows_of(name, folder / name), check_media=False).steps[0]
        target = task.target(step)
        frames = (*_PLAIN, *_frames([target.text] if target else []))
        for profile in task.profiles.values():
            yield Reader(f"{name} {profile.name}", _judging(profile, step), frames)
        yield Reader(f"{name} history", partial(task.history_action, step), frames)


def _reading(dialect: Dialect, rules: Rules) -> Callable[[str], object]:
    def read(text: str) -> object:
        try:
            return dialect.read(text, FED, rules=rules)
        except (UnreadError, OverflowError):
            return None

    return read


def _judging(profile: Any, step: Any) -> Callable[[str], object]:
    return lambda text: profile.judge(step, text)


def _answers(dialect: Dialect) -> list[str]:
    """An answer of each kind of action that a dialect has on each platform."""
    width, height = dialect.frame.extent(FED)
    place = (Point(width / 2, height / 2, dialect.frame.space),)
    found: dict[str, None] = {}
    for platform, kinds in dialect.says.items():
        for kind in sorted(kinds):
            try:
                found[dialect.write([_action(kind, place)], FED, platform)] = None
            except CannotSayError:
                continue
    return list(found)


def _action(kind: Kind, place: tuple[Point, ...]) -> Action:
    if kind in ("swipe", "scroll"):
        return Action(kind, place, direction="up")
    if kind in ("keys", "hotkey", "hold", "release"):
        return Action(kind, keys=("ctrl", "c") if kind == "hotkey" else ("enter",))
    if kind in ("type", "done"):
        return Action(kind, text=_TEXT)
    if kind == "drag":
        return Action(kind, place, place)
    return Action(kind, place if kind in ("tap", "long_press", "move", "select") else ())


def _frames(answers: Iterable[str]) -> list[Frame]:
    """Before an answer, behind it, in a text of it, and at some of its signs, with and without what
    follows there."""
    found: dict[Frame, None] = {}
    for answer in answers:
        places = [at + 1 for at, sign in enumerate(answer) if not sign.isalnum()]
        places = [0, len(answer), *places[:: max(1, len(places) // _SPLIT)]]
        if (at := answer.find(_TEXT)) >= 0:
            places.append(at + 1)
        for at in places:
            found[answer[:at], answer[at:]] = None
            found[answer[:at], ""] = None
    return list(found)


def took(read: Callable[[str], object], text: str, tries: int = 1) -> float:
    """Seconds of CPU for a text, the best of some tries."""
    best = float("inf")
    for _ in range(tries):
        began = time.process_time()
        read(text)
        best = min(best, time.process_time() - began)
    return best


def grow(reader: Reader, frame: Frame, run: str, length: int, tries: int = 3) -> Steep | None:
    """Double a run twice; None where the reader's time grows as it should."""
    before, after = frame

    def measure(times: int, tries: int) -> float:
        return took(reader.read, before + run * (times * length // len(run)) + after, tries)

    if measure(4, 1) < STEEP**2 * NOTICED_S:  # of a quadratic one the first would go unnoticed
        return None
    seconds = measure(1, tries), measure(2, tries), measure(4, tries)
    steep = all(b > STEEP * a for a, b in pairwise(seconds))
    return Steep(reader.name, frame, run, seconds) if steep else None
