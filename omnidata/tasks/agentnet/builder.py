"""AgentNet: a subset per form of the data, file, and outcome."""

from __future__ import annotations

from functools import partial

from omnidata.loaders import hub
from omnidata.tasks.agentnet import load
from omnidata.tasks.agentnet.load import ROLES, TAGS
from omnidata.tasks.agentnet.rows import fingerprint


class AgentNet(hub.Builder):
    """Builds AgentNet."""

    benchmark = hub.Benchmark(
        task="agentnet",
        title="AgentNet",
        load=partial(load.load, check_media=False),
        fingerprint=fingerprint,
        tags=TAGS,
        roles=ROLES,
        subsets=("agentnet", "agentnetbench"),
    )
