"""The task `omnigui-idm`: which action lies between two screenshots of an OmniGUI episode?

Inverse dynamics as in AgentStudio's IDM-Single (section 5.2), asked with a prompt of ours and
answered in OmniGUI's form, so that OmniGUI's parser and rules read and judge the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, pairwise
from pathlib import Path
from typing import Final

from omnidata.jsontext import hash_of
from omnidata.loaders.steps import Steps
from omnidata.tasks.benchmark import About, Card, History
from omnidata.tasks.loading import prompt_text
from omnidata.tasks.omnigui import load as loader
from omnidata.tasks.omnigui.task import SPACES, PrimitiveBenchmark
from omnidata.types import (
    Annotation,
    Conversation,
    LoadedDataset,
    Message,
    Modality,
    Part,
    Questions,
    Step,
)

ROLES: Mapping[str, Modality] = {"screenshot": "image", "after": "image", "video": "video"}
"""The media of a step: before the action, after it, and a clip."""

_VERSION = "omnigui_idm_v1"
_SHOTS = {
    "screenshot": "[Screenshot before the action]:",
    "after": "[Screenshot after the action]:",
}
_CLIPS = {
    "between": "[Clip from the action to the screenshot after it]:",
    "before": "[Clip that leads up to the action]:",
    "off": "",
}
_ASK = "Which action was made on the screenshot before? Output it as JSON."
_ANNOTATION: Final = Annotation(
    "action",
    known_from="omnigui",
    expected="an episode of two steps or more, each with a screenshot",
    remedy="correct the data; the last step cannot be labelled, since no screenshot follows it",
    truth="label some steps by hand, or name data with targets by --known",
)


class OmniGuiIdm(PrimitiveBenchmark):
    """Inverse dynamics on OmniGUI's episodes: every step that is followed by another.

    The target is the expert's action. No history is shown, so that steps do not depend on each
    other. The released rule judges by the raw row, which need not have the target: it is missing.

    Args:
        name: "omnigui-idm".
        options: `clip` (between: the clip of the step after, which begins when the action ends;
            before: the step's own; off), `coordinates`; unknown ones are a `UsageError`.
    """

    card = Card(
        title="omnigui-idm",
        holds="Inverse dynamics on OmniGUI's episodes: every step that is followed by another.",
    )
    allowed: Mapping[str, Sequence[str]] = {
        "clip": ("between", "before", "off"),
        "coordinates": SPACES,
    }

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._clip = self.options["clip"]
        self.prompt_hash = hash_of([self._clip, _system_prompt(), _SHOTS, _CLIPS, _ASK])
        self.about = About(benchmark="omnigui", annotation=_ANNOTATION, questions=self._questions)

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        source = loader.load(data, check_media=check_media, strict=strict)
        return self._questions(source).source

    def _questions(self, source: LoadedDataset) -> Questions:
        unasked: dict[str, str] = {}

        def questions() -> Iterator[Step]:
            for step, other in pairwise(chain(source.steps, [None])):
                assert step is not None
                key = step.episode, step.step_index + 1
                after = other if other and (other.episode, other.step_index) == key else None
                first = step.media.get("screenshot")
                second = after.media.get("screenshot") if after else None
                if first is None:
                    unasked[step.sample_id] = "no-screenshot"
                elif after is None or second is None:
                    unasked[step.sample_id] = "no-screenshot-after"
                else:
                    clips = {"between": after.media.get("video"), "before": step.media.get("video")}
                    media = {"screenshot": first, "after": second, "video": clips.get(self._clip)}
                    yield replace(step, media=media)

        return Questions(replace(source, steps=Steps.of(questions()), roles=ROLES), unasked)

    def prompt(self, step: Step, history: History) -> Conversation:
        labels = {**_SHOTS, "video": _CLIPS[self._clip]}
        parts: list[Part] = []
        for role in ("screenshot", "video", "after"):
            ref = step.media[role]
            if ref is not None:
                parts += [
                    Part("text", labels[role], role=role),
                    Part(ref.kind, media=ref, role=role),
                ]
        parts.append(Part("text", f"Goal: {step.instruction}\n\n{_ASK}"))
        return (
            Message("system", (Part("text", _system_prompt()),)),
            Message("user", tuple(parts)),
        )

    def policy(self, name: str, steps: Sequence[Step]) -> Callable[[Step], str]:
        """As of `OmniGui`, but `oracle` is silent about a step without a target."""
        answer = super().policy(name, steps)
        return lambda step: answer(step) if step.action or name != "oracle" else ""


@cache
def _system_prompt() -> str:
    return prompt_text("omnigui", _VERSION)
