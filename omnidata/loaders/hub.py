"""OmniGUI through Hugging Face `datasets`: `load_dataset("omnigui", "TED", data_dir=...)`.

Written against what `datasets` 3.6 to 5.2 really do. A builder that yields Arrow tables needs no
torchcodec, media columns stay undecoded, and the cache folder carries a fingerprint of the
annotations and of this code: `datasets` itself would go on serving edited data from its cache.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa

from omnidata.errors import DataError
from omnidata.loaders import omnigui
from omnidata.loaders.omnigui_apps import DEPENDENCIES, DIMENSIONS, table7
from omnidata.loaders.omnigui_files import find
from omnidata.loaders.omnigui_rows import ROLES
from omnidata.loaders.repository import is_repository
from omnidata.loaders.rows import features, to_row
from omnidata.loaders.subsets import ALL, subsets
from omnidata.loaders.subsets import find as find_subset
from omnidata.media import linkable
from omnidata.types import Source, Step

LANGUAGES = ("en", "zh")
_SHARDS = 8
_BATCH = 500
_log = logging.getLogger("omnidata")

FEATURES = features(omnigui.TAGS, ROLES)


@dataclass
class OmniGuiConfig(datasets.BuilderConfig):  # type: ignore[misc]  # it has no types
    """One subset: `all`, an app, a dimension, a dependency level, `en` or `zh`; case is ignored."""

    name: str = ALL

    def __post_init__(self) -> None:
        """Make `all` the default."""
        super().__post_init__()
        if self.name == "default":
            self.name = ALL

    def create_config_id(self, config_kwargs: dict[str, Any], custom_features: Any = None) -> str:
        """The cache folder's name: the subset, and what the data and this code are now."""
        return f"{self.name}-{_fingerprint(_root(self))[:16]}"


class OmniGui(datasets.ArrowBasedBuilder):  # type: ignore[misc]  # it has no types
    """Builds OmniGUI; one split, `test`."""

    BUILDER_CONFIG_CLASS = OmniGuiConfig
    BUILDER_CONFIGS = [  # noqa: RUF012  an instance replaces it for an app that it does not list
        OmniGuiConfig(name=name, version=datasets.Version("1.0.0"))
        for name in (
            ALL,
            *DIMENSIONS,
            *DEPENDENCIES,
            *LANGUAGES,
            *sorted(row["app"] for row in table7()["apps"]),
        )
    ]
    DEFAULT_CONFIG_NAME = ALL

    def _create_builder_config(
        self, config_name: str | None = None, **kwargs: Any
    ) -> tuple[datasets.BuilderConfig, str]:
        """Accept the apps of the data beside those of Table 7, in any case."""
        known = {config.name.casefold(): config.name for config in type(self).BUILDER_CONFIGS}
        name = known.get((config_name or ALL).casefold())
        if name is None:
            name, self.BUILDER_CONFIGS = config_name, []
            kwargs.setdefault("version", datasets.Version("1.0.0"))
        result: tuple[datasets.BuilderConfig, str] = super()._create_builder_config(
            config_name=name, **kwargs
        )
        return result

    def _info(self) -> datasets.DatasetInfo:
        return datasets.DatasetInfo(
            description="OmniGUI: step-level multimodal GUI tasks on smartphones",
            features=FEATURES,
        )

    def _split_generators(self, dl_manager: Any) -> list[datasets.SplitGenerator]:
        source = _load(str(_root(self.config)), _fingerprint(_root(self.config)))
        if source.findings:
            _log.warning(
                "%s: %d findings; `omnidata info %s` lists them",
                source.root, len(source.findings), source.root,
            )  # fmt: skip
        if not _choose(source.steps, self.config.name):
            raise DataError(
                f'the data has no subset "{self.config.name}"',
                where=str(source.root),
                expected=f"one of {', '.join(config_names(source))}",
            )
        shards = [f"{number}/{_SHARDS}" for number in range(_SHARDS)]
        generator = datasets.SplitGenerator(
            name=datasets.Split.TEST,
            gen_kwargs={
                "shards": shards,
                "root": str(_root(self.config)),
                "subset": self.config.name,
            },
        )
        return [generator]

    def _generate_tables(
        self, shards: Sequence[str], root: str, subset: str
    ) -> Iterator[tuple[Any, pa.Table]]:
        source = _load(root, _fingerprint(Path(root)))
        steps = _choose(source.steps, subset)
        for shard in shards:
            number, _, count = shard.partition("/")
            low, high = (len(steps) * (int(number) + end) // int(count) for end in (0, 1))
            for begin in range(low, high, _BATCH):
                rows = [_row(step) for step in steps[begin : min(begin + _BATCH, high)]]
                table = pa.Table.from_pylist(rows, schema=_STORAGE)
                yield (int(number), begin), datasets.table.table_cast(table, FEATURES.arrow_schema)


def _storage_schema() -> pa.Schema:
    """The features with media as plain paths, which `table_cast` turns into media columns."""
    media = ROLES
    return pa.schema(
        [
            pa.field(field.name, pa.string() if field.name in media else field.type)
            for field in FEATURES.arrow_schema
        ]
    )


_STORAGE = _storage_schema()


def _root(config: datasets.BuilderConfig) -> Path:
    """The folder or file that the user named; what `datasets` found by itself is no answer."""
    if config.data_dir and is_repository(Path(config.data_dir)):
        raise DataError(
            "this is a Parquet repository, which needs no builder",
            where=str(config.data_dir),
            expected="data in one of OmniGUI's own forms",
            remedy=f'datasets.load_dataset("{config.data_dir}", "{config.name}", split="test")',
        )
    if config.data_dir:
        return Path(config.data_dir)
    # Never `data_files`: without a data_dir, `datasets` fills it with what it finds in the working
    # directory, and nobody can tell that from what a user named.
    raise DataError(
        "no data is named",
        where='load_dataset("omnigui")',
        expected="data_dir=FOLDER",
        remedy='load_dataset("omnigui", "all", data_dir="path/to/data", split="test"), or '
        'omnidata.load_dataset("omnigui", FILE) for a JSON file of steps',
    )


def _fingerprint(root: Path) -> str:
    """SHA-256 over the annotations, the media's folder and the loader's own code."""
    digest = hashlib.sha256(find(root).fingerprint().encode())
    digest.update(str(root.resolve()).encode())
    for folder in (resources.files("omnidata"), resources.files("omnidata.loaders")):
        for code in sorted(folder.iterdir(), key=lambda path: path.name):
            if code.name.endswith((".py", ".json")):
                digest.update(code.read_bytes())
    return digest.hexdigest()


@lru_cache(maxsize=2)  # the builder asks once per shard; two, so that old data is not kept for long
def _load(root: str, fingerprint: str) -> Source:
    return omnigui.load(Path(root), check_media=False)


def _choose(steps: Sequence[Step], name: str) -> list[Step]:
    """The steps of a subset; none if there is no such subset."""
    subset = find_subset(subsets(steps)[0], name)
    return [step for step in steps if subset.has(step)] if subset else []


def config_names(source: Source) -> list[str]:
    """The subsets that the data has, `all` first."""
    return [subset.name for subset in subsets(source.steps)[0]]


def _row(step: Step) -> dict[str, Any]:
    """A step as a row of `FEATURES`, with media as paths."""
    paths = {role: linkable(ref) for role, ref in step.media.items() if ref}
    return to_row(step, omnigui.TAGS) | {role: str(path) for role, path in paths.items() if path}
