"""What `omnidata validate` finds beyond the loaders' own findings; `docs/validate.md` has all."""

from __future__ import annotations

from collections.abc import Mapping

from omnidata.errors import Finding, Severity

CODES: Mapping[str, tuple[Severity, str]] = {
    "media-missing": ("error", "restore the file, or leave the step out"),
    "media-empty": ("error", "copy or record it again"),
    "media-truncated": ("error", "copy or download it again"),
    "media-unreadable": ("error", "copy or record it again, in a format that is read"),
    "media-refused": ("error", "put a regular file of usual size inside the dataset's folder"),
    "media-changed": ("error", "restore the file, or convert the dataset again"),
    "media-timeout": ("error", "look at the file; give more time with --timeout if it is honest"),
    "media-crash": ("error", "record it again; do not open it with other programs"),
    "media-absent": ("warning", "fine for scoring; a model needs the media below that folder"),
    "media-unnamed": ("warning", "name the file in the row, if there is one"),
    "size-differs": ("warning", "correct the row: targets are in pixels of that size"),
    "aspect-differs": ("warning", "record the clip and the screenshot from the same screen"),
    "screenshot-blank": ("warning", "take the screenshot again: apps may forbid it"),
    "screenshot-repeated": ("warning", "look whether the step has its own screenshot"),
    "clip-frozen": ("warning", "look whether the recording stood still, or is another step's"),
    "audio-silent": ("warning", "look whether the sound was recorded"),
    "length-mismatch": ("warning", "cut clip and audio at the same times"),
    "history-differs": ("warning", "make the history again from the targets"),
    "history-screenshot-differs": ("warning", "name the screenshot of the right earlier step"),
    "language-differs": ("warning", "put the text into the column of its language"),
}
"""Severity and remedy."""


def finding(code: str, where: str, what: str, expected: str) -> Finding:
    """A finding with the severity and the remedy of its code."""
    severity, remedy = CODES[code]
    return Finding(code, severity, where, what, expected, remedy)
