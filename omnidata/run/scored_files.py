"""What a run folder's files must be like, so that nobody trips over those that others changed.

Only what tables and comparisons read is looked at; further keys are anybody's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Required, TypedDict

import msgspec

from omnidata.errors import RunError

_Number = float | None
_Interval = tuple[float, float] | None
_Totals = dict[str, _Number]
_Intervals = dict[str, _Interval] | None


class _Settings(TypedDict, total=False):
    """`run.json`."""

    task: str
    options: dict[str, str]
    model: str
    model_options: dict[str, Any]
    model_settings: dict[str, Any] | None
    generation: dict[str, Any]
    seed: int | None
    dataset_fingerprint: str | None
    control: dict[str, Any] | None
    prompt_hash: str | None
    where: dict[str, str]
    exclude: list[str]
    limit: int | None
    shard: tuple[int, int] | None
    data: str | None
    versions: dict[str, str]


class _Counts(TypedDict, total=False):
    """The counts that are shown; a benchmark may have others, of any kind."""

    episodes: int
    steps: int
    tasks: int
    rows: int
    degraded: int


class _Results(TypedDict, total=False):
    """`results.json`."""

    task: Required[str]
    profile: Required[str]
    overall: Required[_Totals]
    ci95: _Intervals
    by: Required[dict[str, dict[str, dict[str, Any]]]]
    counts: Required[_Counts]
    outcomes: dict[str, int]
    stopped: str


def check_settings(settings: Mapping[str, Any], path: Path) -> None:
    """Look over the content of `run.json`.

    Raises:
        RunError: a value is not of its kind; the message says which.
    """
    try:
        msgspec.convert(settings, _Settings)
    except msgspec.ValidationError as error:
        raise RunError(
            f"the file is not what it should be: {error}",
            where=str(path),
            expected="the file that `omnidata evaluate` writes",
            remedy="start the run again in another folder",
        ) from None


def check_results(results: Mapping[str, Any], path: Path) -> None:
    """Look over the content of `results.json`.

    Raises:
        RunError: a value is not of its kind, or no finite number; the message says which.
    """
    try:
        found = msgspec.convert(results, _Results)
        tables: list[tuple[str, Mapping[str, Any] | None]] = [
            ("overall", found["overall"]),
            ("ci95", found.get("ci95")),
        ]
        for axis, groups in found["by"].items():
            for name, group in groups.items():
                msgspec.convert(group, _Counts)
                numbers = {key: value for key, value in group.items() if key in found["overall"]}
                tables.append((f"{axis} {name}", msgspec.convert(numbers, _Totals)))
                tables.append((f"{axis} {name}", msgspec.convert(group.get("ci95"), _Intervals)))
        for name, table in tables:
            for key, value in (table or {}).items():
                ends = value if isinstance(value, tuple) else (value,)
                if not all(end is None or math.isfinite(end) for end in ends):
                    raise msgspec.ValidationError(f"{name}: {key} is {value}")
    except msgspec.ValidationError as error:
        raise RunError(
            f"the file is not what it should be: {error}",
            where=str(path),
            expected="the file that `omnidata score` writes",
            remedy="score the run again: omnidata score TASK DATA RUN --out RUN",
        ) from None
