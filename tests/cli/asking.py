"""The command line with a server that it asks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.adapters.servers import ChatCompletions, Fault, Script, Server, running

WAIT = Fault(text='{"action_type": -1}')


@contextmanager
def server(script: Script = lambda number: WAIT) -> Iterator[Server]:
    """A server whose model waits at every step."""
    with running(ChatCompletions(), script) as started:
        yield started


def evaluate(asked: Server, data: Path, *more: str | Path) -> list[str | Path]:
    address = ["--model", "openai:tiny", "--base-url", f"{asked.url}/v1"]
    return ["evaluate", "omnigui", data, *address, *more]


def info(run: Path) -> Any:
    return json.loads((run / "run.json").read_text())
