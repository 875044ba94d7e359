"""Where a plug-in is installed, and the rows that it reads."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests import plugs
from tests.tasks.words import ROWS
from tests.trees import write_lines


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for task in ("words", "shown"):  # the builders of an earlier test's plug-in
        monkeypatch.delitem(sys.modules, f"omnidata.loaders.builders.{task}", raising=False)
    return plugs.on_path(tmp_path / "site", "words_plugin", monkeypatch)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "words.jsonl", ROWS)
