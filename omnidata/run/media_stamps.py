"""Which files a model was shown, so that a run is neither resumed nor scored on others.

The record is `media` in a step's receipt: by role, the size and time of the file and the hash of
the medium. Equal sizes and times are taken for equal files; else, as on another machine, the hash
decides. Receipts of older runs have none, and nothing is said of those.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec

from omnidata import media
from omnidata.adapters.media_budget import parts_of
from omnidata.errors import MediaError, RunError
from omnidata.media import DEFAULT_BUDGET, Budget, around
from omnidata.run.journal import TRANSIENT
from omnidata.tasks.asking import Asking
from omnidata.types import Conversation, Delivery, MediaRef, Modality, Step, VideoSegment

_WHOLE = Budget(max_bytes=1 << 60)
"""Files that hold many media are as large as they like; of them only the time is asked."""

_NAMED = 3
_KNOWN = 65_536
Refs = Mapping[str, MediaRef | None]


class Stamp(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a medium was when a model was shown it.

    Attributes:
        size: bytes of the file that holds it.
        mtime_ns: when that file was last written, in nanoseconds since 1970.
        sha256: of the medium, in hexadecimal; of one that is cut from a recording, the recording's.
        until: the share of its time that was shown; None if all of it was shown.

    A medium that a row holds inline has no file, and is part of the annotations: of it there is
    `until` alone.
    """

    size: int = 0
    mtime_ns: int = 0
    sha256: str = ""
    until: float | None = None


def _media_of(conversation: Conversation) -> dict[str, MediaRef]:
    return {part.role: part.media for part in parts_of(conversation) if part.media}


def stamps(conversation: Conversation, accepts: frozenset[Modality]) -> dict[str, Any]:
    """What is to be in the receipt of an answer, as JSON values.

    Media that a row holds inline are part of the annotations, which are held against the run
    anyway: they are in the receipt where a part of them was shown. Those that cannot be read were
    not shown.
    """
    found = {}
    for role, ref in _media_of(conversation).items():
        if ref.kind not in accepts or (ref.inline is not None and ref.until == 1):
            continue
        try:
            found[role] = msgspec.to_builtins(_stamp(replace(ref, marks=())))
        except (MediaError, OSError):
            continue
    return found


class Seen:
    """The media that answers were given to, held against the files one answer after another.

    Args:
        task: makes the prompts, for media that are not the step's own; without it nothing is said
            of these.
    """

    def __init__(self, task: Asking | None = None) -> None:
        self._task = task
        self._changed: dict[str, list[str]] = {}
        self._known: dict[tuple[str, Stamp], bool] = {}

    def look(self, step: Step, delivery: Delivery, receipt: Mapping[str, Any]) -> None:
        """Compare the files of a step with what the receipt of its answer says."""
        if delivery in TRANSIENT or "media" not in receipt:
            return
        then = _read(receipt["media"])
        own = then.keys() <= step.media.keys()
        refs: Refs = step.media
        if self._task and not own:
            refs = {**_media_of(self._task.conversation(step, [])), **step.media}
        for role, stamp in then.items():
            ref = refs.get(role)
            if ref is None or ref.inline is not None or not stamp.sha256:
                continue
            place = media.place(ref)
            if (place, stamp) not in self._known:
                if len(self._known) == _KNOWN:  # of a million media not all can be remembered
                    self._known.clear()
                self._known[place, stamp] = _has_changed(ref, stamp)
            if self._known[place, stamp]:
                self._changed.setdefault(place, []).append(step.sample_id)

    def check(self, *, allowed: bool, where: str) -> int:
        """Say how many media have changed.

        Args:
            allowed: whether to go on where some have.
            where: the run folder, for the message.

        Raises:
            RunError: some have, and that is not allowed.
        """
        changed = self._changed
        if changed and not allowed:
            answered = {sample_id for found in changed.values() for sample_id in found}
            named = "; ".join(f"{place} ({ids[0]})" for place, ids in [*changed.items()][:_NAMED])
            raise RunError(
                f"{len(changed)} media of {len(answered)} answered steps have changed since "
                f"the model was asked: {named}" + ("; ..." if len(changed) > _NAMED else ""),
                where=where,
                expected="the files that the model was asked about",
                remedy="restore them, start a new run folder, or accept the change with "
                "--changed-media",
            )
        return len(changed)


def _read(recorded: Any) -> dict[str, Stamp]:
    try:
        return msgspec.convert(recorded or {}, dict[str, Stamp])
    except msgspec.ValidationError:  # an adapter of somebody's own may say something else there
        return {}


def _stamp(ref: MediaRef) -> Stamp:
    if ref.inline is not None:
        return Stamp(until=ref.until)
    whole = replace(ref, until=1.0)
    size, mtime_ns = _size_and_time(whole)
    return Stamp(size, mtime_ns, _digest(whole), ref.until if ref.until < 1 else None)


def _has_changed(ref: MediaRef, then: Stamp) -> bool:
    """Whether a medium differs from its stamp; False for a missing one."""
    try:
        size, mtime_ns = _size_and_time(ref)
        if (size, mtime_ns) == (then.size, then.mtime_ns):
            return False
        return _digest(ref) != then.sha256
    except MediaError as error:
        return error.fault not in ("missing", "refused")
    except OSError:
        return False


def _holder(ref: MediaRef) -> MediaRef:
    return ref if ref.cell is None else around(ref, ref.cell)


def _size_and_time(ref: MediaRef) -> tuple[int, int]:
    holder = _holder(ref)
    if media.unsafe(holder.path):
        media.resolve(holder)  # says why it may not be followed
    found = media.spelling_on_disk(holder.root, holder.path).stat()
    return found.st_size, found.st_mtime_ns


def _digest(ref: MediaRef) -> str:
    if ref.cell is not None and not isinstance(ref.cell, VideoSegment):
        return hashlib.sha256(media.read_stored(ref)).hexdigest()
    return media.file_hash(_holder(ref), budget=DEFAULT_BUDGET if ref.cell is None else _WHOLE)
