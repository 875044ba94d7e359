"""`--strict`: data with a finding are refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from omnidata.errors import DataError, Finding, counted


def refuse_findings(findings: Sequence[Finding], data: Path) -> None:
    """Do nothing where there is no finding.

    Args:
        findings: about the data.
        data: as the user named them.

    Raises:
        DataError: there are findings; the first one is in the message.
    """
    if findings:
        raise DataError(
            f"{counted(len(findings), 'finding')}, the first: {findings[0]}",
            where=str(data),
            expected="no finding, because of --strict",
            remedy="mend the data, or read it without --strict",
        )
