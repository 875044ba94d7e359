"""Tables of OmniBench: means over tasks with intervals, overall and by what the tasks are.

A task with several applications or categories counts in the group of each. Values are unrounded
fractions; intervals are 95 % percentile bootstraps over tasks. These are taken for independent: the
paper's 36,076 share 255 subtasks, and true intervals are wider. The paper does not say how its
overall CR follows from the ten capabilities' test tasks; here it is the mean over all tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from omnidata.metrics.agentstudio_critic import Floats, Ints
from omnidata.metrics.agentstudio_totals import means
from omnidata.metrics.graph import DEFAULT_PROFILE, ProfileName, TaskScore
from omnidata.metrics.graph_complexity import DIMENSIONS, LEVELS, capabilities, eligible
from omnidata.metrics.proportion import named_methods


def total(
    scores: Sequence[TaskScore],
    *,
    profile: ProfileName = DEFAULT_PROFILE,
    intents: Sequence[str | None] | None = None,
    labels: Sequence[Sequence[str]] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Everything that is reported about scored tasks.

    Args:
        scores: one per task.
        profile: whose values to average.
        intents: one per task; None = in no group.
        labels: the capabilities that each task was chosen to test, where the data say so.
        seed: of the bootstrap.

    Returns:
        `overall`, a table, and `by`, name -> group -> table, for "app", "category", the five
        dimensions of complexity, "eligible" (what Table 11 admits), and, where given, "intent" and
        "capability". A table holds the profile's means, None over nothing; `ci95` with a pair or
        None for each; `tasks`; and for the paper's profile `undefined_LC`, tasks without LC, and
        `capped_LC`, tasks of which only bounds are known. Neither counts in the mean of LC; where
        there are any of the latter, `LC_bounds` is what it would lie between with them.

    Raises:
        ValueError: another number of intents or labels than of scores.
    """
    if any(len(given) != len(scores) for given in (intents, labels) if given is not None):
        raise ValueError("every task needs an intent and labels, be it None and none")
    groups: dict[str, tuple[Sequence[Iterable[str]], Sequence[str]]] = {
        "app": ([score.applications for score in scores], ()),
        "category": ([score.categories for score in scores], ()),
    }
    levels = [score.complexity.levels() for score in scores]
    for dimension in DIMENSIONS:
        groups[dimension] = ([(found[dimension],) for found in levels], LEVELS)
    if intents is not None:
        groups["intent"] = ([() if intent is None else (intent,) for intent in intents], ())
    if labels is not None:
        groups["capability"] = (labels, tuple(capabilities()))
    groups["eligible"] = ([eligible(score.complexity) for score in scores], tuple(capabilities()))
    columns = _columns(scores, profile)
    return {
        "overall": _table(columns, profile, seed),
        "by": {
            name: {
                group: _table({key: column[rows] for key, column in columns.items()}, profile, seed)
                for group, rows in _members(tasks, order).items()
            }
            for name, (tasks, order) in groups.items()
        },
    }


def sensitivity(scores: Sequence[Sequence[float]], *, ddof: int = 0) -> float:
    """How much a score depends on the wording of the instruction (section 5.3, Table 6).

    Args:
        scores: for each task its score under each instruction; the paper has ten tasks with three
            orders of expression each.
        ddof: 0 for the population's deviation, 1 for the sample's; the paper names neither.

    Returns:
        The mean over tasks of the standard deviation over instructions.

    Raises:
        ValueError: no task, or one with too few instructions for `ddof`.

    Examples:
        >>> sensitivity([[10, 10, 10], [0, 3, 6]]), sensitivity([[0, 3, 6]], ddof=1)
        (1.224744871391589, 3.0)
    """
    if not scores or min(len(task) for task in scores) <= ddof:
        raise ValueError(f"every task needs more than {ddof} scores")
    return float(np.mean([np.std(task, ddof=ddof) for task in scores]))


def _columns(scores: Sequence[TaskScore], profile: ProfileName) -> dict[str, Floats]:
    """Values per task, (N,) each; NaN = not known."""
    if profile == "omnibench-release":
        return {
            "completion": np.array([score.completion for score in scores]),
            "coherence": np.array([score.run_coherence for score in scores]),
        }
    bounds = [score.lc for score in scores]
    lower, upper = (
        np.array([np.nan if pair is None else float(pair[end]) for pair in bounds], np.float64)
        for end in (0, 1)
    )
    return {"CR": np.array([float(score.cr) for score in scores]), "lower": lower, "upper": upper}


def _table(columns: Mapping[str, Floats], profile: ProfileName, seed: int) -> dict[str, Any]:
    if profile == "omnibench-release":
        table = means(columns, shares=columns.keys(), seed=seed)
        return {**table, "tasks": table.pop("rows")}
    lower, upper = columns["lower"], columns["upper"]
    undefined = np.isnan(lower)
    capped = ~undefined & (lower != upper)
    rate = means({"CR": columns["CR"]}, shares=("CR",), seed=seed)
    known = {"LC": np.where(capped, np.nan, lower)}
    consistency = means(known, shares=("LC",), seed=seed)
    table = {
        "CR": rate["CR"],
        "LC": consistency["LC"],
        "ci95": {**rate["ci95"], **consistency["ci95"]},
        **named_methods(rate.get("ci95_method", {}) | consistency.get("ci95_method", {})),
        "tasks": rate["rows"],
        "undefined_LC": int(undefined.sum()),
        "capped_LC": int(capped.sum()),
    }
    if capped.any():
        table["LC_bounds"] = [float(np.nanmean(lower)), float(np.nanmean(upper))]
    return table


def _members(groups: Sequence[Iterable[str]], order: Sequence[str]) -> dict[str, Ints]:
    """Name of a group -> rows in it, int64; first as in `order`, the others sorted."""
    found: dict[str, list[int]] = {}
    for row, names in enumerate(groups):
        for name in set(names):
            found.setdefault(name, []).append(row)
    ranks = {name: rank for rank, name in enumerate(order)}
    names = sorted(found, key=lambda name: (ranks.get(name, len(ranks)), name))
    return {name: np.array(found[name], dtype=np.int64) for name in names}
