"""The tasks of a suite in OSWorld's layout, by its own lists or its domains.

A suite has the folder `evaluation_examples` with `examples/<domain>/<id>.json`, or with a folder
for each task, `examples/<domain>/<id>/<id>.json`, and lists of tasks beside it: `test_all.json` has
all of them, by domain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

from omnidata.errors import DataError, MediaError
from omnidata.files import bounds, inside, real
from omnidata.jsontext import as_name, is_number, json_file
from omnidata.media import Budget, resolve
from omnidata.tasks.osworld.tree import EVALUATION, GROUP_OF, GROUPS, INFEASIBLE, SETS, example_row
from omnidata.types import MediaRef

LIST: Final = "test_all.json"
_EXAMPLES: Final = "examples"
_BUDGET: Final = Budget(max_bytes=64 * 1024**2)

Task = tuple[str, str]
"""Domain and id."""
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """The files that list a suite's tasks.

    Attributes:
        examples: the folder with `<domain>/<id>.json` or `<domain>/<id>/<id>.json`, or None.
        listing: the list of the tasks, or None.
        is_named: whether the user named the place, so that its examples are the tasks.
    """

    examples: Path | None = None
    listing: Path | None = None
    is_named: bool = False

    @classmethod
    def at(cls, place: Path) -> TaskFiles:
        """Return the files at a place: a list, `evaluation_examples`, or its examples."""
        if place.is_file():
            return cls(_folder(place.parent / _EXAMPLES), place, is_named=True)
        inner = _folder(place / _EXAMPLES)
        lists = (place / LIST, *(() if inner else (place.parent / LIST,)))
        listing = next((one for one in lists if one.is_file()), None)
        return cls(inner or _folder(place), listing, is_named=True)

    @classmethod
    def beside(cls, data: Path) -> TaskFiles:
        """Return the files in a tree of results: in `evaluation_examples`, or at its top."""
        if not data.is_dir():
            return cls()
        within = bounds() or (real(data),)
        found = [
            replace(cls.at(place), is_named=False)
            for place in sorted(data.glob(f"{EVALUATION}*"))
            if place.is_dir() and inside(real(place), within)
        ]
        found.sort(key=lambda one: (one.listing is None, one.examples is None))
        best = found[0] if found else cls()
        listing = data / LIST
        if best.listing is None and listing.is_file():
            return replace(best, listing=listing)
        return best

    @property
    def places(self) -> list[Path]:
        """The folders of the files, which may be opened."""
        return [path for path in (self.examples, self.listing) if path is not None]

    def tasks_of_list(self) -> frozenset[Task] | None:
        """Return the tasks of the list; None without one.

        Raises:
            DataError: the list is unusable.
        """
        if self.listing is None:
            return None
        what = "it is not a list of tasks"
        try:
            ref = MediaRef("image", self.listing.parent, self.listing.name)
            found = json_file(resolve(ref, budget=_BUDGET), _BUDGET.max_bytes)
        except (MediaError, OSError) as error:
            why = error.what if isinstance(error, MediaError) else error.strerror
            what, found = f"the list of tasks cannot be read: {why}", None
        if isinstance(found, dict) and all(isinstance(ids, list) for ids in found.values()):
            tasks = [
                (key, own) for key, ids in found.items() for one in ids if (own := as_name(one))
            ]
            if len(tasks) == sum(map(len, found.values())):
                if tasks:
                    return frozenset(tasks)
                what = "the list has no task"
        raise DataError(
            what,
            where=str(self.listing),
            expected='an object of domains, each with a list of ids: {"chrome": ["...", ...]}',
            remedy=f"name OSWorld's {EVALUATION} or a list of it, or remove the file",
        )

    def tasks_of_examples(self) -> frozenset[Task]:
        """Return the tasks in the folder of examples; empty without a folder."""
        if self.examples is None:
            return frozenset()
        within = bounds() or (real(self.examples),)
        try:
            found = [
                (folder.name, path.stem)
                for folder in self.examples.iterdir()
                if folder.is_dir() and inside(real(folder), within)
                for path in chain(folder.glob("*.json"), folder.glob("*/*.json"))
                if path.stem == path.parent.name or path.parent == folder
            ]
        except OSError as error:
            raise DataError(
                f"the folder of examples cannot be read ({error.strerror})",
                where=str(self.examples),
                expected="folders of domains with <id>.json",
                remedy="name another folder",
            ) from None
        return frozenset(found)

    def domains(self) -> frozenset[str]:
        """Return the domains of the tasks in the list and the examples.

        Raises:
            DataError: the list is unusable.
        """
        tasks = (self.tasks_of_list() or frozenset()) | self.tasks_of_examples()
        return frozenset(domain for domain, _ in tasks)


def _folder(path: Path) -> Path | None:
    return path if path.is_dir() else None


# The kinds of tasks (Table 15).

WORKFLOWS: Final = frozenset({"multi_apps", "multi_app"})
"""The domains of tasks that need several applications (Table 15)."""
DIFFICULTIES: Final[Mapping[str, float]] = {"easy": 60, "medium": 180, "hard": float("inf")}
"""Up to how many seconds people need (Appendix D.1)."""


@dataclass(frozen=True, slots=True)
class Suite:
    """The tasks of success rates.

    Attributes:
        sizes: how many tasks each domain has.
        tasks: all of them; None if only their numbers are known.
        source: "set", those of the paper; "list" or "examples", as files say; "data", those that
            were tried.
        files: list the tasks.
        known: the axes of tasks, which several agents share.
    """

    sizes: Mapping[str, int]
    tasks: frozenset[Task] | None
    source: str
    files: TaskFiles = field(default_factory=TaskFiles)
    known: dict[Task, Mapping[str, str]] = field(default_factory=dict)

    def has(self, task: Task) -> bool:
        """Return whether the rates include a task."""
        return task in self.tasks if self.tasks is not None else task[0] in self.sizes

    @property
    def is_osworld(self) -> bool:
        """Whether all domains are OSWorld's, with known groups and infeasible tasks."""
        return self.sizes.keys() <= GROUP_OF.keys()

    def axes(self, task: Task) -> Mapping[str, str]:
        """Return a task's known groups of Table 15, and the number of its applications.

        The task's entry in the examples says them. `related_apps` are the applications;
        `human_seconds`, how long people need, is no column of the release. Without an entry, the
        release's own lists hold for OSWorld's tasks.
        """
        if task in self.known:
            return self.known[task]
        axes: dict[str, str] = {}
        row = example_row(self.files.examples, *task)
        evaluator = row.get("evaluator")
        if isinstance(evaluator, Mapping):
            func = evaluator.get("func")
            never = "infeasible" in (func if isinstance(func, list) else [func])
            axes["feasibility"] = "infeasible" if never else "feasible"
        elif self.is_osworld:
            never = "/".join(task) in INFEASIBLE
            axes["feasibility"] = "infeasible" if never else "feasible"
        apps = row.get("related_apps")
        number = len(apps) if isinstance(apps, list) else 0
        if self.is_osworld or number:
            several = task[0] in WORKFLOWS if self.is_osworld else number > 1
            axes["workflow"] = "several apps" if several else "single app"
        if number:
            axes["apps"] = str(number)
        seconds = row.get("human_seconds")
        if is_number(seconds) and seconds >= 0:
            axes["difficulty"] = next(n for n, most in DIFFICULTIES.items() if seconds <= most)
        self.known[task] = axes
        return axes

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        """The groups of Table 5; none for another suite, which may have equal domain names."""
        return GROUPS if self.is_osworld else {}


def suite_of(profile: str, tried: Iterable[Task], files: TaskFiles) -> Suite:
    """Return the suite of the tried tasks.

    A list decides, or examples that the user named. Without either, the paper's set counts if all
    domains are those of a set of the paper; the examples count if they have all tried tasks; else
    the tasks are those of the data and the examples.

    Args:
        profile: one of `sets`.
        tried: by any agent.
        files: list the tasks.

    Raises:
        DataError: the list is unusable.
    """
    found = frozenset(tried)
    listed = files.tasks_of_list()
    if listed is not None:
        return Suite(_sizes(listed), listed, "list", files)
    shown = files.tasks_of_examples()
    if files.is_named and shown:
        return Suite(_sizes(shown), shown, "examples", files)
    if {domain for domain, _ in found} <= GROUP_OF.keys():
        return Suite(SETS[profile], None, "set", files)
    if found <= shown:
        return Suite(_sizes(shown), shown, "examples", files)
    every = frozenset(task for task in found | shown if task[0])
    return Suite(_sizes(every), every, "data", files)


def _sizes(tasks: Iterable[Task]) -> dict[str, int]:
    counts = Counter(domain for domain, _ in tasks)
    known = chain.from_iterable(SETS.values())  # in the paper's order
    order = dict.fromkeys([*(one for one in known if one in counts), *sorted(counts)])
    return {domain: counts[domain] for domain in order}
