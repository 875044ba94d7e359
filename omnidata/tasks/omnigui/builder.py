"""OmniGUI: a subset per app, dimension, dependency level and language."""

from __future__ import annotations

from functools import partial

from omnidata.loaders import hub
from omnidata.loaders.apps import DEPENDENCIES, DIMENSIONS, table7
from omnidata.tasks.omnigui import load
from omnidata.tasks.omnigui.files import find
from omnidata.tasks.omnigui.rows import ROLES


class OmniGui(hub.Builder):
    """Builds OmniGUI."""

    benchmark = hub.Benchmark(
        task="omnigui",
        title="OmniGUI",
        load=partial(load.load, check_media=False),
        fingerprint=lambda root: find(root).fingerprint(),
        tags=load.TAGS,
        roles=ROLES,
        subsets=(
            *DIMENSIONS,
            *DEPENDENCIES,
            *("en", "zh"),
            *sorted(row["app"] for row in table7()["apps"]),
        ),
    )
