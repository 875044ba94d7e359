"""The README of a repository: its datasheet has the data's own numbers, and claims no licence."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import datasets
import pytest
from huggingface_hub import DatasetCard

from omnidata.data.convert import convert
from omnidata.tasks import get_task
from tests.export.small import tree
from tests.loaders import phones
from tests.loaders.agentstudio import ground, write


@pytest.mark.parametrize("embed", [True, False])
def test_the_card_is_one_of_the_hub_and_every_config_loads(tmp_path: Path, embed: bool) -> None:
    data = tree(tmp_path / "data", episodes=2)
    out = tmp_path / "out"
    convert(get_task("omnigui").load(data), out, embed=embed)
    card = DatasetCard.load(out / "README.md")
    about: Any = card.data
    assert (about.license, about.language) == ("unknown", ["en"])  # nobody's data are claimed
    assert about.size_categories == ["n<1K"]
    assert "audio-text-to-text" in about.task_categories and "gui-agent" in about.tags
    infos = {info["config_name"]: info for info in about.dataset_info}
    names = datasets.get_dataset_config_names(str(out))
    assert names == [*infos] == [config["config_name"] for config in about.configs]
    for name in names:
        loaded = datasets.load_dataset(str(out), name, split="test", cache_dir=str(tmp_path / "c"))
        assert len(loaded) == infos[name]["splits"][0]["num_examples"] > 0
    assert [column["name"] for column in infos["all"]["features"]] == loaded.column_names
    listed = re.findall(r"^\| `([\w.\[\]]+)` \| ", card.text, re.M)
    assert [path for path in listed if "." not in path] == loaded.column_names
    (block,) = re.findall(r"```python\n(.*?)```", card.text, re.S)
    names_of_block: dict[str, Any] = {}
    exec(block.replace("path/to/out", str(out)), names_of_block)
    assert len(names_of_block["steps"]) >= len(names_of_block["part"]) > 0


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


def test_only_publications_of_the_same_form_are_named(tmp_path: Path) -> None:
    data = phones.two_episodes("aitw", tmp_path / "data")
    form = {step.tags["form"] for step in get_task("aitw").load(data).steps}
    assert form == {"aitw"}
    text = readme("aitw", data, tmp_path / "out")
    assert "`cc-by-4.0`, as its publisher says; cite [arXiv:2307.10088]" in text
    assert "openbmb/CAGUI" not in text
