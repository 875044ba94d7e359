"""The content of the first page: totals, the matrix, the filters and the list of steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from omnidata import media
from omnidata.actions import NUMBERS, Screen
from omnidata.errors import MediaError, StoreError
from omnidata.loaders.steps import column_of, ids_of
from omnidata.metrics.paired import Unit
from omnidata.run.certificates import certificate_of
from omnidata.types import CAUSES, NOTHING, OUTCOMES, UNREAD, Mark, MediaRef
from omnidata.viewer.book import Book

MARKS: Final[Mapping[Mark, str]] = {
    "right": "right",
    "near": "type only",
    "partly": "partly right",
    "wrong": "wrong",
    "unread": "unparsed",
    "none": "no answer",
    "unjudged": "not judged",
}
"""The names of the marks on pages."""

_MOST_VALUES: Final = 400
"""Values of a tag that becomes a filter, at most: longer lists are not readable."""

_MATRIX_LIMIT: Final = 40
"""Rows and columns of a matrix, at most; benchmarks with more labels get no matrix."""

_PHONE: Final[Screen] = (720, 1600)


@dataclass(frozen=True, slots=True)
class Index:
    """The first page.

    Attributes:
        totals: overall, with intervals; empty without a run.
        outcomes: of the run, those that occurred.
        by_tag: tag of the data -> rows of (value of the tag, totals, steps).
        axes: the filters.
        matrix: None where the benchmark's answers have no labels, or without a run.
        labels: without a run, the targets' labels and their counts.
        settings: of the run.
    """

    totals: Sequence[Total]
    outcomes: Mapping[str, int]
    by_tag: Mapping[str, Sequence[tuple[str, Sequence[Total], Any]]]
    axes: Sequence[Axis]
    matrix: Matrix | None
    labels: Mapping[str, int]
    settings: Mapping[str, str]


def index(book: Book) -> Index:
    """Return the counts of the first page."""
    axes = _axes(book)
    results = book.run.results if book.run else {}
    return Index(
        totals=_totals(book, results.get("overall", {}), results.get("ci95") or {}),
        outcomes=results.get("outcomes", {}),
        by_tag={
            tag: [
                (name, _totals(book, values, {}), values.get("steps"))
                for name, values in subsets.items()
            ]
            for tag, subsets in results.get("by", {}).items()
            if len(subsets) > 1
        },
        axes=axes,
        matrix=_matrix(book) if book.run else None,
        labels=_sort_counts(Counter(filter(None, book.targets))),
        settings=_settings(book),
    )


@dataclass(frozen=True, slots=True)
class Total:
    """One number of the table: what it is, the value, its interval, its unit and its long name."""

    name: str
    value: float | None
    interval: tuple[float, float] | None
    unit: Unit
    meaning: str = ""


def _totals(book: Book, values: Mapping[str, Any], spans: Mapping[str, Any]) -> list[Total]:
    if book.run is None:
        return []
    found = []
    meanings = getattr(book.task.profiles[book.run.profile], "legend", {})
    for name, unit in book.run.columns.items():
        low, high = spans.get(name) or (None, None)
        interval = None if low is None or high is None else (low, high)
        found.append(Total(name, values.get(name), interval, unit, meanings.get(name, "")))
    return found


def _settings(book: Book) -> dict[str, str]:
    if book.run is None:
        return {}
    settings = book.run.settings
    shown = {
        **settings.get("options", {}),
        **settings.get("model_options", {}),
        **(settings.get("generation") or {}),
        **{f"only {tag}": value for tag, value in settings.get("where", {}).items()},
        "control": book.run.control,
        "limit": settings.get("limit"),
        "seed": settings.get("seed"),
        "shard": settings.get("shard"),
        "omnidata": settings.get("versions", {}).get("omnidata"),
        "certificate": certificate_of(settings.get("facts") or {}),
    }
    return {name: str(value) for name, value in shown.items() if value not in (None, "")}


@dataclass(frozen=True, slots=True)
class Axis:
    """A filter of the list.

    Attributes:
        key: name in addresses.
        label: name on the page.
        values: in the order of the list, as addresses hold them, half characters escaped.
        names: of the values on the page, as long as `values`.
        counts: steps with each.
        codes: for every step, the index of its value.
    """

    key: str
    label: str
    values: Sequence[str]
    names: Sequence[str]
    counts: Sequence[int]
    codes: Sequence[int]


def _axes(book: Book) -> list[Axis]:
    found = []
    if book.run:
        marks = [each.mark or "" for each in book.explanations]
        found.append(_axis("verdict", "Verdict", marks, list(MARKS), MARKS))
        outcomes = [book.run.scores[step.sample_id]["outcome"] for step in book.steps]
        found.append(_axis("outcome", "Outcome", outcomes, OUTCOMES))
        causes = [each.diagnosis.cause if each.diagnosis else "" for each in book.explanations]
        if any(causes):
            found.append(_axis("cause", "Cause", causes, list(CAUSES), CAUSES))
    by_tag: dict[str, list[str]] = {tag: [] for tag in book.source.tags}
    for tags in column_of(book.steps, "tags"):
        for tag, values in by_tag.items():
            values.append(tags.get(tag, ""))
    for tag, values in by_tag.items():
        if 1 < len(set(values)) <= _MOST_VALUES:
            order = list(book.run.results["by"].get(tag, ())) if book.run else []
            found.append(_axis(tag, tag.replace("_", " ").capitalize(), values, order))
    answers = [each.answer_label for each in book.explanations] if book.run else [""]
    if len({*book.targets, *answers}) < 2:
        return found
    if any(book.targets):
        found.append(_axis("target", f"Target {book.noun}", book.targets, list(NUMBERS)))
    if any(answers):
        found.append(_axis("answer", f"Answered {book.noun}", answers, list(NUMBERS)))
    return found


def _axis(
    key: str,
    label: str,
    values: Sequence[str],
    order: Sequence[str] = (),
    names: Mapping[Any, str] = {},
) -> Axis:
    counts = _sort_counts(Counter(values), order)
    codes = {value: code for code, value in enumerate(counts)}
    return Axis(
        key=key,
        label=label,
        values=[value.encode("utf-8", "backslashreplace").decode() for value in counts],
        names=[names.get(value, value) or "(none)" for value in counts],
        counts=list(counts.values()),
        codes=[codes[value] for value in values],
    )


def _sort_counts(counts: Counter[str], order: Sequence[str] = list(NUMBERS)) -> dict[str, int]:
    places = {value: place for place, value in enumerate((*order,))}
    last = (UNREAD, NOTHING)
    return dict(
        sorted(
            counts.items(),
            key=lambda item: (item[0] in last, places.get(item[0], len(places)), item[0]),
        )
    )


@dataclass(frozen=True, slots=True)
class Matrix:
    """Targets against answers, a count for every pair.

    Attributes:
        noun: of the labels, e.g. "primitive".
        targets, answers: the labels of rows and columns.
        counts: row by row.
    """

    noun: str
    targets: Sequence[str]
    answers: Sequence[str]
    counts: Sequence[Sequence[int]]


def _matrix(book: Book) -> Matrix | None:
    pairs = Counter(
        (each.target_label, each.answer_label)
        for each in book.explanations
        if each.target_label and each.answer_label
    )
    targets = list(_sort_counts(Counter(target for target, _ in pairs)))
    said = {answer for _, answer in pairs}
    # The columns begin like the rows, so that right answers are on the diagonal.
    answers = [*targets, *(name for name in _sort_counts(Counter(said)) if name not in targets)]
    answers = [name for name in answers if name in said or name in targets]
    if len(said | {*targets}) < 2 or max(len(targets), len(answers)) > _MATRIX_LIMIT:
        return None
    counts = [[pairs[target, answer] for answer in answers] for target in targets]
    return Matrix(book.noun, targets, answers, counts)


def listing(book: Book, axes: Sequence[Axis]) -> dict[str, Any]:
    """Return the list as columns for the page's script; a step takes about 40 bytes and its id.

    Returns:
        "ids", "index" in the episode, "episode" and "face" (the number of its picture on the
        shelf, -1 for none) by step; "episodes" with app, id and instruction; "axes" with key,
        values, names and codes by step; "size" of the first picture, for the space that
        thumbnails need before they load.
    """
    faces = book.shelf.faces
    firsts = [book.steps[numbers[0]] for numbers in book.episodes]
    return {
        "ids": [*ids_of(book.steps)],
        "index": [*column_of(book.steps, "step_index")],
        "episode": book.episode_of,
        "face": faces,
        "size": _size(next((book.shelf.refs[face] for face in faces if face >= 0), None)),
        "strips": book.episodes,
        "episodes": [
            ["/".join(filter(None, (step.tags.get("app"), step.episode_id))), step.instruction]
            for step in firsts
        ],
        "axes": [
            {"key": axis.key, "values": axis.values, "names": axis.names, "codes": axis.codes}
            for axis in axes
        ],
    }


def _size(ref: MediaRef | None) -> Screen:
    try:
        return media.image_size(ref) if ref else _PHONE
    except (MediaError, StoreError):
        return _PHONE
