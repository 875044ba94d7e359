"""Logs of inspect_ai, read by inspect_ai itself, which is imported here alone and late.

A log is a zip file of a compression that Python before 3.14 does not read. Our own tasks
(`omnidata.harness`) write into one which task, options and data it was made on; samples of other
tasks are matched by their metadata, prompts and targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import msgspec

from omnidata.errors import PlatformError, PredictionError, UsageError
from omnidata.loaders.steps import ids_of, select_steps
from omnidata.run.bad_lines import BadLines
from omnidata.run.logs.log import Log, Sample, as_text
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
"""The delivery of an answer by inspect_ai's reason for its end; other reasons are failures."""


class _Made(msgspec.Struct):
    """The entry of a task of ours in a log's metadata."""

    task: str
    options: dict[str, str] = {}
    dataset_fingerprint: str = ""
    prompt_hash: str = ""


class InspectLog(Log):
    """A log of inspect_ai, of one epoch.

    All methods raise PlatformError if inspect_ai is not installed.
    """

    harness = "inspect"

    def settings(self, task: str, options: Mapping[str, str]) -> dict[str, Any]:
        if not (own := self._own):
            return {}
        if own.task != task:
            remedy = f"omnidata score {own.task} DATA {self.path} --from inspect"
            raise self._error(f"the log is of the task {own.task}", f"a log of {task}", remedy)
        return {"task": task, "options": own.options}

    def steps(self, source: LoadedDataset, task: Asking) -> Sequence[Step]:
        if not (own := self._own):
            return source.steps
        if own.dataset_fingerprint != source.fingerprint:
            raise self._error(
                "the log was made on other data",
                f"annotations with the fingerprint {own.dataset_fingerprint[:12]}; those of "
                f"{source.root} have {source.fingerprint[:12]}",
                "score against the data that the log was made on",
            )
        remedy = "score the log with the version that made it"
        try:
            known = get_task(own.task, own.options).prompt_hash
        except UsageError as error:
            what = f"the log has options that {task.name} does not: {error.what}"
            raise self._error(what, error.expected, remedy) from None
        if known != own.prompt_hash:
            had = own.prompt_hash[:12]
            expected = f"prompts with the hash {known[:12]}; those of the log have {had}"
            raise self._error("the log was made with other prompts", expected, remedy)
        asked = frozenset(map(str, self._head.eval.dataset.sample_ids or ()))
        if not asked:
            return source.steps
        ids = enumerate(ids_of(source.steps))
        return select_steps(source.steps, [number for number, name in ids if name in asked])

    def samples(self, bad: BadLines) -> Iterator[Sample]:
        ours = bool(self._own)
        from inspect_ai.log import read_eval_log_samples

        beside = {"events", "attachments", "messages"}
        found = read_eval_log_samples(
            str(self.path), all_samples_required=False, exclude_fields=beside
        )
        for number in count():
            with self._reading():
                sample = next(found, None)
            if sample is None:
                if number:
                    return
                remedy = "run it without --no-log-samples"
                raise self._error(
                    "the log holds no samples", "the samples with the answers", remedy
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
            raise self._error("there is no such file", "a log of inspect_ai, *.eval")
        with self._reading():
            head = read_eval_log(str(self.path), header_only=True)
        epochs = head.eval.config.epochs
        if epochs and epochs > 1:
            expected = "a log of one epoch: one answer for each step"
            raise self._error(
                f"each step was asked {epochs} times", expected, "run it with --epochs 1"
            )
        return head

    @cached_property
    def _own(self) -> _Made | None:
        with suppress(msgspec.ValidationError):
            return msgspec.convert((self._head.eval.metadata or {}).get(KEY), _Made)
        return None

    def _error(self, what: str, expected: str, remedy: str = "") -> PredictionError:
        return PredictionError(what, where=str(self.path), expected=expected, remedy=remedy)

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # whatever a broken zip file makes of its reader
            text = " ".join(str(error).split())
            raise self._error(
                f"the log cannot be read ({type(error).__name__}: {text:.200})",
                "a log that inspect_ai has written, *.eval or *.json",
            ) from None


def _sample(sample: EvalSample, where: str, *, ours: bool) -> Sample:
    error = sample.error.message if sample.error else ""
    delivery, why = delivery_of(sample.output, sample.store, error)
    row: dict[str, Any] = {"sample_id": str(sample.id)}
    prompts: list[str] = []
    if not ours:
        row = {**sample.metadata, **row}
        asked = sample.input
        prompts = [asked] if isinstance(asked, str) else [message.text for message in asked]
    return Sample(
        row=row,
        prompts=prompts,
        target=as_text(sample.target),
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
    """Return the receipt of our own model, or else of the prompt's writer."""
    for own in _own(output, kept):
        if isinstance(own.get("receipt"), dict):
            return dict(own["receipt"])
    return {}


def _own(output: ModelOutput, kept: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for place in (output.metadata or {}, kept):
        if isinstance(own := place.get(KEY), dict):
            yield own
