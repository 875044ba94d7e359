"""Puts the commit that a distribution is built from into it, as `omnidata/COMMIT`."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DESCRIBE = ("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")


class CommitHook(BuildHookInterface[Any]):
    """Of a checkout that git knows; a wheel made of an sdist has what the sdist has."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file, unless the package stays where it is."""
        root = Path(self.root)
        if version == "editable" or not (root / ".git").exists():
            return
        try:
            found = subprocess.run(DESCRIBE, cwd=root, capture_output=True, text=True, check=False)
        except OSError:  # there is no git
            return
        if found.returncode == 0:
            self._folder = tempfile.TemporaryDirectory()
            path = Path(self._folder.name) / "COMMIT"
            path.write_text(found.stdout, encoding="ascii")
            build_data["force_include"][str(path)] = "omnidata/COMMIT"
