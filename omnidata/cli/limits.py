"""The options that bound what a run may use, the same for every verb that asks a model."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

_HINTS: dict[str, Any] = {
    "concurrency": Annotated[
        int | None, typer.Option(help="Requests in flight at most; fewer after a refusal.")
    ],
    "rpm": Annotated[float | None, typer.Option(help="Requests per minute at most.")],
    "tpm": Annotated[float | None, typer.Option(help="Tokens per minute at most.")],
    "timeout": Annotated[
        float | None, typer.Option(metavar="SECONDS", help="One attempt may take so long.")
    ],
    "attempts": Annotated[int, typer.Option(help="One request is sent so often at most.")],
    "max_cost": Annotated[
        float | None, typer.Option(help="Stop before the run costs more; needs --prices.")
    ],
    "max_tokens": Annotated[int | None, typer.Option(help="Stop before the run uses more tokens.")],
    "prices": Annotated[
        Path | None, typer.Option(metavar="FILE", help="What models cost (docs/evaluate.md).")
    ],
    "cache": Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep answers in this database and use them."),
    ],
}
_FIELDS = {"rpm": "requests_per_minute", "tpm": "tokens_per_minute", "timeout": "timeout_s"}
_DEFAULTS = {"attempts": 6}


def limited(verb: Callable[..., None]) -> Callable[..., None]:
    """Give a verb an option for each limit in place of its parameter `limits`.

    Args:
        verb: takes `limits`, an `omnidata.run.limits.Limits`, by keyword only.

    Raises:
        UsageError: when called, a limit lets nothing through.
    """
    verb.__annotations__.pop("limits")  # its class is imported when the verb runs
    hints = get_type_hints(verb, include_extras=True) | _HINTS
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(verb).parameters.values():
        if parameter.name != "limits":
            parameters.append(parameter.replace(annotation=hints[parameter.name]))
            continue
        for name, hint in _HINTS.items():
            default = _DEFAULTS.get(name)
            option = inspect.Parameter(name, parameter.kind, default=default, annotation=hint)
            parameters.append(option)

    @wraps(verb)
    def taking_options(**given: Any) -> None:
        from omnidata.run.limits import Limits

        limits = Limits(**{_FIELDS.get(name, name): given.pop(name) for name in _HINTS})
        verb(**given, limits=limits)

    taking_options.__annotations__ = hints
    vars(taking_options)["__signature__"] = inspect.Signature(parameters)
    return taking_options
