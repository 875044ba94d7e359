"""The episodes of some data, written again as a tree: with other targets or columns, or fewer.

Everything else stays as it is: instructions, labels, media, targets that nobody changed, and every
column that the format does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal

from omnidata.actions import Action
from omnidata.errors import DataError, Finding, MediaError
from omnidata.loaders.episode_tree import (
    DEPENDENCIES,
    DIMENSIONS,
    EPISODE_COLUMNS,
    STEP_COLUMNS,
    TARGET_COLUMNS,
    Media,
    TreeEpisode,
    TreeStep,
    check_name,
    instructions,
    label,
)
from omnidata.media import image, png, samples, stored, wav
from omnidata.types import LoadedDataset, MediaRef, Step

_PNG = b"\x89PNG\r\n\x1a\n"
_RATE = 16_000  # of sound that rows hold themselves

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode of a source, with what its steps do not say.

    Attributes:
        app, id: as the source spells them; where its steps have no tag `app`, its task's name.
        steps: all of them, in order and without a gap.
        row: the episode's own row; empty where the source has none.
    """

    app: str
    id: str
    steps: tuple[Step, ...]
    row: Row

    @property
    def key(self) -> str:
        """`app/episode`, as in the ids of its steps."""
        return self.steps[0].sample_id.rpartition("/")[0] or self.steps[0].episode


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of a step.

    Attributes:
        action: its target; None = as `keep` says.
        keep: whether the target that it has stays, column by column.
        columns: further columns; they take the place of those of the same name.
    """

    action: Action | None = None
    keep: bool = True
    columns: Row = field(default_factory=dict)


def read_episodes(source: LoadedDataset) -> tuple[list[Episode], list[Finding]]:
    """The episodes that can be written, and a finding for each that cannot.

    Args:
        source: its steps come episode by episode.
    """
    episodes: list[Episode] = []
    findings: list[Finding] = []
    taken: set[str] = set()
    for name, same in groupby(source.steps, key=attrgetter("episode")):
        steps = tuple(same)
        app = steps[0].tags.get("app", source.task)
        row = source.episode_rows.get(name, {})
        episode = Episode(app, steps[0].episode_id, steps, row)
        reason = _unwritable(episode, taken)
        if reason:
            findings.append(_left_out(episode, reason))
            continue
        taken.add(f"{app}/{name}".casefold())
        episodes.append(episode)
        if "dimension" not in steps[0].tags:
            findings.append(_assumed(episode))
    return episodes, findings


def _unwritable(episode: Episode, taken: set[str]) -> str:
    where = f"{episode.app}/{episode.id}"
    missing = set(range(episode.steps[-1].step_index + 1)) - {s.step_index for s in episode.steps}
    if missing:
        return f"there is no step {min(missing)}"
    if not any(_instructions(episode)):
        return "it has no instruction"
    if where.casefold() in taken:
        return "another episode has its name, but for upper and lower case"
    try:
        check_name(episode.app, "app name", where)
        check_name(episode.id, "episode id", where)
    except DataError as error:
        return error.what
    return ""


def _left_out(episode: Episode, reason: str) -> Finding:
    return Finding(
        "episode-left-out",
        "error",
        episode.key,
        f"the episode cannot be written: {reason}",
        "an instruction, steps 0, 1, 2, ..., and names that folders can have",
        "mend the data; nobody is asked about the episode until then",
    )


def _assumed(episode: Episode) -> Finding:
    return Finding(
        "dimension-assumed",
        "warning",
        episode.key,
        "the data state no dimension",
        "one of the five of OmniGUI, section 3.2",
        "localization is written; add it to the data",
    )


def _instructions(episode: Episode) -> tuple[str | None, str | None]:
    """English and Chinese, as the rows say them; else what the steps have, as if English."""
    first = episode.steps[0]
    said = instructions(episode.row, first.source)
    return said if any(said) else (first.instruction or None, None)


def retold(
    episode: Episode,
    change: Callable[[Step], Change],
    note: Callable[[Finding], None],
    *,
    columns: Row | None = None,
) -> TreeEpisode:
    """The episode for the writer; media are looked for when its steps are written.

    Args:
        episode: to be written.
        change: what becomes of each step.
        note: takes a finding for each medium that cannot be written as it is.
        columns: further columns of the episode's row.
    """
    english, chinese = _instructions(episode)
    tags = episode.steps[0].tags
    extra = {key: value for key, value in episode.row.items() if key not in EPISODE_COLUMNS}
    return TreeEpisode(
        episode.id,
        app=episode.app,
        dimension=label(tags.get("dimension"), DIMENSIONS) or "localization",
        steps=_steps(episode.steps, change, note),
        instruction_en=english,
        instruction_zh=chinese,
        dependency=label(tags.get("dependency"), DEPENDENCIES),
        extra={**extra, **(columns or {})},
    )


def _steps(
    steps: Sequence[Step],
    change: Callable[[Step], Change],
    note: Callable[[Finding], None],
) -> Iterator[TreeStep]:
    for step in steps:
        made = change(step)
        gone = STEP_COLUMNS if made.keep else STEP_COLUMNS | TARGET_COLUMNS
        kept = {key: value for key, value in step.source.items() if key not in gone}
        yield TreeStep(
            made.action,
            screen=step.screen,
            screenshot=_medium(step, "screenshot", note),
            video=_medium(step, "video", note),
            audio=_medium(step, "audio", note),
            extra={**kept, **made.columns},
        )


_FORMS: Mapping[str, Literal[".png", ".mp4", ".wav"]] = {
    "screenshot": ".png",
    "video": ".mp4",
    "audio": ".wav",
}


def _medium(step: Step, role: str, note: Callable[[Finding], None]) -> Media | None:
    """The file of a medium, or its bytes; None where there is none to be had."""
    ref = step.media.get(role)
    if ref is None:
        return None
    try:
        found = _content(ref)
    except MediaError as error:
        note(
            Finding(
                "media-left-out",
                "warning",
                step.sample_id,
                f"{role}: {error.what}",
                "a file that can be copied",
                "restore the file and write the data again; the step lacks it until then",
            )
        )
        return None
    suffix = Path(ref.path).suffix.lower() or _FORMS[role]
    if ref.kind != "image" and ref.inline is None and suffix != _FORMS[role]:
        note(
            Finding(
                "media-renamed",
                "warning",
                step.sample_id,
                f"{role}: the file is a {suffix}",
                f"a {_FORMS[role]}",
                "it is copied as it is, under the name that the format wants",
            )
        )
    return found


def _content(ref: MediaRef) -> Media:
    """A screenshot as PNG, sound that a row holds as WAV, all else as it is.

    Raises:
        MediaError: it is missing, unsafe, or no picture.
    """
    if ref.inline is not None:
        return wav(samples(ref, rate=_RATE), _RATE)
    found = stored(ref)
    if ref.kind != "image" or _is_png(found):
        return found
    return png(image(ref).pixels)


def _is_png(found: Path | bytes) -> bool:
    if isinstance(found, bytes):
        return found.startswith(_PNG)
    with found.open("rb") as file:
        return file.read(len(_PNG)) == _PNG
