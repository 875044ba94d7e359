"""Answers to steps, scored without a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from omnidata.predictions import Prediction
from omnidata.run.scoring import get_profile, score
from omnidata.types import Step


def scored(
    task: Any, steps: Sequence[Step], texts: Iterable[str | None], profile: str = "", **more: Any
) -> dict[str, Any]:
    """The results of an answer to each step, by the task's own profile if none is named."""
    answers = [
        Prediction(sample_id=step.sample_id, output=text)
        for step, text in zip(steps, texts, strict=True)
    ]
    whole = np.ones(len(steps), dtype=np.bool_)
    rules = get_profile(task, profile or None)
    return score(task, rules, steps, answers, whole=whole, **more)
