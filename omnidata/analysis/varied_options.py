"""The runs of `omnidata ablate --vary`: values of options, alone or in combination.

Values that the task or the data refuse are found before the first run. An option without meaning
beside the others (the tokens of a tree where no tree is shown) does not refuse the other runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from omnidata.errors import Finding, OmnidataError, UsageError
from omnidata.tasks import get_task
from omnidata.tasks.asking_under_options import check_effects
from omnidata.tasks.common_options import OPTIONS as COMMON
from omnidata.tasks.common_options import split

Varied = Mapping[str, str]
"""Option -> its value in one run."""

Values = Mapping[str, Sequence[str]]
"""Option -> its values, the base's first."""

Refusal = Callable[[Varied], OmnidataError | None]
"""Return why no run can be made with such values; None if one can."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One run.

    Attributes:
        named: the values in its name: all of the base and of a grid, else those in which it differs
            from the base.
        options: all values of the varied options; an absent one has the task's default.
    """

    named: Varied
    options: Varied


def read_values(
    given: Sequence[str], allowed: Values, fixed: Collection[str] = ()
) -> dict[str, list[str]]:
    """Return the values of each varied option.

    Args:
        given: texts of `--vary`.
        allowed: the task's own options.
        fixed: options that are set elsewhere.

    Raises:
        UsageError: an option has fewer than two values, or the same value twice in any spelling, or
            is given twice; or a value that an option of all tasks does not take.

    Examples:
        >>> read_values(["frames=4,8", "history_window=own,1"], {})
        {'frames': ['4', '8'], 'history_window': ['own', '1']}
    """
    options: dict[str, list[str]] = {}
    for text in given:
        name, _, listed = text.partition("=")
        values = [value.strip() for value in listed.split(",")]
        is_repeated = name in options or name in fixed
        meanings = {_meaning(name, value, allowed) for value in values}
        if is_repeated or len(values) < 2 or len(meanings) < len(values):
            raise UsageError(
                "the option is given twice" if is_repeated else "two different values are needed",
                where=f"--vary {text}",
                expected="KEY=V1,V2: each option once, each of its values once, the base's first",
            )
        options[name] = values
    return options


def _meaning(name: str, value: str, allowed: Values) -> str | float:
    """Return the value in one spelling; those of the task's own options have only one."""
    if name in allowed:
        return value
    if name in COMMON:
        return split({name: value}, allowed)[1].get(name, "")
    try:
        return float(value)  # of a model's option
    except ValueError:
        return value


@dataclass(frozen=True, slots=True)
class Trial:
    """Tries values on a task and its data; no model is asked.

    Attributes:
        task: the name of the benchmark.
        data: the dataset.
        options: of the task that are set elsewhere.
        of_task: the names of the task's options; other varied options are the model's.
        findings: doubts about the values that were tried.
    """

    task: str
    data: Path
    options: Varied
    of_task: Collection[str]
    findings: list[Finding] = field(default_factory=list)
    _known: dict[frozenset[tuple[str, str]], OmnidataError | None] = field(default_factory=dict)

    def __call__(self, values: Varied) -> OmnidataError | None:
        """Return why no run can be made with the values; None if one can."""
        varied = {name: value for name, value in values.items() if name in self.of_task}
        key = frozenset(varied.items())
        if varied and key not in self._known:
            self._known[key] = None
            try:
                task = get_task(self.task, {**self.options, **varied})
                source = task.load(self.data, check_media=False)
                found = check_effects(task, source, varied)
                self.findings.extend(each for each in found if each not in self.findings)
            except OmnidataError as error:
                self._known[key] = error
        return self._known.get(key)


def variants(
    values: Values,
    refusal: Refusal = lambda values: None,
    *,
    grid: bool = False,
    note: Callable[[str], None] = lambda line: None,
) -> list[Variant]:
    """Return the runs that differ in the values of options, the base first.

    The first value of each option is the base's. A combination that is refused because of one of
    its options is run without that option if every value of it is refused; else a grid leaves it
    out. A value that the base refuses is run beside the first other value of another option that
    accepts it.

    Args:
        values: see `read_values`.
        refusal: says which values cannot be run.
        grid: run every combination; else one option at a time differs from the base.
        note: called with a line about each combination that is not run as it was asked for.

    Raises:
        UsageError: a grid without values.
        OmnidataError: the base cannot be run, or a value cannot be run in any combination.

    Examples:
        >>> [run.named for run in variants({"frames": ["4", "8"], "history": ["gold", "none"]})]
        [{'frames': '4', 'history': 'gold'}, {'frames': '8'}, {'history': 'none'}]
    """
    if grid and not values:
        raise UsageError(
            "--grid needs an option to vary", where="--grid", expected="--vary KEY=V1,V2 beside it"
        )
    if not values:
        return []
    made: list[Varied] = []
    lines = []
    for asked, fitted in (_grid if grid else _around_base)(values, refusal):
        if fitted in made:
            continue
        if fitted != asked and (error := refusal(asked)):
            instead = f"it is run as {format_values(fitted)}" if fitted else "it is left out"
            lines.append(f"{format_values(asked)}: {error.what}; {instead}")
        if fitted:
            made.append(fitted)
    first = _first_values(values)
    for name, listed in values.items():
        for value in listed:
            is_run = any(run.get(name) == value for run in made)
            if not is_run and (error := refusal({**first, name: value})):
                raise error
    for line in lines:
        note(line)
    if grid:
        return [Variant(run, run) for run in made]
    base, *others = made
    changes = [{n: v for n, v in run.items() if base.get(n) != v} for run in others]
    return list(map(Variant, [base, *changes], made))


def format_values(varied: Varied) -> str:
    """Return values as the name of a run has them."""
    return ", ".join(f"{name}={value}" for name, value in varied.items())


def _first_values(values: Values) -> dict[str, str]:
    return {name: listed[0] for name, listed in values.items()}


def _grid(values: Values, refusal: Refusal) -> Iterator[tuple[Varied, Varied | None]]:
    """Yield every combination, and the run in its place; None if there is none."""
    for combination in product(*values.values()):
        asked = dict(zip(values, combination, strict=True))
        yield asked, _drop_meaningless(asked, values, refusal)


def _around_base(values: Values, refusal: Refusal) -> Iterator[tuple[Varied, Varied | None]]:
    """Yield the base and each combination that differs from it in one value, as `_grid` does.

    Raises:
        OmnidataError: the base cannot be run.
    """
    first = _first_values(values)
    base = _drop_meaningless(first, values, refusal)
    if base is None and (error := refusal(first)):
        raise error
    yield first, base
    for name, listed in values.items():
        for value in listed:
            if base is None or base.get(name) != value:
                asked = {**first, name: value}
                yield asked, _find_company(name, asked, values, refusal)


def _find_company(name: str, asked: Varied, values: Values, refusal: Refusal) -> Varied | None:
    """Return the combination; if it refuses the option, with one other value that accepts it."""
    changed = ({**asked, n: v} for n, listed in values.items() if n != name for v in listed)
    runs = (_drop_meaningless(each, values, refusal) for each in (asked, *changed))
    return next((run for run in runs if run and name in run), None)


def _drop_meaningless(asked: Varied, values: Values, refusal: Refusal) -> Varied | None:
    """Return the combination without options that mean nothing in it; None if it cannot be run.

    An option means nothing if each of its values is refused because of it.
    """
    left = dict(asked)
    while error := refusal(left):
        name = _refused_option(error, left)
        if not name or len(left) == 1:
            return None
        others = ({**left, name: value} for value in values[name])
        if any(_refused_option(refusal(other), other) != name for other in others):
            return None
        del left[name]
    return left


def _refused_option(error: OmnidataError | None, varied: Varied) -> str:
    where = str(error.where) if error else ""
    return next((name for name in varied if where.startswith(f"-T {name}=")), "")
