"""Whatever a model writes, every profile judges it, in a time that grows with it."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.predictions import Prediction
from omnidata.registry import benchmarks
from omnidata.run.run_files import read_run
from omnidata.run.scoring import score
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.types import CAUSES, OUTCOMES
from tests.full import FULL
from tests.loaders.every import rows_of
from tests.metrics.mutations import KEYS, mutants

SIZE = 60_000 if FULL else 20_000
MOST_S = 2.0
"""At quadratic cost such a text takes many seconds, at linear cost hundredths of a second."""

UNITS = {
    "nothing": ("", " ", ""),
    "lines": ("", "\n", ""),
    "braces": ("", "{", ""),
    "objects": ("", '{"action":', ""),
    "actions": ("", '{"action_type": "click", "x": 1, "y": 2}\n', ""),
    "lists": ('{"coordinate": ', "[", ""),
    "a key again and again": ("{", '"action": 1, ', '"action": 2}'),
    "a long number": ('{"action": 0, "coordinate": [', "9", ", 1]}"),
    "backslashes": ('{"text": "', "\\", '"}'),
    "escapes": ('{"text": "', "\\u00e9", '"}'),
    "fences": ("", "```json\n{\n", ""),
    "code fences": ("", "```python\n", ""),
    "calls": ("", "pyautogui.click(1, 2)\n", ""),
    "calls that stay open": ("", "pyautogui.click(", ""),
    "parentheses": ("pyautogui.click(", "(", "1, 2)"),
    "signs": ("pyautogui.click(", "-", "1, 2)"),
    "sums": ("pyautogui.click(", "1+", "1, 2)"),
    "a long text": ('pyautogui.write("', "a", '")'),
    "a text that stays open": ("pyautogui.write('", "a", ""),
    "blocks": ("", "if 1:\n ", ""),
    "comments": ("", "# ", ""),
    "turns": ("", "Thought: a\nAction: click\n", ""),
    "tool calls": ("", "<tool_call>\n{", "</tool_call>"),
    "tags": ("", "<point>", ""),
    "boxes": ("", "<|box_start|>(1,2)", ""),
    "pairs": ("", "(1, 2) ", ""),
    "digits and blanks": ("", "1 ", ""),
    "answers": ("", "Answer: A\n", ""),
    "words": ("", "CLICK ", ""),
    "quotes": ("", "\"'", ""),
    "wide signs": ("", "（１，２）", ""),
    "half a sign": ("", "\ud83d", ""),
    "controls": ("", "\x00\x1b[2J", ""),
}


@pytest.mark.parametrize("name", benchmarks())
def test_every_profile_judges_every_text_in_no_time(tmp_path: Path, name: str) -> None:
    task = get_task(name)
    step = task.load(rows_of(name, tmp_path), check_media=False).steps[0]
    for profile in task.profiles.values():
        for family, (before, unit, after) in UNITS.items():
            for size in (SIZE // 10, SIZE):
                text = before + unit * (size // len(unit)) + after
                began = time.process_time()
                verdict = profile.judge(step, text)
                took = time.process_time() - began
                assert verdict.outcome in OUTCOMES
                assert took < MOST_S, f"{profile.name}, {family}, {size}: {took:.1f} s"


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


@pytest.mark.parametrize("name", benchmarks())
def test_any_text_is_judged_by_every_profile_and_read_for_histories(
    tmp_path: Path, name: str
) -> None:
    """Texts, JSON, and right answers bent out of shape."""
    task = get_task(name)
    step = task.load(rows_of(name, tmp_path), check_media=False).steps[0]
    step = replace(step, screen=step.screen if min(step.screen) else (32, 32))
    target = task.target(step)
    assert target
    right = target.text

    def check(text: str) -> None:
        for profile in task.profiles.values():
            verdict = profile.judge(step, text)
            assert verdict.outcome in OUTCOMES
            assert verdict.reason or verdict.outcome == "ok"
            json.dumps(verdict.parsed)
        task.history_action(step, text)

    for text in mutants([right, *BEYOND], MUTANTS, seed=1):
        check(text)
    letters = st.text(right + "{}[]()<>`'\": ,.-0123456789\\\n", max_size=60)
    given(st.text() | letters | VALUES.map(json.dumps))(check)()


@pytest.mark.parametrize("name", benchmarks())
def test_every_text_is_read_for_histories(tmp_path: Path, name: str) -> None:
    task = get_task(name)
    step = task.load(rows_of(name, tmp_path), check_media=False).steps[0]
    for before, unit, after in (*UNITS.values(), ("", "[", ""), ("", '{"a":', ""), ("", "(", "")):
        for size in (9, SIZE):
            task.history_action(step, before + unit * (size // len(unit)) + after)


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


@pytest.mark.parametrize("name", benchmarks())
def test_every_answer_that_is_wrong_is_explained(tmp_path: Path, name: str) -> None:
    task = get_task(name)
    step = task.load(rows_of(name, tmp_path), check_media=False).steps[0]
    step = replace(step, screen=step.screen if min(step.screen) else (32, 32))
    for profile in task.profiles.values():
        for text in (*BEYOND, *(before + unit + after for before, unit, after in UNITS.values())):
            verdict = profile.judge(step, text)
            found = task.explanation(step, verdict, text, profile=profile.name, receipt={})
            assert found.sentence
            assert found.diagnosis is None or found.diagnosis.cause in CAUSES


@pytest.mark.parametrize("name", benchmarks())
def test_whole_numbers_beyond_floats_are_explained(tmp_path: Path, name: str) -> None:
    units = get_task(name).benchmark.allowed.get("coordinates", ())
    tasks = [get_task(name), *(get_task(name, {"coordinates": unit}) for unit in units)]
    step = tasks[0].load(rows_of(name, tmp_path), check_media=False).steps[0]
    step = replace(step, screen=step.screen if min(step.screen) else (32, 32))

    @given(st.data(), st.sampled_from(tasks), st.integers(160, 400), st.booleans())
    def check(data: st.DataObject, task: Asking, digits: int, negative: bool) -> None:
        target = task.target(step)
        assert target
        numbers = [*re.finditer(r"\d+(\.\d+)?", target.text)]
        chosen = data.draw(st.sets(st.sampled_from(range(len(numbers))))) if numbers else ()
        large = "-" * negative + "1" + "0" * digits
        text = target.text
        for number in sorted(chosen, reverse=True):
            text = text[: numbers[number].start()] + large + text[numbers[number].end() :]
        for profile in task.profiles.values():
            verdict = profile.judge(step, text)
            found = task.explanation(step, verdict, text, profile=profile.name, receipt={})
            assert found.sentence
            assert found.diagnosis is None or found.diagnosis.cause in CAUSES

    check()


@pytest.mark.parametrize("name", benchmarks())
def test_the_scores_of_every_answer_can_be_read_again(tmp_path: Path, name: str) -> None:
    task = get_task(name)
    step = task.load(rows_of(name, tmp_path / "data"), check_media=False).steps[0]
    texts = [*BEYOND, *(before + unit + after for before, unit, after in UNITS.values())]
    steps = [replace(step, sample_id=str(number)) for number in range(len(texts))]
    answers = [
        Prediction(sample_id=asked.sample_id, output=text)
        for asked, text in zip(steps, texts, strict=True)
    ]
    for profile in task.profiles.values():
        score(task, profile, steps, answers, whole=np.ones(len(steps), np.bool_), out=tmp_path)
        assert read_run(tmp_path).scores.keys() == {asked.sample_id for asked in steps}
