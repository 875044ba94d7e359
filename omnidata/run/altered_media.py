"""How the media of a run may differ from the data's on purpose: `control` in `run.json`.

Ablations make such data and pages tell of them; neither of the two knows the other.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, cast, get_args

from omnidata.loaders.steps import Steps
from omnidata.types import LoadedDataset, MediaRef, Modality, Step

Control = Literal["other-sound", "silence", "other-clip", "frozen-clip", "other-picture"]
CONTROLS: tuple[Control, ...] = get_args(Control)
MEDIUM: Mapping[Control, Modality] = {
    "other-sound": "audio",
    "silence": "audio",
    "other-clip": "video",
    "frozen-clip": "video",
    "other-picture": "image",
}
"""The kind of medium that a control alters, in whatever roles steps have it."""

_SHOWN: Final[Mapping[Control, str]] = {
    "other-sound": "the sound of another episode",
    "silence": "silence",
    "other-clip": "the clip of another episode",
    "frozen-clip": "the clip's first frame alone",
    "other-picture": "the picture of another episode",
}
_NOUNS: Final[Mapping[Modality, str]] = {"image": "pictures", "audio": "sounds", "video": "clips"}
_WITHOUT: Final = "without "


def media_of(step: Step, kind: Modality) -> dict[str, MediaRef]:
    """A step's media of a kind, by role."""
    return {role: ref for role, ref in step.media.items() if ref and ref.kind == kind}


def without(source: LoadedDataset, kinds: Sequence[Modality]) -> LoadedDataset:
    """The data without the media of some kinds, which says so; as it is where it has none."""
    lost = [kind for kind in kinds if any(media_of(step, kind) for step in source.steps)]
    if not lost:
        return source
    steps = Steps.of(step_without(step, lost, source.roles) for step in source.steps)
    return replace(source, steps=steps, media_overrides={"name": _WITHOUT + ", ".join(lost)})


def step_without(step: Step, kinds: Collection[Modality], roles: Mapping[str, Modality]) -> Step:
    """The step without the media of some kinds, and without the roles of such media.

    A role without a medium is one that the data lack, and a step whose screenshot is lacking is
    asked of no model that sees.

    Args:
        step: of the data.
        kinds: those that are taken away.
        roles: of the data's media.
    """
    kept = {
        role: ref
        for role, ref in step.media.items()
        if (ref.kind if ref else roles.get(role)) not in kinds
    }
    return replace(step, media=kept)


@dataclass(frozen=True, slots=True)
class Alteration:
    """What a run's `control` says.

    Attributes:
        told: it, in a sentence.
        removed: the kinds of media that were taken away.
        kind: the one that was replaced; None where none was.
        shown: what stood in the place of each such medium; empty where none did.
    """

    told: str
    removed: Sequence[Modality] = ()
    kind: Modality | None = None
    shown: str = ""


def read_alteration(control: str) -> Alteration:
    """What the name of a control says; of one that nobody here knows, the name alone.

    Examples:
        >>> read_alteration("without audio, video").told
        "The model was asked without the steps' sounds and clips"
        >>> read_alteration("silence").told
        'The model got silence in place of each sound of a step'
    """
    listed = control.removeprefix(_WITHOUT).split(", ")
    if control.startswith(_WITHOUT) and _NOUNS.keys() >= {*listed}:
        lost = [cast("Modality", kind) for kind in listed]
        nouns = " and ".join(_NOUNS[kind] for kind in lost)
        return Alteration(f"The model was asked without the steps' {nouns}", lost)
    for name in CONTROLS:
        if name == control:
            noun = _NOUNS[MEDIUM[name]].removesuffix("s")
            told = f"The model got {_SHOWN[name]} in place of each {noun} of a step"
            return Alteration(told, kind=MEDIUM[name], shown=_SHOWN[name])
    return Alteration(f"The model got altered media ({control})")
