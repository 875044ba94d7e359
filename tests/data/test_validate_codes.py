"""The table in docs/validate.md has every code that `validate` may report, and no other."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import get_args

import pytest

from omnidata.data.media_checks import CODES
from omnidata.data.media_outcomes import NoAnswer
from omnidata.errors import MediaFault

ROOT = Path(__file__).parents[2]
TABLE = ROOT / "docs" / "validate.md"
ROOMS = (
    *("loaders", "tasks", "types.py"),
    *(f"data/{name}.py" for name in ("validate", "media_checks", "convert", "convert_shards")),
)
ELSEWHERE = ("scoring.py", "action_log.py", "recordings.py", "asking_under_options.py")
"""What `score`, `segment` and `evaluate` find is no matter of `validate`; docs/segment.md has a
table too."""
pytestmark = pytest.mark.skipif(not TABLE.is_file(), reason="needs a checkout: no docs here")


def documented() -> dict[str, set[str]]:
    """Code -> severities."""
    text = TABLE.read_text("utf-8")
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| ([a-z ]+) \| [^|]+ \| [^|]+ \|$", text, re.M)
    codes = [code for code, _ in rows]
    assert len(set(codes)) == len(codes)
    return {code: set(severity.split(" or ")) for code, severity in rows}


def calls() -> list[tuple[str, ast.Call, frozenset[str]]]:
    """Every call in the rooms that may make a finding, with the parameters around it."""
    found = []
    for room in ROOMS:
        place = ROOT / "omnidata" / room
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            if path.name in ELSEWHERE:
                continue
            tree = ast.parse(path.read_text("utf-8"))
            for function in ast.walk(tree):
                if isinstance(function, ast.FunctionDef):
                    names = frozenset(argument.arg for argument in function.args.args)
                    found += [
                        (function.name, call, names)
                        for call in ast.walk(function)
                        if isinstance(call, ast.Call) and call.args
                    ]
    return found


def called(call: ast.Call) -> str:
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


@cache
def emitted() -> dict[str, set[str]]:
    """Code -> severities, as far as they stand beside it in the code."""
    everything = calls()
    makers = {"Finding"}
    while True:  # functions that hand their first parameter on
        more = {
            function
            for function, call, names in everything
            if called(call) in makers and getattr(call.args[0], "id", "") in names
        }
        if more <= makers:
            break
        makers |= more
    found: dict[str, set[str]] = defaultdict(set)
    for _, call, _ in everything:
        if called(call) in makers:
            for code in (n.value for n in ast.walk(call.args[0]) if isinstance(n, ast.Constant)):
                if isinstance(code, str) and re.fullmatch(r"[a-z]+(-[a-z]+)+", code):
                    stated = ast.walk(call.args[1]) if called(call) == "Finding" else ()
                    found[code] |= {
                        node.value
                        for node in stated
                        if isinstance(node, ast.Constant) and isinstance(node.value, str)
                    } & {"error", "warning"}
    return found


def test_every_code_is_in_the_table_and_the_table_has_no_other() -> None:
    faults = {f"media-{kind}" for kind in (*get_args(MediaFault), *get_args(NoAnswer))}
    assert faults <= CODES.keys()
    assert documented().keys() == emitted().keys() | CODES.keys()
    assert CODES.keys() - faults <= emitted().keys()


def test_the_table_has_the_severities_of_the_code() -> None:
    table = documented()
    for code, severities in emitted().items():
        assert severities <= table[code], code
    assert {code: {severity} for code, (severity, _) in CODES.items()} == {
        code: table[code] for code in CODES
    }


def test_every_threshold_in_the_table_is_that_of_the_code() -> None:
    from omnidata.data import media_checks as steps
    from omnidata.data.media_outcomes import LIMIT_S
    from omnidata.media import DEFAULT_BUDGET, probing

    text = TABLE.read_text("utf-8")
    for words in (
        f"more than {probing.STILL} of 256 levels",
        f"the mean of 8 x 8 pixels by more than {probing.STILL_AREA}",
        f"above {probing.SILENCE} of full scale",
        f"more than {steps.LENGTH_S} s and by more than {steps.LENGTH_SHARE:.0%}".replace(
            "%", " %"
        ),
        f"differ by more than {steps.ASPECT:.0%}".replace("%", " %"),
        f"{steps.NAMED * 10:.0f} of 10 steps",
        f"not finished after {LIMIT_S:.0f} s",
        f"{DEFAULT_BUDGET.max_frames:,} frames or {DEFAULT_BUDGET.max_seconds:.0f} s",
    ):
        assert words in text
