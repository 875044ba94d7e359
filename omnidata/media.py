"""Access to screenshots, clips and audio: where a path may lead, and whether a file is whole.

Data is untrusted. A path is relative, has no scheme and no `..`, and after following links still
lies inside the dataset's folder; only regular files up to a size limit are opened.
"""

from __future__ import annotations

import re
import stat
from pathlib import Path, PurePosixPath

from omnidata.actions import Screen
from omnidata.errors import MediaError, MissingMediaError
from omnidata.types import MediaRef

MAX_BYTES = 512 * 1024 * 1024
_SCHEME = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:")
_PNG_END = b"IEND\xaeB`\x82"
# Left to itself, FFmpeg also takes playlists, which make it open files that they name.
_CONTAINERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,wav,mp3,ogg,flac,aac"


def unsafe(path: str) -> str:
    """Why a path from a dataset may not be followed; empty if it may.

    Examples:
        >>> unsafe("T0540/6.mp4")
        ''
        >>> unsafe("../../etc/passwd")
        'the path leaves its folder through ".."'
    """
    if "\0" in path:
        return "the path holds a NUL character"
    forward = path.replace("\\", "/")
    if _SCHEME.match(forward):
        return "the path is a URL or has a drive letter"
    if forward.startswith("/"):
        return "the path is absolute"
    if ".." in PurePosixPath(forward).parts:
        return 'the path leaves its folder through ".."'
    return ""


def resolve(ref: MediaRef) -> Path:
    """The file behind a reference.

    Raises:
        MediaError: it is missing, outside the dataset's folder, not a regular file, or too large.
    """
    reason = unsafe(ref.path)
    path = ref.root / ref.path
    if not reason:
        try:
            found = path.stat()
        except (OSError, ValueError):  # a name that no file system can hold is a ValueError
            raise MissingMediaError(
                f"{ref.kind} is missing",
                where=str(path),
                expected=f"a file at {ref.path} below {ref.root}",
                remedy="restore the file, or leave the step out with --exclude",
            ) from None
        if not path.resolve().is_relative_to(ref.root.resolve()):
            reason = "the path leads outside the dataset through a link"
        elif not stat.S_ISREG(found.st_mode):
            reason = "the path is not a regular file"
        elif found.st_size > MAX_BYTES:
            reason = f"the file has {found.st_size} bytes"
        elif found.st_size == 0:
            reason = "the file is empty"
    if reason:
        raise MediaError(
            reason,
            where=str(path),
            expected=f"a regular file of 1 to {MAX_BYTES} bytes inside the dataset's folder",
            remedy="mend the annotation or the file; omnidata never opens anything else",
        )
    return path


def image_size(ref: MediaRef) -> Screen:
    """Width and height in pixels, from the header; nothing is decoded.

    A PNG must also end as a PNG does, which finds a truncated file at the cost of one more read.

    Raises:
        MediaError: the file is missing, is no image, or a PNG that was cut.
    """
    from PIL import Image, UnidentifiedImageError

    path = resolve(ref)
    try:
        with path.open("rb") as file, Image.open(file) as image:
            size, is_png = image.size, image.format == "PNG"
            if is_png:
                file.seek(-min(64, path.stat().st_size), 2)
                if _PNG_END not in file.read():
                    raise MediaError(
                        f"the PNG ends after {path.stat().st_size} bytes without its end marker",
                        where=str(path),
                        expected="a whole PNG; this one was truncated",
                        remedy="copy or download it again, or leave the step out with --exclude",
                    )
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        raise MediaError(
            "the file cannot be read as an image",
            where=str(path),
            expected="a PNG, JPEG or WebP screenshot",
            remedy="mend the file, or leave the step out with --exclude",
        ) from None
    return size


def check(ref: MediaRef) -> None:
    """Make sure that a medium can be handed to a model: it opens as what it should be.

    Raises:
        MediaError: it is missing, unreadable or lacks the stream that its kind promises.
    """
    if ref.inline is not None:
        return
    if ref.kind == "image":
        image_size(ref)
        return
    import av

    path = resolve(ref)
    try:
        with av.open(str(path), options={"format_whitelist": _CONTAINERS}) as container:
            streams = container.streams.video if ref.kind == "video" else container.streams.audio
            if not streams:
                raise MediaError(
                    f"the file has no {ref.kind} stream",
                    where=str(path),
                    expected=f"a file with a {ref.kind} stream",
                    remedy="record the step again, or leave it out with --exclude",
                )
            next(container.decode(streams[0]))
    except (av.FFmpegError, StopIteration, OSError, ValueError) as error:
        raise MediaError(
            f"the {ref.kind} cannot be decoded ({type(error).__name__})",
            where=str(path),
            expected=f"a whole {ref.kind} file",
            remedy="copy or record it again, or leave the step out with --exclude",
        ) from None
