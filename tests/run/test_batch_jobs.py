"""Files of a batch at their provider, at loopback servers: sent once, watched, fetched."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from omnidata.errors import CallError, RunError, UsageError
from omnidata.run.asker import Recipe
from omnidata.run.batch import write
from omnidata.run.batch_jobs import Place, fetch, status, submit
from omnidata.run.batch_results import read
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.types import LoadedDataset
from tests.adapters.servers import Server, running
from tests.adapters.servers_batch import (
    AnthropicBatchApi,
    BatchJobs,
    GoogleBatchApi,
    OpenAIBatchApi,
    Row,
)
from tests.adapters.servers_http import KEY
from tests.run.batching import OPTIONS, SPECS, set_keys
from tests.trees import read_lines

TASK = get_task("omnigui", {"modalities": "I"})
TEXT = '{"action_type": -1}'


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch)


def openai(row: Row) -> Row:
    choice = {"index": 0, "message": {"content": TEXT}, "finish_reason": "stop"}
    body = {"model": "m", "choices": [choice], "usage": {"prompt_tokens": 9}, "user": KEY}
    response = {"status_code": 200, "body": body}
    return {"custom_id": row["custom_id"], "response": response, "error": None}


def anthropic(row: Row) -> Row:
    message = {"content": [{"type": "text", "text": TEXT}], "stop_reason": "end_turn"}
    return {"custom_id": row["custom_id"], "result": {"type": "succeeded", "message": message}}


def gemini(row: Row) -> Row:
    candidate = {"content": {"parts": [{"text": TEXT}]}, "finishReason": "STOP"}
    return {"key": row["key"], "response": {"candidates": [candidate]}}


_APIS: dict[str, tuple[Callable[[BatchJobs], Any], Callable[[Row], Row], tuple[str, ...]]] = {
    "openai": (OpenAIBatchApi, openai, ("validating", "in_progress", "completed")),
    "anthropic": (AnthropicBatchApi, anthropic, ("in_progress", "ended")),
    "gemini": (GoogleBatchApi, gemini, ("JOB_STATE_RUNNING", "JOB_STATE_SUCCEEDED")),
}


@contextmanager
def serving(provider: str, **about: Any) -> Iterator[tuple[Server, BatchJobs, str]]:
    """A provider, its jobs, and its address."""
    api, answer, states = _APIS[provider]
    jobs = BatchJobs(**{"answer": answer, "states": states, **about})
    with running(api(jobs)) as server:
        yield server, jobs, server.url + ("/v1" if provider == "openai" else "")


Written = Callable[..., Path]


@pytest.fixture
def written(source: LoadedDataset, tmp_path: Path) -> Written:
    """Writes a batch for a provider; options are those of `write`."""

    def make(provider: str = "openai", task: Asking = TASK, **options: Any) -> Path:
        recipe = Recipe(SPECS[provider], OPTIONS.get(provider, {}))
        write(task, source, recipe, tmp_path / "run", **options)
        return tmp_path / "run"

    return make


@pytest.mark.parametrize("provider", _APIS)
def test_files_are_sent_watched_and_fetched(written: Written, provider: str) -> None:
    run = written(provider, limit=5, max_requests=3)
    with serving(provider) as (_, jobs, url):
        sent = submit(run, Place(url))
        assert [(known.state, bool(known.job)) for known in sent.values()] == [
            ("running", True)
        ] * 2
        assert submit(run, Place(url)) == sent
        as_written = [
            json.loads(line)
            for file in sorted((run / "batch").glob("requests-*"))
            for line in file.read_bytes().splitlines()
        ]
        assert [row for rows in jobs.jobs.values() for row in rows] == as_written
        assert {known.state for known in status(run, Place(url)).values()} == {"running"}
        shown: list[int] = []
        files, results, lost = fetch(
            run,
            Place(url),
            wait=True,
            first_wait_s=0.01,
            report=lambda files: shown.append(sum(known.fetched for known in files.values())),
        )
        assert shown[-1] == 2
        assert len(shown) == len(_APIS[provider][2]) - 1
        looked = dict(jobs.looks)
        again = fetch(run, Place(url))
        assert (again, jobs.looks) == ((files, results, lost), looked)  # nothing is asked again
    assert {known.state for known in files.values()} == {"done"}
    assert not lost
    _, found = read(run, results, lost=lost)
    assert (found.answered, found.missing) == (5, 0)
    for path in run.rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("provider", ["openai", "gemini"])
def test_a_call_that_was_cut_off_submits_no_file_twice(written: Written, provider: str) -> None:
    run = written(provider, limit=4, max_requests=2)
    with serving(provider, refuse=["lost", 500, 0], others=120) as (_, jobs, url):
        with pytest.raises(CallError):
            submit(run, Place(url))  # it was made, and the answer got lost
        with pytest.raises(CallError, match="500"):
            submit(run, Place(url))
        sent = submit(run, Place(url))
        assert len(jobs.jobs) == 2
    assert [known.state for known in sent.values()] == ["running"] * 2


def test_a_call_that_was_cut_off_asks_the_user_where_jobs_have_no_names(written: Written) -> None:
    run = written("anthropic", limit=2)
    with serving("anthropic", refuse=["lost"]) as (_, jobs, url):
        with pytest.raises(CallError):
            submit(run, Place(url))
        with pytest.raises(RunError, match="it is unknown whether"):
            submit(run, Place(url))
        assert len(jobs.jobs) == 1


def test_a_provider_that_has_no_room_is_asked_again_without_another_upload(
    written: Written,
) -> None:
    run = written(limit=2)
    with serving("openai", refuse=[429, 400, 0]) as (_, jobs, url):
        with pytest.raises(CallError, match="429"):
            submit(run, Place(url))
        with pytest.raises(CallError, match="400"):
            submit(run, Place(url))
        submit(run, Place(url))
        assert (len(jobs.jobs), len(jobs.files)) == (1, 2)


def test_a_file_that_is_refused_as_a_whole_can_be_sent_again(written: Written) -> None:
    run = written(limit=2)
    with serving("openai", states=("failed",)) as (_, jobs, url):
        submit(run, Place(url))
        files, results, lost = fetch(run, Place(url))
        [known] = files.values()
        assert (known.state, known.said, results, lost) == ("failed", "the file is no good", [], {})
        jobs.states = ("completed",)
        jobs.looks.clear()
        submit(run, Place(url))
        labels = {about["metadata"]["omnidata"] for about in jobs.about.values()}
        assert len(labels) == 2
        _, results, _ = fetch(run, Place(url))
    assert read(run, results)[1].answered == 2


@pytest.mark.parametrize(
    ("faults", "why"), [([503] * 2, ""), ([503] * 3, "503"), ([404], "404"), ([302], "302")]
)
def test_what_may_pass_is_tried_three_times_and_no_redirect_is_followed(
    written: Written, faults: list[int], why: str
) -> None:
    run = written(limit=1)
    with serving("openai", states=("in_progress",), look_faults=[*faults]) as (_, jobs, url):
        submit(run, Place(url))
        if why:
            with pytest.raises(CallError, match=why):
                status(run, Place(url))
        else:
            assert [known.state for known in status(run, Place(url)).values()] == ["running"]
        assert not jobs.look_faults


def test_results_without_an_end_are_not_read_on(written: Written) -> None:
    run = written(limit=1)
    endless = {"custom_id": "x" * (65 * 2**20), "error": None}
    with serving("openai", states=("completed",), answer=lambda row: endless) as (_, _jobs, url):
        submit(run, Place(url))
        with pytest.raises(CallError, match="a line of more than"):
            fetch(run, Place(url))
    assert not [*(run / "batch").glob("*results*")]


def test_what_an_expired_job_did_not_run_has_expired(written: Written) -> None:
    run = written(limit=3)
    names = [line["custom_id"] for line in read_lines(run / "batch" / "ids.jsonl")]

    def half(row: Row) -> Row | None:
        if row["custom_id"] == names[0]:
            return openai(row)
        error = {"code": "batch_expired", "message": "24 hours are over"}
        expired = {"custom_id": row["custom_id"], "response": None, "error": error}
        return expired if row["custom_id"] == names[1] else None

    with serving("openai", states=("expired",), answer=half) as (_, _jobs, url):
        submit(run, Place(url))
        _, results, lost = fetch(run, Place(url))
    assert len(results) == 2
    _, found = read(run, results, lost=lost)
    assert (found.answered, found.failed, found.missing) == (1, {"expired": 2}, 0)


def test_media_are_uploaded_once_and_requests_name_where(written: Written, tmp_path: Path) -> None:
    media = tmp_path / "media"
    run = written("gemini", get_task("omnigui"), limit=6, max_requests=3, media=media)
    with serving("gemini") as (server, jobs, url):
        submit(run, Place(url))
        files = server._wire.files  # type: ignore[attr-defined]
        mimes = [mime for _, mime in files.kept.values()]
        held = {data for data, mime in files.kept.values() if mime != "application/jsonl"}
        assert mimes.count("application/jsonl") == 2
        assert held == {path.read_bytes() for path in media.iterdir()}
        assert len(held) == len(mimes) - 2  # each of them once
        assert not files.deleted
        for rows in jobs.jobs.values():
            for row in rows:
                for content in row["request"]["contents"]:
                    for part in content["parts"]:
                        named = part.get("fileData")
                        assert "inlineData" not in part
                        assert not named or named["file_uri"].startswith(server.url)
    assert not [*(run / "batch").glob(".requests*")]


def test_nothing_is_uploaded_that_its_name_is_not_the_hash_of(
    written: Written, tmp_path: Path
) -> None:
    """The folder of media stands in a run folder, which may be somebody else's."""
    media = tmp_path / "media"
    run = written("gemini", get_task("omnigui"), limit=1, media=media)
    for path in media.iterdir():
        path.write_bytes(b"a secret of the user's")
    with serving("gemini") as (server, jobs, url):
        with pytest.raises(RunError, match="its name is the SHA-256 of"):
            submit(run, Place(url))
        assert not server._wire.files.kept  # type: ignore[attr-defined]
        assert not jobs.jobs


def test_what_vllm_reads_itself_is_submitted_to_nobody(
    source: LoadedDataset, tmp_path: Path
) -> None:
    write(TASK, source, Recipe("openai:m", {}, "http://127.0.0.1:9/v1"), tmp_path / "run", limit=1)
    with pytest.raises(UsageError, match="vllm run-batch"):
        submit(tmp_path / "run")


def test_a_file_that_was_changed_is_not_sent(written: Written) -> None:
    run = written(limit=1)
    with (run / "batch" / "requests-00001.jsonl").open("ab") as file:
        file.write(b"\n")
    with (
        serving("openai") as (_, jobs, url),
        pytest.raises(RunError, match="has changed since it was written"),
    ):
        submit(run, Place(url))
    assert not jobs.files


def test_no_round_is_begun_while_files_are_at_the_provider(written: Written) -> None:
    run = written(limit=4, max_requests=2)
    with serving("openai", refuse=[0, 429, 0], states=("completed",)) as (_, jobs, url):
        with pytest.raises(CallError, match="429"):
            submit(run, Place(url))  # one file is there, the other is not
        with pytest.raises(RunError, match="would be asked twice"):
            written(limit=4, only_missing=True)
        read(run, fetch(run, Place(url))[1])
        written(limit=4, only_missing=True)
        sent = submit(run, Place(url))
        assert [len(rows) for rows in jobs.jobs.values()] == [2, 2]
        assert "requests-00003.jsonl" in sent  # what the second file asked is in the third
        _, found = read(run, fetch(run, Place(url))[1])
    assert (found.answered, found.kept, found.missing) == (2, 2, 0)


def test_a_key_goes_to_no_address_that_a_run_folder_alone_names(
    written: Written, tmp_path: Path
) -> None:
    run = written(limit=1)
    path = run / "batch" / "manifest.json"
    mine = json.loads(path.read_text())
    with serving("openai") as (server, jobs, url):
        for said, option in (({"base_url": url}, "--base-url"), ({"models": "x.toml"}, "--models")):
            path.write_text(json.dumps({**mine, **said}))
            for verb in (submit, status, fetch):
                with pytest.raises(UsageError, match=r"no address|no run folder") as error:
                    verb(run)
                assert error.value.remedy.startswith(option)
        (tmp_path / "results.jsonl").write_text("")
        with pytest.raises(UsageError, match="no run folder") as error:
            read(run, [tmp_path / "results.jsonl"])
        assert error.value.remedy == "--models x.toml"
        assert not jobs.files
        assert not server.count


def test_a_file_that_never_left_is_submitted_once_the_provider_can_be_reached(
    written: Written,
) -> None:
    run = written("anthropic", limit=2)
    with pytest.raises(CallError, match="Cannot connect"):
        submit(run, Place("http://127.0.0.1:9"))
    with serving("anthropic") as (_, jobs, url):
        submit(run, Place(url))
        assert len(jobs.jobs) == 1


def test_results_that_end_inside_a_row_are_no_results_and_deleted_ones_come_again(
    written: Written,
) -> None:
    run, cut = written(limit=2), [9, 9, 9]

    class Cutting(OpenAIBatchApi):
        async def _content(self, request: web.Request) -> web.StreamResponse:
            plain = await super()._content(request)
            assert isinstance(plain, web.Response)
            whole = plain.body
            assert isinstance(whole, bytes)
            # The connection ends the answer: nothing else says how long it is.
            response = web.StreamResponse(headers={"Connection": "close"})
            response.content_length = None
            await response.prepare(request)
            await response.write(whole[: -cut.pop()] if cut and whole else whole)
            return response

    with running(Cutting(BatchJobs(answer=openai, states=("completed",)))) as server:
        place = Place(f"{server.url}/v1")
        submit(run, place)
        with pytest.raises(CallError, match="end inside a row"):
            fetch(run, place)
        _, results, _ = fetch(run, place)
        as_sent = results[0].read_bytes()
        results[0].unlink()
        assert fetch(run, place)[1] == results
        assert results[0].read_bytes() == as_sent
    assert read(run, results)[1].answered == 2
