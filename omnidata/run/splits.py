"""Which steps are trained on, chosen by and tested with: a cut by a hash of the episode.

The split of a step follows from the shares and the name of its episode, or of its group of twins,
alone. Steps that come or go, and other episodes, never move it; a larger share takes episodes from
the following split only.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from typing import Literal, get_args

from omnidata.errors import UsageError
from omnidata.loaders.omnigui_apps import app_key
from omnidata.types import Step

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
SHARES: Mapping[Split, float] = {"train": 0.8, "validation": 0.1, "test": 0.1}
"""Unless the user says otherwise."""


def names(step: Step) -> tuple[str, ...]:
    """What a step's episode is known by: first its group, then the episode itself.

    OmniGUI's episodes go by app and id, whatever the spelling of the app. Synthetic ones that the
    column `twins` puts together are a group, for three twins give the answers of the fourth away;
    a copy of the data without that column knows the episode alone. OmniBench's trajectories of one
    task or subtask are a group, which their steps name. AgentStudio's rows are episodes of their
    own with numbers for names, which other rows would move: they go by the first image, which the
    instructions for one page share.

    Args:
        step: of any benchmark.
    """
    if kind := step.tags.get("kind"):
        owner, episode = step.source.get(f"{kind}_id"), f"{kind}/{step.episode_id}"
        return (f"{kind}/{owner}", episode) if owner else (episode,)
    if "app" not in step.tags:
        return (next((ref.path for ref in step.media.values() if ref), step.sample_id),)
    app, twins = app_key(step.tags["app"]), step.source.get("twins")
    episode = f"{app}/{step.episode_id}"
    return (f"{app}/{twins}", episode) if isinstance(twins, str) and twins else (episode,)


def group(step: Step) -> str:
    """What steps that must not be torn apart have in common: the first of their `names`."""
    return names(step)[0]


def split_of(step: Step, shares: Mapping[Split, float] = SHARES) -> Split:
    """The split that a step belongs to.

    Args:
        step: of any benchmark.
        shares: of the groups, summing to 1 (see `parse_shares`).
    """
    digest = hashlib.sha256(group(step).encode("utf-8", "surrogatepass")).digest()
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
