"""Baselines: what a score means without a model. They look at the steps, never at media."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from omnidata.adapters.base import Model
from omnidata.types import Completion, GenerationParams, Prepared, Step


class Baseline(Model):
    """Answers each step by a rule of its task.

    Args:
        name: of the rule.
        steps: those that may be asked about.
        policy: the rule: a step's answer, in the form that the task's prompt asks for.
    """

    max_batch = 256
    accepts = None

    def __init__(self, name: str, steps: Sequence[Step], policy: Callable[[Step], str]) -> None:
        """Keep the steps at hand."""
        self.name = f"baseline:{name}"
        self._policy = policy
        self._steps = {step.sample_id: step for step in steps}

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        """Answer each step by the rule."""
        steps = [self._steps[item.request.sample_id] for item in batch]
        return [Completion(text=self._policy(step)) for step in steps]
