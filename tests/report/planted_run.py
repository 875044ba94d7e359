"""A run on the sample's data in which failures are planted, and the browser that looks at them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from omnidata.run.run_files import Run, read_run
from omnidata.tasks import get_task
from tests.conftest import Once
from tests.data.converting import small
from tests.report.made import replay

HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "--><!-- </script></template></pre><svg onload=\"document.title='owned'\"> \"'&\ud800"
)
"""What a model may say; the last sign is half a character."""

BESIDE = "Chirp/C001/1"
SWIPED = "Chirp/C002/2"
SPOKEN = "Chirp/C003/0"
SILENT = "Chirp/C004/1"
FAILURES = {
    BESIDE: '{"action_type": 0, "coordinate": [910, 788]}',
    SWIPED: '{"action_type": 3, "start_coordinate": [500, 800], "end_coordinate": [500, 200]}',
    SPOKEN: HOSTILE,
}
"""A tap beside its target, a swipe in place of the end, and a text that is no action."""

EPISODES = ("C001", "C002", "C003", "C004", "C005", "H001")
"""Of two apps."""

STEPS = 19

CAUSE = "The point (655.2, 1260.8) is 33 px right of the target box."


def planted(once: Once, sample: Path) -> Run:
    """A run that is right but for `FAILURES` and `SILENT`, which has no answer.

    It is made once, and nobody writes into it.
    """
    task = get_task("omnigui")
    data = once("planted-data", lambda folder: small(folder, sample, *EPISODES))

    def run(folder: Path) -> None:
        source = task.load(data)
        texts: list[str | None] = []
        for step in source.steps:
            target = task.target(step)
            assert target
            said = FAILURES.get(step.sample_id, target.text)
            texts.append(said if step.sample_id != SILENT else None)
        replay(folder / "run", task, source, texts)

    return read_run(once("planted", run) / "run")


def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if not found:
        pytest.skip("needs chromium (apt-get install chromium)")
    return found


@contextmanager
def browser() -> Iterator[Any]:
    """A browser that knows no name of any host."""
    from playwright.sync_api import sync_playwright

    arguments = [
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
        "--autoplay-policy=no-user-gesture-required",
        "--disable-gpu",  # nor one in software: nothing is looked at by eye
        "--disable-software-rasterizer",
    ]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=arguments)
        yield opened
        opened.close()


def until(page: Any, expression: str) -> None:
    """Wait for a condition; Playwright's own waiting would need a page that allows `eval`."""
    for _ in range(200):
        if page.evaluate(expression):
            return
        page.wait_for_timeout(50)
    raise AssertionError(f"never true: {expression}")
