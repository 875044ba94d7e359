"""OSWorld's success rates: means over examples, of those that finished and of a fixed set.

The paper's tables are micro averages over the examples of a group (Table 5) or a domain (Table 13).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from math import comb
from typing import Any

import numpy as np

from omnidata.metrics.intervals import named_methods
from omnidata.metrics.row_tables import means

RATES = ("SR_finished", "SR_all")


@dataclass(frozen=True, slots=True)
class Example:
    """One example that was tried.

    Attributes:
        domain: one of the set's.
        score: 0 to 1; None where it has not finished.
    """

    domain: str
    score: float | None


def total(
    examples: Sequence[Example],
    *,
    sizes: Mapping[str, int],
    groups: Mapping[str, Sequence[str]],
    seed: int = 0,
) -> dict[str, Any]:
    """Everything that is reported about one agent's scored examples.

    Args:
        examples: those that were tried, each once: rates of several agents are never pooled.
        sizes: how many examples the set has of each domain.
        groups: names of groups and their domains.
        seed: of the bootstrap.

    Returns:
        `overall` and `by`, name -> group -> table, for "group" and "domain". A table holds
        `SR_finished`, the mean over examples with a score, None over none, as the release's
        `show_result.py` has it; `SR_all`, the mean over all that the set has, where what is absent
        or unfinished counts 0; `ci95` with a pair or None for each; `tasks`, how
        many `SR_all` is over; `finished`. Of a domain with more examples than the set has, all
        count.

    Raises:
        ValueError: an example of a domain that the set does not have.

    Examples:
        >>> tried = [Example("os", 1.0), Example("os", 0.5), Example("os", None)]
        >>> found = total(tried, sizes={"os": 4, "vlc": 2}, groups={"OS": ["os"]})["overall"]
        >>> found["SR_finished"], found["SR_all"], found["tasks"], found["finished"]
        (0.75, 0.25, 6, 2)
    """
    unknown = {example.domain for example in examples} - sizes.keys()
    if unknown:
        raise ValueError(f"the set has no domain {min(unknown)!r}")
    scores: dict[str, list[float | None]] = {domain: [] for domain in sizes}
    for example in examples:
        scores[example.domain].append(example.score)
    for domain, found in scores.items():
        found += [None] * (sizes[domain] - len(found))

    def table(domains: Iterable[str]) -> dict[str, Any]:
        return _table([score for domain in domains for score in scores[domain]], seed)

    named = {name: [one for one in found if one in sizes] for name, found in groups.items()}
    return {
        "overall": table(sizes),
        "by": {
            "group": {name: table(found) for name, found in named.items() if found},
            "domain": {domain: table([domain]) for domain in sizes},
        },
    }


def _table(scores: Sequence[float | None], seed: int) -> dict[str, Any]:
    given = np.array([np.nan if score is None else score for score in scores], np.float64)
    finished = means({"SR_finished": given}, shares=("SR_finished",), seed=seed)
    fixed = means({"SR_all": np.nan_to_num(given)}, shares=("SR_all",), seed=seed)
    return {
        "SR_finished": finished["SR_finished"],
        "SR_all": fixed["SR_all"],
        "ci95": {**finished["ci95"], **fixed["ci95"]},
        **named_methods(finished.get("ci95_method", {}) | fixed.get("ci95_method", {})),
        "tasks": fixed["rows"],
        "finished": finished["rows"],
    }


def grouped(
    shares: Mapping[str, float],
    *,
    sizes: Mapping[str, int],
    groups: Mapping[str, Sequence[str]],
) -> dict[str, float]:
    """Table 5's columns from those of Table 13: means weighted by the examples of each domain.

    Args:
        shares: by domain, in any unit.
        sizes: how many examples each domain has.
        groups: names of groups and their domains.

    Returns:
        By group, and `Overall`; a group without one of the domains is left out.

    Examples:
        >>> shares, sizes = {"os": 50.0, "vlc": 20.0}, {"os": 1, "vlc": 2}
        >>> grouped(shares, sizes=sizes, groups={"OS": ["os"], "Daily": ["vlc", "chrome"]})
        {'OS': 50.0, 'Daily': 20.0, 'Overall': 30.0}
    """
    members = {name: [one for one in found if one in shares] for name, found in groups.items()}
    members["Overall"] = list(shares)
    return {
        name: sum(shares[one] * sizes[one] for one in found) / sum(sizes[one] for one in found)
        for name, found in members.items()
        if found
    }


@dataclass(frozen=True, slots=True)
class Published:
    """The paper's tables, in percent as printed.

    Attributes:
        table5: row -> group, or "Overall" -> success rate.
        table13: row -> domain -> success rate.
    """

    table5: Mapping[str, Mapping[str, float]]
    table13: Mapping[str, Mapping[str, float]]


@cache
def published() -> Published:
    """The success rates that the paper prints; a row is called `<observation type>/<model>`.

    Examples:
        >>> published().table5["screenshot/GPT-4V"]["Overall"]
        5.26
    """
    path = resources.files("omnidata.metrics").joinpath("rollout_tables.json")
    found = json.loads(path.read_text(encoding="utf-8"))
    return Published(
        *(
            {
                row: dict(zip(found[f"columns{number}"], values, strict=True))
                for row, values in found[f"table{number}"].items()
            }
            for number in (5, 13)
        )
    )


# Several attempts at each task.


def pass_at(n: int, c: int, k: int) -> float:
    """pass@k: how likely one of k attempts succeeds, estimated without bias from n of them.

    M. Chen et al., Evaluating Large Language Models Trained on Code (2021), section 2.1:
    1 - C(n - c, k) / C(n, k).

    Args:
        n: attempts.
        c: of them, those that succeeded.
        k: 1 to n.

    Examples:
        >>> pass_at(4, 1, 1), pass_at(4, 1, 2), pass_at(4, 0, 4)
        (0.25, 0.5, 0.0)
    """
    return 1 - comb(n - c, k) / comb(n, k)


def pass_all(n: int, c: int, k: int) -> float:
    """pass^k: how likely k attempts all succeed, estimated without bias: C(c, k) / C(n, k).

    S. Yao et al., tau-bench (2024), section 3.

    Examples:
        >>> pass_all(4, 2, 1), round(pass_all(4, 2, 2), 3), pass_all(4, 2, 3)
        (0.5, 0.167, 0.0)
    """
    return comb(c, k) / comb(n, k)
