"""Options of every task whose data allow them: the amount of history and media shown.

A task with an option of the same name keeps its own. An option at its default counts as not given:
it is neither in `run.json` nor in the prompt hash.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from omnidata.errors import UsageError
from omnidata.tasks.published import Variation

LANGUAGES: Final = ("own", "en", "zh", "both")
UNIFIED: Final = "unified"
OPTIONS: Final[Mapping[str, str]] = {
    "media_until": "SHARE",
    "history_window": "N|own",
    "history_screenshots": "N|own",
    "patches": "N|none",
    "language": "|".join(LANGUAGES),
    "dialect": "NAME",
    "system": "FILE",
}
"""Option -> what it takes:

* `media_until`: clips and sounds are shown from their beginning up to this share of their time,
  above 0 and up to 1, which is the default. Pictures, and instructions that are spoken, stay whole.
* `history_window`: the prompt tells of so many earlier actions at most, the last ones; "own", the
  default, of as many as the task itself tells.
* `history_screenshots`: so many screenshots of earlier steps, the last ones, stand before the
  step's own, in place of the task's own history screenshot; "own", the default, leaves that.
* `patches`: with `history=predicted`, an answer that is not right stands in the history as the
  expert's action, a patch (`omnidata.run.histories`); after more misses in an episode than this its
  rollout ends. "none", the default, tells the model's own actions, and all steps are asked about.
* `language`: of the instruction, whatever the language of the app: the one that the benchmark
  prescribes ("own"), or one of those in the row, or both.
* `dialect`: the task is asked and answered as a family of models does it, see
  `omnidata.tasks.asking_in_dialect`; "unified", the default, in the task's own words.
* `system`: a file whose text stands in a dialect's prompt in place of the dialect's own.
"""

IN_DIALECT: Final = ("dialect", "system")
"""Those of them that make another task of it."""
FOR_JUDGING: Final = ("dialect", "patches")
"""Those of them that answers are judged or counted by, and so are recorded ones."""
NAME_FILES: Final = ("system",)
"""Those of them that name a file, which the user alone may do and no `run.json`."""
AT_LOADING: Final = ("language", "history_screenshots")
"""Those of them that need more than a step, and so change the steps when they are loaded."""

MEDIA_UNTIL: Final = Variation(
    "media_until",
    "1",
    {share: share for share in ("1", "0.75", "0.5", "0.25")},
    "Shown share of clips and sounds",
    "Until",
)
VARIATIONS: Final = (
    MEDIA_UNTIL,
    Variation(
        "history_window", "", {"": "All"}, "Earlier actions in the prompt", "Actions", other="Last"
    ),
    Variation("history_screenshots", "", {"": "The task's"}, "Earlier screenshots", "Screenshots"),
    Variation(
        "patches",
        "",
        {"": "None"},
        "Wrong actions replaced in the history",
        "Patches",
        other="Up to",
    ),
    Variation(
        "language",
        "own",
        {"own": "Own", "en": "English", "zh": "Chinese", "both": "Both"},
        "Language of the instruction, by language of the app",
        "Instruction",
        axis="language",
        wordings=True,
    ),
    Variation(
        "dialect",
        UNIFIED,
        {UNIFIED: "Unified"},
        "Dialect of the prompt",
        "Dialect",
        besides=frozenset({"coordinates", "system"}),
    ),
)
"""Their tables in `omnidata report`."""

_COUNTS: Final = ("history_window", "history_screenshots", "patches")
_OWN: Final = "own"
_NONE: Final = "none"
_DIGITS: Final = 4


def split(
    given: Mapping[str, str], allowed: Mapping[str, Sequence[str]]
) -> tuple[dict[str, str], dict[str, str]]:
    """Split options into the task's own and the common ones, without defaults.

    Args:
        given: as with `-T key=value`.
        allowed: the task's own options.

    Raises:
        UsageError: the option does not allow the value.

    Examples:
        >>> split({"history": "none", "media_until": "0.50", "language": "own"}, {})
        ({'history': 'none'}, {'media_until': '0.5'})
        >>> split({"language": "fr"}, {"language": ("de", "fr")})
        ({'language': 'fr'}, {})
    """
    own = {name: value for name, value in given.items() if name in allowed or name not in OPTIONS}
    common = {name: _canonical(name, given[name]) for name in given if name not in own}
    return own, {name: value for name, value in common.items() if value}


def names_file(name: str, allowed: Mapping[str, Sequence[str]]) -> bool:
    """Return whether a task's option may name a file or a folder: it takes any text.

    Examples:
        >>> names_file("voice", {"voice": ("",)}), names_file("system", {})
        (True, True)
        >>> names_file("history", {"history": ("gold", "none")}), names_file("language", {})
        (False, False)
    """
    return allowed[name] == ("",) if name in allowed else name in NAME_FILES


def _canonical(name: str, value: str) -> str:
    if name in IN_DIALECT:
        return "" if value == UNIFIED and name == "dialect" else value
    if value == (_NONE if name == "patches" else _OWN) and name in (*_COUNTS, "language"):
        return ""
    if name == "language" and value in LANGUAGES:
        return value
    if name in _COUNTS and value.isascii() and value.isdecimal() and len(value) < _DIGITS:
        return str(int(value))
    if name == "media_until":
        try:
            share = float(value)
        except ValueError:
            share = 0.0
        if 0 < share <= 1:
            said = f"{share:g}"
            return "" if said == "1" else said
    expected = {"language": f"one of {', '.join(LANGUAGES)}", "media_until": "above 0, up to 1"}
    raise UsageError(
        f'"{name}" has no value "{value}"',
        where=f"-T {name}={value}",
        expected=expected.get(
            name, f"a whole number from 0 to 999, or {_NONE if name == 'patches' else _OWN}"
        ),
    )
