"""How a verb declares its arguments and options: once, as parameters of a function.

    @verb(reading_data, listing_findings)
    def evaluate(*, task: TaskName, data: Data, steps: ChosenSteps, cluster: Engine) -> bool: ...

A parameter is an option, or stands for a group of options that are one value (`Group`). A block is
a context manager around the verb; its parameters are options of the verb as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from typer.models import ArgumentInfo, ParameterInfo

from omnidata.remote import refuse_url

_Verb = Callable[..., bool | None]
"""A verb; the exit code is 1 if it returns true."""
_Block = Callable[..., AbstractContextManager[None]]


def argument(help: str, metavar: str, **settings: Any) -> Any:
    """Return an argument, as a parameter's default or in `Annotated`."""
    return typer.Argument(metavar=metavar, help=help, **settings)


def option(
    help: str, metavar: str | None = None, *, name: str = "", default: Any = None, **settings: Any
) -> Any:
    """Return an option as a parameter's default.

    Args:
        help: its text.
        metavar: of its value; by default the type's.
        name: with dashes; by default the parameter's.
        default: its value if it is not given; `...` if it has to be, and in `Annotated`.
        settings: as of `typer.Option`.
    """
    return typer.Option(default, *filter(None, [name]), metavar=metavar, help=help, **settings)


def flag(help: str, name: str, *, default: Any = False) -> Any:
    """Return an option without a value."""
    return option(help, name=name, default=default)


def declaration(help: str, metavar: str | None = None, **settings: Any) -> Any:
    """Return an option for `Annotated`, where the parameter has the default, or none."""
    return option(help, metavar, default=..., **settings)


def repeatable(help: str, metavar: str, *, name: str = "") -> Any:
    """Return an option that may be given more than once, as a parameter's default."""
    return option(help, metavar, name=name, default=[], show_default=False)


@dataclass(frozen=True, slots=True)
class Group:
    """Options that are one value for a verb: `steps: Annotated[Steps, Group(make)]`.

    Attributes:
        make: returns the value; its parameters are the options. The verb may declare one of them
            itself, to describe it in its own words, and has its value too.
    """

    make: Callable[..., Any]


def verb(*blocks: _Block) -> Callable[[_Verb], _Verb]:
    """Return a decorator that makes a function a verb of the command line.

    Options of KEY=VALUE pairs (`Mapping[str, str]`) are parsed, and URLs refused in place of paths.

    Args:
        blocks: context managers that the verb runs in, the outer first.

    Raises:
        UsageError: when called, a path is a URL, or an option is no KEY=VALUE.
    """

    def declare(function: _Verb) -> _Verb:
        own = _parameters(function)
        groups = {name: group for name, each in own.items() if (group := _group_of(each))}
        options = _options(own, groups, blocks)

        @wraps(function)
        def call(**given: Any) -> bool | None:
            given = {name: _read(options[name], value) for name, value in given.items()}
            with ExitStack() as stack:
                for block in blocks:
                    stack.enter_context(block(**_values_for(block, given)))
                made = {
                    name: group.make(**_values_for(group.make, given))
                    for name, group in groups.items()
                }
                return function(**{name: (given | made)[name] for name in own})

        shown = [_for_typer(each) for each in options.values()]
        call.__annotations__ = {each.name: each.annotation for each in shown}
        vars(call)["__signature__"] = inspect.Signature(shown)
        return call

    return declare


def _options(
    own: Mapping[str, inspect.Parameter], groups: Mapping[str, Group], blocks: Iterable[_Block]
) -> dict[str, inspect.Parameter]:
    """Return the options of a verb in order: its own, groups in their places, then the blocks'."""
    options: dict[str, inspect.Parameter] = {}
    for name, each in own.items():
        parts = _parameters(groups[name].make) if name in groups else {name: each}
        options |= {part: parts[part] for part in parts if part == name or part not in own}
    for block in blocks:
        options |= _parameters(block)
    return options


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    return {**inspect.signature(function, eval_str=True).parameters}


def _values_for(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: given[name] for name in inspect.signature(function).parameters}


def _metadata(parameter: inspect.Parameter) -> Iterable[Any]:
    return (parameter.default, *getattr(parameter.annotation, "__metadata__", ()))


def _group_of(parameter: inspect.Parameter) -> Group | None:
    return next((each for each in _metadata(parameter) if isinstance(each, Group)), None)


def _is_mapping(parameter: inspect.Parameter) -> bool:
    hint = parameter.annotation
    hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return get_origin(hint) is Mapping


def _read(parameter: inspect.Parameter, value: Any) -> Any:
    if _is_mapping(parameter):
        from omnidata.tasks.given_options import parse

        return parse(value, _name(parameter))
    for path in value if isinstance(value, list) else [value]:
        if isinstance(path, Path):  # DATA is a path by now
            refuse_url(path, _name(parameter))
    return value


def _name(parameter: inspect.Parameter) -> str:
    """Return a parameter's name as the user writes it."""
    about = next(each for each in _metadata(parameter) if isinstance(each, ParameterInfo))
    if isinstance(about, ArgumentInfo):
        return about.metavar or parameter.name.upper()
    return next(iter(about.param_decls or ()), f"--{parameter.name.replace('_', '-')}")


def _for_typer(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter of a type that typer knows."""
    hint = parameter.annotation
    if _is_mapping(parameter):
        about = getattr(hint, "__metadata__", None)
        hint = Annotated[list[str], *about] if about else list[str]
    return parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hint)
