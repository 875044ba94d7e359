"""The task `androidworld`: success rates of AndroidWorld's results, and whether a model sees them.

Source: AndroidWorld (Rawles et al., 2024), `android_world/suite_utils.py`. Its checkpoints are
pickles, which run whatever their author wrote into them: they are never opened.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from omnidata.errors import DataError, Finding
from omnidata.files import read_text
from omnidata.jsontext import as_name, is_number, json_file
from omnidata.loaders.files import OTHER_DATA, SKIPPED, holds_rows, not_an_object, walk
from omnidata.loaders.load import Note, RowContext, short
from omnidata.loaders.row_files import head_of, read_rows
from omnidata.metrics.rollouts import RATES
from omnidata.tasks.outcomes import Outcomes, OutcomeScorer, Rollout
from omnidata.types import Publication

_SIGNS: Final[Mapping[str, Sequence[bytes]]] = {
    "rows": (b'"task_template"', b'"is_successful"'),
    ".csv": (b"mean_success_rate", b"num_complete_trials"),
}
"""What stands at the beginning of files of episodes, and of tables of tasks."""
_METADATA: Final = "task_metadata.json"
_LARGEST: Final = 64 * 1024**2
_EXPECTED: Final = (
    "JSON of episodes with task_template and is_successful, or CSV of tasks with "
    "mean_success_rate and num_complete_trials"
)
DIFFICULTIES: Final = ("easy", "medium", "hard")

Row = tuple[Path, str, Mapping[str, Any]]


class _Scorer(OutcomeScorer):
    """AndroidWorld's own rate: the mean over tasks of the mean over their episodes with a score."""

    name = "androidworld"
    size = 116
    axes: ClassVar[Mapping[str, Mapping[str, int | None]]] = {
        "difficulty": dict.fromkeys(DIFFICULTIES)
    }
    profiles: ClassVar[Mapping[str, Any]] = {"androidworld": dict.fromkeys(RATES, "share")}

    def knows(self, path: Path) -> bool:
        """Whether a file is one of episodes, or a table of tasks."""
        signs = _SIGNS.get("rows" if holds_rows(path) else path.suffix)
        return bool(signs) and all(sign in head_of(path) for sign in signs or ())

    def rollouts(self, data: Path, note: Note) -> Iterator[Rollout]:
        """The episodes, or the tasks of a table."""
        if not data.exists():
            raise DataError("there is no such file or folder", where=str(data), expected=_EXPECTED)
        paths = list(walk(data))
        difficulty = _difficulties(paths)
        root, found = data if data.is_dir() else data.parent, False
        for path, where, row in _rows(filter(self.knows, paths), note):
            found = True
            agent = as_name(row.get("agent_name")) or _agent(path, root)
            one = _rollout(agent, row, RowContext(where, note), difficulty)
            if one:
                yield one
        pickled = [path for path in paths if path.name.endswith((".pkl", ".pkl.gz", ".pickle"))]
        if pickled:
            note(_pickled(pickled))
        if not found:
            raise DataError(
                f"there are {len(pickled)} pickles, and nothing that can be read safely"
                if pickled
                else "no file there has AndroidWorld's columns",
                where=str(data),
                expected=_EXPECTED,
                remedy="write them as JSON where they were made" if pickled else OTHER_DATA,
            )


class AndroidWorld(Outcomes):
    """AndroidWorld: what agents reached on a phone, and whether a model sees that they did.

    Args:
        options: `actions`; unknown ones are a `UsageError`.
    """

    title = "AndroidWorld"
    platform = "mobile"
    holds = "results of agents on Android, without screenshots; whether they succeeded"
    expects = _EXPECTED
    sources = (
        Publication(
            "AndroidWorld",
            "https://github.com/google-research/android_world",
            "apache-2.0",
            by_hand="results are what you or others have run; the release publishes no folder of "
            "them",
        ),
    )
    score_files = _Scorer()


def _rows(paths: Iterable[Path], note: Note) -> Iterator[Row]:
    for path in paths:
        if path.suffix == ".csv":
            yield from _table(path, note)
            continue
        for line in read_rows(path):
            if isinstance(line.row, dict):
                yield path, line.where, line.row
            else:
                note(not_an_object(line, _EXPECTED))


def _table(path: Path, note: Note) -> Iterator[Row]:
    """The rows of a table of tasks, as pandas writes `process_episodes`; the averages are none."""
    text = read_text(path, _LARGEST).decode("utf-8", "replace")
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        names = reader.fieldnames or [""]
        for row in reader:
            name = row.get("task_template") or row.get("task") or row.get(names[0]) or ""
            where = f"{path}:{reader.line_num}"
            if None in row or None in row.values():
                RowContext(where, note).refuse(
                    "columns-differ", "the row has not the table's columns", ", ".join(names)
                )
            elif not name.startswith("="):
                yield path, where, {**row, "task_template": name}
    except csv.Error as error:
        note(Finding("csv-invalid", "error", str(path), str(error), "a table as CSV", SKIPPED))


def _rollout(
    agent: str, row: Mapping[str, Any], at: RowContext, difficulty: Mapping[str, str]
) -> Rollout | None:
    task = as_name(row.get("task_template"))
    if task is None:
        at.refuse("task-missing", "the row has no task_template", "the name of a task")
        return None
    table = "is_successful" not in row
    score = _number(row.get("mean_success_rate" if table else "is_successful"))
    turns = _number(row.get("mean_episode_length" if table else "episode_length"))
    failed = row.get("exception_info")
    if score is not None and not 0 <= score <= 1:
        at.refuse("score-unusable", f"the success is {short(score)}", "a number from 0 to 1")
        return None
    goal, level = row.get("goal"), difficulty.get(task) or row.get("difficulty")
    done = score is not None and not (isinstance(failed, str) and failed)
    instance = row.get("instance_id")
    return Rollout(
        agent,
        task,
        goal if isinstance(goal, str) else task,
        {"androidworld": score if done else None},
        at.where,
        dict(row),
        attempt="" if instance in (None, 0, 0.0, "0", "") else as_name(instance) or "",
        tags={"difficulty": level} if level in DIFFICULTIES else {},
        # A score of 0 does not say whether the agent gave up or ran out of steps.
        ending=None if table else "unknown" if done else "crash",
        turns=int(turns) if turns and not table else None,
        seconds=_number(row.get("run_time")),
    )


def _number(value: object) -> float | None:
    """A number, or one that a table has as a text; None where there is none, as for NaN."""
    if isinstance(value, bool):
        return float(value)
    try:
        number = float(value) if is_number(value) or isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None
    return number if number is not None and abs(number) < 1e12 else None


def _agent(path: Path, root: Path) -> str:
    """Who did it, where no row says it: the folder of the file, or the file alone."""
    folder = path.parent.relative_to(root).as_posix()
    return path.stem if folder == "." else folder


def _difficulties(paths: Iterable[Path]) -> dict[str, str]:
    """How difficult each task is, by the release's file if that lies among the results."""
    found: dict[str, str] = {}
    for path in paths:
        rows = json_file(path, _LARGEST) if path.name == _METADATA else None
        for row in rows if isinstance(rows, list) else ():
            name = row.get("task_name") if isinstance(row, dict) else None
            if isinstance(name, str) and row.get("difficulty") in DIFFICULTIES:
                found[name] = row["difficulty"]
    return found


def _pickled(paths: list[Path]) -> Finding:
    return Finding(
        "pickle-unread",
        "warning",
        str(paths[0]),
        f"{len(paths)} checkpoints are pickles, which run code when they are read",
        _EXPECTED,
        "write your own as JSON where they were made (docs/androidworld.md); trust nobody else's",
    )
