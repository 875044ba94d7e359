"""What can be said about a model: keys of a row in a table of models, and options given as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from omnidata.adapters.capabilities import Capabilities
from omnidata.errors import UsageError
from omnidata.types import GenerationParams, Modality

Layout = Literal["paper", "release"]
AudioPart = Literal["input_audio", "audio_url"]
TokenLimit = Literal["max_completion_tokens", "max_tokens"]
_Positive = Annotated[int, msgspec.Meta(ge=1)]
_Count = Annotated[int, msgspec.Meta(ge=0)]

OF_WIRE: Mapping[str, str] = {
    "audio_part": "openai",
    "token_limit": "openai",
    "api_version": "gemini",
    "fps": "gemini",
    "inline_limit_mb": "gemini",
}
"""Options that one wire format alone has."""


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a model; what is unset has the default of the class that it belongs to.

    Attributes:
        layout: "paper" keeps the parts in the order of the paper, "release" sends what the
            benchmark's own adapter sent.
        extra_body: merged into the request at the top level.
        audio_part: the kind of part that carries a track; audio_url is vLLM's.
        token_limit: the field that carries `max_new_tokens`.
        api_version: the version in the path of Google's API.
        fps: frames per second that the server reads from a clip.
        inline_limit_mb: requests above so many megabytes upload their media first.

    The others are those of `Capabilities` and `GenerationParams`.
    """

    layout: Layout | UnsetType = UNSET
    accepts: tuple[Modality, ...] | UnsetType = UNSET
    video: Literal["native", "frames"] | UnsetType = UNSET
    frames: _Positive | UnsetType = UNSET
    frame_times: bool | UnsetType = UNSET
    audio: Literal["file", "waveform"] | UnsetType = UNSET
    audio_formats: tuple[str, ...] | UnsetType = UNSET
    max_images: _Count | UnsetType | None = UNSET
    max_videos: _Count | UnsetType | None = UNSET
    max_audios: _Count | UnsetType | None = UNSET
    max_media: _Count | UnsetType | None = UNSET
    image_size: _Positive | UnsetType | None = UNSET
    degrade: bool | UnsetType = UNSET
    temperature: Annotated[float, msgspec.Meta(ge=0, le=100)] | UnsetType | None = UNSET
    max_new_tokens: _Positive | UnsetType | None = UNSET
    seed: int | UnsetType | None = UNSET
    extra_body: dict[str, Any] | UnsetType = UNSET
    audio_part: AudioPart | UnsetType = UNSET
    token_limit: TokenLimit | UnsetType = UNSET
    api_version: str | UnsetType = UNSET
    fps: Annotated[float, msgspec.Meta(gt=0, le=240)] | UnsetType | None = UNSET
    inline_limit_mb: Annotated[float, msgspec.Meta(ge=0, le=1e6)] | UnsetType = UNSET

    def given(self) -> dict[str, Any]:
        """What is set, by name."""
        values = {name: getattr(self, name) for name in Options.__struct_fields__}
        return {name: value for name, value in values.items() if value is not UNSET}


_TYPES = get_type_hints(Options, include_extras=True)


def parse(options: Mapping[str, str], wire: str) -> dict[str, Any]:
    """The options given as `-M key=value`, each with the type that it has.

    A list is separated by commas, `extra_body` is JSON, and `none` is no value.

    Raises:
        UsageError: an option or a value that does not exist.

    Examples:
        >>> parse({"frames": "8", "temperature": "none", "accepts": "image,audio"}, "openai")
        {'frames': 8, 'temperature': None, 'accepts': ('image', 'audio')}
    """
    allowed = [name for name in Options.__struct_fields__ if OF_WIRE.get(name, wire) == wire]
    return {name: _value(name, text, allowed) for name, text in options.items()}


def _value(name: str, text: str, allowed: list[str]) -> Any:
    where = f"-M {name}={text}"
    if name not in allowed:
        raise UsageError(
            f'there is no option "{name}" for this model',
            where=where,
            expected=f"one of {', '.join(allowed)}",
        )
    value: Any = None if text == "none" else text
    if name in ("accepts", "audio_formats"):
        value = [item.strip() for item in text.split(",") if item.strip()]
    try:
        if name == "extra_body":
            value = msgspec.json.decode(text)
        return msgspec.convert(value, _TYPES[name], strict=False)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        words = _words(_TYPES[name])
        raise UsageError(
            f"{error}", where=where, expected=f"one of {', '.join(words)}" if words else ""
        ) from None


def _words(hint: Any) -> list[str]:
    """The words that a type allows."""
    if get_origin(hint) is Literal:
        return [str(word) for word in get_args(hint)]
    return [word for argument in get_args(hint) for word in _words(argument)]


def split(given: Mapping[str, Any]) -> tuple[Capabilities, GenerationParams, dict[str, Any]]:
    """Options by the class that has them; the rest are a preset's own."""
    rest = dict(given)
    if "accepts" in rest:
        rest["accepts"] = frozenset(rest["accepts"])
    groups: list[dict[str, Any]] = []
    for owner in (Capabilities, GenerationParams):
        names = owner.__dataclass_fields__
        groups.append({name: rest.pop(name) for name in list(rest) if name in names})
    return Capabilities(**groups[0]), GenerationParams(**groups[1]), rest
