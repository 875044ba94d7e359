"""Overlaps of training data with the data of an evaluation.

Three looks: the same episode, the same instruction but for case, spaces and signs, and a picture of
exactly the same pixels, however it is stored. Pictures in one colour are no evidence.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Hashable, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Literal, get_args

from omnidata import media
from omnidata.adapters.media_budget import Capabilities
from omnidata.errors import Finding, MediaError, StoreError
from omnidata.run.engines import Cluster, Lost, each
from omnidata.tasks.asking import Asking
from omnidata.training.media_store import Kept, Media, Wanted
from omnidata.training.rows import prompt_with_media
from omnidata.types import LoadedDataset, MediaRef, Progress, Step

Look = Literal["episode", "instruction", "screenshot"]


@dataclass(slots=True)
class Evaluation:
    """The episodes, instructions and pictures of an evaluation.

    Attributes:
        samples: for each look, the ids of steps: by group and episode; by `_normalise`d
            instruction; by the hash of a picture's size and pixels.
        broken: number of pictures that could not be decoded.
        skipped: number of rows that became no step.
    """

    samples: dict[Look, dict[str, str]] = field(
        default_factory=lambda: {look: {} for look in get_args(Look)}
    )
    broken: int = 0
    skipped: int = 0


def read(
    task: Asking,
    source: LoadedDataset,
    progress: Progress | None = None,
    *,
    workers: int | None = 1,
    cluster: Cluster | None = None,
) -> Evaluation:
    """Return the instructions and pictures of an evaluation; `workers` decode all pictures."""
    found = Evaluation(skipped=source.skipped)
    refs: dict[Hashable, tuple[MediaRef, str]] = {}
    for step in source.steps:
        for name in (step.group, step.episode):
            found.samples["episode"].setdefault(name, step.sample_id)
        for text in _instructions(task, source, step):
            found.samples["instruction"].setdefault(text, step.sample_id)
        for ref in step.media.values():
            if ref is not None and ref.kind == "image":
                refs.setdefault(Wanted(ref).key, (ref, step.sample_id))
    pictures = [ref for ref, _ in refs.values()]
    sees = [root for root in sorted({ref.root for ref in pictures}) if root.exists()]
    calls = each(_pixels, pictures, workers=workers, cluster=cluster, sees=sees)
    with closing(calls) as looked:
        for done, (pixels, (_, sample)) in enumerate(zip(looked, refs.values(), strict=True), 1):
            if pixels is None or isinstance(pixels, Lost):
                found.broken += 1
            elif isinstance(pixels, StoreError):
                raise pixels
            else:
                found.samples["screenshot"].setdefault(pixels, sample)
            if progress:
                progress(done, len(refs))
    return found


def _pixels(ref: MediaRef) -> str | StoreError | None:
    try:
        return media.examine(ref).pixels
    except MediaError:
        return None
    except StoreError as error:
        return error


def _normalise(text: str) -> str:
    """Return an instruction without case, punctuation and spacing."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return " ".join("".join(letter if letter.isalnum() else " " for letter in folded).split())


def _instructions(task: Asking, source: LoadedDataset, step: Step) -> Iterator[str]:
    texts = task.benchmark.wordings.instructions(step, source.episode_rows.get(step.episode, {}))
    return filter(None, map(_normalise, texts))


def compare(
    task: Asking,
    source: LoadedDataset,
    steps: Iterable[Step],
    capabilities: Capabilities,
    stored: Media,
    known: Evaluation,
) -> tuple[list[Finding], set[str]]:
    """Return the overlaps of steps that are trained on, and their groups.

    A group has one finding of each kind. Further findings count what could not be compared.
    """
    found: list[Finding] = []
    groups: dict[str, list[Step]] = {}
    for step in steps:
        groups.setdefault(step.group, []).append(step)
    shared: set[str] = set()
    for group, same in groups.items():
        first: dict[Look, Finding] = {}
        for step, look, key, what in _evidence(task, source, same, capabilities, stored):
            if look not in first and (sample := known.samples[look].get(key)):
                first[look] = Finding(
                    f"leak-{look}",
                    "error",
                    step.sample_id,
                    f"training data are also evaluation data: {what} of {sample}",
                    "no data of the evaluation",
                    "export again with --exclude leaks.txt, which lists the steps of these "
                    "episodes",
                )
        found += [first[look] for look in get_args(Look) if look in first]
        if first:
            shared.add(group)
    for count, what in (
        (known.broken, "pictures cannot be decoded"),
        (known.skipped, "rows cannot be read"),
    ):
        if count:
            finding = Finding(
                "leak-unchecked",
                "warning",
                "--check-against",
                f"{count} {what} and were not compared",
                "a complete evaluation",
                "restore it, and export again",
            )
            found.append(finding)
    return found, shared


def _evidence(
    task: Asking,
    source: LoadedDataset,
    steps: Iterable[Step],
    capabilities: Capabilities,
    stored: Media,
) -> Iterator[tuple[Step, Look, str, str]]:
    """Yield what steps show: the look, its key, and in words what they would share."""
    for step in steps:
        yield step, "episode", step.episode, "the episode"
        yield step, "episode", step.group, "the group"
        for text in _instructions(task, source, step):
            yield step, "instruction", text, "the instruction"
        shown: list[tuple[str, Wanted]] = []
        with suppress(MediaError):  # of a step that becomes no row
            _, shown = prompt_with_media(task, step, capabilities)
        for _, wanted in shown:
            kept = stored[wanted.key]
            if isinstance(kept, Kept) and kept.pixels:
                yield step, "screenshot", kept.pixels, "the same pixels as a picture"
