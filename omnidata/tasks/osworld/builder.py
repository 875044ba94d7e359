"""OSWorld: a subset per domain, group, action space, observation type, model and outcome."""

from __future__ import annotations

from functools import partial

from omnidata.loaders import hub
from omnidata.tasks.osworld import load
from omnidata.tasks.osworld.load import ROLES, TAGS
from omnidata.tasks.osworld.tree import groups, sets


class OsWorld(hub.Builder):
    """Builds OSWorld."""

    benchmark = hub.Benchmark(
        task="osworld",
        title="OSWorld",
        load=partial(load.load, check_media=False),
        fingerprint=load.fingerprint,
        tags=TAGS,
        roles=ROLES,
        subsets=(*groups(), *sets()["osworld"]),
    )
