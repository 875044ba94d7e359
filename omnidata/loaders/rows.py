"""Convert steps to rows of a table and back; `omnidata.loaders.columns` is the schema."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import structs

from omnidata import registry
from omnidata.actions import (
    NUMBERS,
    Action,
    AmountUnit,
    Box,
    Button,
    Direction,
    Point,
    Region,
    Sense,
    Space,
    Status,
)
from omnidata.errors import DataError, UsageError
from omnidata.files import allowed_folders, inside, real
from omnidata.loaders.columns import BELONGING, COMMON, DETAILS, PLAIN, tag_column, tag_of
from omnidata.media import InMemoryMedia
from omnidata.types import LoadedDataset, MediaRef, Modality, Step

if TYPE_CHECKING:
    import datasets

WAY: Final = 'StepDataset(omnidata.load_dataset(NAME, DATA, split="test")): docs/torch.md'
"""The way from a table to steps, for messages."""


def needs_details(before: Step | None, step: Step) -> bool:
    """Return whether an action of a step needs the column `DETAILS`.

    Args:
        before: the step before, whose history is not looked at again.
        step: the step.
    """
    past = before.history if before else ()
    new = step.history[len(past) :] if step.history[: len(past)] == past else step.history
    return any(map(_details, (step.action, *new)))


def needs_names(step: Step) -> bool:
    """Return whether a step needs the columns `BELONGING`, where its task has no rule for them."""
    plain = replace(step, episode="", group="")
    return (step.episode, step.group) != (plain.episode, plain.group)


def has_rule(source: LoadedDataset) -> bool:
    """Return whether a rule of the benchmark assigns the steps to episodes and groups."""
    task = registry.find_benchmark(source.task)
    try:
        return bool(task and source.steps and task.group(source.steps[0]) is not None)
    except (KeyError, TypeError, ValueError):  # a rule, but not for such a step
        return True


def to_row(step: Step, tags: Sequence[str], more: Collection[str] = ()) -> dict[str, Any]:
    """Return a step as a row, without its media.

    Args:
        step: the step.
        tags: names of the tags that have columns.
        more: columns beyond `PLAIN`: of `OPTIONAL` ones all but that of episodes' rows, and
            `history_screens`.
    """
    row = {
        "sample_id": storable(step.sample_id),
        "episode_id": storable(step.episode_id),
        "step_index": step.step_index,
        "num_steps": step.num_steps,
        "instruction": storable(step.instruction),
        "screen_width": step.screen[0],
        "screen_height": step.screen[1],
        **{tag_column(name): storable(step.tags.get(name)) for name in tags},
        "history": [_action(action) for action in step.history],
        "action": _action(step.action),
        "source": json.dumps(step.source, ensure_ascii=True),
    }
    for column, name in BELONGING.items():
        if column in more:
            row[column] = storable(getattr(step, name))
    if DETAILS in more:
        past = {str(number): _details(one) for number, one in enumerate(step.history)}
        held = {"action": _details(step.action), "history": {k: v for k, v in past.items() if v}}
        held = {key: value for key, value in held.items() if value}
        row[DETAILS] = json.dumps(held) if held else None
    if "history_screens" in more:
        row["history_screens"] = [
            {"width": width, "height": height} for width, height in step.history_screens
        ]
    return row


class RowReader:
    """Make steps of the rows of a table; it needs only the names and kinds of the columns.

    The actions of a history are those of the row before it, where it is of the same episode: a long
    episode would otherwise hold the square of its length. Rows without `history_screens`, which
    only repositories have, become steps without them.

    Rows that name files may be untrusted. A file is opened where it lies in data that this process
    has loaded as a table, or in a folder that is named when the rows are handed over:
    `with omnidata.following(["FOLDER"]): StepDataset(rows)`.

    Args:
        tags: names of the tags; a column is null for steps without the tag.
        kinds: the columns of media; None where a column does not say its kind.
        task: the benchmark whose rule assigns steps to episodes and groups; empty for none.

    Attributes:
        kinds: as given.
    """

    def __init__(
        self,
        tags: Iterable[str],
        kinds: Mapping[str, Modality | None] | None = None,
        task: str = "",
    ) -> None:
        self.kinds = kinds or {}
        self._tags = {name: tag_column(name) for name in tags}
        self._task = registry.find_benchmark(task)
        self._within = allowed_folders()
        self._last: tuple[list[Any], tuple[Action | None, ...]] = ([], ())

    @classmethod
    def of(cls, rows: datasets.Dataset | datasets.IterableDataset) -> RowReader:
        """Return the reader of a table or a stream.

        Raises:
            UsageError: the rows are no steps, or the types of the columns are unknown.
        """
        columns = rows.features
        if columns is None:
            raise UsageError(
                "the stream does not know the types of its columns",
                where=type(rows).__name__,
                expected=WAY,
                remedy="after map, pass them: rows.map(..., features=rows.features)",
            )
        own = [name for name in columns if name not in COMMON]
        # A column of paths alone, which a repository of links has, is a dict and says no kind.
        kinds = {
            name: _KINDS.get(type(columns[name]).__name__)
            for name in own
            if isinstance(columns[name], dict) or type(columns[name]).__name__ in _KINDS
        }
        lacking = [name for name in PLAIN if name not in columns]
        if not lacking and _lacks_screenshots(rows, kinds):
            lacking = ["screenshot"]
        if lacking:
            raise UsageError(
                f"the rows are not steps: missing columns {', '.join(lacking)}",
                where=f"a dataset with the columns {', '.join(columns)}",
                expected=WAY,
                remedy="keep these columns: leave them out of remove_columns and map",
            )
        tags = [tag_of(name) for name in own if getattr(columns[name], "dtype", "") == "string"]
        return cls(tags, kinds)

    @classmethod
    def of_row(cls, row: Mapping[str, Any], roles: Mapping[str, Modality]) -> RowReader:
        """Return the reader of a single row, as a `DataLoader` hands it over.

        Args:
            row: undecoded, as `datasets` gives it.
            roles: media of its task; the row may have none.

        Raises:
            UsageError: the row is no step, or its media are decoded.
        """
        lacking = [name for name in PLAIN if name not in row]
        if lacking:
            raise UsageError(
                f"the row is not a step: missing columns {', '.join(lacking)}",
                where=f"a row with {', '.join(map(str, row))}",
                expected=WAY,
            )
        own = {name: value for name, value in row.items() if name not in COMMON}
        kinds = {
            name: roles.get(name)
            for name, value in own.items()
            if name in roles or isinstance(value, Mapping)
        }
        for name in kinds:
            if not (row[name] is None or isinstance(row[name], Mapping)):
                raise UsageError(
                    f"the column {name} holds {type(row[name]).__name__}, which is decoded already",
                    where=str(row["sample_id"]),
                    expected="rows as they are loaded, without cast_column",
                    remedy="leave the column undecoded: a step decodes its media itself",
                )
        return cls([tag_of(name) for name in own if name not in kinds], kinds)

    def read(self, row: Mapping[str, Any], where: str) -> Step:
        """Return the step of a row with its media columns.

        Raises:
            DataError: the row is no step, or names a file outside the allowed folders.
        """
        sums = {entry["role"]: entry["sha256"] for entry in row.get("media") or ()}
        media = {role: self.medium(role, row[role], sums.get(role) or "") for role in self.kinds}
        try:
            return self.step(row, media)
        except (KeyError, ValueError, RecursionError) as error:
            raise DataError(
                f"the row is not a step ({type(error).__name__}: {error})",
                where=where,
                expected=WAY,
            ) from None

    def step(self, row: Mapping[str, Any], media: Mapping[str, MediaRef | None]) -> Step:
        """Return the step of a row that `to_row` made.

        Args:
            row: the row, its types as in `omnidata.loaders.columns.features`.
            media: the step's.

        Raises:
            KeyError, ValueError, RecursionError: the row is not one of `to_row`.
        """
        held = msgspec.convert(row, _Row)
        # `json` knows infinite numbers.
        details = held.action_details and json.loads(held.action_details)
        more = msgspec.convert(details or {}, _More)
        step = Step(
            sample_id=held.sample_id,
            episode_id=held.episode_id,
            step_index=held.step_index,
            num_steps=held.num_steps,
            instruction=held.instruction,
            screen=(held.screen_width, held.screen_height),
            media=media,
            history=self._history(held.history, more.history),
            history_screens=tuple(map(structs.astuple, held.history_screens or ())),
            action=_with_details(_as_action(held.action), more.action),
            tags={k: row[column] for k, column in self._tags.items() if row[column] is not None},
            source=read_object(held.source, "source"),
            episode=held.episode_name or "",
            group=held.split_group or "",
        )
        grouped = self._task.group(step) if self._task else None
        return grouped or step

    def _history(self, held: list[Any], more: Mapping[str, _Details]) -> tuple[Action | None, ...]:
        before, actions = self._last
        shared = len(before) if held[: len(before)] == before else 0
        new = msgspec.convert(held[shared:], list[_Plain | None])
        history = (*actions[:shared], *map(_as_action, new))
        self._last = held, history
        if not more:
            return history
        return tuple(_with_details(one, more.get(str(n))) for n, one in enumerate(history))

    def medium(
        self, role: str, cell: Mapping[str, Any] | None, sha256: str = ""
    ) -> MediaRef | None:
        """Return a column's medium: bytes, or a file; its name implies the kind if none is given.

        Raises:
            DataError: it names a file outside the allowed folders.
        """
        kind = self.kinds[role]
        if cell is None:
            return None
        if cell.get("bytes") is not None:
            name = cell.get("path") or role
            return InMemoryMedia(kind or _guess_kind(name), Path(), name, content=cell["bytes"])
        if not cell.get("path"):
            return None
        place = Path(cell["path"])
        if not inside(real(place), self._within):
            raise DataError(
                "the row names a file outside the folders that you named",
                where=f"column {role}: {place}",
                expected="data that this process loaded, or a folder that you name",
                remedy='with omnidata.following(["FOLDER OF THE MEDIA"]): StepDataset(rows)',
            )
        kind = kind or _guess_kind(place.name)
        return MediaRef(kind, place.parent, place.name, sha256=sha256, within=self._within)


_KINDS: Final[Mapping[str, Modality]] = {"Image": "image", "Video": "video", "Audio": "audio"}
_BESIDE_SCREENSHOTS: Final = frozenset(
    {
        *("history_screenshot", "screenshot_after", "final_screenshot"),
        *("video", "video_after", "audio"),
    }
)
"""Roles of the benchmarks whose steps have a screenshot."""


def _lacks_screenshots(
    rows: datasets.Dataset | datasets.IterableDataset, roles: Collection[str]
) -> bool:
    """Return whether the steps have screenshots that the columns with media have not.

    Rows of a repository say which media a step has. Other rows have screenshots if nothing else is
    left, or only media that accompany a screenshot.
    """
    if "screenshot" in roles:
        return False
    if "media" not in rows.features or not hasattr(rows, "__len__"):
        return _BESIDE_SCREENSHOTS.issuperset(roles)
    first = rows.with_format("arrow")[:1].to_pylist() if len(rows) else []
    return any(entry["role"] == "screenshot" for row in first for entry in row["media"] or ())


def _guess_kind(name: str) -> Modality:
    guessed = guess_type(name)[0] or ""
    return next((kind for kind in _KINDS.values() if guessed.startswith(kind)), "image")


def read_object(text: str, column: str) -> dict[str, Any]:
    """Return the untouched row that a column contains.

    Raises:
        ValueError, RecursionError: it holds none.
    """
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError(f"the column {column} is not a JSON object")
    return found


def storable(text: str | None) -> str | None:
    r"""Return the text with lone surrogates escaped, since Arrow refuses them.

    Examples:
        >>> print(storable("A" + chr(0xD800)))
        A\ud800
    """
    if not text or text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


_MOST_TIMES = 1000


class _Edges(msgspec.Struct):
    left: float
    top: float
    right: float
    bottom: float
    space: Space
    is_point: bool


class _Plain(msgspec.Struct):
    kind: str
    number: int | None
    start: list[_Edges]
    end: list[_Edges]
    text: str | None
    words: str | None


class _Next(msgspec.Struct):
    action: _Plain
    details: _Details


class _Details(msgspec.Struct):
    direction: Direction | None = None
    sense: Sense | None = None
    amount: float | None = None
    amount_unit: AmountUnit | None = None
    button: Button | None = None
    count: Annotated[int, msgspec.Meta(ge=1, le=_MOST_TIMES)] | None = None
    keys: tuple[str, ...] | None = None
    held: tuple[str, ...] | None = None
    app: str | None = None
    url: str | None = None
    submit: bool | None = None
    clear: bool | None = None
    seconds: float | None = None
    status: Status | None = None
    element: int | None = None
    path: tuple[_Edges, ...] = ()
    then: tuple[_Next, ...] = ()


class _More(msgspec.Struct):
    action: _Details | None = None
    history: dict[str, _Details] = {}


_Natural = Annotated[int, msgspec.Meta(ge=0)]


class _Screen(msgspec.Struct):
    width: int
    height: int


class _Row(msgspec.Struct):
    """A row of `to_row`, without tags; its history is read by `RowReader`."""

    sample_id: Annotated[str, msgspec.Meta(min_length=1)]
    episode_id: str
    step_index: _Natural
    num_steps: _Natural
    instruction: str
    screen_width: _Natural
    screen_height: _Natural
    history: list[Any]
    action: _Plain | None
    source: str
    action_details: str | None = None
    episode_name: str | None = None
    split_group: str | None = None
    history_screens: list[_Screen] | None = None


_MORE = tuple(name for name in _Details.__struct_fields__ if name not in ("path", "then"))


def _details(action: Action | None) -> dict[str, Any]:
    if action is None:
        return {}
    bare = Action.of(action.label)
    held = {name: getattr(action, name) for name in _MORE}
    found = {name: value for name, value in held.items() if value != getattr(bare, name)}
    if action.path:
        found["path"] = [_region(point) for point in action.path]
    if action.then:
        found["then"] = [{"action": _action(one), "details": _details(one)} for one in action.then]
    return found


def action_fields(action: Action) -> dict[str, Any]:
    """Return an action as one JSON object: the fields of the columns `action` and `DETAILS`.

    Fields without a value are left out; `then` is a list of such objects.
    """
    held = {**(_action(action) or {}), **_details(action), "number": None}
    if action.then:
        held["then"] = [*map(action_fields, action.then)]
    return {name: value for name, value in held.items() if value is not None and value != []}


_BARE: Final[Mapping[str, Any]] = {
    "number": None,
    "start": [],
    "end": [],
    "text": None,
    "words": None,
}


def read_action(fields: Any) -> Action:
    """Return the action of an object that `action_fields` returns, or a person writes.

    Raises:
        ValueError: it is none; the message says why.
    """
    if not isinstance(fields, Mapping) or "kind" not in fields:
        raise ValueError('an action is an object such as {"kind": "BACK"}')
    own = {name: value for name, value in fields.items() if name in (*_BARE, "kind")}
    more = {name: value for name, value in fields.items() if name not in own}
    if unknown := more.keys() - set(_Details.__struct_fields__):
        raise ValueError(f"an action has no field {min(unknown)!r:.40}")
    following = more.pop("then", [])
    if not isinstance(following, list):
        raise ValueError("`then` is a list of actions")
    plain, details = msgspec.convert({**_BARE, **own}, _Plain), msgspec.convert(more, _Details)
    for edges in (*plain.start, *plain.end, *details.path):
        if not (-math.inf < edges.left <= edges.right and -math.inf < edges.top <= edges.bottom):
            raise ValueError("left is at most right, and top at most bottom")
        if edges.right == math.inf or edges.bottom == math.inf:
            raise ValueError("an edge is a finite number")
    if any(not math.isfinite(number or 0) for number in (details.amount, details.seconds)):
        raise ValueError("amount and seconds are finite numbers")
    found = _with_details(_as_action(plain), details)
    assert found is not None
    return structs.replace(found, then=tuple(map(read_action, following)))


def _with_details(action: Action | None, more: _Details | None) -> Action | None:
    if action is None or more is None:
        return action
    changes = {name: value for name in _MORE if (value := getattr(more, name)) is not None}
    path = tuple(Point(edges.left, edges.top, edges.space) for edges in more.path)
    then = (_with_details(_as_action(one.action), one.details) for one in more.then)
    return structs.replace(action, **changes, path=path, then=tuple(filter(None, then)))


def _action(action: Action | None) -> dict[str, Any] | None:
    if action is None:
        return None
    return {
        "kind": action.label,
        "number": NUMBERS.get(action.label),
        "start": [_region(region) for region in action.start],
        "end": [_region(region) for region in action.end],
        "text": storable(action.text),
        "words": storable(action.words),
    }


def _as_action(plain: _Plain | None) -> Action | None:
    if plain is None:
        return None
    start, end = (tuple(map(_as_region, regions)) for regions in (plain.start, plain.end))
    return Action.of(plain.kind, start, end, text=plain.text, words=plain.words)


def _as_region(edges: _Edges) -> Region:
    if edges.is_point:
        return Point(edges.left, edges.top, edges.space)
    return Box(edges.left, edges.top, edges.right, edges.bottom, edges.space)


def _region(region: Region) -> dict[str, Any]:
    if isinstance(region, Box):
        edges = (region.left, region.top, region.right, region.bottom)
    else:
        edges = (region.x, region.y, region.x, region.y)
    return {
        **dict(zip(("left", "top", "right", "bottom"), map(float, edges), strict=True)),
        "space": region.space,
        "is_point": not isinstance(region, Box),
    }
