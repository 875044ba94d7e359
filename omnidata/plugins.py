"""Plug-ins of other distributions: callables behind entry points, and errors of their code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from traceback import walk_tb
from types import FrameType
from typing import Any, Final, Literal, Protocol, TypeVar

from omnidata.errors import OmnidataError, PluginError, UsageError

_US: Final = __name__.partition(".")[0]
_ENDING: Final = frozenset({_US, "click", "typer"})  # packages that end a command themselves


@cache  # reading the metadata of all distributions takes long
def _entry_points(group: str, path: tuple[str, ...]) -> EntryPoints:
    return entry_points(group=group)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of plug-in.

    Attributes:
        group: the group of entry points, e.g. "omnidata.adapters".
        noun: for messages.
        parts: members that each must have.
        base: the base class to derive from.
        adapt: takes the returned object and gives the one to use.
    """

    group: str
    noun: Literal["model", "task"]
    parts: Sequence[str]
    base: str
    adapt: Callable[[Any], Any] = lambda made: made

    def names(self) -> list[str]:
        """Return the names of installed plug-ins, in order."""
        return sorted(set(_entry_points(self.group, tuple(sys.path)).names))

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
        points = tuple(_entry_points(self.group, tuple(sys.path)).select(name=name))
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
            made = self.adapt(points[0].load()(*arguments))
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


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Object = TypeVar("_Object", bound=_Named)


def load_objects(
    group: str, base: type[Any], noun: str, ours: Iterable[_Object]
) -> dict[str, _Object]:
    """Return the objects of a kind by name: ours, then those of other distributions.

    Args:
        group: the group of entry points; each names an object, or a sequence of them.
        base: the class of the objects.
        noun: for messages, e.g. "dialect".
        ours: the built-in objects.

    Raises:
        PluginError: an entry point names something else, or a name that is taken.
    """
    found = {one.name: one for one in ours}
    points = _entry_points(group, tuple(sys.path))
    for point in sorted(points, key=lambda point: point.name):
        try:
            loaded = point.load()
        except Exception as error:
            raise _entry_point_error(point, noun, f"cannot be imported: {error}") from error
        for one in loaded if isinstance(loaded, Iterable) else [loaded]:
            if not isinstance(one, base):
                raise _entry_point_error(point, noun, f"names {one!r:.80}, which is no {noun}")
            if one.name in found:
                raise _entry_point_error(point, noun, f"has a second {noun} {one.name}")
            found[one.name] = one
    return found


def _entry_point_error(point: EntryPoint, noun: str, what: str) -> PluginError:
    return PluginError(
        f"the entry point of a {noun} {what}",
        where=point.value,
        expected=f"an instance of the {noun}'s base class, or several, with names of their own",
        remedy="fix the distribution that has it, or uninstall it",
    )


def declaration_error(noun: str, name: str, kind: type, what: str, expected: str) -> PluginError:
    """Return the error of a class that declares something unusable.

    Args:
        noun: for the message, e.g. "dialect".
        name: of the object.
        kind: its class.
        what: what it has.
        expected: in its place.
    """
    return PluginError(
        f"the {noun} {name} has {what}",
        where=f"{kind.__module__}.{kind.__qualname__}",
        expected=expected,
        remedy="correct the class, or uninstall its distribution",
    )


def origin_of(group: str, name: str) -> str:
    """Return the distribution of a name, with its version and the callable."""
    return ", ".join(sorted(map(_origin, _entry_points(group, tuple(sys.path)).select(name=name))))


def versions_of(group: str, name: str) -> dict[str, str]:
    """Return the distributions of a name, with their versions."""
    homes = (point.dist for point in _entry_points(group, tuple(sys.path)).select(name=name))
    return {home.name: home.version for home in homes if home and home.version}


def distributions_of(group: str, package: str) -> dict[str, str]:
    """Return the distributions with entry points of a group in a package, with versions."""
    homes = [
        point.dist
        for point in _entry_points(group, tuple(sys.path))
        if point.module.partition(".")[0] == package
    ]
    return {home.name: home.version for home in homes if home and home.version}


@contextmanager
def blaming(origin: str = "") -> Iterator[None]:
    """Raise an exception of a plug-in's code as a `PluginError` with the distribution and the step.

    An exit by `sys.exit` is such an exception too: the caller would take it for success.

    The step, or the data, is the one that a function on the way to the error had as its `step` or
    its `data`. While data are read, the step is the last one that became of them. Errors of
    omnidata's own and exceptions of other code stay as they are.

    Args:
        origin: the distribution whose results are used in the block, as `origin_of` returns it: an
            exception of any code but another plug-in's is its own then. Empty if none is known.

    Raises:
        PluginError: the code of a plug-in fails.
    """
    try:
        yield
    except OmnidataError:
        raise
    except (Exception, SystemExit) as error:
        frames = [*walk_tb(error.__traceback__)]
        if isinstance(error, SystemExit) and _package(frames[-1][0]) in _ENDING:
            raise
        origins = _origins()
        own = [place for place in frames if _package(place[0]) in origins]
        if not own and (not origin or isinstance(error, SystemExit)):
            raise
        frame, line = (own or frames)[-1]
        blamed = origins.get(_package(frame), origin)
        if _distribution(blamed) == _distribution(origin):
            blamed = origin  # the distribution may have other entry points
        raise PluginError(
            f"{blamed} fails: {type(error).__name__}: {error} ({_line(frame, line)})",
            where=_place([frame.f_locals for frame, _ in reversed(frames)]),
            expected="code that handles this input, or an OmnidataError that says what is wrong",
            remedy="fix the code, or report it to the authors of the plug-in",
        ) from error


def last_line(error: BaseException, module: str) -> str:
    """Return the last line of a module's top-level package on the way to an error.

    Returns:
        File, line and function; empty if none of its functions was called.
    """
    home = module.partition(".")[0]
    own = [place for place in walk_tb(error.__traceback__) if _package(place[0]) == home]
    return _line(*own[-1]) if own else ""


def _line(frame: FrameType, line: int) -> str:
    return f"{frame.f_code.co_filename}:{line}, in {frame.f_code.co_name}"


def _origins() -> dict[str, str]:
    points = entry_points()
    groups = [group for group in points.groups if group.startswith(f"{_US}.")]
    found = (point for group in groups for point in points.select(group=group))
    origins = {point.module.partition(".")[0]: _origin(point) for point in found}
    return {package: origin for package, origin in origins.items() if package != _US}


def _distribution(origin: str) -> str:
    return origin.partition(" (")[0]


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _place(locals_of_frames: Sequence[Mapping[str, Any]]) -> str:
    data = ""
    for names in locals_of_frames:
        for name in ("step", "self"):  # a step that is being made refuses its fields itself
            if isinstance(found := getattr(names.get(name), "sample_id", None), str):
                return f"{data}, after {found}" if data else found
        if not data and isinstance(path := names.get("data"), Path):
            data = str(path)
    return data


def _origin(point: EntryPoint) -> str:
    home = point.dist
    return f"{home.name} {home.version} ({point.value})" if home else point.value
