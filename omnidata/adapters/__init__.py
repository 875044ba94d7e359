"""Models: conversations in, completions out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from omnidata.errors import UsageError
from omnidata.types import Adapter, Step, Task

if not __name__.startswith("omnidata."):
    raise ImportError("import omnidata.adapters: the top-level name only shows where the room is")

FORMS = ("baseline:NAME", "replay:FILE")
"""The SPECs that name a model."""


def get_adapter(
    spec: str, task: Task, steps: Sequence[Step], *, options: Mapping[str, str] = {}
) -> Adapter:
    """The model that a SPEC names.

    Args:
        spec: one of `FORMS`, filled in.
        task: the benchmark, whose baselines have its answers' form.
        steps: the dataset's steps; only baselines look at them.
        options: as given with `-M key=value`.

    Raises:
        UsageError: nothing has that SPEC, or the model has no such option.
        PredictionError: the file to replay cannot be read.
    """
    kind, _, rest = spec.partition(":")
    if kind == "baseline":
        from omnidata.adapters.baselines import Baseline

        return Baseline(rest, steps, task.baseline(rest, steps, options))
    if kind == "replay" and rest:
        from omnidata.adapters.replay import Replay

        if options:
            raise UsageError("replay has no options", where=f"-M {next(iter(options))}=...")
        return Replay(Path(rest))
    raise UsageError(
        f'no model is called "{spec}"',
        where=f"--model {spec}",
        expected=f"baseline:{'|'.join(task.baselines)} or {FORMS[-1]}",
        remedy="`omnidata info` lists what is supported",
    )
