"""What an export says of itself, so that nothing is lost in silence."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from omnidata import media
from omnidata.actions import Action, Box
from omnidata.types import MediaRef
from tests.cli.running import EXPORT, as_json, omnidata
from tests.data.tiny import SIZE
from tests.export.small import TAP, codes, folder, load, rows, tree, written


def test_rows_that_became_no_step_make_exit_code_1(tmp_path: Path) -> None:
    data = tree(tmp_path / "data", episodes=2, actions=[TAP])
    for path in (folder(data) / "E00.json", data / "App" / "dataset_App.json"):
        made = json.loads(path.read_text())
        made[0]["step_id"] = "first"
        path.write_text(json.dumps(made))
    done = omnidata(
        *EXPORT, "omnigui", data, tmp_path / "out", "--format", "swift", "--split", "train=1",
        "--json", code=1,
    )  # fmt: skip
    said = as_json(done)
    assert [found["code"] for found in said["findings"]] == ["rows-skipped"]
    assert said["findings"][0]["what"].startswith("1 row ")
    assert len(rows(tmp_path / "out")) == 1


def test_the_choice_of_steps_is_in_the_report(tmp_path: Path) -> None:
    data = tree(tmp_path / "data", episodes=3, actions=[TAP])
    other = load(tree(tmp_path / "other", seed=5000, instruct="Like talk {}".format))
    plain = written(data, tmp_path / "plain").report
    assert [plain[name] for name in ("where", "exclude", "limit", "check_against")] == [
        {}, [], None, None,
    ]  # fmt: skip
    chosen = written(
        data, tmp_path / "out", where={"app": "App"}, exclude=frozenset({"App/E00/0"}), limit=1,
        against=other,
    ).report  # fmt: skip
    assert chosen["where"] == {"app": "App"}
    assert chosen["exclude"] == ["App/E00/0"]
    assert chosen["limit"] == 1
    assert chosen["check_against"] == other.fingerprint
    assert chosen["dataset_fingerprint"] == plain["dataset_fingerprint"]


@pytest.mark.parametrize("name", ["two\nlines", "\u2028", "\ud800"])
def test_a_step_whose_id_seen_txt_cannot_hold_is_named(name: str, tmp_path: Path) -> None:
    source = load(tree(tmp_path / "data", episodes=2, actions=[TAP]))
    first, second = source.steps
    steps = [replace(first, sample_id=f"App/{name}/0"), second]
    done = written(replace(source, steps=steps), tmp_path / "out")
    assert [found.code for found in done.findings if found.where == steps[0].sample_id] == (
        ["text-unwritable", "id-unlisted"] if name == "\ud800" else ["id-unlisted"]
    )
    lines = (tmp_path / "out" / "seen.txt").read_text().splitlines()
    assert lines[1:] == [second.sample_id]


def test_episodes_are_counted_one_by_one_though_twins_fall_together(tmp_path: Path) -> None:
    data = tree(tmp_path / "data", episodes=4, twins=4, actions=[TAP])
    done = written(data, tmp_path / "out")
    assert done.report["splits"]["train"] == {
        "file": "train.jsonl",
        "episodes": 4,
        "groups": 1,
        "steps": 4,
        "share": {"groups": 1.0, "steps": 1.0},
    }


def test_the_share_that_each_split_got_is_told_and_warned_of_where_it_is_far_off(
    tmp_path: Path,
) -> None:
    data = tree(tmp_path / "data", episodes=12, actions=[TAP])
    done = written(data, tmp_path / "out", shares={"train": 0.5, "validation": 0.1, "test": 0.4})
    got = {split: found["groups"] for split, found in done.report["splits"].items()}
    assert sum(got.values()) == 12
    for split, found in done.report["splits"].items():
        assert found["share"] == {"groups": got[split] / 12, "steps": got[split] / 12}
    told = {finding.where: finding for finding in done.findings}
    far = {
        split
        for split, share in {"train": 0.5, "validation": 0.1, "test": 0.4}.items()
        if not share / 2 <= got.get(split, 0) / 12 <= share * 2
    }
    assert set(told) == far == {"validation"}
    assert told["validation"].severity == "warning"
    assert told["validation"].code == ("split-uneven" if got.get("validation") else "split-empty")


def test_sixteen_bits_of_grey_are_written_as_evaluation_shows_them(tmp_path: Path) -> None:
    """Many trainers cut them off at 255, which leaves a white screen."""
    data = tree(tmp_path / "data", actions=[TAP])
    grey = np.linspace(0, 65535, SIZE[0] * SIZE[1]).astype(np.uint16).reshape(SIZE[::-1])
    buffer = io.BytesIO()
    Image.fromarray(grey).save(buffer, "PNG")
    (folder(data) / "1.png").write_bytes(buffer.getvalue())
    assert not codes(written(data, tmp_path / "out"))
    (name,) = rows(tmp_path / "out")[0]["images"]
    with Image.open(tmp_path / "out" / name) as picture:
        shown = np.asarray(picture.convert("RGB"))
    evaluated = media.image(MediaRef("image", folder(data), "1.png")).pixels
    assert (shown == evaluated).all()
    assert shown.std() > 50


@pytest.mark.parametrize("unit", ["norm1000", "rel", "px"])
def test_an_answer_beyond_the_screen_is_not_taught(unit: str, tmp_path: Path) -> None:
    """In every unit: that the profile would take it does not make it a place to tap."""
    data = tree(tmp_path / "data", actions=[Action("tap", (Box(90, 20, 95, 44, "px"),)), TAP])
    done = written(data, tmp_path / "out", coordinates=unit)
    found = [finding for finding in done.findings if finding.severity == "error"]
    assert [(one.code, one.where) for one in found] == [("target-unreachable", "App/E00/0")]
    assert len(rows(tmp_path / "out")) == 1
