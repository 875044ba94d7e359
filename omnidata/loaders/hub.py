"""Benchmarks through Hugging Face `datasets`: `load_dataset("omnigui", "TED", data_dir=...)`.

Written against what `datasets` 3.6 to 5.2 really do. A builder that yields Arrow tables needs no
torchcodec, media columns stay undecoded, and the cache folder carries a fingerprint of the
annotations and of this code: `datasets` itself would go on serving edited data from its cache.

`datasets` takes the one builder that a module defines, so each has a module of its own.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module, resources
from pathlib import Path
from typing import Any, ClassVar

import datasets
import pyarrow as pa

from omnidata.errors import DataError, MediaError, PlatformError, UsageError, meant
from omnidata.files import bounds, following, remember_bounds
from omnidata.loaders.detect import reading
from omnidata.loaders.files import refuse_closed
from omnidata.loaders.repository import is_repository, open_dataset
from omnidata.loaders.rows import ALL, features, subsets, to_row
from omnidata.loaders.rows import find as find_subset
from omnidata.media import linkable, read_bytes
from omnidata.types import MediaRef, Modality, Source, Step

_SHARDS = 8
_BATCH, _BATCH_STORED = 500, 20  # rows; with media in them, some tens of megabytes
_log = logging.getLogger("omnidata")


@dataclass(frozen=True, eq=False)
class Benchmark:
    """What a builder needs to know of a benchmark.

    Attributes:
        task: its name.
        title: in words.
        load: reads the data, without a look at the media.
        fingerprint: of the annotations, without reading them as steps.
        tags: of its steps.
        roles: the media of its steps; None where they depend on the data.
        subsets: those that every such dataset has; more are found in the data.
    """

    task: str
    title: str
    load: Callable[[Path], Source]
    fingerprint: Callable[[Path], str]
    tags: Sequence[str]
    roles: Mapping[str, Modality] | None
    subsets: Sequence[str]


@dataclass
class Config(datasets.BuilderConfig):  # type: ignore[misc]  # it has no types
    """One subset: `all` or a value of a tag; case is ignored.

    Attributes:
        media_roots: folders outside the data to which links may lead.
    """

    name: str = ALL
    media_roots: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Make `all` the default."""
        super().__post_init__()
        if self.name == "default":
            self.name = ALL

    def create_config_id(self, config_kwargs: dict[str, Any], custom_features: Any = None) -> str:
        """The beginning of the cache folder's name; the builder adds the fingerprint."""
        return f"{self.name}-"


class Builder(datasets.ArrowBasedBuilder):  # type: ignore[misc]  # it has no types
    """Builds a benchmark; one split, `test`."""

    BUILDER_CONFIG_CLASS = Config
    DEFAULT_CONFIG_NAME = ALL
    BUILDER_CONFIGS: list[Config] = []  # noqa: RUF012  an instance replaces it, see below
    benchmark: ClassVar[Benchmark]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """List the subsets that need no data to be known."""
        super().__init_subclass__(**kwargs)
        names = (ALL, *cls.benchmark.subsets)
        cls.BUILDER_CONFIGS = [Config(name, version=datasets.Version("1.0.0")) for name in names]

    def _create_builder_config(
        self, config_name: str | None = None, **kwargs: Any
    ) -> tuple[datasets.BuilderConfig, str]:
        """Accept the subsets of the data beside those listed, in any case.

        The cache folder is named after the subset, and what the data and this code are now.
        """
        known = {config.name.casefold(): config.name for config in type(self).BUILDER_CONFIGS}
        name = known.get((config_name or ALL).casefold())
        if name is None:
            name, self.BUILDER_CONFIGS = config_name, []
            kwargs.setdefault("version", datasets.Version("1.0.0"))
        config, config_id = super()._create_builder_config(config_name=name, **kwargs)
        with following(config.media_roots):
            found = _fingerprint(self.benchmark, self._root(config))
        return config, config_id + found[:16]

    def _root(self, config: datasets.BuilderConfig) -> Path:
        """The folder or file that the user named; what `datasets` found by itself is no answer."""
        task = self.benchmark.task
        if config.data_dir and is_repository(Path(config.data_dir)):
            raise DataError(
                "this is a Parquet repository, which needs no builder",
                where=str(config.data_dir),
                expected=f"data in one of {self.benchmark.title}'s own forms",
                remedy=f'datasets.load_dataset("{config.data_dir}", "{config.name}", split="test")',
            )
        if config.data_dir:
            return Path(config.data_dir)
        # Never `data_files`: without a data_dir, `datasets` fills it with what it finds in the
        # working directory, and nobody can tell that from what a user named.
        raise DataError(
            "no data is named",
            where=f'load_dataset("{task}")',
            expected="data_dir=FOLDER",
            remedy=f'load_dataset("{task}", "all", data_dir="path/to/data", split="test"), or '
            f'omnidata.load_dataset("{task}", FILE) for a single file',
        )

    def _source(self, root: Path) -> Source:
        with following(self.config.media_roots):
            return _load(self.benchmark, str(root), _fingerprint(self.benchmark, root))

    def _info(self) -> datasets.DatasetInfo:
        roles = self.benchmark.roles
        if roles is None:
            roles = self._source(self._root(self.config)).roles
        return datasets.DatasetInfo(
            description=self.benchmark.title, features=features(self.benchmark.tags, roles)
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        root, subset = self._root(self.config), self.config.name
        source = self._source(root)
        refuse_closed(source.steps)
        if source.findings:
            _log.warning(
                "%s: %d findings; `omnidata validate %s %s` lists them",
                root, len(source.findings), self.benchmark.task, root,
            )  # fmt: skip
        if not _choose(source, subset):
            raise DataError(
                f'the data has no subset "{subset}"',
                where=str(root),
                expected=f"one of {', '.join(config_names(source))}",
            )
        shards = [f"{number}/{_SHARDS}" for number in range(_SHARDS)]
        kwargs = {"shards": shards, "root": str(root), "subset": subset}
        return [datasets.SplitGenerator(name=datasets.Split.TEST, gen_kwargs=kwargs)]

    def _generate_tables(
        self, shards: Sequence[str], root: str, subset: str
    ) -> Iterator[tuple[Any, pa.Table]]:
        steps = _choose(self._source(Path(root)), subset)
        schema = self.info.features.arrow_schema
        stored = any(ref.cell for step in steps for ref in step.media.values() if ref)
        batch = _BATCH_STORED if stored else _BATCH
        for shard in shards:
            number, _, count = shard.partition("/")
            low, high = (len(steps) * (int(number) + end) // int(count) for end in (0, 1))
            for begin in range(low, high, batch):
                rows = [
                    to_row(step, self.benchmark.tags) | _media(step)
                    for step in steps[begin : min(begin + batch, high)]
                ]
                yield (int(number), begin), pa.Table.from_pylist(rows, schema=schema)


def _fingerprint(benchmark: Benchmark, root: Path) -> str:
    """SHA-256 over the annotations, the media's folder and the loader's own code."""
    with reading(root, benchmark.task):
        digest = hashlib.sha256(benchmark.fingerprint(root).encode())
        digest.update(os.fsencode("\0".join(bounds())))
        remember_bounds()
    tasks = resources.files("omnidata.tasks")
    rooms = sorted((room for room in tasks.iterdir() if room.is_dir()), key=lambda room: room.name)
    core = (resources.files("omnidata"), resources.files("omnidata.loaders"))
    for folder in (*core, tasks, *rooms):
        for code in sorted(folder.iterdir(), key=lambda path: path.name):
            if code.name.endswith((".py", ".json")):
                digest.update(code.read_bytes())
    return digest.hexdigest()


@lru_cache(maxsize=2)  # the builder asks once per shard; two, so that old data is not kept for long
def _load(benchmark: Benchmark, root: str, fingerprint: str) -> Source:
    return benchmark.load(Path(root))


def _choose(source: Source, name: str) -> list[Step]:
    """The steps of a subset; none if there is no such subset."""
    subset = find_subset(subsets(source.steps)[0], name)
    return [step for step in source.steps if subset.has(step)] if subset else []


def config_names(source: Source) -> list[str]:
    """The subsets that the data has, `all` first."""
    return [subset.name for subset in subsets(source.steps)[0]]


def _media(step: Step) -> dict[str, dict[str, Any] | None]:
    """The media columns: paths, and bytes only for what has no file of its own."""
    return {role: _medium(ref) for role, ref in step.media.items() if ref}


def _medium(ref: MediaRef) -> dict[str, Any] | None:
    if ref.cell is None:
        path = linkable(ref)
        return {"bytes": None, "path": str(path)} if path else None
    try:
        return {"bytes": read_bytes(ref), "path": ref.path}
    except MediaError:  # `omnidata validate` says why
        return None


# The two ways into `datasets`: a name in its table of builders, and a function of our own.

_HOME = "omnidata.tasks"
BUILDERS = {
    "omnigui": (f"{_HOME}.omnigui.builder", "OmniGui"),
    "groundui": (f"{_HOME}.agentstudio.builder_groundui", "GroundUi"),
    "idm-single": (f"{_HOME}.agentstudio.builder_idm_single", "IdmSingle"),
    "idm-multiple": (f"{_HOME}.agentstudio.builder_idm_multiple", "IdmMultiple"),
    "criticbench": (f"{_HOME}.agentstudio.builder_criticbench", "CriticBench"),
    "omnibench": (f"{_HOME}.omnibench.builder", "OmniBench"),
    "osworld": (f"{_HOME}.osworld.builder", "OsWorld"),
    "aitw": (f"{_HOME}.aitw.builder", "Aitw"),
    "androidcontrol": (f"{_HOME}.androidcontrol.builder", "AndroidControl"),
    "agentnet": (f"{_HOME}.agentnet.builder", "AgentNet"),
    "screenspot": (f"{_HOME}.screenspot.builder", "ScreenSpot"),
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
