"""What the datasets of phones have in common: TFRecords, and screenshots of a stated size."""

from __future__ import annotations

import re
from pathlib import Path

from omnidata.actions import Screen
from omnidata.errors import DataError
from omnidata.jsontext import is_integer
from omnidata.loaders.files import Look
from omnidata.loaders.load import RowContext, short
from omnidata.loaders.tfrecord import is_tfrecord, read_example, records

_LONGEST_SIDE = 65_535  # more than pictures of any format here can have
_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_RECORD_SUFFIXES = ("", ".gz", ".tfrecord", ".tfrecords")


def may_hold_records(path: Path) -> bool:
    """Whether a file is called like a TFRecord: `name-00000-of-00020`, or by its suffix."""
    return path.suffix in _RECORD_SUFFIXES or bool(_SHARD.search(path.name))


def look(path: Path, features: frozenset[str]) -> Look:
    """Whether a file is a TFRecord whose first example has these features.

    Raises:
        OSError: the file cannot be read.
    """
    if not may_hold_records(path) or not is_tfrecord(path):
        return "other"
    try:
        for record in records(path):
            example = read_example(record.data)
            return "known" if features <= {*example.texts, *example.numbers} else "other"
    except (DataError, ValueError):
        return "broken"
    return "other"


def stated_size(width: object, height: object, place: RowContext) -> Screen:
    """Width and height of a screenshot as a row states them; (0, 0) where they are no size.

    Args:
        width: the row's value; None where it has none.
        height: likewise.
        place: where a finding goes about values that are no size.
    """
    sides = range(1, _LONGEST_SIDE + 1)
    if is_integer(width) and is_integer(height) and width in sides and height in sides:
        return width, height
    if width is not None or height is not None:
        place.warn(
            "size-unusable",
            f"the screenshot's size is {short(width)} x {short(height)}",
            f"two whole numbers from 1 to {_LONGEST_SIDE}",
            "mend the row; the size counts as unknown until then",
        )
    return 0, 0


def picture_broken(place: RowContext, what: str, expected: str) -> None:
    """Tell of a screenshot within a TFRecord that no model can take.

    Args:
        place: the step, or the name of the picture.
        what: what is wrong with it.
        expected: what would be right.
    """
    place.refuse(
        "media-broken",
        f"screenshot: {what}",
        expected,
        "download the file again; a model is not asked about this step until then",
    )
