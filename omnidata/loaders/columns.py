"""The schema of rows: the name, type and meaning of every column.

Builders, `omnidata convert` and `omnidata.load_dataset` share it; docs/columns.md and dataset cards
describe it in these words. Coordinates stay in the space of the source, which `space` names;
`source` is the untouched row as JSON. Lists of structs, float64 and plain strings are what
`datasets` 3.6 to 5.2 all read alike.

A name such as `action.start[].left` is the path of a field: `.` enters a struct, `[]` a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from omnidata.types import Modality

if TYPE_CHECKING:
    import datasets
    import pyarrow as pa

BELONGING: Final[Mapping[str, str]] = {"episode_name": "episode", "split_group": "group"}
"""Columns of `Step.episode` and `Step.group`: only for steps that do not simply belong to their
episodes, and whose task has no rule for it (`Benchmark.group`)."""

DETAILS: Final = "action_details"
"""Column of the fields of actions that the columns `action` and `history` lack, as JSON: only for
data with such actions, like those of a mouse and a keyboard."""

EPISODE: Final = "episode_source"
"""Column of the untouched row of a step's episode, as JSON: only for data that have such rows."""

OPTIONAL: Final = (*BELONGING, DETAILS, EPISODE)
"""Columns of text that a repository may lack."""

_BEFORE_TAGS: Final = (
    *("sample_id", "episode_id", "step_index", "num_steps"),
    *("instruction", "screen_width", "screen_height"),
)
_AFTER_MEDIA: Final = ("history", "action", "source")
PLAIN: Final = (*_BEFORE_TAGS, *_AFTER_MEDIA)
"""Columns of every table of steps."""

OF_REPOSITORY: Final = ("history_screens", "media", "position", "row")
"""Further columns of a Parquet repository."""

COMMON: Final = frozenset((*PLAIN, *OPTIONAL, *OF_REPOSITORY))
"""Columns that are neither tags nor media."""

_NO_TAG: Final = frozenset(
    ("instruction", "history", "action", "source", "media", "position", "row", *OPTIONAL)
)
"""Columns that a tag might be named like."""


def tag_column(tag: str) -> str:
    """Return the column of a tag: its name, unless rows already have a column of that name.

    Examples:
        >>> tag_column("platform"), tag_column("source")
        ('platform', 'source_tag')
    """
    return f"{tag}_tag" if tag in _NO_TAG else tag


def tag_of(column: str) -> str:
    """Return the tag of a column; see `tag_column`.

    Examples:
        >>> tag_of("platform"), tag_of("source_tag")
        ('platform', 'source')
    """
    tag = column.removesuffix("_tag")
    return tag if tag_column(tag) == column else column


def arrow_types(tags: Sequence[str]) -> dict[str, pa.DataType]:
    """Return the type of each column of a repository, except its media and `OPTIONAL` columns.

    Args:
        tags: names of the steps' tags, a column each (`tag_column`).
    """
    before = {name: arrow_type(name) for name in _BEFORE_TAGS}
    of_tags = dict.fromkeys(map(tag_column, tags), arrow_type("source"))
    after = {name: arrow_type(name) for name in (*_AFTER_MEDIA, *OF_REPOSITORY)}
    return {**before, **of_tags, **after}


@cache
def arrow_type(path: str) -> pa.DataType:
    """Return the Arrow type of a column of `COLUMNS`."""
    import pyarrow as pa

    def struct(of: str) -> pa.DataType:
        names = [name.removeprefix(of) for name in COLUMNS if name.startswith(of)]
        return pa.struct([(n, arrow_type(of + n)) for n in names if not {".", "["} & {*n}])

    kind = COLUMNS[path].kind
    if kind == "struct":
        return struct(f"{path}.")
    if kind == "list of struct":
        return pa.list_(struct(_ITEMS.get(path, f"{path}[].")))
    return pa.type_for_alias(kind)


_ITEMS: Final = {"history": "action.", "action.end": "action.start[]."}
"""Lists whose items have the fields of another column."""


def features(
    tags: Sequence[str],
    roles: Mapping[str, Modality],
    *,
    linked: bool = False,
    repository: bool = False,
    optional: Sequence[str] = (),
) -> datasets.Features:
    """Return the columns of a table of steps.

    Args:
        tags: names of the steps' tags, a column each (`tag_column`).
        roles: the steps' media and their kinds, a column of undecoded media each.
        linked: media columns have only a `path`. `datasets` caches rows with a `Video` column in
            batches of ten, and a million such rows take 9 s and 5.6 GB to open; with paths alone
            0.3 s and 130 MB. `cast_column("video", Video())` makes media of them.
        repository: whether the columns of a Parquet repository are among them.
        optional: which of the `OPTIONAL` columns there are.
    """
    import datasets
    import pyarrow as pa

    types = arrow_types(tags) | {name: arrow_type(name) for name in optional}
    found = datasets.Features.from_arrow_schema(pa.schema(list(types.items())))
    kinds = {"image": datasets.Image, "video": datasets.Video, "audio": datasets.Audio}
    path = {"path": datasets.Value("string")}
    media = {role: path if linked else kinds[kind](decode=False) for role, kind in roles.items()}
    names = [*_BEFORE_TAGS, *map(tag_column, tags), *media, *_AFTER_MEDIA]
    names += [*(OF_REPOSITORY if repository else ()), *optional]
    return datasets.Features({name: media.get(name) or found[name] for name in names})


@dataclass(frozen=True, slots=True)
class Column:
    """A column or a field in one.

    Attributes:
        kind: its type: "struct", "list of struct", or a type that Arrow and `datasets` name alike.
        meaning: one or two sentences.
        unit: of its numbers; empty for anything else.
        example: a value, as Python writes it.
        where: in which data it is there; empty for all.
    """

    kind: str
    meaning: str
    unit: str = ""
    example: str = ""
    where: str = ""


_SAME_UNIT: Final = "as `space` says"
REPOSITORY: Final = "Parquet repositories"
COLUMNS: Final[Mapping[str, Column]] = {
    "sample_id": Column(
        "string", "Id of the step, unique in the dataset.", example='"TED/T0540/5"'
    ),
    "episode_id": Column(
        "string", "Id of the episode in the source. Two apps may use one id.", example='"T0540"'
    ),
    "step_index": Column("int32", "Position of the step in its episode, from 0.", example="5"),
    "num_steps": Column("int32", "Number of steps of the episode in the data.", example="8"),
    "instruction": Column(
        "string", "The goal in words, as the benchmark prompts it.", example='"Play the next talk"'
    ),
    "screen_width": Column(
        "int32", "Width of the screenshot; 0 where it is unknown.", "pixels", "1080"
    ),
    "screen_height": Column(
        "int32", "Height of the screenshot; 0 where it is unknown.", "pixels", "2400"
    ),
    "history": Column(
        "list of struct",
        "The expert's actions at steps 0 to `step_index` - 1, with the fields of `action`; null "
        "for an action that the source lacks. Empty in benchmarks without episodes.",
        example="[]",
    ),
    "action": Column(
        "struct",
        "The target: the labelled right answer. Null where the source has none, or none that is "
        "an action (a box, a choice, an outcome); the answer is then in `source`.",
    ),
    "action.kind": Column("string", "The action in one word.", example='"TAP"'),
    "action.number": Column(
        "int32",
        "Number of the action among 13 primitives, -1 to 11; null for all others.",
        example="0",
    ),
    "action.start": Column(
        "list of struct",
        "Where the action happens or begins. A list, because several regions may be right: a hit "
        "in any of them counts. Empty where the action has no place.",
        example='[{"left": 210, ...}]',
    ),
    "action.start[].left": Column(
        "float64", "Left edge, from the left of the screen.", _SAME_UNIT, "210.0"
    ),
    "action.start[].top": Column(
        "float64", "Top edge, from the top of the screen.", _SAME_UNIT, "786.0"
    ),
    "action.start[].right": Column(
        "float64", "Right edge; the edge is inside.", _SAME_UNIT, "351.0"
    ),
    "action.start[].bottom": Column(
        "float64", "Bottom edge; the edge is inside.", _SAME_UNIT, "850.0"
    ),
    "action.start[].space": Column(
        "string",
        "Unit of the four edges, as in the source: `px` (pixels of the screenshot), `rel` ([0, "
        "1]), `norm1000` ([0, 1000]) or `norm999` ([0, 999]).",
        example='"px"',
    ),
    "action.start[].is_point": Column(
        "bool", "True: a point, with left = right and top = bottom. False: a box.", example="False"
    ),
    "action.end": Column(
        "list of struct",
        "Where a swipe or a drag ends, with the fields of `start`. Empty where the source does "
        "not say it.",
        example="[]",
    ),
    "action.text": Column(
        "string", "Text that is typed, or the answer that ends an episode.", example='"weather"'
    ),
    "action.words": Column(
        "string",
        "The action in the source's own spelling, which histories in prompts show. Null where "
        "the source has none.",
        example='"pyautogui.click(96, 54)"',
    ),
    "source": Column("string", "The untouched row of the source, as JSON."),
    DETAILS: Column(
        "string",
        "Fields of actions beyond the columns `action` and `history`, as JSON: mouse button, "
        "keys, scroll amount, path of a drag, further actions of the step.",
        example='{"action": {"keys": ["ctrl", "s"]}}',
        where="data with such actions",
    ),
    "episode_name": Column(
        "string",
        "Name of the episode, unique in the dataset.",
        example='"TED/T0540"',
        where="data whose ids and tags do not give it",
    ),
    "split_group": Column(
        "string",
        "Group of related episodes. Splits keep it whole; the bootstrap resamples it as one.",
        example='"page-12"',
        where="data with groups larger than an episode",
    ),
    EPISODE: Column(
        "string",
        "The untouched row of the episode, as JSON.",
        where=f"{REPOSITORY} of data with rows of episodes",
    ),
    "history_screens": Column(
        "list of struct", "Screen size at each action of `history`.", where=REPOSITORY
    ),
    "history_screens[].width": Column("int32", "Width.", "pixels", "1080", REPOSITORY),
    "history_screens[].height": Column("int32", "Height.", "pixels", "2400", REPOSITORY),
    "media": Column("list of struct", "Facts about each medium of the step.", where=REPOSITORY),
    "media[].role": Column("string", "Its media column.", example='"audio"', where=REPOSITORY),
    "media[].path": Column(
        "string", "Its path in the source.", example='"media/T0540/6.wav"', where=REPOSITORY
    ),
    "media[].root": Column(
        "int32",
        "Number of its folder in `roots` of `omnidata.json`; null where media are embedded.",
        example="0",
        where=REPOSITORY,
    ),
    "media[].state": Column(
        "string",
        "`present`, `silent` (an audio track in which nothing is heard), `corrupt`, `missing` or "
        "`unsafe` (the path leaves the dataset and is never opened).",
        example='"present"',
        where=REPOSITORY,
    ),
    "media[].sha256": Column(
        "string", "SHA-256 of the file.", example='"9f86d0..."', where=REPOSITORY
    ),
    "media[].bytes": Column("int64", "Size of the file.", "bytes", "63044", REPOSITORY),
    "media[].frames": Column(
        "int32", "Frames of a clip; 1 for a picture.", example="60", where=REPOSITORY
    ),
    "media[].seconds": Column(
        "float64", "Duration of a clip or a sound.", "seconds", "2.0", REPOSITORY
    ),
    "position": Column(
        "int64", "Number of the step in the source, from 0.", example="17", where=REPOSITORY
    ),
    "row": Column(
        "int64", "Number of its row in the source, from 0.", example="17", where=REPOSITORY
    ),
}
"""The columns that every benchmark shares, by the path of the field."""

ROLES: Final[Mapping[str, str]] = {
    "screenshot": "The screen before the action.",
    "history_screenshot": "The screenshot of two steps before.",
    "video": "The clip between the action before and this one.",
    "audio": "The sound between the action before and this one.",
    "before": "The screen before the action.",
    "after": "The screen after the action.",
    "screenshot_after": "The screen after the action.",
    "final_screenshot": "The screen after the last action of the episode.",
    "video_after": "The clip from this step to the next.",
}
"""Meanings of media columns."""


def describe(path: str, kind: str) -> Column:
    """Return the meaning of a column, of a field, of a medium or of a tag.

    Args:
        path: path of the column or field, e.g. `action.start[].left`.
        kind: type of the column, as `flatten` yields it; unknown text columns are tags.
    """
    if path in COLUMNS:
        return COLUMNS[path]
    role, _, field = path.partition(".")
    if field == "path":
        return Column(kind, "Absolute path of the file on the machine that wrote the rows.")
    if kind == "string":
        tag = tag_of(path).replace("`", "'")
        return Column(kind, f"The tag `{tag}`: the same in all steps of an episode, or null.")
    if role.startswith("observation_"):
        number = role.removeprefix("observation_")
        return Column(kind, f"Screen {number} of the trajectory, counted from 0.")
    return Column(kind, ROLES.get(role, "A medium of the step."))


def flatten(features: Mapping[str, Any], struct: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the type of every field, in order.

    The fields of `history` and `action.end` are those of `action` and `action.start`, and are not
    repeated.

    Args:
        features: `datasets.Features`, or a struct of it.
        struct: the beginning of the paths of its fields.
    """
    for name, feature in features.items():
        path, form, below = f"{struct}{name}", "{}", "."
        if isinstance(feature, list):  # as `datasets` 3 writes a list
            feature, form, below = feature[0], "list of {}", "[]."
        elif type(feature).__name__ in ("List", "Sequence"):
            feature, form, below = feature.feature, "list of {}", "[]."
        if isinstance(feature, dict):
            yield path, form.format("struct")
            if path not in _ITEMS:
                yield from flatten(feature, path + below)
        else:
            kind = type(feature).__name__
            yield path, form.format(feature.dtype if kind == "Value" else kind)
