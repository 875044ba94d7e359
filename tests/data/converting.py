"""What the tests of Parquet repositories share."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import datasets
import pytest

from omnidata.types import Step
from tests.full import in_gate

EMBEDDED_FIRST = pytest.mark.parametrize(
    "repository", in_gate(["embedded", "linked"], 1, "seconds each"), indirect=True
)
"""For what holds of both forms alike."""
LINK_AND_EMBED = pytest.mark.parametrize("embed", [True, False], ids=["embed", "link"])


def said(step: Step) -> dict[str, Any]:
    """Everything about a step but where its media lie."""
    fields = {field.name: getattr(step, field.name) for field in dataclasses.fields(step)}
    media = {role: ref and (ref.kind, ref.path) for role, ref in step.media.items()}
    return {**fields, "media": media}


def small(folder: Path, sample: Path, *episodes: str) -> Path:
    """A copy of a few episodes of the sample."""
    for app in sample.iterdir():
        wanted = [name for name in episodes if (app / "media" / name).is_dir()]
        for name in wanted:
            shutil.copytree(app / "media" / name, folder / app.name / "media" / name)
        for path in app.glob("*.jsonl") if wanted else ():
            lines = path.read_text(encoding="utf-8").splitlines()
            kept = [line for line in lines if json.loads(line)["ID"] in wanted]
            text = "".join(f"{line}\n" for line in kept)
            (folder / app.name / path.name).write_text(text, encoding="utf-8")
    return folder


def plainly(repository: Path, name: str | None = None, **options: Any) -> Any:
    return datasets.load_dataset(str(repository), name, split="test", **options)


class StoppedError(Exception):
    """Somebody pulled the plug."""


def stop(done: int, total: int) -> None:
    """Stops a conversion before its last shard is whole."""
    if done == total:
        raise StoppedError
