"""The page of `certify` has every probe and every cause."""

from __future__ import annotations

import re
from pathlib import Path

from omnidata.certify import count_requests
from omnidata.certify.causes import CAUSES

PAGE = (Path(__file__).parents[2] / "docs" / "certify.md").read_text("utf-8")


def test_the_page_has_every_probe_and_every_cause() -> None:
    words = set(re.findall(r"`([a-z_0-9-]+)`", PAGE))
    named = {f"place{word}" if word.startswith("-") else word for word in words}
    assert count_requests().keys() <= named
    assert CAUSES.keys() <= words
