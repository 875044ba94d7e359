"""IDM-Single: a subset per platform, family of sources and source."""

from __future__ import annotations

from omnidata.loaders import hub
from omnidata.tasks.agentstudio.builder import benchmark


class IdmSingle(hub.Builder):
    """Builds IDM-Single."""

    benchmark = benchmark("idm-single", "IDM-Single")
