"""Push to the Hub: a repository of `omnidata convert --embed`, or errata, each with its card."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any, Final

from omnidata.data.card import publications
from omnidata.errors import DataError, UsageError
from omnidata.files import SETTINGS, read_file
from omnidata.loaders.repository import MANIFEST, Manifest, is_repository, read_manifest
from omnidata.loaders.subsets import count_tags
from omnidata.loaders.upload import Upload, check_link, check_name, upload
from omnidata.run.errata import Errata, read_errata
from omnidata.table_formats import markdown_text
from omnidata.tasks import get_task

README: Final = "README.md"
_LICENCES: Final = re.compile(r"LICEN[CS]E(\.(md|txt))?", re.IGNORECASE)
_FRONT: Final = re.compile(r"---\n(.*?\n)---\n", re.DOTALL)
_SHARD: Final = re.compile(r"data/.+\.parquet")
_FREE: Final = re.compile(
    r"(apache-2\.0|mit|bsd(-\d-clause)?|cc0-1\.0|cc-by(-sa)?-\d\.\d|openrail|odc-by|pddl|unlicense)"
)
"""Licences, by the Hub's names, that allow anybody to publish changed data."""


def push(
    folder: Path,
    name: str,
    *,
    private: bool = False,
    pull_request: bool = False,
    i_may: bool = False,
    dry_run: bool = False,
) -> Upload:
    """Push a repository: its Parquet files, README, manifest and licence.

    Args:
        folder: a folder from `convert --embed`; its README states the licence.
        name: "ORG/NAME" on the Hub.
        private: create a private dataset.
        pull_request: open a pull request.
        i_may: push even if the licences of the task's published data do not allow it.
        dry_run: only list the files to send.

    Raises:
        UsageError: the name is invalid or taken; the licence is missing or does not allow it.
        DataError: the folder is not from `convert --embed` or has other files; or as
            `omnidata.loaders.upload.upload`.
    """
    check_name(name)
    if not is_repository(folder):
        raise DataError(
            "this is not a repository made by omnidata",
            where=str(folder),
            expected="a folder that `omnidata convert TASK DATA FOLDER --embed` wrote, or a run",
            remedy="convert the data first",
        )
    manifest = read_manifest(folder)
    if not manifest.embed:
        raise DataError(
            "the media are linked, and their paths exist only on this machine",
            where=str(folder),
            expected="media in the rows",
            remedy="write it again with `omnidata convert --embed`",
        )
    files = _files_to_push(folder, manifest)
    _check_licence(folder, manifest, i_may=i_may)
    return upload(
        name,
        files,
        f"{manifest.task}: {manifest.digest[:12]}, by omnidata push",
        is_ours=lambda paths: MANIFEST in paths or set(paths) <= {README},
        stale=lambda path: _SHARD.fullmatch(path) is not None,
        private=private,
        pull_request=pull_request,
        dry_run=dry_run,
    )


ERRATA: Final = "errata.jsonl"


def push_errata(
    file: Path,
    name: str,
    *,
    private: bool = False,
    pull_request: bool = False,
    dry_run: bool = False,
) -> Upload:
    """Push errata with a card: what they correct, under which licence, and how to use them.

    Args:
        file: the errata; their first line states the licence.
        name: "ORG/NAME" on the Hub, where the file is called errata.jsonl.
        private: create a private dataset.
        pull_request: open a pull request.
        dry_run: only list the files to send.

    Raises:
        UsageError: the name is invalid or taken, or no licence is stated.
        DataError: as `omnidata.run.errata.read_errata` and `omnidata.loaders.upload.upload`.
    """
    check_name(name)
    errata = read_errata(file)
    if not errata.licence:
        raise UsageError(
            "the errata state no licence",
            where=f"{file}:1",
            expected='"licence" with the Hub\'s name of one, e.g. cc-by-4.0',
            remedy="add it to the first line",
        )
    return upload(
        name,
        {ERRATA: file, README: _errata_card(errata, name).encode()},
        f"{errata.name} {errata.version}: {errata.hash[:12]}, by omnidata push",
        is_ours=lambda paths: ERRATA in paths or set(paths) <= {README},
        stale=lambda path: False,
        private=private,
        pull_request=pull_request,
        dry_run=dry_run,
    )


def _errata_card(errata: Errata, name: str) -> str:
    import yaml

    front = yaml.safe_dump({"license": errata.licence, "tags": ["omnidata", "errata"]})
    kinds = Counter(one.kind for one in errata.corrections)
    rows = "\n".join(f"| `{kind}` | {count} |" for kind, count in sorted(kinds.items()))
    authors = markdown_text(", ".join(errata.authors) or "not stated")
    return f"""---
{front}---

# {markdown_text(errata.name)}, version {markdown_text(errata.version)}

Corrections of labels of the benchmark `{errata.benchmark}`. Authors: {authors}.
SHA-256 of the file: `{errata.hash}`.

| kind | lines |
|---|---|
{rows}

```sh
omnidata score {errata.benchmark} DATA RUN --errata hf://{name}/{ERRATA}
```

Every number is shown without and with the corrections.
"""


def _files_to_push(folder: Path, manifest: Manifest) -> dict[str, Path]:
    wanted = {README, MANIFEST, *manifest.shards}
    found = [*folder.rglob("*")]
    for each in found:
        check_link(each)
    there = {path.relative_to(folder).as_posix() for path in found if not path.is_dir()}
    licences = {path for path in there if _LICENCES.fullmatch(path)}
    if missing := sorted(wanted - there):
        raise DataError(
            "a file of the repository is missing",
            where=str(folder / missing[0]),
            expected="every file that omnidata.json names",
            remedy="convert the data again",
        )
    if others := sorted(there - wanted - licences):
        raise DataError(
            "this file does not belong to the repository",
            where=str(folder / others[0]),
            expected="what `omnidata convert` wrote, and LICENSE",
            remedy="move it away: all pushed files are public",
        )
    return {path: folder / path for path in sorted(wanted | licences)}


def _check_licence(folder: Path, manifest: Manifest, *, i_may: bool) -> None:
    stated = _stated_licence(folder / README)
    if not stated or stated == "unknown":
        raise UsageError(
            "the repository names no licence",
            where=str(folder / README),
            expected="`license:` at its top, by the Hub's name of it, e.g. cc-by-4.0",
            remedy="add `license: NAME` to the block at the top of the README; its section "
            "Licence and citation has the known facts",
        )
    # With `i_may` too: rows that cannot be read are not published.
    task = get_task(manifest.task)
    source = task.load(folder, check_media=False)
    if i_may:
        return
    for one in publications(task, count_tags(source.steps)):
        what = ""
        if not one.licence:
            what = f"{one.name} is published without a licence"
        elif not _FREE.fullmatch(one.licence):
            what = f"{one.name} is published under {one.licence}, which has conditions"
        elif one.licence != stated:
            what = f"{one.name} is published under {one.licence}, and the README says {stated}"
        if what:
            raise UsageError(
                what,
                where=str(folder / README),
                expected="data that you may redistribute under your licence",
                remedy=f"read {one.url}. Add --i-may if the data are your own or you have "
                "permission",
            )


def _stated_licence(readme: Path) -> str:
    import yaml

    found = _FRONT.match(read_file(readme, SETTINGS).decode("utf-8", "replace"))
    try:
        front: Any = yaml.safe_load(found[1]) if found else None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise DataError(
            f"the top of the README cannot be read ({type(error).__name__})",
            where=str(readme),
            expected="YAML between two lines of three hyphens",
            remedy="correct it, or convert the data again",
        ) from None
    value = front.get("license") if isinstance(front, dict) else None
    return value.strip() if isinstance(value, str) else ""
