"""The 29 apps of OmniGUI's Table 7: languages, spellings and published counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import resources
from typing import Any, Literal, TypeVar

Language = Literal["zh", "en"]
Dimension = Literal[
    "localization",
    "semantic_understanding",
    "cross_modal_discrimination",
    "temporal_reasoning",
    "instant_response",
]
Dependency = Literal["critical", "supportive", "present"]

Label = TypeVar("Label", bound=str)

DIMENSIONS: Mapping[Dimension, str] = {
    "localization": "loc",
    "semantic_understanding": "sem",
    "cross_modal_discrimination": "crm",
    "temporal_reasoning": "tmp",
    "instant_response": "ins",
}
"""The five task dimensions, also the names of the metadata files, and Table 7's columns."""

DEPENDENCIES: Mapping[Dependency, str] = {"critical": "cri", "supportive": "sup", "present": "pre"}
"""The three multimodal dependency levels (section 3.2) and Table 7's columns."""


def canonical(name: str) -> str:
    """An app's name without case, blanks and punctuation; one that is nothing else keeps it.

    Examples:
        >>> canonical("Google_Translate"), canonical("QQ Music")
        ('googletranslate', 'qqmusic')
    """
    return "".join(filter(str.isalnum, name.casefold())) or name.casefold()


@cache
def table7() -> Mapping[str, Any]:
    """The published table: `apps` (rows with counts and aliases) and `totals`."""
    text = resources.files("omnidata.loaders").joinpath("apps.json").read_text("utf-8")
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


def label(value: object, allowed: Iterable[Label]) -> Label | None:
    """A dimension or dependency label in our spelling; None if it is none of the allowed ones.

    Examples:
        >>> label("AV-Critical", DEPENDENCIES), label("Temporal Reasoning", DIMENSIONS)
        ('critical', 'temporal_reasoning')
    """
    if not isinstance(value, str):
        return None
    plain = value.strip().casefold().replace("-", "_").replace(" ", "_").removeprefix("av_")
    return next((name for name in allowed if name == plain), None)
