"""Check the media that rows name: do they exist, and are the screenshots what the rows say?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from omnidata.actions import Screen
from omnidata.errors import DataError, Finding, MediaError, MissingMediaError, plural
from omnidata.files import naming, real
from omnidata.loaders.steps import media_of
from omnidata.media import (
    around,
    is_remote,
    leads_outside,
    picture_info,
    resolve,
    unpack_zip,
    unsafe,
)
from omnidata.types import MediaRef, Step, VideoSegment


def check_media_files(
    steps: Sequence[Step], note: Callable[[Finding], None], *, always_shown: bool = True
) -> None:
    """Check that every medium exists, and that every screenshot is whole and of the stated size.

    If no medium exists, the data are annotations alone, and one finding says so. Media on an object
    store are only looked up in its listing; `omnidata validate` downloads them.

    Args:
        steps: of the dataset.
        note: takes the findings.
        always_shown: whether to report steps without a screenshot.

    Raises:
        DataError: as `refuse_closed`.
    """
    refuse_closed(media_of(steps))
    if not any(seen.there for seen in _look_at_all(steps, always_shown)):
        note(media_absent(steps))
        return
    turned: list[str] = []
    for seen in _look_at_all(steps, always_shown):
        if seen.problem is not None:
            note(seen.problem)
        if seen.turned:
            turned.append(seen.step.sample_id)
    if turned:
        note(media_turned(Counter(image=len(turned)), turned))


class _Seen(NamedTuple):
    step: Step
    there: bool
    problem: Finding | None = None
    turned: bool = False


def _look_at_all(steps: Sequence[Step], always_shown: bool) -> Iterator[_Seen]:
    """Look at every medium once, and at every screenshot that is missing."""
    met = set[int]()
    for step in steps:
        for role, ref in step.media.items():
            if ref is None:
                if role == "screenshot" and always_shown:
                    what = "the row names no file"
                    yield _Seen(step, False, medium_broken(step, role, what, "a screenshot"))
                continue
            if ref.inline is not None or (ref.cell is None and unsafe(ref.path)):
                continue  # of what lies in a file of rows the path is a name, which nobody follows
            # Of a million media two have the same hash once in ten million datasets, and the media
            # themselves would take a gigabyte.
            if (number := hash(ref)) not in met:
                met.add(number)
                yield _look_at(step, role, ref)


def _look_at(step: Step, role: str, ref: MediaRef) -> _Seen:
    try:
        if ref.kind == "image" and not isinstance(ref.cell, VideoSegment) and not is_remote(ref):
            about = picture_info(ref)
            return _Seen(step, True, size_differs(step, role, about.size), about.turned)
        file = around(ref, ref.cell) if isinstance(ref.cell, VideoSegment) else ref
        resolve(file, download=False)
    except MediaError as error:
        problem = medium_broken(step, role, f"{error.what}: {error.where}", error.expected)
        return _Seen(step, not isinstance(error, MissingMediaError), problem)
    return _Seen(step, True)


def refuse_closed(refs: Iterable[MediaRef]) -> None:
    """Refuse media in folders that the user has not allowed, before any work.

    Every medium there would be refused: the folder is a link that leads outside the data, or one
    that a linked repository lists.

    Raises:
        DataError: there are such folders; it names the options to type.
    """
    known: dict[tuple[Path, tuple[str, ...]], MediaRef] = {}
    for ref in refs:
        if ref.inline is None:
            known.setdefault((ref.root, ref.within), ref)
    if folders := sorted({str(ref.root) for ref in known.values() if leads_outside(ref)}):
        leads = sorted({real(Path(folder)) for folder in folders})
        raise DataError(
            f"the media are outside the data, below {', '.join(leads)}",
            where=", ".join(folders),
            expected="media inside the named folder, after links are resolved",
            remedy=naming(leads),
        )


def media_absent(steps: Sequence[Step]) -> Finding:
    """Return the finding for data without any media."""
    found = Counter((ref.root, ref.kind) for ref in media_of(steps))
    roots: Counter[Path] = Counter()
    for (root, _), count in found.items():
        roots[root] += count
    pictures = {kind for _, kind in found} == {"image"}
    first = next(media_of(steps), None)
    unpack = unpack_zip(first) if first else ""
    return Finding(
        "media-absent",
        "warning",
        str(roots.most_common(1)[0][0]) if roots else "media",
        "none of the media that the rows name exist",
        "screenshots" if pictures else "screenshots, clips and audio",
        f"{unpack or 'fine for scoring'}; to ask a model, put the media below that folder",
    )


def medium_broken(step: Step, role: str, what: str, expected: str) -> Finding:
    """Return the finding for a medium that no model can take."""
    return Finding(
        "media-broken",
        "error",
        step.sample_id,
        f"{role.replace('_', ' ')}: {what}",
        expected,
        "restore the file; until then models that use it skip the step",
        (step.sample_id,),
    )


def media_turned(counts: Mapping[str, int], sample_ids: Sequence[str]) -> Finding:
    """Return the finding for pictures and clips that are stored rotated.

    Args:
        counts: of the media, by kind.
        sample_ids: of steps that have them, at least one.
    """
    nouns = {"image": "picture", "video": "clip"}
    media = [plural(counts[kind], noun) for kind, noun in nouns.items() if counts.get(kind)]
    return Finding(
        "media-turned",
        "warning",
        sample_ids[0],
        f"{' and '.join(media)} with an orientation tag (EXIF, display matrix)",
        "media stored as they are displayed",
        "nothing, if the targets were made on media as viewers show them, which is how "
        "they are read; "
        "else remove the tags",
        tuple(sample_ids),
    )


def size_differs(step: Step, role: str, size: Screen) -> Finding | None:
    """Return the finding for a screenshot whose size differs from its row's.

    Where the row states none, the size was read from the picture, or is unknown: (0, 0).
    """
    if role != "screenshot" or size == step.screen or not any(step.screen):
        return None
    return Finding(
        "size-differs",
        "warning",
        step.sample_id,
        f"the screenshot has {size[0]} x {size[1]} pixels, the row says "
        f"{step.screen[0]} x {step.screen[1]}",
        "the same size in both",
        "correct the row: targets are in pixels of that size",
        (step.sample_id,),
    )
