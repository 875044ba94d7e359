"""Where AgentNet lies, in its two forms, known by their columns.

NAME.jsonl           a trajectory per line, `traj` with code and a picture per step: AgentNet
NAME.json            one trajectory, `steps` with `ground_truth_actions`: AgentNetBench

Pictures lie in a folder beside the file. `recording/` beside a file of one trajectory is what
AgentNet's recorder wrote while it was made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from omnidata.errors import DataError, Finding
from omnidata.files import ANY, open_file
from omnidata.loaders import desk_files, file_search
from omnidata.loaders.json_lines import values
from omnidata.loaders.place import SKIPPED, Note

Form = Literal["agentnet", "agentnetbench"]
COLUMNS: Final = (
    "JSON lines with task_id, instruction and traj (AgentNet), or a JSON file per trajectory with "
    "task_id and steps of image and ground_truth_actions (AgentNetBench)"
)
IMAGES: Final = ("images", "ubuntu_images", "win_mac_images")
"""The folders that the release puts pictures into, beside the file or beside its folder."""
RECORDED: Final = "reduced_events_vis.jsonl"
"""A file of AgentNet's recorder."""

STEPS: Final[Mapping[Form, str]] = {"agentnet": "traj", "agentnetbench": "steps"}
"""The column that has a trajectory's steps."""

_SIGNS: Final[Mapping[str, tuple[Form, tuple[bytes, ...]]]] = {
    ".jsonl": ("agentnet", (b'"task_id"', b'"traj"')),
    ".json": ("agentnetbench", (b'"task_id"', b'"ground_truth_actions"')),
}


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A trajectory as it was read.

    Attributes:
        where: the file and the line, for findings.
        path: the file.
        form: what it is in the form of.
        row: the whole of it.
    """

    where: str
    path: Path
    form: Form
    row: Mapping[str, Any]


def find(data: Path) -> list[Path]:
    """The files of the dataset, sorted.

    Raises:
        DataError: nothing is there, or nothing of AgentNet.
        OSError: a file cannot be read.
    """
    paths = list(file_search.walk(data))
    looks = {path: look(path) for path in paths}
    if "known" not in looks.values() and any(path.name == RECORDED for path in paths):
        raise DataError(
            "a recording is there, but no trajectory that was made of it",
            where=str(data),
            expected=COLUMNS,
            remedy="`omnidata segment` cuts a recording of AgentNet's tool into steps of its own",
        )
    return file_search.chosen(data, looks, COLUMNS)


def look(path: Path) -> file_search.Look:
    """Whether a file has the columns of one of the two forms.

    Raises:
        OSError: the file cannot be read.
    """
    if path.suffix not in _SIGNS:
        return "other"
    with open_file(path, ANY) as file:
        head = file.read(desk_files.HEAD)
    return "known" if all(sign in head for sign in _SIGNS[path.suffix][1]) else "other"


def recognises(data: Path, benchmark: str = "") -> bool:
    """Whether one of the first files there is AgentNet's.

    Raises:
        OSError: a file cannot be read.
    """
    return desk_files.recognises(data, _SIGNS, look)


def fingerprint(data: Path) -> str:
    """SHA-256 over the files, media left out.

    Raises:
        DataError: as `find`.
    """
    return file_search.fingerprint(find(data), data if data.is_dir() else data.parent)


def read(paths: Sequence[Path], note: Note) -> Iterator[Trajectory]:
    """Every trajectory; those that cannot be read have a finding instead.

    Args:
        paths: as `find` gives them.
        note: takes the findings.
    """
    for path in paths:
        form = _SIGNS[path.suffix][0]
        whole = path.suffix == ".json"
        for where, row in [(str(path), desk_files.whole(path))] if whole else values(path):
            if isinstance(row, dict) and isinstance(row.get(STEPS[form]), list):
                yield Trajectory(where, path, form, row)
            else:
                what = "the file" if whole else "the line"
                said = f"{what} is no JSON object with a list {STEPS[form]}"
                note(Finding("json-invalid", "error", where, said, COLUMNS, SKIPPED))


def images(path: Path) -> Path:
    """The folder with the pictures of a file's trajectories; it need not exist."""
    return desk_files.images(path, IMAGES)
