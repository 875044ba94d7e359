"""An action log in neutral form: what happened when, and what the episode is called."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from omnidata.actions import Action
from omnidata.errors import DataError, Finding
from omnidata.loaders.omnigui_apps import Dependency, Dimension, Language

MAX_BYTES = 512 * 1024**2
"""Of one file of a log; what a human does in an hour takes a hundredth of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """What an episode is called; None = not stated.

    Attributes:
        app: names the app's folder.
        episode: the episode's id.
        instruction_en, instruction_zh: the task in English and Chinese.
        language: the language that the app is evaluated in.
        dimension: the cognitive dimension.
        dependency: how much the task depends on audio and video.
    """

    app: str | None = None
    episode: str | None = None
    instruction_en: str | None = None
    instruction_zh: str | None = None
    language: Language | None = None
    dimension: Dimension | None = None
    dependency: Dependency | None = None

    def over(self, other: Labels) -> Labels:
        """These labels, and the other's where one is missing.

        Examples:
            >>> Labels(app="TED").over(Labels(app="ted", episode="T1"))
            Labels(app='TED', episode='T1', instruction_en=None, ...)
        """
        stated = {item.name: getattr(self, item.name) for item in fields(self)}
        return replace(other, **{name: value for name, value in stated.items() if value})


UNLABELLED = Labels()


@dataclass(frozen=True, slots=True)
class Event:
    """One action of a log.

    Attributes:
        start_s, end_s: when it begins and ends, in seconds after the recording's first frame by the
            log's clock.
        action: the primitive with its targets; regions in "px" are pixels of the recording.
        where: file and line that it was read from.
        earliest_s: where the recording ends before `start_s`, the step may be taken as early as
            this; None = not at all.
        extra: further columns for the step's row.
    """

    start_s: float
    end_s: float
    action: Action
    where: str
    earliest_s: float | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Log:
    """A whole log.

    Attributes:
        events: in the order of the file; `plan` sorts them.
        labels: those that the log states.
        findings: what was doubtful or could not be read as one of the primitives.
        left_out: start and end, as in `Event`, of each action that is none of the primitives: no
            clip may show one.
    """

    events: tuple[Event, ...]
    labels: Labels
    findings: tuple[Finding, ...] = ()
    left_out: tuple[tuple[float, float], ...] = ()


def objects(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The objects of a JSON-lines file with their places; blank lines are passed over.

    Args:
        path: a regular file of at most `MAX_BYTES`.

    Yields:
        `file:line` and the object.

    Raises:
        DataError: the file is missing, too large or no regular file, or a line is not an object.
    """
    if not path.is_file() or path.stat().st_size > MAX_BYTES:
        raise DataError(
            "the file is missing, too large or not a regular file",
            where=str(path),
            expected=f"a file of JSON lines, at most {MAX_BYTES} bytes",
            remedy="name the action log; docs/segment.md shows one",
        )
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                where = f"{path}:{number}"
                yield where, _object(line, where)


def _object(line: bytes, where: str) -> dict[str, Any]:
    try:
        value = json.loads(line.decode("utf-8-sig"), object_pairs_hook=_unique)
    except UnicodeDecodeError:
        what = "the line is not UTF-8"
    except RecursionError:
        what = "the line is nested too deeply"
    except _TwiceError as error:
        what = f"the line has {str(error)!r} twice"
    except ValueError:
        what = "the line is not JSON"
    else:
        if isinstance(value, dict):
            return value
        what = f"the line is a {type(value).__name__}"
    raise DataError(what, where=where, expected="one JSON object per line", remedy="mend the line")


class _TwiceError(Exception):
    """An object has a key twice, and readers of JSON do not agree which one counts."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _TwiceError(next(key for key in keys if keys.count(key) > 1))
    return row
