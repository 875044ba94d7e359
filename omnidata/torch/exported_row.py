"""One row of an export as an example, in the form of each of the four trainers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import msgspec

from omnidata.errors import DataError
from omnidata.torch.example import Example
from omnidata.types import MediaRef, Message, Modality, Part

FormatName = Literal["trl", "llamafactory", "swift", "qwen-vl"]
Role = Literal["system", "user", "assistant"]

_TAGS: Mapping[str, Modality] = {"<image>": "image", "<video>": "video", "<audio>": "audio"}
_TAG = re.compile(f"({'|'.join(_TAGS)})")
_NAME = re.compile(r"media/([0-9a-f]{32})\.[0-9a-z]{2,4}")
_SHOWN = 100
"""Characters that an error shows of a name."""

Piece = tuple[Literal["text", "image", "video", "audio"], str]
"""A text, or a modality of which the list has the next medium."""


@dataclass(frozen=True, slots=True)
class Written:
    """What all formats hold.

    Attributes:
        turns: of the prompt: the role, and texts and media in order.
        answer: the text.
        lists: names of media by modality, in order.
    """

    turns: Sequence[tuple[Role, Sequence[Piece]]]
    answer: str
    lists: Mapping[Modality, Sequence[str]]


class _Row(Protocol):
    sample_id: str
    roles: list[str]

    def written(self) -> Written: ...


class _Part(msgspec.Struct, frozen=True):
    type: Literal["text", "image"]
    text: str = ""


class _Turn(msgspec.Struct, frozen=True):
    role: Role
    content: list[_Part]


class _Trl(msgspec.Struct, frozen=True):
    sample_id: str
    prompt: list[_Turn]
    completion: Annotated[list[_Turn], msgspec.Meta(min_length=1, max_length=1)]
    images: list[str]
    roles: list[str]

    def written(self) -> Written:
        turns = [(turn.role, [(p.type, p.text) for p in turn.content]) for turn in self.prompt]
        said = self.completion[0]
        if said.role != "assistant" or any(part.type != "text" for part in said.content):
            raise _wrong("the completion is no text of the assistant's")
        return Written(turns, "".join(part.text for part in said.content), {"image": self.images})


class _Message(msgspec.Struct, frozen=True):
    role: Role
    content: str


class _Tagged(msgspec.Struct, frozen=True):
    sample_id: str
    messages: Annotated[list[_Message], msgspec.Meta(min_length=2)]
    roles: list[str]
    images: list[str] = []
    videos: list[str] = []
    audios: list[str] = []
    objects: Any = None

    def written(self) -> Written:
        *asked, said = self.messages
        if said.role != "assistant":
            raise _wrong("the last message is not the assistant's")
        if self.objects is not None:
            raise _wrong(
                "the places of the answer stand apart, for ms-swift to write them",
                "export again without --objects",
            )
        turns = [(turn.role, list(_pieces(turn.content))) for turn in asked]
        lists: dict[Modality, list[str]] = {
            "image": self.images,
            "video": self.videos,
            "audio": self.audios,
        }
        return Written(turns, _plain(said.content), lists)


class _Said(msgspec.Struct, frozen=True, rename={"author": "from"}):
    author: Literal["human", "gpt"]
    value: str


class _Qwen(msgspec.Struct, frozen=True):
    sample_id: str
    conversations: Annotated[list[_Said], msgspec.Meta(min_length=2, max_length=2)]
    roles: list[str]
    image: list[str] = []
    video: list[str] = []

    def written(self) -> Written:
        asked, said = self.conversations
        if (asked.author, said.author) != ("human", "gpt"):
            raise _wrong("the turns are not one human's and one gpt's")
        turns: list[tuple[Role, list[Piece]]] = [("user", list(_pieces(asked.value)))]
        return Written(turns, _plain(said.value), {"image": self.image, "video": self.video})


_DECODERS: Mapping[FormatName, msgspec.json.Decoder[Any]] = {
    "trl": msgspec.json.Decoder(_Trl),
    "llamafactory": msgspec.json.Decoder(_Tagged),
    "swift": msgspec.json.Decoder(_Tagged),
    "qwen-vl": msgspec.json.Decoder(_Qwen),
}


def read(line: bytes, form: FormatName, root: Path) -> Example:
    """A line of an export.

    Args:
        line: JSON in UTF-8.
        form: the trainer.
        root: the export, in which the media lie.

    Returns:
        The example; media are not looked for.

    Raises:
        DataError: it is no such row. The place is left to the caller.
    """
    try:
        row: _Row = _DECODERS[form].decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _wrong(f"the row cannot be read ({error})") from None
    written = row.written()
    if differs := _difference(written, len(row.roles)):
        raise _wrong(differs)
    names = {kind: iter(listed) for kind, listed in written.lists.items()}
    roles = iter(row.roles)
    prompt = tuple(
        Message(
            role,
            tuple(
                Part("text", text)
                if kind == "text"
                else Part(kind, media=_ref(kind, next(names[kind]), root), role=next(roles))
                for kind, text in pieces
            ),
        )
        for role, pieces in written.turns
    )
    return Example(row.sample_id, prompt, written.answer, labelled=False)


def _difference(written: Written, roles: int) -> str:
    """Where placeholders, media and roles differ in number; empty where each has its own."""
    kinds = [kind for _, pieces in written.turns for kind, _ in pieces]
    found = [
        f"{kinds.count(kind)} {tag} in the texts, {len(written.lists.get(kind, ()))} in the list"
        for tag, kind in _TAGS.items()
        if kinds.count(kind) != len(written.lists.get(kind, ()))
    ]
    media = sum(map(len, written.lists.values()))
    if not found and roles != media:
        found.append(f"{media} media, {roles} roles")
    return "; ".join(found)


def _pieces(text: str) -> Iterator[Piece]:
    for piece in _TAG.split(text):
        if piece in _TAGS:
            yield _TAGS[piece], ""
        elif piece:
            yield "text", piece


def _plain(answer: str) -> str:
    if tag := _TAG.search(answer):
        raise _wrong(f"the answer holds {tag[0]}, which stands for a medium")
    return answer


def _ref(kind: Modality, name: str, root: Path) -> MediaRef:
    named = _NAME.fullmatch(name)
    if named is None:
        raise _wrong(f"{name[:_SHOWN]!r} is no medium of an export")
    return MediaRef(kind, root, name, sha256=named[1])


def _wrong(what: str, remedy: str = "export again: `omnidata export`") -> DataError:
    expected = "a row as `omnidata export` of this version writes it"
    return DataError(what, expected=expected, remedy=remedy)
