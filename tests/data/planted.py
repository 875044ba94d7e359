"""Trees with mistakes at known places: one mistake per episode, in a random step of it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnidata.actions import Action, Box
from omnidata.loaders.tree_writer import TreeEpisode, TreeStep, TreeWriter
from tests.data.tiny import SIZE, mp4, png, wav
from tests.full import FULL

STEPS = 3
TIMES = 20 if FULL else 3
ENGLISH, CHINESE = "Open Settings and tap Share", "打开设置，然后点击“Share”"
_TAP = Action("tap", (Box(10, 20, 30, 40, "px"),))

Row = dict[str, Any]


@dataclass
class Spot:
    """An episode to spoil.

    Attributes:
        tree: the folder of the app folders.
        app, episode: its names.
        step: 0-based, chosen by chance.
        rng: for the rest.
        rows: of all steps of the episode.
        copies: the same in the index.
        lines: of the metadata, by file, of the whole app.
        metadata: the line of the episode.
        side: lines of dependency.jsonl, of the whole tree.
    """

    tree: Path
    app: str
    episode: str
    step: int
    rng: random.Random
    rows: list[Row]
    copies: list[Row]
    lines: dict[str, list[Any]]
    metadata: Row
    side: list[Any]

    @property
    def sample(self) -> str:
        return f"{self.app}/{self.episode}/{self.step}"

    @property
    def row(self) -> Row:
        return self.rows[self.step]

    @property
    def trace(self) -> Path:
        """The file with the episode's rows."""
        return self.tree / self.app / "media" / self.episode / f"{self.episode}.json"

    def file(self, suffix: str, step: int | None = None) -> Path:
        number = (self.step if step is None else step) + 1
        return self.trace.with_name(f"{number}.{suffix}")

    def any_file(self) -> Path:
        return self.file(self.rng.choice(("png", "mp4", "wav")))


Plant = Callable[[Spot], str]
"""Spoils the spot; says where the finding is to be."""


@dataclass
class Garden:
    """A tree that holds every mistake of a table `TIMES` times.

    Attributes:
        tree: the folder.
        planted: code -> the places of its mistakes.
    """

    tree: Path
    planted: dict[str, list[str]] = field(default_factory=dict)


def grow(tree: Path, plants: Mapping[str, Plant], *, media: bool, seed: int) -> Garden:
    """Write a tree and spoil it: in each of `TIMES` apps, an episode per mistake."""
    rng = random.Random(seed)
    shots, clips, tracks = ([make(n) for n in range(STEPS)] for make in (png, mp4, wav))
    apps = [f"App{number:02d}" for number in range(TIMES)]
    episodes = [f"E{number:02d}" for number in range(len(plants) + 1)]  # one stays as it is
    with TreeWriter(tree) as writer:
        for app in apps:
            for episode in episodes:
                steps = [
                    TreeStep(_TAP, screen=SIZE, screenshot=shots[n], video=clips[n],
                             audio=tracks[n])
                    for n in range(STEPS)
                ]  # fmt: skip
                writer.add(
                    TreeEpisode(
                        episode, app=app, dimension="localization", steps=steps,
                        instruction_en=ENGLISH, instruction_zh=CHINESE, language="en",
                        dependency="present",
                    )
                )  # fmt: skip
    garden = Garden(tree, {code: [] for code in plants})
    side = _read_lines(tree / "dependency.jsonl")
    for app in apps:
        _spoil_app(garden, app, episodes, plants, side, rng)
    (tree / "dependency.jsonl").write_bytes(_lines(side))
    if not media:
        for path in tree.glob("*/media/*/*.[pmw]*"):
            path.unlink()
    return garden


def _spoil_app(
    garden: Garden,
    app: str,
    episodes: list[str],
    plants: Mapping[str, Plant],
    side: list[Any],
    rng: random.Random,
) -> None:
    folder = garden.tree / app
    lines = {path.name: _read_lines(path) for path in folder.glob("*.jsonl")}
    listed = {line["ID"]: line for line in lines["localization.jsonl"]}
    traces: dict[Path, list[Row]] = {}
    index: list[Row] = []
    order = list(plants.items())
    rng.shuffle(order)
    for episode, (code, plant) in zip(episodes[1:], order, strict=True):
        trace = folder / "media" / episode / f"{episode}.json"
        rows, copies = (json.loads(trace.read_text("utf-8")) for _ in "12")
        spot = Spot(
            garden.tree, app, episode, rng.randrange(STEPS), rng, rows, copies, lines,
            listed[episode], side,
        )  # fmt: skip
        garden.planted[code].append(plant(spot))
        traces[trace] = rows
        index += copies if code == "copies-differ" else rows
    first = folder / "media" / episodes[0] / f"{episodes[0]}.json"
    index += json.loads(first.read_text("utf-8"))
    for path, rows in traces.items():
        path.write_text(json.dumps(rows), encoding="utf-8")
    (folder / f"dataset_{app}.json").write_text(json.dumps(index), encoding="utf-8")
    for name, entries in lines.items():
        (folder / name).write_bytes(_lines(entries))


def _read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def _lines(entries: list[Any]) -> bytes:
    """JSON lines; a text stands for itself, as a line that is no JSON."""
    texts = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    return "".join(f"{text}\n" for text in texts).encode()
