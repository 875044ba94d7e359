"""The repository's README: what `datasets` reads to find subsets, and what people read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from omnidata.data.convert.shards import Shard, slug
from omnidata.errors import Finding
from omnidata.loaders.repository import Manifest
from omnidata.types import Source

ALL = "all"
_FORBIDDEN = '<>:"/\\|?*'  # `datasets` makes folders of the names


@dataclass(frozen=True, slots=True)
class Subset:
    """A config of the repository.

    Attributes:
        name: as in the data; `all` is the default.
        patterns: of its shards, one level per tag.
        shards: those shards.
    """

    name: str
    patterns: Sequence[str]
    shards: Sequence[Shard]

    @property
    def rows(self) -> int:
        """Its steps."""
        return sum(shard.rows for shard in self.shards)


def subsets(source: Source, shards: Sequence[Shard]) -> tuple[list[Subset], list[Finding]]:
    """A subset per value of a tag, over shared shards; values that differ in case are one.

    Returns:
        The subsets, `all` first, and a finding for every value that cannot name one.
    """
    places: dict[str, dict[str, None]] = {}
    names: dict[str, str] = {}
    findings = []
    for value, level in sorted({(v, t) for s in source.steps for t, v in s.tags.items()}):
        if value.casefold() in (ALL, "default") or any(letter in _FORBIDDEN for letter in value):
            findings.append(_unnamable(value))
            continue
        name = names.setdefault(value.casefold(), value)
        levels = ["*"] * len(source.tags)
        levels[source.tags.index(level)] = slug(value)
        places.setdefault(name, {})["/".join(("data", *levels))] = None
    everything = Subset(ALL, ["/".join(("data", *["*"] * len(source.tags)))], shards)
    return [
        everything,
        *(
            Subset(name, list(folders), [s for s in shards if _in(s, folders)])
            for name, folders in places.items()
        ),
    ], findings


def _in(shard: Shard, folders: Mapping[str, None]) -> bool:
    levels = shard.file.split("/")[:-1]
    return any(
        all(wanted in ("*", level) for wanted, level in zip(folder.split("/"), levels, strict=True))
        for folder in folders
    )


def _unnamable(value: str) -> Finding:
    return Finding(
        "subset-unnamable",
        "warning",
        value,
        "the name cannot be that of a subset",
        f"a name other than all and default, without {' '.join(_FORBIDDEN)}",
        "filter the column instead",
    )


def version(digest: str) -> str:
    """A version that changes with the content; without it `datasets` serves its old cache.

    Examples:
        >>> version("00000010" + "f" * 56)
        '1.0.16'
    """
    return f"1.0.{int(digest[:8], 16)}"


def readme(manifest: Manifest, subsets: Sequence[Subset], name: str) -> str:
    """The text of `README.md`."""
    configs = [
        {
            "config_name": subset.name,
            **({"default": True} if subset.name == ALL else {}),
            "version": version(manifest.digest),
            "data_files": [
                {"split": "test", "path": [f"{pattern}/*.parquet" for pattern in subset.patterns]}
            ],
        }
        for subset in subsets
    ]
    infos = [_info(subset) for subset in subsets]
    front = yaml.safe_dump(
        {"configs": configs, "dataset_info": infos}, sort_keys=False, allow_unicode=True
    )
    held = "in the rows" if manifest.embed else "linked: the paths belong to one machine"
    findings = [*manifest.findings, *manifest.media_findings]
    broken = sum(found.severity == "error" for found in findings)
    return _TEXT.format(
        front=front,
        name=name,
        task=manifest.task,
        steps=subsets[0].rows,
        held=held,
        findings=len(findings),
        broken=broken,
        digest=manifest.digest,
    )


def _info(subset: Subset) -> dict[str, Any]:
    num_bytes = sum(shard.num_bytes for shard in subset.shards)
    return {
        "config_name": subset.name,
        "splits": [{"name": "test", "num_bytes": num_bytes, "num_examples": subset.rows}],
        "download_size": sum(shard.size for shard in subset.shards),
        "dataset_size": num_bytes,
    }


_TEXT = """---
{front}---
# {name}

{steps} steps of {task}, one per row, with the history before each. Media are {held}.
{findings} findings about the source are in `omnidata.json`, {broken} of them errors.

```python
from datasets import load_dataset

steps = load_dataset("path/to/{name}", split="test")
```

Every subset is a choice of rows of `all`: never add two of them up. The column `media` has the
SHA-256, the number of frames and the duration of every medium. Content: `{digest}`.
"""
