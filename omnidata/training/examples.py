"""Examples to train on: a prompt and the answer behind it, made of a step or of a row."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from omnidata import media
from omnidata.actions import Screen
from omnidata.adapters.media_budget import parts_of
from omnidata.errors import DataError, UsageError
from omnidata.tasks.asking import Asking
from omnidata.tasks.coordinates import answer_space, sent_size
from omnidata.training.formats.base import PLACEHOLDERS, AnswerFormat, unreadable
from omnidata.types import Conversation, MediaRef, Message, Modality, Part, Step, Target

_NAME = re.compile(r"media/([0-9a-f]{32})\.[0-9a-z]{2,4}")
_SHOWN = 100
"""Characters that an error shows of a name."""


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt and the answer behind it.

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
        """Refuse a receipt of the prompt that fits neither the answer nor the texts.

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
    """Return the right answer to a step whose screenshot is shown in a size, in pixels.

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
    """Return a step as an example; the screenshot has at most `longest` pixels a side.

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
    fixed = next((part.size for part in parts_of(prompt) if part.role == "screenshot"), None)
    return Example(
        step.sample_id,
        prompt,
        target.text,
        fixed or (size if pixels else None),
        special_tokens=task.special_tokens,
    )


def refuse_predictions(task: Asking | None, *, beside: str = "") -> None:
    """Refuse a task whose prompts show a model's own answers.

    Raises:
        UsageError: they do.
    """
    if task and task.needs_predictions:
        raise UsageError(
            "training has no answers of the model to show in prompts",
            where="-T history=predicted",
            expected=f"history=gold or history=none{beside}",
        )


class _Row(msgspec.Struct, frozen=True):
    sample_id: str
    roles: list[str]


def read(line: bytes, form: AnswerFormat, root: Path) -> Example:
    """Read a line of an export.

    Returns:
        The example; media are not looked for.

    Raises:
        DataError: it is no such row. The place is left to the caller.
    """
    try:
        row = msgspec.json.decode(line, type=dict[str, Any])
        own, written = msgspec.convert(row, _Row), form.read(row)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise unreadable(f"the row cannot be read ({error})") from None
    kinds = [kind for _, pieces in written.turns for kind, _ in pieces]
    counts = {kind: len(written.lists.get(kind, ())) for kind in PLACEHOLDERS}
    differs = "; ".join(
        f"{kinds.count(kind)} {PLACEHOLDERS[kind]} in the texts, {count} in the list"
        for kind, count in counts.items()
        if kinds.count(kind) != count
    )
    total = sum(counts.values())
    if differs or total != len(own.roles):
        raise unreadable(differs or f"{total} media, {len(own.roles)} roles")
    names = {kind: iter(listed) for kind, listed in written.lists.items()}
    roles = iter(own.roles)

    def part(kind: Literal["text"] | Modality, text: str) -> Part:
        if kind == "text":
            return Part("text", text)
        name = next(names[kind])
        digest = _NAME.fullmatch(name)
        if digest is None:
            raise unreadable(f"{name[:_SHOWN]!r} is no medium of an export")
        return Part(kind, media=MediaRef(kind, root, name, sha256=digest[1]), role=next(roles))

    prompt = tuple(
        Message(role, tuple(part(kind, text) for kind, text in pieces))
        for role, pieces in written.turns
    )
    return Example(own.sample_id, prompt, written.answer, labelled=False)
