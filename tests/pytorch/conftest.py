"""Steps that the tests of this folder share."""

from __future__ import annotations

import pytest

from omnidata.types import Step
from tests.pytorch.small import make_steps


@pytest.fixture(scope="package")
def steps(tmp_path_factory: pytest.TempPathFactory) -> list[Step]:
    """Nine steps in three episodes; nobody writes into their folder."""
    return make_steps(tmp_path_factory.mktemp("media"))
