"""What a plug-in reads: its rows, their media, and the ways in which their steps are opened."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import datasets
import numpy as np
import pytest
from PIL import Image

import omnidata
from omnidata import media
from omnidata.data.convert import convert
from omnidata.data.validate import validate
from omnidata.errors import DataError, MediaError, UsageError
from omnidata.loaders.load import recognise
from omnidata.loaders.repository import load
from omnidata.predictions import Prediction
from omnidata.tasks import get_task
from omnidata.types import MediaRef
from tests.full import FULL
from tests.tasks.words import ROWS, install, told
from tests.trees import row, write_lines, write_rows


def test_its_media_stay_in_the_data_whatever_a_link_says(
    site: Path, rows: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    install(site, points="shown = words_plugin:Shown")
    private = tmp_path_factory.mktemp("private")
    Image.new("RGB", (8, 8)).save(private / "a.png")
    (rows.parent / "media").symlink_to(private)

    def shown() -> MediaRef | None:
        source = get_task("shown").load(rows, check_media=False)
        return source.steps[0].media["screenshot"]

    found = shown()
    assert found
    with pytest.raises(MediaError, match="--media-root"):
        media.check(found)
    with omnidata.following([private]):
        found = shown()
    assert found
    media.check(found)


@pytest.mark.parametrize("verb", ["info", "score"])
def test_its_overview_and_its_scorer_read_nothing_outside_the_data(
    site: Path, rows: Path, tmp_path_factory: pytest.TempPathFactory, verb: str,
) -> None:  # fmt: skip
    private = tmp_path_factory.mktemp("private") / "secret.jsonl"
    private.write_text('{"vote": "1", "is": 1}\n', encoding="utf-8")
    link = rows.parent / "votes.jsonl"
    link.symlink_to(private)
    code = """
from omnidata.files import read_file

def _peek(self, *given, **options):
    raise AssertionError(read_file(LINK, 1 << 20))

Letters.read = classmethod(_peek)
type(Told.rollouts).score = _peek
""".replace("LINK", f"__import__('pathlib').Path({str(link)!r})")
    install(site, code, points="words = words_plugin:Told")
    votes = [tmp_path_factory.mktemp("own") / "votes.jsonl"] * (verb == "score")
    for path in votes:
        path.write_text('{"vote": "1", "is": 1}\n', encoding="utf-8")
    found = told(verb, "words", rows.parent, *votes, code=2)
    assert "votes.jsonl" in found and "AssertionError" not in found


UNSAFE = ["../../etc/passwd", "/tmp/secret.png", "https://x.org/a.png"]


def shots(folder: Path, paths: list[str]) -> Path:
    """Rows that name these pictures, below media/."""
    data = write_lines(folder / "words.jsonl", [ROWS[0] | {"shot": path} for path in paths])
    (folder / "media").mkdir()
    for path in {"a.png", "b.png"} & {*paths}:
        Image.radial_gradient("L").save(folder / "media" / path)
    return data


def test_pictures_whose_paths_lead_out_of_the_data_are_findings(site: Path, tmp_path: Path) -> None:
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
    told("validate", "shown", data, "--workers", "1", "--quarantine", leave, code=1)
    assert leave.read_text("utf-8").split("\n")[1:-1] == [f"words/{n}" for n in (0, 1, 2, 4)]
    converted = told("convert", "shown", data, tmp_path / "out", code=1)
    assert converted.count("path-unsafe") == 3
    assert [one.code for one in load(tmp_path / "out", "shown", ("language",)).findings] == [
        "path-unsafe"
    ] * 3


def test_a_screen_of_unknown_size_differs_from_no_picture(site: Path, tmp_path: Path) -> None:
    install(site, points="shown = words_plugin:Shown")
    source = get_task("shown").load(shots(tmp_path, ["a.png"]))
    assert validate(source, workers=0).findings == []


def test_rows_of_datasets_do_not_lose_a_picture_in_silence(
    site: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install(site, points="listed = words_plugin:Shown")
    data = shots(tmp_path, ["a.png", "b.png", UNSAFE[0]])
    (tmp_path / "media" / "b.png").unlink()
    (tmp_path / "media" / "b.png").symlink_to("/etc/hostname")
    rows = omnidata.load_dataset("listed", data, split="test", streaming=True)
    assert [row["screenshot"] is None for row in rows] == [False, True, True]
    assert "1 findings; `omnidata validate listed" in caplog.text
    lost = [one.getMessage() for one in caplog.records if "the rows lack them" in one.getMessage()]
    assert sum(int(line.split(": ")[1].split()[0]) for line in lost) == 2
    assert len(lost) == 1
    assert f"`omnidata validate listed {data}` says why" in lost[0]


def test_a_repeated_sample_id_is_a_finding_and_its_row_is_skipped(
    site: Path, tmp_path: Path
) -> None:
    """The oracle has all that is left right, and no step is missing."""
    install(site)
    rows = [ROWS[0], ROWS[1] | {"id": "words/0"}, ROWS[1], ROWS[1] | {"id": "words/0"}]
    data = write_lines(tmp_path / "words.jsonl", rows)
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
        ([("e", 0, "mail", 1), ("e", 1, "maps", 1)], False),  # whole episodes of one step
    ],
    ids=["goes-and-comes", "without", "one-each", "two-of-one-id", "whole"],
)
def test_an_episode_whose_app_changes_is_named(
    site: Path, tmp_path: Path, places: list[tuple[object, ...]], torn: bool
) -> None:
    install(site, points="walk = words_plugin:Walk")
    fields = ("episode", "step", "app", "held")
    rows = [ROWS[0] | dict(zip(fields, place, strict=False)) for place in places]
    data = write_lines(tmp_path / "walk.jsonl", rows)
    task = get_task("walk")
    found = [(one.code, one.where) for one in task.load(data).findings]
    assert found == ([("episode-torn", "e")] if torn else [])
    if torn:
        with pytest.raises(DataError, match="the tag app changes within the episode"):
            task.load(data, strict=True)


def test_a_number_that_comes_twice_in_an_episode_is_named(site: Path, tmp_path: Path) -> None:
    install(site, points="walk = words_plugin:Walk")
    places = [("e", 0), ("e", 1), ("f", 0), ("e", 0), ("f", 1), ("e", 1)]
    rows = [ROWS[0] | {"episode": e, "step": n, "app": "mail"} for e, n in places]
    data = write_lines(tmp_path / "walk.jsonl", rows)
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
    row = ROWS[0] | {"box": box, "unit": unit, "screen": screen}
    data = write_lines(tmp_path / "words.jsonl", [row])
    found = get_task("placed").load(data).findings
    assert [(one.code, one.severity, one.sample_ids) for one in found] == (
        [(code, "warning", ("words/0",))] if code else []
    )


def test_a_plugin_says_itself_whether_a_folder_holds_its_data(site: Path, rows: Path) -> None:
    code = (
        "class Folder(Words):\n"
        "    def steps(self, data, note):\n"
        '        return super().steps(data / "words.jsonl", note)\n'
    )
    install(site, code, points="words = words_plugin:Folder")
    inner = rows.parent / "demo" / "data"
    inner.mkdir(parents=True)
    shutil.copy(rows, inner)
    read_inner = f"reading {inner}: {inner.parent} itself holds no data"
    assert read_inner in told("validate", "words", inner.parent)
    assert read_inner not in told("validate", "words", inner)
    shutil.copy(rows, inner.parent)
    assert read_inner not in told("validate", "words", inner.parent)


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
    processes = 2 if FULL or points == KNOWN else None
    german = datasets.load_dataset("words", "DE", num_proc=processes, **folder)
    assert german["instruction"] == [ROWS[1]["words"]]
    streamed = datasets.load_dataset("words", "en", streaming=True, **folder)
    assert [one["sample_id"] for one in streamed] == ["words/0", "words/2"]
    assert omnidata.load_dataset("words", rows, split="test").to_list() == found.to_list()
    assert (
        omnidata.load_dataset("words", rows, "en", split="test", num_proc=processes).num_rows == 2
    )
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


def test_the_name_of_a_builder_of_datasets_stays_its_own(
    site: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install(site, points="csv = words_plugin:Words")
    omnidata.register()
    table = datasets.packaged_modules._PACKAGED_DATASETS_MODULES
    assert table["csv"][0] != "omnidata.loaders.builders.csv"
    assert '"csv" is a builder of `datasets` itself' in caplog.text


def test_what_it_detects_is_found_without_its_name(site: Path, rows: Path, tmp_path: Path) -> None:
    install(site, points=KNOWN)
    assert recognise(rows) == ["words"]
    assert "2 episodes, 3 steps" in told("info", rows)
    about = told("info", "words")
    assert about.startswith("words: two words; which is longer\n")
    assert "subsets: all, en\n" in about
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


def test_its_own_remedy_stands_beside_the_names_of_tasks_whose_rows_lie_there(
    site: Path, rows: Path
) -> None:
    code = (
        "class Near(Words):\n"
        "    def steps(self, data, note):\n"
        '        if not (data / "words.jsonl").is_file():\n'
        '            raise DataError("no words", where=str(data), remedy="name its folder words")\n'
        "        return super().steps(data, note)\n"
    )
    install(site, code, points="words = words_plugin:Near")
    outer = rows.parent / "all"
    (outer / "words").mkdir(parents=True)
    rows.rename(outer / "words" / rows.name)
    write_rows(outer / "steps.json", [row()])
    with pytest.raises(DataError, match="no words") as caught:
        get_task("words").load(outer)
    assert caught.value.remedy == (
        "these are rows of omnigui: name that task, or name its folder words"
    )


def test_one_that_reads_the_data_to_detect_them_is_asked_once(site: Path, rows: Path) -> None:
    code = (
        "from omnidata.loaders.load import load_data\n\n\nclass Reads(Words):\n"
        "    def load(self, data, **given):\n"
        "        read = lambda: super(Reads, self).load(data, **given)\n"
        '        return load_data(data, "words", (), read, strict=False, check_media=False)\n\n'
        "    def detect(self, data):\n"
        "        return bool(self.load(data).steps)\n"
    )
    install(site, code, points="words = words_plugin:Reads")
    assert recognise(rows) == ["words"]
    broken = rows.with_name("rows.json")
    broken.write_text("[]")
    assert recognise(broken) == []


def test_its_rule_gives_a_repository_its_groups_back(
    site: Path, rows: Path, tmp_path: Path
) -> None:
    install(site, points=KNOWN)
    source = get_task("words").load(rows)
    words = get_task("words")
    named = [step for one in source.steps if (step := words.benchmark.group(one))]
    convert(replace(source, steps=named), tmp_path / "out", embed=False)
    found = load(tmp_path / "out", "words", ("language",))
    assert [(step.episode, step.group) for step in found.steps] == [
        (f"of {one['language']}", one["words"]) for one in ROWS
    ]


def test_a_benchmark_without_fixed_tags_reads_its_own_repository(
    site: Path, rows: Path, tmp_path: Path
) -> None:
    install(site)
    repository, run = tmp_path / "repository", tmp_path / "run"
    told("convert", "words", rows, repository)
    assert get_task("words").load(repository).tags == ("language",)
    told("evaluate", "words", repository, "--model", "baseline:oracle", "--out", run)
    by = json.loads((run / "results.json").read_text("utf-8"))["by"]
    assert by["language"].keys() == {"de", "en"}


def test_rows_of_datasets_are_read_anew_with_other_code_in_a_second_module(
    site: Path, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(text: str) -> list[str]:
        (site / "words_text.py").write_text(f"def text():\n    return {text!r}\n")
        for name in ("words_text", "words_plugin", "omnidata.loaders.builders.helped"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        found = omnidata.load_dataset(
            "helped", rows, split="test", cache_dir=str(tmp_path / "cache")
        )
        return [row["instruction"] for row in found]

    code = (
        "\nimport words_text\n\n\nclass Helped(Words):\n"
        "    def steps(self, data, note):\n"
        "        for step in super().steps(data, note):\n"
        "            yield replace(step, instruction=words_text.text())\n"
    )
    install(site, code, points="helped = words_plugin:Helped")
    assert set(read("one")) == {"one"}
    assert set(read("three")) == {"three"}
