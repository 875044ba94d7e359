"""Plug-ins of other distributions: callables behind entry points, made and checked."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from traceback import walk_tb
from typing import Any, Final, Literal

from omnidata.errors import (
    MisspeltWarning,
    OmnidataError,
    PluginError,
    UnusableRowError,
    UsageError,
)


@cache
def _installed(group: str, path: tuple[str, ...]) -> EntryPoints:
    """The entry points of distributions in those folders; reading all metadata takes long."""
    return entry_points(group=group)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of plug-in.

    Attributes:
        group: the group of entry points, e.g. "omnidata.adapters".
        noun: for messages.
        parts: members that each must have.
        base: the base class to derive from.
    """

    group: str
    noun: Literal["model", "task"]
    parts: Sequence[str]
    base: str

    def names(self) -> list[str]:
        """Return the names of installed plug-ins, in order."""
        return sorted(set(_installed(self.group, tuple(sys.path)).names))

    def make(self, name: str, *arguments: object, where: str) -> Any:
        """Call the plug-in of that name and return its result; None if there is none.

        Args:
            name: of the entry point.
            arguments: for the callable.
            where: how the user named it, for messages.

        Raises:
            UsageError: the distribution's code fails or returns something else, or two have that
                name; the message names them.
            OmnidataError: whatever the distribution's code says.
        """
        points = tuple(_installed(self.group, tuple(sys.path)).select(name=name))
        if not points:
            return None
        if len(points) > 1:
            raise UsageError(
                f"{len(points)} distributions have a {self.noun} of that name: "
                + ", ".join(sorted(map(_origin, points))),
                where=where,
                remedy="uninstall all but one",
            )
        try:
            made = points[0].load()(*arguments)
            lacks = [part for part in self.parts if not hasattr(made, part)]
        except OmnidataError:
            raise
        except (Exception, SystemExit) as error:
            raise UsageError(
                f"{_origin(points[0])} fails: {type(error).__name__}: {error}",
                where=where,
                remedy="report it to its authors, or uninstall it",
            ) from error
        if lacks:
            raise UsageError(
                f"{_origin(points[0])} is not a {self.noun}: it lacks {', '.join(lacks)}",
                where=where,
                remedy=f"derive its class from {self.base}",
            )
        return made


_ALIKE: Final = 0.75
"""The ratio of `difflib` from which a name may be meant for another: "raed" for "read" has it."""


def warn_of_misspelt(kind: type, contract: type, *, stacklevel: int) -> None:
    """Warn of each public attribute of a class that may be a misspelt member of its contract.

    Otherwise the member's default would be used in silence. A name is skipped if it begins with
    another letter, or if the class has the member as well.

    Args:
        kind: a class that has just been defined.
        contract: its base class with the members.
        stacklevel: number of calls between the definition of the class and this function.
    """
    inherited = set().union(*(vars(base) for base in kind.__mro__[1:]))
    members = {name for name in dir(contract) if not name.startswith("_")}
    members |= contract.__annotations__.keys()
    for name in sorted(vars(kind).keys() - members - inherited):
        like = [member for member in members - vars(kind).keys() if member[0] == name[0]]
        for meant in get_close_matches(name, like, 1, _ALIKE):
            warnings.warn(
                f"{kind.__qualname__} has `{name}`, which is never called: if `{meant}` of "
                f"{contract.__name__} is meant, spell it so; if not, start its name with "
                "an underscore",
                MisspeltWarning,
                stacklevel + 1,
            )


def origin_of(group: str, name: str) -> str:
    """Return the distribution of a name, with its version and the callable."""
    return ", ".join(sorted(map(_origin, _installed(group, tuple(sys.path)).select(name=name))))


def versions_of(group: str, name: str) -> dict[str, str]:
    """Return the distributions of a name, with their versions."""
    homes = (point.dist for point in _installed(group, tuple(sys.path)).select(name=name))
    return {home.name: home.version for home in homes if home and home.version}


def distributions_of(group: str, package: str) -> dict[str, str]:
    """Return the distributions with entry points of a group in a package, with versions."""
    homes = [
        point.dist
        for point in _installed(group, tuple(sys.path))
        if point.module.partition(".")[0] == package
    ]
    return {home.name: home.version for home in homes if home and home.version}


@dataclass(frozen=True, slots=True)
class Result:
    """The expected result of a function of a plug-in.

    Attributes:
        fits: returns whether something is such a result.
        expected: such a result in words, for messages.
    """

    fits: Callable[[Any], bool]
    expected: str

    def of(self, found: Any, function: str, where: str) -> Any:
        """Return the result if it fits.

        Args:
            found: the result of the function.
            function: its name and its owner, for the message.
            where: the data or the step of the call.

        Raises:
            PluginError: the result does not fit.
        """
        if self.fits(found):
            return found
        raise PluginError(
            f"{function} returns {found!r:.300}",
            where=where,
            expected=self.expected,
            remedy="fix the function, or report it to the authors of the plug-in",
        )


_US: Final = __name__.partition(".")[0]
_LONGEST = 300  # letters of what a failing function held


@dataclass(frozen=True, slots=True)
class Blame:
    """Calls the code of a distribution; whatever it raises is said to be its own, with the line.

    Attributes:
        origin: the distribution (see `origin_of`).
    """

    origin: str

    def call(
        self, function: Callable[..., Any], where: str, *arguments: Any, **options: Any
    ) -> Any:
        """What a function of the distribution gives.

        Args:
            function: is called.
            where: the data or the step that it is called for.
            *arguments: of the function.
            **options: of the function.

        Raises:
            PluginError: it fails.
            OmnidataError, UnusableRowError: whatever it says itself.
        """
        try:
            return function(*arguments, **options)
        except (OmnidataError, UnusableRowError):
            raise
        except Exception as error:
            raise self._failed(function, where, error) from error

    def _failed(self, function: Callable[..., Any], where: str, error: Exception) -> PluginError:
        owner = getattr(function, "__self__", None)
        home = (type(owner) if owner else function).__module__.partition(".")[0]
        frames = [(frame, line) for frame, line in walk_tb(error.__traceback__)][1:]
        roots = [frame.f_globals.get("__name__", "").partition(".")[0] for frame, _ in frames]
        homes = {home} - {_US} or set(roots) - {_US} - sys.stdlib_module_names  # ours calls theirs
        own = [place for place, root in zip(frames, roots, strict=True) if root in homes]
        what = f"{self.origin} fails: {type(error).__name__}: {error}"
        for frame, line in (own or frames)[-1:]:
            code = frame.f_code
            what += f" ({code.co_filename}:{line}, in {code.co_name}{_held(frame.f_locals)})"
        return PluginError(
            what,
            where=where,
            expected="code that handles this input, or an OmnidataError that says what is wrong",
            remedy="fix the method, or report it to the authors of the plug-in",
        )


def _held(names: Mapping[str, Any]) -> str:
    """The plain values that a function held: mostly the row that it was at, and its number."""
    plain = {
        name: value
        for name, value in names.items()
        if isinstance(value, int | float | str | dict) and not name.startswith("_")
    }
    try:
        said = ", ".join(f"{name} = {value!r}" for name, value in plain.items())
    except Exception:  # what a dict holds may be anything, and so may fail to say what it is
        return ""
    if len(said) > _LONGEST:
        said = said[:_LONGEST] + "..."
    return f", where {said}" if said else ""


def _origin(point: EntryPoint) -> str:
    home = point.dist
    return f"{home.name} {home.version} ({point.value})" if home else point.value
