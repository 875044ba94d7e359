"""The server of VITA-1.5: a multipart form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from omnidata.adapters.capabilities import RenderedMessage, RenderedPart
from omnidata.adapters.flat import FlatModel, form, media_of, text_of
from omnidata.types import Completion, GenerationParams

_MODEL = "qwen2p5_instruct"
_Form = tuple[str, dict[str, RenderedPart]]


class Vita(FlatModel):
    """POST {base}/generate with a question and at most one image, one clip and one track.

    `model_type` and `conv_mode` are `qwen2p5_instruct` unless `extra_body` says otherwise. The
    reply is `response`, of which the leading ☜ and the trailing `<|im_end|>` are cut off, and
    blanks at both ends.
    """

    wire: ClassVar[str] = "vita"
    path: ClassVar[str] = "/generate"
    most: ClassVar[Mapping[str, int]] = {"max_images": 1, "max_videos": 1, "max_audios": 1}
    controls: ClassVar[frozenset[str]] = frozenset({"temperature"})
    ours: ClassVar[frozenset[str]] = controls | {"question", "image", "video", "audio"}

    def write(self, messages: Sequence[RenderedMessage]) -> tuple[_Form, int]:
        """The text and the files."""
        text = text_of(messages)
        files = {
            kind: part for kind in ("image", "video", "audio") for part in media_of(messages, kind)
        }
        return (text, files), len(text) + sum(len(part.data) for part in files.values())

    async def send(self, payload: _Form, params: GenerationParams) -> Completion:
        """One attempt.

        Raises:
            CallError: no answer came.
        """
        text, files = payload
        fields: dict[str, Any] = {"question": text, "model_type": _MODEL, "conv_mode": _MODEL}
        if params.temperature is not None:
            fields["temperature"] = f"{params.temperature:g}"
        fields |= self.preset.extra_body
        answer = await self._post(form(fields, files))
        return Completion(text=clean(self._text(answer, "response")))


def clean(text: str) -> str:
    """The reply without the model's marks.

    Examples:
        >>> clean("☜ PRESS_BACK<|im_end|>")
        'PRESS_BACK'
    """
    return text.lstrip("☜").strip().removesuffix("<|im_end|>").strip()
