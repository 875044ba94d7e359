"""What was frozen still stands; `python -m tests.goldens compare` says the same without pytest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.full import FULL
from tests.goldens.__main__ import compare
from tests.goldens.worlds import WORLDS

QUICK = ("idm-multiple", "osworld", "screenspot-pro")


@pytest.mark.parametrize("world", WORLDS if FULL else QUICK)
def test_nothing_that_users_hold_has_changed(world: str, tmp_path: Path) -> None:
    assert compare(world, tmp_path) == []
