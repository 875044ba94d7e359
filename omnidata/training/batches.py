"""Steps as tensors, and batches of them: lists of tensors, or padded ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import lru_cache
from types import ModuleType
from typing import Any, Literal, Self, get_args

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import default_collate

from omnidata.actions import Action, Screen
from omnidata.errors import MediaError, PlatformError, UsageError
from omnidata.loaders.decoding import Decode, check_resize, refuse_size
from omnidata.media import DEFAULT_BUDGET, Budget, Placement, frames, image, letterbox, samples
from omnidata.media.decoding import check_choice
from omnidata.types import MediaRef, Step

# Resampling and mel features of waveforms that are tensors, by torchaudio.

MelBins = Literal[80, 128]
RATE = 16_000
"""Samples per second that Whisper's features are made of."""

_HOP = 160
"""Samples from one column of features to the next: 10 ms."""

_WINDOW = 400


def resample(audio: Tensor, rate: int, new_rate: int) -> Tensor:
    """Resample a waveform with torchaudio's windowed sinc filter.

    To decode at another rate use `Decoding(audio_rate=...)`, which needs no torchaudio.

    Args:
        audio: float32 (..., N).
        rate: samples per second of `audio`, in Hz.
        new_rate: samples per second of the result, in Hz.

    Returns:
        float32 (..., ceil(N * new_rate / rate)).

    Raises:
        PlatformError: torchaudio is absent or cannot be loaded.
    """
    if rate != new_rate:
        audio = _torchaudio().functional.resample(audio, rate, new_rate)
    return audio


def log_mel(audio: Tensor, *, bins: MelBins = 128, rate: int = RATE) -> Tensor:
    """Return Whisper's log-mel features (Radford et al. 2022, section 2.2), also Qwen-Omni's.

    Hann windows of 400 samples, one every 160; slaney filters up to 8 kHz; logarithm to base 10,
    clipped at 8 below the maximum, then (x + 4) / 4. They equal those of `WhisperFeatureExtractor`
    of transformers within 5e-4.

    Args:
        audio: float32 (..., N), in [-1, 1].
        bins: 80, or 128 (Whisper large-v3, Qwen-Omni).
        rate: samples per second of `audio`, in Hz; other rates are resampled to 16 kHz first.

    Returns:
        float32 (..., bins, N // 160), with N at 16 kHz. Fewer than 201 samples are padded with
        silence.

    Raises:
        PlatformError: torchaudio is absent or cannot be loaded.
    """
    wave = resample(audio, rate, RATE)
    wave = torch.nn.functional.pad(wave, (0, max(0, _WINDOW // 2 + 1 - wave.shape[-1])))
    mel: Tensor = _spectrogram(bins, wave.device)(wave)[..., :-1].clamp(min=1e-10).log10()
    mel = torch.maximum(mel, mel.amax(dim=(-2, -1), keepdim=True) - 8.0)
    return (mel + 4.0) / 4.0


@lru_cache(maxsize=8)
def _spectrogram(bins: MelBins, device: torch.device) -> torch.nn.Module:
    module: torch.nn.Module = _torchaudio().transforms.MelSpectrogram(
        RATE, _WINDOW, hop_length=_HOP, n_mels=bins, f_max=8000.0, norm="slaney", mel_scale="slaney"
    )
    return module.to(device)


def _torchaudio() -> ModuleType:
    try:
        import torchaudio
    except (ImportError, OSError, RuntimeError) as error:  # of a build for another torch
        raise PlatformError(
            f"torchaudio cannot be loaded ({type(error).__name__}: {error})",
            where=f"torch {torch.__version__}",
            expected="the build of torchaudio that was made for this torch, CUDA or CPU",
            remedy="install torch and torchaudio from one index; to resample without torchaudio, "
            "use Decoding(audio_rate=...)",
        ) from None
    return torchaudio  # type: ignore[no-any-return]  # torchaudio is not read


# One step as tensors.

_LEAST_RATE = 1000
"""Lowest rate of a track, in Hz."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """The settings of decoding a step's media.

    Attributes:
        roles: the media to decode, e.g. ("screenshot", "audio"); None for all.
        resize: (height, width) in pixels to fit screenshots and clips into, proportions kept, black
            borders. None keeps their sizes.
        num_frames, fps, which: the frames of a clip, as in `omnidata.media.frames`; at most one of
            them. By default four evenly spread frames.
        audio_rate: samples per second to resample to, in Hz.
        on_error: "raise" a `MediaError` for a missing or broken medium, or "none": the medium is
            None, and `Item.errors` has the message.
        budget: limits for every medium.
        size: refused; it was (width, height).

    Raises:
        UsageError: a value is invalid.
    """

    roles: tuple[str, ...] | None = None
    resize: tuple[int, int] | None = None
    num_frames: int | None = None
    fps: float | None = None
    which: Literal["all", "keyframes"] | None = None
    audio_rate: int = 16_000
    on_error: Literal["raise", "none"] = "raise"
    budget: Budget = DEFAULT_BUDGET
    size: InitVar[Any] = None

    def __post_init__(self, size: Any) -> None:
        refuse_size(size, "Decoding")
        check_resize(self.resize, "Decoding")
        if (self.num_frames, self.fps, self.which) != (None, None, None):
            check_choice(self.num_frames, self.fps, self.which)
        for name, good, expected in (
            ("on_error", self.on_error in ("raise", "none"), '"raise" or "none"'),
            ("roles", not isinstance(self.roles, str), 'names, e.g. ("screenshot", "audio")'),
            (
                "audio_rate",
                isinstance(self.audio_rate, (int, np.integer)) and self.audio_rate >= _LEAST_RATE,
                f"a whole number from {_LEAST_RATE} Hz",
            ),
        ):
            if not good:
                raise UsageError(
                    f"{name} has an invalid value",
                    where=f"Decoding({name}={getattr(self, name)!r})",
                    expected=expected,
                )


@dataclass(frozen=True, slots=True)
class Item:
    """One step with its media as tensors; an absent medium is None.

    Attributes:
        sample_id, episode_id, step_index, num_steps, instruction: as in `Step`.
        screen, history_screens: as in `Step`: (width, height) in pixels, the order of (x, y).
        history, action, tags: as in `Step`.
        media: by role. A screenshot is uint8 (3, H, W), RGB in [0, 255]; a clip uint8 (T, 3, H, W);
            a track float32 (N,), mono in [-1, 1]. Pixels are channels-last in memory.
        placements: by role of the screenshots and clips: where the screen or the frame lies in the
            resized picture, to map coordinates.
        pts_seconds: by role of the clips: float64 (T,), when each frame is shown, in seconds of the
            clip's own clock.
        fps: by role of the clips: decoded frames per second.
        audio_rate: samples per second of every track, in Hz.
        errors: by role of the media that could not be read, with `on_error="none"`: the message.
    """

    sample_id: str
    episode_id: str
    step_index: int
    num_steps: int
    instruction: str
    screen: Screen
    history: tuple[Action | None, ...]
    history_screens: tuple[Screen, ...]
    action: Action | None
    tags: Mapping[str, str]
    audio_rate: int
    media: dict[str, Tensor | None] = field(default_factory=dict)
    placements: dict[str, Placement] = field(default_factory=dict)
    pts_seconds: dict[str, Tensor] = field(default_factory=dict)
    fps: dict[str, float] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)

    @property
    def screenshot(self) -> Tensor | None:
        """The screen before the action: uint8 (3, H, W)."""
        return self.media.get("screenshot")

    @property
    def frames(self) -> Tensor | None:
        """The clip since the last action: uint8 (T, 3, H, W)."""
        return self.media.get("video")

    @property
    def audio(self) -> Tensor | None:
        """The sound since the last action: float32 (N,)."""
        return self.media.get("audio")


_FIELDS = ("sample_id", "episode_id", "step_index", "num_steps", "instruction", "screen",
           "history", "history_screens", "action", "tags")  # fmt: skip
"""The attributes of steps, items and batches with one name."""


def decode(step: Step, how: Decoding) -> Item:
    """Decode the media of a step.

    Raises:
        MediaError: a medium is missing or broken, and `on_error` is "raise"; it names the step.
    """
    item = Item(**{name: getattr(step, name) for name in _FIELDS}, audio_rate=how.audio_rate)
    for role in step.media if how.roles is None else how.roles:
        ref = step.media.get(role)
        item.media[role] = None
        if ref is None:
            continue
        try:
            _add(item, role, ref, how)
        except MediaError as error:
            error.where = f"{step.sample_id}, {role}: {error.where}"
            error.remedy += '; or leave it out: Decoding(on_error="none")'
            if how.on_error == "raise":
                raise
            item.errors[role] = str(error)
    return item


def _add(item: Item, role: str, ref: MediaRef, how: Decoding) -> None:
    fitted = (how.resize[1], how.resize[0]) if how.resize else None  # (width, height)
    if ref.kind == "image":
        picture = image(ref, size=fitted, budget=how.budget)
        # Copied, as Pillow's bytes may not be written to; by numpy, since torch.tensor takes all
        # cores for so little.
        item.media[role] = torch.from_numpy(picture.pixels.copy()).permute(2, 0, 1)
        item.placements[role] = picture.placement
    elif ref.kind == "video":
        usual = 4 if how.fps is None and how.which is None else None
        clip = frames(
            ref, num_frames=how.num_frames or usual, fps=how.fps, which=how.which, budget=how.budget
        )
        pixels, placement = letterbox(clip.pixels, fitted)
        item.media[role] = torch.from_numpy(pixels).permute(0, 3, 1, 2)
        item.placements[role] = placement
        item.pts_seconds[role] = torch.from_numpy(clip.pts_seconds)
        item.fps[role] = clip.fps
    else:
        wave = samples(ref, rate=how.audio_rate, budget=how.budget)
        item.media[role] = torch.from_numpy(wave)


@dataclass(frozen=True, slots=True)
class Padded:
    """Tensors of different extents in one tensor, padded with zeros at the end of every axis.

    The top left corner stays in place, so coordinates stay valid.

    Attributes:
        values: (B, ...), each axis as long as the longest.
        sizes: int64 (B, axes of one tensor), the true extents; zeros for an absent tensor.
    """

    values: Tensor
    sizes: Tensor

    def mask(self, *axes: int) -> Tensor:
        """Return which values are no padding.

        Args:
            axes: of `values`, e.g. 1 for the samples of tracks or the frames of clips, 2 and 3 for
                rows and columns of pictures.

        Returns:
            bool (B, one extent per axis), on the device of the values.

        Examples:
            >>> pad([torch.ones(1), None, torch.ones(3)]).mask(1).tolist()
            [[True, False, False], [False, False, False], [True, True, True]]
        """
        found = torch.ones(len(self.values), device=self.values.device, dtype=torch.bool)
        for axis in axes:
            places = torch.arange(self.values.shape[axis], device=self.values.device)
            inside = places < self.sizes[:, axis - 1, None]
            found = found[..., None] & inside.view(len(inside), *[1] * (found.dim() - 1), -1)
        return found


Tensors = list[Tensor | None] | Padded | None
"""One medium of a batch: a list with None where it is absent; or padded, None if all are."""


def pad(tensors: Sequence[Tensor | None]) -> Padded | None:
    """Pad tensors of equal rank and type to one; None if all are absent."""
    present = [tensor for tensor in tensors if tensor is not None]
    if not present:
        return None
    absent = [0] * present[0].dim()
    sizes = torch.tensor([absent if tensor is None else list(tensor.shape) for tensor in tensors])
    values = present[0].new_zeros(len(tensors), *sizes.amax(dim=0).tolist())
    for row, tensor in zip(values, tensors, strict=True):
        if tensor is not None:
            row[tuple(slice(extent) for extent in tensor.shape)] = tensor
    return Padded(values, sizes)


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of items; every list has one entry per item.

    Attributes:
        sample_id, episode_id, num_steps, instruction, screen: lists of the values of `Item`.
        history, history_screens, action, tags, errors: likewise.
        step_index: int64 (B,).
        media: by role, roles that no item has included. Lists of uint8 (3, H, W), uint8
            (T, 3, H, W) or float32 (N,); or padded to uint8 (B, 3, H, W), uint8 (B, T, 3, H, W),
            float32 (B, N).
        placements: by role of the screenshots and clips; lists, None where the medium is absent.
        pts_seconds: by role of the clips: a list of float64 (T,), or padded to float64 (B, T).
        fps: by role of the clips; lists, None where there is no clip.
        mel: by role of the tracks, empty unless asked for: a list of float32 (bins, N // 160), or
            float32 (B, bins, longest N // 160), from the padded tracks as Whisper's are.
        audio_rate: of all tracks in `media`, in Hz.
    """

    sample_id: list[str]
    episode_id: list[str]
    step_index: Tensor
    num_steps: list[int]
    instruction: list[str]
    screen: list[Screen]
    history: list[tuple[Action | None, ...]]
    history_screens: list[tuple[Screen, ...]]
    action: list[Action | None]
    tags: list[dict[str, str]]
    errors: list[dict[str, str]]
    media: dict[str, Tensors]
    placements: dict[str, list[Placement | None]]
    pts_seconds: dict[str, Tensors]
    fps: dict[str, list[float | None]]
    mel: dict[str, Tensors]
    audio_rate: int

    def __len__(self) -> int:
        return len(self.sample_id)

    @property
    def screenshot(self) -> Tensors:
        """The screens before the actions."""
        return self.media.get("screenshot")

    @property
    def frames(self) -> Tensors:
        """The clips since the last actions."""
        return self.media.get("video")

    @property
    def audio(self) -> Tensors:
        """The sounds since the last actions."""
        return self.media.get("audio")

    def to(self, device: torch.device | str | int, *, non_blocking: bool = False) -> Self:
        """The batch with every tensor on the device."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Self:
        """The batch with every tensor in page-locked memory; DataLoader calls this."""
        return self._map(lambda tensor: tensor.pin_memory())

    def _map(self, change: Callable[[Tensor], Tensor]) -> Self:
        names = ("step_index", "media", "pts_seconds", "mel")
        return replace(self, **{name: _map_tensors(getattr(self, name), change) for name in names})


def _map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, Padded):
        return Padded(change(value.values), change(value.sizes))
    if isinstance(value, dict):
        return {key: _map_tensors(inner, change) for key, inner in value.items()}
    return [_map_tensors(inner, change) for inner in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Collate:
    """Collates items into a `Batch`: `DataLoader(..., collate_fn=Collate(pad=True))`.

    Attributes:
        pad: pad the media of each role to one tensor, with `Padded.sizes` and `Padded.mask`. By
            default they are lists of tensors, as the processors of `transformers` take them.
        mel_bins: add log-mel features of the tracks with 80 or 128 bins; see `log_mel`.

    Raises:
        PlatformError: features are asked for, and torchaudio cannot be loaded.
        UsageError: `mel_bins` is another number; there is no item; or the items have different
            audio rates.
    """

    pad: bool = False
    mel_bins: MelBins | None = None

    def __post_init__(self) -> None:
        if self.mel_bins not in (None, *get_args(MelBins)):
            raise UsageError(
                "Whisper has no features with so many bins",
                where=f"Collate(mel_bins={self.mel_bins})",
                expected="80, 128 or None",
            )

    def __call__(self, items: Sequence[Item]) -> Batch:
        """One batch of the items, in order."""
        if not items:
            raise UsageError("there is no item", where="Collate", expected="at least one item")
        rate = items[0].audio_rate
        if any(item.audio_rate != rate for item in items):
            raise UsageError(
                "the items have different audio rates",
                where="Collate",
                expected="items of datasets with one `Decoding(audio_rate=...)`",
            )
        join: Callable[[list[Tensor | None]], Tensors] = pad if self.pad else list
        media = _by_role([item.media for item in items])
        joined = {role: join(tensors) for role, tensors in media.items()}
        # What no item has keeps its place, so that batches are alike.
        pictures, clips, tracks = (
            [role for role in media if role in known] for known in (_PICTURES, _CLIPS, _TRACKS)
        )
        tracks += [
            role
            for role, tensors in media.items()
            if role not in tracks
            and any(tensor is not None and tensor.dim() == 1 for tensor in tensors)
        ]
        times = _by_role([item.pts_seconds for item in items], clips)
        bins = self.mel_bins
        lists: dict[str, Any] = {
            name: [getattr(item, name) for item in items] for name in (*_FIELDS, "errors")
        }
        lists["step_index"] = torch.tensor(lists["step_index"])
        return Batch(
            **lists,
            media=joined,
            placements=_by_role([item.placements for item in items], [*pictures, *clips]),
            pts_seconds={role: join(seconds) for role, seconds in times.items()},
            fps=_by_role([item.fps for item in items], clips),
            mel={role: _mel(joined[role], bins, rate) for role in tracks} if bins else {},
            audio_rate=rate,
        )


@dataclass(frozen=True, slots=True)
class CollateRows:
    """Collates rows of `datasets` and decodes them: `DataLoader(rows, collate_fn=...)`.

    Rows refer to their media, also with `with_format("torch")`, and absent media are None; no
    DataLoader collates these by itself. The batch is a dict with the columns of
    `rows.with_transform(omnidata.decode(rows))`, but media of different extents are padded. Numbers
    stay the tensors that a format made of them, which are float32 also in lists and dicts.

    Attributes:
        decode: the result of `omnidata.decode(rows, resize=..., num_frames=..., ...)`.

    Raises:
        UsageError: it is something else.

    Examples:
        DataLoader(
            rows.with_format("torch"),
            batch_size=2,
            num_workers=2,
            collate_fn=CollateRows(omnidata.decode(rows, num_frames=4)),
        )
    """

    decode: Decode

    def __post_init__(self) -> None:
        if not isinstance(self.decode, Decode):
            raise UsageError(
                f"a {type(self.decode).__name__} decodes no rows",
                where="CollateRows",
                expected="CollateRows(omnidata.decode(rows))",
            )

    def __call__(self, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """One batch of the rows, in order.

        Returns:
            By medium `ROLE`: uint8 (B, 3, H, W), uint8 (B, T, 3, H, W) or float32 (B, N), padded
            with zeros; `ROLE_mask`: bool (B,), False where it is absent. Screenshots and clips have
            `ROLE_size`, int64 (B, 2), height and width before padding; tracks have `ROLE_length`,
            int64 (B,). Other columns are collated by torch's `default_collate`; lists and dicts are
            JSON.

        Raises:
            MediaError: a medium is missing or broken; names the step.
            UsageError: there is no row, or a medium is decoded already.
        """
        if not rows:
            raise UsageError("there is no row", where="CollateRows", expected="at least one row")
        columns = self.decode({name: [row[name] for row in rows] for name in rows[0]})
        batch: dict[str, Any] = {}
        for name, values in columns.items():
            if name not in self.decode.roles:
                batch[name] = default_collate(values)
                continue
            media = pad([torch.from_numpy(value) for value in values])
            assert media is not None
            batch[name] = media.values
            if media.values.dim() > 2:
                batch[f"{name}_size"] = media.sizes[:, -2:]
        return batch


_PICTURES, _CLIPS, _TRACKS = ("screenshot", "history_screenshot"), ("video",), ("audio",)


def _by_role(held: Sequence[Any], roles: Iterable[str] = ()) -> dict[str, list[Any]]:
    roles = dict.fromkeys((*roles, *(role for found in held for role in found)))
    return {role: [found.get(role) for found in held] for role in roles}


def _mel(waves: Tensors, bins: MelBins, rate: int) -> Tensors:
    if waves is None:
        return None
    if not isinstance(waves, Padded):
        return [None if w is None else log_mel(w, bins=bins, rate=rate) for w in waves]
    values = log_mel(waves.values, bins=bins, rate=rate)
    lengths = -(-waves.sizes[:, 0] * RATE // rate)
    columns = (-(-lengths // _HOP)).clamp(max=values.shape[-1])
    return Padded(values, torch.stack([(columns > 0) * bins, columns], dim=1))
