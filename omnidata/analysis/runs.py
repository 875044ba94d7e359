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
    for run in runs:
        if run.imported or run in copied:
            continue
        own = ("model", "dataset_fingerprint", "control", "selection")
        settings = _flat(run, (*own, *_OF_TASK, *_OF_MODEL))
        kept = {name: value for name, value in settings.items() if name not in ignored}
        if not any(name.startswith("options.") for name in ignored):
            kept["prompt_hash"] = run.settings.get("prompt_hash")
        groups.setdefault(json.dumps(kept, sort_keys=True), []).append(run)
    return list(groups.values())


def copies(runs: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Return each copied run and its original, which comes before it.

    Two runs with the same settings, even with the same answers, differ in their timings.
    """
    found: list[tuple[Run, Run]] = []
    for number, run in enumerate(runs):
        for other in runs[:number]:
            if "timings" in run.settings and _same(run, other):
                found.append((run, other))
                break
    return found


def _same(run: Run, other: Run) -> bool:
    if run.profile != other.profile or run.settings != other.settings:
        return False
    ours, theirs = (each.path / ANSWERS for each in (run, other))
    try:
        return filecmp.cmp(ours, theirs, shallow=False)
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
    names = [run.name for run in runs]
    settings = [_flat(run, _OF_TASK) for run in runs]
    kept = _differing([each for run, each in zip(runs, settings, strict=True) if not run.imported])
    shown = [{key: each[key] for key in kept if key in each} for each in settings]
    for name in set(names):
        same = [number for number, other in enumerate(names) if other == name]
        own = [_flat(runs[number], _OF_MODEL) for number in same]
        for number, each in zip(same, own, strict=True):
            shown[number] |= {key: each[key] for key in _differing(own) if key in each}
    texts = _texts(shown)
    found = list(zip(names, texts, strict=True))
    folders = _endings([run.path.resolve().as_posix() for run in runs], "/")
    return [
        (name, ", ".join(filter(None, (text, folders[run.path.resolve().as_posix()]))))
        if found.count((name, text)) > 1
        else (name, text)
        for (name, text), run in zip(found, runs, strict=True)
    ]


def _texts(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the settings of each run as text.

    A model's settings repeat the options that it was given; these are shown once.
    """
    columns: dict[str, dict[int, str]] = {}
    for number, each in enumerate(settings):
        for key, value in each.items():
            columns.setdefault(key, {})[number] = _format_value(key, value)
    last = {key: key.rpartition(".")[2] for key in columns}
    for key in reversed(last):
        others = [columns[other] for other in columns if other != key and last[other] == last[key]]
        if any(columns[key].items() <= other.items() for other in others):
            del columns[key]
    names = _endings(columns)
    return [
        ", ".join(
            said[number] if key in _UNNAMED else f"{names[key]}={said[number]}"
            for key, said in columns.items()
            if number in said
        )
        for number in range(len(settings))
    ]


def _format_value(key: str, value: Any) -> str:
    if key == "exclude":
        return f"{plural(len(value), 'step')} excluded"
    if key == "shard":
        return f"part {value[0]} of {value[1]}"
    return shorten(value if isinstance(value, str) else json.dumps(value))


def _flat(run: Run, keys: Sequence[str]) -> dict[str, Any]:
    said = flatten({key: run.settings.get(key) for key in keys})
    return {name: value for name, value in said.items() if value is not None}


def _differing(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for each in settings for name in each)
    return [name for name in names if len({json.dumps(each.get(name)) for each in settings}) > 1]


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
    yield from (f"{runs[0].task}: {why}" for why in apart)
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
    unit = "task" if found.runs[0].offline_scorer else "step"
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
    known: dict[str, list[Run]] = {}
    for run in runs:
        if not run.imported:
            key = json.dumps([run.settings.get(name) for name in _OF_STEPS], sort_keys=True)
            known.setdefault(key, []).append(run)
    reasons = []
    if len({run.fingerprint for run in runs if not run.imported}) > 1:
        reasons.append(f"the runs are of different data: {_list_groups(known)}")
    elif len(known) > 1:
        reasons.append(f"the runs ask about different steps of the data: {_list_groups(known)}")
    imported = [run for run in runs if run.imported]
    if imported and len(runs) > 1 and len({frozenset(run.scores) for run in runs}) > 1:
        most = usual([run.scores.keys() for run in runs])
        odd = [run for run in imported if run.scores.keys() != most] or imported
        names = ", ".join(str(run.path) for run in odd[:_SHOWN])
        others = "the rest" if len(odd) < len(runs) else "each other"
        what = "tasks" if any("tasks" in run.results["counts"] for run in imported) else "steps"
        reasons.append(f"imported answers are to other {what} than {others}: {names}")
    return reasons


def usual(found: Sequence[Set[str]]) -> Set[str] | None:
    """Return the most frequent set of ids, or the largest of several; None if two are as large.

    Examples:
        >>> sorted(usual([{"a", "b"}, {"a"}])), usual([{"a"}, {"b"}])
        (['a', 'b'], None)
    """
    often = Counter(map(frozenset, found))
    first, *others = sorted(often, key=lambda each: (-often[each], -len(each)))
    alike = [each for each in others if (often[each], len(each)) == (often[first], len(first))]
    return None if alike else first


def _list_groups(known: Mapping[str, Sequence[Run]]) -> str:
    groups = []
    for group in known.values():
        names = [str(run.path) for run in group[:_SHOWN]] + ["..."] * (len(group) > _SHOWN)
        steps = group[0].results["counts"].get("steps", 0)
        groups.append(f"{', '.join(names)} ({plural(steps, 'step')})")
    return "; ".join(groups)


def _endings(names: Iterable[str], separator: str = ".") -> dict[str, str]:
    """Each name's shortest ending that no other name has; of one that ends another, all of it.

    Examples:
        >>> _endings(["processor.size", "model.size", "options.voice"])
        {'processor.size': 'processor.size', 'model.size': 'model.size', 'options.voice': 'voice'}
    """
    parts = {name: name.split(separator) for name in names}
    found = {}
    for name, own in parts.items():
        others = [each for other, each in parts.items() if other != name]
        lengths = range(1, len(own) + 1)
        length = next(
            (n for n in lengths if all(each[-n:] != own[-n:] for each in others)), len(own)
        )
        found[name] = separator.join(own[-length:])
    return found
