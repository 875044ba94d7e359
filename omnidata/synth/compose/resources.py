"""Environmental resources: what a subtask needs and leaves (OmniBench, appendix B.3, figure 10).

A resource is a category, e.g. `img_path`, and an actual value, e.g. `/usr/example.png`. A category
that ends with `_path` is a file, whose value is a parameter; any other is a state, such as
`text_in_clipboard`, which is there or is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Resource = tuple[str, str | None]
"""Category and value; None for a state, and for a file that no parameter names."""

_FILE = "_path"
_ONLY = "path"
_CLIPBOARD = "_in_clipboard"


def is_file(kind: str) -> bool:
    """Whether resources of the category are files, which may exist before a task begins.

    Examples:
        >>> is_file("img_path"), is_file("table_in_clipboard")
        (True, False)
    """
    return kind.endswith(_FILE)


def slot(kind: str) -> str:
    """What resources of the category take turns in; empty where each has its own place.

    There is one clipboard, so a table copied after a text replaces it.

    Examples:
        >>> slot("text_in_clipboard"), slot("xlsx_in_processing")
        ('clipboard', '')
    """
    return "clipboard" if kind.endswith(_CLIPBOARD) else ""


def resources(
    kinds: Iterable[str], every: Iterable[str], binding: Mapping[str, Any]
) -> tuple[Resource, ...]:
    """The resources of some categories under a binding, each once.

    The value of a file is the parameter of the category's name. The examples that the authors gave
    their reviewers also have a parameter `path`: it is the one file that no other parameter names.

    Args:
        kinds: the subtask's inputs, or its outputs.
        every: its inputs and its outputs.
        binding: a value for every parameter.

    Examples:
        >>> resources(["ppt_path"], ["ppt_path"], {"path": "./a.ppt", "name": "Emily"})
        (('ppt_path', './a.ppt'),)
        >>> resources(["text_in_clipboard"], ["text_in_clipboard"], {"path": "./Emily.txt"})
        (('text_in_clipboard', None),)
    """
    unnamed = {kind for kind in every if is_file(kind) and kind not in binding}
    found: dict[Resource, None] = {}
    for kind in kinds:
        value = binding.get(kind) if is_file(kind) else None
        if unnamed == {kind}:
            value = binding.get(_ONLY)
        found[kind, None if value is None else str(value)] = None
    return tuple(found)


def shown(resource: Resource) -> str:
    """A resource in messages.

    Examples:
        >>> shown(("img_path", "./a.png")), shown(("table_in_clipboard", None))
        ("img_path './a.png'", 'table_in_clipboard')
    """
    kind, value = resource
    return kind if value is None else f"{kind} '{value}'"
