"""`omnidata voice` as a person or a script meets it."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.cli.running import Started, as_json, here, omnidata
from tests.data.voice.speakers import command
from tests.full import in_gate
from tests.trees import row, write_rows


def test_the_voice_rows_of_table5_run_offline(few: Path, tmp_path: Path) -> None:
    voice = tmp_path / "voice"
    chinese = as_json(omnidata("voice", "omnigui", few, voice, "--where", "language=zh", "--json"))
    assert chinese["voices"] == {"en": "en-us", "zh": "cmn"}
    made = omnidata("voice", "omnigui", few, voice)
    assert "0 without a spoken form" in made.stdout
    assert f"-T voice={voice}" in made.stderr
    for form in ("paper", "release"):
        results = as_json(
            omnidata(
                "evaluate", "omnigui", few, "-T", f"voice={voice}", "-T", f"voice_form={form}",
                "--model", "baseline:center", "--out", tmp_path / form, "--json",
            )
        )  # fmt: skip
        assert results["outcomes"] == {"ok": results["counts"]["steps"]}
    again = as_json(omnidata("voice", "omnigui", few, voice, "--json"))
    assert (again["rendered"], again["kept"]) == (0, again["texts"])
    assert 0 < chinese["rendered"] < again["texts"]


def test_a_failing_command_is_located(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "steps.json", [row("A", app="TED")])
    arguments = ("voice", "omnigui", data, tmp_path / "out", "--command", command("--mode fail"))
    done = omnidata(*arguments, code=1)
    assert "voice-failed" in done.stderr
    assert "TED/A/0" in done.stderr
    assert "no voice today" in done.stderr
    omnidata("voice", "omnigui", data, tmp_path / "out", "--time-limit", "3", code=2)


def test_a_missing_extra_is_named_with_its_remedy(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    told = here("voice", "omnigui", few, tmp_path / "out", code=2).stderr
    assert "pip install 'omnidata[voice]'" in told
    assert "Traceback" not in told


@pytest.mark.parametrize("stop", in_gate([signal.SIGINT, signal.SIGKILL], 1, "seconds each"))
def test_a_stopped_call_is_resumed(tmp_path: Path, stop: signal.Signals) -> None:
    rows = [row(f"E{n}", app="TED", instruction_en=f"Tap number {n}") for n in range(8)]
    data = write_rows(tmp_path / "steps.json", rows)
    out, gate = tmp_path / "out", tmp_path / "gate"
    gate.touch()
    gated = ("--command", command(f"--gate {gate}"), "--json")
    arguments = ("voice", "omnigui", data, out, *gated)
    process = Started(*arguments)
    pid = gate.with_suffix(".pid")
    deadline = time.monotonic() + 60
    while not (pid.exists() and pid.read_text()) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(stop)
    _, errors = process.communicate(timeout=60)
    program = int(pid.read_text())
    if stop is signal.SIGINT:
        assert process.returncode == 130
        assert "the same command resumes: omnidata voice" in errors
        with pytest.raises(ProcessLookupError):
            os.kill(program, 0)
    else:
        os.kill(program, signal.SIGKILL)
    assert len(list(out.glob("*.wav"))) == 3
    gate.unlink()
    done = as_json(omnidata(*arguments))
    assert (done["rendered"], done["kept"], done["findings"]) == (5, 3, [])
    listed = [json.loads(line) for line in (out / "voices.jsonl").read_text().splitlines()]
    assert {f"{line['md5']}.wav" for line in listed} == {path.name for path in out.glob("*.wav")}
    assert {path.name for path in out.iterdir() if path.suffix != ".wav"} == {
        ".lock", "voices.jsonl",
    }  # fmt: skip
