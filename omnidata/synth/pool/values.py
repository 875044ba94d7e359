"""What the places of the sample pool's templates stand for, by seed."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import product

from omnidata.synth.pool.apps import (
    DAYS,
    DISHES,
    FILTERS,
    LANGUAGES,
    PEOPLE,
    STEMS,
    TOPICS,
    WINDOWS,
    Listed,
)

FILES: Mapping[str, tuple[str, int]] = {
    "deck_path": (".deck", 3),
    "doc_path": (".page", 3),
    "sheet_path": (".grid", 3),
    "img_path": (".png", 4),
    "pdf_path": (".pdf", 2),
    "zip_path": (".zip", 2),
    "audio_path": (".wav", 2),
    "video_path": (".mp4", 2),
    "csv_path": (".csv", 2),
    "script_path": (".code", 2),
    "text_path": (".txt", 2),
}
"""Kinds of files, their endings, and how many of each there are."""

_WORDS: Mapping[str, Sequence[str]] = {
    "name": PEOPLE,
    "topic": TOPICS,
    "dish": DISHES,
    "window": WINDOWS,
    "filter_name": FILTERS,
    "day": DAYS,
    "language": LANGUAGES,
}
_LISTS: Mapping[Listed, Sequence[str]] = {
    "people": PEOPLE,
    "topics": TOPICS,
    "dishes": DISHES,
    "windows": WINDOWS,
    "files": ("Archive", "Downloads", "Pictures", "Shared", "Work"),
    "none": (),
}
_MOST = 6


class Values:
    """The words of one pool.

    Args:
        seed: of the pool.
    """

    def __init__(self, seed: int) -> None:
        """Choose the names of the files."""
        self._seed = seed
        self._files = {
            kind: [f"D:\\work\\{stem}{ending}" for stem in self._rng(kind).sample(STEMS, count)]
            for kind, (ending, count) in FILES.items()
        }

    def listed(self, listed: Listed) -> list[str]:
        """What a window lists, shuffled."""
        return self._rng(f"list of {listed}").sample(_LISTS[listed], len(_LISTS[listed]))

    def bindings(self, template: str, places: Sequence[str]) -> list[dict[str, str]]:
        """Full bindings of a template: every combination of its files, at most `_MOST` of them.

        Two subtasks of a pool know the same files, so that their bindings can agree; other words
        are drawn anew for each.

        Args:
            template: names the subtask.
            places: its parameters.
        """
        rng = self._rng(template)
        files = [place for place in places if place in FILES]
        combinations = list(product(*(self._files[place] for place in files)))
        if not files:
            combinations *= 2
        if len(combinations) > _MOST:
            combinations = sorted(rng.sample(combinations, _MOST))
        found: list[dict[str, str]] = []
        for names in combinations:
            chosen = dict(zip(files, names, strict=True))
            binding = {place: chosen.get(place) or rng.choice(_WORDS[place]) for place in places}
            if binding not in found:
                found.append(binding)
        return found

    def _rng(self, what: str) -> random.Random:
        return random.Random(f"{self._seed}/{what}")
