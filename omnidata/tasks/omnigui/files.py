"""The files of OmniGUI's annotations: the paper's tree, the released form, one JSON file of steps.

The paper (Appendix B.1) has a folder per app: five `<dimension>.jsonl`, `dataset_<APP>.json`, and
`media/<EP>/<EP>.json` beside the media. The release has one `merged_sorted.json` and a folder
`benchmark` of media. Annotations alone are enough in every form.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib import resources
from itertools import chain, islice
from pathlib import Path
from typing import Any

from omnidata.errors import DataError, Finding
from omnidata.files import STREAMED, open_file, staying_in
from omnidata.jsontext import as_name
from omnidata.loaders.episode_tree import DEPENDENCIES, DIMENSIONS, SIDE_FILE, label
from omnidata.loaders.files import holds_rows, not_an_object
from omnidata.loaders.instructions import Language
from omnidata.loaders.load import Note, RowContext
from omnidata.loaders.row_files import read_rows
from omnidata.loaders.stored_rows import ScatteredRows, StoredRows
from omnidata.loaders.subsets import canonical
from omnidata.media import spelling_on_disk, unsafe

Row = Mapping[str, Any]

RELEASED = "merged_sorted.json"
_NO_DATA = {"dataset_info.json", "dataset_infos.json"}  # what the hub keeps beside data
_METADATA = "name the file of steps; the metadata are in <dimension>.jsonl"
_FIRST = 50  # rows by whose pictures the folder of media is known
_PIECE = 1024**2  # bytes hashed at once
LAYOUTS = (
    "an app folder (the five <dimension>.jsonl, dataset_<APP>.json, media/), a folder of such "
    f"folders, the released folder ({RELEASED} and benchmark/), or a JSON file of steps"
)


@dataclass(slots=True)
class Annotations:
    """The annotations of one app folder or of one file of steps.

    Attributes:
        app: the app's name; None where every row names its own.
        media_root: the folder that media paths are relative to.
        rows: the steps as (row, its file), an iterator.
        listings: the metadata rows of the episodes of all apps, and their dimensions.
        episodes: ID -> the number in `listings`; None for one file of steps.
        doubts: ID -> findings about the episode; all are there once `rows` has ended.
    """

    app: str | None
    media_root: Path
    rows: Iterator[tuple[Row, str]]
    listings: StoredRows[tuple[Row, str]]
    episodes: dict[str, int] | None = None
    doubts: dict[str, list[Finding]] = field(default_factory=dict)


@dataclass(slots=True)
class Files:
    """The annotation files of a path, by their names.

    Attributes:
        root: the folder of the others' names.
        apps: app folders; empty in the released form.
        steps: a JSON file with all steps; None in the paper's form.
        side: dependency side files.
    """

    root: Path
    apps: list[Path]
    steps: Path | None
    side: list[Path]

    def fingerprint(self) -> str:
        """Return the SHA-256 of the annotations, in hexadecimal."""
        digest = hashlib.sha256()
        paths: list[Iterable[Path]] = [
            (*(_dimension(app, name) for name in DIMENSIONS), *_indexes(app), *_episode_files(app))
            for app in self.apps
        ]
        paths += [[self.steps] if self.steps else [], self.side]
        with staying_in(self.root, *self.side):
            for path in filter(Path.exists, chain.from_iterable(paths)):
                name = "" if path == self.steps else path.name
                if path.is_relative_to(self.root) and name:
                    name = path.relative_to(self.root).as_posix()
                with open_file(path, STREAMED) as file:
                    size = file.seek(0, os.SEEK_END)
                    digest.update(f"{name}\0{size}\0".encode("utf-8", "surrogateescape"))
                    file.seek(0)
                    while piece := file.read(_PIECE):
                        digest.update(piece)
        return digest.hexdigest()


def find(data: Path) -> Files:
    """Return the annotation files of a path.

    Raises:
        DataError: there is nothing at the path, or nothing that looks like OmniGUI.
    """
    if data.is_file():
        return Files(data.parent, [], data, _side(data.parent))
    if not data.is_dir():
        raise DataError(
            "there is no such file or folder",
            where=str(data),
            expected=LAYOUTS,
            remedy="check the path; `omnidata demo` makes a sample",
        )
    for folder in (data, data / "data"):
        if (folder / RELEASED).exists():
            return Files(data, [], folder / RELEASED, _side(data, folder))
    if _is_app(data):
        return Files(data, [data], None, _side(data, data.parent))
    folders = sorted(path for path in data.iterdir() if path.is_dir() and _is_app(path))
    if folders:
        return Files(data, folders, None, _side(data, *folders))
    arrays = [path for path in sorted(data.glob("*")) if holds_rows(path)]
    arrays = [path for path in arrays if path.name not in _NO_DATA and path.is_file()]
    if len(arrays) == 1:
        return Files(data, [], arrays[0], _side(data))
    inside = sorted(path.name for path in data.iterdir())[:5]
    raise DataError(
        f"the folder holds {', '.join(inside) if inside else 'nothing'}"
        + (" ..." if len(inside) == 5 else ""),
        where=str(data),
        expected=LAYOUTS,
        remedy="name the dataset's own folder; `omnidata demo` makes a sample to compare with",
    )


def _side(*folders: Path) -> list[Path]:
    paths = (folder / SIDE_FILE for folder in dict.fromkeys(folders))
    return [path for path in paths if path.exists()]


def _is_app(folder: Path) -> bool:
    return (
        any(_dimension(folder, name).exists() for name in DIMENSIONS)
        or any(_indexes(folder))
        or any(_episode_files(folder))
    )


def _dimension(app: Path, name: str) -> Path:
    places = [app / f"{name}{suffix}" for suffix in (".jsonl", ".json", ".ndjson", ".parquet")]
    return next((path for path in places if path.exists()), places[0])


def _indexes(app: Path) -> list[Path]:
    paths = filter(holds_rows, sorted(app.glob("dataset_*")))
    return [path for path in paths if path.name not in _NO_DATA]


def _episode_files(app: Path) -> Iterator[Path]:
    media = app / "media"
    if media.is_dir():
        for name in sorted(os.listdir(media)):  # noqa: PTH208  a path takes ten times the memory
            trace = media / name / f"{name}.json"
            if trace.exists():
                yield trace


def read_annotations(files: Files, note: Note) -> Iterator[Annotations]:
    """Read all annotation files, as the rows are asked for.

    Args:
        files: as `find` gives them.
        note: takes the findings, until the rows of the last ones have ended.

    Raises:
        DataError: the only file of steps is unreadable, also while its rows are read.
    """
    listings: StoredRows[tuple[Row, str]] = StoredRows()
    if files.steps:
        name = files.steps.stem.removeprefix("dataset_")
        app = None if name == files.steps.stem else name
        rows = _array(files.steps)
        first = list(islice(rows, _FIRST))
        root = _media_root(files.steps, first)
        placed = ((row, str(files.steps)) for row in chain(first, rows))
        yield Annotations(app, root, placed, listings)
    for folder in files.apps:
        yield _app(folder, listings, note)


def _media_root(steps: Path, rows: Sequence[Row]) -> Path:
    folder = steps.parent
    candidates = [folder / "benchmark", folder / "media", folder]
    named = [p for row in rows if isinstance(p := row.get("image_path"), str) and not unsafe(p)]
    for candidate in candidates:
        for name in named:
            with suppress(OSError):  # a name too long for the file system
                if spelling_on_disk(candidate, name).is_file():
                    return candidate
    return next((candidate for candidate in candidates if candidate.is_dir()), folder)


def _app(folder: Path, listings: StoredRows[tuple[Row, str]], note: Note) -> Annotations:
    episodes: dict[str, int] = {}
    doubts: dict[str, list[Finding]] = {}
    apps: dict[str, None] = {}
    for dimension in DIMENSIONS:
        for where, row in _lines(_dimension(folder, dimension), note):
            identity = as_name(row.get("ID"))
            if identity is None:
                RowContext(where, note).refuse(
                    "episode-without-id",
                    f"ID is {row.get('ID')!r}",
                    "a non-empty string",
                    "add the episode's ID",
                )
            elif (before := episodes.get(identity)) is not None:
                RowContext(where, doubts.setdefault(identity, []).append).warn(
                    "episode-repeated",
                    f"episode {identity} is listed before, under {listings[before][1]}",
                    "each episode once",
                    "remove one of the two lines; the first is used",
                )
            else:
                episodes[identity] = listings.append((row, dimension))
                if isinstance(row.get("app"), str):
                    apps[row["app"]] = None
    app = next(iter(apps), folder.name)
    for other in sorted(apps.keys() - {app}):
        RowContext(str(folder), note).warn(
            "app-differs",
            f'a metadata row says app "{other}"',
            f'"{app}", as the first row does',
            "give every row of one folder the same app",
        )
    rows = _steps(folder, doubts, note)
    return Annotations(app, folder / "media", rows, listings, episodes, doubts)


def _steps(folder: Path, doubts: dict[str, list[Finding]], note: Note) -> Iterator[tuple[Row, str]]:
    index: ScatteredRows[tuple[Row, str]] = ScatteredRows()
    episodes: dict[str, int] = {}
    for path in _indexes(folder):
        for row in _array(path):
            own = episodes.setdefault(str(row.get("episode_id")), len(episodes))
            index.add(own, (row, str(path)))
    separate: set[str] = set()  # the index's episodes that have files of their own
    for path in _episode_files(folder):
        try:
            rows = list(_array(path))
        except DataError as error:
            RowContext(error.where, note).refuse(
                "json-invalid", error.what, error.expected, error.remedy
            )
            continue
        yield from ((row, str(path)) for row in rows)
        if path.stem in episodes:
            copies = [index[each] for each in index.numbers(episodes[path.stem])]
            separate.add(path.stem)
            if rows != [row for row, _ in copies]:
                place = str(path if rows else folder)
                RowContext(place, doubts.setdefault(path.stem, []).append).warn(
                    "copies-differ",
                    f"episode {path.stem} differs from its copy in {copies[0][1]}",
                    "equal rows",
                    "regenerate the index; until then the episode's own file is used",
                )
    for name, number in episodes.items():
        if name not in separate:
            yield from (index[each] for each in index.numbers(number))


def dependencies(files: Files, note: Note) -> dict[tuple[str, str], str]:
    """Return (`app_key` of the app, episode) -> dependency level, from the side files."""
    levels: dict[tuple[str, str], str] = {}
    for path in files.side:
        with staying_in(files.root, *files.side):
            lines = list(_lines(path, note))
        for where, row in lines:
            level = label(row.get("dependency"), DEPENDENCIES)
            app, identity = as_name(row.get("app")), as_name(row.get("ID"))
            if level is None or app is None or identity is None:
                RowContext(where, note).warn(
                    "dependency-unreadable",
                    json.dumps(row),
                    '{"app", "ID", "dependency": "critical" | "supportive" | "present"}',
                    "correct the line; the episode has no dependency label until then",
                )
            elif levels.setdefault((app_key(app), identity), level) != level:
                RowContext(where, note).warn(
                    "dependency-contradicts",
                    f"episode {app}/{identity} is {level} here and "
                    f"{levels[app_key(app), identity]} in an earlier line",
                    "one level per episode",
                    "remove one of the two lines; the first is used",
                )
    return levels


def _lines(path: Path, note: Note) -> Iterator[tuple[str, Row]]:
    if path.exists():
        for line in read_rows(path):
            if isinstance(line.row, dict):
                yield line.where, line.row
            else:
                note(not_an_object(line, "one JSON object"))


def _array(path: Path) -> Iterator[Row]:
    for line in read_rows(path):
        if not isinstance(line.row, dict) or (line.alone and "result_action_type" not in line.row):
            raise DataError(
                line.fault or "the JSON is not an array of objects",
                where=line.where,
                expected="a JSON array of steps, or one step per line",
                remedy="correct the file there, or download it again" if line.fault else _METADATA,
            )
        yield line.row


# The 29 apps of Table 7: languages, spellings and published counts.

COLUMNS: Mapping[str, str] = {
    "localization": "loc",
    "semantic_understanding": "sem",
    "cross_modal_discrimination": "crm",
    "temporal_reasoning": "tmp",
    "instant_response": "ins",
    "critical": "cri",
    "supportive": "sup",
    "present": "pre",
}
"""The table's columns of the five task dimensions and the three dependency levels (section 3.2)."""


@cache
def table7() -> Mapping[str, Any]:
    """Return the published table: `apps` (rows with counts and aliases) and `totals`."""
    text = resources.files("omnidata.tasks.omnigui").joinpath("apps.json").read_text("utf-8")
    table: Mapping[str, Any] = json.loads(text)
    return table


@lru_cache(maxsize=1024)
def table7_row(app: str) -> Mapping[str, Any] | None:
    """Return the row of Table 7 for any spelling of an app; None for an app not in it.

    Examples:
        >>> table7_row("googletranslate")["app"], table7_row("Insta")["language"]
        ('GTrans', 'en')
    """
    names = {
        canonical(name): row for row in table7()["apps"] for name in (row["app"], *row["aliases"])
    }
    return names.get(canonical(app))


def app_key(app: str) -> str:
    """Return the same name for all spellings of an app: Table 7's, in canonical form.

    Examples:
        >>> app_key("Google_Translate") == app_key("GTrans") == "gtrans"
        True
    """
    row = table7_row(app)
    return canonical(row["app"] if row else app)


def language_of(app: str) -> Language | None:
    """Return the language of the app in Table 7; None for other apps."""
    row = table7_row(app)
    return None if row is None else row["language"]
