"""Finds the zips among data files, and the paths of their members as if they were unpacked.

A member has the name that `omnidata fetch` gives it: a zip is unpacked in place, into a folder of
its name. A zip with an unpacked member in or beside that folder counts as unpacked and stays a
plain file. So does one that cannot be read: in several parts, encrypted, broken, hostile.
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
    """Return whether a name below the data may be that of a zip to read.

    Hidden files are not, nor names that a database or a message cannot hold.

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
    """Return the files in zips, by the zips that are read and the paths of the files.

    Args:
        zips: by their names below the data.
        directories: their directories, in the same order.
        look: returns what else lies at a name below the data.
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
    """Yield the folders that a name lies in.

    Examples:
        >>> list(folders_of("a/b/c.png"))
        ['a/b', 'a']
    """
    while name := name.rpartition("/")[0]:
        yield name


def looking(names: Iterable[str]) -> Callable[[str], Kind]:
    """Return a function from a name to its kind among these files and folders, ignoring case."""
    files = {name.casefold() for name in names}
    folders = {folder for name in files for folder in folders_of(name)}

    def look(name: str) -> Kind:
        folded = name.casefold()
        return "file" if folded in files else "folder" if folded in folders else ""

    return look


def looking_on_disk(folder: str) -> Callable[[str], Kind]:
    """Return a function from a name below a local folder to its kind; a link counts as a file."""

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
    """Return the zip that an object lies in, and its name there; None if it lies in none."""
    kind, _, told = about.version.partition("\n")
    if kind != _ZIP or not told:
        return None
    archive, size, version, mtime_ns, *known = json.loads(told)
    return archive, StoredObject(size, version, mtime_ns), Member(*known)


# Zips on this disk.


def of_disk(found: os.stat_result) -> StoredObject | None:
    """Return a local file as an object; None if it is not a regular file."""
    if not stat.S_ISREG(found.st_mode):
        return None
    return StoredObject(found.st_size, str(found.st_mtime_ns), found.st_mtime_ns)


def blobs(folder: Path) -> list[str]:
    """Return the folder in which the Hub's cache keeps files: `blobs`, beside `snapshots`."""
    return [str(above.parent / "blobs") for above in folder.parents if above.name == "snapshots"]


def zips_below(folder: str, below: str = "", *, nested: bool = True) -> dict[str, StoredObject]:
    """Return the zips in a local folder by their names, without following links.

    Args:
        folder: its real path.
        below: the name of a folder in it, with a slash at its end, or empty.
        nested: whether to search subfolders.

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
    """Return the files and folders to link in a mirror of a local folder: all but its zips.

    A folder with zips or members is a folder of the mirror, and its content is linked.

    Args:
        folder: its real path.
        zips: the zips that are read.
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
