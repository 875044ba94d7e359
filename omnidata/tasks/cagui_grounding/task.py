"""The task `cagui-grounding`: the places and texts of elements in Chinese apps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, TypedDict

from omnidata.actions import Action, Box, Pair, Point, Screen, Space, convert
from omnidata.dialects import Asked, UnreadError
from omnidata.jsontext import compact, decode, hash_of, is_coordinate, objects
from omnidata.tasks.benchmark import (
    Benchmark,
    Card,
    History,
    Note,
    Paper,
    ParsedAnswer,
    Receipt,
    Rule,
    Values,
    hub_publication,
)
from omnidata.tasks.cagui_grounding import load as loader
from omnidata.tasks.cagui_grounding.load import box_of
from omnidata.tasks.coordinates import in_pixels, place, point_said
from omnidata.tasks.pointing import PointSpeech, answer_at, explain_point, only_box, resizing_of
from omnidata.tasks.points import read_point
from omnidata.tasks.profile import Profile
from omnidata.tasks.published import read_published
from omnidata.tasks.sentences import RuleWords, quote
from omnidata.tasks.totals import RowTotals
from omnidata.types import (
    PLACE,
    Conversation,
    Explanation,
    Message,
    Part,
    Step,
    Target,
    Verdict,
)

SPACES: Final[tuple[Space, ...]] = ("norm1000", "px", "rel")
FORMS: Final = ("fun2point", "text2point", "bbox2text")
_UNITS: Final[Mapping[Space, str]] = {
    "norm1000": "from 0 to 1000, relative to the width and height of the screenshot",
    "px": "pixels of the screenshot",
    "rel": "from 0 to 1, relative to the width and height of the screenshot",
}
_POINT: Final = (
    'Answer with its centre as {"POINT": [x, y]} and nothing else; x and y are %s, from the top '
    "left corner."
)
_QUESTIONS: Final[Mapping[str, str]] = {
    "fun2point": f"Where is the element with this function?\n%s\n{_POINT}",
    "text2point": f"Where is this text?\n%s\n{_POINT}",
    "bbox2text": 'Which text is in the element at {"bbox": %s}? The corners are from 0 to 1000, '
    "relative to the width and height of the screenshot. Answer with the text and nothing else.",
}
_SHOWN: Final = 1000
"""Characters of a text that lines of scores have."""
_RULE: Final = RuleWords(borderline="the profile compares in pixels")


def read_released(text: str) -> Pair | None:
    """Return the point of an answer that is only the release's JSON, with any blanks.

    Examples:
        >>> read_released('{"POINT": [500, 250]}'), read_released("at (500, 250)")
        ((500, 250), None)
    """
    try:
        body = decode(text.strip("\n").replace(" ", ""))
    except RecursionError:
        return None
    return _pair(body.get("POINT")) if isinstance(body, dict) else None


def read_any(text: str) -> Pair | None:
    """Return the last POINT of an answer, or else the point in its words.

    Examples:
        >>> read_any('It is {"POINT": [500, 250]}.'), read_any("at (500, 250)")
        ((500, 250), (500.0, 250.0))
    """
    try:
        named = [_pair(body["POINT"]) for body in objects(text) if "POINT" in body]
    except RecursionError:
        return None
    return next(filter(None, reversed(named)), None) or _pair([*(read_point(text) or ())])


def _pair(value: Any) -> Pair | None:
    is_pair = isinstance(value, list) and len(value) > 1 and all(map(is_coordinate, value[:2]))
    return (value[0], value[1]) if is_pair else None


class Grounding(Rule[Any]):
    """The point lies in the box, edges included, or the text is the row's.

    The paper's columns are the accuracies by form.

    Args:
        reading: as released, a text is right to the letter without the answer's spaces; corrected,
            white space counts in neither text.
    """

    totals = RowTotals(by={"form": FORMS})

    def __init__(self, reading: Literal["released", "fixed"]) -> None:
        self.name = "cagui-grounding" if reading == "released" else "cagui-grounding-fixed"
        self.source = "AgentCPM-GUI (Zhang et al., 2025), its evaluation of grounding"
        if reading == "fixed":
            self.source += ", with more answer formats"
        self._reading = reading

    def judge(self, step: Step, parsed: ParsedAnswer[Any] | None) -> Values:
        """Compare the text or the point; a point on a screen of unknown size cannot be judged."""
        if step.source["form"] == "bbox2text":
            return (parsed is not None and self._is_same(parsed.value, step.source["text"]),)
        if min(step.screen) < 1:
            return (None,)
        if parsed is None:
            return (False,)
        point: Point = parsed.value
        x, y = point.x, point.y  # in the release's order of operations
        if point.space != "px":
            full = 1000 if point.space == "norm1000" else 1
            x, y = (side / full * extent for side, extent in zip((x, y), step.screen, strict=True))
        box = box_of(step.source)
        return (box.left <= x <= box.right and box.top <= y <= box.bottom,)

    def _is_same(self, said: str, wanted: str) -> bool:
        if self._reading == "fixed":
            return "".join(said.split()) == "".join(wanted.split())
        return said.strip("\n").replace(" ", "") == wanted


class _Record(TypedDict, total=False):
    point: tuple[float, float]
    text: str


class _Speech(PointSpeech):
    def question_kind(self, step: Step) -> Asked | None:
        """Return "point"; None for text in a box, which dialects do not support."""
        return None if step.source["form"] == "bbox2text" else self.asked

    def goal(self, step: Step) -> str:
        wanted = "the element with this function"
        if step.source["form"] == "text2point":
            wanted = "this text"
        return f"Point at {wanted}: {step.instruction}"

    def adopt(self, actions: Sequence[Action], step: Step, receipt: Receipt) -> ParsedAnswer[Any]:
        resized = resizing_of(step, receipt, self.space)
        return answer_at(Point(*point_said(actions[0]), self.space), resized)


class CaguiGrounding(Benchmark):
    """CAGUI-Grounding: the element with a function or a text, and the text in a box."""

    card = Card(
        title="CAGUI-Grounding",
        holds="point at a function or a text in a Chinese app, or read the text in a box",
        platform="mobile",
        sources=(
            hub_publication(
                "CAGUI",
                "openbmb/CAGUI",
                "cc-by-nc-4.0",
                paper="2506.01391",
                files=("CAGUI_grounding/*",),
                note="the rows about grounding, of 1.4 GB in all; not for commercial use",
            ),
        ),
        tags=("form",),
        roles=loader.ROLES,
        subsets=FORMS,
        detailed_actions=False,
        answer_type=_Record,
    )
    allowed: Mapping[str, Sequence[str]] = {"coordinates": SPACES}
    baselines = ("oracle", "majority", "center")
    files = loader.FILES
    paper = Paper(
        published=partial(read_published, "omnidata.tasks.cagui_grounding", "cagui-grounding")
    )

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._space = next(space for space in SPACES if space == self.options["coordinates"])
        self.prompt_hash = hash_of([dict(_QUESTIONS), _UNITS[self._space]])
        self.speech = _Speech(self._space)
        released = Grounding("released")
        released.parse = partial(self.parse, read=read_released)
        self.rules = (Grounding("fixed"), released)

    def steps(self, data: Path, note: Note) -> Iterable[Step | None]:
        return loader.read(data, note)

    def prompt(self, step: Step, history: History) -> Conversation:
        """Return the screenshot, then the question of the row's form."""
        form, shot = step.source["form"], step.media.get("screenshot")
        if form == "bbox2text":
            asked = _QUESTIONS[form] % compact(_corners(box_of(step.source), step.screen))
        else:
            asked = _QUESTIONS[form] % (step.instruction, _UNITS[self._space])
        shown = (Part("image", media=shot, role="screenshot"),) if shot else ()
        return (Message("user", (*shown, Part("text", asked))),)

    def parse(
        self,
        text: str,
        step: Step,
        receipt: Receipt,
        read: Callable[[str], Pair | None] = read_any,
    ) -> ParsedAnswer[Any]:
        """Read the point of an answer, or take all of it as the text in a box."""
        if step.source["form"] == "bbox2text":
            return ParsedAnswer(text, {"text": text[:_SHOWN]})
        pair = read(text)
        if pair is None:
            raise UnreadError("no point")
        return answer_at(Point(*pair, self._space), resizing_of(step, receipt, self._space))

    def retarget(self, step: Step, action: Action) -> Step:
        """Return the step with another box, or another text in it.

        Raises:
            ValueError: the action is no tap in one box of whole pixels, or no text where the
                question is for one.
        """
        if step.source["form"] == "bbox2text":
            if action.kind != "type" or not action.text:
                raise ValueError("the question is for a text: INPUT")
            return replace(step, source={**step.source, "text": action.text})
        box = only_box(action, step.screen)
        edges = [box.left, box.top, box.right, box.bottom]
        if any(edge != int(edge) or edge < 0 for edge in edges):
            raise ValueError("a row has whole pixels")
        written = f"<{', '.join(str(int(edge)) for edge in edges)}>"
        return replace(step, action=action, source={**step.source, "abs_position": written})

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        if step.source["form"] == "bbox2text":
            text = step.source["text"]
            return Target(text, text.replace(PLACE, "bbox"))
        if min(step.screen) < 1:
            return None
        unit = space or self._space
        pair = place(box_of(step.source), step.screen, space=unit, size=size or step.screen)
        return Target(compact({"POINT": [*pair]}), f'{{"POINT":{PLACE}}}', (pair,))

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        parsed: ParsedAnswer[Any] | None,
        profile: Profile,
        receipt: Receipt,
    ) -> Explanation:
        is_text = step.source["form"] == "bbox2text"

        def compare_texts(record: Mapping[str, Any], right: bool) -> str:
            one, other = quote(record.get("text", "")), quote(step.source["text"])
            return f"the profile accepts {one} for {other}" if right else f"{one} is not {other}"

        kind = "text" if is_text else "point"
        return explain_point(
            step,
            verdict,
            parsed,
            profile,
            receipt,
            regions=(in_pixels(box_of(step.source), step.screen),),
            rule=_RULE,
            kinds=(kind, kind),
            other=(compare_texts, "wrong_text") if is_text else None,
        )


def _corners(box: Box, screen: Screen) -> list[list[int]]:
    corners = (Point(box.left, box.top, "px"), Point(box.right, box.bottom, "px"))
    found = [
        convert(corner, "norm1000", screen) if min(screen) > 0 else corner for corner in corners
    ]
    return [[int(point.x), int(point.y)] for point in found]
