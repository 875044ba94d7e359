"""A stranger's benchmark is served like ours: every verb, on the code of the guide."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, get_args

import datasets
import pytest
from PIL import Image

import omnidata
from omnidata.actions import Action, Kind
from omnidata.errors import PluginError
from omnidata.run.run_files import read_run
from omnidata.tasks import get_task
from omnidata.viewer.book import open_run
from omnidata.viewer.step_page import step_page
from tests import plugs
from tests.cli.running import here
from tests.data.tiny import SIZE
from tests.full import in_gate
from tests.plugin import data as odyssey
from tests.report.test_view import served
from tests.trees import read_lines, write_lines

DOCS = Path(__file__).resolve().parents[2] / "docs" / "add_dataset.md"
EPISODES, STEPS = 12, 60
CLICK = {"action": "CLICK", "info": [[500, 500]]}
EYE = '''
from omnidata import media
from omnidata.adapters import Model
from omnidata.types import Completion, Prepared

class Eye(Model):
    """Says how many pictures it has looked at."""

    accepts = frozenset({"image"})

    def __init__(self, name, options):
        self.name = f"eye:{name}"

    def prepare(self, request):
        shown = [part.media for part in request.conversation[-1].parts if part.media]
        return Prepared(request, payload=str(len([media.image(ref) for ref in shown])))

    async def generate(self, batch, params):
        return [Completion(text=item.payload) for item in batch]
'''


@dataclass(frozen=True, slots=True)
class World:
    data: Path
    runs: Path


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    home = tmp_path_factory.mktemp("odyssey")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "160")
        patch.delitem(sys.modules, "omnidata.loaders.builders.odyssey", raising=False)
        site = odyssey.install(home / "site", patch)
        paths = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
        patch.setenv("PYTHONPATH", os.pathsep.join(paths))  # for processes that verbs start
        data = odyssey.write(home / "data", episodes=EPISODES)
        for name in ("oracle", "majority", "center"):
            model = ("--model", f"baseline:{name}")
            here("evaluate", "odyssey", data, *model, "--out", home / "runs" / name)
        yield World(data, home / "runs")


Said = Callable[..., str]


@pytest.fixture
def said(world: World) -> Said:
    return lambda *arguments, code=0: here(*arguments, code=code).stdout


def install_variant(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, *changes: tuple[str, str]
) -> None:
    """Install the benchmark under another name, with other code in some places."""
    site = plugs.on_path(tmp_path / "site", f"{name}_plugin", monkeypatch)
    text = odyssey.HOME.read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (site / f"{name}_plugin.py").write_text(text, encoding="utf-8")
    plugs.install(site, name, "omnidata.tasks", f"{name} = {name}_plugin:Odyssey")


def size_of(row: dict[str, Any]) -> tuple[int, int]:
    """The size of a row's screenshot, which datasets leave as it is."""
    held = row["screenshot"]
    content = held["bytes"] or Path(held["path"]).read_bytes()
    return Image.open(io.BytesIO(content)).size


def overall(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "results.json").read_text())["overall"]
    return found


@pytest.mark.parametrize(("path", "most"), [(odyssey.ROWS, 60), (odyssey.HOME, 160)])
def test_a_benchmark_is_short(path: Path, most: int) -> None:
    assert sum(bool(line.strip()) for line in path.read_text("utf-8").splitlines()) < most


@pytest.mark.skipif(not DOCS.is_file(), reason="needs a checkout: the sdist has no docs")
def test_the_documentation_shows_these_very_files() -> None:
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text("utf-8"), re.S)
    written = "\n".join(path.read_text("utf-8") for path in (odyssey.ROWS, odyssey.HOME))
    shown = "\n".join(blocks).splitlines()
    assert list(filter(None, shown)) == list(filter(None, written.splitlines()))


def test_info_knows_the_task_and_finds_its_data_without_the_name(world: World, said: Said) -> None:
    told = said("info", "odyssey")
    assert "baseline:oracle, baseline:majority, baseline:center" in told
    assert "odyssey-ams: AMS, SR" in told
    found = json.loads(said("info", world.data, "--json"))
    assert found == json.loads(said("info", "odyssey", world.data, "--json"))
    assert (found["task"], found["episodes"], found["steps"]) == ("odyssey", EPISODES, STEPS)
    assert [one["code"] for one in found["findings"]] == ["action-unknown"]
    said("info", world.data / "screenshots", code=2)


def test_info_says_what_the_data_are_where_the_task_says_it(
    world: World, said: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "DATA: a JSON file for each episode, with task_info" in said("info", "odyssey")
    kind = sys.modules["odyssey_like"].Odyssey
    card = replace(kind.card, expects="a folder with annotations and screenshots")
    monkeypatch.setattr(kind, "card", card)
    assert "DATA: a folder with annotations and screenshots\n" in said("info", "odyssey")


def test_validate_looks_at_every_picture(world: World, said: Said) -> None:
    found = json.loads(said("validate", "odyssey", world.data, "--workers", "1", "--json"))
    assert found["checked"]["media"]["image"] == STEPS


def test_the_baselines_come_of_the_targets(world: World) -> None:
    assert overall(world.runs / "oracle") == {"AMS": 1.0, "SR": 1.0}
    for name in ("majority", "center"):
        said = {line["output"] for line in read_lines(world.runs / name / "predictions.jsonl")}
        assert [json.loads(text) for text in said] == [CLICK]
        assert 0 < overall(world.runs / name)["AMS"] < 0.5
    results = json.loads((world.runs / "center" / "results.json").read_text())
    assert results["by"].keys() == {"category", "device"}
    assert results["ci95"].keys() == {"AMS", "SR"} <= results["answered"].keys()
    assert results["counts"]["without_usable_target"] == 1


def test_score_takes_anybodys_answers(world: World, said: Said, tmp_path: Path) -> None:
    rows = [{"sample_id": f"E0/{n}", "output": f"I shall do {json.dumps(CLICK)}"} for n in range(5)]
    answers = write_lines(tmp_path / "answers.jsonl", rows)
    found = json.loads(said("score", "odyssey", world.data, answers, "--json", code=1))
    assert found["outcomes"] == {"ok": 5, "missing": STEPS - 5}
    assert found["overall"] == {"AMS": 1 / (STEPS - 1), "SR": 0.0}


def test_a_parquet_repository_is_read_as_the_files_are(
    world: World, said: Said, tmp_path: Path
) -> None:
    repository = tmp_path / "repository"
    said("convert", "odyssey", world.data, repository, "--embed")
    task = get_task("odyssey")
    files, rows = (task.load(place).steps for place in (world.data, repository))
    assert [(a.sample_id, a.group, a.action, a.tags) for a in files] == [
        (b.sample_id, b.group, b.action, b.tags) for b in rows
    ]
    run = tmp_path / "run"
    said("evaluate", "odyssey", repository, "--model", "baseline:oracle", "--out", run)
    assert overall(run) == {"AMS": 1.0, "SR": 1.0}
    plain = datasets.load_dataset(str(repository), split="test", streaming=True)
    assert size_of(next(iter(plain))) == SIZE


@pytest.mark.parametrize("streaming", [False, True], ids=["built", "streamed"])
def test_it_opens_as_a_dataset_in_both_ways(world: World, streaming: bool) -> None:
    omnidata.register()
    ours = omnidata.load_dataset("odyssey", world.data, split="test", streaming=streaming)
    theirs = datasets.load_dataset(
        "odyssey", "Travel", data_dir=str(world.data), split="test", streaming=streaming
    )
    assert len(list(ours)) == STEPS
    assert {row["category"] for row in theirs} == {"Travel"}
    assert size_of(next(iter(ours))) == SIZE


def test_the_pages_own_data_and_project_work(
    world: World, said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = DOCS.read_text("utf-8")
    scripts = re.findall(r"```py\n(.*?)```", text, re.S)
    [project] = re.findall(r"```toml\n(.*?)```", text, re.S)
    monkeypatch.chdir(tmp_path)
    for script in scripts:
        exec(script, {})
    told = ("--model", "baseline:majority", "--out", "majority")
    said("evaluate", "colours", "SQUARES", *told)
    assert overall(Path("majority")) == {"accuracy": 1 / 3}
    said("report", "majority", "--html", "page.html")
    for name in ("oracle", "center"):
        said("evaluate", "odyssey", "DATA", "--model", f"baseline:{name}", "--out", name)
    assert overall(Path("oracle")) == {"AMS": 1.0, "SR": 1.0}
    assert overall(Path("center"))["AMS"] < 1
    assert tomllib.loads(project)["tool"]["setuptools"]["py-modules"] == ["colours_like"]


def test_the_table_of_actions_has_every_kind_and_every_label() -> None:
    text = DOCS.read_text("utf-8")
    table = [line.split("|")[1:4] for line in text.partition("| kind |")[2].splitlines()[2:20]]
    lines = list(takewhile(lambda cells: len(cells) == 3, table))
    kinds = [kind for cells in lines for kind in re.findall(r"`(\w+)`", cells[0])]
    labels = [label for cells in lines for label in re.findall(r"`([A-Z_]+)`", cells[2])]
    ways = [label for label in labels if label.startswith("_")]
    labels = [label for label in labels if not label.startswith("_")]
    labels += [base + way for base in ("SWIPE", "SCROLL") for way in ways]
    assert sorted(kinds) == sorted(get_args(Kind))
    assert {Action.of(label).kind for label in labels} == {*kinds}
    assert {Action(kind).label for kind in get_args(Kind)} <= {*labels}


@pytest.mark.parametrize("form", in_gate(["trl", "llamafactory", "swift"], 1, "the same split"))
def test_no_export_tears_apart_what_belongs_together(
    world: World, said: Said, tmp_path: Path, form: str
) -> None:
    shares = ("--split", "train=0.6,test=0.4", "--workers", "1")
    out = tmp_path / "out"
    told = said("export", "odyssey", world.data, out, "--format", form, *shares, code=1)
    assert "train.jsonl" in told and "test.jsonl" in told
    groups = {step.sample_id: step.group for step in get_task("odyssey").load(world.data).steps}
    splits = defaultdict(set)
    rows = 0
    for split in ("train", "test"):
        for row in read_lines(out / f"{split}.jsonl"):
            splits[groups[row["sample_id"]]].add(split)
            rows += 1
    assert rows == STEPS - 1  # one has no target
    assert set(map(len, splits.values())) == {1}
    assert {split for found in splits.values() for split in found} == {"train", "test"}


def test_audit_answers_without_looking(world: World, said: Said) -> None:
    found = json.loads(said("audit", "odyssey", world.data, "--json"))
    names = [rule["name"] for rule in found["rules"]]
    assert names[:2] == ["baseline majority", "baseline center"]
    assert (found["metric"], found["judged"]) == ("AMS", STEPS - 1)


def test_runs_are_compared_and_reported_under_its_names(world: World, said: Said) -> None:
    runs = [world.runs / name for name in ("oracle", "center")]
    found = json.loads(said("compare", *runs, "--json"))
    assert {name: one["difference"] for name, one in found["slices"][0]["metrics"].items()} == {
        "AMS": overall(runs[1])["AMS"] - 1,
        "SR": -1.0,
    }
    told = said("report", *runs)
    assert "Main results: odyssey by odyssey-ams" in told
    assert "Shopping" in told and "AMS" in told and "EM" not in told
    three = [*runs, world.runs / "majority"]
    assert "Ranks by AMS (%): odyssey by odyssey-ams" in said("compare", *three)
    assert len(json.loads(said("items", *three, "--json"))["items"]) == STEPS - 1
    every = json.loads(said("score", "odyssey", world.data, runs[0], "--profile", "all", "--json"))
    assert every["odyssey-ams"]["source"] == ""


def test_pages_have_marks_sentences_and_a_confusion_table(
    world: World, said: Said, tmp_path: Path
) -> None:
    rows = read_lines(world.runs / "center" / "predictions.jsonl")
    page = tmp_path / "page.html"
    said("report", world.runs / "center", "--html", page)
    text = page.read_text("utf-8")
    assert len(rows) == STEPS
    assert "(unparsed)" not in text
    assert "target against answer" in text
    book = open_run(read_run(world.runs / "center"))
    marks = [each.mark for each in book.explanations]
    assert {"right", "near", "wrong", "unjudged"} == set(marks)
    near = step_page(book, marks.index("near"))
    assert near.pictures[0].shapes
    assert near.rulings[0].why.startswith("the point (")
    wrong = step_page(book, marks.index("wrong"))
    assert "the answer is " in wrong.rulings[0].why


def test_view_serves_its_data_and_its_runs(world: World) -> None:
    with served(world.runs / "center") as server:
        assert (server.said["task"], server.said["steps"]) == ("odyssey", STEPS)
        status, _, page = server.ask("/")
        assert status == 200
        assert b"target against answer" in page


def test_an_ablation_takes_its_pictures_away_and_swaps_them(
    world: World, said: Said, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    model = ("--model", "baseline:center", "--limit", "10")
    found = json.loads(said("ablate", "odyssey", world.data, *model, "--out", out, "--json"))
    rows = {row["name"]: row for row in found["settings"]}
    assert list(rows) == ["text-I", "text-none", "text-I-other-picture"]
    controls = {
        name: json.loads((out / "runs" / name / "run.json").read_text()).get("control")
        for name in rows
    }
    assert controls["text-I"] is None
    assert controls["text-none"]["name"] == "without image"
    assert controls["text-I-other-picture"]["name"] == "other-picture"
    assert rows["text-none"]["differences"].keys() >= {"Shopping", "overall"}
    given = list(read_lines(out / "controls" / "other-picture" / "given.jsonl"))
    assert len(given) == 10
    assert all(line["sample_id"].split("/")[0] != line["given"].split("/")[0] for line in given)


def test_a_model_that_sees_is_asked_without_the_pictures_too(
    world: World, said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = plugs.on_path(tmp_path / "site", "eye_plugin", monkeypatch)
    (site / "eye_plugin.py").write_text(EYE, encoding="utf-8")
    plugs.install(site, "eye", "omnidata.adapters", "eye = eye_plugin:Eye")
    out = tmp_path / "out"
    few = ("--model", "eye:x", "--limit", "6", "--controls", "none")
    said("ablate", "odyssey", world.data, *few, "--out", out)
    for name, pictures in (("text-I", "1"), ("text-none", "0")):
        lines = [*read_lines(out / "runs" / name / "predictions.jsonl")]
        assert [line["output"] for line in lines] == [pictures] * 6


def test_errors_are_traced_with_any_ids_and_by_the_profiles_own_value(
    world: World, said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = "{episode['episode_id']}/{number}", "step {number} of {episode['episode_id']}"
    values = '("exact_match", "type_match")', '("correct", "same_deed")'
    install_variant(tmp_path, monkeypatch, "walk", ids, values)
    runs = [tmp_path / mode for mode in ("gold", "predicted")]
    for run in runs:
        told = ("--model", "baseline:center", "-T", f"history={run.name}", "--out", run)
        said("evaluate", "walk", world.data, *told)
    made = json.loads(said("report", *runs, "--json"))
    tables = {table["name"]: table for table in made["tables"]}
    assert tables["history-by-step"]["title"].startswith("AMS by step of the episode")
    assert [row["labels"] for row in tables["history-by-step"]["rows"]] == [[n] for n in "12345"]
    assert "AMS after a previous step that is" in said("report", *runs, "--format", "md")
    assert made["warnings"] == []


SHAPED = '''
class Ranged(EpisodeTotals):
    def total(self, steps, rows):
        found = super().total(steps, rows)
        found["overall"]["range"] = {"low": [0.0], "high": "nobody knows"}
        return found


class Said(TypedDict, total=False):
    """What lines of scores have of an answer."""

    point: dict[str, float]
    text: list[str]
'''
ODD = '{"point": {"x": 1.0, "y": 2.0}, "text": ["a", "b"], "letters": {}}'
"""A total that is no number, and an answer whose keys are other benchmarks' in another shape."""


def test_scores_of_any_shape_are_read_back_and_those_of_another_than_declared_are_refused(
    world: World, said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes = (
        ('("exact_match", "type_match")', '("domain", "ending")'),
        ('{"action": row["action"], "info": row["info"]}', ODD),
        ("class Ams(Rule):", f"{SHAPED}\n\nclass Ams(Rule):"),
        ("totals = EpisodeTotals(", "totals = Ranged("),
        ("answer_type=Written", "answer_type=Said"),
    )
    install_variant(tmp_path, monkeypatch, "shaped", *changes)
    runs = [tmp_path / name for name in ("oracle", "majority", "center")]
    for run in runs:
        told = ("--model", f"baseline:{run.name}", "--out", run)
        said("evaluate", "shaped", world.data, *told)
    assert "Main results: shaped by odyssey-ams" in said("report", *runs)
    said("report", runs[0], "--html", tmp_path / "page.html")
    assert json.loads(said("compare", *runs[:2], "--json"))["slices"][0]["metrics"]["AMS"]["a"] == 1
    said("items", *runs)
    first, *rest = (runs[0] / "scores.jsonl").read_text("utf-8").splitlines(keepends=True)
    line = json.loads(first)
    line["parsed"]["point"] = [1, 2]
    (runs[0] / "scores.jsonl").write_text("".join([json.dumps(line) + "\n", *rest]), "utf-8")
    said("compare", *runs[:2], code=2)


def test_a_column_of_episodes_may_be_the_mean_of_a_value_over_the_steps_that_have_it(
    world: World, said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    off = 'Column("off", "away", unit="number", lower_is_better=True)'
    changes = (
        ('Column("SR")', f'Column("SR"), {off}'),
        ("(None, None)", "(None, None, None)"),
        ("(False, False)", "(False, False, None)"),
        ("right = True", "right, away = True, None"),
        ("right = math.dist(", "away = math.dist("),
        (") <= 140", ")\n            right = away <= 140"),
        ("(right, True)", "(right, True, away)"),
    )
    install_variant(tmp_path, monkeypatch, "away", *changes)
    runs = [tmp_path / name for name in ("center", "oracle")]
    for run in runs:
        said("evaluate", "away", world.data, "--model", f"baseline:{run.name}", "--out", run)

    lines = read_lines(runs[0] / "scores.jsonl")
    away = [line["away"] for line in lines if line["away"] is not None]
    mean = pytest.approx(sum(away) / len(away))
    assert 0 < len(away) < STEPS - 1
    found = json.loads(said("score", "away", world.data, runs[0], "--json"))
    assert found["overall"]["off"] == found["answered"]["off"] == mean
    low, high = found["ci95"]["off"]
    assert low < found["overall"]["off"] < high
    groups = [group["off"] for group in found["by"]["category"].values()]
    assert min(groups) <= found["overall"]["off"] <= max(groups)
    said("report", runs[0], "--html", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    for text in (said("score", "away", world.data, runs[0]), said("report", *runs), page):
        assert f"{sum(away) / len(away):.2f}" in text
    metrics = json.loads(said("compare", *runs, "--json"))["slices"][0]["metrics"]
    assert (metrics["off"]["a"], metrics["off"]["b"]) == (mean, 0)


@pytest.mark.parametrize(
    ("metrics", "told"),
    [
        ('Column("AMS", metric="Em")', r"no known metric: AMS \(metric Em\)"),
        ('Column("AMS")', r"no known metric: AMS \(metric AMS\)"),
    ],
)
def test_metrics_that_are_none_are_refused_before_anything_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, metrics: str, told: str
) -> None:
    install_variant(tmp_path, monkeypatch, "amiss", ('Column("AMS", metric="EM")', metrics))
    with pytest.raises(PluginError, match=told) as caught:
        get_task("amiss")
    assert caught.value.where == "amiss_plugin.Ams"


@pytest.mark.parametrize(
    "answer",
    [
        {"action": "TYPE", "info": None},
        {"action": "TYPE", "info": 5},
        {"action": "CLICK", "info": [["a", "b"]]},
        {"action": "CLICK", "info": [[1]]},
    ],
)
def test_an_answer_of_other_types_is_no_action(world: World, answer: dict[str, Any]) -> None:
    task = get_task("odyssey")
    found = task.profiles["odyssey-ams"].judge(task.load(world.data).steps[0], json.dumps(answer))
    assert (found.outcome, found.values) == ("unparsed", (False, False))


def test_an_action_in_a_dialect_is_judged_as_its_own(world: World) -> None:
    task = get_task("odyssey", {"dialect": "qwen2.5"})
    steps = [step for step in task.load(world.data).steps if step.action]
    verdicts = [
        task.profiles["odyssey-ams"].judge(step, target.text)
        for step in steps
        if (target := task.target(step))
    ]
    assert len(verdicts) == len(steps)
    assert {verdict.values[:2] for verdict in verdicts} == {(True, True)}


@pytest.mark.parametrize(
    ("verb", "told"),
    [
        ("voice", "the prompts of odyssey have no spoken form"),
        ("synth label", "these are rows of odyssey, and no task labels the actions of such rows"),
        ("synth filter", "these are rows of odyssey, and no task judges the success of such rows"),
    ],
)
def test_a_verb_that_cannot_serve_says_so(
    world: World, tmp_path: Path, verb: str, told: str
) -> None:
    of_voice = verb == "voice"
    before, after = (["odyssey"], []) if of_voice else ([], ["--model", "baseline:oracle"])
    done = here(*verb.split(), *before, world.data, tmp_path / "out", *after, code=2)
    assert told in done.stderr
