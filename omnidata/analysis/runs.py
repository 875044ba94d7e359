"""The runs of one report: their labels, groups of similar runs, and warnings."""

from __future__ import annotations

import filecmp
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from omnidata.analysis.alignment import ANSWERED, Aligned, failures
from omnidata.errors import UsageError, plural
from omnidata.run.certificates import certificate_of
from omnidata.run.differences import flatten, shorten
from omnidata.run.headlines import lines_of
from omnidata.run.run_files import Run, read_run
from omnidata.run.run_info import ANSWERS

_OF_RUN = ("model", "dataset_fingerprint", "control", "selection")
_OF_TASK = ("options", "where", "exclude", "limit", "shard", "seed", "generation")
_OF_MODEL = ("model_options", "model_settings")
_OF_STEPS = ("dataset_fingerprint", "where", "exclude", "limit", "shard")
_SEEDS = frozenset({"seed", "model_options.seed", "model_settings.seed"})
_UNNAMED = frozenset({"exclude", "shard"})
"""Settings whose values need no name."""
_SHOWN = 3


def read_runs(folders: Sequence[Path]) -> list[Run]:
    """Read the runs of the folders, in order.

    Raises:
        UsageError: a folder is given twice.
        RunError: see `read_run`.
    """
    places: set[Path] = set()
    for folder in folders:
        if folder.resolve() in places:
            raise UsageError(
                "the run is named twice",
                where=str(folder),
                expected="each run once",
                remedy="leave one of them out",
            )
        places.add(folder.resolve())
    return [read_run(folder) for folder in folders]


def by_profile(runs: Sequence[Run]) -> list[list[Run]]:
    """Group runs by task and profile; only runs of one group share a table."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.task, run.profile), []).append(run)
    tasks = [run.task for run in runs]
    return sorted(groups.values(), key=lambda group: tasks.index(group[0].task))


def group_alike(runs: Sequence[Run], ignored: frozenset[str]) -> list[list[Run]]:
    """Group runs with equal settings except for the ignored ones, in order of first appearance.

    Imported answers, whose settings are unknown, and copies of runs are in no group.

    Args:
        runs: of one task and profile.
        ignored: names of settings, e.g. "options.modalities", "seed".
    """
    groups: dict[str, list[Run]] = {}
    copied = [copy for copy, _ in copies(runs)]
    ignores_options = any(name.startswith("options.") for name in ignored)
    for run in runs:
        if run.imported or run in copied:
            continue
        settings = _flat(run, (*_OF_RUN, *_OF_TASK, *_OF_MODEL))
        kept = {name: value for name, value in settings.items() if name not in ignored}
        if not ignores_options:
            kept["prompt_hash"] = run.settings.get("prompt_hash")
        groups.setdefault(json.dumps(kept, sort_keys=True), []).append(run)
    return list(groups.values())


def copies(runs: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Return each copied run and its original, which comes before it.

    Two runs with the same settings, even with the same answers, differ in their timings.
    """
    found = []
    for number, run in enumerate(runs):
        original = next((other for other in runs[:number] if _is_copy(run, other)), None)
        if original:
            found.append((run, original))
    return found


def _is_copy(run: Run, other: Run) -> bool:
    if "timings" not in run.settings:
        return False
    if run.profile != other.profile or run.settings != other.settings:
        return False
    try:
        return filecmp.cmp(run.path / ANSWERS, other.path / ANSWERS, shallow=False)
    except OSError:  # scores can be shown without their answers
        return run.results == other.results


def repeats(runs: Sequence[Run]) -> list[list[Run]]:
    """Group runs that differ only in their seed; each group has two or more."""
    return [group for group in group_alike(runs, _SEEDS) if len(group) > 1]


def labels(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """Return model and setting of each run; the setting has only what differs between the runs.

    Names of settings are as short as they can be without becoming ambiguous. Runs with equal
    settings have the part of the folder's name that differs.
    """
    texts = _format_settings(_differing_settings(runs))
    found = [(run.name, text) for run, text in zip(runs, texts, strict=True)]
    often = Counter(found)
    folders = [run.path.resolve().as_posix() for run in runs]
    endings = _endings(folders, "/")
    return [
        (name, ", ".join(filter(None, (text, endings[folder]))))
        if often[name, text] > 1
        else (name, text)
        for (name, text), folder in zip(found, folders, strict=True)
    ]


def _differing_settings(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return the settings of each run's task, and of its model, that other runs do not share.

    Settings of models are compared with those of other runs of the model.
    """
    settings = [_flat(run, _OF_TASK) for run in runs]
    names = _differing([own for run, own in zip(runs, settings, strict=True) if not run.imported])
    shown = [{name: own[name] for name in names if name in own} for own in settings]
    by_model: dict[str, list[int]] = {}
    for number, run in enumerate(runs):
        by_model.setdefault(run.name, []).append(number)
    for numbers in by_model.values():
        settings = [_flat(runs[number], _OF_MODEL) for number in numbers]
        names = _differing(settings)
        for number, own in zip(numbers, settings, strict=True):
            shown[number] |= {name: own[name] for name in names if name in own}
    return shown


def _flat(run: Run, keys: Sequence[str]) -> dict[str, Any]:
    settings = flatten({key: run.settings.get(key) for key in keys})
    return {name: value for name, value in settings.items() if value is not None}


def _differing(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for own in settings for name in own)
    return [name for name in names if len({json.dumps(own.get(name)) for own in settings}) > 1]


def _format_settings(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the settings of each run as text."""
    columns: dict[str, dict[int, str]] = {}
    for number, own in enumerate(settings):
        for name, value in own.items():
            columns.setdefault(name, {})[number] = _format_value(name, value)
    kept = _without_repeated(columns)
    short = _endings(kept)
    return [
        ", ".join(
            texts[number] if name in _UNNAMED else f"{short[name]}={texts[number]}"
            for name, texts in kept.items()
            if number in texts
        )
        for number in range(len(settings))
    ]


def _without_repeated(columns: Mapping[str, Mapping[int, str]]) -> dict[str, Mapping[int, str]]:
    """Leave out settings of a model that repeat the options that it was given."""
    kept = dict(columns)
    for name in reversed(list(columns)):
        last = name.rpartition(".")[2]
        others = [kept[other] for other in kept if other != name and other.split(".")[-1] == last]
        if any(columns[name].items() <= other.items() for other in others):
            del kept[name]
    return kept


def _format_value(key: str, value: Any) -> str:
    if key == "exclude":
        return f"{plural(len(value), 'step')} excluded"
    if key == "shard":
        return f"part {value[0]} of {value[1]}"
    return shorten(value if isinstance(value, str) else json.dumps(value))


def warnings(runs: Sequence[Run], aligned: Aligned | None = None) -> Iterator[str]:
    """Yield why the runs of one task cannot, or should not, be compared.

    The data of imported answers are unknown; the ids of their steps are compared.

    Args:
        runs: of one task.
        aligned: the steps that all runs have, if only these count; None if each run's totals are
            over all of its own steps.
    """
    profiles = dict.fromkeys(run.profile for run in runs)
    if len(profiles) > 1:
        yield (
            f"{runs[0].task}: {len(profiles)} profiles ({', '.join(profiles)}): each has its "
            "own tables; do not compare their numbers"
        )
    apart = unlike(runs)
    yield from (f"{runs[0].task}: {reason}" for reason in apart)
    if not apart and len(runs) > 1 and any(run.imported for run in runs):
        yield f"{runs[0].task}: imported answers name no data; their step ids fit the other runs"
    for copy, original in copies(runs):
        yield f"{copy.path}: a copy of {original.path}, byte for byte; not counted as a repeat"
    for run in runs:
        yield from (f"{run.path}: not a result: {line}" for line in lines_of(run.results))
        if run.stopped:
            yield f"{run.path}: the run stopped before its end: {run.stopped}"
        certificate = certificate_of(run.settings.get("facts") or {})
        if certificate and certificate.faults:
            yield f"{run.path}: the server has faults: {certificate}"
        if aligned is None:
            yield from _warn_unanswered(run)
        if degraded := run.results["counts"].get("degraded"):
            were = "was" if degraded == 1 else "were"
            what = f"{plural(degraded, 'step')} {were} asked with less than their media"
            yield f"{run.path}: {what}"
    if aligned is not None:
        yield from _warn_left_out(aligned)


def _warn_unanswered(run: Run) -> Iterator[str]:
    outcomes = run.results.get("outcomes", {})
    lacking = sum(n for name, n in outcomes.items() if name not in ANSWERED)
    if not lacking:
        return
    wrong = "counts as wrong" if lacking == 1 else "count as wrong"
    if scorer := run.offline_scorer:
        total = scorer.ranked_by or next(iter(run.columns))  # others may be over what finished
        yield f"{run.path}: {plural(lacking, 'task')} without a result {wrong} in {total}"
    else:
        yield f"{run.path}: {plural(lacking, 'step')} without an answer {wrong}"


def _warn_left_out(found: Aligned) -> Iterator[str]:
    unit = found.unit
    listed = set().union(*(run.scores for run in found.runs))
    for run, own in zip(found.runs, found.answered, strict=True):
        if lacking := len(listed.difference(own)):
            are = "is" if lacking == 1 else "are"
            yield (
                f"{run.path}: {plural(lacking, unit)} without an answer {are} left out for all runs"
            )
    for run, rows in zip(found.runs, found.rows, strict=True):
        failed = failures(rows)
        if failed:
            counts = ", ".join(f"{count} {name}" for name, count in failed.items())
            yield f"{run.path}: failed {unit}s count as wrong: {counts}"


def unlike(runs: Sequence[Run]) -> list[str]:
    """Return why rows of the runs are not about the same steps; empty if they seem to be.

    Args:
        runs: of one task.

    Raises:
        RunError: the scores of imported answers, or of those beside them, cannot be read.
    """
    return [*_differing_data(runs), *_differing_ids(runs)]


def _differing_data(runs: Sequence[Run]) -> Iterator[str]:
    groups: dict[str, list[Run]] = {}
    for run in runs:
        if not run.imported:
            key = json.dumps([run.settings.get(name) for name in _OF_STEPS], sort_keys=True)
            groups.setdefault(key, []).append(run)
    listed = []
    for group in groups.values():
        names = [str(run.path) for run in group[:_SHOWN]] + ["..."] * (len(group) > _SHOWN)
        steps = group[0].results["counts"].get("steps", 0)
        listed.append(f"{', '.join(names)} ({plural(steps, 'step')})")
    if len({run.fingerprint for run in runs if not run.imported}) > 1:
        yield f"the runs are of different data: {'; '.join(listed)}"
    elif len(groups) > 1:
        yield f"the runs ask about different steps of the data: {'; '.join(listed)}"


def _differing_ids(runs: Sequence[Run]) -> Iterator[str]:
    """Compare the ids of imported answers, whose data are unknown, with those of all runs."""
    imported = [run for run in runs if run.imported]
    if not imported or len(runs) == 1 or len({frozenset(run.scores) for run in runs}) == 1:
        return
    most = usual([run.scores.keys() for run in runs])
    odd = [run for run in imported if run.scores.keys() != most] or imported
    names = ", ".join(str(run.path) for run in odd[:_SHOWN])
    others = "the rest" if len(odd) < len(runs) else "each other"
    unit = "tasks" if any("tasks" in run.results["counts"] for run in imported) else "steps"
    yield f"imported answers are to other {unit} than {others}: {names}"


def usual(found: Sequence[Set[str]]) -> Set[str] | None:
    """Return the most frequent set of ids, or the largest of several; None if two are as large.

    Examples:
        >>> sorted(usual([{"a", "b"}, {"a"}])), usual([{"a"}, {"b"}])
        (['a', 'b'], None)
    """
    often = Counter(map(frozenset, found))
    ranks = {ids: (count, len(ids)) for ids, count in often.items()}
    best = [ids for ids, rank in ranks.items() if rank == max(ranks.values())]
    return best[0] if len(best) == 1 else None


def _endings(names: Iterable[str], separator: str = ".") -> dict[str, str]:
    """Return each name's shortest ending that no other name has, or else all of it.

    Examples:
        >>> _endings(["processor.size", "model.size", "options.voice"])
        {'processor.size': 'processor.size', 'model.size': 'model.size', 'options.voice': 'voice'}
    """
    parts = {name: name.split(separator) for name in names}
    endings = {}
    for name, own in parts.items():
        others = [each for other, each in parts.items() if other != name]
        length = 1
        while length < len(own) and any(each[-length:] == own[-length:] for each in others):
            length += 1
        endings[name] = separator.join(own[-length:])
    return endings
