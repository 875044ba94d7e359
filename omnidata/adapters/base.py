"""What every model has unless it says otherwise."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from omnidata import media
from omnidata.types import (
    Completion,
    Conversation,
    GenerationParams,
    Modality,
    Prepared,
    Request,
)


def untaken(conversation: Conversation, accepts: Collection[Modality] | None) -> str:
    """What of a conversation's media a model does not take, in a sentence; empty if nothing.

    Args:
        conversation: the prompt.
        accepts: see `Model`.
    """
    kinds = dict.fromkeys(
        part.media.kind for message in conversation for part in message.parts if part.media
    )
    if accepts is None or kinds.keys() <= set(accepts):
        return ""
    takes = ", ".join(sorted(accepts)) or "no media"
    return f"the prompt has {', '.join(kinds)}, and the model accepts {takes}"


class Model(ABC):
    """A model with the defaults; a new one defines `name` and `generate`.

    Attributes:
        name: the SPEC that names it.
        settings: what its answers depend on beside the name, as JSON values; never a key.
        params: how it decodes unless the caller says otherwise.
        accepts: the modalities that it takes: prompts with others are refused before the first
            request. None looks at no prompt, as baselines do.
        max_batch: how many requests one `generate` takes, 1 or more.
        concurrency: how many calls of `generate` may be open at a time, 1 or more.
        timeout_s: seconds after which a call has failed, more than 0; None = never.

    Examples:
        >>> class Echo(Model):
        ...     name = "echo"
        ...     async def generate(self, batch, params):
        ...         return [Completion(text=item.request.sample_id) for item in batch]
        >>> Echo().max_batch
        1
    """

    name: str
    settings: Mapping[str, Any] = {}
    params: GenerationParams = GenerationParams()
    accepts: Collection[Modality] | None = frozenset()
    max_batch: int = 1
    concurrency: int = 1
    timeout_s: float | None = None

    def unsupported_reason(self, conversation: Conversation) -> str:
        """Why the model cannot take the whole conversation; this one never refuses."""
        return ""

    def prepare(self, request: Request) -> Prepared:
        """Check that the media which the model takes can be opened.

        Raises:
            MediaError: one cannot.
        """
        for message in request.conversation:
            for part in message.parts:
                if part.media and self.accepts and part.media.kind in self.accepts:
                    media.check(part.media)
        return Prepared(request)

    @abstractmethod
    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> Sequence[Completion]:
        """Answer a batch, in order, in one attempt.

        Raises:
            CallError: no answer came.
        """

    async def close(self) -> None:  # noqa: B027 - what most models have, not a gap to fill
        """Nothing is open."""

    def run_metadata(self) -> Mapping[str, Any]:
        """Nothing is known but what the engine measures."""
        return {}


# What a model can take, and what one turn looks like once it fits.

ALL: frozenset[Modality] = frozenset({"image", "video", "audio"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a model takes and in which form it is sent.

    Attributes:
        accepts: the modalities.
        video: "native" sends the clip's own bytes, "frames" some of its frames as pictures.
        frames: how many frames, evenly spread from the first to the last.
        frame_times: whether a line of text before each frame says when it is shown.
        audio: "file" sends the track's own bytes where the model takes its format, "waveform"
            always a 16-bit mono WAV file of 16 kHz.
        audio_formats: the formats of files that it takes, e.g. "wav".
        max_images: how many pictures one request may hold, frames included; None = any number.
        max_videos, max_audios: how many whole clips and how many tracks; None = any number.
        max_media: how many media of all kinds one request may hold, frames included; None = any
            number.
        image_size: the longest side of a picture in pixels; larger ones are made smaller, in
            proportion. None = as they are.
        degrade: leave out what the model cannot take, and say so in the receipt.
    """

    accepts: frozenset[Modality] = ALL
    video: Literal["native", "frames"] = "frames"
    frames: int = 4
    frame_times: bool = True
    audio: Literal["file", "waveform"] = "file"
    audio_formats: tuple[str, ...] = ("wav", "mp3")
    max_images: int | None = None
    max_videos: int | None = None
    max_audios: int | None = None
    max_media: int | None = None
    image_size: int | None = None
    degrade: bool = False


@dataclass(frozen=True, slots=True)
class RenderedPart:
    """A text, or a medium in the form in which it is sent.

    Attributes:
        kind: "text" or the modality; frames of a clip are "image".
        text: the text; empty for media.
        data: a file's bytes; empty for text.
        mime: what the bytes are, e.g. "image/png".
        role: the medium's role in the step.
        sha256: of `data`, in hexadecimal.
    """

    kind: Literal["text", "image", "video", "audio"]
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
