"""`docs/export.md`: every format stands there, and the one that it declares works."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnidata.tasks import get_task
from omnidata.torch import exported_table
from omnidata.training.formats import OURS, formats
from tests import plugs
from tests.cli.running import EXPORT, here
from tests.export.small import TAP, load, rows, tree
from tests.export.test_preferences import NEAR, asked

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "export.md").read_text("utf-8")
AMISS = """
from omnidata.training.formats import AnswerFormat

class Far(AnswerFormat):
    name = "far"
    def files(self, task, splits):
        return {"../far.json": {}}

class Text(AnswerFormat):
    name, holds = "text", "image"

FAR, TEXT = Far(), Text()
"""


@pytest.fixture(autouse=True)
def talk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (module,) = re.findall(r"```python\n(from omnidata.training.formats.*?)```", TEXT, re.DOTALL)
    group, points = re.findall(r'entry-points\."(.*?)"\]\n(.*?)```', TEXT, re.DOTALL)[0]
    site = plugs.on_path(tmp_path / "site", "talk", monkeypatch)
    (site / "talk.py").write_text(module, encoding="utf-8")
    plugs.install(site, "talk-format", group, points.replace('"', ""))
    formats.cache_clear()
    yield
    monkeypatch.undo()
    formats.cache_clear()


def test_every_format_is_on_a_page() -> None:
    pages = TEXT + (DOCS / "preferences.md").read_text("utf-8")
    assert [form.name for form in OURS if f"`{form.name}`" not in pages] == []


def test_rows_of_a_format_of_ones_own_are_written_checked_and_read_back(tmp_path: Path) -> None:
    instructions = ("Tap it", "Tap <video> twice")
    data = tree(tmp_path / "data", episodes=2, actions=[TAP], instruct=instructions.__getitem__)
    own = ("--format", "talk", "--split", "train=1")
    command = (*EXPORT, "omnigui", data, tmp_path / "out", *own)
    assert "hold no audio" in here(*command, code=2).stderr
    for more in ((), ("--overwrite",)):
        done = here(*command, "--drop-audio", *more, code=1)
        assert "placeholder-in-text" in done.stderr
    (row,) = rows(tmp_path / "out")
    step = load(data).steps[0]
    target = get_task("omnigui").target(step)
    assert target
    assert [turn["who"] for turn in row["talk"]] == ["rules", "person", "agent"]
    assert row["talk"][-1]["text"] == target.text
    assert (len(row["pictures"]), len(row["clips"])) == (1, 1)
    index = json.loads((tmp_path / "out" / "index.json").read_text())
    assert index == {"benchmark": "omnigui", "files": ["train.jsonl"]}
    (found,) = exported_table(tmp_path / "out")
    assert (found["example"].sample_id, found["example"].answer) == (step.sample_id, target.text)


def test_preferences_of_a_format_of_ones_own_have_both_answers(tmp_path: Path) -> None:
    data = tree(tmp_path / "data", actions=[TAP])
    runs = (asked(data, tmp_path / "a"), asked(data, tmp_path / "b", {0: NEAR}))
    here(
        *EXPORT, "omnigui", data, tmp_path / "out", "--format", "talk-pairs", "--drop-audio",
        "--split", "train=1", "--pairs", runs[0], "--pairs", runs[1],
    )  # fmt: skip
    (row,) = rows(tmp_path / "out")
    assert (row["worse"], row["cause"]) == (NEAR, "near_miss")


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("json:dumps", "no format"),
        ("talk:FORMATS", "a second format talk"),
        ("absent:X", "imported"),
        ("amiss:FAR", "the format far has the file '../far.json'"),
        ("amiss:TEXT", "the format text has 'image' as `holds`"),
    ],
)
def test_a_distribution_without_a_format_of_its_own_is_named(
    value: str, fault: str, tmp_path: Path
) -> None:
    (tmp_path / "site" / "amiss.py").write_text(AMISS, encoding="utf-8")
    plugs.install(tmp_path / "site", "broken", "omnidata.formats", f"x = {value}")
    command = (*EXPORT, "omnigui", tree(tmp_path / "data", actions=[TAP]), tmp_path / "out")
    said = here(*command, "--format", "mine", code=None).stderr
    assert fault in said
    assert value.partition(":")[0] in said
    here(*command, "--format", "llamafactory", "--split", "train=1")  # ours need no other's code
