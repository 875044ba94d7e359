"""The task `mind2web`: the next action on a web page, from its screenshot and a task.

Source: Multimodal-Mind2Web (Zheng et al., 2024), the Hub's Parquet files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar, Final

from msgspec import structs

from omnidata.actions import Action, Screen, Space, centre
from omnidata.dialects import Asked, CannotSayError
from omnidata.jsontext import compact, hash_of
from omnidata.tasks.benchmark import (
    Benchmark,
    Card,
    Note,
    ParsedAnswer,
    Receipt,
    Speech,
    Wordings,
    hub_publication,
)
from omnidata.tasks.coordinates import answer_space, place
from omnidata.tasks.mind2web import load as loader
from omnidata.tasks.mind2web.rules import (
    CODES,
    KINDS,
    SPLITS,
    InElement,
    Move,
    Record,
    aim_of,
    parse_move,
    target_of,
)
from omnidata.tasks.pointing import boxes_of
from omnidata.tasks.points import UNITS
from omnidata.types import PLACE, Step, Target

_QUESTION: Final = """\
Please generate the next move according to the ui screenshot, instruction and previous actions.

Instruction: {instruction}
Previous actions:
{history}

Answer with one JSON object and nothing else:
{"action_type": 4, "click_point": [x, y]} to click, hover or press Enter,
{"action_type": 3, "click_point": [x, y], "value": "..."} to type,
{"action_type": 2, "click_point": [x, y], "value": "..."} to select an option.
"""
_LABELS: Final = ("TAP", "INPUT", "SELECT")
"""Labels of actions that answers can express: no double click, and no other button."""


class _Wordings(Wordings):
    def application(self, step: Step) -> str:
        return step.tags.get("website", "")


class _Speech(Speech):
    asked: ClassVar[Asked] = "action"

    def takes(self, actions: Sequence[Action]) -> int:
        """Return 1, or the actions up to the text that is typed after a click."""
        if actions[0].kind != "tap" or actions[0].button != "left":
            return 1
        for count, action in enumerate(actions[1:3], 2):
            if action.kind == "type" and not action.start:
                return count
            if action.kind not in ("keys", "hotkey") or action.keys[1:] != ("a",):
                break  # what stood there may be selected first
        return 1

    def adopt(self, actions: Sequence[Action], step: Step, receipt: Receipt) -> ParsedAnswer[Move]:
        action = actions[-1]
        if len(actions) > 1:
            action = structs.replace(action, start=actions[0].start)
        operation = next((name for name, kind in KINDS.items() if kind == action.kind), None)
        if operation is None or not action.start or action.label not in _LABELS:
            raise CannotSayError(f"{action.label} without a place, or unknown to pages")
        value = None if operation == "CLICK" else action.text or ""
        return Move(CODES[operation], centre(action.start[0]), value).as_answer(step, receipt)


class Mind2Web(Benchmark):
    """Multimodal-Mind2Web: the next action on a web page towards a task."""

    card = Card(
        title="Multimodal-Mind2Web",
        holds="predict the next action on a web page from a screenshot of the whole page",
        sources=(
            hub_publication(
                "Multimodal-Mind2Web",
                "osunlp/Multimodal-Mind2Web",
                "openrail",
                paper="2401.01614",
                files=("data/*.parquet",),
                bytes=13_600_000_000,
                note="the test splits alone: --only 'data/test_*'",
            ),
        ),
        platform="web",
        tags=("split", "domain", "subdomain", "website"),
        roles={"screenshot": "image"},
        subsets=SPLITS,
        detailed_actions=False,
        history_window=4,
        answer_type=Record,
    )
    allowed: Mapping[str, Sequence[str]] = {
        "coordinates": ("rel", "px", "norm1000"),
        "history": ("gold", "none", "predicted"),
    }
    baselines = ("oracle", "majority", "center")
    files = loader.FILES
    wordings = _Wordings()
    speech = _Speech()

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._space: Space = answer_space(self.options) or "rel"
        self.question = _QUESTION + UNITS[self._space]
        self.prompt_hash = hash_of([self.question, self.options["history"]])
        released = InElement("released")
        released.parse = partial(parse_move, reading="released", space=self._space)
        self.rules = (released, InElement("fixed"))

    def steps(self, data: Path, note: Note) -> Iterable[Step | None]:
        return loader.read(data, note)

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[Move]:
        return parse_move(text, step, receipt, reading="fixed", space=self._space)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        boxes, size = boxes_of(step), size or step.screen
        operation, value = target_of(step.source["row"])
        if not boxes or operation is None or min(*step.screen, *size) < 1:
            return None
        x, y = place(
            aim_of(boxes[0], step.screen), step.screen, space=space or self._space, size=size
        )
        said = {"action_type": CODES[operation], "click_point": "\0"}
        text = compact(said | ({"value": value} if operation != "CLICK" else {}))
        hole = compact("\0")
        template = text.replace(PLACE, "bbox").replace(hole, PLACE, 1)
        return Target(text.replace(hole, f"[{x!r}, {y!r}]", 1), template, ((x, y),))
