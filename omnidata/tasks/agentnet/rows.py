"""One step of AgentNet or AgentNetBench -> what is right in it, and what was done.

Nothing in a step is executed. Places are shares of the screen: the same names of functions mean
pixels in OSWorld.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from omnidata.actions import Action
from omnidata.errors import DataError, Finding
from omnidata.files import ANY, open_file
from omnidata.loaders import files
from omnidata.loaders.jsonl import values
from omnidata.loaders.load import SKIPPED, Note, short
from omnidata.tasks.agentnet.actions import (
    POINTED,
    action_of_object,
    actions_of_calls,
    boxes_of,
    place_of,
    spelled,
    type_of,
)
from omnidata.tasks.desktops import as_action, read_code

_MOST = 1000


def code_of(source: Mapping[str, Any]) -> str:
    """The code of a step; empty where it has none.

    Args:
        source: of a step; it may have been through a Parquet repository.
    """
    row = source["step"]
    if source["form"] == "agentnet":
        value = row.get("value")
        code = value.get("code") if isinstance(value, Mapping) else None
    else:
        code = row.get("action")
    return code if isinstance(code, str) else ""


def truths_of(source: Mapping[str, Any]) -> list[tuple[Action, ...]]:
    """What is right in a step: its ground truth, and the alternatives to it.

    Alternatives are lists of actions, as the ground truth is one. An alternative that cannot be
    used is left out.

    Args:
        source: of a step; it may have been through a Parquet repository.

    Raises:
        ValueError: the ground truth cannot be used; the message says why.

    Examples:
        >>> row = {"value": {"code": "pyautogui.click(x=0.5, y=0.25)"}}
        >>> truths_of({"form": "agentnet", "step": row})[0][0].start
        (Point(x=0.5, y=0.25, space='rel'),)
    """
    if source["form"] == "agentnet":
        found = actions_of_calls(read_code(code_of(source)))
        if isinstance(found, str):
            raise ValueError(found)
        if not found:
            raise ValueError("the step has no code")
        return [found]
    row = source["step"]
    truths = [_actions(row.get("ground_truth_actions"))]
    options = row.get("alternative_options")
    for option in options[:_MOST] if isinstance(options, list) else ():
        try:
            truths.append(_actions(option))
        except ValueError:
            continue
    return truths


def broken_alternatives(source: Mapping[str, Any]) -> str:
    """Why some of a step's alternatives cannot be used; empty where all can, or none is there."""
    options = source["step"].get("alternative_options")
    if options is None:
        return ""
    if not isinstance(options, list) or len(options) > _MOST:
        return f"alternative_options is {short(options)}"
    for option in options:
        try:
            _actions(option)
        except ValueError as error:
            return f"an alternative: {error}"
    return ""


def recorded_otherwise(source: Mapping[str, Any], truths: Sequence[Sequence[Action]]) -> str:
    """How what was recorded differs from all that is right; empty where it does not.

    Types, typed text, keys and the reported status are held against each other, as far as both go:
    a ground truth may end with an Enter that was not recorded. Places are not, for one may have
    been moved to the middle of its element. Code that cannot be read is passed over.

    Args:
        source: of a step.
        truths: what is right in it.
    """
    if source["form"] == "agentnet":  # whose code is the ground truth
        return ""
    code = code_of(source)
    done = actions_of_calls(read_code(code))
    if isinstance(done, str):
        return ""
    if any(all(map(operator.eq, _core(done), _core(truth))) for truth in truths):
        return ""
    return f"recorded was {short(code)}, right is {short(chr(10).join(map(_line, truths[0])))}"


def _core(actions: Sequence[Action]) -> list[tuple[object, ...]]:
    """What actions are, without their places and turns."""
    return [
        (type_of(one), one.text, [key.casefold() for key in one.keys], one.words) for one in actions
    ]


def _actions(value: object) -> tuple[Action, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= _MOST:
        raise ValueError(f"the actions are {short(value)}")
    return tuple(action_of_object(one) for one in value)


def action_of(source: Mapping[str, Any], truth: Sequence[Action]) -> Action | None:
    """What is done in a step, in the words of its code; None where that cannot be read.

    A click's target is the boxes that its ground truth allows, where it has some.

    Args:
        source: of a step.
        truth: its ground truth.
    """
    lines = code_of(source) or "\n".join(map(_line, truth))
    found = as_action(read_code(lines), space="rel", said=lines)
    boxes = next((boxes_of(action) for action in truth if type_of(action) in POINTED), ())
    if found is None or not boxes or not found.start or found.end:
        return found
    return replace(found, start=boxes)


def _line(action: Action) -> str:
    place = place_of(action)
    return spelled(action, f"x={place.x!r}, y={place.y!r}" if place else "")


# Where AgentNet lies, in its two forms, known by their columns.
#
# NAME.jsonl           a trajectory per line, `traj` with code and a picture per step: AgentNet
# NAME.json            one trajectory, `steps` with `ground_truth_actions`: AgentNetBench
#
# Pictures lie in a folder beside the file. `recording/` beside a file of one trajectory is what
# AgentNet's recorder wrote while it was made.

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
    paths = list(files.walk(data))
    looks = {path: look(path) for path in paths}
    if "known" not in looks.values() and any(path.name == RECORDED for path in paths):
        raise DataError(
            "a recording is there, but no trajectory that was made of it",
            where=str(data),
            expected=COLUMNS,
            remedy="`omnidata segment` cuts a recording of AgentNet's tool into steps of its own",
        )
    return files.chosen(data, looks, COLUMNS)


def look(path: Path) -> files.Look:
    """Whether a file has the columns of one of the two forms.

    Raises:
        OSError: the file cannot be read.
    """
    if path.suffix not in _SIGNS:
        return "other"
    with open_file(path, ANY) as file:
        head = file.read(files.HEAD)
    return "known" if all(sign in head for sign in _SIGNS[path.suffix][1]) else "other"


def recognises(data: Path) -> bool:
    """Whether one of the first files there is AgentNet's.

    Raises:
        OSError: a file cannot be read.
    """
    return files.recognises(data, _SIGNS, look)


def fingerprint(data: Path) -> str:
    """SHA-256 over the files, media left out.

    Raises:
        DataError: as `find`.
    """
    return files.fingerprint(find(data), data if data.is_dir() else data.parent)


def read(paths: Sequence[Path], note: Note) -> Iterator[Trajectory]:
    """Every trajectory; those that cannot be read have a finding instead.

    Args:
        paths: as `find` gives them.
        note: takes the findings.
    """
    for path in paths:
        form = _SIGNS[path.suffix][0]
        whole = path.suffix == ".json"
        for where, row in [(str(path), files.whole(path))] if whole else values(path):
            if isinstance(row, dict) and isinstance(row.get(STEPS[form]), list):
                yield Trajectory(where, path, form, row)
            else:
                what = "the file" if whole else "the line"
                said = f"{what} is no JSON object with a list {STEPS[form]}"
                note(Finding("json-invalid", "error", where, said, COLUMNS, SKIPPED))


def images(path: Path) -> Path:
    """The folder with the pictures of a file's trajectories; it need not exist."""
    return files.images(path, IMAGES)
