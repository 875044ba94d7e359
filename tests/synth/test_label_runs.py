"""`omnidata synth label` as work that is interrupted, limited, repeated, and passed on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnidata.actions import Action
from omnidata.data.validate import validate
from omnidata.tasks import get_task
from omnidata.tasks.omnigui.load import load
from tests.adapters.local_models import checkpoint
from tests.adapters.servers import Fault
from tests.cli.running import as_json, here
from tests.conftest import Once
from tests.synth.making import digests
from tests.synth.recordings import (
    END,
    HIT,
    TAP,
    answering,
    ask,
    by_first,
    command,
    recording,
    rows,
    says,
)
from tests.trees import read_lines

BACK = Action("back")


def test_a_step_that_failed_is_asked_about_again_and_mended(tmp_path: Path) -> None:
    bare, out = recording(tmp_path / "bare", [None, None, None]), tmp_path / "out"
    broken = [True]

    def rule(seen: list[str]) -> Fault | str:
        if broken[0]:
            return by_first({1: Fault(status=500)}, says(8))(seen)
        return says(0, HIT)

    with answering(rule) as server:
        told = ask("label", server, bare, out, code=1)
        assert told["steps"]["unlabelled"] == {"api_error": 1, "no-screenshot-after": 1}
        assert "result_action_type" not in rows(out)[1]
        assert rows(out)[1]["idm"]["answer"] == ""
        broken[0] = False
        asked = server.count
        assert ask("label", server, bare, out)["steps"]["labelled"] == 2
        assert server.count == asked + 1
    first, second, _ = (step.action for step in load(out).steps)
    assert first == BACK
    assert second is not None
    assert second.label == "TAP"


def test_the_same_command_asks_nothing_again_and_writes_nothing(tmp_path: Path) -> None:
    bare, out = recording(tmp_path / "bare", [None, None]), tmp_path / "out"
    with answering(lambda seen: says(8)) as server:
        told = ask("label", server, bare, out)
        made = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
        assert ask("label", server, bare, out) == told
        assert server.count == 1
    assert made == {path: path.stat().st_mtime_ns for path in out.rglob("*")}


def test_a_run_without_money_writes_nothing_until_it_is_whole(tmp_path: Path) -> None:
    bare, out = recording(tmp_path / "bare", [None] * 6), tmp_path / "out"
    with answering(lambda seen: says(8)) as server:
        done = here(*command("label", server, bare, out, "--max-tokens", "250"), code=1)
        assert "nothing is written" in done.stderr
        assert not out.exists()
        assert 0 < server.count < 5
        ask("label", server, bare, out)
        assert server.count == 5
        ask("label", server, bare, tmp_path / "whole")
    assert digests(out) == digests(tmp_path / "whole")


def test_other_settings_are_refused_and_corrected_labels_are_not_replaced(tmp_path: Path) -> None:
    bare, out = recording(tmp_path / "bare", [None, None]), tmp_path / "out"
    with answering(lambda seen: says(8)) as server:
        ask("label", server, bare, out)
        before = digests(out)
        done = here(*command("label", server, bare, out, "-T", "clip=off"), code=2)
        assert "different settings" in done.stderr
        assert server.count == 1
        assert digests(out) == before
        path = out / "App/media/E0/E0.json"
        text = path.read_text()
        path.write_text(text.replace('"result_action_type": 8', '"result_action_type": 9'))
        done = here(*command("label", server, bare, out), code=2)
    assert "there is something here already" in done.stderr
    assert rows(out)[0]["result_action_type"] == 9


def test_a_tree_whose_answers_are_gone_is_left_alone(tmp_path: Path) -> None:
    import shutil

    bare, out = recording(tmp_path / "bare", [None, None]), tmp_path / "out"
    here("synth", "label", bare, out, "--model", "baseline:center")
    shutil.rmtree(tmp_path / "out.run")
    done = here("synth", "label", bare, out, "--model", "baseline:center", code=2)
    assert "out.run, which it was made from, is missing" in done.stderr


def test_a_place_that_holds_something_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    bare, out = recording(tmp_path / "bare", [None, None]), tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("keep")
    with answering(lambda seen: says(8)) as server:
        here(*command("label", server, bare, out), code=2)
        here(*command("label", server, bare, bare), code=2)
        assert server.count == 0
    assert (out / "mine.txt").read_text() == "keep"


def test_what_a_kill_left_of_the_writing_is_removed_and_nothing_else(tmp_path: Path) -> None:
    import shutil

    bare, out = recording(tmp_path / "bare", [None, None]), tmp_path / "out"
    here("synth", "label", bare, out, "--model", "baseline:center")
    made = digests(out)
    half = tmp_path / ".out.unfinished"
    shutil.copytree(out / "App", half / "App")
    (half / ".plan.json").write_text("{}")
    moved = tmp_path / ".out.before"
    shutil.copytree(out, moved)
    shutil.rmtree(moved / "App" / "media")
    shutil.rmtree(out)
    (tmp_path / ".out.before").rename(tmp_path / "elsewhere")
    here("synth", "label", bare, out, "--model", "baseline:center")
    assert digests(out) == made
    assert not half.exists()
    (tmp_path / "elsewhere").rename(moved)
    here("synth", "label", bare, out, "--model", "baseline:center")
    assert not moved.exists()
    half.mkdir()
    (half / "mine.txt").write_text("keep")
    done = here("synth", "label", bare, out, "--model", "baseline:center", code=2)
    assert "there is something here already" in done.stderr
    assert (half / "mine.txt").read_text() == "keep"


def test_answers_out_of_the_cache_label_as_well(tmp_path: Path) -> None:
    bare, cache = recording(tmp_path / "bare", [None, None]), tmp_path / "answers.db"
    with answering(lambda seen: says(8)) as server:
        for name in ("one", "two"):
            ask("label", server, bare, tmp_path / name, "--cache", cache)
        assert server.count == 1
    assert rows(tmp_path / "one") == rows(tmp_path / "two")


def test_provenance_survives_loading_converting_and_exporting(tmp_path: Path) -> None:
    bare, out = recording(tmp_path / "bare", *[[None, None, None]] * 6), tmp_path / "out"
    with answering(lambda seen: says(0, HIT)) as server:
        ask("label", server, bare, out)
    said = {"model": "openai:tiny", "answer": says(0, HIT), "outcome": "ok", "used": True}
    assert load(out).steps[0].source["idm"] == said
    here("convert", "omnigui", out, tmp_path / "stored")
    stored = load(tmp_path / "stored").steps
    assert [step.source.get("idm") for step in stored if step.action] == [said] * 12
    again = as_json(
        here(
            *("synth", "label", tmp_path / "stored", tmp_path / "again", "--json"),
            *("--model", "baseline:always-wait"),
        )
    )
    assert again["steps"]["labelled"] == 12
    for data in (out, tmp_path / "stored"):
        train = ("--format", "swift", "--workers", "1", "--overwrite")
        here("export", "omnigui", data, tmp_path / "train", *train)
        report = json.loads((tmp_path / "train" / "export.json").read_text("utf-8"))
        left = [f["where"] for f in report["findings"] if f["code"] == "target-absent"]
        assert left == [f"App/E{number}/2" for number in range(6)]
        told = read_lines(tmp_path / "train" / "models.jsonl")
        ids = [f"App/E{number}/{step}" for number in range(6) for step in range(2)]
        assert told == [{"sample_id": name, "idm": said} for name in ids]
    lines = [line for path in (tmp_path / "train").glob("t*.jsonl") for line in read_lines(path)]
    answers = {line["messages"][-1]["content"] for line in lines}
    assert answers == {'{"action_type":0,"coordinate":[400,400]}'}


def test_a_recording_that_ends_with_a_look_is_no_mistake_and_a_broken_target_is_one(
    tmp_path: Path,
) -> None:
    data = recording(tmp_path / "data (1)", [TAP, BACK, None])
    here("info", "omnigui", data, code=0)
    assert validate(load(data), workers=0).errors == 0
    export = ("export", "omnigui", data, tmp_path / "train", "--split", "train=1")
    here(*export, "--format", "swift", "--workers", "1", code=0)
    assert not (tmp_path / "train" / "models.jsonl").exists()
    path = data / "App/media/E0/E0.json"
    path.write_text(
        path.read_text().replace('"result_action_type": 8', '"result_action_type": null')
    )
    here("info", "omnigui", data, code=1)
    told = here(*export, "--format", "swift", "--workers", "1", "--overwrite", code=1).stderr
    assert "error [target-missing] App/E0/1" in told
    assert "warning [target-absent] App/E0/2" in told


def test_answers_of_any_text_survive_loading_converting_and_exporting(tmp_path: Path) -> None:
    bare, out = recording(tmp_path / "bare", [None, None]), tmp_path / "out"
    said = "<image> \ud800\x1b[31m\x00 <script>" + says(0, HIT)
    with answering(lambda seen: said) as server:
        ask("label", server, bare, out)
    here("convert", "omnigui", out, tmp_path / "stored")
    train = ("--format", "swift", "--workers", "1", "--split", "train=1")
    here("export", "omnigui", tmp_path / "stored", tmp_path / "train", *train)
    (told,) = read_lines(tmp_path / "train" / "models.jsonl")
    assert told["idm"]["answer"] == said
    assert len(read_lines(tmp_path / "train" / "train.jsonl")) == 1


def test_the_questions_are_a_task_that_evaluate_runs(few: Path, tmp_path: Path) -> None:
    results = as_json(
        here(
            *("evaluate", "omnigui-idm", few, "--model", "baseline:oracle", "--json"),
            *("--out", tmp_path / "run", "--limit", "12"),
        )
    )
    assert results["overall"]["EM"] == 1.0
    assert results["counts"]["steps"] == 12


def test_the_oracle_says_nothing_where_nobody_knows(tmp_path: Path) -> None:
    mixed = recording(tmp_path / "mixed", [TAP, None, BACK, END])
    told = as_json(
        here(
            *("synth", "label", mixed, tmp_path / "out", "--model", "baseline:oracle", "--json"),
            code=1,
        )
    )
    assert told["precision"]["exact"]["share"] == 1.0
    assert told["steps"]["unlabelled"] == {"unparsed": 1}


def test_a_step_is_asked_about_in_the_same_words_with_and_without_its_target(
    tmp_path: Path,
) -> None:
    from dataclasses import replace

    task = get_task("omnigui-idm")
    steps = task.load(recording(tmp_path / "data", [TAP, BACK, TAP, END])).steps
    for step in steps:
        blank = replace(step, action=None, history=(), source={})
        assert task.conversation(step) == task.conversation(blank)
    assert len({task.conversation(step) for step in steps}) == len(steps) == 3


def test_a_tiny_local_model_is_asked_in_the_same_way(once: Once, tmp_path: Path) -> None:
    bare = recording(tmp_path / "bare", [None, None, None])
    told = as_json(
        here(
            *("synth", "label", bare, tmp_path / "out", "--json"),
            *("--model", f"hf:{checkpoint(once, 'qwen2.5-omni')}", "-M", "max_new_tokens=3"),
            code=1,  # it says nothing that could be read
        )
    )
    assert told["steps"]["labelled"] == 0
    assert told["steps"]["asked"] == 2
    lines = read_lines(tmp_path / "out.run" / "predictions.jsonl")
    assert [[part["role"] for part in line["receipt"]["parts"]] for line in lines] == [
        ["screenshot", "video", "after"]
    ] * 2


def test_the_pages_python_runs(
    sample: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    import re

    page = Path(__file__).parents[2] / "docs" / "label.md"
    if not page.is_file():
        pytest.skip("needs a checkout: the sdist has no docs")
    (tmp_path / "DATA").symlink_to(sample)
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.S)
    exec(block, {})
    assert "'type': {'hits': " in capsys.readouterr().out
    assert load(tmp_path / "labelled").steps


def test_every_option_of_the_questions_is_documented() -> None:
    page = Path(__file__).parents[2] / "docs" / "label.md"
    if not page.is_file():
        pytest.skip("needs a checkout: the sdist has no docs")
    text = page.read_text("utf-8")
    for name in ("omnigui-idm", "omnigui-critic"):
        for option, values in get_task(name).allowed.items():
            assert f"{option}=" in text
            assert all(value in text for value in values)
