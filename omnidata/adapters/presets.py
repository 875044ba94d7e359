"""Models as rows of a table: `presets.toml`, and a file of the user's."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from omnidata.adapters import wires
from omnidata.adapters.api import Preset
from omnidata.adapters.keys import check_address
from omnidata.adapters.media_budget import Capabilities, Layout, ReleaseRules
from omnidata.errors import UsageError
from omnidata.files import read_settings
from omnidata.types import GenerationParams, Modality

# What can be said about a model: keys of a row in a table of models, and options given as text.

_Positive = Annotated[int, msgspec.Meta(ge=1)]
_Count = Annotated[int, msgspec.Meta(ge=0)]
Rate = Annotated[int, msgspec.Meta(ge=1000, le=192_000)]
"""Samples per second, in Hz."""


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a model; what is unset has the default of the class that it belongs to.

    Attributes:
        layout: "paper" keeps the parts in the order of the paper, "release" sends what the
            benchmark's own adapter sent.
        extra_body: merged into the request at the top level.

    The others are those of `Capabilities` and `GenerationParams`. A wire format may add its own.
    """

    layout: Layout | UnsetType = UNSET
    accepts: tuple[Modality, ...] | UnsetType = UNSET
    video: Literal["native", "frames"] | UnsetType = UNSET
    frames: _Positive | UnsetType = UNSET
    frame_times: bool | UnsetType = UNSET
    audio: Literal["file", "waveform"] | UnsetType = UNSET
    audio_formats: tuple[str, ...] | UnsetType = UNSET
    audio_rate: Rate | UnsetType | None = UNSET
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

    def set_options(self) -> dict[str, Any]:
        """Return the options that are set, by name."""
        values = msgspec.structs.asdict(self).items()
        return {name: value for name, value in values if value is not UNSET and name not in _KEYS}


def _types(options: type[msgspec.Struct]) -> dict[str, Any]:
    return get_type_hints(options, include_extras=True)


def convert(
    options: Mapping[str, str],
    types: Mapping[str, Any],
    model: str,
    defaults: Mapping[str, Any] = {},
) -> dict[str, Any]:
    """Return options given as text, each with the type that it has.

    A list is separated by commas, `extra_body` is JSON, and `none` is no value.

    Args:
        options: as given with `-M key=value`.
        types: option -> its type.
        model: the noun for messages.
        defaults: of options, for messages.

    Raises:
        UsageError: an option or a value that does not exist.

    Examples:
        >>> convert({"frames": "8", "accepts": "image,audio"}, _types(Options), "this model")
        {'frames': 8, 'accepts': ('image', 'audio')}
    """
    values: dict[str, Any] = {}
    for name, text in options.items():
        where = f"-M {name}={text}"
        if name not in types:
            raise UsageError(
                f'there is no option "{name}" for {model}',
                where=where,
                expected=f"one of {', '.join(types)}",
                remedy="see docs/models.md",
            )
        value: Any = None if text == "none" else text
        if name in ("accepts", "audio_formats"):
            value = [item.strip() for item in text.split(",") if item.strip()]
        try:
            if name == "extra_body":
                value = msgspec.json.decode(text)
            values[name] = msgspec.convert(value, types[name], strict=False)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            words = ", ".join(_words(types[name]))
            expected, remedy = f"one of {words}" if words else "", ""
            if name in defaults:
                default = "none" if defaults[name] is None else f"{defaults[name]}".lower()
                remedy = f"-M {name}={default} is the default"
            raise UsageError(f"{error}", where=where, expected=expected, remedy=remedy) from None
    return values


def _words(hint: Any) -> list[str]:
    if get_origin(hint) is Literal:
        return [str(word) for word in get_args(hint)]
    return [word for argument in get_args(hint) for word in _words(argument)]


MODELS_ENV = "OMNIDATA_MODELS"
_BUILT_IN = "presets.toml"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class _Release(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    rules: ReleaseRules = ReleaseRules()


class Row(Options, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model of a table.

    Attributes:
        wire: the wire format.
        model: the name that the server knows it by.
        base_url: the server's address.
        base_url_env: the environment variable that may hold another address.
        key_env: the environment variable that holds the key.
        key_optional: whether the server may do without a key.
        dialect: in whose words the model is asked; empty for the tasks' own.
        release: what `layout=release` changes.

    The others are options.
    """

    wire: str
    model: str
    dialect: str = ""
    base_url: str = ""
    base_url_env: str = ""
    key_env: str = ""
    key_optional: bool = False
    release: _Release | None = None


_KEYS = frozenset({"rules", *Row.__struct_fields__}) - {*Options.__struct_fields__}


@cache
def _row_type(wire: str) -> type[Row]:
    """Return the type of the rows of a wire format, which may have its own options."""
    types = _types(wires.wire(wire).options)
    own = [(name, hint | UnsetType, UNSET) for name, hint in types.items()]
    how: dict[str, Any] = {"frozen": True, "kw_only": True, "forbid_unknown_fields": True}
    release = msgspec.defstruct("Release", own, bases=(_Release,), **how)
    fields = [*own, ("release", release | None, None)]
    return cast(type[Row], msgspec.defstruct("Row", fields, bases=(Row,), **how))


def find(
    spec: str,
    options: Mapping[str, str],
    *,
    base_url: str | None = None,
    models: Path | None = None,
) -> Preset | None:
    """Return the model of a SPEC: wire format and model, as in `openai:MODEL`, or a row's name.

    Returns:
        The preset; None if no row has that name.

    Raises:
        UsageError: the file, an option or the address cannot be used.
    """
    row = _generic(spec) or find_row(spec, models)
    if row is None:
        return None
    wire = wires.wire(row.wire)
    typed = convert(options, _types(Options) | _types(wire.options), "this model")
    given, release = row.set_options() | typed, _Release()
    if given.get("layout") == "release":
        if row.release is None:
            raise UsageError(
                f'no released adapter is known for "{spec}"',
                where="-M layout=release",
                expected="layout=paper",
            )
        release = row.release
        given = row.set_options() | release.set_options() | typed
    if "accepts" in given:
        given["accepts"] = frozenset(given["accepts"])
    url = _address(row, base_url, spec)

    def part(names: Collection[str]) -> dict[str, Any]:
        return {name: value for name, value in given.items() if name in names}

    return Preset(
        spec=spec,
        wire=row.wire,
        model=row.model,
        base_url=url,
        key_env=row.key_env,
        key_optional=row.key_optional or (":" in spec and not wire.is_providers_own(url)),
        release=release.rules,
        capabilities=Capabilities(**part(Capabilities.__dataclass_fields__)),
        params=GenerationParams(**part(GenerationParams.__dataclass_fields__)),
        own=wire.own_options(part(wire.options.__struct_fields__), url),
        **part(("layout", "extra_body")),
    )


def table(models: Path | None = None) -> dict[str, Row]:
    """Return the built-in rows and the user's, by name.

    Raises:
        UsageError: the user's file cannot be read; the message names file, row and key.
    """
    built_in = {name: _row(name, value, _BUILT_IN) for name, value in _read_built_in().items()}
    return built_in | _own(models)


def find_row(name: str, models: Path | None = None) -> Row | None:
    """Return the row of a name; None if there is none.

    Of the built-in rows only that one is converted: others import their wire formats.

    Raises:
        UsageError: as `table`.
    """
    if row := _own(models).get(name):
        return row
    if not _NAME.fullmatch(name) or name not in _read_built_in():
        return None
    return _row(name, _read_built_in()[name], _BUILT_IN)


@cache
def _read_built_in() -> dict[str, Any]:
    return _parse((files("omnidata.adapters") / _BUILT_IN).read_text(encoding="utf-8"), _BUILT_IN)


def _own(models: Path | None) -> dict[str, Row]:
    path = models or (Path(os.environ[MODELS_ENV]) if os.environ.get(MODELS_ENV) else None)
    if path is None:
        return {}
    rows = {
        name: _row(name, value, str(path)) for name, value in _parse(_read(path), str(path)).items()
    }
    for name in sorted(rows.keys() & _read_built_in().keys()):
        raise UsageError(
            "there is a built-in model of that name",
            where=f"{path}: [{name}]",
            remedy="give the row another name",
        )
    return rows


def _generic(spec: str) -> Row | None:
    kind, _, model = spec.partition(":")
    row = wires.wire(kind).spec_row if kind in wires.names() else {}
    if not row or not model:
        return None
    return msgspec.convert({**row, "wire": kind, "model": model}, _row_type(kind))


def _address(row: Row, base_url: str | None, spec: str) -> str:
    if base_url is not None:
        return check_address(base_url, "--base-url")
    if row.base_url_env and os.environ.get(row.base_url_env):
        return check_address(os.environ[row.base_url_env], f"${row.base_url_env}")
    wire = wires.wire(row.wire)
    if row.base_url or not wire.needs_address:
        return row.base_url.rstrip("/")
    usual = wire.spec_row.get("base_url")
    if usual and not row.base_url_env:
        return str(usual)
    also = f", or set {row.base_url_env}" if row.base_url_env else ""
    raise UsageError(
        "the address of the model's server is unknown",
        where=f"--model {spec}",
        remedy=f"use --base-url http://HOST:PORT{also}",
    )


def _parse(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of too many digits is no TOML error
        raise UsageError(f"{error}", where=file, expected="a TOML file of models") from None


def _row(name: str, value: object, file: str) -> Row:
    where = f"{file}: [{name}]"
    if not _NAME.fullmatch(name):
        raise UsageError(
            "a model cannot have that name",
            where=where,
            expected="letters, digits, dots, hyphens and underscores",
        )
    wire = value.get("wire") if isinstance(value, dict) else None
    if isinstance(wire, str) and wire not in wires.names():
        raise UsageError(
            f'there is no wire format "{wire}"',
            where=f"{where} wire",
            expected=f"one of {', '.join(wires.names())}",
            remedy="see docs/models.md",
        )
    kind = _row_type(wire) if isinstance(wire, str) else Row
    try:
        row = msgspec.convert(_without_none(value), kind)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        place = f"{where} {path.strip('.`')}".rstrip()
        expected = ""
        if unknown := re.fullmatch(r"Object contains unknown field `(.*)`", what):
            for other in wires.names():
                if unknown[1] in wires.wire(other).options.__struct_fields__:
                    what = f'only wire = "{other}" has that option'
                    place = f"{where} {unknown[1]}"
            expected = f"one of {', '.join(kind.__struct_fields__)}"
        remedy = "see docs/models.md"
        raise UsageError(what, where=place, expected=expected, remedy=remedy) from None
    if row.base_url:
        check_address(row.base_url, f"{where} base_url")
    return row


def _without_none(row: object) -> object:
    """Replace "none" by None, which TOML lacks; `-M` does the same."""
    if not isinstance(row, dict):
        return row
    changed = {name: None if value == "none" else value for name, value in row.items()}
    if "release" in changed:
        changed["release"] = _without_none(changed["release"])
    return changed


def _read(path: Path) -> str:
    try:
        return read_settings(path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else reason
        raise UsageError(
            f"the models cannot be read: {reason}", where=str(path), expected="a TOML file"
        ) from None
