"""What an export may be told, and what cannot be asked of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from omnidata.actions import Space
from omnidata.adapters.capabilities import Capabilities
from omnidata.errors import UsageError
from omnidata.export.formats import HOLDS, FormatName, Objects
from omnidata.export.sizing import Sizing
from omnidata.run.splits import SHARES, Split
from omnidata.types import Modality, Task

_REMEDIES: Mapping[Modality, str] = {
    "video": "add --video frames to give pictures in place of clips, or leave them out with "
    "-T modalities=IA",
    "audio": "add --drop-audio to leave sound out",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How steps become training data.

    Attributes:
        format: the trainer.
        video: "file" gives clips, "frames" some of their frames as pictures.
        frames: how many, evenly spread from the first to the last, each with its time before it.
        drop_audio: leave sound out of the prompts.
        sizing: of pictures and frames.
        objects: of ms-swift: places apart from the answers (see `formats.row`).
        shares: of the splits.
        copy: copy media files also where a hard link would do.
    """

    format: FormatName
    video: Literal["file", "frames"] = "file"
    frames: int = 4
    drop_audio: bool = False
    sizing: Sizing = field(default_factory=Sizing)
    objects: Objects | None = None
    shares: Mapping[Split, float] = field(default_factory=lambda: SHARES)
    copy: bool = False

    @property
    def capabilities(self) -> Capabilities:
        """What prompts may hold, in the words that models use for it."""
        accepts: set[Modality] = set(HOLDS[self.format])
        if self.video == "frames":
            accepts.add("video")
        if self.drop_audio:
            accepts.discard("audio")
        return Capabilities(
            accepts=frozenset(accepts),
            video="native" if self.video == "file" else "frames",
            frames=self.frames,
            degrade=self.drop_audio,
        )

    def check(self, task: Task) -> None:
        """Refuse what cannot be done, before any data are read.

        Raises:
            UsageError: the task has no such targets, or the trainer no such form.
        """
        if task.needs_predictions:
            raise UsageError(
                "in training there are no answers of the model that a prompt could show",
                where="-T history=predicted",
                expected="history=gold or history=none",
            )
        if self.drop_audio and task.options.get("voice"):
            raise UsageError(
                "without sound nobody hears the instruction",
                where="--drop-audio, -T voice",
                expected="one of the two",
            )
        if self.objects is None:
            return
        if self.format != "swift":
            raise UsageError(
                f"{self.format} has no places apart from its answers",
                where=f"--objects {self.objects}",
                expected="--format swift with it",
            )
        if space_of(task) != "norm1000":
            raise UsageError(
                "with --objects it is ms-swift that writes the numbers",
                where=f"--objects {self.objects}",
                expected="-T coordinates=norm1000, which ms-swift turns into what its model takes"
                if "coordinates" in task.options
                else "a task whose answers have places",
            )

    def check_kinds(self, kinds: Iterable[Modality]) -> None:
        """Refuse modalities that the trainer cannot be given, naming the flag.

        Args:
            kinds: what the prompts hold.

        Raises:
            UsageError: there are such modalities.
        """
        accepts = self.capabilities.accepts
        lacking = [
            kind for kind in sorted(set(kinds) - accepts) if kind != "audio" or not self.drop_audio
        ]
        if lacking:
            raise UsageError(
                f"rows of {self.format} hold no {' and no '.join(lacking)}",
                where=f"--format {self.format}",
                expected=f"prompts of text and {' and '.join(sorted(HOLDS[self.format]))}",
                remedy="; ".join(_REMEDIES[kind] for kind in lacking),
            )


def space_of(task: Task) -> Space | None:
    """The unit of a task's coordinates in answers; None where answers have none."""
    spaces: Mapping[str, Space] = {
        "norm1000": "norm1000",
        "auto": "norm1000",
        "rel": "rel",
        "px": "px",
    }
    return spaces.get(task.options.get("coordinates", ""))
