"""Errors and findings: what happened, where, what was expected, and how to fix it.

An error stops the work. A `Finding` has the same four parts and is reported while the work goes on.
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
        what: the problem, in one sentence.
        where: file and line, or episode and step; empty if there is no place.
        expected: the right value or state.
        remedy: how to fix it; printed after "Fix:".

    Examples:
        >>> print(OmnidataError("2 columns", where="a.csv:3", expected="3", remedy="add one"))
        a.csv:3: 2 columns
          Expected: 3
          Fix: add one
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
            lines.append(f"  Fix: {self.remedy}")
        return "\n".join(lines)


class DataError(OmnidataError):
    """A dataset cannot be read as the named benchmark."""


class StoreError(OmnidataError):
    """An object store does not answer, or an object has changed since it was listed.

    It is neither a `DataError` nor a `MediaError`: code that skips broken data would otherwise skip
    data that are intact.
    """


class UnusableRowError(ValueError):
    """A row of a repository is not a step of its benchmark; it becomes a finding."""


class FileError(OmnidataError, OSError):
    """A file is not opened: not a regular file, too large, a pointer, or outside the data.

    It is an `OSError` as well, so code that handles unreadable files handles it too.
    """

    @property
    def strerror(self) -> str:  # type: ignore[override]  # there it is an attribute
        """The problem, under the name that an `OSError` gives it."""
        return self.what


class MediaError(OmnidataError):
    """A screenshot, clip or audio track is missing, unreadable, or outside the dataset folder.

    Args:
        what, where, expected, remedy: as in every error.
        fault: the kind of problem; "refused" is a file that omnidata does not open: it is outside
            the folder, not a regular file, or over a limit.
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
    """A row names a file that does not exist."""

    fault = "missing"


class UsageError(OmnidataError):
    """An option or argument has a value that cannot be used."""


class PredictionError(OmnidataError):
    """A file of predictions does not fit the data."""


class RunError(OmnidataError):
    """A run folder cannot be opened, resumed or written."""


class PlatformError(OmnidataError):
    """An extra, a table of names or a codec is not installed."""


class PluginError(OmnidataError):
    """The code of a plug-in failed."""


class CallError(OmnidataError):
    """One attempt to ask a model got no answer.

    Args:
        what, where, expected, remedy: as in every error.
        transient: whether the same request may be answered later.
        throttled: whether the server asked for fewer requests.
        retry_after: seconds that the server asked to wait; None if it did not.
        hopeless: whether every request of the run will fail, e.g. because of a wrong key.
        unsent: whether nothing was sent, because no server was reached.
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
        unsent: bool = False,
    ) -> None:
        super().__init__(what, where=where, expected=expected, remedy=remedy)
        self.transient = transient
        self.throttled = throttled
        self.retry_after = retry_after
        self.hopeless = hopeless
        self.unsent = unsent


class AdapterError(CallError):
    """The code of an adapter raised another error than `CallError`, or returned no answers."""

    def __init__(self, what: str, *, where: str = "", expected: str = "", remedy: str = "") -> None:
        super().__init__(what, where=where, expected=expected, remedy=remedy, transient=False)


class UnansweredError(OmnidataError):
    """The model did not answer, so there is nothing to score or to write; the same call resumes."""

    exit_code = 1


class UnansweredWarning(UserWarning):
    """Some steps got no answer; they count as wrong."""


def plural(number: int, noun: str) -> str:
    """Return a number with its noun, in the singular or plural.

    Examples:
        >>> plural(1, "episode"), plural(2_000, "row"), plural(2, "trajectory")
        ('1 episode', '2000 rows', '2 trajectories')
    """
    if number == 1:
        return f"{number} {noun}"
    return f"{number} {noun.removesuffix('y')}ies" if noun.endswith("y") else f"{number} {noun}s"


def suggestion(given: str, known: Iterable[str]) -> str:
    """Suggest the known name that is closest to an unknown one.

    Args:
        given: the unknown name.
        known: the names that exist.

    Returns:
        A question, or an empty string if no name is close.

    Examples:
        >>> suggestion("OmniGU", ["omnigui", "osworld"]), suggestion("x", ["omnigui"])
        ('did you mean omnigui?', '')
    """
    names = {name.casefold(): name for name in known}
    found = get_close_matches(given.casefold(), names, n=1)
    return f"did you mean {names[found[0]]}?" if found else ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem in the data that is reported and does not stop the work.

    Attributes:
        code: stable name, e.g. `target-outside`.
        severity: "error" (a step or episode is unusable or missing) or "warning" (doubtful).
        where: file and line, or episode and step.
        what: the problem, in one sentence.
        expected: the right value or state.
        remedy: how to fix it; printed after "Fix:".
        sample_ids: the steps that it is about; empty if it is about none, or about all.
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
        """Return the finding as a JSON object."""
        found = {name: getattr(self, name) for name in self.__slots__}
        return {**found, "sample_ids": list(self.sample_ids)}
