"""What was frozen still stands; `python -m tests.goldens compare` says the same without pytest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.goldens.store import ALL, compare

QUICK = ("idm-multiple", "screenspot-pro", "asked-idm-multiple")


@pytest.mark.parametrize(
    "world",
    [
        pytest.param(world, marks=[] if world in QUICK else pytest.mark.full("seconds of verbs"))
        for world in ALL
    ],
)
def test_nothing_that_users_hold_has_changed(world: str, tmp_path: Path) -> None:
    assert compare(world, tmp_path) == []
