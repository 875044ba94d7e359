"""The server of Baichuan-Omni-1.5: a form with a text and one medium."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from omnidata.adapters.form_api import FormModel


class Baichuan(FormModel):
    """POST {base} with a text and at most one file: a clip, or an image, or a track.

    The form has no fields for generation settings. Older servers call the reply `response`.
    """

    wire: ClassVar[str] = "baichuan"
    most: ClassVar[Mapping[str, int]] = {"max_media": 1}
    ours: ClassVar[frozenset[str]] = frozenset(
        {"text_query", "image_file", "video_file", "audio_file"}
    )
    text_field = "text_query"
    file_field = "{}_file"
    fixed: ClassVar[Mapping[str, Any]] = {"generate_audio": False}
    replies = ("text", "response")
    end = "<|endoftext|>"
