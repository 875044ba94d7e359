"""Data that the tests of this folder share."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnidata.data.convert import convert
from omnidata.tasks.omnigui.load import load
from omnidata.types import Step
from tests.conftest import Once
from tests.export.small import tree
from tests.pytorch.small import make_steps


@pytest.fixture(scope="package")
def steps(tmp_path_factory: pytest.TempPathFactory) -> list[Step]:
    """Nine steps in three episodes; nobody writes into their folder."""
    return make_steps(tmp_path_factory.mktemp("media"))


@pytest.fixture(scope="session")
def data(once: Once) -> Path:
    """Two episodes of an app, eight steps; read only."""
    return once("rows", lambda folder: tree(folder, episodes=2)) / "App"


@pytest.fixture(scope="session")
def embedded(data: Path, once: Once) -> Path:
    """A repository that holds their media; read only."""
    return once("rows-embedded", lambda folder: convert(load(data), folder, embed=True))
