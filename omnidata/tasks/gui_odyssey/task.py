"""The task `gui-odyssey`: the next action across apps, for a goal or a step's instruction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

from omnidata.actions import Action, Screen
from omnidata.tasks.benchmark import Card, Note, Paper, hub_publication
from omnidata.tasks.gui_odyssey import load as loader
from omnidata.tasks.gui_odyssey import rules
from omnidata.tasks.phones import agentcpm, answers, step_rows
from omnidata.tasks.phones.actions import (
    DIRECTIONS,
    HOME,
    RECENTS,
    Truth,
    as_direction,
    corrected_action,
    direction_of,
    truth_in_shares,
)
from omnidata.tasks.phones.gui_r1 import GUI_R1
from omnidata.tasks.phones.rules import Evaluator
from omnidata.tasks.phones.task import (
    SENSES,
    PhoneBenchmark,
    PhoneRecord,
    PhoneView,
    Wording,
)
from omnidata.tasks.published import read_published
from omnidata.types import LoadedDataset, Step

_ODYSSEY = "GUI-Odyssey (Lu et al., 2024): its EM is the paper's AMS"
_AGENTCPM = "AgentCPM-GUI (Zhang et al., 2025), which has no elements here"
_CORRECTED = ", with its faults corrected"
_POINT = "coordinate: [x, y]"


def truth_of(row: Mapping[str, Any], screen: Screen) -> Truth | None:
    """Return the expert's action and the touched element; None if unreadable."""
    if step_rows.ROW in row:
        return step_rows.truth_of(row, screen)
    try:
        action = corrected_action(row) or loader.action_of(row)
    except ValueError:
        return None
    return truth_in_shares(action, loader.boxes_of(row), (1000, 1000))


def _agentcpm_truth(row: Mapping[str, Any], screen: Screen) -> Truth | None:
    """AgentCPM-GUI drops the element and takes recent apps for the home screen."""
    found = truth_of(row, screen)
    if found is None:
        return None
    return Truth(HOME if found.action.kind == "recent" else found.action)


SOURCES: Final = (
    hub_publication(
        "GUIOdyssey",
        "hflqf88888/GUIOdyssey",
        "cc-by-4.0",
        paper="2406.08451",
        archives=("*.zip",),
        note="the id that the authors recommend since 2025-07-31; OpenGVLab/GUI-Odyssey "
        "is the first one. Its size is not verified",
    ),
    hub_publication(
        "GUI-Odyssey 2024",
        "OpenGVLab/GUI-Odyssey",
        "cc-by-4.0",
        paper="2406.08451",
        files=("annotations/*", "splits/*", "screenshots/*"),
        note="the first id, of 171 GB with its zips, which hold the same and are left; the "
        "authors recommend hflqf88888/GUIOdyssey. Users tell of screenshots and "
        "annotations that are missing here",
    ),
)


class GuiOdyssey(PhoneBenchmark):
    """GUI-Odyssey: what does the agent do next, in a task across several apps?

    The option `level` is "high" for the goal of the episode, "low" for the instruction of the step.
    `scroll` says whose directions words are, in rows and in dialects that keep their words.
    """

    card = Card(
        title="GUI-Odyssey",
        holds="predict the next action across apps of phones and tablets from screenshots",
        platform="mobile",
        sources=SOURCES,
        tags=("category", "device", *loader.SPLITS),
        roles={"screenshot": "image"},
        subsets=tuple(part for parts in loader.PARTS.values() for part in parts),
        detailed_actions=True,
        answer_type=PhoneRecord,
    )
    files = loader.FILES
    paper = Paper(
        published=partial(read_published, "omnidata.tasks.gui_odyssey", "gui-odyssey"),
        overview=PhoneView,
    )
    labels = loader.LABELS
    baselines: Sequence[str] = ("oracle", "center", "majority")
    truth = staticmethod(truth_of)
    command = staticmethod(rules.read_command)
    evaluators: ClassVar[Mapping[str, Evaluator]] = {
        "odyssey-ams": Evaluator(rules.match_released, 140, source=_ODYSSEY),
        "odyssey-ams-fixed": Evaluator(rules.match_fixed, 140, source=_ODYSSEY + _CORRECTED),
        "agentcpm": Evaluator(
            agentcpm.match_released,
            140,
            as_released="agentcpm",
            source=_AGENTCPM,
            truth=_agentcpm_truth,
        ),
        "agentcpm-fixed": Evaluator(agentcpm.match_fixed, 140, source=_AGENTCPM + _CORRECTED),
        "gui-r1": GUI_R1,
    }
    by: ClassVar[Mapping[str, Sequence[str]]] = {"category": (), "device": (), **loader.PARTS}
    allowed: Mapping[str, Sequence[str]] = {
        "level": ("high", "low"),
        **PhoneBenchmark.allowed,
        "scroll": SENSES,
    }
    names: ClassVar[Mapping[str, str]] = {
        "TAP": "CLICK",
        "LONG_PRESS": "LONG_PRESS",
        "BACK": "PRESS_BACK",
        "HOME": "PRESS_HOME",
        "RECENT": "PRESS_RECENT",
        "TASK_COMPLETE": "COMPLETE",
        "TASK_IMPOSSIBLE": "IMPOSSIBLE",
    }
    wording = Wording(
        actions=(
            ("CLICK", _POINT),
            ("LONG_PRESS", _POINT),
            ("SCROLL", f"direction: {', '.join(DIRECTIONS)}"),
            ("TYPE", 'text: "string"'),
            *((name, "") for name in ("PRESS_BACK", "PRESS_HOME", "PRESS_RECENT")),
            *((name, "") for name in ("COMPLETE", "IMPOSSIBLE")),
        ),
        rules=(
            "The direction of SCROLL is that of the finger: up shows what is further down.",
            'If the task is done, output {"action_type": "COMPLETE"}; if it cannot be done, '
            '{"action_type": "IMPOSSIBLE"}.',
        ),
        examples=(
            ("Click", '{"action_type": "CLICK", "coordinate": [x, y]}'),
            ("Show what is further down", '{"action_type": "SCROLL", "direction": "up"}'),
            ("Input text", '{"action_type": "TYPE", "text": "hello"}'),
            ("Switch to another app", '{"action_type": "PRESS_RECENT"}'),
        ),
    )

    def steps(self, data: Path, note: Note) -> Iterable[Step]:
        low = self.options["level"] == "low"
        return loader.read(data, note, low=low, said=self.given_sense)

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        source = super().load(data, check_media=check_media, strict=strict)
        return step_rows.check_sense(source, self.given_sense)

    def goal(self, step: Step) -> str:
        if self.options["level"] == "high":
            return step.instruction
        if step_rows.ROW in step.source:
            return str(step.source["step_instructions"][0])
        return str(step.source["low_level_instruction"])

    def read_prompted(self, body: Mapping[str, Any]) -> tuple[Action, bool]:
        name = answers.name_of(body).upper()
        if name == "SCROLL":
            way = as_direction(said := str(body.get("direction")).lower())
            if way is None:
                raise ValueError(f"direction is {said!r:.40}, none of {', '.join(DIRECTIONS)}")
            action = Action("swipe", direction=way)
        elif name in ("PRESS_RECENT", "RECENT"):
            action = RECENTS
        else:
            action, _ = answers.read_prompted(body, self._space)
        return action, self.body(action, [[*pair] for pair in self.places(action)]) == dict(body)

    def body(self, action: Action, places: Sequence[Any]) -> dict[str, Any]:
        if direction := direction_of(action):
            return {"action_type": "SCROLL", "direction": direction}
        if action.kind == "type":
            return {"action_type": "TYPE", "text": action.text}
        return super().body(action, places)
