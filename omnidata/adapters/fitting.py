"""Which parts of a conversation a model can take, before any file is opened."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from omnidata.adapters.capabilities import Capabilities
from omnidata.adapters.limits import excess
from omnidata.types import Conversation, Part

HISTORY = "history_screenshot"
"""The role of what is given up first where there are too many pictures."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What is left out of a conversation so that a model can take it.

    Attributes:
        dropped: the number of a part, counted through all messages, and why it is left out.
        frames: the number of a clip that is sent as pictures, and how many are to be sent.
        wanted: how many would be sent if there was room.
        reason: why fewer are sent than wanted; empty where there are none to be sent fewer of.
    """

    dropped: Mapping[int, str]
    frames: Mapping[int, int]
    wanted: int
    reason: str = ""


def lacking(conversation: Conversation, capabilities: Capabilities) -> str:
    """What of a conversation a model cannot take; empty if nothing.

    Examples:
        >>> from pathlib import Path
        >>> from omnidata.types import MediaRef, Message
        >>> sound = Part("audio", media=MediaRef("audio", Path(), "1.wav"), role="voice")
        >>> lacking((Message("user", (sound,)),), Capabilities(accepts=frozenset({"image"})))
        'the model takes no audio (voice)'
    """
    parts = flat(conversation)
    lacks = []
    for kind in dict.fromkeys(part.kind for part in parts if _untaken(part, capabilities)):
        roles = ", ".join(dict.fromkeys(part.role for part in parts if part.kind == kind))
        lacks.append(f"the model takes no {kind} ({roles})")
    over = excess(parts, capabilities)
    for why in dict.fromkeys(over.values()):
        roles = ", ".join(parts[number].role for number in sorted(over) if over[number] == why)
        lacks.append(f"{why}, which leaves out {roles}")
    pictures, clips = _pictures(parts, capabilities, over)
    frames = len(clips) * capabilities.frames
    if capabilities.max_images is not None and len(pictures) + frames > capabilities.max_images:
        lacks.append(
            f"{_room(capabilities.max_images)}, not {len(pictures) + frames}"
            + (f" ({frames} of them frames)" if frames else "")
        )
    return "; ".join(lacks)


def fit(parts: Sequence[Part], capabilities: Capabilities) -> Fit:
    """Choose what to leave out.

    Modalities that the model does not take, and what is above `limits.excess`; then, where there
    are more pictures than it takes, screenshots of the history, then frames of clips, evenly, and
    last of all other pictures from the first on. The last picture, which is the current screen,
    always stays.
    """
    dropped = {
        number: f"the model takes no {part.kind}"
        for number, part in enumerate(parts)
        if _untaken(part, capabilities)
    }
    dropped |= excess(parts, capabilities)
    pictures, clips = _pictures(parts, capabilities, dropped)
    frames = dict.fromkeys(clips, capabilities.frames)
    limit = capabilities.max_images
    if limit is None:
        return Fit(dropped, frames, capabilities.frames)
    reason = _room(limit)
    spare = pictures[:-1] if limit else list(pictures)
    history = [number for number in spare if parts[number].role == HISTORY]
    others = [number for number in spare if parts[number].role != HISTORY]

    def give_up(numbers: Sequence[int]) -> None:
        over = max(0, len(pictures) + sum(frames.values()) - limit)
        for number in numbers[:over]:
            pictures.remove(number)
            dropped[number] = reason

    give_up(history)
    share, extra = divmod(max(0, limit - len(pictures)), len(clips) or 1)
    for position, number in enumerate(clips):
        frames[number] = min(capabilities.frames, share + (position < extra))
        if not frames[number]:
            dropped[number] = reason
    give_up(others)
    return Fit(dropped, frames, capabilities.frames, reason)


def flat(conversation: Conversation) -> list[Part]:
    """The parts of all messages, in order."""
    return [part for message in conversation for part in message.parts]


def _untaken(part: Part, capabilities: Capabilities) -> bool:
    return part.media is not None and part.media.kind not in capabilities.accepts


def _pictures(
    parts: Sequence[Part], capabilities: Capabilities, dropped: Container[int]
) -> tuple[list[int], list[int]]:
    """Numbers of the pictures, and of the clips of which frames are sent as pictures."""
    taken = {
        number: part.kind
        for number, part in enumerate(parts)
        if number not in dropped and not _untaken(part, capabilities)
    }
    pictures = [number for number, kind in taken.items() if kind == "image"]
    if capabilities.video == "native":
        return pictures, []
    return pictures, [number for number, kind in taken.items() if kind == "video"]


def _room(limit: int) -> str:
    return f"the model takes at most {limit} picture{'s' if limit != 1 else ''}"
