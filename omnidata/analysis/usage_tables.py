"""What runs took, in tokens, time and money, and how their models decoded.

Tokens and latencies are those of the final answers, a line each in `predictions.jsonl`. The cost is
the one that `run.json` has: of every request, those that had to be asked again among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnidata import predictions
from omnidata.analysis.run_tables import named_rows, size, title
from omnidata.analysis.tables import DASH, Cell, CellUnit, Column, Head, Row, Table
from omnidata.analysis.variations import right_of
from omnidata.errors import plural
from omnidata.jsontext import in_snake_case
from omnidata.metrics.intervals import Floats
from omnidata.predictions import Prediction
from omnidata.run.cost import Tokens
from omnidata.run.folder import TRANSIENT
from omnidata.run.run_files import ANSWERS, Run, flat, shorten

_TOKENS: Mapping[str, str] = {
    "input": "Input",
    "image": "Image",
    "audio": "Audio",
    "video": "Video",
    "cached": "Cached",
    "output": "Output",
}
_LEAST_S, _LEAST_COST = 1e-3, 1e-6
"""What `run.json` rounds to: nothing is divided by less."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What the answers of a run took.

    Attributes:
        answers: that a model gave to this run.
        kept: that came out of the cache, and took nothing here.
        unmetered: of the answers, and those that gave way to them, whose tokens nobody told.
        tokens: of the answers.
        latencies: float64 (N,), seconds from a request to its last byte, of the answers that say
            it; of a local model those of the batch.
        per_hour: answers by the clock, waits included; None where no clock tells it: parts of a
            merged run may have run side by side.
        cost: of all requests; None where the run was made without prices.
        currency: of the cost.
        prices_of: the date of the prices.
    """

    answers: int
    kept: int
    unmetered: int
    tokens: Tokens
    latencies: Floats
    per_hour: float | None
    cost: float | None
    currency: str
    prices_of: str

    @property
    def known(self) -> bool:
        """Whether anything is: baselines take no tokens and no time."""
        return bool(self.tokens.total or len(self.latencies) or self.cost is not None)

    @property
    def whole_cost(self) -> float | None:
        """The cost, if it is that of every answer of the run."""
        return None if self.kept or self.unmetered else self.cost


def usage_of(run: Run) -> Usage:
    """What a run says of what it took; nothing where it has scores alone.

    Raises:
        PredictionError: a line is no prediction, or a step has two.
    """
    path = run.path / ANSWERS
    kept = unmetered = answers = 0
    tokens, latencies = Tokens(), []
    for line in predictions.read_final(path) if path.exists() else ():
        if line.delivery in TRANSIENT:
            continue
        if line.receipt.get("cached"):
            kept += 1
            continue
        used = _tokens(line)
        answers += 1
        unmetered += not used.total
        tokens += used
        if line.latency_s > 0:
            latencies.append(line.latency_s)
    said, took = run.settings.get("usage", {}), run.settings.get("timings", {}).get("ask_s", 0)
    told = said.get("unmetered")  # also of answers that gave way to others, which cost too
    unmetered = max(unmetered, told if isinstance(told, int) else 0)
    cost, currency = said.get("cost"), str(said.get("currency", ""))
    merged = "merged" in run.settings
    return Usage(
        answers,
        kept,
        unmetered,
        tokens,
        np.array(latencies, dtype=np.float64),
        3600 * answers / took if answers and took >= _LEAST_S and not merged else None,
        float(cost) if isinstance(cost, int | float) else None,
        currency,
        str(said.get("prices_of", "")),
    )


def _tokens(line: Prediction) -> Tokens:
    """As the server counted them; a local model counts its prompt by modality in the receipt."""
    by_modality = line.receipt.get("tokens")
    if isinstance(by_modality, Mapping):
        return Tokens.of({**line.usage, "prompt_tokens_details": by_modality})
    return Tokens.of(line.usage)


def tables(runs: Sequence[Run]) -> list[Table]:
    """What the runs took, and their hyper-parameters (OmniGUI, Table 6); none of baselines alone.

    Args:
        runs: of one task and profile.

    Raises:
        PredictionError: see `usage_of`.
    """
    found = [usage_of(run) for run in runs]
    if not any(each.known for each in found):
        return []
    asked = [run for run, each in zip(runs, found, strict=True) if each.known]
    return [_cost(runs, found), _decoding(asked)]


def _cost(runs: Sequence[Run], found: Sequence[Usage]) -> Table:
    headers, labels = named_rows(runs)
    metric = right_of(runs[0])[0]
    heads: list[Head] = []
    cells: list[list[Cell]] = [[] for _ in runs]

    def add(
        header: str, columns: Sequence[tuple[str, str, CellUnit, Sequence[float | None]]]
    ) -> None:
        """The columns that any run has a value of: header, metric, unit and values."""
        told = [each for each in columns if any(value is not None for value in each[3])]
        if told:
            heads.append(Head(header, tuple(Column(*column[:3]) for column in told)))
        for *_, values in told:
            for row, value in zip(cells, values, strict=True):
                row.append(Cell(value))

    hours, counts = [each.per_hour for each in found], [each.answers or None for each in found]
    add(
        "Answers", [("asked", "answers", "count", counts), ("per hour", "per_hour", "count", hours)]
    )
    add(
        "Latency (s)",
        [
            (header, f"latency_{header}", "number", [_percentile(each, share) for each in found])
            for header, share in (("median", 50), ("p95", 95))
        ],
    )
    add(
        "Tokens",
        [
            (
                header,
                f"{name}_tokens",
                "count",
                [getattr(each.tokens, name) or None for each in found],
            )
            for name, header in _TOKENS.items()
        ],
    )
    for currency in dict.fromkeys(each.currency for each in found if each.cost is not None):
        own = [each.cost if each.currency == currency else None for each in found]
        per = [
            _right_per(run, each) if each.currency == currency else None
            for run, each in zip(runs, found, strict=True)
        ]
        add(
            f"Cost ({currency})",
            [
                ("whole", f"cost_{currency}", "money", own),
                (f"{metric} per {currency}", f"{metric}_per_{currency}", "number", per),
            ],
        )
    rows = zip(labels, cells, runs, strict=True)
    return Table(
        "cost",
        title("What the runs took", runs),
        runs[0].task,
        runs[0].profile,
        headers,
        tuple(heads),
        tuple(Row(label, tuple(row), run=str(run.path)) for label, row, run in rows),
        tuple(_notes(runs, found, metric)),
    )


def _percentile(usage: Usage, share: float) -> float | None:
    return float(np.percentile(usage.latencies, share)) if len(usage.latencies) else None


def _right_per(run: Run, usage: Usage) -> float | None:
    """Right steps for one unit of the currency; None where not all that was paid is known."""
    metric = right_of(run)[0]
    share, cost = run.results["overall"].get(metric), usage.whole_cost
    if cost is None or cost < _LEAST_COST or share is None or run.columns.get(metric) != "share":
        return None
    return float(share) * size(run) / cost


def _notes(runs: Sequence[Run], found: Sequence[Usage], metric: str) -> list[str]:
    """What a reader must know to read the numbers rightly."""
    told = ["Tokens and latencies: of the final answers. A dash: not reported."]
    if any(each.cost is not None for each in found):
        dates = ", ".join(dict.fromkeys(each.prices_of for each in found if each.prices_of))
        told.append(
            f"Cost: of all requests, at prices of {dates}. {metric} per cost: right steps per unit "
            "of currency."
        )
    for run, each in zip(runs, found, strict=True):
        if each.cost is None:
            continue
        if each.kept:
            told.append(f"{run.path}: {plural(each.kept, 'answer')} from the cache cost nothing.")
        if each.unmetered:
            told.append(
                f"{run.path}: the tokens of {plural(each.unmetered, 'answer')} are unknown."
            )
    return told


# How models decode (OmniGUI, Table 6).

_SAMPLING: Mapping[str, str] = {"top_p": "Top_p", "top_k": "Top_k", "do_sample": "Do_Sample"}
_DEFAULT = "server default"
_LIMITS = ("max_new_tokens", "max_tokens", "max_completion_tokens", "max_output_tokens")
"""What servers call the limit of an answer."""


def _decoding(runs: Sequence[Run]) -> Table:
    """A row per run: the parameters in words, as a server's own defaults are no numbers."""
    labels = [", ".join(filter(None, label)) for label in named_rows(runs)[1]]
    headers = ("Model", "Temperature", "Max Tokens", *_SAMPLING.values(), "Seed")
    return Table(
        "hyperparameters",
        title("Hyper-parameters", runs),
        runs[0].task,
        runs[0].profile,
        headers,
        (),
        tuple(
            Row((label, *_parameters(run)), (), run=str(run.path))
            for label, run in zip(labels, runs, strict=True)
        ),
    )


def _parameters(run: Run) -> tuple[str, ...]:
    """As sent; what a run does not say of the sampling was not sent.

    What a model's own settings say, as its `extra_body`, is sent whatever the run's say; what they
    say within other things, as the tokens of `reasoning`, is no limit of the answer.
    """
    generation = run.settings.get("generation", {})
    settings = flat(in_snake_case(run.settings.get("model_settings") or {}))
    told = {name: value for name, value in settings.items() if value is not None}
    sent = {name.rpartition(".")[2]: value for name, value in told.items()}
    own = {
        name.removeprefix("extra_body.").removeprefix("generation_config."): value
        for name, value in told.items()
    }

    def said(value: Any, otherwise: str) -> str:
        return otherwise if value is None else shorten(str(value))

    limits = [*(own[name] for name in _LIMITS if name in own), generation.get("max_new_tokens")]
    return (
        said(own.get("temperature", generation.get("temperature")), _DEFAULT),
        said(limits[0], _DEFAULT),
        *(said(sent.get(name), DASH) for name in _SAMPLING),
        said(own.get("seed", run.settings.get("seed")), DASH),
    )
