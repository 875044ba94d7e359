"""Files that list the episodes of each part of a dataset: part -> list of episode ids."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from omnidata.files import read_file
from omnidata.loaders.load import Note, RowContext

_MAX_BYTES: Final = 64 * 1024**2


def read_splits(path: Path, note: Note) -> Mapping[str, str]:
    """Return the part of each episode; none, with a finding, if the file is unusable."""
    try:
        return _episodes(json.loads(read_file(path, _MAX_BYTES)))
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        RowContext(str(path), note).warn(
            "splits-unusable", f"it cannot be read ({error})", "split -> list of episode ids"
        )
        return {}


def _episodes(splits: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, ids in splits.items():
        if not isinstance(ids, list):
            raise TypeError(f"{name:.40} is not a list")
        for own in map(str, ids):
            if found.setdefault(own, name) != name:
                raise ValueError(f"episode {own:.40} is in {found[own]:.40} and in {name:.40}")
    return found
