"""Resolve paths of a dataset safely, within budgets.

Data is untrusted. A path is relative, has no scheme and no `..`, and after following links still
lies inside the dataset's folder; only regular files are opened, up to a budget.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import unicodedata
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from omnidata import remote
from omnidata.errors import FileError, MediaError, MediaFault, MissingMediaError
from omnidata.files import check_file, inside, naming, real, unsafe
from omnidata.remote import display_path
from omnidata.types import ByteRange, MediaRef, Modality, ParquetLocation, VideoSegment

_ABOVE = 4  # folders that are asked for a zip of their name
_ZIP_HEAD = 1024  # bytes of the header of a file, which begins with 30 bytes and its name
_DIGITS = (32, 64)
"""Of a hash that says which bytes are meant; fewer would fit many files."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one medium; beyond them there is a `MediaError`.

    Attributes:
        max_bytes: of the file.
        max_pixels: of the screenshot, and of each frame.
        max_frames: to be decoded of one clip.
        max_seconds: to be decoded of one clip or track.
        max_decoded_bytes: of all pixels or samples that one call returns.
    """

    max_bytes: int = 512 * 1024**2
    max_pixels: int = 50_000_000
    max_frames: int = 20_000
    max_seconds: float = 1800.0
    max_decoded_bytes: int = 4 * 1024**3


DEFAULT_BUDGET = Budget()
RECORDING_BUDGET = Budget(max_bytes=1 << 40)
"""What lies around a cut may be as large as it likes: only a part of it is decoded."""


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def place(ref: MediaRef) -> str:
    """Return the location of a medium, for messages."""
    if ref.cell is None:
        return display_path(ref.root / ref.path)
    cell = ref.cell
    shard = display_path(ref.root / cell.shard)
    if isinstance(cell, VideoSegment):
        return f"{shard}, {cell.start_s:.2f} to {cell.end_s:.2f} s"
    if isinstance(cell, ByteRange):
        return f"{shard}, byte {cell.offset} ({ref.path})"
    return f"{shard}, row {cell.row}, column {cell.column} ({ref.path})"


def around(ref: MediaRef, cell: ParquetLocation | ByteRange | VideoSegment) -> MediaRef:
    """Return the file that contains a medium, as a medium of its own."""
    kind: Modality = "video" if isinstance(cell, VideoSegment) else ref.kind
    return MediaRef(kind, ref.root, cell.shard, within=ref.within)


def spelling_on_disk(root: Path, name: str) -> Path:
    """Return the path of a medium as the disk spells it, whether or not the file exists.

    A name with accents has two spellings in Unicode: macOS's tools write the letters apart (NFD),
    most others composed (NFC). Rows that were written on Windows separate folders by backslashes,
    and so do the names of files from some of its zips.

    Args:
        root: the folder.
        name: below it, as a row has it.
    """
    plain = root / name
    is_plain = name.isascii() and "\\" not in name
    if (is_plain and "/" not in name) or os.path.lexists(plain):
        return plain
    if os.path.lexists(flat := root / name.replace("/", "\\")):
        return flat
    if is_plain:  # each folder has one spelling
        return plain
    path = root
    for part in PurePosixPath(name.replace("\\", "/")).parts:
        forms = (part, *(unicodedata.normalize(form, part) for form in ("NFC", "NFD")))
        path = next((found for form in forms if os.path.lexists(found := path / form)), path / part)
    return path if os.path.lexists(path) else plain


def linkable(ref: MediaRef) -> Path | None:
    """Return the absolute path of a medium with a file of its own, whether or not it exists.

    None for one that leads outside its folder, for an object on a store, for audio that a row holds
    inline, for a picture that marks are drawn on, and for bytes that have no file of their own:
    others would open and embed whatever they are pointed to.
    """
    changed = ref.until < 1 or ref.marks
    if ref.inline is not None or ref.cell is not None or changed or unsafe(ref.path):
        return None
    try:
        found = spelling_on_disk(ref.root, ref.path)
        if remote.is_in_cache(found):
            return None
        path, root = real(found), real(ref.root)
        below = path != root and inside(path, ref.within or (root,))
        return Path(path) if below else None
    except FileError:  # a name that no file system can hold
        return None


def is_remote(ref: MediaRef) -> bool:
    """Return whether a medium is an object of a store, and may not be downloaded yet."""
    return remote.is_in_cache(ref.root)


def leads_outside(ref: MediaRef) -> bool:
    """Return whether a medium's folder leads outside the allowed data, so it is never opened."""
    return bool(ref.within) and not inside(real(ref.root), ref.within)


def _within(ref: MediaRef) -> tuple[str, ...]:
    return ref.within or (real(ref.root),)


def resolve(ref: MediaRef, *, budget: Budget = DEFAULT_BUDGET, download: bool = True) -> Path:
    """Return the file of a medium.

    Args:
        ref: the medium.
        budget: limits.
        download: whether to download an object of a store; the file is not read otherwise.

    Raises:
        MediaError: it is missing, outside the dataset's folder, not a regular file, or too large;
            its hash has changed; it is a part of another file.
        StoreError: the object store does not return it. A run asks again later; conversions and
            exports stop, because their result would lack it.
    """
    if ref.cell is not None:
        raise MediaError(
            f"the {ref.kind} has no file of its own",
            where=place(ref),
            expected="a dataset whose media are files",
            remedy="take its bytes (read_bytes), or convert the dataset with --link",
        )
    path = ref.root / ref.path
    if reason := unsafe(ref.path):
        raise _refusal(reason, path, budget)
    path = spelling_on_disk(ref.root, ref.path)
    try:
        found = check_file(path, budget.max_bytes, within=_within(ref))
    except FileError as error:
        if leads_outside(ref):
            what = "its folder was not named with the dataset"
            raise _refusal(what, path, budget, naming([real(ref.root)])) from None
        raise _refusal(error.what, path, budget, error.remedy) from None
    except OSError:
        raise MissingMediaError(
            f"{ref.kind} is missing",
            where=display_path(path),
            expected=f"a file at {ref.path} below {display_path(ref.root)}",
            remedy=f"{unpack_zip(ref) or 'restore the file'}, or leave the step out with --exclude",
        ) from None
    if found.st_size == 0:
        raise _refusal("the file is empty", path, budget, fault="empty")
    if download or ref.sha256:
        remote.fetch(path)
    meant = len(ref.sha256) in _DIGITS
    if ref.sha256 and not (meant and _sha256(path).startswith(ref.sha256)):
        raise _refusal("the file has changed since it was linked", path, budget, fault="changed")
    return path


def unpack_zip(ref: MediaRef) -> str:
    """Return a remedy if a missing medium may be in a zip; else an empty string.

    Such a zip has the name of a folder of the medium.
    """
    for folder in list((ref.root / ref.path).parents)[:_ABOVE]:
        path = folder.parent / f"{folder.name}.zip"
        if path.is_file() and inside(real(path), _within(ref)):
            return unpack_command(path)
    return ""


def unpack_command(path: Path) -> str:
    """Return how to unpack a zip: into the folder of its name.

    Args:
        path: of the zip; only the name of its first file is read.
    """
    if remote.is_in_cache(path):
        return f"download and unpack {display_path(path)}, and name the folder"
    with path.open("rb") as file:
        head = file.read(_ZIP_HEAD)
    folder = path.with_suffix("")
    if not head.startswith(b"PK\3\4"):  # the last of several, or broken
        return f"unpack {path} into {folder} (`omnidata fetch` unpacks zips in several parts)"
    repeats = head[30:].startswith(os.fsencode(f"{folder.name}/"))
    names = (str(path), str(folder.parent if repeats else folder))
    return f"unpack it: python -m zipfile -e {' '.join(map(shlex.quote, names))}"


def _refusal(
    what: str,
    path: Path,
    budget: Budget,
    remedy: str = "correct the annotation or the file; omnidata opens nothing else",
    *,
    fault: MediaFault = "refused",
) -> MediaError:
    return MediaError(
        what,
        where=display_path(path),
        expected=f"a regular file of 1 to {budget.max_bytes} bytes inside the dataset's folder",
        remedy=remedy,
        fault=fault,
    )


def unreadable_bytes(ref: MediaRef, what: str, fault: MediaFault = "unreadable") -> MediaError:
    """Return the error for a medium whose bytes in another file are not usable."""
    return MediaError(
        what,
        where=place(ref),
        expected=f"the bytes of the {ref.kind}",
        remedy="convert or download the dataset again, or leave the step out with --exclude",
        fault=fault,
    )
