"""Trees of OSWorld's results as the release and its forks write them, in values of our own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from omnidata.media import Frame, encode_mp4, png
from omnidata.types import LoadedDataset

SIZE = (192, 108)
RUN = "pyautogui/screenshot/agent"
BEGIN = datetime(2024, 5, 1, 12, 0, 0, tzinfo=UTC)
"""When the recordings of these trees begin."""

FPS = 5

SIZES = {
    "os": 24, "libreoffice_calc": 47, "libreoffice_impress": 47, "libreoffice_writer": 23,
    "vlc": 17, "thunderbird": 15, "chrome": 46, "vs_code": 23, "gimp": 26, "multi_apps": 101,
}  # fmt: skip
"""Number of examples of each of OSWorld's domains."""


def screen(number: int) -> Frame:
    """What the screen shows after so many changes: each one lights another square."""
    pixels = np.full((SIZE[1], SIZE[0], 3), 40, np.uint8)
    for square in range(number):
        left, top = 24 * (square % 8), 24 * (square // 8)
        pixels[top : top + 20, left : left + 20] = 220
    return pixels


@cache
def picture(number: int) -> bytes:
    """A screenshot."""
    return png(screen(number))


@cache
def recording(changes: tuple[float, ...], seconds: float) -> bytes:
    """A recording whose screen changes at the given seconds."""
    shown = (sum(at <= tick / FPS for at in changes) for tick in range(round(seconds * FPS)))
    return encode_mp4((screen(number) for number in shown), fps=FPS, crf=18)


def stamp(seconds: float, *, micro: bool = False) -> str:
    """The time so many seconds after `BEGIN`."""
    return (BEGIN + timedelta(seconds=seconds)).strftime(
        "%Y%m%d@%H%M%S%f" if micro else "%Y%m%d@%H%M%S"
    )


def line(
    number: int = 1, action: Any = "pyautogui.click(96, 54)", **changes: Any
) -> dict[str, Any]:
    """A line as the first release writes it; a change to None removes the key."""
    at = stamp(10 * number)
    full = {
        "step_num": number,
        "action_timestamp": at,
        "action": action,
        "reward": 0,
        "done": action in ("DONE", "FAIL"),
        "info": {"done": True} if action == "DONE" else {},
        "screenshot_file": f"step_{number}_{at}.png",
        **changes,
    }
    return {key: value for key, value in full.items() if value is not None}


def write_lines(folder: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    """A trajectory's file."""
    folder.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    (folder / "traj.jsonl").write_text(text, encoding="utf-8")
    return folder


def rollout(
    root: Path,
    *rows: Mapping[str, Any],
    place: str = f"{RUN}/chrome/e1",
    result: str | None = "1.0\n",
    pictures: bool = True,
    film: bytes | None = None,
) -> Path:
    """A folder of an example with the screenshots that its lines name.

    The picture after the k-th line shows k changes.
    """
    folder = write_lines(root / place, rows)
    if result is not None:
        (folder / "result.txt").write_text(result)
    for number, row in enumerate(rows, 1):
        name = row.get("screenshot_file")
        if pictures and isinstance(name, str) and "/" not in name:
            (folder / name).write_bytes(picture(number))
    if film is not None:
        (folder / "recording.mp4").write_bytes(film)
    return folder


def results(root: Path, run: str, scores: Mapping[str, Sequence[str | None]]) -> Path:
    """Folders with results alone: domain -> what each file says; None leaves it out."""
    for domain, texts in scores.items():
        for number, text in enumerate(texts):
            folder = root / run / domain / f"{domain}-{number}"
            folder.mkdir(parents=True)
            if text is not None:
                (folder / "result.txt").write_text(text)
    return root


def plain(root: Path) -> Path:
    """Three turns of an agent, with everything that the release leaves behind."""
    film = recording((11.0, 21.0), 35.0)
    rows = [line(1), line(2, "pyautogui.write('a;b')"), line(3, "DONE")]
    rollout(root, *rows, film=film)
    (root / "pyautogui" / "screenshot" / "agent" / "args.json").write_text("{}")
    (root / RUN / "onboard").mkdir()
    (root / RUN / "onboard" / "traj.jsonl").write_text("{}\n")
    return root


def bare(root: Path) -> Path:
    """Two examples of one turn each, without any medium."""
    for number in (1, 2):
        row = line(1, screenshot_file_before_exec="before.png", instruction="Open the menu")
        rollout(root, row, place=f"{RUN}/chrome/e{number}", pictures=False)
    return root


def codes(source: LoadedDataset) -> list[str]:
    """The codes of the findings."""
    return [finding.code for finding in source.findings]
