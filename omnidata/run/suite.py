"""Many runs as one: models x tasks x options, from a TOML file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import groupby, product
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec

from omnidata.errors import OmnidataError, UsageError
from omnidata.files import read_settings
from omnidata.loaders.data_place import local_place
from omnidata.run.asker import OpenModel, Recipe
from omnidata.run.cost import Limits
from omnidata.run.engines import Cluster
from omnidata.run.engines.ray import connect
from omnidata.run.evaluate import evaluate
from omnidata.run.scoring import get_profile
from omnidata.run.selection import read_exclude
from omnidata.storage import file_name
from omnidata.tasks import get_task, options_for
from omnidata.tasks.asking import Asking
from omnidata.tasks.asking_under_options import load_to_ask
from omnidata.types import LoadedDataset, Progress

Value = str | bool | int | float
Options = dict[str, Value | list[Value]]
"""Option -> its value, or several values that make a run each."""


class LimitsRow(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    rename={"requests_per_minute": "rpm", "tokens_per_minute": "tpm", "timeout_s": "timeout"},
):
    """Limits of each run, named as the flags of `omnidata evaluate`; see `Limits`."""

    concurrency: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    timeout_s: float | None = None
    attempts: int | None = None
    max_cost: float | None = None
    max_tokens: int | None = None
    prices: str | None = None
    cache: str | None = None


class TaskRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A task on its data.

    Attributes:
        task: the benchmark.
        data: the dataset's folder or file, "hf://ORG/NAME@REVISION", or "auto".
        name: in the table and in names of folders; the benchmark's if empty.
        options: as given with `-T`.
        profile, where, exclude, limit: as the flags of `omnidata evaluate`.
    """

    task: str
    data: str
    name: str = ""
    options: Options = {}
    profile: str | None = None
    where: dict[str, str] = {}
    exclude: str | None = None
    limit: int | None = None


class ModelRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model.

    Attributes:
        model: the SPEC.
        name: in the table and in names of folders; the SPEC if empty.
        options: as given with `-M`.
        base_url, key_file, models: as the flags of `omnidata evaluate`.
        limits: in place of the suite's.
    """

    model: str
    name: str = ""
    options: Options = {}
    base_url: str | None = None
    key_file: str | None = None
    models: str | None = None
    limits: LimitsRow = LimitsRow()


class SuiteRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A suite file; its paths are relative to its folder."""

    out: str
    tasks: list[TaskRow]
    models: list[ModelRow]
    limits: LimitsRow = LimitsRow()


@dataclass(frozen=True, slots=True)
class SuiteRun:
    """One run of a suite.

    Attributes:
        task, model: the rows that it joins.
        task_options, model_options: as given with `-T` and `-M`.
        note: what to tell of a dialect that the model's preset added to the options; or empty.
        varied: of these the ones that the file gives several values for.
        limits: of the run.
        folder: that the file's paths are taken from.
        out: the run folder.
    """

    task: TaskRow
    model: ModelRow
    task_options: Mapping[str, str]
    model_options: Mapping[str, str]
    varied: Mapping[str, str]
    limits: Limits
    folder: Path
    out: Path
    note: str = ""

    @property
    def asking(self) -> Asking:
        """Return the task with its options."""
        return get_task(self.task.task, self.task_options)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The content of a run's `results.json`, or why there is none.

    Attributes:
        planned: the run.
        results: None where there are none.
        error: why.
        asked, reused: steps and answers; see `omnidata.run.evaluate.Count`.
    """

    planned: SuiteRun
    results: Mapping[str, Any] | None = None
    error: str = ""
    asked: int = 0
    reused: int = 0


def read_suite(path: Path) -> list[SuiteRun]:
    """Return the runs of a suite file, grouped by task and options.

    Raises:
        UsageError: the file cannot be read, is no suite, names a task, option or profile that does
            not exist, or two of its runs would share a folder.
    """
    try:
        suite = msgspec.toml.decode(read_settings(path), type=SuiteRow)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(
            f"the suite cannot be read: {getattr(error, 'strerror', None) or error}",
            where=str(path),
            expected="out, [[tasks]] with task and data, [[models]] with model",
            remedy="`docs/evaluate.md` has an example",
        ) from None
    planned_runs = [
        _plan_run(path, suite, task, model, task_options, model_options)
        for task in suite.tasks
        for task_options in _combinations(task.options)
        for model in suite.models
        for model_options in _combinations(model.options)
    ]
    folders: dict[str, SuiteRun] = {}
    for planned in planned_runs:
        other = folders.setdefault(planned.out.name.lower(), planned)
        if other is not planned:
            raise UsageError(
                f"two runs would share the folder {planned.out.name}",
                where=str(path),
                expected="rows that differ in their task or model",
                remedy="give one of them a `name`",
            )
        try:
            get_profile(planned.asking, planned.task.profile)
        except UsageError as error:
            error.where = f"{path}: {planned.task.name or planned.task.task}: {error.where}"
            raise
    if not planned_runs:
        raise UsageError(
            "the suite has no run",
            where=str(path),
            expected="at least a task and a model",
            remedy="`docs/evaluate.md` has an example",
        )
    return planned_runs


def _combinations(options: Options) -> Iterator[dict[str, str]]:
    values = [value if isinstance(value, list) else [value] for value in options.values()]
    for chosen in product(*values):
        texts = [str(value).lower() if isinstance(value, bool) else str(value) for value in chosen]
        yield dict(zip(options, texts, strict=True))


def _plan_run(
    path: Path,
    suite: SuiteRow,
    task: TaskRow,
    model: ModelRow,
    task_options: dict[str, str],
    model_options: dict[str, str],
) -> SuiteRun:
    several = {
        name
        for options in (task.options, model.options)
        for name, value in options.items()
        if isinstance(value, list)
    }
    given = task_options | model_options
    varied = {name: given[name] for name in given if name in several}
    names = [task.name or task.task, model.name or model.model]
    names += [f"{name}={value}" for name, value in varied.items()]
    safe = "--".join(map(file_name, names))
    limits = _limits(path.parent, suite.limits, model.limits)
    out = path.parent / suite.out / safe
    models = path.parent / model.models if model.models else None
    asked, note = options_for(task.task, task_options, model.model, models=models)
    return SuiteRun(task, model, asked, model_options, varied, limits, path.parent, out, note)


def _limits(folder: Path, *rows: LimitsRow) -> Limits:
    values = (item for row in rows for item in msgspec.structs.asdict(row).items())
    given = {name: value for name, value in values if value is not None}
    for name in ("prices", "cache"):
        if name in given:
            given[name] = folder / given[name]
    return Limits(**given)


def _load(planned: SuiteRun, task: Asking) -> LoadedDataset:
    return load_to_ask(task, local_place(planned.task.data, task.name, folder=planned.folder))


def run_suite(
    planned_runs: Sequence[SuiteRun],
    *,
    loaded: Callable[[LoadedDataset], None],
    watch: Callable[[SuiteRun], AbstractContextManager[Progress]],
    load: Callable[[SuiteRun, Asking], LoadedDataset] = _load,
    cluster: Cluster | None = None,
) -> Iterator[Outcome]:
    """Make one run after the other, model by model; each resumes the run in its folder.

    A run that fails does not stop the others. A model that several runs ask is opened once.

    Args:
        planned_runs: see `read_suite`.
        loaded: called with the data of each task and its options, once for all models.
        watch: makes the context in which a run is made, and its progress callback.
        load: finds the data of the runs that have the same task and options.
        cluster: the machines that ask, the same for all runs; None for this one.

    Raises:
        PlatformError: Ray is not installed.
        UsageError: no cluster answers.
    """
    recipes = [recipe_of(planned) for planned in planned_runs]
    data = [(planned.task, planned.task_options) for planned in planned_runs]
    same_model, same_data = map(recipes.index, recipes), list(map(data.index, data))
    left = Counter(same_data)
    sources: dict[int, tuple[Asking, LoadedDataset] | str] = {}
    order = sorted(zip(same_model, range(len(data)), strict=True))
    with connect(cluster) if cluster else nullcontext():
        for first, runs in groupby(order, key=itemgetter(0)):
            with OpenModel(recipes[first]) as model:
                for _, number in runs:
                    planned, key = planned_runs[number], same_data[number]
                    if key not in sources:
                        sources[key] = _load_for(planned, load, loaded)
                    source = sources[key]
                    left[key] -= 1
                    if not left[key]:
                        del sources[key]
                    if isinstance(source, str):
                        yield Outcome(planned, error=source)
                    else:
                        yield _run(planned, *source, model, watch, cluster)


def _load_for(
    planned: SuiteRun,
    load: Callable[[SuiteRun, Asking], LoadedDataset],
    loaded: Callable[[LoadedDataset], None],
) -> tuple[Asking, LoadedDataset] | str:
    """Return the task and the data of a run, or why they cannot be loaded."""
    try:
        task = planned.asking
        source = load(planned, task)
    except (OmnidataError, OSError) as error:
        return str(error)
    loaded(source)
    return task, source


def recipe_of(planned: SuiteRun) -> Recipe:
    """Return how to make the model of a run, on any machine."""
    row, folder = planned.model, planned.folder.absolute()
    return Recipe(
        row.model,
        planned.model_options,
        row.base_url,
        folder / row.key_file if row.key_file else None,
        folder / row.models if row.models else None,
    )


def _run(
    planned: SuiteRun,
    task: Asking,
    source: LoadedDataset,
    model: OpenModel,
    watch: Callable[[SuiteRun], AbstractContextManager[Progress]],
    cluster: Cluster | None,
) -> Outcome:
    counts = [(0, 0)]
    try:
        excluded: frozenset[str] = frozenset()
        if planned.task.exclude:
            excluded = read_exclude(planned.folder / planned.task.exclude, source.steps)
        with watch(planned) as progress:
            results = evaluate(
                task,
                source,
                model,
                planned.out,
                model_options=planned.model_options,
                profile=planned.task.profile,
                where=planned.task.where,
                exclude=excluded,
                limit=planned.task.limit,
                limits=planned.limits,
                progress=progress,
                cluster=cluster,
                count=lambda asked, reused: counts.append((asked, reused)),
            )
    except (OmnidataError, OSError) as error:
        return Outcome(planned, None, str(error), *counts[-1])
    return Outcome(planned, results, "", *counts[-1])
