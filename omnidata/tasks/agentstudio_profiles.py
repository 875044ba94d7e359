"""AgentStudio's two scoring profiles for its four benchmarks.

`agentstudio-paper` reads with care: edges belong to a box, the last readable `Answer:` decides.
`agentstudio-release` gives the released evaluator's verdicts, its traps included. A row that is at
fault itself (no usable box, an operation outside the action space, an empty window) is judged by
neither and counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from omnidata.actions import Space
from omnidata.loaders.agentstudio_window import shown
from omnidata.metrics.agentstudio_critic import RATES, Confusion, read_success, released_score
from omnidata.metrics.agentstudio_idm import LettersVerdict, judge_multiple, judge_single
from omnidata.metrics.agentstudio_point import judge_point, judge_released
from omnidata.metrics.agentstudio_totals import PLATFORMS, by_group, critic_table, means
from omnidata.tasks.resizing import resizing
from omnidata.types import OUTCOMES, Outcome, Rows, Step, Verdict

Reading = Literal["paper", "release"]
Unit = Literal["share", "number"]
Mask = npt.NDArray[np.bool_]
_ANSWERED = [OUTCOMES.index("ok"), OUTCOMES.index("unparsed")]
_BY: Mapping[str, Sequence[str]] = {"platform": PLATFORMS, "source": (), "subset": ()}


class AgentStudioProfile:
    """What the profiles share: the way from verdicts to the table."""

    values: tuple[str, ...] = ("score",)
    columns: Mapping[str, Unit] = {"accuracy": "share"}

    def __init__(self, reading: Reading) -> None:
        """Take the way in which responses are read and judged."""
        self.reading = reading
        self.name = f"agentstudio-{reading}"

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read one answer and hold it against the row."""
        raise AssertionError("a profile says how it judges")

    def failed(self, step: Step, outcome: Outcome) -> Verdict:
        """The verdict on a row for which no answer came: that on an empty one."""
        return Verdict(outcome, self.judge(step, "").values)

    def total(self, steps: Sequence[Step], rows: Rows) -> dict[str, Any]:
        """The table; rows that cannot be judged are counted and left out.

        Returns:
            `overall`, `answered` (rows with an answer, readable or not), `ci95`, `by` platform,
            source and subset, `counts`, `outcomes`.
        """
        judged = ~np.isnan(rows.values["score"])
        overall = self._table(steps, rows, judged)
        answered = self._table(steps, rows, judged & np.isin(rows.outcomes, _ANSWERED))
        outcomes = np.bincount(rows.outcomes, minlength=len(OUTCOMES)).tolist()
        return {
            "overall": {name: overall[name] for name in self.columns},
            "ci95": overall["ci95"],
            "answered": answered,
            "by": {
                tag: by_group(
                    lambda mask: self._table(steps, rows, mask & judged),
                    [step.tags.get(tag) for step in steps],
                    order,
                )
                for tag, order in _BY.items()
            },
            "counts": {
                "steps": int(judged.sum()),
                "without_usable_target": int((~judged).sum()),
                **{name: overall[name] for name in ("confusion", "undefined") if name in overall},
            },
            "outcomes": {name: n for name, n in zip(OUTCOMES, outcomes, strict=True) if n},
        }

    def _table(self, steps: Sequence[Step], rows: Rows, mask: Mask) -> dict[str, Any]:
        found = zip(self.columns, self.values, strict=True)
        return _sized(means({name: rows.values[value][mask] for name, value in found}))


def _sized(table: dict[str, Any]) -> dict[str, Any]:
    return {**table, "steps": table["rows"]}


class PointProfile(AgentStudioProfile):
    """GroundUI: the point lies in the box (section 4.1).

    Args:
        reading: whose rules.
        space: unit of the coordinates in responses; the paper's prompt asks for [0, 1].
    """

    def __init__(self, reading: Reading, space: Space) -> None:
        """Take the unit; it is never guessed from a model's name."""
        super().__init__(reading)
        self.space = space

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read the point and hold it against the row's box."""
        rule = judge_point if self.reading == "paper" else judge_released
        resized = resizing(receipt, where=step.sample_id) if self.space == "px" else None
        to_screen = resized.to_screen if resized else None
        found = rule(step.source, text, space=self.space, to_screen=to_screen)
        outcome: Outcome = "unparsed" if found.fault == "no-pair" else "ok"
        # JSON has no infinity: a number that no float holds is told as a text.
        parsed = found.point and {"point": [x if math.isfinite(x) else str(x) for x in found.point]}
        return Verdict(outcome, (found.hit,), parsed, found.fault)


class LetterProfile(AgentStudioProfile):
    """IDM-Single: the letter is that of the action (section 4.2)."""

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read the letter."""
        row = step.source
        found = judge_single(row["operation"], row["action_space"], text, reading=self.reading)
        return _lettered(found, (found.correct,))


class LettersProfile(AgentStudioProfile):
    """IDM-Multiple: the letters are those of the actions; edits where they are not."""

    values = ("score", "edit_distance")
    columns: Mapping[str, Unit] = {"accuracy": "share", "edit_distance": "number"}

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read the letters."""
        operations = [action["operation"] for action in shown("idm-multiple", step.source)]
        space = step.source["action_space"]
        found = judge_multiple(operations, space, text, reading=self.reading)
        return _lettered(found, (found.correct, found.distance))


def _lettered(found: LettersVerdict, values: tuple[float | bool | None, ...]) -> Verdict:
    outcome: Outcome = "ok" if found.parsed else "unparsed"
    parsed = {"letters": list(found.parsed)} if found.parsed else None
    return Verdict(outcome, values, parsed, found.fault)


class CriticProfile(AgentStudioProfile):
    """CriticBench: does the trajectory succeed? (section 4.3).

    The release stores only whether a response is right, so that an unread one counts as the
    opposite of the truth; the paper's profile counts it as neither.
    """

    values = ("score", "said")
    columns: Mapping[str, Unit] = dict.fromkeys(RATES, "share")

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read the response as true or false."""
        success: bool = step.source["is_success"]
        if self.reading == "release":
            score = bool(released_score(success, text))
            return Verdict("ok", (score, success == score), {"success": success == score})
        said = read_success(text)
        if said is None:
            return Verdict("unparsed", (False, None), None, "no truth value after an Answer:")
        return Verdict("ok", (said == success, said), {"success": said})

    def _table(self, steps: Sequence[Step], rows: Rows, mask: Mask) -> dict[str, Any]:
        chosen = np.flatnonzero(mask).tolist()
        said = rows.values["said"][chosen].tolist()
        truth = [bool(steps[number].source["is_success"]) for number in chosen]
        read = [None if value != value else bool(value) for value in said]
        return _sized(critic_table(Confusion.of(truth, read)))
