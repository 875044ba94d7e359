"""The option that lets data lead outside, the same for every verb that reads data."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from omnidata.cli import terminal

_NAME = "media_root"
_HINT = Annotated[
    list[Path],
    typer.Option(
        "--media-root",
        metavar="FOLDER",
        help="Links and linked repositories may lead there, outside DATA (repeatable).",
        default_factory=list,
        show_default=False,
    ),
]


def reading_data(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb that reads data the option `--media-root`.

    Raises:
        UsageError: when called, a folder is none.
    """
    hints = get_type_hints(verb, include_extras=True) | {_NAME: _HINT}
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[parameter.name])
        for parameter in inspect.signature(verb).parameters.values()
    ]
    parameters.append(inspect.Parameter(_NAME, inspect.Parameter.KEYWORD_ONLY, annotation=_HINT))

    @wraps(verb)
    def taking_roots(**given: Any) -> None:
        from omnidata.files import following

        roots: list[Path] = given.pop(_NAME)
        with following(roots):
            if roots:
                told = ", ".join(str(root.resolve()) for root in roots)
                terminal.note(f"files outside the data may be opened below {told}")
            verb(**given)

    taking_roots.__annotations__ = hints
    vars(taking_roots)["__signature__"] = inspect.Signature(parameters)
    return taking_roots
