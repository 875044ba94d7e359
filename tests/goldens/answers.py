"""Answers and receipts that the pipeline of a benchmark is tried with."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from omnidata.actions import Screen

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_KEY = re.compile(r'"(\w+)"(?=\s*:)')
_NAME = re.compile(r"[a-z_]{3,}(?=\()")
_QUOTED = re.compile(r"(\"[^\"\\]+\"|'[^'\\]+')(?!\s*:)")
_LAST_QUOTED = re.compile(r"([\"'])([^\"'\\]+)\1(?=[^\"']*$)")
_WAYS = {"up": "down", "down": "up", "left": "right", "right": "left"}
_TURNS = {"up": "left", "down": "right", "left": "up", "right": "down"}
_WAY = re.compile("|".join(_WAYS), re.IGNORECASE)
_UNKNOWN = (1080, 1920)
"""The size of a screenshot whose row states none."""


def _sub(pattern: re.Pattern[str], there: str | Callable[[re.Match[str]], str]) -> Bend:
    """Rewrite the first match."""
    return lambda text: pattern.sub(there, text, count=1)


def _to(ways: Mapping[str, str]) -> Bend:
    """Replace every direction by another, in its own case."""

    def other(found: re.Match[str]) -> str:
        way = ways[found[0].lower()]
        return way.upper() if found[0].isupper() else way

    return lambda text: _WAY.sub(other, text)


def _turned(text: str) -> str:
    """Exchange the first two pairs of numbers."""
    numbers = _NUMBER.findall(text)
    if len(numbers) < 4:
        return text
    swapped = iter([*numbers[2:4], *numbers[:2], *numbers[4:]])
    return _NUMBER.sub(lambda found: next(swapped), text)


Bend = Callable[[str], str]
BENDS: Mapping[str, Bend] = {
    "wrong field": _sub(_KEY, '"place"'),
    "wrong name": _sub(_NAME, "do_it"),
    "number as text": _sub(_NUMBER, lambda found: f'"{found[0]}"'),
    "zero": _sub(_NUMBER, "0"),
    "all zero": lambda text: _NUMBER.sub("0", text),
    "negative": _sub(_NUMBER, lambda found: f"-{found[0].lstrip('-')}"),
    "far": lambda text: _NUMBER.sub(lambda found: f"{found[0]}00000", text),
    "scientific": lambda text: _NUMBER.sub(lambda found: f"{float(found[0]):.6e}", text),
    "in words": _sub(_NUMBER, "five hundred"),
    "near": lambda text: _NUMBER.sub(lambda found: f"{float(found[0]) * 1.01:.6g}", text),
    "far off": lambda text: _NUMBER.sub(lambda found: f"{float(found[0]) * 0.5:.6g}", text),
    "other text": _sub(_QUOTED, lambda found: f"{found[0][0]}other{found[0][0]}"),
    "other last text": _sub(_LAST_QUOTED, r"\1other\1"),
    "longer text": _sub(_LAST_QUOTED, r"\1\2 more\1"),
    "shorter text": _sub(_LAST_QUOTED, lambda found: found[1] + found[2][:-1] + found[1]),
    "text in capitals": _sub(_LAST_QUOTED, lambda found: found[0].upper()),
    "back": _to(_WAYS),
    "aside": _to(_TURNS),
    "end before start": _turned,
    "shouted": str.upper,
    "half": lambda text: text[: len(text) // 2],
    "cut": lambda text: text[:-1],
    "twice": lambda text: f"{text}\n{text}",
    "with words": lambda text: f"I think that this is right.\n{text}\nDone.",
    "empty": lambda text: "",
}
"""Name -> how a right answer is bent."""


def bent(text: str) -> Iterator[str]:
    """Yield the bent forms of an answer that differ from it."""
    for bend in BENDS.values():
        if (found := bend(text)) != text:
            yield found


def receipts(screen: Screen) -> dict[str, dict[str, Any]]:
    """Return receipts of a screenshot that was sent in several sizes, by name."""
    width, height = screen if min(screen) > 0 else _UNKNOWN
    half: dict[str, Any] = {"width": width // 2, "height": height // 2}
    earlier = {"role": "history_screenshot", "kind": "image", "width": 64, "height": 36}

    def parts(*, original: tuple[int, int] | None = (width, height), **sent: Any) -> dict[str, Any]:
        stated = {"original": list(original)} if original else {}
        line = {"role": "screenshot", "kind": "image", **sent, **stated}
        return {"parts": [{**earlier, "original": [128, 72]}, line]}

    return {
        "none": {},
        "half": parts(**half),
        "stretched": parts(width=width * 3 // 5 + 1, height=height * 7 // 10 + 3),
        "as it is": parts(width=width, height=height),
        "larger file": parts(**half, original=(width * 2, height * 2)),
        "no original": parts(**half, original=None),
        "elements in pixels of the screen": parts(**half, pixels="screen"),
        "unreadable": parts(width=-1, height=half["height"]),
        "degraded": {"parts": [{"role": "screenshot", "kind": "image", "dropped": "no eyes"}]},
    }
