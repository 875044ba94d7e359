"""Where pytest collects, and which modules it looks through for examples."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

# The links at the top level show rooms of the package, not packages.
collect_ignore = ["loaders", "metrics", "adapters"]
# `tests/harness/run.sh inspect` looks through these, where inspect_ai is.
collect_ignore_glob = [] if find_spec("inspect_ai") else ["omnidata/harness/inspect_*.py"]


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leave modules without an example alone: to look for one, pytest would import them."""
    if collection_path.suffix != ".py" or collection_path.name.startswith(("test_", "conftest")):
        return None
    return None if ">>>" in collection_path.read_text("utf-8") else True
