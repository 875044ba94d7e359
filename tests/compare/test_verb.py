"""`omnidata compare`, as a person meets it."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from omnidata.types import LoadedDataset, Step
from tests.cli.running import here, omnidata
from tests.cli.test_cli import in_a_terminal
from tests.compare.making import Says, data, loaded, run
from tests.conftest import Once
from tests.trees import row, write_rows


def says(step: Step) -> Says:
    return "right" if step.step_index else "elsewhere"


@pytest.fixture(scope="module")
def pair(once: Once) -> tuple[Path, Path]:
    def write(folder: Path) -> None:
        source = loaded(data(folder / "data", episodes=24))
        run(folder / "a", source, lambda step: "right")
        run(folder / "b", source, says)

    folder = once("compared-by-verb", write)
    place = json.loads((folder / "a" / "run.json").read_text())["data"]
    for name in "ab":  # the folder has moved to its place
        info = json.loads((folder / name / "run.json").read_text())
        info["data"] = place.replace("compared-by-verb.unfinished/", "")
        (folder / name / "run.json").write_text(json.dumps(info))
    return folder / "a", folder / "b"


def test_all_steps_come_first_and_a_line_names_the_breakdowns(pair: tuple[Path, Path]) -> None:
    done = omnidata("compare", *pair)
    first = next(line for line in done.stdout.splitlines() if line.strip().startswith("TM"))
    assert first.split()[:5] == ["TM", "(%)", "100.0", "100.0", "0.0"]
    assert "critical" not in done.stdout
    assert "EM: 24 steps right only in A, 0 only in B; McNemar p <0.001" in done.stdout
    assert "right->wrong: 24" in done.stdout and "TED/E001/0" in done.stdout
    assert "wrong->right: 0" in done.stdout
    for words in ("10000 paired bootstrap resamples", "McNemar's exact test", "B - A"):
        assert words in " ".join(done.stderr.split())
    assert "breakdowns: --by dimension, --by dependency, --by app, --by language" in done.stderr


def test_a_breakdown_has_a_table_per_metric_and_leaves_rows_of_zeros_out(tmp_path: Path) -> None:
    rows = [row(f"E{n}", app=f"App{n % 2}") for n in range(4)]
    source: LoadedDataset = loaded(write_rows(tmp_path / "steps.json", rows))
    wrong = run(tmp_path / "a", source, lambda step: "elsewhere")
    right = run(
        tmp_path / "b", source, lambda step: "right" if step.tags["app"] == "App1" else "elsewhere"
    )
    done = here("compare", wrong, right, "--by", "app")
    table = done.stdout.partition("EM by app (%)")[2].partition("SR by app")[0]
    assert "App1" in table and "App0" not in table
    assert "1 row left out, 0 in both runs: App0" in done.stderr
    assert "q: p corrected" in done.stderr and "--by app" not in done.stderr
    same = here("compare", wrong, wrong)
    assert "wrong" in same.stdout and "GP (%)" not in same.stdout
    assert "3 rows left out, 0 in both runs: EM (%), SR (%), GP (%)" in same.stderr


def test_tags_and_pages_that_are_not_there_are_refused(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    done = omnidata("compare", *pair, "--pages-a", tmp_path / "gone.html", code=2)
    assert "does not exist" in done.stderr
    done = omnidata("compare", *pair, "--by", "colour", code=2)
    assert "--by colour: there is no such tag" in done.stderr and "dependency" in done.stderr
    assert (
        "--by is for two runs" in omnidata("compare", *pair, pair[0], "--by", "app", code=2).stderr
    )


@pytest.mark.parametrize("columns", [60, 80])
def test_tables_fit_a_terminal(pair: tuple[Path, Path], columns: int) -> None:
    shown = in_a_terminal(columns, "compare", *pair, "--by", "dimension")
    assert "localization" in shown
    assert max(map(len, shown.splitlines())) <= columns


def test_causes_are_shares_of_all_steps_and_chance_works_on_groups(pair: tuple[Path, Path]) -> None:
    causes = json.loads(here("compare", *pair, "--json").stdout)["causes"]
    (found,) = causes.values()
    assert list(causes) == ["wrong_element"]  # the steps say where: nothing is right elsewhere
    assert (found["a"], found["b"], found["difference"]) == (0, 0.5, 0.5)
    assert (found["episodes"], found["ci95"]) == (24, [0.5, 0.5]) and found["q"] < 0.001
    lines = [*csv.DictReader(io.StringIO(here("compare", *pair, "--format", "csv").stdout))]
    (line,) = (line for line in lines if line["axis"] == "cause")
    assert (line["group"], line["b"], line["steps"]) == ("wrong_element", "0.5", "48")
    flips = [(line["metric"], line["only_a_right"], line["only_b_right"]) for line in lines[:2]]
    assert flips == [("TM", "", ""), ("EM", "24", "0")]


def test_scores_of_earlier_versions_have_no_causes(pair: tuple[Path, Path], tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copytree(pair[0], old)
    results = json.loads((old / "results.json").read_text())
    del results["causes"]
    (old / "results.json").write_text(json.dumps(results))
    done = here("compare", old, pair[1], "--json")
    assert json.loads(done.stdout)["causes"] == {}
    assert any(
        "run A was scored without causes" in one for one in json.loads(done.stdout)["warnings"]
    )
    for runs in ((old,), (pair[0], old)):
        refused = omnidata("report", *runs, "--errors", code=2)
        assert f"omnidata score omnigui DATA {old} --out {old}" in refused.stderr


def test_json_has_all_and_is_the_same_again(pair: tuple[Path, Path]) -> None:
    found = json.loads(here("compare", *pair, "--json").stdout)
    assert found == json.loads(here("compare", *pair, "--format", "json").stdout)
    assert found["correction"]["method"] == "Benjamini-Hochberg"
    first = found["slices"][0]
    assert (first["group"], first["steps"]) == ("overall", 48)
    assert first["metrics"]["EM"]["difference"] == -0.5
    assert first["mcnemar"] == {"a_only": 24, "b_only": 0, "p": 2 / 2**24, "q": None}
    low, high = found["slices"][1]["metrics"]["EM"]["ci95"]
    assert low <= -0.5 <= high
    assert len(found["flips"]) == 24
    other = json.loads(here("compare", *pair, "--json", "--seed", "7").stdout)
    assert other["seed"] == 7 and other["flips"] == found["flips"]


def test_flips_are_linked_to_the_pages_of_both_reports(
    pair: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file has all pages, a folder one file for each; pages are numbered in the data's order."""
    monkeypatch.chdir(tmp_path)
    Path("my reports").mkdir()
    Path("my reports/a.html").touch()
    Path("b").mkdir()
    reports = ("--pages-a", "my reports/a.html", "--pages-b", "b")
    shown = here("compare", *pair, *reports).stdout.splitlines()
    (line,) = [line for line in shown if "E001/0" in line]
    assert line.split() == ["TED/E001/0", "my%20reports/a.html#step=2", "b/steps/2.html"]
    text = here("compare", *pair, *reports, "--format", "md").stdout
    assert "- TED/E001/0 <my%20reports/a.html#step=2> <b/steps/2.html>" in text


def test_the_links_lead_to_the_steps_own_pages(pair: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    omnidata("report", pair[1], "--html", tmp_path / "pages")
    shown = here("compare", *pair, "--pages-b", tmp_path / "pages" / "index.html").stdout
    links = [line.split() for line in shown.splitlines() if "/E0" in line]
    assert len(links) == 24
    for sample_id, page in (links[0], links[-1]):
        assert f"<title>{sample_id} " in Path(page).read_text()


def test_markdown_obeys_no_name_of_the_data(tmp_path: Path) -> None:
    names = ("<script>x</script>", "a|b", "*bold* [link](http://x)")
    rows = [row(f"E{n}", app=name) for n, name in enumerate(names)]
    source: LoadedDataset = loaded(write_rows(tmp_path / "steps.json", rows))
    runs = [run(tmp_path / name, source, lambda step: "right") for name in "ab"]
    text = here("compare", *runs, "--format", "md", "--by", "app").stdout
    assert "<script" not in text.replace("\\<", "")
    assert "| \\<script\\>x\\</script\\> |" in text
    assert "a\\|b" in text
    assert "\\*bold\\* \\[link\\](http://x)" in text
