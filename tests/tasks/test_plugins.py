"""Benchmarks that other distributions bring are found, run, scored, and named where broken."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import datasets
import numpy as np
import pytest
from PIL import Image

import omnidata
from omnidata import media
from omnidata.analysis.comparison import compare
from omnidata.analysis.report import report
from omnidata.cli import main
from omnidata.cli.arguments import data_of
from omnidata.data.convert import convert
from omnidata.data.voice import utterances
from omnidata.errors import DataError, MediaError, PluginError, UsageError
from omnidata.loaders import builders
from omnidata.loaders.load import recognised
from omnidata.loaders.repository import load
from omnidata.predictions import Prediction
from omnidata.run.run_files import Run, read_run
from omnidata.tasks import get_task
from omnidata.types import MediaRef, Task
from omnidata.viewer.report_data import facts, open_run
from tests import plugs
from tests.cli.running import OMNIDATA
from tests.trees import row, write_rows

PLUGIN = '''
"""A benchmark of another distribution: which of two words is longer."""

import hashlib
import json
from dataclasses import replace

from omnidata.actions import Action, Box
from omnidata.errors import DataError
from omnidata.tasks.base import Benchmark
from omnidata.tasks.profiles import RowProfile
from omnidata.types import Explanation, MediaRef, LoadedDataset, Step, Verdict


class Exact(RowProfile):
    name = "words-exact"
    by = {"language": ()}

    def judge(self, step, text, receipt=None):
        said = text.strip()
        if not step.source["longer"]:
            return Verdict("ok", (None,))
        right = said == step.source["longer"]
        return Verdict("ok" if said else "unparsed", (right,), {"word": said})


class Words(Benchmark):
    question = "Which is longer: {instruction}?"
    profiles = {"words-exact": Exact()}
    allowed = {"case": ("kept", "lower")}

    def load(self, data, *, check_media=True, strict=False):
        data = data / "words.jsonl" if data.is_dir() else data
        rows = [json.loads(line) for line in data.read_text("utf-8").splitlines()]
        steps = [
            Step(
                sample_id=row.get("id", f"{data.stem}/{number}"),
                episode_id=str(number),
                step_index=0,
                num_steps=1,
                instruction=row["words"],
                screen=(0, 0),
                media={},
                history=(),
                history_screens=(),
                action=Action("back"),
                tags={"language": row["language"]},
                source=row,
            )
            for number, row in enumerate(rows)
        ]
        fingerprint = hashlib.sha256(data.read_bytes()).hexdigest()
        names = [step.sample_id for step in steps]
        return LoadedDataset(self.name, data, steps, [], 0, fingerprint, names, ("language",), {})

    def answer(self, step):
        return step.source["longer"] or None


class Broken(Words):
    """Fails where it is told to."""

    allowed = {"at": ("",)}

    def load(self, data, **options):
        if self.options["at"] == "load":
            for number, line in enumerate(data.read_text("utf-8").splitlines()):
                row = json.loads(line)
                if number == 1:
                    row["wordz"]
        return super().load(data, **options)

    def prompt(self, step, predicted=None):
        return {}[step.sample_id] if self.options["at"] == "prompt" else super().prompt(step)

    def answer(self, step):
        return {}[step.sample_id] if self.options["at"] == "answer" else super().answer(step)

    def explain(self, step, verdict, **given):
        if self.options["at"] == "explain":
            return {}[step.sample_id]
        return super().explain(step, verdict, **given)

    @property
    def profiles(self):
        return {"words-exact": BrokenProfile(self.options["at"])}


class BrokenProfile(Exact):
    def __init__(self, at):
        self.at = at

    def judge(self, step, text, receipt=None):
        given = {
            "bool": True,
            "few": Verdict("ok", ()),
            "list": Verdict("ok", [True]),
            "outcome": Verdict("fine", (True,)),
        }
        if self.at in given:
            return given[self.at]
        return {}[step.sample_id] if self.at == "judge" else super().judge(step, text)

    def failed(self, step, outcome):
        return Verdict(outcome, ()) if self.at == "failed" else super().failed(step, outcome)

    def total(self, steps, rows):
        return {}["total"] if self.at == "total" else super().total(steps, rows)


class Walk(Words):
    """An episode of several steps, which names its app with each."""

    def load(self, data, *, check_media=True, strict=False):
        found = super().load(data)
        rows = [step.source for step in found.steps]
        held = [sum(row["episode"] == other["episode"] for other in rows) for row in rows]
        steps = [
            replace(
                step, episode_id=row["episode"], step_index=row["step"],
                num_steps=row.get("held", count), tags={"app": row["app"]}, episode="", group="",
            )
            for step, row, count in zip(found.steps, rows, held)
        ]
        return replace(found, steps=steps, tags=("app",))


class Shown(Words):
    """Has a picture in a folder beside its rows."""

    def load(self, data, **options):
        found = super().load(data)
        steps = [
            replace(
                step,
                media={
                    "screenshot": MediaRef(
                        "image", data.parent / "media", step.source.get("shot", "a.png")
                    )
                },
            )
            for step in found.steps
        ]
        return replace(found, steps=steps, roles={"screenshot": "image"})


class Placed(Words):
    """Has a target, which is a box of its row."""

    def load(self, data, **options):
        found = super().load(data)
        steps = [
            replace(
                step,
                screen=tuple(step.source["screen"]),
                action=Action("tap", (Box(*step.source["box"], step.source["unit"]),)),
            )
            for step in found.steps
        ]
        return replace(found, steps=steps)


class Listed(Shown):
    """Gives its steps, and leaves the rest of loading to the defaults."""

    load = Benchmark.load

    def steps(self, data, note):
        return Shown.load(self, data).steps


class Explaining(Words):
    """Says itself why an answer is wrong."""

    def explain(self, step, verdict, *, profile, receipt=None):
        said = (verdict and verdict.parsed or {}).get("word", "")
        sentence = f"{said} is shorter" if verdict else ""
        return Explanation("wrong" if verdict else None, sentence, "word", said, noun="word")


class Bare:
    """Has all that a task must have, and no more."""

    def __init__(self, name, options):
        self._words = Words(name, options)

    def __getattr__(self, name):
        if name.startswith("__") or name in ("_words", "explain"):
            raise AttributeError(name)
        return getattr(self._words, name)


class Known(Words):
    """Has all that loading asks for."""

    title = "The longer word"
    holds = "two words; which is longer"
    tags = ("language",)
    roles = {}
    subsets = ("en",)

    def detect(self, data):
        with data.open(encoding="utf-8") as rows:
            try:
                return "words" in json.loads(rows.readline())
            except ValueError:
                return False

    def load(self, data, **options):
        try:
            return super().load(data, **options)
        except (AttributeError, KeyError, ValueError):
            raise DataError("these are no pairs of words", where=str(data)) from None

    def named(self, step):
        return replace(step, episode="of " + step.source["language"], group=step.instruction)


def nothing(name, options):
    return object()
'''
MEMBERS = '''
import numpy as np

from omnidata.metrics.paired import Fractions, Measures, Sums
from omnidata.tasks.profiles import OfflineScorer, Scored
from omnidata.tasks.overview import Table, View
from omnidata.tasks.profiles import sized
from omnidata.tasks.published import Best, BestScores, Published, PublishedRow, TableSpec


class Graded(Exact):
    """Means under names of its own."""

    name = "words-graded"
    values = ("score", "letters")
    columns = {"found": "share", "letters": "number"}

    def judge(self, step, text, receipt=None):
        found = super().judge(step, text)
        return Verdict(found.outcome, (*found.values, len(text.strip())), found.parsed)


class Rated(Graded):
    """Words found by letter written: no mean of rows."""

    name = "words-rated"
    columns = {"rate": "number"}

    def _table(self, steps, rows, mask):
        found, letters = (rows.values[name][mask].sum() for name in self.values)
        rate = float(found / letters) if letters else None
        return sized({"rate": rate, "ci95": {"rate": None}, "rows": int(mask.sum())})

    def measures(self, steps, a, b):
        parts = [np.column_stack([rows.values[name] for name in self.values]) for rows in (a, b)]
        judged = ~np.isnan(parts[0]).any(axis=1)

        def sums(chosen):
            kept = chosen & judged
            return Sums(parts[0][kept], parts[1][kept], Fractions(1), Fractions(1).uses)

        return Measures(self.columns, self.by, None, judged, sums)


class Letters(View):
    published = {"paper": "the paper's Table 1"}

    def tables(self):
        rows = [[step.instruction, str(len(step.instruction))] for step in self.source.steps]
        return [Table("Letters of the questions", ("", "letters"), rows)]

    def differences(self, table):
        found = len(self.source.steps)
        return [] if found == 4 else [f"there are {found} questions, published 4"]


class BrokenView(Letters):
    def tables(self):
        return {}["tables"]


class Votes(OfflineScorer):
    profiles = {"words-votes": {"agreement": "share"}}
    right = "agreement"

    def takes(self, answers):
        return answers.read_text("utf-8").startswith('{"vote"')

    def score(self, data, answers, *, profile, strict=False):
        votes = [json.loads(line) for line in answers.read_text("utf-8").splitlines()]
        lines = [
            {"sample_id": one["vote"], "outcome": "ok", "profile": profile, "agreement": one["is"]}
            for one in votes
        ]
        mean = sum(line["agreement"] for line in lines) / len(lines)
        results = {
            "task": "words",
            "profile": profile,
            "overall": {"agreement": mean},
            "ci95": {"agreement": None},
            "by": {},
            "counts": {"tasks": len(lines)},
            "outcomes": {"ok": len(lines)},
        }
        return [Scored("", results, lines)], []


class Told(Words):
    """Says all that a benchmark can say of itself."""

    profiles = {"words-graded": Graded(), "words-rated": Rated()}
    overview = Letters
    score_files = Votes()
    tables = (TableSpec("main", "By tongue", "language", {"de": "German", "en": "English"}),)
    published = Published(
        rows=[
            PublishedRow(
                "main", "Reader 1", {"case": "kept"}, "Words, Table 2", 3,
                {("", "found"): 0.75, ("de", "found"): 0.5},
            ),
            PublishedRow("main", "Reader 2", {"case": "lower"}, "Words, Table 2", 3, {}),
            PublishedRow("language", "Reader 3", {}, "Words, Figure 1", 3, {("DE", "found"): 0.25}),
        ],
        settings=[BestScores(3, {}, {"found": Best(0.75, "Reader 1", "Words, Table 2")})],
        notes={"words-graded": {"found": "Found counts as Reader 1 counts."}},
    )

    def spelling(self, tag, value):
        return {"german": "de"}.get(value.lower(), value.lower())

    def spoken(self, step):
        return [step.instruction, step.tags["language"]]
'''
ROWS = [
    {"words": "fig or melon", "longer": "melon", "language": "en"},
    {"words": "Birne oder Ei", "longer": "Birne", "language": "de"},
    {"words": "oak or elm", "longer": "", "language": "en"},
]


def install(
    folder: Path, name: str = "omnidata-words", points: str = "words = words_plugin:Words"
) -> Path:
    (folder / "words_plugin.py").write_text(PLUGIN + MEMBERS, encoding="utf-8")
    plugs.install(folder, name, "omnidata.tasks", points)
    return folder


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for task in ("words", "shown"):  # the builders of an earlier test's plug-in
        monkeypatch.delitem(sys.modules, builders.module_of(task), raising=False)
    return plugs.on_path(tmp_path / "site", "words_plugin", monkeypatch)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "words.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS), encoding="utf-8")
    return path


def test_a_class_of_another_distribution_is_a_task(site: Path, rows: Path) -> None:
    install(site)
    task = get_task("words", {"case": "lower"})
    [first, *_] = task.load(rows).steps
    [message] = task.prompt(first)
    assert [part.text for part in message.parts] == ["Which is longer: fig or melon?"]
    assert (task.name, task.default_profile, task.options["case"]) == (
        "words",
        "words-exact",
        "lower",
    )
    assert task.prompt_hash != get_task("words").prompt_hash


def told(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int = 0) -> str:
    """What the command prints, here, and what it says beside that."""
    with pytest.raises(SystemExit) as ended:
        main([*map(str, arguments)])
    shown = capsys.readouterr()
    assert ended.value.code == code, shown.err
    return shown.out + shown.err


def test_the_command_line_runs_and_scores_it(
    site: Path, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(install(site))}
    anew = subprocess.run(
        [*OMNIDATA, "info", "--json"], env=environment, check=True, capture_output=True, timeout=120
    )
    assert json.loads(anew.stdout)["task_plugins"] == ["words"]
    run, page = tmp_path / "run", tmp_path / "page.html"
    about = told(capsys, "info", "words")
    assert about.startswith("words: a task of another distribution\n")
    assert "-T case=kept|lower  (default: kept)" in about
    assert "words-exact (default)" in about
    told(capsys, "evaluate", "words", rows, "--model", "baseline:oracle", "--out", run)
    told(capsys, "compare", run, run)
    told(capsys, "report", run, "--html", page)
    assert "(unparsed)" not in page.read_text("utf-8")
    assert "melon" in page.read_text("utf-8")
    told(capsys, "score", "words", rows, run)
    found = json.loads((run / "results.json").read_text("utf-8"))
    assert found["overall"] == {"accuracy": 1.0}
    assert found["counts"] == {"steps": 2, "without_usable_target": 1}
    assert {name: group["accuracy"] for name, group in found["by"]["language"].items()} == {
        "de": 1.0,
        "en": 1.0,
    }


def test_its_media_stay_in_the_data_whatever_a_link_says(
    site: Path, rows: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    install(site, points="shown = words_plugin:Shown")
    private = tmp_path_factory.mktemp("private")
    Image.new("RGB", (8, 8)).save(private / "a.png")
    (rows.parent / "media").symlink_to(private)

    def shown() -> MediaRef | None:
        return get_task("shown").load(rows).steps[0].media["screenshot"]

    found = shown()
    assert found
    with pytest.raises(MediaError, match="--media-root"):
        media.check(found)
    with omnidata.following([private]):
        found = shown()
    assert found
    media.check(found)


UNSAFE = ["../../etc/passwd", "/tmp/secret.png", "https://x.org/a.png"]


def shots(folder: Path, paths: list[str]) -> Path:
    """Rows that name these pictures, below media/."""
    data = folder / "words.jsonl"
    lines = [json.dumps(ROWS[0] | {"shot": path}) for path in paths]
    data.write_text("\n".join(lines), encoding="utf-8")
    (folder / "media").mkdir()
    for path in {"a.png", "b.png"} & {*paths}:
        Image.radial_gradient("L").save(folder / "media" / path)
    return data


def test_pictures_whose_paths_lead_out_of_the_data_are_findings(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site, points="shown = words_plugin:Shown")
    data = shots(tmp_path, [*UNSAFE, "a.png", UNSAFE[0]])
    source = get_task("shown").load(data)
    assert [(found.code, found.severity, found.sample_ids) for found in source.findings] == [
        ("path-unsafe", "error", ("words/0", "words/4")),
        ("path-unsafe", "error", ("words/1",)),
        ("path-unsafe", "error", ("words/2",)),
    ]
    assert all(one.what.startswith("screenshot ") and one.remedy for one in source.findings)
    with pytest.raises(DataError, match="3 findings"):
        get_task("shown").load(data, strict=True)
    leave = tmp_path / "leave.txt"
    told(capsys, "validate", "shown", data, "--quarantine", leave, code=1)
    assert leave.read_text("utf-8").split("\n")[1:-1] == [f"words/{n}" for n in (0, 1, 2, 4)]
    converted = told(capsys, "convert", "shown", data, tmp_path / "out", code=1)
    assert converted.count("path-unsafe") == 3
    assert [one.code for one in load(tmp_path / "out", "shown", ("language",)).findings] == [
        "path-unsafe"
    ] * 3


def test_rows_of_datasets_do_not_lose_a_picture_in_silence(
    site: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install(site, points="listed = words_plugin:Listed")
    data = shots(tmp_path, ["a.png", "b.png", UNSAFE[0]])
    (tmp_path / "media" / "b.png").unlink()
    (tmp_path / "media" / "b.png").symlink_to("/etc/hostname")
    rows = omnidata.load_dataset("listed", data, split="test", streaming=True)
    assert [row["screenshot"] is None for row in rows] == [False, True, True]
    assert "1 findings; `omnidata validate listed" in caplog.text
    lost = [one.getMessage() for one in caplog.records if "the rows lack them" in one.getMessage()]
    assert sum(int(line.split(": ")[1].split()[0]) for line in lost) == 2
    assert f"`omnidata validate listed {data}` says why" in lost[0]


def test_a_repeated_sample_id_is_a_finding_and_its_row_is_skipped(
    site: Path, tmp_path: Path
) -> None:
    """The oracle has all that is left right, and no step is missing."""
    install(site)
    data = tmp_path / "words.jsonl"
    rows = [ROWS[0], ROWS[1] | {"id": "words/0"}, ROWS[1], ROWS[1] | {"id": "words/0"}]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    task = get_task("words")
    source = task.load(data)
    assert [step.sample_id for step in source.steps] == ["words/0", "words/2"]
    assert source.steps[0].instruction == ROWS[0]["words"]
    assert source.row_ids == ["words/0", None, "words/2", None]
    assert source.skipped == 2
    assert [(found.code, found.severity, found.sample_ids) for found in source.findings] == [
        ("repeated-id", "error", ("words/0",))
    ] * 2
    assert source.findings[0].remedy
    found = omnidata.evaluate(task, source, "baseline:oracle", tmp_path / "run")
    assert found["overall"] == {"accuracy": 1.0}
    assert found["outcomes"] == {"ok": 2}


def test_steps_with_a_repeated_id_are_scored_once(site: Path, rows: Path) -> None:
    install(site)
    task = get_task("words")
    steps = task.load(rows).steps
    answers = [Prediction(sample_id=step.sample_id, output="melon") for step in steps[:2]]
    again = [*steps[:2], replace(steps[1], instruction="other"), steps[0]]
    profile = task.profiles["words-exact"]
    found = omnidata.score(task, profile, again, answers, whole=np.ones(4, dtype=np.bool_))
    assert found["counts"] == {"steps": 2, "without_usable_target": 0, "repeated": 2}
    assert found["overall"] == {"accuracy": 0.5}
    assert found["outcomes"] == {"ok": 2}


@pytest.mark.parametrize(
    ("places", "torn"),
    [
        ([("e", 0, "mail"), ("e", 1, "maps"), ("e", 2, "mail")], True),
        ([("e", 0, "mail"), ("e", 1, ""), ("f", 0, "maps")], True),
        ([("e", 0, "mail"), ("e", 1, "mail"), ("f", 0, "maps")], False),
        ([("e", 0, "mail"), ("e", 0, "maps"), ("e", 1, "maps")], False),
    ],
    ids=["goes-and-comes", "without", "one-each", "two-of-one-id"],
)
def test_an_episode_whose_app_changes_is_named(
    site: Path, tmp_path: Path, places: list[tuple[str, int, str]], torn: bool
) -> None:
    install(site, points="walk = words_plugin:Walk")
    data = tmp_path / "walk.jsonl"
    rows = [ROWS[0] | {"episode": e, "step": n, "app": app} for e, n, app in places]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    task = get_task("walk")
    found = [(one.code, one.where) for one in task.load(data).findings]
    assert found == ([("episode-torn", "e")] if torn else [])
    if torn:
        with pytest.raises(DataError, match="the tag app changes within the episode"):
            task.load(data, strict=True)


def test_a_number_that_comes_twice_in_an_episode_is_named(site: Path, tmp_path: Path) -> None:
    install(site, points="walk = words_plugin:Walk")
    data = tmp_path / "walk.jsonl"
    places = [("e", 0), ("e", 1), ("f", 0), ("e", 0), ("f", 1), ("e", 1)]
    rows = [ROWS[0] | {"episode": e, "step": n, "app": "mail"} for e, n in places]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    [found] = get_task("walk").load(data).findings
    assert (found.code, found.severity, found.where) == ("step-number-repeated", "error", "mail/e")
    assert found.what == (
        "2 steps of the episode have step_index 0: walk/0, walk/3; so it is with step_index 1"
    )
    assert found.sample_ids == ("walk/0", "walk/1", "walk/3", "walk/5")
    with pytest.raises(DataError, match="have step_index 0"):
        get_task("walk").load(data, strict=True)


@pytest.mark.parametrize(
    ("box", "unit", "screen", "code"),
    [
        ([10, 40, 900, 70], "px", [320, 200], "target-outside"),
        ([-1, 40, 90, 70], "px", [320, 200], "target-outside"),
        ([90, 40, 10, 70], "px", [320, 200], "box-unusable"),
        (["10", 40, 90, 70], "px", [320, 200], "box-unusable"),
        ([0, 0, 320, 200], "px", [320, 200], ""),
        ([10, 40, 900, 70], "px", [0, 0], ""),
        ([0.5, 0.5, 0.6, 1.1], "rel", [0, 0], "target-outside"),
        ([0, 500, 1000, 1000], "norm1000", [320, 200], ""),
        ([0, 500, 1001, 1000], "norm1000", [320, 200], "target-outside"),
    ],
)
def test_a_target_that_is_no_place_on_the_screen_is_named(
    site: Path, tmp_path: Path, box: list[object], unit: str, screen: list[int], code: str
) -> None:
    install(site, points="placed = words_plugin:Placed")
    data = tmp_path / "words.jsonl"
    row = ROWS[0] | {"box": box, "unit": unit, "screen": screen}
    data.write_text(json.dumps(row), encoding="utf-8")
    found = get_task("placed").load(data).findings
    assert [(one.code, one.severity, one.sample_ids) for one in found] == (
        [(code, "warning", ("words/0",))] if code else []
    )


def test_two_episodes_of_one_id_that_are_whole_are_not_torn(site: Path, tmp_path: Path) -> None:
    """Rows of both are missing; the loader says that it has no more of them."""
    install(site, points="walk = words_plugin:Walk")
    data = tmp_path / "walk.jsonl"
    places = [(0, "mail"), (1, "maps")]
    rows = [ROWS[0] | {"episode": "e", "step": n, "app": app, "held": 1} for n, app in places]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    assert not get_task("walk").load(data).findings


def test_a_plugin_says_itself_whether_a_folder_holds_its_data(site: Path, rows: Path) -> None:
    (site / "words_plugin.py").write_text(
        PLUGIN + "\n\nclass Folder(Words):\n"
        "    def load(self, data, **given):\n"
        '        return super().load(data / "words.jsonl", **given)\n',
        encoding="utf-8",
    )
    plugs.install(site, "omnidata-words", "omnidata.tasks", "words = words_plugin:Folder")
    inner = rows.parent / "demo" / "data"
    inner.mkdir(parents=True)
    shutil.copy(rows, inner)
    assert data_of("words", inner.parent) == inner
    assert data_of("words", inner) == inner
    shutil.copy(rows, inner.parent)
    assert data_of("words", inner.parent) == inner.parent


@pytest.mark.parametrize(
    ("at", "where", "held"),
    [
        ("load", "words.jsonl", "number = 1, line = "),
        ("prompt", "words/0", ""),
        ("answer", "words/0", ""),
        ("judge", "words/0", "text = 'melon'"),
        ("total", "the table of 3 steps", ""),
    ],
)
def test_a_failure_of_its_code_names_the_distribution_the_line_and_the_step(
    site: Path, rows: Path, tmp_path: Path, at: str, where: str, held: str
) -> None:
    install(site, points="words = words_plugin:Broken")
    task = pickle.loads(pickle.dumps(get_task("words", {"at": at})))
    with pytest.raises(PluginError) as caught:
        source = task.load(rows)
        if at == "answer":
            task.target(source.steps[0])
        omnidata.evaluate(task, source, "baseline:oracle", tmp_path / "run")
    said = caught.value
    assert said.where.endswith(where)
    assert re.search(r"omnidata-words 1\.2 .*KeyError: .*words_plugin\.py:\d+, in ", said.what)
    assert held in said.what
    assert (said.exit_code, bool(said.remedy)) == (2, True)


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("bool", "`judge` of words-exact gives True, which is no verdict"),
        ("few", "`judge` of words-exact gives the values ()"),
        ("list", "`judge` of words-exact gives the values [True]"),
        ("outcome", "`judge` of words-exact gives the outcome 'fine'"),
        ("failed", "`failed` of words-exact gives the values ()"),
    ],
)
def test_what_is_no_verdict_is_said_to_be_its_fault_with_the_step(
    site: Path, rows: Path, at: str, said: str
) -> None:
    install(site, points="words = words_plugin:Broken")
    task = get_task("words", {"at": at})
    step, profile = task.load(rows).steps[0], task.profiles["words-exact"]
    with pytest.raises(PluginError, match=re.escape(said)) as caught:
        profile.failed(step, "missing") if at == "failed" else profile.judge(step, "melon")
    error = caught.value
    assert "omnidata-words 1.2" in error.what and error.where == step.sample_id
    assert error.expected.startswith("Verdict(outcome, (score,)), whose outcome is one of ok, ")


@pytest.mark.parametrize("kind", ["Words", "Bare"])
def test_what_was_judged_is_explained_where_it_explains_nothing_itself(
    site: Path, rows: Path, kind: str
) -> None:
    install(site, points=f"words = words_plugin:{kind}")
    task = get_task("words")
    step = task.load(rows).steps[0]
    judge = task.profiles["words-exact"].judge
    found = [
        task.explain(step, verdict, profile="words-exact")
        for verdict in (None, judge(step, "melon"), judge(step, "fig"), judge(step, ""))
    ]
    assert [each.mark for each in found] == [None, "right", "wrong", "unread"]
    assert [each.answer_label for each in found] == ["", "melon", "fig", "(unparsed)"]
    assert {each.target_label for each in found} == {"BACK"}
    assert [each.sentence for each in found] == [
        "",
        "the answer is the right one",
        "the profile says no to score",
        "nothing could be read",
    ]


def test_its_own_explanation_is_on_its_pages(site: Path, rows: Path, tmp_path: Path) -> None:
    install(site, points="words = words_plugin:Explaining")
    task = get_task("words")
    omnidata.evaluate(task, task.load(rows), "baseline:oracle", tmp_path / "run")
    book = open_run(read_run(tmp_path / "run"))
    assert facts(book, 0).rulings[0].why == "melon is shorter"
    assert (book.noun, book.targets[0], book.explanations[0].answer_label) == (
        "word",
        "word",
        "melon",
    )


def test_a_failing_explanation_names_the_distribution_and_the_step(site: Path, rows: Path) -> None:
    install(site, points="words = words_plugin:Broken")
    task = get_task("words", {"at": "explain"})
    with pytest.raises(PluginError, match=r"omnidata-words 1\.2 .*KeyError.*in explain") as caught:
        task.explain(task.load(rows).steps[0], None, profile="words-exact")
    assert caught.value.where == "words/0"


def test_options_and_baselines_that_do_not_exist_are_refused(site: Path, rows: Path) -> None:
    install(site)
    with pytest.raises(UsageError, match="case"):
        get_task("words", {"case": "upper"})
    task: Task = get_task("words")
    with pytest.raises(UsageError, match="baseline:oracle"):
        task.baseline("centre", task.load(rows).steps, {})


def test_what_is_no_task_is_named_with_its_distribution_and_all_that_it_lacks(site: Path) -> None:
    install(site, points="words = words_plugin:nothing")
    with pytest.raises(UsageError, match=r"omnidata-words 1\.2.*is no task: it lacks ") as caught:
        get_task("words")
    parts = sorted({name for name in vars(Task) if not name.startswith("_")} - {"explain"})
    assert sorted(caught.value.what.rpartition("lacks ")[2].split(", ")) == parts


def test_an_unknown_task_is_refused_with_the_names_of_plugins(site: Path) -> None:
    install(site)
    with pytest.raises(UsageError) as caught:
        get_task("wordz")
    assert "omnigui" in caught.value.expected
    assert caught.value.expected.endswith(", words")


def test_a_plugin_does_not_replace_a_task_of_ours(site: Path) -> None:
    install(site, points="omnigui = words_plugin:Words")
    assert get_task("omnigui").default_profile == "omnigui-paper"


KNOWN = "words = words_plugin:Known"


@pytest.mark.parametrize("points", ["words = words_plugin:Words", KNOWN])
def test_datasets_opens_it_every_way(
    site: Path, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, points: str
) -> None:
    """Whether it says itself what its data hold, or leaves it to the data."""
    install(site, points=points)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    omnidata.register()
    (tmp_path / "data").mkdir()
    rows = rows.rename(tmp_path / "data" / rows.name)
    folder = {"data_dir": str(rows.parent), "split": "test"}
    found = datasets.load_dataset("words", **folder)
    assert found["instruction"] == [one["words"] for one in ROWS]
    assert found["language"] == ["en", "de", "en"]
    assert [json.loads(text) for text in found["source"]] == ROWS
    assert datasets.load_dataset("words", "DE", num_proc=2, **folder)["instruction"] == [
        ROWS[1]["words"]
    ]
    streamed = datasets.load_dataset("words", "en", streaming=True, **folder)
    assert [one["sample_id"] for one in streamed] == ["words/0", "words/2"]
    assert omnidata.load_dataset("words", rows, split="test").to_list() == found.to_list()
    assert omnidata.load_dataset("words", rows, "en", split="test", num_proc=2).num_rows == 2
    streamed = omnidata.load_dataset("words", rows, split="test", streaming=True)
    assert [one["language"] for one in streamed] == ["en", "de", "en"]
    with pytest.raises(DataError, match="no subset"):
        omnidata.load_dataset("words", rows, "fr", split="test")


def test_its_cache_follows_its_rows_and_its_code(site: Path, rows: Path, tmp_path: Path) -> None:
    install(site)
    code, cache = site / "words_plugin.py", tmp_path / "cache"

    def built() -> int:
        omnidata.load_dataset("words", rows, split="test", cache_dir=cache)
        return len(list(cache.glob("words/*")))

    assert built() == built() == 1
    code.write_text(code.read_text("utf-8") + "\n# mended\n", encoding="utf-8")
    assert built() == 2
    rows.write_text(rows.read_text("utf-8").replace("oak", "ash"), encoding="utf-8")
    assert built() == 3


def test_its_media_are_a_column(site: Path, rows: Path) -> None:
    install(site, points="shown = words_plugin:Shown")
    (rows.parent / "media").mkdir()
    Image.new("RGB", (8, 8)).save(rows.parent / "media" / "a.png")
    found = omnidata.load_dataset("shown", rows, split="test", streaming=True)
    assert isinstance(found.features["screenshot"], datasets.Image)


def test_the_name_of_a_builder_of_datasets_stays_its_own(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install(site, points="csv = words_plugin:Words")
    omnidata.register()
    table = datasets.packaged_modules._PACKAGED_DATASETS_MODULES
    assert table["csv"][0] != builders.module_of("csv")
    assert '"csv" is a builder of `datasets` itself' in caplog.text


def test_what_it_detects_is_found_without_its_name(
    site: Path, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site, points=KNOWN)
    assert recognised(rows) == ["words"]
    with pytest.raises(SystemExit, match="0"):
        main(["info", str(rows)])
    assert "3 episodes, 3 steps" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="0"):
        main(["info", "words"])
    told = capsys.readouterr().out
    assert told.startswith("words: two words; which is longer\n")
    assert "subsets: all, en\n" in told
    with pytest.raises(DataError) as caught:
        get_task("omnigui").load(rows)
    assert "these are rows of words: name that task" in caught.value.remedy
    other = write_rows(tmp_path / "steps.json", [row()])
    with pytest.raises(DataError) as caught:
        get_task("words").load(other)
    assert "these are rows of omnigui: name that task" in caught.value.remedy
    with pytest.raises(UsageError, match="wordz") as unknown:
        get_task("wordz")
    assert unknown.value.remedy == "did you mean words?"


def test_one_that_reads_the_data_to_detect_them_is_asked_once(site: Path, rows: Path) -> None:
    (site / "words_plugin.py").write_text(
        PLUGIN + "\n\nfrom omnidata.loaders.load import load_data\n\n\nclass Reads(Words):\n"
        "    def load(self, data, **given):\n"
        "        read = lambda: super(Reads, self).load(data, **given)\n"
        '        return load_data(data, "words", (), read, strict=False, check_media=False)\n\n'
        "    def detect(self, data):\n"
        "        return bool(self.load(data).steps)\n",
        encoding="utf-8",
    )
    plugs.install(site, "omnidata-words", "omnidata.tasks", "words = words_plugin:Reads")
    assert recognised(rows) == ["words"]
    broken = rows.with_name("rows.json")
    broken.write_text("[]")
    assert recognised(broken) == []


def test_a_broken_one_does_not_stand_in_the_way_of_others(site: Path, tmp_path: Path) -> None:
    install(site, points="words = words_plugin:nothing")
    assert recognised(write_rows(tmp_path / "steps.json", [row()])) == ["omnigui"]
    with pytest.raises(UsageError, match="is no task"):
        get_task("words")


def test_its_rule_gives_a_repository_its_groups_back(
    site: Path, rows: Path, tmp_path: Path
) -> None:
    install(site, points=KNOWN)
    source = get_task("words").load(rows)
    words = get_task("words")
    named = [step for one in source.steps if (step := words.named(one))]
    convert(replace(source, steps=named), tmp_path / "out", embed=False)
    found = load(tmp_path / "out", "words", ("language",))
    assert [(step.episode, step.group) for step in found.steps] == [
        (f"of {one['language']}", one["words"]) for one in ROWS
    ]


def test_its_overview_and_its_scorer_serve_info_and_score(
    site: Path, rows: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    install(site, points="words = words_plugin:Told")
    votes = tmp_path / "votes.jsonl"
    votes.write_text('{"vote": "1", "is": 1}\n{"vote": "2", "is": 0}\n', encoding="utf-8")
    shown = told(capsys, "info", "words", rows, "--expect", "paper", code=1)
    assert "Letters of the questions" in shown
    assert "differs from the paper's Table 1: there are 3 questions, published 4" in shown
    assert "Expected: paper" in told(capsys, "info", "words", rows, "--expect", "other", code=2)
    figure = tmp_path / "f.png"
    assert "no figure of words" in told(capsys, "info", "words", rows, "--plot", figure, code=2)
    assert "agreement" in told(capsys, "score", "words", rows, votes, "--out", tmp_path / "votes")
    found = compare(tmp_path / "votes", tmp_path / "votes", resamples=50)
    assert found.overall.metrics["agreement"].a == 0.5


def scored(task: Task, rows: Path, out: Path, profile: str, *said: str) -> Run:
    """Answers scored into a folder that says on which data."""
    source = task.load(rows)
    answers = [
        Prediction(sample_id=step.sample_id, output=text)
        for step, text in zip(source.steps, said, strict=True)
    ]
    omnidata.score(
        task,
        task.profiles[profile],
        source.steps,
        answers,
        whole=np.ones(len(source.steps), dtype=np.bool_),
        out=out,
    )
    return read_run(out)


def test_metrics_of_its_own_names_are_compared_and_reported(
    site: Path, rows: Path, tmp_path: Path
) -> None:
    install(site, points="words = words_plugin:Told")
    task = get_task("words")
    for profile, name, values in (
        ("words-graded", "found", (0.5, 1.0)),
        ("words-graded", "letters", (4.0, 5.0)),
        ("words-rated", "rate", (1 / 8, 2 / 10)),
    ):
        a = scored(task, rows, tmp_path / f"a-{profile}", profile, "fig", "Birne", "")
        b = scored(task, rows, tmp_path / f"b-{profile}", profile, "melon", "Birne", "")
        found = compare(a.path, b.path, data=rows, resamples=50).overall.metrics[name]
        assert (found.a, found.b) == pytest.approx(values)
        assert (a.results["overall"][name], b.results["overall"][name]) == pytest.approx(values)
        assert name in report([a, b]).text("terminal")


def test_its_published_rows_stand_beside_its_runs(site: Path, rows: Path, tmp_path: Path) -> None:
    install(site, points="words = words_plugin:Told")
    task = get_task("words")
    run = scored(task, rows, tmp_path / "run", "words-graded", "fig", "Birne", "")
    made = {each.name: each for each in report([run], with_published=True, by=["language"]).tables}
    main = made["main"]
    assert [head.header for head in main.heads] == ["Overall", "German", "English"]
    assert [row.labels for row in main.rows] == [("Reader 1",), ("run",)]
    shown = [cell.value for cell in main.rows[0].cells]
    assert shown == [0.75, None, 0.5, None, None, None]
    assert "Found counts as Reader 1 counts." in main.notes
    beside = made["by-language"]
    assert [head.header for head in beside.heads] == ["run", "Reader 3"]
    assert {row.group: row.cells[-1].value for row in beside.rows} == {"de": 0.25, "en": None}
    best = task.published.best(task.options)
    assert best.metrics["found"].model == "Reader 1"


def test_tags_are_chosen_in_any_spelling_of_its_own(site: Path, rows: Path, tmp_path: Path) -> None:
    install(site, points="words = words_plugin:Told")
    task = get_task("words")
    where = {"language": "German"}
    source = task.load(rows)
    found = omnidata.evaluate(task, source, "baseline:oracle", tmp_path / "run", where=where)
    assert found["counts"]["steps"] == 1
    opened = omnidata.load_dataset("words", rows, "GERMAN", split="test", cache_dir=tmp_path / "c")
    assert opened["language"] == ["de"]


def test_what_is_spoken_is_its_own_say(site: Path, rows: Path) -> None:
    install(site, points="words = words_plugin:Told")
    task = get_task("words")
    steps = task.load(rows).steps
    found, _ = utterances(steps, task.spoken)
    wanted = dict.fromkeys(
        text for step in steps for text in (step.instruction, step.tags["language"])
    )
    assert [utterance.text for utterance in found] == list(wanted)


def test_a_failure_of_its_overview_names_the_distribution(site: Path, rows: Path) -> None:
    install(site, points="words = words_plugin:Told")
    (site / "words_plugin.py").write_text(
        PLUGIN + MEMBERS + "\n\nTold.overview = BrokenView\n", encoding="utf-8"
    )
    task = get_task("words")
    view = task.overview(task.overview.read(task, rows, strict=False))
    assert view.episodes == 3
    with pytest.raises(PluginError, match=r"omnidata-words 1\.2 .*KeyError: .*in tables"):
        view.tables()
