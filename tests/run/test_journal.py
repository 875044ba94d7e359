"""A run folder holds what was done, and never loses or mixes it."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from omnidata.adapters import Model
from omnidata.data.convert import convert
from omnidata.errors import CallError, RunError, UnansweredWarning
from omnidata.media import resolve
from omnidata.predictions import read
from omnidata.run.evaluate import evaluate
from omnidata.run.journal import RunFolder
from omnidata.tasks import get_task
from omnidata.types import Completion, GenerationParams, LoadedDataset, Modality, Prepared
from tests.cli.running import here, omnidata
from tests.data.converting import small
from tests.full import in_gate
from tests.run.scripted import Run
from tests.trees import read_lines, write_lines

TASK = get_task("omnigui")

SETTINGS = {"task": "omnigui", "model": "m"}
"""What every run folder says at least."""


def test_a_run_folder_holds_what_the_architecture_promises(run: Run) -> None:
    results = run("baseline:center")
    assert json.loads((run.folder / "results.json").read_text()) == results
    info = run.info
    assert info["task"] == "omnigui"
    assert info["model"] == "baseline:center"
    assert info["dataset_fingerprint"] == run.source.fingerprint
    assert info["prompt_hash"] == TASK.prompt_hash
    assert info["generation"] == {"temperature": 0.0, "max_new_tokens": 4096}
    assert info["seed"] is None
    assert set(info["options"]) == set(TASK.allowed)
    assert {"omnidata", "python"} <= set(info["versions"])
    assert {"prepare_s", "media_s", "media_wait_s", "model_s", "disk_s"} < set(info["timings"])
    ids = [step.sample_id for step in run.source.steps]
    predictions = run.lines()
    assert [line["sample_id"] for line in predictions] == ids
    assert {"delivery", "output", "usage", "latency_s", "attempts", "receipt"} < set(predictions[0])
    scores = run.lines("scores")
    assert [line["sample_id"] for line in scores] == ids
    assert {line["profile"] for line in scores} == {"omnigui-paper"}
    exact = [line["exact_match"] for line in scores]
    assert sum(exact) / len(exact) == results["overall"]["EM"]


def test_a_resumed_run_equals_an_uninterrupted_one(source: LoadedDataset, tmp_path: Path) -> None:
    evaluate(TASK, source, "baseline:random", tmp_path / "whole")
    whole = (tmp_path / "whole" / "predictions.jsonl").read_bytes()
    part = tmp_path / "part"
    part.mkdir()
    (part / "run.json").write_bytes((tmp_path / "whole" / "run.json").read_bytes())
    keep = b"".join(whole.splitlines(keepends=True)[:40])
    (part / "predictions.jsonl").write_bytes(keep + b'{"sample_id":"Chirp')
    seen: list[tuple[int, int]] = []
    results = evaluate(
        TASK, source, "baseline:random", part, progress=lambda *now: seen.append(now)
    )
    lines = [read_lines(run / "predictions.jsonl") for run in (tmp_path / "whole", part)]
    final = [[(p["sample_id"], p["delivery"], p["output"]) for p in each] for each in lines]
    assert final[0] == final[1]
    assert json.loads((tmp_path / "whole" / "results.json").read_text()) == results
    assert seen[-1] == (len(source.steps), len(source.steps))


def test_files_that_end_at_any_byte_of_their_last_two_lines_become_the_same_files(
    tmp_path: Path,
) -> None:
    def go_on(folder: Path) -> tuple[bytes, bytes]:
        with RunFolder(folder, SETTINGS) as run:
            failed = [line.sample_id for line in run.failed_lines()]
            for name in ("a", "b", "ä\u2028"):
                if name not in failed:
                    run.append_attempt(name, Completion(delivery="api_error", error="503"))
                if name not in run.done:
                    run.append(name, Completion(text=f"to {name}", usage={"tokens": 3}))
        return run.predictions.read_bytes(), run.attempts.read_bytes()

    whole, attempts = go_on(tmp_path / "whole")
    lengths = len(b"".join(whole.splitlines(keepends=True)[1:])), len(attempts)
    for cut in range(max(lengths) + 1):
        run = tmp_path / str(cut)
        run.mkdir()
        (run / "run.json").write_text(json.dumps(SETTINGS))
        (run / "predictions.jsonl").write_bytes(whole[: len(whole) - cut])
        (run / "attempts.jsonl").write_bytes(attempts[: max(0, len(attempts) - cut)])
        assert go_on(run) == (whole, attempts), cut


def test_other_settings_are_refused_with_the_difference(run: Run) -> None:
    run("baseline:random")
    before = (run.folder / "predictions.jsonl").read_bytes()
    with pytest.raises(RunError, match='"baseline:random" there, "baseline:center" now'):
        run("baseline:center")
    with pytest.raises(RunError, match="limit: null there, 3 now"):
        run("baseline:random", limit=3)
    assert (run.folder / "predictions.jsonl").read_bytes() == before


def test_only_the_keys_that_differ_are_named(run: Run) -> None:
    run("baseline:center")
    info = run.info
    info["generation"]["temperature"] = 0.7
    info["generation"]["reasoning"] = {"effort": "x" * 500}
    (run.folder / "run.json").write_text(json.dumps(info))
    with pytest.raises(RunError) as caught:
        run("baseline:center")
    said = str(caught.value)
    assert "generation.temperature: 0.7 there, 0.0 now; " in said
    assert f'generation.reasoning.effort: "{"x" * 56}... there, null now' in said
    assert "max_new_tokens" not in said


def test_a_folder_with_other_things_is_left_alone(run: Run) -> None:
    run.folder.mkdir()
    (run.folder / "thesis.tex").write_text("text")
    with pytest.raises(RunError, match=r"thesis\.tex"):
        run("baseline:center")
    assert [path.name for path in run.folder.iterdir()] == ["thesis.tex"]


def test_a_folder_has_one_writer(run: Run) -> None:
    run("baseline:center")
    with RunFolder(run.folder, run.info), pytest.raises(RunError, match="another process"):
        run("baseline:center")
    run("baseline:center")


def test_a_run_killed_at_its_very_start_begins_anew(run: Run) -> None:
    run.folder.mkdir()
    (run.folder / ".run.json.new").write_text("{")
    (run.folder / ".lock").touch()
    assert run("baseline:oracle")["overall"]["EM"] == 1.0


def test_a_run_folder_that_cannot_be_made_is_said(source: LoadedDataset, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(RunError, match="choose another --out"):
        evaluate(TASK, source, "baseline:center", tmp_path / "file")


def test_an_edited_replay_is_another_model(source: LoadedDataset, tmp_path: Path) -> None:
    sample_id = source.steps[0].sample_id
    path = write_lines(tmp_path / "p.jsonl", [{"sample_id": sample_id, "output": "x"}])
    evaluate(TASK, source, f"replay:{path}", tmp_path / "run", limit=1)
    write_lines(path, [{"sample_id": "a", "output": "y"}])
    with pytest.raises(RunError, match="different settings"):
        evaluate(TASK, source, f"replay:{path}", tmp_path / "run", limit=1)


class Looker(Model):
    """Fails from a step on, until it is told to go on."""

    name = "looker"
    accepts: frozenset[Modality] | None = frozenset({"image", "video", "audio"})

    def __init__(self, most: int = 10**9) -> None:
        self.most = most
        self.asked: list[str] = []

    async def generate(
        self, batch: Sequence[Prepared], params: GenerationParams
    ) -> list[Completion]:
        if len(self.asked) == self.most:
            raise CallError("HTTP 401: the key has expired", transient=False, hopeless=True)
        self.asked += [item.request.sample_id for item in batch]
        return [Completion(text='{"action_type": -1}') for _ in batch]


def test_a_run_does_not_go_on_with_other_pictures(sample: Path, tmp_path: Path) -> None:
    data, run = shutil.copytree(sample / "Chirp", tmp_path / "data"), tmp_path / "run"
    source = TASK.load(data)
    with pytest.warns(UnansweredWarning):
        evaluate(TASK, source, Looker(6), run, limit=10)
    changed = [resolve(step.media["screenshot"]) for step in source.steps[1:3]]  # type: ignore[arg-type]  # the sample has screenshots
    for picture in changed:
        content = bytearray(picture.read_bytes())
        picture.write_bytes(content + b"\0")  # behind the end of the picture
    model = Looker()
    with pytest.raises(
        RunError, match=r"2 media of \d answered steps(.|\n)*--changed-media"
    ) as caught:
        evaluate(TASK, TASK.load(data), model, run, limit=10)
    assert str(changed[0]) in str(caught.value)
    assert not model.asked
    score = ("score", "omnigui", data, run)
    assert "--changed-media" in omnidata(*score, code=2).stderr
    assert "2 media have changed" in omnidata(*score, "--changed-media", code=1).stderr
    moved = shutil.copy(run / "predictions.jsonl", tmp_path / "answers.jsonl")
    for lines in (run / "predictions.jsonl", moved):  # they say themselves what was shown
        alone = ("score", "omnigui", data, lines)
        assert "--changed-media" in omnidata(*alone, code=2).stderr
        assert "2 media have changed" in omnidata(*alone, "--changed-media", code=1).stderr
    evaluate(TASK, TASK.load(data), model, run, limit=10, changed_media=True)
    assert len(model.asked) == 4
    assert json.loads((run / "run.json").read_text())["changed_media"] == 2


@pytest.mark.parametrize("form", ["files", "parquet"])
def test_a_run_goes_on_with_a_copy_of_its_data(sample: Path, tmp_path: Path, form: str) -> None:
    data, run = tmp_path / "data", tmp_path / "run"
    small(data if form == "files" else tmp_path / "files", sample, "C001", "C002", "C003", "C004")
    if form == "parquet":
        convert(TASK.load(tmp_path / "files"), data, embed=True)
    with pytest.warns(UnansweredWarning):
        evaluate(TASK, TASK.load(data), Looker(6), run, limit=10)
    copy = shutil.copytree(data, tmp_path / "copy")
    shutil.rmtree(data)
    for path in copy.rglob("*"):
        os.utime(path, (1e9, 1e9))
    model = Looker()
    evaluate(TASK, TASK.load(copy), model, run, limit=10)
    assert len(model.asked) == 4
    assert "changed_media" not in json.loads((run / "run.json").read_text())
    stamp = read_lines(run / "predictions.jsonl")[0]["receipt"]["media"]["screenshot"]
    assert stamp.keys() == {"size", "mtime_ns", "sha256"}


def test_a_run_from_before_media_were_recorded_goes_on(sample: Path, tmp_path: Path) -> None:
    data, run = shutil.copytree(sample / "Chirp", tmp_path / "data"), tmp_path / "run"
    source = TASK.load(data)
    with pytest.warns(UnansweredWarning):
        evaluate(TASK, source, Looker(6), run, limit=10)
    lines = read_lines(run / "predictions.jsonl")
    odd: list[object] = [None, 3, [], {"screenshot": 1}, {"a": {}}]
    for line, recorded in zip(lines, odd, strict=False):
        line["receipt"] = {} if recorded is None else {"media": recorded}
    write_lines(run / "predictions.jsonl", lines[:5])
    for picture in data.rglob("*.png"):
        picture.write_bytes(picture.read_bytes() + b"\0")
    model = Looker()
    evaluate(TASK, source, model, run, limit=10)
    assert len(model.asked) == 5


def test_times_add_up_over_resumed_runs(run: Run) -> None:
    spent = []
    for _ in range(2):
        run("baseline:random")
        spent.append(run.info["timings"]["model_s"])
    assert spent[1] >= spent[0] > 0


@pytest.mark.parametrize("name", in_gate(["scores.jsonl", "run.json"], 1, "processes for each"))
def test_a_disk_that_is_full_beside_the_lines_is_said_and_nothing_is_lost(
    few: Path, tmp_path: Path, name: str
) -> None:
    """The limit on a file's size is the system's own; what is written is real."""
    ask = ["evaluate", "omnigui", str(few), "--model", "baseline:center", "--out"]
    omnidata(*ask, tmp_path / "whole")
    sizes = {path.name: path.stat().st_size for path in (tmp_path / "whole").iterdir()}
    assert sizes["scores.jsonl"] > sizes["predictions.jsonl"] > sizes["run.json"]
    limit = {"run.json": 100, "scores.jsonl": sizes["predictions.jsonl"] + 1}[name]
    code = (
        "import resource, signal, sys; from omnidata.cli import main;"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, resource.RLIM_INFINITY));"
        "main()"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, *ask, str(tmp_path / "part")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "RunError" in done.stderr
    assert "repeat the command: finished work is kept" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "part" / name).exists()
    omnidata(*ask, tmp_path / "part")
    finals = [(tmp_path / run / "predictions.jsonl").read_bytes() for run in ("whole", "part")]
    assert finals[0] == finals[1]


VICTIM = b"a file of the user's that no run knows\n"
FORESEEN = (
    ".results.json.new", ".scores.jsonl.new", ".run.json.new", ".predictions.jsonl.new",
    ".attempts.jsonl.new", ".p.html.new", ".c.md.new",
)  # fmt: skip


def test_links_in_a_foreign_run_folder_lead_no_writer_out_of_it(few: Path, tmp_path: Path) -> None:
    """Links under every name that files had while they were made, as a foreign folder can have."""
    run, victim = tmp_path / "run", tmp_path / "victim"
    victim.write_bytes(VICTIM)
    ask = ["evaluate", "omnigui", str(few), "--model", "baseline:center", "--limit", "2"]
    omnidata(*ask, "--out", run)
    lines = read_lines(run / "predictions.jsonl")
    lines[0] |= {"delivery": "api_error", "output": ""}  # so that all files are written again
    write_lines(run / "predictions.jsonl", lines)
    for name in FORESEEN:
        (run / name).symlink_to(victim)
    omnidata(*ask, "--out", run)
    for name in ("results.json", "scores.jsonl"):
        (run / name).unlink()
        (run / name).symlink_to(victim)
    omnidata("score", "omnigui", few, run, "--out", run)
    assert not (run / "results.json").is_symlink() and not (run / "scores.jsonl").is_symlink()
    omnidata("report", run, "--html", run / "p.html", "--card", run / "c.md")
    assert (run / "p.html").stat().st_size and (run / "c.md").stat().st_size
    assert victim.read_bytes() == VICTIM


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_files_have_the_mode_that_the_user_gives_to_new_ones(
    few: Path, tmp_path: Path, mask: int
) -> None:
    run = tmp_path / "run"
    before = os.umask(mask)
    try:
        ask = ("evaluate", "omnigui", few, "--model", "baseline:center", "--limit", "2")
        here(*ask, "--out", run)
        here("report", run, "--html", run / f"{'a' * 250}.html")  # as long as a name can be
    finally:
        os.umask(before)
    files = [path for path in run.iterdir() if path.name != ".lock"]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o666 & ~mask}


def test_a_file_that_cannot_take_its_place_is_not_left_beside_it(few: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    omnidata("evaluate", "omnigui", few, "--model", "baseline:center", "--out", run)
    (run / "scores.jsonl").unlink()
    (run / "scores.jsonl").mkdir()
    before = {path.name for path in run.iterdir()}
    omnidata("score", "omnigui", few, run, "--out", run, code=2)
    assert {path.name for path in run.iterdir()} == before


@pytest.mark.parametrize("kind", ["link", "dangling", "pipe", "folder"])
@pytest.mark.parametrize("name", ["predictions.jsonl", "attempts.jsonl"])
def test_what_is_no_file_of_the_folder_is_not_opened(tmp_path: Path, name: str, kind: str) -> None:
    with RunFolder(tmp_path / "run", SETTINGS) as run:
        run.append("a", Completion(text="x"))
        run.append_attempt("b", Completion(delivery="api_error"))
    victim, path = tmp_path / "victim", tmp_path / "run" / name
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(victim)
        if kind == "link":
            victim.write_bytes(VICTIM)
    with (
        pytest.raises(RunError, match="cp -rL"),
        RunFolder(tmp_path / "run", SETTINGS) as run,
    ):
        run.append("c", Completion(text="x"))
        run.append_attempt("d", Completion(delivery="api_error"))
    with pytest.raises(RunError, match="cp -rL"):
        list(read(path, of_run=True))
    assert kind != "link" or victim.read_bytes() == VICTIM
    assert kind != "dangling" or not victim.exists()


def test_a_file_with_a_second_name_is_read(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run", SETTINGS) as run:
        run.append("a", Completion(text="x"))
    os.link(tmp_path / "run" / "predictions.jsonl", tmp_path / "other")
    assert [line.sample_id for line in read(tmp_path / "other", of_run=True)] == ["a"]


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("name", ["predictions.jsonl", "attempts.jsonl"])
def test_a_resumed_run_adds_to_no_file_that_lies_elsewhere_as_well(
    tmp_path: Path, name: str, hard: bool
) -> None:
    with RunFolder(tmp_path / "run", SETTINGS) as run:
        run.append("a", Completion(text="x"))
        run.append_attempt("b", Completion(delivery="api_error"))
    victim = (tmp_path / "run" / name).rename(tmp_path / "victim")
    with victim.open("ab") as file:
        file.write(b"a last line without its end")
    before = victim.read_bytes()
    if hard:
        os.link(victim, tmp_path / "run" / name)
    else:
        (tmp_path / "run" / name).symlink_to(victim)
    with pytest.raises(RunError, match="second name" if hard else "is a link"):
        RunFolder(tmp_path / "run", SETTINGS)
    assert victim.read_bytes() == before


def test_a_new_run_adds_to_no_link_that_waits_for_it(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text(json.dumps(SETTINGS))
    with RunFolder(tmp_path / "run", SETTINGS) as run:
        (tmp_path / "run" / "predictions.jsonl").symlink_to(tmp_path / "victim")
        with pytest.raises(RunError, match="is a link"):
            run.append("a", Completion(text="x"))
    assert not (tmp_path / "victim").exists()


@pytest.mark.parametrize("hard", [False, True])
def test_a_lock_that_is_a_link_empties_nothing(tmp_path: Path, hard: bool) -> None:
    (tmp_path / "run").mkdir()
    victim, lock = tmp_path / "victim", tmp_path / "run" / ".lock"
    victim.write_bytes(VICTIM)
    if hard:
        os.link(victim, lock)
        RunFolder(tmp_path / "run", SETTINGS).__exit__(None, None, None)
    else:
        lock.symlink_to(victim)
        with pytest.raises(RunError, match="cannot be read or written"):
            RunFolder(tmp_path / "run", SETTINGS)
    assert victim.read_bytes() == VICTIM


def test_a_folder_that_nobody_may_write_into_is_said(few: Path) -> None:
    """The kernel's own file system takes no folder, whoever asks."""
    out = "/proc/omnidata-run"
    done = omnidata("evaluate", "omnigui", few, "--model", "baseline:center", "--out", out, code=2)
    assert f"RunError: {out}" in done.stderr
    assert "Fix" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_clock_that_jumps_changes_no_result(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = run("baseline:center")
    jumps = itertools.cycle((0.0, 4e9, -1.0, 1.7e9))
    monkeypatch.setattr(time, "time", lambda: next(jumps))
    run.folder = tmp_path / "again"
    found = run("baseline:center", requests_per_minute=1e6)
    assert found["overall"] == wanted["overall"]
    assert found["outcomes"] == {"ok": len(run.ids)}
    assert all(line["latency_s"] >= 0 for line in run.lines())
