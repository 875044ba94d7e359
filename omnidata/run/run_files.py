"""The files of a run folder, read with their types: whoever has a value may rely on what it is.

A run folder may be old, edited by hand, or somebody else's. Each file has one reader here, but for
the lines of answers, which `omnidata.predictions` reads. What is no key of these files is anybody's
and is kept; what an older version did not write is absent.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Required, TypedDict

import msgspec
from msgspec import Meta

from omnidata.errors import RunError
from omnidata.files import LINE, lines
from omnidata.jsontext import BROKEN, decode, is_shallow
from omnidata.storage import open_own
from omnidata.types import Outcome

_MOST: Final = 512 * 1024**2
"""Bytes of a file that is read as a whole."""

_AGAIN: Final = "score the run again: omnidata score TASK DATA RUN --out RUN"

# Every number is finite, and none is beyond what sums and products of them can hold.
_Number = Annotated[float, Meta(ge=-1e18, le=1e18)]
_Count = Annotated[int, Meta(ge=0, le=2**53)]
_Part = Annotated[int, Meta(ge=1, le=999_999)]  # as `--shard` takes them
_Totals = dict[str, _Number | None]
_Interval = tuple[_Number | None, _Number | None] | None
_Intervals = dict[str, _Interval] | None
_BOUNDS: Final = "LC_bounds"  # the one total that is no number


class _Control(TypedDict, total=False):
    """How the media were altered."""

    name: str


class _Info(TypedDict, total=False):
    """`run.json`: the settings of the run, and facts that are added when it ends."""

    task: Required[str]
    options: dict[str, str]
    model: Required[str]
    model_options: dict[str, Any]
    model_settings: dict[str, Any] | None
    generation: dict[str, Any]
    seed: int | None
    dataset_fingerprint: str | None
    control: _Control | None
    prompt_hash: str | None
    where: dict[str, str]
    exclude: list[str]
    limit: _Count | None
    shard: tuple[_Part, _Part] | None
    data: str | None
    steps: _Count
    findings: _Count
    stopped: str
    merged: list[str]
    versions: dict[str, str]
    timings: dict[str, _Number]
    usage: dict[str, _Number | str | None]
    facts: dict[str, Any]


class _Counts(TypedDict, total=False):
    """The counts that are shown; a benchmark may have others, of any kind."""

    episodes: _Count
    whole_episodes: _Count
    incomplete_episodes: _Count
    steps: _Count
    tasks: _Count
    rows: _Count
    degraded: _Count


class _Results(TypedDict, total=False):
    """`results.json`."""

    task: Required[str]
    profile: Required[str]
    overall: Required[dict[str, Any]]
    ci95: _Intervals
    ci95_method: dict[str, str]
    by: Required[dict[str, dict[str, dict[str, Any]]]]
    counts: Required[_Counts]
    outcomes: dict[str, _Count]
    stopped: str


class _Parsed(TypedDict, total=False):
    """An answer as a profile read it; which of these it has is the profile's matter."""

    code: str
    function: str
    args: dict[str, Any]
    letters: list[str]
    success: bool
    point: tuple[_Number, _Number] | None
    coordinates: list[_Number] | None
    form: str
    kind: str
    direction: str | None
    text: Any
    touch: tuple[_Number, _Number] | None
    lift: tuple[_Number, _Number] | None


class _Score(TypedDict, total=False):
    """A line of `scores.jsonl`; its other keys are the values of the profile."""

    sample_id: Required[str]
    outcome: Required[Outcome]
    profile: Required[str]
    parsed: Any
    reason: str
    domain: str  # of an example of OSWorld


_OF_LINE: Final = frozenset(_Score.__annotations__)
_Value = bool | _Number | list[_Number | None] | None


def read_info(run: Path) -> dict[str, Any]:
    """The content of a run's `run.json`.

    Raises:
        RunError: it is missing, cannot be read, or a value is not of its kind.
    """
    path, remedy = run / "run.json", "name a run folder, or start the run again in another one"
    expected = "the file that `omnidata evaluate` writes"
    found = _whole(path, expected, remedy)
    _convert(found, _Info, str(path), expected, remedy)
    try:
        named = b"\0" not in os.fsencode(found.get("data") or "")
    except UnicodeEncodeError:
        named = False
    if not named:
        raise RunError("no place can be named as `data` is", where=str(path), expected=expected)
    return found


def read_results(run: Path) -> dict[str, Any]:
    """The content of a run's `results.json`.

    Raises:
        RunError: it is missing, cannot be read, or a value is not of its kind.
    """
    path, remedy = run / "results.json", _AGAIN
    expected = "the file that `omnidata score` writes"
    found = _whole(path, expected, remedy)

    def check(value: Any, kind: Any, place: str = "") -> None:
        _convert(value, kind, str(path), expected, remedy, place)

    check(found, _Results)
    overall = {name: each for name, each in found["overall"].items() if name != _BOUNDS}
    check(overall, _Totals, "overall")
    check(found["overall"].get(_BOUNDS), _Interval, f"overall.{_BOUNDS}")
    for axis, groups in found["by"].items():
        for name, group in groups.items():
            place = f"by.{axis}.{name}"
            check(group, _Counts, place)
            check({name: each for name, each in group.items() if name in overall}, _Totals, place)
            check(group.get("ci95"), _Intervals, f"{place}.ci95")
    return found


def read_scores(run: Path, profile: str) -> dict[str, Mapping[str, Any]]:
    """The lines of a run's `scores.jsonl` by sample id.

    Args:
        run: the folder.
        profile: that of its results.

    Raises:
        RunError: the file is missing, a line cannot be read, a value of it is not of its kind, or
            it is of another profile; or a step has two lines.
    """
    path, remedy = run / "scores.jsonl", _AGAIN
    found: dict[str, Mapping[str, Any]] = {}
    for number, line in enumerate(_lines(path, remedy), 1):
        where = f"{path}:{number}"
        expected = '{"sample_id": "...", "outcome": "...", ...}'
        score = _object(line, where, expected, remedy)
        _convert(score, _Score, where, expected, remedy)
        for name in score.keys() - _OF_LINE:
            _convert(score[name], _Value, where, expected, remedy, name)
        if isinstance(score.get("parsed"), dict):
            _convert(score["parsed"], _Parsed, where, expected, remedy, "parsed")
        if score["sample_id"] in found:
            raise RunError(
                "the step has two lines", where=where, expected="one line per step", remedy=remedy
            )
        if score["profile"] != profile:
            raise RunError(
                f"the line is of profile {score['profile']}",
                where=where,
                expected=f"the profile of results.json, {profile}",
                remedy=remedy,
            )
        found[score["sample_id"]] = score
    return found


def _convert(
    value: Any, kind: Any, where: str, expected: str, remedy: str, place: str = ""
) -> None:
    """Make sure that a value is of its kind."""
    try:
        msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeEncodeError) as error:  # a key no file can hold
        of = f"{place}: " if place else ""
        raise RunError(
            f"the content is not what it should be: {of}{error}",
            where=where,
            expected=expected,
            remedy=remedy,
        ) from None


def _whole(path: Path, expected: str, remedy: str) -> dict[str, Any]:
    """The object in a file."""
    try:
        with open_own(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            content = file.read() if size <= _MOST else None
    except FileNotFoundError:
        raise RunError(
            f"{path.name} is missing", where=str(path), expected=expected, remedy=remedy
        ) from None
    except OSError as error:
        raise _unreadable(path, error, remedy) from None
    if content is None:
        raise RunError(
            f"the file has {size:,} bytes",
            where=str(path),
            expected=f"at most {_MOST:,}",
            remedy=remedy,
        )
    return _object(content, str(path), expected, remedy)


def _lines(path: Path, remedy: str) -> Iterator[bytes]:
    """The lines of a file."""
    try:
        with open_own(path, "rb") as file:
            for line in lines(file):
                if len(line) >= LINE:
                    raise RunError(
                        f"a line has {LINE:,} bytes or more",
                        where=str(path),
                        expected="shorter lines",
                        remedy=remedy,
                    )
                yield line
    except OSError as error:
        raise _unreadable(path, error, remedy) from None


def _unreadable(path: Path, error: OSError, remedy: str) -> RunError:
    return RunError(
        f"the file cannot be read ({error.strerror})",
        where=str(path),
        expected="a file that omnidata wrote",
        remedy=remedy,
    )


def _object(text: bytes, where: str, expected: str, remedy: str) -> dict[str, Any]:
    """The JSON object that a text is."""
    try:
        value = decode(text.decode("utf-8"))
    except (UnicodeDecodeError, RecursionError):
        value = BROKEN
    if isinstance(value, dict) and is_shallow(text, value):
        return value
    what = "it cannot be read as JSON" if value is BROKEN else "it is no JSON object"
    if isinstance(value, dict):
        what = "it is nested too deeply"
    raise RunError(what, where=where, expected=expected, remedy=remedy)
