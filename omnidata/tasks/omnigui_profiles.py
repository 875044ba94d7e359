"""OmniGUI's two scoring profiles: the paper's rules and the released evaluator's.

Both read answers with the release's tolerant parser; an output on which it raises is `unparsed`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from omnidata.loaders.omnigui_apps import DEPENDENCIES, DIMENSIONS
from omnidata.loaders.omnigui_rows import whole_number
from omnidata.metrics import episodes, omnigui_paper, omnigui_release
from omnidata.metrics.episodes import Ints
from omnidata.metrics.omnigui_answer import Answer, Unread
from omnidata.metrics.omnigui_parser import parse
from omnidata.tasks.resizing import on_screen
from omnidata.types import OUTCOMES, Outcome, Rows, Step, Verdict

Values = tuple[bool | None, bool | None, bool, bool | None]
_WRONG: Values = (False, False, False, False)
VALUES = ("type_match", "exact_match", "format_ok", "extension")
SPACES: tuple[omnigui_paper.PredictedSpace, ...] = ("norm1000", "px", "rel", "auto")
_BY: Mapping[str, Sequence[str]] = {
    "dimension": tuple(DIMENSIONS),
    "dependency": tuple(DEPENDENCIES),
    "app": (),
    "language": (),
}
"""The axes of the table, and the order of the groups on each; others are sorted."""
_ANSWERED = [OUTCOMES.index("ok"), OUTCOMES.index("unparsed")]


@dataclass(frozen=True, slots=True)
class _Runs:
    """Neighbouring steps of one episode, which share their tags: what is said once for all of them.

    Attributes:
        number: int64 (N,), the run that a step is in.
        first, last: one step per run.
    """

    number: Ints
    first: list[Step]
    last: list[Step]

    @classmethod
    def of(cls, steps: Sequence[Step]) -> _Runs:
        first: list[Step] = []
        last: list[Step] = []
        numbers = []
        tags, episode, step = None, None, None
        for following in steps:
            if following.tags is not tags or following.episode_id != episode:
                tags, episode = following.tags, following.episode_id
                first.append(following)
                if step is not None:
                    last.append(step)
            step = following
            numbers.append(len(first) - 1)
        if step is not None:
            last.append(step)
        return cls(np.array(numbers, dtype=np.int64), first, last)

    def incomplete(self, judged: npt.NDArray[np.bool_]) -> int:
        """Episodes of which the data lacks steps, or of which a step is left out."""
        cut = set(np.unique(self.number[~judged]).tolist())
        for number, (first, last) in enumerate(zip(self.first, self.last, strict=True)):
            stated = whole_number(first.source.get("episode_length"))
            lacks = stated is not None and stated > first.num_steps
            if lacks or last.step_index >= last.num_steps:
                cut.add(number)
        return len({(self.first[n].tags["app"], self.first[n].episode_id) for n in cut})


def _numbered(keys: Iterable[Hashable]) -> Ints:
    """Equal keys get equal numbers, in the order in which they first come."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


class OmniGuiProfile:
    """What the two profiles share: the parser, and the way from verdicts to the table."""

    values = VALUES
    columns: Mapping[str, Literal["share", "number"]] = dict.fromkeys(
        ("TM", "EM", "SR", "GP"), "share"
    )
    name: str
    goal_progress: Literal["GP_ratio", "GP_prefix"]
    of_nothing: float | None = None

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

    def _episodes(self, steps: Sequence[Step], runs: _Runs) -> Ints:
        """A code per episode, (N,)."""
        return _numbered((step.tags["app"], step.episode_id) for step in runs.first)[runs.number]

    def total(self, steps: Sequence[Step], rows: Rows) -> dict[str, Any]:
        """The table; steps that were not judged are counted and left out.

        Returns:
            `overall`, `answered` (steps with an answer, readable or not), `ci95`, `by`, `counts`,
            `outcomes`. `GP` is this profile's own definition of goal progress.
        """
        judged = ~np.isnan(rows.values["type_match"])
        runs = _Runs.of(steps)
        order = np.fromiter((step.step_index for step in steps), np.int64, len(steps))
        type_match, exact_match, format_ok = (
            np.nan_to_num(rows.values[name]) for name in VALUES[:3]
        )
        verdicts = episodes.StepVerdicts(
            self._episodes(steps, runs), order, type_match, exact_match, format_ok, rows.whole
        )
        kept = verdicts.where(judged)
        overall = self._named(episodes.table(kept))
        by = {}
        for tag, names_first in _BY.items():
            labels, names = episodes.codes([step.tags.get(tag) for step in runs.first], names_first)
            groups = episodes.by_group(kept, labels[runs.number][judged], names)
            if groups:
                by[tag] = {name: self._named(group) for name, group in groups.items()}
        answered = np.isin(rows.outcomes, _ANSWERED) & judged
        outcomes = np.bincount(rows.outcomes, minlength=len(OUTCOMES)).tolist()
        return {
            "overall": {name: overall[name] for name in overall["ci95"]},
            "ci95": overall["ci95"],
            "answered": self._answered(verdicts, answered, judged),
            "by": by,
            "counts": {
                "steps": overall["steps"],
                "episodes": overall["episodes"],
                "whole_episodes": overall["whole_episodes"],
                "incomplete_episodes": runs.incomplete(judged),
                "without_usable_target": int((~judged).sum()),
                "judged_by_extension": int(np.nansum(rows.values["extension"][judged])),
            },
            "outcomes": {name: n for name, n in zip(OUTCOMES, outcomes, strict=True) if n},
        }

    def _answered(
        self, verdicts: episodes.StepVerdicts, answered: Any, judged: Any
    ) -> dict[str, Any]:
        """The table over answered steps; SR and GP over episodes answered from end to end."""
        broken = np.unique(verdicts.episode[judged & ~answered])
        whole = verdicts.whole & ~np.isin(verdicts.episode, broken)
        columns = {name: getattr(verdicts, name) for name in verdicts.__slots__} | {"whole": whole}
        return self._named(episodes.table(episodes.StepVerdicts(**columns).where(answered)))

    def _named(self, table: dict[str, Any]) -> dict[str, Any]:
        """The table with `GP` as this profile defines it, in the order TM, EM, SR, GP."""
        if self.of_nothing is not None and not table["steps"]:
            table |= dict.fromkeys(episodes.METRICS, self.of_nothing)
        named = {name: table[name] for name in ("TM", "EM", "SR")}
        named |= {"GP": table[self.goal_progress], **table}
        named["ci95"] = {name: table["ci95"][name] for name in ("TM", "EM", "SR")}
        named["ci95"] |= {"GP": table["ci95"][self.goal_progress], **table["ci95"]}
        return named


class PaperProfile(OmniGuiProfile):
    """`omnigui-paper`: section 3.4, with the open points of `metrics/omnigui_paper.py`."""

    name = "omnigui-paper"
    goal_progress = "GP_ratio"

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

    def _episodes(self, steps: Sequence[Step], runs: _Runs) -> Ints:
        """By the released key: episodes of two apps merge where rows have an app but no subset."""
        return _numbered(_released_key(step) for step in steps)


def _released_key(step: Step) -> str:
    row = step.source
    default = "unknown" if "app" in row else step.tags["app"]
    return f"{row.get('subset', default)}-{row.get('episode_id', 'unknown')}"
