"""`osworld-step`: does an answer do what the recorded agent did? Ours; the paper has no such rule.

The recorded agent may be wrong: this compares models with a rollout, or one rollout with another,
and says nothing of success, which `omnidata score osworld RESULTS` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnidata.loaders.osworld_actions import calls_of
from omnidata.loaders.osworld_domains import groups, sets
from omnidata.metrics.osworld_acts import Act, acts, judge, moved
from omnidata.metrics.osworld_answer import Said, parse
from omnidata.tasks.episode_profiles import EpisodeProfile
from omnidata.tasks.resizing import resizing
from omnidata.types import Outcome, Step, Verdict


class StepProfile(EpisodeProfile):
    """The rules of `omnidata.metrics.osworld_acts.judge`."""

    name = "osworld-step"
    by: Mapping[str, Sequence[str]] = {
        "group": tuple(groups()),
        "domain": tuple(sets()["osworld"]),
        "model": (),
        "outcome": ("success", "partial", "failure", "unfinished"),
    }

    def judge(self, step: Step, text: str, receipt: Mapping[str, Any] | None = None) -> Verdict:
        """Read one answer and hold it against the recorded turn.

        Pixels are those of the screenshot as the model was shown it, which the receipt tells.
        """
        said = parse(text)
        if isinstance(said, str):
            return Verdict("unparsed", self._values(step, None, None), None, said)
        found = acts(said.statements)
        resized = resizing(receipt, where=step.sample_id)
        if found is not None and resized is not None:
            found = moved(found, resized.to_screen)
        return Verdict("ok", self._values(step, said, found), {"code": said.code})

    def failed(self, step: Step, outcome: Outcome) -> Verdict:
        """The verdict on a step without an answer: wrong, with the reason as its outcome."""
        return Verdict(outcome, self._values(step, None, None))

    def _values(
        self, step: Step, said: Said | None, found: Sequence[Act] | None
    ) -> tuple[bool | None, bool | None, bool]:
        recorded = acts(calls_of(step.source).calls)
        match = judge(recorded, found, step.screen)
        return *match, said is not None and said.as_prompted
