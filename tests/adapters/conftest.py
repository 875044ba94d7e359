"""A step with real media, written once; nobody writes into its folder."""

from __future__ import annotations

import pytest

from tests.adapters.shown import Shown


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return Shown(tmp_path_factory.mktemp("shown")).write()
