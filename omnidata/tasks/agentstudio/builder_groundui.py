"""GroundUI: a subset per platform, family of sources and source."""

from __future__ import annotations

from omnidata.loaders import hub
from omnidata.tasks.agentstudio.builder import benchmark


class GroundUi(hub.Builder):
    """Builds GroundUI."""

    benchmark = benchmark("groundui", "GroundUI")
