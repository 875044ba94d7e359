"""`omnidata batch`: the verbs, from requests to the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.servers import running
from tests.adapters.servers_batch import BatchJobs, OpenAIBatchApi
from tests.adapters.servers_http import KEY
from tests.cli.running import as_json, here
from tests.run.batching import prices_file
from tests.run.test_batch_jobs import openai
from tests.trees import read_lines


def called(*words: str | Path, code: int = 0) -> tuple[Any, str]:
    done = here(*words, "--json", code=code)
    return (as_json(done) if done.stdout else None), done.stderr


def test_from_requests_to_the_table_and_back_to_live(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    run, prices = tmp_path / "run", prices_file(tmp_path)
    asked = ("omnigui", few, "--model", "openai:m", "-T", "modalities=I", "--limit", "6")
    write = ("batch", "write", *asked, "--out", run, "--per-file", "4")
    first, notes = called(*write, "--prices", prices)
    assert [file["requests"] for file in first["files"]] == [4, 2]
    assert (first["format"], first["model"], first["new"]) == ("openai", "m", 6)
    assert first["cost"]["amount"] == pytest.approx(first["tokens"]["input"] * 0.005)
    assert "batch submit" in notes
    names = {line["custom_id"]: line["sample_id"] for line in read_lines(run / "batch/ids.jsonl")}
    lost = next(iter(names))
    jobs = BatchJobs(
        answer=lambda row: None if row["custom_id"] == lost else openai(row),
        states=("in_progress", "completed"),
    )
    with running(OpenAIBatchApi(jobs)) as server:
        at = ("--base-url", f"{server.url}/v1")
        sent, _ = called("batch", "submit", run, *at)
        assert {file["state"] for file in sent.values()} == {"running"}
        assert "no job has ended yet" in called("batch", "fetch", run, *at, code=1)[1]
        found, notes = called("batch", "fetch", run, *at, "--wait", "--prices", prices, code=1)
        assert "--only missing" in notes
        assert "cost: 0.23 " in notes
        stands, _ = called("batch", "status", run, *at)
        assert {file["counts"]["completed"] for file in stands.values()} == {4, 2}
    assert found["read"] == {"rows": 5, "answered": 5, "repeated": 0, "kept": 0, "missing": 1}
    assert found["outcomes"] == {"missing": 1, "ok": 5}
    assert json.loads((run / "run.json").read_text())["usage"]["cost"] == 0.225  # half the price

    second, _ = called(*write, "--only", "missing")
    assert (second["round"], second["new"], second["answered"]) == (2, 1, 5)
    row = json.loads((run / "batch/requests-00003.jsonl").read_text())
    (tmp_path / "last.jsonl").write_text(json.dumps(openai(row)))
    whole, _ = called("batch", "read", run, tmp_path / "last.jsonl")
    assert whole["outcomes"] == {"ok": 6}
    # The run is resumed and scored like any other.
    live, _ = called("evaluate", *asked, "--out", run)
    assert live["overall"] == whole["overall"]
    assert called("score", "omnigui", few, run)[0]["overall"] == whole["overall"]
    assert not called(*write, "--only", "missing")[0]["new"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--model", "hf:some/model", "--out", "RUN"), ""),
        (("--model", "openai:m"), "no run folder"),
        (("RUN", "--model", "openai:m", "--out", "RUN"), "named twice"),
    ],
)
def test_what_cannot_be_written_is_said(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert why in called("batch", "write", "omnigui", few, *words, code=2)[1]
    assert not (tmp_path / "RUN").exists()
