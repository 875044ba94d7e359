"""Runs record the certificate of their model and address, and can be refused without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.adapters.servers import running
from tests.certify.servers import FAULTS, Watching
from tests.cli.running import omnidata


@pytest.fixture(autouse=True)
def _away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "EMPTY")
    monkeypatch.setenv("OMNIDATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_a_run_records_the_certificate_and_a_report_warns_of_its_faults(sample: Path) -> None:
    with running(Watching(FAULTS["ignore system"][0])) as server:
        model = ("openai:m", "--base-url", f"{server.url}/v1")
        run = ("evaluate", "omnigui", sample, "--model", *model, "--limit", "1")
        refused = omnidata(*run, "--out", "no", "--require-certificate", code=2)
        certified = omnidata("certify", *model, "--out", "found", "--modalities", "", code=1)
        assert "omnidata certify openai:m" in refused.stderr
        assert "system_ignored" not in certified.stdout  # words, not names
        assert "the system message is ignored" in certified.stdout
        again = omnidata(*run, "--out", "no", "--require-certificate", code=2)
        assert "system (system_ignored)" in again.stderr
        omnidata(*run, "--out", "run")
    page = Path("found/certificate.html").read_text("utf-8")
    assert "the system message is ignored" in page
    assert "<script" not in page
    facts = json.loads(Path("run/run.json").read_text("utf-8"))["facts"]
    written = json.loads(Path("found/certificate.json").read_text("utf-8"))
    assert facts["certificate"]["hash"] == written["hash"]
    assert "the server has faults" in omnidata("report", "run").stderr
    omnidata("report", "run", "--html", "page.html")
    assert "system_ignored" in Path("page.html").read_text("utf-8")


def test_a_certificate_covers_what_the_run_sends(sample: Path) -> None:
    with running(Watching()) as server:
        model = ("openai:m", "--base-url", f"{server.url}/v1")
        run = ("evaluate", "omnigui", sample, "--model", *model, "--limit", "1", "--out", "run")
        strict = (*run, "-T", "modalities=I", "--require-certificate")
        omnidata("certify", *model, "--out", "texts", "--modalities", "")
        gap = omnidata(*strict, code=2).stderr
        assert "no probe of pictures passes in the certificate of openai:m" in gap
        assert f"--base-url {server.url}/v1 --modalities 'I' --out" in " ".join(gap.split())
        omnidata("certify", *model, "--out", "pictures", "--modalities", "I")
        omnidata(*strict)
        assert "sound, clips" in " ".join(
            omnidata(*run, "--require-certificate", code=2).stderr.split()
        )
        [kept] = Path("cache/certificates").iterdir()
        kept.write_text("[" * 200_000)
        assert "openai:m has none" in omnidata(*strict, code=2).stderr


def test_bad_usage_is_refused_before_anything_is_asked() -> None:
    wrong = omnidata("certify", "openai:m", "--out", "x", "--modalities", "I,Q", code=2)
    assert "'Q'" in wrong.stderr
    unit = omnidata("certify", "openai:m", "--out", "x", "--coordinates", "inch", code=2)
    assert "norm1000" in unit.stderr
    dialect = omnidata("certify", "openai:m", "--out", "x", "--dialect", "none", code=2)
    assert "Traceback" not in dialect.stderr
    both = ("--dialect", "qwen2.5", "--coordinates", "norm1000")
    assert "one of the two" in omnidata("certify", "openai:m", "--out", "x", *both, code=2).stderr
    kept = omnidata("certify", "openai:m", "--out", "x", "--cache", "answers.db", code=2)
    assert "drop --cache" in kept.stderr
    counts = json.loads(omnidata("certify", "openai:m", "--out", "x", "--dry-run", "--json").stdout)
    assert sum(counts["probes"].values()) == counts["requests"] > 100
    assert not Path("x").exists()
    Path("file").touch()
    taken = omnidata("certify", "openai:m", "--out", "file", code=2)
    assert "the folder takes no files" in taken.stderr
