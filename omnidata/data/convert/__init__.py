"""Any source as a Parquet repository that `datasets.load_dataset` opens without omnidata."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from omnidata.data.convert.card import readme, subsets
from omnidata.data.convert.shards import Shard, Writer, plan
from omnidata.errors import DataError, Finding, UsageError
from omnidata.loaders.repository import FORMAT, MANIFEST, Manifest
from omnidata.run.folder import replacing, write_json
from omnidata.types import Source

Progress = Callable[[int, int], None]


def convert(
    source: Source,
    out: Path,
    *,
    embed: bool,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Manifest:
    """Write a repository; it appears under its name only when it is whole.

    An interrupted conversion leaves a hidden folder beside `out`; the same call goes on with the
    shards that are there, unless the source or a medium has changed.

    Args:
        source: what a task's `load` gave.
        out: a new folder.
        embed: put the media into the rows (portable); otherwise their paths (for this machine).
        overwrite: replace a repository that is there.
        progress: called with the steps done and their number.

    Returns:
        The manifest; its findings are the source's and those about the media.

    Raises:
        UsageError: `out` is there and not to be replaced or no repository, or the source's media
            have no files that could be linked.
        DataError: another process is converting to the same place.
    """
    _check_target(out, overwrite=overwrite)
    media = (ref for step in source.steps for ref in step.media.values() if ref)
    if not embed and any(ref.cell or ref.inline for ref in media):
        raise UsageError(
            "some media lie inside Parquet files or rows and cannot be linked",
            where=str(source.root),
            expected="a source whose media are files",
            remedy="use --embed",
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    with _locked(out):
        unfinished = out.with_name(f".{out.name}.unfinished")
        roots = sorted({r.root for s in source.steps for r in s.media.values() if r})
        shards = _shards(source, unfinished, embed=embed, roots=roots, progress=progress)
        manifest = _finish(source, unfinished, shards, embed=embed, roots=roots, name=out.name)
        _publish(unfinished, out)
    return manifest


def _check_target(out: Path, *, overwrite: bool) -> None:
    there = out.exists() and (not out.is_dir() or any(out.iterdir()))
    ours = (out / MANIFEST).is_file()
    if there and not (overwrite and ours):
        raise UsageError(
            "there is a repository here already" if ours else "there is something here already",
            where=str(out),
            expected="a new or empty folder",
            remedy="add --overwrite to replace it" if ours else "choose another folder",
        )


@contextmanager
def _locked(out: Path) -> Iterator[None]:
    lock = FileLock(out.with_name(f".{out.name}.lock"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise DataError(
            "another process is converting to the same place",
            where=str(out),
            expected="one at a time",
            remedy="wait until it has ended, or choose another folder",
        ) from None
    try:
        yield
    finally:
        lock.release()


def _shards(
    source: Source,
    unfinished: Path,
    *,
    embed: bool,
    roots: Sequence[Path],
    progress: Progress | None,
) -> list[Shard]:
    """Write all shards but those that an interrupted call has left."""
    done = _resume(unfinished, {"format": FORMAT, "embed": embed, "source": source.fingerprint})
    shards = []
    count = 0

    def advance(rows: int) -> None:
        nonlocal count
        count += rows
        if progress:
            progress(count, len(source.steps))

    # Threads: decoders and hashes release the interpreter, and bytes need no copy between processes
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        writer = Writer(source, unfinished, embed=embed, roots=roots, pool=pool)
        for planned in plan(source, embed=embed):
            stamp = writer.stamp(planned)
            shard = done.get(stamp)
            if shard is None:
                shard = writer.write(planned, stamp, advance)
                with (unfinished / _DONE).open("ab") as file:
                    file.write(_line(shard))
            else:
                advance(shard.rows)
            shards.append(shard)
    return shards


_DONE, _PLAN = ".done.jsonl", ".plan.json"


def _resume(unfinished: Path, settings: dict[str, object]) -> dict[str, Shard]:
    """The whole shards of an interrupted call with the same settings; else an empty folder."""
    done = {}
    try:
        if json.loads((unfinished / _PLAN).read_text(encoding="utf-8")) == settings:
            lines = (unfinished / _DONE).read_text(encoding="utf-8").split("\n")[:-1]
            shards = [msgspec.json.decode(line, type=Shard) for line in lines]
            done = {shard.stamp: shard for shard in shards if _is_whole(unfinished, shard)}
    except (OSError, ValueError):  # msgspec's errors are ValueErrors
        pass
    if not done:
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        write_json(unfinished / _PLAN, settings)
    with replacing(unfinished / _DONE) as file:  # without the line that an end cut short
        file.writelines(_line(shard) for shard in done.values())
    return done


def _is_whole(unfinished: Path, shard: Shard) -> bool:
    path = unfinished / shard.file
    return path.is_file() and path.stat().st_size == shard.size


def _line(shard: Shard) -> bytes:
    return msgspec.json.encode(shard) + b"\n"


def _finish(
    source: Source,
    unfinished: Path,
    shards: Sequence[Shard],
    *,
    embed: bool,
    roots: Sequence[Path],
    name: str,
) -> Manifest:
    """Write README and manifest, and remove what an earlier call left and this one did not use."""
    found, unnamable = subsets(source, shards)
    digest = hashlib.sha256(f"{FORMAT} {source.task} {embed}".encode())
    for shard in shards:
        digest.update(shard.digest.encode())
    manifest = Manifest(
        task=source.task,
        embed=embed,
        digest=digest.hexdigest(),
        fingerprint=source.fingerprint,
        tags=source.tags,
        roles=source.roles,
        roots=[] if embed else [str(root.resolve()) for root in roots],
        subsets={subset.name: subset.rows for subset in found},
        shards={shard.file: shard.rows for shard in shards},
        rows=len(source.row_ids),
        skipped=source.skipped,
        findings=[*source.findings, *unnamable],
        media_findings=_media_findings(source, shards),
    )
    wanted = {unfinished / shard.file for shard in shards}
    for path in (unfinished / "data").rglob("*"):
        if path.is_file() and path not in wanted:
            path.unlink()
    (unfinished / "README.md").write_text(readme(manifest, found, name), encoding="utf-8")
    write_json(unfinished / MANIFEST, asdict(manifest))
    return manifest


def _media_findings(source: Source, shards: Sequence[Shard]) -> list[Finding]:
    """What is wrong with the media; one finding where there are none at all."""
    findings = [found for shard in shards for found in shard.findings]
    if findings and not any(shard.whole for shard in shards):
        return [
            Finding(
                "media-absent",
                "warning",
                str(source.root),
                "none of the media that the rows name can be read",
                "screenshots, clips and audio",
                "fine for scoring; convert again when the media are there",
            )
        ]
    return findings


def _publish(unfinished: Path, out: Path) -> None:
    """Put the folder in its place; what was there goes last."""
    before = out.with_name(f".{out.name}.before")
    shutil.rmtree(before, ignore_errors=True)
    if out.exists():
        out.rename(before)
    unfinished.rename(out)
    for name in (_DONE, _PLAN):
        (out / name).unlink()
    shutil.rmtree(before, ignore_errors=True)
