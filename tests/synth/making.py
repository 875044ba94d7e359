"""Small datasets of synthetic episodes, and looks at them through the loader."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from PIL import Image

from omnidata.synth.episodes import Settings, make_episodes
from omnidata.tasks import get_task
from omnidata.tasks.omnigui.load import load
from omnidata.types import Step

TINY = Settings(
    size=(48, 64),
    clip_size=(32, 48),
    fps=8,
    seconds=0.5,
    cues=("pitch", "glide", "lamp", "colour", "digit", "arrow"),
)
"""Made fast."""

OPTIONS = ("--size", "48x64", "--clip-size", "32x48", "--fps", "8", "--seconds", "0.5")
"""The same sizes for the command line."""

ROLES = {"audio": "audio", "video": "video", "screen": "screenshot"}
"""The role of the file of each medium."""


def make_steps(out: Path, settings: Settings, *, episodes: int = 16) -> Sequence[Step]:
    make_episodes(out, settings, episodes=episodes)
    source = load(out)
    assert not source.findings
    return source.steps


def only(medium: str, **changes: object) -> Settings:
    shares = {"audio_share": float(medium == "audio"), "video_share": float(medium == "video")}
    return replace(TINY, **{**shares, **changes})  # type: ignore[arg-type]  # changes by name


def twins(steps: Sequence[Step]) -> list[list[Step]]:
    groups: dict[tuple[str, int], list[Step]] = defaultdict(list)
    for step in steps:
        groups[step.source["twins"], step.step_index].append(step)
    return list(groups.values())


def content(step: Step, role: str) -> bytes:
    ref = step.media[role]
    assert ref is not None
    return (ref.root / ref.path).read_bytes()


def right(step: Step) -> str:
    target = get_task("omnigui").target(step)
    assert target
    return target.text


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file, by path; of a picture that of its pixels, whose bytes may differ."""
    return {
        path.relative_to(folder).as_posix(): _digest(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


_PICTURES: dict[tuple[int, ...], str] = {}
"""By file: those of a pool have links in all that is composed of it."""


def _digest(path: Path) -> str:
    if path.suffix != ".png":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    about = path.stat()
    file = about.st_dev, about.st_ino, about.st_mtime_ns, about.st_size
    if file not in _PICTURES:
        with Image.open(path) as picture:
            pixels = repr((picture.mode, picture.size)).encode() + picture.tobytes()
        _PICTURES[file] = hashlib.sha256(pixels).hexdigest()
    return _PICTURES[file]
