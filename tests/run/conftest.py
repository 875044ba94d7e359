"""The sample dataset, loaded once per module."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnidata.tasks import get_task
from omnidata.types import LoadedDataset


@pytest.fixture(scope="module")
def source(sample: Path) -> LoadedDataset:
    return get_task("omnigui").load(sample)
