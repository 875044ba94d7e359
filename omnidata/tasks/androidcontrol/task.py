"""The task `androidcontrol`: the next action, for a goal or for the step's own instruction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

from omnidata.actions import OPPOSITE, Action, finger_way
from omnidata.loaders.load import load_data
from omnidata.tasks.androidcontrol import curated, rules
from omnidata.tasks.androidcontrol import load as loader
from omnidata.tasks.androidcontrol.forest import bounds_for_uground
from omnidata.tasks.androidcontrol.load import STEP, item, truth_of, with_words
from omnidata.tasks.benchmark import Card, Note, Paper
from omnidata.tasks.json_answers import read_pair
from omnidata.tasks.observation import OPTIONS, VARIATION
from omnidata.tasks.phones import agentcpm
from omnidata.tasks.phones.actions import (
    COMPLETE,
    DIRECTIONS,
    IMPOSSIBLE,
    read_call,
    with_direction,
)
from omnidata.tasks.phones.answers import name_of
from omnidata.tasks.phones.gui_r1 import GUI_R1
from omnidata.tasks.phones.rules import Evaluator
from omnidata.tasks.phones.step_rows import check_sense
from omnidata.tasks.phones.task import (
    SENSES,
    PhoneBenchmark,
    PhoneRecord,
    PhoneView,
    Wording,
)
from omnidata.tasks.published import HISTORY as HISTORY_TABLE
from omnidata.tasks.published import read_published
from omnidata.types import LoadedDataset, Publication, Remote, Step

_AGENTCPM = "AgentCPM-GUI (Zhang et al., 2025)"
_POINT = "coordinate: [x, y]"
_TEXT = 'text: "string"'


SOURCES: Final = (
    Publication(
        "AndroidControl",
        "https://github.com/google-research/google-research/tree/master/android_control",
        "cc-by-4.0",
        remote=Remote(
            "gs://gresearch/android_control",
            bytes=50_000_000_000,
            gated=False,
            note="the bucket that the README names. What the Hub has are re-packings by "
            "others. Size and licence are not verified",
        ),
        paper="2406.03679",
    ),
)


class AndroidControl(PhoneBenchmark):
    """AndroidControl: what does the agent do next on the phone?

    The option `level` is "high" for the goal of the episode, "low" for the instruction of the step;
    `scroll` says whose directions in rows of JSON are.
    """

    card = Card(
        title="AndroidControl",
        holds="predict the next action on a phone from screenshots and accessibility trees",
        platform="mobile",
        sources=SOURCES,
        tags=loader.TAGS,
        roles=loader.ROLES,
        other_moments=("final_screenshot",),
        subsets=("train", "validation", "test"),
        detailed_actions=True,
        answer_type=PhoneRecord,
    )
    files = loader.FILES
    paper = Paper(
        published=partial(read_published, "omnidata.tasks.androidcontrol", "androidcontrol"),
        variations=(HISTORY_TABLE, VARIATION),
        overview=PhoneView,
    )
    elements = staticmethod(loader.elements)
    corrections = staticmethod(curated.corrections)
    truth = staticmethod(truth_of)
    evaluators: ClassVar[Mapping[str, Evaluator]] = {
        "agentcpm-ac-fixed": Evaluator(
            agentcpm.match_fixed_ac,
            40,
            source=f"{_AGENTCPM}, with its faults corrected",
        ),
        "agentcpm-ac": Evaluator(
            agentcpm.match_released_ac,
            40,
            as_released="agentcpm",
            source=f"{_AGENTCPM}: candidate boxes",
            leaves_out="steps that open an app; steps that click, type and press Enter",
        ),
        "os-atlas-ac": Evaluator(
            rules.os_atlas,
            140,
            source="OS-Atlas (Wu et al., 2024), which UI-TARS follows: 14 % of the screen",
        ),
        "uground-ac": Evaluator(
            rules.uground,
            source="UGround (Gou et al., 2025), after AndroidControl's paper (Li et al., 2024): "
            "the element, of those that are seen and have a text",
            leaves_out="no step, where the papers take 500; clicks that do the same as opening an "
            "app or going back are wrong here",
            truth=partial(truth_of, places=bounds_for_uground),
        ),
        "gui-r1": GUI_R1,
        "curated": Evaluator(
            rules.curated,
            140,
            source="AndroidControl-Curated (Leung et al., 2025): the boxes of its files "
            "(docs/errata.md), or 14 % of the screen",
            truth=partial(truth_of, places=lambda forest: ()),
        ),
    }
    by: ClassVar[Mapping[str, Sequence[str]]] = {"split": ("train", "validation", "test")}
    allowed: Mapping[str, Sequence[str]] = {
        "level": ("high", "low"),
        **PhoneBenchmark.allowed,
        "scroll": SENSES,
        **OPTIONS,
    }
    names: ClassVar[Mapping[str, str]] = {
        "TAP": "click",
        "LONG_PRESS": "long_press",
        "HOME": "navigate_home",
        "BACK": "navigate_back",
        "WAIT": "wait",
    }
    placed = ("tap", "long_press", "type")
    wording = Wording(
        actions=(
            ("click", _POINT),
            ("long_press", _POINT),
            ("scroll", f"direction: {', '.join(DIRECTIONS)}"),
            ("open_app", 'app_name: "string"'),
            ("type", f"{_POINT}, {_TEXT}"),
            ("input_text", _TEXT),
            *((name, "") for name in ("navigate_home", "navigate_back", "wait")),
        ),
        rules=(
            "Scrolling down shows what is further down.",
            "type clicks at the coordinate, types the text and presses Enter; input_text only "
            "types.",
            'If the task requires waiting/observing, output {"action_type": "wait"}.',
        ),
        examples=(
            ("Click", '{"action_type": "click", "coordinate": [x, y]}'),
            ("Scroll down", '{"action_type": "scroll", "direction": "down"}'),
            ("Open an app", '{"action_type": "open_app", "app_name": "Clock"}'),
            ("Input text", '{"action_type": "input_text", "text": "hello"}'),
            ("Back", '{"action_type": "navigate_back"}'),
        ),
    )

    def load(self, data: Path, *, check_media: bool = True, strict: bool = False) -> LoadedDataset:
        low, scroll = self.options["level"] == "low", self.given_sense
        source = load_data(
            data,
            self.name,
            loader.TAGS,
            lambda: loader.read(data, check_media=check_media, low=low, scroll=scroll),
            strict=strict,
            check_media=check_media,
            depends=(low, scroll),
        )
        return check_sense(source, scroll)

    def steps(self, data: Path, note: Note) -> Iterable[Step | None]:
        return self.load(data, check_media=False).steps

    def goal(self, step: Step) -> str:
        if self.options["level"] == "high":
            return step.instruction
        return str(item(step.source, "step_instructions", step.source[STEP]) or "")

    def read_prompted(self, body: Mapping[str, Any]) -> tuple[Action, bool]:
        """Read an answer by AndroidControl's names; x and y may replace the coordinate.

        No step of the data is an end of the episode, but agents of the same action space say when
        they are done.
        """
        name = name_of(body)
        if name in _ENDINGS:
            return _end(body, name), False
        said = {key: value for key, value in body.items() if key not in ("x", "y")}
        pair = read_pair(body.get("coordinate", [body.get("x"), body.get("y")]))
        placed = {"x": pair[0], "y": pair[1]} if pair else {}
        action = read_call({**said, "action_type": name, **placed}, space=self._space)
        places = [list(pair)] if pair and action.start else []
        return action, self.body(action, places) == dict(body)

    def body(self, action: Action, places: Sequence[Any]) -> dict[str, Any]:
        if action.kind == "type" and places:
            return {"action_type": "type", "coordinate": places[0], "text": action.text}
        if action.kind == "type":
            return {"action_type": "input_text", "text": action.text}
        if action.kind == "swipe" and (way := finger_way(action)):
            return {"action_type": "scroll", "direction": OPPOSITE[way]}
        if action.kind == "open_app":
            return {"action_type": "open_app", "app_name": action.app}
        return super().body(action, places)

    def past(self, action: Action) -> Action | None:
        return with_direction(with_words(action))


_ENDINGS: Mapping[str, str] = {"status": "goal_status", "terminate": "status"}
"""How an answer says that the episode ends, and where it says how."""
_ENDS: Mapping[str, Action] = {
    **dict.fromkeys(("complete", "completed", "success", "successful"), COMPLETE),
    **dict.fromkeys(("infeasible", "impossible", "failure", "failed"), IMPOSSIBLE),
}


def _end(body: Mapping[str, Any], name: str) -> Action:
    key = _ENDINGS[name]
    said = body.get(key)
    if not isinstance(said, str) or said.lower() not in _ENDS:
        raise ValueError(f"{key} is {said!r:.40}, none of {', '.join(_ENDS)}")
    return _ENDS[said.lower()]
