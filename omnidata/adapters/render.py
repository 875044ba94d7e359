"""A conversation's media in the form in which a model takes them, and the receipt that says so.

Bytes are passed on untouched where nothing has to change. Every medium is read once, from then on
out of memory, and decoded and encoded at most once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from omnidata import jsontext, media
from omnidata.adapters.answers import sendable
from omnidata.adapters.media_budget import Capabilities, Fit, fit, lacking, parts_of
from omnidata.errors import MediaError, UsageError
from omnidata.types import Conversation, MediaRef, Part

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

T = TypeVar("T")
Line = dict[str, Any]
"""What the receipt says of one medium."""


@dataclass(slots=True)
class Turn(Generic[T]):
    """A message whose parts have the form in which a model takes them."""

    role: Literal["system", "user", "assistant"]
    parts: list[T] = field(default_factory=list)


def render_messages(
    conversation: Conversation,
    capabilities: Capabilities,
    text: Callable[[str], T],
    sent: Callable[[Part, MediaRef, int | None, Capabilities], tuple[list[T], Line]],
    tool: Callable[[Part], T] | None = None,
) -> tuple[list[Turn[T]], Line]:
    """Bring every part into the form that a model takes.

    Args:
        conversation: in the order in which the model is to read it.
        capabilities: what the model takes.
        text: makes the form of a text.
        sent: makes the forms of a medium, and says what the receipt is to say of it; the number is
            how many frames of a clip are sent as pictures, None for other media.
        tool: makes the form of a provider's own tool, and of a call of it; None for models that
            have no tool.

    Returns:
        The messages, without empty ones; and the receipt: "parts", in order,
        one for each medium: its role, kind, and why it was "dropped" or what `sent` said; and one
        for each text that has something said `about` it.
        "degraded" lists what is less than the step has, if anything.

    Raises:
        MediaError: a medium that is to be sent is missing, broken or cut short.
        UsageError: the model cannot take the conversation, and `degrade` is off.
    """
    problem = "" if capabilities.degrade else lacking(conversation, capabilities)
    if problem:
        raise UsageError(
            problem,
            expected="a step whose media the model accepts",
            remedy="leave the modality out with -T modalities, or allow it with -M degrade=true",
        )
    parts = parts_of(conversation)
    plan = fit(parts, capabilities)
    turns: list[Turn[T]] = []
    lines: list[Line] = []
    number = 0
    for message in conversation:
        left_out = {
            part.role
            for at, part in enumerate(message.parts, number)
            if part.media and at in plan.dropped
        }
        turn: Turn[T] = Turn(message.role)
        for at, part in enumerate(message.parts, number):
            if part.kind in ("tool", "call"):
                if tool is None or part.role not in capabilities.tools:
                    raise UsageError(
                        "the prompt uses a provider's own tool, which the model does not accept",
                        expected=f"a model that has the tool {part.role}",
                        remedy="drop -T dialect, or use a model of that provider",
                    )
                turn.parts.append(tool(part))
                continue
            if part.media is None:
                # A text with a role is the label of the medium that has it.
                if not part.role or part.role not in left_out:
                    turn.parts.append(text(part.text))
                if part.about:
                    lines.append({"kind": "text", **part.about})
                continue
            line: Line = {"role": part.role, "kind": part.kind}
            lines.append(line)
            if at in plan.dropped:
                line["dropped"] = plan.dropped[at]
            else:
                made, about = sent(part, part.media, plan.frames.get(at), capabilities)
                turn.parts += made
                line |= about
        number += len(message.parts)
        if turn.parts:
            turns.append(turn)
    receipt: Line = {"parts": lines}
    if degraded := _degradations(parts, plan):
        receipt["degraded"] = degraded
    return turns, receipt


def _degradations(parts: Sequence[Part], plan: Fit) -> list[str]:
    reasons = [f"{parts[number].role}: {why}" for number, why in sorted(plan.dropped.items())]
    for number, count in plan.frames.items():
        if 0 < count < plan.wanted:
            role = parts[number].role
            reasons.append(f"{role}: {count} of {plan.wanted} frames; {plan.reason}")
    return reasons


@dataclass(frozen=True, slots=True)
class RenderedPart:
    """A text, or a medium in the form in which it is sent.

    Attributes:
        kind: "text", "tool" and "call" as in `Part`, or the modality; frames of a clip are "image".
        text: the text; empty for media. Of a tool and of a call the JSON text.
        data: a file's bytes; empty for text.
        mime: what the bytes are, e.g. "image/png".
        role: the medium's role in the step; the name of a tool.
        sha256: of `data`, in hexadecimal.
    """

    kind: Literal["text", "image", "video", "audio", "tool", "call"]
    text: str = ""
    data: bytes = b""
    mime: str = ""
    role: str = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class RenderedMessage:
    """One turn, ready for a wire format."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[RenderedPart, ...]


RATE = 16_000
"""Samples per second of a waveform, in Hz, unless `Capabilities.audio_rate` says otherwise."""


def render(
    conversation: Conversation, capabilities: Capabilities
) -> tuple[tuple[RenderedMessage, ...], Line]:
    """Read the media of a conversation and convert them to the form that a model takes.

    Args:
        conversation: in the order in which the model reads it.
        capabilities: the media that the model takes.

    Returns:
        The messages, without empty ones; and the receipt: "parts", in order,
        one for each medium: its role, kind and, unless it was "dropped" (why), "as" ("file",
        "frames" or "waveform"), mime, bytes, sha256 (of frames: one after the other), width and
        height in pixels as sent, seconds of sound or of a clip, the number of frames and times_s,
        when they are shown, in seconds after the first, and the "rate" of samples in Hz where
        `audio_rate` is given. A picture made smaller also has "scale"
        (sent / original) and "original" (width, height). "degraded" lists what is less than the
        step has, if anything.

    Raises:
        MediaError: a medium that is to be sent is missing, broken or cut short.
        UsageError: the model cannot take the conversation, and `degrade` is off.
    """
    turns, receipt = render_messages(conversation, capabilities, _text, _render_medium, _tool)
    return tuple(RenderedMessage(turn.role, tuple(turn.parts)) for turn in turns), receipt


def _text(text: str) -> RenderedPart:
    return RenderedPart("text", text)


def _tool(part: Part) -> RenderedPart:
    return RenderedPart("tool" if part.kind == "tool" else "call", part.text, role=part.role)


def _render_medium(
    part: Part, ref: MediaRef, frames: int | None, capabilities: Capabilities
) -> tuple[list[RenderedPart], Line]:
    if frames is not None:
        return _frames(part.role, media.hold(ref), frames, capabilities)
    if ref.kind == "audio":
        if ref.inline is not None or capabilities.audio == "waveform" or capabilities.audio_rate:
            return _waveform(part.role, ref, capabilities)
        return _track(part.role, media.hold(ref), capabilities)
    held = media.hold(ref)
    about = media.media_info(held)
    size = about.width or 0, about.height or 0
    fitted = part.size or media.within(size, capabilities.image_size)
    if ref.kind == "image" and fitted != size:
        pixels = media.resize(media.image(held).pixels, fitted)
        line: Line = {"scale": max(fitted) / max(size), "original": list(size)}
        data = media.png(pixels)
        return _file(part, data, _hash(data), "image/png", *fitted, **line)
    line = {"seconds": about.seconds} if about.seconds is not None else {}
    return _file(part, held.content, held.sha256, about.mime, *size, **line)


def _file(
    part: Part, data: bytes, digest: str, mime: str, width: int, height: int, **more: Any
) -> tuple[list[RenderedPart], Line]:
    assert part.media
    sent = RenderedPart(part.media.kind, data=data, mime=mime, role=part.role, sha256=digest)
    line = {"as": "file", "mime": mime, "bytes": len(data), "width": width, "height": height}
    return [sent], {**line, **more, "sha256": sent.sha256}


def _frames(
    role: str, clip: media.InMemoryMedia, count: int, capabilities: Capabilities
) -> tuple[list[RenderedPart], Line]:
    decoded = media.frames(clip, num_frames=count)
    count, height, width = decoded.pixels.shape[:3]
    size = media.within((width, height), capabilities.image_size)
    times = (decoded.pts_seconds - decoded.pts_seconds[0]).round(3).tolist()
    sent: list[RenderedPart] = []
    whole, total = hashlib.sha256(), 0
    for time, pixels in zip(times, decoded.pixels, strict=True):
        data = media.png(media.resize(pixels, size))
        whole.update(data)
        total += len(data)
        if capabilities.frame_times:
            sent.append(RenderedPart("text", f"[Video frame at {time:.2f} s]:"))
        sent.append(RenderedPart("image", "", data, "image/png", role, _hash(data)))
    line: Line = {"as": "frames", "mime": "image/png", "bytes": total}
    line |= {"width": size[0], "height": size[1]}
    if size != (width, height):
        line |= {"scale": max(size) / max(width, height), "original": [width, height]}
    return sent, {**line, "frames": count, "times_s": times, "sha256": whole.hexdigest()}


def _track(
    role: str, track: media.InMemoryMedia, capabilities: Capabilities
) -> tuple[list[RenderedPart], Line]:
    """Return the file itself if the model takes its format and it holds only sound."""
    about = media.media_info(track)
    known = about.format in capabilities.audio_formats and not about.pictures
    if not known or (about.format == "wav" and not (about.codec or "").startswith("pcm_")):
        return _waveform(role, track, capabilities)
    data = track.content
    sent = RenderedPart("audio", "", data, about.mime, role, track.sha256)
    line: Line = {"as": "file", "mime": about.mime, "bytes": len(data)}
    if about.seconds is not None:
        line["seconds"] = about.seconds
    return [sent], {**line, "sha256": sent.sha256}


def _waveform(
    role: str, ref: MediaRef, capabilities: Capabilities
) -> tuple[list[RenderedPart], Line]:
    rate = capabilities.audio_rate or RATE
    samples = _samples(ref if ref.inline is not None else media.hold(ref), rate)
    data = media.wav(samples, rate)
    sent = RenderedPart("audio", "", data, "audio/wav", role, _hash(data))
    line = {"as": "waveform", "mime": sent.mime, "bytes": len(data)}
    if capabilities.audio_rate:
        line["rate"] = rate
    return [sent], {**line, "seconds": len(samples) / rate, "sha256": sent.sha256}


def _samples(ref: MediaRef, rate: int) -> npt.NDArray[np.float32]:
    import numpy as np

    samples = media.samples(ref, rate=rate)
    if not np.isfinite(samples).all():
        raise MediaError(
            "some audio samples are not numbers",
            where=media.place(ref),
            expected="samples from -1 to 1",
            remedy="record the step again, or leave it out with --exclude",
        )
    return samples


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def items_of(call: str) -> list[dict[str, Any]]:
    """Return the JSON objects of a tool call, which is a list of them.

    Raises:
        UsageError: the text is no such list.

    Examples:
        >>> items_of('[{"type": "text", "text": "I click."}]')
        [{'type': 'text', 'text': 'I click.'}]
    """
    value = jsontext.decode_utf8(sendable(call).encode())
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return value
    raise UsageError(
        f"an earlier call of a tool cannot be sent: {call!r:.200}",
        expected="a JSON list of objects, as the dialect of the tool writes it",
    )
