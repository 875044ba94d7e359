"""GroundUI: point at the element of an instruction (AgentStudio, section 5.1, appendix C.3)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypedDict

from omnidata.actions import Action, Point, Screen, Space, convert
from omnidata.dialects import UnreadError
from omnidata.tasks.agentstudio.answers import Reading, read_released
from omnidata.tasks.agentstudio.base import AgentStudio, AgentStudioRule, make_card
from omnidata.tasks.agentstudio.messages import fill_prompt, image_messages, text_message
from omnidata.tasks.agentstudio.paper import WORDINGS
from omnidata.tasks.agentstudio.rows import AXES, target_box
from omnidata.tasks.agentstudio.rules import judge_pair, pair_in_pixels
from omnidata.tasks.benchmark import History, ParsedAnswer, Receipt, Values, Wordings
from omnidata.tasks.coordinates import Resizing, Side, in_pixels, pair_on_screen, place
from omnidata.tasks.diagnosis import place_cause
from omnidata.tasks.explaining import SCREENSHOT, explain
from omnidata.tasks.pointing import PointSpeech, answer_at, json_pair, only_box, resizing_of
from omnidata.tasks.points import read_point
from omnidata.tasks.profile import Profile
from omnidata.tasks.sentences import RuleWords, explain_place
from omnidata.tasks.totals import RowTotals
from omnidata.types import (
    PLACE,
    Conversation,
    Diagnosis,
    Explanation,
    Overlays,
    Step,
    Target,
    Verdict,
)

SPACES: Final[Sequence[Space]] = ("rel", "px", "norm1000")


# Reading and judging an answer.


def parse_pair(
    text: str, step: Step, receipt: Receipt, *, reading: Reading, space: Space
) -> ParsedAnswer[Point]:
    """Read the point of an answer.

    Its record is in pixels of the row's screenshot, as the released evaluator computes it.

    Args:
        text: the answer.
        step: of the question; its row has the size of the screenshot.
        receipt: has the size of the sent picture.
        reading: "paper" as a careful reader, "release" as the released evaluator.
        space: the unit that the prompt asks for.

    Raises:
        UnreadError: there is no pair of numbers.
    """
    resized = resizing_of(step, receipt, space)
    pair = read_point(text) if reading == "paper" else read_released(text)
    if pair is None:
        raise UnreadError("no-pair")
    return _answer(Point(*pair, space), step, resized)


def _answer(point: Point, step: Step, resized: Resizing | None) -> ParsedAnswer[Point]:
    found = answer_at(point, resized)
    assert found.value
    pixels = pair_in_pixels(found.value, step.source.get("resolution"))
    record: dict[str, Any] = {"point": json_pair(*pixels)} if pixels else {}
    return ParsedAnswer(found.value, record, found.written)


class InBox(AgentStudioRule[Point]):
    """Compares the point with the box: edges are inside for the paper, outside for the release.

    A row without a usable box or size is judged by neither.

    Args:
        reading: whose rule.
        space: unit of the coordinates in answers; the paper's prompt asks for [0, 1].
    """

    totals = RowTotals(by=AXES)

    def __init__(self, reading: Reading, space: Space) -> None:
        super().__init__(reading)
        self._space = space

    def judge(self, step: Step, parsed: ParsedAnswer[Point] | None) -> Values | Verdict:
        """Compare the point with the row's box."""
        point = parsed.value if parsed else None
        found = judge_pair(step.source, point, reading=self.reading, space=self._space)
        if found.hit is None:
            record = parsed.record if parsed and found.point else None
            return Verdict("ok", (None,), record, found.fault)
        return (found.hit,)


# The prompt and the target.


class _Record(TypedDict, total=False):
    point: tuple[Side, Side] | None


class _Speech(PointSpeech):
    def right_actions(self, step: Step) -> Sequence[Action]:
        box = target_box(step.source)
        return (Action("tap", (box,)),) if box else ()

    def adopt(self, actions: Sequence[Action], step: Step, receipt: Receipt) -> ParsedAnswer[Any]:
        (pointed,) = super().adopt(actions, step, receipt).written
        (point,) = pointed.start
        assert isinstance(point, Point)
        return _answer(point, step, resizing_of(step, receipt, self.space))


_RECORDED: Final = re.compile(r"(linux|macos|windows)_([a-z]+)_[0-9a-f]{8}-")
"""Names of pictures by AgentStudio's tools: system, application, a UUID."""


class _Wordings(Wordings):
    def application(self, step: Step) -> str:
        """Return the app in the names of AgentStudio's own screens (Table 11)."""
        found = _RECORDED.match(str(step.source.get("image", "")))
        return f"{found[1]} {found[2]}" if found else ""


_RELEASE: Final = RuleWords(borderline="the released evaluator excludes the edges")


class GroundUi(AgentStudio):
    """GroundUI: where on the screen is the element that an instruction means?

    Args:
        name: "groundui".
        options: as in `allowed`; unknown ones are a `UsageError`.
    """

    task = "groundui"
    templates = ("groundui",)
    card = make_card(
        task,
        "GroundUI",
        "point at the element of an instruction on web, desktop and mobile screenshots",
        prompted_space="rel",
        answer_type=_Record,
    )
    allowed: Mapping[str, Sequence[str]] = {
        "instructions": ("recaptioned", "raw"),
        "coordinates": SPACES,
    }
    baselines = ("oracle", "center")
    variations = (WORDINGS,)
    wordings = _Wordings()

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._space = next(space for space in SPACES if space == self.options["coordinates"])
        self.speech = _Speech(self._space)
        paper, release = InBox("paper", self._space), InBox("release", self._space)
        release.parse = partial(parse_pair, reading="release", space=self._space)
        # The released evaluator knows [0, 1] and, for one model, pixels.
        self.rules = (paper,) if self._space == "norm1000" else (paper, release)

    def prompt(self, step: Step, history: History) -> Conversation:
        """Return the screenshot, then the instruction (Appendix C.3)."""
        question = text_message(fill_prompt("groundui", instruction=step.instruction))
        return (*image_messages(step, "screenshot"), question)

    def parse(self, text: str, step: Step, receipt: Receipt) -> ParsedAnswer[Point]:
        return parse_pair(text, step, receipt, reading="paper", space=self._space)

    def retarget(self, step: Step, action: Action) -> Step:
        """Return the step with another box; a ValueError if the action is no tap in one."""
        box = only_box(action, step.screen)
        edges = [box.left, box.top, box.right, box.bottom]
        return replace(step, action=action, source={**step.source, "bbox": edges})

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        box = target_box(step.source)
        if box is None or min(step.screen) < 1:
            return None
        x, y = place(box, step.screen, space=space or self._space, size=size or step.screen)
        return Target(f"({x!r}, {y!r})", PLACE, ((x, y),))

    def policy(self, name: str, steps: Sequence[Step]) -> Callable[[Step], str]:
        """`oracle` answers with the target, `center` with the middle of the screen."""

        def answer(step: Step) -> str:
            box = target_box(step.source) if name == "oracle" else None
            if name == "oracle" and box is None:
                return "Answer:"
            point = convert(box.centre if box else Point(0.5, 0.5, "rel"), self._space, step.screen)
            # All digits are needed: only the exact coordinate hits a box without height.
            return f"Answer: ({point.x!r}, {point.y!r})"

        return answer

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        parsed: ParsedAnswer[Point] | None,
        profile: Profile,
        receipt: Receipt,
    ) -> Explanation:
        box = target_box(step.source)
        said = pair_on_screen(step, parsed.record.get("point") if parsed else None, "px", {})
        regions = (in_pixels(box, step.screen),) if box else ()
        rule = _RELEASE if profile.name == "agentstudio-release" else RuleWords()

        def diagnosis(record: Mapping[str, Any]) -> Diagnosis:
            if said is None:
                return Diagnosis("rule")
            written = convert(said, self._space, step.screen)
            return place_cause(step, regions, (written,), receipt={}) or Diagnosis("rule")

        return explain(
            verdict,
            profile,
            lambda record, right: explain_place(
                step, "the point", said, regions, right=right, rule=rule
            ),
            overlays=lambda: {SCREENSHOT: Overlays(regions, (), said)},
            diagnosis=diagnosis,
        )
