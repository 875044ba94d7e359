"""What is installed is what is meant: no colliding names, nothing heavy on import."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import version
from pathlib import Path

import pytest

import omnidata

ROOT = Path(__file__).resolve().parents[1]
LINKS = ("loaders", "metrics", "adapters")
checkout = pytest.mark.skipif(
    not (ROOT / "Makefile").is_file(), reason="needs a checkout: the sdist has no links to show"
)


def run(code: str, *, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=cwd)


def test_importing_omnidata_pulls_in_nothing_heavy() -> None:
    code = "import omnidata, sys; print([m for m in %r if m in sys.modules])"
    heavy = ["torch", "datasets", "numpy", "av", "PIL", "sklearn", "pyarrow", "typer", "msgspec"]
    assert run(code % heavy).stdout == "[]\n"


def test_help_needs_neither_datasets_nor_numpy() -> None:
    code = (
        "import sys; sys.argv = ['omnidata', '--help']\n"
        "from omnidata.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print([m for m in ('torch', 'datasets', 'numpy', 'pyarrow') if m in sys.modules])"
    )
    assert run(code).stdout.splitlines()[-1] == "[]"


@checkout
def test_ruff_looks_at_every_file() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--show-files"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    seen = {Path(line).resolve() for line in shown.stdout.splitlines()}
    ours = [
        path for room in ("omnidata", "tests", "benchmarks") for path in (ROOT / room).rglob("*.py")
    ]
    assert len(ours) > 60
    assert {path.resolve() for path in ours} <= seen


def test_the_module_runs_as_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "omnidata", "--version"], capture_output=True, text=True, check=True
    )
    assert re.fullmatch(
        rf"omnidata {re.escape(version('omnidata'))}( \(commit [0-9a-f]{{12}}(-dirty)?\))?\n",
        done.stdout,
    )


def test_the_public_names_exist_and_are_all() -> None:
    assert dir(omnidata) == sorted(omnidata.__all__)
    for name in omnidata.__all__:
        assert getattr(omnidata, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        omnidata.nothing  # noqa: B018  the look-up is what fails


@checkout
@pytest.mark.parametrize("name", LINKS)
def test_a_room_refuses_its_bare_name(name: str) -> None:
    assert (ROOT / name).is_symlink()
    assert (ROOT / name).resolve() == ROOT / "omnidata" / name
    done = run(f"import {name}")
    assert f"ImportError: import omnidata.{name}" in done.stderr
    assert importlib.import_module(f"omnidata.{name}")


@checkout
def test_sdist_and_wheel_hold_the_package_and_no_colliding_name(tmp_path: Path) -> None:
    """Build as `pip` would, the wheel from the unpacked sdist."""
    build = "import hatchling.build as b, sys; print(getattr(b, sys.argv[1])(sys.argv[2]))"
    subprocess.run(
        [sys.executable, "-c", build, "build_sdist", str(tmp_path)], cwd=ROOT, check=True
    )
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "sdist", filter="data")
    (unpacked,) = (tmp_path / "sdist").iterdir()
    held = {path.name for path in unpacked.iterdir()}
    subprocess.run(
        [sys.executable, "-c", build, "build_wheel", str(tmp_path)], cwd=unpacked, check=True
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"omnidata"}
    assert held == {
        "LICENSE", "PKG-INFO", "README.md", "omnidata", "pyproject.toml", "tests", ".gitignore",
        "hatch_build.py",
    }  # fmt: skip
    inside = {str(path.relative_to(ROOT)) for path in (ROOT / "omnidata").rglob("*")
              if path.is_file() and "__pycache__" not in path.parts}  # fmt: skip
    assert inside <= set(names)
    assert ("omnidata/COMMIT" in names) == (ROOT / ".git").exists()
    for needed in ("py.typed", "tasks/omnigui/prompts/omnigui_v2.txt", "tasks/omnigui/apps.json"):
        assert f"omnidata/{needed}" in names
