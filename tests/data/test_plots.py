"""Figure 2 of a dataset: the drawn numbers are the counted ones, whatever the names are."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image

from omnidata import figures
from omnidata.tasks import get_task
from omnidata.tasks.omnigui.load import load
from omnidata.tasks.omnigui.overview import count, distribution, figure
from omnidata.types import LoadedDataset
from tests.cli.running import as_json, here
from tests.trees import row, write_app, write_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HOSTILE = ("微信", "$\\frac{$", "a\nb\x1b[2J", "\ud800", "x" * 300, "😀", "_^{")


def drawn(source: LoadedDataset) -> Figure:
    return figure(count(source.steps), distribution(source.steps))


def heights(made: Figure, panel: int) -> dict[str, list[float]]:
    """The lengths of the bars by the first word of their legend."""
    from matplotlib.container import BarContainer

    found = {}
    for bars in made.axes[panel].containers:
        assert isinstance(bars, BarContainer)
        sizes = [max(bar.get_width(), bar.get_height()) for bar in bars]
        found[str(bars.get_label()).partition(" (")[0]] = sizes
    return found


def test_the_bars_are_the_counts(sample: Path) -> None:
    source = load(sample)
    counts, spread = count(source.steps), distribution(source.steps)
    figure = drawn(source)
    for panel, axis in ((1, "dimensions"), (2, "dependencies")):
        groups = spread[axis].values()
        assert heights(figure, panel) == {
            key: [row[key] for row in groups] for key in ("episodes", "steps")
        }
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert sorted(names) == sorted(counts["apps"])
    for language in ("zh", "en"):
        parts = [counts["apps"][name]["languages"].get(language) for name in names]
        for key in ("episodes", "steps"):
            bars = [part[key] for part in parts if part]
            assert heights(figure, 0)[f"{key}, {language}"] == bars
            assert sum(bars) == spread["languages"][language][key]


def test_title_legend_bars_and_tables_agree_on_an_app_in_two_languages(sample: Path) -> None:
    """The sample has such an app; all its episodes count once, each in its own language."""
    source = load(sample)
    counts, spread = count(source.steps), distribution(source.steps)
    assert [row["language"] for row in counts["apps"].values()].count("zh+en") == 1
    axes = drawn(source).axes[0]
    assert axes.get_title(loc="left") == f"(a) {len(counts['apps'])} apps"
    assert len(axes.get_yticklabels()) == len(counts["apps"])
    legend = axes.get_legend()
    assert legend is not None
    stated = {
        label: int(number.rstrip(")").replace(",", ""))
        for label, number in (text.get_text().split(" (") for text in legend.get_texts())
    }
    assert stated == {
        f"{key}, {language}": spread["languages"][language][key]
        for language in ("zh", "en")
        for key in ("episodes", "steps")
    }
    assert stated == {label: sum(bars) for label, bars in heights(drawn(source), 0).items()}
    for axis in spread.values():
        for key in ("episodes", "steps"):
            assert sum(row[key] for row in axis.values()) == counts["total"][key]


def test_no_legend_covers_a_number(sample: Path) -> None:
    figure = drawn(load(sample))
    figure.draw_without_rendering()
    for axes in figure.axes:
        legend = axes.get_legend()
        assert legend is not None
        box = legend.get_window_extent()
        numbers = [text for text in axes.texts if text.get_text()]
        assert len(numbers) > 4
        assert not any(box.overlaps(text.get_window_extent()) for text in numbers)
        assert not box.overlaps(axes.title.get_window_extent())


def test_settings_that_matplotlib_refuses_are_named_with_a_remedy(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "matplotlib")  # it reads them while it is loaded
    monkeypatch.setenv("MPLBACKEND", "nonsense")
    done = here("info", few, "--plot", tmp_path / "figure.png", code=2)
    assert "unset MPLBACKEND" in done.stderr


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".PDF", b"%PDF")]
)
def test_the_same_data_give_the_same_file_whatever_the_users_settings(
    few: Path, tmp_path: Path, suffix: str, start: bytes
) -> None:
    import matplotlib as mpl

    source = load(few, check_media=False)
    overview = get_task("omnigui").benchmark.paper.overview(source)
    one, other = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    overview.draw(one)
    with mpl.rc_context({"text.usetex": True, "font.size": 30}):
        overview.draw(other)
    assert one.read_bytes().startswith(start)
    assert one.read_bytes() == other.read_bytes()
    if suffix == ".png":
        with Image.open(one) as picture:
            inches = drawn(source).get_size_inches()
            assert picture.size == tuple(round(inch * figures.DPI) for inch in inches)
            colours = picture.convert("RGB").getcolors(maxcolors=1 << 24)
        assert colours is not None and len(colours) > 50


def test_another_suffix_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    long = "x" * 252 + ".png"  # a byte more than names may have
    for bad in ("figure.jpg", "figure", "no/such/folder/figure.png", "folder.png", long):
        done = here("info", tmp_path / "no data", "--plot", tmp_path / bad, code=2)
        assert "--plot" in done.stderr
    assert "no data is named" in here("info", "--plot", "f.png", code=2).stderr


def test_a_missing_extra_is_named_with_its_remedy(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = here("info", few, "--plot", tmp_path / "figure.png", code=2)
    assert "pip install 'omnidata[plots]'" in done.stderr


def test_names_that_no_font_has_are_spelled_out(tmp_path: Path) -> None:
    """A warning for a glyph that is missing would be an error here."""
    rows = [row(f"E{n}", app=name) for n, name in enumerate(HOSTILE)]
    data = write_rows(tmp_path / "steps.json", rows)
    done = here("info", data, "--plot", tmp_path / "g.png")
    assert f"figure: {tmp_path / 'g.png'}" in done.stderr
    respelled = {line.rpartition(" is drawn as ")[2] for line in done.stderr.splitlines()}
    assert {r"a\nb\x1b[2J", r"\ud800"} <= respelled
    if not any("CJK" in name or "WenQuan" in name for name in fonts()):
        assert r"\u5fae\u4fe1" in respelled
    assert not any(name in done.stderr for name in ("$\\frac{$", "_^{", "x" * 300))
    labels = [label.get_text() for label in drawn(load(data)).axes[0].get_yticklabels()]
    assert "$\\frac{$" in labels
    assert max(map(len, labels)) < 40
    assert {path.name for path in tmp_path.iterdir()} == {"steps.json", "g.png"}


def fonts() -> set[str]:
    from matplotlib import font_manager

    return {font.name for font in font_manager.fontManager.ttflist}


@pytest.fixture
def chinese_font(tmp_path: Path) -> Iterator[str]:
    """A font with two Chinese characters, installed for the test."""
    from fontTools.fontBuilder import FontBuilder
    from fontTools.pens.ttGlyphPen import TTGlyphPen
    from matplotlib import font_manager

    pen = TTGlyphPen(None)
    pen.moveTo((0, 0))
    for corner in ((0, 800), (800, 800), (800, 0)):
        pen.lineTo(corner)
    pen.closePath()
    names = [".notdef", "wei", "xin"]
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap({ord("微"): "wei", ord("信"): "xin"})
    builder.setupGlyf({name: pen.glyph() for name in names})
    builder.setupHorizontalMetrics(dict.fromkeys(names, (900, 0)))
    builder.setupHorizontalHeader(ascent=900, descent=-100)
    builder.setupNameTable({"familyName": "Aaa Two Characters", "styleName": "Regular"})
    builder.setupOS2()
    builder.setupPost()
    path = tmp_path / "two.ttf"
    builder.save(path)
    before = list(font_manager.fontManager.ttflist)
    font_manager.fontManager.addfont(path)
    yield "Aaa Two Characters"
    font_manager.fontManager.ttflist[:] = before


def test_a_font_that_has_the_characters_is_used(tmp_path: Path, chinese_font: str) -> None:
    families, written = figures.spellings(["微信", "TED"])
    assert written == {"微信": "微信", "TED": "TED"}
    assert len(families) == 2
    source = load(write_rows(tmp_path / "steps.json", [row(app="微信")]))
    respelled = get_task("omnigui").benchmark.paper.overview(source).draw(tmp_path / "f.png")
    assert respelled == {}
    others = {name for name in fonts() if "CJK" in name or "WenQuan" in name}
    assert families[1] == chinese_font or others


def test_very_many_apps_make_no_endless_figure() -> None:
    apps: dict[str, Any] = {
        f"app {n}": {
            "language": language,
            "episodes": n,
            "steps": 2 * n,
            "languages": {language: {"episodes": n, "steps": 2 * n}},
        }
        for n in range(1, 1001)
        for language in ("zh" if n % 3 else "en",)
    }
    groups = {"x": {"apps": 1, "episodes": 1, "steps": 1}}
    languages = {name: {"apps": 1, "episodes": 1, "steps": 1} for name in ("zh", "en")}
    axes = {"languages": languages, "dimensions": groups, "dependencies": groups}
    made = figure({"apps": apps}, axes)
    assert made.get_size_inches()[1] < 20
    shown = heights(made, 0)
    assert sum(shown["episodes, zh"]) + sum(shown["episodes, en"]) == sum(range(1, 1001))


def test_labels_that_are_missing_are_counted_as_such(tmp_path: Path) -> None:
    data = write_app(tmp_path / "TED", [row("A"), row("A", 1), row("B")])
    spread = as_json(here("info", data, "--json", code=0))["distribution"]
    assert spread["languages"]["en"] == {"apps": 1, "episodes": 2, "steps": 3}
    assert spread["dimensions"]["localization"] == {"apps": 1, "episodes": 2, "steps": 3}
    assert spread["dimensions"]["instant_response"] == {"apps": 0, "episodes": 0, "steps": 0}
    assert spread["dependencies"]["unlabelled"] == {"apps": 1, "episodes": 2, "steps": 3}
    table = here("info", data).stdout
    assert "languages: en" in table
    assert "100.0 %" in table
    assert "1.50" in table
