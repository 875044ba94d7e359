"""AndroidControl as JSON: the forms in which others prepare it, turned into its own records.

* An object per episode with `episode` and `step_check_pams`, as Qwen2.5-VL's evaluation and
  InfiGUI-R1 publish the test set: actions of `mobile_use`, with boxes that may be clicked.
* An object per episode with the features of a record as lists and `screenshot_path`, as
  AgentCPM-GUI's `process_ac.py` writes them, the accessibility trees as texts.
* An object per step, in the forms of `omnidata.tasks.phones.step_rows`.

A direction in OS-Atlas's texts and GUI-R1's columns is that of the content, as in the dataset
itself: of GUI-R1's 7,738 published rows of high level 902 scroll DOWN and 90 UP.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from omnidata.actions import Action
from omnidata.jsontext import as_name
from omnidata.loaders.files import Look, RowFiles
from omnidata.loaders.load import Note
from omnidata.loaders.row_files import head_of
from omnidata.tasks.phones import step_rows
from omnidata.tasks.phones.actions import read_call
from omnidata.tasks.phones.conversations import is_conversation
from omnidata.tasks.phones.step_rows import (
    IMAGE_KEYS,
    Box,
    Moment,
    WordSense,
    boxes_of,
    is_graded,
    is_of_odyssey,
    is_off_phones,
    single,
)
from omnidata.types import Step

Row = Mapping[str, Any]

LABELS: Final[WordSense] = "content"
_NAMES: Final = "click|long_press|scroll|open_app|input_text|navigate_(?:home|back)|wait"
_ATLAS: Final = "CLICK|LONG_PRESS|SCROLL|TYPE|OPEN_APP|PRESS_(?:HOME|BACK)|NAVIGATE_|WAIT"
_OWN: Final = re.compile(
    rf'\\?"action_type\\?"\s*+:\s*+\\?"(?:{_NAMES})\b|"action"\s*+:\s*+"(?:{_ATLAS})'
    rf'|"action"\s*+:\s*+"?+\{{\s*+\\?"action\\?"\s*+:'.encode()
)
_SAMPLED: Final = (b'"screenshot"', b'"step_instruction"', b'"action_type"')
_BOUNDS: Final = re.compile(r"bounds_in_screen \{([^{}]{0,200})\}")
_EDGE: Final = re.compile(r"(left|top|right|bottom): (-?\d{1,9})")


def _look(path: Path) -> Look:
    head = head_of(path)
    if b'"step_check_pams"' in head or (b'"screenshot_widths"' in head and b'"actions"' in head):
        return "known"
    if is_graded(head):
        return "other" if is_off_phones(head) or is_of_odyssey(path, head) else "known"
    if is_conversation(head, "apps") or all(sign in head for sign in _SAMPLED):
        return "known"
    pictures = any(b'"%s"' % key.encode() in head for key in IMAGE_KEYS[:3])
    own = pictures and _OWN.search(head)
    return "known" if own and not is_of_odyssey(path, head) else "other"


FILES: Final = RowFiles(
    "rows of a picture, an instruction and an action, or of episodes (step_check_pams)", _look
)


def read(
    data: Path,
    note: Note,
    *,
    low: bool,
    said: WordSense | None,
    worded: Callable[[Action], Action],
    tags_of: Callable[[str], dict[str, str]],
) -> Iterator[Step]:
    """Yield the steps of rows of JSON.

    Args:
        data: as the user named it.
        note: takes the findings.
        low: whether a step needs an instruction of its own.
        said: whose directions are, if the user says it.
        worded: returns an action as histories have it.
        tags_of: returns the tags of an episode.

    Raises:
        DataError: there are rows, and not one has an action.
    """
    reader = step_rows.Reader(
        note,
        low,
        LABELS,
        said,
        lambda call: worded(read_call(call)),
        "one of AndroidControl's actions",
        tags_of,
        _moments,
    )
    return reader.steps(FILES.rows(FILES.find(data), note), data)


def _printed_bounds(tree: object) -> list[Box]:
    """The bounds of windows and elements in a forest that was printed, in its order."""
    found: list[Box] = []
    for text in _BOUNDS.findall(tree) if isinstance(tree, str) else ():
        edges = {name: int(value) for name, value in _EDGE.findall(text)}
        found.append([edges.get(edge, 0) for edge in ("left", "top", "right", "bottom")])
    return found


def _item(row: Row, key: str, number: int) -> Any:
    values = row.get(key)
    return values[number] if isinstance(values, list) and 0 <= number < len(values) else None


def _moments(row: Row) -> tuple[str | None, list[Moment]]:
    whole = row.get("episode", row)
    actions = row.get("step_check_pams", row.get("actions"))
    if not isinstance(whole, dict) or not isinstance(actions, list):
        return single(row)
    name = as_name(_item(whole, "episode_id", 0) or whole.get("episode_id"))
    shots = "screenshot_paths" if "screenshot_paths" in whole else "screenshot_path"
    return name, [
        Moment(
            action if isinstance(action, dict) else {"action": action},
            str(number),
            _item(whole, "goal", 0) or whole.get("goal"),
            _item(whole, "step_instructions", number),
            _item(whole, shots, number),
            _item(whole, shots, len(actions)) if number == len(actions) - 1 else None,
            (
                row.get("width", _item(row, "screenshot_widths", number)),
                row.get("height", _item(row, "screenshot_heights", number)),
            ),
            action,
            boxes_of(action.get("candidate_bbox"))
            if isinstance(action, dict)
            else _printed_bounds(_item(row, "accessibility_tree", number)),
        )
        for number, action in enumerate(actions)
    ]
