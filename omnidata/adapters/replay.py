"""Answers that were given before: a file of predictions as a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from omnidata import predictions
from omnidata.types import Completion, GenerationParams, Modality, Request


class Replay:
    """Repeats a file of `{"sample_id", "output"}` lines; a run's `predictions.jsonl` is one.

    A step without a line comes back as `api_error`: nothing was answered, so nothing is judged.
    """

    accepts: frozenset[Modality] = frozenset()
    max_batch = 256

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            PredictionError: the file is missing, or a line is not a prediction.
        """
        self.name = f"replay:{path}"
        self._lines = {line.sample_id: line.completion() for line in predictions.read(path)}

    async def generate(
        self, batch: Sequence[Request], params: GenerationParams
    ) -> list[Completion]:
        """The recorded completions."""
        return [
            self._lines.get(
                request.sample_id,
                Completion(delivery="api_error", error=f"{self.name} has no line for this step"),
            )
            for request in batch
        ]
