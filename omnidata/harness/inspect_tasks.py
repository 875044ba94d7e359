"""Every task as a task of inspect_ai: `inspect eval omnidata/NAME -T data=DATA --model MODEL`.

inspect_ai imports this module through an entry point. Prompts, verdicts and totals are the task's
own, so the numbers of a log equal those of `omnidata evaluate` on the same answers.

* The media of a step are read when it is asked about, so only those of open requests are in memory.
* A step without an answer is scored as wrong, and never left out of a mean.
* `totals` returns the metrics of the profile, over steps and over episodes. Each value of a verdict
  also has its mean, with a standard error over groups of related steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from anyio import to_thread
from inspect_ai import Epochs, Task, task
from inspect_ai._util.registry import registry_info
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, GenerateConfig, get_model
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    mean,
    metric,
    scorer,
    stderr,
)
from inspect_ai.solver import Generate, Solver, TaskState, generate, solver

from omnidata import registry
from omnidata.adapters.media_budget import Capabilities
from omnidata.adapters.render import render
from omnidata.errors import MediaError, UsageError
from omnidata.harness.bench import Bench, Judged
from omnidata.harness.inspect_models import OmnidataModel, convert_errors, messages_of, texts_of
from omnidata.run.logs.inspect import KEY, delivery_of, receipt_of
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.types import GenerationParams, Step

Clips = Literal["whole", "frames"]
_WHOLE: Final = ("google", "mockllm")
"""Providers of inspect_ai that take clips; others are shown pictures of them."""
_GROUP: Final = "group"
"""The metadata of a sample with the group of related steps: `Step.group`."""


_Key = tuple[str, str, str | None, tuple[tuple[str, str], ...]]
_loaded: dict[_Key, Bench] = {}
"""The tasks of this process; making a task loads its data again."""


def _bench(
    name: str, data: str, profile: str | None, options: Mapping[str, str], *, anew: bool = False
) -> Bench:
    key = name, data, profile, tuple(sorted(options.items()))
    if anew or key not in _loaded:
        with convert_errors():
            _loaded[key] = Bench.load(name, data, profile, options)
    return _loaded[key]


def _options(name: str, given: Mapping[str, Any]) -> dict[str, str]:
    """Return the task's options as texts; YAML reads `off` as False, which is undone.

    Examples:
        >>> _options("idm-multiple", {"gemini_limit": False})
        {'gemini_limit': 'off'}
    """
    allowed = get_task(name).allowed
    made = {}
    for option, value in given.items():
        texts, values = texts_of(value), allowed.get(option, ())
        made[option] = next((text for text in texts if text in values), texts[0])
    return made


def inspect_task(
    name: str,
    data: str,
    profile: str | None = None,
    clips: Clips | None = None,
    **options: Any,
) -> Task:
    """Return a registered task as one of inspect_ai.

    Args:
        name: as in `omnidata evaluate NAME`.
        data: as in `omnidata evaluate NAME DATA`.
        profile: the scoring rules; the task's default if None.
        clips: "whole" sends clips as files, "frames" four pictures of each; None does what the
            provider takes. Our own models are always given the files.
        options: the task's, as given with `-T key=value`.

    Raises:
        PrerequisiteError: no such task, option, profile or data.
    """
    with convert_errors():
        said = _options(name, options)
    bench = _bench(name, data, profile, said, anew=True)
    found, judge = bench.task, bench.profile
    with convert_errors():
        samples = [_sample(found, step) for step in bench.source.steps]
    kept: dict[str, Any] = {"task": name, "data": data, "profile": profile, "options": said}
    usual = GenerationParams()
    return Task(
        name=name,
        dataset=MemoryDataset(samples, name=name, location=data),
        setup=prompt(**kept, clips=clips),
        solver=generate(),
        scorer=verdicts(**kept),
        metrics=[
            totals(**kept),
            {value: [mean(), stderr(cluster=_GROUP)] for value in judge.values},
        ],
        config=GenerateConfig(
            temperature=usual.temperature,
            max_tokens=usual.max_new_tokens,
            stop_seqs=list(found.stop) or None,
        ),
        epochs=Epochs(1),
        score_on_error=True,
        version=found.prompt_hash[:12],
        metadata={
            KEY: {
                "task": name,
                "options": dict(found.options),
                "profile": judge.name,
                "prompt_hash": found.prompt_hash,
                "dataset_fingerprint": bench.source.fingerprint,
            }
        },
    )


def _sample(task: Asking, step: Step) -> Sample:
    right = task.target(step)
    return Sample(
        id=step.sample_id,
        input=step.instruction or step.sample_id,  # `prompt` puts the messages in its place
        target=right.text if right else "",
        metadata={
            **step.tags,
            _GROUP: step.group,
            "episode": step.episode,
            "step_index": step.step_index,
            "num_steps": step.num_steps,
        },
    )


@solver
def prompt(
    task: str,
    data: str,
    profile: str | None,
    options: dict[str, str],
    clips: Clips | None = None,
) -> Solver:
    """Replace the input by the task's prompt for the step, with its media.

    A step whose media cannot be read is not asked about, and scored as failed.
    """
    bench = _bench(task, data, profile, options)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.epoch > 1:
            raise UsageError(
                "several epochs cannot be scored as episodes",
                where=f"--epochs, epoch {state.epoch}",
                expected="--epochs 1",
                remedy="write each repetition to its own log, and compare them",
            )
        api = get_model().api
        ours = isinstance(api, OmnidataModel)
        step = bench.steps[str(state.sample_id)]
        provider = registry_info(api).name.rpartition("/")[2]
        whole = ours or clips == "whole" or (clips is None and provider in _WHOLE)
        try:
            state.messages, receipt = await to_thread.run_sync(
                _messages, bench.task, step, whole, ours
            )
            state.store.set(KEY, {"receipt": receipt})
        except MediaError as error:
            state.store.set(KEY, {"delivery": "media_error", "error": str(error)})
            state.completed = True
        return state

    return solve


def _messages(
    task: Asking, step: Step, whole: bool, ours: bool
) -> tuple[list[ChatMessage], Mapping[str, Any]]:
    conversation = task.conversation(step, [])
    begun = conversation[-1].role == "assistant"
    if not ours and (begun or task.special_tokens):
        raise UsageError(
            "the answer begins in the prompt, or is made of special tokens",
            where=f"-T {' -T '.join(f'{key}={value}' for key, value in task.options.items())}",
            expected="--model omnidata/SPEC: inspect_ai's own models cannot use such prompts",
        )
    about = {"sample_id": step.sample_id, "special_tokens": task.special_tokens}
    if ours:  # the adapter makes pictures smaller itself, and says so in its receipt
        unsized = tuple(
            replace(turn, parts=tuple(replace(part, size=None) for part in turn.parts))
            for turn in conversation
        )
        messages, receipt = render(unsized, Capabilities(video="native"))
        return messages_of(messages, about, conversation), receipt
    messages, receipt = render(conversation, Capabilities(video="native" if whole else "frames"))
    return messages_of(messages, {}, ()), receipt


@scorer(metrics=[mean()])  # `inspect_task` says others
def verdicts(task: str, data: str, profile: str | None, options: dict[str, str]) -> Scorer:
    """Judge an answer by a profile of the task."""
    bench = _bench(task, data, profile, options)

    async def score(state: TaskState, target: Target) -> Score:
        step = bench.steps[str(state.sample_id)]
        kept = dict(state.store.items())
        if state.epoch > 1:
            return Score.unscored(explanation="a step is asked once: --epochs 1")
        delivery, error = delivery_of(state.output, kept)
        receipt = receipt_of(state.output, kept)
        verdict = bench.profile.judge(step, state.output.completion, receipt, delivery)
        values = zip(bench.profile.values, verdict.values, strict=True)
        return Score(
            value={name: math.nan if value is None else float(value) for name, value in values},
            answer=state.output.completion,
            explanation=error or verdict.reason or None,
            metadata={"outcome": verdict.outcome, "parsed": verdict.parsed},
        )

    return score


@metric
def totals(task: str, data: str, profile: str | None, options: dict[str, str]) -> Metric:
    """Return the metrics of the profile over the asked steps and their episodes."""
    bench = _bench(task, data, profile, options)

    def total(scores: list[SampleScore]) -> Mapping[str, float]:
        return bench.overall(
            {
                str(one.sample_id): Judged(
                    (one.score.metadata or {})["outcome"], one.score.as_dict()
                )
                for one in scores
            }
        )

    # inspect_ai passes sample ids too if it finds this type, which `annotations` made a text.
    total.__annotations__["scores"] = list[SampleScore]
    return total


def _register(name: str) -> None:

    def factory(
        data: str, profile: str | None = None, clips: Clips | None = None, **options: Any
    ) -> Task:
        return inspect_task(name, data, profile, clips, **options)

    factory.__name__ = name
    task(name=name)(factory)


for _name in registry.names():
    _register(_name)
