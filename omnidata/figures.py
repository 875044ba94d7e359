"""Writing figures: PNG, SVG or PDF, the same file for the same data.

No window is ever opened: figures are made without pyplot and written by the file's own backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnidata.errors import PlatformError, UsageError
from omnidata.storage import atomic_write, is_writable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 150
_METADATA: Mapping[str, dict[str, Any]] = {
    ".png": {},
    ".svg": {"Date": None},  # the same data give the same file
    ".pdf": {"CreationDate": None},
}
_FONT = "DejaVu Sans"  # comes with matplotlib
_BOXES = "Last Resort"  # so does this one, which has a box for every character


def check(path: Path, option: str = "--plot") -> None:
    """Make sure that a figure can be written there, before the data are read.

    Args:
        path: the file.
        option: that names it, for messages.

    Raises:
        UsageError: another suffix than .png, .svg or .pdf, a folder is there, or its own folder is
            missing or cannot be written.
        PlatformError: matplotlib is not installed, or does not load.
    """
    if path.suffix.lower() not in _METADATA or not _is_free(path):
        raise UsageError(
            "no figure can be written there",
            where=f"{option} {path}",
            expected=f"a file in an existing folder, ending in {', '.join(_METADATA)}",
        )
    check_installed()


def check_installed() -> None:
    """Make sure that there can be figures.

    Raises:
        PlatformError: matplotlib is not installed, or does not load.
    """
    try:
        import matplotlib  # noqa: F401  whether it loads is the question
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
            remedy="unset MPLBACKEND, or correct matplotlibrc",
        ) from None


def _is_free(path: Path) -> bool:
    try:
        path.lstat()
    except FileNotFoundError:
        pass
    except OSError:  # a name that is too long, a file among the folders
        return False
    return not path.is_dir() and is_writable(path.parent)


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
    with rc_context(settings), atomic_write(path) as file:
        make().savefig(file, format=suffix[1:], dpi=DPI, metadata=_METADATA[suffix])


def spellings(names: Iterable[str]) -> tuple[Sequence[str], Mapping[str, str]]:
    """Return how names can be drawn with the installed fonts.

    Returns:
        Font families to be tried in order, and each name as it is to be written: a character that
        no font has, as its Python escape.
    """
    names = list(names)
    needed = {letter for name in names for letter in name if letter.isprintable()}
    from matplotlib.font_manager import fontManager

    faces = sorted(
        (font.name, font.style != "normal", font.weight not in (400, "normal"), font.fname)
        for font in fontManager.ttflist
        if not font.name.startswith(_BOXES)
    )
    fonts = {name: path for name, *_, path in reversed(faces)}
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


def _letters(path: str) -> set[str]:
    from matplotlib.ft2font import FT2Font

    try:
        return {chr(code) for code in FT2Font(path).get_charmap()}
    except (OSError, RuntimeError, ValueError):  # a font that is damaged, or was removed
        return set()
