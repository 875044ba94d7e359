"""Rows of `datasets` with their media decoded: by Pillow and PyAV, without torchcodec."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from omnidata.errors import MediaError, UsageError
from omnidata.loaders.rows import RowReader
from omnidata.media import frames, image, letterbox, samples
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
    resize: tuple[int, int] | None = None,
    num_frames: int = 4,
    seconds: float | None = None,
    audio_rate: int = 16_000,
    on_error: _OnError = "raise",
    size: Any = None,
) -> Decode:
    """Return a transform that decodes the media of rows: `rows.with_transform(decode(rows))`.

    It turns every value into an array, a number or a text, which a `DataLoader` collates without a
    `collate_fn` where `resize` and `seconds` give all media of a role one shape. Lists and dicts,
    as the history, become JSON. An absent medium is zeros and `ROLE_mask` is False; an absent text
    is empty; an absent number is NaN.

    A stream has no `with_transform`: `rows.map(omnidata.decode(rows), batched=True, batch_size=8)`.

    Args:
        rows: steps: the result of `omnidata.load_dataset`, or a converted repository.
        roles: the media to decode; the others are left out. None for all.
        resize: (height, width) in pixels to fit screenshots and frames into, proportions kept,
            black borders. None keeps their sizes.
        num_frames: frames of a clip, evenly spread; a shorter clip is filled with black frames.
        seconds: length of every track, cut or filled with silence; None keeps each track whole.
        audio_rate: samples per second to resample to, in Hz.
        on_error: "raise" a `MediaError` for a missing or broken medium, or "mask" it as absent.
        size: refused; it was (width, height).

    Returns:
        A function of columns. A screenshot is uint8 (3, H, W), RGB in [0, 255]; a clip uint8
        (T, 3, H, W); a track float32 (N,), mono in [-1, 1], with its own length in `ROLE_length`.

    Raises:
        UsageError: the rows are no steps or lack a role, or an argument is invalid.
    """
    refuse_size(size, "omnidata.decode")
    check_resize(resize, "omnidata.decode")
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
    chosen = tuple(reader.kinds if roles is None else roles)
    _check_columns(rows, reader, chosen)
    numbers = frozenset(
        name
        for name, column in (rows.features or {}).items()
        if str(getattr(column, "dtype", "")).startswith(_NUMBERS)
    )
    return Decode(reader, chosen, resize, num_frames, seconds, audio_rate, on_error, numbers)


def _check_columns(
    rows: datasets.Dataset | datasets.IterableDataset, reader: RowReader, roles: Sequence[str]
) -> None:
    for role in roles:
        if role not in reader.kinds:
            raise UsageError(
                f'the rows have no media column "{role}"',
                where="omnidata.decode(roles=...)",
                expected=f"some of {', '.join(reader.kinds)}",
            )
        kind = rows.features[role]
        if getattr(kind, "decode", False):
            name = type(kind).__name__
            raise UsageError(
                f"`datasets` decodes the column {role}, a clip or a sound with torchcodec alone",
                where=f"datasets.{name}()",
                expected="media as they are loaded, which omnidata decodes with Pillow and PyAV",
                remedy=f'rows.cast_column("{role}", datasets.{name}(decode=False))',
            )


def check_resize(resize: Any, where: str) -> None:
    """Refuse a target size that is not (height, width).

    Raises:
        UsageError: it is neither None nor two positive whole numbers.
    """
    whole = (int, np.integer)
    if resize is None or (
        isinstance(resize, Sequence)
        and len(resize) == 2
        and all(isinstance(extent, whole) and extent > 0 for extent in resize)
        and not any(isinstance(extent, bool) for extent in resize)
    ):
        return
    raise UsageError(
        "this is no size",
        where=f"{where}(resize={resize!r:.40})",
        expected="(height, width), two positive whole numbers",
    )


def refuse_size(size: Any, where: str) -> None:
    """Refuse the argument that was (width, height), and name its successor.

    Raises:
        UsageError: `size` is given.
    """
    if size is None:
        return
    swapped = tuple(reversed(size)) if isinstance(size, list | tuple) else "(height, width)"
    raise UsageError(
        "`size`, which was (width, height), is now `resize`, which is (height, width)",
        where=f"{where}(size={size!r:.40})",
        expected="sizes in torch's order",
        remedy=f"{where}(resize={swapped})",
    )


@dataclass(frozen=True, slots=True)
class Decode:
    """The transform that `decode` returns; `numbers` are its columns of numbers."""

    reader: RowReader
    roles: tuple[str, ...]
    resize: tuple[int, int] | None
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
                error.remedy += '; or mask it as absent: omnidata.decode(on_error="mask")'
                raise
            ref = None
            made = self._array(role, None)
        return {role: made[0], f"{role}_mask": ref is not None, **made[1]}

    def _array(self, role: str, ref: MediaRef | None) -> tuple[npt.NDArray[Any], dict[str, Any]]:
        kind = ref.kind if ref else self.reader.kinds[role] or _GUESSED.get(role, "image")
        height, width = self.resize or (0, 0)
        fitted = (width, height) if self.resize else None
        if kind == "image":
            if ref is None:
                return np.zeros((3, height, width), np.uint8), {}
            # Copied: torch takes no arrays that are read-only, as Pillow's are.
            return image(ref, size=fitted).pixels.transpose(2, 0, 1).copy(), {}
        if kind == "video":
            if ref is None:
                return np.zeros((self.num_frames, 3, height, width), np.uint8), {}
            pixels = frames(ref, num_frames=self.num_frames).pixels
            missing = max(0, self.num_frames - len(pixels))
            filled = np.pad(letterbox(pixels, fitted)[0], ((0, missing), (0, 0), (0, 0), (0, 0)))
            return filled.transpose(0, 3, 1, 2).copy(), {}
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


def _numbers(values: Sequence[Any]) -> list[Any]:
    """If a number is absent all become floats, which torch turns into float64."""
    if None not in values:
        return list(values)
    return [float("nan") if value is None else float(value) for value in values]


def _plain(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, np.ndarray) and value.dtype == object:  # a list, in numpy's format
        value = value.tolist()
    return (
        json.dumps(value, default=lambda array: array.tolist())
        if isinstance(value, _NESTED)
        else value
    )
