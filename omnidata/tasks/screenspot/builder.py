"""ScreenSpot: a subset per form, platform, type of element, group, application and source."""

from __future__ import annotations

from functools import partial

from omnidata.loaders import hub
from omnidata.tasks.screenspot import load
from omnidata.tasks.screenspot.load import FORMS, ROLES, TAGS, fingerprint


class ScreenSpot(hub.Builder):
    """Builds ScreenSpot."""

    benchmark = hub.Benchmark(
        task="screenspot",
        title="ScreenSpot",
        load=partial(load.load, check_media=False),
        fingerprint=fingerprint,
        tags=TAGS,
        roles=ROLES,
        subsets=(*FORMS, "mobile", "desktop", "web", "text", "icon"),
    )
