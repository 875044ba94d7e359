"""Base classes of training formats, and the forms of prompts that several trainers share."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

import msgspec

from omnidata.errors import DataError, UsageError
from omnidata.types import Modality, Target

if TYPE_CHECKING:
    from omnidata.adapters.render import Turn

Objects = Literal["norm1", "real"]
Role = Literal["system", "user", "assistant"]
Row = dict[str, Any]

PLACEHOLDERS: Mapping[Modality, str] = {"image": "<image>", "video": "<video>", "audio": "<audio>"}
ALL = frozenset(PLACEHOLDERS)

_TAGS: Mapping[str, Modality] = {tag: kind for kind, tag in PLACEHOLDERS.items()}
_TAG = re.compile(f"({'|'.join(_TAGS)})")
_NO_ANSWER = Target("", "")
_RECEIPT = ("role", "width", "height", "original", "pixels")


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, or a media file of the export.

    Attributes:
        kind: "text" or the modality; frames of a clip are "image".
        text: the text; empty for media.
        name: the file, relative to the export; empty for text.
        role: the medium's role in the step.
        size: width and height of a picture in pixels.
    """

    kind: Literal["text", "image", "video", "audio"]
    text: str = ""
    name: str = ""
    role: str = ""
    size: tuple[int, int] = field(default=(0, 0))


Turns: TypeAlias = "Sequence[Turn[Piece]]"


@dataclass(frozen=True, slots=True)
class Content:
    """The content of a row, in no format yet.

    Attributes:
        task: name of the benchmark.
        sample_id: of the step.
        turns: the prompt.
        receipt: of the prompt, as in `Completion.receipt`.
        kinds: modalities that any row of the export has; each row has a list of each.
        root: folder of the finished export.
        begun: beginning of the answer that the prompt has.
        target: the whole answer.
    """

    task: str
    sample_id: str
    turns: Turns
    receipt: Mapping[str, Any]
    kinds: Collection[Modality]
    root: Path
    begun: str = ""
    target: Target = _NO_ANSWER

    def names(self, kind: Modality) -> list[str]:
        """Return the files of a modality, relative to the export, in order."""
        return [piece.name for turn in self.turns for piece in turn.parts if piece.kind == kind]

    def lists(self) -> dict[str, list[str]]:
        """Return the columns `images`, `videos`, `audios`, as far as the export has them."""
        return {f"{kind}s": self.names(kind) for kind in PLACEHOLDERS if kind in self.kinds}

    def texts(self) -> list[tuple[str, str]]:
        """Return the role and text of each turn, with placeholders for media.

        Consecutive turns of one role are one, with a line break, as trainers want them to
        alternate.
        """
        found: list[tuple[str, str]] = []
        for turn in self.turns:
            text = "".join(
                piece.text if piece.kind == "text" else PLACEHOLDERS[piece.kind]
                for piece in turn.parts
            )
            if found and found[-1][0] == turn.role:
                text = f"{found.pop()[1]}\n{text}"
            found.append((turn.role, text))
        return found

    def messages(self) -> list[dict[str, str]]:
        """Return the prompt as messages whose texts have placeholders for media."""
        return [{"role": role, "content": text} for role, text in self.texts()]


def screenshot_size(receipt: Mapping[str, Any]) -> str:
    """Return the part of a receipt that rewards need, as JSON: the size of the screenshot."""
    lines = [
        {name: line[name] for name in _RECEIPT if name in line}
        for line in receipt.get("parts", ())
        if line.get("role") == "screenshot"
    ]
    return json.dumps({"parts": lines}, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class Written:
    """The content of a row that was read back.

    Attributes:
        turns: of the prompt: the role, and in order its texts, or the modality of the next medium.
        answer: the text.
        lists: names of the media by modality, in order.
    """

    turns: Sequence[tuple[Role, Sequence[tuple[Literal["text"] | Modality, str]]]]
    answer: str
    lists: Mapping[Modality, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Log:
    """The columns in which a trainer writes its predictions, for `omnidata score --from`.

    Attributes:
        trainer: the name after `--from`.
        answer: the column of the model's text.
        label: those of the right answer, as the row of the export has it, by version.
        sample_id: that of the row's id; empty where rows are paired by place.
    """

    trainer: str
    answer: str
    label: tuple[str, ...] = ()
    sample_id: str = ""


class Format:
    """Base class of the three kinds of formats.

    Attributes:
        name: after `--format`.
        title: for the help; empty if the name says it.
        holds: modalities that a row can have as files.
        suffix: of the files of rows.
        log: columns of the trainer's predictions; None if `score` does not read them.
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    holds: frozenset[Modality] = ALL
    suffix: ClassVar[str] = ".jsonl"
    log: ClassVar[Log | None] = None

    @property
    def answers(self) -> AnswerFormat:
        """The format with answers whose texts and media are those of these rows."""
        raise NotImplementedError

    def files(self, task: str, splits: Mapping[str, Collection[str]]) -> Mapping[str, Any]:
        """Return the further files of an export by name: texts, or values to write as JSON.

        The names do not depend on the arguments.

        Args:
            task: the benchmark.
            splits: by file of rows, the columns that are not empty in it.
        """
        return {}

    def with_objects(self, unit: Objects) -> Format:
        """Return the format with the coordinates of answers in a column of their own.

        Raises:
            UsageError: the trainer has no such column.
        """
        raise UsageError(
            f"{self.name} cannot store coordinates apart from answers",
            where=f"--objects {unit}",
            expected="--format swift as well",
        )


class AnswerFormat(Format):
    """Rows with a prompt and the right answer, for supervised training."""

    @property
    def answers(self) -> AnswerFormat:
        return self

    def row(self, content: Content) -> Row:
        """Return a step as a row."""
        raise NotImplementedError

    def texts(self, row: Row) -> list[str]:
        """Return the texts of a row as the trainer tokenizes them."""
        raise NotImplementedError

    def placeholders(self, row: Row) -> Mapping[str, Sequence[Any]]:
        """Return for each placeholder the list that it refers to; the texts must have as many."""
        raise NotImplementedError

    def read(self, row: Row) -> Written:
        """Read a row back.

        Raises:
            DataError, msgspec.ValidationError: it is no such row.
        """
        raise NotImplementedError

    def answer(self, target: Target) -> str:
        """Return the answer that the trainer makes of a target."""
        return target.text


class PromptFormat(Format):
    """Rows with a prompt and the id of its step, for a reward; never the answer.

    Attributes:
        module: name of the Python file from which the trainer loads the reward; empty for none.
        usage: the trainer and the option that names this file, for its head.
        code: the rest of the file; it reads `reward.json` beside it, and holds no data.
    """

    module: ClassVar[str] = ""
    usage: ClassVar[str] = ""
    code: ClassVar[str] = ""

    @property
    def answers(self) -> AnswerFormat:
        return _MESSAGES

    def files(self, task: str, splits: Mapping[str, Collection[str]]) -> Mapping[str, Any]:
        head = f'"""The reward of this export, for {self.usage}."""\n\n'
        return {self.module: head + self.code} if self.module else {}

    def row(self, content: Content) -> Row:
        """Return a step as a row.

        Raises:
            UsageError: the trainer does not support the prompt.
        """
        raise NotImplementedError


class PreferenceFormat(Format):
    """Rows with right and wrong answers of models.

    Attributes:
        supervised: the format with answers from whose rows these are made.
        label: column that says whether the row's single answer is right; empty for rows of pairs.
    """

    supervised: ClassVar[AnswerFormat]
    label: ClassVar[str] = ""

    @property
    def answers(self) -> AnswerFormat:
        return self.supervised

    @property
    def holds(self) -> frozenset[Modality]:  # type: ignore[override]  # a class variable there
        return self.supervised.holds

    def pair(self, chosen: Row, rejected: Row) -> Row:
        """Return the row of a pair.

        Args:
            chosen: the row for supervised training with the right answer; it may be changed.
            rejected: the same with the wrong answer.
        """
        raise NotImplementedError


# Messages: what LLaMA-Factory, ms-swift and Qwen-VL read, each with its own names.


class Messages(AnswerFormat):
    """Rows of messages with placeholders for media, and a list of files for each modality.

    Attributes:
        turns, role, content: the names of the column and of the keys of a message.
        authors: the names of the roles.
        columns: the names of the lists of media.
        has_empty: whether a row has the lists of all modalities of the export, also empty ones.

    Consecutive turns of authors with one name are one, with a blank line.
    """

    turns: ClassVar[str] = "messages"
    role: ClassVar[str] = "role"
    content: ClassVar[str] = "content"
    authors: ClassVar[Mapping[Role, str]] = {
        "system": "system",
        "user": "user",
        "assistant": "assistant",
    }
    columns: ClassVar[Mapping[Modality, str]] = {kind: f"{kind}s" for kind in PLACEHOLDERS}
    has_empty: ClassVar[bool] = True

    def row(self, content: Content) -> Row:
        turns: list[tuple[str, str]] = []
        for role, text in (*content.texts(), ("assistant", content.target.text)):
            author = self.authors[role]  # type: ignore[index]  # a `Role`
            if turns and turns[-1][0] == author:
                text = f"{turns.pop()[1]}\n\n{text}"
            turns.append((author, text))
        lists = {
            column: content.names(kind)
            for kind, column in self.columns.items()
            if kind in content.kinds
        }
        return {
            self.turns: [{self.role: author, self.content: text} for author, text in turns],
            **{name: names for name, names in lists.items() if names or self.has_empty},
        }

    def texts(self, row: Row) -> list[str]:
        return [turn[self.content] for turn in row[self.turns]]

    def placeholders(self, row: Row) -> dict[str, Sequence[Any]]:
        return {tag: row.get(self.columns.get(kind, ""), ()) for kind, tag in PLACEHOLDERS.items()}

    def read(self, row: Row) -> Written:
        form: Any = type(self)
        found = msgspec.convert(row, _schema(form))
        *asked, said = found.turns
        if said.role != self.authors["assistant"]:
            raise unreadable("the last message is not the assistant's")
        if any(one.role == other.role for one, other in zip(asked, found.turns[1:], strict=True)):
            raise unreadable("the roles of the messages do not alternate")
        if row.get("objects") is not None:
            raise unreadable(
                "the places of the answer stand apart, for ms-swift to write them",
                "export again without --objects",
            )
        if tag := _TAG.search(said.content):
            raise unreadable(f"the answer holds {tag[0]}, which stands for a medium")
        roles = {author: role for role, author in self.authors.items()}
        turns = [(roles[turn.role], list(_split(turn.content))) for turn in asked]
        return Written(turns, said.content, {kind: getattr(found, kind) for kind in self.columns})


def _split(text: str) -> Iterator[tuple[Literal["text"] | Modality, str]]:
    for piece in _TAG.split(text):
        if piece in _TAGS:
            yield _TAGS[piece], ""
        elif piece:
            yield "text", piece


@cache
def _schema(form: Any) -> Any:
    turn = msgspec.defstruct(
        "Message",
        [("role", Literal[tuple(form.authors.values())]), ("content", str)],
        rename={"role": form.role, "content": form.content},
    )
    # mypy knows no types that are made while the program runs.
    turns: Any = Annotated[list[turn], msgspec.Meta(min_length=2)]  # type: ignore[valid-type]  # see above
    lists: list[Any] = [(kind, list[str], []) for kind in form.columns]
    return msgspec.defstruct(
        "Messages",
        [("turns", turns), *lists],
        rename={"turns": form.turns, **dict(form.columns.items())},
    )


_MESSAGES = Messages()


def unreadable(what: str, remedy: str = "export again: `omnidata export`") -> DataError:
    """Return the error for a row that `omnidata export` did not write."""
    expected = "a row as `omnidata export` of this version writes it"
    return DataError(what, expected=expected, remedy=remedy)
