"""What a server says of its own accounting, as far as it is numbers; nothing else is written down.

A usage is whatever the server likes: huge, deeply nested, or a text that repeats the key.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_NAME = re.compile(r"[A-Za-z]\w{0,63}", re.ASCII)
_MODALITIES = ("text", "image", "audio", "video", "document")
_MOST = 64
"""Names of one usage, and lines of one list; servers have a dozen."""


def counted(usage: object, redact: Callable[[str], str]) -> dict[str, Any]:
    """The numbers of a usage by their names, and those one level below; all others are left out.

    Args:
        usage: as the server has it.
        redact: takes a secret out of a text; a name that holds one is left out.

    Examples:
        >>> counted({"prompt_tokens": 9, "cost": float("nan"), "note": "x"}, str)
        {'prompt_tokens': 9}
        >>> counted({"prompt_tokens_details": [{"modality": "IMAGE", "token_count": 8}]}, str)
        {'prompt_tokens_details': [{'modality': 'IMAGE', 'token_count': 8}]}
    """
    found: dict[str, Any] = {}
    for name, value in _named(usage, redact).items():
        if _is_count(value):
            found[name] = value
        elif isinstance(value, list):
            found[name] = [_numbers(item, redact) for item in value[:_MOST]]
        elif inner := _numbers(value, redact):
            found[name] = inner
    return found


def tokens(usage: Mapping[str, Any]) -> dict[str, int]:
    """Tokens of the prompt by modality, where the server tells.

    Args:
        usage: as `counted` gives it, in OpenAI's names or Gemini's.

    Examples:
        >>> tokens({"prompt_tokens_details": {"image_tokens": 8, "cached_tokens": 2}})
        {'image': 8}
        >>> tokens({"prompt_tokens_details": [{"modality": "IMAGE", "token_count": 8}]})
        {'image': 8}
    """
    details = usage.get("prompt_tokens_details")
    if isinstance(details, list):
        said = {str(item.get("modality")).lower(): item.get("token_count") for item in details}
    elif isinstance(details, Mapping):
        said = {name: details.get(f"{name}_tokens") for name in _MODALITIES}
    else:
        return {}
    return {name: said[name] for name in _MODALITIES if isinstance(said.get(name), int)}


def in_snake_case(value: Any) -> Any:
    """A JSON value with all keys in snake case, as Google's API has them in camel case.

    Examples:
        >>> in_snake_case({"promptTokenCount": 9})
        {'prompt_token_count': 9}
    """
    if isinstance(value, Mapping):
        return {
            re.sub(r"(?=[A-Z])", "_", str(name)).lower(): in_snake_case(item)
            for name, item in value.items()
        }
    return [in_snake_case(item) for item in value] if isinstance(value, list) else value


def _numbers(value: object, redact: Callable[[str], str]) -> dict[str, Any]:
    """The numbers of an object, and the modality that they are of."""
    return {
        name: item
        for name, item in _named(value, redact).items()
        if _is_count(item) or (name == "modality" and str(item).lower() in _MODALITIES)
    }


def _named(value: object, redact: Callable[[str], str]) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        return {}
    kept = [
        (name, item)
        for name, item in value.items()
        if _NAME.fullmatch(str(name)) and redact(name) == name
    ]
    return dict(kept[:_MOST])


def _is_count(value: object) -> bool:
    # Compared, not converted: there are whole numbers in JSON that no float can hold.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 2**53
