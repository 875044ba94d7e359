"""Mistakes in the class of a benchmark that would change prompts or numbers without an error."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, Final, get_args

from omnidata.actions import Space
from omnidata.errors import PluginError, suggestion
from omnidata.metrics import episodes
from omnidata.tasks.coordinates import answer_space
from omnidata.tasks.marks import deciding
from omnidata.tasks.totals import EpisodeTotals, RowTotals

if TYPE_CHECKING:
    from omnidata.tasks.benchmark import Rule

_BLANKS: Final = ("{instruction}", "{history}")
_ALONE: Final = re.compile(r"(?<!\w)\{\s*[^\W\d]\w*\s*\}")
"""A word alone in braces, but for an argument of TeX: no JSON has one."""
_COUNTS: Final = frozenset(
    {"steps", "rows", "episodes", "whole_episodes", "confusion", "undefined", "ci95", "ci95_method"}
)
"""The entries of tables in addition to their columns."""


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


def check_option(kind: type, option: str, values: Any) -> None:
    """Refuse one text as the values of an option, and unknown units of `coordinates`."""
    if isinstance(values, str):
        raise fault(
            kind,
            f"has {values!r} as the values of the option {option} in `allowed`",
            'a tuple of texts, the default first; ("",) where any text is one',
        )
    if option != "coordinates":
        return
    if unknown := [unit for unit in values if answer_space({option: unit}) is None]:
        raise fault(
            kind,
            f"has {unknown[0]!r} as a value of the option coordinates in `allowed`",
            f"units that places may be in: {', '.join(get_args(Space))}",
            suggestion(str(unknown[0]), get_args(Space)),
        )


def check_question(kind: type, question: str) -> None:
    """Refuse a word in braces that is no placeholder of a question."""
    for found in _ALONE.findall(question):
        if found not in _BLANKS:
            raise fault(
                kind,
                f"has {found} in `question`, which is no placeholder",
                f"{' or '.join(_BLANKS)}; braces around several words stay as they are",
                suggestion(found, _BLANKS)
                or "use other characters than braces, or override `prompt`",
            )


def check_rule(kind: type, rule: Rule[Any]) -> None:
    """Refuse a reach in another unit, columns of one name, and columns that no table can have."""
    if rule.reach != 0 and not 1 <= rule.reach < math.inf:
        raise fault(
            kind,
            f"has {rule.reach!r:.80} as `reach` of its profile {rule.name}",
            "the allowed distance from a target point, in thousandths of the screen: 140 for 14 %",
        )
    totals = rule.totals
    if totals.repeated:
        raise fault(
            kind,
            f"has several columns {next(iter(totals.repeated))} in its profile {rule.name}",
            "a name of its own for each column",
            "rename all but one of the columns",
        )
    if isinstance(totals, EpisodeTotals) and type(totals).total is EpisodeTotals.total:
        _check_metrics(rule, totals)
    if found := next((column for column in totals.columns if column in _COUNTS), ""):
        raise fault(
            kind,
            f"has a column {found} in its profile {rule.name}, but tables have a count of that "
            "name",
            f"columns that are not called {', '.join(sorted(_COUNTS))}",
            "choose another name for the column",
        )
    if type(totals).total in (RowTotals.total, EpisodeTotals.total):
        _check_decision(kind, rule.name, totals)


def _check_metrics(rule: Rule[Any], totals: EpisodeTotals) -> None:
    known, metrics = (*episodes.METRICS, "GP"), totals.metrics
    wrong = [name for name in totals.columns if name not in metrics and name not in totals.means]
    wrong += [
        f"{name} (metric {metric})" for name, metric in metrics.items() if metric not in known
    ]
    if wrong:
        kind = type(rule)
        raise PluginError(
            f"the totals of the profile {rule.name} have columns of no known metric: "
            f"{', '.join(wrong)}",
            where=f"{kind.__module__}.{kind.__qualname__}",
            expected=f"Column(NAME, metric=...) with one of {', '.join(known)}; or "
            f"Column(NAME, VALUE) with one of {', '.join(totals.values)}",
            remedy="fix the profile, or report it to the authors of the plug-in",
        )


def _check_decision(kind: type, name: str, totals: RowTotals | EpisodeTotals) -> None:
    """The value that says whether an answer is right must be larger for better answers."""
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
