"""Android in the Wild: a subset per form of the data, part of the dataset, device and system."""

from __future__ import annotations

from functools import partial

from omnidata.loaders import hub
from omnidata.tasks.aitw import load
from omnidata.tasks.aitw.load import ROLES, SUBSETS, TAGS
from omnidata.tasks.aitw.rows import fingerprint


class Aitw(hub.Builder):
    """Builds Android in the Wild."""

    benchmark = hub.Benchmark(
        task="aitw",
        title="Android in the Wild",
        load=partial(load.load, check_media=False),
        fingerprint=fingerprint,
        tags=TAGS,
        roles=ROLES,
        subsets=("aitw", "aitz", "cagui", *SUBSETS),
    )
