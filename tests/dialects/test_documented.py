"""`docs/dialects.md`: every dialect stands in it, and the one that it writes works."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from omnidata.dialects import dialects
from omnidata.errors import PluginError
from tests import plugs
from tests.cli.running import here
from tests.goldens import worlds

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "dialects.md").read_text("utf-8")
MODULE = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[0]


def test_every_dialect_is_in_the_table() -> None:
    assert [name for name in dialects() if f"`{name}`" not in TEXT] == []


@pytest.mark.parametrize(
    ("declared", "wrong", "said"),
    [
        ('title = "Answers that are shouted"', "", "has no `title`"),
        ('frame = Frame("norm1000")', 'frame = "norm1000"', "no Frame as its `frame`"),
        ('says = {"mobile"', 'says = {"phone"', "`says` without known platforms"),
        ('"tap", "back"', '"tap", "press"', "unknown kinds of actions in `says`: press"),
    ],
)
def test_a_wrong_declaration_of_a_dialect_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, declared: str, wrong: str, said: str
) -> None:
    site = plugs.on_path(tmp_path / "site", "shout", monkeypatch)
    (site / "shout.py").write_text(MODULE.replace(declared, wrong), encoding="utf-8")
    plugs.install(site, "shout-dialect", "omnidata.dialects", "shout = shout:DIALECTS")
    dialects.cache_clear()
    try:
        with pytest.raises(PluginError, match=re.escape(said)):
            dialects()
    finally:
        monkeypatch.undo()
        dialects.cache_clear()


def test_the_dialect_of_the_page_asks_and_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, entry = re.findall(r'entry-points\."(.*?)"\]\n(.*?)\n', TEXT)[0]
    name, value = (part.strip(' "') for part in entry.split("="))
    site = plugs.on_path(tmp_path / "site", "shout", monkeypatch)
    (site / "shout.py").write_text(MODULE, encoding="utf-8")
    plugs.install(site, "shout-dialect", group, f"{name} = {value}")
    dialects.cache_clear()
    data = worlds.build("aitz", tmp_path / "world")
    command = ["evaluate", "aitw", str(data), "--model", "baseline:oracle", "-T", "dialect=shout"]
    try:
        done = here(*command, "--out", tmp_path / "run", "--json")
    finally:
        monkeypatch.undo()
        dialects.cache_clear()
    found = json.loads(done.stdout)["dialect"]
    assert 0 < found["read"] == found["expressed"] == found["expressible"] < found["steps"]
