"""Figures show the runs' numbers, in colour, in grey and in the same bytes each time."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from omnidata.analysis.figures import draw, drawings
from omnidata.run.run_files import Run
from tests.report.made import totals, write_run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DIMENSIONS = ("localization", "semantic_understanding", "temporal_reasoning")


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    def write(number: int) -> Run:
        shares = {
            name: totals((9, 10 * number + place, 8, 7)) for place, name in enumerate(DIMENSIONS)
        }
        apps = {f"App{place}": totals((9, 20 * place, 8, 7), steps=place) for place in range(4)}
        by = {"dimension": shares, "app": apps}
        return write_run(tmp_path / f"run{number}", model=f"openai:{number}", by=by)

    return [write(number) for number in (1, 2)]


def made(runs: list[Run], name: str) -> Figure:
    (found,) = [each for each in drawings(runs) if each.name == name]
    return found.make()


def test_each_run_is_a_closed_line_through_its_numbers(runs: list[Run]) -> None:
    (axes,) = made(runs, "omnigui-radar-dimension").axes
    for run, line in enumerate(axes.lines, 1):
        values = [10 * run, 10 * run + 1, 10 * run + 2, 10 * run]
        assert np.asarray(line.get_ydata()) == pytest.approx(values)
        angles = np.asarray(line.get_xdata(), dtype=float)
        assert angles[1] - angles[0] == pytest.approx(2 * math.pi / 3)
        assert angles[0] == angles[-1]
    headers = [label.get_text() for label in axes.get_xticklabels()]
    assert headers == ["Localization", "Semantic\nUnderstand.", "Temporal\nReason."]
    assert axes.get_ylim() == (0, 30)


def test_lines_and_bars_differ_without_colour(runs: list[Run]) -> None:
    from matplotlib import colors
    from matplotlib.container import BarContainer

    (radar,) = made(runs, "omnigui-radar-dimension").axes
    looks = {(line.get_linestyle(), str(line.get_marker())) for line in radar.lines}
    assert len(looks) == len(radar.lines)
    bars = made(runs, "omnigui-bars-app-1").axes[0]
    found = [each for each in bars.containers if isinstance(each, BarContainer)]
    assert len({each.patches[0].get_hatch() for each in found}) == len(found) == 3
    greys = sorted(
        np.dot(colors.to_rgb(each.patches[0].get_facecolor()), (0.3, 0.6, 0.1)) for each in found
    )
    assert min(np.diff(greys)) > 0.1


def test_bars_are_ranked_by_exact_match_with_averages_and_sizes(runs: list[Run]) -> None:
    from matplotlib.container import BarContainer

    figure = made(runs, "omnigui-bars-app-1")
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == [
        "App3",
        "App2",
        "App1",
        "App0",
    ]
    exact = next(each for each in axes.containers if each.get_label() == "EM")
    assert isinstance(exact, BarContainer)
    assert [bar.get_width() for bar in exact.patches] == pytest.approx([60, 40, 20, 0])
    tops = axes.get_ylim()
    assert tops[0] > tops[1]  # the first is at the top
    wholes = [np.asarray(line.get_xdata())[0] for line in axes.lines]
    assert wholes == pytest.approx([40, 20])  # EM and GP of all steps
    (side,) = axes.child_axes
    assert [label.get_text() for label in side.get_yticklabels()] == [
        "20/3",
        "20/2",
        "20/1",
        "20/0",
    ]


def test_a_group_that_a_run_lacks_leaves_a_gap(runs: list[Run], tmp_path: Path) -> None:
    part = write_run(tmp_path / "part", by={"dimension": {"localization": totals((1, 2, 3, 4))}})
    (axes,) = made([*runs, part], "omnigui-radar-dimension").axes
    values = np.asarray(axes.lines[2].get_ydata(), dtype=float)
    assert np.isnan(values).tolist() == [False, True, True, False]


def test_so_many_runs_are_drawn_together_as_can_be_told_apart(tmp_path: Path) -> None:
    by = {"dimension": {name: totals((1, 2, 3, 4)) for name in DIMENSIONS}}
    many = [write_run(tmp_path / str(n), model=f"openai:{n}", by=by) for n in range(9)]
    names = [each.name for each in drawings(many) if "radar" in each.name]
    assert names == ["omnigui-radar-dimension-1", "omnigui-radar-dimension-2"]
    assert [len(made(many, name).axes[0].lines) for name in names] == [8, 1]


def test_profiles_have_figures_of_their_own(runs: list[Run], tmp_path: Path) -> None:
    by = {"dimension": {name: totals((1, 2, 3, 4)) for name in DIMENSIONS}}
    other = write_run(tmp_path / "other", profile="omnigui-release", by=by)
    names = [each.name for each in drawings([*runs, other]) if "radar" in each.name]
    assert names == [
        "omnigui-omnigui-paper-radar-dimension",
        "omnigui-omnigui-release-radar-dimension",
    ]


def test_the_same_runs_give_the_same_files(tmp_path: Path) -> None:
    by = {"dimension": {name: totals((1, 2, 3, 4)) for name in DIMENSIONS}}
    runs = [write_run(tmp_path / "run", by=by)]
    one, other = draw(runs, tmp_path / "1"), draw(runs, tmp_path / "2")
    assert [path.name for path in one] == [path.name for path in other]
    assert {path.suffix for path in one} == {".png", ".svg"}
    for first, second in zip(one, other, strict=True):
        assert first.read_bytes() == second.read_bytes()
    with Image.open(one[0]) as picture:
        picture.load()
        assert picture.width > 800


def test_names_that_no_font_and_no_formula_has_are_drawn(tmp_path: Path) -> None:
    name = "$x^{$\U0001f9ff<b>"
    by = {
        "app": {name: totals((1, 2, 3, 4))},
        "dimension": {d: totals((1, 2, 3, 4)) for d in DIMENSIONS},
    }
    paths = draw([write_run(tmp_path / "run", model=name, by=by)], tmp_path / "figures")
    assert len(paths) == 4
    assert all("<b>" not in path.read_text() for path in paths if path.suffix == ".svg")
