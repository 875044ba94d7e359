"""Trees that one writer wrote in parts become one tree, with the bytes of one written at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from omnidata.loaders.omnigui_apps import DIMENSIONS
from omnidata.loaders.omnigui_files import SIDE_FILE
from omnidata.storage import atomic_write
from omnidata.synth.episodes.parts import TREE, Job

_OPEN, _CLOSE = b"[\n", b"\n]\n"  # of a JSON array as `TreeWriter` lays it out


def join(parts: Sequence[Job], out: Path) -> None:
    """Move the media of all parts, in order, and write the indexes.

    A call that was interrupted can be made again: what was moved is not looked for, and an index
    is written from those of the parts, which stay.

    Args:
        parts: whole.
        out: the tree's folder.
    """
    apps: dict[str, list[Path]] = {}
    for part in parts:
        for app in sorted(path for path in (part.path / TREE).iterdir() if path.is_dir()):
            apps.setdefault(app.name, []).append(app)
            media = out / app.name / "media"
            media.mkdir(parents=True, exist_ok=True)
            for episode in sorted((app / "media").iterdir()):
                episode.rename(media / episode.name)
    for name, folders in apps.items():
        for dimension in DIMENSIONS:
            lines = (folder / f"{dimension}.jsonl" for folder in folders)
            _write(out / name / f"{dimension}.jsonl", _contents(lines))
        index = f"dataset_{name}.json"
        _write(out / name / index, _array(folder / index for folder in folders))
    _write(out / SIDE_FILE, _contents(part.path / TREE / SIDE_FILE for part in parts))


def _contents(paths: Iterable[Path]) -> Iterator[bytes]:
    return (path.read_bytes() for path in paths)


def _array(paths: Iterable[Path]) -> Iterator[bytes]:
    """One array of the items of several, without reading them."""
    yield _OPEN
    for number, content in enumerate(_contents(paths)):
        if number:
            yield b",\n"
        yield content.removeprefix(_OPEN).removesuffix(_CLOSE)
    yield _CLOSE


def _write(path: Path, pieces: Iterable[bytes]) -> None:
    with atomic_write(path) as file:
        file.writelines(pieces)
