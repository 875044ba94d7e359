"""Tiny random models of the true architectures: for tests, and to see a model in the loop."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, get_args

from omnidata.errors import PlatformError, UsageError

Family = Literal["qwen2.5-omni", "qwen3-omni", "gemma4"]


def make_tiny(family: Family, folder: Path, *, seed: int = 0, texts: Iterable[str] = ()) -> Path:
    """Write a checkpoint of less than a million random weights, with all that belongs to one.

    `AutoProcessor` and `AutoModelForMultimodalLM` load it like a real one: the classes, the towers
    for media, the special tokens and the placeholders are the family's own, only narrow and
    shallow. It takes text, pictures, clips and sound, and each changes what it finds likely to come
    next; what it says means nothing. The Qwen families are the thinkers, without the talker. The
    chat template marks what the assistant says, as training needs (`return_assistant_tokens_mask`).
    Nothing is downloaded; the same seed gives the same files.

    Args:
        family: the architecture: Qwen2.5-Omni (arXiv:2503.20215), Qwen3-Omni (arXiv:2509.17765) or
            Gemma 4.
        folder: where to write; must not exist.
        seed: of the weights.
        texts: what the model will read: with a vocabulary made from prompts, whose lines become a
            token each, a step of OmniGUI has 200 tokens instead of 1,300, and is trained on in a
            fifth of the time. Any other text still has tokens, but more of them.

    Returns:
        The folder.

    Raises:
        UsageError: there is no such family, or the folder exists.
        PlatformError: the libraries of the extra `local` are not installed, or do not load.
    """
    if family not in get_args(Family):
        names = ", ".join(get_args(Family))
        raise UsageError(f'there is no tiny model "{family}"', expected=f"one of {names}")
    if folder.exists():
        raise UsageError("the folder exists", where=str(folder), remedy="choose another name")
    from omnidata.adapters.hf.torchvision_shim import prepare_imports

    try:
        import torch

        prepare_imports()
        import torchvision  # noqa: F401  # the processors of clips need it
        import transformers  # noqa: F401  # whether it loads is the question
    except (ImportError, OSError, RuntimeError) as error:
        raise PlatformError(
            f"a library cannot be loaded ({type(error).__name__}: {error})",
            expected="torch, torchvision and transformers",
            remedy="pip install 'omnidata[local]'",
        ) from error
    from omnidata.adapters.tiny import gemma, qwen

    builders = {
        "qwen2.5-omni": qwen.qwen2_5_omni,
        "qwen3-omni": qwen.qwen3_omni,
        "gemma4": gemma.gemma4,
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model, processor = builders[family](texts)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(dir=folder.parent, prefix=f"{folder.name}.") as unfinished,
        _silent(),
    ):
        made = Path(unfinished) / folder.name
        model.save_pretrained(made)
        processor.save_pretrained(made)
        made.rename(folder)
    return folder


@contextmanager
def _silent() -> Iterator[None]:
    """Without the progress bars of transformers: there is nothing to wait for."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # theirs has no types
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]  # theirs has no types
