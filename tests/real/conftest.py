"""The real recording is cut once per test run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.running import omnidata
from tests.conftest import Once
from tests.real import agentnet


@pytest.fixture(scope="session")
def agentnet_tree(once: Once) -> Path:
    """The real recording with earcons, cut by one command; nobody writes into it."""

    def cut(folder: Path) -> None:
        folder.parent.mkdir(exist_ok=True)
        recording = agentnet.mix(folder.with_name("recording.mp4"))
        omnidata("segment", recording, agentnet.RECORDING, folder)

    return once("agentnet", cut)
