"""The README of a repository: its datasheet has the data's own numbers, and claims no licence."""

from __future__ import annotations

from pathlib import Path

import yaml

from omnidata.data.convert import convert
from omnidata.tasks import get_task
from tests.loaders import phones
from tests.loaders.agentstudio import ground, write
from tests.trees import row, write_app


def readme(task: str, data: Path, out: Path) -> str:
    convert(get_task(task).load(data), out, embed=True)
    return (out / "README.md").read_text("utf-8")


def test_the_datasheet_counts_what_is_there(tmp_path: Path) -> None:
    rows = [ground(bbox=[0, 0, 72, 9]), ground(image="b.png", platform="a|<b>"), ground(bbox=None)]
    text = readme("groundui", write(tmp_path / "rows.jsonl", *rows), tmp_path / "out")
    assert "2 steps of 2 episodes" in text and "1 row of the source became no step" in text
    assert "| platform | web | 1 |" in text and "| platform | a\\|\\<b\\> | 1 |" in text
    assert "| element, % of the screen | 2 | 0 |" in text
    assert "| media-absent |" in text
    assert text.count("**To be filled in.**") == 5
    assert "`omnidata evaluate groundui out" in text


def test_no_licence_is_claimed_for_anybodys_data(tmp_path: Path) -> None:
    write_app(tmp_path / "data" / "TED", [row("A")])
    text = readme("omnigui", tmp_path / "data", tmp_path / "out")
    front = yaml.safe_load(text.split("---\n")[1])
    assert front["license"] == "unknown"
    assert front["language"] == ["en"]


def test_only_publications_of_the_same_form_are_named(tmp_path: Path) -> None:
    data = phones.two_episodes("aitw", tmp_path / "data")
    form = {step.tags["form"] for step in get_task("aitw").load(data).steps}
    assert form == {"aitw"}
    text = readme("aitw", data, tmp_path / "out")
    assert "`cc-by-4.0`, as its publisher says" in text
    assert "openbmb/CAGUI" not in text
