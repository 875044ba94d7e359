"""What training data share with the data that a model is to be evaluated on.

Three looks: the same episode, the same instruction but for case, spaces and signs, and a picture of
exactly the same pixels, however it is stored. Pictures in one colour are no evidence.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from omnidata import media
from omnidata.errors import Finding, MediaError
from omnidata.export.store import Kept, Media, key
from omnidata.run.splits import group
from omnidata.types import MediaRef, Step

_LANGUAGES = ("instruction", "instruction_en", "instruction_zh")


@dataclass(slots=True)
class Evaluation:
    """What is known of the data of an evaluation; each of it with the id of a step that has it.

    Attributes:
        episodes: by `group`.
        instructions: by `normalised`.
        pictures: by the hash of size and pixels.
        unchecked: how many pictures could not be decoded.
    """

    episodes: dict[str, str] = field(default_factory=dict)
    instructions: dict[str, str] = field(default_factory=dict)
    pictures: dict[str, str] = field(default_factory=dict)
    unchecked: int = 0


def read(steps: Sequence[Step], progress: Callable[[int, int], None] | None = None) -> Evaluation:
    """Look at all steps, and decode all their pictures.

    Args:
        steps: of the evaluation.
        progress: called with the pictures done and their number.
    """
    found = Evaluation()
    refs: dict[Hashable, tuple[MediaRef, str]] = {}
    for step in steps:
        found.episodes.setdefault(group(step), step.sample_id)
        for text in _instructions(step):
            found.instructions.setdefault(text, step.sample_id)
        for ref in step.media.values():
            if ref is not None and ref.kind == "image":
                refs.setdefault(key(ref), (ref, step.sample_id))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        looked = pool.map(_pixels, [ref for ref, _ in refs.values()])
        for done, (pixels, (_, sample)) in enumerate(zip(looked, refs.values(), strict=True), 1):
            if pixels is None:
                found.unchecked += 1
            else:
                found.pictures.setdefault(pixels, sample)
            if progress:
                progress(done, len(refs))
    return found


def _pixels(ref: MediaRef) -> str | None:
    """The hash of a picture's size and pixels; None for what is no picture."""
    try:
        return media.examine(ref).pixels
    except MediaError:
        return None


def normalised(text: str) -> str:
    """What two instructions have in common that say the same in the same words.

    Examples:
        >>> normalised("Tap “Share” !") == normalised(" tap  share")
        True
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = "".join(letter if letter.isalnum() else " " for letter in folded).split()
    return " ".join(words)


def _instructions(step: Step) -> Iterator[str]:
    """The instruction in all its languages."""
    texts = {step.instruction, *(step.source.get(name) for name in _LANGUAGES)}
    for text in texts:
        if isinstance(text, str) and (found := normalised(text)):
            yield found


def findings(
    steps: Mapping[str, Sequence[tuple[Step, Sequence[MediaRef]]]],
    stored: Media,
    known: Evaluation,
) -> Iterator[tuple[Finding, str]]:
    """What is shared, one finding for each training episode and look.

    Args:
        steps: of the training data, with the media of their prompts, by `group`.
        stored: what has become of these media.
        known: of the evaluation.

    Yields:
        The finding, and the group; the group is empty for what is wrong with the evaluation.
    """
    for name, members in steps.items():
        first = members[0][0]
        if sample := known.episodes.get(name):
            yield _leak("episode", first, f"the episode of {sample}"), name
        for text in sorted({text for step, _ in members for text in _instructions(step)}):
            if sample := known.instructions.get(text):
                yield _leak("instruction", first, f"the instruction of {sample}"), name
                break
        for step, refs in members:
            pixels = {kept.pixels for ref in refs if isinstance(kept := stored[key(ref)], Kept)} - {
                None
            }
            shared = next((known.pictures[one] for one in pixels if one in known.pictures), None)
            if shared:
                yield _leak("screenshot", step, f"the same pixels as a picture of {shared}"), name
                break
    if known.unchecked:
        yield (
            Finding(
                "leak-unchecked",
                "warning",
                "--check-against",
                f"{known.unchecked} pictures cannot be decoded and were not compared",
                "an evaluation with its media",
                "restore them, and export again",
            ),
            "",
        )


def _leak(look: str, step: Step, what: str) -> Finding:
    return Finding(
        f"leak-{look}",
        "error",
        step.sample_id,
        f"training data that are evaluated on: {what}",
        "nothing that the evaluation has",
        "export again with --exclude leaks.txt, which lists the steps of these episodes",
    )
