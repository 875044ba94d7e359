"""The task `omnigui`: loader, unified prompt, two profiles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata.actions import Action, Point, Primitive, Region, Screen, Space
from omnidata.loaders import omnigui as loader
from omnidata.metrics.omnigui_answer import Pair, Unread
from omnidata.metrics.omnigui_paper import PredictedSpace
from omnidata.metrics.omnigui_parser import parse
from omnidata.tasks import omnigui_baselines
from omnidata.tasks.omnigui_profiles import SPACES, PaperProfile, ReleaseProfile
from omnidata.tasks.omnigui_prompt import OPTIONS, Prompt
from omnidata.tasks.omnigui_target import target
from omnidata.tasks.options import resolve
from omnidata.tasks.resizing import on_screen
from omnidata.types import Conversation, Profile, Source, Step, Target

_FARTHEST = 1e9


class OmniGui:
    """OmniGUI: what does the agent do next, given what it sees, hears and remembers?

    Args:
        options: `modalities`, `history`, `history_screenshot`, `prompt_form`, `voice` (a folder of
            WAV files), `voice_form`, `coordinates`; unknown ones are a `UsageError`.
    """

    name = "omnigui"
    default_profile = PaperProfile.name
    baselines = omnigui_baselines.NAMES
    allowed: Mapping[str, Sequence[str]] = {**OPTIONS, "coordinates": SPACES}

    def __init__(self, options: Mapping[str, str]) -> None:
        """Check the options and prepare prompt and profiles."""
        self.options: Mapping[str, str] = resolve(options, self.allowed, "-T")
        self._prompt = Prompt(self.options)
        self.prompt_hash = self._prompt.hash
        profiles: list[Profile] = [PaperProfile(self.space)]
        if self.space != "rel":  # a unit that the released evaluator does not know
            profiles.append(ReleaseProfile(self.space))
        self.profiles: Mapping[str, Profile] = {profile.name: profile for profile in profiles}

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> Source:
        """Read the dataset's annotations."""
        return loader.load(data, check_media=check_media, strict=strict)

    def prompt(self, step: Step, predicted: Sequence[Action | None] | None = None) -> Conversation:
        """The conversation for one step; `predicted` is used with `history=predicted` only."""
        return self._prompt.conversation(step, predicted)

    @property
    def space(self) -> PredictedSpace:
        """The unit in which models are taken to write coordinates (`-T coordinates`)."""
        return next(space for space in SPACES if space == self.options["coordinates"])

    def baseline(
        self, name: str, steps: Sequence[Step], options: Mapping[str, str]
    ) -> Callable[[Step], str]:
        """The rule of that name; coordinates are in the unit that models are taken to use."""
        return omnigui_baselines.policy(name, steps, space=self._written, options=options)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        """The expert's action as compact JSON; None where the source has no usable one."""
        return target(step, space=space or self._written, size=size or step.screen)

    @property
    def _written(self) -> Space:
        """The unit of answers that are written here."""
        return "norm1000" if self.space == "auto" else self.space

    @property
    def needs_predictions(self) -> bool:
        """Whether a step's prompt shows the model's own earlier answers."""
        return self.options["history"] == "predicted"

    def read(self, text: str, receipt: Mapping[str, Any] | None = None) -> Action | None:
        """A model's text as an action, for histories of predictions; None if it is none.

        Pixels are those of the screenshot as the model was shown it, which the receipt tells.
        """
        answer = parse(text)
        if isinstance(answer, Unread):
            return None
        answer = on_screen(answer, self.space, receipt, where="the step before")
        start, end = self._region(answer.start), self._region(answer.end)
        return Action(Primitive(answer.kind), start, end, text=answer.text)

    def _region(self, pair: Pair | None) -> tuple[Region, ...]:
        """The point as a region; none for a place that is on no screen of this world."""
        if pair is None or max(abs(pair[0]), abs(pair[1])) > _FARTHEST:
            return ()
        space = self.space
        if space == "auto":
            space = "px" if max(pair) > 1000 else "norm1000"
        return (Point(pair[0], pair[1], space),)


def make(name: str, options: Mapping[str, str]) -> OmniGui:
    """The task of that name, which is one."""
    return OmniGui(options)
