"""What a run folder says about how its answers are judged, and on which steps."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omnidata.errors import RunError
from omnidata.run.select import select
from omnidata.run.shards import shard
from omnidata.tasks import get_task
from omnidata.types import Source, Step, Task


def recorded_task(
    info: Mapping[str, Any], name: str | None = None, options: Mapping[str, str] = {}
) -> Task:
    """The task, set up as far as loading and judging depend on it.

    Options that allow any text name folders and files of the prompt's, which may be gone by now.

    Args:
        info: the content of `run.json`; empty for answers that are no run.
        name: of the task; the run's own if None.
        options: those that the caller wants otherwise.

    Raises:
        UsageError: there is no such task or option.
    """
    name = name or info["task"]
    allowed = get_task(name).allowed
    recorded = info.get("options", {}).items()
    said = {key: value for key, value in recorded if allowed.get(key, ("",)) != ("",)}
    return get_task(name, said | dict(options))


def recorded_steps(info: Mapping[str, Any], source: Source, run: Path) -> list[Step]:
    """The steps that the run asks about.

    Args:
        info: the content of `run.json`.
        source: the data, loaded.
        run: the folder, for messages.

    Raises:
        RunError: the data have other annotations than the run's.
    """
    if info.get("dataset_fingerprint") != source.fingerprint:
        raise RunError(
            "the run was made on other annotations",
            where=str(run),
            expected="the annotations that run.json has the fingerprint of",
            remedy="name the data of the run; to score all the same, name its predictions.jsonl",
        )
    chosen = select(
        source.steps,
        where=info.get("where", {}),
        exclude=frozenset(info.get("exclude", ())),
        limit=info.get("limit"),
    )
    part = info.get("shard")
    return shard(chosen, *part) if part else chosen
