"""Benchmarks through Hugging Face `datasets`: `load_dataset("omnigui", "TED", data_dir=...)`.

Written against what `datasets` 3.6 to 5.2 really do. A builder that yields Arrow tables needs no
torchcodec, media columns (screenshots, clips, audio) stay undecoded, and the cache folder carries a
fingerprint of the annotations and of this code: `datasets` itself would go on serving edited data
from its cache.

`datasets` takes the one builder that a module defines, and its worker processes import that module
by its name. So each task has one, `omnidata.loaders.builders.<task>`, made when it is imported; its
name begins with this module, which is therefore imported first in every process.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from itertools import chain, pairwise, starmap
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

import datasets
import pyarrow as pa

from omnidata import registry, remote
from omnidata.errors import DataError, MediaError, UsageError
from omnidata.files import bounds, following, remember_bounds
from omnidata.loaders.columns import DETAILS, features
from omnidata.loaders.data_place import local_place
from omnidata.loaders.hooks import explain_casts, module_of
from omnidata.loaders.load import reading
from omnidata.loaders.media_findings import refuse_closed
from omnidata.loaders.reader_code import code_places
from omnidata.loaders.repository import is_repository, open_dataset
from omnidata.loaders.rows import needs_details, to_row
from omnidata.loaders.steps import media_of
from omnidata.loaders.subsets import ALL, select_subset, subsets
from omnidata.media import is_remote, linkable, read_bytes
from omnidata.types import LoadedDataset, MediaRef, Step

if TYPE_CHECKING:
    from omnidata.tasks.benchmark import Benchmark

_SHARDS = 8
_BATCH, _BATCH_BYTES = 500, 32 * 1024**2  # rows, and bytes of the media in them
_log = logging.getLogger("omnidata")

__path__: list[str] = []
"""Makes this module a package; `_Modules` makes the modules in it."""

BUILDER = "TaskBuilder"
"""The name of the builder in its module."""


@dataclass
class Config(datasets.BuilderConfig):  # type: ignore[misc]  # it has no types
    """One subset: `all` or a value of a tag; case is ignored.

    Attributes:
        media_roots: folders outside the data to which links may lead.
    """

    name: str = ALL
    media_roots: Sequence[str] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.name == "default":
            self.name = ALL

    def create_config_id(self, config_kwargs: dict[str, Any], custom_features: Any = None) -> str:
        """Return the beginning of the cache folder's name; the builder adds the fingerprint."""
        return f"{self.name}-"


class Builder(datasets.ArrowBasedBuilder):  # type: ignore[misc]  # it has no types
    """Builds the dataset of a task; one split, `test`.

    Attributes:
        task: with its default options.
    """

    BUILDER_CONFIG_CLASS = Config
    DEFAULT_CONFIG_NAME = ALL
    BUILDER_CONFIGS: list[Config] = []  # noqa: RUF012  an instance replaces it, see below
    task: ClassVar[Benchmark]
    _has_reported_lost = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        names = (ALL, *cls.task.card.subsets)
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
            self._content = _fingerprint(self.task, self._root(config))
        return config, config_id + self._content[:16]

    def _root(self, config: datasets.BuilderConfig) -> Path:
        task = self.task.name
        root = remote.get(config.data_dir) if config.data_dir else Path()
        if config.data_dir and is_repository(root):
            raise DataError(
                "this is a Parquet repository, which needs no builder",
                where=str(config.data_dir),
                expected=f"data in one of {self.task.card.title}'s own forms",
                remedy=f'datasets.load_dataset("{config.data_dir}", "{config.name}", split="test")',
            )
        if config.data_dir:
            return root
        raise DataError(
            "data_dir is missing: omnidata brings no data of its own",
            where=f'datasets.load_dataset("{task}", "{config.name}")',
            expected=f"data_dir=FOLDER; `omnidata info {task}` describes its files",
            remedy=f'datasets.load_dataset("{task}", "{config.name}", data_dir="path/to/data", '
            f'split="test"), or omnidata.load_dataset("{task}", FILE) for a single file',
        )

    def _source(self, root: Path) -> LoadedDataset:
        with following(self.config.media_roots):
            return _load(type(self).__module__, str(root), self._content)

    def _info(self) -> datasets.DatasetInfo:
        card = self.task.card
        tags, roles, has_details = card.tags, card.roles, card.detailed_actions
        if tags is None or roles is None or has_details is None:
            source = self._source(self._root(self.config))
            tags = source.tags if tags is None else tags
            roles = source.roles if roles is None else roles
            if has_details is None:
                pairs = pairwise(chain([None], source.steps))
                has_details = any(starmap(needs_details, pairs))
        columns = features(tags, roles, optional=(DETAILS,) if has_details else ())
        return datasets.DatasetInfo(description=self.task.card.title, features=columns)

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        root, subset = self._root(self.config), self.config.name
        source = self._source(root)
        refuse_closed(media_of(source.steps))
        if source.findings:
            _log.warning(
                "%s: %d findings; `omnidata validate %s %s` lists them",
                root, len(source.findings), self.task.name, root,
            )  # fmt: skip
        if not select_subset(source, subset):
            raise DataError(
                f'the data has no subset "{subset}"',
                where=str(root),
                expected=f"one of {', '.join(known.name for known in subsets(source)[0])}",
            )
        shards = [f"{number}/{_SHARDS}" for number in range(_SHARDS)]
        kwargs = {"shards": shards, "root": str(root), "subset": subset}
        return [datasets.SplitGenerator(name=datasets.Split.TEST, gen_kwargs=kwargs)]

    def _generate_tables(
        self, shards: Sequence[str], root: str, subset: str
    ) -> Iterator[tuple[Any, pa.Table]]:
        source = self._source(Path(root))
        steps = select_subset(source, subset)
        tags = source.tags if self.task.card.tags is None else self.task.card.tags
        schema = self.info.features.arrow_schema
        optional = {DETAILS}.intersection(schema.names)
        for shard in shards:
            number, _, count = shard.partition("/")
            low, high = (len(steps) * (int(number) + end) // int(count) for end in (0, 1))
            rows: list[dict[str, Any]] = []
            size = lost = 0
            for place, step in enumerate(steps[low:high], low + 1):
                media = {role: _medium(ref) for role, ref in step.media.items() if ref}
                lost += sum(medium is None for medium in media.values())
                size += sum(len(medium["bytes"] or b"") for medium in media.values() if medium)
                rows.append(to_row(step, tags, optional) | media)
                if len(rows) == _BATCH or size > _BATCH_BYTES or place == high:
                    yield (int(number), place), pa.Table.from_pylist(rows, schema=schema)
                    rows, size = [], 0
            if lost:
                self._report_lost(root, steps, range(low, high), lost)

    def _report_lost(self, root: str, steps: Sequence[Step], shard: range, lost: int) -> None:
        """Report the media that rows lack, once: the shard with the first closed file counts all.

        Any process makes any shard and sees only its own.
        """
        if self._has_reported_lost or any(map(_count_closed, steps[: shard.start])):
            return
        self._has_reported_lost = True
        # Those in files of rows are only known once they are read.
        has_others = lost > sum(map(_count_closed, steps[shard.start : shard.stop]))
        _log.warning(
            "%s: %d%s of the media may not be opened, and the rows lack them; "
            "`omnidata validate %s %s` says why",
            root, max(lost, sum(map(_count_closed, steps))), " or more" if has_others else "",
            self.task.name, root,
        )  # fmt: skip


def _fingerprint(task: Benchmark, root: Path) -> str:
    """Return SHA-256 over the annotations, the media's folder, and the code that reads them.

    For data on a store also over the listing, as their rows hold the media's bytes.
    """
    with reading(root, task.data_of):
        digest = hashlib.sha256(task.fingerprint(root).encode())
        digest.update(os.fsencode("\0".join(bounds())))
        digest.update(remote.listing_of(root).encode())
        remember_bounds()
    for code in _code(task):
        digest.update(code.read_bytes())
    return digest.hexdigest()


def _code(task: Benchmark) -> Iterator[Path]:
    own = Path(__file__).parents[1]
    yield from sorted(own.glob("*.py"))
    yield from _code_below(own / "loaders")
    yield from _code_below(own / "tasks")
    for place in code_places(type(task)):
        yield from _code_below(place) if place.is_dir() else [place]


def _code_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in (".py", ".json"))


@lru_cache(maxsize=2)  # the builder asks once per shard; two, so that old data is not kept for long
def _load(module: str, root: str, fingerprint: str) -> LoadedDataset:
    task: Benchmark = getattr(import_module(module), BUILDER).task
    with reading(Path(root), task.data_of):
        return task.load(Path(root), check_media=False)


def _count_closed(step: Step) -> int:
    """Count the media of a step that are files which may not be opened."""
    return sum(
        linkable(ref) is None
        for ref in step.media.values()
        if ref is not None and not ref.cell and not is_remote(ref)
    )


def _medium(ref: MediaRef) -> dict[str, Any] | None:
    if ref.cell is None and not is_remote(ref):
        path = linkable(ref)
        return {"bytes": None, "path": str(path)} if path else None
    try:
        return {"bytes": read_bytes(ref), "path": ref.path}
    except MediaError:  # `omnidata validate` says why
        return None


# The modules of the builders.


class _Modules(MetaPathFinder, Loader):
    """Makes the module of a task's builder when it is imported."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(f"{__name__}."):
            return None
        for task in registry.names():
            if module_of(task) == fullname:
                spec = ModuleSpec(fullname, self, origin=str(Path(__file__)), loader_state=task)
                spec.has_location = True  # `datasets` looks into the file of a builder
                return spec
        return None

    def exec_module(self, module: ModuleType) -> None:
        assert module.__spec__ is not None
        task = registry.get_benchmark(module.__spec__.loader_state)
        fields = {
            "__module__": module.__name__,
            "__doc__": f"Builds {task.card.title}.",
            "task": task,
        }
        setattr(module, BUILDER, type(BUILDER, (Builder,), fields))


sys.meta_path.append(_Modules())


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
        task: of ours or of another distribution, e.g. "omnigui".
        data: data that the task's loader reads; "hf://ORG/NAME@REVISION", or "auto" for the data
            that `omnidata fetch` has put into the cache (see `data_place.local_place`).
        name: the subset: "all", or a value of a tag, e.g. an app or a platform.
        split: "test" for a `Dataset`; None for a `DatasetDict`.
        streaming: an `IterableDataset` (or a dict of them) that writes no cache.
        num_proc: processes that build the cache.
        cache_dir: where to cache; the default is that of `datasets`.
        media_roots: folders outside the data to which links and linked repositories may lead.

    Raises:
        UsageError: no such task or folder, or `num_proc` with `streaming`.
        DataError: the data is not that benchmark, or has no such subset.
    """
    registry.get_benchmark(task)
    explain_casts()
    if streaming and num_proc:
        raise UsageError(
            "a streamed dataset cannot be built by several processes",
            where="load_dataset(streaming=True, num_proc=...)",
            expected="one of the two",
        )
    data = local_place(data, task, _log.info)
    if is_repository(data):
        with following(media_roots), reading(data, task):
            return open_dataset(
                data, task, name, split=split, streaming=streaming, num_proc=num_proc,
                cache_dir=None if cache_dir is None else str(cache_dir),
            )  # fmt: skip
    builder = getattr(import_module(module_of(task)), BUILDER)(
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
