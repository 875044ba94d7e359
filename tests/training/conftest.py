"""Data of two episodes and an export of them; nobody writes into them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Once
from tests.training.exporting import data_tree, good_export


@pytest.fixture(scope="session")
def data(once: Once) -> Path:
    return data_tree(once)


@pytest.fixture(scope="session")
def good(once: Once) -> Path:
    return good_export(once)
