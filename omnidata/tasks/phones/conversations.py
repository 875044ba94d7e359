"""OS-Atlas's test rows, a conversation each, as rows of a picture, an instruction and an action.

Source: OS-Copilot/OS-Atlas, `eval/data/ac_test.jsonl`, `ac_low_test.jsonl` and
`gui_odyssey_test.jsonl`. The user's message ends with the task and the history, the answer with the
action. A picture's path is that of the authors' machines; its name says the episode and the step.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

Row = Mapping[str, Any]

_TASK: Final = re.compile(r"\nTask: (.*?)(?:\nHistory:|\Z)", re.DOTALL)
_STEP: Final = " You need to: "
_ACTION: Final = re.compile(r"(?:\A|\n)actions:\s*+(\S[^\n]*+)", re.IGNORECASE)
_NAME: Final = re.compile(r"(?:episode_)?(\d{1,20})_(?:screenshot_)?(\d{1,6})\.\w{1,5}")
_ASKED: Final = ("human", "user")
_SETTING: Final = "system"
_SIGNS: Final = (b'"conversations"', b"actions:\\n", b"Task: ")


def is_conversation(head: bytes, of: Literal["apps", "episodes"]) -> bool:
    """Return whether rows are OS-Atlas's conversations.

    Args:
        head: the beginning of a file.
        of: "apps" for the prompt with OPEN_APP, AndroidControl's; "episodes" for the one with
            IMPOSSIBLE, GUI-Odyssey's. Those of other benchmarks have neither.
    """
    sign = {"apps": b": OPEN_APP", "episodes": b": IMPOSSIBLE"}[of]
    return sign in head and all(each in head for each in _SIGNS)


def as_row(row: Row) -> Row:
    r"""Return a row without its conversation; another row as it is.

    Examples:
        >>> asked = "Task: Share it. You need to: Tap.\nHistory: None"
        >>> said = "thoughts:\nTap.\nactions:\nCLICK [[1, 2]]"
        >>> turns = [{"from": "human", "value": f"...\n{asked}"}, {"from": "gpt", "value": said}]
        >>> found = as_row({"image": "/a/episode_7_screenshot_0.png", "conversations": turns})
        >>> found["goal"], found["step_instruction"], found["action"], found["episode_id"]
        ('Share it.', 'Tap.', 'CLICK [[1, 2]]', '7')
    """
    turns = row.get("conversations")
    if not isinstance(turns, list):
        return row
    spoken = [
        (turn.get("from", turn.get("role")), turn.get("value", turn.get("content")))
        for turn in turns
        if isinstance(turn, dict)
    ]
    texts = [(role, text) for role, text in spoken if isinstance(text, str) and role != _SETTING]
    asked = next((text for role, text in texts if role in _ASKED), "")
    answered = next((text for role, text in texts if role not in _ASKED), "")
    task, action = _TASK.search(asked), _ACTION.search(answered)
    goal, _, detail = task[1].strip().partition(_STEP) if task else ("", "", "")
    path = row.get("image")
    name = path.replace("\\", "/").rpartition("/")[2] if isinstance(path, str) else path
    found = _NAME.fullmatch(name) if isinstance(name, str) else None
    return {
        **row,
        "image": name,
        "goal": goal or None,
        "step_instruction": detail or None,
        "action": action[1].strip() if action else None,
        "episode_id": found[1] if found else None,
        "step": found[2] if found else None,
    }
