"""The oracle in every dialect, on every benchmark: as right as in the benchmark's own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnidata import registry
from omnidata.dialects import dialects
from omnidata.errors import UsageError
from omnidata.tasks import get_task
from omnidata.types import Step
from tests.full import FULL
from tests.goldens import worlds

WORLDS = [
    name
    for name, (task, _) in worlds.WORLDS.items()
    if name not in ("omnigui-few", "groundui") and not get_task(task).benchmark.about
]


def test_every_benchmark_that_has_dialects_is_here() -> None:
    asked = {name for name in registry.benchmarks() if get_task(name).benchmark.speech}
    assert asked <= {task for task, _ in worlds.WORLDS.values()}


@pytest.mark.parametrize("world", WORLDS)
def test_what_a_dialect_can_say_is_judged_as_in_the_tasks_own_words(
    world: str, sample: Path, tmp_path: Path
) -> None:
    task = worlds.WORLDS[world][0]
    own: Any = get_task(task)
    data = sample if world == "omnigui" else worlds.build(world, tmp_path)
    source = own.load(data, check_media=False)
    steps = source.steps if FULL else [*source.steps[:40], *source.steps[-8:]]
    right = own.baseline("oracle", source.steps, {})
    wanted = {
        (rule, step.sample_id): dict(
            zip(judge.values, judge.judge(step, right(step)).values, strict=True)
        )
        for rule, judge in own.profiles.items()
        for step in steps
    }
    for name in dialects():
        try:
            spoken: Any = get_task(task, {"dialect": name})
        except UsageError as error:
            assert error.what, error
            continue
        assert agree(spoken, steps, wanted) or beyond(spoken, steps), name


def agree(
    spoken: Any, steps: Sequence[Step], wanted: Mapping[tuple[str, str], dict[str, Any]]
) -> int:
    """How many verdicts on the dialect's oracle are those of the task's own, if it can say it."""
    said = spoken.baseline("oracle", steps, {})
    expressible = 0
    for step in steps:
        for rule, profile in spoken.profiles.items():
            if rule.endswith("+strict") or (rule, step.sample_id) not in wanted:
                continue
            text = said(step)
            found = dict(zip(profile.values, profile.judge(step, text).values, strict=True))
            if not found["expressible"]:
                continue
            expressible += 1
            right = {k: v for k, v in wanted[rule, step.sample_id].items() if k != "format_ok"}
            known = spoken.dialect.name, rule, step.sample_id, text
            assert {key: found[key] for key in right} == right, known
            assert found["read"], known
            assert found["expressed"], known
    return expressible


def beyond(spoken: Any, steps: Sequence[Step]) -> bool:
    """Whether no step is of a kind that the dialect says."""
    kinds = {action.kind for step in steps for action in spoken.speech.right_actions(step)}
    return bool(kinds.isdisjoint(spoken.dialect.says[spoken.platform_of(steps[0])]))


def test_a_place_on_a_screen_of_unknown_size_is_said_in_shares_alone(tmp_path: Path) -> None:
    data = worlds.build("agentnet", tmp_path)
    found = {}
    for name in ("aguvis", "kimi", "opencua", "ui-tars-1.5"):
        task: Any = get_task("agentnet", {"dialect": name})
        step = task.load(data, check_media=False).steps[0]
        known, unknown = task.target(step), task.target(replace(step, screen=(0, 0)))
        assert known and unknown in (known, None)
        found[name] = unknown is not None
    assert found == {"aguvis": True, "kimi": True, "opencua": False, "ui-tars-1.5": False}
