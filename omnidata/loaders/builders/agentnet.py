"""AgentNet: a subset per form of the data, file, and outcome."""

from __future__ import annotations

from functools import partial

from omnidata.loaders import agentnet, hub
from omnidata.loaders.agentnet_files import fingerprint
from omnidata.loaders.agentnet_steps import ROLES, TAGS


class AgentNet(hub.Builder):
    """Builds AgentNet."""

    benchmark = hub.Benchmark(
        task="agentnet",
        title="AgentNet",
        load=partial(agentnet.load, check_media=False),
        fingerprint=fingerprint,
        tags=TAGS,
        roles=ROLES,
        subsets=("agentnet", "agentnetbench"),
    )
