"""Writes what readers and verbs make of answers that are wrong in many ways: for `test_hash_seed`.

PYTHONHASHSEED=1 python -m tests.hash_seed DATA OUT
"""

from __future__ import annotations

import io
import json
import random
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from omnidata.cli import main
from omnidata.dialects import UnreadError, dialects
from tests.full import FULL
from tests.linear import FED
from tests.tasks.test_hostile_answers import BEYOND, UNITS

_KEYS = (
    *("coordinate", "coordinate2", "coordinate1", "text", "keys", "time", "status", "button"),
    *("pixels", "x", "y", "path", "direction", "url", "app_name", "duration", "scroll_x"),
    *("scroll_y", "magnitude", "start_box", "end_box", "content", "key", "ref", "amount"),
)
_VALUES: tuple[Any, ...] = (1, "a", None, [1, 2], [1], {}, True, "up", 1e400, -5, "success", "Back")
_ACTIONS = (
    *("click", "swipe", "left_click", "drag", "scroll", "wait", "key", "type", "terminate"),
    *("answer", "open", "double_click", "long_press", "system_button", "left_click_drag"),
    *("mouse_move", "hscroll", "keypress", "zoom", "hold_key", "click_at", "drag_and_drop"),
    *("type_text_at", "scroll_at", "navigate", "finished"),
)


def answers(count: int) -> list[str]:
    """Calls that lack what they need, or have too much, in several forms."""
    draw = random.Random(0)
    found = [*BEYOND, *(before + unit * 9 + after for before, unit, after in UNITS)]
    for _ in range(count):
        given = {key: draw.choice(_VALUES) for key in draw.sample(_KEYS, draw.randint(0, 5))}
        action = draw.choice(_ACTIONS)
        call = {"action": action, "type": action, "action_type": action, **given}
        tool = {"name": draw.choice(("computer_use", "mobile_use")), "arguments": call}
        found += [
            json.dumps(call),
            f"<tool_call>\n{json.dumps(tool)}\n</tool_call>",
            json.dumps({"name": action, "input": call, "args": json.dumps(given)[1:]}),
            f"Action: {action}({', '.join(f'{key}={value!r}' for key, value in given.items())})",
            f"<answer>[{call}]</answer>",
        ]
    return found


def readings(texts: list[str]) -> str:
    """What every dialect reads in every text, or why it reads nothing."""
    lines = []
    for name, dialect in dialects().items():
        for text in texts:
            for strict in (False, True):
                try:
                    said = repr(dialect.read(text, FED, rules="strict" if strict else "lenient"))
                except (UnreadError, OverflowError) as error:
                    said = str(error)
                lines.append(f"{name} {strict} {said}")
    return "\n".join(lines)


def verb(out: Path, name: str, *arguments: object) -> None:
    """Run a verb; what it prints is a file, and what is wrong with the command."""
    said, noted = io.StringIO(), io.StringIO()
    with redirect_stdout(said), redirect_stderr(noted):
        try:
            main([*map(str, arguments)])
        except SystemExit as end:
            told = said.getvalue() + (noted.getvalue() if end.code == 2 else "")
    (out / f"{name}.txt").write_text(told, errors="backslashreplace")


def write(data: Path, out: Path) -> None:
    """Everything, in files below `out`, which is the current folder."""
    texts = answers(40 if FULL else 5)
    (out / "readings.txt").write_text(readings(texts), errors="backslashreplace")
    verb(out, "info", "info", "omnigui", data, "--json")
    steps = [line.split("\t")[0] for line in _ids(data)]
    for number, dialect in enumerate(("unified", "qwen3", "gui-owl-1.5")):
        draw = random.Random(number)
        lines = [{"sample_id": step, "output": draw.choice(texts)} for step in steps]
        path = out / f"{dialect}.jsonl"
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
        scored = out / f"scored-{dialect}"
        options = ("-T", f"dialect={dialect}", "--out", scored)
        verb(out, f"score-{dialect}", "score", "omnigui", data, path, *options)
    runs = [out / "scored-unified", out / "scored-qwen3"]
    verb(out, "report", "report", *runs, "--format", "md", "--errors")
    verb(out, "html", "report", runs[0], "--html", out / "pages", "--data", data)
    verb(out, "compare", "compare", *runs, "--data", data, "--format", "md")
    verb(
        out,
        "export",
        "export",
        "omnigui",
        data,
        out / "rows",
        "--format",
        "trl",
        "-T",
        "modalities=I",
        "--workers",
        1,
    )
    wrong = ("-M", "b=1", "-M", "a=1", "-M", "c=1")
    for name, given in (("center", wrong), ("nobody", ())):
        model = ("--model", f"baseline:{name}", *given)
        verb(out, name, "evaluate", "omnigui", data, *model, "--out", out / "run")


def _ids(data: Path) -> list[str]:
    from omnidata import get_task

    return [step.sample_id for step in get_task("omnigui").load(data, check_media=False).steps]


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
