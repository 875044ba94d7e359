"""The files of a run folder, and its `run.json`: how the answers were made.

A run folder may be old, edited by hand, or somebody else's, so the values of its files are checked
when they are read. Unknown keys are kept; values that an older version did not write are absent.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Required, TypedDict

import msgspec
from msgspec import Meta

from omnidata.adapters.keys import without_credentials
from omnidata.errors import RunError
from omnidata.files import LINE, WHOLE, lines
from omnidata.jsontext import BROKEN, decode, is_shallow
from omnidata.storage import open_own, write_json

INFO, ANSWERS, SCORES, RESULTS = "run.json", "predictions.jsonl", "scores.jsonl", "results.json"
FACTS: Final = (
    *("data", "steps", "findings", "stopped", "merged", "changed_media"),
    *("versions", "timings", "usage", "facts"),
)
"""Keys of `run.json` that are no settings."""

# Every number is finite, and small enough that sums stay exact or finite.
Number = Annotated[float, Meta(ge=-1e18, le=1e18)]
Count = Annotated[int, Meta(ge=0, le=2**53)]
_Amount = Annotated[float, Meta(ge=-1e100, le=1e100)]  # a cost, or a sum that a server's word made
_Part = Annotated[int, Meta(ge=1, le=999_999)]  # as `--shard` takes them
# A name that a file can have: no NUL, and no surrogate that stands for no byte.
_Path = Annotated[str, Meta(pattern="^[^\\0\ud800-\udc7f\udd00-\udfff]*$")]


class _Control(TypedDict, total=False):
    name: str


class _Selection(TypedDict):
    by: str
    samples: Count


class _Info(TypedDict, total=False):
    task: Required[str]
    options: dict[str, str]
    model: Required[str]
    model_options: dict[str, Any]
    model_settings: dict[str, Any] | None
    generation: dict[str, Any]
    seed: int | None
    dataset_fingerprint: str | None
    control: _Control | None
    selection: _Selection
    prompt_hash: str | None
    prompt_texts: dict[str, str]
    where: dict[str, str]
    exclude: list[str]
    limit: Count | None
    shard: tuple[_Part, _Part] | None
    data: _Path | None
    steps: Count
    findings: Count
    stopped: str
    merged: list[str]
    versions: dict[str, str]
    timings: dict[str, Number]
    usage: dict[str, _Amount | str | None]
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class JsonFile:
    """A file of a run folder that is not trusted.

    Attributes:
        path: of the file.
        expected: what it should hold, for messages.
        remedy: for messages.
    """

    path: Path
    expected: str
    remedy: str

    def error(self, what: str, *, line: int = 0, expected: str = "") -> RunError:
        """Return the error about the file, or one of its lines."""
        where = f"{self.path}:{line}" if line else str(self.path)
        expected = expected or self.expected
        return RunError(what, where=where, expected=expected, remedy=self.remedy)

    def check(self, value: Any, kind: Any, place: str = "", *, line: int = 0) -> None:
        """Raise RunError for a value that is not of a type; `place` is where it stands."""
        try:
            msgspec.convert(value, kind)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:  # a key no file can hold
            of = f"{place}: " if place else ""
            raise self.error(f"the content is invalid: {of}{error}", line=line) from None

    def decode(self, text: bytes, *, line: int = 0) -> dict[str, Any]:
        """Return the JSON object of a text, or raise RunError."""
        try:
            value = decode(text.decode("utf-8"))
        except (UnicodeDecodeError, RecursionError):
            value = BROKEN
        if isinstance(value, dict):
            if is_shallow(text, value):
                return value
            raise self.error("it is nested too deeply", line=line)
        what = "it cannot be read as JSON" if value is BROKEN else "it is no JSON object"
        raise self.error(what, line=line)

    def read(self) -> dict[str, Any]:
        """Return the JSON object that the file is, or raise RunError."""
        try:
            with open_own(self.path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size > WHOLE:
                    raise self.error(f"the file has {size:,} bytes", expected=f"at most {WHOLE:,}")
                return self.decode(file.read())
        except FileNotFoundError:
            raise self.error(f"{self.path.name} is missing") from None
        except OSError as error:
            raise self._unreadable(error) from None

    def lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the JSON objects of the file's lines with their numbers, or raise RunError."""
        try:
            with open_own(self.path, "rb") as file:
                for number, text in enumerate(lines(file), 1):
                    if len(text) >= LINE:
                        what = f"a line has {LINE:,} bytes or more"
                        raise self.error(what, expected="shorter lines")
                    yield number, self.decode(text, line=number)
        except OSError as error:
            raise self._unreadable(error) from None

    def _unreadable(self, error: OSError) -> RunError:
        what = f"the file cannot be read ({error.strerror})"
        return self.error(what, expected="a file that omnidata wrote")


_OF_RUN: Final = "the file that `omnidata evaluate` writes"


def read_info(run: Path) -> dict[str, Any]:
    """Return a run's `run.json` without the secrets that older versions wrote there.

    Raises:
        RunError: it is missing, cannot be read, or a value is not of its type.
    """
    remedy = "name a run folder, or start the run again in another one"
    file = JsonFile(run / INFO, _OF_RUN, remedy)
    found = file.read()
    file.check(found, _Info)
    return without_secrets(found)


def write_info(run: Path, info: Mapping[str, Any]) -> None:
    """Write a run's `run.json`, unless `read_info` would refuse it.

    Args:
        run: the folder.
        info: the settings of the run, and facts about it.

    Raises:
        RunError: see `check_info`. Nothing is written.
        OSError: see `omnidata.storage.atomic_write`.
    """
    check_info(info, run / INFO)
    write_json(run / INFO, info)


def check_info(info: Mapping[str, Any], path: Path) -> None:
    """Refuse the content of a `run.json` that could not be read again.

    Raises:
        RunError: a name that no file can hold, a number beyond all sense, or too deep a value.
    """
    remedy = "give the model or the task settings that can be written down"
    file = JsonFile(path, _OF_RUN, remedy)
    file.check(file.decode(json.dumps(info).encode()), _Info)


def without_secrets(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with hidden values of names like `api_key`, but for choices of steps."""
    hidden: dict[str, Any] = without_credentials(info)
    return hidden | {name: info[name] for name in ("options", "where") if name in info}


def model_name(info: Mapping[str, Any]) -> str:
    """Return the display name of a run's model, with its marks; empty without a model.

    Of a replayed file the folder is left out: it says nothing about the answers, and it is long.

    Examples:
        >>> model_name({"model": "replay:/home/me/answers.jsonl@a1b2c3d4e5f6"})
        'replay:answers.jsonl@a1b2c3d4e5f6'
    """
    name, chosen = str(info.get("model", "")), info.get("selection") or {}
    if name.startswith("replay:"):
        name = "replay:" + re.split(r"[/\\]", name.removeprefix("replay:"))[-1]
    of = f"{chosen.get('by')} of {chosen.get('samples')}" if chosen else ""
    marks = [mark for mark in (control_name(info), of) if mark]
    return f"{name} [{', '.join(marks)}]" if marks else name


def control_name(info: Mapping[str, Any]) -> str:
    """Return the name of the altered media that a run's model got; empty for the data's own."""
    return str((info.get("control") or {}).get("name", ""))
