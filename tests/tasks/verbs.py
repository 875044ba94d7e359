"""What the verbs do with the data of any benchmark, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import datasets

import omnidata
from omnidata.data.validate import validate
from omnidata.tasks import get_task
from tests.cli.running import as_json, here
from tests.report.test_view import served
from tests.trees import read_lines


def every_verb(
    task: str,
    data: Path,
    out: Path,
    *,
    baselines: Sequence[str] = ("oracle", "majority", "center"),
    subset: str = "all",
    exported: int = 0,
) -> dict[str, Any]:
    """Run all of them, and look at what holds of any benchmark.

    Args:
        task: its name.
        data: small data of it, without findings.
        out: a folder for what is made.
        baselines: to be run, `oracle` first.
        subset: one that the data have.
        exported: how `export` ends, which wants a picture of every step; 0 where
            nothing is found and all has pictures.

    Returns:
        The results of the baselines, by their names.
    """
    loaded, count = get_task(task).load(data), len(get_task(task).load(data).steps)
    assert exported or not loaded.findings
    told = as_json(here("info", data, "--json"))
    assert (told["task"], told["steps"], told["skipped"]) == (task, count, 0)
    report = validate(loaded, workers=0)
    assert exported or not report.findings
    shots = {ref.path for step in loaded.steps for ref in step.media.values() if ref}
    assert exported or report.checked["media"]["image"] == len(shots)
    found = {}
    for name in baselines:
        made = here("evaluate", task, data, "--model", f"baseline:{name}", "--out", out / name)
        found[name] = as_json(here("score", task, data, out / name, "--json"))
        first = next(iter(found[name]["overall"]))
        assert made.stdout and (found[name]["overall"][first] == 1.0) == (name == "oracle")
    assert len(list(read_lines(out / "oracle" / "predictions.jsonl"))) == count
    here("convert", task, data, out / "repository", "--embed")
    again = get_task(task).load(out / "repository").steps
    assert [(a.sample_id, a.group, a.action, a.tags) for a in again] == [
        (b.sample_id, b.group, b.action, b.tags) for b in loaded.steps
    ]
    results = as_json(here("score", task, out / "repository", out / "oracle", "--json"))
    assert results["overall"] == found["oracle"]["overall"]
    omnidata.register()
    for streaming in (False, True):
        rows = datasets.load_dataset(
            task, subset, data_dir=str(data), split="test", streaming=streaming,
            cache_dir=str(out / "cache"),
        )  # fmt: skip
        assert 0 < len(list(rows)) <= count
    alone = ("--format", "llamafactory", "--workers", "1")
    here("export", task, data, out / "export", *alone, code=exported)
    rows = [row for path in (out / "export").glob("*.jsonl") for row in read_lines(path)]
    wanted = sum(get_task(task).target(step) is not None for step in loaded.steps)
    assert exported or len(rows) == wanted
    assert as_json(here("audit", task, data, "--json"))["rules"]
    assert first in here("report", *(out / name for name in baselines)).stdout
    here("report", out / baselines[-1], "--html", out / "page.html")
    assert exported or "target against answer" in (out / "page.html").read_text("utf-8")
    with served(out / baselines[-1]) as server:
        assert (server.said["task"], server.said["steps"]) == (task, count)
        assert server.ask("/")[0] == 200
    return found
