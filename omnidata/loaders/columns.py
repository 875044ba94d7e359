"""The meaning of each column of a row: the one source of docs/columns.md and of dataset cards.

`omnidata.loaders.rows.features` and `omnidata.loaders.repository.extra_features` are the schema.
A name such as `action.start[].left` is the path of a field: `.` enters a struct, `[]` a list.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from omnidata.loaders.rows import DETAILS, EPISODE, tag_of

if TYPE_CHECKING:
    import datasets


@dataclass(frozen=True, slots=True)
class Column:
    """A column or a field in one.

    Attributes:
        meaning: one or two sentences.
        unit: of its numbers; empty for anything else.
        example: a value, as Python writes it.
        where: in which data it is there; empty for all.
    """

    meaning: str
    unit: str = ""
    example: str = ""
    where: str = ""


_SAME_UNIT: Final = "as `space` says"
REPOSITORY: Final = "Parquet repositories"
COLUMNS: Final[Mapping[str, Column]] = {
    "sample_id": Column("Id of the step, unique in the dataset.", example='"TED/T0540/5"'),
    "episode_id": Column(
        "Id of the episode in the source. Two apps may use one id.", example='"T0540"'
    ),
    "step_index": Column("Position of the step in its episode, from 0.", example="5"),
    "num_steps": Column("Number of steps of the episode in the data.", example="8"),
    "instruction": Column(
        "The goal in words, as the benchmark prompts it.", example='"Play the next talk"'
    ),
    "screen_width": Column("Width of the screenshot; 0 where it is unknown.", "pixels", "1080"),
    "screen_height": Column("Height of the screenshot; 0 where it is unknown.", "pixels", "2400"),
    "history": Column(
        "The expert's actions at steps 0 to `step_index` - 1, with the fields of `action`; null "
        "for an action that the source lacks. Empty in benchmarks without episodes.",
        example="[]",
    ),
    "action": Column(
        "The target: the labelled right answer. Null where the source has none, or none that is "
        "an action (a box, a choice, an outcome); the answer is then in `source`.",
    ),
    "action.kind": Column("The action in one word.", example='"TAP"'),
    "action.number": Column(
        "Number of the action among 13 primitives, -1 to 11; null for all others.",
        example="0",
    ),
    "action.start": Column(
        "Where the action happens or begins. A list, because several regions may be right: a hit "
        "in any of them counts. Empty where the action has no place.",
        example='[{"left": 210, ...}]',
    ),
    "action.start[].left": Column("Left edge, from the left of the screen.", _SAME_UNIT, "210.0"),
    "action.start[].top": Column("Top edge, from the top of the screen.", _SAME_UNIT, "786.0"),
    "action.start[].right": Column("Right edge; the edge is inside.", _SAME_UNIT, "351.0"),
    "action.start[].bottom": Column("Bottom edge; the edge is inside.", _SAME_UNIT, "850.0"),
    "action.start[].space": Column(
        "Unit of the four edges, as in the source: `px` (pixels of the screenshot), `rel` ([0, "
        "1]), `norm1000` ([0, 1000]) or `norm999` ([0, 999]).",
        example='"px"',
    ),
    "action.start[].is_point": Column(
        "True: a point, with left = right and top = bottom. False: a box.", example="False"
    ),
    "action.end": Column(
        "Where a swipe or a drag ends, with the fields of `start`. Empty where the source does "
        "not say it.",
        example="[]",
    ),
    "action.text": Column(
        "Text that is typed, or the answer that ends an episode.", example='"weather"'
    ),
    "action.words": Column(
        "The action in the source's own spelling, which histories in prompts show. Null where "
        "the source has none.",
        example='"pyautogui.click(96, 54)"',
    ),
    "source": Column("The untouched row of the source, as JSON."),
    DETAILS: Column(
        "Fields of actions beyond the columns `action` and `history`, as JSON: mouse button, "
        "keys, scroll amount, path of a drag, further actions of the step.",
        example='{"action": {"keys": ["ctrl", "s"]}}',
        where="data with such actions",
    ),
    "episode_name": Column(
        "Name of the episode, unique in the dataset.",
        example='"TED/T0540"',
        where="data whose ids and tags do not give it",
    ),
    "split_group": Column(
        "Group of related episodes. Splits keep it whole; the bootstrap resamples it as one.",
        example='"page-12"',
        where="data with groups larger than an episode",
    ),
    EPISODE: Column(
        "The untouched row of the episode, as JSON.",
        where=f"{REPOSITORY} of data with rows of episodes",
    ),
    "history_screens": Column("Screen size at each action of `history`.", where=REPOSITORY),
    "history_screens[].width": Column("Width.", "pixels", "1080", REPOSITORY),
    "history_screens[].height": Column("Height.", "pixels", "2400", REPOSITORY),
    "media": Column("Facts about each medium of the step.", where=REPOSITORY),
    "media[].role": Column("Its media column.", example='"audio"', where=REPOSITORY),
    "media[].path": Column(
        "Its path in the source.", example='"media/T0540/6.wav"', where=REPOSITORY
    ),
    "media[].root": Column(
        "Number of its folder in `roots` of `omnidata.json`; null where media are embedded.",
        example="0",
        where=REPOSITORY,
    ),
    "media[].state": Column(
        "`present`, `silent` (an audio track in which nothing is heard), `corrupt`, `missing` or "
        "`unsafe` (the path leaves the dataset and is never opened).",
        example='"present"',
        where=REPOSITORY,
    ),
    "media[].sha256": Column("SHA-256 of the file.", example='"9f86d0..."', where=REPOSITORY),
    "media[].bytes": Column("Size of the file.", "bytes", "63044", REPOSITORY),
    "media[].frames": Column("Frames of a clip; 1 for a picture.", example="60", where=REPOSITORY),
    "media[].seconds": Column("Duration of a clip or a sound.", "seconds", "2.0", REPOSITORY),
    "position": Column("Number of the step in the source, from 0.", example="17", where=REPOSITORY),
    "row": Column("Number of its row in the source, from 0.", example="17", where=REPOSITORY),
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
        return Column("Absolute path of the file on the machine that wrote the rows.")
    if kind == "string":
        tag = tag_of(path).replace("`", "'")
        return Column(f"The tag `{tag}`: the same in all steps of an episode, or null.")
    if role.startswith("observation_"):
        number = role.removeprefix("observation_")
        return Column(f"Screen {number} of the trajectory, counted from 0.")
    return Column(ROLES.get(role, "A medium of the step."))


def flatten(features: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the path and the type of every field, in order.

    The fields of `history` and `action.end` are those of `action` and `action.start`, and are not
    repeated.

    Args:
        features: `datasets.Features`, or a struct of it.
    """
    for name, feature in features.items():
        yield from _fields(name, feature)


def _fields(path: str, feature: Any) -> Iterator[tuple[str, str]]:
    item = _item_of(feature)
    if item is not None:
        yield path, f"list of {_name_of(item)}"
        if path not in ("history", "action.end"):  # they repeat fields
            yield from _inside(f"{path}[]", item)
    else:
        yield path, _name_of(feature)
        yield from _inside(path, feature)


def _inside(path: str, feature: Any) -> Iterator[tuple[str, str]]:
    if isinstance(feature, dict):
        for name, inner in feature.items():
            yield from _fields(f"{path}.{name}", inner)


def _item_of(feature: Any) -> Any:
    """Return what a list holds; `datasets` 3 writes `[item]`, later versions `List(item)`."""
    if isinstance(feature, list):
        return feature[0]
    return feature.feature if type(feature).__name__ in ("List", "Sequence") else None


def _name_of(feature: Any) -> str:
    if isinstance(feature, dict):
        return "struct"
    name = type(feature).__name__
    return str(feature.dtype) if name == "Value" else name


def all_features(tags: Sequence[str], roles: Mapping[str, Any]) -> datasets.Features:
    """Return every column that a Parquet repository may have.

    Args:
        tags: names of the tag columns.
        roles: feature of each media column, by role.
    """
    import datasets

    from omnidata.loaders.repository import extra_features
    from omnidata.loaders.rows import OPTIONAL, features

    text = datasets.Value("string")
    optional = dict.fromkeys((DETAILS, *OPTIONAL), text)
    return datasets.Features({**features(tags, roles), **optional, **extra_features()})
