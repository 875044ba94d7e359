"""A model that does what a function says, and the lines that a run leaves."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from omnidata import media
from omnidata.adapters import Model
from omnidata.run.cost import Limits
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.types import (
    Completion,
    Conversation,
    GenerationParams,
    LoadedDataset,
    Modality,
    Prepared,
    Request,
)
from tests.trees import read_lines

TASK = get_task("omnigui")


RIGHT = Completion(text='{"action_type": -1}', usage={"prompt_tokens": 90, "completion_tokens": 10})


class Scripted(Model):
    """Does with each attempt at a step what a function says; by default all is right."""

    name = "scripted"
    concurrency = 4
    accepts: Collection[Modality] | None = None

    def __init__(self, reply: Callable[[str, int], Completion] = lambda *_: RIGHT) -> None:
        self.reply = reply
        self.asked: Counter[str] = Counter()
        self.prompts: dict[str, Conversation] = {}
        self.closed = False

    def prepare(self, request: Request) -> Prepared:
        return Prepared(request, size=1000, key=request.sample_id)

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        answers = []
        for item in batch:
            self.asked[item.request.sample_id] += 1
            self.prompts[item.request.sample_id] = item.request.conversation
            await asyncio.sleep(0)
            answers.append(self.reply(item.request.sample_id, self.asked[item.request.sample_id]))
        return answers

    async def close(self) -> None:
        self.closed = True


class Looking(Scripted):
    """Reads all media of the steps that it is asked about."""

    accepts = frozenset({"image", "video", "audio"})

    def __init__(self) -> None:
        super().__init__(lambda name, attempt: Completion(text='{"action_type": -1}'))

    def prepare(self, request: Request) -> Prepared:
        for message in request.conversation:
            for part in message.parts:
                if part.media:
                    media.read_bytes(part.media)
        return super().prepare(request)


class Run:
    """A run folder over a few episodes: calls of `evaluate`, and the lines that they leave."""

    def __init__(self, source: LoadedDataset, folder: Path) -> None:
        self.source, self.folder = source, folder
        self.ids = [step.sample_id for step in source.steps]

    def __call__(
        self, model: Any, limit: int | None = None, task: Asking = TASK, **limits: Any
    ) -> dict[str, Any]:
        """Ask the model; limits are those of `Limits`."""
        given = Limits(**limits)
        return evaluate(task, self.source, model, self.folder, limit=limit, limits=given)

    @property
    def info(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "run.json").read_text()))

    def lines(self, name: str = "predictions") -> list[dict[str, Any]]:
        return read_lines(self.folder / f"{name}.jsonl")

    def finals(self) -> dict[str, str]:
        return finals(self.folder)


def finals(run: Path) -> dict[str, str]:
    lines = read_lines(run / "predictions.jsonl")
    assert len({line["sample_id"] for line in lines}) == len(lines)
    return {line["sample_id"]: line["delivery"] for line in lines}
