"""Models that other distributions bring are found, and named where they are broken."""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import b64decode
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import pytest

from omnidata.adapters import get_adapter
from omnidata.errors import OmnidataError, UsageError
from omnidata.tasks import get_task
from omnidata.types import Adapter
from tests import plugs
from tests.adapters.shown import Shown
from tests.cli.running import here
from tests.trees import read_lines

DOCUMENT = Path(__file__).resolve().parents[2] / "docs/add_model.md"

PLUGIN = '''
"""A model of another distribution: it answers with what it was called."""

from omnidata.adapters import Model
from omnidata.errors import UsageError
from omnidata.types import Completion


class Echo(Model):
    """Says its model's name and the last text that it was shown.

    Args:
        model: what stands after the colon of the SPEC.
        prefix: said first.
    """

    accepts = frozenset({"image"})
    concurrency = 4

    def __init__(self, model, prefix):
        self.name = f"echo:{model}"
        self.settings = {"prefix": prefix}
        self._model = model

    async def generate(self, batch, params):
        [asked] = batch
        text = asked.request.conversation[-1].parts[-1].text
        return [Completion(text=f"{self.settings['prefix']}{self._model}: {text}")]


def make(model, options):
    """The model of a SPEC; options are as given with -M."""
    unknown = options.keys() - {"prefix"}
    if unknown:
        raise UsageError("echo has the option prefix alone", where=f"-M {min(unknown)}=...")
    return Echo(model, options.get("prefix", ""))


def broken(model, options):
    raise RuntimeError("out of order")


def nothing(model, options):
    return object()
'''


def get(spec: str, **options: str) -> Adapter:
    return get_adapter(spec, get_task("omnigui"), [], options=options)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def install(
    folder: Path, name: str = "omnidata-echo", points: str = "echo = echo_plugin:make"
) -> None:
    """A distribution as an installer leaves it."""
    write(folder / "echo_plugin.py", PLUGIN)
    plugs.install(folder, name, "omnidata.adapters", points)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return plugs.on_path(tmp_path / "site", "echo_plugin", monkeypatch)


def test_a_file_of_another_distribution_is_a_model(site: Path, shown: Shown) -> None:
    install(site)
    adapter = get("echo:loud", prefix="> ")
    assert (adapter.name, adapter.concurrency) == ("echo:loud", 4)
    [answer] = asyncio.run(adapter.generate([adapter.prepare(shown.request)], adapter.params))
    assert answer.text == '> loud: Goal: tap "分享"\nStep: 2'
    assert get("echo").name == "echo:"
    with pytest.raises(UsageError, match="echo has the option prefix alone"):
        get("echo:x", suffix="!")
    with pytest.raises(UsageError, match="echo") as caught:
        get("ecco:x")
    assert "echo" in caught.value.expected


@pytest.mark.parametrize(
    ("point", "said"),
    [
        ("echo_plugin:broken", "RuntimeError: out of order"),
        ("echo_plugin:absent", "AttributeError"),
        ("no_such_module:make", "ModuleNotFoundError"),
    ],
)
def test_a_broken_plugin_is_named_with_its_distribution(site: Path, point: str, said: str) -> None:
    install(site, points=f"echo = {point}")
    with pytest.raises(OmnidataError, match=r"omnidata-echo 1\.2") as caught:
        get("echo:x")
    assert said in str(caught.value)


def test_all_that_a_plugin_lacks_is_named(site: Path) -> None:
    install(site, points="echo = echo_plugin:nothing")
    with pytest.raises(UsageError, match="is not a model: it lacks ") as caught:
        get("echo:x")
    lacks = caught.value.what.rpartition("lacks ")[2].split(", ")
    assert sorted(lacks) == sorted(name for name in vars(Adapter) if not name.startswith("_"))


def test_two_distributions_with_one_name_are_named(site: Path) -> None:
    install(site)
    install(site, name="other-echo")
    with pytest.raises(UsageError, match=r"omnidata-echo 1\.2.*other-echo 1\.2"):
        get("echo:x")


class _Site(BaseHTTPRequestHandler):
    """Is busy at first, then answers with what it was shown, and blocks the third request."""

    asked: ClassVar[list[dict[str, Any]]] = []

    def log_message(self, *_: Any) -> None:
        """Nobody reads it."""

    def do_POST(self) -> None:
        self.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        shown = [
            b64decode(item["picture"]) for item in self.asked[-1]["items"] if "picture" in item
        ]
        said = {"text": f"{len(shown)} pictures", "read": 90, "written": 3}
        body = json.dumps(said | {"blocked": len(self.asked) == 3}).encode()
        self.send_response(503 if len(self.asked) == 1 else 200)
        self.send_header("Retry-After", "0")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def documented(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`server:` is the class of the document."""
    if not DOCUMENT.is_file():
        pytest.skip("needs a checkout: the sdist has no docs")
    block = DOCUMENT.read_text(encoding="utf-8").split("```python\n")[1].split("```")[0]
    write(site / "documented.py", block)
    monkeypatch.delitem(sys.modules, "documented", raising=False)
    plugs.install(site, "documented", "omnidata.adapters", "server = documented:Server")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.mark.usefixtures("documented")
def test_the_documents_class_asks_a_server(sample: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    with HTTPServer(("127.0.0.1", 0), _Site) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        address = f"url=http://127.0.0.1:{server.server_port}"
        ask = ["evaluate", "omnigui", str(sample), "--model", "server:mine", "-M", address]
        told = here(*ask, "-T", "modalities=I", "--limit", "3", "--out", run, code=1).stderr
        server.shutdown()
    assert "1 step got no full answer and counts as wrong; the same command asks again ab" in told
    lines = read_lines(run / "predictions.jsonl")
    assert sorted(line["delivery"] for line in lines) == ["ok", "ok", "refused"]
    assert [line["attempts"] for line in lines].count(2) == 1
    assert all(line["receipt"]["parts"][-1]["role"] == "screenshot" for line in lines)
    assert all(line["usage"] == {"prompt_tokens": 90, "completion_tokens": 3} for line in lines)
    assert all(int(line["output"].split()[0]) == len(line["receipt"]["parts"]) for line in lines)
    assert "Goal" in json.dumps(_Site.asked)


@pytest.mark.usefixtures("documented")
def test_the_documents_class_refuses_clips_before_any_request(sample: Path, tmp_path: Path) -> None:
    ask = ["evaluate", "omnigui", str(sample), "--model", "server:mine", "-M", "url=http://[::1]:9"]
    told = here(*ask, "--out", tmp_path / "run", code=2).stderr
    assert "and the model accepts image" in told
    assert "-T modalities=I" in told
    assert not (tmp_path / "run").exists()
