"""The server of Baichuan-Omni-1.5: a multipart form with one file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from omnidata.adapters.capabilities import RenderedMessage, RenderedPart
from omnidata.adapters.flat import FlatModel, form, media_of, text_of
from omnidata.types import Completion, GenerationParams

_Form = tuple[str, dict[str, RenderedPart]]


class Baichuan(FlatModel):
    """POST {base} with a text and at most one file: a clip, or an image, or a track.

    The form has no fields for generation settings. The reply is `text`, or `response` in older
    servers, of which a trailing `<|endoftext|>` is cut off, and blanks at both ends.
    """

    wire: ClassVar[str] = "baichuan"
    most: ClassVar[Mapping[str, int]] = {"max_media": 1}
    ours: ClassVar[frozenset[str]] = frozenset(
        {"text_query", "image_file", "video_file", "audio_file"}
    )

    def write(self, messages: Sequence[RenderedMessage]) -> tuple[_Form, int]:
        """The text and the file."""
        text = text_of(messages)
        files = {
            f"{kind}_file": part
            for kind in ("image", "video", "audio")
            for part in media_of(messages, kind)
        }
        return (text, files), len(text) + sum(len(part.data) for part in files.values())

    async def send(self, payload: _Form, params: GenerationParams) -> Completion:
        """One attempt.

        Raises:
            CallError: no answer came.
        """
        text, files = payload
        fields = {"text_query": text, "generate_audio": False, **self.preset.extra_body}
        answer = await self._post(form(fields, files))
        return Completion(text=clean(self._text(answer, "text", "response")))


def clean(text: str) -> str:
    """The reply without the model's mark.

    Examples:
        >>> clean("PRESS_BACK<|endoftext|>")
        'PRESS_BACK'
    """
    return text.strip().removesuffix("<|endoftext|>").strip()
