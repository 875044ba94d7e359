"""OmniGUI's two scoring profiles: the paper's rules and the released evaluator's.

Both read answers with the release's tolerant parser; an output on which it raises is `unparsed`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from omnidata.loaders.omnigui_apps import DEPENDENCIES, DIMENSIONS
from omnidata.loaders.omnigui_rows import whole_number
from omnidata.metrics import omnigui_paper, omnigui_release
from omnidata.metrics.episodes import Ints
from omnidata.metrics.omnigui_answer import Answer, Unread
from omnidata.metrics.omnigui_parser import parse
from omnidata.tasks.episode_profiles import EpisodeProfile, Mask, Runs, numbered
from omnidata.tasks.resizing import on_screen
from omnidata.types import Outcome, Rows, Step, Verdict

Values = tuple[bool | None, bool | None, bool, bool | None]
_WRONG: Values = (False, False, False, False)
SPACES: tuple[omnigui_paper.PredictedSpace, ...] = ("norm1000", "px", "rel", "auto")


class OmniGuiProfile(EpisodeProfile):
    """What the two profiles share: the parser, the axes, and what is counted."""

    values = (*EpisodeProfile.values, "extension")
    by: Mapping[str, Sequence[str]] = {
        "dimension": tuple(DIMENSIONS),
        "dependency": tuple(DEPENDENCIES),
        "app": (),
        "language": (),
    }

    def __init__(self, space: omnigui_paper.PredictedSpace = "norm1000") -> None:
        """Take the unit of the predicted coordinates; it is never guessed from a model's name."""
        self.space = space

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read one answer and hold it against the step's target.

        Pixels are those of the screenshot as the model was shown it, which the receipt tells.
        """
        answer = parse(text)
        if isinstance(answer, Unread):
            return Verdict("unparsed", self._values(step, None), None, answer.reason)
        meant = on_screen(answer, self.space, receipt, where=step.sample_id)
        try:
            return Verdict("ok", self._values(step, meant), answer.as_dict())
        except omnigui_release.RaisesError as error:
            return Verdict("unparsed", _WRONG, None, str(error))

    def failed(self, step: Step, outcome: Outcome) -> Verdict:
        """The verdict on a step without an answer: wrong, with the reason as its outcome."""
        return Verdict(outcome, self._values(step, None))

    def _values(self, step: Step, answer: Answer | None) -> Values:
        """The `VALUES` of a step; None = nothing could be read."""
        raise AssertionError("a profile says how it judges")

    def _stated_length(self, step: Step) -> int | None:
        """The released rows have it."""
        return whole_number(step.source.get("episode_length"))

    def _more_counts(self, rows: Rows, judged: Mask) -> dict[str, int]:
        """How many verdicts are by our extension of the rules."""
        return {"judged_by_extension": int(np.nansum(rows.values["extension"][judged]))}


class PaperProfile(OmniGuiProfile):
    """`omnigui-paper`: section 3.4, with the open points of `metrics/omnigui_paper.py`."""

    name = "omnigui-paper"

    def _values(self, step: Step, answer: Answer | None) -> Values:
        as_prompted = answer is not None and answer.as_prompted
        if step.action is None:
            return None, None, as_prompted, None
        match = omnigui_paper.judge(step.action, step.screen, answer, self.space)
        return match[0], match[1], as_prompted, match[2]


class ReleaseProfile(OmniGuiProfile):
    """`omnigui-release`: the published evaluator, verdict for verdict.

    It has no relative coordinates: the task offers this profile with the other units only.
    """

    name = "omnigui-release"
    goal_progress = "GP_prefix"
    of_nothing = 0.0

    def _values(self, step: Step, answer: Answer | None) -> Values:
        """Raises `RaisesError` where the release raises; a step without an answer is wrong."""
        try:
            match = omnigui_release.judge(step.source, answer, self.space)
        except omnigui_release.RaisesError:
            if answer is None:
                return _WRONG
            raise
        return match[0], match[1], answer is not None and answer.as_prompted, False

    def _episodes(self, steps: Sequence[Step], runs: Runs) -> Ints:
        """By the released key: episodes of two apps merge where rows have an app but no subset."""
        return numbered(_released_key(step) for step in steps)


def _released_key(step: Step) -> str:
    row = step.source
    default = "unknown" if "app" in row else step.tags["app"]
    return f"{row.get('subset', default)}-{row.get('episode_id', 'unknown')}"
