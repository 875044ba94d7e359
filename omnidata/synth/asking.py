"""What `label` and `filter` share: questions, a run beside the tree, and the tree from its answers.

loader -> step -> messages -> adapter -> text -> verdict: the questions are a task like any other,
asked by `evaluate` into a run folder beside the tree. `docs/label.md` has the rules.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import Any

from omnidata import predictions
from omnidata.errors import DataError, Finding, UsageError
from omnidata.jsontext import encode
from omnidata.loaders.episode_tree import TreeEpisode, TreeWriter
from omnidata.predictions import Prediction
from omnidata.run.cost import Limits
from omnidata.run.engine import Progress
from omnidata.run.evaluate import evaluate
from omnidata.run.run_files import read_info
from omnidata.synth.folder import TreeStaging
from omnidata.synth.rewrite import Episode
from omnidata.types import Adapter, Annotation, GenerationParams, LoadedDataset, Step, Task

UNLIMITED = Limits()
Note = Callable[[Finding], None]

# What is asked: about the data, and about others of which the truth is known.

_OTHERS = "known:"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model is asked about.

    Attributes:
        source: a step for each question, as the task has them; last those about other data, which
            are asked only to measure the model (see `is_others`).
        episodes: of the data, those that can be written.
        unasked: what nobody is asked about, by the name that the question would have, and why.
        known: of how many questions the truth is known, by where it is from.
        findings: episodes that are left out, and doubts.
        caveat: what makes the measurement too good; empty if nothing does.
        own: ids of steps of the data that have a target which no model made.
    """

    source: LoadedDataset
    episodes: Sequence[Episode]
    unasked: Mapping[str, str]
    known: Mapping[str, int]
    findings: Sequence[Finding]
    _: KW_ONLY
    caveat: str = ""
    own: frozenset[str] = frozenset()


def annotation_of(task: Task) -> Annotation:
    """What the answers to a task tell.

    Raises:
        UsageError: nothing that could be written.
    """
    if task.annotates is None:
        raise UsageError(
            f"the answers to {task.name} are no annotation of data",
            where=task.name,
            expected="a task that says what it annotates (`Benchmark.annotates`)",
        )
    return task.annotates


def with_others(asked: LoadedDataset, others: Sequence[Step], fingerprint: str) -> LoadedDataset:
    """The questions, and last those about other data.

    Args:
        asked: about the data.
        others: about others; each gets a name that no step of the data has.
        fingerprint: of the others.
    """
    both = f"{asked.fingerprint} {fingerprint}"
    return replace(
        asked,
        steps=[
            *asked.steps,
            *(replace(step, sample_id=_OTHERS + step.sample_id) for step in others),
        ],
        fingerprint=hashlib.sha256(both.encode()).hexdigest(),
    )


def is_others(sample_id: str) -> bool:
    """Whether the question is asked only to measure the model."""
    return sample_id.startswith(_OTHERS)


def check_column(
    source: LoadedDataset, column: str, ours: Callable[[Any], bool], verb: str
) -> None:
    """Refuse data that use the verb's column for something else.

    Raises:
        DataError: they do.
    """
    for step in source.steps:
        value = step.source.get(column)
        if value is not None and not ours(value):
            raise DataError(
                f'the rows have a column "{column}" that is not ours',
                where=step.sample_id,
                expected=f"no such column, or what `omnidata synth {verb}` writes",
                remedy="rename the column",
            )


# Asking, and what came of it.


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


def ask(task: Task, source: LoadedDataset, run: Path, asking: Asking) -> Answered:
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


@dataclass(frozen=True, slots=True)
class Result:
    """What the answers to all questions come to.

    Attributes:
        report: as JSON values.
        precision: measured where the truth is known; None where it is known nowhere.
        unmeasured: what it lacks then, for the warning.
        episodes: makes what is written, given what takes further findings; None for nothing.
    """

    report: Mapping[str, Any]
    precision: Mapping[str, Any] | None
    unmeasured: str
    episodes: Callable[[Note], Iterable[TreeEpisode]] | None


def annotate(
    task: Task,
    asked: Asked,
    out: Path,
    asking: Asking,
    *,
    report: str,
    read: Callable[[Answered], Result],
) -> Done:
    """Ask a model, and write the tree that its answers come to.

    The same call goes on after an interruption, and asks again what got no answer.

    Args:
        task: that made the questions.
        asked: the questions.
        out: a new or empty folder, or what the same call has written; until all is whole the tree
            lies beside it. The answers lie in `run_folder(out)`.
        asking: the model, and what it may use.
        report: the name of the file in the tree that says what was done.
        read: reads the answers.

    Raises:
        UsageError: `out` holds something else, or the model cannot be asked.
        DataError: another process is writing to the same place, or it cannot be written.
        RunError, PredictionError: the run folder cannot be used (see `evaluate`).
    """
    run = run_folder(out)
    inputs = {
        asked.source.root,
        *(ref.root for step in asked.source.steps for ref in step.media.values() if ref),
    }
    with TreeStaging(out, inputs=inputs, report=report, made_by=run) as staging:
        answered = ask(task, asked.source, run, asking)
        found = read(answered)
        told: Mapping[str, Any] = _report(task, asked, answered, found)
        whole = found.episodes is not None and "stopped" not in answered.results
        if found.episodes is not None and whole:
            told = write(staging, told, found.episodes)
    return Done(told, answered.results, written=whole)


def _report(task: Task, asked: Asked, answered: Answered, found: Result) -> dict[str, Any]:
    """What was done, as JSON values."""
    unmeasured = f"precision not measured: {found.unmeasured}; {annotation_of(task).truth}"
    warnings = ("" if found.precision else unmeasured, asked.caveat)
    return {
        "data": str(asked.source.root),
        "fingerprint": asked.source.fingerprint,
        "model": answered.model,
        "task": task.name,
        "task_options": dict(task.options),
        "prompt_hash": task.prompt_hash,
        **found.report,
        "known": dict(asked.known),
        "precision": found.precision,
        "answers": answered.digest,
        "warnings": list(filter(None, warnings)),
        "findings": [dict(finding.as_dict()) for finding in asked.findings],
    }


def write(
    staging: TreeStaging,
    report: Mapping[str, Any],
    episodes: Callable[[Note], Iterable[TreeEpisode]],
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
