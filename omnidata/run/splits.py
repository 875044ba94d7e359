"""Which steps are trained on, chosen by and tested with: a cut by a hash of the group.

The split of a step follows from the shares and the name of its group (`Step.group`: its episode,
with what must not be torn from it) alone. Steps that come or go, and other groups, never move it; a
larger share takes groups from the following split only.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Literal, get_args

from omnidata.errors import UsageError
from omnidata.types import Step

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
SHARES: Mapping[Split, float] = {"train": 0.8, "validation": 0.1, "test": 0.1}
"""Unless the user says otherwise."""


def split_of(step: Step, shares: Mapping[Split, float] = SHARES) -> Split:
    """The split that a step belongs to.

    Args:
        step: of any benchmark.
        shares: of the groups, summing to 1 (see `parse_shares`).
    """
    digest = hashlib.sha256(step.group.encode("utf-8", "surrogatepass")).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    end = 0.0
    for split in SPLITS:
        end += shares.get(split, 0.0)
        if place < end:
            return split
    return next(split for split in reversed(SPLITS) if shares.get(split))


def parse_shares(text: str) -> dict[Split, float]:
    """Shares as they are written on the command line.

    Raises:
        UsageError: an unknown split, no number, or a sum other than 1.

    Examples:
        >>> parse_shares("train=0.9,test=0.1")
        {'train': 0.9, 'test': 0.1}
    """
    shares: dict[Split, float] = {}
    for item in text.split(","):
        name, _, value = item.partition("=")
        split = next((known for known in SPLITS if known == name.strip()), None)
        try:
            share = float(value)
        except ValueError:
            share = math.nan
        if split is None or split in shares or not 0 <= share <= 1:
            raise _refused(text)
        shares[split] = share
    if not math.isclose(sum(shares.values()), 1, abs_tol=1e-9):
        raise _refused(text)
    return shares


def _refused(text: str) -> UsageError:
    return UsageError(
        "these are no shares",
        where=f"--split {text}",
        expected=f"{', '.join(SPLITS)}, each once at most, summing to 1",
        remedy="--split train=0.8,validation=0.1,test=0.1 is the default",
    )
