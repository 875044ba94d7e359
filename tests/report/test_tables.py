"""Tables have the papers' shapes, and in them the runs' numbers."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from omnidata.analysis.report import report
from omnidata.errors import UsageError
from omnidata.run.run_files import Run, read_run
from omnidata.table import PUBLISHED, CellUnit, Table, number
from omnidata.tasks import get_task
from tests.cli.running import omnidata
from tests.goldens.worlds import build
from tests.loaders.osworld import RUN, results
from tests.report.made import METRICS, totals, write_run, write_scores
from tests.trees import NO_SHARED, SHARED

# Gemini 3 Pro in the paper's Table 4, and the differences that it prints.
FULL = ((76.9, 57.9, 33.2, 42.2), (79.6, 65.2, 34.4, 45.0), (84.7, 69.0, 33.0, 44.4))
NO_AV = ((67.3, 48.9, 17.2, 34.5), (75.3, 59.0, 26.3, 41.0), (81.8, 68.9, 37.8, 48.8))
NO_VIDEO = ((69.1, 50.0, 16.0, 34.5), (74.6, 59.2, 25.2, 41.5), (81.3, 67.7, 35.1, 48.0))
PRINTED = """(-9.6) (-9.0) (-16.0) (-7.7) (-4.3) (-6.2) (-8.1) (-4.0) (-2.9) (-0.1) (+4.8) (+4.4)"""
LEVELS = ("critical", "supportive", "present")


def levels(*values: tuple[float, ...]) -> dict[str, dict[str, dict[str, object]]]:
    return {"dependency": {name: totals(each) for name, each in zip(LEVELS, values, strict=False)}}


def ablated(home: Path, profile: str) -> list[Run]:
    full, none = (80.0, 63.6, 33.4, 43.6), (74.2, 58.0, 26.1, 40.8)

    def run(used: str, **more: Any) -> Run:
        options = {"modalities": used} if used != "IAV" else {}
        return write_run(home / used, profile=profile, options=options, **more)

    return [
        run("I", overall=none, by=levels(*NO_AV)),
        run("IAV", overall=full, by=levels(*FULL)),
        run("IA", by=levels(*NO_VIDEO)),
    ]


@pytest.fixture
def ablation(tmp_path: Path) -> list[Run]:
    return ablated(tmp_path, "omnigui-paper")


@pytest.fixture
def released(tmp_path: Path) -> list[Run]:
    """By the rules that the published rows have."""
    return ablated(tmp_path / "released", "omnigui-release")


def table(name: str, *runs: Run, with_published: bool = False) -> Table:
    made = report(runs, with_published=with_published, by=("app",) if "app" in name else ())
    (found,) = [each for each in made.tables if each.name == name]
    return found


def test_the_ablation_has_the_papers_rows_columns_and_differences(ablation: list[Run]) -> None:
    made = table("modalities", *ablation)
    assert [row.labels for row in made.rows] == [
        ("openai:a", "Full (I+A+V)"),
        ("openai:a", "No Video (I+A)"),
        ("openai:a", "No AV (Img Only)"),
    ]
    assert [head.header for head in made.heads] == [
        "AV-Critical (100.0%)",
        "AV-Supportive (100.0%)",
        "AV-Present (100.0%)",
        "Overall (100.0%)",
    ]
    assert [column.header for column in made.columns] == [*METRICS] * 4
    changes = [cell.change for cell in made.rows[2].cells[:12]]
    shown = [f"({100 * change:+.1f})" for change in changes if change is not None]
    assert " ".join(shown) == PRINTED
    assert all(cell.change is None for cell in made.rows[0].cells)
    assert all(not row.source for each in report(ablation).tables for row in each.rows)
    part = [run for run in ablation if run.path.name != "IAV"]
    assert "modalities" not in [each.name for each in report(part).tables], "without the full input"


def test_the_worst_drop_and_the_best_gain_of_a_column_are_marked(ablation: list[Run]) -> None:
    no_video, no_av = table("modalities", *ablation).rows[1:]
    # In the paper, of AV-Critical TM falls most without both, SR without video.
    assert [cell.mark for cell in no_av.cells[:3]] == ["drop", "drop", ""]
    assert [cell.mark for cell in no_video.cells[:3]] == ["", "", "drop"]
    # Of AV-Present SR and GP rise, most without both; nothing rises in TM.
    assert [cell.mark for cell in no_av.cells[8:12]] == ["", "", "gain", "gain"]
    assert [cell.mark for cell in no_video.cells[8:12]] == ["drop", "drop", "", ""]


def test_voice_stands_beside_text_and_marks_go_across_levels(tmp_path: Path) -> None:
    voice = ((69.0, 52.1, 29.1, 39.4), (74.5, 59.9, 27.7, 40.3), (81.6, 67.3, 35.8, 46.4))
    runs = [
        write_run(tmp_path / "text", by=levels(*FULL)),
        write_run(
            tmp_path / "tts",
            options={"voice": "voices", "voice_form": "release"},
            by=levels(*voice),
        ),
    ]
    text, tts = table("voice", *runs).rows
    assert (text.labels[1], tts.labels[1]) == ("Text (Baseline)", "TTS Voice voices")
    marks = [cell.mark for cell in tts.cells]
    # Table 5 prints in bold: TM and EM of AV-Critical, SR and GP of AV-Supportive, and the gains.
    assert marks[:12] == ["drop", "drop", "", "", "", "", "drop", "drop", "", "", "gain", "gain"]


def test_rows_are_told_apart_by_everything_that_differs(tmp_path: Path) -> None:
    """By what means something beside the option's value alone, or else by their folders."""
    asked = {
        "text": {"voice": "", "voice_form": "release"},
        "paper": {"voice": "v", "voice_form": "paper"},
        "release": {"voice": "v", "voice_form": "release"},
        "again": {"voice": "v", "voice_form": "release"},
    }
    runs = [write_run(tmp_path / name, options=options) for name, options in asked.items()]
    found = [row.labels[1] for row in table("voice", *runs).rows]
    assert found == [
        "Text (Baseline)",
        "TTS Voice v, voice_form=paper",
        "TTS Voice v, voice_form=release, release",
        "TTS Voice v, voice_form=release, again",
    ]
    found = [row.labels[1] for row in table("voice", runs[0], runs[2]).rows]
    assert found == ["Text (Baseline)", "TTS Voice v"]


def test_runs_that_differ_in_two_things_are_not_compared(tmp_path: Path) -> None:
    one = write_run(tmp_path / "1")
    other = write_run(tmp_path / "2", options={"modalities": "I", "history": "none"})
    names = [each.name for each in report([one, other]).tables]
    assert "modalities" not in names
    assert "history" not in names


def test_the_main_table_is_shaped_as_table_3(tmp_path: Path) -> None:
    groups = {"temporal_reasoning": totals((4, 3, 2, 1)), "localization": totals((8, 7, 6, 5))}
    runs = [
        write_run(tmp_path / "a", by={"dimension": groups}),
        write_run(tmp_path / "b", model="openai:b", overall=(60.0, 30.0, 30.0, None)),
    ]
    made = table("main", *runs)
    assert [head.header for head in made.heads] == ["Overall", "Localization", "Temporal Reason."]
    one, other = made.rows
    shown = [cell.value for cell in one.cells]
    assert shown == pytest.approx(
        [0.5, 0.4, 0.3, 0.2, 0.08, 0.07, 0.06, 0.05, 0.04, 0.03, 0.02, 0.01]
    )
    assert [cell.value for cell in other.cells][4:] == [None] * 8
    assert [cell.mark for cell in one.cells[:4]] == ["", "best", "", ""]
    assert [cell.mark for cell in other.cells[:4]] == ["best", "", "", ""]


def test_published_rows_stand_beside_the_runs_and_are_labelled(tmp_path: Path) -> None:
    run = write_run(tmp_path / "a", profile="omnigui-release", overall=(1.0, 1.0, 1.0, 1.0))
    made = table("main", run, with_published=True)
    theirs = [row for row in made.rows if row.source]
    assert theirs[0].labels == ("Gemini 3 Pro",)
    assert [cell.value for cell in theirs[0].cells] == [0.8, 0.636, 0.334, 0.436]
    assert {row.source for row in theirs} == {"OmniGUI, Table 3", "the release's leaderboard"}
    assert made.rows[-1].source == ""
    assert all(cell.mark == "" for row in theirs for cell in row.cells)
    for text in (report([run], with_published=True).text(form) for form in ("terminal", "md")):
        assert f"† OmniGUI, Table 3: {PUBLISHED}." in text
        assert "Gemini 3 Pro †" in text
        assert "Published on 2,579 steps; the runs here on 100." in text


@pytest.mark.parametrize("name", ["main", "modalities", "by-app"])
def test_a_published_prefix_is_not_passed_off_as_the_ratio(
    name: str, ablation: list[Run], released: list[Run]
) -> None:
    def shown(runs: list[Run]) -> Table:
        for run in runs:
            run.results["by"]["app"] = {"amap": totals((1, 2, 3, 4))}
        return table(name, *(runs if name == "modalities" else runs[1:2]), with_published=True)

    def is_published(made: Table) -> bool:
        return any(record["source"] for record in made.records())

    assert not is_published(shown(ablation))
    assert any("Fix: " in n and "--profile omnigui-release" in n for n in shown(ablation).notes)
    assert is_published(shown(released))
    assert not any("Not shown" in note for note in shown(released).notes)


def test_rows_of_other_steps_are_told_and_none_is_the_best(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / "a", overall=(1.0, 2.0, 3.0, 4.0)),
        write_run(tmp_path / "b", limit=5),
    ]
    for name in ("main", "overall", "by-app"):
        for run in runs:
            run.results["by"]["app"] = {"TED": totals((1, 2, 3, 4))}
        made = table(name, *runs)
        assert any("different steps" in note for note in made.notes)
        assert not any(cell.mark for row in made.rows for cell in row.cells)


@pytest.mark.parametrize("task", ["omnigui", "groundui", "idm-single", "idm-multiple"])
def test_the_best_published_scores_are_among_the_rows(task: str) -> None:
    asking = get_task(task)
    found = asking.benchmark.paper.published().best(asking.options)
    assert found
    rows = asking.benchmark.paper.published().of("main")
    for metric, top in found.metrics.items():
        named = [row.values["", metric] for row in rows if row.model == top.model]
        assert top.score in named, metric


@pytest.mark.skipif(not SHARED.is_dir(), reason=NO_SHARED)
def test_published_figures_are_those_of_the_papers_tables() -> None:
    tables = json.loads((SHARED / "tables" / "omnigui.json").read_text())
    names = {"AV-Critical": "critical", "AV-Supportive": "supportive", "AV-Present": "present"}
    rows = get_task("omnigui").benchmark.paper.published().of("main")
    for printed, source in (("table3", "OmniGUI, Table 3"), ("readme_leaderboard", "the release")):
        own = {row.model: row for row in rows if row.source.startswith(source)}
        assert own.keys() == tables[printed].keys()
        for model, groups in tables[printed].items():
            found = groups if printed == "table3" else {"overall": groups}
            for group, values in found.items():
                if isinstance(values, dict):
                    key = "" if group == "overall" else group
                    for metric, value in values.items():
                        assert own[model].values[key, metric] == round(value / 100, 6)
    for printed, option in (("table4", "modalities"), ("table5", "voice")):
        own_rows = get_task("omnigui").benchmark.paper.published().of(option)
        for own_row, theirs in zip(own_rows, tables[printed]["rows"], strict=True):
            for group, key in {**names, "Overall": ""}.items():
                for metric in METRICS:
                    value = round(theirs[group][metric] / 100, 6)
                    assert own_row.values[key, metric] == value


def test_apps_are_ranked_by_exact_match_with_their_sizes(tmp_path: Path) -> None:
    apps = {"TED": totals((1, 2, 3, 4)), "X": totals((1, 9, 3, 4), steps=7, episodes=2)}
    run = write_run(tmp_path / "a", by={"app": apps})
    made = table("by-app", run)
    assert [row.group for row in made.rows] == ["X", "TED"]
    assert [column.header for column in made.columns] == [*METRICS, "Ep.", "Steps"]
    assert [cell.value for cell in made.rows[0].cells][4:] == [2, 7]


def test_published_apps_are_found_under_other_spellings(tmp_path: Path) -> None:
    by = {"app": {"amap": totals((1, 2, 3, 4))}}
    run = write_run(tmp_path / "a", profile="omnigui-release", by=by)
    (made,) = [t for t in report([run], with_published=True).tables if t.name == "by-app"]
    assert [head.header for head in made.heads] == ["openai:a", "Gemini 3 Pro"]
    assert [cell.value for cell in made.rows[0].cells[-2:]] == [0.797, 0.7]
    records = list(made.records())
    assert records[-1]["source"] == f"{PUBLISHED}: OmniGUI, Figure 5"
    assert records[-1]["profile"] == ""


def test_causes_are_shares_of_what_is_wrong_in_each_group(tmp_path: Path) -> None:
    by = levels((70, 60, 50, 40), (80, 80, 80, 80), (100, 100, 100, 100))
    causes = {
        "overall": {"waited_too_long": 3, "near_miss": 1},
        "by": {
            "dependency": {
                "critical": {"waited_too_long": 2, "near_miss": 1},
                "supportive": {"waited_too_long": 1},
                "present": {},
            }
        },
        "by_target": {"NONE": {"near_miss": 1}, "TAP": {"waited_too_long": 3}},
    }
    run = write_run(tmp_path / "run", by=by)
    results = json.loads((run.path / "results.json").read_text())
    (run.path / "results.json").write_text(json.dumps(results | {"causes": causes}))
    made = report([read_run(run.path)], by=["dependency"], errors=True)
    assert {
        table.name: [(*row.labels, *(cell.value for cell in row.cells)) for row in table.rows]
        for table in made.tables
    } == {
        "errors": [("openai:a", 4, 0.75, 0.25)],
        "errors-by-dependency": [
            ("critical", "openai:a", 3, 2 / 3, 1 / 3),
            ("supportive", "openai:a", 1, 1, 0),
            ("present", "openai:a", 0, None, None),
        ],
        "errors-by-target": [("NONE", "openai:a", 1, 0, 1), ("TAP", "openai:a", 3, 1, 0)],
    }
    assert [column.header for column in made.tables[0].columns] == [
        "Wrong", "waited too long", "near miss",
    ]  # fmt: skip
    with pytest.raises(UsageError, match="no groups by"):
        report([read_run(run.path)], by=["app"], errors=True)


def test_profiles_never_share_a_table_and_each_title_names_its_own(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "a"), write_run(tmp_path / "b", profile="omnigui-release")]
    made = report(runs)
    assert made.warnings
    for each in made.tables:
        assert len(each.rows) == 1
        assert each.profile in each.title
    for form in ("md", "latex"):
        assert "do not compare their numbers" in made.text(form)


def test_csv_has_unrounded_fractions_with_what_they_are(ablation: list[Run]) -> None:
    made = report(ablation)
    lines = list(csv.DictReader(io.StringIO(made.text("csv"))))
    assert len(lines) == sum(len(each.rows) * len(each.columns) for each in made.tables)
    (found,) = [
        line
        for line in lines
        if (line["table"], line["group"], line["metric"]) == ("modalities", "critical", "TM")
        and line["run"].endswith("/I")
    ]
    assert float(found["value"]) == 67.3 / 100
    assert float(found["change"]) == 67.3 / 100 - 76.9 / 100
    assert (float(found["low"]), float(found["high"])) == (67.3 / 200, 67.3 / 100)


def test_markdown_tables_have_as_many_cells_as_headers(released: list[Run]) -> None:
    for block in report(released, with_published=True).text("md").split("### ")[1:]:
        pipes = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in pipes}) == 1
        assert len(pipes) > 2


def test_hostile_names_stay_text_in_every_format(tmp_path: Path) -> None:
    name = "a|b<script>\\input{x}%_#&$^~[c]\n### no"
    run = write_run(tmp_path / "a", model=name, by={"app": {name: totals((1, 2, 3, 4))}})
    made = report([run])
    md = made.text("md")
    assert "<script>" not in md
    assert "\n### no" not in md
    latex = made.text("latex")
    assert r"\input" not in latex
    assert r"\textbackslash{}input\{x\}\%\_\#\&\$" in latex
    assert "\n### no" not in made.text("terminal")
    row = next(csv.DictReader(io.StringIO(made.text("csv"))))
    assert row["row"] == name
    starred = write_run(tmp_path / "b", model="*a")
    assert "\n{}*a & " in report([starred]).text("latex"), "no part of the line break before it"


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "\r=1", "\n=1"])
def test_no_name_is_a_formula_in_csv(tmp_path: Path, name: str) -> None:
    run = write_run(tmp_path / "a", model=name)
    row = next(csv.DictReader(io.StringIO(report([run]).text("csv"), newline="")))
    assert row["row"] == "'" + name.replace("\r", "\\r")
    assert float(row["value"]) == 0.5


def test_latex_has_booktabs_balanced_braces_and_the_papers_marks(ablation: list[Run]) -> None:
    text = report(ablation).text("latex")
    for word in (r"\toprule", r"\midrule", r"\bottomrule", r"\cmidrule(lr){3-6}"):
        assert word in text
    assert r"\textcolor{red!75!black}{($-$9.6)}" in text
    assert r"34.9" not in text  # shares are of these data, not of the paper's
    plain = text.replace("\\{", "").replace("\\}", "")
    assert plain.count("{") == plain.count("}")
    spec = re.findall(r"\\begin\{tabular\}\{@\{\}(\w+)@\{\}\}", text)
    bodies = re.findall(r"\\midrule\n(.*?)\\bottomrule", text, re.DOTALL)
    for columns, body in zip(spec, bodies, strict=True):
        for line in body.splitlines():
            if line.endswith(r"\\"):
                assert line.replace(r"\&", "").count("&") == len(columns) - 1


def test_a_header_with_many_columns_stands_above_each_part_of_them(tmp_path: Path) -> None:
    apps = {f"Application {number}": totals((1, 2, 3, 4)) for number in range(4)}
    run = write_run(tmp_path / "a", by={"app": apps})
    made = report([run], with_published=True)
    narrow, whole = (made.text("terminal", width=width) for width in (40, None))
    assert max(map(len, narrow.splitlines())) <= 40
    assert max(map(len, whole.splitlines())) > 100
    assert {*whole.replace("-", "").split()} <= {*narrow.replace("-", "").split()}


def test_a_wide_letter_takes_two_columns(tmp_path: Path) -> None:
    apps = {"微信": totals((1, 2, 3, 4)), "TED": totals((1, 2, 3, 4))}
    run = write_run(tmp_path / "a", by={"app": apps})
    lines = report([run]).text("terminal").splitlines()
    (chinese,) = [line for line in lines if line.startswith("微信")]
    (english,) = [line for line in lines if line.startswith("TED")]
    assert len(english) == len(chinese) + 2


def test_agentstudio_has_its_groups_under_each_metric(tmp_path: Path) -> None:
    own = {"accuracy": 0.125, "edit_distance": 2.25}
    by = {"source": {"aitw": {"accuracy": 0.08, "edit_distance": 2.1, "ci95": {}}}}
    run = write_scores(tmp_path / "run", "idm-multiple", "agentstudio-paper", own, by, steps=345)
    made = table("main", run, with_published=True)
    assert [head.header for head in made.heads] == ["accuracy", "edit_distance"]
    assert [column.header for column in made.columns] == ["AITW", "Total"] * 2
    claude = next(row for row in made.rows if row.labels[0] == "Claude 3.5 Sonnet")
    assert [cell.value for cell in claude.cells] == [0.08, 0.125, 2.1, 2.3]
    assert [cell.value for cell in made.rows[-1].cells] == [0.08, 0.125, 2.1, 2.25]
    text = report([run]).text("terminal")
    assert re.search(r"run\s+8\.0\s+12\.5\s+2\.10\s+2\.25", text)


def test_omnibench_has_consistency_for_all_tasks_and_coverage_by_capability(tmp_path: Path) -> None:
    def of(cr: float, lc: float | None) -> dict[str, object]:
        return {"CR": cr, "LC": lc, "ci95": {}, "tasks": 3}

    by = {
        "app": {},
        "eligible": {"Long-Sequence Reasoning": of(0.2, 0.1), "Parallel Planning": of(0.3, None)},
        "dependency": {"easy": of(0.9, 0.8), "hard": of(0.4, 0.3)},
    }
    overall = {"CR": 0.5, "LC": 0.25}
    run = write_scores(tmp_path / "run", "omnibench", "omnibench-paper", overall, by, tasks=3)
    made = {each.name: each for each in report([run], with_published=True).tables}
    main = made["main"]
    assert [head.header for head in main.heads] == ["Overall", "PP", "LSR"]
    assert [column.metric for column in main.columns] == ["CR", "LC", "CR", "CR"]
    human, *_, own = main.rows
    assert human.labels == ("Human",)
    assert [cell.value for cell in human.cells] == [0.801, 0.928, 0.801, 0.795]
    assert [cell.value for cell in own.cells] == [0.5, 0.25, 0.3, 0.2]
    levels = made["dependency"]
    assert [head.header for head in levels.heads] == ["Overall", "Easy", "Hard"]
    assert [cell.value for cell in levels.rows[-1].cells] == [0.5, 0.25, 0.9, 0.4]
    assert {cell.change for cell in levels.rows[-1].cells} == {
        None
    }  # the level between is not there


def test_published_rollouts_are_no_rows_of_runs_that_answer_steps(tmp_path: Path) -> None:
    data, out = build("osworld", tmp_path), tmp_path / "run"
    omnidata("evaluate", "osworld", data, "--model", "baseline:oracle", "--out", out)
    shown = report([read_run(out)], with_published=True, by=["domain"])
    (made,) = [table for table in shown.tables if table.name == "by-domain"]
    (note,) = [each for each in made.notes if "Not shown" in each]
    assert "which judge rollouts instead of steps" in note
    assert "Fix" not in note
    assert not any(record["source"] for record in made.records())


def test_humans_stand_beside_rollouts_as_osworlds_paper_prints_them(tmp_path: Path) -> None:
    tree = results(tmp_path / "tree", RUN, {"os": ["1.0", "0.0"]})
    omnidata("score", "osworld", tree, "--out", tmp_path / "run")
    run = read_run(tmp_path / "run")
    made = {each.name: each for each in report([run], with_published=True, by=["domain"]).tables}
    rows = {row.labels[0]: row for row in made["main"].rows}
    places = {(c.group, c.metric): n for n, c in enumerate(made["main"].columns)}
    human, gpt = rows["Human performance"], rows["GPT-4V (screenshot)"]
    assert human.source == "OSWorld, Table 5"
    assert human.cells[places["", "SR_all"]].value == 0.7236
    assert gpt.cells[places["Workflow", "SR_all"]].value == 0.0604
    assert human.cells[places["", "SR_finished"]].value is None, "the paper's is over all tasks"
    (head,) = (head for head in made["by-domain"].heads if head.header == "Human performance")
    assert head.columns[0].source == "OSWorld, Table 13"


def test_every_model_of_agentstudios_longer_table_has_a_row() -> None:
    rows = {row.model: row for row in get_task("groundui").benchmark.paper.published().of("main")}
    assert len(rows) == 13
    assert rows["SeeClick"].source == "AgentStudio, Table 4 and Table 8"
    assert rows["Gemini 1.0 Pro"].values["", "accuracy"] == 0.018


@pytest.mark.parametrize(
    ("task", "table", "model", "key", "printed"),
    [
        ("omnibench", "sensitivity", "Human", ("", "sensitivity"), "1.95"),
        ("omnibench", "sensitivity", "Aguvis", ("", "sensitivity"), "12.9"),
        ("androidcontrol", "main", "InternVL-2-4B", ("", "EM"), "80.10"),
        ("gui-odyssey", "main", "Qwen2.5-VL-7B", ("", "EM"), "40.90"),
        ("osworld", "main", "Mixtral-8x7B (a11y_tree)", ("OS", "SR_all"), "12.50"),
        ("osworld", "main", "GPT-4o-mini (screenshot)", ("", "SR_all"), "3.77"),
        ("omnigui", "main", "Gemini 3 Pro", ("", "TM"), "80.0"),
        ("groundui", "main", "SeeClick", ("", "accuracy"), "61.1"),
        ("idm-multiple", "main", "Claude 3.5 Sonnet", ("", "edit_distance"), "2.3"),
    ],
)
def test_published_figures_keep_the_papers_decimals(
    task: str, table: str, model: str, key: tuple[str, str], printed: str
) -> None:
    rows = get_task(task).benchmark.paper.published().of(table)
    row = next(row for row in rows if row.model == model)
    unit: CellUnit = "number" if key[1] == "edit_distance" else "share"
    assert number(row.values[key], unit, digits=row.digits[key]) == printed


RULES = [
    ("androidcontrol", "os-atlas-ac", "agentcpm-ac-fixed"),
    ("gui-odyssey", "agentcpm", "odyssey-ams"),
    ("groundui", "agentstudio-paper", "agentstudio-release"),
    ("cagui-grounding", "cagui-grounding", "cagui-grounding-fixed"),
]


@pytest.mark.parametrize(("task", "own", "other"), RULES)
def test_published_rows_stand_beside_profiles_whose_rules_they_have(
    task: str, own: str, other: str, tmp_path: Path
) -> None:
    def beside(profile: str) -> Table:
        values = dict.fromkeys(get_task(task).profiles[profile].columns, 0.5)
        run = write_scores(tmp_path / profile, task, profile, values)
        return table("main", run, with_published=True)

    assert any(row.source for row in beside(own).rows)
    apart = beside(other)
    assert not any(row.source for row in apart.rows)
    assert any(f"--profile {own}" in note for note in apart.notes)
