"""The order in which a model gets the parts of a conversation: the paper's, or the release's.

What the released adapters of OmniGUI really send is not what its paper shows: all media come first
and all text last, so that a label is torn from its picture, the system prompt comes twice or as a
text of the user's, and some media never arrive. Runs that are to be compared with the published
tables need that form; its variants are the fields of `ReleaseRules`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from omnidata.types import Conversation, Message, Modality, Part

Layout = Literal["paper", "release"]
Dropped = tuple[dict[str, Any], ...]
"""A line of the receipt for each part that the layout leaves out: role, kind, dropped (why)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRules:
    """How a released adapter differs from the others.

    Attributes:
        system: "twice" sends the system prompt as such and again as a block at the head of the
            user's turn (Gemini, Qwen3-Omni); "block" only as a block at the head of the one user
            text (MiniCPM-o, VITA, Baichuan).
        last_only: kinds of media of which only the last is sent; all of the others are.
        one_file: kinds in order of precedence: only the last medium of the first kind that there is
            is sent, and no other medium. Empty = no such rule.

    Examples:
        >>> baichuan = ReleaseRules(system="block", one_file=("video", "image", "audio"))
        >>> vita = ReleaseRules(system="block", last_only=("image", "video", "audio"))
    """

    system: Literal["twice", "block"] = "twice"
    last_only: tuple[Modality, ...] = ()
    one_file: tuple[Modality, ...] = ()


def arrange(
    conversation: Conversation, layout: Layout, release: ReleaseRules
) -> tuple[Conversation, Dropped]:
    """The conversation in the order of a layout.

    Args:
        conversation: as the benchmark's paper has it.
        layout: "paper" changes nothing. "release" makes one turn of all that is not the system's:
            media in their order, then the texts, those of a turn joined by spaces and headed by its
            speaker, turns apart by a blank line.
        release: the variant of the release; unused with "paper".

    Returns:
        The conversation, and what was left out.

    Examples:
        >>> turn = Message("user", (Part("text", "Goal: x"), Part("text", "Step: 0")))
        >>> arrange((turn,), "release", ReleaseRules())[0][0].parts[0].text
        '[User]: Goal: x Step: 0'
    """
    if layout == "paper":
        return conversation, ()
    system = "\n\n".join(_joined(turn) for turn in conversation if _heard(turn, system=True))
    turns = [turn for turn in conversation if _heard(turn, system=False)]
    said = "\n\n".join(f"[{turn.role.capitalize()}]: {_joined(turn)}" for turn in turns)
    media = [part for turn in conversation for part in turn.parts if part.media]
    kept = _kept(media, release)
    dropped = tuple(
        {"role": part.role, "kind": part.kind, "dropped": _why(part, release)}
        for number, part in enumerate(media)
        if number not in kept
    )
    shown = [media[number] for number in kept]
    block = f"[System Instructions]\n{system}\n[End System Instructions]" if system else ""
    if release.system == "twice":
        head = [Part("text", f"{block}\n")] if block else []
        texts = [Part("text", said)] if said else []
        first = (Message("system", (Part("text", system),)),) if system else ()
        return (*first, Message("user", (*head, *shown, *texts))), dropped
    text = "\n\n".join(filter(None, (block, said)))
    return (Message("user", (*shown, Part("text", text))),), dropped


def _heard(turn: Message, *, system: bool) -> bool:
    return (turn.role == "system") == system and any(part.text for part in turn.parts)


def _joined(turn: Message) -> str:
    return " ".join(part.text for part in turn.parts if part.text)


def _kept(media: list[Part], release: ReleaseRules) -> list[int]:
    """The numbers of the media that are sent, in order."""
    last = {part.kind: number for number, part in enumerate(media)}
    if release.one_file:
        return [last[kind] for kind in release.one_file if kind in last][:1]
    return [
        number
        for number, part in enumerate(media)
        if part.kind not in release.last_only or number == last[part.kind]
    ]


def _why(part: Part, release: ReleaseRules) -> str:
    if release.one_file:
        return f"layout=release sends one file: {' before '.join(release.one_file)}"
    return f"layout=release sends the last {part.kind} only"
