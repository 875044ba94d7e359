"""One way through a conversation for all models: what is left out, what is sent, the receipt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from omnidata.adapters.capabilities import Capabilities
from omnidata.adapters.fitting import Fit, fit, flat, lacking
from omnidata.errors import UsageError
from omnidata.types import Conversation, MediaRef, Part

T = TypeVar("T")
Line = dict[str, Any]
"""What the receipt says of one medium."""


@dataclass(slots=True)
class Turn(Generic[T]):
    """A message whose parts have the form in which a model takes them."""

    role: Literal["system", "user", "assistant"]
    parts: list[T] = field(default_factory=list)


def walk(
    conversation: Conversation,
    capabilities: Capabilities,
    text: Callable[[str], T],
    sent: Callable[[Part, MediaRef, int | None, Capabilities], tuple[list[T], Line]],
) -> tuple[list[Turn[T]], Line]:
    """Bring every part into the form that a model takes.

    Args:
        conversation: in the order in which the model is to read it.
        capabilities: what the model takes.
        text: makes the form of a text.
        sent: makes the forms of a medium, and says what the receipt is to say of it; the number is
            how many frames of a clip are sent as pictures, None for other media.

    Returns:
        The messages, without those of which nothing is left; and the receipt: "parts", in order,
        one for each medium: its role, kind, and why it was "dropped" or what `sent` said.
        "degraded" lists what is less than the step has, if anything.

    Raises:
        MediaError: a medium that is to be sent is missing, broken or cut short.
        UsageError: the model cannot take the conversation, and `degrade` is off.
    """
    problem = "" if capabilities.degrade else lacking(conversation, capabilities)
    if problem:
        raise UsageError(
            problem,
            expected="a step that the model can take whole",
            remedy="leave the modality out with -T modalities, or allow it with -M degrade=true",
        )
    parts = flat(conversation)
    plan = fit(parts, capabilities)
    turns: list[Turn[T]] = []
    lines: list[Line] = []
    number = 0
    for message in conversation:
        left_out = {
            part.role
            for at, part in enumerate(message.parts, number)
            if part.media and at in plan.dropped
        }
        turn: Turn[T] = Turn(message.role)
        for at, part in enumerate(message.parts, number):
            if part.media is None:
                # A text with a role is the label of the medium that has it.
                if not part.role or part.role not in left_out:
                    turn.parts.append(text(part.text))
                continue
            line: Line = {"role": part.role, "kind": part.kind}
            lines.append(line)
            if at in plan.dropped:
                line["dropped"] = plan.dropped[at]
            else:
                made, about = sent(part, part.media, plan.frames.get(at), capabilities)
                turn.parts += made
                line |= about
        number += len(message.parts)
        if turn.parts:
            turns.append(turn)
    receipt: Line = {"parts": lines}
    if degraded := _degraded(parts, plan):
        receipt["degraded"] = degraded
    return turns, receipt


def _degraded(parts: Sequence[Part], plan: Fit) -> list[str]:
    reasons = [f"{parts[number].role}: {why}" for number, why in sorted(plan.dropped.items())]
    for number, count in plan.frames.items():
        if 0 < count < plan.wanted:
            role = parts[number].role
            reasons.append(f"{role}: {count} of {plan.wanted} frames; {plan.reason}")
    return reasons
