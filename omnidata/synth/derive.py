"""Derive rows of IDMBench's and CriticBench's kind from the episodes of any task.

Questions about actions are windows of one length, so that the form of a prompt does not reveal the
answer. Questions about success are whole trajectories and failures made of them, in pairs or fours
of one form: the same trajectory under its own instruction and under another, or two parts of one
episode with equal kinds of actions in the same order. `docs/derive.md` has the rules; the benchmark
writes its rows (`omnidata.tasks.derivation`).
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path
from statistics import median_low
from typing import Any, Final, Literal

from omnidata.actions import Action, history_text
from omnidata.analysis.prompt_features import segments
from omnidata.errors import DataError, Finding, MediaError, UsageError, plural
from omnidata.jsontext import encode
from omnidata.loaders.instructions import foreign
from omnidata.loaders.steps import media_of
from omnidata.media import file_or_bytes, resolve
from omnidata.remote import display_path
from omnidata.storage import atomic_write, copy_file, wrap_os_error
from omnidata.synth.folder import SynthStaging
from omnidata.tasks.asking import Asking
from omnidata.tasks.derivation import MOST_OPERATIONS, PLATFORMS, Derivation, Trajectory
from omnidata.types import LoadedDataset, MediaRef, Progress, Step

REPORT: Final = "rows.json"
PICTURES: Final = "images"
_COMMON: Final = 5
"""The number of episodes that make a text common, as in `omnidata audit`."""
_SUFFIXES: Final = frozenset({".png", ".jpg", ".jpeg", ".webp"})
_IDLE: Final = frozenset({"wait", "none"})


# Episodes of any task that rows can be made of.


@dataclass(frozen=True)
class Recording:
    """An episode with a screenshot before every action.

    Attributes:
        number: its index in the data.
        app: the tag of its steps, or empty.
        platform: as in `Trajectory`.
        language: of its screens and its instruction, as far as it is known.
        instructions: the instruction in every wording of the data, without case and space.
        steps: those with an action, in order.
        shots: a screenshot for each of them, and one more if a step without an action, or with the
            end alone, follows.
    """

    number: int
    app: str
    platform: str
    language: str
    instructions: frozenset[str]
    steps: tuple[Step, ...]
    shots: tuple[MediaRef, ...]

    @property
    def name(self) -> str:
        """Name of the episode."""
        return self.steps[0].episode

    @property
    def group(self) -> str:
        """Group of the episode, which is never split."""
        return self.steps[0].group

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """The action of each step."""
        return tuple(step.action for step in self.steps if step.action)

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The wording of each action in a history, with everything done in its step."""
        return tuple(
            action.words
            if action.words is not None
            else "; ".join(history_text(each, step.screen) for each in (action, *action.then))
            for action, step in zip(self.actions, self.steps, strict=True)
        )


def read_recordings(
    task: Asking, source: LoadedDataset, note: list[Finding]
) -> tuple[list[Recording], Counter[str]]:
    """Return the usable episodes, and the number of others by reason.

    Args:
        task: of the data.
        source: the data, with the steps of each episode together.
        note: receives a finding for each episode that is left out.
    """
    found: list[Recording] = []
    left_out: Counter[str] = Counter()
    doubted = _doubtful_steps(source.findings)
    for number, (name, same) in enumerate(groupby(source.steps, key=attrgetter("episode"))):
        steps = tuple(same)
        row = source.episode_rows.get(name, {})
        reason, detail = _lacks(task, steps, row)
        if not reason and steps[-1].action is None and steps[-1].sample_id in doubted:
            reason, detail = "has a last action that cannot be read", ""
        if reason:
            left_out[reason] += 1
            note.append(
                Finding(
                    "episode-left-out",
                    "warning",
                    name,
                    f"no row is made from the episode: {detail or reason}",
                    "a successful episode with an instruction, and a screenshot and an action at "
                    "each step",
                    "correct the data, or leave the episode out",
                )
            )
            continue
        acted = _acting_steps(steps)
        first = steps[0]
        found.append(
            Recording(
                number,
                first.tags.get("app", ""),
                platform_of(task, first),
                _language_of(task, first),
                frozenset(
                    "".join(text.casefold().split())
                    for text in task.benchmark.wordings.instructions(first, row)
                ),
                acted,
                tuple(ref for step in steps if (ref := step.media.get("screenshot"))),
            )
        )
    return found, left_out


def _doubtful_steps(findings: Sequence[Finding]) -> set[str]:
    """Return the steps whose lack of an action may be a fault.

    It is no fault if the loader reports that the row states no action (`target-absent`).
    Findings about media do not matter here: screenshots are checked separately.
    """
    silent: set[str] = set()
    doubted: set[str] = set()
    for each in findings:
        if each.code == "target-absent":
            silent.update(each.sample_ids)
        elif not each.code.startswith("media-"):
            doubted.update(each.sample_ids)
    return doubted - silent


def platform_of(task: Asking, step: Step) -> str:
    """Return a step's platform: by its tag, or by its task."""
    platform = step.tags.get("platform", "").lower()
    return platform if platform in PLATFORMS else task.benchmark.card.platform


def _language_of(task: Asking, step: Step) -> str:
    app = step.tags.get("app", "")
    language = step.tags.get("language") or task.benchmark.wordings.language_of(app)
    return language or ("other" if foreign(step.instruction, "en") else "en")


def _acting_steps(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return all but a last step without an action, or with the end alone."""
    last = steps[-1].action
    return steps[:-1] if last is None or last.kind == "done" else steps


def _lacks(task: Asking, steps: tuple[Step, ...], row: Mapping[str, Any]) -> tuple[str, str]:
    """Return why an episode is unusable, and at which step; empty if it is usable."""
    last = steps[-1].action
    if [step.step_index for step in steps] != list(range(steps[0].num_steps)):
        return "lacks steps", ""
    if not steps[0].instruction.strip():
        return "has no instruction", ""
    if task.benchmark.episodes.success(steps, row) is False or (last and last.status == "failure"):
        return "did not succeed", ""
    if not _acting_steps(steps):
        return "does nothing", ""
    for step in _acting_steps(steps):
        if step.action is None:
            return "has a step without an action", f"step {step.step_index} has no action"
        if step.action.kind == "done":
            return "goes on after its end", f"step {step.step_index} says that it is the end"
    for step in steps:
        where = f"step {step.step_index} has no screenshot"
        ref = step.media.get("screenshot")
        if ref is None:
            return "lacks a screenshot", where
        if ref.cell is None:
            try:
                resolve(ref)
            except MediaError as error:
                return "lacks a screenshot", f"{where}: {error.what}"
    return "", ""


# Parts of recordings that rows are made of.

Design = Literal["", "cut", "extended", "swapped"]


@dataclass(frozen=True)
class Piece:
    """Actions of one or two recordings, and the instruction under which they are shown.

    Attributes:
        moments: for each action a recording and its index there.
        end: likewise, of the observation after the last action, if any.
        asked: the recording whose instruction is shown.
        success: whether they fulfil it; None if it is not asked.
        design: the origin of the truth; empty if it is not asked.
        group: of related pieces, which are never split.
    """

    moments: tuple[tuple[Recording, int], ...]
    end: tuple[Recording, int] | None
    asked: Recording
    success: bool | None = None
    design: Design = ""
    group: str = ""

    @property
    def seen(self) -> list[tuple[Recording, int]]:
        """The source of each observation."""
        return [*self.moments, *([self.end] if self.end else [])]


def _part(recording: Recording, start: int, stop: int, *, after: bool = True) -> Piece:
    end = (recording, stop) if after and stop < len(recording.shots) else None
    return Piece(tuple((recording, at) for at in range(start, stop)), end, recording)


def windows(recordings: Sequence[Recording], space: Sequence[str], *, most: int) -> list[Piece]:
    """Return windows of consecutive actions with the observations before and after each.

    All windows have the same number of actions: the median of the episodes with two or more, and
    not more than a prompt shows. Windows of an episode do not overlap.

    Args:
        recordings: the episodes.
        space: labels of the actions in questions; windows have no other action, and none that
            shares its step with another.
        most: the largest number of actions in a prompt; with 1, each is its own question.
    """
    runs: list[tuple[Recording, range]] = []
    for recording in recordings:
        usable = [
            action.label in space and not action.then and at + 1 < len(recording.shots)
            for at, action in enumerate(recording.actions)
        ]
        edges = [-1, *(at for at, good in enumerate(usable) if not good), len(usable)]
        runs += [(recording, range(a + 1, b)) for a, b in pairwise(edges) if b - a > 1]
    lengths = [len(run) for _, run in runs if len(run) > 1]
    length = 1 if most == 1 or not lengths else min(most, median_low(lengths))
    if most > 1 and length == 1:
        return []
    return [
        _part(recording, start, start + length)
        for recording, run in runs
        for start in range(run.start, run.stop - length + 1, length)
    ]


def make_pieces(recordings: Sequence[Recording], *, most: int, seed: int) -> list[Piece]:
    """Return successes and as many failures, in designs whose members differ only in the truth.

    Args:
        recordings: successful episodes.
        most: actions of a piece at most.
        seed: of partners and places.
    """
    rng = random.Random(seed)
    forms = _forms(recordings)
    pieces: list[Piece] = []
    for one, other in _partners(recordings, most, rng):
        group = " + ".join(dict.fromkeys(each[0].group for each in (one, other) if each))
        made: list[Piece] = []
        for recording in (*one, *other):
            made += _piece_pair(recording, forms[recording.number], most, rng)
        for a, b in zip(one, other, strict=False):
            made += _swap_instructions(a, b, most) + _extend(a, b, most, rng)
        pieces += [replace(piece, group=group) for piece in made]
    return pieces


Form = tuple[str, frozenset[str]]


def _forms(recordings: Sequence[Recording]) -> dict[int, list[Form]]:
    """Return the parts of actions that an audit can see: labels and common words."""
    said = {each.number: [set(segments(text)) for text in each.words] for each in recordings}
    counts = Counter(text for each in said.values() for text in set[str]().union(*each))
    common = {text for text, episodes in counts.items() if episodes >= _COMMON}
    return {
        each.number: [
            (action.label, frozenset(texts & common))
            for action, texts in zip(each.actions, said[each.number], strict=True)
        ]
        for each in recordings
    }


Group = list[Recording]


def _partners(
    recordings: Iterable[Recording], most: int, rng: random.Random
) -> Iterator[tuple[Group, Group]]:
    """Pair groups of one platform and language, with as many actions and instructions as long.

    Otherwise a mismatch, such as a long instruction above a short trajectory, would reveal a swap.
    Partners share the app if possible; a group that is left over stays alone.
    """
    groups: dict[str, Group] = {}
    for recording in recordings:
        groups.setdefault(recording.group, []).append(recording)
    waiting = list(groups.values())
    rng.shuffle(waiting)
    waiting.sort(key=lambda group: len(group[0].steps[0].instruction))
    for within_app in (True, False):
        alike: dict[tuple[Any, ...], list[Group]] = {}
        for group in waiting:
            shown = tuple(
                (each.platform, each.language, min(most, len(each.steps))) for each in group
            )
            alike.setdefault((within_app and group[0].app, shown), []).append(group)
        left: list[Group] = []
        for same in alike.values():
            pairs, rest = _pair_groups(same)
            yield from pairs
            left += rest
        waiting = sorted(left, key=lambda group: len(group[0].steps[0].instruction))
    yield from ((group, []) for group in waiting)


def _pair_groups(groups: Iterable[Group]) -> tuple[list[tuple[Group, Group]], list[Group]]:
    pairs: list[tuple[Group, Group]] = []
    left: list[Group] = []
    for group in groups:
        said = frozenset[str]().union(*(each.instructions for each in group))
        apart = (o for o in left if all(said.isdisjoint(each.instructions) for each in o))
        mate = next(apart, None)
        if mate is None:
            left.append(group)
        else:
            left.remove(mate)
            pairs.append((mate, group))
    return pairs, left


def _piece_pair(
    recording: Recording, forms: Sequence[Form], most: int, rng: random.Random
) -> list[Piece]:
    """Return the end of an episode, and a part of the same form that ends earlier.

    Both are as long as possible. Neither begins with the episode, which only a part could.
    """
    total = len(forms)
    shown = total < len(recording.shots)
    acts = [action.kind not in _IDLE for action in recording.actions]
    for length in range(min(most, total - 2), 0, -1):
        ends = [
            stop
            for stop in range(length + 1, total)
            if forms[stop - length : stop] == forms[total - length :] and any(acts[stop:])
        ]
        if ends:
            stop = rng.choice(ends)
            whole = _part(recording, total - length, total)
            part = _part(recording, stop - length, stop, after=shown)
            return [
                replace(whole, success=True, design="cut"),
                replace(part, success=False, design="cut"),
            ]
    return []


def _swap_instructions(a: Recording, b: Recording, most: int) -> list[Piece]:
    return [
        under
        for done, other in ((a, b), (b, a))
        for under in _under(_part(done, max(0, len(done.steps) - most), len(done.steps)), other)
    ]


def _extend(a: Recording, b: Recording, most: int, rng: random.Random) -> list[Piece]:
    if min(most, len(a.steps), len(b.steps)) < 2:
        return []
    found: list[Piece] = []
    for left, done in ((a, b), (b, a)):
        begun = rng.randint(1, min(len(left.steps), most) - 1)
        end = _part(done, max(0, len(done.steps) - (most - begun)), len(done.steps))
        both = replace(end, moments=_part(left, 0, begun).moments + end.moments)
        found += _under(both, left, "extended")
    return found


def _under(piece: Piece, other: Recording, design: Design = "swapped") -> list[Piece]:
    return [
        replace(piece, success=True, design=design),
        replace(piece, success=False, design=design, asked=other),
    ]


# From pieces to files.


class RowsStaging(SynthStaging):
    """The staging folder of rows.

    Args:
        out: where the rows belong.
        task: of the data, with its options.
        source: the data.
        rows_of: the tasks of the rows.
        inputs: folders that are read; None for those of the media.
        plan: what else the rows depend on.
    """

    noun = "rows"
    work = "writing rows"
    report = REPORT
    contents = frozenset({REPORT, PICTURES})
    listed = "files"

    def __init__(
        self,
        out: Path,
        task: Asking,
        source: LoadedDataset,
        rows_of: Sequence[Asking],
        *,
        inputs: Iterable[Path] | None = None,
        **plan: Any,
    ) -> None:
        if inputs is None:
            inputs = {ref.root for ref in media_of(source.steps)}
        super().__init__(
            out,
            plan={
                "data": display_path(source.root),
                "task": source.task,
                "task_options": dict(task.options),
                "fingerprint": source.fingerprint,
                "rows_of": [each.name for each in rows_of],
                **plan,
            },
            inputs={source.root, *inputs},
            data=source.root,
        )


def derive(
    tasks: Sequence[Asking],
    task: Asking,
    source: LoadedDataset,
    out: Path,
    *,
    seed: int = 0,
    progress: Progress = lambda done, total: None,
) -> Mapping[str, Any]:
    """Write rows of some tasks, derived from the episodes of another.

    Equal data and equal seeds make equal rows.

    Args:
        tasks: those of the rows, by their `derivation`; they share a verb.
        task: of the data.
        source: the episodes.
        out: a new or empty folder, or the result of the same call.
        seed: of all random choices.
        progress: called with the pictures that are copied and their number.

    Returns:
        The report, as in `rows.json`.

    Raises:
        DataError: no row can be made, or `out` holds rows of other data or settings.
        MediaError: a picture in a file of several cannot be read.
        UsageError: `out` has other content.
    """
    staging = RowsStaging(out, task, source, tasks, seed=seed)
    if report := staging.earlier_report():
        return report
    findings: list[Finding] = []
    recordings, left_out = read_recordings(task, source, findings)
    album = Album()
    made: dict[str, Mapping[str, Any]] = {}
    rows: dict[str, list[Mapping[str, Any]]] = {}
    files: dict[str, str] = {}
    for each in tasks:
        derivation = derivation_of(each)
        found, about = _rows(each.name, derivation, source.task, recordings, album, seed)
        if found:
            rows[derivation.file], made[each.name] = found, about
            files[derivation.file] = each.name
    if not rows:
        others = "".join(f"; {count} left out: {why}" for why, count in left_out.items())
        raise DataError(
            f"no row can be made from {plural(len(recordings), 'episode')}{others}",
            where=str(source.root),
            expected="episodes with a screenshot and an action at each step; to be judged, two of "
            "as many actions with different instructions, or one of three actions",
            remedy="`omnidata info` lists what is wrong with the data",
        )
    with staging, wrap_os_error(staging.path):
        album.write(staging.path / PICTURES, progress)
        for name, lines in rows.items():
            write_rows(staging.path / name, lines)
        report = {
            "files": files,
            "episodes": {"used": len(recordings), "left_out": dict(left_out.most_common())},
            "made": made,
            "findings": [dict(finding.as_dict()) for finding in findings],
        }
        return staging.publish(report)


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as JSON lines."""
    with atomic_write(path) as file:
        file.writelines(encode(row) + b"\n" for row in rows)


def derivation_of(task: Asking) -> Derivation:
    """Return how rows of a task are derived from other data.

    Raises:
        UsageError: they are not.
    """
    found: Derivation | None = task.benchmark.derivation
    if found is None:
        raise UsageError(
            f"{task.name} cannot make rows from other data",
            where=task.name,
            expected="a task with a `derivation`",
        )
    return found


def _rows(
    name: str,
    derivation: Derivation,
    source: str,
    recordings: Sequence[Recording],
    album: Album,
    seed: int,
) -> tuple[list[Mapping[str, Any]], Mapping[str, Any]]:
    counts = Counter(action.label for each in recordings for action in each.actions)
    space = tuple(sorted(label for label, _ in counts.most_common(MOST_OPERATIONS)))
    if derivation.of == "actions":
        pieces = windows(recordings, space, most=derivation.most)
        operations = Counter(r.actions[at].label for piece in pieces for r, at in piece.moments)
        about: dict[str, Any] = {"operations": dict(operations.most_common())}
    else:
        known = [each for each in recordings if all(a.label in space for a in each.actions)]
        pieces = make_pieces(known, most=derivation.most, seed=seed)
        designs = Counter(piece.design for piece in pieces)
        about = {
            "successes": sum(piece.success is True for piece in pieces),
            "designs": dict(sorted(designs.items())),
        }
    lengths = Counter(len(piece.moments) for piece in pieces)
    about = {
        "rows": len(pieces),
        "groups": len({piece.group or piece.asked.group for piece in pieces}),
        "actions": {str(length): lengths[length] for length in sorted(lengths)},
        **about,
    }
    return [
        derivation.row(_trajectory(piece, f"{name}-{number}", source, space, album))
        for number, piece in enumerate(pieces)
    ], about


def _trajectory(
    piece: Piece, name: str, source: str, space: tuple[str, ...], album: Album
) -> Trajectory:
    made_of = dict.fromkeys(each.name for each, _ in (*piece.moments, (piece.asked, 0)))
    return Trajectory(
        name,
        piece.group or piece.asked.group,
        f"{source}-{piece.design}" if piece.design else source,
        tuple(made_of),
        piece.asked.platform,
        piece.asked.steps[0].instruction,
        tuple(each.actions[at] for each, at in piece.moments),
        tuple(each.words[at] for each, at in piece.moments),
        tuple(album.name(each.number, at, each.shots[at]) for each, at in piece.seen),
        space,
        piece.success,
    )


class Album:
    """Screenshots by their names in rows; only those that rows use are copied."""

    def __init__(self) -> None:
        self._held: dict[str, MediaRef] = {}

    def name(self, episode: int, place: int, shot: MediaRef) -> str:
        """Return the name of a screenshot: its episode and its position."""
        suffix = Path(shot.path).suffix.lower()
        name = f"e{episode:06}_{place}{suffix if suffix in _SUFFIXES else '.png'}"
        self._held[name] = shot
        return name

    def write(self, folder: Path, progress: Progress) -> None:
        """Copy the pictures that an interrupted call has not copied.

        Raises:
            MediaError: one in a file of several cannot be read.
            OSError: one cannot be written.
        """
        folder.mkdir(exist_ok=True)
        for done, (name, shot) in enumerate(self._held.items()):
            progress(done, len(self._held))
            if not (folder / name).exists():
                copy_medium(shot, folder / name)


def copy_medium(ref: MediaRef, target: Path) -> None:
    """Copy a medium as it is stored.

    Raises:
        MediaError: it cannot be read.
        OSError: it cannot be written.
    """
    found = file_or_bytes(ref)
    if isinstance(found, Path):
        copy_file(found, target)
    else:
        with atomic_write(target, durable=False) as file:
            file.write(found)
