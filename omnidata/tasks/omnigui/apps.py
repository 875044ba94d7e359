"""The 29 apps of Table 7: languages, spellings and published counts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from omnidata.loaders.language_check import Language
from omnidata.loaders.rows import canonical

COLUMNS: Mapping[str, str] = {
    "localization": "loc",
    "semantic_understanding": "sem",
    "cross_modal_discrimination": "crm",
    "temporal_reasoning": "tmp",
    "instant_response": "ins",
    "critical": "cri",
    "supportive": "sup",
    "present": "pre",
}
"""The table's columns of the five task dimensions and the three dependency levels (section 3.2)."""


@cache
def table7() -> Mapping[str, Any]:
    """The published table: `apps` (rows with counts and aliases) and `totals`."""
    text = resources.files("omnidata.tasks.omnigui").joinpath("apps.json").read_text("utf-8")
    table: Mapping[str, Any] = json.loads(text)
    return table


@cache
def _by_name() -> Mapping[str, Mapping[str, Any]]:
    return {
        canonical(name): row for row in table7()["apps"] for name in (row["app"], *row["aliases"])
    }


def published(app: str) -> Mapping[str, Any] | None:
    """The app's row of Table 7, found under any of its spellings; None for an app not in it.

    Examples:
        >>> published("googletranslate")["app"], published("Insta")["language"]
        ('GTrans', 'en')
    """
    return _by_name().get(canonical(app))


def app_key(app: str) -> str:
    """What an app's spellings have in common: Table 7's name for those in it, in canonical form.

    Examples:
        >>> app_key("Google_Translate") == app_key("GTrans") == "gtrans"
        True
    """
    row = published(app)
    return canonical(row["app"] if row else app)


def language_of(app: str) -> Language | None:
    """The language in which Table 7 lists the app; None for an app not in it."""
    row = published(app)
    return None if row is None else row["language"]
