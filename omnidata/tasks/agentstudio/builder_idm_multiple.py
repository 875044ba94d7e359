"""IDM-Multiple: a subset per platform, family of sources and source."""

from __future__ import annotations

from omnidata.loaders import hub
from omnidata.tasks.agentstudio.builder import benchmark


class IdmMultiple(hub.Builder):
    """Builds IDM-Multiple."""

    benchmark = benchmark("idm-multiple", "IDM-Multiple")
