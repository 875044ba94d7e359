"""A model's text is read once when it is scored, by every profile of every task.

What was read of a wrong answer is read once more, to say why it is wrong. Where most answers are
wrong, some of them are read in other forms too.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, FrameType

import pytest

from omnidata.registry import names
from omnidata.tasks import get_task, outcomes, points
from omnidata.tasks.agentnet import rules as agentnet
from omnidata.tasks.agentstudio import answers as agentstudio
from omnidata.tasks.agentstudio import rules as critic
from omnidata.tasks.answer_critics import task as critics
from omnidata.tasks.cagui_grounding import task as cagui
from omnidata.tasks.mind2web import rules as mind2web
from omnidata.tasks.omnibench import actions as omnibench
from omnidata.tasks.omnigui import answers as omnigui
from omnidata.tasks.osworld import actions as osworld
from omnidata.tasks.osworld_g import rules as osworld_g
from omnidata.tasks.phones import answers as phones
from tests.goldens.record import call
from tests.loaders.every import rows_of
from tests.trees import row, write_lines, write_rows

READERS: Mapping[str, Sequence[Callable[..., object]]] = {
    "agentnet": [agentnet.parse],
    "aitw": [phones.parse],
    "androidcontrol": [phones.parse],
    "androidworld": [outcomes.read_success],
    "cagui-grounding": [cagui.read_released, cagui.read_any],
    "criticbench": [critic.released_score, critic.read_success],
    "groundui": [agentstudio.read_released, points.read_point],
    "gui-odyssey": [phones.parse],
    "idm-multiple": [agentstudio.released_letters, agentstudio.read_letters],
    "idm-single": [agentstudio.released_letter, agentstudio.read_letter],
    "mind2web": [mind2web.read],
    "omnibench": [omnibench.parse],
    "omnigui": [omnigui.parse],
    "omnigui-critic": [critic.read_success],
    "omnigui-idm": [omnigui.parse],
    "online-mind2web": [outcomes.read_success],
    "osworld": [osworld.parse],
    "osworld-g": [osworld_g.read_released, points.read],
    "screenspot": [points.read],
    "step-critic": [critics.read_judgement],
    "trajectory-critic": [critics.read_judgement],
}
"""What reads a text, by task: of several, each profile has one."""


def calls(readers: Sequence[Callable[..., object]], verb: Callable[[], str]) -> tuple[int, str]:
    """How often the readers are called in all threads while a verb runs, and what it prints."""
    found: Counter[CodeType] = Counter()
    wanted = {reader.__code__ for reader in readers}

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code in wanted:
            found[frame.f_code] += 1

    threading.setprofile(count)
    sys.setprofile(count)
    try:
        printed = verb()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return found.total(), printed


def three_steps(folder: Path) -> Path:
    """An episode, for the tasks that ask about what lies between steps."""
    return write_rows(folder / "steps.json", [row("T1", number) for number in range(3)])


def test_every_task_of_ours_says_what_reads() -> None:
    assert set(READERS) <= set(names())
    ours = {name for name in names() if type(get_task(name)).__module__.startswith("omnidata.")}
    assert set(READERS) == ours


@pytest.mark.parametrize("name", READERS)
def test_score_reads_every_answer_once(name: str, tmp_path: Path) -> None:
    task = get_task(name)
    data = rows_of(name, tmp_path / "data") if not task.asks_about else three_steps(tmp_path)
    steps = task.load(data, check_media=False).steps
    targets = [task.target(step) for step in steps]
    rows = [
        {"sample_id": step.sample_id, "output": target.text if target else "I am done."}
        for step, target in zip(steps, targets, strict=True)
    ]
    lines = write_lines(tmp_path / "answers.jsonl", rows)
    for profile in task.profiles:
        score = partial(call, "score", name, data, lines, "--profile", profile, "--json")
        read, printed = calls(READERS[name], score)
        results = json.loads(printed.removeprefix("exit 1\n"))
        wrong = sum(results["causes"]["overall"].values())
        assert len(rows) <= read, profile
        if 2 * wrong <= len(rows):
            assert read <= len(rows) + wrong, profile
        assert rows, profile
