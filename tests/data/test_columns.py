"""Columns: docs/columns.md says what the code says, and every column has a meaning."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omnidata import registry
from omnidata.data.card import column_reference
from omnidata.loaders.columns import COLUMNS, ROLES, all_features, describe, flatten
from omnidata.tasks import get_task
from tests.loaders.every import rows_of

PAGE = Path(__file__).parents[2] / "docs" / "columns.md"
needs_docs = pytest.mark.skipif(not PAGE.is_file(), reason="needs a checkout: no docs here")


def test_every_column_has_a_meaning_and_no_meaning_is_left_over() -> None:
    assert [path for path, _ in flatten(all_features((), {}))] == [*COLUMNS]
    assert all(column.meaning.endswith(".") for column in COLUMNS.values())
    roles = {
        role for name in registry.benchmarks() for role in get_task(name).benchmark.card.roles or ()
    }
    assert roles <= ROLES.keys()


@pytest.mark.parametrize(
    ("path", "kind", "meaning"),
    [
        ("video", "Video", "The clip between"),
        ("video", "string", "The tag `video`"),  # the media have other names
        ("camera", "Image", "A medium"),
        ("camera.path", "string", "Absolute path"),
        ("a`<b>", "string", "The tag `a'<b>`"),
    ],
)
def test_columns_of_other_benchmarks_are_described_by_their_type(
    path: str, kind: str, meaning: str
) -> None:
    assert describe(path, kind).meaning.startswith(meaning)


@needs_docs
def test_the_page_has_the_tables_of_the_code() -> None:
    blocks = r"<!-- (\w+): begin -->\n\n(.*?)\n\n<!-- \1: end -->"
    found = dict(re.findall(blocks, PAGE.read_text("utf-8"), re.S))
    assert found == column_reference(), "paste the tables of `column_reference()`"


@needs_docs
def test_the_page_names_the_benchmarks_without_actions(tmp_path: Path) -> None:
    (line,) = re.findall(r"\*\*`action` is null\*\* in (.*?):", PAGE.read_text("utf-8"), re.S)
    without = set()
    for name in registry.benchmarks():
        steps = get_task(name).load(rows_of(name, tmp_path / name), check_media=False).steps
        if not any(step.action for step in steps):
            without.add(name)
    assert {*re.findall(r"`([\w-]+)`", line)} == without


@needs_docs
def test_the_pages_python_runs(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text("utf-8").replace("omnidata-demo/data", str(sample))
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(block, names)
    first, second = capsys.readouterr().out.splitlines()
    assert "'space': 'px', 'is_point': False" in first
    assert second.startswith("(")
