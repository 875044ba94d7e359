"""A benchmark that another distribution brings, as the rooms above see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from omnidata.loaders.load import refuse_findings
from omnidata.loaders.torn import torn_episodes
from omnidata.registry import PluginTask
from omnidata.tasks.base import Benchmark, explain
from omnidata.types import Explanation, Source, Step, Verdict


@dataclass(frozen=True, slots=True)
class PluginBenchmark(PluginTask):
    """The task with the defaults of `Benchmark` that call what only tasks may import."""

    def load(self, data: Path, **options: Any) -> Source:
        """Read the dataset's annotations, and nothing outside the data.

        Raises:
            DataError: with `strict`, an episode is torn.
        """
        found = PluginTask.load(self, data, **options)
        torn = torn_episodes(found.steps)
        if torn and options.get("strict"):
            refuse_findings(torn, data)
        return replace(found, findings=[*found.findings, *torn]) if torn else found

    def explain(
        self,
        step: Step,
        verdict: Verdict | None,
        *,
        profile: str,
        receipt: Mapping[str, Any] | None = None,
    ) -> Explanation:
        """Its own explanation, or the one of `Benchmark`, whose answers are read as `read` does."""
        own = getattr(type(self.task), "explain", Benchmark.explain)
        if own is Benchmark.explain:
            return explain(self, self.profiles[profile], step, verdict, receipt=receipt)
        said: Explanation = self.blame.call(
            self.task.explain, step.sample_id, step, verdict, profile=profile, receipt=receipt
        )
        return said
