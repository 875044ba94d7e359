"""`docs/papers.md`: each table and figure of the papers has a command that runs, or a reason."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnidata.cli import main
from tests.goldens.worlds import WORLDS, build
from tests.trees import write_lines

PAGE = Path(__file__).resolve().parents[1] / "docs" / "papers.md"
PRINTED = {
    "OmniGUI": (7, 5),
    "AgentStudio": (15, 22),
    "OmniBench": (11, 11),
    "OSWorld": (16, 18),
}
"""Tables and figures of each paper."""
MADE_OF = ("groundui", "idm-single", "idm-multiple", "criticbench", "androidcontrol")


def rows() -> Iterator[tuple[str, str, str]]:
    """The paper, the items, and what is said of them."""
    for section in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        paper = section.partition("\n")[0]
        for line in section.splitlines():
            if line.startswith("| ") and not line.startswith("| item"):
                items, _, told = line.strip("| ").split(" | ", 2)
                yield paper, items, told


def numbers(items: str) -> set[tuple[str, int]]:
    """("Table", 2), ... of "Tables 2, 5 to 7; Figure 1"."""
    found = set()
    for kind, listed in re.findall(r"(Table|Figure)s? (\d+(?:(?:, | to )\d+)*)", items):
        for part in listed.split(", "):
            ends = [int(number) for number in part.split(" to ")]
            found |= {(kind, number) for number in range(ends[0], ends[-1] + 1)}
    return found


COMMANDS = sorted(
    {command for *_, told in rows() for command in re.findall(r"`(omnidata [^`]+)`", told)}
    - {"omnidata voice", "omnidata synth pool"}  # named in passing
)


def test_nothing_that_a_paper_prints_is_forgotten() -> None:
    told: dict[str, set[tuple[str, int]]] = {}
    for paper, items, _ in rows():
        told.setdefault(paper, set()).update(numbers(items))
    assert told == {
        paper: {("Table", n + 1) for n in range(tables)}
        | {("Figure", n + 1) for n in range(figures)}
        for paper, (tables, figures) in PRINTED.items()
    }


def omnidata(*arguments: object) -> None:
    """The command line, in this process; it ends with code 0."""
    with pytest.raises(SystemExit) as done:
        main([str(argument) for argument in arguments])
    assert not done.value.code, arguments


@pytest.fixture(scope="module")
def places(few: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What the capital words of the page stand for."""
    home = tmp_path_factory.mktemp("papers")
    data = {"OMNIGUI": few}
    data |= {name.upper(): build(name, home) for name in (*MADE_OF, "omnibench", "osworld")}
    found = dict(data)
    for name, place in data.items():
        run = found[f"RUN-{name}"] = home / f"run-{name}"
        task = WORLDS[name.lower()][0]
        model = "baseline:majority" if name == "CRITICBENCH" else "baseline:oracle"
        omnidata("evaluate", task, place, "--model", model, "--out", run)
    voiced = found["RUN-VOICE"] = Path(shutil.copytree(found["RUN-OMNIGUI"], home / "voiced"))
    info = json.loads((voiced / "run.json").read_text())
    info["options"]["voice"] = "voices"
    (voiced / "run.json").write_text(json.dumps(info))
    log = found["LOG"] = write_lines(home / "log.jsonl", [{"task_id": "1", "passed": ["A"]}])
    walked, scored = home / "walked", home / "scored"
    omnidata("score", "osworld", data["OSWORLD"], "--out", scored)
    omnidata("score", "omnibench", data["OMNIBENCH"], "--actions", log, "--out", walked)
    omnidata("synth", "pool", home / "pool")
    return found | {"SCORED-OSWORLD": scored, "SCORED-OMNIBENCH": walked, "POOL": home / "pool"}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_runs(
    command: str, places: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {"OUT": tmp_path / "out", "OUT.svg": tmp_path / "out.svg", "MODEL": "baseline:oracle"}
    omnidata(*({**places, **words}.get(word, word) for word in shlex.split(command)[1:]))
    assert capsys.readouterr().out or any(tmp_path.iterdir())
