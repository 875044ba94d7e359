"""`omnidata demo`: from nothing to a table in one command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnidata.cli import arguments as args
from omnidata.cli import terminal
from omnidata.cli.declare import flag, option, verb
from omnidata.cli.runs import counting, episode_metrics, legend_of
from omnidata.errors import UsageError

if TYPE_CHECKING:
    from omnidata.tasks.profile import Profile

_MODELS = ("baseline:oracle", "baseline:center")
_LOCAL_STEPS = 4
_LOCAL_OPTIONS = {"max_new_tokens": "16"}


@verb()
def demo(
    out: Path = option("Folder for data/ and runs/.", "DIR", default=Path("omnidata-demo")),
    seed: int = option("Seed of the sample dataset.", default=0),
    local: bool = flag("Also run a tiny random Qwen2.5-Omni on this machine.", "--local"),
    as_json: args.Json = False,
) -> None:
    """Make a small OmniGUI dataset and evaluate two baselines on it.

    The oracle answers every step right; the other baseline always taps the centre of the screen. A
    second call with the same seed reuses the data and the answers of the first. With --local a tiny
    transformers model with random weights is built and asked about a few steps.

    Example: omnidata demo --out omnidata-demo
    """
    from omnidata.registry import episode_tree_reader
    from omnidata.run.evaluate import evaluate
    from omnidata.storage import wrap_os_error
    from omnidata.tasks import get_task

    with wrap_os_error(out):
        data = _sample(out, seed)
    task = get_task(episode_tree_reader())
    source = task.load(data)
    terminal.print_findings(source)
    tiny = out / "tiny-qwen2.5-omni" if local else None
    if tiny and not tiny.exists():
        from omnidata.adapters.tiny import make_tiny

        make_tiny("qwen2.5-omni", tiny, seed=seed)
    results = {}
    for model in _MODELS:
        with counting() as count, terminal.progress(model) as progress:
            run = out / "runs" / f"{model.replace(':', '-')}-seed{seed}"
            results[model] = evaluate(task, source, model, run, progress=progress, count=count)
    profile = task.profiles[task.default_profile]
    if not as_json:
        _print_side_by_side(results, profile)
    if tiny:
        model = f"hf:{tiny}"
        with counting() as count, terminal.progress(model) as progress:
            results[model] = evaluate(
                task,
                source,
                model,
                out / "runs" / f"{tiny.name}-seed{seed}",
                model_options=_LOCAL_OPTIONS,
                limit=_LOCAL_STEPS,
                progress=progress,
                count=count,
            )
        if not as_json:
            named = legend_of(profile), episode_metrics(profile)
            terminal.print_results(results[model], profile.columns, *named)
            terminal.note(f"{model}: the weights are random, so the answers are random too")
    if as_json:
        terminal.print_json(results)
    terminal.note(f"dataset: {data}")
    terminal.note(f"run folders: {out / 'runs'}")
    example = f"--model baseline:random --out {out / 'runs' / 'random'}"
    terminal.note(f"next: omnidata evaluate {task.name} {data} {example}")


def _sample(out: Path, seed: int) -> Path:
    """Make the sample dataset, unless the last call made the same one."""
    from importlib.metadata import version

    from omnidata.storage import atomic_write
    from omnidata.synth.sample import make_sample

    made, data, unfinished = out / "demo.json", out / "data", out / ".data.unfinished"
    wanted = {"seed": seed, "omnidata": version("omnidata")}
    if data.exists():
        if made.is_file() and made.read_text("utf-8", "replace") == json.dumps(wanted):
            return data
        raise UsageError(
            "the folder holds other data",
            where=str(data),
            expected=f"nothing, or the sample dataset of seed {seed}",
            remedy="choose another --out, or remove the folder",
        )
    shutil.rmtree(unfinished, ignore_errors=True)  # what an interrupted call left
    with terminal.progress("making the sample dataset") as progress:
        make_sample(unfinished, seed=seed, progress=progress)
    with atomic_write(made) as file:
        file.write(json.dumps(wanted).encode())
    unfinished.rename(data)
    return data


def _print_side_by_side(results: dict[str, dict[str, Any]], profile: Profile) -> None:
    columns = profile.columns
    header = ["", *(f"{model.partition(':')[2]} {name}" for model in results for name in columns)]
    tables = [dict(terminal.results_rows(result)) for result in results.values()]
    rows = [
        [name, *(cell for table in tables for cell in terminal.cells(table[name], columns))]
        for name in tables[0]
    ]
    first = next(iter(results.values()))
    terminal.print_table(
        f"{first['task']} by {first['profile']} (%)",
        header,
        rows,
        legend_of(profile),
        together=len(columns),
    )
    for model, result in results.items():
        terminal.note(f"{model}: {terminal.outcome_line(result, episode_metrics(profile))}")
