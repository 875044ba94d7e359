"""AndroidControl: episodes of TFRecords as steps, one for each action.

Source: the README of `android_control` in google-research. A record is an episode; of its
screenshots and forests there is one more than of its actions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from omnidata.actions import OPPOSITE, Action, Screen
from omnidata.errors import DataError, UsageError
from omnidata.jsontext import BROKEN, decode
from omnidata.loaders import files, tfrecord
from omnidata.loaders.load import Note, RowContext, about, check_picture, stated_size
from omnidata.loaders.tfrecord import Example, Record, read_example, records
from omnidata.media import read_bytes
from omnidata.tasks.androidcontrol import json_rows
from omnidata.tasks.androidcontrol.forest import Bounds, bounds_of, elements_of
from omnidata.tasks.loading import EpisodeBuilder, read_steps
from omnidata.tasks.observation import Element, broken_tree, pack, unpack
from omnidata.tasks.phones.actions import (
    Truth,
    corrected_action,
    middle,
    read_call,
    truth_in_shares,
)
from omnidata.tasks.phones.splits import read_splits
from omnidata.tasks.phones.step_rows import BOXES, WordSense
from omnidata.types import ByteRange, LoadedDataset, MediaRef, Modality, Step

Row = Mapping[str, Any]

STEP, FOREST, FINAL = "step", "accessibility_tree", "final_accessibility_tree"
"""What a step's `source` has beside the record's features: its number, and the forest of its
screen; that of the screen after the last action is with the last step. Both are packed."""


def item(row: Row, name: str, number: int) -> Any:
    """Return one value of a feature; None if it is absent."""
    values = row.get(name)
    return values[number] if isinstance(values, list) and number < len(values) else None


def call_of(row: Row) -> Action:
    """Return the recorded action, in pixels.

    Raises:
        ValueError: the action is none of AndroidControl's.
    """
    text = item(row, "actions", row[STEP])
    try:
        action = decode(text) if isinstance(text, str) else BROKEN
    except RecursionError:
        action = BROKEN
    if action is BROKEN:
        raise ValueError("the action is no JSON")
    return read_call(action)


Places = Callable[[bytes], Sequence[Bounds]]
"""Which places of a forest are elements, to a rule."""


def truth_of(row: Row, screen: Screen, *, places: Places = bounds_of) -> Truth | None:
    """Return the expert's action and the elements, from 0 to 1; None if unreadable.

    Elements are only read for actions with a place.

    Args:
        row: a step's `source`.
        screen: width and height in pixels.
        places: returns the elements of a forest that count; a `ValueError` if it is none.
    """
    try:
        action = corrected_action(row) or call_of(row)
    except ValueError:
        return None
    packed = row.get(FOREST) if action.start else None
    # A row of JSON lists what may be clicked.
    boxes = _read_places(packed, places) if isinstance(packed, str) else row.get(BOXES, ())
    return truth_in_shares(action, boxes, screen)


@lru_cache(maxsize=32)  # several rules judge a step in turn
def _read_places(packed: str, places: Places) -> Sequence[Bounds]:
    try:
        return places(unpack(packed))
    except ValueError:
        return ()


def elements(step: Step) -> list[Element]:
    """Return the elements of a step's screen.

    Raises:
        MediaError: the step has no forest, or one that is none.
    """
    packed = step.source.get(FOREST)
    if not isinstance(packed, str):
        raise broken_tree(step, "the step has no accessibility tree")
    try:
        return elements_of(unpack(packed))
    except ValueError as error:
        raise broken_tree(step, f"the accessibility tree cannot be read: {error}") from None


def with_words(action: Action) -> Action:
    """Return an action with the dataset's own wording for histories, if it has one.

    Examples:
        >>> with_words(Action("swipe", direction="up")).words
        'scroll down'
    """
    if action.kind == "swipe" and action.direction:
        return replace(action, words=f"scroll {OPPOSITE[action.direction]}")
    if action.kind == "type" and action.start:
        return replace(action, words=f'INPUT text: "{action.text}", then ENTER')
    return action


# AndroidControl's records -> steps.

TAGS = ("split",)
"""The tag of a step: the part of the dataset that `splits.json` puts its episode into."""

ROLES: Mapping[str, Modality] = {"screenshot": "image", "final_screenshot": "image"}
SPLITS = "splits.json"
MAX_ACTIONS = 1000
"""Of one episode; every step holds the history before it, so length costs its square."""

_SHOTS, _FORESTS = "screenshots", "accessibility_trees"


@dataclass(slots=True)
class EpisodeReader:
    """Turns records into steps.

    Attributes:
        root: the folder that the TFRecords lie below.
        note: takes the findings.
        check_media: look at the pictures.
    """

    root: Path
    note: Note
    check_media: bool
    _ids: set[str] = field(default_factory=set)
    _splits: Mapping[str, str] | None = None

    def of_records(self, paths: Iterable[Path]) -> Iterator[Step]:
        """Yield the steps of TFRecords, one record in memory at a time."""
        for path in paths:
            try:
                for record in records(path):
                    yield from self._steps(path, record)
            except DataError as error:
                self._refuse("record-broken", error.where, error.what, error.expected)

    def _steps(self, path: Path, record: Record) -> Iterator[Step]:
        where = f"{path}, record {record.number}"
        try:
            example = read_example(record.data)
            small = (name for name in example.texts if name not in (_SHOTS, _FORESTS))
            texts = {name: example.text(name) for name in small}
            features: dict[str, Any] = {**texts, **example.numbers}
        except ValueError as error:
            self._refuse(
                "record-broken", where, f"it is not an example: {error}", "a tf.train.Example"
            )
            return
        actions, number = features.get("actions"), item(features, "episode_id", 0)
        if not actions or type(number) is not int:
            self._refuse(
                "episode-empty",
                where,
                f"it has {len(actions or ())} actions and the id {number!r:.40}",
                "an episode_id and at least one action",
            )
        elif len(actions) > MAX_ACTIONS:
            what = f"the episode has {len(actions)} actions"
            self._refuse("actions-many", where, what, f"at most {MAX_ACTIONS}")
        elif str(number) in self._ids:
            self._refuse("id-repeated", where, f"the episode {number} exists already", "another id")
        else:
            self._ids.add(str(number))
            yield from self._episode(where, path, record, example, features)

    def _refuse(self, code: str, where: str, what: str, expected: str) -> None:
        RowContext(where, self.note).refuse(code, what, expected)

    def _episode(
        self, where: str, path: Path, record: Record, example: Example, features: Row
    ) -> Iterator[Step]:
        name, count = str(features["episode_id"][0]), len(features["actions"])
        ids = [f"{name}/{number}" for number in range(count)]

        def context(where: str, number: int) -> RowContext:
            """The screens after the last action belong to the last step."""
            return RowContext(where, about(self.note, ids[min(number, count - 1)]))

        _check_lengths(features, example, RowContext(where, about(self.note, *ids)))
        forests = []
        for number, part in enumerate(example.texts.get(_FORESTS, ())):
            forests.append(pack(example.data[part]))
            try:
                bounds_of(example.data[part])
            except ValueError as error:
                context(where, number).warn(
                    "forest-broken",
                    f"accessibility tree {number}: {error}",
                    "an AndroidAccessibilityForest",
                    "download it again; until then only the distance of taps is judged",
                )
        parts = example.texts.get(_SHOTS, [])
        widths, heights = (f"screenshot_{side}" for side in _SIDES)
        sizes = [
            stated_size(item(features, widths, n), item(features, heights, n), context(where, n))
            for n in range(max(count, len(parts)))
        ]
        shots: list[MediaRef | None] = []
        for number, part in enumerate(parts):
            file = path.relative_to(self.root).as_posix()
            place = ByteRange(file, record.offset + part.start, part.stop - part.start)
            own = f"{name}/{number}"
            shots.append(MediaRef("image", self.root, f"{own}.png", cell=place))
            if self.check_media:
                check_picture(example.data[part], sizes[number], context(own, number))
        goal = str(item(features, "goal", 0) or "")
        episode = EpisodeBuilder(name, self.tags(name), count=count)
        for number, own in enumerate(ids):
            row = {**features, STEP: number}
            row |= {FOREST: forests[number]} if number < len(forests) else {}
            media = {"screenshot": shots[number] if number < len(shots) else None}
            if number == count - 1:
                row |= {FINAL: forests[count]} if count < len(forests) else {}
                media |= {"final_screenshot": shots[count]} if count < len(shots) else {}
            action = self._action(row, sizes[number], context(own, number))
            yield episode.step(own, goal, media, sizes[number], action, row)

    def _action(self, row: Row, screen: Screen, place: RowContext) -> Action | None:
        try:
            action = call_of(row)
        except ValueError as error:
            expected = "one of AndroidControl's actions"
            place.leave_unjudged("action-unusable", str(error), expected)
            return None
        touch = middle(action.start)
        if touch and not all(0 <= value <= side for value, side in zip(touch, screen, strict=True)):
            x, y = touch
            place.warn(
                "target-outside",
                f"({x}, {y}) is outside the screen of {screen[0]} x {screen[1]}",
                "pixels of the screenshot",
            )
        return with_words(action)

    def tags(self, name: str) -> dict[str, str]:
        """Return the tags of an episode by `splits.json`."""
        if self._splits is None:
            path = self.root / SPLITS
            self._splits = read_splits(path, self.note) if path.exists() else {}
        return {"split": self._splits[name]} if name in self._splits else {}


_SIDES = ("widths", "heights")


def _check_lengths(features: Row, example: Example, place: RowContext) -> None:
    count = len(features["actions"])
    lengths = {
        **{name: len(example.texts.get(name, ())) for name in (_SHOTS, _FORESTS)},
        **{f"screenshot_{side}": len(features.get(f"screenshot_{side}", ())) for side in _SIDES},
    }
    wrong = {name: length for name, length in lengths.items() if length != count + 1}
    if (told := len(features.get("step_instructions", ()))) != count:
        wrong["step_instructions"] = told
    if wrong:
        place.warn(
            "lengths-differ",
            f"the episode has {count} actions, but "
            + ", ".join(f"{length} {name}" for name, length in wrong.items()),
            "one step_instruction per action, and one more of everything else",
        )


FEATURES = frozenset({"actions", "screenshots", "goal"})
_PEEKED = 20


class ControlFiles:
    """The files of AndroidControl: TFRecords, or the forms of JSON of `json_rows`."""

    columns = (
        f"TFRecords whose examples have {', '.join(sorted(FEATURES))}; {json_rows.FILES.columns}"
    )

    def find(self, data: Path) -> list[Path]:
        """Return the TFRecords, sorted."""
        looks = {path: tfrecord.look(path, FEATURES) for path in files.walk(data)}
        return files.select_files(data, looks, self.columns)

    def is_json(self, data: Path) -> bool:
        """Return whether rows of JSON are read: beside TFRecords, they were made of them."""
        return not self._has_records(data) and json_rows.FILES.recognises(data)

    def _has_records(self, data: Path) -> bool:
        paths = filter(tfrecord.may_hold_records, files.walk(data))
        return any(tfrecord.look(path, FEATURES) == "known" for path in islice(paths, _PEEKED))

    def recognises(self, data: Path) -> bool:
        """Return whether one of the first files is AndroidControl's."""
        return self._has_records(data) or json_rows.FILES.recognises(data)

    def fingerprint(self, data: Path) -> str:
        """Return the SHA-256 over the TFRecords, or the rows of JSON, and the splits."""
        root = data if data.is_dir() else data.parent
        splits = [root / SPLITS] if (root / SPLITS).is_file() else []
        paths = json_rows.FILES.find(data) if self.is_json(data) else self.find(data)
        return files.fingerprint([*paths, *splits], root)


FILES = ControlFiles()


def read(
    data: Path, *, check_media: bool, low: bool = False, scroll: WordSense | None = None
) -> LoadedDataset:
    """Read episodes; no picture is decoded.

    A step's `source` has the features of its record as lists, but for the screenshots and the
    forests; beside them `step`, its number, and `accessibility_tree`, the forest of its screen,
    packed (`omnidata.tasks.observation.unpack`). The last step has `final_accessibility_tree` too,
    and among its media `final_screenshot`, the screen after the last action.

    Args:
        data: a folder of TFRecords, or one of them, packed with gzip or not, perhaps with
            `splits.json` beside; or JSON of any form that `json_rows` reads.
        check_media: look whether the pictures are whole.
        low: rows of JSON need an instruction of their own.
        scroll: whose the directions of rows of JSON are; None as `json_rows` has it.

    Returns:
        Steps in the order of the records, named `<episode_id>/<number>`.

    Raises:
        DataError: no readable episode is there.
        UsageError: `scroll` contradicts TFRecords.
    """
    is_json = FILES.is_json(data)
    if scroll == "finger" and not is_json:
        raise UsageError(
            "the directions of AndroidControl's own records are those of the content",
            where=f"-T scroll={scroll}",
            expected="scroll=content, or rows of JSON",
            remedy="leave out scroll",
        )

    def steps(data: Path, note: Note) -> Iterator[Step]:
        root = data if data.is_dir() else data.parent
        reader = EpisodeReader(root, note, check_media)
        if not is_json:
            return reader.of_records(FILES.find(data))
        return json_rows.read(
            data, note, low=low, said=scroll, worded=with_words, tags_of=reader.tags
        )

    return read_steps(
        "androidcontrol",
        data,
        steps,
        lambda step: None,
        tags=TAGS,
        roles=ROLES,
        fingerprint=FILES.fingerprint,
        expected=FILES.columns,
        check_media=check_media and is_json,  # records are checked while they are read
    )


def dump(source: LoadedDataset) -> Iterator[dict[str, Any]]:
    """Yield the features of every record of loaded data, in order.

    Args:
        source: data from `load` with all steps of each episode.

    Yields:
        Features as lists; screenshots and forests are bytes.

    Raises:
        MediaError: a screenshot cannot be read.
    """
    episode: list[Step] = []
    for step in source.steps:
        if episode and step.step_index == 0:
            yield _features(episode)
            episode = []
        episode.append(step)
    if episode:
        yield _features(episode)


def _features(episode: list[Step]) -> dict[str, Any]:
    rows = [step.source for step in episode]
    bulk = (STEP, FOREST, FINAL)
    found = {name: value for name, value in rows[0].items() if name not in bulk}
    packed = [*(row.get(FOREST) for row in rows), rows[-1].get(FINAL)]
    shots = [*(step.media["screenshot"] for step in episode)]
    shots.append(episode[-1].media.get("final_screenshot"))
    found["accessibility_trees"] = [unpack(text) for text in packed if text is not None]
    found["screenshots"] = [read_bytes(shot) for shot in shots if shot is not None]
    return found
