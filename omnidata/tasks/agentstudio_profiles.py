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

from omnidata.actions import Space
from omnidata.loaders.agentstudio_window import shown
from omnidata.metrics.agentstudio_critic import RATES, Confusion, read_success, released_score
from omnidata.metrics.agentstudio_idm import LettersVerdict, judge_multiple, judge_single
from omnidata.metrics.agentstudio_point import judge_point, judge_released
from omnidata.metrics.agentstudio_totals import PLATFORMS, critic_table
from omnidata.tasks.resizing import resizing
from omnidata.tasks.row_profiles import Mask, RowProfile, Unit, owners, sized
from omnidata.types import Outcome, Rows, Step, Verdict

Reading = Literal["paper", "release"]
_BY: Mapping[str, Sequence[str]] = {"platform": PLATFORMS, "source": (), "subset": ()}


class AgentStudioProfile(RowProfile):
    """What the profiles share: their names and the axes of the table."""

    by = _BY

    def __init__(self, reading: Reading) -> None:
        """Take the way in which responses are read and judged."""
        self.reading = reading
        self.name = f"agentstudio-{reading}"


class PointProfile(AgentStudioProfile):
    """GroundUI: the point lies in the box (section 5.1).

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
    """IDM-Single: the letter is that of the action (section 5.2)."""

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
    """CriticBench: does the trajectory succeed? (section 5.3).

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
        groups: dict[int, list[int]] = {}
        for place, owner in enumerate(owners(steps, mask).tolist()):
            groups.setdefault(owner, []).append(place)
        per_group = [
            Confusion.of([truth[place] for place in places], [read[place] for place in places])
            for places in groups.values()
        ]
        shared = len(groups) < len(chosen)
        counts = Confusion.of(truth, read)
        return sized(critic_table(counts, per_group=per_group if shared else ()))
