"""AgentNet's trajectories on desktops as steps, and AgentNetBench's (OpenCUA).

They are one benchmark here: places are shares of the screen, and the picture of a step is what was
seen before it. AgentNet says in code what was done; AgentNetBench in objects, with what else is
right.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from omnidata.errors import DataError, Finding
from omnidata.loaders import agentnet_files
from omnidata.loaders.agentnet_files import STEPS
from omnidata.loaders.agentnet_steps import ROLES, TAGS, StepReader
from omnidata.loaders.media_files import check_media_files
from omnidata.loaders.opening import opened
from omnidata.types import Source


def load(data: Path | str, *, strict: bool = False, check_media: bool = True) -> Source:
    """Read trajectories; nothing in them is executed, and no picture is decoded.

    A step's `source` has `form`, "agentnet" or "agentnetbench"; `task`, the trajectory without its
    steps; and `step`, its untouched row. Its `action`, and so the history of later steps, is what
    comes nearest among the primitives of a touch screen, with the step's code for words.

    Args:
        data: a folder, with as many folders in it as they like, or a file; or a Parquet repository.
        strict: make the first finding an error.
        check_media: look whether the pictures exist and are whole.

    Returns:
        Steps in the order of the files, named `<task_id>/<position>`: the positions are dense, also
        where AgentNetBench's `step_num` are not.

    Raises:
        DataError: nothing readable as AgentNet is there, or `strict` and there is a finding.
    """
    data = Path(data)
    return opened(
        data,
        "agentnet",
        TAGS,
        lambda: _read(data, check_media=check_media),
        strict=strict,
        check_media=check_media,
    )


def _read(data: Path, *, check_media: bool) -> Source:
    findings: list[Finding] = []
    reader = StepReader(data if data.is_dir() else data.parent, findings.append)
    paths = agentnet_files.find(data)
    steps = [
        step
        for found in agentnet_files.read(paths, findings.append)
        for step in reader.steps(found)
    ]
    if not steps:
        first = findings[0] if findings else None
        raise DataError(
            f"no trajectory could be read{f': {first.what}' if first else ''}",
            where=first.where if first else str(data),
            expected=first.expected if first else agentnet_files.COLUMNS,
            remedy="mend the rows, or name other data",
        )
    skipped = reader.skipped + sum(finding.code == "json-invalid" for finding in findings)
    if check_media:
        check_media_files(steps, findings.append)
    return Source(
        "agentnet",
        data,
        steps,
        findings,
        skipped,
        agentnet_files.fingerprint(data),
        [step.sample_id for step in steps],
        TAGS,
        ROLES,
    )


def dump(source: Source) -> Iterator[dict[str, Any]]:
    """The trajectories that a source was read from, in its order.

    Args:
        source: of `load`; of each trajectory all steps.

    Yields:
        A line of AgentNet, or a file of AgentNetBench.
    """
    row: dict[str, Any] = {}
    for step in source.steps:
        told = step.source
        if step.step_index == 0:
            if row:
                yield row
            row = {**told["task"], STEPS[told["form"]]: []}
        row[STEPS[told["form"]]].append(told["step"])
    if row:
        yield row
