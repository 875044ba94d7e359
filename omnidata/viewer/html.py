"""Pages as HTML: templates that escape all they are given, and a policy that lets nothing in.

Texts of models and of datasets are hostile. They enter pages through Jinja2's escaping, and the one
block of JSON with every `<` written as `\u003c`. The policy allows this package's own script and
style, by hash where they are in the page, and pictures, clips and sounds of the report's own.
"""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final
from urllib.parse import quote

import jinja2

from omnidata.actions import NUMBERS
from omnidata.errors import counted
from omnidata.metrics.paired import Unit
from omnidata.types import CAUSES, NOTHING, OUTCOMES, UNREAD, Mark
from omnidata.viewer.media_index import Addresses
from omnidata.viewer.report_data import Book, facts

# What the first page shows: totals, the matrix, the filters, and the list that they choose.

MARKS: Final[Mapping[Mark, str]] = {
    "right": "right",
    "near": "type only",
    "partly": "partly right",
    "wrong": "wrong",
    "unread": "unparsed",
    "none": "no answer",
    "unjudged": "not judged",
}
"""The marks, as a reader sees them."""

_MOST_VALUES = 400
"""A tag with more values than this is no filter: nobody reads such a list."""

_MATRIX_LIMIT = 40
"""Rows and columns of a matrix; benchmarks with more labels get none."""


@dataclass(frozen=True, slots=True)
class Total:
    """One number of the table: what it is, the value, its interval and its unit."""

    name: str
    value: float | None
    interval: tuple[float, float] | None
    unit: Unit


@dataclass(frozen=True, slots=True)
class Axis:
    """Something to filter by.

    Attributes:
        key: in addresses.
        label: for people.
        values: in the order of the list, as addresses have them: half characters are spelled
            out; `names` are what people read.
        names: as long as `values`.
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
        noun: what the labels are.
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
        groups: axis of the results -> rows of (name, values by total, steps).
        axes: the filters.
        matrix: None where the benchmark's answers have no labels, or without a run.
        labels: without a run, the targets' labels and how many there are.
        facts: what the run's settings say.
    """

    totals: Sequence[Total]
    outcomes: Mapping[str, int]
    groups: Mapping[str, Sequence[tuple[str, Sequence[Total], Any]]]
    axes: Sequence[Axis]
    matrix: Matrix | None
    labels: Mapping[str, int]
    facts: Mapping[str, str]


def index(book: Book) -> Index:
    """Count what the first page shows."""
    axes = _axes(book)
    results = book.run.results if book.run else {}
    return Index(
        totals=_totals(book, results.get("overall", {}), results.get("ci95") or {}),
        outcomes=results.get("outcomes", {}),
        groups={
            axis: [
                (name, _totals(book, values, {}), values.get("steps"))
                for name, values in groups.items()
            ]
            for axis, groups in results.get("by", {}).items()
            if len(groups) > 1
        },
        axes=axes,
        matrix=_matrix(book) if book.run else None,
        labels=_ordered(Counter(filter(None, book.targets))),
        facts=_facts(book),
    )


def _totals(book: Book, values: Mapping[str, Any], spans: Mapping[str, Any]) -> list[Total]:
    if book.run is None:
        return []
    found = []
    for name, unit in book.run.columns.items():
        low, high = spans.get(name) or (None, None)
        interval = None if low is None or high is None else (low, high)
        found.append(Total(name, values.get(name), interval, unit))
    return found


def _facts(book: Book) -> dict[str, str]:
    """What distinguishes this run from another, for the foot of the overview."""
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
    for tag in book.source.tags:
        values = [step.tags.get(tag, "") for step in book.steps]
        if 1 < len(set(values)) <= _MOST_VALUES:
            order = list(book.run.results["by"].get(tag, ())) if book.run else []
            found.append(_axis(tag, tag.replace("_", " ").capitalize(), values, order))
    answers = [each.answer_label for each in book.explanations]
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
    counts = _ordered(Counter(values), order)
    codes = {value: code for code, value in enumerate(counts)}
    return Axis(
        key=key,
        label=label,
        values=[value.encode("utf-8", "backslashreplace").decode() for value in counts],
        names=[names.get(value, value) or "(none)" for value in counts],
        counts=list(counts.values()),
        codes=[codes[value] for value in values],
    )


def _ordered(counts: Counter[str], order: Sequence[str] = list(NUMBERS)) -> dict[str, int]:
    """In the order given, then by name; what is no answer comes last."""
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
    targets = list(_ordered(Counter(target for target, _ in pairs)))
    said = {answer for _, answer in pairs}
    # The columns begin like the rows, so that what is right lies on the diagonal.
    answers = [*targets, *(name for name in _ordered(Counter(said)) if name not in targets)]
    answers = [name for name in answers if name in said or name in targets]
    if len(said | {*targets}) < 2 or max(len(targets), len(answers)) > _MATRIX_LIMIT:
        return None
    counts = [[pairs[target, answer] for answer in answers] for target in targets]
    return Matrix(book.noun, targets, answers, counts)


def listing(book: Book, axes: Sequence[Axis]) -> dict[str, Any]:
    """The list as columns, for the page's script; a step takes about 40 bytes and its id.

    Returns:
        "ids", "index" in the episode, "episode" and "face" (the number of its picture on the
        shelf, -1 for none) by step; "episodes" with app, id and instruction; "axes" with key,
        values, names and codes by step.
    """
    faces = (book.face(step) for step in book.steps)
    firsts = [book.steps[numbers[0]] for numbers in book.episodes]
    return {
        "ids": [step.sample_id for step in book.steps],
        "index": [step.step_index for step in book.steps],
        "episode": [book.episode_of[number] for number in range(len(book.steps))],
        "face": [-1 if face is None else book.shelf.number(face) for face in faces],
        "strips": [list(numbers) for numbers in book.episodes],
        "episodes": [
            ["/".join(filter(None, (step.tags.get("app"), step.episode_id))), step.instruction]
            for step in firsts
        ],
        "axes": [
            {"key": axis.key, "values": axis.values, "names": axis.names, "codes": axis.codes}
            for axis in axes
        ],
    }


_CLOSED: Final = "default-src 'none'; base-uri 'none'; form-action 'none'"
_LONG_TEXT: Final = 300
"""Characters from which a prompt's text, which most steps share, is kept once in one file."""


@cache
def asset(name: str) -> str:
    """The package's script or style: "pages.js" or "pages.css"."""
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def policy(mode: str) -> str:
    """The Content-Security-Policy of a page: of one file, of a folder's, or of a server's.

    `file:` is there because browsers do not agree on what 'self' is for a page that was opened
    from a disk.
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
    made.filters["counted"] = counted
    made.filters["percent"] = _percent
    made.filters["fragment"] = _fragment
    return made


def _fragment(value: object) -> str:
    """A text as a part of an address, half characters spelled out as `encoded` does."""
    return quote(encoded(str(value)), safe="")


def _percent(value: float | None, unit: str = "share") -> str:
    """A total as tables print it."""
    if value is None:
        return "–"
    return f"{100 * value:.1f}" if unit == "share" else f"{value:.2f}"


class Pages:
    """The pages of a book.

    Args:
        book: what they show.
        where: the places around them.
    """

    def __init__(self, book: Book, where: Addresses) -> None:
        self._book, self._where = book, where
        self._shared: dict[str, int] = {}

    def first(self) -> str:
        """The overview as a whole page; of one file, what comes before the steps."""
        found: Index = index(self._book)
        return self._page(
            "index.html",
            self._where,
            title=f"{self._book.task.name} · {self._book.title}",
            index=found,
            listing=listing(self._book, found.axes),
            patterns=[_pattern(self._where.step), _pattern(self._where.thumb)],
        )

    def step(self, number: int) -> str:
        """A step as a whole page."""
        name = self._book.steps[number].sample_id
        return self._page("step.html", self._where, title=name, facts=facts(self._book, number))

    def fragment(self, number: int) -> str:
        """A step for the one file, in an element that is not shown until it is asked for."""
        return self._page(
            "fragment.html", self._where, facts=facts(self._book, number), keep=self._keep
        )

    def shared(self) -> Iterator[str]:
        """The texts that steps in the one file share, each in such an element."""
        made = _environment().get_template("shared.html")
        for text, number in self._shared.items():
            yield made.render(number=number, text=text)

    def _keep(self, text: str) -> int | None:
        """The number of a long text; None for a short one, which stays where it is."""
        if len(text) < _LONG_TEXT:
            return None
        return self._shared.setdefault(text, len(self._shared))

    def _page(self, template: str, where: Addresses, **values: Any) -> str:
        made = _environment().get_template(template)
        return made.render(
            **{"keep": lambda text: None, **values},
            book=self._book,
            where=where,
            policy=policy(where.mode),
            asset=asset,
        )


def _pattern(address: Any) -> str:
    """An address with `{}` in place of the number."""
    return str(address(0)).replace("0", "{}", 1)


def encoded(page: str) -> bytes:
    """A page as UTF-8; half characters, which no file can hold, are spelled out."""
    return page.encode("utf-8", "backslashreplace")
