"""What was made, counted; counts of parts add up to those of the whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from omnidata.synth.episodes.media import Files
from omnidata.synth.episodes.plans import GroupPlan
from omnidata.synth.episodes.vocabulary import CODES

AXES_OF_STEPS = (
    "media",
    "cues",
    "questions",
    "primitives",
    "apps",
    "languages",
    "words",
    "distractors",
)
"""What is counted by steps."""

AXES = (*AXES_OF_STEPS, "steps_per_episode")
"""What is counted; the last by episodes."""


class Tally:
    """Counts of episodes and steps."""

    def __init__(self) -> None:
        """Begin at nothing."""
        self._sizes: Counter[str] = Counter()
        self._axes: dict[str, Counter[str]] = {axis: Counter() for axis in AXES}
        self._bytes: Counter[str] = Counter()

    def add(self, group: GroupPlan, files: Sequence[Sequence[Files]], *, twins: int) -> None:
        """Count the first twins of a group; `files` by step and twin."""
        self._sizes.update(
            groups=1,
            incomplete_groups=int(twins < CODES),
            episodes=twins,
            steps=twins * len(group.steps),
        )
        self._axes["steps_per_episode"][str(len(group.steps))] += twins
        for step, made in zip(group.steps, files, strict=True):
            for twin in range(twins):
                self._axes["primitives"][step.action(twin).kind.name] += 1
                self._bytes["screenshot"] += len(made[twin].screenshot)
                self._bytes["video"] += len(made[twin].video)
                self._bytes["audio"] += len(made[twin].audio)
            for axis, name in (
                ("media", step.medium),
                ("cues", step.cue),
                ("questions", step.question),
                ("apps", group.look.name),
                ("languages", group.look.language),
                ("words", group.look.words),
                *(("distractors", name) for name in step.distraction.names()),
            ):
                self._axes[axis][name] += twins

    def merge(self, other: Mapping[str, Any]) -> None:
        """Add what `as_dict` gave of another one."""
        self._sizes.update(other["sizes"])
        self._bytes.update(other["bytes"])
        for axis in AXES:
            self._axes[axis].update(other[axis])

    def as_dict(self) -> dict[str, Any]:
        """The counts as JSON values, every axis in the order of its names."""
        return {
            "sizes": dict(sorted(self._sizes.items())),
            "bytes": dict(sorted(self._bytes.items())),
            **{axis: dict(sorted(counts.items())) for axis, counts in self._axes.items()},
        }
