"""The sample pool, made once."""

from __future__ import annotations

import pytest

from tests.conftest import Once
from tests.synth import composing


@pytest.fixture(scope="session", autouse=True)
def _one_pool(once: Once) -> None:
    """Let the first test of all processes that asks for the pool make it."""
    composing.share(once)
