"""Results of runs as the Hugging Face Hub reads them: in a model card, and in `.eval_results`.

A card has them as `model-index`. Files in `.eval_results` are newer, and the Hub calls them work in
progress; both are written. Values are fractions, as in `results.json`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from omnidata import table_formats as formats
from omnidata.analysis import run_tables, usage_tables
from omnidata.analysis.runs import by_profile
from omnidata.analysis.slices import main_metric
from omnidata.errors import UsageError
from omnidata.run.run_files import Run
from omnidata.storage import atomic_write, wrap_os_error

_KIND: Final = "gui-agent"
_CHOSEN: Final = ("where", "exclude", "limit", "shard", "control")
_HUB_ID: Final = re.compile(r"[\w.-]+/[\w.-]+", re.ASCII)


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
                file.write(eval_results(run, dataset).encode())
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


def card_text(
    runs: Sequence[Run],
    datasets: Mapping[str, str] = {},
    *,
    metadata: Mapping[str, Any] = {},
    intro: str = "",
) -> str:
    """Return the card: its metadata, and tables of totals and of usage.

    Args:
        runs: of one model.
        datasets: task -> id of its data on the Hub.
        metadata: to be put before the results.
        intro: Markdown to be put before the tables.
    """
    # Readers join results with equal `config`, so it has all options of a run.
    results = [_result(run, datasets.get(run.task, run.task)) for run in runs]
    front = {**metadata, "model-index": [{"name": runs[0].name, "results": results}]}
    tables = [
        table
        for same in by_profile(runs)
        for table in (run_tables.overall(same), *usage_tables.tables(same))
    ]
    parts = [f"---\n{_yaml(front)}---", *([intro] if intro else []), *map(formats.markdown, tables)]
    return "\n\n".join(parts) + "\n"


def _result(run: Run, dataset: str) -> dict[str, Any]:
    options = run.settings.get("options", {})
    config = [",".join(f"{name}={value}" for name, value in options.items() if value)]
    config += [_where(run), run.control, run.profile]
    chosen = {name: run.settings.get(name) for name in _CHOSEN}
    intervals = run.results.get("ci95") or {}
    overall = run.results["overall"]
    return {
        "task": {"type": _KIND, "name": "GUI agent, next action"},
        "dataset": {
            "type": dataset,
            "name": run.task,
            "config": ", ".join(filter(None, config)),
            "args": _nonempty(**options, **chosen, fingerprint=run.fingerprint),
        },
        "metrics": [
            {
                "type": metric.lower(),
                "name": f"{metric} ({run.profile})",
                "value": overall[metric],
                "args": _nonempty(profile=run.profile, ci95=intervals.get(metric)),
            }
            for metric in run.columns
            if overall.get(metric) is not None
        ],
    }


def _nonempty(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value}


def _where(run: Run) -> str:
    where = run.settings.get("where", {})
    return ",".join(f"{tag}={value}" for tag, value in where.items())


def eval_results(run: Run, dataset: str) -> str:
    """Return a file of `.eval_results`: the run's main metric, if it has a value.

    Args:
        run: the run.
        dataset: the id of its data on the Hub.
    """
    metric = main_metric(run)
    value = run.results["overall"].get(metric)
    if value is None:
        return _yaml([])
    counts = run.results["counts"]
    options = run.settings.get("options", {})
    version = run.settings.get("versions", {}).get("omnidata")
    notes = [
        f"{metric} as a fraction",
        f"profile {run.profile}",
        next((f"{counts[n]} {n}" for n in ("steps", "tasks", "rows") if n in counts), ""),
        *(f"{name}={value}" for name, value in options.items() if value),
        f"where {_where(run)}" if _where(run) else "",
        f"control: {run.control}" if run.control else "",
        "stopped before its end" if run.stopped else "",
        f"omnidata {version}" if version else "scored with omnidata",
    ]
    about = {"id": dataset, "task_id": run.task}
    return _yaml([{"dataset": about, "value": value, "notes": ", ".join(filter(None, notes))}])


def _yaml(value: Any) -> str:
    dumped: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100)
    return dumped
