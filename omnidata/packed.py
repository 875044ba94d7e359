"""Which files of data lie in zips, and where they would be if those were unpacked.

A member has the name that `omnidata fetch` gives it: a zip is unpacked where it lies, into a folder
of its name. A zip of which a file lies there already, or beside it, has been unpacked, and is what
it was: a file. So is one that is not read: in several parts, encrypted, broken, hostile.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

from omnidata.object_stores import StoredObject, object_at
from omnidata.zips import Member, member_paths

Directory = Mapping[str, Member] | str
"""The members of a zip by their names, or why it is not read."""
Kind = Literal["file", "folder", ""]
"""What lies at a place; empty for nothing."""

_ZIP: Final = ".zip"
_DEEPEST: Final = 2  # folders between the data and a zip


def is_zip(name: str) -> bool:
    """Whether a name below the data may be that of a zip that is looked into.

    No hidden one is, nor one whose name a database and a message cannot have.

    Examples:
        >>> is_zip("screens/images.zip"), is_zip("a/b/c/d.zip"), is_zip("a.png"), is_zip("...zip")
        (True, False, False, False)
    """
    parts = name.split("/")
    plain = name.isprintable() and not any(part.startswith(".") for part in parts)
    return plain and name.lower().endswith(_ZIP) and len(parts) <= _DEEPEST + 1


def member_files(
    zips: Mapping[str, StoredObject],
    directories: Iterable[Directory],
    look: Callable[[str], Kind],
) -> dict[str, dict[str, StoredObject]]:
    """The files in zips, by the zips that are read and by where the files are seen.

    Args:
        zips: by their names below the data.
        directories: of each, in the same order.
        look: what else lies at a name below the data.
    """
    found: dict[str, dict[str, StoredObject]] = {}
    taken: dict[str, Kind] = {}
    for (archive, about), members in zip(zips.items(), directories, strict=True):
        if isinstance(members, str) or not members:
            continue
        beside = archive.rpartition("/")[0]
        places = member_paths(members, archive.rpartition("/")[2][: -len(_ZIP)])
        names = {place: f"{beside}/{place}".lstrip("/") for place in places.values()}
        above = {folder for name in names.values() for folder in folders_of(name)}
        own: dict[str, Kind] = {folder.casefold(): "folder" for folder in above}
        own |= {name.casefold(): "file" for name in names.values()}
        if (
            any(look(name) for name in names.values())
            or any(look(f"{beside}/{name}".lstrip("/")) == "file" for name in places)
            or any(look(folder) == "file" for folder in above)
            or any("file" in (kind, taken[name]) for name, kind in own.items() if name in taken)
        ):
            continue
        taken |= own
        found[archive] = {
            names[place]: _object_of(members[name], archive, about)
            for name, place in places.items()
        }
    return found


def folders_of(name: str) -> Iterator[str]:
    """The folders that a name lies in.

    Examples:
        >>> list(folders_of("a/b/c.png"))
        ['a/b', 'a']
    """
    while name := name.rpartition("/")[0]:
        yield name


def looking(names: Iterable[str]) -> Callable[[str], Kind]:
    """Says what lies at a name, of these files and their folders, in letters of any case."""
    files = {name.casefold() for name in names}
    folders = {folder for name in files for folder in folders_of(name)}

    def look(name: str) -> Kind:
        folded = name.casefold()
        return "file" if folded in files else "folder" if folded in folders else ""

    return look


def looking_on_disk(folder: str) -> Callable[[str], Kind]:
    """Says what lies at a name below a folder of this disk; a link is a file, wherever it leads."""

    def look(name: str) -> Kind:
        path = os.path.join(folder, name)  # noqa: PTH118  asked of each member
        if not os.path.lexists(path):
            return ""
        return "folder" if os.path.isdir(path) and not os.path.islink(path) else "file"  # noqa: PTH112, PTH114

    return look


# A member as an object of a store: its version says where it lies.


def _object_of(member: Member, archive: str, about: StoredObject) -> StoredObject:
    known = member.at, member.span, member.packed, member.size, member.deflated, member.crc
    version = f"{_ZIP}\n{json.dumps([archive, about.size, about.version, about.mtime_ns, *known])}"
    return object_at(member.size, version, about.mtime_ns // 10**9)


def place_of(about: StoredObject) -> tuple[str, StoredObject, Member] | None:
    """In which zip an object lies, and where there; None for one that lies in none."""
    kind, _, told = about.version.partition("\n")
    if kind != _ZIP or not told:
        return None
    archive, size, version, mtime_ns, *known = json.loads(told)
    return archive, StoredObject(size, version, mtime_ns), Member(*known)


# Zips on this disk.


def of_disk(found: os.stat_result) -> StoredObject | None:
    """A file of this disk as an object; None for what is no regular file."""
    if not stat.S_ISREG(found.st_mode):
        return None
    return StoredObject(found.st_size, str(found.st_mtime_ns), found.st_mtime_ns)


def blobs(folder: Path) -> list[str]:
    """Where the Hub's cache keeps the files of a snapshot: `blobs`, beside `snapshots`."""
    return [str(above.parent / "blobs") for above in folder.parents if above.name == "snapshots"]


def zips_below(folder: str, below: str = "", *, nested: bool = True) -> dict[str, StoredObject]:
    """The zips in a folder of this disk, by their names; no link leads elsewhere.

    Args:
        folder: its real path.
        below: of a folder in it, with a slash at its end, or empty.
        nested: look into the folders in it too.

    Raises:
        OSError: a folder cannot be read.
    """
    found: dict[str, StoredObject] = {}
    with os.scandir(os.path.join(folder, below)) as entries:  # noqa: PTH118
        listed = sorted(entries, key=lambda entry: entry.name)
    for entry in listed:
        name = f"{below}{entry.name}"
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            if nested and name.count("/") < _DEEPEST:
                found |= zips_below(folder, f"{name}/")
        elif is_zip(name) and entry.is_file():
            own = (folder, *blobs(Path(folder)))
            leads = os.path.realpath(entry.path)
            about = of_disk(entry.stat())
            if about and about.size and any(leads.startswith(one + os.sep) for one in own):
                found[name] = about
    return found


def links(folder: str, zips: Iterable[str], members: Iterable[str]) -> dict[str, Path]:
    """What a mirror of a folder of this disk shows of it, by names: all but the zips that are read.

    Folders that members lie in, or zips, are folders of the mirror, and what is in them is linked.

    Args:
        folder: its real path.
        zips: those that are read.
        members: the names of their files.

    Raises:
        OSError: a folder cannot be read.
    """
    inner = {above for name in (*zips, *members) for above in folders_of(name)}
    shared = {one for one in inner if os.path.isdir(os.path.join(folder, one))}  # noqa: PTH112, PTH118
    left = shared.union(zips)
    return {
        name: Path(entry.path)
        for one in ("", *sorted(shared))
        for entry in os.scandir(os.path.join(folder, one))  # noqa: PTH118
        if (name := f"{one}/{entry.name}".lstrip("/")) not in left
    }
