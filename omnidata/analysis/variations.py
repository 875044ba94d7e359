"""Tables of runs that differ in one thing alone: an option, their history, their seed."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omnidata.analysis.run_tables import (
    cell,
    heads_of,
    of_other_rules,
    of_published,
    published_row,
    specs,
    title,
    with_rules,
)
from omnidata.analysis.runs import grouped, labels, repeats
from omnidata.analysis.tables import (
    LOWER_IS_BETTER,
    Cell,
    Column,
    Head,
    Mark,
    Row,
    Table,
)
from omnidata.errors import OmnidataError, RunError, UsageError, plural
from omnidata.metrics.intervals import wilson
from omnidata.metrics.rollouts import choices, pass_all, pass_at
from omnidata.mirror import local
from omnidata.run.run_files import Run, recorded_data
from omnidata.tasks.published import HISTORY, Published, PublishedRow, TableSpec, Variation
from omnidata.types import LoadedDataset

# An option: with the difference to the usual way of asking.


def value_of(of: Variation, run: Run) -> str:
    """The run's value of the option."""
    return of.value(run.settings.get("options", {}))


def groups(of: Variation, runs: Sequence[Run]) -> list[list[Run]]:
    """Runs that differ in the option alone, the base first: groups with it and with another."""
    ignored = frozenset(f"options.{name}" for name in {of.option, *of.besides})
    ranks = {value: number for number, value in enumerate(of.values)}
    found = []
    for group in grouped(runs, ignored):
        values = {value_of(of, run) for run in group}
        if of.base in values and len(values) > 1:
            found.append(sorted(group, key=lambda run: ranks.get(value_of(of, run), len(ranks))))
    return found


def table(of: Variation, runs: Sequence[Run], *, with_published: bool) -> Table | None:
    """Rows per model and value, each with its difference to the model's base.

    Of a model's other values, two or more, the worst change of each column is marked as a drop, the
    best one as a gain. Where marks go across groups, of each metric the worst change among them is
    a drop, and whatever is not lost is a gain.

    Args:
        of: what the runs differ in.
        runs: of one task and profile.
        with_published: whether the paper's rows come first.

    Returns:
        None where no two runs differ in the option alone.
    """
    found = groups(of, runs)
    if not found:
        return None
    spec = TableSpec(of.option, of.title, of.axis) if of.axis else _varied(found[0][0])
    every = [run for group in found for run in group]
    heads = heads_of(spec, every, shares=found[0][0])
    columns = tuple(column for head in heads for column in head.columns)
    published: Published = runs[0].benchmark.published
    printed = published.of(of.option) if with_published else []
    others = with_rules(printed, runs)
    rows = list(_published(of, others, columns))
    names = labels([group[0] for group in found])
    for group, name in zip(found, names, strict=True):
        own = [
            Row(
                (", ".join(filter(None, name)), called),
                tuple(cell(run, spec.axis, each.group, each.metric) for each in columns),
                run=str(run.path),
            )
            for run, called in zip(group, _called(of, group), strict=True)
        ]
        rows += compared(own, columns, across=of.across)
    return Table(
        of.option,
        title(of.title + (f" across {spec.varied}" if spec.varied else ""), runs),
        runs[0].task,
        runs[0].profile,
        ("Model", of.label),
        heads,
        tuple(rows),
        (
            f"In brackets: the difference to {of.called(of.base)}, in points.",
            *of_published(others, runs),
            *of_other_rules(printed, runs),
        ),
    )


def _called(of: Variation, group: Sequence[Run]) -> list[str]:
    """What the rows of a group are called: the value, and whatever else sets its run apart.

    That are the options besides, where runs for which they mean something differ in them, and of
    runs that are alike in these too what `labels` says.
    """
    values = [value_of(of, run) for run in group]
    besides: list[dict[str, str]] = []
    for run, value in zip(group, values, strict=True):
        options = run.settings.get("options", {}) if value != of.base else {}
        besides.append({name: options[name] for name in sorted(of.besides) if name in options})
    several = {
        name for name in of.besides if len({each[name] for each in besides if name in each}) > 1
    }
    found = []
    for value, each in zip(values, besides, strict=True):
        told = [f"{name}={said}" for name, said in each.items() if name in several]
        found.append(", ".join([of.called(value), *told]))
    for name in {each for each in found if found.count(each) > 1}:
        same = [number for number, each in enumerate(found) if each == name]
        for number, (_, text) in zip(same, labels([group[n] for n in same]), strict=True):
            found[number] += f", {text}"
    return found


def _varied(run: Run) -> TableSpec:
    """The shape of tables of runs that differ in one option, where the data have its groups."""
    found = specs(run)
    by = run.results["by"]
    return next((spec for spec in found if spec.varied and by.get(spec.axis)), found[0])


def _published(
    of: Variation, others: Sequence[PublishedRow], columns: Sequence[Column]
) -> Iterator[Row]:
    models: dict[str, list[Row]] = {}
    for other in others:
        called = of.called(of.value(other.options))
        row = published_row(other, (other.model, called), columns)
        models.setdefault(other.model, []).append(row)
    for rows in models.values():
        yield from compared(rows, columns, across=of.across)


def compared(rows: Sequence[Row], columns: Sequence[Column], *, across: bool) -> list[Row]:
    """The first row as it is, the others with their change from it, the extremes marked.

    Args:
        rows: of one model, the base first.
        columns: of the rows.
        across: see `Variation`.
    """
    base, *others = rows
    changes = [
        [
            None if cell.value is None or first.value is None else cell.value - first.value
            for cell, first in zip(row.cells, base.cells, strict=True)
        ]
        for row in others
    ]
    if across:
        marks = [_marks_across(row, columns) for row in changes]
    else:
        down = [_marks([row[n] for row in changes], each) for n, each in enumerate(columns)]
        marks = [[column[n] for column in down] for n in range(len(others))]
    return [
        base,
        *(
            replace(
                row,
                cells=tuple(
                    replace(cell, change=change, mark=mark)
                    for cell, change, mark in zip(
                        row.cells, changes[number], marks[number], strict=True
                    )
                ),
            )
            for number, row in enumerate(others)
        ),
    ]


def _marks(changes: Sequence[float | None], column: Column) -> list[Mark]:
    """The largest loss and the largest gain of a column; of one change alone neither."""
    if len(changes) < 2:
        return [""] * len(changes)
    sign = -1 if column.metric in LOWER_IS_BETTER else 1
    told = [sign * change for change in changes if change is not None]
    worst, best = min(told, default=0.0), max(told, default=0.0)
    marks: list[Mark] = []
    for change in changes:
        value = None if change is None else sign * change
        if value == worst and worst < 0:
            marks.append("drop")
        else:
            marks.append("gain" if value == best and best > 0 else "")
    return marks


def _marks_across(changes: Sequence[float | None], columns: Sequence[Column]) -> list[Mark]:
    """Per metric the largest loss among the groups, and all that is no loss."""
    worst: dict[str, float] = {}
    told = []
    for change, column in zip(changes, columns, strict=True):
        sign = -1 if column.metric in LOWER_IS_BETTER else 1
        value = None if change is None else sign * change
        told.append(value)
        if column.group and value is not None:
            worst[column.metric] = min(value, worst.get(column.metric, 0.0))
    marks: list[Mark] = []
    for value, column in zip(told, columns, strict=True):
        if value is None or (value < 0 and value != worst.get(column.metric)):
            marks.append("")
        elif value < 0:
            marks.append("drop" if column.group else "")
        else:
            marks.append("gain")
    return marks


# What a history of the model's own answers costs, and how errors compound.
#
# With `history=gold` every step shows the expert's earlier actions, so that an error cannot spread;
# with `history=predicted` it shows the model's own.

Count = tuple[int, int]
"""Right steps, and how many steps there are."""


@dataclass(frozen=True, slots=True)
class Compounding:
    """What right steps say of the steps that follow them.

    Attributes:
        by_step: index of a step, 0-based -> its count over episodes.
        after_right: of the steps whose previous step is right.
        after_wrong: of the steps whose previous step is wrong.
        first_errors: index of a step -> in how many episodes it is the first that is wrong.
        episodes: that have a judged step.
    """

    by_step: Mapping[int, Count]
    after_right: Count
    after_wrong: Count
    first_errors: Mapping[int, int]
    episodes: int


_IN_WORDS: Mapping[str, str] = {"EM": "Exact match"}


class NotTracedError(RunError):
    """A run does not tell which steps are right, how they follow each other, or what they are."""


StepPositions = Mapping[str, tuple[str, int]]
"""Sample id -> the episode, and the step's 0-based place in it."""


def compounding(run: Run, known: dict[Path, LoadedDataset] | None = None) -> Compounding:
    """Counts over the steps that were judged.

    A step without a usable target is passed over: the one after it has no previous step here.

    Args:
        run: a scored run.
        known: data that are loaded already, by where they lie; gets the run's, if they are needed.

    Raises:
        RunError: the scores cannot be read.
        NotTracedError: steps are neither right nor wrong, or nothing tells their order.
    """
    value = right_of(run)[1]
    for sample_id, score in run.scores.items():
        if score.get(value, "") not in (None, 0, 1):
            raise NotTracedError(
                f"{value} is {score[value]}" if value in score else f"there is no {value}",
                where=f"{run.path / 'scores.jsonl'}: {sample_id}",
                expected=f"{value}, which is right or wrong (true or false), of every step",
                remedy="steps that are partly right have no such tables"
                if value in score
                else "score the run again with this version: omnidata score",
            )
    places = _places_of_ids(run) or _places_of_data(run, {} if known is None else known)
    episodes: dict[str, dict[int, bool]] = {}
    for sample_id, score in run.scores.items():
        if score[value] is not None:
            episode, index = places[sample_id]
            episodes.setdefault(episode, {})[index] = bool(score[value])
    return count(episodes)


def right_of(run: Run) -> tuple[str, str]:
    """What the share of right steps is called, and the value that says whether one is.

    A profile says it in `step_metric`; of others it is `exact_match`, or else the first value.
    """
    profile = run.benchmark.profiles.get(run.profile)
    if said := getattr(profile, "step_metric", None):
        return said[0], said[1]
    values = profile.values if profile else ()
    name = "exact_match" if "exact_match" in values or not values else values[0]
    return name, name


def _places_of_ids(run: Run) -> StepPositions:
    """Where the ids end in the steps' places, from 0, within no fewer episodes than were scored."""
    places = {}
    for sample_id in run.scores:
        episode, _, index = sample_id.rpartition("/")
        if not (episode and index.isdecimal()):
            return {}
        places[sample_id] = (episode, int(index))
    profile = run.benchmark.profiles.get(run.profile)
    first = profile.values[0] if profile else ""
    judged = {places[own][0] for own, score in run.scores.items() if score.get(first) is not None}
    from_0 = min((index for _, index in places.values()), default=0) == 0
    episodes = run.results["counts"].get("episodes")
    told = from_0 and episodes is not None and len(judged) >= episodes
    return places if told else {}


def _places_of_data(run: Run, known: dict[Path, LoadedDataset]) -> StepPositions:
    """What the data say, if they are the run's."""
    try:
        source = data_of(run, known)
    except NotTracedError as why:
        raise NotTracedError(
            f"the ids do not tell how the steps of an episode follow each other, and {why.what}",
            where=why.where,
            expected=why.expected,
            remedy=f"{why.remedy}; or let ids end in the step's place, from 0: EPISODE/0",
        ) from None
    return {step.sample_id: (step.episode, step.step_index) for step in source.steps}


def data_of(run: Run, known: dict[Path, LoadedDataset]) -> LoadedDataset:
    """The data that a run was made on, all of whose scored steps are there.

    Args:
        run: the run.
        known: data that are loaded already, by where they lie; gets the run's.

    Raises:
        NotTracedError: they are not where the run says, or are others by now.
    """

    def error(why: str, where: object) -> NotTracedError:
        return NotTracedError(
            why,
            where=str(where),
            expected="the data where run.json says that they lie, as the run was made on them",
            remedy="put them back",
        )

    try:
        place = local(recorded_data(run.settings, run.path))
    except UsageError as why:
        raise error(why.what, why.where) from None
    if not place.exists():
        raise error("the data are missing", place)
    try:
        if place not in known:
            known[place] = run.benchmark.load(place, check_media=False)
    except OmnidataError as why:
        raise error(f"the data cannot be read: {why.what}", why.where or place) from None
    source = known[place]
    ids = {step.sample_id for step in source.steps}
    if run.fingerprint != source.fingerprint or not run.scores.keys() <= ids:
        raise error(f"the data are not those of {run.path}", place)
    return source


def count(episodes: Mapping[str, Mapping[int, bool]]) -> Compounding:
    """Counts over verdicts.

    Args:
        episodes: per episode, index of a step -> whether it is an exact match.

    Examples:
        >>> found = count({"a": {0: True, 1: False, 2: False}, "b": {0: True, 1: True}})
        >>> found.after_right, found.after_wrong, dict(found.first_errors)
        ((1, 2), (0, 1), {1: 1})
    """
    hits: Counter[int] = Counter()
    steps: Counter[int] = Counter()
    after: dict[bool, list[bool]] = {True: [], False: []}
    first: Counter[int] = Counter()
    for verdicts in episodes.values():
        for index, exact in verdicts.items():
            steps[index] += 1
            hits[index] += exact
            if index - 1 in verdicts:
                after[verdicts[index - 1]].append(exact)
        wrong = [index for index, exact in verdicts.items() if not exact]
        if wrong:
            first[min(wrong)] += 1
    return Compounding(
        {index: (hits[index], steps[index]) for index in sorted(steps)},
        (sum(after[True]), len(after[True])),
        (sum(after[False]), len(after[False])),
        dict(sorted(first.items())),
        len(episodes),
    )


def history_tables(runs: Sequence[Run]) -> list[Table]:
    """Of runs that differ in their history alone: by step, and how errors compound.

    Args:
        runs: of one task and profile.

    Raises:
        RunError, NotTracedError: see `compounding`.
    """
    found = [run for group in groups(HISTORY, runs) for run in group]
    if not found:
        return []
    known: dict[Path, LoadedDataset] = {}
    counts = [compounding(run, known) for run in found]
    names = [", ".join(filter(None, label)) for label in labels(found)]
    return [_by_step(found, names, counts), _after(found, names, counts)]


def _share(counted: Count) -> Cell:
    hits, total = counted
    return Cell(hits / total if total else None, wilson(hits, total))


def _by_step(runs: Sequence[Run], names: Sequence[str], counts: Sequence[Compounding]) -> Table:
    metric = right_of(runs[0])[0]
    heads = tuple(
        Head(
            name,
            (
                Column(metric, metric, "share", run=str(run.path)),
                Column("Steps", "steps", "count", run=str(run.path)),
                Column("First err.", "first_errors", "count", run=str(run.path)),
            ),
        )
        for run, name in zip(runs, names, strict=True)
    )
    rows = []
    for index in sorted({index for each in counts for index in each.by_step}):
        cells: list[Cell] = []
        for each in counts:
            counted = each.by_step.get(index, (0, 0))
            cells += [_share(counted), Cell(counted[1]), Cell(each.first_errors.get(index, 0))]
        rows.append(Row((str(index + 1),), tuple(cells), group=f"step {index + 1}"))
    return Table(
        "history-by-step",
        title(f"{_IN_WORDS.get(metric, metric)} by step of the episode", runs),
        runs[0].task,
        runs[0].profile,
        ("Step",),
        heads,
        tuple(rows),
        ("First err.: episodes whose first wrong step this is.",),
    )


def _after(runs: Sequence[Run], names: Sequence[str], counts: Sequence[Compounding]) -> Table:
    metric = right_of(runs[0])[0]
    columns = (
        Column("right", metric, "share", "after a right step"),
        Column("Steps", "steps", "count", "after a right step"),
        Column("wrong", metric, "share", "after a wrong step"),
        Column("Steps", "steps", "count", "after a wrong step"),
        Column("Episodes", "episodes", "count"),
        Column("with errors", "episodes_with_errors", "count"),
        Column("at step", "first_error", "episode"),
    )
    rows = []
    for run, name, each in zip(runs, names, counts, strict=True):
        wrong = sum(each.first_errors.values())
        places = sum((index + 1) * often for index, often in each.first_errors.items())
        cells = (
            _share(each.after_right),
            Cell(each.after_right[1]),
            _share(each.after_wrong),
            Cell(each.after_wrong[1]),
            Cell(each.episodes),
            Cell(wrong),
            Cell(places / wrong if wrong else None),
        )
        rows.append(Row((name,), cells, run=str(run.path)))
    return Table(
        "history-compounding",
        title("How errors compound", runs),
        runs[0].task,
        runs[0].profile,
        ("Model",),
        (
            Head(f"{metric} after a previous step that is", columns[:4]),
            Head("First error", columns[4:]),
        ),
        tuple(rows),
        ("At step: the mean place of an episode's first error, from 1, where there is one.",),
        intervals=True,
    )


# Runs that differ in their seed alone: how much of a result is chance.

_STATISTICS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "Mean": statistics.fmean,
    "SD between runs": statistics.stdev,
    "Least": min,
    "Most": max,
}
_LEFT_OUT = ("sample_id", "parsed", "reason", "profile")


@dataclass(frozen=True, slots=True)
class Differing:
    """On how many steps the runs of a group do not agree.

    Attributes:
        steps: that all of them have.
        answers: on which the texts differ; None where a run has no texts.
        verdicts: on which the outcome or a value of the profile differs.
    """

    steps: int
    answers: int | None
    verdicts: int


def differing(runs: Sequence[Run]) -> Differing:
    """Compare the runs step by step.

    Args:
        runs: of one task and profile, two or more.
    """
    first = runs[0]
    shared = [name for name in first.scores if all(name in run.scores for run in runs)]
    verdicts = sum(len({_verdict(run.scores[name]) for run in runs}) > 1 for name in shared)
    answers = None
    if all(run.predictions for run in runs):
        told = [[_text(run, name) for run in runs] for name in shared]
        answers = sum(len(set(texts)) > 1 for texts in told)
    return Differing(len(shared), answers, verdicts)


def _verdict(score: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in score.items() if name not in _LEFT_OUT)


def _text(run: Run, sample_id: str) -> str | None:
    found = run.predictions.get(sample_id)
    return found.output if found else None


def seed_tables(runs: Sequence[Run]) -> list[Table]:
    """Mean, deviation between runs, least and most of each total, and pass@k; of each group.

    The deviation is that of a sample (n - 1).

    Args:
        runs: of one task and profile.
    """
    groups = repeats(runs)
    names = [", ".join(filter(None, name)) for name in labels([group[0] for group in groups])]
    found = []
    for group, name in zip(groups, names, strict=True):
        found.append(_table(group, name))
        found += _passes(group, name)
    return found


def _passes(runs: Sequence[Run], name: str) -> list[Table]:
    """How likely one of k runs, or each of k, has a step right, and an episode from end to end.

    Nothing where steps may be partly right. Episodes are counted where all of them are whole, and
    the ids or the data tell which step is of which.
    """
    metric, value = right_of(runs[0])
    shared = [
        each
        for each in runs[0].scores
        if all(run.scores.get(each, {}).get("outcome", "missing") != "missing" for run in runs)
    ]
    told: dict[str, list[Any]] = {
        each: [run.scores[each].get(value) for run in runs] for each in shared
    }
    judged = {each: values for each, values in told.items() if None not in values}
    if not judged or any(one not in (0, 1) for values in judged.values() for one in values):
        return []
    counts = {f"{metric} of steps": [sum(values) for values in judged.values()]}
    if len(shared) == len(runs[0].scores) and (whole := _whole_episodes(runs, judged)):
        counts["episodes, all steps right"] = whole
    size = len(runs)
    drawn = choices(size)
    rules = (
        ("pass@k: one of k is right", "pass@", pass_at),
        ("pass^k: all k are", "pass^", pass_all),
    )
    heads = tuple(
        Head(header, tuple(Column(f"k = {k}", f"{short}{k}") for k in drawn))
        for header, short, _ in rules
    )
    rows = tuple(
        Row(
            (called,),
            tuple(
                Cell(statistics.fmean(rule(size, right, k) for right in hits))
                for *_, rule in rules
                for k in drawn
            ),
            group=called,
        )
        for called, hits in counts.items()
    )
    return [
        Table(
            "repeats-pass",
            title(f"pass@k and pass^k of {size} runs of {name}", runs),
            runs[0].task,
            runs[0].profile,
            ("",),
            heads,
            rows,
            (
                f"Over {plural(len(judged), 'step')} that all runs have; without bias: "
                "1 - C(n-c, k) / C(n, k) and C(c, k) / C(n, k), c right of n runs.",
            ),
        )
    ]


def _whole_episodes(runs: Sequence[Run], judged: Mapping[str, Sequence[int]]) -> list[int]:
    """In how many runs each episode is right from end to end; none where that is not known."""
    sizes = [run.results["counts"] for run in runs]
    episodes = sizes[0].get("episodes")
    if any((each.get("episodes"), each.get("whole_episodes")) != (episodes,) * 2 for each in sizes):
        return []
    try:
        places = _places_of_ids(runs[0]) or _places_of_data(runs[0], {})
    except NotTracedError:
        return []
    found: dict[str, list[Sequence[int]]] = {}
    for sample_id, values in judged.items():
        found.setdefault(places[sample_id][0], []).append(values)
    right = [sum(map(all, zip(*steps, strict=True))) for steps in found.values()]
    return right if len(right) == episodes else []


def _table(runs: Sequence[Run], name: str) -> Table:
    units = runs[0].columns
    values = {
        metric: [value for run in runs if (value := cell(run, "", "", metric).value) is not None]
        for metric in units
    }
    rows = tuple(
        Row(
            (called,),
            tuple(Cell(of(each) if len(each) == len(runs) else None) for each in values.values()),
            group=called,
        )
        for called, of in _STATISTICS.items()
    )
    found = differing(runs)
    notes = [f"Runs: {', '.join(str(run.path) for run in runs)}."]
    if found.answers is not None:
        notes.append(f"The answers differ on {found.answers} of {plural(found.steps, 'step')}.")
    notes.append(f"The verdicts differ on {found.verdicts} of {plural(found.steps, 'step')}.")
    return Table(
        "repeats",
        title(f"{len(runs)} runs of {name} that differ in their seed alone", runs),
        runs[0].task,
        runs[0].profile,
        ("",),
        (Head("", tuple(Column(metric, metric, unit) for metric, unit in units.items())),),
        rows,
        tuple(notes),
    )
