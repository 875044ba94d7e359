"""What every model has unless it says otherwise, and the models that ask nobody."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from omnidata import media, predictions
from omnidata.adapters.media_budget import parts_of
from omnidata.files import STREAMED, open_file
from omnidata.types import (
    Completion,
    Conversation,
    GenerationParams,
    IndexedSteps,
    Modality,
    Prepared,
    Request,
    Step,
)


def untaken(conversation: Conversation, accepts: Collection[Modality] | None) -> str:
    """Return a sentence about the media that a model does not take; empty if it takes all."""
    kinds = dict.fromkeys(part.media.kind for part in parts_of(conversation) if part.media)
    if accepts is None or kinds.keys() <= set(accepts):
        return ""
    takes = ", ".join(sorted(accepts)) or "no media"
    return f"the prompt has {', '.join(kinds)}, and the model accepts {takes}"


class Model(ABC):
    """Base class for models; a new one defines `name` and `generate`.

    Attributes:
        name: the SPEC that names it.
        settings: what its answers depend on beside the name, as JSON values; never a key.
        params: how it decodes unless the caller says otherwise.
        accepts: the modalities that it takes: prompts with others are refused before the first
            request. None looks at no prompt, as baselines do.
        max_batch: how many requests one `generate` takes, 1 or more.
        concurrency: how many calls of `generate` may be open at a time, 1 or more.
        timeout_s: seconds after which a call has failed, more than 0; None = never.
        controls: the settings of `GenerationParams` that it obeys, and "prefix" where it goes on
            with an answer that the prompt begins.

    Examples:
        >>> class Echo(Model):
        ...     name = "echo"
        ...     async def generate(self, batch, params):
        ...         return [Completion(text=item.request.sample_id) for item in batch]
        >>> Echo().max_batch
        1
    """

    name: str
    settings: Mapping[str, Any] = {}
    params: GenerationParams = GenerationParams()
    accepts: Collection[Modality] | None = frozenset()
    max_batch: int = 1
    concurrency: int = 1
    timeout_s: float | None = None
    controls: Collection[str] = (*GenerationParams.__dataclass_fields__, "prefix")

    def unsupported_reason(self, conversation: Conversation) -> str:
        """Return why the model cannot take the whole conversation; empty by default."""
        return ""

    def prepare(self, request: Request) -> Prepared:
        """Check that the media of a request can be opened.

        Raises:
            MediaError: one cannot.
        """
        for part in parts_of(request.conversation):
            if part.media and self.accepts and part.media.kind in self.accepts:
                media.check(part.media)
        return Prepared(request)

    @abstractmethod
    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> Sequence[Completion]:
        """Answer a batch, in order, in one attempt.

        Raises:
            CallError: no answer came.
        """

    async def close(self) -> None:  # noqa: B027 - what most models have, not a gap to fill
        """Release resources; the default has none."""

    def run_metadata(self) -> Mapping[str, Any]:
        """Return facts about the run for `run.json`; none by default."""
        return {}


# Baselines, which say what a score means without a model, and answers that were given before.


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
        self._step: Callable[[str], Step] = (
            steps.by_id
            if isinstance(steps, IndexedSteps)
            else {step.sample_id: step for step in steps}.__getitem__
        )

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        """Answer each step by the rule."""
        steps = (self._step(item.request.sample_id) for item in batch)
        return [Completion(text=self._policy(step)) for step in steps]


# Answers that were given before: a file of predictions as a model.


class Replay(Model):
    """Model that repeats the answers of a file of `{"sample_id", "output"}` lines.

    `predictions.jsonl` of a run is such a file. A step without a line is an `api_error`.
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
        """Return the recorded completions."""
        return [
            self._lines.get(
                item.request.sample_id,
                Completion(delivery="api_error", error=f"{self.name} has no line for this step"),
            )
            for item in batch
        ]
