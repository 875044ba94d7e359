"""The server of VITA-1.5: a form with a question, and one medium of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from omnidata.adapters.form_api import FormModel


class Vita(FormModel):
    """POST {base}/generate with a question and at most one image, one clip and one track."""

    wire: ClassVar[str] = "vita"
    path: ClassVar[str] = "/generate"
    most: ClassVar[Mapping[str, int]] = {"max_images": 1, "max_videos": 1, "max_audios": 1}
    controls: frozenset[str] = frozenset({"temperature"})
    ours: ClassVar[frozenset[str]] = controls | {"question", "image", "video", "audio"}
    text_field = "question"
    file_field = "{}"
    fixed: ClassVar[Mapping[str, Any]] = {
        "model_type": "qwen2p5_instruct",
        "conv_mode": "qwen2p5_instruct",
    }
    replies = ("response",)
    lead = "☜"
    end = "<|im_end|>"
