"""CriticBench: a subset per platform, family of sources and source."""

from __future__ import annotations

from omnidata.loaders import hub
from omnidata.loaders.builders.agentstudio import benchmark


class CriticBench(hub.Builder):
    """Builds CriticBench."""

    benchmark = benchmark("criticbench", "CriticBench")
