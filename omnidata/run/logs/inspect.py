"""Logs of inspect_ai, read by inspect_ai itself, which is imported here alone and late.

A log is a zip file of a compression that Python before 3.14 does not read. Our own tasks
(`omnidata.harness`) write into one which task, options and data it was made on; samples of other
tasks are matched by their metadata, prompts and targets.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from omnidata.errors import PlatformError, PredictionError, UsageError
from omnidata.loaders.steps import ids_of, select_steps
from omnidata.run.bad_lines import BadLines
from omnidata.run.logs.log import Log, Sample
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.types import Delivery, LoadedDataset, Step

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


class InspectLog(Log):
    """A log of inspect_ai, of one epoch.

    All methods raise PlatformError if inspect_ai is not installed.
    """

    harness = "inspect"

    def settings(self, task: str, options: Mapping[str, str]) -> dict[str, Any]:
        """Return the task and its options, if the log is of a task of ours."""
        if not self._own:
            return {}
        if self._own["task"] != task:
            raise PredictionError(
                f"the log is of the task {self._own['task']}",
                where=str(self.path),
                expected=f"a log of {task}",
                remedy=f"omnidata score {self._own['task']} DATA {self.path} --from inspect",
            )
        return {"task": task, "options": self._options}

    def steps(self, source: LoadedDataset, task: Asking) -> Sequence[Step]:
        """Return the steps that were to be asked about, if the log is of a task of ours."""
        if not self._own:
            return source.steps
        fingerprint = str(self._own.get("dataset_fingerprint", ""))
        if fingerprint != source.fingerprint:
            raise PredictionError(
                "the log was made on other data",
                where=str(self.path),
                expected=f"annotations with the fingerprint {fingerprint[:12]}; those of "
                f"{source.root} have {source.fingerprint[:12]}",
                remedy="score against the data that the log was made on",
            )
        remedy = "score the log with the version that made it"
        try:
            known = get_task(self._own["task"], self._options).prompt_hash
        except UsageError as error:
            raise PredictionError(
                f"the log has options that {task.name} does not: {error.what}",
                where=str(self.path),
                expected=error.expected,
                remedy=remedy,
            ) from None
        prompts = str(self._own.get("prompt_hash", ""))
        if known != prompts:
            raise PredictionError(
                "the log was made with other prompts",
                where=str(self.path),
                expected=f"prompts with the hash {known[:12]}; those of the log have "
                f"{prompts[:12]}",
                remedy=remedy,
            )
        asked = frozenset(map(str, self._head.eval.dataset.sample_ids or ()))
        if not asked:
            return source.steps
        ids = enumerate(ids_of(source.steps))
        return select_steps(source.steps, [number for number, name in ids if name in asked])

    def samples(self, bad: BadLines) -> Iterator[Sample]:
        """Yield the samples: the answers, with the metadata of their rows."""
        ours = bool(self._own)
        from inspect_ai.log import read_eval_log_samples

        beside = {"events", "attachments", "messages"}
        found = read_eval_log_samples(
            str(self.path), all_samples_required=False, exclude_fields=beside
        )
        for number in count():
            try:
                sample = next(found, None)
            except Exception as error:  # whatever a broken zip file makes of its reader
                raise _log_error(self.path, error) from None
            if sample is None:
                if number:
                    return
                raise PredictionError(
                    "the log holds no samples",
                    where=str(self.path),
                    expected="the samples with the answers",
                    remedy="run it without --no-log-samples",
                )
            yield _sample(sample, f"{self.path}: {sample.id}", ours=ours)

    @cached_property
    def _head(self) -> Any:
        try:
            from inspect_ai.log import read_eval_log
        except ImportError as error:
            raise PlatformError(
                f"inspect_ai cannot be imported ({error})",
                where=f"--from inspect {self.path}",
                expected="the extra `inspect`",
                remedy='pip install "omnidata[inspect]"',
            ) from None
        if not self.path.is_file():
            raise PredictionError(
                "there is no such file",
                where=str(self.path),
                expected="a log of inspect_ai, *.eval",
            )
        try:
            head = read_eval_log(str(self.path), header_only=True)
        except Exception as error:
            raise _log_error(self.path, error) from None
        epochs = head.eval.config.epochs
        if epochs and epochs > 1:
            raise PredictionError(
                f"each step was asked {epochs} times",
                where=str(self.path),
                expected="a log of one epoch: one answer for each step",
                remedy="run it with --epochs 1",
            )
        return head

    @cached_property
    def _own(self) -> Mapping[str, Any]:
        """What a task of ours wrote into the log; empty for other tasks."""
        own = (self._head.eval.metadata or {}).get(KEY)
        return own if isinstance(own, dict) and isinstance(own.get("task"), str) else {}

    @property
    def _options(self) -> dict[str, str]:
        options = self._own.get("options")
        found = options.items() if isinstance(options, dict) else ()
        return {str(name): str(value) for name, value in found}


def _sample(sample: EvalSample, where: str, *, ours: bool) -> Sample:
    error = sample.error.message if sample.error else ""
    delivery, why = delivery_of(sample.output, sample.store, error)
    row: dict[str, Any] = {"sample_id": str(sample.id)}
    prompts: list[str] = []
    if not ours:
        row = {**sample.metadata, **row}
        asked = sample.input
        prompts = [asked] if isinstance(asked, str) else [message.text for message in asked]
    target = sample.target
    return Sample(
        row=row,
        prompts=prompts,
        target=target if isinstance(target, str) else json.dumps(target),
        answer=sample.output.completion,
        error=why,
        delivery=delivery,
        receipt=receipt_of(sample.output, sample.store),
        where=where,
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


def _log_error(path: Path, error: Exception) -> PredictionError:
    said = " ".join(str(error).split())
    return PredictionError(
        f"the log cannot be read ({type(error).__name__}: {said:.200})",
        where=str(path),
        expected="a log that inspect_ai has written, *.eval or *.json",
    )
