"""What the tests of speech share: steps with instructions, and a command that runs."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from omnidata.types import Step
from tests.trees import load_rows, row

PROGRAM = Path(__file__).with_name("speaking.py")


def command(extra: str = "") -> str:
    program = f"{shlex.quote(sys.executable)} {shlex.quote(str(PROGRAM))}"
    return f"{program} --text {{text}} --out {{out}} --lang {{language}} {extra}".strip()


def steps(tmp_path: Path, *texts: str) -> list[Step]:
    """A step per text."""
    rows = [row(f"E{n}", 0, app="TED", instruction_en=text) for n, text in enumerate(texts)]
    return list(load_rows(tmp_path, *rows).steps)
