"""What the builders of AgentStudio's four benchmarks have in common; no builder itself."""

from __future__ import annotations

from functools import partial

from omnidata.loaders.hub import Benchmark
from omnidata.tasks.agentstudio import load
from omnidata.tasks.agentstudio.files import TaskName, find
from omnidata.tasks.agentstudio.rows import PLATFORMS


def benchmark(task: TaskName, title: str) -> Benchmark:
    """The description of one of the four."""
    return Benchmark(
        task=task,
        title=title,
        load=partial(load.load, task=task, check_media=False),
        fingerprint=lambda root: find(root, task).fingerprint(),
        tags=load.TAGS,
        roles=load.ROLES.get(task),
        subsets=(*PLATFORMS, *load.FAMILIES[task]),
    )
