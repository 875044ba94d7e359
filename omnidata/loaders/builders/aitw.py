"""Android in the Wild: a subset per form of the data, part of the dataset, device and system."""

from __future__ import annotations

from functools import partial

from omnidata.loaders import aitw, hub
from omnidata.loaders.aitw_files import fingerprint
from omnidata.loaders.aitw_steps import ROLES, SUBSETS, TAGS


class Aitw(hub.Builder):
    """Builds Android in the Wild."""

    benchmark = hub.Benchmark(
        task="aitw",
        title="Android in the Wild",
        load=partial(aitw.load, check_media=False),
        fingerprint=fingerprint,
        tags=TAGS,
        roles=ROLES,
        subsets=("aitw", "aitz", "cagui", *SUBSETS),
    )
