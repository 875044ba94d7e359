"""Whether some data are OSWorld's results, by a look at a few files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from omnidata.loaders.json_lines import values
from omnidata.loaders.osworld_domains import group_of
from omnidata.loaders.osworld_tree import RESULT, TRAJECTORY

FOUND: Final = (
    "<action_space>/<observation_type>/<model>/<domain>/<example_id>/ with "
    f"{TRAJECTORY} and {RESULT}, or a part of it from any level downwards"
)
_DEEPEST: Final = 7
_LOOKS: Final = 5
_LINES: Final = 5


def recognises(data: Path, benchmark: str = "") -> bool:
    """Whether a trajectory of OSWorld is there, or a result in the folder of a known domain.

    Raises:
        OSError: a file cannot be read.
    """
    if data.is_file():
        return data.suffix == ".jsonl" and _is_trajectory(data)
    files = list(islice(_files(data), _LOOKS))
    for path in files:
        if path.name == TRAJECTORY and _is_trajectory(path):
            return True
    domains = (path.parent.parent.name for path in files if path.name == RESULT)
    return not group_of().keys().isdisjoint(domains)


def _files(data: Path, depth: int = 0) -> Iterator[Path]:
    """Trajectories and results, the first ones of the tree first; no link is followed."""
    below = []
    for path in sorted(data.iterdir()):
        if path.name in (TRAJECTORY, RESULT) and path.is_file() and not path.is_symlink():
            yield path
        elif path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
            below.append(path)
    for path in below if depth < _DEEPEST else ():
        yield from _files(path, depth + 1)


def _is_trajectory(path: Path) -> bool:
    return any(is_line(row) for _, row in islice(values(path), _LINES))


def is_line(row: Any) -> bool:
    """Whether a row is a line of a trajectory.

    Examples:
        >>> is_line({"step_num": 1, "action": "DONE", "screenshot_file": "a.png"})
        True
    """
    if not isinstance(row, Mapping):
        return False
    acts = "step_num" in row and not row.keys().isdisjoint(("action", "actions"))
    marks = ("action_timestamp", "screenshot_file", "screenshot_file_before_exec", "response")
    return acts and not row.keys().isdisjoint(marks)
