"""What the tests of rendering share."""

from __future__ import annotations

from typing import Any

from omnidata.types import Modality

SOUND: frozenset[Modality] = frozenset({"image", "audio"})


def lines(receipt: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {line["role"]: line for line in receipt["parts"]}
