"""Token counts, as APIs name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnidata.adapters.counts import in_snake_case

_INPUT = ("prompt_tokens", "input_tokens", "prompt_token_count")
_OUTPUT = ("completion_tokens", "output_tokens", "candidates_token_count")
_INPUT_DETAILS = ("prompt_tokens_details", "input_tokens_details")


@dataclass(frozen=True, slots=True)
class Tokens:
    """Token counts of one or more answers.

    Attributes:
        input: all tokens of the prompt; the next four are parts of it.
        cached: those that the server had kept from an earlier request.
        image, audio, video: those of a modality, where the server tells.
        output: tokens of the answer, thoughts included.
    """

    input: int = 0
    cached: int = 0
    image: int = 0
    audio: int = 0
    video: int = 0
    output: int = 0

    @classmethod
    def of(cls, usage: Mapping[str, Any]) -> Tokens:
        """Read the usage of one answer; what it does not say is 0.

        OpenAI's names (Chat Completions and Responses) and Gemini's are understood, in snake case
        and in camel case. Gemini counts thoughts beside the answer, OpenAI within it.

        Examples:
            >>> Tokens.of({"prompt_tokens": 9, "completion_tokens": 2,
            ...            "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 3}})
            Tokens(input=9, cached=4, image=0, audio=3, video=0, output=2)
            >>> Tokens.of({"promptTokenCount": 9, "candidatesTokenCount": 2,
            ...            "thoughtsTokenCount": 5,
            ...            "promptTokensDetails": [{"modality": "IMAGE", "tokenCount": 8}]})
            Tokens(input=9, cached=0, image=8, audio=0, video=0, output=7)
        """
        if not usage:
            return cls()
        said = in_snake_case(usage)
        parts = _parts(said)
        return cls(
            input=_first(said, _INPUT) + _count(said.get("tool_use_prompt_token_count")),
            cached=parts.get("cached", 0) + _count(said.get("cached_content_token_count")),
            image=parts.get("image", 0),
            audio=parts.get("audio", 0),
            video=parts.get("video", 0),
            output=_first(said, _OUTPUT) + _count(said.get("thoughts_token_count")),
        )

    def __add__(self, other: Tokens) -> Tokens:
        names = Tokens.__slots__
        return Tokens(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @property
    def total(self) -> int:
        """Of input and output."""
        return self.input + self.output


def _parts(said: Mapping[str, Any]) -> dict[str, int]:
    """Tokens of the prompt by modality, and those "cached"."""
    found: dict[str, int] = {}
    for name in _INPUT_DETAILS:
        details = said.get(name)
        if isinstance(details, Mapping):
            found = {key.removesuffix("_tokens"): _count(value) for key, value in details.items()}
        elif isinstance(details, list):
            for item in details:
                if isinstance(item, Mapping):
                    modality = str(item.get("modality")).lower().rpartition(".")[2]
                    found[modality] = found.get(modality, 0) + _count(item.get("token_count"))
    return found


def _first(said: Mapping[str, Any], names: tuple[str, ...]) -> int:
    return next((_count(said[name]) for name in names if said.get(name) is not None), 0)


def _count(value: Any) -> int:
    """The count; nothing for what no server counts, such as numbers beyond any float."""
    return int(value) if isinstance(value, int | float) and 0 <= value < 2**53 else 0
