"""What an adapter must be, what it is shown, and where its own code failed."""

from __future__ import annotations

import inspect
import json
import math
import reprlib
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, get_args

import msgspec
from msgspec import UNSET

from omnidata import media
from omnidata.adapters.base import Model, untaken
from omnidata.errors import (
    AdapterError,
    CallError,
    MediaError,
    OmnidataError,
    StoreError,
    UsageError,
)
from omnidata.jsontext import is_integer
from omnidata.predictions import check_written, dropped
from omnidata.run.adapter_code import code_of
from omnidata.run.cost import textual_counts
from omnidata.types import (
    Adapter,
    Completion,
    Conversation,
    GenerationParams,
    Modality,
    Prepared,
    Request,
    Step,
    Task,
)


class _Line(msgspec.Struct):
    role: str = ""
    kind: str = ""
    dropped: Any = UNSET


class _Receipt(msgspec.Struct):
    parts: list[_Line] = []


def _are_kinds(value: Any) -> bool:
    if value is None:
        return True
    listed = isinstance(value, Collection) and not isinstance(value, str | bytes)
    return listed and all(kind in get_args(Modality) for kind in value)


def _is_count(value: Any) -> bool:
    return is_integer(value) and value >= 1


def _is_json_object(value: Any) -> bool:
    return isinstance(value, Mapping) and bool(json.dumps(dict(value), allow_nan=False))


_ATTRIBUTES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "name": (lambda value: isinstance(value, str) and value != "", "a text, the SPEC of the model"),
    "settings": (_is_json_object, "a mapping of JSON values, without NaN and Infinity"),
    "params": (lambda value: isinstance(value, GenerationParams), "a GenerationParams"),
    "accepts": (_are_kinds, f"None, or a collection of {', '.join(get_args(Modality))}"),
    "max_batch": (_is_count, "a whole number, 1 or more"),
    "concurrency": (_is_count, "a whole number, 1 or more"),
    "timeout_s": (lambda value: value is None or value > 0, "None, or more than 0 seconds"),
}
"""What each attribute of an adapter must be, in code and in words."""


@dataclass(frozen=True, slots=True)
class About:
    """A model as a run knows it, wherever it is.

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


def accepted(
    task: Task,
    adapter: Adapter,
    params: GenerationParams | None,
    steps: Sequence[Step],
    concurrency: int | None,
) -> About:
    """Look a model over before it is asked.

    Args:
        task: makes the prompts.
        adapter: the model.
        params: how to decode; the model's own if None.
        steps: that it is to be asked about.
        concurrency: requests under way at most; the model's own number if None.

    Raises:
        UsageError: it cannot take them, or its attributes are not what they should be.
    """
    check_adapter(adapter)
    decided = decoding(task, adapter, params)
    check_taken(task, adapter, steps)
    at_once = (concurrency or adapter.concurrency) * adapter.max_batch
    return About(adapter.name, adapter.settings, decided, at_once, code_of(adapter))


def check_adapter(adapter: Adapter) -> None:
    """Refuse, before the first request, an adapter with attributes that nothing can be done with.

    Raises:
        UsageError: one of them is not what it should be, or the adapter is a class.
    """
    if isinstance(adapter, type):
        raise UsageError(
            f"the adapter {adapter.__name__} is a class",
            expected="an instance of it",
            remedy=f"call it: {adapter.__name__}(...)",
        )
    for attribute, (is_right, expected) in _ATTRIBUTES.items():
        if wrong := _wrong(adapter, attribute, is_right):
            raise UsageError(
                f"the adapter's `{attribute}` {wrong}",
                where=type(adapter).__name__,
                expected=expected,
                remedy="correct it in the adapter's class; omnidata.adapters.Model has the "
                "defaults",
            )


def _wrong(adapter: Adapter, attribute: str, is_right: Callable[[Any], bool]) -> str:
    """What is wrong with an attribute, after its name; empty if nothing is."""
    try:
        value = getattr(adapter, attribute)
    except Exception as error:  # a property is anybody's code
        return f"cannot be read ({type(error).__name__}: {error})"
    try:
        return "" if is_right(value) else f"is {reprlib.repr(value)}"
    except Exception as error:  # a value that cannot even be looked at is as wrong as others
        return f"is {reprlib.repr(value)} ({error})"


def decoding(task: Task, adapter: Adapter, params: GenerationParams | None) -> GenerationParams:
    """How answers to a task are decoded: as asked for, and to the ends that the task's have.

    Args:
        task: the benchmark with its options.
        adapter: the model, whose own settings hold where `params` is None.
        params: what the caller says.
    """
    return replace(
        params or adapter.params, stop=tuple(task.stop), special_tokens=task.special_tokens
    )


_CONTROLS: Mapping[str, str] = {
    "stop": "end its answer at a text",
    "special_tokens": "keep the special tokens that answers are made of",
    "prefix": "go on with an answer that the prompt begins",
}


def _check_controls(task: Task, adapter: Adapter, conversation: Conversation) -> None:
    """Refuse a model that cannot be told what the task's answers need.

    Raises:
        UsageError: it obeys no such setting.
    """
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


def check_taken(task: Task, adapter: Adapter, steps: Sequence[Step]) -> None:
    """Refuse, before the first request, what the model cannot take or do.

    Every adapter is held to its `accepts`, whatever its own `unsupported_reason`
    says: it must drop media of other kinds, and name them in the receipt as "dropped".

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
            conversation = task.prompt(step, [])
        except (MediaError, StoreError):
            continue  # the run says it of this step; another one has what there is to look at
        seen.add(kinds)
        _check_controls(task, adapter, conversation)
        if reason := _refuses(adapter, conversation):
            raise UsageError(
                f"{adapter.name} cannot take the step as it is: {reason}",
                where=step.sample_id,
                expected="a model that takes all of the prompt",
                remedy=_remedy(conversation),
            )
        if reason := untaken(conversation, adapter.accepts):
            request = Request(step.sample_id, conversation)
            try:
                rendered(task, adapter, request)
            except MediaError as error:
                # `prepare` may have opened a clip as a picture: the file is fine, the model is not
                if _can_be_opened(conversation):
                    raise _refusal(task, adapter, request, reason) from error
            except (StoreError, CallError):
                continue  # the run tries again, and says what is wrong with which step


_LOOKED_AT = 8
"""Steps of a kind, of which one at least should have media that can be read."""


def one_of_each_kind(steps: Sequence[Step]) -> list[Step]:
    """What `check_taken` looks at, of any number of steps: a few of every kind."""
    found: Counter[Hashable] = Counter()
    chosen = []
    for step in steps:
        kinds = _kinds(step)
        found[kinds] += 1
        if found[kinds] <= _LOOKED_AT:
            chosen.append(step)
    return chosen


def _kinds(step: Step) -> Hashable:
    """The media that a prompt about the step can have."""
    return frozenset((role, ref.kind) for role, ref in step.media.items() if ref)


def _remedy(conversation: Conversation) -> str:
    if any(part.kind == "tool" for message in conversation for part in message.parts):
        return "leave -T dialect out, or ask a model that has its tool: see docs/models.md"
    return (
        "choose fewer modalities with -T, or let the model do without them: -M degrade=true "
        "(each such step is counted next to the score)"
    )


def rendered(task: Task | None, adapter: Adapter, request: Request) -> Prepared:
    """What the adapter makes of a request.

    Args:
        task: whose step it is, which may have prompts with fewer media; None where nobody knows.
        adapter: the model.
        request: what is asked.

    Raises:
        MediaError: a medium cannot be read.
        AdapterError: the adapter failed, or gave something else.
        UsageError: it was given media that it does not take, and does not say that it dropped
            them.
    """
    try:
        made = adapter.prepare(request)
        if not isinstance(made, Prepared):
            raise TypeError(f"`prepare` returned {type(made).__name__}, not Prepared")
        if not isinstance(made.request, Request):
            raise TypeError(
                "`prepare` returned a Prepared whose `request` is "
                f"{reprlib.repr(made.request)}, not "
                "the Request that it was called with: Prepared(request, payload)"
            )
        if not isinstance(made.receipt, Mapping):
            raise TypeError(
                "`prepare` returned a Prepared whose `receipt` is "
                f"{reprlib.repr(made.receipt)}, not a "
                'mapping like {"parts": [...]}'
            )
        if made.request.sample_id != request.sample_id:
            raise ValueError(f"`prepare` returned the request of step {made.request.sample_id}")
        json.dumps(dict(made.receipt))  # it is written where no answer comes
        check_written(Completion(receipt=dict(made.receipt)))
        check_reasons(made.receipt)
        reason = untaken(request.conversation, adapter.accepts)
        gone = _dropped(made.receipt) if reason else Counter()
    except OmnidataError:
        raise
    except Exception as error:
        raise slip(adapter, error, "prepare") from error
    if reason:
        _check_dropped(task, adapter, request, reason, gone)
    return made


def awaited(asked: Awaitable[Sequence[Completion]]) -> Awaitable[Sequence[Completion]]:
    """What `generate` returned, if it can be awaited.

    Raises:
        TypeError: it cannot: the method is no coroutine.
    """
    if not inspect.isawaitable(asked):
        raise TypeError(
            f"`generate` returned {type(asked).__name__} at once, not a coroutine: write "
            "`async def generate(self, batch, params)`"
        )
    return asked


def checked_answers(completions: Sequence[Completion], count: int) -> Sequence[Completion]:
    """The answers of an adapter, if they are what they should be.

    A line that no later run can read is worse than a step without an answer.

    Args:
        completions: what `generate` returned.
        count: how many requests it was given.

    Raises:
        TypeError: they are no list of completions.
        ValueError: there are too few or too many, or one has what no line of a run may hold, or
            what could not be read again.
    """
    if not isinstance(completions, Sequence) or isinstance(completions, str | bytes):
        raise TypeError(
            f"`generate` returned {type(completions).__name__}, not a list with a Completion "
            "for each "
            "request"
        )
    if len(completions) != count:
        raise ValueError(f"{len(completions)} answers to {count} requests")
    for completion in completions:
        if not isinstance(completion, Completion):
            raise TypeError(
                f"`generate` returned {type(completion).__name__}, not Completion(text=...), "
                "of a step"
            )
        # Bytes, sets and the like have no form in JSON, yet the next line takes them for text.
        json.dumps(msgspec.structs.asdict(completion))
        msgspec.convert(msgspec.to_builtins(completion), Completion)
        if not math.isfinite(completion.latency_s):
            raise ValueError(f"`generate` returned a `latency_s` of {completion.latency_s}")
        if texts := textual_counts(completion.usage):
            raise ValueError(
                f"`generate` returned a `usage` of texts, not of numbers: {reprlib.repr(texts)}"
            )
        check_reasons(completion.receipt)
        check_written(completion)
    return completions


def check_reasons(receipt: Mapping[str, Any]) -> None:
    """Look whether a receipt says why, of each medium that it drops.

    Raises:
        ValueError: it does not.
    """
    for part in dropped(receipt):
        why = part["dropped"]
        if not isinstance(why, str) or not why.strip():
            raise ValueError(
                f'the receipt says "dropped": {reprlib.repr(why)} of the {part.get("role")}, where '
                "a text says why; what is not dropped has no such key"
            )


def _dropped(receipt: Mapping[str, Any]) -> Counter[tuple[str, str]]:
    """Role and kind of the media that a receipt drops.

    Raises:
        msgspec.ValidationError: its "parts" are no list of objects with texts.
    """
    parts = msgspec.convert(dict(receipt), _Receipt).parts
    return Counter((line.role, line.kind) for line in parts if line.dropped is not UNSET)


def fewer_modalities(task: Task, accepts: Collection[Modality]) -> str:
    """The option of a task by which its prompts have these media alone; empty if it has none."""
    letters = sorted(kind[0].upper() for kind in accepts)
    values = task.allowed.get("modalities", ())
    return next((f"-T modalities={each}" for each in values if sorted(each) == letters), "")


def _check_dropped(
    task: Task | None,
    adapter: Adapter,
    request: Request,
    reason: str,
    gone: Counter[tuple[str, str]],
) -> None:
    """Refuse a request with media that the model does not take, unless they are dropped.

    Raises:
        UsageError: it has such media.
    """
    accepts = adapter.accepts or ()
    shown: Counter[tuple[str, str]] = Counter(
        (part.role, part.media.kind)
        for message in request.conversation
        for part in message.parts
        if part.media and part.media.kind not in accepts
    )
    if shown - gone:
        raise _refusal(task, adapter, request, reason)


def _refusal(task: Task | None, adapter: Adapter, request: Request, reason: str) -> UsageError:
    fewer = fewer_modalities(task, adapter.accepts or ()) if task else ""
    remedy = f"choose fewer with {fewer}; or let the adapter" if fewer else "let the adapter"
    return UsageError(
        f"{adapter.name} cannot take the step as it is: {reason}",
        where=request.sample_id,
        expected="a prompt with no other media than those in the adapter's `accepts`",
        remedy=f"{remedy} say in `accepts` what it takes (None: it looks at no prompt), or "
        "drop them in `prepare` and say so in the receipt",
    )


def _can_be_opened(conversation: Conversation) -> bool:
    """Whether every medium of a prompt can be opened as the kind that it is."""
    try:
        for message in conversation:
            for part in message.parts:
                if part.media:
                    media.check(part.media)
    except (MediaError, StoreError):
        return False
    return True


def _refuses(adapter: Adapter, conversation: Conversation) -> str:
    try:
        return adapter.unsupported_reason(conversation)
    except OmnidataError:
        raise
    except Exception as error:
        failed = slip(adapter, error, "unsupported_reason")
        raise UsageError(
            failed.what,
            where=f"{adapter.name}, unsupported_reason, {failed.where}",
            expected="why it cannot take the conversation; empty if it can",
        ) from error


def slip(adapter: Adapter, error: Exception, method: str) -> AdapterError:
    """What an error that is none of ours says of the adapter that raised it.

    Args:
        adapter: the model; anybody's code.
        error: what it raised, or what is wrong with what it gave.
        method: which of its methods was called.
    """
    return AdapterError(
        f"the adapter failed ({type(error).__name__}: {error})",
        where=_place(adapter, error, method),
        remedy=f"correct the code of {adapter.name}; the same command resumes",
    )


def _place(adapter: Adapter, error: Exception, method: str) -> str:
    """The last line of the adapter's own code; where there is none, the method's first."""
    files = {
        value.__code__.co_filename
        for owner in type(adapter).__mro__
        if owner is not Model
        for value in vars(owner).values()
        if isinstance(value, FunctionType)
    }
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files
    ]
    if frames:
        return f"{frames[-1].filename}:{frames[-1].lineno}, in {frames[-1].name}"
    function = getattr(type(adapter), method, None)
    if isinstance(function, FunctionType):
        function = inspect.unwrap(function)
        code = function.__code__
        return f"{code.co_filename}:{code.co_firstlineno}, in {method}"
    return f"{adapter.name}, {method}"
