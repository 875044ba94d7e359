"""`omnidata report` from run folders to tables, figures and a card."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from omnidata.errors import PlatformError
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from tests.cli.running import here, omnidata
from tests.conftest import Once


@pytest.fixture(scope="session")
def runs(once: Once, sample: Path) -> Path:
    """Four runs of the sample: two models, and one of them in three modes."""

    def write(out: Path) -> None:
        source = get_task("omnigui").load(sample, check_media=False)
        for name, model, options in (
            ("oracle", "baseline:oracle", {}),
            ("center", "baseline:center", {}),
            ("center-i", "baseline:center", {"modalities": "I"}),
            ("center-predicted", "baseline:center", {"history": "predicted"}),
        ):
            evaluate(get_task("omnigui", options), source, model, out / name)

    return once("report-runs", write)


def test_the_tables_follow_from_the_runs(runs: Path) -> None:
    done = here("report", *sorted(runs.iterdir()))
    for title in (
        "Main results: omnigui by omnigui-paper (%)",
        "Dependency levels",
        "Modality ablation across dependency levels",
        "History of gold and of predicted actions",
        "How errors compound",
        "Overall, with 95 % intervals",
    ):
        assert title in done.stdout
    assert "as published" not in done.stdout
    assert done.stderr.startswith("TM: type match, EM: exact match")
    assert len(done.stderr.splitlines()) == 1


def test_a_process_of_its_own_prints_json_with_results_own_numbers(runs: Path) -> None:
    done = omnidata("report", runs / "center", "--json")
    made = json.loads(done.stdout)
    results = json.loads((runs / "center" / "results.json").read_text())
    main = made["tables"][0]
    columns = [column for head in main["heads"] for column in head["columns"]]
    for column, cell in zip(columns, main["rows"][0]["cells"], strict=True):
        of = results["by"]["dimension"][column["group"]] if column["group"] else results["overall"]
        assert cell["value"] == of[column["metric"]]
    assert made["warnings"] == []
    assert "by-app" in [table["name"] for table in made["tables"]]


def test_different_profiles_and_data_are_warned_of(
    runs: Path, sample: Path, tmp_path: Path
) -> None:
    scored = tmp_path / "release"
    lines = runs / "center" / "predictions.jsonl"
    release = ("--profile", "omnigui-release")
    here("score", "omnigui", sample, lines, "--out", scored, *release)
    source = get_task("omnigui").load(sample / "Chirp", check_media=False)
    evaluate(get_task("omnigui"), source, "baseline:oracle", tmp_path / "part")
    done = here("report", runs / "center", scored, tmp_path / "part", "--format", "md")
    assert "2 profiles" in done.stderr
    assert "different data" in done.stderr
    assert "name no data" in done.stderr or "other steps" in done.stderr
    assert done.stdout.startswith("> omnigui: 2 profiles")
    assert "by omnigui-release" in done.stdout


def test_figures_and_a_card_are_written(runs: Path, tmp_path: Path) -> None:
    done = here("report",
        runs / "center", "--figures", tmp_path / "figures", "--card", tmp_path / "README.md",
        "--hub-dataset", "omnigui=lab/OmniGUI", "--format", "csv",
    )  # fmt: skip
    assert done.stdout.startswith("table,task,profile,row")
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {
        f"omnigui-{name}{suffix}"
        for name in ("radar-dimension", "radar-dependency", "bars-app")
        for suffix in (".png", ".svg")
    }
    assert (tmp_path / ".eval_results" / "omnigui.yaml").is_file()
    assert f"card: {tmp_path / 'README.md'}" in done.stderr


def test_without_matplotlib_the_remedy_is_named(runs: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        f"sys.argv = ['omnidata', 'report', {str(runs / 'center')!r}, "
        f"'--figures', {str(tmp_path)!r}]\n"
        "from omnidata.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == PlatformError.exit_code == 2
    assert "pip install 'omnidata[plots]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere"], "no such folder"),
        (["{run}", "{run}"], "named twice"),
        (["{run}", "--by", "planet"], "no groups by"),
        (["{run}", "--hub-dataset", "omnigui=a/b"], "is for a card"),
        (["{run}", "--card", "{run}/run.json"], "there is a file already"),
        (["{run}", "--figures", "{run}/run.json"], "cannot be made"),
    ],
)
def test_what_cannot_be_done_is_refused_before_any_table(
    runs: Path, arguments: list[str], said: str
) -> None:
    done = here("report", *(each.format(run=runs / "center") for each in arguments), code=2)
    assert said in done.stderr
    assert done.stdout == ""


def test_scores_without_a_run_say_at_once_what_they_need(
    runs: Path, sample: Path, tmp_path: Path
) -> None:
    answers, scored = tmp_path / "answers.jsonl", tmp_path / "scored"
    answers.write_bytes((runs / "center" / "predictions.jsonl").read_bytes())
    here("score", "omnigui", sample, answers, "--out", scored)
    told = here("report", scored, "--html", tmp_path / "pages", code=2)
    assert not told.stdout and "name it with --data" in told.stderr
    done = here("score", "omnigui", sample, scored, code=2)
    assert "name the file of predictions" in done.stderr
