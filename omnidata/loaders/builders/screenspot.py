"""ScreenSpot: a subset per form, platform, type of element, group, application and source."""

from __future__ import annotations

from functools import partial

from omnidata.loaders import hub, screenspot
from omnidata.loaders.screenspot import ROLES, TAGS
from omnidata.loaders.screenspot_files import fingerprint
from omnidata.loaders.screenspot_rows import FORMS


class ScreenSpot(hub.Builder):
    """Builds ScreenSpot."""

    benchmark = hub.Benchmark(
        task="screenspot",
        title="ScreenSpot",
        load=partial(screenspot.load, check_media=False),
        fingerprint=fingerprint,
        tags=TAGS,
        roles=ROLES,
        subsets=(*FORMS, "mobile", "desktop", "web", "text", "icon"),
    )
