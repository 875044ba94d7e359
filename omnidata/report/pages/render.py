r"""Pages as HTML: templates that escape all they are given, and a policy that lets nothing in.

Texts of models and of datasets are hostile. They enter pages through Jinja2's escaping, and the one
block of JSON with every `<` written as `\u003c`. The policy allows this package's own script and
style, by hash where they are in the page, and pictures, clips and sounds of the report's own.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any, Final
from urllib.parse import quote

import jinja2

from omnidata.errors import counted
from omnidata.report.pages.addresses import Addresses
from omnidata.report.pages.book import Book
from omnidata.report.pages.facts import facts
from omnidata.report.pages.index import Index, index, listing
from omnidata.report.pages.marks import MARKS

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
        """Nothing is made yet."""
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
