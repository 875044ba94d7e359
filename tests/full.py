"""What `make test-full` runs beyond `make test`."""

from __future__ import annotations

import os

import pytest

FULL = os.environ.get("OMNIDATA_TEST_FULL") == "1"


def full_only(why: str) -> pytest.MarkDecorator:
    """Leave a test to `make test-full`, and say why."""
    return pytest.mark.skipif(not FULL, reason=f"{why}: OMNIDATA_TEST_FULL=1")
