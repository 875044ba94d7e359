"""The tasks of a suite in OSWorld's layout: read from its own lists, or known by its domains.

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
from typing import Any, Final, Literal

from omnidata.errors import DataError, MediaError
from omnidata.files import bounds, inside, real
from omnidata.jsontext import as_name, is_number, json_file
from omnidata.media import Budget, resolve
from omnidata.tasks.osworld.tree import EVALUATION, example_row, group_of, groups, infeasible, sets
from omnidata.types import MediaRef

LIST: Final = "test_all.json"
_EXAMPLES: Final = "examples"
_EXPECTED: Final = 'an object of domains, each with a list of ids: {"chrome": ["...", ...]}'
_BUDGET: Final = Budget(max_bytes=64 * 1024**2)

Task = tuple[str, str]
"""Domain and id."""
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """Where a suite's tasks are said.

    Attributes:
        examples: the folder with `<domain>/<id>.json` or `<domain>/<id>/<id>.json`; None where
            there is none.
        listing: the list of the tasks; None where there is none.
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
        places = [
            place
            for place in sorted(data.glob(f"{EVALUATION}*"))
            if place.is_dir() and inside(real(place), within)
        ]
        found = [replace(cls.at(place), is_named=False) for place in places]
        best = max(
            found,
            key=lambda one: (one.listing is not None, one.examples is not None),
            default=cls(),
        )
        listing = data / LIST
        if best.listing is None and listing.is_file():
            return replace(best, listing=listing)
        return best

    @property
    def places(self) -> list[Path]:
        """The folders of the files, which may be opened."""
        return [path for path in (self.examples, self.listing) if path is not None]

    def row(self, task: Task) -> Row:
        """Return a task's entry in the examples; empty without one."""
        return example_row(self.examples, *task)

    def tasks_of_list(self) -> frozenset[Task] | None:
        """The tasks of the list; None where there is none.

        Raises:
            DataError: the list is none.
        """
        if self.listing is None:
            return None
        try:
            ref = MediaRef("image", self.listing.parent, self.listing.name)
            found = json_file(resolve(ref, budget=_BUDGET), _BUDGET.max_bytes)
        except (MediaError, OSError) as error:
            what = error.what if isinstance(error, MediaError) else error.strerror
            raise _no_list(self.listing, f"the list of tasks cannot be read: {what}") from None
        if not isinstance(found, dict) or not all(isinstance(ids, list) for ids in found.values()):
            raise _no_list(self.listing, "it is not a list of tasks")
        named = [(domain, as_name(own)) for domain, ids in found.items() for own in ids]
        tasks = frozenset((domain, own) for domain, own in named if own)
        if any(own is None for _, own in named):
            raise _no_list(self.listing, "it is not a list of tasks")
        if not tasks:
            raise _no_list(self.listing, "the list has no task")
        return tasks

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
        """Those of the tasks, by the list and the examples.

        Raises:
            DataError: the list is none.
        """
        return frozenset(
            domain for domain, _ in (self.tasks_of_list() or frozenset()) | self.tasks_of_examples()
        )


def _folder(path: Path) -> Path | None:
    return path if path.is_dir() else None


def _no_list(path: Path, what: str) -> DataError:
    return DataError(
        what,
        where=str(path),
        expected=_EXPECTED,
        remedy=f"name OSWorld's {EVALUATION} or a list of it, or remove the file",
    )


# What kinds of tasks there are (Table 15).

WORKFLOWS: Final = frozenset({"multi_apps", "multi_app"})
"""The domains of tasks that need several applications (Table 15)."""
DIFFICULTIES: Final[Mapping[str, float]] = {"easy": 60, "medium": 180, "hard": float("inf")}
"""Up to how many seconds people need (Appendix D.1)."""

Feasibility = Literal["feasible", "infeasible"]


def feasibility(task: str, row: Mapping[str, Any], *, of_osworld: bool) -> Feasibility | None:
    """Whether a task can be done; None where nothing says it.

    Args:
        task: `<domain>/<id>`.
        row: what its suite's examples say of it; empty where they are not there.
        of_osworld: whether the task is OSWorld's, so that without a row the list of the release's
            thirty decides.
    """
    evaluator = row.get("evaluator")
    if isinstance(evaluator, Mapping):
        named = evaluator.get("func")
        listed = named if isinstance(named, list) else [named]
        return "infeasible" if "infeasible" in listed else "feasible"
    if not of_osworld:
        return None
    return "infeasible" if task in infeasible() else "feasible"


def _axes_of(domain: str, task: str, row: Mapping[str, Any], *, of_osworld: bool) -> dict[str, str]:
    """The groups of a task (Table 15), and of its own the applications that it needs.

    Args:
        domain: of the task.
        task: `<domain>/<id>`.
        row: what its suite's examples say of it. `related_apps` are the applications;
            `human_seconds`, how long people need, is no column of the release.
        of_osworld: whether the task is OSWorld's, whose domains tell workflows.
    """
    found: dict[str, str] = {}
    if can := feasibility(task, row, of_osworld=of_osworld):
        found["feasibility"] = can
    apps = row.get("related_apps")
    number = len(apps) if isinstance(apps, list) else 0
    if of_osworld or number:
        several = domain in WORKFLOWS if of_osworld else number > 1
        found["workflow"] = "several apps" if several else "single app"
    if number:
        found["apps"] = str(number)
    seconds = row.get("human_seconds")
    if is_number(seconds) and seconds >= 0:
        found["difficulty"] = next(name for name, most in DIFFICULTIES.items() if seconds <= most)
    return found


@dataclass(frozen=True, slots=True)
class Suite:
    """The tasks that success rates are over.

    Attributes:
        sizes: how many tasks each domain has.
        tasks: all of them; None where only their numbers are known.
        source: "set", those of the paper; "list" or "examples", as files say; "data", those that
            were tried.
        files: what says more of the tasks.
        known: the axes of tasks that were asked for: several agents have the same.
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
        return self.sizes.keys() <= group_of().keys()

    def axes(self, task: Task) -> Mapping[str, str]:
        """Return a task's known groups beside its domain."""
        if task not in self.known:
            row = self.files.row(task)
            self.known[task] = _axes_of(task[0], "/".join(task), row, of_osworld=self.is_osworld)
        return self.known[task]

    @property
    def groups(self) -> Mapping[str, Sequence[str]]:
        """The groups of Table 5; none for another suite, which may have equal domain names."""
        return groups() if self.is_osworld else {}


def suite_of(profile: str, tried: Iterable[Task], files: TaskFiles) -> Suite:
    """Return the suite that the tried tasks belong to.

    A list decides, or examples that the user named. Without either the set's numbers hold where all
    domains are those of a set of the paper; of another suite the tasks are those of its examples
    where these have all that were tried, and else those that are there.

    Args:
        profile: one of `sets`.
        tried: by any agent.
        files: what is said of the tasks.

    Raises:
        DataError: the list is none.
    """
    found = frozenset(tried)
    listed = files.tasks_of_list()
    if listed is not None:
        return Suite(_sizes(listed), listed, "list", files)
    shown = files.tasks_of_examples()
    if files.is_named and shown:
        return Suite(_sizes(shown), shown, "examples", files)
    if {domain for domain, _ in found} <= group_of().keys():
        return Suite(sets()[profile], None, "set", files)
    if found <= shown:
        return Suite(_sizes(shown), shown, "examples", files)
    every = frozenset(task for task in found | shown if task[0])
    return Suite(_sizes(every), every, "data", files)


def _sizes(tasks: Iterable[Task]) -> dict[str, int]:
    counts = Counter(domain for domain, _ in tasks)
    known = chain.from_iterable(sets().values())  # in the paper's order
    order = dict.fromkeys([*(one for one in known if one in counts), *sorted(counts)])
    return {domain: counts[domain] for domain in order}
