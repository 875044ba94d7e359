"""What training shares with an evaluation is found, and what it does not share is not."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from omnidata.run.selection import read_exclude
from omnidata.training.export import Exported
from tests.data.tiny import SIZE
from tests.export.small import TAP, codes, folder, load, rows, studio, tree, written
from tests.loaders.agentstudio import ground, pictures, write


def strangers(tmp_path: Path) -> tuple[Path, Path]:
    """Data to train on and to evaluate on, which share nothing."""
    training = tree(tmp_path / "a", instruct="Open mail {}".format)
    return training, tree(tmp_path / "b", seed=5000, instruct="Like talk {}".format)


def check(tmp_path: Path, training: Path, evaluation: Path) -> Exported:
    return written(training, tmp_path / "out", against=load(evaluation))


def test_other_episodes_share_nothing(tmp_path: Path) -> None:
    training = tree(tmp_path / "a", episodes=2, instruct="Open mail {}".format)
    evaluation = tree(tmp_path / "b", episodes=2, seed=5000, instruct="Like talk {}".format)
    assert not check(tmp_path, training, evaluation).findings
    assert (tmp_path / "out" / "leaks.txt").read_text().count("\n") == 1


def test_the_same_episode_is_found_under_any_spelling_of_its_app(tmp_path: Path) -> None:
    training = tree(tmp_path / "a", app="GTrans", instruct="Open mail {}".format)
    evaluation = tree(tmp_path / "b", app="Google_Translate", actions=[TAP])
    for path in folder(evaluation, app="Google_Translate").glob("*.png"):
        Image.new("RGB", SIZE, (9, 9, 9)).save(path)
    done = check(tmp_path, training, evaluation)
    assert codes(done) == ["leak-episode"]
    assert "Google_Translate/E00/0" in done.findings[0].what
    assert done.findings[0].severity == "error"


def test_a_twin_of_an_episode_that_is_evaluated_on_is_found(tmp_path: Path) -> None:
    training = tree(tmp_path / "a", episodes=4, twins=4, actions=[TAP])
    source = load(tree(tmp_path / "b", episodes=4, twins=4, seed=5000, actions=[TAP]))
    last = replace(source.steps[-1], episode_id="E77", instruction="Like talk", source={
        name: value for name, value in source.steps[-1].source.items() if name == "twins"
    })  # fmt: skip
    against = replace(source, steps=[last], episode_rows={})
    done = written(training, tmp_path / "out", against=against)
    assert codes(done) == ["leak-episode"]
    assert "the group of App/E50003/0" in done.findings[0].what
    listed = (tmp_path / "out" / "leaks.txt").read_text().splitlines()[1:]
    assert listed == [f"App/E0{number}/0" for number in range(4)]


def test_an_episode_is_found_in_a_copy_without_the_column_of_twins(tmp_path: Path) -> None:
    training = tree(tmp_path / "a", episodes=2, twins=2, actions=[TAP])
    evaluation = tree(tmp_path / "b", episodes=2, actions=[TAP], instruct="Like talk {}".format)
    for number in range(2):
        shutil.rmtree(folder(evaluation, number))
    source = load(evaluation)
    done = written(training, tmp_path / "out", against=replace(source, steps=source.steps[1:]))
    assert codes(done) == ["leak-episode", "leak-unchecked"]
    assert done.findings[0].where == "App/E01/0"
    assert "the episode of App/E01/0" in done.findings[0].what


def test_what_is_shared_is_named_by_the_step_that_shares_it(tmp_path: Path) -> None:
    """A page of GroundUI is a group; one of its instructions may be shared alone."""
    path = tmp_path / "a" / "rows.jsonl"
    rows = [ground(instruction="Click this"), ground(instruction="Click that")]
    pictures(tmp_path / "a" / "images", ["a.png"])
    pictures(tmp_path / "b" / "images", ["b.png"])
    source = load(write(path, *rows), "groundui")
    other = write(tmp_path / "b" / "rows.jsonl", ground(image="b.png", instruction="Click that"))
    done = written(path, tmp_path / "out", task="groundui", against=load(other, "groundui"))
    assert codes(done) == ["leak-instruction"]
    assert done.findings[0].where == source.steps[1].sample_id


def test_rows_of_the_evaluation_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    training, evaluation = strangers(tmp_path)
    done = written(training, tmp_path / "out", against=replace(load(evaluation), skipped=2))
    assert codes(done) == ["leak-unchecked"]
    assert done.findings[0].what.startswith("2 rows")


def test_the_same_instruction_is_found_whatever_its_case_and_signs(tmp_path: Path) -> None:
    training = tree(tmp_path / "a", instruct=lambda _: "Like “the”  talk!")
    evaluation = tree(tmp_path / "b", seed=5000, instruct=lambda _: "like the TALK")
    assert codes(check(tmp_path, training, evaluation)) == ["leak-instruction"]


@pytest.mark.parametrize("of", ["step", "episode"])
def test_an_instruction_is_found_in_the_other_language_of_a_row(tmp_path: Path, of: str) -> None:
    training, evaluation = strangers(tmp_path)
    source = load(evaluation)
    told = load(training).steps[0].instruction
    first = source.steps[0]
    row = {"instruction_zh": told.upper()}
    asked = replace(first, source={**first.source, **row}) if of == "step" else first
    rows = {first.episode: row} if of == "episode" else {}
    against = replace(source, steps=[asked], episode_rows=rows)
    done = written(training, tmp_path / "out", against=against)
    assert told != first.instruction
    assert codes(done) == ["leak-instruction"]


@pytest.mark.parametrize("suffix", ["png", "bmp in png's clothes"])
def test_the_same_screenshot_is_found_however_it_is_stored(tmp_path: Path, suffix: str) -> None:
    training, evaluation = strangers(tmp_path)
    target = folder(evaluation, seed=5000) / "3.png"
    with Image.open(folder(training) / "2.png") as picture:
        if suffix == "png":
            picture.save(target, compress_level=0)
        else:
            picture.save(target, "WEBP", lossless=True)
    done = check(tmp_path, training, evaluation)
    assert codes(done) == ["leak-screenshot"]
    assert done.findings[0].where == "App/E00/1"
    assert "App/E50000/2" in done.findings[0].what


def test_screens_in_one_colour_are_no_evidence(tmp_path: Path) -> None:
    training, evaluation = strangers(tmp_path)
    black = Image.new("RGB", SIZE)
    black.save(folder(training) / "1.png")
    black.save(folder(evaluation, seed=5000) / "1.png")
    assert not check(tmp_path, training, evaluation).findings


def test_pictures_that_cannot_be_compared_are_counted(tmp_path: Path) -> None:
    training, evaluation = strangers(tmp_path)
    (folder(evaluation, seed=5000) / "1.png").write_bytes(b"")
    done = check(tmp_path, training, evaluation)
    assert codes(done) == ["leak-unchecked"]
    assert done.findings[0].what.startswith("1 pictures")
    assert done.findings[0].severity == "warning"


def test_what_is_only_tested_with_may_be_evaluated_on(tmp_path: Path) -> None:
    data = tree(tmp_path / "a", actions=[TAP])
    shares = {"test": 1.0}
    done = written(data, tmp_path / "out", against=load(data), shares=shares)
    assert not done.findings


def test_without_the_episodes_that_leak_nothing_leaks(tmp_path: Path) -> None:
    training = tree(tmp_path / "a", episodes=3, instruct="Open mail {}".format)
    evaluation = tree(tmp_path / "b", seed=5000, instruct="Like talk {}".format)
    shutil.copy(folder(training, 1) / "1.png", folder(evaluation, seed=5000) / "1.png")
    done = check(tmp_path, training, evaluation)
    assert codes(done) == ["leak-screenshot"]
    listed = read_exclude(tmp_path / "out" / "leaks.txt", load(training).steps)
    assert listed == {f"App/E01/{number}" for number in range(4)}
    again = written(training, tmp_path / "again", against=load(evaluation), exclude=listed)
    assert not again.findings
    assert len(rows(tmp_path / "again")) == 8


def test_rows_of_agentstudio_are_compared_too(tmp_path: Path) -> None:
    path = studio(tmp_path / "data", "groundui")
    source = load(path, "groundui")
    done = written(path, tmp_path / "out", task="groundui", against=source)
    # The pictures are in one colour each.
    assert codes(done) == ["leak-episode", "leak-instruction"] * 2
