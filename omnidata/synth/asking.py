"""What `label` and `filter` share: a run beside the tree, and the tree from its answers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from typing import Any

from omnidata import predictions
from omnidata.errors import DataError, Finding
from omnidata.jsontext import encode
from omnidata.loaders.episode_tree import TreeEpisode, TreeWriter
from omnidata.predictions import Prediction
from omnidata.run.cost import Limits
from omnidata.run.engine import Progress
from omnidata.run.evaluate import evaluate
from omnidata.run.run_files import read_info
from omnidata.synth.folder import TreeStaging
from omnidata.types import Adapter, GenerationParams, Source, Task

UNLIMITED = Limits()


@dataclass(frozen=True, slots=True)
class Asking:
    """How to ask a model; no answer depends on what it may use.

    Attributes:
        model: a SPEC, or an adapter of your own.
        options: as given with `-M key=value`.
        params: how to decode; the model's own if None.
        limits: how fast, how long and how dearly.
        progress: called while the run goes on.
    """

    model: str | Adapter
    _: KW_ONLY
    options: Mapping[str, str] = field(default_factory=dict)
    params: GenerationParams | None = None
    limits: Limits = UNLIMITED
    progress: Progress | None = None


@dataclass(frozen=True, slots=True)
class Done:
    """What has been done.

    Attributes:
        report: as in the tree.
        results: of the run (see `evaluate`); `stopped` in it says why the model was not asked about
            everything.
        written: whether the tree is there. It is not where the run stopped, or nothing is in it.
    """

    report: Mapping[str, Any]
    results: Mapping[str, Any]
    written: bool


def run_folder(out: Path) -> Path:
    """Where the answers lie: beside the tree."""
    out = out.resolve()
    return out.with_name(f"{out.name}.run")


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of asking.

    Attributes:
        results: see `evaluate`.
        model: the model's name, as `run.json` has it.
        lines: the answers so far, by sample id.
    """

    results: Mapping[str, Any]
    model: str
    lines: Mapping[str, Prediction]

    @property
    def digest(self) -> str:
        """SHA-256 over the answers; a run that goes on changes it."""
        said = sorted((line.sample_id, line.delivery, line.output) for line in self.lines.values())
        return hashlib.sha256(encode(said)).hexdigest()


def ask(task: Task, source: Source, run: Path, asking: Asking) -> Answered:
    """Ask about every step that has no answer yet.

    Raises:
        UsageError, PredictionError, RunError, DataError: see `evaluate`.
    """
    results = evaluate(
        task,
        source,
        asking.model,
        run,
        model_options=asking.options,
        params=asking.params,
        limits=asking.limits,
        progress=asking.progress,
    )
    path = run / "predictions.jsonl"
    lines = predictions.read(path, of_run=True) if path.exists() else ()
    return Answered(results, read_info(run)["model"], {line.sample_id: line for line in lines})


def write(
    staging: TreeStaging,
    report: Mapping[str, Any],
    episodes: Callable[[Callable[[Finding], None]], Iterable[TreeEpisode]],
) -> Mapping[str, Any]:
    """Write the tree and its report, which appear when they are whole, unless they are there.

    Args:
        staging: entered.
        report: what was done, as JSON values; `findings` in it as far as they are known.
        episodes: makes what is written; it is given what takes further findings.

    Returns:
        The report with all findings.

    Raises:
        DataError: the tree cannot be written.
    """
    there = staging.there()
    if there is not None and {**there, "findings": ()} == {**report, "findings": ()}:
        return there
    findings: list[Finding] = []
    try:
        with TreeWriter(staging.path) as tree:
            staging.mark()
            for episode in episodes(findings.append):
                tree.add(episode)
        said = [dict(finding.as_dict()) for finding in findings]
        whole = {**report, "findings": [*report["findings"], *said]}
        staging.publish(whole)
    except OSError as error:
        raise DataError(
            f"the tree cannot be written ({error.strerror or error})",
            where=str(staging.out),
            expected="room on the disk and the right to write",
            remedy="make room; the same command goes on, and asks nothing again",
        ) from None
    return whole
