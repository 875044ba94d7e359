"""Samples of a benchmark of places agree by their places."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnidata.run.answer_choice import same_action
from omnidata.tasks import get_task
from tests.loaders.every import rows_of


@pytest.mark.parametrize("name", ["screenspot", "groundui", "cagui-grounding"])
def test_answers_that_name_near_places_are_one_answer(tmp_path: Path, name: str) -> None:
    task = get_task(name, {"coordinates": "rel"})
    step = task.load(rows_of(name, tmp_path), check_media=False).steps[0]
    one, near, far = (
        task.history_action(step, place) for place in ("[0.3, 0.3]", "[0.31, 0.3]", "[0.7, 0.3]")
    )
    assert one is not None
    assert near is not None
    assert far is not None
    assert same_action(one, near, (1000, 1000))
    assert not same_action(one, far, (1000, 1000))
