"""Steps as test items: difficulty, discrimination, and doubtful labels.

Classical test theory (F. M. Lord and M. R. Novick, 1968): difficulty is the share of runs that have
a step right; discrimination is the corrected item-total correlation, that of a step's verdicts with
the runs' scores on all other steps. A step that strong runs get wrong and weak ones right has a
negative one. A label is doubtful if all strong runs give the same other answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from omnidata.actions import Action, Box, Point, centre, convert, is_on_screen
from omnidata.analysis.alignment import align, load_data, measure
from omnidata.analysis.inference import TIE
from omnidata.analysis.runs import read_runs, warnings
from omnidata.errors import DataError, RunError, UsageError, plural
from omnidata.loaders.rows import action_fields
from omnidata.loaders.steps import Positions
from omnidata.metrics.intervals import Floats
from omnidata.run.errata import Correction, Targets
from omnidata.run.run_files import Run, read_run
from omnidata.table import TextTable, number
from omnidata.table_formats import csv_text
from omnidata.types import NOTHING, READ, UNREAD, LoadedDataset, Step

MIN_RUNS = 3
"""A correlation over two runs is 1 or -1."""
NEAR = 0.05
"""Share of the screen: answers within it point at one place."""
_SILENT = frozenset({"", NOTHING, READ, UNREAD})
_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Item:
    """A step, as runs answer it.

    Attributes:
        sample_id: of the step.
        difficulty: the share of runs that have it right: 1 is easy.
        discrimination: -1 to 1; None if all runs are alike on this step, or on all others.
        target: the label of the right answer; empty if there is none.
        said: the other answer of all strong runs; empty if they disagree, or one is right.
    """

    sample_id: str
    difficulty: float
    discrimination: float | None
    target: str
    said: str = ""


@dataclass(frozen=True, slots=True)
class Items:
    """The items of a dataset, by several runs.

    Attributes:
        task, profile, metric: of the verdicts.
        runs: the folders.
        strong: the better half of the runs, two at least; their answers can contradict a label.
        items: the steps that all runs have and that were judged, in the order of the data.
        warnings: limits of the comparison.
    """

    task: str
    profile: str
    metric: str
    runs: Sequence[str]
    strong: Sequence[str]
    items: Sequence[Item]
    warnings: Sequence[str]

    @property
    def contradicted(self) -> list[Item]:
        """The items whose label all strong runs contradict."""
        return [item for item in self.items if item.said]

    def as_dict(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return asdict(self)


def several(folders: Sequence[Path]) -> list[Run]:
    """Return the runs of the folders, if there are enough.

    Raises:
        UsageError: they are too few, or one is named twice.
        RunError: see `omnidata.run.run_files.read_run`.
    """
    if len(folders) < MIN_RUNS:
        raise UsageError(
            f"{plural(len(folders), 'run')} cannot rate steps",
            where=" ".join(map(str, folders)),
            expected=f"{MIN_RUNS} runs or more, on the same steps",
            remedy="name more run folders; `omnidata compare` takes two",
        )
    return read_runs(folders)


def analyse(
    folders: Sequence[Path], *, data: Path | None = None, source: LoadedDataset | None = None
) -> Items:
    """Analyse the steps that all runs have.

    Args:
        folders: of scored runs of one task, profile and dataset, `MIN_RUNS` or more.
        data: the dataset, if it has moved.
        source: the dataset, if it is loaded.

    Raises:
        RunError: see `omnidata.analysis.alignment.align`; or no step is right or wrong.
        UsageError: too few runs, a folder that is named twice, or data that cannot be found.
        DataError: the data cannot be read.
    """
    runs = several(folders)
    found = align(runs, data=data, source=source)
    pairs, judged = measure(found)
    if pairs[0].flips is None:
        raise RunError(
            f"the profile {runs[0].profile} does not judge steps as right or wrong",
            where=str(runs[0].path),
            expected="a profile that judges steps",
            remedy=f"score the runs by another profile: omnidata score {runs[0].task} DATA RUN",
        )
    metric, value = pairs[0].flips
    right = np.stack([rows.values[value][judged] for rows in found.rows])
    # The better half of the runs, and those that equal the last of it.
    scores = right.mean(axis=1)
    least = np.sort(scores)[::-1][max(2, math.ceil(len(scores) / 2)) - 1]
    strong = np.flatnonzero(scores >= least - TIE).tolist()
    chosen = np.flatnonzero(judged).tolist()
    contradictions = [("", "")] * len(chosen)
    if found.steps:
        steps = [found.steps[place] for place in chosen]
        contradictions = _labels([runs[each] for each in strong], steps, right[strong])
    return Items(
        runs[0].task,
        runs[0].profile,
        metric,
        [str(run.path) for run in runs],
        [str(runs[each].path) for each in strong],
        [
            Item(found.ids[place], difficulty, discrimination, *said)
            for place, difficulty, discrimination, said in zip(
                chosen,
                right.mean(axis=0).tolist(),
                discriminations(right),
                contradictions,
                strict=True,
            )
        ],
        list(warnings(runs, found)),
    )


def discriminations(right: Floats) -> list[float | None]:
    """Return the corrected item-total correlation of each item.

    Args:
        right: float64 (K, N), the value of each of K runs for each of N items.

    Returns:
        Per item; None if the item or the rest is the same in all runs.

    Examples:
        >>> found = discriminations(np.array([[1.0, 1, 1, 0], [1, 1, 0, 0], [0, 1, 0, 1]]))
        >>> [each if each is None else round(each, 3) for each in found]
        [-0.5, None, None, -0.866]
    """
    rest = right.sum(axis=1, keepdims=True) - right
    ours, theirs = (each - each.mean(axis=0) for each in (right, rest))
    scale = np.sqrt((ours**2).sum(axis=0) * (theirs**2).sum(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (ours * theirs).sum(axis=0) / scale
    return [None if size <= TIE else float(each) for each, size in zip(found, scale, strict=True)]


def _labels(strong: Sequence[Run], steps: Sequence[Step], right: Floats) -> list[tuple[str, str]]:
    found = []
    known: list[bool] = (right.max(axis=0, initial=0.0) > 0).tolist()
    for step, any_right in zip(steps, known, strict=True):
        answers = [_answer(run, step) for run in (strong[:1] if any_right else strong)]
        same = not any_right and all(_same(answers[0], other, step) for other in answers)
        found.append((answers[0].target, answers[0].words if same else ""))
    return found


@dataclass(frozen=True, slots=True)
class _Answer:
    target: str
    words: str
    key: tuple[Any, ...]
    point: tuple[float, float] | None


def _answer(run: Run, step: Step) -> _Answer:
    task, verdict = run.asking, run.verdict(step.sample_id)
    answer = run.predictions.get(step.sample_id)
    text, receipt = (answer.output or "", answer.receipt) if answer else ("", None)
    explained = task.explanation(step, verdict, text, profile=run.profile, receipt=receipt)
    points = [each.answer for each in explained.overlays.values() if each.answer]
    action = task.first_action(step, verdict, text, receipt, profile=run.profile)
    texts = [action.text or "", action.app or "", *action.keys] if action else []
    place = (points[0].x, points[0].y) if points else None
    words = " ".join(filter(None, (explained.answer_label, *texts)))
    if place:
        words = f"{words} at {place[0]:.0f}, {place[1]:.0f}".strip()
    silent = verdict.outcome != "ok" or (explained.answer_label in _SILENT and not place)
    key = (explained.answer_label, *(text.strip().casefold() for text in texts))
    return _Answer(explained.target_label, "" if silent else words, key, place)


def _same(one: _Answer, other: _Answer, step: Step) -> bool:
    if not one.words or not other.words or one.key != other.key:
        return False
    if one.point is None or other.point is None:
        return one.point is other.point
    width, height = (max(1, side) for side in step.screen)
    away = math.hypot(
        (one.point[0] - other.point[0]) / width, (one.point[1] - other.point[1]) / height
    )
    return away <= NEAR


def tables(found: Items) -> list[TextTable]:
    """Return the difficulty of the steps, and those whose label the strong runs contradict."""
    values = [item.difficulty for item in found.items]
    known = [item.discrimination for item in found.items if item.discrimination is not None]
    total = len(values)
    counts: Mapping[str, int] = {
        "right in all runs": sum(value == 1 for value in values),
        "right in some": sum(0 < value < 1 for value in values),
        "right in none": sum(value == 0 for value in values),
        "negative discrimination": sum(value < 0 for value in known),
        "label contradicted by all strong runs": len(found.contradicted),
    }
    rows = [
        (name, str(n), number(n / total if total else None, "share")) for name, n in counts.items()
    ]
    listed = [
        (item.sample_id, item.target, item.said, number(item.difficulty, "share"))
        for item in found.contradicted[:_SHOWN]
    ]
    title = f"Steps of {found.task} by {found.profile}, {plural(len(found.runs), 'run')}"
    shown = [TextTable(title, ("", "steps", "%"), rows)]
    if listed:
        more = len(found.contradicted) - len(listed)
        note = f" ({more} more in --json)" if more else ""
        header = ("Label to recheck" + note, "target", "all strong runs say", "right (% of runs)")
        shown.append(TextTable("Labels that all strong runs contradict", header, listed))
    return shown


def errata_lines(
    found: Items, *, data: Path | None = None, source: LoadedDataset | None = None
) -> list[dict[str, Any]]:
    """Return the lines of an errata file in which the answers of the strong runs are right too.

    A person has to decide on each. An answer at a place gets a box as large as the label's, cut at
    the edges of the screen. Labels for which the benchmark takes no such action are left out.

    Args:
        found: the items; those with a contradicted label are candidates.
        data: the dataset, if it has moved.
        source: the dataset, if it is loaded.

    Raises:
        DataError, RunError, UsageError: the data cannot be read, are not the runs' or are missing.
    """
    run = read_run(Path(found.strong[0]))
    if source is None:
        source = load_data(run, data)
    places, targets = Positions(source.steps), Targets(run.asking, run.profile)
    about = {"errata": "candidates", "version": "1", "benchmark": found.task}
    lines: list[dict[str, Any]] = [{**about, "fingerprint": source.fingerprint}]
    origin = f"omnidata items: {', '.join(found.strong)}"
    for item in found.contradicted:
        step, answer = source.steps[places[item.sample_id]], run.predictions.get(item.sample_id)
        text, receipt = (answer.output or "", answer.receipt) if answer else ("", None)
        action = run.asking.history_action(step, text, receipt)
        if action is None:
            continue
        action = _with_box(action, step)
        reason = f"{plural(len(found.strong), 'strong run')} say {item.said}, not {item.target}"
        with suppress(DataError, UsageError):
            where = str(run.path)
            one = Correction(item.sample_id, "also_right", action, "", reason, origin, where)
            targets.check(step, [one])
            lines.append(
                {
                    "sample_id": item.sample_id,
                    "kind": one.kind,
                    "value": action_fields(action),
                    "reason": reason,
                    "source": origin,
                }
            )
    return lines


def _with_box(action: Action, step: Step) -> Action:
    label = step.action.start[0] if step.action and step.action.start else None
    if not action.start or not isinstance(label, Box) or min(step.screen) < 1:
        return action
    if not is_on_screen(action.start[0], step.screen):
        return action
    point, end = (
        convert(place, label.space, step.screen)
        for place in (centre(action.start[0]), Point(*step.screen, "px"))
    )
    wide, high = (label.right - label.left) / 2, (label.bottom - label.top) / 2
    left, top = max(0, point.x - wide), max(0, point.y - high)
    right, bottom = min(end.x, point.x + wide), min(end.y, point.y + high)
    box = Box(left, top, right, bottom, label.space)
    return msgspec.structs.replace(action, start=(box,))


def as_csv(found: Items) -> str:
    """Return a line per step; nothing rounded."""
    fields = ("sample_id", "difficulty", "discrimination", "target", "said")
    return csv_text(fields, map(asdict, found.items))
