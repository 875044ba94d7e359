"""What `make test-full` runs beyond `make test`.

A test, or one of its parameters, that it alone runs is marked `@pytest.mark.full("why")`; tests
that both run, and it for longer, ask `FULL` how long.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

FULL = os.environ.get("OMNIDATA_TEST_FULL") == "1"


def in_gate(values: Iterable[object], count: int, why: str) -> list[Any]:
    """Parameters of which `make test` tries the first ones, and `make test-full` all."""
    full = pytest.mark.full(why)
    return [
        pytest.param(value, marks=[] if number < count else full)
        for number, value in enumerate(values)
    ]
