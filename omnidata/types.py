"""Types of steps, conversations, completions and verdicts, which all packages share.

Nothing here opens a file. Values that are made by the million (`Completion`, `Verdict`, and the
actions of `omnidata.actions`) are frozen msgspec structs: they are made ten times as fast as
dataclasses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Protocol, TypeGuard, get_args

import msgspec

from omnidata.actions import Action, Point, Region, Screen
from omnidata.errors import Finding
from omnidata.files import bounds
from omnidata.graphs import Graph
from omnidata.jsontext import is_number

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Modality = Literal["image", "video", "audio"]
Delivery = Literal["ok", "truncated", "refused", "api_error", "media_error"]
Outcome = Literal["ok", "unparsed", "truncated", "refused", "api_error", "media_error", "missing"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
Progress = Callable[[int, int], None]
"""A callback: called with the work done and the whole work."""

PLACE = "<bbox>"
"""The placeholder of a point in `Target.template`, as ms-swift writes it."""


@dataclass(frozen=True, slots=True)
class ParquetLocation:
    """A place in a Parquet file.

    Attributes:
        shard: the file, relative to the dataset's folder.
        column: the media column, by its path in the schema.
        row: 0-based, counted through the file.
        item: 0-based position in the row, where the column holds a list of media; else None.
    """

    shard: str
    column: str
    row: int
    item: int | None = None


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A place in a file that holds much else, like a TFRecord.

    Attributes:
        shard: the file, relative to the dataset's folder; what gzip packed is unpacked first.
        offset, size: of the medium, in bytes of what the file holds unpacked.
        pixels: height, width and channels where those bytes are bare pixels, rows from the top;
            None where they are a picture file.
    """

    shard: str
    offset: int
    size: int
    pixels: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class VideoSegment:
    """A part of a recording.

    Attributes:
        shard: the recording, relative to the dataset's folder.
        start_s: where it begins, in seconds after the recording's first frame.
        end_s: where it ends; of a picture the same, as it is what was shown at that moment.
    """

    shard: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class MediaRef:
    """A medium that has not been opened.

    Attributes:
        kind: "image", "video" or "audio".
        root: the folder that `path` is relative to.
        path: as in the row, unchecked until the medium is opened.
        inline: what the row holds in place of a file, {"array": [...], "sampling_rate": Hz}; None
            for a file.
        cell: where the bytes lie if not in a file of their own; `path` is then the name they had.
        sha256: of the bytes when the dataset was written, in hexadecimal; a file with another hash
            is not opened. All 64 digits, or the 32 in the names of an export's files. Empty if
            unknown.
        within: real paths; the file must be in one of them after links are followed. They are those
            of `omnidata.files.staying_in` where the reference is made; `root` alone if empty.
        until: the share of a clip or a track that is used, from its beginning: above 0, and 1 for
            the whole.
        marks: boxes of a picture (left, top, right, bottom in its pixels) that are drawn on it with
            their numbers, from 1, when it is opened; empty for the medium as it is.
    """

    kind: Modality
    root: Path
    path: str
    inline: Mapping[str, Any] | None = field(default=None, hash=False)
    cell: ParquetLocation | ByteRange | VideoSegment | None = None
    sha256: str = field(default="", compare=False)
    within: tuple[str, ...] = field(default_factory=bounds, compare=False, repr=False)
    until: float = 1.0
    marks: tuple[tuple[int, int, int, int], ...] = ()


class _FromFile:
    """A step of `omnidata.loaders.steps` fills its fields when they are asked for."""

    __slots__ = ("_block", "_place")
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:  # called only for a field that is not filled yet
            if name not in _FIELDS_OF_STEP:
                raise AttributeError(f"a step has no {name}", name=name, obj=self)
            value = self._block.value(self._place, name)
            object.__setattr__(self, name, value)
            return value


@dataclass(frozen=True, slots=True)
class Step(_FromFile):
    """One row of any benchmark; nothing decoded, nothing converted.

    Attributes:
        sample_id: unique in the dataset, e.g. "TED/T0540/5".
        episode_id: the episode's id in the source's spelling; unique within an app.
        step_index: 0-based position in the episode.
        num_steps: steps that the data holds for this episode.
        instruction: the one that the benchmark prescribes; the others are in `source`.
        screen: width and height of the screenshot in pixels.
        media: by role ("screenshot", "history_screenshot", "video", "audio"); None = absent.
        history: the expert's actions 0..step_index-1; None where a step is missing or unreadable.
        history_screens: the screens on which they were made, as long as `history`.
        action: the target; None when the source's is unusable (a finding says why).
        tags: app, language, dimension, dependency, ...: the same for all steps of an episode.
        source: the untouched row.
        episode: the episode's name, unique in the dataset. Where a loader says nothing it is
            `episode_id`, within the step's app where the step has a tag `app`.
        group: what must never be torn apart in splits, controls, bootstraps and checks for leaks:
            the episode, with its twins; the page of a grounding row. Equal names mean the same
            thing in other data of the benchmark. Where a loader says nothing it is the episode.

    Raises:
        TypeError: a field is of another type; the message names the step and what was expected.
    """

    sample_id: str
    episode_id: str
    step_index: int
    num_steps: int
    instruction: str
    screen: Screen
    media: Mapping[str, MediaRef | None]
    history: tuple[Action | None, ...]
    history_screens: tuple[Screen, ...]
    action: Action | None
    tags: Mapping[str, str]
    source: Mapping[str, Any]
    episode: str = ""
    group: str = ""

    def __post_init__(self) -> None:
        if not (  # a look that costs little: steps are made by the million
            type(self.step_index) is type(self.num_steps) is int
            and type(self.sample_id) is type(self.episode_id) is type(self.instruction) is str
            and type(self.media) is dict
            and type(self.tags) is dict
            and type(self.source) is dict
            and type(self.screen) is tuple
            and type(self.history) is tuple
            and type(self.history_screens) is tuple
            and (self.action is None or type(self.action) is Action)
            and _NUMBERS.issuperset(map(type, self.screen))
            and _TEXTS.issuperset(map(type, self.tags.values()))
            and _MEDIA.issuperset(map(type, self.media.values()))
        ):
            for name, (kinds, expected) in _STEP_FIELDS.items():
                value = getattr(self, name)
                fits = isinstance(value, kinds)
                if fits and name in _STEP_ITEMS:
                    items = value.values() if isinstance(value, Mapping) else value
                    fits = all(isinstance(item, _STEP_ITEMS[name]) for item in items)
                if not fits:
                    raise _other_type(f"the step {self.sample_id!r:.80}", name, self, expected)
        if self.action is not None and (self.action.start or self.action.end):
            _check_places(self.sample_id, self.action)
        if not self.episode:
            names = filter(None, (self.tags.get("app"), self.episode_id))
            object.__setattr__(self, "episode", "/".join(names))
        if not self.group:
            object.__setattr__(self, "group", self.episode)


_FIELDS_OF_STEP: Final = frozenset(field.name for field in fields(Step))
_NUMBERS: Final = frozenset[type]({int})
_TEXTS: Final = frozenset[type]({str})
_MEDIA: Final = frozenset[type]({MediaRef, NoneType})
_STEP_FIELDS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "sample_id": ((str,), "a text"),
    "episode_id": ((str,), "a text"),
    "step_index": ((int,), "a whole number, from 0"),
    "num_steps": ((int,), "a whole number, from 1"),
    "instruction": ((str,), "a text"),
    "screen": ((tuple, list), "width and height in pixels, (0, 0) where nobody knows them"),
    "media": ((dict, Mapping), "a mapping from roles to MediaRef or None"),
    "history": ((tuple, list), "a tuple of Action or None, one for each earlier step"),
    "history_screens": ((tuple, list), "a tuple of the earlier screens, (width, height) each"),
    "action": ((Action, NoneType), "an Action or None"),
    "tags": ((dict, Mapping), "a mapping from names to texts"),
    "source": ((dict, Mapping), "the untouched row, a mapping"),
}
"""What may be handed over in each field, and how a message says it."""
_STEP_ITEMS: Final[Mapping[str, tuple[type, ...]]] = {
    "screen": (int,),
    "media": (MediaRef, NoneType),
    "tags": (str,),
}


_FARTHEST: Final = 10**300
"""Larger whole numbers cannot be scaled or stored as floats."""


def _check_places(sample_id: str, action: Action) -> None:
    for region in (*action.start, *action.end):
        for number in msgspec.structs.astuple(region)[:-1]:
            if type(number) is int and not -_FARTHEST <= number <= _FARTHEST:
                raise ValueError(
                    f"the step {sample_id!r:.80} has a place with a whole number beyond all "
                    "floats: expected a place on a screen"
                )


def _other_type(owner: str, name: str, value: object, expected: str) -> TypeError:
    return TypeError(f"{owner} has the {name} {getattr(value, name)!r:.80}: expected {expected}")


class IndexedSteps(Sequence[Step], ABC):
    """Steps that are partly on disk; ids and episodes are available without unpacking any."""

    @property
    @abstractmethod
    def sample_ids(self) -> Sequence[str]:
        """The sample ids, in the order of the steps."""

    @property
    @abstractmethod
    def repeated(self) -> Sequence[int]:
        """Indices of the steps whose sample id an earlier step has."""

    @abstractmethod
    def by_id(self, sample_id: str) -> Step:
        """Return the step with an id; a KeyError if there is none."""

    @abstractmethod
    def without(self, numbers: Sequence[int]) -> IndexedSteps:
        """Return all steps but those at the given indices."""


@dataclass(frozen=True, slots=True)
class LoadedDataset:
    """The result of a loader; every step has a sample id of its own.

    A step whose id an earlier step has is left out, with a finding, and counted in `skipped`,
    wherever the steps come from.

    Attributes:
        task: the benchmark's name.
        root: the data as the user named it.
        steps: in the order of the source.
        findings: everything doubtful, skipped or missing, in the order met.
        skipped: rows that became no step (each has a finding).
        fingerprint: SHA-256 over the annotation files; changes with every edit.
        row_ids: the sample id of every row in the source's own order, None where it has none; other
            harnesses number their samples by it.
        tags: names of the tags that the steps of this benchmark may have.
        roles: the media that its steps may have, and their kinds.
        media_overrides: how the steps' media differ from the data's, as JSON values for
            `run.json`; empty where they are the data's own.
        episode_rows: the untouched rows of episodes, by `Step.episode`, where the data have any
            beside those of steps.
    """

    task: str
    root: Path
    steps: Sequence[Step]
    findings: Sequence[Finding]
    skipped: int
    fingerprint: str
    row_ids: Sequence[str | None]
    tags: Sequence[str]
    roles: Mapping[str, Modality]
    media_overrides: Mapping[str, Any] = field(default_factory=dict)
    episode_rows: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        steps, repeated = _split_repeats(self.steps)
        if not repeated:
            return
        again, met = set(repeated), set[str]()
        rows: list[str | None] = []
        for name in self.row_ids:  # of several rows with one id the first has become a step
            rows.append(None if name in met else name)
            if name in again:
                met.add(name)
        changed: Mapping[str, Any] = {
            "steps": steps,
            "findings": [*self.findings, *map(_repeated_id, repeated)],
            "skipped": self.skipped + len(repeated),
            "row_ids": rows,
        }
        for name, value in changed.items():
            object.__setattr__(self, name, value)


def _split_repeats(steps: Sequence[Step]) -> tuple[Sequence[Step], list[str]]:
    if isinstance(steps, IndexedSteps):
        numbers = steps.repeated
        return steps.without(numbers), [steps.sample_ids[number] for number in numbers]
    kept: dict[str, Step] = {}
    repeated: list[str] = []
    for step in steps:
        if step.sample_id in kept:
            repeated.append(step.sample_id)
        else:
            kept[step.sample_id] = step
    return list(kept.values()), repeated


def _repeated_id(sample_id: str) -> Finding:
    return Finding(
        "repeated-id",
        "error",
        sample_id,
        "an earlier step of the data has the same sample id",
        "a sample id of its own for every step",
        "name the rows apart; the first of them is used, and the others are skipped until then",
        (sample_id,),
    )


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions of a task about the data of another task.

    Attributes:
        source: a step for each question, in the order of the data. Its `episode` is that of the
            steps that it is about.
        unasked: reasons why questions are not asked, by the sample id that each would have.
    """

    source: LoadedDataset
    unasked: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Annotation:
    """What a task's answers say about the data of another task.

    Attributes:
        of: "action", the action of a step, as `Asking.history_action` returns it; "success",
            whether an episode fulfilled its instruction: the value `said` of the default profile.
        known_from: the task whose data have the truth, to measure a model on.
        expected: requirements for data to ask about.
        remedy: the fix for data without them.
        truth: the way to add the truth to data without it, so that a model can be measured.
        caveat: why a measurement on data of `known_from` is too good; empty if it is not.
    """

    of: Literal["action", "success"]
    _: KW_ONLY
    known_from: str
    expected: str
    remedy: str
    truth: str
    caveat: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One item of a message: a text, or a medium with the role it has in the step.

    Attributes:
        kind: "text" or the modality. "tool" declares a provider's own tool, in a message of the
            system, and "call" is what a model called of it; only models that have the tool take
            them (`omnidata.adapters.media_budget.Capabilities.tools`).
        text: the text; empty for media. Of a tool and of a call a JSON object.
        media: the medium; None for text.
        role: the medium's role in the step, e.g. "screenshot" or "voice".
        about: what the receipt is to say of a text that stands for something of the step, as JSON
            values: its "role", how much of it is shown; empty for any other text.
        size: width and height in pixels in which a picture is sent, where the numbers of answers
            are those of a picture of that size; None = as the model's own settings say.
    """

    kind: Literal["text", "image", "video", "audio", "tool", "call"]
    text: str = ""
    media: MediaRef | None = None
    role: str = ""
    about: Mapping[str, Any] = field(default_factory=dict, hash=False)
    size: Screen | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation; its parts are in the order in which the model reads them."""

    role: Literal["system", "user", "assistant"]
    parts: tuple[Part, ...]


Conversation = tuple[Message, ...]
"""Messages in order. A last one of the assistant's is the beginning of the answer: the model goes
on where it ends."""


@dataclass(frozen=True, slots=True)
class Request:
    """A step, its prompt and the generation settings."""

    sample_id: str
    conversation: Conversation


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request that is ready for its model: media read, decoded and rendered.

    Attributes:
        request: what is asked.
        payload: what the adapter hands to its model; only the adapter looks into it.
        size: bytes that the payload holds in memory.
        receipt: what the model will really get, part by part (see `Completion`).
        key: SHA-256, in hexadecimal, of all that the model will see but the generation settings;
            equal keys ask the same. Empty where answers must not be kept.
        length: about how many tokens; a model that takes batches gets steps of like length.
    """

    request: Request
    payload: Any = None
    size: int = 0
    receipt: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    length: int = 0


MOST_TOKENS: Final = 10**9
"""Tokens of one answer, at most: a larger count is ignored as implausible."""


def is_token_count(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a possible number of tokens of one answer.

    Examples:
        >>> is_token_count(30), is_token_count(2**53 - 1), is_token_count(-1), is_token_count("30")
        (True, False, False, False)
    """
    return is_number(value) and 0 <= value <= MOST_TOKENS


Seconds = Annotated[float, msgspec.Meta(ge=-1e18, le=1e18)]
"""A duration in seconds, which is finite: JSON has no infinity."""


class Completion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to one step, or the reason why there is none.

    Attributes:
        delivery: "ok", or the way in which no full answer came.
        text: the model's text, untouched; empty where there was none.
        error: why there is no answer; empty for "ok".
        usage: token counts as the API names them.
        latency_s: seconds from the request to the last byte.
        attempts: how often the request was sent.
        receipt: what the model really got: "parts", one per medium (role, kind, final size in
            pixels, frames and their times, seconds of audio, or "dropped" and why), "degraded" if
            one was dropped, and "tokens" by modality where the model tells; a text that stands for
            something of the step has a line too (`Part.about`).
    """

    delivery: Delivery = "ok"
    text: str = ""
    error: str = ""
    usage: dict[str, Any] = msgspec.field(default_factory=dict)
    latency_s: Seconds = 0.0
    attempts: int = 1
    receipt: dict[str, Any] = msgspec.field(default_factory=dict)


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """A profile's judgement of one answer.

    Attributes:
        outcome: "ok" when the text was read as an action, else why not.
        values: the profile's values, in the order of `Profile.values`; None = not judged.
        parsed: the action as read, as a JSON object; None when nothing could be read.
        reason: why the text could not be read, or that it is so long that its beginning alone was;
            empty for any other that is "ok".
    """

    outcome: Outcome
    values: tuple[float | bool | None, ...]
    parsed: dict[str, Any] | None = None
    reason: str = ""


Mark = Literal["right", "near", "partly", "wrong", "unread", "none", "unjudged"]
"""How a step came out, in a word."""
UNREAD: Final = "(unparsed)"
READ: Final = "(read)"
"""The label of an answer that the profile read without saying what it says."""
NOTHING: Final = "(no answer)"

Cause = Literal[
    "wrong_type",
    "acted_early",
    "waited_too_long",
    "stopped_early",
    "went_on",
    "wrong_element",
    "near_miss",
    "other_unit",
    "axes_swapped",
    "wrong_direction",
    "wrong_text",
    "near_text",
    "wrong_key",
    "format",
    "truncated",
    "refused",
    "no_answer",
    "rule",
]
"""Why an answer is not right, in a word that all benchmarks share; see `CAUSES`."""
CAUSES: Final[Mapping[Cause, str]] = {
    "wrong_type": "wrong action type",
    "acted_early": "acted early: the expert waits",
    "waited_too_long": "waited too long: the expert acts",
    "stopped_early": "stopped before the end",
    "went_on": "went on after the end",
    "wrong_element": "wrong element",
    "near_miss": "near miss",
    "other_unit": "right in another unit",
    "axes_swapped": "right with x and y swapped",
    "wrong_direction": "wrong direction",
    "wrong_text": "wrong text",
    "near_text": "nearly the right text",
    "wrong_key": "wrong key",
    "format": "unreadable answer",
    "truncated": "cut off before its end",
    "refused": "refused to answer",
    "no_answer": "no answer",
    "rule": "other mistake",
}
"""The causes as pages call them, the more telling first. Thresholds stand in
`omnidata.tasks.diagnosis.diagnose`."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The reason why an answer is wrong.

    Attributes:
        cause: the first thing in which it differs from what is right.
        reading: of `other_unit` and `axes_swapped`, how the answer's place must be read to be
            right: the unit, "y before x", or both.
        distance: how far from right the answer is. Of `near_miss` and `wrong_element` from the
            edge of the nearest target box, in diagonals of that box; None where no target is a box.
            Of `near_text` and `wrong_text` in edits of characters, case and white space aside.
    """

    cause: Cause
    reading: str = ""
    distance: float | None = None

    def __post_init__(self) -> None:
        if self.cause not in CAUSES:
            raise _other_type("the diagnosis", "cause", self, f"one of {', '.join(CAUSES)}")


@dataclass(frozen=True, slots=True)
class Overlays:
    """Boxes and points to draw on one picture of a step, in its pixels.

    Attributes:
        target: the right places, or where a swipe or drag must begin; several are alternatives, or
            of several actions.
        target_end: where a swipe or drag must end.
        answer: where the answer points, or where its swipe begins; None if nowhere.
        answer_end: where its swipe ends.
    """

    target: tuple[Region, ...] = ()
    target_end: tuple[Region, ...] = ()
    answer: Point | None = None
    answer_end: Point | None = None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A step's target in words and pictures, and its answer and verdict if there are any.

    Attributes:
        mark: how the step came out; None without a verdict.
        sentence: why, without a full stop; empty without a verdict.
        target_label: what is right, in a word that many steps share; empty where there is none.
        answer_label: what was answered, in such a word, or `UNREAD`, `READ` or `NOTHING`; empty
            without a verdict, and where answers have no labels.
        overlays: what can be drawn, by the role of the picture.
        noun: what the labels are.
        frames: what is framed on pictures.
        diagnosis: what is wrong; None without a verdict, where the answer is right, and where it
            cannot be judged.
        target_labels: of everything that is right, in order, where several things are done in a
            step, for counts; empty where `target_label` may say it all.
    """

    mark: Mark | None = None
    sentence: str = ""
    target_label: str = ""
    answer_label: str = ""
    overlays: Mapping[str, Overlays] = field(default_factory=dict)
    noun: str = "primitive"
    frames: str = "target"
    diagnosis: Diagnosis | None = None
    target_labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Remote:
    """The place from which `omnidata fetch` downloads a publication.

    Attributes:
        place: "hf://datasets/ORG/NAME" on the Hub, or "gs://BUCKET/FOLDER" in a public bucket.
        revision: of a dataset on the Hub: a commit, a tag or a branch. One that can move is
            resolved when the files are fetched, and the commit is recorded.
        files: patterns of the files that are needed, as `fnmatch` has them ("*" also takes "/");
            all if empty.
        archives: patterns of those that are unpacked.
        bytes: of the files, as their publisher says; 0 if unknown.
        steps: that the files hold, as their publisher says; 0 if unknown.
        sha256: of files by their path, where it is published apart from them.
        gated: whether a licence has to be accepted in a browser first; None if unknown.
        note: which of several places it is and why, and which of these facts are unverified.
    """

    place: str
    revision: str = "main"
    _: KW_ONLY
    files: Sequence[str] = ()
    archives: Sequence[str] = ()
    bytes: int = 0
    steps: int = 0
    sha256: Mapping[str, str] = field(default_factory=dict)
    gated: bool | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Publication:
    """A place where data of a benchmark are published, with licence and paper.

    Attributes:
        name: of the dataset.
        url: where it is.
        licence: of the data by their publisher, as the Hub names it, e.g. "cc-by-4.0"; empty if
            none is stated.
        where: tags of its steps, if a benchmark reads several datasets.
        remote: the place for downloads by a program; None if only a person can download.
        by_hand: instructions for a person, if no program can download.
        paper: the paper to cite, by its number on arXiv.
    """

    name: str
    url: str
    licence: str = ""
    where: Mapping[str, str] = field(default_factory=dict)
    remote: Remote | None = None
    by_hand: str = ""
    paper: str = ""


@dataclass(frozen=True, slots=True)
class TaskDiagram:
    """A graph of subtasks, as the page of a step draws it.

    Attributes:
        graph: the subtasks, and what waits for what.
        labels: node -> what is done there; the others are called by their ids.
        groups: node -> what its colour says, e.g. the application; the others have none.
    """

    graph: Graph
    labels: Mapping[str, str]
    groups: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Target:
    """The right answer to a step, in the form that a model learns.

    Attributes:
        text: the answer, in the form that the prompt asks for.
        template: the same with `PLACE` for each point in it.
        points: those points in their order, x and y in the unit of the answer.

    Raises:
        TypeError: a field is of another type.
    """

    text: str
    template: str
    points: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        for name, value in (("text", self.text), ("template", self.template)):
            if not isinstance(value, str):
                raise _other_type("the target", name, self, "a text")
        pairs = self.points if isinstance(self.points, tuple | list) else [None]
        if not all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
            raise _other_type("the target", "points", self, "pairs, as ((12, 7),)")


@dataclass(slots=True)
class VerdictColumns:
    """Verdicts as flat columns, aligned with a sequence of steps.

    Attributes:
        outcomes: uint8 (N,), index into `OUTCOMES`.
        values: name -> float64 (N,), which may be made when it is asked for; NaN = not judged.
        whole: bool (N,), False for steps of an episode that `--limit`, `--exclude` cut into.
    """

    outcomes: npt.NDArray[np.uint8]
    values: Mapping[str, npt.NDArray[np.float64]]
    whole: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class GenerationParams:
    """Generation settings; the defaults are the paper's (OmniGUI, Table 6).

    Attributes:
        temperature: 0 is greedy; None leaves it to the server.
        max_new_tokens: the answer's limit; None leaves it to the server.
        seed: for servers that take one; None sends none.
        stop: texts at which the answer ends, which are no part of it, beside the model's own end.
        special_tokens: whether special tokens of the answer are text of it, but for those that end
            a turn; else they are left out.
    """

    temperature: float | None = 0.0
    max_new_tokens: int | None = 4096
    seed: int | None = None
    stop: tuple[str, ...] = ()
    special_tokens: bool = False


class Adapter(Protocol):
    """A model: conversations in, completions out. `omnidata.adapters.Model` has the defaults."""

    @property
    def name(self) -> str:
        """The SPEC of the model, for `run.json`."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Everything that answers depend on, as JSON values for `run.json`; never a key."""

    @property
    def params(self) -> GenerationParams:
        """Default generation settings."""

    @property
    def accepts(self) -> Collection[Modality] | None:
        """Modalities that the model takes; None if it reads no prompt, like baselines."""

    @property
    def max_batch(self) -> int:
        """Largest number of requests in one call of `generate`."""

    @property
    def concurrency(self) -> int:
        """Default number of concurrent calls of `generate`."""

    @property
    def timeout_s(self) -> float | None:
        """Default timeout of a call in seconds; None for no timeout."""

    def unsupported_reason(self, conversation: Conversation) -> str:
        """Return why the model cannot take the whole conversation; empty if it can."""

    def prepare(self, request: Request) -> Prepared:
        """Prepare a request. Called in several threads at once.

        Raises:
            MediaError: a medium cannot be read.
        """

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> Sequence[Completion]:
        """Answer a batch, in order, in one attempt. Always called in the same event loop.

        Raises:
            CallError: no answer came.
        """

    async def close(self) -> None:
        """Close connections. Called once, in the event loop of `generate`."""

    def run_metadata(self) -> Mapping[str, Any]:
        """Return facts about the finished run, as JSON values for `run.json`."""
