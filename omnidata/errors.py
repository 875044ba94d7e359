"""What can go wrong, said so that a person can mend it.

Every message answers four questions: what happened, where (file and line, or episode and step),
what was expected, and the remedy. The same four answers make a `Finding`, the form a problem takes
while the work goes on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Literal

Severity = Literal["error", "warning"]
MediaFault = Literal["missing", "empty", "refused", "changed", "truncated", "unreadable"]


class OmnidataError(Exception):
    """Base of every error that omnidata raises on purpose.

    Args:
        what: what was found, in one sentence.
        where: file and line, or episode and step; empty where there is no place.
        expected: what would have been right.
        remedy: what the reader can do now.

    Examples:
        >>> print(OmnidataError("2 columns", where="a.csv:3", expected="3", remedy="add one"))
        a.csv:3: 2 columns
          Expected: 3
          Remedy: add one
    """

    exit_code = 2

    def __init__(self, what: str, *, where: str = "", expected: str = "", remedy: str = "") -> None:
        super().__init__(what)  # the one argument with which a copy from another process is made
        self.what = what
        self.where = where
        self.expected = expected
        self.remedy = remedy

    def __str__(self) -> str:
        head = f"{self.where}: {self.what}" if self.where else self.what
        lines = [head]
        if self.expected:
            lines.append(f"  Expected: {self.expected}")
        if self.remedy:
            lines.append(f"  Remedy: {self.remedy}")
        return "\n".join(lines)


class DataError(OmnidataError):
    """A dataset cannot be read as the named benchmark."""


class StoreError(OmnidataError):
    """A store of objects gives no answer, or an object is no longer what its listing said.

    It is neither a `DataError` nor a `MediaError`: whoever goes on without what is broken would go
    on without what is whole.
    """


class UnusableRowError(ValueError):
    """A row of a repository that is no step of its benchmark; it becomes a finding."""


class FileError(OmnidataError, OSError):
    """A file is not opened: it is no regular file, too large, a pointer, or lies elsewhere.

    It is an `OSError` as well: whoever goes on where a file cannot be read goes on here too.
    """

    @property
    def strerror(self) -> str:  # type: ignore[override]  # there it is an attribute
        """What was found, for those who know an `OSError`."""
        return self.what


class MediaError(OmnidataError):
    """A screenshot, clip or audio track is missing, unreadable, or outside the dataset folder.

    Args:
        what, where, expected, remedy: as in every error.
        fault: the kind of it; "refused" is what omnidata does not open: what lies outside the
            folder, is no regular file, or exceeds a limit.
    """

    fault: MediaFault = "unreadable"

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        expected: str = "",
        remedy: str = "",
        fault: MediaFault | None = None,
    ) -> None:
        super().__init__(what, where=where, expected=expected, remedy=remedy)
        if fault:
            self.fault = fault


class MissingMediaError(MediaError):
    """There is no file where a row says that one is."""

    fault = "missing"


class UsageError(OmnidataError):
    """An option or argument has a value that nothing can be done with."""


class PredictionError(OmnidataError):
    """A file of predictions is not what the data asks for."""


class RunError(OmnidataError):
    """A run folder cannot be opened, resumed or written."""


class PlatformError(OmnidataError):
    """An installed library lacks what is needed: an extra, a table of names, a codec."""


class PluginError(OmnidataError):
    """The code of another distribution failed where it was called."""


class CallError(OmnidataError):
    """A model gave no answer to one attempt.

    Args:
        what, where, expected, remedy: as in every error.
        transient: whether the same request may be answered later.
        throttled: whether the model asked for fewer requests.
        retry_after: seconds that the model asked to wait; None if it did not.
        hopeless: whether no request of the run can be answered: a wrong key, a wrong address.
    """

    exit_code = 1

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        expected: str = "",
        remedy: str = "",
        transient: bool = True,
        throttled: bool = False,
        retry_after: float | None = None,
        hopeless: bool = False,
    ) -> None:
        super().__init__(what, where=where, expected=expected, remedy=remedy)
        self.transient = transient
        self.throttled = throttled
        self.retry_after = retry_after
        self.hopeless = hopeless


class AdapterError(CallError):
    """The code of a model failed: whatever it raised was no CallError, or it gave no answers."""

    def __init__(self, what: str, *, where: str = "", expected: str = "", remedy: str = "") -> None:
        super().__init__(what, where=where, expected=expected, remedy=remedy, transient=False)


class UnansweredError(OmnidataError):
    """A model answered no step at all: there is nothing to score."""

    exit_code = 1


class UnansweredWarning(UserWarning):
    """Some steps got no answer; they count as wrong in the score."""


class MisspeltWarning(UserWarning):
    """A class has an attribute that nobody asks for, and whose name is nearly that of one asked."""


def counted(number: int, noun: str) -> str:
    """A number of things, in words.

    Examples:
        >>> counted(1, "episode"), counted(2_000, "row"), counted(2, "trajectory")
        ('1 episode', '2000 rows', '2 trajectories')
    """
    if number == 1:
        return f"{number} {noun}"
    return f"{number} {noun.removesuffix('y')}ies" if noun.endswith("y") else f"{number} {noun}s"


def meant(given: str, known: Iterable[str]) -> str:
    """A remedy for a name that does not exist: the known one that is most like it.

    Args:
        given: the name.
        known: those that exist.

    Returns:
        A question; empty where none is alike.

    Examples:
        >>> meant("OmniGU", ["omnigui", "osworld"]), meant("x", ["omnigui"])
        ('did you mean omnigui?', '')
    """
    names = {name.casefold(): name for name in known}
    found = get_close_matches(given.casefold(), names, n=1)
    return f"did you mean {names[found[0]]}?" if found else ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem that does not stop the work, but that nobody may overlook.

    Attributes:
        code: stable name, e.g. `target-outside`.
        severity: "error" (a step or episode is unusable or missing) or "warning" (doubtful).
        where: file and line, or episode and step.
        what: what was found.
        expected: what would have been right.
        remedy: what the reader can do.
        sample_ids: of the steps that it is about; empty where it is about none, or about all.
    """

    code: str
    severity: Severity
    where: str
    what: str
    expected: str
    remedy: str
    sample_ids: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.severity} [{self.code}] " + str(
            OmnidataError(self.what, where=self.where, expected=self.expected, remedy=self.remedy)
        )

    def as_dict(self) -> Mapping[str, Any]:
        """The finding as a JSON object."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return {**found, "sample_ids": list(self.sample_ids)}
