"""The batch APIs of OpenAI, Anthropic and Google, as servers see them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.adapters.servers import ChatCompletions
from tests.adapters.servers_http import KEY, GoogleFiles, GoogleGenAI
from tests.adapters.servers_tools import Messages

Row = Mapping[str, Any]
Answer = Callable[[Row], Row | None]
"""What comes of a row, as the provider writes it; None for a row that is lost."""


@dataclass
class BatchJobs:
    """Jobs of any provider.

    Attributes:
        answer: what comes of a row.
        states: of every job, one for each time that it is looked at; the last one stays.
        refuse: what the making of a job is answered with, request after request: a status, or
            "lost" for a job that is made while the connection breaks; 0 for none.
        look_faults: statuses of the first looks, request after request.
        others: how many jobs of somebody else the list has before these.
        files: the content of what was uploaded, by name.
        jobs: the rows of each job, by name.
        about: what was said when it was made.
        looks: how often each was looked at.
    """

    answer: Answer
    states: Sequence[str]
    refuse: list[int | str] = field(default_factory=list)
    look_faults: list[int] = field(default_factory=list)
    others: int = 0
    files: dict[str, bytes] = field(default_factory=dict)
    jobs: dict[str, list[Row]] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)
    looks: dict[str, int] = field(default_factory=dict)

    def make(self, request: web.Request, rows: Sequence[Row], about: Any) -> str | web.Response:
        """A new job's name, or the refusal."""
        how = self.refuse.pop(0) if self.refuse else 0
        if isinstance(how, int) and how:
            return web.json_response({"error": {"message": f"scripted {how}"}}, status=how)
        name = f"job{len(self.jobs) + 1}"
        self.jobs[name] = [*rows]
        self.about[name] = about
        if how == "lost":
            assert request.transport is not None
            request.transport.abort()
        return name

    def look(self, request: web.Request, shown: Callable[[str, str], Row]) -> web.Response:
        """How a job stands, as the provider shows it, or a fault; each look counts."""
        if self.look_faults:
            headers = {"Retry-After": "0", "Location": "/elsewhere"}
            return web.Response(status=self.look_faults.pop(0), headers=headers)
        name = request.match_info["name"]
        return web.json_response(shown(name, self.state(name)))

    def page(self, begin: int, size: int) -> tuple[list[str], bool]:
        """Names of a part of the list, the newest last; "" for a job of somebody else."""
        listed = [*[""] * self.others, *self.jobs]
        return listed[begin : begin + size], begin + size < len(listed)

    def state(self, name: str) -> str:
        look = self.looks[name] = self.looks.get(name, -1) + 1
        return self.states[min(look, len(self.states) - 1)]

    def results(self, name: str) -> list[Row]:
        """What came of a job, the last request first."""
        found = [self.answer(row) for row in reversed(self.jobs[name])]
        return [row for row in found if row is not None]


def lines(rows: Sequence[Row]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


class OpenAIBatchApi(ChatCompletions):
    """Files and batches."""

    def __init__(self, jobs: BatchJobs) -> None:
        super().__init__(KEY)
        self.jobs = jobs

    @property
    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/files", self._upload),
            web.get("/v1/files/{name}/content", self._content),
            web.post("/v1/batches", self._create),
            web.get("/v1/batches", self._list),
            web.get("/v1/batches/{name}", self._look),
        ]

    async def _upload(self, request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == f"Bearer {KEY}"
        form = await request.post()
        assert form["purpose"] == "batch"
        uploaded = form["file"]
        assert isinstance(uploaded, web.FileField)
        name = f"file-{len(self.jobs.files) + 1}"
        self.jobs.files[name] = uploaded.file.read()
        return web.json_response({"id": name, "object": "file", "purpose": "batch"})

    async def _create(self, request: web.Request) -> web.StreamResponse:
        about = await request.json()
        assert about["completion_window"] == "24h"
        rows = [json.loads(line) for line in self.jobs.files[about["input_file_id"]].splitlines()]
        assert {row["url"] for row in rows} == {about["endpoint"]}
        name = self.jobs.make(request, rows, about)
        return name if isinstance(name, web.Response) else web.json_response(self._job(name, "new"))

    async def _list(self, request: web.Request) -> web.Response:
        begin = int(request.query.get("after", "other-0").removeprefix("other-"))
        names, more = self.jobs.page(begin, int(request.query["limit"]))
        data = [
            self._job(name, "in_progress") if name else {"id": f"other-{number}"}
            for number, name in enumerate(names, begin + 1)
        ]
        return web.json_response({"object": "list", "data": data, "has_more": more})

    async def _look(self, request: web.Request) -> web.Response:
        return self.jobs.look(request, self._job)

    def _job(self, name: str, state: str) -> Row:
        about = self.jobs.about[name]
        job = {"id": name, "object": "batch", "status": state, "created_at": 1, **about}
        if state in ("completed", "expired", "cancelled"):
            job |= {"output_file_id": f"out-{name}", "error_file_id": f"err-{name}"}
            count = len(self.jobs.jobs[name])
            job["request_counts"] = {"total": count, "completed": count, "failed": 0}
        if state == "failed":
            job["errors"] = {"data": [{"code": "x", "message": "the file is no good"}]}
        return job

    async def _content(self, request: web.Request) -> web.StreamResponse:
        assert request.headers["Authorization"] == f"Bearer {KEY}"
        kind, _, name = request.match_info["name"].partition("-")
        rows = self.jobs.results(name)
        return web.Response(
            body=lines([row for row in rows if bool(row["error"]) == (kind == "err")])
        )


class AnthropicBatchApi(Messages):
    """Message Batches."""

    def __init__(self, jobs: BatchJobs) -> None:
        super().__init__()
        self.jobs = jobs
        self.headers: list[Mapping[str, str]] = []

    @property
    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/messages/batches", self._create),
            web.get("/v1/messages/batches/{name}", self._look),
            web.get("/v1/messages/batches/{name}/results", self._results),
        ]

    async def _create(self, request: web.Request) -> web.StreamResponse:
        self.headers.append({key.lower(): value for key, value in request.headers.items()})
        name = self.jobs.make(request, (await request.json())["requests"], {})
        if isinstance(name, web.Response):
            return name
        return web.json_response(self._job(name, "in_progress", request))

    async def _look(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        return web.json_response(self._job(name, self.jobs.state(name), request))

    def _job(self, name: str, state: str, request: web.Request) -> Row:
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        job: dict[str, Any] = {"id": name, "type": "message_batch", "processing_status": state}
        job |= {"request_counts": counts | {"succeeded": len(self.jobs.jobs[name])}}
        job |= {"created_at": "2026-11-25T00:00:00Z", "expires_at": "2026-11-26T00:00:00Z"}
        if state == "ended":
            job["results_url"] = "http://elsewhere.example/results"
        return job

    async def _results(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        return web.Response(body=lines(self.jobs.results(name)), content_type="application/binary")


class GoogleBatchApi(GoogleGenAI):
    """Batches of the Gemini API."""

    def __init__(self, jobs: BatchJobs) -> None:
        super().__init__(GoogleFiles())
        self.jobs = jobs

    @property
    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1beta/models/{model}:batchGenerateContent", self._create),
            web.get("/v1beta/batches", self._list),
            web.get("/v1beta/batches/{name}", self._look),
            web.get("/v1beta/files/out-{name}:download", self._download),
            *super().routes,
        ]

    async def _create(self, request: web.Request) -> web.StreamResponse:
        assert request.headers["x-goog-api-key"] == KEY
        about = (await request.json())["batch"]
        file = about["inputConfig"]["fileName"].removeprefix("files/")
        content, mime = self.files.kept[file]
        assert mime == "application/jsonl"
        rows = [json.loads(line) for line in content.splitlines()]
        name = self.jobs.make(request, rows, about)
        if isinstance(name, web.Response):
            return name
        return web.json_response(self._job(name, "JOB_STATE_PENDING"))

    async def _list(self, request: web.Request) -> web.Response:
        begin = int(request.query.get("pageToken", "0"))
        names, more = self.jobs.page(begin, int(request.query["pageSize"]))
        jobs = [
            self._job(name, "JOB_STATE_RUNNING") if name else {"name": "batches/other"}
            for name in names
        ]
        after = {"nextPageToken": str(begin + len(names))} if more else {}
        return web.json_response({"operations": jobs, **after})

    async def _look(self, request: web.Request) -> web.Response:
        return self.jobs.look(request, self._job)

    def _job(self, name: str, state: str) -> Row:
        shown = {"state": state.replace("JOB", "BATCH"), "createTime": "2026-11-25T00:00:00Z"}
        about: dict[str, Any] = {**shown, "displayName": self.jobs.about[name]["displayName"]}
        if state == "JOB_STATE_SUCCEEDED":
            about["output"] = {"responsesFile": f"files/out-{name}"}
        return {"name": f"batches/{name}", "metadata": about}

    async def _download(self, request: web.Request) -> web.Response:
        assert request.query["alt"] == "media"
        return web.Response(body=lines(self.jobs.results(request.match_info["name"])))
