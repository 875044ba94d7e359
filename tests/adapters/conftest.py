"""Media that many tests show to a model; nobody writes into their folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.adapters.shown import Shown

if TYPE_CHECKING:
    from tests.adapters.local_models import Parts, Spy


@pytest.fixture(scope="session")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return Shown(tmp_path_factory.mktemp("shown")).write()


@pytest.fixture(scope="session")
def parts(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    """One medium of each role, by role."""
    from tests.adapters.local_models import media

    return media(tmp_path_factory.mktemp("parts"))


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    """Keeps what transformers' own `generate` is given."""
    from tests.adapters.local_models import Spy

    return Spy(monkeypatch)
