"""One step as tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from omnidata.actions import Action, Screen
from omnidata.errors import MediaError, UsageError
from omnidata.media import DEFAULT_BUDGET, Budget, Placement, frames, image, samples
from omnidata.media.clip import check_choice
from omnidata.types import MediaRef, Step

LEAST_RATE = 1000
"""Hz below which a track is no longer sound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoding:
    """What is decoded of a step, and how.

    Attributes:
        roles: the media to decode, e.g. ("screenshot", "audio"); None for all that a step has.
        size: width and height to fit pictures into, proportions kept, black around them; None
            leaves them as they are. Clips are never resized.
        num_frames, fps, which: the frames of a clip, as `omnidata.media.frames` has it; at most one
            of them, four evenly spread frames where none is given.
        audio_rate: samples per second to resample to, in Hz.
        on_error: what a missing or broken medium is: "raise" a `MediaError`, or "none", an absent
            medium with the message in `Item.errors`.
        budget: limits for every medium.

    Raises:
        UsageError: a value that nothing can be done with.
    """

    roles: tuple[str, ...] | None = None
    size: Screen | None = None
    num_frames: int | None = None
    fps: float | None = None
    which: Literal["all", "keyframes"] | None = None
    audio_rate: int = 16_000
    on_error: Literal["raise", "none"] = "raise"
    budget: Budget = DEFAULT_BUDGET

    def __post_init__(self) -> None:
        if sum(choice is not None for choice in (self.num_frames, self.fps, self.which)) > 1:
            raise UsageError(
                "it is not clear which frames are meant",
                where=f"Decoding(num_frames={self.num_frames}, fps={self.fps}, which={self.which})",
                expected="at most one of num_frames, fps and which",
            )
        if self.num_frames is not None or self.fps is not None or self.which is not None:
            check_choice(self.num_frames, self.fps, self.which)
        whole, size = (int, np.integer), self.size
        for name, good, expected in (
            ("on_error", self.on_error in ("raise", "none"), '"raise" or "none"'),
            ("roles", not isinstance(self.roles, str), 'names, e.g. ("screenshot", "audio")'),
            (
                "audio_rate",
                isinstance(self.audio_rate, whole) and self.audio_rate >= LEAST_RATE,
                f"a whole number from {LEAST_RATE} Hz",
            ),
            (
                "size",
                size is None
                or (len(size) == 2 and all(isinstance(s, whole) and s > 0 for s in size)),
                "width and height, two positive whole numbers",
            ),
        ):
            if not good:
                raise UsageError(
                    "nothing can be done with it",
                    where=f"Decoding({name}={getattr(self, name)!r})",
                    expected=expected,
                )


@dataclass(frozen=True, slots=True)
class Item:
    """One step with its media decoded; a medium that is absent is None.

    Attributes:
        sample_id, episode_id, step_index, num_steps, instruction, screen: as in `Step`.
        history, history_screens, action, tags: as in `Step`.
        media: by role. A picture is uint8 (3, H, W), RGB; a clip uint8 (T, 3, H, W), RGB; a track
            float32 (N,), mono, full scale at -1 and 1. Pictures and clips are views whose channels
            are innermost in memory, as they were decoded.
        placements: by role of the pictures: where the screen lies in them, to map coordinates.
        pts_seconds: by role of the clips: float64 (T,), when each frame is shown, by the clip's own
            clock.
        fps: by role of the clips: how many of these frames there are per second.
        audio_rate: of all tracks, in Hz.
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


def decode(step: Step, how: Decoding) -> Item:
    """Decode the media of a step.

    Raises:
        MediaError: a medium is missing or broken, and `on_error` is "raise"; it names the step.
    """
    item = Item(
        sample_id=step.sample_id,
        episode_id=step.episode_id,
        step_index=step.step_index,
        num_steps=step.num_steps,
        instruction=step.instruction,
        screen=step.screen,
        history=step.history,
        history_screens=step.history_screens,
        action=step.action,
        tags=step.tags,
        audio_rate=how.audio_rate,
    )
    for role in step.media if how.roles is None else how.roles:
        ref = step.media.get(role)
        item.media[role] = None
        if ref is None:
            continue
        try:
            _add(item, role, ref, how)
        except MediaError as error:
            error.where = f"{step.sample_id}, {role}: {error.where}"
            error.remedy += '; or take it for absent: Decoding(on_error="none")'
            if how.on_error == "raise":
                raise
            item.errors[role] = str(error)
    return item


def _add(item: Item, role: str, ref: MediaRef, how: Decoding) -> None:
    if ref.kind == "image":
        picture = image(ref, size=how.size, budget=how.budget)
        # Copied, as Pillow's bytes may not be written to; by numpy, since torch.tensor takes all
        # cores for so little.
        item.media[role] = torch.from_numpy(picture.pixels.copy()).permute(2, 0, 1)
        item.placements[role] = picture.placement
    elif ref.kind == "video":
        usual = 4 if how.fps is None and how.which is None else None
        clip = frames(
            ref,
            num_frames=how.num_frames or usual,
            fps=how.fps,
            which=how.which,
            budget=how.budget,
        )
        item.media[role] = torch.from_numpy(clip.pixels).permute(0, 3, 1, 2)
        item.pts_seconds[role] = torch.from_numpy(clip.pts_seconds)
        item.fps[role] = clip.fps
    else:
        wave = samples(ref, rate=how.audio_rate, budget=how.budget)
        item.media[role] = torch.from_numpy(wave)
