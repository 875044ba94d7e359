"""Rows that come twice, wholly or in part."""

from __future__ import annotations

from collections.abc import Hashable

from omnidata.loaders.agentstudio_boxes import target_box
from omnidata.loaders.agentstudio_columns import Row
from omnidata.loaders.place import Place


class Repeats:
    """Finds rows that come twice; they are kept, as they are in the published figures."""

    def __init__(self) -> None:
        """Nothing seen so far."""
        self._seen: dict[str, dict[Hashable, str]] = {}

    def look(self, row: Row, canonical: str, place: Place) -> None:
        """Hold a row against those before it.

        Args:
            row: the row.
            canonical: its content as a text, the same for equal rows.
            place: where it lies.
        """
        first = self._first("row", canonical, place)
        if first:
            self._tell("row-repeated", f"the row is the same as {first}", place)
            return
        for key in ("annotation_id", "action_id"):
            identity = row.get(key)
            if isinstance(identity, str) and (first := self._first(key, identity, place)):
                self._tell("id-repeated", f"{key} {identity} is that of {first} too", place)
        image, asked, box = row.get("image"), row.get("instruction"), target_box(row)
        if isinstance(image, str) and isinstance(asked, str) and box:
            first = self._first("asked", (image, asked), place)
            answered = self._first("answered", (image, asked, box), place)
            if first and not answered:
                self._tell("target-ambiguous", f"{first} asks the same with another box", place)

    def _first(self, kind: str, key: Hashable, place: Place) -> str | None:
        known = self._seen.setdefault(kind, {})
        first = known.setdefault(key, place.where)
        return None if first == place.where else first

    def _tell(self, code: str, what: str, place: Place) -> None:
        place.warn(code, what, "every row once", "never key anything by it; both rows are used")
