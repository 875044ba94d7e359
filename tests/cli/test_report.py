"""`omnidata report` from run folders to tables, figures and a card."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from omnidata.errors import PlatformError
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from tests.cli.running import here, omnidata
from tests.conftest import Once


@pytest.fixture(scope="session")
def run(once: Once, few: Path) -> Path:

    def write(out: Path) -> None:
        source = get_task("omnigui").load(few, check_media=False)
        evaluate(get_task("omnigui"), source, "baseline:center", out)

    return once("report-run", write)


def test_json_has_the_results_own_numbers(run: Path) -> None:
    done = omnidata("report", run, "--json")
    made = json.loads(done.stdout)
    results = json.loads((run / "results.json").read_text())
    main = made["tables"][0]
    columns = [column for head in main["heads"] for column in head["columns"]]
    for column, cell in zip(columns, main["rows"][0]["cells"], strict=True):
        of = results["by"]["dimension"][column["group"]] if column["group"] else results["overall"]
        assert cell["value"] == of[column["metric"]]
    assert made["warnings"] == []
    assert "by-app" in [table["name"] for table in made["tables"]]


def test_figures_and_a_card_are_written(run: Path, tmp_path: Path) -> None:
    done = here("report",
        run, "--figures", tmp_path / "figures", "--card", tmp_path / "README.md",
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


def test_without_matplotlib_the_remedy_is_named(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = here("report", run, "--figures", tmp_path, code=PlatformError.exit_code)
    assert "pip install 'omnidata[plots]'" in done.stderr


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
    run: Path, arguments: list[str], said: str
) -> None:
    done = here("report", *(each.format(run=run) for each in arguments), code=2)
    assert said in done.stderr
    assert done.stdout == ""


def test_scores_without_a_run_say_at_once_what_they_need(
    run: Path, few: Path, tmp_path: Path
) -> None:
    answers, scored = tmp_path / "answers.jsonl", tmp_path / "scored"
    answers.write_bytes((run / "predictions.jsonl").read_bytes())
    here("score", "omnigui", few, answers, "--out", scored)
    told = here("report", scored, "--html", tmp_path / "pages", code=2)
    assert not told.stdout and "name it with --data" in told.stderr
    done = here("score", "omnigui", few, scored, code=2)
    assert "name the file of predictions" in done.stderr
