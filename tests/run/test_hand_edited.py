"""Run folders that others edited: what is no value of a key is said, and no verb falls over it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnidata import predictions
from omnidata.errors import OmnidataError, RunError
from omnidata.run.evaluate import evaluate
from omnidata.run.run_files import read_run
from omnidata.tasks import get_task
from tests.cli.running import command_group
from tests.compare import making
from tests.full import FULL
from tests.trees import write_lines

FROZEN = Path(__file__).parents[1] / "goldens" / "frozen" / "run_folders"
WRONG = {
    "null": "null",
    "text": '"x"',
    "list": "[]",
    "object": "{}",
    "negative": "-1",
    "infinite": "1e400",
    "many digits": "1" + "0" * 5000,
    "large": "1" + "0" * 400,
    "true": "true",
    "fraction": "0.5",
    "surrogate": '"\\ud800"',
    "nul": '"a\\u0000/b"',
    "deep": "[" * 500 + "]" * 500,
    "deeper": '{"a":' * 50_000 + "1" + "}" * 50_000,
    "lists": '[[null], {"a": [1]}]',
}
ABSENT = "absent"
"""The key is not there at all."""
USUAL = ("null", "text", "infinite", "many digits", "surrogate", "deeper")
"""Those that the gate has time for, each place with one of them by turns, and with no key at all;
`make test-full` tries all in every place, in every verb."""
FILES = ("run.json", "results.json", "scores.jsonl", "predictions.jsonl", "attempts.jsonl")
_HERE = "@HERE@"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return making.data(tmp_path_factory.mktemp("edited"), episodes=2)


@pytest.fixture(scope="module")
def whole(data: Path) -> Path:
    """A run of one part with all files of a run folder."""
    source, run = making.loaded(data), data.parent / "run"
    answers = [
        {"sample_id": line["sample_id"], "output": line["output"], "usage": {"prompt_tokens": 3}}
        for line in making.lines(source, lambda step: "elsewhere")
    ]
    answers[0]["receipt"] = {"parts": [{"role": "screenshot", "kind": "image", "as": "pixels"}]}
    model = f"replay:{write_lines(data.parent / 'answers.jsonl', answers)}"
    evaluate(get_task("omnigui"), source, model, run, shard=(1, 1))
    failed = {**answers[0], "delivery": "api_error", "error": "503", "attempts": 2}
    write_lines(run / "attempts.jsonl", [failed])
    return run


def places(value: Any, place: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where there is a value in a JSON value, the whole included."""
    yield place
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, item in items:
            yield from places(item, (*place, key))


def edited(value: Any, place: tuple[str | int, ...], text: str) -> str:
    """JSON with the text in that place, or without it."""
    if not place:
        return "{}" if text == ABSENT else text
    changed = json.loads(json.dumps(value))
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    if text == ABSENT:
        del inner[place[-1]]
        return json.dumps(changed)
    inner[place[-1]] = _HERE
    return json.dumps(changed).replace(f'"{_HERE}"', text)


def edits(path: Path, text: str) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The content of a file with each value in turn replaced, or taken out."""
    if path.suffix == ".json":
        value = json.loads(path.read_text())
        yield from ((place, edited(value, place, text) + "\n") for place in places(value))
        return
    first, *rest = path.read_text().splitlines(keepends=True)
    value = json.loads(first)
    for place in places(value):
        yield place, edited(value, place, text) + "\n" + "".join(rest)


COMMAND = command_group()  # made once: it takes longer than most verbs on this run


def fallen(*arguments: str | Path) -> str:
    """Call a verb; what it falls over in place of saying what is wrong, or empty."""
    try:
        COMMAND.main(list(map(str, arguments)), standalone_mode=False)
    except OmnidataError as error:
        assert error.exit_code == 2
        assert error.where
    except Exception as error:
        return f"{arguments[0]}: {type(error).__name__}: {error}"
    return ""


def refused(run: Path) -> bool:
    """Whether the readers of the files refuse one."""
    try:
        read = read_run(run)
        assert read.scores is not None
        assert read.predictions is not None
        list(predictions.read(run / "attempts.jsonl", of_run=True))
    except OmnidataError:
        return True
    return False


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [*(WRONG if FULL else USUAL), ABSENT])
@pytest.mark.parametrize("name", FILES)
def test_a_wrong_value_in_any_place_is_said_or_harmless(
    whole: Path, data: Path, tmp_path: Path, name: str, wrong: str
) -> None:
    """Of what a reader refuses, a few go through a verb; of the rest, each through one by turns."""
    run = tmp_path / "run"
    tried = list(edits(whole / name, WRONG.get(wrong, ABSENT)))
    if not FULL and wrong in USUAL:
        tried = tried[USUAL.index(wrong) :: len(USUAL)]
    every = 1 if FULL else max(12, len(tried) // 2)
    in_all = FULL or wrong == ABSENT  # in place of the whole file
    model = json.loads((whole / "run.json").read_text())["model"].rpartition("@")[0]
    commands: list[tuple[str | Path, ...]] = [
        ("report", run, whole, "--by", "app"),
        ("score", "omnigui", data, run),
        ("compare", run, whole),
        ("report", run, "--html", tmp_path / "p.html", "--card", tmp_path / "c.md"),
        ("merge", run, "--out", tmp_path / "merged"),
        ("evaluate", "omnigui", data, "--model", model, "--shard", "1/1", "--out", run),
    ]
    found: list[str] = []
    shutil.copytree(whole, run)
    for number, (place, text) in enumerate(tried):
        (run / name).write_text(text)
        is_refused = refused(run)
        if is_refused and number % 40 == 0:
            chosen = commands if number == 0 and in_all else commands[:1]
        elif is_refused:
            chosen = []
        else:
            chosen = [each for turn, each in enumerate(commands) if (turn + number) % every == 0]
        for command in chosen:
            (run / name).write_text(text)
            found += [f"{place} {said}"] if (said := fallen(*command)) else []
            shutil.rmtree(tmp_path / "merged", ignore_errors=True)
            (tmp_path / "c.md").unlink(missing_ok=True)
            shutil.rmtree(run)
            shutil.copytree(whole, run)
        shutil.copy(whole / name, run / name)
    assert not found


@pytest.mark.parametrize(
    "run", sorted(FROZEN.glob("*/*")), ids=lambda run: "-".join(run.parts[-2:])
)
def test_a_run_of_an_older_version_is_read(run: Path) -> None:
    """With what that version wrote, and without what it did not."""
    read = read_run(run)
    assert read.scores.keys() == read.predictions.keys()
    assert read.settings["model"]


@pytest.mark.parametrize(
    ("name", "edit", "said"),
    [
        ("run.json", {"limit": "x"}, "Expected `int | null`, got `str` - at `$.limit`"),
        ("run.json", {"shard": "1/2"}, "Expected `array | null`, got `str` - at `$.shard`"),
        ("run.json", {"options": None}, "Expected `object`, got `null` - at `$.options`"),
        ("run.json", {"timings": []}, "Expected `object`, got `array` - at `$.timings`"),
        ("run.json", {"task": ...}, "Object missing required field `task`"),
        ("run.json", {"model": ...}, "Object missing required field `model`"),
        ("results.json", {"counts": None}, "Expected `object`, got `null` - at `$.counts`"),
        ("scores.jsonl", {"outcome": None}, "Expected `str`, got `null` - at `$.outcome`"),
        ("predictions.jsonl", {"usage": []}, "Expected `object`, got `array` - at `$.usage`"),
    ],
)
def test_what_is_wrong_is_said_with_file_line_key_and_kind(
    whole: Path, tmp_path: Path, name: str, edit: dict[str, Any], said: str
) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    first, *rest = [(run / name).read_text()] if name.endswith(".json") else read_texts(run / name)
    changed = json.loads(first) | edit
    kept = {key: value for key, value in changed.items() if value is not ...}
    (run / name).write_text(json.dumps(kept) + "\n" + "".join(rest))
    where = run / name if name.endswith(".json") else f"{run / name}:1"
    with pytest.raises(OmnidataError) as caught:
        read = read_run(run)
        assert read.scores
        assert read.predictions
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{where}: ")


@pytest.mark.parametrize("name", FILES[:3])
def test_a_file_of_a_run_folder_that_is_a_link_is_not_read(
    whole: Path, tmp_path: Path, name: str
) -> None:
    """Those with lines are tested with the journal."""
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    (run / name).rename(tmp_path / "victim")
    (run / name).symlink_to(tmp_path / "victim")
    before = (tmp_path / "victim").read_bytes()
    with pytest.raises(RunError, match="is a link"):
        assert read_run(run).scores
    assert (tmp_path / "victim").read_bytes() == before


def read_texts(path: Path) -> list[str]:
    """The lines of a file, with their ends."""
    return path.read_text().splitlines(keepends=True)


def test_an_id_with_a_lone_surrogate_is_named_and_not_tripped_over(
    data: Path, tmp_path: Path
) -> None:
    answers = tmp_path / "p.jsonl"
    answers.write_text('{"sample_id": "\\ud800", "output": "x"}\n')
    assert not fallen("score", "omnigui", data, answers)


@pytest.mark.parametrize("key", ["episode_id", "app", "instruction_en"])
def test_data_with_a_lone_surrogate_are_audited(data: Path, tmp_path: Path, key: str) -> None:
    rows = json.loads(data.read_text())
    for row in rows[::2]:
        row[key] += "\ud800"
    (tmp_path / "steps.json").write_text(json.dumps(rows))
    assert not fallen("audit", "omnigui", tmp_path / "steps.json")
