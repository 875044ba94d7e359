"""Success rates of rollouts, their endings, turns, and repeated attempts.

A rollout is an agent's attempt at a task in an environment, which scores it. Success rates are
means over finished examples and over a fixed set, and micro averages over the examples of a group
or a domain, as in OSWorld's Tables 5 and 13. Endings are as in AgentStudio's Tables 2 and 3,
lengths as in OSWorld's Figure 9.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from typing import Any, Final, Literal, get_args

import numpy as np

from omnidata.metrics.intervals import method_column
from omnidata.metrics.row_tables import means

RATES = ("SR_finished", "SR_all")


@dataclass(frozen=True, slots=True)
class Example:
    """An attempted example.

    Attributes:
        domain: one of the set's.
        score: 0 to 1, the mean over finished attempts; None without any.
        counted: its value in `SR_all`, the mean over all attempts; unfinished attempts count
            0. None stands for the score.
        tags: axis -> group, beside the domain.
    """

    domain: str
    score: float | None
    counted: float | None = None
    tags: Mapping[str, str] = field(default_factory=dict)


def total(
    examples: Sequence[Example],
    *,
    sizes: Mapping[str, int],
    groups: Mapping[str, Sequence[str]],
    axes: Mapping[str, Mapping[str, int | None]] = {},
    seed: int = 0,
) -> dict[str, Any]:
    """Return the results of one agent's scored examples.

    Args:
        examples: the attempted ones, each once: rates of several agents are never pooled.
        sizes: the set's number of examples per domain.
        groups: names of groups and their domains.
        axes: of the tags, the groups in order, and the set's number of examples of each; None if
            unknown.
        seed: of the bootstrap.

    Returns:
        `overall` and `by`, name -> group -> table, for "group", "domain" and the axes of the
        examples' tags. A table has `SR_finished`, the mean over examples with a score, None without
        any, as in the release's `show_result.py`; `SR_all`, the mean over the whole set (absent
        and unfinished examples count 0), None if the size of the set is unknown; `ci95` with
        a pair or None for each; `tasks`, the number behind `SR_all`, or of attempted examples;
        `finished`. If a domain or group has more examples than the set, all count.

    Raises:
        ValueError: the set does not have the domain of an example.

    Examples:
        >>> tried = [Example("os", 1.0), Example("os", 0.5), Example("os", None)]
        >>> found = total(tried, sizes={"os": 4, "vlc": 2}, groups={"OS": ["os"]})["overall"]
        >>> found["SR_finished"], found["SR_all"], found["tasks"], found["finished"]
        (0.75, 0.25, 6, 2)
    """
    unknown = {example.domain for example in examples} - sizes.keys()
    if unknown:
        raise ValueError(f"the set has no domain {min(unknown)!r}")
    by_domain: dict[str, list[Example]] = {domain: [] for domain in sizes}
    for example in examples:
        by_domain[example.domain].append(example)
    for domain, found in by_domain.items():
        found += [Example(domain, None)] * (sizes[domain] - len(found))

    def table(domains: Iterable[str]) -> dict[str, Any]:
        return _table([one for domain in domains for one in by_domain[domain]], seed)

    def table_of_tag(axis: str, group: str, size: int | None) -> dict[str, Any]:
        found = [one for one in examples if one.tags.get(axis) == group]
        absent = [Example("", None)] * (0 if size is None else size - len(found))
        made = _table([*found, *absent], seed)
        if size is None:
            made |= {"SR_all": None, "ci95": made["ci95"] | {"SR_all": None}}
        return made

    named = {name: [one for one in found if one in sizes] for name, found in groups.items()}
    told = {axis: {one.tags[axis] for one in examples if axis in one.tags} for axis in axes}
    return {
        "overall": table(sizes),
        "by": {
            "group": {name: table(found) for name, found in named.items() if found},
            "domain": {domain: table([domain]) for domain in sizes},
            **{
                axis: {
                    group: table_of_tag(axis, group, size)
                    for group, size in known.items()
                    if size or group in told[axis]
                }
                for axis, known in axes.items()
                if told[axis]
            },
        },
    }


def _table(examples: Sequence[Example], seed: int) -> dict[str, Any]:
    scores = [np.nan if one.score is None else one.score for one in examples]
    counted = [one.score or 0.0 if one.counted is None else one.counted for one in examples]
    finished = means({"SR_finished": np.array(scores)}, shares=("SR_finished",), seed=seed)
    fixed = means({"SR_all": np.array(counted)}, shares=("SR_all",), seed=seed)
    return {
        "SR_finished": finished["SR_finished"],
        "SR_all": fixed["SR_all"],
        "ci95": {**finished["ci95"], **fixed["ci95"]},
        **method_column(finished.get("ci95_method", {}) | fixed.get("ci95_method", {})),
        "tasks": fixed["rows"],
        "finished": finished["rows"],
    }


# How rollouts end, within how many turns they succeed, and what they take.

Ending = Literal[
    "completed",
    "finished",
    "fail_right",
    "fail_wrong",
    "fail",
    "repetition",
    "parse_error",
    "no_progress",
    "step_limit",
    "time_limit",
    "crash",
    "unknown",
]
"""How an attempt ended; see `ENDINGS`."""
ENDINGS: Final[Mapping[Ending, str]] = {
    "completed": "ended by the environment, as everything was done",
    "finished": "said to be done",
    "fail_right": "said to be infeasible, which it is",
    "fail_wrong": "said to be infeasible, which it is not",
    "fail": "said to be infeasible; nobody knows whether it is",
    "repetition": "the same turns over and over",
    "parse_error": "nothing that could be run",
    "no_progress": "no progress for too many turns",
    "step_limit": "step limit",
    "time_limit": "time limit",
    "crash": "crash",
    "unknown": "nothing says why",
}
assert tuple(ENDINGS) == get_args(Ending)
REPEATS: Final = 3
"""How often the last turns must have come one after the other to be a repetition."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at a task.

    Attributes:
        task: name of the task; its attempts are resampled together.
        score: 0 to 1; None if the environment returned none.
        ending: how it ended; None without a recording.
        turns: number of the agent's turns; None if unknown.
        seconds: duration; None if unknown.
        tokens: the model's input and output tokens; None if unknown.
        gains: the turn, from 1, of each part of the score, and the part; empty if the score is
            known only at the end.
    """

    task: str
    score: float | None
    ending: Ending | None = None
    turns: int | None = None
    seconds: float | None = None
    tokens: int | None = None
    gains: Sequence[tuple[int, float]] = ()

    @property
    def succeeded(self) -> bool:
        """Whether the score is 1; a partial score is no success."""
        return self.score == 1


def period(turns: Sequence[str], *, times: int = REPEATS) -> int:
    """Return the length of the shortest cycle of the last turns; 0 if there is none.

    Args:
        turns: the actions of each turn.
        times: the number of consecutive repetitions, up to the last turn.

    Returns:
        The length in turns: 1 if one turn is repeated.

    Examples:
        >>> period(["a", "b", "b", "b"]), period(["x", "a", "b", "a", "b", "a", "b"])
        (1, 2)
        >>> period(["b", "a", "a"])
        0
    """
    for length in range(1, len(turns) // times + 1):
        last = turns[-length * times :]
        if all(one == last[place % length] for place, one in enumerate(last)):
            return length
    return 0


def endings(attempts: Sequence[Attempt], *, seed: int = 0) -> dict[str, Any]:
    """Return the endings of attempts (AgentStudio, Tables 2 and 3).

    Args:
        attempts: of one agent; those without a recorded ending are left out.
        seed: of the bootstrap over tasks.

    Returns:
        The number of `attempts`; `endings`, name -> count, and `failures`, the same of attempts
        without success or score; `active_finish`, the share of attempts that the agent ended;
        `false_finish`, the share of failures among those with a score; both None over no attempts,
        with `ci95`.

    Examples:
        >>> ended = endings([Attempt("a", 1.0, "finished"), Attempt("b", 0.0, "finished"),
        ...                  Attempt("c", None, "crash"), Attempt("d", 1.0)])
        >>> ended["endings"], ended["failures"], ended["false_finish"]
        ({'finished': 2, 'crash': 1}, {'finished': 1, 'crash': 1}, 0.5)
    """
    found = [one for one in attempts if one.ending is not None]
    done = [one for one in found if one.ending == "finished"]
    judged = [one for one in done if one.score is not None]
    active = _share([one.ending == "finished" for one in found], found, "active_finish", seed)
    false = _share([not one.succeeded for one in judged], judged, "false_finish", seed)
    return {
        "attempts": len(found),
        "endings": _count_endings(found),
        "failures": _count_endings([one for one in found if not one.succeeded]),
        "active_finish": active["active_finish"],
        "false_finish": false["false_finish"],
        "ci95": active["ci95"] | false["ci95"],
        **method_column(active.get("ci95_method", {}) | false.get("ci95_method", {})),
    }


def _count_endings(attempts: Iterable[Attempt]) -> dict[str, int]:
    counts = Counter(one.ending for one in attempts)
    return {name: counts[name] for name in ENDINGS if counts[name]}


def _share(
    hits: Sequence[bool], attempts: Sequence[Attempt], name: str, seed: int
) -> dict[str, Any]:
    values = {name: np.array(hits, np.float64)}
    _, owner = np.unique([one.task for one in attempts], return_inverse=True)
    return means(values, shares=(name,), owner=owner, seed=seed)


def within(attempts: Sequence[Attempt], most: int) -> list[float]:
    """Return the success rate within 1, 2, ... turns.

    Args:
        attempts: those with a score and a number of turns count.
        most: turns of the last point, at least those of the longest attempt.

    Returns:
        (most,): the mean score by that turn. A score with `gains` counts part by part; any other
        counts from the attempt's last turn on. The last point is the mean score. The mean of all
        points is the area under the curve, 1 for an agent that always succeeds in the first turn.
        Empty over no attempts.

    Examples:
        >>> within([Attempt("a", 1.0, turns=2), Attempt("b", 0.0, turns=1)], 3)
        [0.0, 0.5, 0.5]
        >>> within([Attempt("a", 0.75, turns=3, gains=[(1, 0.25), (2, 0.5)])], 3)
        [0.25, 0.75, 0.75]
    """
    found = [
        one.gains or [(one.turns, one.score)]
        for one in attempts
        if one.turns and one.score is not None
    ]
    if not found:
        return []
    gained = np.zeros(most)
    for gains in found:
        for turn, part in gains:
            gained[turn - 1] += part
    curve: list[float] = (gained.cumsum() / len(found)).tolist()
    return curve


def effort(values: Iterable[float | None]) -> dict[str, Any] | None:
    """Return `n`, `mean`, `median`, `p95` and `most` of the known values; None without any.

    Examples:
        >>> effort([1, 3, None])
        {'n': 2, 'mean': 2.0, 'median': 2.0, 'p95': 2.9, 'most': 3.0}
    """
    known = [value for value in values if value is not None]
    if not known:
        return None
    median, most = np.percentile(known, [50, 95]).tolist()
    mean = float(np.mean(known))
    return {"n": len(known), "mean": mean, "median": median, "p95": most, "most": float(max(known))}


def behaviour(
    attempts: Sequence[Attempt],
    *,
    limit: int | None = None,
    axes: Mapping[str, Mapping[str, str]] = {},
    seed: int = 0,
) -> dict[str, Any]:
    """Return the behaviour of one agent's attempts, the key `rollouts` of `results.json`.

    Args:
        attempts: of one agent.
        limit: its limit of turns; None if unknown.
        axes: axis -> task -> group, for tables of endings.
        seed: of the bootstrap.

    Returns:
        The result of `endings`; `unrecorded`, the number of attempts with at most a score;
        `turns`, `seconds` and `tokens` as `effort` returns them, and `lengths`, turns -> number of
        attempts (OSWorld, Figure 9); `step_limit`; the curve `within`, up to the limit or the
        longest attempt, and its `area`; `by`, axis -> group -> the result of `endings`.

    Examples:
        >>> found = behaviour([Attempt("a", 1.0, "finished", 1), Attempt("b", 0.0, "crash", 2)])
        >>> found["within"], found["area"], found["lengths"]
        ([0.5, 0.5], 0.5, {'1': 1, '2': 1})
    """
    recorded = [one for one in attempts if one.ending is not None]
    lengths = Counter(one.turns for one in recorded if one.turns)
    curve = within(recorded, max([*lengths, limit or 0]))
    by = {
        axis: {
            group: endings([one for one in attempts if known.get(one.task) == group], seed=seed)
            for group in dict.fromkeys(known.values())
        }
        for axis, known in axes.items()
    }
    return {
        **endings(attempts, seed=seed),
        "unrecorded": len(attempts) - len(recorded),
        "turns": effort(one.turns for one in recorded),
        "seconds": effort(one.seconds for one in recorded),
        "tokens": effort(one.tokens for one in recorded),
        "lengths": {str(turns): lengths[turns] for turns in sorted(lengths)},
        "step_limit": limit,
        "within": curve,
        "area": float(np.mean(curve)) if curve else None,
        "by": by,
    }


# Several attempts at each task.


def pass_at(n: int, c: int, k: int) -> float:
    """Return pass@k: the unbiased estimate that one of k attempts succeeds, from n attempts.

    M. Chen et al., Evaluating Large Language Models Trained on Code (2021), section 2.1:
    1 - C(n - c, k) / C(n, k).

    Args:
        n: attempts.
        c: successful attempts.
        k: 1 to n.

    Examples:
        >>> pass_at(4, 1, 1), pass_at(4, 1, 2), pass_at(4, 0, 4)
        (0.25, 0.5, 0.0)
    """
    return 1 - comb(n - c, k) / comb(n, k)


def pass_all(n: int, c: int, k: int) -> float:
    """Return pass^k: the unbiased estimate that all of k attempts succeed, C(c, k) / C(n, k).

    S. Yao et al., tau-bench (2024), section 3.

    Examples:
        >>> pass_all(4, 2, 1), round(pass_all(4, 2, 2), 3), pass_all(4, 2, 3)
        (0.5, 0.167, 0.0)
    """
    return comb(c, k) / comb(n, k)


_CHOSEN: Final = (1, 2, 3, 4, 5, 8, 16, 32, 64)


def choices(n: int) -> list[int]:
    """Return the numbers k for which tables show pass@k and pass^k of n attempts.

    Examples:
        >>> choices(3), choices(10)
        ([1, 2, 3], [1, 2, 3, 4, 5, 8, 10])
    """
    return [*(k for k in _CHOSEN if k < n), n]


def repetition(attempts: Sequence[Attempt], n: int, tasks: int, *, seed: int = 0) -> dict[str, Any]:
    """Return pass@k and pass^k of several attempts at each task.

    A success is a score of 1. Absent and unfinished attempts have failed in the metrics over the
    whole set; the others are over the tasks whose attempts all finished.

    Args:
        attempts: of one agent, at most n at a task.
        n: attempts per task.
        tasks: the set's number of tasks, at least that of the attempted ones.
        seed: of the bootstrap over tasks.

    Returns:
        `n`; `finished`, the number of tasks whose attempts all finished; `tasks`; and by k, each of
        `choices` as a text, `pass@k` and `pass^k` over the finished tasks, `pass@k_all` and
        `pass^k_all` over the set, each with `ci95`, and `ci95_method` if an interval is not a
        bootstrap's; None over no task.

    Examples:
        >>> tried = [Attempt("a", 1.0), Attempt("a", 0.0), Attempt("b", 1.0)]
        >>> found = repetition(tried, 2, 2)
        >>> found["finished"], found["k"]["2"]["pass@k"], found["k"]["2"]["pass^k_all"]
        (1, 1.0, 0.0)
        >>> found["k"]["1"]["pass@k_all"]
        0.5
    """
    scores: dict[str, list[float | None]] = {}
    for one in attempts:
        scores.setdefault(one.task, []).append(one.score)
    whole = [each for each in scores.values() if len(each) == n and None not in each]
    sides = {
        "": [each.count(1) for each in whole],
        "_all": [each.count(1) for each in scores.values()] + [0] * (tasks - len(scores)),
    }
    by_k = {}
    for k in choices(n):
        made: dict[str, Any] = {}
        ci95: dict[str, Any] = {}
        methods: dict[str, str] = {}
        for side, right in sides.items():
            columns = {
                f"{name}{side}": np.array([rule(n, c, k) for c in right], np.float64)
                for name, rule in (("pass@k", pass_at), ("pass^k", pass_all))
            }
            found = means(columns, shares=columns.keys(), seed=seed)
            made |= {name: found[name] for name in columns}
            ci95 |= found["ci95"]
            methods |= found.get("ci95_method", {})
        by_k[str(k)] = {**made, "ci95": ci95, **method_column(methods)}
    return {"n": n, "finished": len(whole), "tasks": len(sides["_all"]), "k": by_k}
