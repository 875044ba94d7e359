"""The task `androidworld`: success rates of AndroidWorld's results, and whether a model sees them.

Source: AndroidWorld (Rawles et al., 2024), `android_world/suite_utils.py`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar, Final

from omnidata.errors import DataError, Finding
from omnidata.jsontext import as_name, is_number, json_file
from omnidata.loaders.files import OTHER_DATA, walk
from omnidata.loaders.load import Note, RowContext, short
from omnidata.metrics.rollouts import RATES, Ending
from omnidata.tasks.androidworld.rows import (
    EXPECTED,
    LARGEST,
    RESULT,
    Entry,
    entries,
    is_pickle,
    kind_of,
)
from omnidata.tasks.benchmark import Card
from omnidata.tasks.outcomes import Outcomes, OutcomeScorer, Rollout, outer_first, outermost
from omnidata.types import Publication

_METADATA: Final = "task_metadata.json"
DIFFICULTIES: Final = ("easy", "medium", "hard")


class _Scorer(OutcomeScorer):
    name = "androidworld"
    columns = EXPECTED
    size = 116
    axes: ClassVar[Mapping[str, Mapping[str, int | None]]] = {
        "difficulty": dict.fromkeys(DIFFICULTIES)
    }
    profiles: ClassVar[Mapping[str, Any]] = {"androidworld": dict.fromkeys(RATES, "share")}

    def knows(self, path: Path) -> bool:
        return kind_of(path) is not None

    def rollouts(self, data: Path, note: Note) -> Iterator[Rollout]:
        paths = list(walk(data))
        difficulty = _difficulties(paths)
        findings: list[Finding] = []

        def keep(finding: Finding) -> None:
            findings.append(finding)
            note(finding)

        folders = {path.parent for path in paths if path.name == RESULT}
        found = [entry for path in outer_first(paths, folders) for entry in _read(path, keep)]
        if not found:
            raise _nothing(data, findings)
        agents = _Agents(data, found)
        covered: set[tuple[str, str | None]] = set()
        repeated: set[Path] = set()
        for entry in sorted(found, key=lambda entry: entry.is_table):  # which keeps the order
            agent = agents.of(entry)
            key = agent, as_name(entry.row.get("task_template"))
            if entry.is_table and key in covered:
                repeated.add(entry.path)
                continue
            if not entry.is_table:
                covered.add(key)
            one = _rollout(agent, entry, RowContext(entry.where, note), difficulty)
            if one:
                yield one
        for path in sorted(repeated):
            note(_table_finding(path))


class AndroidWorld(Outcomes):
    """AndroidWorld: did agents succeed on a phone, and does a model see it?"""

    card = Card(
        title="AndroidWorld",
        holds="score or judge whether agents on Android succeeded; results without screenshots",
        platform="mobile",
        sources=(
            Publication(
                "AndroidWorld",
                "https://github.com/google-research/android_world",
                "apache-2.0",
                paper="2405.14573",
                by_hand="run the benchmark, or ask the authors of a run: the release "
                "publishes no results",
            ),
        ),
    )
    rollouts = _Scorer()


def _read(path: Path, note: Note) -> Iterator[Entry]:
    kind = kind_of(path) or ("checkpoint" if is_pickle(path) else None)
    if kind:
        yield from entries(path, kind, note)


def _nothing(data: Path, findings: list[Finding]) -> DataError:
    first = next((one for one in findings if one.severity == "error"), None)
    if first is None:
        return DataError(
            "no file has AndroidWorld's results",
            where=str(data),
            expected=EXPECTED,
            remedy=OTHER_DATA,
        )
    return DataError(first.what, where=first.where, expected=first.expected, remedy=first.remedy)


class _Agents:
    """Names the agents of rows.

    A checkpoint names its agent; if several folders share the name, they are separate runs and the
    folder becomes part of it. A table belongs to the only agent whose episodes lie beside it. Else
    the folder is the agent, or the file at the top.
    """

    def __init__(self, data: Path, found: Collection[Entry]) -> None:
        self._root = data if data.is_dir() else data.parent
        self._tasks = {
            one.path.parent for one in found if one.kind == "droidrun" and one.path.name == RESULT
        }
        self._folders: dict[str, set[Path]] = defaultdict(set)
        for one in found:
            if one.kind == "checkpoint" and (name := as_name(one.row.get("agent_name"))):
                self._folders[name].add(one.path.parent)
        self._beside: dict[Path, set[str]] = defaultdict(set)
        for one in found:
            is_own = one.kind == "checkpoint" or self._below(one.path.parent) != "."
            if not one.is_table and is_own:  # at the top a file may be an agent
                self._beside[one.path.parent].add(self.of(one))

    def of(self, entry: Entry) -> str:
        folder = entry.path.parent
        if name := as_name(entry.row.get("agent_name")):
            shared = entry.kind == "checkpoint" and len(self._folders[name]) > 1
            return f"{name}/{self._folder_name(folder)}" if shared else name
        if entry.is_table and len(beside := self._beside[folder]) == 1:
            return next(iter(beside))
        if entry.kind == "droidrun":  # a file for each task
            in_task = entry.path.name == RESULT
            return self._folder_name(outermost(folder, self._tasks).parent if in_task else folder)
        below = self._below(folder)
        if below == "." and entry.kind != "checkpoint":
            return entry.path.stem
        return self._folder_name(folder)

    def _below(self, folder: Path) -> str:
        is_below = folder.is_relative_to(self._root)
        return folder.relative_to(self._root).as_posix() if is_below else "."

    def _folder_name(self, folder: Path) -> str:
        below = self._below(folder)
        return below if below != "." else folder.resolve().name or "agent"


def _table_finding(path: Path) -> Finding:
    return Finding(
        "table-repeated",
        "warning",
        str(path),
        "its tasks have episodes too",
        "either the episodes, or a table of them",
        "nothing to do: the episodes are used",
    )


def _rollout(
    agent: str, entry: Entry, at: RowContext, difficulty: Mapping[str, str]
) -> Rollout | None:
    row, table = entry.row, entry.is_table
    task = as_name(row.get("task_template"))
    if task is None:
        at.refuse("task-missing", "the row has no task_template", "the name of a task")
        return None
    said = row.get("mean_success_rate" if table else "is_successful")
    score = _number(said)
    if not (_is_nothing(said) if score is None else 0 <= score <= 1):
        at.refuse("score-unusable", f"the success is {short(said)}", "a number from 0 to 1")
        return None
    failed = row.get("exception_info")
    goal, level = row.get("goal"), difficulty.get(task) or row.get("difficulty")
    done = score is not None and not (isinstance(failed, str) and failed)
    turns = _number(row.get("mean_episode_length" if table else "episode_length"))
    instance = row.get("instance_id")
    return Rollout(
        agent,
        task,
        goal if isinstance(goal, str) else task,
        {"androidworld": score if done else None},
        at.where,
        dict(entry.source),
        attempt="" if instance in (None, 0, 0.0, "0", "") else as_name(instance) or "",
        tags={"difficulty": level} if level in DIFFICULTIES else {},
        ending=None if table else _ending(row) if done else "crash",
        turns=int(turns) if turns and not table else None,
        seconds=_number(row.get("run_time")),
    )


def _ending(row: Mapping[str, Any]) -> Ending:
    """AndroidWorld scores 0 both for giving up and for running out of steps."""
    thought, most = row.get("final_thought"), row.get("max_steps")
    if isinstance(thought, str) and thought.startswith("Timeout after"):
        return "time_limit"
    if row.get("agent_success") is True:
        return "finished"
    steps = row.get("episode_length")
    return "step_limit" if is_number(most) and is_number(steps) and 0 < most <= steps else "unknown"


def _number(value: object) -> float | None:
    try:
        number = float(value) if isinstance(value, int | float | str) else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and abs(number) < 1e12 else None


def _is_nothing(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().lower() in ("", "nan", "none")
    return value is None or (isinstance(value, float) and not isfinite(value))


def _difficulties(paths: Iterable[Path]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in paths:
        rows = json_file(path, LARGEST) if path.name == _METADATA else None
        for row in rows if isinstance(rows, list) else ():
            name = row.get("task_name") if isinstance(row, dict) else None
            if isinstance(name, str) and row.get("difficulty") in DIFFICULTIES:
                found[name] = row["difficulty"]
    return found
