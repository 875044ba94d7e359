"""The applications of OmniBench and their categories (Table 10)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any


@cache
def _content() -> Mapping[str, Any]:
    text = resources.files("omnidata.loaders").joinpath("omnibench_table10.json").read_bytes()
    content: Mapping[str, Any] = json.loads(text)
    return content


@cache
def table10() -> Mapping[str, str]:
    """Application -> category, as printed.

    Examples:
        >>> len(table10()), len(set(table10().values()))
        (49, 12)
    """
    categories = _content()["categories"].items()
    return {app: category for category, apps in categories for app in apps}


@cache
def _by_key() -> Mapping[str, str]:
    spellings = {said: table10()[app] for said, app in _content()["spellings"].items()}
    return {_key(app): category for app, category in {**table10(), **spellings}.items()}


def _key(app: str) -> str:
    return " ".join(app.split()).casefold()


def category_of(app: str) -> str | None:
    """The category of an application; None for one that Table 10 does not have.

    Case and repeated spaces do not count, and the released code's spellings are known. Nothing else
    is guessed: the paper's own figure has an Outlook that the table lacks.

    Examples:
        >>> category_of("excel"), category_of("Outlook")
        ('Office', None)
    """
    return _by_key().get(_key(app))


def categories_of(apps: Iterable[str], given: Mapping[str, str] = {}) -> dict[str, str]:
    """Application -> category; an unknown application is a category of its own.

    Args:
        apps: the applications of a task.
        given: what the source says, which comes first.

    Examples:
        >>> categories_of(["Word", "Outlook"])
        {'Word': 'Office', 'Outlook': 'Outlook'}
    """
    return {app: given.get(app) or category_of(app) or app for app in apps}
