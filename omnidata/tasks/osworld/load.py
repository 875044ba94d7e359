"""OSWorld's result trees: rollouts of agents as steps, one for each turn.

Source: OSWorld (sections 2 and 4, Appendices A.3 and C), and the trees that its release and public
forks of it write; `docs/benchmarks/osworld.md` lists their dialects.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from omnidata.actions import Action, Screen
from omnidata.dialects.pyautogui import Code, as_action
from omnidata.errors import DataError, FileError, Finding, MediaError, MissingMediaError
from omnidata.loaders.load import Note, RowContext, about, load_data, size_of
from omnidata.loaders.media_findings import check_media_files
from omnidata.loaders.row_files import read_rows
from omnidata.loaders.steps import Steps, row_ids
from omnidata.media import Budget, resolve, unsafe
from omnidata.tasks.loading import EpisodeBuilder
from omnidata.tasks.observation import MAX_BYTES, Element, broken_tree, pack, unpack
from omnidata.tasks.osworld.accessibility import SUFFIX, read_tree
from omnidata.tasks.osworld.actions import calls_of
from omnidata.tasks.osworld.suite import TaskFiles
from omnidata.tasks.osworld.tree import (
    EVALUATION,
    FOUND,
    GROUP_OF,
    INSTRUCTION,
    RECORDING,
    RESULT,
    TRAJECTORY,
    Instructions,
    Result,
    Rollout,
    example_names,
    find,
    read_result,
    recognises,
)
from omnidata.tasks.osworld.turns import (
    Recording,
    Run,
    Timeline,
    Turn,
    estimate_start,
    match_start,
    read_runs,
)
from omnidata.types import LoadedDataset, MediaRef, Modality, Step

# OSWorld's rollouts -> steps, one for each turn of the agent.

AlignBy = Literal["clock", "pictures"]

TAGS: Final = (
    "domain", "group", "action_space", "observation_type", "model", "outcome", "alignment",
)  # fmt: skip
"""The tags of a step: of its rollout, the group of Table 5, the outcome ("success", "partial",
"failure", "unfinished"), and the alignment of its clips ("exact", "estimated", "none")."""

ROLES: Final[Mapping[str, Modality]] = {
    "screenshot": "image",
    "screenshot_after": "image",
    "video": "video",
    "video_after": "video",
}
"""`screenshot` and `video` are before the action; `screenshot_after`, which the line names, and
`video_after` show its result."""

_UNKNOWN: Final[Screen] = (0, 0)
"""The screen of a step without a screenshot that can be read."""

_FIRST: Final = "step_0.png"  # of forks that keep what the agent saw first


@dataclass(frozen=True, slots=True)
class _Tried:
    """A run of a rollout, with the rollout's result."""

    rollout: Rollout
    run: Run
    number: int  # of the run in its file, from 0
    runs: int  # in the file; recording and result are about the last one
    result: Result

    @property
    def is_last(self) -> bool:
        return self.number == self.runs - 1

    @property
    def sample_ids(self) -> list[str]:
        """The ids of the steps, one for each turn."""
        return [self.sample_id(turn.number) for turn in self.run.turns]

    def sample_id(self, number: int) -> str:
        return f"{self.episode_id}/{number - self.run.first_number}"

    @property
    def episode_id(self) -> str:
        """The folder; with the run's number if other runs follow it."""
        place = self.rollout.example_id if self.rollout.path == "." else self.rollout.path
        return place + ("" if self.is_last else f"@{self.number + 1}")

    def context(self, note: Note) -> RowContext:
        return RowContext(self.episode_id, about(note, *self.sample_ids))


@dataclass(slots=True)
class _StepReader:
    """Turns the runs of rollouts into steps."""

    instructions: Instructions
    align: AlignBy
    note: Note
    _sizes: dict[tuple[Path, str], Screen] = field(default_factory=dict)

    def steps(self, tried: _Tried) -> Iterator[Step]:
        """Return the steps of a run, in order."""
        rollout, run, ids = tried.rollout, tried.run, tried.sample_ids
        if not run.turns:
            return
        names = [run.reset, *(turn.shown_after for turn in run.turns)]
        shown = [
            self._picture(rollout, name, *ids[max(number - 1, 0) : number + 1])
            for number, name in enumerate(names)
        ]
        recording = self._recording(tried)
        if shown[0] is None and run.turns[0].shown_before is None:
            shown[0] = self._first(tried, recording)
        line = self._timeline(tried, recording, shown[1:])
        sizes = (self._size(ref) for ref in shown if ref is not None and ref.cell is None)
        usual = next((size for size in sizes if size != _UNKNOWN), _UNKNOWN)
        episode = EpisodeBuilder(tried.episode_id, _tags(tried, line), count=len(run.turns))
        for number, (turn, sample_id) in enumerate(zip(run.turns, ids, strict=True)):
            index = turn.number - run.first_number
            shot = self._picture(rollout, turn.shown_before, sample_id) or shown[number]
            own = _UNKNOWN
            if shot is not None and (shot.cell is None or usual == _UNKNOWN):
                own = self._size(shot)
            screen = usual if own == _UNKNOWN else own
            action = self._action(rollout.action_space, turn, sample_id)
            while episode.length < index:  # turns in which the agent said nothing that could be run
                episode.skip(screen)
            yield episode.step(
                sample_id,
                self.instructions.of(rollout, turn.rows[0]),
                {
                    "screenshot": shot,
                    "screenshot_after": shown[number + 1],
                    "video": line.clip(number) if line else None,
                    "video_after": line.clip(number + 1) if line else None,
                },
                screen,
                action,
                {**_source(tried, number, line), **self._tree(shot, sample_id)},
                group=rollout.example_id,
            )

    def _picture(self, rollout: Rollout, name: str | None, *sample_ids: str) -> MediaRef | None:
        if name is None:
            return None
        if reason := unsafe(name):
            RowContext(rollout.path, about(self.note, *sample_ids)).refuse(
                "path-unsafe",
                f"screenshot: {reason}",
                "the name of a file in the same folder",
                "correct the name; the steps lack the picture until then",
            )
            return MediaRef("image", rollout.root, name)  # opening it raises the MediaError
        return MediaRef("image", rollout.root, rollout.name(name))

    def _tree(self, shot: MediaRef | None, sample_id: str) -> dict[str, str]:
        if shot is None or unsafe(shot.path) or not Path(shot.path).name:
            return {}
        shown = shot.path if shot.cell is None else str(Path(shot.path).with_name(_FIRST))
        ref = MediaRef("image", shot.root, Path(shown).with_suffix(SUFFIX).as_posix())
        try:
            content = resolve(ref, budget=Budget(max_bytes=MAX_BYTES)).read_bytes()
            read_tree(content)
        except MissingMediaError:
            return {}
        except (MediaError, OSError, ValueError) as error:
            what = error.what if isinstance(error, MediaError) else str(error)
            RowContext(f"{sample_id} ({ref.path})", about(self.note, sample_id)).warn(
                "tree-broken",
                f"the accessibility tree cannot be read: {what}",
                "XML as OSWorld's server returns it",
                "record it again; until then the step is a media_error with -T observation",
            )
            return {TREE: ""}
        return {TREE: pack(content)}

    def _first(self, tried: _Tried, recording: Recording | None) -> MediaRef | None:
        kept = MediaRef("image", tried.rollout.root, tried.rollout.name(_FIRST))
        if self._size(kept) != _UNKNOWN:
            return kept
        if recording is not None:
            return recording.first_frame(tried.rollout.name("first_frame.png"))
        RowContext(tried.episode_id, about(self.note, tried.sample_ids[0])).warn(
            "observation-missing",
            "the first screenshot is missing, and "
            + (
                "no recording can be read" if tried.is_last else "the recording is from a later run"
            ),
            f"{RECORDING}, whose first frame shows it",
            "add the recording; until then the first step has no screenshot",
        )
        return None

    def _recording(self, tried: _Tried) -> Recording | None:
        ref = MediaRef("video", tried.rollout.root, tried.rollout.name(RECORDING))
        if not tried.is_last or not (ref.root / ref.path).exists():
            return None
        try:
            return Recording.of(ref)
        except MediaError as error:
            self._refuse_recording(tried, error)
            return None

    def _refuse_recording(self, tried: _Tried, error: MediaError) -> None:
        tried.context(self.note).refuse(
            "recording-broken",
            f"{RECORDING}: {error.what}",
            error.expected,
            "copy the recording again; its clips are missing until then",
        )

    def _timeline(
        self, tried: _Tried, recording: Recording | None, pictures: Sequence[MediaRef | None]
    ) -> Timeline | None:
        if recording is None:
            return None
        times = tried.run.times
        if times is None:
            tried.context(self.note).warn(
                "times-unusable",
                "the turns have no times, or the times decrease",
                "action_timestamp YYYYmmdd@HHMMSS, with or without microseconds",
                "correct the times; until then the steps have no clips",
            )
            return None
        try:
            if self.align == "pictures":
                return match_start(recording, times, pictures)
        except MediaError as error:
            self._refuse_recording(tried, error)
        return estimate_start(recording, times)

    def _size(self, ref: MediaRef) -> Screen:
        key = ref.root, ref.path
        if key not in self._sizes:
            self._sizes[key] = size_of(ref)
        return self._sizes[key]

    def _action(self, space: str, turn: Turn, sample_id: str) -> Action | None:
        reading = calls_of({"action_space": space, "rows": turn.rows})
        place = RowContext(f"{sample_id} ({turn.where})", about(self.note, sample_id))
        for code, what in reading.flags.items():
            if code == "action-foreign":
                place.refuse(
                    code,
                    what,
                    "the name of an action of computer_13, or code",
                    "name the task of that dataset; here the step has no action",
                )
            else:
                expected = "an action of the rollout's action space"
                place.warn(code, what, expected, "nothing to do: it is read")
        action = as_action(reading.calls, space="px", said=actions_text(turn.rows))
        if action is None:
            unread = next((one for one in reading.calls if isinstance(one, Code)), None)
            place.warn(
                "action-code" if unread else "action-inexpressible",
                f"the action is not understood: {unread.why}"
                if unread
                else "no call is made, or the end has an unknown status",
                "calls of pyautogui, or an action of computer_13",
                "correct the code; until then the step has no action; its text is kept "
                "and never run",
            )
        return action


def _tags(tried: _Tried, line: Timeline | None) -> dict[str, str]:
    rollout = tried.rollout
    tags = {
        "domain": rollout.domain,
        "group": GROUP_OF.get(rollout.domain, ""),
        "action_space": rollout.action_space,
        "observation_type": rollout.observation_type,
        "model": rollout.model,
        "outcome": tried.result.outcome if tried.is_last else "unfinished",
        "alignment": line.alignment if line else "none",
    }
    return {tag: value for tag, value in tags.items() if value}


def _source(tried: _Tried, number: int, line: Timeline | None) -> dict[str, Any]:
    """Return the untouched lines of a turn and the facts about its rollout."""
    rollout, turn = tried.rollout, tried.run.turns[number]
    return {
        "rows": turn.rows,
        "before": tried.run.before if number == 0 else [],
        "after": turn.after,
        "path": rollout.path,
        "run": tried.number,
        "runs": tried.runs,
        "domain": rollout.domain,
        "example_id": rollout.example_id,
        "instruction_id": rollout.instruction_id,
        "action_space": rollout.action_space,
        "observation_type": rollout.observation_type,
        "model": rollout.model,
        "score": tried.result.score if tried.is_last else None,
        "start_s": line.starts[number] if line else None,
        "alignment": line.alignment if line else None,
    }


def actions_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a turn's actions in the agent's words, one per line."""
    found = [row.get("action", row.get("actions", "")) for row in rows]
    return "\n".join(
        one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in found
    )


def elements(step: Step) -> list[Element]:
    """Return the elements of a step's screen.

    Raises:
        MediaError: the step has no tree, or one that is none.
    """
    packed = step.source.get(TREE)
    if packed is None:
        raise broken_tree(step, "the step has a screenshot, but no accessibility tree")
    try:
        return read_tree(unpack(packed))
    except ValueError as error:
        raise broken_tree(step, f"the accessibility tree cannot be read: {error}") from None


TREE: Final = "accessibility_tree"
"""The key of a packed tree in a step's `source`; its value is empty if the tree is unreadable."""

_BUDGET = Budget(max_bytes=4 * 1024**3)


def load(
    data: Path | str,
    *,
    examples: Path | None = None,
    align: AlignBy = "clock",
    strict: bool = False,
    check_media: bool = True,
    needs_steps: bool = True,
) -> LoadedDataset:
    """Read rollouts as steps; nothing in them is executed, and no clip is decoded.

    A step's `source` has the untouched lines of its turn in `rows`, facts from the folders' names,
    and the accessibility tree of its screenshot (`elements`) if there is one. Its `action`, also in
    the history of later steps, has all actions of the turn, with the agent's own text as `words`.

    Args:
        data: the tree, from any of its levels downwards; a trajectory's file; or a Parquet
            repository.
        examples: the folder of the suite's examples, with the instructions; None for the
            `evaluation_examples` in the tree, if any.
        align: "pictures" decodes the recordings to find the screenshots in them.
        strict: make the first finding an error.
        check_media: check that screenshots and recordings exist and are whole.
        needs_steps: refuse data without a turn.

    Returns:
        Steps in the order of the folders, named `<folder>/<number of the turn>`.

    Raises:
        DataError: nothing readable as OSWorld is there, or no turn, or `strict` and there is a
            finding.
    """
    data = Path(data)

    def read() -> LoadedDataset:
        source = _read(data, examples, align, check_media=check_media)
        if needs_steps and not source.steps:
            errors = (one for one in source.findings if one.severity == "error")
            first = next((f": {one.where}: {one.what}" for one in errors), "")
            raise DataError(
                f"the data have no turn of an agent{first}",
                where=str(data),
                expected=f"{TRAJECTORY} with lines of step_num, action_timestamp and action",
                remedy="name other data; `omnidata score osworld` needs only the results",
            )
        return source

    return load_data(
        data,
        "osworld",
        TAGS,
        read,
        strict=strict,
        check_media=check_media,
        beside=[examples] if examples else [],
        depends=[align, str(examples)],
    )


def rollouts(data: Path, note: Note, files: TaskFiles | None = None) -> list[Rollout]:
    """Return the rollouts of the data, with or without a trajectory.

    Args:
        data: the tree, or a trajectory's file.
        note: takes the findings.
        files: the suite's lists of tasks; None for those in the tree.

    Raises:
        DataError: nothing is there, or nothing like OSWorld's results.
        FileError: a link to a folder leads outside.
    """
    if not data.exists():
        raise _unlike("there is no such file or folder", data)
    try:
        if data.is_file() and not recognises(data):
            raise _unlike("no line is one of a trajectory", data)
        domains: frozenset[str] = frozenset()
        with nullcontext() if files else suppress(DataError):
            domains = (files or TaskFiles.beside(data)).domains()
        found = find(data, note, domains)
    except FileError:
        raise
    except OSError as error:
        raise _unlike(f"it cannot be read ({error.strerror})", data) from None
    if not found:
        raise _unlike(f"no folder has {TRAJECTORY} or {RESULT}", data)
    return found


def _unlike(what: str, data: Path) -> DataError:
    remedy = "name the folder of results; `omnidata info` lists the other tasks"
    return DataError(what, where=str(data), expected=FOUND, remedy=remedy)


def _read(data: Path, examples: Path | None, align: AlignBy, *, check_media: bool) -> LoadedDataset:
    findings: list[Finding] = []
    note = findings.append
    instructions = Instructions(examples or TaskFiles.beside(data).examples)
    steps = Steps.of(_steps(data, _StepReader(instructions, align, note)))
    if missing := sorted(instructions.missing):
        RowContext(str(data), note).warn(
            "instruction-missing",
            f"{len(missing)} rollouts have no task, the first: {missing[0]}",
            "the text of the task",
            f"put OSWorld's {EVALUATION} into the folder, or name it with -T examples=FOLDER",
        )
    if check_media and steps:
        check_media_files(steps, note, always_shown=False)
    return LoadedDataset(
        "osworld",
        data,
        steps,
        findings,
        sum(finding.code in ("json-invalid", "turns-many") for finding in findings),
        ResultTree().fingerprint(data),
        row_ids(steps, range(len(steps))),
        TAGS,
        ROLES,
    )


def _steps(data: Path, reader: _StepReader) -> Iterator[Step]:
    note = reader.note
    for rollout in rollouts(data, note):
        broken: list[Finding] = []
        result = read_result(rollout, broken.append)
        file = data.name if data.is_file() else TRAJECTORY
        runs = runs_of(rollout, file, note)
        every = [_Tried(rollout, run, number, len(runs), result) for number, run in enumerate(runs)]
        for finding in broken:  # the result is the last run's
            about(note, *(every[-1].sample_ids if every else ()))(finding)
        if len(runs) > 1:
            ids = [name for tried in every for name in tried.sample_ids]
            RowContext(rollout.name(file), about(note, *ids)).warn(
                "runs-appended",
                f"the file holds {len(runs)} runs: step_num begins anew",
                "one run",
                "nothing to do: recording and result belong to the last run; the others are "
                "separate episodes",
            )
        for tried in every:
            for turn, finding in tried.run.doubts:
                ids = tried.sample_ids if turn is None else [tried.sample_id(turn)]
                about(note, *ids)(finding)
            yield from reader.steps(tried)


def runs_of(rollout: Rollout, file: str, note: Note) -> list[Run]:
    """Return the runs of a rollout; none without a readable trajectory."""
    ref = MediaRef("image", rollout.root, rollout.name(file))
    try:
        lines = read_rows(resolve(ref, budget=_BUDGET))
        return read_runs(((line.where, line.row) for line in lines), note)
    except MissingMediaError:
        return []
    except (MediaError, OSError) as error:
        RowContext(ref.path, note).refuse(
            "trajectory-unreadable",
            error.what if isinstance(error, MediaError) else str(error.strerror),
            "a file of JSON lines in the example's own folder",
            "correct the file; the rollout has no steps until then",
        )
        return []


class ResultTree:
    """Trees of results, or a trajectory's file."""

    columns = FOUND

    recognises = staticmethod(recognises)

    def fingerprint(self, data: Path) -> str:
        """Return the SHA-256 over trajectories, results, instructions and trees.

        Raises:
            DataError: nothing like OSWorld's results is there.
        """
        digest = hashlib.sha256()
        examples = TaskFiles.beside(data).examples
        place = examples.relative_to(data).as_posix() if examples else ""
        for rollout in rollouts(data, lambda finding: None):
            trees = sorted(path.name for path in (rollout.root / rollout.path).glob(f"*{SUFFIX}"))
            names = [rollout.name(file) for file in (TRAJECTORY, RESULT, INSTRUCTION, *trees)]
            if data.is_file():
                names = [data.name, *names]
            listed = example_names(rollout.domain, rollout.example_id) if place else ()
            tasks = [f"{place}/{name}" for name in listed]
            for name in (*names, *tasks):
                try:
                    path = resolve(MediaRef("image", rollout.root, name), budget=_BUDGET)
                    with path.open("rb") as content:
                        own = hashlib.file_digest(content, "sha256").digest()
                except (MediaError, OSError):
                    continue
                digest.update(f"{name}\0".encode("utf-8", "surrogateescape") + own)
        return digest.hexdigest()


def dump(steps: Sequence[Step]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the lines of the trajectories as they were in the files, by the rollout's folder.

    Lines that are not JSON objects and rollouts without a turn are missing.

    Args:
        steps: steps of loaded data, in order; also from a Parquet repository.

    Examples:
        >>> dump([])
        {}
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for step in steps:
        source = step.source
        lines = found.setdefault(source["path"], [])
        lines += [*source["before"], *source["rows"], *source["after"]]
    return found


def dump_lines(rows: Sequence[Mapping[str, Any]]) -> bytes:
    r"""Return the content of a trajectory's file.

    Examples:
        >>> dump_lines([{"step_num": 1}])
        b'{"step_num": 1}\n'
    """
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()
