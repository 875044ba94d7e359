"""Models: conversations in, completions out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from omnidata.adapters.base import Baseline, Model, Replay
from omnidata.errors import UsageError
from omnidata.plugins import Kind
from omnidata.types import Adapter, Step

if TYPE_CHECKING:
    from omnidata.adapters.api import Preset

if not __name__.startswith("omnidata."):
    raise ImportError("import omnidata.adapters: the top-level name only shows where the code is")

__all__ = ["Model", "forms", "get_adapter"]

PLUGINS = Kind(
    "omnidata.adapters",
    "model",
    (
        *("name", "settings", "params", "accepts", "max_batch", "concurrency", "timeout_s"),
        *("unsupported_reason", "prepare", "generate", "close", "run_metadata"),
    ),
    "omnidata.adapters.Model",
)
"""Models that other distributions bring: entry points of the group `omnidata.adapters`.

Such a name stands for a callable `(model: str, options: Mapping[str, str]) -> Adapter`. SPEC
`NAME:MODEL` calls the one of that name; `model` is empty where the SPEC is `NAME` alone.
"""


class HasBaselines(Protocol):
    """A task with answers without a model."""

    @property
    def baselines(self) -> Sequence[str]:
        """Their names."""

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """Return a baseline: a function from a step to its answer."""


def forms() -> list[str]:
    """Return the forms of the SPECs that name a model, e.g. `openai:MODEL`."""
    from omnidata.adapters import wires

    behind_http = [f"{name}:MODEL" for name in wires.names() if wires.wire(name).spec_row]
    return ["baseline:NAME", "replay:FILE", "hf:PATH", *behind_http, "PRESET", "PLUGIN:MODEL"]


def get_adapter(
    spec: str,
    task: HasBaselines | None,
    steps: Sequence[Step],
    *,
    options: Mapping[str, str] = {},
    base_url: str | None = None,
    key_file: Path | None = None,
    models: Path | None = None,
    asks: bool = True,
) -> Adapter:
    """Return the model that a SPEC names.

    Args:
        spec: one of `forms()`, filled in.
        task: the benchmark, whose baselines have its answers' form; None where there are none.
        steps: the dataset's steps; only baselines look at them.
        options: as given with `-M key=value`.
        base_url: the server's address, in place of the preset's.
        key_file: holds the server's key, in place of the environment.
        models: a TOML file of more presets.
        asks: whether it will be asked; a dry run needs no key.

    Raises:
        UsageError: nothing has that SPEC, or the model has no such option, address or key.
        PredictionError: the file to replay cannot be read.
        PlatformError: a library is missing.
    """
    from omnidata.adapters import presets

    kind, _, rest = spec.partition(":")
    preset = None
    if kind not in ("baseline", "replay", "hf"):
        preset = presets.find(spec, options, base_url=base_url, models=models)
    if preset is not None:
        return _behind_http(preset, key_file, asks)
    for flag, value in (("--base-url", base_url), ("--key-file", key_file)):
        if value is not None:
            raise UsageError(
                "this option is for presets and models of a wire format, e.g. openai:MODEL",
                where=flag,
            )
    if kind == "baseline" and task:
        return Baseline(rest, steps, task.baseline(rest, steps, options))
    if kind == "replay" and rest:
        if options:
            raise UsageError("replay has no options", where=f"-M {next(iter(options))}=...")
        return Replay(Path(rest))
    if kind == "hf" and rest:
        from omnidata.adapters import hf

        return hf.load(rest, options)
    plugin: Adapter | None = PLUGINS.make(kind, rest, options, where=f"--model {spec}")
    if plugin is not None:
        return plugin
    named = [*presets.table(models), *PLUGINS.names()]
    raise UsageError(
        f'no model is called "{spec}"',
        where=f"--model {spec}",
        expected=", ".join(
            [*([f"baseline:{'|'.join(task.baselines)}"] if task else []), *forms()[1:-2], *named]
        ),
        remedy="`omnidata info` lists what is supported",
    )


def asks_nobody(spec: str) -> bool:
    """Return whether a SPEC names a baseline or recorded answers, which cost nothing."""
    return spec.partition(":")[0] in ("baseline", "replay")


def is_light(spec: str) -> bool:
    """Return whether making the model is fast: it loads no weights and no plug-in code."""
    kind = spec.partition(":")[0]
    return kind != "hf" and kind not in PLUGINS.names()


def _behind_http(preset: Preset, key_file: Path | None, asks: bool) -> Adapter:
    from omnidata.adapters import wires
    from omnidata.adapters.keys import Key

    key = Key.find(preset.key_env, key_file)
    if asks and not key and preset.key_env and not preset.key_optional:
        raise UsageError(
            "there is no key",
            where=f"--model {preset.spec}",
            expected=f"the environment variable {preset.key_env}",
            remedy=f"export {preset.key_env}=..., or use --key-file FILE",
        )
    return wires.wire(preset.wire)(preset, key)
