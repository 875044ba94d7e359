"""Models as rows of a table: `presets.toml`, and a file of the user's."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from omnidata.adapters.keys import check_address, is_openai
from omnidata.adapters.media_budget import Capabilities, Layout, ReleaseRules
from omnidata.adapters.wires import WIRES, WireName
from omnidata.errors import UsageError
from omnidata.files import read_settings
from omnidata.types import GenerationParams, Modality

# What can be said about a model: keys of a row in a table of models, and options given as text.

AudioPart = Literal["input_audio", "audio_url"]
TokenLimit = Literal["max_completion_tokens", "max_tokens"]
_Positive = Annotated[int, msgspec.Meta(ge=1)]
_Count = Annotated[int, msgspec.Meta(ge=0)]
Rate = Annotated[int, msgspec.Meta(ge=1000, le=192_000)]
"""Samples per second, in Hz."""

OF_WIRE: Mapping[str, WireName] = {
    option: name for name, wire in WIRES.items() for option in wire.options
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
    audio_part: AudioPart | UnsetType = UNSET
    token_limit: TokenLimit | UnsetType = UNSET
    api_version: str | UnsetType = UNSET
    fps: Annotated[float, msgspec.Meta(gt=0, le=240)] | UnsetType | None = UNSET
    inline_limit_mb: Annotated[float, msgspec.Meta(ge=0, le=1e6)] | UnsetType = UNSET

    def set_options(self) -> dict[str, Any]:
        """Return the options that are set, by name."""
        values = {name: getattr(self, name) for name in Options.__struct_fields__}
        return {name: value for name, value in values.items() if value is not UNSET}


_TYPES = get_type_hints(Options, include_extras=True)


def parse(options: Mapping[str, str], wire: str) -> dict[str, Any]:
    """Return the options given as `-M key=value`, each with the type that it has.

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
        raise UsageError(f"{error}", where=where, expected=allowed_words(_TYPES[name])) from None


def allowed_words(hint: Any) -> str:
    """Return the words that an option may be: `one of image, video`; empty for any text."""
    words = _words(hint)
    return f"one of {', '.join(words)}" if words else ""


def _words(hint: Any) -> list[str]:
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


MODELS_ENV = "OMNIDATA_MODELS"
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

    wire: WireName
    model: str
    dialect: str = ""
    base_url: str = ""
    base_url_env: str = ""
    key_env: str = ""
    key_optional: bool = False
    release: _Release | None = None


class Preset(msgspec.Struct, frozen=True, kw_only=True):
    """A model, ready to be asked: its row, the options of the command line, and the defaults.

    Attributes:
        spec: the SPEC that names it.
        wire: the wire format.
        model: the name that the server knows it by.
        base_url: the server's address without a slash at the end; empty for a wire format's own.
        key_env: the environment variable that holds the key; empty if none does.
        key_optional: whether the server may do without a key.
        layout: "paper", or "release" for what the benchmark's own adapter sent.
        release: the rules by which `layout=release` rearranges messages.
        extra_body: merged into the request at the top level.
        capabilities: what it takes.
        params: how it decodes unless the caller says otherwise.
        audio_part, token_limit, api_version, fps, inline_limit_mb: see `Options`.
    """

    spec: str
    wire: WireName
    model: str
    base_url: str = ""
    key_env: str = ""
    key_optional: bool = False
    layout: Layout = "paper"
    release: ReleaseRules = ReleaseRules()
    extra_body: dict[str, Any] = {}
    capabilities: Capabilities = Capabilities()
    params: GenerationParams = GenerationParams()
    audio_part: AudioPart = "input_audio"
    token_limit: TokenLimit = "max_tokens"
    api_version: str = ""
    fps: float | None = None
    inline_limit_mb: float = 20

    @property
    def asked(self) -> dict[str, Any]:
        """Of the settings those that the content of a rendered conversation does not show."""
        names = ["wire", "model", "base_url", "layout", "extra_body"]
        names += [name for name, wire in OF_WIRE.items() if wire == self.wire]
        asked: dict[str, Any] = {name: _json(getattr(self, name)) for name in names}
        return asked | ({"release": _json(self.release)} if self.layout == "release" else {})

    @property
    def settings(self) -> dict[str, Any]:
        """All that answers depend on beside the generation settings, as JSON values."""
        return self.asked | {"capabilities": _json(self.capabilities)}


def find(
    spec: str,
    options: Mapping[str, str],
    *,
    base_url: str | None = None,
    models: Path | None = None,
) -> Preset | None:
    """Return the model of a SPEC: wire format and model, as in `openai:MODEL`, or a row's name.

    Args:
        spec: the SPEC.
        options: as given with `-M key=value`.
        base_url: the server's address, in place of the row's.
        models: a file of the user's own rows; the one that `OMNIDATA_MODELS` names if None.

    Returns:
        The preset; None if no row has that name.

    Raises:
        UsageError: the file, an option or the address cannot be used.
    """
    row = _generic(spec) or table(models).get(spec)
    if row is None:
        return None
    given = parse(options, row.wire)
    layout = given.get("layout", row.set_options().get("layout", "paper"))
    if layout == "release" and row.release is None:
        raise UsageError(
            f'no released adapter is known for "{spec}"',
            where="-M layout=release",
            expected="layout=paper",
        )
    release = row.release if layout == "release" and row.release else _Release()
    capabilities, params, own = split(row.set_options() | release.set_options() | given)
    url = _address(row, base_url, spec)
    own.setdefault("token_limit", _token_limit(url))
    return Preset(
        spec=spec,
        wire=row.wire,
        model=row.model,
        base_url=url,
        key_env=row.key_env,
        key_optional=row.key_optional
        or (spec.startswith(("openai:", "openai-responses:")) and not is_openai(url)),
        release=release.rules,
        capabilities=capabilities,
        params=params,
        **own,
    )


def table(models: Path | None = None) -> dict[str, Row]:
    """Return the built-in rows and the user's, by name.

    Raises:
        UsageError: the user's file cannot be read; the message names file, row and key.
    """
    built_in = files("omnidata.adapters") / "presets.toml"
    rows = _rows(built_in.read_text(encoding="utf-8"), "presets.toml")
    path = models or (Path(os.environ[MODELS_ENV]) if os.environ.get(MODELS_ENV) else None)
    if path is None:
        return rows
    own = _rows(_read(path), str(path))
    for name in sorted(own.keys() & rows.keys()):
        raise UsageError(
            "there is a built-in model of that name",
            where=f"{path}: [{name}]",
            remedy="give the row another name",
        )
    return rows | own


def _generic(spec: str) -> Row | None:
    kind, _, model = spec.partition(":")
    row = next((wire.row for name, wire in WIRES.items() if name == kind), {})
    return msgspec.convert({**row, "wire": kind, "model": model}, Row) if row and model else None


def _address(row: Row, base_url: str | None, spec: str) -> str:
    if base_url is not None:
        return check_address(base_url, "--base-url")
    if row.base_url_env and os.environ.get(row.base_url_env):
        return check_address(os.environ[row.base_url_env], f"${row.base_url_env}")
    if row.base_url or row.wire == "gemini":
        return row.base_url.rstrip("/")
    usual = WIRES[row.wire].row.get("base_url")
    if usual and not row.base_url_env:
        return str(usual)
    also = f", or set {row.base_url_env}" if row.base_url_env else ""
    raise UsageError(
        "the address of the model's server is unknown",
        where=f"--model {spec}",
        remedy=f"use --base-url http://HOST:PORT{also}",
    )


def _token_limit(url: str) -> TokenLimit:
    """Return the field of the token limit.

    Newer OpenAI models take only the new field, many servers only the old one; Ollama and llama-
    cpp-python accept `max_completion_tokens` and ignore it.
    """
    return "max_completion_tokens" if is_openai(url) else "max_tokens"


def _rows(text: str, file: str) -> dict[str, Row]:
    try:
        parsed = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of too many digits is no TOML error
        raise UsageError(f"{error}", where=file, expected="a TOML file of models") from None
    return {name: _row(name, value, file) for name, value in parsed.items()}


def _row(name: str, value: object, file: str) -> Row:
    where = f"{file}: [{name}]"
    if not _NAME.fullmatch(name):
        raise UsageError(
            "a model cannot have that name",
            where=where,
            expected="letters, digits, dots, hyphens and underscores",
        )
    try:
        row = msgspec.convert(_without_none(value), Row)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        raise UsageError(
            what,
            where=f"{where} {path.strip('.`')}".rstrip(),
            expected=_allowed_values(what, path),
            remedy="see docs/models.md",
        ) from None
    for option, wire in OF_WIRE.items():
        if option in row.set_options() and wire != row.wire:
            raise UsageError(f'only wire = "{wire}" has that option', where=f"{where} {option}")
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


def _allowed_values(what: str, path: str) -> str:
    if "unknown field" in what:
        return f"one of {', '.join(Row.__struct_fields__)}"
    words = get_args(WireName) if path.startswith(".wire") else ()
    return f"one of {', '.join(words)}" if words else ""


def _read(path: Path) -> str:
    try:
        return read_settings(path)
    except (OSError, ValueError) as error:
        not_text = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        reason = error.strerror if isinstance(error, OSError) else not_text
        raise UsageError(
            f"the models cannot be read: {reason}", where=str(path), expected="a TOML file"
        ) from None


def _json(value: Any) -> Any:
    if isinstance(value, Capabilities):
        fields = {name: getattr(value, name) for name in Capabilities.__dataclass_fields__}
        value = fields | {"accepts": sorted(value.accepts)}
    return msgspec.json.decode(msgspec.json.encode(value))
