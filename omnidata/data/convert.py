"""Any source as a Parquet repository that `datasets.load_dataset` opens without omnidata."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from omnidata.data.convert_shards import (
    Plan,
    RepositoryStaging,
    Shard,
    Writer,
    plan,
    portable,
    slug,
)
from omnidata.errors import Finding, UsageError, counted
from omnidata.loaders.files import media_absent, refuse_closed
from omnidata.loaders.repository import FORMAT, MANIFEST, Manifest
from omnidata.loaders.rows import ALL, storable, subsets
from omnidata.storage import write_json
from omnidata.types import LoadedDataset, Progress

# The repository's README: what `datasets` reads to find subsets, and what people read.


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


def configs(source: LoadedDataset, plans: Sequence[Plan], shards: Sequence[Shard]) -> list[Config]:
    """A config per subset, over shared shards."""
    found = []
    for subset in subsets(source)[0]:
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


def dataset_version(digest: str) -> str:
    """A version that changes with the content; without it `datasets` serves its old cache.

    Examples:
        >>> dataset_version("00000010" + "f" * 56)
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
                    "version": dataset_version(manifest.digest),
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


@dataclass(frozen=True, slots=True)
class Converted:
    """What has been written.

    Attributes:
        manifest: what the repository says of itself.
        findings: about the source, its media, and the names of subsets.
    """

    manifest: Manifest
    findings: Sequence[Finding]


def convert(
    source: LoadedDataset,
    out: Path,
    *,
    embed: bool,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Converted:
    """Write a repository; it appears under its name only when it is whole.

    An interrupted conversion leaves a hidden folder beside `out`; the same call goes on with the
    shards that are there, unless the source or a medium has changed.

    Args:
        source: what a task's `load` gave, best without `check_media`: all media are decoded here.
        out: a new folder.
        embed: put the media into the rows (portable); otherwise their paths (for this machine).
        overwrite: replace a repository that is there.
        progress: called with the steps done and their number.

    Raises:
        UsageError: `out` is there and not to be replaced or no repository, or the source's media
            have no files that could be linked.
        DataError: another process is converting to the same place, it cannot be written, or the
            media lie outside the source, in folders that nobody named.
    """
    refuse_closed(source.steps)
    refs = [ref for step in source.steps for ref in step.media.values() if ref]
    if not embed and any(ref.cell or ref.inline is not None for ref in refs):
        raise UsageError(
            "some media lie inside other files or rows and cannot be linked",
            where=str(source.root),
            expected="a source whose media are files",
            remedy="use --embed",
        )
    roots = sorted({ref.root for ref in refs})
    del refs
    plans = plan(source, embed=embed)
    with (
        RepositoryStaging(out, overwrite=overwrite, inputs=[source.root, *roots]) as staging,
        staging.writing(),
    ):
        shards = _write(source, plans, staging, embed=embed, roots=roots, progress=progress)
        found = configs(source, plans, shards)
        manifest = _describe(source, found, shards, embed=embed, roots=roots)
        text = readme(manifest, found, shards, staging.out.name)
        (staging.path / "README.md").write_text(text, encoding="utf-8")
        write_json(staging.path / MANIFEST, asdict(manifest))
        staging.publish(shards)
    unnamable = map(_unnamable, subsets(source)[1])
    findings = (*manifest.findings, *manifest.media_findings, *unnamable)
    return Converted(manifest, findings)


def _write(
    source: LoadedDataset,
    plans: Sequence[Plan],
    staging: RepositoryStaging,
    *,
    embed: bool,
    roots: Sequence[Path],
    progress: Progress | None,
) -> list[Shard]:
    """Write all shards but those that an interrupted call has left."""
    settings = {
        "format": FORMAT,
        "embed": embed,
        "source": source.fingerprint,
        "omnidata": version("omnidata"),
    }
    done = staging.resume(settings)
    shards = []
    count = 0

    def advance(rows: int) -> None:
        nonlocal count
        count += rows
        if progress:
            progress(count, len(source.steps))

    writer = Writer(source, staging.path, embed=embed, roots=roots)
    for planned in plans:
        stamp = writer.stamp(planned)
        shard = done.get(stamp)
        if shard is None:
            shard = writer.write(planned, stamp, advance)
            staging.add(shard)
        else:
            advance(shard.rows)
        shards.append(shard)
    return shards


def _describe(
    source: LoadedDataset,
    found: Sequence[Config],
    shards: Sequence[Shard],
    *,
    embed: bool,
    roots: Sequence[Path],
) -> Manifest:
    digest = hashlib.sha256(f"{FORMAT} {source.task} {embed}".encode())
    for shard in shards:
        digest.update(shard.digest.encode())
    findings = list(portable(source.findings, source.root))
    for finding in findings:
        digest.update(str(finding).encode())
    return Manifest(
        task=source.task,
        embed=embed,
        digest=digest.hexdigest(),
        fingerprint=source.fingerprint,
        tags=source.tags,
        roles=source.roles,
        roots=[] if embed else [str(storable(str(root.resolve()))) for root in roots],
        subsets={config.name: config.numbers for config in found},
        shards={shard.file: shard.rows for shard in shards},
        rows=len(source.row_ids),
        skipped=source.skipped,
        findings=findings,
        media_findings=_media_findings(source, shards),
    )


def _media_findings(source: LoadedDataset, shards: Sequence[Shard]) -> list[Finding]:
    """What is wrong with the media; one finding where none of them exists."""
    findings = [found for shard in shards for found in shard.findings]
    if findings and not any(shard.found for shard in shards):
        return list(portable([media_absent(source.steps)], source.root))
    return findings


def _unnamable(value: str) -> Finding:
    return Finding(
        "subset-unnamable",
        "warning",
        value,
        "the value cannot name a subset",
        'a short name without < > : " / \\ | ? *, which is no label and neither all nor default',
        "filter the column instead",
    )
