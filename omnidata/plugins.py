"""What other distributions bring: callables behind entry points, made and looked over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from omnidata.errors import OmnidataError, UsageError


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of thing that is brought.

    Attributes:
        group: the group of entry points, e.g. "omnidata.adapters".
        noun: for messages.
        parts: what each must have.
        base: the class that has most of it.
    """

    group: str
    noun: Literal["model", "task"]
    parts: Sequence[str]
    base: str

    def names(self) -> list[str]:
        """The names that installed distributions bring, in order."""
        return sorted(set(entry_points(group=self.group).names))

    def make(self, name: str, *arguments: object, where: str) -> Any:
        """What the callable of that name gives; None if there is none.

        Args:
            name: of the entry point.
            arguments: for the callable.
            where: how the user asked for it, for messages.

        Raises:
            UsageError: the distribution's code fails or gives something else, or two have that
                name; the message names them.
            OmnidataError: whatever the distribution's code says.
        """
        points = tuple(entry_points(group=self.group, name=name))
        if not points:
            return None
        if len(points) > 1:
            raise UsageError(
                f"{len(points)} distributions bring a {self.noun} of that name: "
                + ", ".join(sorted(map(_origin, points))),
                where=where,
                remedy="uninstall all but one",
            )
        try:
            made = points[0].load()(*arguments)
        except OmnidataError:
            raise
        except (Exception, SystemExit) as error:
            raise UsageError(
                f"{_origin(points[0])} fails: {type(error).__name__}: {error}",
                where=where,
                remedy="tell its authors, or uninstall it",
            ) from error
        lacks = [part for part in self.parts if not hasattr(made, part)]
        if lacks:
            raise UsageError(
                f"what {_origin(points[0])} gives is no {self.noun}: it lacks {', '.join(lacks)}",
                where=where,
                remedy=f"derive its class from {self.base}",
            )
        return made


def _origin(point: EntryPoint) -> str:
    home = point.dist
    return f"{home.name} {home.version} ({point.value})" if home else point.value
