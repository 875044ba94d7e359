"""Checks of adapters: their attributes, the media that they take, and their answers."""

from __future__ import annotations

import asyncio
import json
import reprlib
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from omnidata import media
from omnidata.adapters.base import untaken
from omnidata.adapters.media_budget import parts_of
from omnidata.errors import (
    AdapterError,
    CallError,
    MediaError,
    OmnidataError,
    StoreError,
    UsageError,
)
from omnidata.jsontext import is_integer, is_number
from omnidata.plugins import last_line
from omnidata.predictions import check_written, dropped_parts
from omnidata.run.adapter_code import code_of
from omnidata.run.cost import textual_counts
from omnidata.run.run_info import INFO, check_info
from omnidata.tasks.asking import Asking
from omnidata.types import (
    Adapter,
    Completion,
    Conversation,
    GenerationParams,
    Modality,
    Prepared,
    Request,
    Step,
)


@dataclass(frozen=True, slots=True)
class About:
    """A model as a run records it.

    Attributes:
        name, settings: as of `Adapter`.
        params: how it decodes.
        at_once: steps that are under way in one process, at most.
        code: see `omnidata.run.adapter_code.code_of`.
    """

    name: str
    settings: Mapping[str, Any]
    params: GenerationParams
    at_once: int
    code: str


def describe_model(
    task: Asking,
    adapter: Adapter,
    params: GenerationParams | None,
    steps: Sequence[Step],
    concurrency: int | None,
) -> About:
    """Check a model before the first request; `params` and `concurrency` replace its own.

    Raises:
        UsageError: it cannot take the steps, or has an unusable attribute.
    """
    check_adapter(adapter)
    params = decoding(task, adapter, params)
    _check_taken(task, adapter, steps)
    at_once = (concurrency or adapter.concurrency) * adapter.max_batch
    return About(adapter.name, adapter.settings, params, at_once, code_of(adapter))


def _is_json_object(value: Any) -> bool:
    try:
        return isinstance(value, Mapping) and bool(json.dumps(dict(value), allow_nan=False))
    except (TypeError, ValueError):
        return False


def _are_kinds(value: Any) -> bool:
    if value is None:
        return True
    is_listed = isinstance(value, Collection) and not isinstance(value, str | bytes)
    return is_listed and all(kind in get_args(Modality) for kind in value)


def _is_count(value: Any) -> bool:
    return is_integer(value) and value >= 1


_ATTRIBUTES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "name": (lambda value: isinstance(value, str) and value != "", "a text, the SPEC of the model"),
    "settings": (_is_json_object, "a mapping of JSON values, without NaN and Infinity"),
    "params": (lambda value: isinstance(value, GenerationParams), "a GenerationParams"),
    "accepts": (_are_kinds, f"None, or a collection of {', '.join(get_args(Modality))}"),
    "max_batch": (_is_count, "a whole number, 1 or more"),
    "concurrency": (_is_count, "a whole number, 1 or more"),
    "timeout_s": (
        lambda value: value is None or (is_number(value) and value > 0),
        "None, or more than 0 seconds",
    ),
}


def check_adapter(adapter: Adapter) -> None:
    """Refuse an adapter with attributes with which a run would hang or could not be recorded.

    Raises:
        UsageError: an attribute is missing or unusable, or the adapter is a class.
    """
    if isinstance(adapter, type):
        raise UsageError(
            f"the adapter {adapter.__name__} is a class",
            expected="an instance of it",
            remedy=f"call it: {adapter.__name__}(...)",
        )
    for attribute, (is_right, expected) in _ATTRIBUTES.items():
        is_there = hasattr(adapter, attribute)
        if not is_there or not is_right(getattr(adapter, attribute)):
            value = reprlib.repr(getattr(adapter, attribute)) if is_there else "missing"
            raise UsageError(
                f"the adapter's `{attribute}` is {value}",
                where=type(adapter).__name__,
                expected=expected,
                remedy="correct it in the adapter's class; omnidata.adapters.Model has defaults",
            )


def decoding(task: Asking, adapter: Adapter, params: GenerationParams | None) -> GenerationParams:
    """Return the parameters, or the model's own, with the stop texts of the task."""
    return replace(
        params or adapter.params, stop=tuple(task.stop), special_tokens=task.special_tokens
    )


_CONTROLS: Mapping[str, str] = {
    "stop": "end its answer at a text",
    "special_tokens": "keep the special tokens that answers are made of",
    "prefix": "go on with an answer that the prompt begins",
}


def _check_controls(task: Asking, adapter: Adapter, conversation: Conversation) -> None:
    begun = bool(conversation) and conversation[-1].role == "assistant"
    needed = {"stop": task.stop, "special_tokens": task.special_tokens, "prefix": begun}
    controls = getattr(adapter, "controls", _CONTROLS)  # the protocol does not ask for it
    for name, words in _CONTROLS.items():
        if needed[name] and name not in controls:
            raise UsageError(
                f"{adapter.name} cannot {words}, as {task.name} has it",
                where=f"-T {' '.join(f'{key}={value}' for key, value in task.options.items())}",
                expected="a local model, or one behind vLLM or SGLang (openai: with --base-url)",
                remedy="drop -T dialect, or use such a model",
            )


def _check_taken(task: Asking, adapter: Adapter, steps: Sequence[Step]) -> None:
    """Refuse, before the first request, media that the model does not take, and missing controls.

    An adapter must drop media that are not in its `accepts`, and name them as "dropped" in the
    receipt, whatever its `unsupported_reason` says.

    Raises:
        UsageError: the prompts have media that the model does not take, or the answers need a
            setting that it does not obey.
    """
    seen = set()
    for step in steps:
        kinds = _kinds(step)
        if kinds in seen:
            continue
        try:
            conversation = task.conversation(step, [])
        except (MediaError, StoreError):
            continue  # the run reports it; another step of the kind may have readable media
        seen.add(kinds)
        _check_controls(task, adapter, conversation)
        if reason := adapter.unsupported_reason(conversation):
            has_tool = any(part.kind == "tool" for part in parts_of(conversation))
            raise UsageError(
                f"{adapter.name} cannot take the step as it is: {reason}",
                where=step.sample_id,
                expected="a model that takes all of the prompt",
                remedy="leave -T dialect out, or ask a model that has its tool: see docs/models.md"
                if has_tool
                else "choose fewer modalities with -T, or let the model do without them: "
                "-M degrade=true (each such step is counted next to the score)",
            )
        if reason := untaken(conversation, adapter.accepts):
            request = Request(step.sample_id, conversation)
            try:
                render_request(task, adapter, request)
            except MediaError as error:
                # `prepare` may have opened a clip as a picture: the file is fine, the model is not
                if _can_be_opened(conversation):
                    raise _refusal(task, adapter, request, reason) from error
            except (StoreError, CallError):
                continue  # the run tries again, and reports the step


_SAMPLES_OF_KIND = 8
"""Steps of each kind to try: at least one of them should have readable media."""


def one_of_each_kind(steps: Sequence[Step]) -> list[Step]:
    """Return a few steps of every kind, enough for `_check_taken`."""
    found: Counter[Hashable] = Counter()
    chosen = []
    for step in steps:
        kinds = _kinds(step)
        found[kinds] += 1
        if found[kinds] <= _SAMPLES_OF_KIND:
            chosen.append(step)
    return chosen


def _kinds(step: Step) -> Hashable:
    return frozenset((role, ref.kind) for role, ref in step.media.items() if ref)


def _can_be_opened(conversation: Conversation) -> bool:
    try:
        for part in parts_of(conversation):
            if part.media:
                media.check(part.media)
    except (MediaError, StoreError):
        return False
    return True


def sent_modalities(task: Asking, adapter: Adapter, steps: Sequence[Step]) -> set[Modality]:
    """Return the modalities of prompts that a model takes; those of unreadable media are left out.

    Args:
        task: how the steps are asked.
        adapter: the model.
        steps: of the benchmark; a few of each kind are looked at.
    """
    sent: set[Modality] = set()
    for step in one_of_each_kind(steps):
        with suppress(MediaError, StoreError):
            parts = parts_of(task.conversation(step, []))
            sent |= {part.media.kind for part in parts if part.media}
    return sent & {*(adapter.accepts or ())}


def render_request(task: Asking | None, adapter: Adapter, request: Request) -> Prepared:
    """Return the request as the adapter prepares it.

    Raises:
        MediaError: a medium cannot be read.
        AdapterError: the adapter failed, or returned something else.
        UsageError: the request has media that the adapter does not take, and the receipt does not
            name them as dropped.
    """
    try:
        made = adapter.prepare(request)
        if not isinstance(made, Prepared) or not isinstance(made.request, Request):
            raise TypeError(
                f"`prepare` returned {reprlib.repr(made)}, not Prepared with the Request it got"
            )
        if made.request.sample_id != request.sample_id:
            raise ValueError(f"`prepare` returned the request of step {made.request.sample_id}")
        if not isinstance(made.receipt, Mapping):
            raise TypeError(f"`prepare` returned the receipt {reprlib.repr(made.receipt)}, no dict")
        _check_line(Completion(receipt=dict(made.receipt)))  # it is written without an answer too
        gone = Counter((part.get("role"), part.get("kind")) for part in dropped_parts(made.receipt))
    except OmnidataError:
        raise
    except (Exception, SystemExit, asyncio.CancelledError) as error:  # it awaits nothing of ours
        raise slip(adapter, error, "prepare") from error
    accepts = adapter.accepts
    if reason := untaken(request.conversation, accepts):
        shown: Counter[tuple[Any, Any]] = Counter(
            (part.role, part.media.kind)
            for part in parts_of(request.conversation)
            if part.media and part.media.kind not in (accepts or ())
        )
        if shown - gone:
            raise _refusal(task, adapter, request, reason)
    return made


def check_answers(completions: Sequence[Completion], count: int) -> Sequence[Completion]:
    """Return the result of `generate` if each answer can be written, and read by a later run.

    Raises:
        TypeError, ValueError: there are too few or too many, or one cannot be written.
    """
    if not isinstance(completions, Sequence):
        raise TypeError(
            f"`generate` returned {reprlib.repr(completions)}, not a list of Completions"
        )
    if len(completions) != count:
        raise ValueError(f"{len(completions)} answers to {count} requests")
    for completion in completions:
        if not isinstance(completion, Completion):
            raise TypeError(f"`generate` returned {reprlib.repr(completion)}, not a Completion")
        _check_line(completion)
    return completions


def _check_line(completion: Completion) -> None:
    check_written(completion)
    if texts := textual_counts(completion.usage):
        raise ValueError(f"`generate` returned texts as counts of `usage`: {reprlib.repr(texts)}")
    for part in dropped_parts(completion.receipt):
        why = part["dropped"]
        if not isinstance(why, str) or not why.strip():
            raise ValueError(
                f'the receipt says "dropped": {reprlib.repr(why)} of the {part.get("role")}, where '
                "a text says why; what is not dropped has no such key"
            )


def fewer_modalities(task: Asking, accepts: Collection[Modality]) -> str:
    """Return the option of a task for prompts with these media alone; empty if it has none."""
    letters = sorted(kind[0].upper() for kind in accepts)
    values = task.allowed.get("modalities", ())
    return next((f"-T modalities={each}" for each in values if sorted(each) == letters), "")


def _refusal(task: Asking | None, adapter: Adapter, request: Request, reason: str) -> UsageError:
    fewer = fewer_modalities(task, adapter.accepts or ()) if task else ""
    remedy = f"choose fewer with {fewer}; or let the adapter" if fewer else "let the adapter"
    return UsageError(
        f"{adapter.name} cannot take the step as it is: {reason}",
        where=request.sample_id,
        expected="a prompt with no other media than those in the adapter's `accepts`",
        remedy=f"{remedy} say in `accepts` what it takes (None: it looks at no prompt), or "
        "drop them in `prepare` and say so in the receipt",
    )


def model_facts(adapter: Adapter) -> dict[str, Any]:
    """Return the `run_metadata` of a model, or raise whatever is wrong with it."""
    facts = dict(adapter.run_metadata())
    check_info({"task": "", "model": "", "facts": facts}, Path(INFO))
    return facts


def slip(adapter: Adapter, error: BaseException, method: str) -> AdapterError:
    """Return an exception of an adapter's method as an error with the last line of its code."""
    return AdapterError(
        f"the adapter failed ({type(error).__name__}: {error})",
        where=last_line(error, type(adapter).__module__) or f"{adapter.name}, {method}",
        remedy=f"correct the code of {adapter.name}; the same command resumes",
    )
