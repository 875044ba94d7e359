"""OSWorld: a subset per domain, group, action space, observation type, model and outcome."""

from __future__ import annotations

from functools import partial

from omnidata.loaders import hub, osworld
from omnidata.loaders.osworld_domains import groups, sets
from omnidata.loaders.osworld_steps import ROLES, TAGS


class OsWorld(hub.Builder):
    """Builds OSWorld."""

    benchmark = hub.Benchmark(
        task="osworld",
        title="OSWorld",
        load=partial(osworld.load, check_media=False),
        fingerprint=osworld.fingerprint,
        tags=TAGS,
        roles=ROLES,
        subsets=(*groups(), *sets()["osworld"]),
    )
