"""How many clips, tracks and media in all one request may hold."""

from __future__ import annotations

from collections.abc import Sequence

from omnidata.adapters.capabilities import Capabilities
from omnidata.types import Modality, Part

_FIRST_KEPT: tuple[Modality, ...] = ("video", "image", "audio")


def excess(parts: Sequence[Part], capabilities: Capabilities) -> dict[int, str]:
    """The media that do not fit within `max_videos`, `max_audios` and `max_media`.

    Of one kind the last ones are kept, as the current screen comes after those before it; of
    several kinds clips before images before tracks (the order of OmniGUI's released adapter for
    Baichuan-Omni). A clip that is sent as frames counts as so many images.

    Args:
        parts: of all messages, in order.
        capabilities: what the model takes; modalities that it does not take count for nothing.

    Returns:
        Numbers of parts, and why each is left out.

    Examples:
        >>> from pathlib import Path
        >>> from omnidata.types import MediaRef
        >>> kinds = ("image", "video", "audio", "image")
        >>> parts = [Part(kind, media=MediaRef(kind, Path(), "x")) for kind in kinds]
        >>> one_file = Capabilities(video="native", max_media=1)
        >>> sorted(excess(parts, one_file))
        [0, 2, 3]
        >>> excess(parts, Capabilities(video="native", max_audios=0))
        {2: 'the model takes no more than 0 tracks'}
    """
    kinds = {
        number: part.media.kind
        for number, part in enumerate(parts)
        if part.media and part.media.kind in capabilities.accepts
    }
    native = capabilities.video == "native"
    over: dict[int, str] = {}
    for kind, limit, name in (
        ("video", capabilities.max_videos if native else None, "clip"),
        ("audio", capabilities.max_audios, "track"),
    ):
        numbers = [number for number in kinds if kinds[number] == kind]
        if limit is not None:
            over |= dict.fromkeys(numbers[: max(0, len(numbers) - limit)], _room(limit, name))
    room = capabilities.max_media
    if room is None:
        return over
    for kind in _FIRST_KEPT:
        cost = 1 if native or kind != "video" else capabilities.frames
        for number in reversed([n for n in kinds if kinds[n] == kind and n not in over]):
            if cost > room:
                over[number] = _room(capabilities.max_media or 0, "medium")
            else:
                room -= cost
    return over


def _room(limit: int, name: str) -> str:
    names = {"medium": "media"}.get(name, f"{name}s")
    return f"the model takes no more than {limit} {name if limit == 1 else names}"
