"""A dialect as another distribution brings one: objects of JSON, in several units."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from omnidata.actions import Action, Kind, Point, Screen
from omnidata.dialects import (
    Answer,
    Asked,
    CannotSayError,
    Dialect,
    Frame,
    Layout,
    Platform,
    Rules,
    UnreadError,
    dialects,
)
from tests import plugs

KINDS: frozenset[Kind] = frozenset({"tap", "swipe", "scroll", "type", "ask"})
WORDS = ("kind", "text", "direction", "amount", "button", "count", "keys", "status")


class Toy(Dialect):
    """Answers are lists of objects; the strict reader takes those without blanks alone."""

    title = "A toy"
    says: ClassVar = {"mobile": KINDS, "desktop": KINDS, "web": KINDS}
    layout = Layout(turns=True, screenshots=3, actions=4)

    def __init__(self, name: str, frame: Frame) -> None:
        self.name, self.frame = name, frame  # type: ignore[misc]

    def read(self, text: str, fed: Screen, *, rules: Rules = "lenient") -> Answer:
        try:
            rows = json.loads(text)
        except ValueError:
            raise UnreadError("no list of objects") from None
        if not rows or (rules == "strict" and " " in text):
            raise UnreadError("nothing, or a blank")
        return Answer(tuple(map(self._action, rows)))

    def _action(self, row: dict[str, object]) -> Action:
        places = {
            key: tuple(Point(x, y, self.frame.space) for x, y in row.get(key, []))  # type: ignore[attr-defined]
            for key in ("start", "end")
        }
        given = {key: row[key] for key in WORDS if key in row}
        return Action(**{**given, **places, "keys": tuple(row.get("keys", ()))})  # type: ignore[arg-type]

    def write(self, actions: Sequence[Action], fed: Screen, platform: Platform) -> str:
        for action in actions:
            if action.kind not in KINDS:
                raise CannotSayError(f"there is no word for {action.label}")
        rows = [
            {
                **{key: getattr(action, key) for key in WORDS},
                "start": [[point.x, point.y] for point in action.start if isinstance(point, Point)],
                "end": [[point.x, point.y] for point in action.end if isinstance(point, Point)],
            }
            for action in actions
        ]
        return json.dumps(rows, separators=(",", ":"))

    def vocabulary(self, asked: Asked, platform: Platform, fed: Screen) -> str:
        return f"Answer with JSON: {asked} on {platform}, in {self.frame.space} of {fed}."


class Begun(Toy):
    """The prompt begins the list, and a line break ends the answer."""

    prefix = "["
    stop = ("\n",)


TOYS = (
    Toy("toy-px", Frame("px", 28, 56 * 56, 28 * 28 * 1280)),
    Toy("toy-px-32", Frame("px", 32, 64 * 64, 32 * 32 * 1280)),
    Begun("toy-begun", Frame("px", 28, 56 * 56, 28 * 28 * 1280)),
    Toy("toy-1000", Frame("norm1000")),
    Toy("toy-999", Frame("norm999")),
    Toy("toy-rel", Frame("rel", longest=640)),
)


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plugs.on_path(folder, "toy_dialects", monkeypatch)
    (folder / "toy_dialects.py").write_text("from tests.dialects.toy import TOYS\n")
    plugs.install(folder, "toy-dialects", "omnidata.dialects", "toys = toy_dialects:TOYS")
    dialects.cache_clear()
