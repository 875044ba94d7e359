"""Render pages as HTML from templates that escape every text, under a closed content policy.

Texts of models and of datasets are hostile. They enter pages through Jinja2's escaping, or in the
one block of JSON, which writes every `<` as `\u003c`. The policy allows this package's script and
style (by hash where they are in the page) and the pictures, clips and sounds of the report.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any, Final
from urllib.parse import quote

import jinja2
from markupsafe import Markup, escape

from omnidata.errors import plural
from omnidata.types import CAUSES
from omnidata.viewer.book import Book
from omnidata.viewer.first_page import MARKS, first_page, listing
from omnidata.viewer.media_index import Addresses
from omnidata.viewer.step_page import step_page

_JOINT: Final = re.compile(r"[_/](?=\w)")
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
        page = first_page(self._book)
        return self._page(
            "index.html",
            title=f"{self._book.task.name} · {self._book.title}",
            page=page,
            listing=listing(self._book, page.axes),
            patterns=[self._where.steps, self._where.thumbs],
        )

    def step(self, number: int) -> str:
        """Return a step as a whole page."""
        name = self._book.steps[number].sample_id
        return self._page("step.html", title=name, page=step_page(self._book, number))

    def fragment(self, number: int) -> str:
        """Return a step for the one file, in an element that the script shows on demand."""
        return self._page("fragment.html", page=step_page(self._book, number), keep=self._keep)

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
