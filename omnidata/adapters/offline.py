"""Baselines: what a score means without a model. They look at the steps, never at media."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from omnidata import predictions
from omnidata.adapters.base import Model
from omnidata.files import STREAMED, open_file
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
        self.name = f"baseline:{name}"
        self._policy = policy
        self._steps = {step.sample_id: step for step in steps}

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        """Answer each step by the rule."""
        steps = [self._steps[item.request.sample_id] for item in batch]
        return [Completion(text=self._policy(step)) for step in steps]


# Answers that were given before: a file of predictions as a model.


class Replay(Model):
    """Repeats a file of `{"sample_id", "output"}` lines; a run's `predictions.jsonl` is one.

    A step without a line comes back as `api_error`: nothing was answered, so nothing is judged.
    """

    max_batch = 256
    accepts = None

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            PredictionError: the file is missing, or a line is not a prediction.
        """
        self._lines = {line.sample_id: line.completion() for line in predictions.read(path)}
        # The content is part of the name: a run that resumes on an edited file would mix two.
        with open_file(path, STREAMED) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        self.name = f"replay:{path}@{digest[:12]}"

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        """The recorded completions."""
        return [
            self._lines.get(
                item.request.sample_id,
                Completion(delivery="api_error", error=f"{self.name} has no line for this step"),
            )
            for item in batch
        ]
