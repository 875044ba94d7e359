"""Write the episode tree (`omnidata.loaders.episode_tree`).

Media go to disk as they come; the indexes (the five `.jsonl` files, `dataset_<APP>.json` and
`dependency.jsonl`) follow when the writer is closed without an error. Every file appears under its
name only when it is whole, so a killed run leaves no half file.
"""

from __future__ import annotations

import io
import json
import math
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any, Self

from omnidata.actions import NUMBERS, Action, Box, Point, Region, Screen, convert
from omnidata.errors import DataError
from omnidata.jsontext import compact, write_lines
from omnidata.loaders.episode_tree import DIMENSIONS, SIDE_FILE, Dependency, Dimension
from omnidata.loaders.instructions import Language
from omnidata.storage import atomic_write, copy_file

Media = bytes | Path
"""An encoded file: its bytes, or where to copy it from."""

_LONGEST_NAME = 200  # bytes; file systems take 255, and suffixes are added


@dataclass(frozen=True, slots=True)
class TreeStep:
    """A step of an episode to write.

    Attributes:
        action: the target; its regions may be in any space and are written in pixels. None = no
            target, or a target in the columns of `extra`.
        screen: width and height of the screenshot in pixels.
        screenshot: a PNG file; None = the step has no screenshot.
        video: an MP4 file; None = the step has no clip.
        audio: a WAV file; None = the step has no audio track.
        extra: further columns of the step's row.
    """

    action: Action | None
    _: KW_ONLY
    screen: Screen
    screenshot: Media | None
    video: Media | None = None
    audio: Media | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TreeEpisode:
    """An episode to write.

    Attributes:
        id: unique in the app, regardless of case.
        app: names the app's folder.
        dimension: the cognitive dimension; names the file that lists the episode.
        steps: in order; consumed once, so a generator may produce the media.
        instruction_en, instruction_zh: the task in English and Chinese; None = not available, and
            at least one is needed.
        dependency: how much the task depends on audio and video; None = not labelled.
        language: the language that the app is evaluated in; None = left to the app's name.
        extra: further columns of the episode's row.
    """

    id: str
    _: KW_ONLY
    app: str
    dimension: Dimension
    steps: Iterable[TreeStep]
    instruction_en: str | None = None
    instruction_zh: str | None = None
    dependency: Dependency | None = None
    language: Language | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)


class TreeWriter:
    """Context manager that writes episodes into a new tree of OmniGUI's layout.

    An exception in the block leaves the tree without an index, so it does not look finished.

    Args:
        root: the folder of the app folders; made if missing, and otherwise empty.

    Raises:
        DataError: `root` is not empty.

    Examples:
        >>> import shutil, tempfile
        >>> tap = Action("tap", (Box(210, 786, 351, 850, "px"),))
        >>> root = Path(tempfile.mkdtemp())
        >>> with TreeWriter(root) as tree:
        ...     step = TreeStep(tap, screen=(720, 1600), screenshot=b"...")
        ...     tree.add(TreeEpisode("T001", app="TED", dimension="localization", steps=[step],
        ...                          instruction_en="Like the talk."))
        >>> sorted(path.name for path in (root / "TED/media/T001").iterdir())
        ['1.png', 'T001.json']
        >>> shutil.rmtree(root)
    """

    def __init__(self, root: Path) -> None:
        check_new(root)
        root.mkdir(parents=True, exist_ok=True)
        self._root = root
        self._steps: dict[str, list[dict[str, Any]]] = {}
        self._episodes: dict[str, dict[Dimension, list[dict[str, Any]]]] = {}
        self._dependencies: list[dict[str, str]] = []
        self._apps: dict[str, str] = {}
        self._claimed: dict[str, str] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._write_indexes()

    def add(self, episode: TreeEpisode) -> None:
        """Write the media and the step rows of one episode.

        Args:
            episode: with at least one step and one instruction.

        Raises:
            DataError: if the app or the id cannot name a folder or is taken, if the dimension is
                unknown, if there is no step or no instruction, if an extra column has the name of
                a column of the format, or if a target cannot be written.
        """
        meta = self._claim(episode)
        self._add_rows(episode, meta, write_episode(self._folder(episode), episode))

    def add_written(self, episode: TreeEpisode, folder: Path) -> None:
        """Add an episode that `write_episode` has written to another folder, which stays.

        Args:
            episode: its labels; the steps are not looked at.
            folder: of the written episode; its files are linked, or copied from another disk.

        Raises:
            DataError: as `add`.
            OSError: a file cannot be read or copied.
        """
        meta = self._claim(episode)
        rows = json.loads((folder / f"{episode.id}.json").read_bytes())
        shutil.copytree(folder, self._folder(episode), copy_function=_link_or_copy)
        self._add_rows(episode, meta, rows)

    def _folder(self, episode: TreeEpisode) -> Path:
        return self._root / episode.app / "media" / episode.id

    def _add_rows(
        self, episode: TreeEpisode, meta: dict[str, Any], rows: list[dict[str, Any]]
    ) -> None:
        self._steps.setdefault(episode.app, []).extend(rows)
        lists = self._episodes.setdefault(episode.app, {name: [] for name in DIMENSIONS})
        lists[episode.dimension].append(meta)
        if episode.dependency is not None:
            self._dependencies.append(
                {"app": episode.app, "ID": episode.id, "dependency": episode.dependency}
            )

    def _claim(self, episode: TreeEpisode) -> dict[str, Any]:
        """Reserve the folder of an episode and return its row; two apps may use the same id."""
        app, name = episode.app, episode.id
        where = f"{app}/{name}"
        check_name(app, "app name", where)
        check_name(name, "episode id", where)
        spelled = self._apps.setdefault(app.casefold(), app)
        taken = self._claimed.get(where.casefold())
        clash = taken or (f"the app {spelled}" if spelled != app else None)
        if clash is not None:
            raise DataError(
                f"the tree already has {clash}",
                where=where,
                expected="names that differ even if case is ignored",
                remedy="rename one of the two",
            )
        self._claimed[where.casefold()] = f"the episode {where}"
        return _episode_row(episode, where)

    def _write_indexes(self) -> None:
        for app, lists in self._episodes.items():
            for dimension, rows in lists.items():
                _write(self._root / app / f"{dimension}.jsonl", _lines(rows))
            _write(self._root / app / f"dataset_{app}.json", _array(self._steps[app]))
        if self._dependencies:
            _write(self._root / SIDE_FILE, _lines(self._dependencies))


def _link_or_copy(source: str, place: str) -> None:
    try:
        os.link(source, place)
    except OSError:
        shutil.copy2(source, place)


def write_episode(folder: Path, episode: TreeEpisode) -> list[dict[str, Any]]:
    """Write the media and the step rows of an episode.

    Args:
        folder: of the episode, new.
        episode: with at least one step.

    Returns:
        The rows.

    Raises:
        DataError: there is no step, an extra column has the name of a column of the format, or a
            target cannot be written.
    """
    folder.mkdir(parents=True)
    rows = [_write_step(folder, episode, index, step) for index, step in enumerate(episode.steps)]
    if not rows:
        raise DataError(
            "the episode has no step",
            where=f"{episode.app}/{episode.id}",
            expected="at least one step",
            remedy="leave the episode out",
        )
    for row in rows:
        row["episode_length"] = len(rows)
    _write(folder / f"{episode.id}.json", _array(rows))
    return rows


def check_new(root: Path) -> None:
    """Refuse a folder with content.

    Raises:
        DataError: there is one, or a file.
    """
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise DataError(
            "there is something here already",
            where=str(root),
            expected="a new or empty folder, so that episodes of two trees do not mix",
            remedy="choose another folder, or remove this one",
        )


def check_name(name: str, role: str, where: str, *, remedy: str = "") -> None:
    """Refuse what cannot name a folder on every common file system.

    Args:
        name: an app's or an episode's.
        role: what it names.
        where: it is needed.
        remedy: what helps, where that is not simply another name.

    Raises:
        DataError: it cannot.
    """
    bad = (
        name in {"", ".", ".."}
        or name != name.strip()
        or any(char in '/\\:*?"<>|' or not char.isprintable() for char in name)
        or len(name.encode()) > _LONGEST_NAME
    )
    if bad:
        raise DataError(
            f"{role} {name!r} cannot name a folder",
            where=where,
            expected=f'1 to {_LONGEST_NAME} bytes without / \\ : * ? " < > |, control characters '
            "or blanks at the ends, and neither . nor ..",
            remedy=remedy or f"give the {role} another name",
        )


def _episode_row(episode: TreeEpisode, where: str) -> dict[str, Any]:
    if episode.dimension not in DIMENSIONS:
        raise DataError(
            f"unknown dimension {episode.dimension!r}",
            where=where,
            expected="one of " + ", ".join(DIMENSIONS),
            remedy="name one of these",
        )
    if not (episode.instruction_en or episode.instruction_zh):
        raise DataError(
            "the episode has no instruction",
            where=where,
            expected="instruction_en, instruction_zh or both",
            remedy="add one, or leave the episode out",
        )
    row: dict[str, Any] = {
        "ID": episode.id,
        "app": episode.app,
        "instruction_zh": episode.instruction_zh or "",
        "instruction_en": episode.instruction_en or "",
    }
    if episode.language is not None:
        row["language"] = episode.language
    return _with_extra(row, episode.extra, where)


def _write_step(folder: Path, episode: TreeEpisode, index: int, step: TreeStep) -> dict[str, Any]:
    where = f"{episode.app}/{episode.id} step {index}"
    paths = {}
    for role, suffix, media in (
        ("video", "mp4", step.video),
        ("audio", "wav", step.audio),
        ("image", "png", step.screenshot),
    ):
        name = f"{index + 1}.{suffix}"
        paths[f"{role}_path"] = "" if media is None else f"{episode.id}/{name}"
        if media is not None:
            _write(folder / name, media)
    row = {
        "episode_id": episode.id,
        "episode_length": 0,
        "step_id": index,
        "instruction_en": episode.instruction_en or "",
        **paths,
        "image_width": step.screen[0],
        "image_height": step.screen[1],
    }
    if step.action is not None:
        row |= target_columns(step.action, step.screen, where)
    return _with_extra(row, step.extra, where)


def target_columns(action: Action, screen: Screen, where: str) -> dict[str, Any]:
    """Return the columns of a step's target, with places in pixels.

    Args:
        action: the target.
        screen: width and height of the screenshot in pixels.
        where: the step, for errors.

    Raises:
        DataError: the format cannot hold the action.
    """
    text = action.text or ""
    touch = _regions(action.start, screen, where)
    number = _primitive(action, where)
    brief = {"action_type": number, "text": text, "touch_xy": touch}
    row = {
        "result_action_type": number,
        "result_action_text": text,
        "result_touch_xy": touch,
        "result_lift_xy": _regions(action.end, screen, where),
        "result_action_json": compact(brief),
    }
    return row if action.words is None else {**row, "action_text": action.words}


def _primitive(action: Action, where: str) -> int:
    if action.label not in NUMBERS:
        raise DataError(
            f"the format has no primitive for {action.label}",
            where=where,
            expected=f"one of {', '.join(NUMBERS)}",
            remedy="use the nearest primitive, or leave the episode out",
        )
    return NUMBERS[action.label]


def _with_extra(row: dict[str, Any], extra: Mapping[str, Any], where: str) -> dict[str, Any]:
    for key in extra:
        if key in row:
            raise DataError(
                f"the extra column {key!r} has the name of a column of the format",
                where=where,
                expected="extra columns with other names",
                remedy="rename it",
            )
    return {**row, **extra}


def _regions(regions: tuple[Region, ...], screen: Screen, where: str) -> str:
    pixels = [_pixels(region, screen) for region in regions]
    if len(pixels) > 1 and any(isinstance(region, Point) for region in regions):
        raise DataError(
            f"{len(pixels)} alternative targets, and not all of them boxes",
            where=where,
            expected="one point, or any number of boxes: two points would read as one box",
            remedy="give the boxes only, or keep one point",
        )
    if any(not math.isfinite(corner) for region in regions for corner in _corners(region)):
        raise DataError(
            "a coordinate of the target is not a number",
            where=where,
            expected="finite coordinates",
            remedy="correct the target, or leave the episode out",
        )
    if not pixels:
        return ""
    return compact(pixels[0] if len(pixels) == 1 else pixels)


def _pixels(region: Region, screen: Screen) -> list[Any]:
    if isinstance(region, Point):
        point = convert(region, "px", screen)
        return [_number(point.x), _number(point.y)]
    low = Point(region.left, region.top, region.space)
    high = Point(region.right, region.bottom, region.space)
    return [_pixels(low, screen), _pixels(high, screen)]


def _corners(region: Region) -> tuple[float, ...]:
    if isinstance(region, Box):
        return (region.left, region.top, region.right, region.bottom)
    return (region.x, region.y)


def _number(value: float) -> float:
    """Return whole pixels without a decimal point, as the released data has them."""
    return int(value) if math.isfinite(value) and value == int(value) else value


def _array(rows: list[dict[str, Any]]) -> bytes:
    return _encode(json.dumps(rows, ensure_ascii=False, indent=2) + "\n")


def _lines(rows: Iterable[Mapping[str, Any]]) -> bytes:
    file = io.BytesIO()
    write_lines(file, rows, dumps=lambda row: _encode(json.dumps(row, ensure_ascii=False)))
    return file.getvalue()


def _encode(text: str) -> bytes:
    # A lone surrogate, as broken sources have them, has no UTF-8; JSON can still spell it.
    return text.encode("utf-8", "backslashreplace")


def _write(path: Path, media: Media) -> None:
    if isinstance(media, Path):
        copy_file(media, path)
        return
    with atomic_write(path, durable=False) as file:
        file.write(media)


# Join trees into one, with the bytes of a tree that is written at once.

_OPEN, _CLOSE = b"[\n", b"\n]\n"  # of a JSON array as the writer lays it out


def join(parts: Sequence[Path], out: Path) -> None:
    """Move the media of all parts into one tree, and write its indexes.

    An interrupted call can be repeated: it moves the rest, and writes the indexes again from those
    of the parts, which stay.

    Args:
        parts: trees as `TreeWriter` leaves them, every episode labelled with its dependency; no two
            have an episode of one app and id.
        out: the folder of the whole tree.
    """
    apps: dict[str, list[Path]] = {}
    for part in parts:
        for app in sorted(path for path in part.iterdir() if path.is_dir()):
            apps.setdefault(app.name, []).append(app)
            media = out / app.name / "media"
            media.mkdir(parents=True, exist_ok=True)
            for episode in sorted((app / "media").iterdir()):
                episode.rename(media / episode.name)
    for name, folders in apps.items():
        for dimension in DIMENSIONS:
            lines = (folder / f"{dimension}.jsonl" for folder in folders)
            _write_pieces(out / name / f"{dimension}.jsonl", _contents(lines))
        index = f"dataset_{name}.json"
        _write_pieces(out / name / index, _join(folder / index for folder in folders))
    _write_pieces(out / SIDE_FILE, _contents(part / SIDE_FILE for part in parts))


def _contents(paths: Iterable[Path]) -> Iterator[bytes]:
    return (path.read_bytes() for path in paths)


def _join(paths: Iterable[Path]) -> Iterator[bytes]:
    yield _OPEN
    for number, content in enumerate(_contents(paths)):
        if number:
            yield b",\n"
        yield content.removeprefix(_OPEN).removesuffix(_CLOSE)
    yield _CLOSE


def _write_pieces(path: Path, pieces: Iterable[bytes]) -> None:
    with atomic_write(path) as file:
        file.writelines(pieces)
