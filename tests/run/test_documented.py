"""The examples of the page on `evaluate` are what the code reads."""

from __future__ import annotations

import re
from pathlib import Path

from omnidata.run.cost import read_prices
from omnidata.run.suite import read_suite
from tests.cli.running import omnidata

PAGE = Path(__file__).parents[2] / "docs" / "evaluate.md"


def examples() -> list[str]:
    return re.findall(r"```toml\n(.*?)```", PAGE.read_text("utf-8"), re.S)


def test_the_price_file_of_the_page_is_one(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(examples()[0])
    prices = read_prices(tmp_path / "prices.toml")
    assert prices.models["openai:gpt-4o"].cached_input == 1.25


def test_the_suite_of_the_page_is_one(tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(examples()[1])
    cells = read_suite(tmp_path / "suite.toml")
    assert len(cells) == (2 + 1) * (2 + 1)
    assert {cell.limits.concurrency for cell in cells} == {8, 32}
    assert {cell.limits.max_cost for cell in cells} == {20.0}
    assert {cell.limits.prices for cell in cells} == {tmp_path / "prices.toml"}


def test_every_flag_is_documented() -> None:
    flags = re.findall(r"^  (--?[\w-]+)", omnidata("evaluate", "--help").stdout, re.M)
    assert {"-T", "-M", "--json", "--all", "--dry-run"} <= {*flags}
    pages = "".join(path.read_text("utf-8") for path in PAGE.parent.glob("*.md"))
    assert not [flag for flag in flags if flag not in pages]
