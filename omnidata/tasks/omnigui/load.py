"""OmniGUI as steps, from the paper's tree, the released form, or annotations alone.

Source: OmniGUI, sections 3.1 to 3.3 and Appendix B; `docs/benchmarks/omnigui.md` lists the
differences of the release.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any, NamedTuple

from omnidata.actions import Action, Screen
from omnidata.errors import DataError, Finding, plural
from omnidata.jsontext import as_name, whole_number
from omnidata.loaders.episode_tree import (
    DEPENDENCIES,
    DIMENSIONS,
    MAX_STEPS,
    MEDIA_COLUMNS,
    SIDE_FILE,
    instructions,
    label,
)
from omnidata.loaders.load import Note, RowContext, about, check_screen, load_data, short, tag_of
from omnidata.loaders.media_findings import check_media_files
from omnidata.loaders.row_files import HEAD, head_of, is_parquet, read_rows
from omnidata.loaders.steps import Steps, row_ids
from omnidata.loaders.stored_rows import RowsByName, ScatteredRows
from omnidata.tasks.omnigui.files import (
    LAYOUTS,
    Annotations,
    Row,
    app_key,
    dependencies,
    find,
    language_of,
    read_annotations,
)
from omnidata.tasks.omnigui.rows import (
    ROLES,
    HistoryCheck,
    check_languages,
    read_action,
    read_media,
    read_screen,
    refuse_other_benchmarks,
    success_of,
    success_values,
)
from omnidata.types import LoadedDataset, MediaRef, Step

TAGS = ("app", "language", "dimension", "dependency")
"""The tags of a step; dimension and dependency may be lacking."""

_SHOWN = 8  # rows that are checked for columns of other benchmarks


def load(data: Path | str, *, strict: bool = False, check_media: bool = True) -> LoadedDataset:
    """Read an OmniGUI dataset; no medium is decoded.

    Args:
        data: an app folder, a folder of apps, the released folder, a JSON file of steps, or a
            Parquet repository.
        strict: make the first finding an error.
        check_media: check that the media exist and the screenshots are whole and of the stated
            size (a few file reads per step).

    Returns:
        Steps in the order of the source, each episode's by index, and findings.

    Raises:
        DataError: nothing readable as OmniGUI is there, or `strict` and there is a finding.
    """
    data = Path(data)
    return load_data(
        data,
        "omnigui",
        TAGS,
        lambda: _read(data, check_media=check_media),
        strict=strict,
        check_media=check_media,
        depends=(),
    )


def _read(data: Path, *, check_media: bool) -> LoadedDataset:
    files = find(data)
    findings: list[Finding] = []
    placing: list[Finding] = []
    builder = _Builder(placing.append)
    for part in read_annotations(files, findings.append):
        first = list(islice(part.rows, _SHOWN))
        refuse_other_benchmarks(first)
        part.rows = chain(first, part.rows)
        builder.add(part)
    builder.levels = dependencies(files, findings.append)
    findings += placing  # after those about unreadable rows
    builder.note = findings.append
    steps = merge_groups(Steps.of(builder.steps()), findings.append)
    builder.check_levels()
    if not steps:
        raise DataError(
            "no step could be read" + (f": {findings[0]}" if findings else ""),
            where=str(data),
            expected="at least one row with episode_id and step_id",
            remedy="see the findings above; `omnidata info omnigui DATA` lists them all",
        )
    if check_media:
        check_media_files(steps, findings.append)
    return LoadedDataset(
        "omnigui",
        data,
        steps,
        findings,
        builder.skipped,
        files.fingerprint(),
        row_ids(steps, builder.rows.step_numbers()),
        TAGS,
        ROLES,
        episode_rows=builder.episode_rows,
    )


_NO_METADATA: Row = {}


class _StepRow(NamedTuple):
    row: Row
    where: str  # its file
    number: int  # in its episode
    sample_id: str
    place: RowContext


@dataclass(slots=True)
class _Episode:
    number: int
    app: str
    identity: str
    media_root: Path
    metadata: Row
    dimension: str | None

    @property
    def name(self) -> str:
        return f"{self.app}/{self.identity}"


class _Builder:
    def __init__(self, note: Note) -> None:
        self.note = note
        self.levels: Mapping[tuple[str, str], str] = {}
        self.rows: ScatteredRows[tuple[Row, str, int]] = ScatteredRows()  # row, file, number
        self.skipped = 0
        self.episode_rows: RowsByName[Row] = RowsByName()
        self._episodes: dict[str, dict[str, int]] = defaultdict(dict)  # numbers, by app and id
        self._parts: list[Annotations] = []  # by episode, as the lists and dictionaries below
        self._there: list[int] = []  # the steps that have come, as bits
        self._unlisted: dict[int, str] = {}  # the first row's place, where metadata are missing
        self._doubts: dict[int, list[Finding]] = defaultdict(list)
        self._without_steps: list[tuple[str, str]] = []
        self._guessed: set[str] = set()

    def add(self, part: Annotations) -> None:
        for row, where in part.rows:
            if not self._add_row(part, row, where):
                self.skipped += 1
                self.rows.skip()
        known = self._episodes[part.app or ""]
        for identity, doubts in part.doubts.items():
            if identity in known:
                self._doubts[known[identity]] += doubts
            else:
                for doubt in doubts:
                    self.note(doubt)
        for identity in part.episodes or ():
            if identity not in known:
                self._without_steps.append((part.app or "", identity))
                RowContext(f"{part.app}/{identity}", self.note).refuse(
                    "episode-without-steps",
                    "the episode is listed, but has no step",
                    f"media/{identity}/{identity}.json or rows in dataset_{part.app}.json",
                    "add the steps or remove the line",
                )

    def _add_row(self, part: Annotations, row: Row, where: str) -> bool:
        app = part.app or as_name(row.get("app")) or as_name(row.get("subset")) or "unknown"
        identity = as_name(row.get("episode_id")) or as_name(row.get("ID"))
        key = "step_index" if row.get("step_index") is not None else "step_id"
        index = whole_number(row.get(key))
        if identity is None or index is None or not 0 <= index < MAX_STEPS:
            return RowContext(where, self.note).refuse(
                "step-without-place",
                f"episode_id is {row.get('episode_id')!r}, {key} is {row.get(key)!r}",
                f"an episode's id and a step number from 0 to {MAX_STEPS - 1}",
                "add them; the row is skipped until then",
            )
        episode = self._episodes[app].get(identity)
        if episode is None:
            episode = self._episodes[app][identity] = len(self._parts)
            self._parts.append(part)
            self._there.append(0)
            if part.app and not (part.episodes and identity in part.episodes):
                self._unlisted[episode] = where
        elif self._there[episode] >> index & 1:
            sample_id = _sample_id(app, identity, index)
            before = map(self.rows.__getitem__, self.rows.numbers(episode))
            first = next(other for other, _, number in before if number == index)
            same = "the same" if dict(first) == dict(row) else "another"
            return RowContext(f"{sample_id} ({where})", about(self.note, sample_id)).refuse(
                "step-repeated",
                f"step {index} comes a second time, with {same} content",
                "each step once",
                "remove one of the two; the first is used",
            )
        self._there[episode] |= 1 << index
        self.rows.add(episode, (row, where, index))
        return True

    def check_levels(self) -> None:
        own = ((app, identity) for app, ids in self._episodes.items() for identity in ids)
        known = {(app_key(app), identity) for app, identity in chain(own, self._without_steps)}
        apps = {app for app, _ in known}
        for app, identity in self.levels:
            if app in apps and (app, identity) not in known:
                RowContext(f"{app}/{identity}", self.note).warn(
                    "dependency-unmatched",
                    f"{SIDE_FILE} has a level for an unknown episode",
                    "one line per episode of the data",
                    "correct the ID or remove the line",
                )

    def steps(self) -> Iterator[Step]:
        apps = (zip(own.values(), own, repeat(app)) for app, own in self._episodes.items())
        for number, identity, app in merge(*apps):
            part, metadata, dimension = self._parts[number], _NO_METADATA, None
            if part.episodes and identity in part.episodes:
                metadata, dimension = part.listings[part.episodes[identity]]
            episode = _Episode(number, app, identity, part.media_root, metadata, dimension)
            rows = {each: self.rows[each] for each in self.rows.numbers(number)}
            order = sorted(rows, key=lambda each: rows[each][2])
            self.rows.became.extend(order)
            for step in self._steps(episode, [self._step_row(episode, *rows[n]) for n in order]):
                yield step
            if metadata or step.episode in self.episode_rows:
                self.episode_rows[step.episode] = metadata

    def _step_row(self, episode: _Episode, row: Row, where: str, number: int) -> _StepRow:
        sample_id = _sample_id(episode.app, episode.identity, number)
        place = RowContext(f"{episode.name}/{number} ({where})", about(self.note, sample_id))
        return _StepRow(row, where, number, sample_id, place)

    def _steps(self, episode: _Episode, placed: Sequence[_StepRow]) -> Iterator[Step]:
        note = about(self.note, *(p.sample_id for p in placed))
        self._check_episode(episode, placed, note)
        tags = self._tags(episode, placed[0].row, RowContext(episode.name, note))
        check_languages(
            [(episode.metadata, RowContext(episode.name, note))]
            + [(p.row, p.place) for p in placed],
            language=tags["language"],
        )
        media = [read_media(p.row, episode.media_root, p.place) for p in placed]
        screens = [
            read_screen(p.row, refs["screenshot"], p.place)
            for p, refs in zip(placed, media, strict=True)
        ]
        read = [
            read_action(p.row, screen, p.place) for p, screen in zip(placed, screens, strict=True)
        ]
        past: dict[int, Action | None] = {}
        sizes: dict[int, Screen] = {}
        shots: dict[int, MediaRef | None] = {}
        histories = HistoryCheck(past, sizes)
        for p, screen, (action, usable), refs in zip(placed, screens, read, media, strict=True):
            shots[p.number] = refs["screenshot"]
            if refs["history_screenshot"] is None:
                refs["history_screenshot"] = shots.get(p.number - 2)
            history = tuple(past.get(index) for index in range(p.number))
            seen = tuple(sizes.get(index, screen) for index in range(p.number))
            histories.check(p.row, index=p.number, place=p.place)
            past[p.number], sizes[p.number] = action, screen
            step = Step(
                sample_id=p.sample_id,
                episode_id=episode.identity,
                step_index=p.number,
                num_steps=len(placed),
                instruction=_instruction(episode, p, tags["language"]),
                screen=screen,
                media=refs,
                history=history,
                history_screens=seen,
                action=action if usable else None,
                tags=tags,
                source=p.row,
            )
            yield assign_group(step)

    def _check_episode(self, episode: _Episode, placed: Sequence[_StepRow], note: Note) -> None:
        for doubt in self._doubts.get(episode.number, ()):
            note(doubt)
        if (unlisted := self._unlisted.get(episode.number)) is not None:
            RowContext(f"{episode.name} ({unlisted})", note).warn(
                "episode-without-metadata",
                "no <dimension>.jsonl lists the episode",
                "one line in one of the five files",
                "add the line; the episode has no dimension until then",
            )
        place = RowContext(f"{episode.name} ({placed[0].where})", note)
        missing = sorted(set(range(placed[-1].number + 1)) - {p.number for p in placed})
        stated = whole_number(placed[0].row.get("episode_length"))
        if missing:
            place.refuse(
                "step-gap",
                f"the episode lacks the steps {', '.join(map(str, missing[:8]))}",
                "steps 0, 1, 2, ... without a gap",
                "add them; histories and episode metrics lack them until then",
            )
        elif stated is not None and stated != len(placed):
            place.warn(
                "length-differs",
                f"{plural(len(placed), 'step')}, but episode_length is {stated}",
                "as many steps as stated",
                "add the steps or correct episode_length",
            )
        rows = (episode.metadata, *(p.row for p in placed))
        if (values := success_values(rows)) and success_of(rows) is None:
            place.warn(
                "success-unusable",
                f"is_success is {' and '.join(map(short, values[:4]))} in rows of one episode",
                "true or false, the same in all rows that say it",
                "correct the rows; the episode does not count as a success until then",
            )

    def _tags(self, episode: _Episode, row: Row, place: RowContext) -> dict[str, str]:
        tags = {"app": episode.app, "language": self._language(episode, row, place)}
        sources = (episode.metadata, row)
        for column, allowed in (("dimension", DIMENSIONS), ("dependency", DEPENDENCIES)):
            for value in (source.get(column) for source in sources):
                if value not in (None, "") and label(value, allowed) is None:
                    place.warn(
                        "label-unknown",
                        f"{column} is {value!r}",
                        f"one of {', '.join(allowed)}",
                        "correct the column; it is ignored until then",
                    )
        levels = (label(source.get("dependency"), DEPENDENCIES) for source in sources)
        if dimension := episode.dimension or label(row.get("dimension"), DIMENSIONS):
            tags["dimension"] = dimension
        beside = self.levels.get((app_key(episode.app), episode.identity))
        if level := next(filter(None, levels), beside):
            tags["dependency"] = level
        return tags

    def _language(self, episode: _Episode, row: Row, place: RowContext) -> str:
        stated = episode.metadata.get("language") or row.get("language")
        known = stated if stated in ("zh", "en") else language_of(episode.app)
        if known:
            return str(known)
        english, chinese = instructions(episode.metadata, row)
        if english and chinese and episode.app not in self._guessed:
            self._guessed.add(episode.app)
            place.warn(
                "language-unknown",
                f'app "{episode.app}" is not in Table 7 and its episodes have both languages',
                'a column "language" with "en" or "zh"',
                "add the column; Chinese is used until then, as in the released evaluator",
            )
        return "en" if english and not chinese else "zh"


def _instruction(episode: _Episode, placed: _StepRow, language: str) -> str:
    english, chinese = instructions(episode.metadata, placed.row)
    wanted, other = (english, chinese) if language == "en" else (chinese, english)
    if wanted is None:
        (placed.place.warn if other else placed.place.refuse)(
            "instruction-missing",
            f'no instruction in the app\'s language "{language}"',
            "instruction_en" if language == "en" else "instruction_zh or instruction",
            f"add it; {'the other language is used' if other else 'it is empty'} until then",
        )
    return wanted or other or ""


def assign_group(step: Step) -> Step:
    """Return the step with its group: its app, in any spelling, and its twins or else the episode.

    Synthetic episodes with the same `twins` differ in one medium and the answer, so three of them
    give the fourth's answers away.
    """
    app, _ = tag_of(step, "app"), tag_of(step, "language")
    check_screen(step)
    twins = step.source.get("twins")
    own = twins if isinstance(twins, str) and twins else step.episode_id
    return replace(step, group=f"{app_key(app)}/{own}")


def merge_groups(steps: Sequence[Step], note: Note) -> Sequence[Step]:
    """Return the steps with one group per episode: that of the first step that names twins.

    Each row names its own twins, and rows of one episode may disagree: a split by rows would tear
    the episode apart.

    Args:
        steps: each episode's by index.
        note: takes the findings about episodes whose rows disagree.
    """
    twins = {own for step in steps if step.group != (own := _alone(step))}
    if not twins:
        return steps
    group_of: dict[str, str] = {}
    torn: dict[str, list[Step]] = {}
    for step in steps:
        own = _alone(step)
        if own not in twins:
            continue
        if group_of.setdefault(own, step.group) == step.group:
            continue
        torn[own] = []
        if group_of[own] == own:
            group_of[own] = step.group
    if not torn:
        return steps
    for step in steps:
        if (own := _alone(step)) in torn:
            torn[own].append(step)
    for own, found in torn.items():
        groups = list(dict.fromkeys(step.group for step in found))
        others = [step.sample_id for step in found if step.group != group_of[own]]
        RowContext(found[0].episode, about(note, *others)).warn(
            "twins-differ",
            f"its rows belong to {len(groups)} groups by the column twins: {', '.join(groups[:8])}",
            "the same twins, or none, in each row of an episode",
            f"set all to the same; the whole episode belongs to {group_of[own]} until then",
        )
    return Steps.of(
        replace(step, group=group_of[own]) if (own := _alone(step)) in torn else step
        for step in steps
    )


def _alone(step: Step) -> str:
    return f"{app_key(tag_of(step, 'app'))}/{step.episode_id}"


def _sample_id(app: str, identity: str, index: int) -> str:
    """Slashes in names are escaped, or two steps could share an id."""
    app, identity = (name.replace("/", "%2F") for name in (app, identity))
    return f"{app}/{identity}/{index}"


# OmniGUI's data are recognised by their first rows.

_PEEKED_ROWS = 20
_SEEN = frozenset(
    {
        *("result_touch_xy", "instruction_en", "instruction_zh"),
        *(name for names in MEDIA_COLUMNS.values() for name in names if name != "image_path"),
    }
)
"""A row of OmniGUI has at least one of these columns."""


class OmniGuiFiles:
    """The files of OmniGUI, as `omnidata.tasks.benchmark.Files`."""

    columns = LAYOUTS

    def recognises(self, data: Path) -> bool:
        """Return whether the folder has the paper's layout, or a file's first rows are steps.

        Raises:
            OSError: the file cannot be read.
        """
        try:
            files = find(data)
        except DataError:
            paths = sorted(data.glob("*.jsonl"))
        else:
            if files.steps is None:
                return True
            paths = [files.steps]
        return any(_is_step(row) for path in paths for row in _first_rows(path))

    def fingerprint(self, data: Path) -> str:
        """Return the SHA-256 of the annotations."""
        return find(data).fingerprint()


def _is_step(row: Row) -> bool:
    keys = row.keys()
    if "result_touch_yx" in keys and _SEEN.isdisjoint(keys):
        return False  # Android in the Wild's columns
    placed = bool(keys & {"episode_id", "ID"}) and bool(keys & {"step_id", "step_index"})
    return placed or "result_action_type" in keys


def _first_rows(path: Path) -> Iterator[dict[str, Any]]:
    if is_parquet(path) or path.stat().st_size <= HEAD:
        rows = (line.row for line in islice(read_rows(path), _PEEKED_ROWS))
        yield from (row for row in rows if isinstance(row, dict))
        return
    text = head_of(path).decode("utf-8", "replace")
    decoder, end = json.JSONDecoder(), 0
    for _ in range(_PEEKED_ROWS):
        try:
            row, end = decoder.raw_decode(text, text.index("{", end))
        except RecursionError:
            return
        except ValueError:
            if (end := text.find("{", end) + 1) == 0:  # the object around the rows has no end here
                return
        else:
            yield row
