"""Dialects of another distribution, and small data to ask in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from omnidata.dialects import dialects
from tests.dialects import toy
from tests.goldens import worlds


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        toy.install(tmp_path_factory.mktemp("site") / "toys", patch)
        yield
    dialects.cache_clear()


@pytest.fixture(scope="module")
def phone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return worlds.build("aitz", tmp_path_factory.mktemp("aitz"))
