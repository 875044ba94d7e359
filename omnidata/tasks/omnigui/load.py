"""OmniGUI as steps, from the paper's tree, the released form, or annotations alone.

Source: OmniGUI, sections 3.1 to 3.3 and Appendix B; `docs/benchmarks/omnigui.md` says where the
release differs.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from omnidata.loaders.files import check_media_files
from omnidata.loaders.load import about, check_screen, load_data, short, tag_of
from omnidata.loaders.row_files import HEAD, head_of, is_parquet, read_rows
from omnidata.loaders.steps import Steps, row_ids
from omnidata.loaders.stored_rows import RowsByName, ScatteredRows
from omnidata.tasks.omnigui.files import (
    LAYOUTS,
    Annotations,
    Note,
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

_SHOWN = 8  # rows by which other benchmarks' are known


def load(data: Path | str, *, strict: bool = False, check_media: bool = True) -> LoadedDataset:
    """Read an OmniGUI dataset; no medium is decoded.

    Args:
        data: an app folder, a folder of apps, the released folder, a JSON file of steps, or a
            Parquet repository.
        strict: make the first finding an error.
        check_media: look whether the media exist and the screenshots are whole and of the stated
            size (a few file reads per step).

    Returns:
        Steps in the order of the source, each episode's by index, and a finding for everything that
        was skipped, missing or doubtful.

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
    findings += placing  # which come after those about what could not be read
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


class _Placed(NamedTuple):
    row: Row
    where: str
    number: int


_NO_METADATA: Row = {}


@dataclass(slots=True)
class _Episode:
    number: int
    app: str
    identity: str
    part: Annotations
    unlisted: str | None  # its first row's place, where metadata should be there and are not
    doubts: Sequence[Finding]
    metadata: Row
    dimension: str | None


class _Builder:
    def __init__(self, note: Note) -> None:
        self.note = note
        self.levels: Mapping[tuple[str, str], str] = {}
        self.rows: ScatteredRows[tuple[Row, str, int]] = ScatteredRows()  # as in `_Placed`
        self.skipped = 0
        self.episode_rows: RowsByName[Row] = RowsByName()
        self._episodes: dict[str, dict[str, int]] = defaultdict(dict)  # numbers, by app and id
        self._parts: list[Annotations] = []  # by episode, as the lists and dictionaries below
        self._there: list[int] = []  # the steps that have come, as bits
        self._unlisted: dict[int, str] = {}
        self._doubts: dict[int, list[Finding]] = defaultdict(list)
        self._without_steps: list[tuple[str, str]] = []
        self._guessed: set[str] = set()

    def add(self, part: Annotations) -> None:
        for row, where in part.rows:
            if not self._add_row(part, row, where):
                self.skipped += 1
                self.rows.skip()
        for identity, doubts in part.doubts.items():
            episode = self._episodes[part.app or ""].get(identity)
            if episode is not None:
                self._doubts[episode] += doubts
            else:
                for doubt in doubts:
                    self.note(doubt)
        for identity in part.episodes or ():
            if identity not in self._episodes[part.app or ""]:
                self._without_steps.append((part.app or "", identity))
                self.note(
                    Finding(
                        "episode-without-steps",
                        "error",
                        f"{part.app}/{identity}",
                        "the episode is listed, but has no step",
                        f"media/{identity}/{identity}.json or rows in dataset_{part.app}.json",
                        "add the steps or remove the line",
                    )
                )

    def _add_row(self, part: Annotations, row: Row, where: str) -> bool:
        app = part.app or as_name(row.get("app")) or as_name(row.get("subset")) or "unknown"
        identity = as_name(row.get("episode_id")) or as_name(row.get("ID"))
        key = "step_index" if row.get("step_index") is not None else "step_id"
        index = whole_number(row.get(key))
        if identity is None or index is None or not 0 <= index < MAX_STEPS:
            self.note(
                Finding(
                    "step-without-place",
                    "error",
                    where,
                    f"episode_id is {row.get('episode_id')!r}, {key} is {row.get(key)!r}",
                    f"an episode's id and a step number from 0 to {MAX_STEPS - 1}",
                    "add them; the row is skipped until then",
                )
            )
            return False
        episode = self._episodes[app].get(identity)
        if episode is None:
            episode = self._episodes[app][identity] = len(self._parts)
            self._parts.append(part)
            self._there.append(0)
            if part.app and not (part.episodes and identity in part.episodes):
                self._unlisted[episode] = where
        elif self._there[episode] >> index & 1:
            sample_id = _sample_id(app, identity, index)
            self.note(self._repetition(episode, row, where, index, sample_id))
            return False
        self._there[episode] |= 1 << index
        self.rows.add(episode, (row, where, index))
        return True

    def _repetition(
        self, episode: int, row: Row, where: str, index: int, sample_id: str
    ) -> Finding:
        before = map(self.rows.__getitem__, self.rows.numbers(episode))
        first = next(other for other, _, number in before if number == index)
        same = "the same" if dict(first) == dict(row) else "another"
        return Finding(
            "step-repeated",
            "error",
            f"{sample_id} ({where})",
            f"step {index} comes a second time, with {same} content",
            "each step once",
            "remove one of the two; the first is used",
            (sample_id,),
        )

    def check_levels(self) -> None:
        unmatched = dict.fromkeys(self.levels)
        apps: set[str] = set()
        for app, identity in chain(
            ((app, identity) for app, own in self._episodes.items() for identity in own),
            self._without_steps,
        ):
            key = app_key(app)
            apps.add(key)
            unmatched.pop((key, identity), None)
        for app, identity in unmatched:
            if app in apps:
                self.note(
                    Finding(
                        "dependency-unmatched",
                        "warning",
                        f"{app}/{identity}",
                        f"{SIDE_FILE} has a level for an unknown episode",
                        "one line per episode of the data",
                        "correct the ID or remove the line",
                    )
                )

    def steps(self) -> Iterator[Step]:
        apps = (zip(own.values(), own, repeat(app)) for app, own in self._episodes.items())
        for number, identity, app in merge(*apps):
            episode = self._episode(number, identity, app)
            numbers = self.rows.numbers(episode.number)
            placed = {number: _Placed(*self.rows[number]) for number in numbers}
            order = sorted(numbers, key=lambda each: placed[each].number)
            self.rows.became.extend(order)
            for step in self._steps(episode, [placed[number] for number in order]):
                yield step
            if episode.metadata or step.episode in self.episode_rows:
                self.episode_rows[step.episode] = episode.metadata

    def _episode(self, number: int, identity: str, app: str) -> _Episode:
        part, metadata, dimension = self._parts[number], _NO_METADATA, None
        if part.episodes and identity in part.episodes:
            metadata, dimension = part.listings[part.episodes[identity]]
        unlisted, doubts = self._unlisted.get(number), self._doubts.get(number, ())
        return _Episode(number, app, identity, part, unlisted, doubts, metadata, dimension)

    def _steps(self, episode: _Episode, placed: Sequence[_Placed]) -> Iterator[Step]:
        ids = [_sample_id(episode.app, episode.identity, p.number) for p in placed]
        note = about(self.note, *ids)
        notes = [about(self.note, own) for own in ids]
        for doubt in episode.doubts:
            note(doubt)
        self._check_listed(episode, note)
        self._check_length(episode, placed, note)
        self._check_success(episode, placed, note)
        first = placed[0].row
        tags = self._tags(episode, first, note)
        check_languages(
            episode.metadata,
            [(p.row, _place(episode, p), own) for p, own in zip(placed, notes, strict=True)],
            where=f"{episode.app}/{episode.identity}",
            language=tags["language"],
            note=note,
        )
        media = [
            read_media(p.row, episode.part.media_root, _place(episode, p), own)
            for p, own in zip(placed, notes, strict=True)
        ]
        screens = [
            read_screen(p.row, refs["screenshot"], _place(episode, p), own)
            for p, refs, own in zip(placed, media, notes, strict=True)
        ]
        read = [
            read_action(p.row, screen, _place(episode, p), own)
            for p, screen, own in zip(placed, screens, notes, strict=True)
        ]
        past: dict[int, Action | None] = {}
        sizes: dict[int, Screen] = {}
        shots: dict[int, MediaRef | None] = {}
        histories = HistoryCheck(past, sizes)
        for p, own, tell, screen, (action, usable), refs in zip(
            placed, ids, notes, screens, read, media, strict=True
        ):
            shots[p.number] = refs["screenshot"]
            if refs["history_screenshot"] is None:
                refs["history_screenshot"] = shots.get(p.number - 2)
            history = tuple(past.get(index) for index in range(p.number))
            seen = tuple(sizes.get(index, screen) for index in range(p.number))
            histories.look(p.row, index=p.number, where=_place(episode, p), note=tell)
            past[p.number], sizes[p.number] = action, screen
            step = Step(
                sample_id=own,
                episode_id=episode.identity,
                step_index=p.number,
                num_steps=len(placed),
                instruction=self._instruction(episode, p, tags["language"], tell),
                screen=screen,
                media=refs,
                history=history,
                history_screens=seen,
                action=action if usable else None,
                tags=tags,
                source=p.row,
            )
            yield assign_group(step)

    def _check_listed(self, episode: _Episode, note: Note) -> None:
        if episode.unlisted is not None:
            note(
                Finding(
                    "episode-without-metadata",
                    "warning",
                    f"{episode.app}/{episode.identity} ({episode.unlisted})",
                    "no <dimension>.jsonl lists the episode",
                    "one line in one of the five files",
                    "add the line; the episode has no dimension until then",
                )
            )

    def _check_length(self, episode: _Episode, placed: Sequence[_Placed], note: Note) -> None:
        missing = sorted(set(range(placed[-1].number + 1)) - {p.number for p in placed})
        stated = whole_number(placed[0].row.get("episode_length"))
        where = f"{episode.app}/{episode.identity} ({placed[0].where})"
        if missing:
            note(
                Finding(
                    "step-gap",
                    "error",
                    where,
                    f"the episode lacks the steps {', '.join(map(str, missing[:8]))}",
                    "steps 0, 1, 2, ... without a gap",
                    "add them; histories and episode metrics lack them until then",
                )
            )
        elif stated is not None and stated != len(placed):
            note(
                Finding(
                    "length-differs",
                    "warning",
                    where,
                    f"{plural(len(placed), 'step')}, but episode_length is {stated}",
                    "as many steps as stated",
                    "add the steps or correct episode_length",
                )
            )

    def _check_success(self, episode: _Episode, placed: Sequence[_Placed], note: Note) -> None:
        rows = (episode.metadata, *(p.row for p in placed))
        if (told := success_values(rows)) and success_of(rows) is None:
            note(
                Finding(
                    "success-unusable",
                    "warning",
                    f"{episode.app}/{episode.identity} ({placed[0].where})",
                    f"is_success is {' and '.join(map(short, told[:4]))} in rows of one episode",
                    "true or false, the same in all rows that say it",
                    "correct the rows; the episode does not count as a success until then",
                )
            )

    def _tags(self, episode: _Episode, row: Row, note: Note) -> dict[str, str]:
        tags = {"app": episode.app, "language": self._language(episode, row, note)}
        dimension = episode.dimension or label(row.get("dimension"), DIMENSIONS)
        level = (
            label(episode.metadata.get("dependency"), DEPENDENCIES)
            or label(row.get("dependency"), DEPENDENCIES)
            or self.levels.get((app_key(episode.app), episode.identity))
        )
        for column, allowed in (("dimension", DIMENSIONS), ("dependency", DEPENDENCIES)):
            self._check_label(episode, row, column, allowed, note)
        if dimension:
            tags["dimension"] = dimension
        if level:
            tags["dependency"] = level
        return tags

    def _check_label(
        self, episode: _Episode, row: Row, column: str, allowed: Iterable[str], note: Note
    ) -> None:
        for source in (episode.metadata, row):
            value = source.get(column)
            if value not in (None, "") and label(value, allowed) is None:
                note(
                    Finding(
                        "label-unknown",
                        "warning",
                        f"{episode.app}/{episode.identity}",
                        f"{column} is {value!r}",
                        f"one of {', '.join(allowed)}",
                        "correct the column; it is ignored until then",
                    )
                )

    def _language(self, episode: _Episode, row: Row, note: Note) -> str:
        stated = episode.metadata.get("language") or row.get("language")
        known = stated if stated in ("zh", "en") else language_of(episode.app)
        if known:
            return str(known)
        english, chinese = instructions(episode.metadata, row)
        if english and chinese and episode.app not in self._guessed:
            self._guessed.add(episode.app)
            note(
                Finding(
                    "language-unknown",
                    "warning",
                    f"{episode.app}/{episode.identity}",
                    f'app "{episode.app}" is not in Table 7 and its episodes have both languages',
                    'a column "language" with "en" or "zh"',
                    "add the column; Chinese is used until then, as in the released evaluator",
                )
            )
        return "en" if english and not chinese else "zh"

    def _instruction(self, episode: _Episode, placed: _Placed, language: str, note: Note) -> str:
        english, chinese = instructions(episode.metadata, placed.row)
        wanted, other = (english, chinese) if language == "en" else (chinese, english)
        if wanted is None:
            note(
                Finding(
                    "instruction-missing",
                    "warning" if other else "error",
                    _place(episode, placed),
                    f'no instruction in the app\'s language "{language}"',
                    "instruction_en" if language == "en" else "instruction_zh or instruction",
                    "add it; "
                    + ("the other language is used" if other else "it is empty")
                    + " until then",
                )
            )
        return wanted or other or ""


def assign_group(step: Step) -> Step:
    """The step with its group: its app, in any spelling, and its twins or else the episode.

    Synthetic episodes that the column `twins` puts together differ in one medium and the answer, so
    three of them give the fourth's answers away.
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
        note: is told of the episodes whose rows disagree.
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
        if group_of.setdefault(own, own if step.group == own else step.group) == step.group:
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
        note(_disagreeing(found, group_of[own]))
    return Steps.of(
        replace(step, group=group_of[own]) if (own := _alone(step)) in torn else step
        for step in steps
    )


def _alone(step: Step) -> str:
    return f"{app_key(tag_of(step, 'app'))}/{step.episode_id}"


def _disagreeing(steps: Sequence[Step], group: str) -> Finding:
    groups = list(dict.fromkeys(step.group for step in steps))
    others = tuple(step.sample_id for step in steps if step.group != group)
    return Finding(
        "twins-differ",
        "warning",
        steps[0].episode,
        f"its rows belong to {len(groups)} groups by the column twins: {', '.join(groups[:8])}",
        "the same twins, or none, in each row of an episode",
        f"set all to the same; the whole episode belongs to {group} until then",
        others,
    )


def _place(episode: _Episode, placed: _Placed) -> str:
    return f"{episode.app}/{episode.identity}/{placed.number} ({placed.where})"


def _sample_id(app: str, identity: str, index: int) -> str:
    """Slashes in names are escaped, or two steps could share an id."""
    app, identity = (name.replace("/", "%2F") for name in (app, identity))
    return f"{app}/{identity}/{index}"


# How OmniGUI's data are told from other benchmarks'.

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
