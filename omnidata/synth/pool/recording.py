"""How a subtask is done: screens and actions, as an expert would record them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from omnidata.loaders.task_library import filled
from omnidata.synth.pool.catalogue import Ask, Keys, Pick, Press, Recipe
from omnidata.synth.pool.screens import APPS, CONTENT, FIELD, OK, VISIBLE, Controls, View

_WHEEL = 3
"""Entries that one turn of the wheel moves."""

Show = Callable[[View], tuple[str, Controls]]
"""Draws a view and keeps its picture; the relative path, and what can be clicked."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A subtask's trajectory (OmniBench, appendix C.2).

    Attributes:
        observations: pictures by relative path, one before each action.
        actions: `function`, `args`, `rect`, `description`, `thought`, `control_text`, `status`;
            the last has no function and the status FINISH.
    """

    observations: tuple[str, ...]
    actions: tuple[Mapping[str, Any], ...]


def record(
    recipe: Recipe, binding: Mapping[str, str], entries: Sequence[str], show: Show
) -> Recording:
    """Do the subtask.

    Args:
        recipe: what to do.
        binding: its parameters.
        entries: what the app's window lists.
        show: draws.
    """
    expert = _Expert(filled(recipe.template, binding), show)
    expert.click(recipe.app, double=True)
    running = any(kind.endswith("_in_processing") for kind in recipe.inputs)
    expert.view = View(recipe.app, "The open file" if running else "", tuple(entries))
    for act in recipe.acts:
        if isinstance(act, Ask):
            expert.ask(act, filled(act.value, binding))
        elif isinstance(act, Press):
            expert.click(act.button)
            expert.see(says=act.says)
        elif isinstance(act, Pick):
            expert.pick(filled(act.entry, binding), double=act.double)
        else:
            expert.press(act)
    return expert.finish()


class _Expert:
    def __init__(self, goal: str, show: Show) -> None:
        self.view = View()
        self._goal = goal
        self._show = show
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

    def finish(self) -> Recording:
        self._keep(self._show(self.view)[0], "", {}, "FINISH", "the subtask is done")
        return Recording(tuple(self._observations), tuple(self._actions))

    def _act(self, function: str, args: Mapping[str, Any], control: str, what: str) -> None:
        path, controls = self._show(self.view)
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
