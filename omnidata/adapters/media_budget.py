"""What a model can take of a conversation, decided before any file is opened."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from omnidata.errors import UsageError
from omnidata.types import Conversation, Message, Modality, Part

ALL: frozenset[Modality] = frozenset({"image", "video", "audio"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """The media that a model takes, and their form.

    Attributes:
        accepts: the modalities.
        video: "native" sends the clip's own bytes, "frames" some of its frames as pictures.
        frames: number of frames, evenly spread from the first to the last.
        frame_times: whether a line of text before each frame states its time.
        audio: "file" sends the track's own bytes if the model takes its format, "waveform" always a
            16-bit mono WAV file of 16 kHz.
        audio_formats: the accepted formats of files, e.g. "wav".
        audio_rate: resample every track to this rate in Hz and send it as a WAV file; None = the
            own rate of files, 16 kHz for waveforms.
        max_images: the largest number of pictures in a request, with frames; None = any number.
        max_videos, max_audios: the largest numbers of whole clips and of tracks; None = any number.
        max_media: the largest number of media of all kinds, with frames; None = any number.
        image_size: the longest side of a picture in pixels; larger pictures are scaled down. None =
            unchanged.
        degrade: omit media that the model does not take, with a note in the receipt.
        tools: the names of the provider's own tools that it takes (`Part` of the kind "tool").
    """

    accepts: frozenset[Modality] = ALL
    video: Literal["native", "frames"] = "frames"
    frames: int = 4
    frame_times: bool = True
    audio: Literal["file", "waveform"] = "file"
    audio_formats: tuple[str, ...] = ("wav", "mp3")
    audio_rate: int | None = None
    max_images: int | None = None
    max_videos: int | None = None
    max_audios: int | None = None
    max_media: int | None = None
    image_size: int | None = None
    degrade: bool = False
    tools: frozenset[str] = frozenset()


# The order in which a model gets the parts of a conversation: the paper's, or the release's.
#
# What the released adapters of OmniGUI really send is not what its paper shows: all media come
# first and all text last, so that a label is torn from its picture, the system prompt comes twice
# or as a text of the user's, and some media never arrive. Runs that are to be compared with the
# published tables need that form; its variants are the fields of `ReleaseRules`.

Layout = Literal["paper", "release"]
Dropped = tuple[dict[str, Any], ...]
"""A line of the receipt for each part that the layout leaves out: role, kind, dropped (why)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRules:
    """How a released adapter differs from the others.

    Attributes:
        system: "twice" sends the system prompt as such and again as a block at the head of the
            user's turn (Gemini, Qwen3-Omni); "block" only as a block at the head of the one user
            text (MiniCPM-o, VITA, Baichuan).
        last_only: for these kinds only the last medium is sent; of other kinds all are.
        one_file: kinds in order of precedence: only the last medium of the first kind that there is
            is sent, and no other medium. Empty = no such rule.

    Examples:
        >>> baichuan = ReleaseRules(system="block", one_file=("video", "image", "audio"))
        >>> vita = ReleaseRules(system="block", last_only=("image", "video", "audio"))
    """

    system: Literal["twice", "block"] = "twice"
    last_only: tuple[Modality, ...] = ()
    one_file: tuple[Modality, ...] = ()


def arrange(
    conversation: Conversation, layout: Layout, release: ReleaseRules
) -> tuple[Conversation, Dropped]:
    """Return the conversation in the order of a layout.

    Args:
        conversation: as the benchmark's paper has it.
        layout: "paper" changes nothing. "release" makes one turn of all that is not the system's:
            media in their order, then the texts, those of a turn joined by spaces and headed by its
            speaker, turns apart by a blank line.
        release: the variant of the release; unused with "paper".

    Returns:
        The conversation, and what was left out.

    Raises:
        UsageError: a provider's own tool, with "release".

    Examples:
        >>> turn = Message("user", (Part("text", "Goal: x"), Part("text", "Step: 0")))
        >>> arrange((turn,), "release", ReleaseRules())[0][0].parts[0].text
        '[User]: Goal: x Step: 0'
    """
    if layout == "paper":
        return conversation, ()
    if any(part.kind in ("tool", "call") for part in parts_of(conversation)):
        raise UsageError(
            "layout=release has no place for a provider's own tool",
            where="-M layout=release",
            expected="layout=paper where the dialect is that of a tool",
        )
    system = "\n\n".join(_join_texts(turn) for turn in conversation if _has_text(turn, system=True))
    turns = [turn for turn in conversation if _has_text(turn, system=False)]
    said = "\n\n".join(f"[{turn.role.capitalize()}]: {_join_texts(turn)}" for turn in turns)
    media = [part for turn in conversation for part in turn.parts if part.media]
    kept = _media_to_send(media, release)
    dropped = tuple(
        {"role": part.role, "kind": part.kind, "dropped": _why(part, release)}
        for number, part in enumerate(media)
        if number not in kept
    )
    shown = [media[number] for number in kept]
    about = {key: said for turn in turns for part in turn.parts for key, said in part.about.items()}
    block = f"[System Instructions]\n{system}\n[End System Instructions]" if system else ""
    if release.system == "twice":
        head = [Part("text", f"{block}\n")] if block else []
        texts = [Part("text", said, about=about)] if said else []
        first = (Message("system", (Part("text", system),)),) if system else ()
        return (*first, Message("user", (*head, *shown, *texts))), dropped
    text = "\n\n".join(filter(None, (block, said)))
    return (Message("user", (*shown, Part("text", text, about=about))),), dropped


def _has_text(turn: Message, *, system: bool) -> bool:
    return (turn.role == "system") == system and any(part.text for part in turn.parts)


def _join_texts(turn: Message) -> str:
    return " ".join(part.text for part in turn.parts if part.text)


def _media_to_send(media: list[Part], release: ReleaseRules) -> list[int]:
    last = {part.kind: number for number, part in enumerate(media)}
    if release.one_file:
        return [last[kind] for kind in release.one_file if kind in last][:1]
    return [
        number
        for number, part in enumerate(media)
        if part.kind not in release.last_only or number == last[part.kind]
    ]


def _why(part: Part, release: ReleaseRules) -> str:
    if release.one_file:
        return f"layout=release sends one file: {' before '.join(release.one_file)}"
    return f"layout=release sends the last {part.kind} only"


# How many clips, tracks and media in all one request may hold.

_FIRST_KEPT: tuple[Modality, ...] = ("video", "image", "audio")


def excess(parts: Sequence[Part], capabilities: Capabilities) -> dict[int, str]:
    """Return the media that do not fit within `max_videos`, `max_audios` and `max_media`.

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
            over |= dict.fromkeys(numbers[: max(0, len(numbers) - limit)], _room_left(limit, name))
    room = capabilities.max_media
    if room is None:
        return over
    for kind in _FIRST_KEPT:
        cost = 1 if native or kind != "video" else capabilities.frames
        for number in reversed([n for n in kinds if kinds[n] == kind and n not in over]):
            if cost > room:
                over[number] = _room_left(capabilities.max_media or 0, "medium")
            else:
                room -= cost
    return over


def _room_left(limit: int, name: str) -> str:
    names = {"medium": "media"}.get(name, f"{name}s")
    return f"the model takes no more than {limit} {name if limit == 1 else names}"


HISTORY = "history_screenshot"
"""The role, or its beginning, of what is given up first where there are too many pictures."""


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
    """Return why a model cannot take a conversation; empty if it can.

    Examples:
        >>> from pathlib import Path
        >>> from omnidata.types import MediaRef, Message
        >>> sound = Part("audio", media=MediaRef("audio", Path(), "1.wav"), role="voice")
        >>> lacking((Message("user", (sound,)),), Capabilities(accepts=frozenset({"image"})))
        'the model takes no audio (voice)'
    """
    parts = parts_of(conversation)
    tools = dict.fromkeys(part.role for part in parts if part.kind in ("tool", "call"))
    lacks = [f"the model has no tool {name}" for name in tools if name not in capabilities.tools]
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

    What goes first are the modalities that the model does not take, and the media that `excess`
    names; then, where there are more pictures than it takes, screenshots of the history, then
    frames of clips, evenly, and last of all other pictures from the first on. The last picture,
    which is the current screen, always stays.
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
    history = [number for number in spare if parts[number].role.startswith(HISTORY)]
    others = [number for number in spare if not parts[number].role.startswith(HISTORY)]

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


def parts_of(conversation: Conversation) -> list[Part]:
    """Return the parts of all messages, in order."""
    return [part for message in conversation for part in message.parts]


def _untaken(part: Part, capabilities: Capabilities) -> bool:
    return part.media is not None and part.media.kind not in capabilities.accepts


def _pictures(
    parts: Sequence[Part], capabilities: Capabilities, dropped: Container[int]
) -> tuple[list[int], list[int]]:
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
