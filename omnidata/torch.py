"""Steps for PyTorch, decoded in DataLoader workers in an order that depends on a seed.

Sizes are (height, width). Screenshots are uint8 (3, H, W) and clips uint8 (T, 3, H, W), RGB in
[0, 255]; sound is float32 (N,), mono in [-1, 1]. Needs the extra `local`.

Examples:
    >>> import json, tempfile
    >>> from pathlib import Path
    >>> from torch.utils.data import DataLoader
    >>> from omnidata.tasks import get_task
    >>> sound = {"array": [0.0] * 8000, "sampling_rate": 16000}
    >>> rows = [
    ...     {"episode_id": episode, "step_id": step, "audio": sound}
    ...     for episode in "ABC"
    ...     for step in range(2)
    ... ]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "steps.json"
    ...     _ = path.write_text(json.dumps(rows))
    ...     source = get_task("omnigui").load(path, check_media=False)
    >>> loader = DataLoader(
    ...     StepDataset(source, Decoding(roles=("screenshot", "audio"))),
    ...     batch_size=4,
    ...     sampler=EpisodeSampler(source.steps, seed=1),
    ...     collate_fn=Collate(pad=True, mel_bins=128),
    ... )
    >>> batch = next(iter(loader))
    >>> batch.step_index.tolist(), batch.audio.values.shape, batch.mel["audio"].values.shape
    ([0, 1, 0, 1], torch.Size([4, 8000]), torch.Size([4, 128, 50]))
"""

try:
    import torch as _torch  # noqa: F401  whether it loads is the question
except (ImportError, OSError) as error:
    from omnidata.errors import PlatformError

    raise PlatformError(
        f"torch cannot be loaded ({type(error).__name__}: {error})",
        where="import omnidata.torch",
        expected="the extra `local`",
        remedy='pip install "omnidata[local]"',
    ) from None

from omnidata.training.batches import (
    Batch,
    Collate,
    CollateRows,
    Decoding,
    Item,
    Padded,
    log_mel,
    resample,
)
from omnidata.training.collator import OmniCollator
from omnidata.training.datasets import EpisodeSampler, RowSteps, StepDataset, StepStream
from omnidata.training.examples import Example
from omnidata.training.tables import check, exported_table, training_stream, training_table

__all__ = [
    "Batch",
    "Collate",
    "CollateRows",
    "Decoding",
    "EpisodeSampler",
    "Example",
    "Item",
    "OmniCollator",
    "Padded",
    "RowSteps",
    "StepDataset",
    "StepStream",
    "check",
    "exported_table",
    "log_mel",
    "resample",
    "training_stream",
    "training_table",
]
