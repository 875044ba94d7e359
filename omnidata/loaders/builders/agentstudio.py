"""What the builders of AgentStudio's four benchmarks have in common; no builder itself."""

from __future__ import annotations

from functools import partial

from omnidata.loaders import agentstudio
from omnidata.loaders.agentstudio_files import TaskName, find
from omnidata.loaders.agentstudio_rows import PLATFORMS
from omnidata.loaders.hub import Benchmark


def benchmark(task: TaskName, title: str) -> Benchmark:
    """The description of one of the four."""
    return Benchmark(
        task=task,
        title=title,
        load=partial(agentstudio.load, task=task, check_media=False),
        fingerprint=lambda root: find(root, task).fingerprint(),
        tags=agentstudio.TAGS,
        roles=agentstudio.ROLES.get(task),
        subsets=(*PLATFORMS, *agentstudio.FAMILIES[task]),
    )
