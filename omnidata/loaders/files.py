"""Find a benchmark's files in nested folders, and check the media that they name."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final, Literal, NamedTuple

from omnidata.actions import Screen
from omnidata.errors import (
    DataError,
    Finding,
    MediaError,
    MissingMediaError,
    StoreError,
    plural,
)
from omnidata.files import STREAMED, bounds, inside, naming, open_file, outside, real
from omnidata.loaders import parquet
from omnidata.loaders.row_files import Line, head_of, is_parquet, read_rows, readable
from omnidata.loaders.steps import media_of
from omnidata.media import (
    around,
    is_remote,
    leads_outside,
    picture_info,
    resolve,
    unpack_command,
    unpack_zip,
    unsafe,
)
from omnidata.types import MediaRef, Step, VideoSegment

Look = Literal["known", "broken", "other"]

OTHER_DATA: Final = "name other data; `omnidata info` lists the tasks"
"""The remedy of an error about data that are none of a task's."""
_DEEPEST: Final = 32  # folders in folders: no dataset has so many, and recursion has an end


def walk(data: Path) -> Iterator[Path]:
    """Yield the file itself, or all files in and below the folder, sorted.

    Links to files outside and special files are among them: opening one raises the error. A link to
    a folder of the data is skipped, because that folder is walked itself.

    Raises:
        DataError: the folders are nested too deeply.
        FileError: links to folders lead outside; raised after the last file, so the first files
            can be recognised.
        OSError: a folder cannot be read.
    """
    if data.is_dir():
        far: list[Path] = []
        yield from _below(data, (real(data),), far, 0)
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
        elif not path.is_symlink():
            yield from _below(path, trees, far, depth + 1)
        elif not is_walked(leads := real(path), trees):
            if inside(leads, bounds() or trees):
                yield from _below(path, (*trees, leads), far, depth + 1)
            else:
                far.append(path)


def is_walked(leads: str, trees: Sequence[str]) -> bool:
    """Return whether a link's target is walked anyway; hidden folders are not.

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
    """Refuse data with links to folders outside: numbers without them would be wrong.

    Args:
        links: all of them.
        data: as the user named it.

    Raises:
        FileError: there is one.
    """
    if links:
        raise outside(links, bounds() or (real(data),))


def check_depth(folder: Path, depth: int) -> None:
    """Refuse a folder that is nested too deeply, so nothing is skipped silently.

    Args:
        folder: to be looked into.
        depth: how many folders it lies in, from the data on.

    Raises:
        DataError: there are too many.
    """
    if depth > _DEEPEST:
        raise DataError(
            "the folders are nested too deeply",
            where=str(folder),
            expected=f"at most {_DEEPEST} levels below the named folder",
            remedy="name a folder further down, or move its content up",
        )


def select_files(data: Path, looks: Mapping[Path, Look], expected: str) -> list[Path]:
    """Return the recognised files, together with broken ones, which must not be overlooked.

    Args:
        data: as the user named it.
        looks: what each file is.
        expected: what would be right, for the message.

    Raises:
        DataError: none is known, unless the one that the user named is broken.
    """
    if "known" not in looks.values() and looks.get(data) != "broken":
        broken = next((path for path, found in looks.items() if found == "broken"), None)
        what = "no file has the columns of the benchmark"
        remedy = OTHER_DATA
        if zips := sorted(data.glob("*.zip")):
            what += f", and {plural(len(zips), 'zip')} must be unpacked first"
            remedy = unpack_command(zips[0])
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
    """Return SHA-256 over files, independent of the folder's location.

    Args:
        paths: below the root.
        root: the folder.

    Raises:
        OSError: a file cannot be read.
    """
    digest = hashlib.sha256()
    for path in paths:
        digest.update(_digest(path, root))
    return digest.hexdigest()


def _digest(path: Path, root: Path) -> bytes:
    name = path.relative_to(root).as_posix()
    about = f"{name}\0{path.stat().st_size}\0".encode("utf-8", "surrogateescape")
    with open_file(path, STREAMED) as file:
        return about + hashlib.file_digest(file, "sha256").digest()


# The files of a benchmark's rows.

SKIPPED: Final = "correct the row; it is skipped until then"
"""The usual remedy for a row that cannot be used."""
_PEEKED: Final = 50
_SUFFIXES: Final = frozenset({".json", ".jsonl", ".ndjson", ".parquet"})


@dataclass(frozen=True, slots=True)
class RowFiles:
    """The files of a benchmark's rows, in any format that `read_rows` reads.

    Attributes:
        columns: of the rows, for messages.
        look: whether a file is the benchmark's; a broken one may be. Uses `head_of`.
        listed: returns the files that the user's path may mean.
        unread: columns that are left out, such as whole pages of HTML.
        text_first: whether the benchmark is published both as JSON and as Parquet, so that of both
            in one folder the JSON alone is read.
    """

    columns: str
    look: Callable[[Path], Look]
    listed: Callable[[Path], Iterable[Path]] = walk
    unread: Collection[str] = ()
    text_first: bool = False

    def find(self, data: Path) -> list[Path]:
        """Return the benchmark's files, sorted.

        Raises:
            DataError: nothing is there, or nothing of the benchmark.
            OSError: a file cannot be read.
        """
        looks = {path: self._look(path, data) for path in self.listed(data)}
        found = select_files(data, looks, self.columns)
        texts = [path for path in found if looks[path] == "known" and not is_parquet(path)]
        return texts if self.text_first and texts else found

    def recognises(self, data: Path) -> bool:
        """Return whether one of the first files is the benchmark's.

        Raises:
            OSError: a file cannot be read.
        """
        paths = (path for path in self.listed(data) if holds_rows(path) or path == data)
        return any(self._look(path, data) == "known" for path in islice(paths, _PEEKED))

    def fingerprint(self, data: Path) -> str:
        """Return SHA-256 over the files; of Parquet over the rows and the sizes of all columns.

        Raises:
            DataError: as `find`, or a file cannot be read.
        """
        digest, root = hashlib.sha256(), data if data.is_dir() else data.parent
        for path in self.find(data):
            digest.update(self._digest(path) if is_parquet(path) else _digest(path, root))
        return digest.hexdigest()

    def rows(self, paths: Iterable[Path], note: Callable[[Finding], None]) -> Iterator[Line]:
        """Yield every row of files; anything that is no JSON object becomes a finding.

        Args:
            paths: the files of `find`.
            note: receives the findings.

        Raises:
            DataError: a Parquet file cannot be read.
            OSError: a file cannot be read.
        """
        for path in paths:
            for line in read_rows(path, unread=self.unread):
                if isinstance(line.row, dict):
                    yield line
                else:
                    note(not_an_object(line, self.columns))

    def _look(self, path: Path, data: Path) -> Look:
        if not holds_rows(path) and path != data:
            return "other"
        try:
            return self.look(path)
        except StoreError:
            raise
        except DataError:
            return "broken"

    def _digest(self, path: Path) -> bytes:
        name = path.name.encode("utf-8", "surrogateescape") + b"\0"
        with parquet.open_checked(path) as file:
            return name + parquet.digest(path, file, readable(file, self.unread))


JsonFiles = RowFiles
"""The name that it had when all files were JSON."""


def holds_rows(path: Path) -> bool:
    """Return whether a file's name is that of a file of rows."""
    return path.suffix.lower() in _SUFFIXES


def look_for(*alternatives: Sequence[str | re.Pattern[bytes]]) -> Callable[[Path], Look]:
    """Return a `look` at whether the beginning of a file has all signs of an alternative.

    Args:
        alternatives: names, which files have in quotation marks, and patterns.
    """
    return partial(_look_for, alternatives)


def _look_for(alternatives: Sequence[Sequence[str | re.Pattern[bytes]]], path: Path) -> Look:
    head = head_of(path)
    known = any(all(_is_in(head, sign) for sign in signs) for signs in alternatives)
    return "known" if known else "other"


def _is_in(head: bytes, sign: str | re.Pattern[bytes]) -> bool:
    return f'"{sign}"'.encode() in head if isinstance(sign, str) else bool(sign.search(head))


def not_an_object(line: Line, expected: str) -> Finding:
    """Return the finding for a row that is no JSON object.

    Args:
        line: a line of `read_rows`.
        expected: a correct row, in words.
    """
    what = line.fault or f"it is a {type(line.row).__name__}, not a JSON object"
    return Finding("json-invalid", "error", line.where, what, expected, SKIPPED)


def images(path: Path, names: Sequence[str]) -> Path:
    """Return the folder with a file's pictures, beside the file or beside its folder.

    Args:
        path: the file.
        names: of folders, in order of choice; the first where none exists.
    """
    places = (folder / name for folder in (path.parent, path.parent.parent) for name in names)
    return next((place for place in places if place.is_dir()), path.parent / names[0])


def picture_of(line: Line, columns: Sequence[str], folders: Sequence[str]) -> MediaRef | None:
    """Return the picture that a row holds itself, or names in a folder; None without one.

    Args:
        line: the row.
        columns: that hold or name a picture, in order of choice.
        folders: as the names in `images`.
    """
    if held := line.picture(columns):
        return held
    name = next((line.row[column] for column in columns if line.row.get(column)), None)
    return MediaRef("image", images(line.path, folders), name) if isinstance(name, str) else None


# Do the media that the rows name exist, and are the screenshots what the rows say?


def check_media_files(
    steps: Sequence[Step], note: Callable[[Finding], None], *, always_shown: bool = True
) -> None:
    """Check that every medium exists, and that every screenshot is whole and of the stated size.

    Where nothing exists at all, the data is annotations alone, and one finding says so. Of data on
    an object store only the listing is asked: to look into every screenshot is to fetch them all,
    which `omnidata validate` does.

    Args:
        steps: of the dataset.
        note: takes the findings.
        always_shown: report steps without a screenshot; the loader has not.

    Raises:
        DataError: as `refuse_closed`.
    """
    refuse_closed(media_of(steps))
    if not any(seen.there for seen in _look_at(steps, always_shown)):
        note(media_absent(steps))
        return
    turned: list[str] = []
    for seen in _look_at(steps, always_shown):
        if seen.problem is not None:
            note(seen.problem)
        if seen.turned:
            turned.append(seen.step.sample_id)
    if turned:
        note(media_turned(Counter(image=len(turned)), turned))


class _Seen(NamedTuple):
    step: Step
    there: bool
    problem: Finding | None = None
    turned: bool = False


def _look_at(steps: Sequence[Step], always_shown: bool) -> Iterator[_Seen]:
    seen = set[int]()
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
            if (number := hash(ref)) in seen:
                continue
            seen.add(number)
            try:
                if isinstance(ref.cell, VideoSegment):
                    resolve(around(ref, ref.cell), download=False)
                elif ref.kind == "image" and not is_remote(ref):
                    about = picture_info(ref)
                    yield _Seen(step, True, size_differs(step, role, about.size), about.turned)
                    continue
                else:
                    resolve(ref, download=False)
                yield _Seen(step, True)
            except MediaError as error:
                what = f"{error.what}: {error.where}"
                there = not isinstance(error, MissingMediaError)
                yield _Seen(step, there, medium_broken(step, role, what, error.expected))


def refuse_closed(refs: Iterable[MediaRef]) -> None:
    """Refuse media in folders that the user has not allowed, before any work.

    Every medium there would be refused: the folder is a link that leads outside the data, or one
    that a linked repository lists.

    Raises:
        DataError: there are such folders; it names the options to type.
    """
    known: dict[tuple[Path, tuple[str, ...]], MediaRef] = {}
    for ref in refs:
        if ref.inline is None:
            known.setdefault((ref.root, ref.within), ref)
    if folders := sorted({str(ref.root) for ref in known.values() if leads_outside(ref)}):
        leads = sorted({real(Path(folder)) for folder in folders})
        raise DataError(
            f"the media are outside the data, below {', '.join(leads)}",
            where=", ".join(folders),
            expected="media inside the named folder, after links are resolved",
            remedy=naming(leads),
        )


def media_absent(steps: Sequence[Step]) -> Finding:
    """Return the finding for data without any media."""
    found = Counter((ref.root, ref.kind) for ref in media_of(steps))
    roots: Counter[Path] = Counter()
    for (root, _), count in found.items():
        roots[root] += count
    pictures = {kind for _, kind in found} == {"image"}
    first = next(media_of(steps), None)
    unpack = unpack_zip(first) if first else ""
    return Finding(
        "media-absent",
        "warning",
        str(roots.most_common(1)[0][0]) if roots else "media",
        "none of the media that the rows name exist",
        "screenshots" if pictures else "screenshots, clips and audio",
        f"{unpack or 'fine for scoring'}; to ask a model, put the media below that folder",
    )


def medium_broken(step: Step, role: str, what: str, expected: str) -> Finding:
    """Return the finding for a medium that no model can take."""
    return Finding(
        "media-broken",
        "error",
        step.sample_id,
        f"{role.replace('_', ' ')}: {what}",
        expected,
        "restore the file; until then models that use it skip the step",
        (step.sample_id,),
    )


def media_turned(counts: Mapping[str, int], sample_ids: Sequence[str]) -> Finding:
    """Return the finding for pictures and clips that are stored rotated.

    Args:
        counts: of the media, by kind.
        sample_ids: of steps that have them, at least one.
    """
    nouns = {"image": "picture", "video": "clip"}
    media = [plural(counts[kind], noun) for kind, noun in nouns.items() if counts.get(kind)]
    return Finding(
        "media-turned",
        "warning",
        sample_ids[0],
        f"{' and '.join(media)} with an orientation tag (EXIF, display matrix)",
        "media stored as they are displayed",
        "nothing, if the targets were made on media as viewers show them, which is how "
        "they are read; "
        "else remove the tags",
        tuple(sample_ids),
    )


def size_differs(step: Step, role: str, size: Screen) -> Finding | None:
    """Return the finding for a screenshot whose size differs from its row's.

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
