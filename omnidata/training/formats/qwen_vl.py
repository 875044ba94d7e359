"""Qwen's qwen-vl-finetune (`README`, `data_processor`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from omnidata.training.formats.base import Messages, Role
from omnidata.types import Modality


class QwenVl(Messages):
    """Questions and answers; the trainer takes every author but "human" for the model."""

    name = "qwen-vl"
    holds = frozenset({"image", "video"})
    turns, role, content = "conversations", "from", "value"
    authors: ClassVar[Mapping[Role, str]] = {"system": "human", "user": "human", "assistant": "gpt"}
    columns: ClassVar[Mapping[Modality, str]] = {"image": "image", "video": "video"}
    has_empty = False
