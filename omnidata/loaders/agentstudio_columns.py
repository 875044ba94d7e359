"""The Hub's form of AgentStudio's rows -> the form that the authors' files have.

On the Hub, images are decoded and their names stand in columns of their own (`image_path`,
`obs_before_path`, `obs_after_path`), and the actions of a trajectory are a dict of columns. Columns
have one type, so `metadata` has all keys of all rows there, null where a row lacks one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

Row = Mapping[str, Any]
Form = Literal["groundui", "idm-single", "trajectory"]

IMAGES = ("image", "obs_before", "obs_after")
_BOX = ("x", "y", "width", "height")


def form(row: Row) -> Form | None:
    """Which benchmark's columns a row has; IDM-Multiple and CriticBench have the same.

    Examples:
        >>> form({"actions": [], "action_space": [], "is_success": True})
        'trajectory'
        >>> form({"text": ""}) is None
        True
    """
    keys = {key.removesuffix("_path") for key in row}
    if {"actions", "action_space"} <= keys:
        return "trajectory"
    if {"operation", "action_space", "obs_before"} <= keys:
        return "idm-single"
    if {"image", "bbox", "resolution"} <= keys:
        return "groundui"
    return None


def is_columnwise(row: Row) -> bool:
    """Whether a row has the Hub's form."""
    return isinstance(row.get("actions"), Mapping) or any(
        f"{key}_path" in held or isinstance(held.get(key), Mapping)
        for held in (row, *_actions(row))
        for key in IMAGES
    )


def _actions(row: Row) -> list[Row]:
    actions = row.get("actions")
    if not isinstance(actions, list):
        return []
    return [action for action in actions if isinstance(action, Mapping)]


def rezip(row: Row) -> dict[str, Any]:
    """The row in the form that the authors' files have, without the images.

    Raises:
        ValueError: the columns of the actions are not lists of one length.

    Examples:
        >>> columns = {"operation": ["click"], "obs_before_path": ["x/images/a/1.png"]}
        >>> rezip({"actions": columns, "action_space": ["click"]})["actions"]
        [{'operation': 'click', 'obs_before': 'a/1.png'}]
    """
    plain = _plain(row)
    actions = row.get("actions")
    if isinstance(actions, Mapping):
        lengths = {len(v) if isinstance(v, list) else -1 for v in actions.values()}
        if len(lengths) > 1 or -1 in lengths:
            raise ValueError("the columns of its actions are not lists of one length")
        actions = [
            dict(zip(actions, values, strict=True))
            for values in zip(*actions.values(), strict=True)
        ]
    if isinstance(actions, list):
        plain["actions"] = [_plain(a) if isinstance(a, Mapping) else a for a in actions]
    return plain


def _plain(row: Row) -> dict[str, Any]:
    """A row or an action, without what only the Hub's form has."""
    plain = {}
    for key, value in row.items():
        name = key.removesuffix("_path")
        if name in IMAGES:
            if key == name and f"{name}_path" not in row:
                plain[name] = _name(value.get("path") if isinstance(value, Mapping) else value)
            elif key != name:
                plain[name] = _name(value)
        elif key == "metadata" and isinstance(value, Mapping):
            plain[key] = {k: v for k, v in value.items() if v is not None}
        elif key == "bbox" and isinstance(value, Mapping):
            plain[key] = dict(value) if any(value.get(k) is not None for k in _BOX) else None
        else:
            plain[key] = value
    return plain


def _name(value: Any) -> Any:
    """The path below `images`; the Hub's has the folders above it too."""
    if not isinstance(value, str):
        return value
    _, found, below = f"/{value}".partition("/images/")
    return below if found and below else value
