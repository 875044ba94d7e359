"""Render pages as HTML from templates that escape every text, under a closed content policy.

Texts of models and of datasets are hostile. They enter pages through Jinja2's escaping, or in the
one block of JSON, which writes every `<` as `\u003c`. The policy allows this package's script and
style (by hash where they are in the page) and the pictures, clips and sounds of the report.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final
from urllib.parse import quote

import jinja2
from markupsafe import Markup, escape

from omnidata import media
from omnidata.actions import NUMBERS, Screen
from omnidata.errors import MediaError, StoreError, plural
from omnidata.loaders.steps import column_of, ids_of
from omnidata.metrics.paired import Unit
from omnidata.run.certificates import certificate_of
from omnidata.types import CAUSES, NOTHING, OUTCOMES, UNREAD, Mark, MediaRef
from omnidata.viewer.media_index import Addresses
from omnidata.viewer.report_data import Book, facts

# The first page: totals, the matrix, the filters and the list of steps.

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

_MOST_VALUES = 400
"""Values of a tag that becomes a filter, at most: longer lists are not readable."""

_JOINT = re.compile(r"[_/](?=\w)")

_MATRIX_LIMIT = 40
"""Rows and columns of a matrix, at most; benchmarks with more labels get no matrix."""


@dataclass(frozen=True, slots=True)
class Total:
    """One number of the table: what it is, the value, its interval, its unit and its long name."""

    name: str
    value: float | None
    interval: tuple[float, float] | None
    unit: Unit
    meaning: str = ""


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
        facts: the run's settings.
    """

    totals: Sequence[Total]
    outcomes: Mapping[str, int]
    by_tag: Mapping[str, Sequence[tuple[str, Sequence[Total], Any]]]
    axes: Sequence[Axis]
    matrix: Matrix | None
    labels: Mapping[str, int]
    facts: Mapping[str, str]


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
        facts=_facts(book),
    )


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


def _facts(book: Book) -> dict[str, str]:
    if book.run is None:
        return {}
    settings = book.run.settings
    said = {
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
    return {name: str(value) for name, value in said.items() if value not in (None, "")}


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


_PHONE: Final[Screen] = (720, 1600)
_CLOSED: Final = "default-src 'none'; base-uri 'none'; form-action 'none'"
_LONG_TEXT: Final = 300
"""Characters from which a text of prompts is stored once in one file, for all steps."""


@cache
def asset(name: str) -> str:
    """Return the package's script or style: "pages.js" or "pages.css"."""
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def policy(mode: str) -> str:
    """Return the Content-Security-Policy of a page, by where it is: "file", "folder" or "server".

    `file:` is listed because browsers disagree about 'self' for a page opened from a disk.
    """
    if mode == "server":
        own = "script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'"
        return f"{_CLOSED}; {own}"
    if mode == "file":
        own = f"script-src {_hash(asset('pages.js'))}; style-src {_hash(asset('pages.css'))}"
    else:
        own = "script-src 'self' file:; style-src 'self' file:"
    return f"{_CLOSED}; {own}; img-src 'self' data: file:; media-src 'self' data: file:"


@cache
def _environment() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader(__package__, "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["MARKS"] = MARKS
    made.globals["CAUSES"] = CAUSES
    made.filters["counted"] = plural
    made.filters["percent"] = _percent
    made.filters["fragment"] = _fragment
    made.filters["breakable"] = _breakable
    return made


def _fragment(value: object) -> str:
    """Quote a text for an address, with half characters escaped as `encode` does."""
    return quote(encode(str(value)), safe="")


def _breakable(name: str) -> Markup:
    return Markup(_JOINT.sub(r"\g<0><wbr>", str(escape(name))))


def _percent(value: float | None, unit: str = "share") -> str:
    if value is None:
        return "–"
    return f"{100 * value:.1f}" if unit == "share" else f"{value:.2f}"


class Pages:
    """The pages of a book.

    Args:
        book: the steps, and a run or none.
        where: the addresses of pages and media.
    """

    def __init__(self, book: Book, where: Addresses) -> None:
        self._book, self._where = book, where
        self._shared: dict[str, int] = {}

    def first(self) -> str:
        """Return the overview as a whole page; in one file, the part before the steps."""
        found: Index = index(self._book)
        return self._page(
            "index.html",
            title=f"{self._book.task.name} · {self._book.title}",
            index=found,
            listing=listing(self._book, found.axes),
            patterns=[self._where.steps, self._where.thumbs],
        )

    def step(self, number: int) -> str:
        """Return a step as a whole page."""
        name = self._book.steps[number].sample_id
        return self._page("step.html", title=name, facts=facts(self._book, number))

    def fragment(self, number: int) -> str:
        """Return a step for the one file, in an element that the script shows on demand."""
        return self._page("fragment.html", facts=facts(self._book, number), keep=self._keep)

    def common_texts(self) -> Iterator[str]:
        """Yield the texts that steps in the one file share, each in such an element."""
        made = _environment().get_template("shared.html")
        for text, number in self._shared.items():
            yield made.render(number=number, text=text)

    def _keep(self, text: str) -> int | None:
        if len(text) < _LONG_TEXT:
            return None
        return self._shared.setdefault(text, len(self._shared))

    def _page(self, template: str, **values: Any) -> str:
        made = _environment().get_template(template)
        return made.render(
            **{"keep": lambda text: None, **values},
            book=self._book,
            where=self._where,
            policy=policy(self._where.mode),
            asset=asset,
        )


def encode(page: str) -> bytes:
    """Return a page as UTF-8, with half characters (which no file can hold) escaped."""
    return page.encode("utf-8", "backslashreplace")
