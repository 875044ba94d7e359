"""Tiny random models of the true architectures: for tests, and to see a model in the loop."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from omnidata.errors import PlatformError, UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Family = Literal["qwen2.5-omni", "qwen3-omni", "gemma4"]
_Build = Callable[[], "tuple[PreTrainedModel, Any]"]


def make_tiny(family: Family, folder: Path, *, seed: int = 0) -> Path:
    """Write a checkpoint of a few hundred thousand random weights, with all that goes with it.

    `AutoProcessor` and `AutoModelForMultimodalLM` load it like a real one: the classes, the media
    towers, the special tokens and the placeholders are the family's own, only narrow and shallow.
    It takes text, pictures, clips and sound, and its answers depend on each; they mean nothing.
    Its chat template marks what the assistant says (`return_assistant_tokens_mask`). Qwen families
    are the thinkers, without the talker. Nothing is downloaded, and the same seed gives the same
    files.

    Args:
        family: the architecture: Qwen2.5-Omni (arXiv:2503.20215), Qwen3-Omni (arXiv:2509.17765) or
            Gemma 4.
        folder: where to write; must not exist.
        seed: of the weights.

    Returns:
        The folder.

    Raises:
        UsageError: there is no such family, or something of that name exists.
        PlatformError: the libraries of the extra `local` are not installed, or do not load.
    """
    builders = _builders()
    if family not in builders:
        raise UsageError(
            f'there is no tiny model "{family}"', expected=f"one of {', '.join(builders)}"
        )
    if folder.exists():
        raise UsageError("something of that name exists", where=str(folder))
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model, processor = builders[family]()
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f"{folder.name}.", dir=folder.parent))
    try:
        model.save_pretrained(unfinished)
        processor.save_pretrained(unfinished)
        unfinished.chmod(0o777 & ~_umask())
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder
