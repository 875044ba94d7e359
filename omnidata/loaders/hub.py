"""OmniGUI through Hugging Face `datasets`: `load_dataset("omnigui", "TED", data_dir=...)`.

Written against what `datasets` 3.6 to 5.2 really do. A builder that yields Arrow tables needs no
torchcodec, media columns stay undecoded, and the cache folder carries a fingerprint of the
annotations and of this code: `datasets` itself would go on serving edited data from its cache.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa

from omnidata.actions import Action, Box, Region
from omnidata.errors import DataError
from omnidata.loaders import omnigui
from omnidata.loaders.omnigui_apps import DEPENDENCIES, DIMENSIONS, app_key, table7
from omnidata.loaders.omnigui_files import find
from omnidata.media import unsafe
from omnidata.types import MediaRef, Source, Step

ALL = "all"
LANGUAGES = ("en", "zh")
_TAGS = ("app", "language", "dimension", "dependency")
_SHARDS = 8
_BATCH = 500
_log = logging.getLogger("omnidata")

_REGION = {
    "left": datasets.Value("float64"),
    "top": datasets.Value("float64"),
    "right": datasets.Value("float64"),
    "bottom": datasets.Value("float64"),
    "space": datasets.Value("string"),
    "is_point": datasets.Value("bool"),
}
_ACTION = {
    "kind": datasets.Value("string"),
    "number": datasets.Value("int32"),
    "start": [_REGION],
    "end": [_REGION],
    "text": datasets.Value("string"),
    "words": datasets.Value("string"),
}
FEATURES = datasets.Features(
    {
        "sample_id": datasets.Value("string"),
        "episode_id": datasets.Value("string"),
        "step_index": datasets.Value("int32"),
        "num_steps": datasets.Value("int32"),
        "instruction": datasets.Value("string"),
        "screen_width": datasets.Value("int32"),
        "screen_height": datasets.Value("int32"),
        "app": datasets.Value("string"),
        "language": datasets.Value("string"),
        "dimension": datasets.Value("string"),
        "dependency": datasets.Value("string"),
        "screenshot": datasets.Image(decode=False),
        "history_screenshot": datasets.Image(decode=False),
        "video": datasets.Video(decode=False),
        "audio": datasets.Audio(decode=False),
        "history": [_ACTION],
        "action": _ACTION,
        "source": datasets.Value("string"),
    }
)
"""One row per step. Coordinates stay in the space of the source, which `space` names; media are
paths that nobody has opened; `source` is the untouched row as JSON."""


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
                rows = [to_row(step) for step in steps[begin : min(begin + _BATCH, high)]]
                table = pa.Table.from_pylist(rows, schema=_STORAGE)
                yield (int(number), begin), datasets.table.table_cast(table, FEATURES.arrow_schema)


def _storage_schema() -> pa.Schema:
    """The features with media as plain paths, which `table_cast` turns into media columns."""
    media = {"screenshot", "history_screenshot", "video", "audio"}
    return pa.schema(
        [
            pa.field(field.name, pa.string() if field.name in media else field.type)
            for field in FEATURES.arrow_schema
        ]
    )


_STORAGE = _storage_schema()


def _root(config: datasets.BuilderConfig) -> Path:
    """The folder or file that the user named; what `datasets` found by itself is no answer."""
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


def _choose(steps: Iterable[Step], name: str) -> list[Step]:
    """The steps of a subset; an app is found under any of Table 7's spellings."""
    wanted = name.casefold()
    if wanted == ALL:
        return list(steps)
    labels = {*DIMENSIONS, *DEPENDENCIES, *LANGUAGES}
    if wanted in labels:
        return [step for step in steps if wanted in step.tags.values()]
    return [step for step in steps if app_key(step.tags["app"]) == app_key(name)]


def config_names(source: Source) -> list[str]:
    """The subsets that the data has, `all` first."""
    return [ALL, *sorted({value for step in source.steps for value in step.tags.values()})]


def to_row(step: Step) -> dict[str, Any]:
    """A step as a row of `FEATURES`, with media as paths."""
    return {
        "sample_id": _storable(step.sample_id),
        "episode_id": _storable(step.episode_id),
        "step_index": step.step_index,
        "num_steps": step.num_steps,
        "instruction": _storable(step.instruction),
        "screen_width": step.screen[0],
        "screen_height": step.screen[1],
        **{name: _storable(step.tags.get(name)) for name in _TAGS},
        **{role: _path(ref) for role, ref in step.media.items()},
        "history": [_action(action) for action in step.history],
        "action": _action(step.action),
        "source": json.dumps(step.source, ensure_ascii=True),
    }


def _storable(text: str | None) -> str | None:
    """The text without lone surrogates, which Arrow refuses; `source` keeps them, escaped."""
    return text and text.encode("utf-8", "replace").decode()


def _path(ref: MediaRef | None) -> str | None:
    """The file's path; None for one that leads outside, which `datasets` would embed on export.

    Audio that a row holds inline stays in the column `source`.
    """
    if ref is None or ref.inline is not None or unsafe(ref.path):
        return None
    try:
        path = (ref.root / ref.path).resolve()
    except (OSError, ValueError):  # a name that no file system can hold
        return None
    return str(path) if path.is_relative_to(ref.root.resolve()) else None


def _action(action: Action | None) -> dict[str, Any] | None:
    if action is None:
        return None
    return {
        "kind": action.kind.name,
        "number": int(action.kind),
        "start": [_region(region) for region in action.start],
        "end": [_region(region) for region in action.end],
        "text": _storable(action.text),
        "words": _storable(action.words),
    }


def _region(region: Region) -> dict[str, Any]:
    if isinstance(region, Box):
        edges = (region.left, region.top, region.right, region.bottom)
    else:
        edges = (region.x, region.y, region.x, region.y)
    return {
        **dict(zip(("left", "top", "right", "bottom"), edges, strict=True)),
        "space": region.space,
        "is_point": not isinstance(region, Box),
    }
