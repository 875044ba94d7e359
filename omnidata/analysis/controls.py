"""The data with the wrong sounds or clips, or with none: a deaf or blind model never notices.

Nothing of the data is written to: steps point to the media of other episodes, or to files made for
them. All else about a step stays, so everything downstream goes its normal way.
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
from omnidata.loaders.stored_steps import collect
from omnidata.media import AUDIO_RATE, SILENCE, encode_mp4, encode_wav
from omnidata.run.altered_media import MEDIUM, Control, media_of
from omnidata.storage import atomic_write, wrap_os_error
from omnidata.types import LoadedDataset, MediaRef, Progress, Step

# Whose sound or clip an episode gets: that of another one, whose answer differs where known.
#
# Every episode's media are used about once, so the sounds of a control are those of the data; only
# which step they belong to is wrong.

Episodes = Mapping[str, Sequence[Step]]
"""The steps that have the medium, by episode."""
Tells = Callable[[Step, Step], bool]
"""Whether the medium of two steps differs."""


def partners(
    episodes: Episodes, *, seed: int = 0, tells: Tells = lambda own, other: True
) -> dict[str, str | None]:
    """For each episode another one; never itself.

    Of twins, episodes that a medium alone tells apart, it is one whose answers differ, if this is
    the medium. Others get an episode of their app, else of their language, else any, but none of
    their own group of twins, whose answers or whose medium may be the same.

    Args:
        episodes: those that have the medium.
        seed: of the order in which they follow each other.
        tells: asked of steps of twins with different answers.

    Returns:
        Episode -> the other one; None where there is none.
    """
    order = list(episodes)
    random.Random(seed).shuffle(order)
    groups = {key: steps[0].group for key, steps in episodes.items()}
    found: dict[str, str | None] = {}
    for ring in _rings(order, lambda key: groups[key]):
        for key in ring:
            if twin := _twin(key, ring, episodes, tells):
                found[key] = twin
    tiers: Sequence[Callable[[str], Hashable]] = (
        lambda key: episodes[key][0].tags.get("app"),
        lambda key: episodes[key][0].tags.get("language"),
        lambda key: None,
    )
    for tier in tiers:
        for ring in _rings(order, tier):
            for place, key in enumerate(ring):
                if key not in found:
                    following = (*ring[place + 1 :], *ring[:place])
                    other = next((o for o in following if groups[o] != groups[key]), None)
                    if other:
                        found[key] = other
    return {key: found.get(key) for key in episodes}


def _rings(order: Sequence[str], of: Callable[[str], Hashable]) -> list[list[str]]:
    """The episodes by what they have in common, each part in the given order."""
    rings: dict[Hashable, list[str]] = {}
    for key in order:
        rings.setdefault(of(key), []).append(key)
    return list(rings.values())


def _twin(key: str, ring: Sequence[str], episodes: Episodes, tells: Tells) -> str | None:
    """The next of its group with other answers, at as many steps as any has; None without one."""
    place = ring.index(key)
    following = [*ring[place + 1 :], *ring[:place]]
    if not following:
        return None
    counts = [_differing(episodes[key], episodes[other], tells) for other in following]
    most = max(counts)
    return following[counts.index(most)] if most else None


def _differing(own: Sequence[Step], other: Sequence[Step], tells: Tells) -> int:
    """At how many steps the answers of two episodes are known to differ, and the medium does."""
    others = {step.step_index: step for step in other}
    pairs = [(step, others[step.step_index]) for step in own if step.step_index in others]
    return sum(
        a.action is not None and b.action is not None and a.action != b.action and tells(a, b)
        for a, b in pairs
    )


# Media that say nothing: silence as long as a sound, a clip in which nothing moves.

_MOST_FPS_PARTS = 1001  # 29.97 is 30000/1001


def nothing_in(ref: MediaRef, folder: Path) -> MediaRef:
    """A medium of the same length that says nothing.

    Args:
        ref: a sound, which becomes silence, or a clip, of which the first frame stays.
        folder: for the file; one that is there already is used.

    Raises:
        MediaError: the medium cannot be decoded.
        RunError: the file cannot be written.
    """
    if ref.kind == "audio":
        length = len(media.samples(ref, rate=AUDIO_RATE))
        name = f"silence-{length}.wav"
    else:
        name = f"frozen-{hashlib.sha256(media.read_bytes(ref)).hexdigest()[:24]}.mp4"
    path = folder / name
    if not path.is_file():
        content = encode_wav(np.zeros(length)) if ref.kind == "audio" else _frozen(ref)
        with wrap_os_error(folder):
            folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as file:
                file.write(content)
    return MediaRef(ref.kind, folder, name)


def _frozen(ref: MediaRef) -> bytes:
    """The first frame, as often and as fast as the clip has frames."""
    found = media.probe(ref)
    first = media.frames(ref, num_frames=1).pixels[0]
    height, width = (extent - extent % 2 for extent in first.shape[:2])  # as the codec wants it
    frames, seconds = found.frames or 1, found.seconds or 1.0
    rate = Fraction(found.fps or frames / seconds).limit_denominator(_MOST_FPS_PARTS)
    return encode_mp4(repeat(first[:height, :width], frames), fps=rate)


_OTHERS = ("other-sound", "other-clip", "other-picture")


@dataclass(frozen=True, slots=True)
class Altered:
    """Data under a control.

    Attributes:
        source: the data, whose steps have altered media, and which says so.
        given: sample id of each altered step -> the step whose medium it has; None for a medium
            that says nothing.
        left_out: ids of the steps of episodes that could not be altered; they are to be excluded.
        findings: which episodes those are, and what weakens the control; or why nothing is altered.
    """

    source: LoadedDataset
    given: Mapping[str, str | None]
    left_out: frozenset[str]
    findings: tuple[Finding, ...]


def altered(
    source: LoadedDataset,
    control: Control,
    folder: Path,
    *,
    steps: Collection[str] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Altered:
    """The data under a control.

    Args:
        source: the data.
        control: what is altered.
        folder: for the files that are made; those that are there already are used.
        steps: ids of the steps to alter; None alters all.
        seed: of the choice of other episodes.
        progress: called with the number of steps done and of all.
    """
    wanted = [step for step in source.steps if steps is None or step.sample_id in steps]
    worker = _Worker(source, control, folder, seed)
    made: dict[str, Step] = {}
    for number, step in enumerate(wanted, 1):
        if other := worker.alter(step):
            made[step.sample_id] = other
        if progress:
            progress(number, len(wanted))
    bad = worker.bad
    left_out = frozenset(step.sample_id for step in wanted if step.episode in bad)
    given = {name: given for name, given in worker.given.items() if name not in left_out}
    record = {
        "name": control,
        "seed": seed if control in _OTHERS else None,
        "steps": len(given.keys() - set(worker.same)),
    }
    kept = collect(made.get(step.sample_id, step) for step in source.steps)
    found = tuple(_findings(worker, control) if given else [_impossible(worker, control)])
    return Altered(replace(source, steps=kept, media_overrides=record), given, left_out, found)


class _Worker:
    """Alters one step after the other, and keeps what went wrong by episode."""

    def __init__(self, source: LoadedDataset, control: Control, folder: Path, seed: int) -> None:
        self.kind = MEDIUM[control]
        self.folder = folder
        self.given: dict[str, str | None] = {}
        self.bad: dict[str, str] = {}  # episode -> why
        self.clips_with_sound: dict[str, str] = {}  # episode -> a step
        self.same: list[str] = []  # steps whose new medium is their own to the byte
        self._media: dict[str, list[Step]] = {}  # episode -> its steps with the medium
        for step in source.steps:
            if media_of(step, self.kind):
                self._media.setdefault(step.episode, []).append(step)
        self._partners: Mapping[str, str | None] | None = None
        if control in _OTHERS:
            self._partners = partners(self._media, seed=seed, tells=self._tells)

    def alter(self, step: Step) -> Step | None:
        """The step with another medium; None for one without, and for one that stays as it is."""
        own, episode = media_of(step, self.kind), step.episode
        if episode not in self._media:
            self.bad.setdefault(episode, f"no step of it has {self.kind}")
        if not own or episode in self.bad:
            return None
        given: str | None = None
        try:
            if self._partners is None:
                changed = {role: nothing_in(ref, self.folder) for role, ref in own.items()}
            else:
                partner = self._partners[episode]
                if partner is None:
                    self.bad[episode] = f"no other episode has {self.kind}"
                    return None
                other = self._like(step, self._media[partner])
                given = other.sample_id
                changed = self._counterparts(own, other)
                if not self._tells(step, other):
                    self.same.append(step.sample_id)
        except MediaError as error:
            self.bad[episode] = f"a medium cannot be altered: {error.where}: {error.what}"
            return None
        self._listen(step, episode)
        self.given[step.sample_id] = given
        return replace(step, media={**step.media, **changed})

    @staticmethod
    def _like(step: Step, others: list[Step]) -> Step:
        """The other episode's step at the same place, or, where it has none, one in its turn."""
        same = next((each for each in others if each.step_index == step.step_index), None)
        return same or others[step.step_index % len(others)]

    def _counterparts(self, own: Mapping[str, MediaRef], other: Step) -> dict[str, MediaRef]:
        """Another step's media for the roles of these: of a role that it lacks its first."""
        found = media_of(other, self.kind)
        first = next(iter(found.values()))
        return {role: found.get(role, first) for role in own}

    def _tells(self, step: Step, other: Step) -> bool:
        """Whether two steps have different media, as far as they can be read."""
        own, others = media_of(step, self.kind), media_of(other, self.kind)
        if own.keys() != others.keys():
            return True
        return any(_differ(ref, others[role]) for role, ref in own.items())

    def _listen(self, step: Step, episode: str) -> None:
        """Notice a clip that has a sound of its own, which some models hear."""
        clip = next(iter(media_of(step, "video").values()), None)
        if clip and episode not in self.clips_with_sound and _audible(clip):
            self.clips_with_sound[episode] = step.sample_id


def _differ(one: MediaRef, other: MediaRef) -> bool:
    try:
        own, others = media.file_or_bytes(one), media.file_or_bytes(other)
        if isinstance(own, Path) and isinstance(others, Path):
            return not filecmp.cmp(own, others, shallow=False)
    except (MediaError, OSError):
        return True
    return own != others


def _audible(clip: MediaRef) -> bool:
    import numpy as np

    try:
        return bool(np.abs(media.samples(clip)).max() > SILENCE)
    except MediaError:  # no track, or none that can be heard
        return False


def _impossible(worker: _Worker, control: Control) -> Finding:
    """Why no step could be altered."""
    kind = worker.kind
    whys = dict.fromkeys(worker.bad.values()) or [f"no step that is asked about has {kind}"]
    return Finding(
        "control-impossible",
        "warning",
        control,
        f"no episode can be altered: {'; '.join(whys)}",
        f"episodes whose {kind} can be replaced",
        "nothing to do; the control is left out",
    )


def _findings(worker: _Worker, control: Control) -> Iterator[Finding]:
    for episode, why in worker.bad.items():
        yield Finding(
            "control-impossible",
            "warning",
            episode,
            f"{control}: {why}",
            f"an episode whose {worker.kind} can be replaced",
            "nothing to do; the episode is left out of the control and its differences",
        )
    if worker.same:
        yield Finding(
            "control-same-medium",
            "warning",
            f"{worker.same[0]}, {len(worker.same)} of {len(worker.given)} steps",
            f"{control}: the {worker.kind} of the other episode equals the step's own",
            "other media",
            "nothing to do; the control has no effect at these steps",
        )
    for episode, sample_id in worker.clips_with_sound.items():
        left = "still has it" if worker.kind == "audio" else "may lose it"
        yield Finding(
            "control-clip-with-sound",
            "warning",
            f"{episode} ({sample_id})",
            f"{control}: the clip has a sound of its own, and {left}",
            "clips without sound",
            "nothing to do, unless the model hears the clip's own sound",
        )
