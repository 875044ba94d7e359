"""What holds of the options and baselines of every task."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from omnidata.errors import MediaError, UsageError
from omnidata.registry import benchmarks, names
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from tests.loaders.every import rows_of


@pytest.mark.parametrize("name", benchmarks())
def test_prompts_that_differ_have_hashes_that_differ(tmp_path: Path, name: str) -> None:
    plain = get_task(name)
    steps = [
        replace(step, screen=step.screen if min(step.screen) else (32, 32))
        for step in plain.load(rows_of(name, tmp_path), check_media=False).steps
    ]
    steps += [
        replace(step, step_index=1, history=(step.action,), history_screens=(step.screen,))
        for step in steps
        if step.action
    ]

    def told(task: Asking) -> str:
        return str([task.conversation(step, step.history) for step in steps])

    hashes = {told(plain): plain.prompt_hash}
    for option, values in plain.allowed.items():
        for value in values:
            with suppress(UsageError, MediaError):  # these rows cannot be asked about so
                task = get_task(name, {option: value})
                hashes.setdefault(told(task), task.prompt_hash)
    assert len({*hashes.values()}) == len(hashes)


@pytest.mark.parametrize("name", names())
def test_an_option_a_value_or_a_baseline_that_there_is_not_is_refused(name: str) -> None:
    task = get_task(name)
    with pytest.raises(UsageError, match="unknown option"):
        get_task(name, {"nonsense": "1"})
    for option, values in task.allowed.items():
        assert values
        with pytest.raises(UsageError):
            get_task(name, {option: "no such value"})
    with pytest.raises(UsageError, match="oracle"):
        task.baseline("nonsense", [], {})
    with pytest.raises(UsageError, match="no options"):
        task.baseline("oracle", [], {"seed": "1"})
