"""Mistakes in the class of a benchmark that would change prompts or numbers without an error."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args

from omnidata.actions import Space
from omnidata.errors import PluginError, suggestion
from omnidata.metrics import episodes
from omnidata.tasks.coordinates import answer_space
from omnidata.tasks.explaining import deciding
from omnidata.tasks.totals import EpisodeTotals, RowTotals

BLANKS: Final = ("instruction", "history")
"""The placeholders of a question."""
_ALONE: Final = re.compile(r"(?<!\w)\{\s*[^\W\d]\w*\s*\}")
"""A word alone in braces, but for an argument of TeX: no JSON has one."""
_COUNTS: Final = frozenset(
    {"steps", "rows", "episodes", "whole_episodes", "confusion", "undefined", "ci95", "ci95_method"}
)
"""What tables have beside their columns."""


def fault(kind: type, what: str, expected: str, remedy: str = "") -> PluginError:
    """Return the error about a mistake in a class.

    Args:
        kind: the class.
        what: the mistake, as the rest of a sentence about the class.
        expected: a correct class, in words.
        remedy: how to fix it; empty for the usual one.
    """
    return PluginError(
        f"{kind.__name__} {what}",
        where=f"{kind.__module__}.{kind.__qualname__}",
        expected=expected,
        remedy=remedy or "fix the class, or report it to the authors of the plug-in",
    )


def check_options(kind: type, allowed: Mapping[str, Sequence[str]]) -> None:
    """Check the options that a benchmark allows.

    Raises:
        PluginError: the values of an option are one text, or `coordinates` has an unknown unit.
    """
    for option, values in allowed.items():
        if isinstance(values, str):
            raise fault(
                kind,
                f"has {values!r} as the values of the option {option} in `allowed`",
                'a tuple of texts, the default first; ("",) where any text is one',
            )
    units = allowed.get("coordinates", ())
    if unknown := [unit for unit in units if answer_space({"coordinates": unit}) is None]:
        raise fault(
            kind,
            f"has {unknown[0]!r} as a value of the option coordinates in `allowed`",
            f"units that places may be in: {', '.join(get_args(Space))}",
            suggestion(str(unknown[0]), get_args(Space)),
        )


def check_reach(kind: type, name: str, reach: Any) -> None:
    """Check the allowed distance from a target point, of one profile.

    Raises:
        PluginError: it is not in thousandths of the screen.
    """
    if reach != 0 and not 1 <= reach < math.inf:
        raise fault(
            kind,
            f"has {reach!r:.80} as `reach` of its profile {name}",
            "the allowed distance from a target point, in thousandths of the screen: 140 for 14 %",
        )


def check_question(kind: type, question: str) -> None:
    """Check that a question has no placeholders but `BLANKS`.

    Raises:
        PluginError: it has another word in braces.
    """
    blanks = [f"{{{name}}}" for name in BLANKS]
    for found in _ALONE.findall(question):
        if found not in blanks:
            raise fault(
                kind,
                f"has {found} in `question`, which is no placeholder",
                f"{' or '.join(blanks)}; braces around several words stay as they are",
                suggestion(found, blanks)
                or "use other characters than braces, or override `prompt`",
            )


def check_metrics(kind: type, name: str, totals: EpisodeTotals) -> None:
    """Check that each column of episodes is one of our metrics, or the mean of a value.

    Totals of other kinds may differ.

    Args:
        kind: the class of the rule.
        name: of the rule.
        totals: of the rule.

    Raises:
        PluginError: a column is none.
    """
    if type(totals).total is not EpisodeTotals.total:
        return
    known = (*episodes.METRICS, "GP")
    wrong = [
        f"`columns` has {name}"
        for name in totals.columns
        if name not in totals.metrics and name not in totals.means
    ]
    wrong += [
        f"`metrics` has {name} as {metric}"
        for name, metric in totals.metrics.items()
        if metric not in known
    ]
    if wrong:
        raise PluginError(
            f"the profile {name} does not say which metrics it has: {', '.join(wrong)}",
            where=f"{kind.__module__}.{kind.__qualname__}",
            expected=f"each of `columns` in `metrics`, as one of {', '.join(known)}, "
            "or the mean of a value",
            remedy="fix the profile, or report it to the authors of the plug-in",
        )


def check_columns(kind: type, name: str, columns: Mapping[str, Any]) -> None:
    """Check that no column of a profile has the name of a count that tables have anyway.

    Raises:
        PluginError: a column has.
    """
    if found := next((column for column in columns if column in _COUNTS), ""):
        raise fault(
            kind,
            f"has a column {found} in its profile {name}, but tables have a count of that name",
            f"columns that are not called {', '.join(sorted(_COUNTS))}",
            "choose another name for the column",
        )


def check_decision(kind: type, name: str, totals: RowTotals | EpisodeTotals) -> None:
    """Check that the value that says whether an answer is right is larger for better answers.

    Args:
        kind: the class of the benchmark.
        name: of the rule.
        totals: of the rule; totals of other kinds may differ.

    Raises:
        PluginError: a smaller value is better.
    """
    if type(totals).total not in (RowTotals.total, EpisodeTotals.total):
        return
    if isinstance(totals, EpisodeTotals):
        values, decisive = totals.means, totals.step_metric[1]
    else:
        values = dict(zip(totals.columns, totals.values, strict=False))
        decisive = deciding({value: value for value in totals.values})
    for column in totals.lower_is_better:
        if values.get(column) == decisive:
            raise fault(
                kind,
                f"has {column} as the value that says whether an answer is right in its profile "
                f"{name}, but of {column} a smaller value is better",
                "a value `score` or `exact_match` that is 1 for right answers, or such a value "
                "first",
                'add a column such as Column("hit", "score") to `totals`, and its value to `judge`',
            )
