"""A sample pool of subtasks for composition: invented desktop apps with drawn screens.

As OmniBench's pool (appendix C), it has subtasks with resources and bindings, a trajectory for
every binding, and an evaluation function as text. Nothing is downloaded.
"""

from __future__ import annotations

import hashlib
import re
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from omnidata.loaders.task_library import (
    Library,
    Subtask,
    Trajectory,
    fill,
    places,
    write_library,
)
from omnidata.media import png
from omnidata.storage import atomic_write, wrap_os_error
from omnidata.synth.folder import SynthStaging
from omnidata.synth.pool.catalogue import INTENTS, RECIPES, Ask, Keys, Pick, Press, Recipe, Values
from omnidata.synth.pool.screens import (
    APPS,
    CONTENT,
    FIELD,
    OK,
    SIZE,
    VISIBLE,
    Controls,
    View,
    draw,
)
from omnidata.types import Progress

__all__ = ["REPORT", "make_pool"]

REPORT = "pool.json"
_PICTURES = "observations"
_MADE_BY = ("omnidata", "isal", "pillow")
_WHEEL = 3
"""Entries of a list that one turn of the wheel moves."""


class PoolStaging(SynthStaging):
    """The staging folder of a pool."""

    noun = "a pool"
    work = "making a pool"
    report = REPORT
    contents = frozenset(
        {REPORT, _PICTURES, "subtasks.jsonl", "subtask_trajectories.jsonl", "evaluations"}
    )


def make_pool(out: Path, *, seed: int = 0, progress: Progress | None = None) -> Mapping[str, Any]:
    """Write the sample pool.

    Equal seeds make equal bytes, and pictures of equal pixels, with the same versions of omnidata
    and Pillow on the same kind of machine.

    Args:
        out: a new or empty folder, or the result of the same call.
        seed: of names, colours and bindings.
        progress: called with the finished subtasks and their number.

    Returns:
        The report, as in `pool.json`.

    Raises:
        UsageError: `out` has other content.
        DataError: `out` holds a pool of another seed, or another process is writing there.
    """
    plan = {
        "settings": {"seed": seed, "size": list(SIZE)},
        "made_by": {name: version(name) for name in _MADE_BY},
    }
    staging = PoolStaging(out, plan=plan)
    if report := staging.earlier_report():
        return report
    with staging, wrap_os_error(staging.path):
        library = _make_library(staging.path, seed, progress or (lambda done, total: None))
        write_library(library, staging.path, pictures=False)
        pictures = len(list((staging.path / _PICTURES).iterdir()))
        subtasks = library.subtasks.values()
        made = {
            "made": {
                "subtasks": len(library.subtasks),
                "bindings": sum(len(subtask.parameters) for subtask in subtasks),
                "trajectories": len(library.trajectories),
                "steps": sum(len(done.actions) for done in library.trajectories),
                "pictures": pictures,
                "apps": dict(Counter(subtask.application for subtask in subtasks)),
                "categories": dict(Counter(APPS[s.application].category for s in subtasks)),
                "intents": dict(
                    Counter(intent for s in subtasks for intent in s.source["task_intents"])
                ),
            }
        }
        return staging.publish(made)


def _make_library(folder: Path, seed: int, progress: Progress) -> Library:
    values, album = Values(seed), _Album(folder, seed)
    subtasks: dict[str, Subtask] = {}
    trajectories: list[Trajectory] = []
    for number, recipe in enumerate(RECIPES):
        progress(number, len(RECIPES))
        parameters = places(recipe.template)
        bindings = values.bindings(recipe.template, parameters)
        name = uuid.uuid5(uuid.NAMESPACE_URL, f"omnidata pool {seed} {recipe.template}")
        row = {
            "id": str(name),
            "instruction_template": recipe.template,
            "application": recipe.app,
            "available_parameters": bindings,
            "OS": "Windows",
            "input_resources": list(recipe.inputs),
            "output_resources": list(recipe.outputs),
            "category": APPS[recipe.app].category,
            "task_intents": [INTENTS[key] for key in recipe.intents],
        }
        subtask = Subtask(
            id=str(name),
            template=recipe.template,
            application=recipe.app,
            parameters=tuple(bindings),
            os="Windows",
            inputs=recipe.inputs,
            outputs=recipe.outputs,
            evaluation=_evaluation(recipe, parameters),
            source=row,
        )
        subtasks[subtask.id] = subtask
        trajectories += _trajectories(recipe, subtask, values, album)
    return Library(folder, subtasks, trajectories)


def _trajectories(
    recipe: Recipe, subtask: Subtask, values: Values, album: _Album
) -> Iterator[Trajectory]:
    entries = values.entries(APPS[recipe.app].listed)
    for number, binding in enumerate(subtask.parameters):
        expert = _Expert(fill(recipe.template, binding), album)
        expert.click(recipe.app, double=True)
        running = any(kind.endswith("_in_processing") for kind in recipe.inputs)
        expert.view = View(recipe.app, "The open file" if running else "", tuple(entries))
        for act in recipe.acts:
            if isinstance(act, Ask):
                expert.ask(act, fill(act.value, binding))
            elif isinstance(act, Press):
                expert.click(act.button)
                expert.see(says=act.says)
            elif isinstance(act, Pick):
                expert.pick(fill(act.entry, binding), double=act.double)
            else:
                expert.press(act)
        observations, actions = expert.finish()
        yield Trajectory(
            id=f"{subtask.id}({number})",
            instruction=fill(recipe.template, binding),
            observations=observations,
            actions=actions,
            subtask_id=subtask.id,
        )


class _Album:
    """Draws views; equal pictures are one file, named after its content."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._seed = seed
        self._shown: dict[View, tuple[str, Controls]] = {}
        (folder / _PICTURES).mkdir(exist_ok=True)

    def show(self, view: View) -> tuple[str, Controls]:
        if view not in self._shown:
            screen = draw(view, seed=self._seed)
            data = png(np.asarray(screen.image))
            path = f"{_PICTURES}/{hashlib.sha256(data).hexdigest()[:16]}.png"
            with atomic_write(self._folder / path, durable=False) as file:
                file.write(data)
            self._shown[view] = path, screen.controls
        return self._shown[view]


class _Expert:
    """Does a subtask and records the screen before each action (OmniBench, appendix C.2)."""

    def __init__(self, goal: str, album: _Album) -> None:
        self.view = View()
        self._goal = goal
        self._album = album
        self._observations: list[str] = []
        self._actions: list[Mapping[str, Any]] = []

    def see(self, **changes: Any) -> None:
        self.view = replace(self.view, **changes)

    def click(self, control: str, *, double: bool = False) -> None:
        how = "double-click" if double else "click"
        self._act(
            "click_input", {"button": "left", "double": double}, control, f"{how} '{control}'"
        )

    def ask(self, act: Ask, value: str) -> None:
        self.click(act.button)
        self.see(question=act.question)
        self._act("keyboard_input", {"keys": value}, FIELD, f"type '{value}' into the field")
        self.see(typed=value)
        self.click(OK)
        opened = value if "_path}" in act.value else self.view.file
        self.see(question="", typed="", file=opened, says=f"{act.button}: {value}")

    def pick(self, entry: str, *, double: bool) -> None:
        place = self.view.entries.index(entry)
        while place >= self.view.first + VISIBLE:
            self._act("wheel_mouse_input", {"wheel_dist": -_WHEEL}, CONTENT, "scroll down the list")
            self.see(first=min(self.view.first + _WHEEL, len(self.view.entries) - VISIBLE))
        self.click(entry, double=double)
        self.see(chosen=entry)

    def press(self, act: Keys) -> None:
        self._act("keyboard_input", {"keys": act.keys}, CONTENT, f"press the keys '{act.keys}'")
        self.see(says=act.says)

    def finish(self) -> tuple[tuple[str, ...], tuple[Mapping[str, Any], ...]]:
        """Pictures by relative path, and as many actions; the last says that all is done."""
        self._keep(self._album.show(self.view)[0], "", {}, "FINISH", "the subtask is done")
        return tuple(self._observations), tuple(self._actions)

    def _act(self, function: str, args: Mapping[str, Any], control: str, what: str) -> None:
        path, controls = self._album.show(self.view)
        rect = list(controls[control])
        self._keep(path, function, args, "CONTINUE", what, rect=rect, control_text=control)

    def _keep(
        self, path: str, function: str, args: Mapping[str, Any], status: str, what: str, **more: Any
    ) -> None:
        where = APPS[self.view.app].name if self.view.app else "The desktop"
        step = len(self._actions)
        action = {
            "step": step,
            "function": function,
            "args": dict(args),
            **more,
            "description": f"{where} is on the screen. I {what}."
            if function
            else f"{where} shows that {what}.",
            "thought": f"To fulfil '{self._goal}', I need to {what}."
            if function
            else f"'{self._goal}' is fulfilled.",
            "status": status,
        }
        self._observations.append(path)
        self._actions.append(action)


# Evaluation functions of the sample pool, as text in the paper's form; nothing here runs them.

_HEAD = """\
from collections import namedtuple

EvalResult = namedtuple('EvalResult', ['success', 'message', 'progress'])

def evaluate_agent_task_completion({parameters}) -> EvalResult:
"""
_CHECK = """\
    if not {call}:
        return EvalResult(False, 'Subtask execution failed: {what} is missing.', {done}/{total})

"""
_LAST = "    return EvalResult(True, 'Subtask completed successfully', {total}/{total})\n"
_ONE_PLACE = re.compile(r"\{(\w+)\}")


def _evaluation(recipe: Recipe, places: Sequence[str]) -> str:
    """Follow OmniBench, appendix C.3."""
    calls = [("check_mouse_clicks", repr(recipe.app), f"the click on {recipe.app}")]
    for act in recipe.acts:
        if isinstance(act, Ask):
            calls.append(("check_mouse_clicks", repr(act.button), f"the click on {act.button}"))
            calls.append(("check_keyboard_types", _text(act.value), act.question.lower()))
        elif isinstance(act, Press):
            calls.append(("check_mouse_clicks", repr(act.button), f"the click on {act.button}"))
        elif isinstance(act, Pick):
            calls.append(("check_mouse_clicks", _text(act.entry), "the choice in the list"))
        else:
            calls.append(("check_keyboard_types", repr(act.keys), f"the shortcut {act.keys}"))
    body = "".join(
        _CHECK.format(call=f"{check}(text={text})", what=what, done=number, total=len(calls))
        for number, (check, text, what) in enumerate(calls)
    )
    head = _HEAD.format(parameters=", ".join(f"{place}: str" for place in places))
    return head + body + _LAST.format(total=len(calls))


def _text(value: str) -> str:
    """Return a Python expression for a text with places."""
    alone = _ONE_PLACE.fullmatch(value)
    if alone:
        return alone[1]
    return ("f" if _ONE_PLACE.search(value) else "") + repr(value)
