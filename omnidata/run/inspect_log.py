"""Logs of inspect_ai, read by inspect_ai itself, which is imported here alone and late.

A log is a zip file of a compression that Python before 3.14 does not read. What our own tasks
write into one (`omnidata.harness`) says which task, options and data it was made on; a log of
anybody's task says of its samples what it likes, and they are found by that.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from omnidata.errors import PlatformError, PredictionError, UsageError
from omnidata.run.log_samples import Sample
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.types import Delivery, LoadedDataset

if TYPE_CHECKING:
    from inspect_ai.log import EvalSample
    from inspect_ai.model import ModelOutput

KEY: Final = "omnidata"
"""Under which our tasks write what is theirs: into a log's metadata, a sample's store, an output's
metadata, and the metadata of a message."""

_DELIVERIES: Final[Mapping[str, tuple[Delivery, str]]] = {
    "stop": ("ok", ""),
    "max_tokens": ("truncated", "the answer ended at the limit of tokens"),
    "model_length": ("truncated", "the model's context was full"),
    "content_filter": ("refused", "the answer was held back by a content filter"),
}
"""What an answer is by inspect_ai's reason for its end; others are none."""


@dataclass(frozen=True, slots=True)
class LogHead:
    """What a log says of itself.

    Attributes:
        task: the omnidata task that it was made with; empty for other logs, whose other fields are
            empty, too.
        options: that task's.
        prompt_hash: of its prompts.
        fingerprint: of the data.
        asked: ids of the samples that were to be asked.
    """

    task: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    prompt_hash: str = ""
    fingerprint: str = ""
    asked: frozenset[str] = frozenset()


def read_head(path: Path) -> LogHead:
    """What the log says of itself.

    Raises:
        PlatformError: inspect_ai is not installed.
        PredictionError: it is no log, or one of several epochs.
    """
    head = _head(path)
    epochs = head.eval.config.epochs
    if epochs and epochs > 1:
        raise PredictionError(
            f"each step was asked {epochs} times",
            where=str(path),
            expected="a log of one epoch: one answer for each step",
            remedy="run it with --epochs 1",
        )
    own = (head.eval.metadata or {}).get(KEY)
    if not isinstance(own, dict) or not isinstance(own.get("task"), str):
        return LogHead()
    options = own.get("options")
    return LogHead(
        own["task"],
        {str(name): str(value) for name, value in options.items()}
        if isinstance(options, dict)
        else {},
        str(own.get("prompt_hash", "")),
        str(own.get("dataset_fingerprint", "")),
        frozenset(map(str, head.eval.dataset.sample_ids or ())),
    )


def settings(path: Path, task: str) -> dict[str, Any]:
    """The task and its options that a log was made with, as in `run.json`; empty if not with ours.

    Raises:
        PlatformError: inspect_ai is not installed.
        PredictionError: it is no log, one of several epochs, or of another task of ours.
    """
    head = read_head(path)
    if not head.task:
        return {}
    if head.task != task:
        raise PredictionError(
            f"the log is of the task {head.task}",
            where=str(path),
            expected=f"a log of {task}",
            remedy=f"omnidata score {head.task} DATA {path} --from inspect",
        )
    return {"task": head.task, "options": dict(head.options)}


def check(path: Path, source: LoadedDataset, task: Asking) -> frozenset[str]:
    """Refuse a log of a task of ours that was made on other data, or with other prompts.

    Returns:
        The ids of the steps that were to be asked; empty where the log does not say it.

    Raises:
        PredictionError: it was.
    """
    head = read_head(path)
    if not head.task:
        return frozenset()
    if head.fingerprint != source.fingerprint:
        raise PredictionError(
            "the log was made on other data",
            where=str(path),
            expected=f"annotations with the fingerprint {head.fingerprint[:12]}; those of "
            f"{source.root} have {source.fingerprint[:12]}",
            remedy="score against the data that the log was made on",
        )
    try:
        own = get_task(head.task, head.options).prompt_hash
    except UsageError as error:
        raise PredictionError(
            f"the log has options that {task.name} does not: {error.what}",
            where=str(path),
            expected=error.expected,
            remedy="score the log with the version that made it",
        ) from None
    if own != head.prompt_hash:
        raise PredictionError(
            "the log was made with other prompts",
            where=str(path),
            expected=f"prompts with the hash {own[:12]}; those of the log have "
            f"{head.prompt_hash[:12]}",
            remedy="score the log with the version that made it",
        )
    return head.asked


def samples(path: Path) -> Iterator[Sample]:
    """The samples of a log: what it says of each row, and the answer.

    Raises:
        PlatformError: inspect_ai is not installed.
        PredictionError: the log cannot be read.
    """
    ours = bool(read_head(path).task)
    from inspect_ai.log import read_eval_log_samples

    beside = {"events", "attachments", "messages"}
    found = read_eval_log_samples(str(path), all_samples_required=False, exclude_fields=beside)
    for number in count():
        try:
            sample = next(found, None)
        except Exception as error:  # whatever a broken zip file makes of its reader
            raise _log_error(path, error) from None
        if sample is None:
            if number:
                return
            raise PredictionError(
                "the log holds no samples",
                where=str(path),
                expected="the samples with the answers",
                remedy="run it without --no-log-samples",
            )
        yield _sample(sample, f"{path}: {sample.id}", ours=ours)


def _sample(sample: EvalSample, where: str, *, ours: bool) -> Sample:
    error = sample.error.message if sample.error else ""
    delivery, why = delivery_of(sample.output, sample.store, error)
    row: dict[str, Any] = {"sample_id": str(sample.id)}
    prompts: list[str] = []
    if not ours:
        row = {**sample.metadata, **row}
        said = sample.input
        prompts = [said] if isinstance(said, str) else [message.text for message in said]
    target = sample.target
    return Sample(
        None,
        row,
        [],
        prompts,
        target if isinstance(target, str) else json.dumps(target),
        sample.output.completion,
        where,
        why,
        delivery,
        receipt_of(sample.output, sample.store),
    )


def delivery_of(
    output: ModelOutput, kept: Mapping[str, Any], error: str = ""
) -> tuple[Delivery, str]:
    """How an answer came, and why none did.

    Args:
        output: the sample's.
        kept: its store.
        error: why the sample ended before its end; empty if it did not.
    """
    for own in _own(output, kept):
        if own.get("delivery") == "media_error":
            return "media_error", str(own.get("error", ""))
    if error:
        return "api_error", error
    if not output.choices:
        return "api_error", output.error or "the model was not asked"
    reason = output.stop_reason
    unknown: tuple[Delivery, str] = ("api_error", f'the answer ended for the reason "{reason}"')
    delivery, why = _DELIVERIES.get(reason, unknown)
    return delivery, why and (output.error or why)


def receipt_of(output: ModelOutput, kept: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the model got, by the receipt of our own model or else of the prompt's writer."""
    for own in _own(output, kept):
        if isinstance(own.get("receipt"), dict):
            return dict(own["receipt"])
    return {}


def _own(output: ModelOutput, kept: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for place in (output.metadata or {}, kept):
        if isinstance(own := place.get(KEY), dict):
            yield own


def _head(path: Path) -> Any:
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise PlatformError(
            f"inspect_ai cannot be imported ({error})",
            where=f"--from inspect {path}",
            expected="the extra `inspect`",
            remedy='pip install "omnidata[inspect]"',
        ) from None
    if not path.is_file():
        raise PredictionError(
            "there is no such file", where=str(path), expected="a log of inspect_ai, *.eval"
        )
    try:
        return read_eval_log(str(path), header_only=True)
    except Exception as error:
        raise _log_error(path, error) from None


def _log_error(path: Path, error: Exception) -> PredictionError:
    said = " ".join(str(error).split())
    return PredictionError(
        f"the log cannot be read ({type(error).__name__}: {said:.200})",
        where=str(path),
        expected="a log that inspect_ai has written, *.eval or *.json",
    )
