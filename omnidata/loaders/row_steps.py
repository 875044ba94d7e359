"""Rows of `datasets` as steps, for code that has a table and no `LoadedDataset`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from omnidata.errors import DataError, UsageError
from omnidata.files import allowed_folders, inside, real
from omnidata.loaders.repository import extra_features
from omnidata.loaders.rows import OPTIONAL, Reader, features, tag_of
from omnidata.media import InMemoryMedia
from omnidata.types import MediaRef, Modality, Step

if TYPE_CHECKING:
    import datasets

WAY = 'StepDataset(omnidata.load_dataset(NAME, DATA, split="test")): docs/torch.md'
_BESIDE_SCREENSHOTS = frozenset(
    {
        *("history_screenshot", "screenshot_after", "final_screenshot"),
        *("video", "video_after", "audio"),
    }
)
"""Roles of the benchmarks whose steps have a screenshot."""

_KINDS: Mapping[str, Modality] = {"Image": "image", "Video": "video", "Audio": "audio"}


class RowReader:
    """Rows of a table as steps; what it knows of the table are the names and types of its columns.

    Rows that name files name what they like, and may be anybody's. A file is opened where it lies
    in data that this process has loaded as a table, or in a folder that is named when the rows are
    handed over: `with omnidata.following(["FOLDER"]): StepDataset(rows)`.

    Args:
        kinds: the columns of media, and what they hold where the column says it.
        tags: the columns of tags.

    Attributes:
        kinds: as given.
    """

    def __init__(self, kinds: Mapping[str, Modality | None], tags: Sequence[str]) -> None:
        self.kinds = kinds
        self._reader = Reader([tag_of(name) for name in tags])
        self._within = allowed_folders()

    @classmethod
    def of(cls, rows: datasets.Dataset | datasets.IterableDataset) -> RowReader:
        """For the rows of a table, or of a stream.

        Raises:
            UsageError: rows that are no steps, or unknown columns.
        """
        plain, columns = features((), {}), _columns_of(rows)
        own = [name for name in columns if name not in _step_columns()]
        # A column of paths alone, which a repository of links has, is a dict and says no kind.
        kinds = {
            name: _KINDS.get(type(columns[name]).__name__)
            for name in own
            if isinstance(columns[name], dict) or type(columns[name]).__name__ in _KINDS
        }
        lacking = [name for name in plain if name not in columns]
        if not lacking and _lacks_screenshots(rows, kinds):
            lacking = ["screenshot"]
        if lacking:
            raise UsageError(
                f"the rows are not steps: missing columns {', '.join(lacking)}",
                where=f"a dataset with the columns {', '.join(columns)}",
                expected=WAY,
                remedy="keep these columns: leave them out of remove_columns and map",
            )
        return cls(kinds, [name for name in own if getattr(columns[name], "dtype", "") == "string"])

    @classmethod
    def of_row(cls, row: Mapping[str, Any], roles: Mapping[str, Modality]) -> RowReader:
        """For one row alone, as a `DataLoader` hands it over.

        Args:
            row: undecoded, as `datasets` gives it.
            roles: media of its task; the row may have none.

        Raises:
            UsageError: the row is no step, or its media are decoded.
        """
        lacking = [name for name in features((), {}) if name not in row]
        if lacking:
            raise UsageError(
                f"the row is not a step: missing columns {', '.join(lacking)}",
                where=f"a row with {', '.join(map(str, row))}",
                expected=WAY,
            )
        own = {name: value for name, value in row.items() if name not in _step_columns()}
        kinds = {
            name: roles.get(name)
            for name, value in own.items()
            if name in roles or isinstance(value, Mapping)
        }
        for name in kinds:
            if not (row[name] is None or isinstance(row[name], Mapping)):
                raise UsageError(
                    f"the column {name} holds {type(row[name]).__name__}, which is decoded already",
                    where=str(row["sample_id"]),
                    expected="rows as they are loaded, without cast_column",
                    remedy="leave the column undecoded: a step decodes its media itself",
                )
        return cls(kinds, [name for name in own if name not in kinds])

    def step(self, row: Mapping[str, Any], where: str) -> Step:
        """Return the step of a row.

        Raises:
            DataError: the row is no step, or names a file that may lie anywhere.
        """
        sums = {entry["role"]: entry["sha256"] for entry in row.get("media") or ()}
        media = {role: self.medium(role, row[role], sums.get(role) or "") for role in self.kinds}
        seen = row.get("history_screens") or ()
        screens = tuple((screen["width"], screen["height"]) for screen in seen)
        try:
            return self._reader.step(row, media=media, history_screens=screens)
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            raise DataError(
                f"the row is not a step ({type(error).__name__}: {error})",
                where=where,
                expected=WAY,
            ) from None

    def medium(
        self, role: str, cell: Mapping[str, Any] | None, sha256: str = ""
    ) -> MediaRef | None:
        """Return a column's medium: bytes, or a file; its name implies the kind if none is given.

        Raises:
            DataError: it names a file that may lie anywhere.
        """
        kind = self.kinds[role]
        if cell is None:
            return None
        if cell.get("bytes") is not None:
            name = cell.get("path") or role
            return InMemoryMedia(kind or _kind(name), Path(), name, content=cell["bytes"])
        if not cell.get("path"):
            return None
        place = Path(cell["path"])
        if not inside(real(place), self._within):
            raise DataError(
                "the row names a file outside the folders that you named",
                where=f"column {role}: {place}",
                expected="data that this process loaded, or a folder that you name",
                remedy='with omnidata.following(["FOLDER OF THE MEDIA"]): StepDataset(rows)',
            )
        kind = kind or _kind(place.name)
        return MediaRef(kind, place.parent, place.name, sha256=sha256, within=self._within)


def to_python(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with Python's numbers in place of tensors or arrays.

    Raises:
        UsageError: the format has rounded a coordinate.
    """
    screens = "history_screens"
    types = {**features((), {}), screens: extra_features()[screens]}  # what steps are made of
    return {name: _to_python(value, types.get(name), name) for name, value in row.items()}


def _to_python(value: Any, kind: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        known = kind if isinstance(kind, Mapping) else {}
        return {key: _to_python(held, known.get(key), name) for key, held in value.items()}
    if isinstance(value, np.ndarray) and value.dtype == object:  # a list, in numpy's format
        value = value.tolist()
    if isinstance(value, list | tuple):
        each = kind[0] if isinstance(kind, list) else getattr(kind, "feature", None)
        return [_to_python(held, each, name) for held in value]
    if not hasattr(value, "tolist") or value.ndim:
        return value  # no number, or a medium that is decoded
    plain, dtype = value.tolist(), str(getattr(kind, "dtype", ""))
    if plain != plain:  # how a format spells an absent number
        return None
    if dtype.startswith("float") and value.dtype.itemsize < 8 and not plain.is_integer():
        raise UsageError(
            f"the column {name} holds numbers that a format rounded ({value.dtype})",
            where="a row of with_format(...)",
            expected="the coordinates as they were loaded",
            remedy='leave with_format out, or use rows.with_format("torch", dtype=torch.float64)',
        )
    if dtype.startswith("int"):
        return int(plain)
    return bool(plain) if dtype == "bool" else plain


def _step_columns() -> frozenset[str]:
    return frozenset({*features((), {}), *extra_features(), *OPTIONAL})


def _columns_of(rows: datasets.Dataset | datasets.IterableDataset) -> Mapping[str, Any]:
    if rows.features is None:
        raise UsageError(
            "the stream does not know the types of its columns",
            where=type(rows).__name__,
            expected=WAY,
            remedy="after map, pass them: rows.map(..., features=rows.features)",
        )
    return rows.features  # type: ignore[no-any-return]


def _lacks_screenshots(
    rows: datasets.Dataset | datasets.IterableDataset, roles: Collection[str]
) -> bool:
    """Whether the steps have screenshots that the columns with media have not.

    Rows of a repository say which media a step has. Other rows have screenshots if nothing else is
    left, or only media that accompany a screenshot.
    """
    if "screenshot" in roles:
        return False
    if "media" not in rows.features or not hasattr(rows, "__len__"):
        return _BESIDE_SCREENSHOTS.issuperset(roles)
    first = rows.with_format("arrow")[:1].to_pylist() if len(rows) else []
    return any(entry["role"] == "screenshot" for row in first for entry in row["media"] or ())


def _kind(name: str) -> Modality:
    guessed = guess_type(name)[0] or ""
    for kind in _KINDS.values():
        if guessed.startswith(kind):
            return kind
    return "image"
