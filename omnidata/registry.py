"""All tasks by name: ours and those of other distributions.

A task is an entry point of the group `omnidata.tasks`: a callable `(name: str, options:
Mapping[str, str]) -> Task`, as the class of a task derived from `omnidata.tasks.base.Benchmark` is.
Ours are declared in our own `pyproject.toml` and found in the same way. An error in a task of
another distribution names the distribution, the line, and the data or step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final, cast

from omnidata.actions import Action
from omnidata.errors import OmnidataError, UsageError, suggestion
from omnidata.files import staying_in
from omnidata.mirror import local
from omnidata.plugins import Blame, Kind, Result, origin_of, versions_of
from omnidata.types import LoadedDataset, Message, Step, Target, Task

TASKS = Kind(
    "omnidata.tasks",
    "task",
    # One that says nothing of why an answer is wrong is explained by its actions and values.
    tuple(name for name in vars(Task) if not name.startswith("_") and name != "explain"),
    "omnidata.tasks.base.Benchmark",
)


@cache  # our own distribution stays what it is while the process runs
def _ours() -> Mapping[str, EntryPoint]:
    try:
        points = distribution("omnidata").entry_points
    except PackageNotFoundError:
        return {}
    return {point.name: point for point in points.select(group=TASKS.group)}


def is_ours(name: str) -> bool:
    """Return whether the task is part of omnidata."""
    return name in _ours()


def plugin_names() -> list[str]:
    """Return the tasks of other distributions in order, without running their code."""
    return [name for name in TASKS.names() if not is_ours(name)]


def plugin_versions(name: str) -> dict[str, str]:
    """Return the distributions of a task with their versions; empty for tasks of omnidata."""
    return {} if is_ours(name) else versions_of(TASKS.group, name)


def names() -> list[str]:
    """Return all tasks in order, without running their code."""
    return sorted(_ours().keys() | set(TASKS.names()))


def benchmarks() -> list[str]:
    """Return the tasks with their own data, in order; tasks of others count as such."""
    return [name for name in names() if not (is_ours(name) and get_task(name).asks_about)]


def working() -> Iterator[tuple[str, Task]]:
    """Yield all tasks by name, without options; broken plug-ins are skipped."""
    for name in names():
        with suppress(OmnidataError):
            yield name, get_task(name)


def episode_tree_reader() -> str:
    """Return the task that reads the trees of the demo, `segment` and `synth`; ours first.

    Raises:
        UsageError: no installed task reads them.
    """
    readers = [name for name, task in working() if task.reads_episode_tree]
    if not readers:
        raise UsageError("no task reads trees of episodes", remedy=_REINSTALL)
    return min(readers, key=lambda name: not is_ours(name))


def find(name: str, options: Mapping[str, str] | None = None) -> Task | None:
    """Return the task of a name with its options; None if there is none.

    A name of ours is ours, even if a distribution has it too.

    Args:
        name: as in `omnidata evaluate NAME`.
        options: as given with `-T key=value`.

    Raises:
        UsageError: an option has an unknown name or value, or the distribution of the task is
            broken.
    """
    if is_ours(name):
        return cast("Task", _ours()[name].load()(name, options or {}))
    brought: Task | None = TASKS.make(name, name, options or {}, where=name)
    if brought is None:
        return None
    return cast("Task", PluginTask(brought, Blame(origin_of(TASKS.group, name))))


def get_task(name: str, options: Mapping[str, str] | None = None) -> Task:
    """Return the task of a name with its options.

    Args:
        name: one of `names()`.
        options: as given with `-T key=value`.

    Raises:
        UsageError: as `find`, or the task is unknown.
    """
    found = find(name, options)
    if found is None:
        known = names()
        raise UsageError(
            f'unknown task "{name}"',
            expected=f"one of {', '.join(known)}",
            remedy=(suggestion(name, known) or _LIST) if _ours() else _REINSTALL,
        )
    return found


_LIST = "name one of these; `omnidata info` describes them"
_REINSTALL = "reinstall omnidata: the installed package declares no task"


def _staying(data: Path, task: str) -> AbstractContextManager[None]:
    return staying_in(data)


def _id(step: Step) -> str:
    return step.sample_id


_CALLED_FOR: Mapping[str, Callable[[Any], str]] = {
    "action_log": str,
    "application": _id,
    "ask_about": lambda source: str(source.root),
    "diagram": lambda source: str(source.root),
    "named": _id,
    "together": lambda steps: f"{len(steps)} steps",
    "log_difference": _id,
    "succeeded": lambda steps: str(steps[0].episode),
    "prompt": _id,
    "target": _id,
    "read": lambda text: f"the answer {text[:60]!r}",
}
"""Functions of a task that take what they are called for first, and how messages name that."""

TARGET: Final = Result(
    lambda found: found is None or isinstance(found, Target),
    "Target(text, template, points), or None if there is no right answer; a text alone is what "
    "`answer` gives",
)
ANSWER: Final = Result(
    lambda found: found is None or isinstance(found, str),
    "the right answer as text, or None if there is none",
)
STEPS: Final = Result(
    lambda found: isinstance(found, Iterable),
    "the steps (omnidata.types.Step), as a generator that yields them or in a list",
)
STEP: Final = Result(
    lambda found: found is None or isinstance(found, Step),
    "a Step (omnidata.types), or None for a row without a step",
)
_GIVES: Mapping[str, Result] = {
    "named": Result(lambda found: found is None or isinstance(found, Step), "the Step, or None"),
    "prompt": Result(
        lambda found: isinstance(found, tuple) and all(isinstance(one, Message) for one in found),
        'a tuple of Message (omnidata.types), as (Message("user", (Part("text", "..."),)),)',
    ),
    "log_difference": Result(
        lambda found: found is None or hasattr(found, "column"),
        "a Difference (omnidata.tasks.log_rows), or None if there is none",
    ),
    "target": TARGET,
    "read": Result(
        lambda found: found is None or isinstance(found, Action),
        "an Action (omnidata.actions), or None if the text is not an action",
    ),
}
"""What some of them are to give."""


@dataclass(frozen=True, slots=True)
class PluginTask:
    """The task as it is, but for what it raises.

    Attributes:
        task: of the distribution.
        blame: calls its code.
        reading: around a look at the data, given them and the task's name; nothing outside the data
            is opened.
    """

    task: Task
    blame: Blame
    reading: Callable[[Path, str], AbstractContextManager[None]] = _staying

    def __getattr__(self, name: str) -> Any:
        """Whatever else the task has; what it calls is called for a step or for data."""
        if name in ("task", "blame", "reading") or name.startswith("__"):
            raise AttributeError(name)
        found, where = getattr(self.task, name), _CALLED_FOR.get(name)
        if where is None:
            return found
        result = _GIVES.get(name)

        def call(first: Any, *others: Any, **options: Any) -> Any:
            made = self.blame.call(found, where(first), first, *others, **options)
            if result is None:
                return made
            function = f"{self.blame.origin} fails: `{name}` of {self.task.name}"
            return result.of(made, function, where(first))

        return call

    def load(self, data: Path, **options: Any) -> LoadedDataset:
        """Read the dataset's annotations, and nothing outside the data."""
        data = local(data)
        with self.reading(data, self.task.name):
            found: LoadedDataset = self.blame.call(self.task.load, str(data), data, **options)
        return found

    def detect(self, data: Path) -> bool | None:
        """Whether rows of the task are there."""
        data = local(data)
        with staying_in(data):
            found: bool | None = self.blame.call(self.task.detect, str(data), data)
        return found

    def fingerprint(self, data: Path) -> str:
        """SHA-256 over the annotations."""
        data = local(data)
        with self.reading(data, self.task.name):
            found: str = self.blame.call(self.task.fingerprint, str(data), data)
        return found

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """The rule of that name."""
        where = f"baseline:{name}"
        rule = self.blame.call(self.task.baseline, where, name, steps, options)
        return lambda step: str(self.blame.call(rule, step.sample_id, step))

    def spelling(self, tag: str, value: str) -> str:
        """What the spellings of a tag's value have in common."""
        return str(self.blame.call(self.task.spelling, f"{tag}={value}", tag, value))

    def spoken(self, step: Step) -> Sequence[str]:
        """The texts of a step that may be asked for as speech."""
        return list(map(str, self.blame.call(self.task.spoken, step.sample_id, step)))

    def instructions(self, step: Step, episode_row: Mapping[str, Any]) -> Sequence[str]:
        """The instruction in every wording and language that the data have."""
        told = self.blame.call(self.task.instructions, step.sample_id, step, episode_row)
        return list(map(str, told))
