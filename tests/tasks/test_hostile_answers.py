"""Whatever a model writes, every profile judges it and says why it is wrong."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.registry import benchmarks
from omnidata.run.run_files import read_run
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.types import CAUSES, OUTCOMES, Step
from tests.full import FULL
from tests.loaders.every import rows_of
from tests.metrics.mutations import KEYS, mutants
from tests.tasks.scored import scored

UNITS = (
    ("", "", ""),
    ("", '{"action":', ""),
    ("", '{"a":', ""),
    ("", '{"action_type": "click", "x": 1, "y": 2}\n', ""),
    ('{"coordinate": ', "[", ""),
    ("{", '"action": 1, ', '"action": 2}'),
    ('{"action": 0, "coordinate": [', "9", ", 1]}"),
    ('{"text": "', "\\", '"}'),
    ('{"text": "', "\\u00e9", '"}'),
    ("", "```json\n{\n", ""),
    ("", "```python\n", ""),
    ("", "pyautogui.click(1, 2)\n", ""),
    ("", "pyautogui.click(", ""),
    ("pyautogui.click(", "(", "1, 2)"),
    ("pyautogui.click(", "-", "1, 2)"),
    ("pyautogui.click(", "1+", "1, 2)"),
    ('pyautogui.write("', "a", '")'),
    ("pyautogui.write('", "a", ""),
    ("", "if 1:\n ", ""),
    ("", "Thought: a\nAction: click\n", ""),
    ("", "<tool_call>\n{", "</tool_call>"),
    ("", "<point>", ""),
    ("", "<|box_start|>(1,2)", ""),
    ("", "(1, 2) ", ""),
    ("", "1 ", ""),
    ("", "Answer: A\n", ""),
    ("", "CLICK ", ""),
    ("", "\"'", ""),
    ("", "（１，２）", ""),
    ("", "\ud83d", ""),
    ("", "\x00\x1b[2J", ""),
)
"""What stands before a part of an answer that comes again and again, the part, and what follows."""

MUTANTS = 20_000 if FULL else 300
NAMES = [
    *KEYS,
    *("POINT", "TYPE", "PRESS", "STATUS", "ACTION", "ARGS", "bbox", "idx", "click_point"),
    *("function", "args", "status", "wheel_dist", "keys", "double"),
]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=8,
)


BEYOND = (
    '{"action_type": "TAP", "coordinate": [1e400, 0]}',
    '{"action_type": "TAP", "coordinate": ["inf", NaN]}',
    '{"action": 1, "coordinate": [-1e400, 1e400]}',
    '{"POINT": [1e400, 1e400]}',
    "pyautogui.click(1e400, 1e400)",
    "pyautogui.click(x=1.2.3, y=5)",
    '{"ACTION": "click_element", "ARGS": {"idx": 1e400, "bbox": [1e400, 0, 1, 2]}}',
    "(1e400, 0)",
    "(1e30, -1e300)",
    '{"action": 4, "coordinate": [1e30, 1e300]}',
    '{"POINT": [100000000000000000000, 5]}',
)
"""Places that are on no screen or none at all, in the forms of several benchmarks."""


TEXTS = (*BEYOND, *(before + unit + after for before, unit, after in UNITS))


def first_step(task: Asking, folder: Path) -> tuple[Step, str]:
    """Of a little data, on a screen of known size, with the right answer."""
    step = task.load(rows_of(task.name, folder), check_media=False).steps[0]
    step = replace(step, screen=step.screen if min(step.screen) else (32, 32))
    target = task.target(step)
    assert target
    return step, target.text


def check(task: Asking, step: Step, text: str) -> None:
    """What holds of any answer: it is judged, explained, and read for histories."""
    for profile in task.profiles.values():
        verdict = profile.judge(step, text)
        assert verdict.outcome in OUTCOMES
        assert verdict.reason or verdict.outcome == "ok"
        json.dumps(verdict.parsed)
        found = task.explanation(step, verdict, text, profile=profile.name, receipt={})
        assert found.sentence
        assert found.diagnosis is None or found.diagnosis.cause in CAUSES
    task.history_action(step, text)


@pytest.mark.parametrize("name", benchmarks())
def test_any_text_is_judged_by_every_profile_explained_and_read_for_histories(
    tmp_path: Path, name: str
) -> None:
    """Texts, JSON, and right answers bent out of shape."""
    task = get_task(name)
    step, right = first_step(task, tmp_path)
    for text in (*TEXTS, *mutants([right, *BEYOND], MUTANTS, seed=1)):
        check(task, step, text)
    letters = st.text(right + "{}[]()<>`'\": ,.-0123456789\\\n", max_size=60)

    @given(st.text() | letters | VALUES.map(json.dumps))
    def check_any(text: str) -> None:
        check(task, step, text)

    check_any()


@pytest.mark.parametrize("name", benchmarks())
def test_whole_numbers_beyond_floats_are_judged_in_every_unit(tmp_path: Path, name: str) -> None:
    units = get_task(name).benchmark.allowed.get("coordinates", ())
    tasks = [get_task(name), *(get_task(name, {"coordinates": unit}) for unit in units)]

    @given(st.data(), st.sampled_from(tasks), st.integers(160, 400), st.booleans())
    def check_large(data: st.DataObject, task: Asking, digits: int, negative: bool) -> None:
        step, text = first_step(task, tmp_path)
        numbers = [*re.finditer(r"\d+(\.\d+)?", text)]
        chosen = data.draw(st.sets(st.sampled_from(range(len(numbers))))) if numbers else ()
        large = "-" * negative + "1" + "0" * digits
        for number in sorted(chosen, reverse=True):
            text = text[: numbers[number].start()] + large + text[numbers[number].end() :]
        check(task, step, text)

    check_large()


@pytest.mark.parametrize("name", benchmarks())
def test_the_scores_of_every_answer_can_be_read_again(tmp_path: Path, name: str) -> None:
    task = get_task(name)
    step, _ = first_step(task, tmp_path / "data")
    steps = [replace(step, sample_id=str(number)) for number in range(len(TEXTS))]
    for profile in task.profiles:
        scored(task, steps, TEXTS, profile, out=tmp_path)
        assert read_run(tmp_path).scores.keys() == {asked.sample_id for asked in steps}
