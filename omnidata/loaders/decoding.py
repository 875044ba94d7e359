"""Rows of `datasets` with their media decoded: by Pillow and PyAV, without torchcodec."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from omnidata.actions import Screen
from omnidata.errors import MediaError, UsageError
from omnidata.loaders.row_steps import RowReader
from omnidata.media import frames, image, resized, samples
from omnidata.types import MediaRef

if TYPE_CHECKING:
    import datasets

_NESTED = (list, tuple, dict)
_OnError = Literal["raise", "mask"]
_NUMBERS = ("int", "uint", "float", "bool")  # how the names of their types begin


def decode(
    rows: datasets.Dataset | datasets.IterableDataset,
    *,
    roles: Sequence[str] | None = None,
    size: Screen | None = None,
    num_frames: int = 4,
    seconds: float | None = None,
    audio_rate: int = 16_000,
    on_error: _OnError = "raise",
) -> Decode:
    """What decodes the media of rows: `rows.with_transform(omnidata.decode(rows))`.

    Every value is an array, a number or a text then, so that a `DataLoader` makes batches of rows
    without a `collate_fn`, where `size` and `seconds` make media alike. An absent medium is zeros,
    and `ROLE_mask` is False; what is nested, as the history, is JSON; an absent text is empty,
    and an absent number NaN.

    A stream has no `with_transform`: `rows.map(omnidata.decode(rows), batched=True, batch_size=8)`.

    Args:
        rows: steps: what `omnidata.load_dataset` gives, or a converted repository.
        roles: the media that are decoded; the others are left out. None for all.
        size: width and height to fit pictures and frames into, proportions kept, black around.
        num_frames: of a clip, evenly spread; of a shorter one the rest is black.
        seconds: how much of a track is kept, silence behind a shorter one; None for all of it.
        audio_rate: samples per second to resample to, in Hz.
        on_error: what a missing or broken medium is: an error, or absent.

    Returns:
        A function of columns. A picture is uint8 (H, W, 3), a clip uint8 (T, H, W, 3), a track
        float32 (N,), of which `ROLE_length` samples are its own.

    Raises:
        UsageError: the rows are no steps, or have no such role; or an argument is none.
    """
    if on_error not in get_args(_OnError):
        raise UsageError(
            f"on_error is {on_error!r:.40}",
            where="omnidata.decode(on_error=...)",
            expected=f"one of {', '.join(get_args(_OnError))}",
        )
    if seconds is not None and not 0 < seconds < float("inf"):
        raise UsageError(
            f"seconds is {seconds!r:.40}",
            where="omnidata.decode(seconds=...)",
            expected="a number of seconds above 0, or None for the whole of each track",
        )
    reader = RowReader.of(rows)
    for role in roles or ():
        if role not in reader.kinds:
            raise UsageError(
                f'the rows have no media column "{role}"',
                where="omnidata.decode(roles=...)",
                expected=f"some of {', '.join(reader.kinds)}",
            )
    chosen = tuple(reader.kinds if roles is None else roles)
    for role in chosen:
        kind = rows.features[role]
        if getattr(kind, "decode", False):
            name = type(kind).__name__
            raise UsageError(
                f"`datasets` decodes the column {role}, a clip or a sound with torchcodec alone",
                where=f"datasets.{name}()",
                expected="media as they are loaded, which omnidata decodes with Pillow and PyAV",
                remedy=f'rows.cast_column("{role}", datasets.{name}(decode=False))',
            )
    numbers = frozenset(
        name
        for name, column in (rows.features or {}).items()
        if str(getattr(column, "dtype", "")).startswith(_NUMBERS)
    )
    return Decode(reader, chosen, size, num_frames, seconds, audio_rate, on_error, numbers)


@dataclass(frozen=True, slots=True)
class Decode:
    """Decodes columns of rows; see `decode`, whose arguments it has, and the `numbers` columns."""

    reader: RowReader
    roles: tuple[str, ...]
    size: Screen | None
    num_frames: int
    seconds: float | None
    audio_rate: int
    on_error: _OnError
    numbers: frozenset[str]

    def __call__(self, columns: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
        """The columns, decoded.

        Raises:
            MediaError: a medium is missing or broken; names the step.
        """
        found: dict[str, list[Any]] = {
            name: _numbers(values) if name in self.numbers else [_plain(value) for value in values]
            for name, values in columns.items()
            if name not in self.reader.kinds
        }
        names = columns.get("sample_id") or [""] * len(next(iter(columns.values()), ()))
        for role in self.roles:
            if role not in columns:
                continue
            for name, cell in zip(names, columns[role], strict=True):
                for key, value in self._medium(role, cell, str(name)).items():
                    found.setdefault(key, []).append(value)
        return found

    def _medium(self, role: str, cell: Any, name: str) -> dict[str, Any]:
        """The array of a medium, and its mask."""
        if cell is not None and not isinstance(cell, Mapping):
            raise UsageError(
                f"the column {role} holds {type(cell).__name__}, which is decoded already",
                where=name,
                expected="rows as they are loaded, without cast_column",
            )
        try:
            ref = self.reader.medium(role, cell)
            made = self._array(role, ref)
        except MediaError as error:
            if self.on_error == "raise":
                error.where = f"{name}, {role}: {error.where}"
                error.remedy += '; or treat it as absent: omnidata.decode(on_error="mask")'
                raise
            ref = None
            made = self._array(role, None)
        return {role: made[0], f"{role}_mask": ref is not None, **made[1]}

    def _array(self, role: str, ref: MediaRef | None) -> tuple[npt.NDArray[Any], dict[str, Any]]:
        kind = ref.kind if ref else self.reader.kinds[role] or _GUESSED.get(role, "image")
        width, height = self.size or (0, 0)
        if kind == "image":
            if ref is None:
                return np.zeros((height, width, 3), np.uint8), {}
            return image(ref, size=self.size).pixels.copy(), {}  # which tensors may be made of
        if kind == "video":
            if ref is None:
                return np.zeros((self.num_frames, height, width, 3), np.uint8), {}
            pixels = frames(ref, num_frames=self.num_frames).pixels
            if self.size:
                pixels = np.stack([_fitted(frame, self.size) for frame in pixels])
            lacking = self.num_frames - len(pixels)
            return np.pad(pixels, ((0, max(0, lacking)), (0, 0), (0, 0), (0, 0))), {}
        wave = np.zeros(0, np.float32) if ref is None else samples(ref, rate=self.audio_rate)
        if self.seconds is not None:
            wave = wave[: round(self.seconds * self.audio_rate)]
            length = len(wave)
            wave = np.pad(wave, (0, round(self.seconds * self.audio_rate) - length))
        else:
            length = len(wave)
        return wave, {f"{role}_length": length}


_GUESSED = {"video": "video", "audio": "audio"}
"""Kinds of roles whose column says none, and which is empty."""


def _fitted(frame: npt.NDArray[np.uint8], size: Screen) -> npt.NDArray[np.uint8]:
    """A frame within another size, black around it."""
    height, width = frame.shape[:2]
    scale = min(size[0] / width, size[1] / height)
    inner = max(1, round(width * scale)), max(1, round(height * scale))
    left, top = (size[0] - inner[0]) // 2, (size[1] - inner[1]) // 2
    whole = np.zeros((size[1], size[0], 3), np.uint8)
    whole[top : top + inner[1], left : left + inner[0]] = resized(frame, inner)
    return whole


def _numbers(values: Sequence[Any]) -> list[Any]:
    """The numbers of a column; where one is absent all are floats, of which torch makes float64."""
    if None not in values:
        return list(values)
    return [float("nan") if value is None else float(value) for value in values]


def _plain(value: Any) -> Any:
    """A number or a text."""
    if value is None:
        return ""
    if isinstance(value, np.ndarray) and value.dtype == object:  # a list, in numpy's format
        value = value.tolist()
    return json.dumps(value, default=_listed) if isinstance(value, _NESTED) else value


def _listed(value: Any) -> Any:
    """The numbers of a tensor or an array, which a format of `datasets` may make within a row."""
    return value.tolist()
