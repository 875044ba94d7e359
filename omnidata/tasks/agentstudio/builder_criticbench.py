"""CriticBench: a subset per platform, family of sources and source."""

from __future__ import annotations

from omnidata.loaders import hub
from omnidata.tasks.agentstudio.builder import benchmark


class CriticBench(hub.Builder):
    """Builds CriticBench."""

    benchmark = benchmark("criticbench", "CriticBench")
