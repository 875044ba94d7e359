"""A provider's batch API in small: rows go to a server one by one, and what it says into rows."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from omnidata import errors
from omnidata.run.asker import Recipe
from omnidata.tasks.asking import Asking
from omnidata.types import LoadedDataset
from tests.adapters.servers import ChatCompletions, Fault, Script, Server, running
from tests.adapters.servers_http import KEY, GoogleGenAI
from tests.adapters.servers_tools import Messages, Responses
from tests.cli.running import here

SPECS = {
    "openai": "openai:m",
    "openai-responses": "openai-responses:m",
    "anthropic": "anthropic:m",
    "gemini": "gemini:gemini-test",
}
OPTIONS: Mapping[str, Mapping[str, str]] = {
    "openai-responses": {"accepts": "image"},
    "anthropic": {"accepts": "image"},
}
_WIRES: Mapping[str, Callable[[], Any]] = {
    "openai": lambda: ChatCompletions(KEY),
    "openai-responses": Responses,
    "anthropic": Messages,
    "gemini": GoogleGenAI,
}


def set_keys(patch: pytest.MonkeyPatch) -> None:
    """Keys of all providers in the environment."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        patch.setenv(name, KEY)
    patch.delenv("GOOGLE_API_KEY", raising=False)


def prices_file(folder: Path) -> Path:
    """A file of prices: 0.01 EUR for each input token."""
    (folder / "prices.toml").write_text(
        'date = 2026-11-01\ncurrency = "EUR"\n[models."openai:m"]\ninput = 10_000\noutput = 0\n'
    )
    return folder / "prices.toml"


@contextmanager
def serving(wire: str, script: Script) -> Iterator[tuple[Server, Recipe]]:
    """A server of a wire format, and how to make its model."""
    with running(_WIRES[wire](), script) as server:
        path = "/v1" if wire.startswith("openai") else ""
        yield server, Recipe(SPECS[wire], OPTIONS.get(wire, {}), server.url + path)


def saying(texts: Sequence[str]) -> Callable[[int], Fault]:
    """Answers by the number of the request."""
    return lambda number: Fault(text=texts[number % len(texts)])


def rows_of(run: Path) -> list[dict[str, Any]]:
    """All requests of a run's batch, in order."""
    files = sorted((run / "batch").glob("requests-*.jsonl"))
    return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]


def body_of(row: Mapping[str, Any]) -> Any:
    """The request itself."""
    return row.get("body") or row.get("request") or row["params"]


def answered(row: Mapping[str, Any], server: Server) -> dict[str, Any]:
    """What comes of a row, as its provider writes it."""
    name = row.get("custom_id") or row["key"]
    path = row.get("url", "/v1/messages")
    if "request" in row:
        path = "/v1beta/models/gemini-test:generateContent"
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEY}"}
    dated = "2023-06-01" if "temperature" in body_of(row) else "2026-01-01"
    headers |= {"x-goog-api-key": KEY, "anthropic-version": dated}
    data = json.dumps(body_of(row)).encode()
    try:
        with urllib.request.urlopen(
            urllib.request.Request(server.url + path, data, headers)
        ) as response:
            status, said = response.status, json.loads(response.read())
    except urllib.error.HTTPError as error:
        status, said = error.code, json.loads(error.read())
    if "body" in row:
        answer = {"status_code": status, "request_id": "r", "body": said}
        return {"id": f"b-{name}", "custom_id": name, "response": answer, "error": None}
    if "request" in row:
        return {"key": name, **({"response": said} if status == 200 else said)}
    if status == 200:
        return {"custom_id": name, "result": {"type": "succeeded", "message": said}}
    failure = {"type": "error", "error": {"type": "api_error", **said["error"]}}
    return {"custom_id": name, "result": {"type": "errored", "error": failure}}


def write_rows(path: Path, rows: Sequence[Mapping[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


# The verbs, called in this process: what they print as JSON, or the error that they end with.


def called(verb: str, *words: str | Path) -> Any:
    """What a verb of `omnidata batch` prints.

    Raises:
        OmnidataError: it ends with one.
    """
    done = here("batch", verb, *words, "--json", code=None)
    if done.stdout:
        return json.loads(done.stdout)
    found = re.search(r"^(\w+Error): ((?:.|\n)*)", done.stderr, re.MULTILINE)
    assert found, done.stderr
    raise getattr(errors, found[1])(found[2])


def write(task: Asking, source: LoadedDataset, recipe: Recipe, run: Path, **how: Any) -> Any:
    """`omnidata batch write`; options as the verb has them."""
    words = [task.name, str(source.root), "--model", recipe.spec, "--out", str(run)]
    for flag, values in (("-T", task.options), ("-M", recipe.options)):
        words += [word for pair in values.items() for word in (flag, "=".join(map(str, pair)))]
    how["base_url"] = recipe.base_url
    for name, value in how.items():
        if value is not None:
            flag = f"--{name.replace('_', '-')}"
            words += [flag] if value is True else [flag, str(value)]
    found = called("write", *words)
    return SimpleNamespace(
        **{**found, "files": [SimpleNamespace(**file) for file in found["files"]]}
    )


def read(run: Path, files: Sequence[Path], prices: Path | None = None) -> Any:
    """`omnidata batch read`: its counts, and the table as `results`."""
    more: list[str | Path] = ["--prices", prices] if prices else []
    found = called("read", run, *files, *more)
    counts = found.pop("read")
    plain = {name: counts.pop(name) for name in ("rows", "answered", "repeated", "kept", "missing")}
    return SimpleNamespace(**plain, failed=counts, results=found)
