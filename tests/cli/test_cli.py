"""The command line as a person or a script meets it: real processes, exit codes, two streams."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from omnidata.tasks.omnigui.files import table7
from omnidata.tasks.omnigui.load import load
from tests.cli.running import OMNIDATA, Started, as_json, here, omnidata
from tests.data.converting import small
from tests.full import in_gate
from tests.trees import DIMENSIONS, row, write_app, write_lines, write_rows


def test_verbs_are_listed_in_groups_one_whole_line_each() -> None:
    text = omnidata("--help").stdout
    lines = text.splitlines()
    for verb in ("demo", "info", "view", "evaluate", "report", "synth"):
        assert sum(line.startswith(f"  {verb} ") for line in lines) == 1
    assert {"Start:", "Data:", "Models:", "Results:", "Training:"} <= {*lines}
    assert "..." not in text.partition("Start:")[2]
    assert max(map(len, lines)) <= 80
    assert "Did you mean 'evaluate'" in omnidata("evalute", code=2).stderr


def in_a_terminal(columns: int, *arguments: str | Path, notes: bool = False) -> str:
    """What a command prints on a terminal of that width, with or without its notes."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    hidden = ("COLUMNS", "NO_COLOR", "FORCE_COLOR")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    with Started(*arguments, terminal=theirs, notes=notes, env=env | {"TERM": "dumb"}) as command:
        os.close(theirs)
        said = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while chunk := os.read(ours, 65536):
                said += chunk
        assert command.wait() == 0
    os.close(ours)
    return said.decode().replace("\r\n", "\n")


def test_a_table_keeps_to_the_terminal_and_is_whole_in_a_wide_one(few: Path) -> None:
    whole = omnidata("info", "omnigui", few)
    assert "loc: localization, sem: semantic understanding" in whole.stderr
    assert max(map(len, whole.stdout.splitlines())) > 80
    cut = in_a_terminal(80, "info", "omnigui", few)
    tables = [line.rstrip() for line in cut.splitlines() if "rows skipped" not in line]
    assert max(map(len, tables)) <= 80
    assert {*whole.stdout.replace("─", "").split()} - {*cut.split()} <= {"episodes"}
    assert "ep." in cut


@pytest.mark.parametrize("columns", in_gate([80, 60], 0, "a look at every library"))
def test_doctors_table_keeps_to_the_terminal_and_cuts_nothing(columns: int) -> None:
    whole = omnidata("doctor").stdout
    cut = in_a_terminal(columns, "doctor")
    # What mends a package is to be copied, and is never broken up.
    table = [line for line in cut.splitlines() if line.startswith(" ")]
    assert max(map(len, table)) <= columns
    assert "…" not in cut
    words = {word for line in whole.splitlines() if line.startswith(" ") for word in line.split()}
    short = {word for word in words if len(word) < 20 and "─" not in word}
    assert len(short) > 20
    assert columns < 80 or short <= {*cut.split()}


def test_without_a_terminal_tables_keep_to_columns_and_lose_no_number(
    few: Path, tmp_path: Path
) -> None:
    runs = [tmp_path / name for name in ("random", "center")]
    for run in runs:
        made = ("evaluate", "omnigui", few, "--model", f"baseline:{run.name}", "--out", run)
        wide, narrow = (omnidata(*made, columns=columns).stdout for columns in (200, 80))
        assert max(map(len, narrow.splitlines())) <= 80
        assert {*wide.replace(" - ", "–").split()} - {*narrow.split()} <= {"episodes", *"─"} | {
            word for word in wide.split() if set(word) == {"─"}
        }
    wide, narrow = (
        omnidata("report", *runs, "--errors", columns=columns).stdout for columns in (500, 80)
    )
    assert max(map(len, narrow.splitlines())) <= 80
    assert {*wide.replace("-", "").split()} <= {*narrow.replace("-", "").split()}


def test_a_missing_interval_is_a_dash_and_the_reason_is_said(sample: Path, tmp_path: Path) -> None:
    """The first steps are of two episodes that belong together."""
    asked = ("omnigui", sample, "--model", "baseline:center", "--limit", "4")
    done = omnidata("evaluate", *asked, "--out", tmp_path / "run")
    found = json.loads((tmp_path / "run" / "results.json").read_text("utf-8"))
    assert (found["overall"]["TM"], found["ci95"]["TM"]) == (0.25, None)
    assert found["ci95_method"]["TM"] == "none: one group"
    assert done.stdout.partition("95 % interval")[2].split()[:2] == ["-", "0.0"]
    assert "95 % intervals of TM: none, because all episodes form one group" in done.stderr
    for form in ("terminal", "md", "latex", "csv"):
        told = omnidata("report", tmp_path / "run", "--format", form).stdout
        assert "25.0" in told or "0.25" in told
        assert "None" not in told
    pages, card = tmp_path / "pages.html", tmp_path / "card.md"
    omnidata("report", tmp_path / "run", "--html", pages, "--card", card)
    assert "25.0" in pages.read_text("utf-8")
    assert card.read_text("utf-8").count("ci95") == 3  # SR, EM and GP


def test_the_tables_of_a_report_keep_to_the_terminal_too(few: Path, tmp_path: Path) -> None:
    made = tmp_path / "a-run"
    rules = ("--profile", "omnigui-release")
    omnidata("evaluate", "omnigui", few, "--model", "baseline:oracle", *rules, "--out", made)
    whole = omnidata("report", made, "--published").stdout
    assert max(map(len, whole.splitlines())) > 100
    cut = in_a_terminal(80, "report", made, "--published", notes=True)
    assert max(map(len, cut.splitlines())) <= 80
    assert cut.splitlines()[-1].startswith("TM: type match, EM: exact match")
    assert {*whole.replace("-", "").split()} <= {*cut.replace("-", "").split()}


def test_a_demo_makes_data_and_two_runs_and_a_second_one_uses_them(
    tmp_path: Path, sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    def write(out: Path, **_: Any) -> Path:
        return small(out, sample, "C001", "C007")

    monkeypatch.setattr("omnidata.synth.sample.make_sample", write)

    demo = ("demo", "--out", tmp_path / "demo")
    done = here(*demo, "--json")
    results = as_json(done)
    assert results["baseline:oracle"]["overall"]["EM"] == 1.0
    assert results["baseline:center"]["overall"]["EM"] < 0.5
    assert str(tmp_path / "demo" / "runs") in done.stderr
    runs = sorted((tmp_path / "demo" / "runs").iterdir())
    assert len(runs) == 2
    assert all((run / "results.json").is_file() for run in runs)
    assert list((tmp_path / "demo" / "data").glob("*/localization.jsonl"))
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "demo" / "data").rglob("*")}
    done = here(*demo)
    assert {path: path.stat().st_mtime_ns for path in made} == made
    assert "oracle EM" in done.stdout
    assert "TM: type match, EM: exact match" in done.stderr
    assert "another --out" in here(*demo, "--seed", "1", code=2).stderr
    (tmp_path / "file").write_text("")
    assert "Not a directory" in here("demo", "--out", tmp_path / "file", code=2).stderr


def test_evaluate_prints_a_table_and_leaves_a_run_folder(few: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    done = omnidata("evaluate", "omnigui", few, "--model", "baseline:majority", "--out", run)
    assert done.stdout.splitlines()[0].startswith("omnigui by omnigui-paper (%)")
    assert "TM: type match, EM: exact match" in done.stderr
    for name in ("TM", "EM", "SR", "GP", "overall", "95 % interval", "dimension: localization"):
        assert name in done.stdout
    assert "…" not in done.stdout  # wider than the terminal, but never cut
    assert f"run folder: {run}" in done.stderr
    assert {path.name for path in run.iterdir()} >= {"run.json", "predictions.jsonl"}


def test_score_reads_a_run_with_any_profile(few: Path, tmp_path: Path) -> None:
    run, release = tmp_path / "run", tmp_path / "release"
    chosen = ("--where", "language=en", "--limit", "9", "--json")
    model = ("--model", "baseline:random", "--out", run)
    made = as_json(omnidata("evaluate", "omnigui", few, *model, *chosen))
    assert made["outcomes"] == {"ok": 9}
    assert as_json(omnidata("score", "omnigui", few, run, "--json")) == made
    rules = ("--profile", "omnigui-release", "--json", "--out", release)
    released = as_json(omnidata("score", "omnigui", few, run, *rules))
    assert released["profile"] == "omnigui-release"
    assert json.loads((release / "results.json").read_text()) == released
    on_all = omnidata("score", "omnigui", few, run / "predictions.jsonl", "--json", code=1)
    assert as_json(on_all)["outcomes"]["missing"] == len(load(few).steps) - 9


def test_a_run_on_other_data_is_not_scored(few: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    omnidata("evaluate", "omnigui", few, "--model", "baseline:center", "--out", run)
    other = write_rows(tmp_path / "steps.json", [row()])
    assert "other annotations" in omnidata("score", "omnigui", other, run, code=2).stderr


def test_control_characters_of_the_data_never_reach_the_terminal(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "steps.json", [row("\x1b[31m", app="\x1b[2J\ud800", step=3)])
    done = omnidata("info", data, code=1)
    run = omnidata(
        "evaluate", "omnigui", data, "--model", "baseline:center", "--out", tmp_path / "run"
    )
    for text in (done.stdout, done.stderr, run.stdout, run.stderr):
        assert "\x1b" not in text
    assert r"\x1b[2J\ud800" in run.stdout


def test_the_counts_are_compared_with_table7(tmp_path: Path) -> None:
    """A dataset with the published counts passes; one with an episode less does not."""
    levels = []
    for each in table7()["apps"]:
        app = tmp_path / each["app"].replace("/", "_")
        dimensions = [d for d, key in DIMENSIONS.items() for _ in range(each[key])]
        dependency = [d for d in ("critical", "supportive", "present") for _ in range(each[d[:3]])]
        rows = [row(f"E{n}", 0) for n in range(each["episodes"])]
        rows += [row("E0", step) for step in range(1, each["steps"] - each["episodes"] + 1)]
        write_app(app, rows)
        lines: dict[str, list[dict[str, Any]]] = {dimension: [] for dimension in dimensions}
        for number, (dimension, level) in enumerate(zip(dimensions, dependency, strict=True)):
            own = {"ID": f"E{number}", "app": each["app"]}
            told = {"instruction_zh": "点", "instruction_en": "tap", "language": None}
            lines[dimension].append(own | told)
            levels.append(own | {"dependency": level})
        (app / "localization.jsonl").unlink()
        for dimension, found in lines.items():
            write_lines(app / f"{dimension}.jsonl", found)
    write_lines(tmp_path / "dependency.jsonl", levels)
    done = omnidata("info", tmp_path, "--expect", "table7")
    assert "all counts agree with Table 7" in done.stdout
    write_lines(tmp_path / "dependency.jsonl", levels[1:])
    done = omnidata("info", tmp_path, "--expect", "table7", code=1)
    assert "Bilibili: cri is 9, published 10" in done.stdout
    assert "total: cri is 210, published 211" in done.stdout


def test_strict_evaluation_stops_at_a_finding(few: Path, tmp_path: Path) -> None:
    data = shutil.copytree(few, tmp_path / "data")
    min(data.glob("*/media/*/1.wav")).unlink()
    model = ["--model", "baseline:center", "--out", str(tmp_path / "run")]
    arguments = ["evaluate", "omnigui", str(data), *model]
    assert "media-broken" in omnidata(*arguments).stderr
    assert "--strict" in omnidata(*arguments, "--strict", code=2).stderr


def test_scores_go_into_their_own_run_under_every_path_alone(few: Path, tmp_path: Path) -> None:
    run, other = tmp_path / "run", tmp_path / "other.jsonl"
    omnidata("evaluate", "omnigui", few, "--model", "baseline:center", "--out", run)
    before = (run / "results.json").read_bytes()
    write_lines(other, [{"sample_id": load(few).steps[0].sample_id, "output": "?"}])
    for place in (run, few):
        done = omnidata("score", "omnigui", few, other, "--out", place, code=2)
        assert "holds other files" in done.stderr
    assert (run / "results.json").read_bytes() == before
    omnidata("score", "omnigui", few, run, "--out", run)
    for _ in "twice":
        omnidata("score", "omnigui", few, other, "--out", tmp_path / "scores", code=1)
    (tmp_path / "link").symlink_to(run)
    omnidata("score", "omnigui", few, tmp_path / "link", "--out", run)
    omnidata("score", "omnigui", few, run / "predictions.jsonl", "--out", tmp_path / "link")
    (run / "other.jsonl").write_text("")
    omnidata("score", "omnigui", few, run / "other.jsonl", "--out", run, code=2)
    omnidata("score", "omnigui", few, run, "--out", tmp_path, code=2)


def test_an_app_is_chosen_under_any_of_its_spellings(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "steps.json", [row(app="googletranslate"), row("B", app="ted")])
    model = ("--model", "baseline:oracle", "--out", tmp_path / "run")
    done = omnidata("evaluate", "omnigui", data, *model, "--where", "app=GTrans", "--json")
    assert as_json(done)["counts"]["steps"] == 1


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Makes `omnidata cache` raise an error."""

    def plant(error: BaseException) -> None:
        def fail() -> NoReturn:
            raise error

        monkeypatch.setattr("omnidata.loaders.steps_cache.entries", fail)

    return plant


@pytest.mark.parametrize("debug", ["", "1"])
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
        (KeyError("a"), "KeyError: 'a'"),
        (MemoryError(), "MemoryError"),
        (RecursionError("too deep\nby far"), "RecursionError: too deep"),
        (OSError(5, "Input/output error", "a"), "OSError: [Errno 5] Input/output error"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates"), "UnicodeEncodeError: "),
        (ValueError("\x1b[2J"), r"ValueError: \x1b[2J"),
        (ExceptionGroup("two", [ValueError("a")]), "ExceptionGroup: two"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_that_nobody_foresaw_is_one_line(
    failing: Callable[[BaseException], None],
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    said: str,
    debug: str,
) -> None:
    failing(error)
    monkeypatch.setenv("OMNIDATA_DEBUG", debug)
    *trace, line = here("cache", code=1).stderr.splitlines()
    assert line.startswith(f"omnidata cache failed: {said}")
    assert "OMNIDATA_DEBUG=1" in line
    assert any("Traceback" in each for each in trace) == bool(debug)
    assert debug or not trace


def test_a_full_disk_is_no_bug_of_ours() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*OMNIDATA, "info"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert "omnidata info failed: No space left on device. Fix: free space" in done.stderr
    assert "bug" not in done.stderr


def test_ctrl_c_while_the_command_line_is_imported_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGINT)")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "omnidata", "--version"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder without files")
def test_a_folder_that_cannot_be_written_is_not_called_busy(few: Path) -> None:
    done = here("convert", "omnigui", few, "/proc/out", code=2)
    assert "/proc" in done.stderr and "another process" not in done.stderr
    done = here("info", "omnigui", few, "--plot", "/proc/figure.png", code=2)
    assert "no figure can be written there" in done.stderr and not done.stdout


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (BrokenPipeError(32, "Broken pipe"), 1)]
)
def test_an_end_from_outside_says_nothing_of_a_fault(
    failing: Callable[[BaseException], None], error: BaseException, code: int
) -> None:
    failing(error)
    assert "failed" not in here("cache", code=code).stderr
