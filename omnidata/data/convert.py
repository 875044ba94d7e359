"""Convert any source into a Parquet repository that `datasets.load_dataset` opens."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from omnidata.data.card import Config, configs, readme
from omnidata.data.convert_plan import Plan, survey
from omnidata.data.convert_shards import (
    Layout,
    RepositoryStaging,
    Shard,
    ShardJobs,
    portable,
    try_to_write,
    write_shard,
)
from omnidata.errors import Finding, RunError
from omnidata.loaders.media_findings import media_absent
from omnidata.loaders.repository import FORMAT, MANIFEST, Manifest
from omnidata.loaders.rows import storable
from omnidata.loaders.subsets import subsets
from omnidata.run.engines import Cluster, Lost, cores, each
from omnidata.run.engines.ray import wait_until_seen
from omnidata.storage import write_json
from omnidata.types import LoadedDataset, Progress


@dataclass(frozen=True, slots=True)
class Converted:
    """The result of a conversion.

    Attributes:
        manifest: of the repository.
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
    """Write a repository; it appears under its name only when it is complete.

    An interrupted conversion leaves a hidden folder beside `out`; the same call resumes with the
    shards that are there, unless the source or a medium has changed.

    Args:
        source: the result of a task's `load`, best with `check_media=False`: all media are decoded
            here.
        out: a new folder.
        embed: put the media into the rows (portable); otherwise their paths (for this machine).
        overwrite: replace a repository that is there.
        workers: processes that write, each a file at a time; 1 = this one. The bytes are the same.
        cluster: its workers write; None for this machine.
        progress: called with the steps done and their number.

    Raises:
        UsageError: `out` is there and not to be replaced or no repository, or the source's media
            have no files that could be linked.
        DataError: another process is converting to the same place, it cannot be written, or the
            media lie outside the source, in folders that are not allowed.
        RunError: a process was lost, or the cluster is at fault.
    """
    plans, roots, optional = survey(source, embed=embed)
    with (
        RepositoryStaging(out, overwrite=overwrite, inputs=[source.root, *roots]) as staging,
        staging.writing(),
    ):
        layout = Layout(
            staging.path, source.root, source.tags, source.roles, embed, roots, optional
        )
        shards = _write(source, plans, staging, layout, workers, cluster, progress)
        namable, unnamable = subsets(source)
        found = configs(source, namable, plans, shards)
        manifest = _describe(source, found, shards, layout)
        text = readme(source, manifest, found, shards, layout.features, staging.out.name)
        (staging.path / "README.md").write_text(text, encoding="utf-8", errors="backslashreplace")
        write_json(staging.path / MANIFEST, asdict(manifest))
        staging.publish(shards)
    findings = [*manifest.findings, *manifest.media_findings]
    for value in unnamable:
        finding = Finding(
            "subset-unnamable",
            "warning",
            value,
            "the value cannot name a subset",
            'a short name without < > : " / \\ | ? *, which is no label and neither all '
            "nor default",
            "filter the column instead",
        )
        findings.append(finding)
    return Converted(manifest, findings)


def _write(
    source: LoadedDataset,
    plans: Sequence[Plan],
    staging: RepositoryStaging,
    layout: Layout,
    workers: int,
    cluster: Cluster | None,
    progress: Progress | None,
) -> list[Shard]:
    settings = {
        "format": FORMAT,
        "embed": layout.embed,
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

    for plan in plans:
        if plan.stamp in done:
            advance(done[plan.stamp].rows)
    todo = ShardJobs(source, [plan for plan in plans if plan.stamp not in done])
    made = (
        _elsewhere(layout, todo, workers, cluster, advance)
        if cluster or workers > 1
        else (write_shard(layout, job, advance=advance) for job in todo)
    )
    with closing(made):
        for shard in made:
            staging.add(shard)
            done[shard.stamp] = shard
    return [done[plan.stamp] for plan in plans]


def _elsewhere(
    layout: Layout,
    todo: ShardJobs,
    workers: int,
    cluster: Cluster | None,
    advance: Callable[[int], None],
) -> Generator[Shard]:
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
    source: LoadedDataset, found: Sequence[Config], shards: Sequence[Shard], layout: Layout
) -> Manifest:
    digest = hashlib.sha256(f"{FORMAT} {source.task} {layout.embed}".encode())
    for shard in shards:
        digest.update(shard.digest.encode())
    findings = list(portable(source.findings, source.root))
    for finding in findings:
        digest.update(str(finding).encode())
    media_findings = [finding for shard in shards for finding in shard.findings]
    if media_findings and not any(shard.found for shard in shards):
        media_findings = list(portable([media_absent(source.steps)], source.root))
    return Manifest(
        task=source.task,
        embed=layout.embed,
        digest=digest.hexdigest(),
        fingerprint=source.fingerprint,
        tags=source.tags,
        roles=source.roles,
        roots=[] if layout.embed else [str(storable(str(root.resolve()))) for root in layout.roots],
        subsets={config.name: config.numbers for config in found},
        shards={shard.file: shard.rows for shard in shards},
        rows=len(source.row_ids),
        skipped=source.skipped,
        findings=findings,
        media_findings=media_findings,
    )
