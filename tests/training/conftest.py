"""Data of two episodes and an export of them; nobody writes into them."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnidata.tasks import get_task
from tests.conftest import Once
from tests.export.small import tree
from tests.training.exporting import written


@pytest.fixture(scope="session")
def data(once: Once) -> Path:
    """Eight steps of two episodes."""
    return once("exported-data", lambda root: tree(root, episodes=2))


@pytest.fixture(scope="session")
def good(once: Once, data: Path) -> Path:
    """All of them for LLaMA-Factory."""

    def write(out: Path) -> None:
        written(get_task("omnigui"), data, out, "llamafactory")

    return once("exported-good", write)
