"""The task `cagui-grounding`: where an element of a Chinese app is, and what stands in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypedDict

from omnidata.actions import Action, Box, Pair, Point, Screen, Space, convert
from omnidata.dialects import Asked
from omnidata.errors import Finding
from omnidata.jsontext import compact, decode, hash_of, is_number, objects
from omnidata.tasks.base import Benchmark
from omnidata.tasks.cagui_grounding import load as loader
from omnidata.tasks.cagui_grounding.load import box_of
from omnidata.tasks.coordinates import (
    in_pixels,
    pair_on_screen,
    place,
    point_of,
    point_said,
    resizing,
)
from omnidata.tasks.diagnosis import place_cause
from omnidata.tasks.explaining import SCREENSHOT, RuleWords, explain, explain_place, quote
from omnidata.tasks.points import read_point
from omnidata.tasks.profiles import RowProfile
from omnidata.tasks.published import Published, read_published
from omnidata.types import (
    PLACE,
    Conversation,
    Diagnosis,
    Explanation,
    Message,
    Overlays,
    Part,
    Profile,
    Publication,
    Remote,
    Step,
    Target,
    Verdict,
)

Reading = Literal["released", "fixed"]
_READINGS: Final[tuple[Reading, ...]] = ("fixed", "released")
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
_FARTHEST: Final = 1e9
_SHOWN: Final = 1000
"""Characters of a text that lines of scores have."""
_RULE: Final = RuleWords(borderline="the profile compares in pixels")


def read_released(text: str) -> Pair | None:
    """The point of an answer that is the release's JSON and nothing else, but for blanks.

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
    """The last POINT of an answer, or else the point that it names in words.

    Examples:
        >>> read_any('It is {"POINT": [500, 250]}.'), read_any("at (500, 250)")
        ((500, 250), (500.0, 250.0))
    """
    try:
        named = [_pair(body["POINT"]) for body in objects(text) if "POINT" in body]
    except RecursionError:
        return None
    return next(filter(None, reversed(named)), None) or _pair([*(read_point(text) or ())])


def _pair(value: object) -> Pair | None:
    if not isinstance(value, list) or len(value) < 2 or not all(map(is_number, value[:2])):
        return None
    x, y = value[:2]
    return (x, y) if abs(x) <= _FARTHEST and abs(y) <= _FARTHEST else None  # NaN is none either


def bare(text: str) -> str:
    """A text without white space.

    Examples:
        >>> bare(" 1 微信 ")
        '1微信'
    """
    return "".join(text.split())


class GroundingProfile(RowProfile):
    """Accuracy: of all rows, and by form, whose three numbers are the paper's columns.

    Args:
        reading: as released, a point is an answer that is JSON alone, and a text is right if it is
            the row's to the letter without the answer's spaces; corrected, a point may stand among
            other words, and white space counts in neither text.
        space: the unit of coordinates that the prompt asks for.
    """

    by: Mapping[str, Sequence[str]] = {"form": FORMS}

    def __init__(self, reading: Reading, space: Space) -> None:
        self.name = "cagui-grounding" if reading == "released" else "cagui-grounding-fixed"
        self.source = "AgentCPM-GUI (Zhang et al., 2025), its evaluation of grounding"
        if reading == "fixed":
            self.source += ", with more answer formats"
        self._reading, self._space = reading, space

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        if step.source["form"] == "bbox2text":
            right = self._same(text, step.source["text"])
            return Verdict("ok", (right,), {"text": text[:_SHOWN]})
        point = (read_released if self._reading == "released" else read_any)(text)
        hit = None
        if min(step.screen) > 0:
            hit = bool(point and self._hits(step, point, receipt))
        if point is None:
            return Verdict("unparsed", (hit,), None, "no point")
        return Verdict("ok", (hit,), {"point": [*point]})

    def _same(self, said: str, wanted: str) -> bool:
        if self._reading == "fixed":
            return bare(said) == bare(wanted)
        return said.strip("\n").replace(" ", "") == wanted

    def _hits(self, step: Step, point: Pair, receipt: Mapping[str, Any] | None) -> bool:
        x, y = point
        resized = (
            resizing(receipt, step.screen, where=step.sample_id) if self._space == "px" else None
        )
        if resized:
            x, y = resized.to_screen(point)
        # In the release's order of operations: its edges are inside.
        if self._space != "px":
            full = 1000 if self._space == "norm1000" else 1
            x, y = (side / full * extent for side, extent in zip((x, y), step.screen, strict=True))
        box = box_of(step.source)
        return box.left <= x <= box.right and box.top <= y <= box.bottom


class _Parsed(TypedDict, total=False):
    point: tuple[float, float]
    text: str


class CaguiGrounding(Benchmark):
    """CAGUI-Grounding: where is what a function or a text means, and what stands in a box?

    Args:
        options: `coordinates`; unknown ones are a `UsageError`.
    """

    title = "CAGUI-Grounding"
    asked = "point"
    detailed_actions = False
    holds = "point at a function or a text in a Chinese app, or read the text in a box"
    platform = "mobile"
    sources = (
        Publication(
            "CAGUI",
            "https://huggingface.co/datasets/openbmb/CAGUI",
            "cc-by-nc-4.0",
            paper="2506.01391",
            remote=Remote(
                "hf://datasets/openbmb/CAGUI",
                files=("CAGUI_grounding/*",),
                note="the rows about grounding, of 1.4 GB in all; not for commercial use",
            ),
        ),
    )
    files = loader.FILES
    parsed_type = _Parsed
    tags = ("form",)
    roles = loader.ROLES
    subsets = FORMS
    allowed: Mapping[str, Sequence[str]] = {"coordinates": SPACES}

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._space = next(space for space in SPACES if space == self.options["coordinates"])
        self.prompt_hash = hash_of([dict(_QUESTIONS), _UNITS[self._space]])
        profiles = [GroundingProfile(reading, self._space) for reading in _READINGS]
        self.profiles: Mapping[str, Profile] = {profile.name: profile for profile in profiles}

    @property
    def published(self) -> Published:
        return read_published("omnidata.tasks.cagui_grounding", self.name)

    def steps(self, data: Path, note: Callable[[Finding], None]) -> Iterable[Step | None]:
        return loader.Reader(data if data.is_dir() else data.parent, note).steps(data)

    def prompt(self, step: Step, predicted: Sequence[Any] | None = None) -> Conversation:
        form, shot = step.source["form"], step.media.get("screenshot")
        if form == "bbox2text":
            asked = _QUESTIONS[form] % compact(_corners(box_of(step.source), step.screen))
        else:
            asked = _QUESTIONS[form] % (step.instruction, _UNITS[self._space])
        shown = (Part("image", media=shot, role="screenshot"),) if shot else ()
        return (Message("user", (*shown, Part("text", asked))),)

    def asked_of(self, step: Step) -> Asked | None:
        """Return "point"; None for text in a box, which dialects do not support."""
        return None if step.source["form"] == "bbox2text" else self.asked

    def goal(self, step: Step) -> str:
        wanted = "the element with this function"
        if step.source["form"] == "text2point":
            wanted = "this text"
        return f"Point at {wanted}: {step.instruction}"

    def express(self, actions: Sequence[Action], step: Step) -> str:
        x, y = point_said(actions[0])
        return compact({"POINT": [x, y]})

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
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        told = step.source["form"] == "bbox2text"
        given = (verdict and verdict.parsed) or {}
        point = pair_on_screen(step, given.get("point"), self._space, receipt)
        regions = (in_pixels(box_of(step.source), step.screen),)

        def sentence(parsed: Mapping[str, Any], right: bool) -> str:
            if told:
                one, other = quote(parsed.get("text", "")), quote(step.source["text"])
                return (
                    f"the profile accepts {one} for {other}" if right else f"{one} is not {other}"
                )
            return explain_place(step, "the point", point, regions, right=right, rule=_RULE)

        def diagnosis(parsed: Mapping[str, Any]) -> Diagnosis:
            if told:
                return Diagnosis("wrong_text")
            said = point_of(parsed.get("point"), self._space)
            if said is None:
                return Diagnosis("wrong_element")
            return place_cause(step, regions, (said,), receipt=receipt) or Diagnosis("rule")

        kind = "text" if told else "point"
        return explain(
            verdict,
            self.profiles[profile],
            sentence,
            target_label=kind,
            answer_label=lambda parsed: kind,
            overlays=lambda: {SCREENSHOT: Overlays(regions, (), point)},
            noun="kind",
            diagnosis=diagnosis,
        )


def _corners(box: Box, screen: Screen) -> list[list[int]]:
    corners = (Point(box.left, box.top, "px"), Point(box.right, box.bottom, "px"))
    found = [
        convert(corner, "norm1000", screen) if min(screen) > 0 else corner for corner in corners
    ]
    return [[int(point.x), int(point.y)] for point in found]
