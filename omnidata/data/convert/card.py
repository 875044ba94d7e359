"""The repository's README: what `datasets` reads to find subsets, and what people read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from omnidata.data.convert.shards import Plan, Shard, slug
from omnidata.errors import counted
from omnidata.loaders.repository import Manifest
from omnidata.loaders.subsets import ALL, subsets
from omnidata.types import Source


@dataclass(frozen=True, slots=True)
class Config:
    """A subset of the repository as `datasets` sees it.

    Attributes:
        name: as in the data; `all` is the default.
        paths: a pattern over the folders of the tags, or the shards where no single one fits: none
            may match a shard twice.
        numbers: of its shards.
    """

    name: str
    paths: Sequence[str]
    numbers: Sequence[int]


def configs(source: Source, plans: Sequence[Plan], shards: Sequence[Shard]) -> list[Config]:
    """A config per subset, over shared shards."""
    found = []
    for subset in subsets(source.steps)[0]:
        # The steps of a shard have the same tags: one stands for all.
        numbers = [
            number for number, plan in enumerate(plans) if subset.has(source.steps[plan.numbers[0]])
        ]
        if len(subset.values) > 1:
            paths = [shards[number].file for number in numbers]
        else:
            wanted = dict(subset.values)
            levels = [slug(wanted[tag]) if tag in wanted else "*" for tag in source.tags]
            paths = ["/".join(("data", *levels, "*.parquet"))]
        found.append(Config(subset.name, paths, numbers))
    return found


def version(digest: str) -> str:
    """A version that changes with the content; without it `datasets` serves its old cache.

    Examples:
        >>> version("00000010" + "f" * 56)
        '1.0.16'
    """
    return f"1.0.{int(digest[:8], 16)}"


def readme(
    manifest: Manifest, configs: Sequence[Config], shards: Sequence[Shard], name: str
) -> str:
    """The text of `README.md`."""
    front = yaml.safe_dump(
        {
            "configs": [
                {
                    "config_name": config.name,
                    **({"default": True} if config.name == ALL else {}),
                    "version": version(manifest.digest),
                    "data_files": [{"split": "test", "path": list(config.paths)}],
                }
                for config in configs
            ],
            "dataset_info": [
                _info(config.name, [shards[number] for number in config.numbers])
                for config in configs
            ],
        },
        sort_keys=False,
        allow_unicode=True,
    )
    findings = [*manifest.findings, *manifest.media_findings]
    return _TEXT.format(
        front=front,
        name=name,
        task=manifest.task,
        steps=counted(sum(manifest.shards.values()), "step"),
        held="in the rows" if manifest.embed else "linked: the paths belong to one machine",
        findings=counted(len(findings), "finding"),
        broken=sum(found.severity == "error" for found in findings),
        digest=manifest.digest,
    )


def _info(name: str, shards: Sequence[Shard]) -> dict[str, Any]:
    num_bytes = sum(shard.num_bytes for shard in shards)
    rows = sum(shard.rows for shard in shards)
    return {
        "config_name": name,
        "splits": [{"name": "test", "num_bytes": num_bytes, "num_examples": rows}],
        "download_size": sum(shard.size for shard in shards),
        "dataset_size": num_bytes,
    }


_TEXT = """---
{front}---
# {name}

{steps} of {task}, one per row, with the history before each. Media are {held}.
{findings} about the source (in `omnidata.json`), {broken} of them errors.

```python
from datasets import load_dataset

steps = load_dataset("path/to/{name}", split="test")
```

Every subset is a choice of rows of `all`: never add two of them up. The column `media` has the
SHA-256, the number of frames and the duration of every medium. Content: `{digest}`.
"""
