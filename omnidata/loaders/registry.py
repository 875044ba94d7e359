"""The two ways into `datasets`: a name in its table of builders, and a function of our own."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from omnidata.errors import PlatformError, UsageError, meant
from omnidata.files import following
from omnidata.loaders.recognition import reading
from omnidata.loaders.repository import is_repository, open_dataset

_HOME = "omnidata.loaders.builders"
BUILDERS = {
    "omnigui": (f"{_HOME}.omnigui", "OmniGui"),
    "groundui": (f"{_HOME}.groundui", "GroundUi"),
    "idm-single": (f"{_HOME}.idm_single", "IdmSingle"),
    "idm-multiple": (f"{_HOME}.idm_multiple", "IdmMultiple"),
    "criticbench": (f"{_HOME}.criticbench", "CriticBench"),
    "omnibench": (f"{_HOME}.omnibench", "OmniBench"),
    "osworld": (f"{_HOME}.osworld", "OsWorld"),
    "aitw": (f"{_HOME}.aitw", "Aitw"),
    "androidcontrol": (f"{_HOME}.androidcontrol", "AndroidControl"),
    "agentnet": (f"{_HOME}.agentnet", "AgentNet"),
    "screenspot": (f"{_HOME}.screenspot", "ScreenSpot"),
}
"""Benchmark -> the module with its one builder, and the builder's name."""


def register() -> None:
    """Make `datasets.load_dataset("omnigui", ...)` find omnidata's builders.

    `datasets` has no plug-in mechanism; its table of packaged builders is private but has kept its
    form from 3.6 to 5.2. Nothing is registered on import.

    Raises:
        PlatformError: the installed `datasets` has no such table.

    Examples:
        >>> import datasets, omnidata
        >>> omnidata.register()
        >>> "omnigui" in datasets.packaged_modules._PACKAGED_DATASETS_MODULES
        True
    """
    import datasets
    import datasets.packaged_modules as packaged

    table = getattr(packaged, "_PACKAGED_DATASETS_MODULES", None)
    extensions = getattr(packaged, "_MODULE_TO_EXTENSIONS", None)
    if not isinstance(table, dict) or not isinstance(extensions, dict):
        raise PlatformError(
            f"datasets {datasets.__version__} has no table of packaged builders",
            expected="datasets 3.6 to 5.2",
            remedy="call omnidata.load_dataset instead, which needs no table",
        )
    for name, (module, _) in BUILDERS.items():
        # The builder's cache folder carries a fingerprint of its own, so the hash may stay fixed.
        table[name] = (module, name)
        extensions.setdefault(name, [".jsonl", ".json", ".parquet"])
        for optional in ("_MODULE_TO_METADATA_FILE_NAMES", "_MODULE_TO_METADATA_EXTENSIONS"):
            if isinstance(getattr(packaged, optional, None), dict):
                getattr(packaged, optional).setdefault(name, [])


def load_dataset(
    task: str,
    data: str | Path,
    name: str = "all",
    *,
    split: str | None = None,
    streaming: bool = False,
    num_proc: int | None = None,
    cache_dir: str | Path | None = None,
    media_roots: Sequence[str | Path] = (),
) -> Any:
    """Load a benchmark as a Hugging Face dataset, without the scan of the media folder.

    Args:
        task: one of `BUILDERS`, e.g. "omnigui".
        data: whatever the task's loader reads.
        name: the subset: "all", or a value of a tag, e.g. an app or a platform.
        split: "test" for a `Dataset`; None for a `DatasetDict`.
        streaming: an `IterableDataset` (or a dict of them) that writes no cache.
        num_proc: processes that build the cache.
        cache_dir: where to cache; the default is that of `datasets`.
        media_roots: folders outside the data to which links and linked repositories may lead.

    Raises:
        UsageError: no such benchmark or folder, or `num_proc` with `streaming`.
        DataError: the data is not that benchmark, or has no such subset.
    """
    if task not in BUILDERS:
        raise UsageError(
            f'there is no benchmark "{task}"',
            expected=f"one of {', '.join(BUILDERS)}",
            remedy=meant(task, BUILDERS),
        )
    if streaming and num_proc:
        raise UsageError(
            "a streamed dataset is not built by processes",
            where="load_dataset(streaming=True, num_proc=...)",
            expected="one of the two",
        )
    if is_repository(Path(data)):
        with following(media_roots), reading(Path(data), task):
            return open_dataset(
                Path(data), task, name, split=split, streaming=streaming, num_proc=num_proc,
                cache_dir=None if cache_dir is None else str(cache_dir),
            )  # fmt: skip
    module, builder_name = BUILDERS[task]
    builder = getattr(import_module(module), builder_name)(
        config_name=name,
        data_dir=str(data),
        media_roots=[str(root) for root in media_roots],
        cache_dir=None if cache_dir is None else str(cache_dir),
        dataset_name=task,
    )
    if streaming:
        return builder.as_streaming_dataset(split=split)
    builder.download_and_prepare(num_proc=num_proc)
    return builder.as_dataset(split=split)
