"""The wire formats, as far as they are known before their libraries are loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

WireName = Literal[
    "openai", "openai-responses", "anthropic", "gemini", "minicpm", "vita", "baichuan"
]


@dataclass(frozen=True, slots=True)
class Wire:
    """A wire format.

    Attributes:
        model: its class, as MODULE:CLASS of this package.
        options: those that no other wire format has.
        row: the row of the model that SPEC NAME:MODEL names, without wire and model; empty if there
            is no such SPEC.
    """

    model: str
    options: tuple[str, ...] = ()
    row: Mapping[str, Any] = field(default_factory=dict)


_OPENAI: Mapping[str, Any] = {
    "base_url": "https://api.openai.com/v1",
    "base_url_env": "OPENAI_BASE_URL",
    "key_env": "OPENAI_API_KEY",
}

WIRES: Final[Mapping[WireName, Wire]] = {
    "openai": Wire("openai_chat:OpenAIChat", ("audio_part", "token_limit"), _OPENAI),
    "openai-responses": Wire(
        "openai_responses:OpenAIResponses", row={**_OPENAI, "accepts": ["image", "video"]}
    ),
    "anthropic": Wire(
        "anthropic_messages:AnthropicMessages",
        row={
            "base_url": "https://api.anthropic.com",
            "base_url_env": "ANTHROPIC_BASE_URL",
            "key_env": "ANTHROPIC_API_KEY",
            "accepts": ["image", "video"],
            "temperature": None,  # the newest version of the API takes none
        },
    ),
    "gemini": Wire(
        "gemini:Gemini",
        ("api_version", "fps", "inline_limit_mb"),
        {
            "base_url_env": "GEMINI_BASE_URL",
            "key_env": "GEMINI_API_KEY",
            "video": "native",
            "audio_formats": ["wav", "mp3", "aiff", "aac", "ogg", "flac"],
            "release": {
                "video": "frames",
                "frames": 4,
                "frame_times": False,
                "rules": {"system": "twice"},
            },
        },
    ),
    "minicpm": Wire("form_api:MiniCPM"),
    "vita": Wire("form_api:Vita"),
    "baichuan": Wire("form_api:Baichuan"),
}
