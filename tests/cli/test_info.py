"""`omnidata info` of every benchmark, and what the verbs say of another benchmark's data."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from omnidata.errors import DataError
from omnidata.loaders.subsets import canonical
from omnidata.registry import benchmarks
from omnidata.tasks import get_task
from tests.cli.running import as_json, omnidata
from tests.loaders.agentstudio import REAL, ground, single, trajectory, write
from tests.loaders.every import rows_of
from tests.trees import NO_SHARED, row, write_app, write_rows

TRAJECTORIES = "criticbench or idm-multiple"
RIGHT: Mapping[str, str] = {
    "omnigui": "omnigui",
    "groundui": "groundui",
    "idm-single": "idm-single",
    "idm-multiple": TRAJECTORIES,
    "criticbench": TRAJECTORIES,
    "omnibench": "omnibench",
    "osworld": "osworld",
    "aitw": "aitw",
    "androidcontrol": "androidcontrol",
    "agentnet": "agentnet",
    "screenspot": "screenspot",
    "gui-odyssey": "gui-odyssey",
    "cagui-grounding": "cagui-grounding",
    "androidworld": "androidworld",
    "mind2web": "mind2web",
    "online-mind2web": "online-mind2web",
    "osworld-g": "osworld-g",
    "step-critic": "step-critic",
    "trajectory-critic": "trajectory-critic",
}
real = pytest.mark.skipif(not REAL["groundui"].is_file(), reason=NO_SHARED)


@pytest.mark.parametrize("task", benchmarks())
def test_info_counts_the_data_of_every_benchmark(tmp_path: Path, task: str) -> None:
    data = rows_of(task, tmp_path)
    found = as_json(omnidata("info", task, data, "--json"))
    assert (found["task"], found["steps"], found["episodes"], found["skipped"]) == (task, 2, 2, 0)
    assert found["counts"]["total"].items() >= {("episodes", 2), ("steps", 2)}
    done = omnidata("info", task, data)
    assert "2 episodes, 2 steps, 0 rows skipped" in done.stdout
    if task in ("aitw", "androidcontrol", "mind2web"):  # whose files hold the screenshots
        assert not found["findings"]
        return
    assert [finding["code"] for finding in found["findings"]] == ["media-absent"]
    assert "0 errors, 1 warning\n  1 media-absent" in done.stdout
    assert "media-absent" in done.stderr
    assert ("without a usable target" in done.stdout) == (task == "omnigui")


def test_episodes_are_counted_by_every_tag(tmp_path: Path) -> None:
    rows = [ground(), ground(image="b.png"), ground(image="c.png", platform="mobile", source="x")]
    data = write(tmp_path / "rows.jsonl", *rows)
    counts = as_json(omnidata("info", data, "--json"))["counts"]
    assert counts["tags"]["platform"] == {
        "web": {"episodes": 2, "steps": 2},
        "mobile": {"episodes": 1, "steps": 1},
    }
    assert counts["tags"].keys() == {"platform", "source", "subset"}
    for groups in counts["tags"].values():
        assert sum(group["steps"] for group in groups.values()) == 3
    (line,) = (t for t in omnidata("info", data).stdout.splitlines() if "platform: web" in t)
    assert line.split() == ["platform:", "web", "2", "66.7", "%", "2", "66.7", "%"]


def test_an_error_in_the_rows_is_exit_code_1_and_with_strict_2(tmp_path: Path) -> None:
    data = write(tmp_path / "rows.jsonl", ground(), ground(bbox=None), single())
    done = omnidata("info", "groundui", data, code=1)
    assert "1 step, 2 rows skipped, 2 errors" in done.stdout
    assert "rows/1" in done.stderr
    assert "--strict" in omnidata("info", "groundui", data, "--strict", code=2).stderr


@pytest.mark.parametrize("task", ["omnigui", "groundui", "idm-single", "omnibench"])
def test_the_benchmark_is_found_by_the_rows(tmp_path: Path, task: str) -> None:
    data = rows_of(task, tmp_path / "data")
    told = omnidata("info", task, data, "--json").stdout
    assert omnidata("info", data, "--json").stdout == told
    assert as_json(omnidata("info", data.parent, "--json"))["task"] == task


@pytest.mark.parametrize("task", benchmarks())
def test_a_repository_says_what_it_holds(tmp_path: Path, task: str) -> None:
    out = tmp_path / "out"
    made = omnidata("convert", task, rows_of(task, tmp_path / "data"), out, "--json")
    found = as_json(omnidata("info", out, "--json"))
    assert (found["task"], found["steps"]) == (task, 2)
    if task != "omnigui":
        tags = {value for groups in found["counts"]["tags"].values() for value in groups}
        tags -= {"unlabelled"}
        subsets = as_json(made)["subsets"]
        assert sorted(map(canonical, subsets)) == sorted({"all", *map(canonical, tags)})


@pytest.mark.parametrize("task", benchmarks())
def test_a_task_is_explained_without_data(
    task: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    told, found = omnidata("info", task).stdout, as_json(omnidata("info", task, "--json"))
    known = get_task(task)
    assert found["options"] == {name: list(values) for name, values in known.allowed.items()}
    assert found["profiles"][0] == found["default_profile"] == known.default_profile
    assert found["data"] and found["media"] != {} and found["tags"] and found["subsets"][0] == "all"
    for name, (default, *_) in known.allowed.items():
        (line,) = (line for line in told.splitlines() if f"-T {name}=" in line)
        assert f"(default: {default or 'none'})" in line
    for name in ("media_until", "history_window", "history_screenshots", "patches", "dialect"):
        assert told.count(f"-T {name}=") == 1
    assert f"{known.default_profile} (default)" in told
    assert all(f"baseline:{name}" in told for name in known.baselines)
    page = Path(__file__).resolve().parents[2] / found["docs"]
    assert found["docs"] in told
    assert not page.parents[1].exists() or f"`{task}`" in page.read_text(encoding="utf-8")


VERBS: Mapping[str, Sequence[str]] = {
    "info": (),
    "validate": ("--workers", "1"),
    "audit": (),
    "convert": ("OUT", "--link"),
    "export": (
        *("OUT", "--workers", "1", "--format", "llamafactory", "--limit", "3"),
        *("--check-against", "DATA"),
    ),
    "evaluate": ("--model", "baseline:oracle", "--out", "OUT"),
    "score": ("ANSWERS",),
    "ablate": ("--model", "baseline:oracle", "--out", "OUT", "--limit", "2", "--controls", "none"),
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_the_folder_whose_folder_data_it_is(
    few: Path, tmp_path: Path, verb: str
) -> None:
    outer = tmp_path / "demo"
    shutil.copytree(few / "Chirp", outer / "data" / "Chirp")
    (outer / "demo.json").write_text('{"seed": 0}')
    answers = write(tmp_path / "answers.jsonl", {"sample_id": "Chirp/C001/0", "output": ""})
    named = {"OUT": tmp_path / "out", "DATA": outer, "ANSWERS": answers}
    arguments = (named.get(word, word) for word in VERBS[verb])
    # Training shares all with what it is checked against; one step of all has an answer.
    code = 1 if verb in ("export", "score") else 0
    done = omnidata(verb, "omnigui", outer, *arguments, code=code)
    assert f"reading {outer / 'data'}: {outer} itself holds no data" in done.stderr
    assert done.stdout


def test_data_that_have_a_folder_data_are_read_as_they_are(tmp_path: Path) -> None:
    outer = rows_of("omnigui", tmp_path / "app").parent
    rows_of("groundui", outer / "data")
    done = omnidata("info", "omnigui", outer, "--json")
    assert as_json(done)["steps"] == 2
    assert "itself" not in done.stderr


def test_rows_that_may_be_of_two_benchmarks_need_a_name(tmp_path: Path) -> None:
    data = rows_of("criticbench", tmp_path)
    done = omnidata("info", data, code=2)
    assert f"the data fit {TRAJECTORIES}" in done.stderr
    assert f"omnidata info criticbench {data}" in done.stderr
    assert as_json(omnidata("info", "criticbench", data, "--json"))["task"] == "criticbench"


def test_what_is_no_data_exits_with_2_and_the_remedy(tmp_path: Path) -> None:
    broken = tmp_path / "rows.jsonl"
    broken.write_text("{\n")
    for arguments, says in (
        ([broken], "omnidata info TASK"),
        ([tmp_path / "none"], "no such file"),
        (["groundui", "--strict"], "omnidata info TASK DATA"),
        (["nothing", broken], "one of agentnet, aitw"),
        (["groundui", broken], "json-invalid"),
        ([broken, "groundui"], "omnidata info TASK"),
        (["groundui", broken, "nothing"], "json-invalid"),
        (["groundui", broken, "groundui", broken, "--expect", "x"], "not 2"),
        ([broken, broken, "--plot", tmp_path / "f.png"], "not 2"),
        (["grondui", broken], "did you mean groundui?"),
        (["Grondui"], "did you mean groundui?"),
    ):
        done = omnidata("info", *arguments, code=2)
        assert says in done.stderr
        assert done.stdout == ""


def test_data_may_be_called_like_a_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows_of("idm-single", tmp_path / "groundui")
    assert as_json(omnidata("info", "groundui", "--json"))["task"] == "idm-single"


def test_what_a_benchmark_has_not_is_refused_before_its_data_are_read(tmp_path: Path) -> None:
    none = tmp_path / "none.jsonl"
    done = omnidata("info", "groundui", none, "--expect", "table7", code=2)
    assert "groundui has no such table" in done.stderr
    for option in ("--plot", "--map"):
        done = omnidata("info", "groundui", none, option, tmp_path / "no" / "f.png", code=2)
        assert f"{option} {tmp_path}" in done.stderr
    assert "table7" in omnidata("info", "omnigui", none, "--expect", "x", code=2).stderr
    assert list(tmp_path.iterdir()) == []


def test_the_list_of_findings_is_where_the_other_verbs_say(tmp_path: Path) -> None:
    data = write(tmp_path / "rows.jsonl", trajectory(), trajectory())
    told = omnidata("audit", "criticbench", data).stderr
    (command,) = (part for part in told.split("`") if part.startswith("omnidata info"))
    assert "row-repeated" in omnidata(*command.split()[1:]).stdout


@pytest.mark.parametrize("held", benchmarks())
def test_another_benchmarks_rows_are_refused_with_its_name(tmp_path: Path, held: str) -> None:
    data = rows_of(held, tmp_path / "data")
    for asked in benchmarks():
        if RIGHT[held] == RIGHT[asked]:
            omnidata("info", asked, data)
            continue
        with pytest.raises(DataError) as refused:
            get_task(asked).load(data)
        remedy = f"these are rows of {RIGHT[held]}: name that task"
        assert remedy in refused.value.remedy, asked


@pytest.mark.parametrize("verb", ["evaluate", "audit", "validate", "convert", "score"])
@pytest.mark.parametrize(("held", "asked"), [("groundui", "omnigui"), ("omnigui", "groundui")])
def test_every_verb_names_the_right_task(tmp_path: Path, verb: str, held: str, asked: str) -> None:
    data, out = rows_of(held, tmp_path / "data"), tmp_path / "out"
    more: Mapping[str, list[Any]] = {
        "evaluate": ["--model", "baseline:oracle", "--out", out],
        "convert": [out],
        "score": [write(tmp_path / "p.jsonl", {"sample_id": "x", "output": ""})],
    }
    done = omnidata(verb, asked, data, *more.get(verb, []), code=2)
    assert f"these are rows of {held}" in done.stderr
    assert not out.exists()


def test_an_error_in_the_right_data_keeps_its_remedy(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "steps.json", [row()])
    data.write_text(data.read_text()[:-1] + ', {"episode_id": }]')
    done = omnidata("info", "omnigui", data, code=2)
    assert "Fix: correct the file there, or download it again" in done.stderr
    app = write_app(tmp_path / "TED", [row()])
    (app / "dataset_TED.json").write_text("{}")
    assert "name the file of steps" in omnidata("info", app, code=2).stderr


@real
@pytest.mark.parametrize(("task", "steps"), [("groundui", 1000), ("criticbench", 350)])
def test_info_counts_the_published_rows(task: Any, steps: int) -> None:
    found = as_json(omnidata("info", task, REAL[task], "--json"))
    assert found["steps"] == steps
    platforms = found["counts"]["tags"]["platform"]
    published = {"groundui": (400, 300, 300), "criticbench": (200, 50, 100)}[task]
    assert tuple(platforms[name]["steps"] for name in ("web", "desktop", "mobile")) == published
    assert found["differences"] == []


def test_profiles_for_answers_and_for_records_have_a_default_each() -> None:
    text = omnidata("info", "omnibench").stdout
    assert "profiles for answers of a model: omnibench-step (default)\n" in text
    records = "profiles for records of an environment: omnibench-paper (default), omnibench-release"
    assert f"{records}\n  omnibench-paper: CR, LC\n" in text
