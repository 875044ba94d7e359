"""Android in the Wild as steps, with Android in the Zoo and CAGUI, which have its actions.

They are one benchmark here: the same numbers for the same actions, the same (y, x) from 0 to 1, the
same metrics. Only the layout of rows and pictures differs, and the unit of the elements' boxes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from omnidata.actions import Action, Screen
from omnidata.errors import Finding, MediaError, MissingMediaError
from omnidata.jsontext import is_integer
from omnidata.loaders.load import (
    Note,
    RowContext,
    about,
    check_picture,
    picture_broken,
    short,
    size_of,
    stated_size,
)
from omnidata.loaders.media_findings import check_media_files
from omnidata.loaders.repository import is_repository, read_manifest
from omnidata.loaders.steps import row_ids, select_steps
from omnidata.loaders.stored_rows import ScatteredRows
from omnidata.loaders.tfrecord import Record
from omnidata.media import image, image_size, read_bytes, unsafe
from omnidata.tasks.aitw import rows as aitw_files
from omnidata.tasks.aitw.rows import PICTURE, Line, Row, action_of, form_of, one
from omnidata.tasks.loading import EpisodeBuilder, read_steps
from omnidata.tasks.phones.actions import middle, with_direction
from omnidata.tasks.phones.splits import read_splits
from omnidata.types import ByteRange, LoadedDataset, MediaRef, Modality, Step

# Rows of Android in the Wild, in whatever order they come, -> episodes of steps.

TAGS = ("form", "subset", "device", "android")
"""The tags of a step: the form of its data (aitw, aitz, cagui), the part of the dataset, the type
of device and the version of its system, by API level."""

SPLIT = "split_"
"""How the tags begin that the split files of the release give: `split_standard` is train,
validation or test. Only data beside which such files lie have them."""

ROLES: Mapping[str, Modality] = {"screenshot": "image"}
SUBSETS = ("general", "google_apps", "install", "single", "web_shopping")

UNKNOWN: Screen = (0, 0)
MAX_STEPS = 1000
"""Of one episode; every step holds the history before it, so length costs its square."""

_PICTURES = (".png", ".jpeg", ".jpg")
_RGB = 3


class _Placed(NamedTuple):
    number: int
    row: Row
    shot: MediaRef | None
    screen: Screen
    where: str
    action: Action | None


@dataclass(slots=True)
class _Episode:
    number: int
    tags: Mapping[str, str]
    steps: int = 0  # those that have come, as bits


@dataclass(slots=True)
class StepReader:
    """Turns rows into steps.

    Attributes:
        root: the folder that pictures and TFRecords lie below.
        note: takes the findings.
        check_media: look at the pictures of TFRecords.
        splits: by tag, episode id -> its part.
        unscaled: the ids of the steps whose boxes are in pixels of a picture of unknown size.
        in_files: the numbers of the steps whose pictures are files of their own.
        rows: of all episodes.
        _episodes: by name, in the order of their first rows.
        _shared: tags by their items, as many episodes have the same.
    """

    root: Path
    note: Note
    check_media: bool
    splits: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    unscaled: list[str] = field(default_factory=list)
    in_files: array[int] = field(default_factory=lambda: array("q"))
    rows: ScatteredRows[_Placed] = field(default_factory=ScatteredRows)
    _episodes: dict[str, _Episode] = field(default_factory=dict)
    _shared: dict[tuple[tuple[str, str], ...], Mapping[str, str]] = field(default_factory=dict)

    def add(self, line: Line) -> None:
        place = RowContext(line.where, self.note)
        own, number = _identity(line.row), one(line.row, "step_id")
        if own is None or type(number) is not int or not 0 <= number < MAX_STEPS:
            place.refuse(
                "id-missing",
                f"episode_id is {short(line.row.get('episode_id'))} and step_id "
                f"{short(line.row.get('step_id'))}",
                f"an id, and a number from 0 to {MAX_STEPS - 1}",
            )
            self.rows.skip()
            return
        subset = _subset(line)
        name = f"{subset.upper()}-{own}" if subset else own
        episode = self._episodes.get(name)
        if episode and episode.steps >> number & 1:
            place.refuse("id-repeated", f"{name} already has a step {number}", "an id of its own")
            self.rows.skip()
            return
        sample_id = _sample_id(name, number)
        if line.record is not None:
            shot, screen = self._within(line, line.record, sample_id)
        elif line.held is not None:
            shot, screen = line.held, size_of(line.held)
        else:
            shot, screen = self._beside(line, number, sample_id)
        note = about(self.note, sample_id)
        action = self._action(line.row, RowContext(f"{sample_id} ({line.where})", note))
        if episode is None:
            parts = self.splits.items() if line.form == "aitw" else ()
            split = {tag: episodes[own] for tag, episodes in parts if own in episodes}
            tags = _tags(line, subset) | split
            shared = self._shared.setdefault(tuple(tags.items()), tags)
            episode = self._episodes[name] = _Episode(len(self._episodes), shared)
        self.rows.add(episode.number, _Placed(number, line.row, shot, screen, line.where, action))
        episode.steps |= 1 << number

    def _action(self, row: Row, place: RowContext) -> Action | None:
        try:
            action = action_of(row)
        except ValueError as error:
            expected = "an action of Android in the Wild"
            place.leave_unjudged("action-unusable", str(error), expected)
            return None
        touch = middle(action.start)
        if touch and not all(0 <= side <= 1 for side in touch):
            place.warn("target-outside", f"{touch} is outside the screen", "x and y, 0 to 1")
        return with_direction(action)

    def steps(self) -> Iterator[Step]:
        """Yield all steps, episode by episode in the order of their first rows."""
        for name, episode in self._episodes.items():
            yield from self._steps(name, episode)

    def _steps(self, name: str, episode: _Episode) -> Iterator[Step]:
        numbers = self.rows.numbers(episode.number)
        came = [self.rows[each] for each in numbers]
        self._check_length(name, [placed.number for placed in came], came[0].row)
        there = {placed.number: (own, placed) for own, placed in zip(numbers, came, strict=True)}
        made = EpisodeBuilder(name, episode.tags, count=len(came))
        for number in range(max(there) + 1):
            if number not in there:
                made.skip()
                continue
            own, (_, row, shot, screen, where, action) = there[number]
            sample_id = _sample_id(name, number)
            form = form_of(row)
            if form == "aitz" and screen == UNKNOWN:
                self.unscaled.append(sample_id)
            if form != "aitw":
                self.in_files.append(len(self.rows.became))
            self.rows.became.append(own)
            text = one(row, "goal_info" if "goal_info" in row else "instruction")
            if not isinstance(text, str) or not text:
                place = RowContext(where, about(self.note, sample_id))
                place.warn("instruction-missing", f"the instruction is {short(text)}", "a text")
                text = ""
            yield made.step(sample_id, text, {"screenshot": shot}, screen, action, row)

    def _check_length(self, name: str, numbers: Sequence[int], first: Row) -> None:
        stated = one(first, "episode_length")
        there, last = len(numbers), max(numbers) + 1
        if there < last or (is_integer(stated) and stated != there):
            said = f", and episode_length is {stated}" if is_integer(stated) else ""
            ids = (_sample_id(name, number) for number in numbers)
            RowContext(name, about(self.note, *ids)).warn(
                "length-differs",
                f"the file has {there} steps up to number {last - 1}{said}",
                "each step of the episode",
                "add the missing steps; the episode counts as incomplete until then",
            )

    def _within(self, line: Line, record: Record, sample_id: str) -> tuple[MediaRef | None, Screen]:
        height, width = (one(line.row, f"image/{name}") for name in ("height", "width"))
        channels = one(line.row, "image/channels") if "image/channels" in line.row else _RGB
        channels = channels if is_integer(channels) else 0
        place = RowContext(sample_id, about(self.note, sample_id))
        screen = stated_size(width, height, place)
        if line.picture is None:
            if self.check_media:
                picture_broken(place, "the record has none", f"a {PICTURE}")
            return None, screen
        part = line.picture
        bare = line.row[PICTURE] == ["pixels"]
        stretch = ByteRange(
            line.path.relative_to(self.root).as_posix(),
            record.offset + part.start,
            part.stop - part.start,
            (screen[1], screen[0], channels) if bare else None,
        )
        ref = MediaRef("image", self.root, f"{sample_id}.png", cell=stretch)
        content = record.data[part]
        if self.check_media and not bare:
            check_picture(content, screen, place)
        elif self.check_media:
            width, height = screen
            if (height * width * _RGB, channels) != (len(content), _RGB) or not content:
                what = f"{len(content)} bytes are no {width} x {height} x {channels} pixels"
                picture_broken(place, what, "the pixels that the row states")
        return ref, screen

    def _beside(self, line: Line, number: int, sample_id: str) -> tuple[MediaRef, Screen]:
        folder = line.path.parent.relative_to(self.root).as_posix()
        names = [f"{folder}/{line.path.stem}_{number}{suffix}" for suffix in _PICTURES]
        own = line.row.get("image_path")
        if isinstance(own, str) and own and not unsafe(own):
            names.append(own)
        width, height = (line.row.get(f"image_{name}") for name in ("width", "height"))
        stated = stated_size(width, height, RowContext(sample_id, about(self.note, sample_id)))
        for name in names:
            ref = MediaRef("image", self.root, name.removeprefix("./"))
            try:
                size = image_size(ref)
            except MissingMediaError:
                continue
            except MediaError:
                size = UNKNOWN
            return ref, stated if line.form == "cagui" and min(stated) > 0 else size
        return MediaRef("image", self.root, names[0].removeprefix("./")), stated


def _identity(row: Row) -> str | None:
    value: Any = one(row, "episode_id")
    if is_integer(value):
        return str(value)
    return value if isinstance(value, str) and value.strip() else None


def _sample_id(name: str, number: int) -> str:
    return f"{name.replace('/', '%2F')}/{number}"


def _subset(line: Line) -> str:
    said = line.row.get("subset")
    if isinstance(said, str) and said:
        return said.lower()
    path = line.row.get("image_path")
    if isinstance(path, str) and "/" in path:
        return path.split("/")[0].lower()
    for part in (line.path.stem, *reversed(line.path.parent.parts)):
        for subset in SUBSETS:
            if part.lower().startswith(subset):
                return subset
    return ""


def _tags(line: Line, subset: str) -> dict[str, str]:
    device, android = one(line.row, "device_type"), one(line.row, "android_api_level")
    found = {
        "form": line.form,
        "subset": subset,
        "device": device if isinstance(device, str) else "",
        "android": str(android) if is_integer(android) else "",
    }
    return {tag: value for tag, value in found.items() if value}


def read(data: Path, *, check_media: bool) -> LoadedDataset:
    """Read annotations; no picture is decoded.

    A step's `source` is the untouched row: of a TFRecord the features of its example as lists, with
    "pixels" or "file" in place of the screenshot. Its `action`, and so the history of later steps,
    is what the row says was done. Its `screen` is the size that the row states,
    else that of the picture, (0, 0) without one.

    Args:
        data: TFRecords, or JSON files of episodes, in a folder with as many folders as they like;
            or one such file.
        check_media: look whether the pictures exist and are whole.

    Returns:
        Steps in the order of the episodes' first rows, named `<SUBSET>-<episode_id>/<step_id>`.

    Raises:
        DataError: nothing readable as Android in the Wild is there.
    """
    reader = StepReader(data if data.is_dir() else data.parent, lambda finding: None, check_media)

    def steps(data: Path, note: Note) -> Iterator[Step]:
        reader.note = note
        reader.splits = {
            f"{SPLIT}{path.stem}": read_splits(path, note) for path in aitw_files.find_splits(data)
        }
        for line in aitw_files.read(aitw_files.FILES.find(data), note):
            reader.add(line)
        yield from reader.steps()

    source = read_steps(
        "aitw",
        data,
        steps,
        lambda step: None,
        tags=TAGS,
        roles=ROLES,
        fingerprint=aitw_files.FILES.fingerprint,
        expected=aitw_files.FILES.columns,
        check_media=False,  # of TFRecords they are checked while they are read
    )
    findings = [*source.findings]
    if lost := reader.unscaled:
        findings.append(
            Finding(
                "boxes-unusable",
                "warning",
                str(data),
                f"the boxes of {len(lost)} steps are in pixels of pictures that cannot be read, "
                f"the first {lost[0]}",
                "the pictures, since no row states their size",
                "add them; until then only the distance of taps is judged",
                tuple(lost),
            )
        )
    if check_media and reader.in_files:
        check_media_files(select_steps(source.steps, reader.in_files), findings.append)
    ids = row_ids(source.steps, reader.rows.step_numbers())
    return replace(source, findings=findings, tags=(*TAGS, *reader.splits), row_ids=ids)


def tags_of(data: Path) -> tuple[str, ...]:
    """Return the tags of steps; a repository may have more, from splits."""
    if not is_repository(data):
        return TAGS
    said = read_manifest(data).tags[len(TAGS) :]
    return (*TAGS, *(tag for tag in said if tag.startswith(SPLIT)))


def dump(source: LoadedDataset) -> Iterator[dict[str, Any]]:
    """Yield the rows of loaded data as they were in the files, in order; skipped rows are missing.

    Args:
        source: data from `load`.

    Yields:
        A row of a JSON file as it was; of a TFRecord the features of an example as lists, where the
        screenshot is bytes.

    Raises:
        MediaError: a screenshot of a TFRecord cannot be read.
    """
    steps = {step.sample_id: step for step in source.steps}
    for own in source.row_ids:
        if own is not None:
            step = steps[own]
            row, shot = dict(step.source), step.media["screenshot"]
            if PICTURE in row and shot is not None:
                bare = row[PICTURE] == ["pixels"]
                row[PICTURE] = [image(shot).pixels.tobytes() if bare else read_bytes(shot)]
            yield row
