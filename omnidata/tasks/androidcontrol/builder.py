"""AndroidControl: a subset per split."""

from __future__ import annotations

from functools import partial

from omnidata.loaders import hub
from omnidata.tasks.androidcontrol import load
from omnidata.tasks.androidcontrol.load import ROLES, TAGS


class AndroidControl(hub.Builder):
    """Builds AndroidControl."""

    benchmark = hub.Benchmark(
        task="androidcontrol",
        title="AndroidControl",
        load=partial(load.load, check_media=False),
        fingerprint=load.fingerprint,
        tags=TAGS,
        roles=ROLES,
        subsets=("train", "validation", "test"),
    )
