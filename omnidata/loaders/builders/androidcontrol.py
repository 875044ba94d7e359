"""AndroidControl: a subset per split."""

from __future__ import annotations

from functools import partial

from omnidata.loaders import androidcontrol, hub
from omnidata.loaders.androidcontrol_steps import ROLES, TAGS


class AndroidControl(hub.Builder):
    """Builds AndroidControl."""

    benchmark = hub.Benchmark(
        task="androidcontrol",
        title="AndroidControl",
        load=partial(androidcontrol.load, check_media=False),
        fingerprint=androidcontrol.fingerprint,
        tags=TAGS,
        roles=ROLES,
        subsets=("train", "validation", "test"),
    )
