"""The task `screenspot`: the point that an instruction means, in ScreenSpot, -v2 and -Pro."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from omnidata.actions import Screen, Space
from omnidata.jsontext import hash_of
from omnidata.loaders.row_sizes import fed_size
from omnidata.metrics.row_tables import means
from omnidata.tasks.benchmark import (
    Benchmark,
    Card,
    Note,
    ParsedAnswer,
    Receipt,
    Rule,
    Values,
    Wordings,
    hub_publication,
)
from omnidata.tasks.coordinates import answer_space, in_pixels, place
from omnidata.tasks.loading import prompt_text
from omnidata.tasks.pointing import (
    Place,
    PointRecord,
    PointSpeech,
    boxes_of,
    edges_in_shares,
    explain_point,
    is_within,
    parse_place,
)
from omnidata.tasks.points import NEGATIVE, UNITS, Reading
from omnidata.tasks.profile import Profile
from omnidata.tasks.screenspot import load as loader
from omnidata.tasks.screenspot.load import BOXES, FORMS, TAGS, is_negative, name_of_picture
from omnidata.tasks.sentences import RuleWords
from omnidata.tasks.totals import Column, PartTotals
from omnidata.types import (
    PLACE,
    Explanation,
    Publication,
    Remote,
    Step,
    Target,
    Verdict,
    VerdictColumns,
)

TYPES: Final = ("text", "icon")
PLATFORMS: Final = ("mobile", "desktop", "web")


class Accuracy(PartTotals):
    """Accuracy of all rows, of those for a text, of those for an icon.

    By platform these are SeeClick's columns, by group ScreenSpot-Pro's. Beside the table the
    results have `macro`, the mean over every platform's texts and icons.
    """

    def __init__(self) -> None:
        super().__init__(
            [Column("accuracy", "score"), *map(Column, TYPES)],
            by={
                "platform": PLATFORMS,
                "group": (),
                "application": (),
                "data_source": (),
                "form": FORMS,
            },
        )

    def total(self, steps: Sequence[Step], rows: VerdictColumns) -> dict[str, Any]:
        """Return the table of `PartTotals`, and `macro`; None without rows."""
        platforms = np.array([step.tags.get("platform", "") for step in steps])
        cells = [
            means({kind: rows.values[kind][platforms == platform]})[kind]
            for platform in sorted(set(platforms.tolist()))
            for kind in TYPES
        ]
        known = [cell for cell in cells if cell is not None]
        macro = sum(known) / len(known) if known else None
        return {**super().total(steps, rows), "macro": macro}


class InBox(Rule[Place]):
    """The point lies in a box, edges included, or the answer is "negative" for an absent element.

    ScreenSpot-Pro's evaluation has the same rule for a point, however a model's own reader got it.
    """

    totals = Accuracy()

    def __init__(self, name: str, source: str, space: Space) -> None:
        self.name, self.source = name, source
        self._space = space

    def judge(self, step: Step, parsed: ParsedAnswer[Place] | None) -> Values | Verdict:
        """Compare the place with the boxes of the row; each of them is right."""
        boxes, point = boxes_of(step), parsed.value if parsed else None
        hit: bool | None
        if is_negative(step.source["row"]):
            hit = parsed is not None and point is None
        elif not boxes:
            return Verdict("ok", (None, None, None), None, "the row has no usable box")
        elif min(step.screen) < 1 and any("px" in (self._space, box.space) for box in boxes):
            hit = None
        else:  # as the releases compare, in shares of the screen
            edges = (edges_in_shares(box, step.screen) for box in boxes)
            hit = point is not None and any(is_within(point, each, step.screen) for each in edges)
        kind = step.tags.get("ui_type")
        return (hit, *(hit if kind == name else None for name in TYPES))


SOURCES: Final = (
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
    hub_publication(
        "ScreenSpot-v2",
        "OS-Copilot/ScreenSpot-v2",
        "apache-2.0",
        paper="2410.23218",
        where={"form": "screenspot-v2"},
        files=("screenspot_*_v2.json", "screenspotv2_image.zip"),
        archives=("screenspotv2_image.zip",),
        bytes=1_330_000_000,
        note="the authors' files; lmms-lab/ScreenSpot-v2 and HongxinLi/ScreenSpot_v2 are "
        "copies in Parquet",
    ),
    hub_publication(
        "ScreenSpot-Pro",
        "likaixin/ScreenSpot-Pro",
        paper="2504.07981",
        where={"form": "screenspot-pro"},
        files=("annotations/*.json", "images/*"),
        note="the authors' files; lmms-lab/ScreenSpot-Pro is a copy in Parquet. Its card "
        "has a licence, whose text was not seen",
    ),
)


_RULE: Final = RuleWords(borderline="the profile compares in shares of the screen")


class _Wordings(Wordings):
    def instructions(self, step: Step, episode_row: Mapping[str, Any]) -> Sequence[str]:
        texts = (step.source.get(column) for column in ("instruction", "instruction_cn"))
        return (step.instruction, *(text for text in texts if isinstance(text, str)))


class _Speech(PointSpeech):
    def fed_size(self, step: Step) -> Screen | None:
        return fed_size(step.source["row"])  # of GUI-R1's rows


class ScreenSpot(Benchmark):
    """ScreenSpot: where on the screen is the element that an instruction means?

    The option `boxes` says what four numbers are where the columns do not tell; `negatives` lets
    the model say that the element is not there.
    """

    card = Card(
        title="ScreenSpot",
        holds="point at the element of an instruction on a screenshot (ScreenSpot, -v2, -Pro)",
        sources=SOURCES,
        tags=TAGS,
        roles={"screenshot": "image"},
        subsets=(*FORMS, *PLATFORMS, *TYPES),
        detailed_actions=False,
        answer_type=PointRecord,
    )
    allowed: Mapping[str, Sequence[str]] = {
        "coordinates": ("rel", "px", "norm1000"),
        "boxes": BOXES,
        "language": ("en", "cn"),
        "negatives": ("off", "on"),
    }
    baselines = ("oracle", "center")
    files = loader.FILES
    wordings = _Wordings()

    def __init__(self, name: str, options: Mapping[str, str]) -> None:
        super().__init__(name, options)
        self._space: Space = answer_space(self.options) or "rel"
        self.question = prompt_text("screenspot", "screenspot_v1")
        self.question = self.question.replace("{unit}", UNITS[self._space])
        if self.options["negatives"] == "on":
            self.question += prompt_text("screenspot", "screenspot_negative_v1")
        self.prompt_hash = hash_of([self.question, self.options["language"]])
        self.speech = _Speech(self._space)
        source = "SeeClick's evaluation of ScreenSpot (Cheng et al., 2024)"
        fixed = InBox("screenspot-fixed", f"{source}, with more answer formats", self._space)
        fixed.parse = partial(self.parse, reading="fixed")
        self.rules = (InBox("screenspot", source, self._space), fixed)

    def steps(self, data: Path, note: Note) -> Iterable[Step | None]:
        boxes, language = self.options["boxes"], self.options["language"]
        return loader.read(data, note, boxes=boxes, language=language)

    def group(self, step: Step) -> Step:
        """Return the step in the group of its page; in other data its number is another row's."""
        page = name_of_picture(step.source["row"])
        if not isinstance(page, str) or not page:
            return step
        return replace(step, episode=f"{page}#{step.sample_id}", group=page)

    def parse(
        self, text: str, step: Step, receipt: Receipt, reading: Reading = "released"
    ) -> ParsedAnswer[Place]:
        if is_negative(step.source["row"]):  # judged by whether there is a place at all
            receipt = None
        return parse_place(text, step, receipt, reading=reading, space=self._space)

    def target(
        self, step: Step, *, space: Space | None = None, size: Screen | None = None
    ) -> Target | None:
        if is_negative(step.source["row"]):
            return Target(NEGATIVE, NEGATIVE)
        box, unit = next(iter(boxes_of(step)), None), space or self._space
        if box is None:
            return None
        screen, size = step.screen, size or step.screen
        if min(*screen, *size) < 1:
            if "px" in (unit, box.space):
                return None
            screen = size = (1000, 1000)  # shares are the same of any size
        x, y = place(box, screen, space=unit, size=size)
        return Target(f"({x!r}, {y!r})", PLACE, ((x, y),))

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        parsed: ParsedAnswer[Place] | None,
        profile: Profile,
        receipt: Receipt,
    ) -> Explanation:
        absent = is_negative(step.source["row"])
        negative = parsed is not None and parsed.value is None
        other = "the element is not on the screen, and the answer names a point" if absent else ""
        if negative:
            so = "and so it is" if absent else "but it is"
            other = f"the answer says that the element is absent, {so}"
        present = "point" if step.action else ""
        return explain_point(
            step,
            verdict,
            parsed,
            profile,
            receipt,
            regions=tuple(in_pixels(region, step.screen) for region in boxes_of(step)),
            rule=_RULE,
            kinds=(NEGATIVE if absent else present, NEGATIVE if negative else "point"),
            other=(lambda record, right: other, "wrong_type") if other else None,
        )
