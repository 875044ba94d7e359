"""Where the files of a dataset lie: in folders of folders, each known by a look at it."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from omnidata import mirror
from omnidata.actions import Screen
from omnidata.errors import DataError, Finding, MediaError, MissingMediaError, counted
from omnidata.files import STREAMED, bounds, inside, naming, open_file, outside, real
from omnidata.jsontext import AT_ONCE, is_json_array, json_file, json_items, json_lines
from omnidata.media import around, closed, is_mirrored, picture_info, resolve, unread_zip, unsafe
from omnidata.name_index import NameIndex
from omnidata.types import MediaRef, Step, VideoSegment

Look = Literal["known", "broken", "other"]

OTHER_DATA: Final = "name other data; `omnidata info` lists the tasks"
"""The remedy of an error about data that are none of a task's."""
_DEEPEST: Final = 32  # folders in folders: no dataset has so many, and recursion has an end


def walk(data: Path) -> Iterator[Path]:
    """The file, or all but the folders in the folder and in those below it, sorted.

    What leads outside is among the files, and no regular file either: whoever opens it says so. A
    link to a folder of the data is passed over, as what lies there is found there.

    Raises:
        DataError: folders lie too deep in one another.
        FileError: links to folders lead outside. It comes last, so that a look at the first files
            knows the data whatever else lies there.
        OSError: a folder cannot be read.
    """
    if data.is_dir():
        far: list[Path] = []
        yield from _below(data, mirror.trees(data), far, 0)
        refuse_far(far, data)
    elif data.exists():
        yield data


def _below(folder: Path, trees: tuple[str, ...], far: list[Path], depth: int) -> Iterator[Path]:
    check_depth(folder, depth)
    with os.scandir(folder) as entries:
        found = sorted(entries, key=lambda entry: entry.name)
    for entry in found:
        path = Path(entry.path)
        if entry.name.startswith("."):
            continue
        if not path.is_dir():
            if path.exists():
                yield path
        elif not mirror.is_link(path):
            yield from _below(path, trees, far, depth + 1)
        elif not is_walked(leads := real(path), trees):
            if inside(leads, bounds() or trees):
                yield from _below(path, (*trees, leads), far, depth + 1)
            else:
                far.append(path)


def is_walked(leads: str, trees: Sequence[str]) -> bool:
    """Whether a folder to which a link leads is come to without the link; no hidden one is.

    Args:
        leads: the folder's real path.
        trees: the real paths of the data, and of the linked folders that the link lies in.

    Examples:
        >>> is_walked("/data/a/b", ["/data"]), is_walked("/data/.store/b", ["/data"])
        (True, False)
    """
    return any(
        inside(leads, [tree])
        and not any(part.startswith(".") for part in Path(leads).relative_to(tree).parts)
        for tree in trees
    )


def refuse_far(links: Sequence[Path], data: Path) -> None:
    """Refuse data with links to folders elsewhere: without what lies there each number is wrong.

    Args:
        links: all of them.
        data: as the user named it.

    Raises:
        FileError: there is one.
    """
    if links:
        raise outside(links, bounds() or (real(data),))


def check_depth(folder: Path, depth: int) -> None:
    """Refuse a folder that lies deeper than any dataset's: nothing in it is left out in silence.

    Args:
        folder: to be looked into.
        depth: how many folders it lies in, from the data on.

    Raises:
        DataError: there are too many.
    """
    if depth > _DEEPEST:
        raise DataError(
            "folders lie too deep in one another",
            where=str(folder),
            expected=f"at most {_DEEPEST} folders below the one that was named",
            remedy="name a folder further down, or move what lies there up",
        )


def chosen(data: Path, looks: Mapping[Path, Look], expected: str) -> list[Path]:
    """The files that are known, and the broken ones with them: nobody may overlook those.

    Args:
        data: as the user named it.
        looks: what each file is.
        expected: what would be right, for the message.

    Raises:
        DataError: none is known, unless the one that the user named is broken.
    """
    if "known" not in looks.values() and looks.get(data) != "broken":
        broken = next((path for path, found in looks.items() if found == "broken"), None)
        what = "no file there has the columns of the benchmark"
        remedy = OTHER_DATA
        if broken:
            what += f", and {broken.relative_to(data)} is broken"
            remedy = f"download that file again, or {remedy}"
        raise DataError(
            what if data.exists() else "there is no such file or folder",
            where=str(data),
            expected=expected,
            remedy=remedy,
        )
    return [path for path, found in looks.items() if found != "other"]


def fingerprint(paths: Sequence[Path], root: Path) -> str:
    """SHA-256 over files: the same wherever the folder lies.

    Args:
        paths: below the root.
        root: the folder.

    Raises:
        OSError: a file cannot be read.
    """
    digest = hashlib.sha256()
    for path in paths:
        name = path.relative_to(root).as_posix()
        digest.update(f"{name}\0{path.stat().st_size}\0".encode("utf-8", "surrogateescape"))
        with open_file(path, STREAMED) as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


# Rows that come twice: in a zip, and where somebody has unpacked it.

_ROWS: Final = frozenset({".json", ".jsonl", ".csv", ".tsv", ".parquet"})


def rows_again(data: Path) -> list[Finding]:
    """A finding for each zip with a file of rows that is elsewhere in the data too.

    A zip of which files lie in its folder or beside it is not read; this is about copies that lie
    anywhere else, or in another zip, and have the same name.

    Args:
        data: as `omnidata.mirror.local` gives them.

    Raises:
        OSError: a file cannot be read.
    """
    if not mirror.source(data):
        return []
    alike: dict[tuple[str, int], list[Path]] = {}
    with suppress(DataError, OSError):  # what is wrong with the folders is the loader's to say
        for path in walk(data):
            if path.suffix.lower() in _ROWS and path.is_file() and (size := path.stat().st_size):
                alike.setdefault((path.name, size), []).append(path)
    found: dict[str, list[tuple[Path, Path]]] = {}
    for paths in alike.values():
        zips = {path: mirror.zip_of(path) for path in paths} if len(paths) > 1 else {}
        if not any(zips.values()):
            continue
        first: dict[str, Path] = {}
        for path in sorted(paths, key=lambda path: (zips[path], path)):
            other = first.setdefault(fingerprint([path], path.parent), path)
            if other != path and zips[path]:
                found.setdefault(zips[path], []).append((path, other))
    return [
        Finding(
            "rows-again",
            "warning",
            str(pairs[0][0]),
            f"files of rows in {archive} that are elsewhere in the data too: {len(pairs)}, "
            f"the first at {pairs[0][1]}",
            "each row once: each copy counts in every number",
            "move the zip, or the copy, out of the data",
        )
        for archive, pairs in found.items()
    ]


# The files of benchmarks whose rows are JSON.

SKIPPED: Final = "mend the row; it is skipped until then"
"""The usual remedy for a row that cannot be used."""
HEAD: Final = 1024**2
"""Bytes from the beginning of a file in which its columns are looked for."""
_PEEKED: Final = 50
_MAX_FILE: Final = 512 * 1024**2
_SUFFIXES: Final = frozenset({".json", ".jsonl"})


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a file.

    Attributes:
        where: the file and the line, or the item of a list, for findings.
        path: the file.
        number: 0-based, in the file.
        row: untouched.
        alone: whether the file holds this row and can hold no other.
    """

    where: str
    path: Path
    number: int
    row: Mapping[str, Any]
    alone: bool


@dataclass(frozen=True, slots=True)
class JsonFiles:
    """The files of a benchmark whose rows are JSON: lines, a list, or one object.

    Attributes:
        columns: what the rows have, for messages.
        look: whether a file is the benchmark's; a broken one may be.
        listed: the files that may be meant by what the user named.
    """

    columns: str
    look: Callable[[Path], Look]
    listed: Callable[[Path], Iterable[Path]] = walk

    def find(self, data: Path) -> list[Path]:
        """The benchmark's files, sorted.

        Raises:
            DataError: nothing is there, or nothing of the benchmark.
            OSError: a file cannot be read.
        """
        looks = {path: self._look(path, data) for path in self.listed(data)}
        return chosen(data, looks, self.columns)

    def recognises(self, data: Path) -> bool:
        """Whether one of the first files is known.

        Raises:
            OSError: a file cannot be read.
        """
        paths = (path for path in self.listed(data) if path.suffix in _SUFFIXES or path == data)
        return any(self.look(path) == "known" for path in islice(paths, _PEEKED))

    def fingerprint(self, data: Path) -> str:
        """SHA-256 over the files, media left out.

        Raises:
            DataError: as `find`.
        """
        return fingerprint(self.find(data), data if data.is_dir() else data.parent)

    def rows(self, paths: Iterable[Path], note: Callable[[Finding], None]) -> Iterator[Line]:
        """Every row of files; what is no JSON object has a finding instead.

        Args:
            paths: as `find` gives them.
            note: takes the findings.

        Raises:
            OSError: a file cannot be read.
        """
        for path in paths:
            for number, (where, row) in enumerate(json_rows(path)):
                alone = where == str(path)
                if isinstance(row, dict):
                    yield Line(where, path, number, row, alone)
                    continue
                what, expected = "it is no JSON object", self.columns
                if alone:
                    what = "the file is neither a JSON object nor a list"
                    expected += "; JSON lines belong into a .jsonl file"
                note(Finding("json-invalid", "error", where, what, expected, SKIPPED))

    def _look(self, path: Path, data: Path) -> Look:
        return self.look(path) if path.suffix in _SUFFIXES or path == data else "other"


def json_rows(path: Path) -> Iterator[tuple[str, Any]]:
    """Every row of a file and its place; BROKEN for one that is no JSON.

    A file that ends in .json is one value: a list of rows, or a row. Any other has a row per line.
    A large list is gone through twice, as nothing of a broken one is used.

    Raises:
        OSError: the file cannot be read, or is one value other than a list and has more than
            512 MiB.
    """
    if path.suffix != ".json":
        yield from json_lines(path)
        return
    if path.stat().st_size > AT_ONCE and is_json_array(path):
        with open_file(path, STREAMED) as file:
            yield from _numbered(path, json_items(file))
        return
    value = json_file(path, _MAX_FILE)
    if isinstance(value, list):
        yield from _numbered(path, value)
    else:
        yield str(path), value


def _numbered(path: Path, rows: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    return ((f"{path}, item {number}", row) for number, row in enumerate(rows))


def images(path: Path, names: Sequence[str]) -> Path:
    """The folder with the pictures of a file's rows, beside it or beside its folder.

    Args:
        path: the file.
        names: of folders, in order of choice; the first where none exists.
    """
    places = (folder / name for folder in (path.parent, path.parent.parent) for name in names)
    return next((place for place in places if place.is_dir()), path.parent / names[0])


# Do the media that the rows name exist, and are the screenshots what the rows say?


def check_media_files(
    steps: Sequence[Step], note: Callable[[Finding], None], *, always_shown: bool = True
) -> None:
    """Existence of every medium; wholeness and size of every screenshot.

    Where nothing exists at all, the data is annotations alone, and one finding says so. Of data on
    an object store only the listing is asked: to look into every screenshot is to fetch them all,
    which `omnidata validate` does.

    Args:
        steps: of the dataset.
        note: takes the findings.
        always_shown: a step without a screenshot lacks one, and nobody has said so yet.

    Raises:
        DataError: as `refuse_closed`.
    """
    refuse_closed(steps)
    if not any(seen.there for seen in _looked_at(steps, always_shown)):
        note(media_absent(steps))
        return
    turned: list[str] = []
    for seen in _looked_at(steps, always_shown):
        if seen.problem is not None:
            note(seen.problem)
        if seen.turned:
            turned.append(seen.step.sample_id)
    if turned:
        note(media_turned(Counter(image=len(turned)), turned))


class _Seen(NamedTuple):
    """What a look at a medium has shown.

    Attributes:
        step: the first that has it.
        there: whether there is something.
        problem: what is wrong with it.
        turned: whether it is a picture that lies turned in its file.
    """

    step: Step
    there: bool
    problem: Finding | None = None
    turned: bool = False


def _looked_at(steps: Sequence[Step], always_shown: bool) -> Iterator[_Seen]:
    """Look at each medium, at its first step."""
    seen = NameIndex()
    for step in steps:
        for role, ref in step.media.items():
            if ref is None:
                if role == "screenshot" and always_shown:
                    what = "the row names no file"
                    yield _Seen(step, False, medium_broken(step, role, what, "a screenshot"))
                continue
            if ref.inline is not None or (ref.cell is None and unsafe(ref.path)):
                continue  # of what lies in a file of rows the path is a name, which nobody follows
            # Of a million media two have the same hash once in ten million datasets, and the media
            # themselves would take a gigabyte.
            count = len(seen)
            if seen.add(f"{hash(ref):x}") != count:
                continue
            try:
                if isinstance(ref.cell, VideoSegment):
                    resolve(around(ref, ref.cell), in_parts=True)
                elif ref.kind == "image" and not is_mirrored(ref):
                    about = picture_info(ref)
                    yield _Seen(step, True, size_differs(step, role, about.size), about.turned)
                    continue
                else:
                    resolve(ref, in_parts=True)
                yield _Seen(step, True)
            except MediaError as error:
                what = f"{error.what}: {error.where}"
                there = not isinstance(error, MissingMediaError)
                yield _Seen(step, there, medium_broken(step, role, what, error.expected))


def refuse_closed(steps: Sequence[Step]) -> None:
    """Say once, before any work, which folders with media the user would have to name.

    Every medium there would be refused: the folder is a link that leads outside the data, or one
    that a linked repository lists.

    Raises:
        DataError: there are such folders; it names the options to type.
    """
    refs = (ref for step in steps for ref in step.media.values() if ref and ref.inline is None)
    known: dict[tuple[Path, tuple[str, ...]], MediaRef] = {}
    for ref in refs:
        known.setdefault((ref.root, ref.within), ref)
    if folders := sorted({str(ref.root) for ref in known.values() if closed(ref)}):
        leads = sorted({real(Path(folder)) for folder in folders})
        raise DataError(
            f"the media lie outside the data, below {', '.join(leads)}",
            where=", ".join(folders),
            expected="media inside the folder that was named, links followed",
            remedy=naming(leads),
        )


def media_absent(steps: Sequence[Step]) -> Finding:
    """The one finding for annotations alone."""
    refs = (ref for step in steps for ref in step.media.values() if ref)
    found = Counter((ref.root, ref.kind) for ref in refs)
    roots: Counter[Path] = Counter()
    for (root, _), count in found.items():
        roots[root] += count
    pictures = {kind for _, kind in found} == {"image"}
    first = next((ref for step in steps for ref in step.media.values() if ref), None)
    unpack = unread_zip(first) if first else ""
    return Finding(
        "media-absent",
        "warning",
        str(roots.most_common(1)[0][0]) if roots else "media",
        "none of the media that the rows name exists",
        "screenshots" if pictures else "screenshots, clips and audio",
        f"{unpack or 'fine for scoring'}; a model needs the media below that folder",
    )


def medium_broken(step: Step, role: str, what: str, expected: str) -> Finding:
    """The finding for a medium that no model can take."""
    return Finding(
        "media-broken",
        "error",
        step.sample_id,
        f"{role.replace('_', ' ')}: {what}",
        expected,
        "restore the file; a model that takes it is not asked about this step until then",
        (step.sample_id,),
    )


def media_turned(counts: Mapping[str, int], sample_ids: Sequence[str]) -> Finding:
    """The one finding for pictures and clips that lie turned in their files.

    Args:
        counts: of the media, by kind.
        sample_ids: of steps that have them, at least one.
    """
    nouns = {"image": "picture", "video": "clip"}
    told = [counted(counts[kind], noun) for kind, noun in nouns.items() if counts.get(kind)]
    return Finding(
        "media-turned",
        "warning",
        sample_ids[0],
        f"{' and '.join(told)} with an orientation tag (EXIF, display matrix)",
        "media that lie in their files as they are shown",
        "nothing, if the targets were made on media as viewers show them: so they are read; "
        "else remove the tags",
        tuple(sample_ids),
    )


def size_differs(step: Step, role: str, size: Screen) -> Finding | None:
    """The finding for a screenshot that is not of the size that its row states.

    Where the row states none, the size was read from the picture, or is unknown: (0, 0).
    """
    if role != "screenshot" or size == step.screen or not any(step.screen):
        return None
    return Finding(
        "size-differs",
        "warning",
        step.sample_id,
        f"the screenshot has {size[0]} x {size[1]} pixels, the row says "
        f"{step.screen[0]} x {step.screen[1]}",
        "the same size in both",
        "correct the row: targets are in pixels of that size",
        (step.sample_id,),
    )
