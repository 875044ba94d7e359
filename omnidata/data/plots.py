"""The paper's Figure 2 of any dataset: apps and languages, dimensions, dependency levels.

No window is ever opened: figures are made without pyplot and written by the file's own backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnidata.errors import PlatformError, UsageError
from omnidata.run.folder import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 150
_METADATA: Mapping[str, dict[str, Any]] = {
    ".png": {},
    ".svg": {"Date": None},  # the same data give the same file
    ".pdf": {"CreationDate": None},
}
_FONT = "DejaVu Sans"  # comes with matplotlib
_BOXES = "Last Resort"  # so does this one, which has a box for every character
_MOST_APPS = 60
_LONGEST_NAME = 28
_COLOURS = {"zh": ("#b2452f", "#ebb8a8"), "en": ("#2b5c8a", "#a9c6e2")}
_GREYS = ("#4a4a4a", "#bdbdbd")
_KEYS = ("episodes", "steps")

Numbers = Mapping[str, int]


def check(path: Path) -> None:
    """Make sure that a figure can be written there, before the data are read.

    Raises:
        UsageError: another suffix than .png, .svg or .pdf, no such folder, or a folder is there.
        PlatformError: matplotlib is not installed, or does not load.
    """
    if path.suffix.lower() not in _METADATA or not _is_free(path):
        raise UsageError(
            "no figure can be written there",
            where=f"--plot {path}",
            expected=f"a file in an existing folder, ending in {', '.join(_METADATA)}",
        )
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise PlatformError(
            "matplotlib is not installed",
            expected="the extra `plots`",
            remedy="pip install 'omnidata[plots]'",
        ) from None
    except ValueError as error:  # it reads the user's settings while it is loaded
        raise PlatformError(
            f"matplotlib does not load ({error})",
            expected="settings that it accepts",
            remedy="unset MPLBACKEND, and mend matplotlibrc",
        ) from None


def _is_free(path: Path) -> bool:
    """Whether a file could have that name."""
    try:
        path.with_name(f".{path.name}.new").lstat()
    except FileNotFoundError:
        pass
    except OSError:  # a name that is too long, a file among the folders
        return False
    return path.parent.is_dir() and not path.is_dir()


def draw(
    counts: Mapping[str, Any], distribution: Mapping[str, Mapping[str, Numbers]], path: Path
) -> Mapping[str, str]:
    """Write the figure in one move.

    Args:
        counts: as `omnigui_counts.count` gives them.
        distribution: as `omnigui_counts.distribution` gives it.
        path: see `check`.

    Returns:
        The apps whose names no installed font can draw, and how they are written instead.
    """
    save(lambda: figure(counts, distribution), path)
    _, written = spellings(counts["apps"])
    return {name: drawn for name, drawn in written.items() if drawn != name}


def save(make: Callable[[], Figure], path: Path) -> None:
    """Make a figure with settings of ours, and write it in one move.

    Args:
        make: makes it.
        path: see `check`.
    """
    from matplotlib import rc_context, rcParamsDefault

    suffix = path.suffix.lower()
    # A user's own settings may ask for TeX, fonts or a window that are not there.
    settings = {**rcParamsDefault, "backend": "agg", "svg.hashsalt": "omnidata"}
    with rc_context(settings), replacing(path) as file:
        make().savefig(file, format=suffix[1:], dpi=DPI, metadata=_METADATA[suffix])


def figure(counts: Mapping[str, Any], distribution: Mapping[str, Mapping[str, Numbers]]) -> Figure:
    """Three panels: (a) every app, by language, (b) dimensions, (c) dependency levels.

    Args:
        counts: as `omnigui_counts.count` gives them.
        distribution: as `omnigui_counts.distribution` gives it.

    Returns:
        A figure whose axes are (a), (b), (c), each with bars of episodes and of steps.
    """
    from matplotlib.figure import Figure

    apps = _most(counts["apps"])
    made = Figure(figsize=(12, max(6.0, 1.2 + 0.26 * len(apps))), layout="constrained")
    panels = made.subplot_mosaic([["a", "b"], ["a", "c"]], width_ratios=(1.1, 1))
    _draw_apps(panels["a"], apps, len(counts["apps"]))
    _draw_groups(panels["b"], "(b) Task dimensions", distribution["dimensions"])
    _draw_groups(panels["c"], "(c) Multimodal dependency", distribution["dependencies"])
    return made


def spellings(names: Iterable[str]) -> tuple[Sequence[str], Mapping[str, str]]:
    """How names can be drawn with the fonts that are installed.

    Returns:
        Font families to be tried in order, and each name as it is to be written: a character that
        no font has, as its Python escape.
    """
    names = list(names)
    needed = {letter for name in names for letter in name if letter.isprintable()}
    fonts = _fonts()
    lacking = needed - _letters(fonts[_FONT])
    families = [_FONT]
    if lacking:
        covered = {family: lacking & _letters(path) for family, path in fonts.items()}
        best = max(covered, key=lambda family: len(covered[family]))
        if covered[best]:
            families.append(best)
            lacking -= covered[best]
    return families, {
        name: "".join(
            letter
            if letter.isprintable() and letter not in lacking
            else letter.encode("unicode_escape", "surrogatepass").decode()
            for letter in name
        )
        for name in names
    }


def _fonts() -> dict[str, str]:
    """The installed families by name, each with the file of its regular face."""
    from matplotlib.font_manager import fontManager

    faces = sorted(
        (font.name, font.style != "normal", font.weight not in (400, "normal"), font.fname)
        for font in fontManager.ttflist
        if not font.name.startswith(_BOXES)
    )
    return {name: path for name, *_, path in reversed(faces)}


def _letters(path: str) -> set[str]:
    """The characters that a font has."""
    from matplotlib.ft2font import FT2Font

    try:
        return {chr(code) for code in FT2Font(path).get_charmap()}
    except (OSError, RuntimeError, ValueError):  # a font that is damaged, or was removed
        return set()


def _most(apps: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """The apps by language and size; of very many, the smallest together."""
    ordered = sorted(apps.items(), key=lambda app: (-app[1]["episodes"], app[0]))
    chosen = sorted(ordered[:_MOST_APPS], key=lambda app: app[1]["language"], reverse=True)
    rest = [row for _, row in ordered[_MOST_APPS:]]
    if rest:
        sums: dict[str, Any] = {
            language: {key: sum(_part(row, language, key) for row in rest) for key in _KEYS}
            for language in _COLOURS
        }
        chosen.append((f"{len(rest)} other apps", {"languages": sums}))
    return chosen


def _part(row: Mapping[str, Any], language: str, key: str) -> int:
    """How many episodes or steps of an app are in a language."""
    numbers: Numbers = row["languages"].get(language, {})
    return numbers.get(key, 0)


def _draw_apps(axes: Axes, apps: Sequence[tuple[str, Mapping[str, Any]]], number: int) -> None:
    """Bars of episodes and of steps; those of an app in both languages are stacked."""
    for offset, key in zip((-0.2, 0.2), _KEYS, strict=True):
        ends = [0] * len(apps)
        for language, colours in _COLOURS.items():
            parts = [_part(row, language, key) for _, row in apps]
            places = [place for place, part in enumerate(parts) if part]
            if not places:
                continue
            axes.barh(
                [place + offset for place in places],
                [parts[place] for place in places],
                left=[ends[place] for place in places],
                height=0.4,
                color=colours[_KEYS.index(key)],
                label=f"{key}, {language} ({sum(parts):,})",
            )
            ends = [end + part for end, part in zip(ends, parts, strict=True)]
        for place, end in enumerate(ends):
            axes.annotate(
                str(end), (end, place + offset), (2, 0), textcoords="offset points",
                va="center", fontsize=6,
            )  # fmt: skip
    families, written = spellings(name for name, _ in apps)
    axes.set_yticks(
        range(len(apps)),
        [_cut(written[name]) for name, _ in apps],
        fontfamily=families,
        parse_math=False,
    )
    axes.set_ylim(len(apps) - 0.4, -0.6)
    _finish(axes, f"(a) {number} apps")
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.03))


def _draw_groups(axes: Axes, title: str, groups: Mapping[str, Numbers]) -> None:
    for offset, key, colour in zip((-0.2, 0.2), _KEYS, _GREYS, strict=True):
        numbers = [row[key] for row in groups.values()]
        total = sum(numbers)
        bars = axes.bar(
            [place + offset for place in range(len(groups))],
            numbers,
            width=0.4,
            color=colour,
            label=f"{key} ({total:,})",
        )
        shares = [f"{number:,}\n{100 * number / max(total, 1):.1f} %" for number in numbers]
        axes.bar_label(bars, shares, padding=2, fontsize=7)
    names = [name.replace("_", "\n") for name in groups]
    axes.set_yticks([])
    axes.set_xticks(range(len(groups)), names, fontsize=9)
    axes.margins(y=0.2)
    _finish(axes, title)
    axes.legend(  # beside the title, where no bar's label can be
        fontsize=8, frameon=False, ncols=2, loc="lower right", bbox_to_anchor=(1, 1), borderpad=0
    )


def _finish(axes: Axes, title: str) -> None:
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)


def _cut(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
