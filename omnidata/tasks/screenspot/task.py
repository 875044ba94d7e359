"""The task `screenspot`: the point that an instruction means, in ScreenSpot, -v2 and -Pro."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypedDict

import numpy as np

from omnidata.actions import Action, Box, Pair, Screen, Space
from omnidata.errors import Finding
from omnidata.jsontext import hash_of
from omnidata.loaders.row_sizes import fed_size
from omnidata.metrics.paired import Unit
from omnidata.metrics.row_tables import means
from omnidata.tasks.base import Benchmark
from omnidata.tasks.coordinates import (
    Side,
    format_place,
    in_pixels,
    pair_on_screen,
    place,
    point_of,
    resizing,
)
from omnidata.tasks.diagnosis import place_cause
from omnidata.tasks.explaining import SCREENSHOT, Rule, explain, explain_place
from omnidata.tasks.points import NEGATIVE, UNITS, ParsedResponse, Reading, read
from omnidata.tasks.profiles import PartsProfile
from omnidata.tasks.screenspot import load as loader
from omnidata.tasks.screenspot.load import BOXES, FORMS, file_of, is_negative, targets_of
from omnidata.types import (
    PLACE,
    Diagnosis,
    Explanation,
    Overlays,
    Profile,
    Publication,
    Remote,
    Step,
    Target,
    Verdict,
    VerdictColumns,
)

# ScreenSpot's rule: the point that an answer names lies in the box, edges included.
#
# ScreenSpot-Pro's evaluation has the same rule for a point, however a model's own reader got it,
# and knows elements that are not on the screen, for which "negative" is right.


def hits(
    box: Box,
    answer: ParsedResponse,
    *,
    space: Space,
    screen: Screen,
    to_screen: Callable[[Pair], Pair] | None = None,
) -> bool | None:
    """Whether the point lies in the box, both in shares of the screen, as the releases compare.

    Args:
        box: the target.
        answer: what it says.
        space: the unit that the prompt asks for.
        screen: width and height of the screenshot in pixels; (0, 0) where nobody knows.
        to_screen: for pixels of a picture that had another size; None = it had the screen's.

    Returns:
        None where one of them is in pixels of a screen of unknown size.

    Examples:
        >>> box = Box(640, 0, 1280, 360, "px")
        >>> hits(box, ParsedResponse((0.5, 0.5)), space="rel", screen=(1280, 720))
        True
    """
    if min(screen) < 1 and "px" in (space, box.space):
        return None
    if answer.point is None:
        return False
    unit = answer.space or space
    x, y = answer.point
    if unit == "px":
        x, y = to_screen((x, y)) if to_screen else (x, y)
    if not (math.isfinite(x) and math.isfinite(y)):
        return False
    width, height = screen if unit == "px" else (1000, 1000) if unit == "norm1000" else (1, 1)
    across, down = screen if box.space == "px" else (1, 1)
    inside = box.left / across <= x / width <= box.right / across
    return inside and box.top / down <= y / height <= box.bottom / down


# `screenspot` and `screenspot-fixed`: the share of points that lie in their boxes.

TYPES: Final = ("text", "icon")
PLATFORMS: Final = ("mobile", "desktop", "web")


class PointProfile(PartsProfile):
    """Accuracy: of all rows, of those for a text, of those for an icon.

    By platform these are SeeClick's columns, by group ScreenSpot-Pro's. Beside the table the
    results have `macro`, the mean over every platform's texts and icons.

    Args:
        reading: how answers are read, see `read`.
        space: the unit of coordinates that the prompt asks for.
    """

    values = ("score", *TYPES)
    columns: Mapping[str, Unit] = dict.fromkeys(("accuracy", *TYPES), "share")
    by: Mapping[str, Sequence[str]] = {
        "platform": PLATFORMS,
        "group": (),
        "application": (),
        "data_source": (),
        "form": FORMS,
    }

    def __init__(self, reading: Reading, space: Space) -> None:
        self.name = "screenspot" if reading == "released" else "screenspot-fixed"
        self.source = "SeeClick's evaluation of ScreenSpot (Cheng et al., 2024)"
        if reading == "fixed":
            self.source += ", with more answer formats"
        self._reading: Reading = reading
        self._space = space

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        said = read(text, self._reading)
        try:
            hit = self._hit(step, said, receipt)
        except ValueError as error:
            return Verdict("ok", (None, None, None), None, str(error))
        kind = step.tags.get("ui_type")
        values = (hit, *(hit if kind == name else None for name in TYPES))
        if said is None:
            return Verdict("unparsed", values, None, "neither a point nor a box")
        return Verdict("ok", values, _as_dict(said))

    def _hit(
        self, step: Step, said: ParsedResponse | None, receipt: Mapping[str, Any] | None
    ) -> bool | None:
        row = step.source["row"]
        if is_negative(row):
            return said is not None and said.point is None
        resized = (
            resizing(receipt, step.screen, where=step.sample_id) if self._space == "px" else None
        )
        verdicts = [
            hits(
                box,
                said or ParsedResponse(None),
                space=self._space,
                screen=step.screen,
                to_screen=resized.to_screen if resized else None,
            )
            for box in targets_of(row, step.source["boxes"])
        ]
        return None if None in verdicts else any(verdicts)

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """Return the table of `PartsProfile`, and `macro`; None without rows."""
        platforms = np.array([step.tags.get("platform", "") for step in steps])
        cells = [
            means({kind: rows.values[kind][platforms == platform]})[kind]
            for platform in sorted(set(platforms.tolist()))
            for kind in TYPES
        ]
        known = [cell for cell in cells if cell is not None]
        macro = sum(known) / len(known) if known else None
        return {**super().total(steps, rows), "macro": macro}


class _Parsed(TypedDict, total=False):
    point: tuple[Side, Side] | None
    space: Space
    negative: bool


def _as_dict(said: ParsedResponse) -> dict[str, Any]:
    if said.point is None:
        return {"negative": True}
    # JSON has no infinity: a number that no float holds is told as a text.
    unit = {"space": said.space} if said.space else {}
    return {"point": [side if math.isfinite(side) else str(side) for side in said.point], **unit}


SPACES: tuple[Space, ...] = ("rel", "px", "norm1000")
OPTIONS: Final[Mapping[str, Sequence[str]]] = {
    "coordinates": SPACES,
    "boxes": BOXES,
    "language": ("en", "cn"),
    "negatives": ("off", "on"),
}
"""`boxes` says what four numbers are where the columns do not tell; `negatives` lets the model say
that the element is not there."""

_ANY: Final[Screen] = (1000, 1000)
"""The size of a screen whose pixels nobody asks for."""
_RULE: Final = Rule(borderline="the profile compares in shares of the screen")


class ScreenSpot(Benchmark):
    """ScreenSpot: where on the screen is the element that an instruction means?

    Args:
        options: as in `OPTIONS`; unknown ones are a `UsageError`.
    """

    title = "ScreenSpot"
    asked = "point"
    detailed_actions = False
    holds = "point at the element of an instruction on a screenshot (ScreenSpot, -v2, -Pro)"
    files = loader.ROWS
    parsed_type = _Parsed
    tags = loader.TAGS
    sources = (
        Publication(
            "ScreenSpot",
            "https://github.com/njucckevin/SeeClick",
            "apache-2.0",
            {"form": "screenspot"},
            Remote(
                "hf://datasets/rootsautomation/ScreenSpot",
                "0be08781e2e188582f6131625ae1598d443b4d5d",
                files=("*.parquet",),
                bytes=602_316_816,
                steps=1272,
                note="a copy by others, in Parquet, whose card says apache-2.0; the authors' own "
                "files are at box.nju.edu.cn, which SeeClick's README links to. The commit is "
                "from a stored page of its history",
            ),
            paper="2401.10935",
        ),
        Publication(
            "ScreenSpot-v2",
            "https://huggingface.co/datasets/OS-Copilot/ScreenSpot-v2",
            "apache-2.0",
            {"form": "screenspot-v2"},
            Remote(
                "hf://datasets/OS-Copilot/ScreenSpot-v2",
                files=("screenspot_*_v2.json", "screenspotv2_image.zip"),
                archives=("screenspotv2_image.zip",),
                bytes=1_330_000_000,
                note="the authors' files; lmms-lab/ScreenSpot-v2 and HongxinLi/ScreenSpot_v2 are "
                "copies in Parquet",
            ),
            paper="2410.23218",
        ),
        Publication(
            "ScreenSpot-Pro",
            "https://huggingface.co/datasets/likaixin/ScreenSpot-Pro",
            where={"form": "screenspot-pro"},
            remote=Remote(
                "hf://datasets/likaixin/ScreenSpot-Pro",
                files=("annotations/*.json", "images/*"),
                note="the authors' files; lmms-lab/ScreenSpot-Pro is a copy in Parquet. Its card "
                "has a licence, whose text was not seen",
            ),
            paper="2504.07981",
        ),
    )
    roles = loader.ROLES
    subsets = (*loader.FORMS, "mobile", "desktop", "web", "text", "icon")
    baselines: Sequence[str] = ("oracle", "center")
    allowed: Mapping[str, Sequence[str]] = OPTIONS

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._space = next(space for space in SPACES if space == self.options["coordinates"])
        self.question = _text("screenspot_v1").replace("{unit}", UNITS[self._space])
        if self.options["negatives"] == "on":
            self.question += _text("screenspot_negative_v1")
        self.prompt_hash = hash_of([self.question, self.options["language"]])
        profiles = [PointProfile("released", self._space), PointProfile("fixed", self._space)]
        self.profiles: Mapping[str, Profile] = {profile.name: profile for profile in profiles}

    def steps(self, data: Path, note: Callable[[Finding], None]) -> Iterable[Step | None]:
        return loader.read(
            data,
            note,
            boxes=next(boxes for boxes in BOXES if boxes == self.options["boxes"]),
            language="cn" if self.options["language"] == "cn" else "en",
        )

    def instructions(self, step: Step, episode_row: Mapping[str, Any]) -> Sequence[str]:
        told = (step.source.get(column) for column in ("instruction", "instruction_cn"))
        return (step.instruction, *(text for text in told if isinstance(text, str)))

    def named(self, step: Step) -> Step:
        """The step with its group: its page, which the instructions for one picture share.

        A row is an episode of its own, whose name begins with the page: in other data the same
        number stands for another row.
        """
        page = file_of(step.source["row"])
        if not isinstance(page, str) or not page:
            return step
        return replace(step, episode=f"{page}#{step.sample_id}", group=page)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        row, unit = step.source["row"], space or self._space
        if is_negative(row):
            return Target(NEGATIVE, NEGATIVE)
        try:
            box = targets_of(row, step.source["boxes"])[0]
        except ValueError:
            return None
        screen, size = step.screen, size or step.screen
        if min(*screen, *size) < 1:
            if "px" in (unit, box.space):
                return None
            screen = size = _ANY
        x, y = place(box, screen, space=unit, size=size)
        return Target(f"({x!r}, {y!r})", PLACE, ((x, y),))

    def right_actions(self, step: Step) -> Sequence[Action]:
        try:
            boxes = targets_of(step.source["row"], step.source["boxes"])
        except ValueError:
            return ()
        return (Action("tap", boxes),)

    def fed_size(self, step: Step) -> Screen | None:
        """Return the fed size of GUI-R1's rows."""
        return fed_size(step.source["row"])

    def express(self, actions: Sequence[Action], step: Step) -> str:
        return format_place(actions[0])

    def policy(self, name: str, steps: Sequence[Step]) -> Callable[[Step], str]:
        """`oracle` answers with the target, `center` with the middle of the screen."""
        return super().policy(name, steps) if name == "oracle" else self._center

    def _center(self, step: Step) -> str:
        if self._space == "px":
            return f"({step.screen[0] / 2:g}, {step.screen[1] / 2:g})"
        return "(0.5, 0.5)" if self._space == "rel" else "(500, 500)"

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        absent = is_negative(step.source["row"])
        given = (verdict and verdict.parsed) or {}
        point = pair_on_screen(step, given.get("point"), given.get("space", self._space), receipt)
        boxes = step.action.start if step.action else ()
        regions = tuple(in_pixels(region, step.screen) for region in boxes)

        def sentence(parsed: Mapping[str, Any], right: bool) -> str:
            if parsed.get("negative"):
                so = "and so it is" if absent else "but it is"
                return f"the answer says that the element is absent, {so}"
            if absent:
                return "the element is not on the screen, and the answer names a point"
            return explain_place(step, "the point", point, regions, right=right, rule=_RULE)

        def diagnosis(parsed: Mapping[str, Any]) -> Diagnosis:
            if absent or parsed.get("negative"):
                return Diagnosis("wrong_type")
            said = point_of(parsed.get("point"), parsed.get("space", self._space))
            if said is None:
                return Diagnosis("wrong_element")
            return place_cause(step, regions, (said,), receipt=receipt) or Diagnosis("rule")

        present = "point" if step.action else ""
        return explain(
            verdict,
            self.profiles[profile],
            sentence,
            target_label=NEGATIVE if absent else present,
            answer_label=lambda parsed: NEGATIVE if parsed.get("negative") else "point",
            overlays=lambda: {SCREENSHOT: Overlays(regions, (), point)},
            noun="kind",
            diagnosis=diagnosis,
        )


def _text(name: str) -> str:
    folder = resources.files("omnidata.tasks.screenspot").joinpath("prompts")
    return folder.joinpath(f"{name}.txt").read_text(encoding="utf-8")
