"""Any source as a Parquet repository that `datasets.load_dataset` opens without omnidata."""

from __future__ import annotations

import hashlib
import math
import re
import shlex
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from omnidata import registry
from omnidata.data.convert_shards import (
    Layout,
    Plan,
    RepositoryStaging,
    Shard,
    ShardJobs,
    plan,
    portable,
    slug,
    stamp,
    try_to_write,
    write_shard,
)
from omnidata.errors import Finding, RunError, UsageError, counted
from omnidata.jsontext import encode
from omnidata.loaders.files import media_absent, refuse_closed
from omnidata.loaders.repository import FORMAT, MANIFEST, Manifest
from omnidata.loaders.rows import ALL, storable, subsets
from omnidata.media import is_mirrored
from omnidata.run.engines import Cluster, Lost, cores, each
from omnidata.run.engines.ray import wait_until_seen
from omnidata.storage import write_json
from omnidata.tasks import get_task
from omnidata.tasks.overview import Table, markdown_code, markdown_text, spelled_out, text_markdown
from omnidata.tasks.statistics import statistics
from omnidata.types import LoadedDataset, Progress, Publication

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
    source: LoadedDataset,
    manifest: Manifest,
    configs: Sequence[Config],
    shards: Sequence[Shard],
    name: str,
) -> str:
    """The text of `README.md`."""
    said = {step.tags.get("language", "") for step in source.steps}
    languages = sorted(value for value in said if re.fullmatch("[a-z]{2,3}", value))
    front = yaml.safe_dump(
        {
            "license": "unknown",  # nobody but who made the data can say it
            **({"language": languages} if languages else {}),
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
        name=markdown_text(name),
        path=spelled_out(encode(f"path/to/{name}").decode()),
        task=manifest.task,
        steps=counted(sum(manifest.shards.values()), "step"),
        held="in the rows" if manifest.embed else "linked: the paths belong to one machine",
        findings=counted(len(findings), "finding"),
        broken=sum(found.severity == "error" for found in findings),
        digest=manifest.digest,
        sheet=datasheet(source, manifest, name),
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

steps = load_dataset({path}, split="test")
```

Every subset is a choice of rows of `all`: never add two of them up. The column `media` has the
SHA-256, the number of frames and the duration of every medium. Content: `{digest}`.

{sheet}"""


_MOST = 30
"""Values of a tag that the datasheet lists; of more it has the number."""


def datasheet(source: LoadedDataset, manifest: Manifest, name: str) -> str:
    """What is known of the data, by the questions of a datasheet (OSWorld, Appendix G).

    What no data tell is asked of whoever shares them, and left open.

    Args:
        source: what the repository is made of.
        manifest: what it says of itself.
        name: of its folder.

    Returns:
        Markdown; nothing for data of a task that is not installed here.
    """
    if source.task not in registry.names():
        return ""
    task = get_task(source.task)
    found = statistics(task, source)
    codes = Counter(each.code for each in (*manifest.findings, *manifest.media_findings))
    tables = [*_tags(source), *found.tables()]
    if codes:
        rows = [[code, str(count)] for code, count in sorted(codes.items())]
        tables.append(Table("Findings about the source", ("", "findings"), rows))
    return _SHEET.format(
        title=task.title,
        holds=f"{task.title}: {task.holds}" if task.holds else task.title,
        episodes=counted(found.episodes, "episode"),
        steps=counted(found.steps, "step"),
        skipped=counted(manifest.skipped, "row"),
        tables="\n\n".join(map(text_markdown, tables)).replace("### ", "#### "),
        held="Yes: the media are in the rows." if manifest.embed else "No: the media are linked.",
        published="\n".join(map(_published, publications(source))) or "* No place is known.",
        command=markdown_code(
            f"omnidata evaluate {source.task} {_shell_word(name)} --model SPEC --out RUN"
        ),
    )


def publications(source: LoadedDataset) -> Sequence[Publication]:
    """Those of the task that the steps may be of, by their tags."""
    tags = {(tag, value) for step in source.steps for tag, value in step.tags.items()}
    return [one for one in get_task(source.task).sources if one.where.items() <= tags]


def _shell_word(name: str) -> str:
    """The name as a shell reads it; what is not seen is spelled out, as bash and zsh take it."""
    if spelled_out(name) == name:
        return shlex.quote(name)
    inner = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{spelled_out(inner)}'"


def _tags(source: LoadedDataset) -> list[Table]:
    """Steps by tag, of all tags in one table; none where there is no tag."""
    rows = []
    for tag in source.tags:
        counts = Counter(step.tags[tag] for step in source.steps if tag in step.tags)
        if len(counts) > _MOST:
            rows.append([tag, f"{len(counts)} values", ""])
        else:
            rows += [[tag, value, str(count)] for value, count in sorted(counts.items())]
    return [Table("Steps by tag", ("", "value", "steps"), rows)] if rows else []


def _published(one: Publication) -> str:
    licence = f"`{one.licence}`, as its publisher says" if one.licence else "no licence is stated"
    return f"* [{one.name}]({one.url}): {licence}"


_SHEET = """## Datasheet

Answers come of the data. What no data tell is marked **to be filled in** by whoever shares this.

### Motivation

{holds}.

* For what purpose, and by whom was it made? **To be filled in.**

### Composition

{steps} of {episodes}, each with its media, the expert's history before it, and what is right where
the source says it. {skipped} of the source became no step. There is one split, `test`.

{tables}

* Is it self-contained? {held}
* May pictures and sounds identify people, or offend? **To be filled in.**

### Collection and preprocessing

Nothing was cleaned: coordinates keep their unit, and the column `source` has every row as it was.

* How, when and by whom was it collected, and with whose consent? **To be filled in.**

### Uses

{command} asks a model about every step.

* Has it been used for training, and what should it not be used for? **To be filled in.**

### Distribution

Data of {title} are published here:

{published}

Nobody has checked that these rows are those data. If they are, their licence holds here too: write
it at the top of this file, in place of `unknown`. The licence of your own data is yours to give.

### Maintenance

The version at the top follows the content: another content has another version.

* Who maintains it, and where can errors be told? **To be filled in.**
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
    workers: int = 1,
    cluster: Cluster | None = None,
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
        workers: processes that write, each a file at a time; 1 = this one. The bytes are the same.
        cluster: whose workers write; None for this machine.
        progress: called with the steps done and their number.

    Raises:
        UsageError: `out` is there and not to be replaced or no repository, or the source's media
            have no files that could be linked.
        DataError: another process is converting to the same place, it cannot be written, or the
            media lie outside the source, in folders that nobody named.
        RunError: a process was lost, or the cluster is at fault.
    """
    refuse_closed(source.steps)
    refs = [ref for step in source.steps for ref in step.media.values() if ref]
    if not embed and any(ref.cell or ref.inline is not None or is_mirrored(ref) for ref in refs):
        raise UsageError(
            "some media are inside other files or rows and cannot be linked",
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
        shards = _write(
            source,
            plans,
            staging,
            embed=embed,
            roots=roots,
            workers=workers,
            cluster=cluster,
            progress=progress,
        )
        found = configs(source, plans, shards)
        manifest = _describe(source, found, shards, embed=embed, roots=roots)
        text = readme(source, manifest, found, shards, staging.out.name)
        (staging.path / "README.md").write_text(text, encoding="utf-8", errors="backslashreplace")
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
    workers: int,
    cluster: Cluster | None,
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
    count = 0

    def advance(rows: int) -> None:
        nonlocal count
        count += rows
        if progress:
            progress(count, len(source.steps))

    stamps = [stamp(source, planned) for planned in plans]
    missing = []
    for planned, mark in zip(plans, stamps, strict=True):
        if mark in done:
            advance(done[mark].rows)
        else:
            missing.append((planned, mark))
    layout = Layout.of(source, staging.path, embed=embed, roots=roots)
    todo = ShardJobs(source, missing)
    made = (
        _elsewhere(layout, todo, workers, cluster, advance)
        if cluster or workers > 1
        else (write_shard(layout, job, advance=advance) for job in todo)
    )
    with closing(made):
        for shard in made:
            staging.add(shard)
            done[shard.stamp] = shard
    return [done[mark] for mark in stamps]


def _elsewhere(
    layout: Layout,
    todo: ShardJobs,
    workers: int,
    cluster: Cluster | None,
    advance: Callable[[int], None],
) -> Generator[Shard]:
    """Write shards in other processes.

    Raises:
        RunError: a process was lost again and again.
        OmnidataError, OSError: as `write_shard`.
    """
    # Processes share the cores, which the threads of one have for themselves.
    threads = math.ceil(cluster.cpus_per_worker) if cluster else max(1, cores() // workers)
    write = partial(try_to_write, layout, threads)
    sees = [layout.out, *(root for root in layout.roots if root.exists())]
    calls = each(write, todo, workers=workers, cluster=cluster, sees=sees)
    with closing(calls) as answers:
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
            if isinstance(answer, Lost):
                raise RunError(
                    f"a process was lost: {answer.why}",
                    where=str(layout.out),
                    expected="enough memory, and media that do not crash a decoder",
                    remedy="`omnidata validate` finds such media; fewer --workers take less "
                    "memory; the same command resumes",
                )
            path = layout.out / answer.file
            wait_until_seen(path, path.exists)
            advance(answer.rows)
            yield answer


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
