"""Exports with real media, and what is read of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from omnidata.tasks.asking import Asking
from omnidata.types import Step
from tests.adapters.local_models import checkpoint
from tests.conftest import Once
from tests.export import small

pytest.importorskip("datasets")


def written(task: Asking, data: Path, out: Path, form: str, **options: Any) -> list[Step]:
    """Export everything into `train`; the steps that were exported."""
    found = small.written(data, out, task=task, format=form, **options).findings
    assert not [finding for finding in found if finding.severity == "error"]
    return list(task.load(data, check_media=False).steps)


def open_rows(out: Path, split: Any = "train") -> Any:
    from omnidata.torch import exported_table

    return exported_table(out, split)


def examples(out: Path) -> dict[str, Any]:
    found = [row["example"] for row in open_rows(out)]
    return {example.sample_id: example for example in found}


def collator(once: Once, task: Asking | None = None, /, **options: str) -> Any:
    from omnidata.torch import OmniCollator

    return OmniCollator(checkpoint(once, "qwen2.5-omni"), task, options=options)
