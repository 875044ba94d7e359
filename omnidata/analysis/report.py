"""The tables of runs, and a model card with their results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from omnidata import table_formats as formats
from omnidata.analysis import elements, errata_tables, rollouts, run_tables, usage_tables
from omnidata.analysis.compounding import history_tables
from omnidata.analysis.decisions import decision_tables
from omnidata.analysis.elements import Clicks
from omnidata.analysis.repeats import seed_tables
from omnidata.analysis.runs import by_profile, warnings
from omnidata.analysis.sensitivity import sensitivity_tables
from omnidata.analysis.slices import NotTracedError, main_metric, specs
from omnidata.errors import UsageError
from omnidata.run.run_files import Run
from omnidata.storage import atomic_write, wrap_os_error
from omnidata.table import Table
from omnidata.tasks import common_options

Form = Literal["terminal", "md", "latex", "csv"]


@dataclass(frozen=True, slots=True)
class Report:
    """Tables, and warnings about comparing their rows."""

    tables: Sequence[Table]
    warnings: Sequence[str]

    def text(self, form: Form, *, width: int | None = 100) -> str:
        """Return all tables in a format.

        Warnings are remarks in Markdown and LaTeX.

        Args:
            form: of the text; CSV has one line per number, the others one table after the other.
            width: of the terminal; None for whole tables.
        """
        if form == "csv":
            return formats.as_csv(self.tables)
        if form == "terminal":
            parts = [formats.text(table, width=width) for table in self.tables]
        elif form == "md":
            parts = [*map(formats.markdown_remark, self.warnings)]
            parts += map(formats.markdown, self.tables)
        else:
            parts = [*map(formats.latex_remark, self.warnings), *map(formats.latex, self.tables)]
        return "\n\n".join(parts) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values: fractions, unrounded."""
        return {"warnings": list(self.warnings), "tables": [*map(formats.as_json, self.tables)]}


def report(
    runs: Sequence[Run],
    *,
    with_published: bool = False,
    by: Sequence[str] = (),
    errors: bool = False,
    clicks: Sequence[Clicks] = (),
) -> Report:
    """Return the tables of runs, of each task and profile.

    Args:
        runs: of any tasks.
        with_published: whether to add published rows.
        by: axes of further tables, e.g. "app"; a single run has that anyway.
        errors: whether the tables have causes of wrong answers, in place of scores.
        clicks: of the runs with a table by size of elements.

    Raises:
        UsageError: no run has the axis.
        RunError: scores cannot be read, are of another kind than their profile's, or have no causes
            of wrong answers.
    """
    tables: list[Table] = []
    notes: list[str] = []
    known = dict.fromkeys(axis for run in runs for axis in run.results["by"])
    for axis in by:
        if axis not in known:
            raise UsageError(
                f'the runs have no groups by "{axis}"',
                where=f"--by {axis}",
                expected=f"one of {', '.join(known)}" if known else "no --by with these runs",
                remedy="name one of these, or drop --by" if known else "drop --by",
            )
    for task in dict.fromkeys(run.task for run in runs):
        notes += warnings([run for run in runs if run.task == task])
    for same in by_profile(runs):
        if errors:
            tables += run_tables.by_cause(same, by)
            continue
        tables += _tables(same, with_published, by, notes)
        if own := [each for each in clicks if any(each.run is run for run in same)]:
            tables += elements.tables(own, by, with_published=with_published)
    return Report(tables, notes)


def _tables(
    runs: Sequence[Run], with_published: bool, by: Sequence[str], notes: list[str]
) -> list[Table]:
    """Return the tables of one task; `notes` gets a sentence for each that is left out."""
    found = [
        run_tables.by_spec(spec, runs, with_published=with_published)
        for spec in specs(runs[0])
        if spec.name == "main" or any(run.results["by"].get(spec.axis) for run in runs)
    ]
    found.append(run_tables.overall(runs))
    if table := errata_tables.table(runs):
        found.append(table)
    found += rollouts.tables(runs, by, notes)
    for variation in (*runs[0].asking.benchmark.paper.variations, *common_options.VARIATIONS):
        table = run_tables.by_option(variation, runs, with_published=with_published)
        if table:
            found.append(table)
    for which, tables in (
        ("tables of how errors compound are", history_tables),
        ("table of time to decision is", decision_tables),
        ("table of sensitivity is", partial(sensitivity_tables, with_published=with_published)),
    ):
        try:
            found += tables(runs)
        except NotTracedError as error:
            notes.append(
                f"{runs[0].task}: the {which} left out: {error.what} "
                f"({error.where}). Expected: {error.expected}. Fix: {error.remedy}"
            )
    found += seed_tables(runs)
    axes = [*by, *(["app"] if len(runs) == 1 else [])]
    for axis in dict.fromkeys(axes):
        if any(run.results["by"].get(axis) for run in runs):
            found.append(run_tables.by_axis(axis, runs, with_published=with_published))
    return found + usage_tables.tables(runs)


# Results as the Hugging Face Hub reads them: a card's `model-index`, and `.eval_results/*.yaml`.
#
# The second format is newer, and the Hub calls it work in progress; both are written. Values are
# fractions, as in `results.json`.

_KIND = "gui-agent"
_CHOSEN = ("where", "exclude", "limit", "shard", "control")
_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


def write_card(runs: Sequence[Run], card: Path, datasets: Mapping[str, str] = {}) -> list[Path]:
    """Write a model card, and beside it a file of results for each dataset on the Hub.

    Args:
        runs: of one model.
        card: the file; the folder `.eval_results` is written beside it.
        datasets: task -> id of its data on the Hub.

    Returns:
        The files.

    Raises:
        UsageError: the runs are of several models, the card exists, or an id is invalid or for a
            task without one run.
        RunError: a file cannot be written.
    """
    _check(runs, card, datasets)
    written = [card]
    with wrap_os_error(card.parent):
        card.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(card) as file:
            file.write(card_text(runs, datasets).encode("utf-8", "backslashreplace"))
        for task, dataset in datasets.items():
            path = card.parent / ".eval_results" / f"{task}.yaml"
            path.parent.mkdir(exist_ok=True)
            run = next(run for run in runs if run.task == task)
            with atomic_write(path) as file:
                file.write(_yaml(eval_results(run, dataset)).encode())
            written.append(path)
    return written


def _check(runs: Sequence[Run], card: Path, datasets: Mapping[str, str]) -> None:
    models = dict.fromkeys(run.name for run in runs)
    if len(models) > 1:
        raise UsageError(
            f"the runs are of {len(models)} models: {', '.join(models)}",
            where=f"--card {card}",
            expected="runs of one model",
            remedy="write a card for each",
        )
    if card.exists():
        raise UsageError(
            "there is a file already",
            where=f"--card {card}",
            expected="a new file: an existing card is not replaced",
            remedy="choose another name, and copy the results",
        )
    for task, dataset in datasets.items():
        count = sum(run.task == task for run in runs)
        if count != 1 or not _HUB_ID.fullmatch(dataset):
            tasks = ", ".join(dict.fromkeys(run.task for run in runs))
            raise UsageError(
                f"{count} runs are of {task}" if count != 1 else "this is no id of a dataset",
                where=f"--hub-dataset {task}={dataset}",
                expected=f"TASK=OWNER/NAME, TASK one of {tasks} and of one run",
            )


def card_text(runs: Sequence[Run], datasets: Mapping[str, str] = {}) -> str:
    """Return the card: its metadata, and tables of totals and of usage.

    Args:
        runs: of one model.
        datasets: task -> id of its data on the Hub.
    """
    metadata = _yaml({"model-index": _model_index(runs, datasets)})
    shown = [
        table
        for same in by_profile(runs)
        for table in (run_tables.overall(same), *usage_tables.tables(same))
    ]
    return "\n\n".join([f"---\n{metadata}---", *map(formats.markdown, shown)]) + "\n"


def _model_index(runs: Sequence[Run], datasets: Mapping[str, str] = {}) -> list[dict[str, Any]]:
    """Readers join results with equal `config`, so it has all options of a run."""
    results = [_result(run, datasets.get(run.task, run.task)) for run in runs]
    return [{"name": runs[0].name, "results": results}]


def _result(run: Run, dataset: str) -> dict[str, Any]:
    options = run.settings.get("options", {})
    intervals = run.results.get("ci95") or {}
    chosen = {name: run.settings.get(name) for name in _CHOSEN}
    config = ",".join(f"{name}={value}" for name, value in options.items() if value)
    return {
        "task": {"type": _KIND, "name": "GUI agent, next action"},
        "dataset": {
            "type": dataset,
            "name": run.task,
            **_nonempty(
                config=", ".join(filter(None, (config, _where(run), run.control, run.profile)))
            ),
            "args": _nonempty(**options, **chosen, fingerprint=run.fingerprint),
        },
        "metrics": [
            {
                "type": metric.lower(),
                "name": f"{metric} ({run.profile})",
                "value": value,
                "args": _nonempty(profile=run.profile, ci95=intervals.get(metric)),
            }
            for metric, value in _totals(run)
        ],
    }


def _totals(run: Run) -> Iterator[tuple[str, float]]:
    for metric in run.columns:
        value = run.results["overall"].get(metric)
        if value is not None:
            yield metric, value


def _nonempty(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _where(run: Run) -> str:
    where = run.settings.get("where", {})
    return ",".join(f"{tag}={value}" for tag, value in where.items())


def eval_results(run: Run, dataset: str) -> list[dict[str, Any]]:
    """Return the content of a file in `.eval_results`: the run's main metric, if it has a value.

    Args:
        run: the run.
        dataset: the id of its data on the Hub.
    """
    metric = main_metric(run)
    value = run.results["overall"].get(metric)
    if value is None:
        return []
    about = {"id": dataset, "task_id": run.task}
    counts = run.results["counts"]
    over = [f"{counts[name]} {name}" for name in ("steps", "tasks", "rows") if name in counts][:1]
    notes = [f"{metric} as a fraction", f"profile {run.profile}", *over]
    notes += [f"{name}={value}" for name, value in run.settings.get("options", {}).items() if value]
    notes += [f"where {_where(run)}"] if _where(run) else []
    notes += [f"control: {run.control}"] if run.control else []
    notes += ["stopped before its end"] if run.stopped else []
    version = run.settings.get("versions", {}).get("omnidata")
    notes.append(f"omnidata {version}" if version else "scored with omnidata")
    return [{"dataset": about, "value": value, "notes": ", ".join(notes)}]


def _yaml(value: Any) -> str:
    import yaml

    dumped: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100)
    return dumped
