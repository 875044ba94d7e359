"""Tokens, time and cost of runs, and how their models decoded.

Tokens and latencies are those of the final answers in `predictions.jsonl`. The cost, in `run.json`,
is that of every request, repeated ones included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from omnidata import predictions
from omnidata.analysis.slices import (
    RunSlice,
    make_table,
    rows_of_runs,
    run_labels,
    run_names,
    size,
    step_metric,
)
from omnidata.errors import plural
from omnidata.jsontext import in_snake_case
from omnidata.metrics.intervals import Floats
from omnidata.run.cost import Tokens
from omnidata.run.differences import flatten, shorten
from omnidata.run.journal import TRANSIENT
from omnidata.run.run_files import Run
from omnidata.run.run_info import ANSWERS
from omnidata.table import DASH, Column, Head, Row, Table

_TOKENS = ("input", "image", "audio", "video", "cached", "output")
_PERCENTILES: Mapping[str, int] = {"median": 50, "p95": 95}
_LEAST_S, _LEAST_COST = 1e-3, 1e-6
"""`run.json` is rounded to these; smaller values divide nothing."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens, time and cost of a run.

    Attributes:
        answers: of a model to this run.
        cached: answers from the cache, which took nothing.
        unmetered: answers without a token count, also replaced ones.
        tokens: of the answers.
        latencies: float64 (N,), seconds from a request to its last byte, of the answers that have
            it; of a local model those of the batch.
        per_hour: answers by the clock, waits included; None without a clock, and for a merged run,
            whose parts may have run side by side.
        cost: of all requests; None if the run was made without prices.
        currency: of the cost.
        prices_of: the date of the prices.
    """

    answers: int
    cached: int
    unmetered: int
    tokens: Tokens
    latencies: Floats
    per_hour: float | None
    cost: float | None
    currency: str
    prices_of: str

    @property
    def is_known(self) -> bool:
        """Whether the run took anything: baselines take no tokens and no time."""
        return bool(self.tokens.total or len(self.latencies) or self.cost is not None)

    @property
    def whole_cost(self) -> float | None:
        """The cost, if it is that of every answer of the run."""
        return None if self.cached or self.unmetered else self.cost


def usage_of(run: Run) -> Usage:
    """Return the usage of a run; of scores without answers it is empty.

    Raises:
        PredictionError: a line is no prediction, or a step has two.
    """
    cached = unmetered = answers = 0
    tokens, latencies = Tokens(), []
    for line in predictions.read_final(run.path / ANSWERS):
        if line.delivery in TRANSIENT:
            continue
        if line.receipt.get("cached"):
            cached += 1
            continue
        usage = line.usage
        if isinstance(parts := line.receipt.get("tokens"), Mapping):  # of a local model
            usage = {**usage, "prompt_tokens_details": parts}
        used = Tokens.of(usage)
        answers += 1
        unmetered += not used.total
        tokens += used
        if line.latency_s > 0:
            latencies.append(line.latency_s)
    recorded = run.settings.get("usage", {})
    also_unmetered, cost = recorded.get("unmetered"), recorded.get("cost")
    seconds = run.settings.get("timings", {}).get("ask_s", 0)
    has_clock = answers and seconds >= _LEAST_S and "merged" not in run.settings
    return Usage(
        answers=answers,
        cached=cached,
        unmetered=max(unmetered, also_unmetered if isinstance(also_unmetered, int) else 0),
        tokens=tokens,
        latencies=np.array(latencies, dtype=np.float64),
        per_hour=3600 * answers / seconds if has_clock else None,
        cost=float(cost) if isinstance(cost, int | float) else None,
        currency=str(recorded.get("currency", "")),
        prices_of=str(recorded.get("prices_of", "")),
    )


def tables(runs: Sequence[Run]) -> list[Table]:
    """Return the cost table and the hyper-parameters (OmniGUI, Table 6); none of baselines only."""
    usages = [usage_of(run) for run in runs]
    asked = [run for run, usage in zip(runs, usages, strict=True) if usage.is_known]
    return [_cost(runs, usages), _decoding(asked)] if asked else []


def _cost(runs: Sequence[Run], usages: Sequence[Usage]) -> Table:
    metric = step_metric(runs[0])[0]
    wanted = {
        "Answers": [Column("asked", "answers", "count"), Column("per hour", "per_hour", "count")],
        "Latency (s)": [Column(name, f"latency_{name}", "number") for name in _PERCENTILES],
        "Tokens": [Column(name.capitalize(), f"{name}_tokens", "count") for name in _TOKENS],
    }
    for currency in dict.fromkeys(usage.currency for usage in usages if usage.cost is not None):
        wanted[f"Cost ({currency})"] = [
            Column("whole", f"cost_{currency}", "money"),
            Column(f"{metric} per {currency}", f"{metric}_per_{currency}", "number"),
        ]
    values = [_values(run, usage) for run, usage in zip(runs, usages, strict=True)]
    known = {name for own in values for name, value in own.items() if value is not None}
    heads = [
        Head(header, tuple(kept))
        for header, columns in wanted.items()
        if (kept := [column for column in columns if column.metric in known])
    ]
    headers, names = run_labels(runs)
    every = [column for head in heads for column in head.columns]
    rows = rows_of_runs([RunSlice("", "", values)], runs, names, every)
    notes = list(_notes(runs, usages, metric))
    return make_table("cost", "What the runs took", runs, headers, heads, rows, notes)


def _values(run: Run, usage: Usage) -> dict[str, float | None]:
    found: dict[str, float | None] = {
        "answers": usage.answers or None,
        "per_hour": usage.per_hour,
        f"cost_{usage.currency}": usage.cost,
    }
    if len(usage.latencies):
        for name, percent in _PERCENTILES.items():
            found[f"latency_{name}"] = float(np.percentile(usage.latencies, percent))
    for name in _TOKENS:
        found[f"{name}_tokens"] = getattr(usage.tokens, name) or None
    metric = step_metric(run)[0]
    share, cost = run.results["overall"].get(metric), usage.whole_cost
    is_share = share is not None and run.columns.get(metric) == "share"
    if is_share and cost is not None and cost >= _LEAST_COST:
        found[f"{metric}_per_{usage.currency}"] = float(share) * size(run) / cost
    return found


def _notes(runs: Sequence[Run], usages: Sequence[Usage], metric: str) -> Iterator[str]:
    yield "Tokens and latencies: of the final answers. A dash: not reported."
    if any(usage.cost is not None for usage in usages):
        dates = ", ".join(dict.fromkeys(usage.prices_of for usage in usages if usage.prices_of))
        yield (
            f"Cost: of all requests, at prices of {dates}. {metric} per cost: right steps per unit "
            "of currency."
        )
    for run, usage in zip(runs, usages, strict=True):
        if usage.cost is not None and usage.cached:
            yield f"{run.path}: {plural(usage.cached, 'answer')} from the cache cost nothing."
        if usage.cost is not None and usage.unmetered:
            yield f"{run.path}: the tokens of {plural(usage.unmetered, 'answer')} are unknown."


# How models decode (OmniGUI, Table 6).

_SAMPLING: Mapping[str, str] = {"top_p": "Top_p", "top_k": "Top_k", "do_sample": "Do_Sample"}
_DEFAULT = "server default"
_LIMITS = ("max_new_tokens", "max_tokens", "max_completion_tokens", "max_output_tokens")
"""Servers' names of the limit of an answer."""


def _decoding(runs: Sequence[Run]) -> Table:
    """Return a row per run with the parameters as text: a server's own defaults are no numbers."""
    headers = ("Model", "Temperature", "Max Tokens", *_SAMPLING.values(), "Seed")
    rows = [
        Row((name, *_parameters(run)), (), run=str(run.path))
        for name, run in zip(run_names(runs), runs, strict=True)
    ]
    return make_table("hyperparameters", "Hyper-parameters", runs, headers, (), rows)


def _parameters(run: Run) -> list[str]:
    """Return the parameters as sent; sampling that a run does not mention was not sent.

    The model's own settings, e.g. its `extra_body`, go before those of the run. What they say
    within other things, e.g. the tokens of `reasoning`, is no limit of the answer.
    """
    generation = run.settings.get("generation", {})
    settings = flatten(in_snake_case(run.settings.get("model_settings") or {}))
    given = {name: value for name, value in settings.items() if value is not None}
    sent = {name.rpartition(".")[2]: value for name, value in given.items()}
    own = {
        name.removeprefix("extra_body.").removeprefix("generation_config."): value
        for name, value in given.items()
    }
    limits = [*(own[name] for name in _LIMITS if name in own), generation.get("max_new_tokens")]
    parameters = (
        (own.get("temperature", generation.get("temperature")), _DEFAULT),
        (limits[0], _DEFAULT),
        *((sent.get(name), DASH) for name in _SAMPLING),
        (own.get("seed", run.settings.get("seed")), DASH),
    )
    return [default if value is None else shorten(str(value)) for value, default in parameters]
