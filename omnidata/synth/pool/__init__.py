"""A sample pool of subtasks for composition: made-up desktop apps with drawn screens.

What OmniBench's pool has (appendix C): subtasks with resources and bindings, a trajectory for every
binding, an evaluation function as text. Nothing is downloaded, nothing is anybody's.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from omnidata.loaders.task_library import (
    Library,
    Subtask,
    Trajectory,
    filled,
    places,
    write_library,
)
from omnidata.media.encoding import png
from omnidata.storage import atomic_write, wrap_os_error
from omnidata.synth.folder import SynthStaging
from omnidata.synth.pool.catalogue import INTENTS, RECIPES, Recipe, Values, evaluation
from omnidata.synth.pool.recording import record
from omnidata.synth.pool.screens import APPS, SIZE, Controls, View, draw

__all__ = ["REPORT", "make_pool"]

REPORT = "pool.json"
_PICTURES = "observations"
_MADE_BY = ("omnidata", "isal", "pillow")


class PoolStaging(SynthStaging):
    """A pool in the making."""

    noun = "a pool"
    work = "making a pool"
    report = REPORT
    contents = frozenset(
        {REPORT, _PICTURES, "subtasks.jsonl", "subtask_trajectories.jsonl", "evaluations"}
    )


def make_pool(
    out: Path, *, seed: int = 0, progress: Callable[[int, int], None] | None = None
) -> Mapping[str, Any]:
    """Write the sample pool.

    Equal seeds make equal bytes with the same versions of omnidata, Pillow and isal on
    the same kind of machine.

    Args:
        out: the folder; new, empty, or what the same call made before.
        seed: of names, colours and bindings.
        progress: called with the subtasks that are done and their number.

    Returns:
        The report, as it lies in `pool.json`.

    Raises:
        UsageError: `out` holds something else.
        DataError: `out` holds a pool of another seed, or another process is writing there.
    """
    plan = {
        "settings": {"seed": seed, "size": list(SIZE)},
        "made_by": {name: version(name) for name in _MADE_BY},
    }
    staging = PoolStaging(out, plan=plan)
    if report := staging.finished():
        return report
    with staging, wrap_os_error(staging.path):
        library = _made(staging.path, seed, progress or (lambda done, total: None))
        write_library(library, staging.path, pictures=False)
        made = _report(library, len(list((staging.path / _PICTURES).iterdir())))
        staging.publish(made)
    return {**staging.plan, **made}


def _made(folder: Path, seed: int, progress: Callable[[int, int], None]) -> Library:
    """Subtasks and trajectories; their pictures are written to the folder."""
    values, album = Values(seed), _Album(folder, seed)
    subtasks: dict[str, Subtask] = {}
    trajectories: list[Trajectory] = []
    for number, recipe in enumerate(RECIPES):
        progress(number, len(RECIPES))
        subtask = _subtask(recipe, values, seed)
        subtasks[subtask.id] = subtask
        trajectories += _trajectories(recipe, subtask, values, album)
    return Library(folder, subtasks, trajectories)


def _subtask(recipe: Recipe, values: Values, seed: int) -> Subtask:
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
    return Subtask(
        id=str(name),
        template=recipe.template,
        application=recipe.app,
        parameters=tuple(bindings),
        os="Windows",
        inputs=recipe.inputs,
        outputs=recipe.outputs,
        evaluation=evaluation(recipe, parameters),
        source=row,
    )


def _trajectories(
    recipe: Recipe, subtask: Subtask, values: Values, album: _Album
) -> Iterator[Trajectory]:
    """One for every binding."""
    entries = values.listed(APPS[recipe.app].listed)
    for number, binding in enumerate(subtask.parameters):
        done = record(recipe, binding, entries, album.show)
        yield Trajectory(
            id=f"{subtask.id}({number})",
            instruction=filled(recipe.template, binding),
            observations=done.observations,
            actions=done.actions,
            subtask_id=subtask.id,
        )


class _Album:
    """Draws views; equal pictures are one file, which is called after what it shows."""

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


def _report(library: Library, pictures: int) -> dict[str, Any]:
    subtasks = library.subtasks.values()
    return {
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
