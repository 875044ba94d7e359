"""The runs of `omnidata ablate --vary`: values of options, and which of them go together.

What the task or the data refuse is known before the first run. An option that means nothing beside
the others (the tokens of a tree where no tree is shown) is no reason to refuse the other runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path

from omnidata.errors import Finding, OmnidataError, UsageError
from omnidata.tasks import get_task
from omnidata.tasks.common_options import OPTIONS as COMMON
from omnidata.tasks.common_options import check_effects, split

Varied = Mapping[str, str]
"""Option -> its value in one run."""

Values = Mapping[str, Sequence[str]]
"""Option -> its values, the base's first."""

Refusal = Callable[[Varied], OmnidataError | None]
"""Why no run can be made with such values; None where one can."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One run.

    Attributes:
        named: the values by which it is called: all of the base and of a grid, else those in which
            it differs from the base.
        options: all values of what is varied; the task's default holds where one is lacking.
    """

    named: Varied
    options: Varied


def read_values(
    given: Sequence[str], allowed: Values, fixed: Collection[str] = ()
) -> dict[str, list[str]]:
    """The values of each option that is varied.

    Args:
        given: as `--vary` has them.
        allowed: the task's own options.
        fixed: options that are given otherwise.

    Raises:
        UsageError: an option without two values, with a value twice, however it is spelt, or given
            twice; or a value that an option of all tasks does not take.

    Examples:
        >>> read_values(["frames=4,8", "history_window=own,1"], {})
        {'frames': ['4', '8'], 'history_window': ['own', '1']}
    """
    options: dict[str, list[str]] = {}
    for text in given:
        name, _, listed = text.partition("=")
        values = [value.strip() for value in listed.split(",")]
        told = name in options or name in fixed
        if told or len(values) < 2 or len({_meant(name, v, allowed) for v in values}) < len(values):
            raise UsageError(
                "the option is given twice" if told else "two different values are needed",
                where=f"--vary {text}",
                expected="KEY=V1,V2: each option once, each of its values once, the base's first",
            )
        options[name] = values
    return options


def _meant(name: str, value: str, allowed: Values) -> str | float:
    """What a value says, whatever its spelling: a number of a model's option is a number."""
    if name in allowed:
        return value
    if name in COMMON:
        return split({name: value}, allowed)[1].get(name, "")
    try:
        return float(value)
    except ValueError:
        return value


@dataclass(frozen=True, slots=True)
class Trial:
    """Tries what a task and its data make of values; no model is asked.

    Attributes:
        task: the name of the benchmark.
        data: the dataset.
        options: of the task that are given otherwise.
        of_task: the names of the task's options; what else is varied is the model's.
        findings: what was doubtful about the values that were tried.
    """

    task: str
    data: Path
    options: Varied
    of_task: Collection[str]
    findings: list[Finding] = field(default_factory=list)
    _known: dict[frozenset[tuple[str, str]], OmnidataError | None] = field(default_factory=dict)

    def __call__(self, values: Varied) -> OmnidataError | None:
        """Why no run can be made with the values; None where one can."""
        varied = {name: value for name, value in values.items() if name in self.of_task}
        key = frozenset(varied.items())
        if varied and key not in self._known:
            self._known[key] = self._try(varied)
        return self._known.get(key)

    def _try(self, varied: Varied) -> OmnidataError | None:
        try:
            task = get_task(self.task, {**self.options, **varied})
            source = task.load(self.data, check_media=False)
            found = check_effects(task, source, varied)
        except OmnidataError as error:
            return error
        self.findings.extend(each for each in found if each not in self.findings)
        return None


def variants(
    values: Values,
    refusal: Refusal = lambda values: None,
    *,
    grid: bool = False,
    note: Callable[[str], None] = lambda line: None,
) -> list[Variant]:
    """The runs that differ in the values of options, the base first.

    The first value of each option is the base's. A combination that is refused for the sake of one
    of its options is run without that option if no value of it would do, and else is left out of a
    grid. A value that the base refuses is run beside the first other value of another option that
    takes it.

    Args:
        values: see `read_values`.
        refusal: what cannot be run.
        grid: every combination of values; else one option at a time differs from the base.
        note: is told of each combination that is not run as it was asked for.

    Raises:
        UsageError: a grid of nothing.
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
        if fitted != asked and (error := refusal(asked)) and fitted not in made:
            instead = f"it is run as {spelt(fitted)}" if fitted else "it is left out"
            lines.append(f"{spelt(asked)}: {error.what}; {instead}")
        if fitted and fitted not in made:
            made.append(fitted)
    for name, listed in values.items():
        for value in listed:
            asked = {**{other: each[0] for other, each in values.items()}, name: value}
            if all(run.get(name) != value for run in made) and (error := refusal(asked)):
                raise error
    for line in lines:
        note(line)
    base = made[0]
    return [Variant(run if run is base or grid else _differing(run, base), run) for run in made]


def spelt(varied: Varied) -> str:
    """Values as the name of a run has them."""
    return ", ".join(f"{name}={value}" for name, value in varied.items())


def _differing(run: Varied, base: Varied) -> Varied:
    return {name: value for name, value in run.items() if base.get(name) != value}


def _grid(values: Values, refusal: Refusal) -> Iterator[tuple[Varied, Varied | None]]:
    """Every combination, and what is run of it."""
    for each in product(*values.values()):
        asked = dict(zip(values, each, strict=True))
        yield asked, _fitted(asked, values, refusal)


def _around_base(values: Values, refusal: Refusal) -> Iterator[tuple[Varied, Varied | None]]:
    """The base and what differs from it in one value, and what is run of each.

    Raises:
        OmnidataError: the base cannot be run.
    """
    first = {name: listed[0] for name, listed in values.items()}
    base = _fitted(first, values, refusal)
    if base is None and (error := refusal(first)):
        raise error
    yield first, base
    for name, listed in values.items():
        for value in listed:
            if base and base.get(name) == value:
                continue
            asked = {**first, name: value}
            fitted = _fitted(asked, values, refusal)
            if not fitted or name not in fitted:
                others = (
                    _fitted({**asked, other: each}, values, refusal)
                    for other in values
                    for each in values[other]
                    if other != name
                )
                fitted = next((other for other in others if other and name in other), None)
            yield asked, fitted


def _fitted(asked: Varied, values: Values, refusal: Refusal) -> Varied | None:
    """The combination without the options that mean nothing in it; None where it is not to be run.

    An option means nothing where each of its values is refused for its own sake.
    """
    left = dict(asked)
    while error := refusal(left):
        name = _blamed(error, left)
        others = [{**left, name: value} for value in values[name]] if name else []
        if len(left) == 1 or not others:
            return None
        if any(_blamed(refusal(other), other) != name for other in others):
            return None
        del left[name]
    return left


def _blamed(error: OmnidataError | None, varied: Varied) -> str:
    """The option for whose sake values are refused; empty where it is none of them."""
    where = str(error.where) if error else ""
    return next((name for name in varied if where.startswith(f"-T {name}=")), "")
