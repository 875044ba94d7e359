"""The real recording is cut once per test run."""

from __future__ import annotations

from pathlib import Path

import pytest
from filelock import FileLock

from tests.cli.running import omnidata
from tests.real import agentnet


@pytest.fixture(scope="session")
def agentnet_tree(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The real recording with earcons, cut by one command; nobody writes into it."""
    base = tmp_path_factory.getbasetemp()
    folder = (base if worker_id == "master" else base.parent) / "agentnet"
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            recording = agentnet.mix(folder.with_name("recording.mp4"))
            omnidata("segment", recording, agentnet.RECORDING, folder)
    return folder
