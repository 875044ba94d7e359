"""The files of providers' batch APIs: a row for each request, and a row for what came of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from omnidata.adapters.http import is_whole
from omnidata.adapters.keys import is_openai


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """What came of one request of a batch.

    Attributes:
        custom_id: the name that the request had in its file.
        body: the JSON text that a server would have answered with; empty where there is none.
        status: the HTTP status; 0 where the provider tells of none.
        error: what it says in place of an answer, as a JSON value; None beside an answer.
        ended: "expired" or "cancelled" where the request was never run; else empty.
    """

    custom_id: str
    body: str = ""
    status: int = 0
    error: Any = None
    ended: Literal["", "expired", "cancelled"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchForm:
    """What the files of a provider look like.

    Attributes:
        name: of the format.
        url: the path that every row names; empty where rows name none.
        max_requests: that a file may hold; None = any number.
        max_bytes: of a file; None = any number.
        price: what a token costs beside its price in a request of its own.
        media: "file" where a request may name media that lie in a folder of the server's machine,
            "upload" where they are uploaded beside it, empty where it holds them all.
        row: writes a request: its custom id and the JSON text of its body.
        read: reads what came of a request out of a row's JSON object; None where it is no such row.
    """

    name: Literal["openai", "vllm", "gemini", "anthropic"]
    url: str = ""
    max_requests: int | None = None
    max_bytes: int | None = None
    price: float = 0.5
    media: Literal["", "file", "upload"] = ""
    row: Callable[[BatchForm, str, bytes], bytes]
    read: Callable[[Mapping[str, Any]], Returned | None]


# OpenAI's, which vLLM has as well.


def _openai_row(form: BatchForm, custom_id: str, body: bytes) -> bytes:
    head = {"custom_id": custom_id, "method": "POST", "url": form.url}
    return json.dumps(head, separators=(",", ":"))[:-1].encode() + b',"body":' + body + b"}"


def _openai_read(row: Mapping[str, Any]) -> Returned | None:
    match row:
        case {"custom_id": str(name), "error": {"code": "batch_expired", **rest}}:
            return Returned(custom_id=name, ended="expired", error=rest.get("message", ""))
        case {"custom_id": str(name), "error": {"code": "batch_cancelled", **rest}}:
            return Returned(custom_id=name, ended="cancelled", error=rest.get("message", ""))
        case {"custom_id": str(name), "response": {"status_code": said, "body": dict(body)}}:
            status = _status(said)
            if is_whole(status) and not row.get("error"):
                return Returned(custom_id=name, status=status, body=json.dumps(body))
            return Returned(custom_id=name, status=status, error=row.get("error") or body)
        case {"custom_id": str(name), "error": error, **rest} if error:
            response = rest.get("response")
            told = response.get("status_code") if isinstance(response, dict) else 0
            return Returned(custom_id=name, status=_status(told), error=error)
    return None


def _status(value: object) -> int:
    """Return an HTTP status or 0; a huge number in a row turns all its numbers into floats."""
    return int(value) if isinstance(value, int | float) and 100 <= value < 600 else 0


OPENAI: Final = BatchForm(
    name="openai",
    max_requests=50_000,
    max_bytes=200_000_000,
    row=_openai_row,
    read=_openai_read,
)
VLLM: Final = replace(
    OPENAI, name="vllm", max_requests=None, max_bytes=None, price=1.0, media="file"
)


def openai_rows(base_url: str, path: str) -> BatchForm:
    """The form of files for a server that speaks one of OpenAI's wire formats.

    Args:
        base_url: its address; any but OpenAI's own is taken for vLLM's or one like it.
        path: of requests, behind the address.
    """
    return replace(OPENAI if is_openai(base_url) else VLLM, url=f"/v1{path}")


# Gemini's.


def _gemini_row(form: BatchForm, custom_id: str, body: bytes) -> bytes:
    return json.dumps({"key": custom_id})[:-1].encode() + b',"request":' + body + b"}"


def _gemini_read(row: Mapping[str, Any]) -> Returned | None:
    match row:
        case {"key": str(name), "response": dict(body)} if not row.get("error"):
            return Returned(custom_id=name, status=200, body=json.dumps(body))
        case {"key": str(name), "error": error} | {"key": str(name), "status": error} if error:
            return Returned(custom_id=name, error=error)
    return None


GEMINI: Final = BatchForm(
    name="gemini",
    max_bytes=2_000_000_000,
    media="upload",
    row=_gemini_row,
    read=_gemini_read,
)


# Anthropic's. The file is ours: the API takes its rows as a list.


def _anthropic_row(form: BatchForm, custom_id: str, body: bytes) -> bytes:
    return json.dumps({"custom_id": custom_id})[:-1].encode() + b',"params":' + body + b"}"


def _anthropic_read(row: Mapping[str, Any]) -> Returned | None:
    match row:
        case {"custom_id": str(name), "result": {"type": "succeeded", "message": dict(body)}}:
            return Returned(custom_id=name, status=200, body=json.dumps(body))
        case {"custom_id": str(name), "result": {"type": "errored", **rest}}:
            error = rest.get("error")
            inner = error.get("error") if isinstance(error, dict) else None
            return Returned(custom_id=name, error=inner or error or "errored")
        case {"custom_id": str(name), "result": {"type": "expired"}}:
            return Returned(custom_id=name, ended="expired")
        case {"custom_id": str(name), "result": {"type": "canceled"}}:
            return Returned(custom_id=name, ended="cancelled")
    return None


ANTHROPIC: Final = BatchForm(
    name="anthropic",
    max_requests=100_000,
    max_bytes=256_000_000,
    row=_anthropic_row,
    read=_anthropic_read,
)
