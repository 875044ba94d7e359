"""OmniGUI: a subset per app, dimension, dependency level and language."""

from __future__ import annotations

from functools import partial

from omnidata.loaders import hub, omnigui
from omnidata.loaders.omnigui_apps import DEPENDENCIES, DIMENSIONS, table7
from omnidata.loaders.omnigui_files import find
from omnidata.loaders.omnigui_rows import ROLES


class OmniGui(hub.Builder):
    """Builds OmniGUI."""

    benchmark = hub.Benchmark(
        task="omnigui",
        title="OmniGUI",
        load=partial(omnigui.load, check_media=False),
        fingerprint=lambda root: find(root).fingerprint(),
        tags=omnigui.TAGS,
        roles=ROLES,
        subsets=(
            *DIMENSIONS,
            *DEPENDENCIES,
            *("en", "zh"),
            *sorted(row["app"] for row in table7()["apps"]),
        ),
    )
