"""Prompt texts are data files whose source and hash are noted beside them."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

import omnidata.tasks

FOLDERS = sorted(Path(omnidata.tasks.__file__).parent.glob("*/prompts"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.parent.name)
def test_every_text_is_in_the_list_of_sources_with_its_hash(folder: Path) -> None:
    listed = dict(
        re.findall(
            r"`(\w+\.txt)` \|.*`([0-9a-f]{64})` \|", (folder / "SOURCES.md").read_text("utf-8")
        )
    )
    texts = sorted(folder.glob("*.txt"))
    assert texts
    assert listed == {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in texts}


def test_the_texts_of_seven_folders_are_looked_at() -> None:
    assert len(FOLDERS) == 7
