"""The content of the first page: totals, the matrix, the filters and the list of steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
_NUMBERED: Final = tuple(NUMBERS)
"""Kinds of actions, in the order of their numbers."""


@dataclass(frozen=True, slots=True)
class FirstPage:
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


def first_page(book: Book) -> FirstPage:
    """Return the content of the first page, but for the list of steps."""
    results = book.run.results if book.run else {}
    return FirstPage(
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
        axes=[*_run_axes(book), *_tag_axes(book), *_label_axes(book)],
        matrix=_matrix(book) if book.run else None,
        labels=_count(filter(None, book.targets)),
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


def _run_axes(book: Book) -> Iterator[Axis]:
    if book.run is None:
        return
    marks = [each.mark or "" for each in book.explanations]
    yield _axis("verdict", "Verdict", marks, list(MARKS), MARKS)
    outcomes = [book.run.scores[step.sample_id]["outcome"] for step in book.steps]
    yield _axis("outcome", "Outcome", outcomes, OUTCOMES)
    causes = [each.diagnosis.cause if each.diagnosis else "" for each in book.explanations]
    if any(causes):
        yield _axis("cause", "Cause", causes, list(CAUSES), CAUSES)


def _tag_axes(book: Book) -> Iterator[Axis]:
    by_tag: dict[str, list[str]] = {tag: [] for tag in book.source.tags}
    for tags in column_of(book.steps, "tags"):
        for tag, values in by_tag.items():
            values.append(tags.get(tag, ""))
    for tag, values in by_tag.items():
        if 1 < len(set(values)) <= _MOST_VALUES:
            order = list(book.run.results["by"].get(tag, ())) if book.run else []
            yield _axis(tag, tag.replace("_", " ").capitalize(), values, order)


def _label_axes(book: Book) -> Iterator[Axis]:
    answers = [each.answer_label for each in book.explanations] if book.run else [""]
    if len({*book.targets, *answers}) < 2:
        return
    if any(book.targets):
        yield _axis("target", f"Target {book.noun}", book.targets)
    if any(answers):
        yield _axis("answer", f"Answered {book.noun}", answers)


def _axis(
    key: str,
    label: str,
    values: Sequence[str],
    order: Sequence[str] = _NUMBERED,
    names: Mapping[Any, str] = {},
) -> Axis:
    counts = _count(values, order)
    codes = {value: code for code, value in enumerate(counts)}
    return Axis(
        key=key,
        label=label,
        values=[value.encode("utf-8", "backslashreplace").decode() for value in counts],
        names=[names.get(value, value) or "(none)" for value in counts],
        counts=list(counts.values()),
        codes=[codes[value] for value in values],
    )


def _count(values: Iterable[str], order: Sequence[str] = _NUMBERED) -> dict[str, int]:
    """Return the count of each value, those of `order` first and answers without an action last."""
    places = {value: place for place, value in enumerate(order)}
    counts = Counter(values)

    def rank(value: str) -> tuple[bool, int, str]:
        return value in (UNREAD, NOTHING), places.get(value, len(places)), value

    return {value: counts[value] for value in sorted(counts, key=rank)}


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
    targets = list(_count(target for target, _ in pairs))
    others = [answer for answer in _count(answer for _, answer in pairs) if answer not in targets]
    answers = [*targets, *others]  # like the rows first, so that right answers are on the diagonal
    if not 2 <= len(answers) <= _MATRIX_LIMIT:
        return None
    counts = [[pairs[target, answer] for answer in answers] for target in targets]
    return Matrix(book.noun, targets, answers, counts)


def listing(book: Book, axes: Sequence[Axis]) -> dict[str, Any]:
    """Return the list as columns for the page's script; a step takes about 40 bytes and its id.

    Returns:
        "ids", "index" in the episode, "episode" and "face" (the number of its picture on the
        shelf, -1 for none) by step; "strips", the steps of each episode; "episodes" with app, id
        and instruction; "axes" with key, values, names and codes by step; "size" of the first
        picture, for the space that thumbnails need before they load.
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
