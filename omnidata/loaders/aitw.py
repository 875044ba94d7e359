"""Android in the Wild as steps, and what has its actions: Android in the Zoo, and CAGUI.

They are one benchmark here: the same numbers for the same actions, the same (y, x) from 0 to 1, the
same metrics. What differs is where rows and pictures lie, and the unit of the elements' boxes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omnidata.errors import DataError, Finding
from omnidata.loaders import aitw_files
from omnidata.loaders.aitw_files import PICTURE, form_of
from omnidata.loaders.aitw_steps import ROLES, TAGS, UNKNOWN, StepReader
from omnidata.loaders.media_files import check_media_files
from omnidata.loaders.opening import opened
from omnidata.media import image, read_bytes
from omnidata.types import MediaRef, Source, Step


def load(data: Path | str, *, strict: bool = False, check_media: bool = True) -> Source:
    """Read annotations; no picture is decoded.

    A step's `source` is the untouched row: of a TFRecord the features of its example as lists, with
    "pixels" or "file" in place of the screenshot. Its `action`, and so the history of later steps,
    is what comes nearest among the primitives of a touch screen (`omnidata.phone.nearest`). Its
    `screen` is the size that the row states, else that of the picture, (0, 0) without one.

    Args:
        data: TFRecords, or JSON files of episodes, in a folder with as many folders as they like;
            one such file; or a Parquet repository.
        strict: make the first finding an error.
        check_media: look whether the pictures exist and are whole.

    Returns:
        Steps in the order of the episodes' first rows, named `<SUBSET>-<episode_id>/<step_id>`.

    Raises:
        DataError: nothing readable as Android in the Wild is there, or `strict` and there is a
            finding.
    """
    data = Path(data)
    return opened(
        data,
        "aitw",
        TAGS,
        lambda: _read(data, check_media=check_media),
        strict=strict,
        check_media=check_media,
    )


def _read(data: Path, *, check_media: bool) -> Source:
    findings: list[Finding] = []
    reader = StepReader(data if data.is_dir() else data.parent, findings.append, check_media)
    for line in aitw_files.read(aitw_files.find(data), findings.append):
        reader.add(line)
    steps = list(reader.steps())
    if not steps:
        first = findings[0] if findings else None
        raise DataError(
            f"no row could be read{f': {first.what}' if first else ''}",
            where=first.where if first else str(data),
            expected=first.expected if first else "rows of Android in the Wild",
            remedy="mend the rows, or name other data",
        )
    _check_boxes(steps, findings, data)
    files = [step for step in steps if form_of(step.source) != "aitw"]
    if check_media and files:
        check_media_files(files, findings.append)
    return Source(
        "aitw",
        data,
        steps,
        findings,
        sum(finding.code in _SKIPPING for finding in findings),
        aitw_files.fingerprint(data),
        reader.row_ids,
        TAGS,
        ROLES,
    )


_SKIPPING = frozenset({"json-invalid", "record-broken", "id-missing", "id-repeated"})


def _check_boxes(steps: list[Step], findings: list[Finding], data: Path) -> None:
    """Boxes in pixels of a picture whose size nobody knows."""
    lost = [s for s in steps if s.screen == UNKNOWN and form_of(s.source) == "aitz"]
    if lost:
        findings.append(
            Finding(
                "boxes-unusable",
                "warning",
                str(data),
                f"the boxes of {len(lost)} steps are in pixels of pictures that cannot be read, "
                f"the first {lost[0].sample_id}",
                "the pictures, whose sizes no row states",
                "add them; taps are judged by their distance alone until then",
            )
        )


def dump(source: Source) -> Iterator[dict[str, Any]]:
    """The rows that a source was read from, in their order, but for those that became no step.

    Args:
        source: of `load`.

    Yields:
        A row of a JSON file as it was; of a TFRecord the features of an example as lists, where the
        screenshot is bytes.

    Raises:
        MediaError: a screenshot of a TFRecord cannot be read.
    """
    steps = {step.sample_id: step for step in source.steps}
    for own in source.row_ids:
        if own is not None:
            step = steps[own]
            row, shot = dict(step.source), step.media["screenshot"]
            if PICTURE in row and shot is not None:
                row[PICTURE] = [_content(shot, bare=row[PICTURE] == ["pixels"])]
            yield row


def _content(shot: MediaRef, *, bare: bool) -> bytes:
    return image(shot).pixels.tobytes() if bare else read_bytes(shot)
