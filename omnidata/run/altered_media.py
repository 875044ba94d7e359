"""Media of a run that differ from the data's on purpose: `control` in `run.json`.

Ablations alter them, and pages describe it.
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
"""The kind of medium that a control alters, in all its roles."""

_SHOWN: Final[Mapping[Control, str]] = {
    "other-sound": "the sound of another episode",
    "silence": "silence",
    "other-clip": "the clip of another episode",
    "frozen-clip": "the clip's first frame alone",
    "other-picture": "the picture of another episode",
}
_NOUNS: Final[Mapping[Modality, str]] = {"image": "pictures", "audio": "sounds", "video": "clips"}
_WITHOUT: Final = "without "


def media_of_kind(step: Step, kind: Modality) -> dict[str, MediaRef]:
    """Return a step's media of a kind, by role."""
    return {role: ref for role, ref in step.media.items() if ref and ref.kind == kind}


def without(source: LoadedDataset, kinds: Sequence[Modality]) -> LoadedDataset:
    """Return the data without the media of some kinds, marked as altered if it had any."""
    lost = [kind for kind in kinds if any(media_of_kind(step, kind) for step in source.steps)]
    if not lost:
        return source
    steps = Steps.of(step_without(step, lost, source.roles) for step in source.steps)
    return replace(source, steps=steps, media_overrides={"name": _WITHOUT + ", ".join(lost)})


def step_without(step: Step, kinds: Collection[Modality], roles: Mapping[str, Modality]) -> Step:
    """Return the step without the media of some kinds, and without their roles.

    A role without a medium would mean that the data lack it, and no model that sees is asked about
    a step without its screenshot.
    """
    kept = {
        role: ref
        for role, ref in step.media.items()
        if (ref.kind if ref else roles.get(role)) not in kinds
    }
    return replace(step, media=kept)


@dataclass(frozen=True, slots=True)
class Alteration:
    """How the media of a run were altered.

    Attributes:
        sentence: the description.
        removed: the kinds of media that were taken away.
        kind: the kind that was replaced; None if none was.
        shown: the words for the replacement; empty if there is none.
    """

    sentence: str
    removed: Sequence[Modality] = ()
    kind: Modality | None = None
    shown: str = ""


def read_alteration(control: str) -> Alteration:
    """Return the alteration that a control names; an unknown control has a sentence alone.

    Examples:
        >>> read_alteration("without audio, video").sentence
        "The model was asked without the steps' sounds and clips"
        >>> read_alteration("silence").sentence
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
            sentence = f"The model got {_SHOWN[name]} in place of each {noun} of a step"
            return Alteration(sentence, kind=MEDIUM[name], shown=_SHOWN[name])
    return Alteration(f"The model got altered media ({control})")
