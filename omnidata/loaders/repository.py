"""A Parquet repository, as `omnidata convert` writes it, back as steps.

`datasets.load_dataset(FOLDER)` opens it without omnidata. For us it holds what `datasets` has no
place for: where the media were, what is wrong with them, and the order of the source.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omnidata.errors import DataError, Finding
from omnidata.loaders.media_files import check_media_files
from omnidata.loaders.rows import from_row
from omnidata.media import unsafe
from omnidata.types import Cell, MediaRef, Modality, Source, Step

MANIFEST = "omnidata.json"
FORMAT = 1
"""Of the manifest and the columns; a repository of another format is refused."""


def extra_features() -> dict[str, Any]:
    """The columns beyond those of `rows.features`.

    `history_screens`: the screens of the earlier steps; `media`: per medium its role, path and root
    in the source (a number into the manifest's `roots`; null where it is embedded), state, SHA-256,
    bytes, frames and seconds; `position` and `row`: numbers of the step and of its row in the
    source.
    """
    import datasets

    text, number = datasets.Value("string"), datasets.Value("int32")
    return {
        "history_screens": [{"width": number, "height": number}],
        "media": [
            {
                "role": text,
                "path": text,
                "root": number,
                "state": text,
                "sha256": text,
                "bytes": datasets.Value("int64"),
                "frames": number,
                "seconds": datasets.Value("float64"),
            }
        ],
        "position": datasets.Value("int64"),
        "row": datasets.Value("int64"),
    }


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the file `omnidata.json` says.

    Attributes:
        task: the benchmark.
        embed: whether the media are in the rows.
        digest: hash of what the repository says; the same wherever and whenever it is made.
        fingerprint: that of the source, so that runs on either can be compared.
        tags, roles: of the steps, as in `Source`.
        roots: the folders of linked media.
        subsets: name -> number of steps, `all` first.
        shards: file, relative to the repository -> its rows.
        rows: rows of the source, those included that became no step.
        skipped: rows that became no step.
        findings: about the source.
        media_findings: about the media, when they were written.
    """

    task: str
    embed: bool
    digest: str
    fingerprint: str
    tags: Sequence[str]
    roles: Mapping[str, Modality]
    roots: Sequence[str]
    subsets: Mapping[str, int]
    shards: Mapping[str, int]
    rows: int
    skipped: int
    findings: Sequence[Finding]
    media_findings: Sequence[Finding]
    format: int = FORMAT


def is_repository(data: Path) -> bool:
    """Whether the folder says of itself that it is one."""
    return (data / MANIFEST).is_file()


def read_manifest(data: Path) -> Manifest:
    """The manifest.

    Raises:
        DataError: it cannot be read, or is of another format.
    """
    import msgspec

    path = data / MANIFEST
    try:
        content = path.read_bytes()
        found = json.loads(content).get("format")
        manifest = msgspec.json.decode(content, type=Manifest) if found == FORMAT else None
    except (OSError, ValueError, AttributeError, msgspec.MsgspecError) as error:
        raise _broken(path, f"the manifest cannot be read ({type(error).__name__})") from None
    if manifest is None:
        raise _broken(path, f"the repository has format {found!r}, not {FORMAT}")
    for shard in manifest.shards:
        if unsafe(shard):
            raise _broken(path, f"shard {shard!r}: {unsafe(shard)}")
    return manifest


def load(data: Path, task: str, *, check_media: bool = True) -> Source:
    """Read a repository; no medium is decoded.

    Embedded media are found in their cells. A linked file is opened only while it is what it was
    when it was linked, and one that was missing then is missing: a path that anybody may have
    written is no reason to read a file outside the repository.

    Args:
        data: the repository's folder.
        task: the benchmark that is asked for.
        check_media: look whether linked files are still there and the same.

    Raises:
        DataError: it is another benchmark's, or manifest or shards are broken.
    """
    manifest = read_manifest(data)
    _check_task(data, manifest, task)
    rows = sorted(_rows(data, manifest), key=lambda item: item[0]["position"])
    steps: list[Step] = []
    row_ids: list[str | None] = [None] * manifest.rows
    for row, shard, number in rows:
        try:
            steps.append(_step(data, manifest, row, shard, number))
            if row["row"] is not None:
                row_ids[row["row"]] = row["sample_id"]
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise _broken(
                data / shard, f"row {number} is no step ({type(error).__name__}: {error})"
            ) from None
    findings = list(manifest.findings)
    if check_media and not manifest.embed:
        check_media_files(steps, findings.append)
    else:
        findings += manifest.media_findings
    return Source(
        manifest.task,
        data,
        steps,
        findings,
        manifest.skipped,
        manifest.fingerprint,
        row_ids,
        manifest.tags,
        manifest.roles,
    )


def open_dataset(data: Path, task: str, name: str, **options: Any) -> Any:
    """The repository through `datasets`, its subset found in any case.

    Args:
        data: the repository's folder.
        task: the benchmark that is asked for.
        name: the subset.
        options: of `datasets.load_dataset`.

    Raises:
        DataError: it is another benchmark's, or has no such subset.
    """
    import datasets

    manifest = read_manifest(data)
    _check_task(data, manifest, task)
    known = {subset.casefold(): subset for subset in manifest.subsets}
    if name.casefold() not in known:
        raise DataError(
            f'the data has no subset "{name}"',
            where=str(data),
            expected=f"one of {', '.join(manifest.subsets)}",
        )
    return datasets.load_dataset(str(data), known[name.casefold()], **options)


def _check_task(data: Path, manifest: Manifest, task: str) -> None:
    if manifest.task != task:
        raise DataError(
            f"the repository holds {manifest.task}",
            where=str(data),
            expected=f"{task}, which was asked for",
            remedy=f"name the task {manifest.task}, or other data",
        )


def _rows(data: Path, manifest: Manifest) -> Iterator[tuple[dict[str, Any], str, int]]:
    """Every row without its media columns, with its shard and its number in there."""
    import pyarrow.parquet as pq

    for shard, expected in manifest.shards.items():
        try:
            file = pq.ParquetFile(data / shard, page_checksum_verification=True)
            wanted = [name for name in file.schema_arrow.names if name not in manifest.roles]
            begin = 0
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=wanted)
                for number, row in enumerate(table.to_pylist(), begin):
                    yield row, shard, number
                begin += table.num_rows
            if begin != expected:
                raise ValueError(f"{begin} rows instead of {expected}")
        except Exception as error:  # hostile bytes make Arrow raise whatever it likes
            raise _broken(
                data / shard, f"the shard cannot be read ({type(error).__name__}: {error})"
            ) from None


def _step(data: Path, manifest: Manifest, row: dict[str, Any], shard: str, number: int) -> Step:
    media: dict[str, MediaRef | None] = dict.fromkeys(manifest.roles)
    for entry in row["media"]:
        role, path = entry["role"], entry["path"]
        kind, sha256 = manifest.roles[role], entry["sha256"] or ""
        if entry["root"] is not None and sha256:
            media[role] = MediaRef(kind, Path(manifest.roots[entry["root"]]), path, sha256=sha256)
        elif sha256:
            media[role] = MediaRef(kind, data, path, cell=Cell(shard, role, number), sha256=sha256)
        else:
            media[role] = MediaRef(kind, data, path)
    screens = tuple((screen["width"], screen["height"]) for screen in row["history_screens"])
    return from_row(row, tags=manifest.tags, media=media, history_screens=screens)


def _broken(path: Path, what: str) -> DataError:
    return DataError(
        what,
        where=str(path),
        expected="a repository as `omnidata convert` of this version writes it",
        remedy="convert the source again",
    )
