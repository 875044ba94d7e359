"""Rows of `omnidata export --format verl` for verl, with their sounds decoded.

    data.custom_cls.path=pkg://omnidata.training.verl_prompts data.custom_cls.name=Prompts

verl's own class passes file names of sounds to the model's processor, which needs samples: each row
with sound fails, and the filter of long prompts drops it.

Source: verl 0.9.1, `verl/utils/dataset/rl_dataset.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verl.utils.dataset.rl_dataset import RLHFDataset

from omnidata.media import samples
from omnidata.types import MediaRef

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Prompts(RLHFDataset):  # type: ignore[misc]  # verl is not read
    """An `RLHFDataset` with samples in place of the file names of sounds."""

    @classmethod
    def _extract_audio_info(cls, messages: Sequence[Any]) -> list[npt.NDArray[np.float32]] | None:
        """The sounds of a prompt, (length,) each, mono, at 16 kHz.

        Raises:
            MediaError: one cannot be read.
        """
        names: list[str] | None = super()._extract_audio_info(messages)
        if names is None:
            return None
        files = map(Path, names)
        return [samples(MediaRef("audio", file.parent, file.name)) for file in files]
