"""A module with a builder for every registered task, made when it is imported.

`datasets` takes the one builder that a module defines, and its worker processes import that module
by its name: `omnidata.loaders.builders.<task>`, which begins with an import of this package, and so
is found in every process.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

from omnidata import registry

BUILDER = "TaskBuilder"
"""The name of the builder in its module."""


def module_of(task: str) -> str:
    """The module with the builder of a task; a dot in its name is no step into a package.

    Examples:
        >>> module_of("idm-single"), module_of("words.v2")
        ('omnidata.loaders.builders.idm-single', 'omnidata.loaders.builders.words%2Ev2')
    """
    return f"{__name__}.{task.replace('%', '%25').replace('.', '%2E')}"


class _Modules(MetaPathFinder, Loader):
    """Finds the modules, and makes them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What to make the module from, if a task has it."""
        if not fullname.startswith(f"{__name__}."):
            return None
        for task in registry.names():
            if module_of(task) == fullname:
                spec = ModuleSpec(fullname, self, origin=str(Path(__file__)), loader_state=task)
                spec.has_location = True  # `datasets` looks into the file of a builder
                return spec
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Put the builder of the task into the module."""
        from omnidata.loaders.builders import Builder

        assert module.__spec__ is not None
        task = registry.get_task(module.__spec__.loader_state)
        said = {"__module__": module.__name__, "__doc__": f"Builds {task.title}.", "task": task}
        setattr(module, BUILDER, type(BUILDER, (Builder,), said))


sys.meta_path.append(_Modules())
