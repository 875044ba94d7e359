"""What can be said about a local model with `-M key=value`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from omnidata.errors import UsageError
from omnidata.types import GenerationParams

_Positive = Annotated[int, msgspec.Meta(ge=1)]


class LocalOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a local model.

    Attributes:
        dtype: of the weights; "auto" takes the checkpoint's.
        device_map: where the weights lie, e.g. "auto", "cuda:0", "cpu"; None is "auto" on a machine
            with a GPU.
        attention: the implementation, e.g. "sdpa" or "flash_attention_2"; None leaves it to
            transformers.
        quantization: "8bit" or "4bit" by bitsandbytes; None loads the weights as they are.
        trust_remote_code: whether Python code of the checkpoint may run on this machine.
        batch_size: how many steps one `generate` takes.
        fps: frames per second that are read of a clip, where the model takes video.
        video: "frames" sends clips as pictures also where the model takes video.
        frames, frame_times, max_images, image_size, degrade: as `Capabilities`.
        min_video_pixels, max_video_pixels: of one frame, as the processor scales it; None leaves
            them to the checkpoint's processor.
        audio_in_video: interleave a step's sound with its clip instead of sending it beside it.
        temperature, max_new_tokens, seed: as `GenerationParams`.
    """

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device_map: str | None = None
    attention: str | None = None
    quantization: Literal["8bit", "4bit"] | None = None
    trust_remote_code: bool = False
    batch_size: _Positive = 1
    fps: Annotated[float, msgspec.Meta(gt=0, le=240)] = 2.0
    video: Literal["native", "frames"] = "native"
    frames: _Positive = 4
    frame_times: bool = True
    max_images: _Positive | None = None
    image_size: _Positive | None = None
    min_video_pixels: _Positive | None = None
    max_video_pixels: _Positive | None = None
    audio_in_video: bool = False
    degrade: bool = False
    temperature: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.0
    max_new_tokens: _Positive = 4096
    seed: int | None = None

    @property
    def params(self) -> GenerationParams:
        """How to decode."""
        return GenerationParams(self.temperature, self.max_new_tokens, self.seed)


_TYPES = get_type_hints(LocalOptions, include_extras=True)


def parse(options: Mapping[str, str]) -> LocalOptions:
    """The options given as `-M key=value`; `none` is no value.

    Raises:
        UsageError: an option or a value that does not exist.

    Examples:
        >>> parse({"batch_size": "8", "dtype": "bfloat16"}).batch_size
        8
    """
    values: dict[str, Any] = {}
    for name, text in options.items():
        where = f"-M {name}={text}"
        if name not in _TYPES:
            raise UsageError(
                f'there is no option "{name}" for a local model',
                where=where,
                expected=f"one of {', '.join(_TYPES)}",
                remedy="docs/models.md says what each does",
            )
        try:
            value = None if text == "none" else text
            values[name] = msgspec.convert(value, _TYPES[name], strict=False)
        except msgspec.ValidationError as error:
            words = _words(_TYPES[name])
            raise UsageError(
                str(error),
                where=where,
                expected=f"one of {', '.join(words)}" if words else "",
                remedy=f"-M {name}={_default(name)} is the default",
            ) from None
    return LocalOptions(**values)


def _words(hint: Any) -> list[str]:
    """The words that a type allows."""
    if get_origin(hint) is Literal:
        return [str(word) for word in get_args(hint)]
    return [word for argument in get_args(hint) for word in _words(argument)]


def _default(name: str) -> str:
    value = getattr(LocalOptions(), name)
    return "none" if value is None else str(value).lower()
