"""Convert steps to rows of a table and back: one schema for all uses of `datasets`.

Coordinates stay in the space of the source, which `space` names; `source` is the untouched row as
JSON. Lists of structs, float64 and plain strings are what `datasets` 3.6 to 5.2 all read alike.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

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
from omnidata.types import LoadedDataset, MediaRef, Modality, Step

if TYPE_CHECKING:
    import datasets

    from omnidata.tasks.benchmark import Benchmark


BELONGING: Mapping[str, str] = {"episode_name": "episode", "split_group": "group"}
"""Columns of `Step.episode` and `Step.group`: only for steps that do not simply belong to their
episodes, and whose task has no rule for it (`Benchmark.group`)."""

DETAILS = "action_details"
"""Column of what the columns `action` and `history` have no room for, as JSON: only for data with
such actions, like those of a mouse and a keyboard."""

EPISODE = "episode_source"
"""Column of the untouched row of a step's episode, as JSON: only for data that have such rows."""

OPTIONAL = (*BELONGING, DETAILS, EPISODE)
"""Columns of text that a repository may lack."""

_TAKEN = (
    "instruction",
    "history",
    "action",
    "source",
    "media",
    "position",
    "row",
    *OPTIONAL,
)
"""Columns that a tag might be named like."""


def features(
    tags: Sequence[str], roles: Mapping[str, Modality], *, linked: bool = False
) -> datasets.Features:
    """Return the columns of a row.

    Args:
        tags: names of the steps' tags, a column each (`tag_column`).
        roles: the steps' media and their kinds, a column of undecoded media each.
        linked: media columns have only a `path`. `datasets` caches rows with a `Video` column in
            batches of ten, and a million such rows take 9 s and 5.6 GB to open; with paths alone
            0.3 s and 130 MB. `cast_column("video", Video())` makes media of them.
    """
    import datasets

    text, number = datasets.Value("string"), datasets.Value("int32")
    region = {edge: datasets.Value("float64") for edge in ("left", "top", "right", "bottom")}
    region |= {"space": text, "is_point": datasets.Value("bool")}
    action = {
        "kind": text,
        "number": number,
        "start": [region],
        "end": [region],
        "text": text,
        "words": text,
    }
    kinds = {"image": datasets.Image, "video": datasets.Video, "audio": datasets.Audio}
    media = {
        role: {"path": text} if linked else kinds[kind](decode=False)
        for role, kind in roles.items()
    }
    return datasets.Features(
        {
            "sample_id": text,
            "episode_id": text,
            "step_index": number,
            "num_steps": number,
            "instruction": text,
            "screen_width": number,
            "screen_height": number,
            **dict.fromkeys(map(tag_column, tags), text),
            **media,
            "history": [action],
            "action": action,
            "source": text,
        }
    )


def belonging(source: LoadedDataset) -> Mapping[str, str]:
    """Return the columns of `BELONGING` that a source needs: all or none."""
    task = registry.find_benchmark(source.task)
    if task and source.steps and _has_rule(task, source.steps[0]):
        return {}
    plain = (replace(step, episode="", group="") for step in source.steps)
    told = zip(source.steps, plain, strict=True)
    differ = any((a.episode, a.group) != (b.episode, b.group) for a, b in told)
    return BELONGING if differ else {}


def needs_details(source: LoadedDataset) -> bool:
    """Return whether an action of the steps needs the column `DETAILS`."""
    actions = {id(one): one for step in source.steps for one in (step.action, *step.history)}
    return any(map(_details, actions.values()))


def _has_rule(task: Benchmark, step: Step) -> bool:
    try:
        return task.group(step) is not None
    except (KeyError, TypeError, ValueError):  # a rule, but not for such a step
        return True


def tag_column(tag: str) -> str:
    """Return the column of a tag: its name, unless rows already have a column of that name.

    Examples:
        >>> tag_column("platform"), tag_column("source")
        ('platform', 'source_tag')
    """
    return f"{tag}_tag" if tag in _TAKEN else tag


def tag_of(column: str) -> str:
    """Return the tag of a column; see `tag_column`.

    Examples:
        >>> tag_of("platform"), tag_of("source_tag")
        ('platform', 'source')
    """
    tag = column.removesuffix("_tag")
    return tag if tag_column(tag) == column else column


def to_row(step: Step, tags: Sequence[str]) -> dict[str, Any]:
    """Return a step as a row of `features`, without its media."""
    return {
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


def details(step: Step) -> str | None:
    """Return the column `DETAILS` of a step; None if it is empty."""
    past = {str(number): _details(one) for number, one in enumerate(step.history)}
    found = {"action": _details(step.action), "history": {k: v for k, v in past.items() if v}}
    said = {key: value for key, value in found.items() if value}
    return json.dumps(said) if said else None


class Reader:
    """Convert the rows of one table back to steps.

    The actions of a history are those of the row before it, where it is of the same episode: a long
    episode would otherwise hold the square of its length.

    Args:
        tags: names of the tags; a column is null for steps without the tag.
        task: the benchmark; its rule assigns steps to episodes and groups.
    """

    def __init__(self, tags: Sequence[str], task: str = "") -> None:
        self._tags = {name: tag_column(name) for name in tags}
        self._task = registry.find_benchmark(task)
        self._last: tuple[list[Any], tuple[Action | None, ...]] = ([], ())

    def step(
        self,
        row: Mapping[str, Any],
        *,
        media: Mapping[str, MediaRef | None],
        history_screens: tuple[tuple[int, int], ...],
    ) -> Step:
        """Return the step of a row that `to_row` made.

        Args:
            row: the row, without its media columns, its types as in `features`.
            media: what the row's media columns refer to.
            history_screens: width and height of the screen of every earlier step.

        Raises:
            KeyError, TypeError, ValueError, RecursionError: the row is not one of `to_row`.
        """
        numbers = [row[name] for name in ("step_index", "num_steps")]
        numbers += [row["screen_width"], row["screen_height"]]
        if None in numbers or min(numbers) < 0 or not row["sample_id"]:
            raise ValueError("an id or a number is missing or negative")
        source = read_object(row["source"], "source")
        more = _more(row.get(DETAILS))
        step = Step(
            sample_id=row["sample_id"],
            episode_id=_text(row["episode_id"]),
            step_index=row["step_index"],
            num_steps=row["num_steps"],
            instruction=_text(row["instruction"]),
            screen=(row["screen_width"], row["screen_height"]),
            media=media,
            history=_with(self._history(row["history"]), more.history),
            history_screens=history_screens,
            action=_and(_read_action(row["action"]), more.action),
            tags={k: row[column] for k, column in self._tags.items() if row[column] is not None},
            source=source,
            **{name: row[column] for column, name in BELONGING.items() if row.get(column)},
        )
        named = self._task.group(step) if self._task else None
        return named or step

    def _history(self, held: list[Any]) -> tuple[Action | None, ...]:
        before, actions = self._last
        shared = len(before) if held[: len(before)] == before else 0
        history = (*actions[:shared], *map(_read_action, held[shared:]))
        self._last = held, history
        return history


def read_object(text: str, column: str) -> dict[str, Any]:
    """Return the untouched row that a column contains.

    Raises:
        TypeError, ValueError, RecursionError: it holds none.
    """
    found = json.loads(text)
    if not isinstance(found, dict):
        raise TypeError(f"the column {column} is not a JSON object")
    return found


def _text(value: str | None) -> str:
    if value is None:
        raise ValueError("a text is missing")
    return value


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


def _more(text: object) -> _More:
    if not isinstance(text, str):
        return _More()
    try:
        return msgspec.convert(json.loads(text), _More)  # `json` knows infinite numbers
    except msgspec.MsgspecError as error:
        raise ValueError(f"{DETAILS}: {error}") from None


_MORE = tuple(name for name in _Details.__struct_fields__ if name not in ("path", "then"))


def _details(action: Action | None) -> dict[str, Any]:
    if action is None:
        return {}
    bare = Action.of(action.label)
    said = {name: getattr(action, name) for name in _MORE}
    found = {name: value for name, value in said.items() if value != getattr(bare, name)}
    if action.path:
        found["path"] = [_region(point) for point in action.path]
    if action.then:
        found["then"] = [{"action": _action(one), "details": _details(one)} for one in action.then]
    return found


def _and(action: Action | None, more: _Details | None) -> Action | None:
    if action is None or more is None:
        return action
    said = {name: value for name in _MORE if (value := getattr(more, name)) is not None}
    path = tuple(Point(edges.left, edges.top, edges.space) for edges in more.path)
    then = (_and(_as_action(one.action), one.details) for one in more.then)
    return msgspec.structs.replace(action, **said, path=path, then=tuple(filter(None, then)))


def _with(
    history: tuple[Action | None, ...], more: Mapping[str, _Details]
) -> tuple[Action | None, ...]:
    if not more:
        return history
    return tuple(_and(one, more.get(str(number))) for number, one in enumerate(history))


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


def _read_action(row: object) -> Action | None:
    if row is None:
        return None
    try:
        return _as_action(msgspec.convert(row, _Plain))
    except msgspec.ValidationError as error:
        raise ValueError(f"an action: {error}") from None


def _as_action(plain: _Plain) -> Action:
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


# Which subsets a dataset has: one rule for every way into `datasets`.
#
# `all`, and every value of every tag. Case, blanks and punctuation are ignored, and what else the
# benchmark takes for one spelling of a value. A label of another tag comes before an app of the
# same name.

ALL = "all"
_APP = "app"
_FORBIDDEN = '<>:"/\\|?*'  # `datasets` makes folders of the names
_LONGEST = 100  # bytes; the folder's name gets more


@dataclass(frozen=True, slots=True)
class Subset:
    """A selection of steps.

    Attributes:
        name: as the data spells it first.
        values: pairs of tag and value; a step has one of them. Empty for `all`.
    """

    name: str
    values: frozenset[tuple[str, str]]

    def has(self, step: Step) -> bool:
        """Return whether the step belongs to it."""
        return not self.values or any(pair in self.values for pair in step.tags.items())


def canonical(name: str) -> str:
    """Return a name without case, blanks and punctuation, unless nothing else would be left.

    Examples:
        >>> canonical("Google_Translate"), canonical("QQ Music")
        ('googletranslate', 'qqmusic')
    """
    return "".join(filter(str.isalnum, name.casefold())) or name.casefold()


class SubsetNames:
    """Normalise the spellings of subset names.

    Args:
        task: the benchmark of the data, for its `spelling`.
        tags: of its steps.
    """

    def __init__(self, task: str, tags: Iterable[str]) -> None:
        self._task = registry.find_benchmark(task)
        self._tags = tuple(tags)

    def key(self, name: str) -> str:
        """Return the normal form of a name.

        Examples:
            >>> names = SubsetNames("omnigui", ["app", "language"])
            >>> names.key("Google_Translate") == names.key("GTrans"), names.key("ZH")
            (True, 'zh')
        """
        if self._task:
            for tag in self._tags:
                name = self._task.wordings.spelling(tag, name)
        return canonical(name)


def subsets(source: LoadedDataset) -> tuple[list[Subset], list[str]]:
    """Return the subsets of a dataset, `all` first, and the values that cannot name one."""
    pairs = {pair for step in source.steps for pair in step.tags.items()}
    names = SubsetNames(source.task, source.tags)
    reserved = {names.key(ALL), names.key("default")}
    labels = {names.key(value) for tag, value in pairs if tag != _APP}
    groups: dict[str, set[tuple[str, str]]] = {}
    unnamable = set()
    for tag, value in pairs:
        key = names.key(value)
        if key in reserved or (tag == _APP and key in labels):
            unnamable.add(value)
        else:
            groups.setdefault(key, set()).add((tag, value))
    found = []
    for group in groups.values():
        spelled = sorted(value for _, value in group if _can_name(value))
        if spelled:
            found.append(Subset(spelled[0], frozenset(group)))
        else:
            unnamable |= {value for _, value in group}
    found.sort(key=lambda subset: subset.name)
    return [Subset(ALL, frozenset()), *found], sorted(unnamable)


def _can_name(value: str) -> bool:
    long = len(value.encode("utf-8", "replace")) > _LONGEST
    return value.isprintable() and not long and not any(c in _FORBIDDEN for c in value)


def find_subset(source: LoadedDataset, name: str) -> Subset | None:
    """Return the dataset's subset of a name, in any spelling."""
    names = SubsetNames(source.task, source.tags)
    return next((s for s in subsets(source)[0] if names.key(s.name) == names.key(name)), None)
