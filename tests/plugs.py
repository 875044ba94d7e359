"""Distributions with plug-ins, as an installer leaves them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


def install(folder: Path, name: str, group: str, points: str) -> None:
    """The metadata of a distribution, version 1.2; its modules are the caller's."""
    info = folder / f"{name.replace('-', '_')}-1.2.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n", encoding="utf-8"
    )
    (info / "entry_points.txt").write_text(f"[{group}]\n{points}\n", encoding="utf-8")


def on_path(folder: Path, module: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new folder whose modules and distributions this process finds, that module anew."""
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, module, raising=False)
    return folder
