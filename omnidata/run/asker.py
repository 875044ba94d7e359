"""Asks a model in this process; `omnidata.run.cluster` asks it on a cluster."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omnidata import adapters
from omnidata.run.adapter_contract import About, describe_model, model_facts, slip
from omnidata.run.ask import AskingOutcome, Engine
from omnidata.run.cache import ResponseCache
from omnidata.run.cost import Budget, Limits
from omnidata.run.event_loop import EventLoop
from omnidata.run.journal import RunFolder
from omnidata.run.pace import Gate, StageTimer
from omnidata.tasks.asking import Asking
from omnidata.types import Adapter, GenerationParams, Progress, Step


@dataclass(frozen=True, slots=True)
class Recipe:
    """Description of a model, created in the process that asks it.

    Attributes:
        spec, options, base_url, key_file, models: as in `omnidata.adapters.get_adapter`.
    """

    spec: str
    options: Mapping[str, str] = field(default_factory=dict)
    base_url: str | None = None
    key_file: Path | None = None
    models: Path | None = None

    def make(self, task: Asking, steps: Sequence[Step], *, asks: bool = True) -> Adapter:
        """Return the model; see `omnidata.adapters.get_adapter`."""
        return adapters.get_adapter(
            self.spec,
            task,
            steps,
            options=self.options,
            base_url=self.base_url,
            key_file=self.key_file,
            models=self.models,
            asks=asks,
        )


class OpenModel(EventLoop):
    """A model in this process: made when it is first needed, closed at the end of the block.

    Runs in the block ask it one after the other, in one event loop.

    Args:
        model: the model, or how to make it.

    Attributes:
        recipe: how to make it; None for a model that was given.
    """

    def __init__(self, model: Adapter | Recipe) -> None:
        self.recipe = model if isinstance(model, Recipe) else None
        self._adapter = None if isinstance(model, Recipe) else model

    def adapter(self, task: Asking, steps: Sequence[Step]) -> Adapter:
        """Return the model; see `omnidata.adapters.get_adapter`.

        A baseline is made for every run, because it looks at the data.
        """
        if self.recipe and (self._adapter is None or self.recipe.spec.startswith("baseline:")):
            self._adapter = self.recipe.make(task, steps)
        assert self._adapter is not None
        return self._adapter

    def __exit__(self, *_: object) -> None:
        try:
            if self._adapter is not None:
                self.run(_close(self._adapter))
        finally:
            super().__exit__()


async def _close(adapter: Adapter) -> None:
    try:
        await adapter.close()
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task and task.cancelling():
            raise
    except (Exception, SystemExit):
        pass  # whatever it lacks at its end, it has answered


class LocalAsker:
    """Asks a model in this process; baselines look at the steps of the whole dataset.

    Attributes:
        outcome: how asking has gone so far.
    """

    def __init__(
        self,
        task: Asking,
        model: OpenModel,
        steps: Sequence[Step],
        params: GenerationParams | None,
        limits: Limits,
    ) -> None:
        self.outcome = AskingOutcome()
        self._meter = StageTimer()
        self._task, self._model, self._limits, self._params = task, model, limits, params
        self._adapter = model.adapter(task, steps)

    def begin(self, stack: ExitStack, steps: Sequence[Step]) -> About:
        """Check that the model takes the steps, and open the cache.

        Raises:
            UsageError: it does not, or one of its attributes cannot be used.
        """
        self._about = describe_model(
            self._task, self._adapter, self._params, steps, self._limits.concurrency
        )
        cache = self._limits.cache
        self._cache = stack.enter_context(ResponseCache(cache)) if cache else None
        return self._about

    def ask(
        self, steps: Sequence[Step], run: RunFolder, budget: Budget, progress: Progress | None
    ) -> None:
        """Ask about every step that has no line; see `Engine.ask`."""
        engine = Engine(
            self._task,
            self._adapter,
            run,
            self._about.params,
            limits=self._limits,
            gate=Gate(self._limits, budget),
            cache=self._cache,
            meter=self._meter,
        )
        self.outcome = engine.outcome
        self._model.run(engine.ask(steps, progress))

    @property
    def timings(self) -> Mapping[str, float]:
        """Seconds by stage; see `StageTimer`."""
        return self._meter.timings()

    @property
    def facts(self) -> Mapping[str, Any]:
        """Return the model's `run_metadata`; a failure of it is a warning."""
        try:
            return model_facts(self._adapter)
        except Exception as error:
            failed = slip(self._adapter, error, "run_metadata")
            warnings.warn(
                f"{failed.where}: {failed.what}; run.json is without it",
                RuntimeWarning,
                stacklevel=3,
            )
            return {}
