"""`docs/papers.md`: each table and figure of the papers has a command that runs, or a reason."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from tests.cli.running import here
from tests.goldens.worlds import WORLDS, build
from tests.trees import write_lines

PAGE = Path(__file__).resolve().parents[1] / "docs" / "papers.md"
PRINTED = {
    "OmniGUI": (7, 5),
    "AgentStudio": (15, 22),
    "OmniBench": (11, 11),
    "Reviews of OmniBench": (13, 0),
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
        here("evaluate", task, place, "--model", model, "--out", run)
    voiced = found["RUN-VOICE"] = Path(shutil.copytree(found["RUN-OMNIGUI"], home / "voiced"))
    info = json.loads((voiced / "run.json").read_text())
    info["options"]["voice"] = "voices"
    (voiced / "run.json").write_text(json.dumps(info))
    for name in ("OMNIGUI", "VOICE"):
        run = shutil.copytree(found[f"RUN-{name}"], home / f"released-{name}")
        rules = ("--profile", "omnigui-release", "--out", run)
        here("score", "omnigui", few, run, *rules)
        found[f"RELEASED-{name}"] = Path(run)
    log = found["LOG"] = write_lines(home / "log.jsonl", [{"task_id": "1", "passed": ["A"]}])
    walked, scored = home / "walked", home / "scored"
    here("score", "osworld", data["OSWORLD"], "--out", scored)
    here("score", "omnibench", data["OMNIBENCH"], "--actions", log, "--out", walked)
    here("synth", "pool", home / "pool")
    control = home / "control"
    low = ("--model", "baseline:oracle", "-T", "level=low", "--out", control)
    here("evaluate", "androidcontrol", data["ANDROIDCONTROL"], *low)
    rules = ("--profile", "os-atlas-ac", "--out", control)
    here("score", "androidcontrol", data["ANDROIDCONTROL"], control, *rules)
    found |= {"SCORED-OSWORLD": scored, "SCORED-OMNIBENCH": walked}
    return found | {"SCORED-ANDROIDCONTROL": control, "POOL": home / "pool"}


def output(command: str, places: dict[str, Path], out: Path) -> str:
    words = {"OUT": out / "out", "OUT.svg": out / "out.svg", "MODEL": "baseline:oracle"}
    argv = ({**places, **words}.get(word, word) for word in shlex.split(command)[1:])
    return here(*argv).stdout


OMNIGUI_3 = (r"OmniGUI, Table 3: as published", r"Gemini 3 Pro †\s+80\.0\s+63\.6\s+33\.4\s+43\.6")
CONTENT: Mapping[str, Sequence[str]] = {
    "ablate omnibench": (r"^EM \(%\)", r"intent=off", r"intent=on", r"out/runs/intent=on/"),
    "ablate omnigui": (r"^GP \(%\)", r"text-IAV", r"text-I\b", r"out/runs/text-I/"),
    "convert omnigui": (r"out/README.md", r"28 steps"),
    "evaluate androidcontrol": (r"overall", r"out/predictions.jsonl"),
    "info groundui": (r"platform: web", r"source: "),
    "info omnibench OMNIBENCH$": (r"^Applications", r"^Categories", r"words per instruction"),
    "info omnibench OMNIBENCH osworld": (r"Datasets side by side", r"OmniBench", r"OSWorld"),
    "info omnigui OMNIGUI$": (r"as in Table 7", r"as in Figure 2", r"TAP +\d+ +[\d.]+ %"),
    "info omnigui OMNIGUI --format latex": (r"Chirp & en & 3 & 10",),
    "info omnigui OMNIGUI --plot": (r"out.svg",),
    "info omnigui OMNIGUI groundui": (r"Datasets side by side", r"OmniGUI", r"GroundUI"),
    "info osworld OSWORLD$": (r"^Tasks, and how their rollouts ended", r"domain: "),
    "info osworld OSWORLD omnigui": (r"out.svg",),
    "report RUN-ANDROIDCONTROL --figures": (r"out/androidcontrol-bars-split.svg",),
    "report RUN-CRITICBENCH --published": (
        r"AgentStudio, Table 10: as",
        r"Gemini 1.5 Pro †.* 72\.5 ",
    ),
    "report RUN-GROUNDUI --by element-size": (
        r"by element size",
        r"AgentStudio, Table 4 and Table 8",
    ),
    "report RUN-GROUNDUI --html": (r"out/steps/0.html",),
    "report RUN-GROUNDUI --published": (
        r"AgentStudio, Table 4 and Table 8: as",
        r"SeeClick †\s+64\.3\s+44\.3\s+73\.7\s+61\.1",
    ),
    "report RUN-IDM-MULTIPLE": (
        r"AgentStudio, Table 5 and Table 9: as",
        r"Claude 3.5 Sonnet †.* 12\.5 .* 2\.3$",
    ),
    "report RUN-IDM-SINGLE": (r"AgentStudio, Table 5: as", r"GPT-4o †\s+70\.0\s+60\.0"),
    "report RUN-OMNIBENCH --errors": (r"Why answers are wrong: omnibench",),
    "report RUN-OMNIBENCH --html": (r"out/steps/0.html",),
    "report RUN-OMNIBENCH --published": (r"Main results: omnibench",),
    "report RUN-OMNIGUI$": (r"Dependency levels: omnigui", r"Results by app: omnigui"),
    "report RUN-OMNIGUI --by app": (r"out/omnigui-bars-app.svg",),
    "report RUN-OMNIGUI --errors": (r"Why answers are wrong, by dependency",),
    "report RUN-OMNIGUI --figures": (r"out/omnigui-radar-dimension.svg",),
    "report RUN-OMNIGUI --html": (r"out/steps/0.html",),
    "report RELEASED-OMNIGUI --published": OMNIGUI_3,
    "report RELEASED-OMNIGUI RELEASED-VOICE": (
        r"OmniGUI, Table 5: as",
        r"text and as voice",
        r"Voice",
    ),
    "report RUN-OSWORLD --html": (r"out/steps/0.html", r"out/media/0.png"),
    "report SCORED-ANDROIDCONTROL": (
        r"OmniBench, Table 8: as published",
        r"InternVL-2-4B †\s+(level=low\s+)?90\.94\s+80\.10",
    ),
    "report SCORED-OMNIBENCH$": (r"Capabilities that Table 11 admits", r"Complexity of branch"),
    "report SCORED-OMNIBENCH --published": (
        r"OmniBench, Table 4: as",
        r"OmniBench, Table 5: as",
        r"GPT-4o †\s+38\.7\s+49\.0",
    ),
    "report SCORED-OSWORLD$": (r"How attempts ended", r"Failure modes", r"within so many turns"),
    "report SCORED-OSWORLD --by": (r"Results by feasibility", r"Results by workflow"),
    "report SCORED-OSWORLD --figures": (r"out/osworld-turns.svg",),
    "report SCORED-OSWORLD --published": (
        r"OSWorld, Table 5: as",
        r"OSWorld, Table 12: as",
        r"OSWorld, Table 13: as",
        r"Human performance †.* 72\.36",
        r"GPT-4o-mini \(screenshot\) .* 3\.77",
    ),
    "score omnibench": (r"\bCR\b.*\bLC\b.*tasks",),
    "synth compose": (r"out/compose.json", r"out/tasks.jsonl"),
    "synth criticbench": (r"out/images/",),
    "synth idm": (r"out/images/",),
    "synth recaption": (r"out.run/",),
}
"""What a command that begins so prints, or the files that it makes."""


def test_every_command_has_its_content() -> None:
    known = {
        command: [said for said in CONTENT if re.match(said, command[9:])] for command in COMMANDS
    }
    assert all(known.values()), [command for command, said in known.items() if not said]
    assert {said for own in known.values() for said in own} == CONTENT.keys()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_makes_what_is_said(
    command: str, places: dict[str, Path], tmp_path: Path
) -> None:
    printed = output(command, places, tmp_path)
    files = [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")]
    found = "\n".join([printed, *files])
    for begin, wanted in CONTENT.items():
        if re.match(begin, command.removeprefix("omnidata ")):
            for said in wanted:
                assert re.search(said, found, re.MULTILINE), (said, found)


def test_what_is_said_to_print_rows_of_the_paper_prints_them() -> None:
    """Of each row of the page with --published the tables are named in the test above."""
    for paper, items, told in rows():
        for command in re.findall(r"`omnidata ([^`]+ --published[^`]*)`", told):
            wanted = next(said for begin, said in CONTENT.items() if re.match(begin, command))
            sources = " ".join(wanted)
            named = {number for kind, number in numbers(items) if kind == "Table"}
            listed = {int(number) for number in re.findall(r"Table (\d+)", sources)}
            elsewhere = ("no such table", "that the data name", "the paper's")
            assert listed & named or any(each in told for each in elsewhere), (paper, items)
