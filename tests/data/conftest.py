"""Repositories of a few episodes of the sample dataset, made once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from omnidata import following
from omnidata.data.convert import convert
from omnidata.tasks.omnigui.load import load
from tests.conftest import Once


@pytest.fixture(scope="session")
def embedded(few: Path, once: Once) -> Path:
    source = load(few, check_media=False)
    return once("embedded", lambda out: convert(source, out, embed=True))


@pytest.fixture(scope="session")
def linked(few: Path, once: Once) -> Path:
    source = load(few, check_media=False)
    return once("linked", lambda out: convert(source, out, embed=False))


@pytest.fixture(params=["embedded", "linked"])
def repository(request: pytest.FixtureRequest, few: Path) -> Iterator[Path]:
    """A repository of those episodes, to which the linked one may lead."""
    with following([few]):
        yield request.getfixturevalue(request.param)
