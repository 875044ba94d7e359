"""AgentNet's trajectories on desktops as steps, and AgentNetBench's (OpenCUA).

They are one benchmark here: places are shares of the screen (the same functions take pixels in
OSWorld), and the picture of a step was taken before it. AgentNet has the actions as code;
AgentNetBench as objects, with other right answers. Nothing in a step is executed.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from msgspec.structs import replace

from omnidata.actions import Action
from omnidata.dialects.pyautogui import as_action, read_code
from omnidata.errors import DataError
from omnidata.loaders.files import RowFiles, images, look_for, walk
from omnidata.loaders.load import Note, RowContext, about, short, size_of
from omnidata.loaders.row_files import Line
from omnidata.tasks.agentnet.actions import (
    POINTED,
    action_of_object,
    actions_of_calls,
    boxes_of,
    code_line,
    type_of,
)
from omnidata.tasks.agentnet.recordings import EVENTS, Timeline, find_timeline
from omnidata.tasks.loading import EpisodeBuilder
from omnidata.types import LoadedDataset, MediaRef, Modality, Step

# The files of AgentNet, in two forms, recognised by their columns.
#
# NAME.jsonl           a trajectory per line, `traj` with code and a picture per step: AgentNet
# NAME.json            one trajectory, `steps` with `ground_truth_actions`: AgentNetBench
#
# Pictures are in a folder beside the file; `recording/` beside a file of one trajectory has
# the files of AgentNet's recorder.

Form = Literal["agentnet", "agentnetbench"]
IMAGES: Final = ("images", "ubuntu_images", "win_mac_images")
"""The folders that the release puts pictures into, beside the file or beside its folder."""
STEPS: Final[Mapping[Form, str]] = {"agentnet": "traj", "agentnetbench": "steps"}
"""The column that has a trajectory's steps."""

FILES: Final = RowFiles(
    "JSON lines with task_id, instruction and traj (AgentNet), or a JSON file per trajectory with "
    "task_id and steps of image and ground_truth_actions (AgentNetBench)",
    look_for(("task_id", "traj"), ("task_id", "ground_truth_actions")),
)


def _find(data: Path) -> list[Path]:
    try:
        return FILES.find(data)
    except DataError:
        if not any(path.name == EVENTS for path in walk(data)):
            raise
    raise DataError(
        "the folder has a recording, but no trajectory made from it",
        where=str(data),
        expected=FILES.columns,
        remedy="`omnidata segment` cuts a recording of AgentNet's tool into steps of its own",
    )


# One step -> its right actions, and its own.

_MOST = 1000


def _code_of(source: Mapping[str, Any]) -> str:
    row = source["step"]
    if source["form"] == "agentnet":
        value = row.get("value")
        code = value.get("code") if isinstance(value, Mapping) else None
    else:
        code = row.get("action")
    return code if isinstance(code, str) else ""


def truths_of(source: Mapping[str, Any]) -> list[tuple[Action, ...]]:
    """Return the ground truth of a step, then the usable alternatives to it.

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
        found = actions_of_calls(read_code(_code_of(source)))
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


def usable_truths(step: Step) -> list[tuple[Action, ...]]:
    """Return the right answers as `truths_of`; none if the ground truth cannot be used."""
    try:
        return truths_of(step.source)
    except ValueError:
        return []


def _alternatives_fault(source: Mapping[str, Any]) -> str:
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


def _recording_difference(source: Mapping[str, Any], truths: Sequence[Sequence[Action]]) -> str:
    """Compare types, typed text, keys and status up to the shorter end, but no places.

    A ground truth may end with an Enter that was not recorded, and its place may have been moved to
    the middle of the element. Unreadable code is skipped.
    """
    if source["form"] == "agentnet":  # whose code is the ground truth
        return ""
    code = _code_of(source)
    try:
        done = actions_of_calls(read_code(code))
    except ValueError:
        return ""
    if any(all(map(operator.eq, _core(done), _core(truth))) for truth in truths):
        return ""
    truth = short(chr(10).join(map(code_line, truths[0])))
    return f"the recorded action is {short(code)}, the ground truth is {truth}"


def _core(actions: Sequence[Action]) -> list[tuple[object, ...]]:
    return [
        (type_of(one), one.text, [key.casefold() for key in one.keys], one.words) for one in actions
    ]


def _actions(value: object) -> tuple[Action, ...]:
    if not isinstance(value, list) or not 0 < len(value) <= _MOST:
        raise ValueError(f"the actions are {short(value)}")
    return tuple(action_of_object(one) for one in value)


def action_of(source: Mapping[str, Any], truth: Sequence[Action]) -> Action | None:
    """Return the action of a step, with its code as words; None if the code cannot be read.

    The target of a click is the boxes of its ground truth, if it has some.
    """
    lines = _code_of(source) or "\n".join(map(code_line, truth))
    found = as_action(read_code(lines), space="rel", said=lines)
    boxes = next((boxes_of(action) for action in truth if type_of(action) in POINTED), ())
    if found is None or not boxes or not found.start or found.end:
        return found
    return replace(found, start=boxes)


# Trajectories of AgentNet -> steps.

TAGS: Final = ("form", "part", "completed")
"""The tags of a step: the form of its data (agentnet, agentnetbench), its file if that has many
trajectories, and whether the task was completed."""

ROLES: Final[Mapping[str, Modality]] = {"screenshot": "image", "video": "video"}
"""`screenshot` is taken before the action; `video` is the part of the recording up to it."""

MAX_STEPS: Final = 1000
"""The most steps of one trajectory; memory grows with its square, as each step has its history."""

_INSTRUCTIONS: Final = ("instruction", "high_level_task_description", "user_task_description")


@dataclass(slots=True)
class StepReader:
    """Turns trajectories into steps.

    Attributes:
        root: the dataset's folder.
        note: takes the findings.
    """

    root: Path
    note: Note
    _seen: set[str] = field(default_factory=set)
    _folders: dict[Path, Path] = field(default_factory=dict)

    def steps(self, found: Line) -> Iterator[Step]:
        """Return the steps of a trajectory, in order; none if it is unusable."""
        place = RowContext(found.where, self.note)
        form: Form = "agentnet" if STEPS["agentnet"] in found.row else "agentnetbench"
        rows = found.row.get(STEPS[form])
        if not isinstance(rows, list):
            what = f"it has no list {STEPS[form]}"
            place.refuse("json-invalid", what, FILES.columns)
            return
        own = found.row.get("task_id")
        if not isinstance(own, str) or not own.strip():
            place.refuse("id-missing", f"task_id is {short(own)}", "a text")
            return
        if own in self._seen:
            what = f"a trajectory {short(own)} exists already"
            place.refuse("id-repeated", what, "an id of its own")
            return
        few = 0 < len(rows) <= MAX_STEPS
        if not few or not all(isinstance(row, dict) for row in rows):
            what = "a step is not an object" if few else f"it has {len(rows)} steps"
            place.refuse("steps-unusable", what, f"1 to {MAX_STEPS} JSON objects")
            return
        self._seen.add(own)
        rest = {key: value for key, value in found.row.items() if key != STEPS[form]}
        sources: list[dict[str, Any]] = [{"form": form, "task": rest, "step": row} for row in rows]
        names = [f"{own}/{number}" for number in range(len(rows))]
        place = RowContext(found.where, about(self.note, *names))
        done = [self._truth(source, name) for source, name in zip(sources, names, strict=True)]
        line = self._timeline(found, done, RowContext(own, place.note))
        instruction = self._instruction(found.row, place)
        episode = EpisodeBuilder(own, _tags(found, form), count=len(rows))
        for number, (name, source) in enumerate(zip(names, sources, strict=True)):
            shot = self._picture(found, source["step"])
            action = action_of(source, done[number]) if done[number] else None
            if action is None and done[number]:
                RowContext(name, about(self.note, name)).warn(
                    "action-inexpressible",
                    "the code does nothing, or is unreadable",
                    "calls of pyautogui or `computer`",
                    "add the code; until then the step has no action, but is judged",
                )
            media = {"screenshot": shot, "video": line.clip(number) if line else None}
            yield episode.step(name, instruction, media, size_of(shot), action, source)

    def _truth(self, source: Mapping[str, Any], name: str) -> Sequence[Action]:
        place = RowContext(name, about(self.note, name))
        try:
            truths = truths_of(source)
        except ValueError as error:
            place.refuse(
                "action-unusable",
                str(error),
                "calls of pyautogui or computer, or ground truth actions with types and parameters",
                "correct the row; until then the step is not judged; its text is never run",
            )
            return ()
        if reason := _alternatives_fault(source):
            place.warn(
                "alternative-unusable",
                reason,
                "lists of actions like the ground truth",
                "correct the row; the alternative is left out until then",
            )
        if reason := _recording_difference(source, truths):
            place.warn(
                "recorded-differs",
                reason,
                "the recorded action, or an alternative equal to it",
                "correct the row; until then the ground truth decides verdicts, and "
                "histories show the recorded action",
            )
        return truths[0]

    def _timeline(
        self, found: Line, done: Sequence[Sequence[Action]], place: RowContext
    ) -> Timeline | None:
        line = find_timeline(self.root, found.path.parent, done)
        if not isinstance(line, str):
            return line
        place.warn(
            "recording-unmatched",
            f"the recording next to it: {line}",
            "the recording that the trajectory was made from",
            "replace the recording; until then the steps have no clips",
        )
        return None

    def _instruction(self, row: Mapping[str, Any], place: RowContext) -> str:
        for name in _INSTRUCTIONS:
            value = row.get(name)
            if isinstance(value, str) and value:
                return value
        place.warn(
            "instruction-missing", "the trajectory states no task", " or ".join(_INSTRUCTIONS)
        )
        return ""

    def _picture(self, found: Line, row: Mapping[str, Any]) -> MediaRef | None:
        value = row.get("image")
        if not isinstance(value, str) or not value:
            return None
        if found.path not in self._folders:
            self._folders[found.path] = _pictures(found.path)
        return MediaRef("image", self._folders[found.path], value)


def _pictures(path: Path) -> Path:
    """Return the folder of pictures beside a file; on the Hub each of the two has one."""
    own = sorted(IMAGES, key=lambda name: name.removesuffix("_images") not in path.stem)
    folder = images(path, own)
    inner = folder / IMAGES[0]  # where `omnidata fetch` unpacks the zip that lies in there
    return inner if inner.is_dir() else folder


def _tags(found: Line, form: Form) -> dict[str, str]:
    completed = found.row.get("task_completed")
    tags = {
        "form": form,
        "part": found.path.stem if form == "agentnet" else "",
        "completed": str(completed).lower() if isinstance(completed, bool) else "",
    }
    return {tag: value for tag, value in tags.items() if value}


def read(data: Path, note: Note) -> Iterator[Step]:
    """Read trajectories; no picture is decoded.

    A step's `source` has `form`, "agentnet" or "agentnetbench"; `task`, the trajectory without its
    steps; and `step`, its untouched row. Its `action`, and so the history of later steps, is all
    that the step does, with its code for words.

    Args:
        data: a folder, with as many folders in it as they like, or a file.
        note: takes the findings.

    Yields:
        Steps in the order of the files, named `<task_id>/<position>`: the positions are dense, also
        where AgentNetBench's `step_num` are not.

    Raises:
        DataError: nothing of AgentNet is there.
    """
    reader = StepReader(data if data.is_dir() else data.parent, note)
    for line in FILES.rows(_find(data), note):
        yield from reader.steps(line)


def dump(source: LoadedDataset) -> Iterator[dict[str, Any]]:
    """Yield the trajectories of loaded data as they were in the files, in order.

    Args:
        source: data of AgentNet with all steps of each trajectory.

    Yields:
        A line of AgentNet, or a file of AgentNetBench.
    """
    row: dict[str, Any] = {}
    for step in source.steps:
        column = STEPS[step.source["form"]]
        if step.step_index == 0:
            if row:
                yield row
            row = {**step.source["task"], column: []}
        row[column].append(step.source["step"])
    if row:
        yield row
