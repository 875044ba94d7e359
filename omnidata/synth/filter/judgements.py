"""What a critic's answers say of episodes, and how often they are right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from omnidata.metrics.agentstudio_critic import Confusion
from omnidata.metrics.proportion import share
from omnidata.predictions import Prediction
from omnidata.tasks.omnigui_critic import OmniGuiCritic, known
from omnidata.types import Outcome, Step


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a critic said of an episode.

    Attributes:
        success: that it succeeded or failed; None = nothing that could be read.
        outcome: "ok", or why there is no judgement.
        answer: the model's text, untouched.
        why: the reason, where there is no judgement.
    """

    success: bool | None
    outcome: Outcome
    answer: str
    why: str = ""

    @property
    def fate(self) -> Literal["accepted", "rejected", "undecided"]:
        """What becomes of the episode."""
        if self.success is None:
            return "undecided"
        return "accepted" if self.success else "rejected"


def judgements(
    task: OmniGuiCritic, steps: Sequence[Step], lines: Mapping[str, Prediction]
) -> dict[str, Judgement]:
    """Read the answers; one that did not come whole is no judgement.

    Args:
        task: its profile reads texts.
        steps: that were asked about.
        lines: what came back, by sample id.

    Returns:
        By sample id; steps without a line are left out.
    """
    profile = task.profiles[task.default_profile]
    said = {}
    for step in steps:
        line = lines.get(step.sample_id)
        if line is None:
            continue
        text = line.output or ""
        if line.delivery != "ok":
            said[step.sample_id] = Judgement(None, line.delivery, text, line.error)
            continue
        verdict = profile.judge(step, text, line.receipt)
        success = verdict.parsed["success"] if verdict.parsed else None
        said[step.sample_id] = Judgement(success, verdict.outcome, text, verdict.reason)
    return said


def precision(steps: Sequence[Step], said: Mapping[str, Judgement]) -> dict[str, Any] | None:
    """The table of the episodes of which it is known whether they succeeded.

    Args:
        steps: that were asked about.
        said: what came of it, by sample id.

    Returns:
        `known`, `unanswered` (of them: no full answer came, and they count for nothing below),
        `confusion`, `precision` (of the accepted, those that succeeded), `recall` (of those that
        succeeded, the accepted; an answer that cannot be read accepts nothing), each as
        `metrics.proportion.share`, and `accept_all`, the precision of accepting everything. None if
        nothing is known.
    """
    asked = [step for step in steps if step.sample_id in said]
    known_ones = [
        (success, said[step.sample_id]) for step in asked if (success := known(step)) is not None
    ]
    if not known_ones:
        return None
    judged = [(truth, j.success) for truth, j in known_ones if j.outcome in ("ok", "unparsed")]
    cells = Confusion.of([truth for truth, _ in judged], [answer for _, answer in judged])
    positive = cells.tp + cells.fn + cells.unread_positive
    return {
        "known": len(known_ones),
        "unanswered": len(known_ones) - len(judged),
        "confusion": cells._asdict(),
        "precision": share(cells.tp, cells.tp + cells.fp),
        "recall": share(cells.tp, positive),
        "accept_all": share(positive, len(judged)),
    }
