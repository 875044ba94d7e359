"""OmniBench: a subset per kind of trajectory, application, category, system and intent."""

from __future__ import annotations

from functools import partial

from omnidata.loaders import hub
from omnidata.tasks.omnibench import load
from omnidata.tasks.omnibench.files import fingerprint, table10
from omnidata.tasks.omnibench.load import ROLES, TAGS


class OmniBench(hub.Builder):
    """Builds OmniBench."""

    benchmark = hub.Benchmark(
        task="omnibench",
        title="OmniBench",
        load=partial(load.load, check_media=False),
        fingerprint=fingerprint,
        tags=TAGS,
        roles=ROLES,
        subsets=("subtask", "task", *dict.fromkeys(table10().values())),
    )
