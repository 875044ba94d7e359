"""What is scored without any text of a model: by benchmark, who does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Protocol, cast

from omnidata.errors import Finding
from omnidata.jsontext import encode
from omnidata.run.escaping import file_name
from omnidata.run.folder import explained
from omnidata.storage import atomic_write, write_json
from omnidata.types import Task

_SCORERS: Mapping[str, str] = {
    "omnibench": "omnidata.run.omnibench_score",
    "osworld": "omnidata.run.osworld_score",
}
"""Benchmark -> the module that is its `Scorer`."""


_LONGEST = 100
"""Characters of an agent's name in the name of its folder."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What one agent did, scored.

    Attributes:
        agent: who did it; empty where nothing says so.
        results: the content of `results.json`.
        lines: those of `scores.jsonl`.
    """

    agent: str
    results: Mapping[str, Any]
    lines: Sequence[Mapping[str, Any]]


class Scorer(Protocol):
    """Scores what an environment recorded."""

    PROFILES: Sequence[str]
    """Names of its profiles, the default first."""

    NEEDS_ANSWERS: bool
    """Whether what was recorded lies in a file of its own; otherwise the data hold it."""

    def takes(self, answers: Path) -> bool:
        """Whether the file is of what was recorded, not of a model's texts; broken ones are."""

    RIGHT: str | None
    """The paired total that is 1 of a task that is right, 0 or between of one that is not."""

    def columns(self, profile: str) -> Mapping[str, Literal["share", "number"]]:
        """The totals that a table shows, in order."""

    def paired(self, profile: str) -> Mapping[str, Literal["share", "number"]]:
        """Those of which every line of scores has a part, so that runs are compared by task."""

    def score(
        self, data: Path, answers: Path | None, *, profile: str, strict: bool = False
    ) -> tuple[Sequence[Scored], Sequence[Finding]]:
        """What each agent reached, at least one, and what is doubtful of the data."""


def scorer_of(task: str) -> Scorer | None:
    """Who scores the benchmark without texts; None where nobody does."""
    return cast("Scorer", import_module(_SCORERS[task])) if task in _SCORERS else None


def profiles_of(task: Task) -> list[str]:
    """All profiles of the benchmark, with the task's options: its own first, the default first."""
    scorer = scorer_of(task.name)
    return [*task.profiles, *(scorer.PROFILES if scorer else ())]


def places(scored: Sequence[Scored], out: Path) -> dict[Path, Scored]:
    """The folder of each agent: the one that was named if there is one, else one below it for each.

    Their names are the agents', made safe, whatever other agents there are; where those of two
    would be the same, a part of a hash tells them apart.
    """
    if len(scored) == 1:
        return {out: scored[0]}
    names = [file_name(one.agent).strip(".-") for one in scored]
    often = Counter(name.lower() for name in names)
    found = {}
    for one, name in zip(scored, names, strict=True):
        if not name or len(name) > _LONGEST or often[name.lower()] > 1:
            digest = sha256(one.agent.encode("utf-8", "surrogateescape")).hexdigest()
            name = f"{name[:_LONGEST]}-{digest[:8]}".lstrip("-")
        found[out / name] = one
    return found


def write(place: Path, scored: Scored) -> None:
    """Write `scores.jsonl` and `results.json`.

    Raises:
        RunError: the folder cannot be written.
    """
    with explained(place):
        place.mkdir(parents=True, exist_ok=True)
        with atomic_write(place / "scores.jsonl") as file:
            file.writelines(encode(line) + b"\n" for line in scored.lines)
        write_json(place / "results.json", scored.results)
