"""Do the media that the rows name exist, and are the screenshots what the rows say?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from omnidata.actions import Screen
from omnidata.errors import DataError, Finding, MediaError, MissingMediaError
from omnidata.files import naming, real
from omnidata.media import around, closed, image_size, resolve, unsafe
from omnidata.types import Cut, MediaRef, Step


def check_media_files(
    steps: Sequence[Step], note: Callable[[Finding], None], *, always_shown: bool = True
) -> None:
    """Existence of every medium; wholeness and size of every screenshot.

    Where nothing exists at all, the data is annotations alone, and one finding says so.

    Args:
        steps: of the dataset.
        note: takes the findings.
        always_shown: a step without a screenshot lacks one, and nobody has said so yet.

    Raises:
        DataError: as `refuse_closed`.
    """
    refuse_closed(steps)
    problems: list[Finding] = []
    found = False
    seen: set[MediaRef] = set()
    for step in steps:
        for role, ref in step.media.items():
            if ref is None:
                if role == "screenshot" and always_shown:
                    problems.append(
                        medium_broken(step, role, "the row names no file", "a screenshot")
                    )
                continue
            if ref in seen or ref.inline is not None or unsafe(ref.path):
                continue
            try:
                if isinstance(ref.cell, Cut):
                    resolve(around(ref, ref.cell))
                elif ref.kind == "image":
                    differs = size_differs(step, role, image_size(ref))
                    problems += [differs] if differs else []
                else:
                    resolve(ref)
                found = True
                seen.add(ref)
            except MediaError as error:
                found = found or not isinstance(error, MissingMediaError)
                seen.add(ref)
                problems.append(
                    medium_broken(step, role, f"{error.what}: {error.where}", error.expected)
                )
    if found:
        for problem in problems:
            note(problem)
    else:
        note(media_absent(steps))


def refuse_closed(steps: Sequence[Step]) -> None:
    """Say once, before any work, which folders with media the user would have to name.

    Every medium there would be refused: the folder is a link that leads outside the data, or one
    that a linked repository lists.

    Raises:
        DataError: there are such folders; it names the options to type.
    """
    refs = (ref for step in steps for ref in step.media.values() if ref and ref.inline is None)
    known: dict[tuple[Path, tuple[str, ...]], MediaRef] = {}
    for ref in refs:
        known.setdefault((ref.root, ref.within), ref)
    if folders := sorted({str(ref.root) for ref in known.values() if closed(ref)}):
        leads = sorted({real(Path(folder)) for folder in folders})
        raise DataError(
            f"the media lie outside the data, below {', '.join(leads)}",
            where=", ".join(folders),
            expected="media inside the folder that was named, links followed",
            remedy=naming(leads),
        )


def media_absent(steps: Sequence[Step]) -> Finding:
    """The one finding for annotations alone."""
    refs = [ref for step in steps for ref in step.media.values() if ref]
    roots = Counter(ref.root for ref in refs)
    pictures = bool(refs) and all(ref.kind == "image" for ref in refs)
    return Finding(
        "media-absent",
        "warning",
        str(roots.most_common(1)[0][0]) if roots else "media",
        "none of the media that the rows name exists",
        "screenshots" if pictures else "screenshots, clips and audio",
        "fine for scoring; a model needs the media below that folder",
    )


def medium_broken(step: Step, role: str, what: str, expected: str) -> Finding:
    """The finding for a medium that no model can take."""
    return Finding(
        "media-broken",
        "error",
        step.sample_id,
        f"{role.replace('_', ' ')}: {what}",
        expected,
        "restore the file; a model that takes it is not asked about this step until then",
    )


def size_differs(step: Step, role: str, size: Screen) -> Finding | None:
    """The finding for a screenshot that is not of the size that its row states."""
    row = step.source
    stated = row.get("resolution") or (row.get("image_width") and row.get("image_height"))
    if role != "screenshot" or not stated or size == step.screen:
        return None
    return Finding(
        "size-differs",
        "warning",
        step.sample_id,
        f"the screenshot has {size[0]} x {size[1]} pixels, the row says "
        f"{step.screen[0]} x {step.screen[1]}",
        "the same size in both",
        "correct the row: targets are in pixels of that size",
    )
