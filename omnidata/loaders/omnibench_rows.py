"""One row of OmniBench's metadata -> a subtask or a trajectory, with a finding for every doubt.

The forms are those of Appendix C and of the examples that the authors gave their reviewers: keys
that are left out, three dots where the example breaks off, one more observation than actions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from omnidata.actions import Box
from omnidata.desktop import FUNCTIONS, Call, Click, read_call
from omnidata.graph_checks import id_of
from omnidata.loaders.omnibench_files import Line, Row
from omnidata.loaders.omnibench_library import Subtask, Trajectory
from omnidata.loaders.place import Place, short

MAX_ACTIONS = 2000
"""Of one trajectory; every step holds the history before it, so length costs its square."""

DOTS = "..."
"""Where an example breaks off."""

_FARTHEST = 1e9
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_UNUSABLE = "mend the action; the step has no target until then"


def identity(row: Row, *keys: str) -> str | None:
    """The first of these keys that names the row: a text that is not empty, or a whole number."""
    named = (id_of(row.get(key)) for key in keys)
    return next((own for own in named if own and own.strip()), None)


def ids_of(value: object) -> tuple[str, ...] | None:
    """A list of ids, texts or whole numbers; None for anything else."""
    if not isinstance(value, list):
        return None
    found = [own for own in map(id_of, value) if own is not None]
    return tuple(found) if len(found) == len(value) else None


def text_of(row: Row, *keys: str) -> str:
    """The first of these keys that holds a text; empty if none does."""
    return next((row[key] for key in keys if isinstance(row.get(key), str)), "")


def read_subtask(line: Line, place: Place) -> Subtask | None:
    """The subtask of a row; None for one without id or template. Its evaluation is not here."""
    row = line.row
    own, template = identity(row, "id", "subtask_id"), row["instruction_template"]
    if own is None:
        place.refuse("id-missing", "the subtask has no id", "id, a text")
        return None
    if not isinstance(template, str):
        place.refuse("column-wrong", f"instruction_template is {short(template)}", "a text")
        return None
    if not text_of(row, "application"):
        place.warn(
            "application-missing",
            f"application is {short(row.get('application'))}",
            "the application's name",
            "add it; tasks with the subtask cannot be scored until then",
        )
    return Subtask(
        id=own,
        template=template,
        application=text_of(row, "application"),
        parameters=tuple(_parameters(row, template, place)),
        os=text_of(row, "OS", "os"),
        inputs=_names(row, "input_resources", place),
        outputs=_names(row, "output_resources", place),
        source=row,
    )


def _parameters(row: Row, template: str, place: Place) -> Iterator[Mapping[str, Any]]:
    """The bindings; one alone need not be in a list."""
    value = row.get("available_parameters")
    given = [value] if isinstance(value, Mapping) else [] if value is None else value
    if not isinstance(given, list) or not all(isinstance(binding, Mapping) for binding in given):
        place.warn(
            "parameters-unusable",
            f"available_parameters is {short(value)}",
            "a list of objects, each a value for every place of the template",
        )
        return
    wanted = set(_PLACEHOLDER.findall(template))
    for number, binding in enumerate(given):
        if missing := sorted(wanted - binding.keys()):
            place.warn(
                "parameter-missing",
                f"binding {number} has no {', '.join(missing)}",
                "a value for every place of the template",
            )
        yield binding


def _names(row: Row, key: str, place: Place) -> tuple[str, ...]:
    value = row.get(key)
    if value is None:
        return ()
    if isinstance(value, list) and all(isinstance(name, str) and name for name in value):
        return tuple(value)
    place.warn("resources-unusable", f"{key} is {short(value)}", "a list of names")
    return ()


def read_trajectory(line: Line, place: Place) -> Trajectory | None:
    """The trajectory of a row; None for one without id or actions."""
    row = line.row
    own, actions = identity(row, "trajectory_id", "id"), row["actions"]
    if own is None:
        place.refuse("id-missing", "the trajectory has no id", "trajectory_id, a text")
        return None
    if not isinstance(actions, list):
        place.refuse("column-wrong", f"actions is {short(actions)}", "a list of actions")
        return None
    if len(actions) > MAX_ACTIONS:
        place.refuse(
            "actions-many", f"the row has {len(actions)} actions", f"at most {MAX_ACTIONS}"
        )
        return None
    found = Trajectory(
        id=own,
        instruction=text_of(row, "instruction", "task_instruction"),
        observations=_observations(row, len(actions), place),
        actions=tuple(action if isinstance(action, Mapping) else {} for action in actions),
        subtask_id=identity(row, "subtask_id") or "",
        task_id=identity(row, "task_id") or "",
        order=_order(row, place),
        intent=text_of(row, "intent", "task_intent"),
        source=row,
    )
    if not found.instruction:
        place.warn("instruction-missing", "the trajectory has no instruction", "a text")
    if not found.subtask_id and not found.task_id:
        place.warn("owner-missing", "it names neither subtask nor task", "subtask_id or task_id")
    for number, action in enumerate(found.actions):
        _check_action(action, Place(f"{own}/{number} ({place.where})", place.note))
    return found


def _observations(row: Row, actions: int, place: Place) -> tuple[str, ...]:
    """The pictures' names; empty where a picture has none."""
    value = row.get("observations")
    names = value if isinstance(value, list) else []
    if len(names) - actions not in (0, 1):
        place.warn(
            "observations-differ",
            f"there are {len(names)} observations and {actions} actions",
            "one before every action, and perhaps one after the last",
            "add the missing ones; steps without one have no screenshot until then",
        )
    unusable = [short(name) for name in names if not isinstance(name, str)]
    if unusable:
        place.warn("observation-unusable", f"an observation is {unusable[0]}", "a picture's path")
    return tuple(name if isinstance(name, str) and name != DOTS else "" for name in names)


def _order(row: Row, place: Place) -> tuple[str, ...]:
    value = row.get("topological_order")
    order = () if value is None else ids_of(value)
    if order is None:
        place.warn("order-unusable", f"topological_order is {short(value)}", "a list of node ids")
    return order or ()


def call_of(action: Mapping[str, Any]) -> Call | None:
    """What an action of a trajectory does; None for one that cannot be read."""
    try:
        return _call(action)
    except ValueError:
        return None


def _call(action: Mapping[str, Any]) -> Call:
    if "function" not in action:
        raise ValueError("the action names no function")
    return read_call(action["function"], action.get("args"))


def rect_of(action: Mapping[str, Any]) -> Box | None:
    """Where an action's control is, in pixels of the screenshot; None if that is not said."""
    edges = action.get("rect")
    if not isinstance(edges, list | tuple) or len(edges) != 4:
        return None
    if not all(isinstance(edge, int | float) and not isinstance(edge, bool) for edge in edges):
        return None
    if not all(abs(edge) <= _FARTHEST for edge in edges):  # False for NaN too
        return None
    left, top, right, bottom = edges
    return Box(left, top, right, bottom, "px") if left <= right and top <= bottom else None


def control_of(action: Mapping[str, Any]) -> str:
    """The text of an action's control; empty if that is not said."""
    return text_of(action, "control_text").strip()


def _check_action(action: Mapping[str, Any], place: Place) -> None:
    try:
        call = _call(action)
    except ValueError as error:
        functions = ", ".join(filter(None, FUNCTIONS))
        place.warn("action-unusable", str(error), f"{functions}, and their arguments", _UNUSABLE)
        return
    rect = action.get("rect")
    if rect is not None and rect_of(action) is None:
        place.warn(
            "rect-unusable",
            f"rect is {short(rect)}",
            "[left, top, right, bottom] in pixels, left <= right and top <= bottom",
        )
    elif isinstance(call, Click) and rect is None:
        place.warn(
            "click-without-rect",
            "nobody says where the click goes",
            "rect, [left, top, right, bottom] in pixels",
            "add it; the step is not judged until then",
        )
