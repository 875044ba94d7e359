"""The rows of four trainers, and what each of them can hold.

Sources: TRL 1.16 (dataset formats, `SFTTrainer`), LLaMA-Factory 0.9.5 (`data/README`, `converter`,
`mm_plugin`), ms-swift 4.6 (custom datasets, `RowPreprocessor`, `Template`), Qwen's qwen-vl-finetune
(`README`, `data_processor`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

import msgspec

from omnidata import media
from omnidata.actions import Screen
from omnidata.adapters.hf.options import CONTROLS, TOKENS
from omnidata.adapters.media_budget import ALL
from omnidata.adapters.render import Turn
from omnidata.errors import DataError, UsageError
from omnidata.tasks.asking import Asking
from omnidata.tasks.coordinates import answer_space, sent_size
from omnidata.types import PLACE, Conversation, MediaRef, Message, Modality, Part, Step, Target

FormatName = Literal["trl", "llamafactory", "swift", "qwen-vl"]
Objects = Literal["norm1", "real"]
Row = dict[str, Any]
Role = Literal["system", "user", "assistant"]

PLACEHOLDERS: Mapping[Modality, str] = {"image": "<image>", "video": "<video>", "audio": "<audio>"}
HOLDS: Mapping[FormatName, frozenset[Modality]] = {
    "trl": frozenset({"image"}),
    "llamafactory": ALL,
    "swift": ALL,
    "qwen-vl": frozenset({"image", "video"}),
}
"""The modalities that a row may have as files."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A text, or a medium that lies in the export.

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


Turns = Sequence[Turn[Piece]]
"""A prompt as it is written."""

ReadPiece = tuple[Literal["text", "image", "video", "audio"], str]
"""A text, or the modality of the list's next medium."""


# What a model is trained on: a prompt and the answer behind it.


@dataclass(frozen=True, slots=True)
class Example:
    """One of them.

    Attributes:
        sample_id: of the step.
        prompt: as the evaluation has it.
        answer: the right one.
        size: width and height in pixels of the current screenshot as the answer takes it to be
            shown; "own": those that it has; None where the answer holds no pixels.
        labelled: whether a text that belongs to a medium has its role, so that one goes with the
            other.
        special_tokens: whether the answer is made of special tokens.
    """

    sample_id: str
    prompt: Conversation
    answer: str
    size: Screen | Literal["own"] | None = None
    labelled: bool = True
    special_tokens: bool = False

    def check(self, receipt: Mapping[str, Any]) -> None:
        """Refuse a prompt that is not shown as the answer and the texts take it to be.

        Args:
            receipt: of the prompt.

        Raises:
            DataError: the screenshot is shown in another size.
            UsageError: a medium is left out, and the texts that belong to it are not known.
        """
        dropped = [line["dropped"] for line in receipt["parts"] if "dropped" in line]
        if dropped and not self.labelled:
            raise UsageError(
                dropped[0],
                where=self.sample_id,
                expected="a row that the model can take whole",
                remedy="export again without what it cannot take, e.g. with -T modalities",
            )
        seen = sent_size(receipt, where=self.sample_id)
        if self.size is None or seen is None:
            return
        size = seen.original if self.size == "own" else self.size
        if seen.size != size:
            raise DataError(
                f"the screenshot is shown with {seen.size[0]} x {seen.size[1]} pixels, the answer "
                f"is for {size[0]} x {size[1]}",
                where=self.sample_id,
                expected="an answer in pixels of the screenshot as it is shown",
                remedy="leave the step out, or take answers in another unit: -T coordinates",
            )


def target_shown(task: Asking, step: Step, size: Screen) -> Target | None:
    """Return the right answer to a step whose screenshot is shown in a size.

    Args:
        task: gives the target.
        step: one of its steps.
        size: width and height in pixels.

    Raises:
        DataError: the answer is in pixels, and its places stay where they are in another size.
    """
    found = task.target(step, size=size)
    if answer_space(task.options) != "px" or size == step.screen or min(step.screen) < 1:
        return found
    own = task.target(step, size=step.screen)
    if not found or not own:
        return found
    scale = [new / old for new, old in zip(size, step.screen, strict=True)]
    for place, whole in zip(found.points, own.points, strict=True):
        wanted = [value * grow for value, grow in zip(whole, scale, strict=True)]
        if any(
            abs(value - right) > 1 + grow  # both are whole numbers, as a rule
            for value, right, grow in zip(place, wanted, scale, strict=True)
        ):
            raise DataError(
                f"the answer is in pixels and points at {place}, which is another place in a "
                f"screenshot of {size[0]} x {size[1]} pixels than in one of {step.screen[0]} x "
                f"{step.screen[1]}",
                where=step.sample_id,
                expected=f"a point near ({wanted[0]:.0f}, {wanted[1]:.0f})",
                remedy="correct `target` of the task: it gets the `size` that is shown "
                "(docs/add_dataset.md); or leave the pictures as they are",
            )
    return found


def as_example(task: Asking, step: Step, *, longest: int | None = None) -> Example:
    """Return a step as an example.

    Args:
        task: writes the prompt and the answer.
        step: one of its steps.
        longest: pixels of the longer side above which the screenshot is made smaller; None = never.

    Raises:
        DataError: the step has no target, or one that does not follow the size.
    """
    size = media.within(step.screen, longest)
    target = target_shown(task, step, size)
    if target is None:
        raise DataError(
            "the step has no target",
            where=step.sample_id,
            expected="a step that says what is right",
            remedy="leave the step out",
        )
    pixels = bool(target.points) and task.options.get("coordinates") == "px"
    prompt = task.conversation(step)
    fixed = next(
        (part.size for turn in prompt for part in turn.parts if part.role == "screenshot"), None
    )
    return Example(
        step.sample_id,
        prompt,
        target.text,
        fixed or (size if pixels else None),
        special_tokens=task.special_tokens,
    )


# What the four formats have in common.

_TAGS: Mapping[str, Modality] = {tag: kind for kind, tag in PLACEHOLDERS.items()}
_TAG = re.compile(f"({'|'.join(_TAGS)})")
_NAME = re.compile(r"media/([0-9a-f]{32})\.[0-9a-z]{2,4}")
_SHOWN = 100
"""Characters that an error shows of a name."""

Lists = Mapping[Modality, Sequence[str]]
"""Names of media by modality, in order."""


@dataclass(frozen=True, slots=True)
class Written:
    """The content of a row of any format.

    Attributes:
        turns: of the prompt: the role, and texts and media in order.
        answer: the text.
        lists: of the media.
    """

    turns: Sequence[tuple[Role, Sequence[ReadPiece]]]
    answer: str
    lists: Lists


class _Format(Protocol):
    @property
    def sample_id(self) -> str: ...
    @property
    def roles(self) -> Sequence[str]: ...

    @classmethod
    def of(
        cls, turns: Turns, target: Target, objects: Objects | None, kinds: Collection[Modality]
    ) -> Row: ...

    @classmethod
    def texts(cls, made: Row) -> list[str]: ...

    @classmethod
    def placeholders(cls, made: Row) -> Iterator[tuple[str, int, Sequence[Any]]]:
        """Each placeholder, how often it is in the texts, and the list that it stands for."""

    def parse(self) -> Written: ...


def texts_of(turns: Turns) -> list[tuple[str, str]]:
    """Role and text of each turn, turns of one role in one, as trainers want them to alternate."""
    found: list[tuple[str, str]] = []
    for turn in turns:
        text = "".join(
            piece.text if piece.kind == "text" else PLACEHOLDERS[piece.kind] for piece in turn.parts
        )
        if found and found[-1][0] == turn.role:
            text = f"{found.pop()[1]}\n{text}"
        found.append((turn.role, text))
    return found


def names_of(turns: Turns, kind: Modality) -> list[str]:
    """Return the files of a modality, in order."""
    return [piece.name for turn in turns for piece in turn.parts if piece.kind == kind]


def _count(tag: str, texts: Sequence[str], listed: Sequence[Any]) -> tuple[str, int, Sequence[Any]]:
    return tag, sum(text.count(tag) for text in texts), listed


def _pieces(text: str) -> Iterator[ReadPiece]:
    for piece in _TAG.split(text):
        if piece in _TAGS:
            yield _TAGS[piece], ""
        elif piece:
            yield "text", piece


def _plain(answer: str) -> str:
    if tag := _TAG.search(answer):
        raise _wrong(f"the answer holds {tag[0]}, which stands for a medium")
    return answer


def _wrong(what: str, remedy: str = "export again: `omnidata export`") -> DataError:
    expected = "a row as `omnidata export` of this version writes it"
    return DataError(what, expected=expected, remedy=remedy)


# TRL: prompt and completion; `SFTTrainer` learns only the completion.


class _TrlPart(msgspec.Struct, frozen=True):
    type: Literal["text", "image"]
    text: str = ""


class _TrlTurn(msgspec.Struct, frozen=True):
    role: Role
    content: list[_TrlPart]


def trl_messages(turns: Turns) -> list[dict[str, Any]]:
    """Return a prompt as TRL's messages; media are placeholders, filled from its columns."""
    return [
        {
            "role": turn.role,
            "content": [
                {"type": "text", "text": piece.text}
                if piece.kind == "text"
                else {"type": piece.kind}
                for piece in turn.parts
            ],
        }
        for turn in turns
    ]


class _Trl(msgspec.Struct, frozen=True):
    sample_id: str
    prompt: list[_TrlTurn]
    completion: Annotated[list[_TrlTurn], msgspec.Meta(min_length=1, max_length=1)]
    images: list[str]
    roles: list[str]

    @classmethod
    def of(
        cls, turns: Turns, target: Target, objects: Objects | None, kinds: Collection[Modality]
    ) -> Row:
        said = {"role": "assistant", "content": [{"type": "text", "text": target.text}]}
        return {
            "prompt": trl_messages(turns),
            "completion": [said],
            "images": names_of(turns, "image"),
        }

    @classmethod
    def texts(cls, made: Row) -> list[str]:
        contents = [turn["content"] for turn in (*made["prompt"], *made["completion"])]
        # A NUL stands for each medium, so that no placeholder is made of the texts around it.
        return ["".join(part.get("text", "\0") for part in content) for content in contents]

    @classmethod
    def placeholders(cls, made: Row) -> Iterator[tuple[str, int, Sequence[Any]]]:
        contents = [part["type"] for turn in made["prompt"] for part in turn["content"]]
        yield PLACEHOLDERS["image"], contents.count("image"), made["images"]
        texts = cls.texts(made)
        yield from (_count(tag, texts, ()) for tag in PLACEHOLDERS.values())

    def parse(self) -> Written:
        turns = [(turn.role, [(p.type, p.text) for p in turn.content]) for turn in self.prompt]
        said = self.completion[0]
        if said.role != "assistant" or any(part.type != "text" for part in said.content):
            raise _wrong("the completion is no text of the assistant's")
        return Written(turns, "".join(part.text for part in said.content), {"image": self.images})


# LLaMA-Factory and ms-swift: messages of texts with placeholders, and a list per modality.


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

    @classmethod
    def of(
        cls, turns: Turns, target: Target, objects: Objects | None, kinds: Collection[Modality]
    ) -> Row:
        apart = objects and target.points
        answer = target.template if apart else target.text
        messages = [{"role": role, "content": text} for role, text in texts_of(turns)]
        return {
            "messages": [*messages, {"role": "assistant", "content": answer}],
            **{f"{kind}s": names_of(turns, kind) for kind in PLACEHOLDERS if kind in kinds},
            **({"objects": _objects(turns, target, objects)} if objects and apart else {}),
        }

    @classmethod
    def texts(cls, made: Row) -> list[str]:
        return [turn["content"] for turn in made["messages"]]

    @classmethod
    def placeholders(cls, made: Row) -> Iterator[tuple[str, int, Sequence[Any]]]:
        texts = cls.texts(made)
        for kind, tag in PLACEHOLDERS.items():
            yield _count(tag, texts, made.get(f"{kind}s", ()))
        if objects := made.get("objects"):
            yield _count(PLACE, texts, objects["bbox"])
            yield _count("<ref-object>", texts, ())

    def parse(self) -> Written:
        *asked, said = self.messages
        if said.role != "assistant":
            raise _wrong("the last message is not the assistant's")
        if self.objects is not None:
            raise _wrong(
                "the places of the answer stand apart, for ms-swift to write them",
                "export again without --objects",
            )
        turns = [(turn.role, list(_pieces(turn.content))) for turn in asked]
        lists: Lists = {"image": self.images, "video": self.videos, "audio": self.audios}
        return Written(turns, _plain(said.content), lists)


def _objects(turns: Turns, target: Target, unit: Objects) -> Row:
    pictures = [piece for turn in turns for piece in turn.parts if piece.kind == "image"]
    number = [piece.role for piece in pictures].index("screenshot")
    width, height = pictures[number].size if unit == "real" else (1, 1)
    return {
        "bbox": [[x / 1000 * width, y / 1000 * height] for x, y in target.points],
        "bbox_type": unit,
        "image_id": [number] * len(target.points),
    }


def by_swift(target: Target) -> str:
    """Return the answer that ms-swift makes of one with `<bbox>`: whole parts of a thousand.

    Examples:
        >>> by_swift(Target("(33.4, 8)", "<bbox>", ((33.4, 8),)))
        '[33, 8]'
    """
    text = target.template
    for x, y in target.points:
        text = text.replace(PLACE, f"[{round(x)}, {round(y)}]", 1)
    return text


# Qwen-VL: questions and answers; every author but "human" is taken for the model.


class _Said(msgspec.Struct, frozen=True, rename={"author": "from"}):
    author: Literal["human", "gpt"]
    value: str


class _Qwen(msgspec.Struct, frozen=True):
    sample_id: str
    conversations: Annotated[list[_Said], msgspec.Meta(min_length=2)]
    roles: list[str]
    image: list[str] = []
    video: list[str] = []

    @classmethod
    def of(
        cls, turns: Turns, target: Target, objects: Objects | None, kinds: Collection[Modality]
    ) -> Row:
        said: list[Row] = []
        for role, text in (*texts_of(turns), ("assistant", target.text)):
            author = "gpt" if role == "assistant" else "human"
            if said and said[-1]["from"] == author:
                text = f"{said.pop()['value']}\n\n{text}"
            said.append({"from": author, "value": text})
        media = {kind: names_of(turns, kind) for kind in sorted(PLACEHOLDERS)}
        return {"conversations": said, **{kind: names for kind, names in media.items() if names}}

    @classmethod
    def texts(cls, made: Row) -> list[str]:
        return [turn["value"] for turn in made["conversations"]]

    @classmethod
    def placeholders(cls, made: Row) -> Iterator[tuple[str, int, Sequence[Any]]]:
        texts = cls.texts(made)
        for kind, tag in PLACEHOLDERS.items():
            yield _count(tag, texts, made.get(kind, ()))

    def parse(self) -> Written:
        *asked, said = self.conversations
        authors = [turn.author for turn in self.conversations]
        if authors != ["human", "gpt"] * (len(authors) // 2):
            raise _wrong("the turns are not a human's and gpt's, one after the other")
        turns: list[tuple[Role, list[ReadPiece]]] = [
            ("user" if turn.author == "human" else "assistant", list(_pieces(turn.value)))
            for turn in asked
        ]
        return Written(turns, _plain(said.value), {"image": self.image, "video": self.video})


_FORMATS: Mapping[FormatName, type[_Format]] = {
    "trl": _Trl,
    "llamafactory": _Tagged,
    "swift": _Tagged,
    "qwen-vl": _Qwen,
}
_DECODERS = {name: msgspec.json.Decoder(form) for name, form in _FORMATS.items()}


def row(
    name: FormatName,
    turns: Turns,
    target: Target,
    *,
    objects: Objects | None,
    kinds: Collection[Modality],
) -> Row:
    """One step in the form of a trainer.

    Args:
        name: of the format.
        turns: the prompt.
        target: the answer.
        objects: of ms-swift: places apart from the answer, in [0, 1] ("norm1") or in pixels of the
            picture ("real"); None leaves them in the answer. The answer's are norm1000 then.
        kinds: modalities that any row of the export has; each row has a list of each.
    """
    return _FORMATS[name].of(turns, target, objects, kinds)


def mismatch(name: FormatName, made: Row) -> str:
    """Return where placeholders and media differ in number; empty if they match.

    A text of the data that holds a placeholder, of the trainer or of any model that is known
    (`families.TOKENS`), makes the trainer or the model show a medium in its place.

    Args:
        name: of the format.
        made: a row of it.

    Examples:
        >>> mismatch("qwen-vl", {"conversations": [{"from": "human", "value": "Tap <image>"}]})
        '1 <image> in the texts, 0 in the list'
    """
    pairs = [*_FORMATS[name].placeholders(made)]
    texts = _FORMATS[name].texts(made)
    pairs += [_count(token, texts, ()) for token in sorted(TOKENS)]
    return "; ".join(
        f"{count} {tag} in the texts, {len(listed)} in the list"
        for tag, count, listed in pairs
        if count != len(listed)
    )


def control(name: FormatName, made: Row, own: Collection[str] = ()) -> str:
    """Return a token in a text that some model obeys (`families.CONTROLS`); empty if there is none.

    Chat templates write texts as they are, and trainers' tokenizers make one token of it: the
    turn ends there.

    Args:
        name: of the format.
        made: a row of it.
        own: tokens that are meant (`Task.own_controls`).

    Examples:
        >>> control("qwen-vl", {"conversations": [{"from": "human", "value": "Type <|im_end|>"}]})
        '<|im_end|>'
    """
    texts = _FORMATS[name].texts(made)
    refused = sorted(CONTROLS - set(own))
    return next((token for token in refused for text in texts if token in text), "")


def read(line: bytes, form: FormatName, root: Path) -> Example:
    """Read a line of an export.

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
        row: _Format = _DECODERS[form].decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _wrong(f"the row cannot be read ({error})") from None
    written = row.parse()
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


def _ref(kind: Modality, name: str, root: Path) -> MediaRef:
    named = _NAME.fullmatch(name)
    if named is None:
        raise _wrong(f"{name[:_SHOWN]!r} is no medium of an export")
    return MediaRef(kind, root, name, sha256=named[1])
