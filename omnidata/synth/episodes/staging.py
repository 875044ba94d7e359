"""A dataset in the making."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omnidata.synth.episodes.parts import UNFINISHED
from omnidata.synth.folder import SynthStaging, read_json

REPORT = "synth.json"
_PARTS = ".parts"


class EpisodesStaging(SynthStaging):
    """See `SynthStaging`.

    Attributes:
        parts: the folder of the parts.
    """

    noun = "episodes"
    work = "writing episodes"
    report = REPORT
    contents = frozenset()  # the apps have the names that they have

    def __init__(self, out: Path, *, plan: Mapping[str, Any]) -> None:
        """Look at nothing but names."""
        super().__init__(out, plan=plan)
        self.parts = self.path / _PARTS

    def is_ours(self, folder: Path) -> bool:
        """Whether episodes were made there."""
        return not folder.is_symlink() and "made" in read_json(folder / REPORT)

    def begin(self) -> None:
        """Keep the whole parts that an interrupted call has left; see `SynthStaging`."""
        super().begin()
        self.parts.mkdir(exist_ok=True)
        for left in self.parts.glob(f"*{UNFINISHED}"):
            shutil.rmtree(left, ignore_errors=True)  # its process may be about to notice

    def made(self) -> Mapping[str, Any] | None:
        """What an interrupted call counted that had only to publish its work; else None."""
        return read_json(self.path / REPORT).get("made")
