"""OmniBench: a subset per kind of trajectory, application, category, system and intent."""

from __future__ import annotations

from functools import partial

from omnidata.loaders import hub, omnibench
from omnidata.loaders.omnibench_apps import table10
from omnidata.loaders.omnibench_files import fingerprint
from omnidata.loaders.omnibench_steps import ROLES, TAGS


class OmniBench(hub.Builder):
    """Builds OmniBench."""

    benchmark = hub.Benchmark(
        task="omnibench",
        title="OmniBench",
        load=partial(omnibench.load, check_media=False),
        fingerprint=fingerprint,
        tags=TAGS,
        roles=ROLES,
        subsets=("subtask", "task", *dict.fromkeys(table10().values())),
    )
