"""Controls of an ablation: data with the wrong sounds or clips, or with silence and frozen clips.

A model that does not use a medium scores the same. The data are not changed: steps point to media
of other episodes, or to new files. Everything else about a step stays.
"""

from __future__ import annotations

import filecmp
import hashlib
import random
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import repeat
from pathlib import Path

import numpy as np

from omnidata import media
from omnidata.errors import Finding, MediaError
from omnidata.loaders.steps import Steps
from omnidata.media import AUDIO_RATE, SILENCE, encode_mp4, encode_wav
from omnidata.run.altered_media import MEDIUM, Control, media_of_kind
from omnidata.storage import atomic_write, wrap_os_error
from omnidata.types import LoadedDataset, MediaRef, Modality, Progress, Step

_OTHERS = ("other-sound", "other-clip", "other-picture")
_MOST_FPS_PARTS = 1001  # 29.97 is 30000/1001


@dataclass(frozen=True, slots=True)
class Altered:
    """Data under a control.

    Attributes:
        source: the data with altered media, which record the control.
        given: sample id of each altered step -> the step whose medium it has; None for a medium
            that says nothing.
        left_out: ids of the steps of episodes that could not be altered; exclude them.
        findings: these episodes and weaknesses of the control; or why nothing is altered.
    """

    source: LoadedDataset
    given: Mapping[str, str | None]
    left_out: frozenset[str]
    findings: tuple[Finding, ...]


def alter(
    source: LoadedDataset,
    control: Control,
    folder: Path,
    *,
    steps: Collection[str] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Altered:
    """Return the data with the wrong sounds, clips or pictures, or with silence or frozen clips.

    Args:
        source: the data.
        control: which media are altered, and how.
        folder: for new files; existing ones are reused.
        steps: ids of the steps to alter; None alters all.
        seed: for the choice of other episodes.
        progress: called with the number of steps done and of all.
    """
    kind = MEDIUM[control]
    wanted = [step for step in source.steps if steps is None or step.sample_id in steps]
    work = _Altering(source, control, folder, seed)
    for number, step in enumerate(wanted, 1):
        work.alter(step)
        if progress:
            progress(number, len(wanted))
    left_out = frozenset(step.sample_id for step in wanted if step.episode in work.bad)
    record = {
        "name": control,
        "seed": seed if control in _OTHERS else None,
        "steps": len(work.given.keys() - left_out - {*work.same}),
    }
    findings = [*_findings(control, work)]
    given = {name: other for name, other in work.given.items() if name not in left_out}
    if not given:
        whys = dict.fromkeys(work.bad.values()) or [f"no step that is asked about has {kind}"]
        what = f"no episode can be altered: {'; '.join(whys)}"
        findings = [_impossible(kind, control, what, "episodes", "the control is left out")]
    kept = Steps.of(work.made.get(step.sample_id, step) for step in source.steps)
    altered = replace(source, steps=kept, media_overrides=record)
    return Altered(altered, given, left_out, tuple(findings))


class _Altering:
    """Steps with other media.

    Attributes:
        made: sample id -> the altered step.
        given: sample id -> the step that the media belong to; None for media that say nothing.
        bad: episode -> why it cannot be altered.
        same: ids of steps whose new medium equals their own, byte for byte.
        with_sound: episode whose clips have sounds of their own -> a step of it.
    """

    def __init__(self, source: LoadedDataset, control: Control, folder: Path, seed: int) -> None:
        self._kind, self._folder = MEDIUM[control], folder
        self._episodes: dict[str, list[Step]] = {}
        for step in source.steps:
            if media_of_kind(step, self._kind):
                self._episodes.setdefault(step.episode, []).append(step)
        is_swap = control in _OTHERS
        self._partners = _partners(self._episodes, self._kind, seed) if is_swap else None
        self.made: dict[str, Step] = {}
        self.given: dict[str, str | None] = {}
        self.bad: dict[str, str] = {}
        self.same: list[str] = []
        self.with_sound: dict[str, str] = {}

    def alter(self, step: Step) -> None:
        """Alter a step that has the medium, unless its episode is bad."""
        episode, kind = step.episode, self._kind
        if episode not in self._episodes:
            self.bad.setdefault(episode, f"no step of it has {kind}")
        if episode in self.bad or not media_of_kind(step, kind):
            return
        partner = self._partners[episode] if self._partners else None
        if self._partners and not partner:
            self.bad[episode] = f"no other episode has {kind}"
            return
        others = self._episodes[partner] if partner else ()
        try:
            changed, of = _alter_step(step, kind, others, self._folder)
        except MediaError as error:
            self.bad[episode] = f"a medium cannot be altered: {error.where}: {error.what}"
            return
        self.made[step.sample_id], self.given[step.sample_id] = changed, of
        if partner and not _differ(step, changed, kind):
            self.same.append(step.sample_id)
        clip = next(iter(media_of_kind(step, "video").values()), None)
        if clip and episode not in self.with_sound and _is_audible(clip):
            self.with_sound[episode] = step.sample_id


def _alter_step(
    step: Step, kind: Modality, others: Sequence[Step], folder: Path
) -> tuple[Step, str | None]:
    """Return the step with other media, and the id of the step that they belong to.

    That is the step at the same place of the other episode, or one in its turn; of a role that it
    lacks its first medium is taken. Without another episode the media say nothing.
    """
    own = media_of_kind(step, kind)
    if not others:
        silent = {role: _nothing_in(ref, folder) for role, ref in own.items()}
        return replace(step, media={**step.media, **silent}), None
    same = next((each for each in others if each.step_index == step.step_index), None)
    other = same or others[step.step_index % len(others)]
    found = media_of_kind(other, kind)
    first = next(iter(found.values()))
    changed = {role: found.get(role, first) for role in own}
    return replace(step, media={**step.media, **changed}), other.sample_id


def _nothing_in(ref: MediaRef, folder: Path) -> MediaRef:
    """Return silence as long as a sound, or a clip in which the first frame stays."""
    if ref.kind == "audio":
        length = len(media.samples(ref, rate=AUDIO_RATE))
        name = f"silence-{length}.wav"
    else:
        name = f"frozen-{hashlib.sha256(media.read_bytes(ref)).hexdigest()[:24]}.mp4"
    path = folder / name
    if not path.is_file():
        content = encode_wav(np.zeros(length)) if ref.kind == "audio" else _freeze(ref)
        with wrap_os_error(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as file:
                file.write(content)
    return MediaRef(ref.kind, folder, name)


def _freeze(ref: MediaRef) -> bytes:
    found = media.probe(ref)
    first = media.frames(ref, num_frames=1).pixels[0]
    height, width = (extent - extent % 2 for extent in first.shape[:2])  # as the codec wants it
    frames, seconds = found.frames or 1, found.seconds or 1.0
    rate = Fraction(found.fps or frames / seconds).limit_denominator(_MOST_FPS_PARTS)
    return encode_mp4(repeat(first[:height, :width], frames), fps=rate)


def _differ(step: Step, other: Step, kind: Modality) -> bool:
    """Return whether two steps have different media, as far as they can be read."""
    own, others = media_of_kind(step, kind), media_of_kind(other, kind)
    if own.keys() != others.keys():
        return True
    for role, ref in own.items():
        try:
            one, two = media.file_or_bytes(ref), media.file_or_bytes(others[role])
            if isinstance(one, Path) and isinstance(two, Path):
                equal = filecmp.cmp(one, two, shallow=False)
            else:
                equal = one == two
        except (MediaError, OSError):
            equal = False
        if not equal:
            return True
    return False


def _is_audible(clip: MediaRef) -> bool:
    try:
        return bool(np.abs(media.samples(clip)).max() > SILENCE)
    except MediaError:  # no track, or none that can be heard
        return False


# Partners: whose sound or clip an episode gets. Every episode's media are used about once, so the
# sounds of a control are those of the data; only the steps to which they belong are wrong.

_Episodes = Mapping[str, Sequence[Step]]


def _partners(episodes: _Episodes, kind: Modality, seed: int) -> dict[str, str | None]:
    """Return for each episode another one; None where there is none.

    Of twins, episodes that only a medium tells apart, it is one whose answers differ, if it is this
    medium. Others get an episode of their app, else of their language, else any, but none of their
    own group of twins, whose answers or whose medium may be the same.
    """
    order = list(episodes)
    random.Random(seed).shuffle(order)
    groups = {key: steps[0].group for key, steps in episodes.items()}
    found: dict[str, str] = {}
    for key, others in _rings(order, lambda key: groups[key]):
        twins = list(others)
        counts = [_contradictions(episodes[key], episodes[other], kind) for other in twins]
        if most := max(counts, default=0):
            found[key] = twins[counts.index(most)]
    tiers: Sequence[Callable[[str], Hashable]] = (
        lambda key: episodes[key][0].tags.get("app"),
        lambda key: episodes[key][0].tags.get("language"),
        lambda key: None,
    )
    for tier in tiers:
        for key, others in _rings(order, tier):
            if key not in found:
                other = next((each for each in others if groups[each] != groups[key]), None)
                if other:
                    found[key] = other
    return {key: found.get(key) for key in episodes}


def _rings(
    order: Sequence[str], of: Callable[[str], Hashable]
) -> Iterator[tuple[str, Iterator[str]]]:
    """Yield each episode and those that have a value in common with it, in turn from the next."""
    rings: dict[Hashable, list[str]] = {}
    for key in order:
        rings.setdefault(of(key), []).append(key)
    for ring in rings.values():
        for place, key in enumerate(ring):
            yield key, (ring[place - back] for back in range(len(ring) - 1, 0, -1))


def _contradictions(own: Sequence[Step], other: Sequence[Step], kind: Modality) -> int:
    """Count the steps whose answers are known to differ, and whose medium does."""
    others = {step.step_index: step for step in other}
    pairs = [(step, others[step.step_index]) for step in own if step.step_index in others]
    return sum(
        a.action is not None
        and b.action is not None
        and a.action != b.action
        and _differ(a, b, kind)
        for a, b in pairs
    )


# Findings.


def _impossible(kind: Modality, where: str, what: str, unit: str, remedy: str) -> Finding:
    return Finding(
        "control-impossible",
        "warning",
        where,
        what,
        f"{unit} whose {kind} can be replaced",
        f"nothing to do; {remedy}",
    )


def _findings(control: Control, work: _Altering) -> Iterator[Finding]:
    kind = MEDIUM[control]
    remedy = "the episode is left out of the control and its differences"
    for episode, why in work.bad.items():
        yield _impossible(kind, episode, f"{control}: {why}", "an episode", remedy)
    if work.same:
        yield Finding(
            "control-same-medium",
            "warning",
            f"{work.same[0]}, {len(work.same)} of {len(work.given)} steps",
            f"{control}: the {kind} of the other episode equals the step's own",
            "other media",
            "nothing to do; the control has no effect at these steps",
        )
    for episode, sample_id in work.with_sound.items():
        left = "still has it" if kind == "audio" else "may lose it"
        yield Finding(
            "control-clip-with-sound",
            "warning",
            f"{episode} ({sample_id})",
            f"{control}: the clip has a sound of its own, and {left}",
            "clips without sound",
            "nothing to do, unless the model hears the clip's own sound",
        )
