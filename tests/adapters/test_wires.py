"""A wire format is one file: beside the others it is a model, without another edit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest

from omnidata.adapters import wires
from tests.cli.running import as_json, here
from tests.trees import read_lines

PROVIDER = '''
"""A provider that takes a list of items and returns a reply."""

from __future__ import annotations

from typing import Literal

import msgspec

from omnidata.adapters.answers import accounting, answer_of, delivery_of
from omnidata.adapters.api import Options
from omnidata.adapters.json_api import JsonModel, Written, data_url, raw_text
from omnidata.types import Completion


class ItemOptions(Options, frozen=True, kw_only=True):
    tone: Literal["plain", "terse"] = "plain"


class _Reply(msgspec.Struct):
    reply: str
    ended: str
    tokens: dict[str, int] = {}
    by: str | None = None


class Items(JsonModel):
    wire = "item-list"
    spec_row = {
        "base_url_env": "ITEMS_URL",
        "key_env": "ITEMS_KEY",
        "accepts": ["image"],
        "temperature": None,
    }
    options = ItemOptions
    path = "/items"
    sends = frozenset({"image"})
    controls = frozenset({"max_new_tokens"})
    ours = frozenset({"items", "most"})

    def write(self, messages):
        parts = [part for message in messages for part in message.parts]
        return Written.of(
            {"items": [data_url(part) if part.data else raw_text(part.text) for part in parts]}
        )

    def request_settings(self, params, tools):
        return {"name": self.preset.model, "tone": self.own.tone, "most": params.max_new_tokens}

    def read(self, body, params, where, *, tools):
        reply = answer_of(body, _Reply, "reply", where)
        return Completion(
            text=reply.reply,
            delivery=delivery_of(reply.ended, where=where),
            **accounting(reply.tokens, reply.by),
        )
'''


class _Site(BaseHTTPRequestHandler):
    """Is busy at first; replies with the number of pictures."""

    asked: ClassVar[list[tuple[str, str, dict[str, Any]]]] = []

    def log_message(self, *_: Any) -> None:
        """Silent."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.asked.append((self.path, self.headers["Authorization"], body))
        pictures = [item for item in body["items"] if item.startswith("data:image/")]
        reply = {"reply": f"{len(pictures)} pictures", "ended": "stop", "by": "items-2"}
        answer = json.dumps(reply | {"tokens": {"prompt_tokens": 90}}).encode()
        self.send_response(503 if len(self.asked) == 1 else 200)
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


@pytest.fixture
def provider(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The file in a folder of its own, which counts as part of the package."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "item_list.py").write_text(PROVIDER, encoding="utf-8")
    monkeypatch.setattr(wires, "__path__", [*wires.__path__, str(folder)])
    monkeypatch.setenv("ITEMS_KEY", "sk-0123456789")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("ITEMS_URL", raising=False)
    yield
    wires.wire.cache_clear()


@pytest.mark.usefixtures("provider")
def test_a_file_is_a_provider(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = ["evaluate", "omnigui", sample, "--model", "item-list:items-1", "-T", "modalities=I"]
    assert "ITEMS_URL" in here(*ask, "--out", tmp_path / "run", code=2).stderr
    run = tmp_path / "run"
    with HTTPServer(("127.0.0.1", 0), _Site) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("ITEMS_URL", f"http://127.0.0.1:{server.server_port}")
        here(*ask, "-M", "tone=terse", "--limit", "2", "--out", run)
        server.shutdown()
    lines = read_lines(run / "predictions.jsonl")
    assert [line["delivery"] for line in lines] == ["ok", "ok"]
    assert all(int(line["output"].split()[0]) == len(line["receipt"]["parts"]) for line in lines)
    assert all(line["usage"] == {"prompt_tokens": 90} for line in lines)
    assert all(line["receipt"]["model"] == "items-2" for line in lines)
    path, key, body = _Site.asked[-1]
    assert (path, key) == ("/items", "Bearer sk-0123456789")
    assert (body["name"], body["tone"], body["most"]) == ("items-1", "terse", 4096)
    text = (run / "run.json").read_text(encoding="utf-8")
    assert '"wire": "item-list-1"' in text and '"tone": "terse"' in text
    assert "sk-0123456789" not in text


@pytest.mark.usefixtures("provider")
def test_lists_and_errors_read_its_declaration(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "item-list:MODEL" in as_json(here("info", "--json"))["models"]
    ask = ["evaluate", "omnigui", sample, "--out", tmp_path / "run", "-T", "modalities=I"]
    of_spec = [*ask, "--base-url", "http://127.0.0.1:9", "--model", "item-list:m"]
    assert "tone" in here(*of_spec, "-M", "tune=x", code=2).stderr
    assert "plain, terse" in here(*of_spec, "-M", "tone=x", code=2).stderr
    assert "cannot send seed" in here(*of_spec, "-M", "seed=1", code=2).stderr
    assert "cannot send audio" in here(*of_spec, "-M", "accepts=audio", code=2).stderr
    assert "no batch API takes" in here("batch", "write", *of_spec[1:], code=2).stderr
    monkeypatch.delenv("ITEMS_KEY")
    assert "export ITEMS_KEY" in here(*of_spec, code=2).stderr
    models = tmp_path / "models.toml"
    for row, said in {
        'wire = "item-list"\ntone = "loud"': "[m] tone",
        'wire = "openai"\ntone = "plain"': 'only wire = "item-list" has that option',
        'wire = "no-such"': "item-list",
    }.items():
        models.write_text(f'[m]\nmodel = "x"\n{row}\n', encoding="utf-8")
        assert said in here(*ask, "--model", "m", "--models", models, code=2).stderr
