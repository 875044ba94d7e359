"""TRL 1.16 (dataset formats, `SFTTrainer`, `GRPOTrainer`, `DPOTrainer`, `KTOTrainer`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec

from omnidata.training.formats.base import (
    PLACEHOLDERS,
    AnswerFormat,
    Content,
    Log,
    PreferenceFormat,
    PromptFormat,
    Role,
    Row,
    Turns,
    Written,
    screenshot_size,
    unreadable,
)


class _Part(msgspec.Struct, frozen=True):
    type: Literal["text", "image"]
    text: str = ""


class _Turn(msgspec.Struct, frozen=True):
    role: Role
    content: list[_Part]


class _Row(msgspec.Struct, frozen=True):
    prompt: list[_Turn]
    completion: Annotated[list[_Turn], msgspec.Meta(min_length=1, max_length=1)]
    images: list[str]


def _messages(turns: Turns) -> list[Row]:
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


class Trl(AnswerFormat):
    """Prompt and completion; `SFTTrainer` learns only the completion."""

    name = "trl"
    holds = frozenset({"image"})

    def row(self, content: Content) -> Row:
        answer = [{"type": "text", "text": content.target.text}]
        return {
            "prompt": _messages(content.turns),
            "completion": [{"role": "assistant", "content": answer}],
            "images": content.names("image"),
        }

    def texts(self, row: Row) -> list[str]:
        """Return the texts of the turns.

        A NUL stands for each medium, so that no placeholder is made of the texts around it.
        """
        contents = [turn["content"] for turn in (*row["prompt"], *row["completion"])]
        return ["".join(part.get("text", "\0") for part in content) for content in contents]

    def placeholders(self, row: Row) -> Mapping[str, Sequence[Any]]:
        """Return empty lists: no text may have a placeholder, since media have parts."""
        return dict.fromkeys(PLACEHOLDERS.values(), ())

    def read(self, row: Row) -> Written:
        found = msgspec.convert(row, _Row)
        turns = [(turn.role, [(p.type, p.text) for p in turn.content]) for turn in found.prompt]
        said = found.completion[0]
        if said.role != "assistant" or any(part.type != "text" for part in said.content):
            raise unreadable("the completion is no text of the assistant's")
        return Written(turns, "".join(part.text for part in said.content), {"image": found.images})


class TrlGrpo(PromptFormat):
    """Prompts; the reward is handed over in Python.

    `GRPOTrainer` would take sound, and train without it (see `omnidata.training.grpo`).
    """

    name = "trl-grpo"
    holds = frozenset({"image"})
    log = Log("trl", "completion", sample_id="sample_id")

    def row(self, content: Content) -> Row:
        size = screenshot_size(content.receipt)
        return {"prompt": _messages(content.turns), **content.lists(), "receipt": size}


class TrlDpo(PreferenceFormat):
    """A prompt and two completions."""

    name = "trl-dpo"
    supervised = Trl()

    def pair(self, chosen: Row, rejected: Row) -> Row:
        right = chosen.pop("completion")
        return {**chosen, "chosen": right, "rejected": rejected["completion"]}


class TrlKto(PreferenceFormat):
    """A row for each completion, with a label."""

    name = "trl-kto"
    supervised = Trl()
    label = "label"
