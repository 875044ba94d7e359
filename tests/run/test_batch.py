"""A run through a batch API is a run like any other."""

from __future__ import annotations

import json
import shutil
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnidata.errors import PredictionError, RunError, UnansweredError, UsageError
from omnidata.run.asker import Recipe
from omnidata.run.batch import write as write_watched
from omnidata.run.batch_results import read as read_watched
from omnidata.run.cost import Limits
from omnidata.run.evaluate import evaluate
from omnidata.run.journal import RunFolder
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset
from tests import trees
from tests.adapters.servers_http import KEY
from tests.run.batching import (
    OPTIONS,
    SPECS,
    answered,
    prices_file,
    read,
    rows_of,
    saying,
    serving,
    set_keys,
    write,
    write_rows,
)
from tests.trees import read_lines

TEXTS = ['{"action_type": -1}', '{"action_type": 4, "point": [0.5, 0.5]}', "no idea"]
STEPS = 7
TASK = get_task("omnigui", {"modalities": "I"})
WHOLE = get_task("omnigui")
URLS = {"openai": "/v1/chat/completions", "openai-responses": "/v1/responses"}
VLLM = Recipe("openai:m", {}, "http://127.0.0.1:9/v1")


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)


Made = Callable[..., Path]


@pytest.fixture(scope="module")
def made(source: LoadedDataset, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A run of so many steps that were written for vLLM, a copy for each call."""
    templates = tmp_path_factory.mktemp("templates")

    def copy(limit: int) -> Path:
        whole = templates / str(limit)
        if not whole.exists():
            write(TASK, source, VLLM, whole, limit=limit)
        return Path(shutil.copytree(whole, tmp_path_factory.mktemp("batch") / "run"))

    return copy


def take(run: Path, rows: Sequence[Mapping[str, Any]], **how: Any) -> Any:
    """Read rows of a provider out of a file of their own."""
    path = run.parent / f"rows-{len([*run.parent.iterdir()])}.jsonl"
    return read(run, [write_rows(path, rows)], **how)


def lines_of(run: Path) -> dict[str, dict[str, Any]]:
    """The predictions without what a clock says, by sample id."""
    found = read_lines(run / "predictions.jsonl")
    for line in found:
        line["latency_s"] = 0.0
    return {line["sample_id"]: line for line in found}


def content(run: Path) -> dict[str, bytes]:
    """What readers of a run look at."""
    names = ("predictions.jsonl", "attempts.jsonl", "scores.jsonl", "results.json")
    return {name: (run / name).read_bytes() for name in names if (run / name).exists()}


def usage_of(run: Path) -> dict[str, Any]:
    return dict(json.loads((run / "run.json").read_text())["usage"])


@pytest.mark.parametrize("wire", SPECS)
def test_a_batch_is_a_live_run_line_by_line(
    source: LoadedDataset, tmp_path: Path, wire: str
) -> None:
    task = TASK if wire in OPTIONS else WHOLE
    live, run = tmp_path / "live", tmp_path / "run"
    with serving(wire, saying(TEXTS)) as (server, recipe):
        evaluate(task, source, recipe, live, model_options=recipe.options, limit=STEPS)
        sent = server.bodies
    order = [line["sample_id"] for line in read_lines(live / "predictions.jsonl")]
    spoken = {line["sample_id"]: line["output"] for line in lines_of(live).values()}
    with serving(wire, ()) as (server, at):
        # The address is part of the settings; vLLM, which the local one stands for, has no batch of
        # Responses.
        own = wire == "openai-responses"
        there = Recipe(at.spec, at.options, None if own else recipe.base_url)
        written = write(task, source, there, run, limit=STEPS)
        asked = {line["custom_id"]: line for line in read_lines(run / "batch" / "ids.jsonl")}
        rows = rows_of(run)
        assert (written.new, len(rows)) == (STEPS, STEPS)
        assert written.format == {"openai": "vllm"}.get(wire, wire.removesuffix("-responses"))
        assert {row.get("url", "") for row in rows} == {URLS.get(wire, "")}
        assert all(name.replace("-", "").isalnum() and len(name) <= 64 for name in asked)
        ids = [asked[row.get("custom_id") or row["key"]]["sample_id"] for row in rows]
        server.script = saying([spoken[each] for each in ids])
        results = write_rows(tmp_path / "out.jsonl", [answered(row, server) for row in rows][::-1])
    files = (run / "batch").glob("requests-*.jsonl")
    raw = [line for file in files for line in file.read_bytes().splitlines()]
    assert len({line for line in raw for body in sent if line.endswith(body + b"}")}) == len(sent)
    assert Counter(ids) == Counter(order)
    read(run, [results])
    assert lines_of(run) == lines_of(live)
    settings = json.loads((live / "run.json").read_text())
    there_too = json.loads((run / "run.json").read_text())
    if own:
        there_too["model_settings"]["base_url"] = settings["model_settings"]["base_url"]
    for name in settings.keys() - {"timings"}:
        assert there_too[name] == settings[name], name
    assert content(run)["results.json"] == content(live)["results.json"]


def answers(run: Path, texts: str = '{"action_type": -1}') -> dict[str, dict[str, Any]]:
    """A row of OpenAI's for each request of the newest round, by sample id."""
    found = read_lines(run / "batch" / "ids.jsonl")
    last = max(line["round"] for line in found)
    return {
        line["sample_id"]: {"custom_id": line["custom_id"], "error": None, "response": said(texts)}
        for line in found
        if line["round"] == last
    }


def said(text: str) -> dict[str, Any]:
    choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    return {"status_code": 200, "body": {"model": "m", "choices": [choice], "usage": usage}}


def failed(row: dict[str, Any], code: str, message: str, status: int = 0) -> dict[str, Any]:
    response = {"status_code": status, "body": {"error": {"message": message}}} if status else None
    error = {"code": code, "message": message} if code else None
    return {"custom_id": row["custom_id"], "response": response, "error": error}


def test_a_whole_round_of_missing_expired_failed_and_asked_again(
    source: LoadedDataset, made: Made, tmp_path: Path
) -> None:
    run = made(6)
    rows = answers(run)
    names = list(rows)
    first = [rows[names[0]], rows[names[1]]]
    first.append(failed(rows[names[2]], "batch_expired", "not run within 24h"))
    first.append(failed(rows[names[3]], "", "a bad picture", 400))
    first.append(failed(rows[names[4]], "batch_cancelled", ""))
    file = write_rows(tmp_path / "first.jsonl", first)
    found = read(run, [file])
    assert (found.rows, found.answered, found.missing) == (5, 2, 1)
    assert found.failed == {"expired": 1, "failed": 1, "cancelled": 1}
    assert found.results["outcomes"] == {"ok": 2, "api_error": 3, "missing": 1}
    lines = lines_of(run)
    assert "expired" in lines[names[2]]["error"]
    assert "HTTP 400: a bad picture" in lines[names[3]]["error"]
    assert "cancelled" in lines[names[4]]["error"]
    assert names[5] not in lines

    before = content(run)
    assert write(TASK, source, VLLM, run, limit=6).new == 0  # the same command does nothing
    assert read(run, [file]).answered == 0
    assert content(run) == before

    again = write(TASK, source, VLLM, run, limit=6, only="missing")
    assert (again.new, again.round, again.answered) == (4, 2, 2)
    second = answers(run)
    assert set(second) == set(names[2:])
    assert {row["custom_id"] for row in second.values()}.isdisjoint(
        row["custom_id"] for row in rows.values()
    )
    late = failed(second[names[5]], "batch_expired", "again")
    other = write_rows(tmp_path / "second.jsonl", [*(second[name] for name in names[2:5]), late])
    found = read(run, [other, file])  # in any order
    assert found.results["outcomes"] == {"ok": 5, "api_error": 1}
    assert (found.kept, found.failed) == (2, {"expired": 1})
    attempts = [line["sample_id"] for line in read_lines(run / "attempts.jsonl")]
    assert attempts == names[2:5]
    before = content(run)
    read(run, [file, other, file])
    assert content(run) == before


def test_live_requests_take_over_where_a_batch_has_ended(
    source: LoadedDataset, tmp_path: Path
) -> None:
    run, prices = tmp_path / "run", prices_file(tmp_path)
    with serving("openai", saying(TEXTS)) as (server, recipe):
        write(TASK, source, recipe, run, limit=4)
        rows = [*answers(run).values()]
        expired = failed(rows[1], "batch_expired", "")
        take(run, [rows[0], expired])
        limits = Limits(prices=prices)
        results = evaluate(TASK, source, recipe, run, limit=4, limits=limits)
        assert server.count == 3
    assert results["counts"]["steps"] == 4
    assert "api_error" not in results["outcomes"]
    usage = usage_of(run)
    assert (usage["requests"], usage["cost"]) == (4, 4.0)  # vLLM's batches cost what others do


def test_files_are_split_by_requests_and_by_bytes(source: LoadedDataset, tmp_path: Path) -> None:
    def sizes(run: Path) -> list[int]:
        files = sorted((run / "batch").glob("requests-*.jsonl"))
        return [len(file.read_bytes()) for file in files]

    one = write(TASK, source, VLLM, tmp_path / "one", limit=7)
    assert [file.requests for file in one.files] == [7]
    by_count = write(TASK, source, VLLM, tmp_path / "count", limit=7, per_file=3)
    assert [file.requests for file in by_count.files] == [3, 3, 1]
    most = sizes(tmp_path / "one")[0] * 2 // 5
    by_size = write(TASK, source, VLLM, tmp_path / "size", limit=7, mb_per_file=most / 1e6)
    assert len(by_size.files) >= 3
    assert max(sizes(tmp_path / "size")) <= most
    assert sum(file.requests for file in by_size.files) == 7
    assert [file.bytes for file in by_size.files] == sizes(tmp_path / "size")
    asked = read_lines(tmp_path / "size" / "batch" / "ids.jsonl")
    rows = rows_of(tmp_path / "size")
    assert [line["custom_id"] for line in asked] == [row["custom_id"] for row in rows]
    with pytest.raises(UsageError, match="more than a file may have"):
        write(TASK, source, VLLM, tmp_path / "none", limit=7, mb_per_file=0.001)


def test_an_interrupted_call_goes_on_after_its_last_whole_file(
    source: LoadedDataset, tmp_path: Path
) -> None:
    run = tmp_path / "run"

    def stop(done: int, total: int) -> None:
        if done >= 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_watched(TASK, source, VLLM, run, limit=7, max_requests=2, progress=stop)
    files = sorted((run / "batch").glob("requests-*.jsonl"))
    kept = {file: file.stat().st_mtime_ns for file in files}
    assert 1 <= len(files) <= 3
    ids = run / "batch" / "ids.jsonl"
    lines = ids.read_bytes()
    early = lines.replace(files[-1].name.encode(), b"requests-00009.jsonl").splitlines(True)[-1]
    ids.write_bytes(lines + early + b'{"custom_id": "torn')  # as a kill before the file is whole
    unfinished = run / "batch" / ".0123456789abcdef.new"
    unfinished.write_bytes(b"{}")
    written = write(TASK, source, VLLM, run, limit=7, per_file=2)
    assert not unfinished.exists()
    assert written.new == 7 - 2 * len(files)
    assert sum(file.requests for file in written.files) == 7
    assert all(file.stat().st_mtime_ns == then for file, then in kept.items())
    assert len(answers(run)) == 7
    assert take(run, [*answers(run).values()]).answered == 7


def test_media_lie_in_a_folder_once_and_requests_name_them(
    source: LoadedDataset, tmp_path: Path
) -> None:
    shared = tmp_path / "shared media"
    whole = write(WHOLE, source, VLLM, tmp_path / "whole", limit=9)
    named = write(WHOLE, source, VLLM, tmp_path / "named", limit=9, media_files=shared)
    assert named.files[0].bytes < whole.files[0].bytes / 5

    def media(run: Path, look: Any) -> list[bytes]:
        parts = [
            part
            for row in rows_of(run)
            for message in row["body"]["messages"]
            for part in message["content"]
            if part["type"] != "text"
        ]
        return [look(part) for part in parts]

    def inside(part: Any) -> bytes:
        held = part.get("input_audio", {}).get("data")
        return b64decode(held or part[part["type"]]["url"].partition(",")[2])

    def outside(part: Any) -> bytes:
        url = part[part["type"]]["url"]
        assert url.startswith(shared.as_uri() + "/")
        return Path(unquote(urlsplit(url).path)).read_bytes()

    seen = media(tmp_path / "whole", inside)
    assert seen == media(tmp_path / "named", outside)
    assert len({*seen}) == len([*shared.iterdir()]) < len(seen)
    before = read_lines(tmp_path / "whole" / "batch" / "ids.jsonl")
    after = read_lines(tmp_path / "named" / "batch" / "ids.jsonl")
    for name in ("receipt", "key", "sample_id"):
        assert [line[name] for line in before] == [line[name] for line in after]


@pytest.mark.parametrize(
    ("recipe", "options", "how", "why"),
    [
        (Recipe("baseline:center"), {}, {}, "step by step"),
        (Recipe("openai-responses:m", {}, "http://127.0.0.1:9/v1"), {}, {}, "step by step"),
        (Recipe("openai:m"), {"history": "predicted"}, {}, "answer to the one before"),
        (Recipe("openai:m", {"extra_body": '{"api_key": "sk-12345678"}'}), {}, {}, "a key"),
        (Recipe("openai:gpt-4o"), {}, {"media_files": "media"}, "hold their media"),
        (Recipe("anthropic:m", OPTIONS["anthropic"]), {}, {"media_files": "m"}, "hold their media"),
    ],
)
def test_what_cannot_be_batched_is_refused(
    source: LoadedDataset,
    tmp_path: Path,
    recipe: Recipe,
    options: dict[str, str],
    how: dict[str, str],
    why: str,
) -> None:
    task = get_task("omnigui", {"modalities": "I", **options})
    with pytest.raises(UsageError, match=why):
        write(task, source, recipe, tmp_path / "run", **how)
    assert not (tmp_path / "run").exists()


SECRET = "0f3a9c1b7d5e2468"


@pytest.mark.parametrize("address", [None, f"http://127.0.0.1:9/t/{SECRET}/v1"])
def test_a_secret_is_in_no_file(source: LoadedDataset, tmp_path: Path, address: str | None) -> None:
    recipe = Recipe("openai:gpt-4o", {}, address)
    run = tmp_path / "run"
    write(TASK, source, recipe, run, limit=2)
    assert write(TASK, source, recipe, run, limit=2).new == 0
    rows = [*answers(run).values()]
    rows[0] = failed(rows[0], "", f"Incorrect API key provided: {KEY}", 401)
    take(run, rows)
    for path in run.rglob("*"):
        content = b"" if path.is_dir() else path.read_bytes()
        assert KEY.encode() not in content, path
        assert SECRET.encode() not in content, path
    assert "[key]" in (run / "predictions.jsonl").read_text()


def test_rows_that_are_not_of_this_batch_write_nothing(
    source: LoadedDataset, made: Made, tmp_path: Path
) -> None:
    run, other = made(2), tmp_path / "other"
    write(TASK, source, VLLM, other, limit=2)
    good, foreign = [*answers(run).values()], [*answers(other).values()]
    for rows, why in (
        ([*good, foreign[0]], "no request of this run"),
        ([*good, {**good[0], "response": said("else")}], "two answers"),
        ([*good, {"hello": "world"}], "belongs to no request"),
    ):
        with pytest.raises(PredictionError, match=why):
            take(run, rows)
    torn = write_rows(tmp_path / "torn.jsonl", good)
    torn.write_bytes(torn.read_bytes()[:-40])
    with pytest.raises(PredictionError, match=r"torn\.jsonl:2"):
        read(run, [torn])
    assert not (run / "predictions.jsonl").exists()
    with pytest.raises(RunError, match="no batch"):
        read(tmp_path, [torn])


def test_a_row_that_says_two_things_or_nothing_readable_fails_its_step_alone(
    made: Made, tmp_path: Path
) -> None:
    run = made(3)
    torn, twice, good = (json.dumps(row).encode() for row in answers(run, "TAP").values())
    torn = torn.replace(b"TAP", b"T\xffP")
    twice = twice.replace(b'"finish_reason"', b'"finish_reason": "length", "finish_reason"')
    path = tmp_path / "r.jsonl"
    path.write_bytes(b"\n".join((torn, twice, good)))
    found = read(run, [path])
    assert (found.answered, found.failed) == (1, {"failed": 2})
    errors = "".join(line["error"] for line in lines_of(run).values())
    assert "'finish_reason' twice, and not the same" in errors
    assert "not UTF-8" in errors


@pytest.mark.parametrize(
    ("change", "why"), [({"rounds": []}, "of round 1, of 0"), ({"round": 7}, "of round 7, of 1")]
)
def test_a_manifest_whose_rounds_do_not_fit_is_refused(
    made: Made, change: dict[str, Any], why: str
) -> None:
    run = made(4)
    path = run / "batch" / "manifest.json"
    manifest = json.loads(path.read_text())
    (manifest["files"][0] if "round" in change else manifest).update(change)
    path.write_text(json.dumps(manifest))
    with pytest.raises(RunError, match=why):
        take(run, [])


def test_a_failure_gives_way_to_the_answer_of_another_file(made: Made, tmp_path: Path) -> None:
    run = made(2)
    rows = [*answers(run).values()]
    bad = write_rows(tmp_path / "bad.jsonl", [failed(row, "", "gone", 500) for row in rows])
    with pytest.raises(UnansweredError, match="gone"):
        read(run, [bad])
    found = read(run, [write_rows(tmp_path / "good.jsonl", rows), bad])
    assert (found.answered, found.repeated, found.missing) == (2, 2, 0)


@pytest.mark.parametrize("order", [(1, 2), (2, 1), (12,), (2, 1, 2, 12)])
def test_of_answers_of_two_rounds_the_first_counts_in_any_order_of_calls(
    source: LoadedDataset, made: Made, tmp_path: Path, order: tuple[int, ...]
) -> None:
    run = made(2)
    late, good = answers(run, "of round 1").values()
    take(run, [failed(late, "", "gone", 500), good])
    write(TASK, source, VLLM, run, limit=2, only="missing")
    rounds = {1: [late], 2: [*answers(run, "of round 2").values()]}
    files = {n: write_rows(tmp_path / f"{n}.jsonl", rows) for n, rows in rounds.items()}
    for which in order:
        read(run, [files[int(number)] for number in str(which)])
    assert [line["output"] for line in lines_of(run).values()] == ["of round 1"] * 2
    assert usage_of(run)["requests"] == 3  # what gave way was answered as well


@pytest.mark.parametrize("moment", ["reopen", "append", "sync"])
def test_a_call_that_is_cut_off_while_it_records_goes_on(
    source: LoadedDataset, made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    run = made(2)
    late, good = answers(run, "of round 1").values()
    take(run, [failed(late, "", "gone", 500), good])
    write(TASK, source, VLLM, run, limit=2, only="missing")
    take(run, [*answers(run, "of round 2").values()])
    first = write_rows(tmp_path / "1.jsonl", [late])

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(RunFolder, moment, stop)
        read_watched(run, [first])
    read(run, [first])
    assert [line["output"] for line in lines_of(run).values()] == ["of round 1"] * 2
    assert usage_of(run)["requests"] == 3


def test_another_answer_to_a_request_is_refused_in_a_later_call_as_well(
    made: Made, tmp_path: Path
) -> None:
    run = made(2)
    one, two = answers(run, "a\ud800").values()
    take(run, [one])
    before = content(run)
    other = write_rows(tmp_path / "2.jsonl", [two, {**one, "response": said("else")}])
    with pytest.raises(PredictionError, match="two answers to the request"):
        read(run, [other])
    assert content(run) == before
    assert take(run, [one, two]).kept == 1


def test_usage_counts_answers_of_unknown_tokens_and_a_cost_stays(
    made: Made, tmp_path: Path
) -> None:
    run, prices = made(4), prices_file(tmp_path)
    rows = [*answers(run).values()]
    for row, tokens in zip(rows, ({}, {"prompt_tokens": -5}, {"prompt_tokens": 7}), strict=False):
        row["response"]["body"]["usage"] = tokens
    file = write_rows(tmp_path / "r.jsonl", rows[:3])
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())  # as an editor may save it
    read(run, [file], prices=prices)

    first = usage_of(run)
    assert (first["requests"], first["unmetered"], first["cost"]) == (3, 2, 0.07)
    read(run, [file])
    assert usage_of(run) == first
    take(run, rows)
    assert usage_of(run)["requests"] == 4
    assert "cost" not in usage_of(run)  # of all four nobody knows it


@pytest.mark.parametrize("order", [(1, 2), (2, 1)])
def test_a_run_that_goes_on_counts_batches_at_their_price_and_answers_of_unknown_tokens(
    source: LoadedDataset, tmp_path: Path, order: tuple[int, int]
) -> None:
    run, prices = tmp_path / "run", prices_file(tmp_path)
    openai = Recipe("openai:m", {})
    write(TASK, source, openai, run, limit=3)
    late, good, unknown = answers(run).values()
    for row, tokens in ((late, 7), (good, 11), (unknown, 0)):
        row["response"]["body"]["usage"] = {"prompt_tokens": tokens}
    bad = failed(late, "batch_expired", "")
    take(run, [bad, good, unknown], prices=prices)
    write(TASK, source, openai, run, limit=3, only="missing")
    (again,) = answers(run).values()
    again["response"]["body"]["usage"] = {"prompt_tokens": 100}
    for number in order:
        row = (late, again)[number - 1]
        read(run, [write_rows(tmp_path / f"{number}.jsonl", [row])], prices=prices)
    told = usage_of(run)
    assert (told["requests"], told["unmetered"], told["input_tokens"]) == (4, 1, 118)
    assert told["cost"] == pytest.approx(0.5 * 1.18)  # half of what it costs live
    # All is answered: it asks nobody, and counts the same.
    evaluate(TASK, source, openai, run, limit=3, limits=Limits(prices=prices))
    assert usage_of(run) == told


def test_another_round_is_of_the_same_code_of_the_model(
    source: LoadedDataset, made: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = made(2)
    good, bad = answers(run).values()
    take(run, [good, failed(bad, "", "gone", 500)])
    monkeypatch.setattr("omnidata.run.adapter_code.version", lambda _: "99.0")
    with pytest.raises(RunError, match="--reuse-answers"):
        write(TASK, source, VLLM, run, limit=2, only="missing")
    assert write(TASK, source, VLLM, run, limit=2, only="missing", reuse_answers=True).new == 1


def test_a_round_is_not_asked_twice_before_it_is_read(source: LoadedDataset, made: Made) -> None:
    run = made(2)
    with pytest.raises(RunError, match="nothing of round 1 has been read"):
        write(TASK, source, VLLM, run, limit=2, only="missing")
    with pytest.raises(RunError, match="different settings"):
        write(TASK, source, VLLM, run, limit=1)


def test_ids_of_any_letters_come_back_to_their_steps(sample: Path, tmp_path: Path) -> None:
    odd = ["a/b", "ä b", "x\n2", '"quoted"', "\ud800", "a" * 200]
    shutil.copy(next(sample.rglob("*.png")), tmp_path / "1.png")
    rows = [trees.row(name, 0, app="ted", image_path="1.png") for name in odd]
    data = trees.write_rows(tmp_path / "steps.json", rows)
    run = tmp_path / "run"
    source = TASK.load(data)
    write(TASK, source, VLLM, run)
    found = answers(run)
    assert list(found) == [step.sample_id for step in source.steps]
    names = {row["custom_id"] for row in found.values()}
    assert len(names) == len(odd)
    assert all(name.replace("-", "").isalnum() and len(name) <= 64 for name in names)


_NAMES = (
    *("custom_id", "key", "response", "error", "result", "type"),
    *("body", "message", "code", "status_code", "status"),
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(_NAMES),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@pytest.fixture(scope="module", params=["openai", "anthropic", "gemini"])
def single(
    request: pytest.FixtureRequest, source: LoadedDataset, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A run of one step that was written for a provider."""
    run = tmp_path_factory.mktemp("single") / "run"
    with pytest.MonkeyPatch.context() as patch:
        set_keys(patch)
        recipe = Recipe(SPECS[request.param], OPTIONS.get(request.param, {}))
        write(TASK, source, recipe, run, limit=1)
    return run


@given(row=st.dictionaries(st.sampled_from(_NAMES) | st.text(max_size=9), _JSON), own=st.booleans())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_row_is_an_answer_a_failure_or_refused(
    single: Path, row: dict[str, Any], own: bool
) -> None:
    [asked] = read_lines(single / "batch" / "ids.jsonl")
    row |= {"custom_id": asked["custom_id"], "key": asked["custom_id"]} if own else {}
    with TemporaryDirectory() as folder:
        run = Path(shutil.copytree(single, Path(folder, "run")))
        try:
            read(run, [write_rows(Path(folder, "r.jsonl"), [row])])
        except PredictionError as error:
            assert "r.jsonl" in str(error)
            return
        except UnansweredError:
            pass
        [line] = read_lines(run / "predictions.jsonl")
        assert own and (line["delivery"] == "ok" or not line["output"])


@given(
    texts=st.lists(st.text(), min_size=1, max_size=4),
    order=st.permutations([0, 1, 2, 3, 1, 2]),
    cut=st.integers(0, 6),
    statuses=st.lists(st.sampled_from([200, 400, 500]), min_size=4, max_size=4),
)
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_rows_in_any_order_and_any_files_give_the_same_lines(
    made: Made,
    tmp_path_factory: pytest.TempPathFactory,
    texts: list[str],
    order: list[int],
    cut: int,
    statuses: list[int],
) -> None:
    folder = tmp_path_factory.mktemp("any")
    run = made(4)
    rows = [
        {**row, "response": said(texts[number % len(texts)])}
        if status == 200
        else failed(row, "", f"number {number}", status)
        for number, (row, status) in enumerate(zip(answers(run).values(), statuses, strict=True))
    ]
    shuffled = [rows[number] for number in order]
    parts = [shuffled[:cut], shuffled[cut:]]
    files = [write_rows(folder / f"{n}.jsonl", part) for n, part in enumerate(parts)]
    with suppress(UnansweredError):
        read(run, files)
    lines = read_lines(run / "predictions.jsonl")
    assert [line["delivery"] for line in lines] == [
        "ok" if status == 200 else "api_error" for status in statuses
    ]
    assert [line["output"] for line in lines] == [
        texts[number % len(texts)] if status == 200 else ""
        for number, status in enumerate(statuses)
    ]


BODIES = (
    ('{"choices": []}', "api_error"),
    ('{"error": {"message": "the engine is gone"}}', "api_error"),
    ('{"choices": [{"message": {"content": "\\ud800"}, "finish_reason": "stop"}]}', "ok"),
    ('{"choices": [{"message": {"content": "x"}, "finish_reason": "length"}]}', "truncated"),
    ('{"choices": [{"message": {"refusal": "no"}, "finish_reason": "stop"}]}', "refused"),
    ('{"choices": [{"message": {"tool_calls": [1]}, "finish_reason": "stop"}]}', "api_error"),
    ('{"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": '
     '{"total_tokens": ' + "9" * 5000 + "}}", "ok"),
    ("{" + '"a":{' * 150 + "}" * 151, "api_error"),
)  # fmt: skip


def row_of(asked: dict[str, Any], body: str) -> str:
    response = f'{{"status_code": 200, "body": {body}}}'
    return f'{{"custom_id": "{asked["custom_id"]}", "response": {response}}}\n'


def test_answers_are_judged_as_live_ones(made: Made, tmp_path: Path) -> None:
    run = made(len(BODIES))
    asked = answers(run)
    text = "".join(map(row_of, asked.values(), (body for body, _ in BODIES)))
    (tmp_path / "r.jsonl").write_text(text)
    read(run, [tmp_path / "r.jsonl"])
    found = lines_of(run)
    assert [found[name]["delivery"] for name in asked] == [delivery for _, delivery in BODIES]
    assert not [
        line for line in found.values() if line["output"] and line["delivery"] == "api_error"
    ]


@pytest.mark.parametrize("body", ["[" * 100_000 + "]" * 100_000, '"text"'])
def test_a_row_whose_body_is_no_object_belongs_to_no_request(
    made: Made, tmp_path: Path, body: str
) -> None:
    run = made(4)
    (tmp_path / "r.jsonl").write_text(row_of(next(iter(answers(run).values())), body))
    with pytest.raises(PredictionError, match="belongs to no request"):
        read(run, [tmp_path / "r.jsonl"])
