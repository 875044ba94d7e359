"""The wire formats of Gemini, MiniCPM-o, VITA and Baichuan-Omni, as servers see them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from email import message_from_string
from email.message import Message
from typing import Any

from aiohttp import web

from tests.adapters.servers import (
    Asked,
    Fault,
    seen_audio,
    seen_image,
    seen_text,
    seen_video,
)

KEY = "test-key-0123456789"
_SEEN = {"image": seen_image, "video": seen_video, "audio": seen_audio}


@dataclass
class GoogleFiles:
    """The File API: a resumable upload in two requests, states, deletion.

    Attributes:
        states: of every file, from its upload through the polls; the last one stays.
        status: of the request that starts an upload.
        expires: when files do, as the API writes it.
        place: where to upload to; empty for an address of this server.
        outcome: what the API says of an upload at its end.
        kept: bytes and type of what was uploaded, by name.
        deleted: names.
        starts: requests that started an upload.
    """

    states: Sequence[str] = ("ACTIVE",)
    status: int = 200
    expires: str = ""
    place: str = ""
    outcome: str = "final"
    kept: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    deleted: list[str] = field(default_factory=list)
    starts: int = 0
    _polls: dict[str, int] = field(default_factory=dict)

    @property
    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/upload/v1beta/files", self._start),
            web.post("/put/{name}", self._put),
            web.get("/v1beta/files/{name}", self._get),
            web.delete("/v1beta/files/{name}", self._delete),
        ]

    async def _start(self, request: web.Request) -> web.Response:
        self.starts += 1
        assert request.headers["x-goog-api-key"] == KEY
        assert request.headers["X-Goog-Upload-Protocol"] == "resumable"
        assert json.loads(await request.read()).keys() == {"file"}
        if self.status != 200:
            return web.json_response({"error": {"message": "no"}}, status=self.status)
        name = f"f{self.starts}"
        self.kept[name] = (b"", request.headers["X-Goog-Upload-Header-Content-Type"])
        place = self.place or f"{request.url.origin()}/put/{name}"
        return web.json_response({}, headers={"X-Goog-Upload-URL": place})

    async def _put(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        assert request.headers["X-Goog-Upload-Command"] == "upload, finalize"
        self.kept[name] = (await request.read(), self.kept[name][1])
        return web.json_response(
            {"file": self._file(name, request)}, headers={"X-Goog-Upload-Status": self.outcome}
        )

    async def _get(self, request: web.Request) -> web.Response:
        return web.json_response(self._file(request.match_info["name"], request))

    async def _delete(self, request: web.Request) -> web.Response:
        self.deleted.append(request.match_info["name"])
        return web.json_response({})

    def _file(self, name: str, request: web.Request) -> dict[str, Any]:
        poll = self._polls[name] = self._polls.get(name, -1) + 1
        state = self.states[min(poll, len(self.states) - 1)]
        file: dict[str, Any] = {
            "name": f"files/{name}",
            "uri": f"{request.url.origin()}/v1beta/files/{name}",
            "mimeType": self.kept[name][1],
            "state": state,
        }
        if self.expires:
            file["expirationTime"] = self.expires
        if state == "FAILED":
            file["error"] = {"code": 3, "message": "no frames in it"}
        return file

    def read(self, uri: str) -> tuple[bytes, str]:
        """What lies at an address; it must be ready."""
        name = uri.rpartition("/")[2]
        assert name not in self.deleted
        assert self.states[min(self._polls[name], len(self.states) - 1)] == "ACTIVE"
        return self.kept[name]


class GoogleGenAI:
    """generateContent of Google's API; names may be in camel or snake case."""

    path = "/v1beta/models/{model}:generateContent"

    def __init__(self, files: GoogleFiles | None = None, answer: Any = None) -> None:
        self.files = files or GoogleFiles()
        self.answer = answer

    @property
    def routes(self) -> list[web.RouteDef]:
        return self.files.routes

    async def read(self, request: web.Request) -> Asked:
        assert request.headers["x-goog-api-key"] == KEY, "wrong key"
        assert request.match_info["model"] == "gemini-test"
        payload = _camel(json.loads(await request.read()))
        assert payload.keys() <= {
            "contents",
            "generationConfig",
            "systemInstruction",
            "safetySettings",
            "tools",
        }, payload.keys()
        seen = []
        for part in payload.get("systemInstruction", {"parts": []})["parts"]:
            seen.append(f"system: {self._part(part)}")
        calls: list[str] = []
        for content in payload["contents"]:
            assert content["role"] in ("user", "model")
            answered = [
                part["functionResponse"]["name"]
                for part in content["parts"]
                if "functionResponse" in part
            ]
            assert answered == calls, f"{answered} for {calls}"
            calls = [
                part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part
            ]
            seen += [f"{content['role']}: {self._part(part)}" for part in content["parts"]]
        return Asked(seen, payload)

    def _part(self, part: dict[str, Any]) -> str:
        if "text" in part:
            assert part.keys() == {"text"}
            return seen_text(part["text"])
        assert len(part.keys() - {"videoMetadata"}) == 1
        if "functionCall" in part:
            return f"call {json.dumps(part['functionCall'])}"
        if "functionResponse" in part:
            shown = map(self._part, part["functionResponse"].get("parts", []))
            return f"result of {part['functionResponse']['name']}: {' '.join(shown)}"
        if "inlineData" in part:
            blob = part["inlineData"]
            # Google's API takes both alphabets.
            data = base64.b64decode(blob["data"].replace("-", "+").replace("_", "/"), validate=True)
            mime = blob["mimeType"]
        else:
            data, mime = self.files.read(part["fileData"]["fileUri"])
            assert mime == part["fileData"]["mimeType"]
        kind, _, form = mime.partition("/")
        line = _SEEN[kind](data, form)
        if "videoMetadata" in part:
            assert kind == "video"
            line += f" at {part['videoMetadata']['fps']} fps"
        return line

    def reply(self, asked: Asked, text: str | None, fault: Fault) -> Any:
        if self.answer is not None:
            return self.answer
        if fault.refusal:
            return {"promptFeedback": {"blockReason": fault.refusal}}
        parts = [{"text": "let me think", "thought": True}]
        parts += [] if text is None else [{"text": text[:5]}, {"text": text[5:]}]
        return {
            "candidates": [
                {
                    "content": {"role": "model", "parts": parts},
                    "finishReason": fault.finish.upper(),
                    "index": 0,
                }
            ],
            "usageMetadata": {
                "promptTokenCount": 100,
                "candidatesTokenCount": 10,
                "thoughtsTokenCount": 5,
                "totalTokenCount": 115,
                "promptTokensDetails": [
                    {"modality": "TEXT", "tokenCount": 60},
                    {"modality": "IMAGE", "tokenCount": 40},
                ],
            },
            "modelVersion": "gemini-test-001",
        }


def _camel(value: Any) -> Any:
    """The JSON with names in camel case."""
    if isinstance(value, list):
        return [_camel(item) for item in value]
    if not isinstance(value, dict):
        return value
    words = {name: name.split("_") for name in value}
    return {
        first + "".join(word.title() for word in rest): _camel(value[name])
        for name, (first, *rest) in words.items()
    }


class MiniCPMServer:
    """JSON with media in base64."""

    path = "/v1/chat/completions"
    fields = frozenset(
        {
            "audio_base64",
            "do_sample",
            "images",
            "max_new_tokens",
            "messages",
            "temperature",
            "video_base64",
        }
    )

    def __init__(self, *, choices: bool = False) -> None:
        self.choices = choices

    async def read(self, request: web.Request) -> Asked:
        assert request.content_type == "application/json"
        payload = json.loads(await request.read())
        assert payload.keys() <= self.fields, payload.keys()
        [message] = payload["messages"]
        assert message["role"] == "user"
        seen = [seen_text(message["content"])]
        seen += [seen_image(_base64(text)) for text in payload.get("images", ())]
        if "video_base64" in payload:
            seen.append(seen_video(_base64(payload["video_base64"])))
        if "audio_base64" in payload:
            seen.append(seen_audio(_base64(payload["audio_base64"])))
        return Asked(seen, payload)

    def reply(self, asked: Asked, text: str | None, fault: Fault) -> Any:
        if self.choices:
            return {"choices": [{"message": {"role": "assistant", "content": text}}]}
        return {"id": "1", "text": text, "usage": {"inference_time_s": 0.5}}


def _base64(text: str) -> bytes:
    return base64.b64decode(text, validate=True)


class FormServer:
    """A multipart form.

    Args:
        path: of the requests.
        text: the field that holds the prompt.
        fields: the other fields.
        files: the fields of files, and the kind of each.
        reply: what the server makes of a text.
    """

    def __init__(
        self,
        path: str,
        text: str,
        fields: frozenset[str],
        files: Mapping[str, str],
        answer: str = "{}",
    ) -> None:
        self.path = path
        self.text = text
        self.fields = fields
        self.files = files
        self.answer = answer

    async def read(self, request: web.Request) -> Asked:
        assert request.content_type == "multipart/form-data"
        payload: dict[str, str] = {}
        seen: dict[str, str] = {}
        for head, data in _parts(request.headers["Content-Type"], await request.read()):
            name = head.get_param("name", header="content-disposition")
            assert isinstance(name, str)
            assert name not in payload | seen, f"{name} twice"
            file = head.get_filename()
            if name not in self.files:
                assert file is None, f"{name} is a file"
                payload[name] = data.decode()
                continue
            kind, _, form = head.get_content_type().partition("/")
            assert kind == self.files[name]
            assert file is not None
            assert file.endswith(f".{form}"), file
            seen[name] = _SEEN[kind](data, form)
        assert payload.keys() <= self.fields | {self.text}, payload.keys()
        lines = [f"{name}: {seen[name]}" for name in self.files if name in seen]
        return Asked([seen_text(payload[self.text]), *lines], payload)

    def reply(self, asked: Asked, text: str | None, fault: Fault) -> Any:
        return {"response": self.answer.format(text)}


def _parts(content_type: str, body: bytes) -> Iterator[tuple[Message, bytes]]:
    """Headers and content of a multipart body's parts."""
    boundary = message_from_string(f"Content-Type: {content_type}\n\n").get_boundary()
    assert boundary is not None
    before, *parts, end = body.split(f"--{boundary}".encode())
    assert (before, end) == (b"", b"--\r\n")
    for part in parts:
        head, _, data = part.partition(b"\r\n\r\n")
        yield message_from_string(head.decode().lstrip()), data.removesuffix(b"\r\n")


def vita(answer: str = "{}") -> FormServer:
    """VITA-1.5's server."""
    kinds = ("image", "video", "audio")
    fields = frozenset({"temperature", "model_type", "conv_mode"})
    return FormServer("/generate", "question", fields, {kind: kind for kind in kinds}, answer)


def baichuan(answer: str = "{}") -> FormServer:
    """Baichuan-Omni-1.5's server."""
    files = {f"{kind}_file": kind for kind in ("image", "video", "audio")}
    return FormServer("/chat", "text_query", frozenset({"generate_audio"}), files, answer)
