"""A key goes to its server and nowhere else."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import traceback
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from aiohttp import web

from omnidata.adapters import get_adapter
from omnidata.errors import CallError, OmnidataError, UnansweredWarning, UsageError
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from omnidata.types import Adapter
from tests.adapters.asking import ask, keyed
from tests.adapters.servers import FINE, Asked, ChatCompletions, Fault, running
from tests.adapters.shown import Shown
from tests.run.scripted import RIGHT, TASK, Scripted

CANARY = "sk-canary/0123+456789=="
PLAIN = "canary.of.the.path"
HELD = [("", ""), ("u:", "!"), ("me:", ":x"), ("user:", "")]


def echo(status: int = 200) -> Fault:
    """A server that says the key in what it says."""
    body = {"error": {"message": f"wrong key {CANARY}", "code": CANARY}}
    if status == 200:
        message = {"content": f"The key is {CANARY}"}
        body = {"choices": [{"message": message, "finish_reason": "stop"}]}  # type: ignore[dict-item]  # JSON
    return Fault(status=status, body=json.dumps(body).encode())


class Anywhere:
    """A server that takes whatever it is sent, and keeps the path."""

    path = "/{any:.*}"

    async def read(self, request: web.Request) -> Asked:
        await request.read()
        return Asked([], request.raw_path)

    def reply(self, asked: Asked, text: str | None, fault: Fault) -> object:
        raise NotImplementedError


@pytest.mark.parametrize(
    "fault", [echo(), echo(401), echo(429), echo(500), Fault(body=CANARY.encode())]
)
def test_the_canary_is_nowhere_but_in_the_header(
    shown: Shown,
    fault: Fault,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    caplog.set_level(logging.DEBUG)
    told: list[object] = []

    async def once(adapter: Adapter) -> None:
        ready = adapter.prepare(shown.request)
        told.extend([adapter, vars(adapter), adapter.settings, adapter.params, ready])
        try:
            told.extend(await adapter.generate([ready], adapter.params))
        except CallError as error:
            told.extend([error, vars(error), *traceback.format_exception(error)])
            link: BaseException | None = error
            while link is not None:
                told.extend([link, link.args])
                link = link.__cause__ or link.__context__
        finally:
            await adapter.close()

    with running(ChatCompletions(CANARY), [fault]) as server:
        asyncio.run(once(get_adapter("openai:m", None, (), base_url=f"{server.url}/v1")))
        assert server.asked[0].headers["authorization"] == f"Bearer {CANARY}"
    assert len(told) > 5
    texts = [text for item in told for text in (str(item), repr(item))]
    texts += [record.getMessage() for record in caplog.records]
    texts += [str(vars(record)) for record in caplog.records]
    texts += capfd.readouterr()
    assert not [text for text in texts if CANARY in text]


@pytest.mark.parametrize("content", [b"%s\n", b"%s\r\n", b"\xef\xbb\xbf%s\r\n"])
def test_a_key_is_in_a_file_of_any_system_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    file = tmp_path / "key"
    file.write_bytes(content % CANARY.encode())
    monkeypatch.setenv("OPENAI_API_KEY", "of-the-environment")
    with running(ChatCompletions(CANARY)) as server:
        ask(get_adapter("openai:m", None, (), base_url=f"{server.url}/v1", key_file=file))
        assert server.asked[0].headers["authorization"] == f"Bearer {CANARY}"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b" \n",
        f"{CANARY} {CANARY}".encode(),
        f"key = {CANARY}".encode(),
        f"{CANARY}\n{CANARY}\n".encode(),
        f"{CANARY}ä".encode(),
        CANARY.encode() + b"\xff",
        CANARY.encode() * 1000,
    ],
)
def test_a_file_of_something_else_is_refused_without_quoting_it(
    tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "key"
    file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        get_adapter("openai:m", None, (), key_file=file)
    assert str(file) in str(caught.value)
    assert "canary" not in "".join(traceback.format_exception(caught.value))


def test_an_absent_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        get_adapter("openai:m", None, (), key_file=tmp_path / "key")
    with pytest.raises(UsageError, match="a folder"):
        get_adapter("openai:m", None, (), key_file=tmp_path)


def test_a_broken_variable_is_refused_without_quoting_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{CANARY}\n{CANARY}")
    with pytest.raises(UsageError, match=r"\$OPENAI_API_KEY") as caught:
        get_adapter("openai:m", None, ())
    assert "canary" not in str(caught.value)


def test_a_model_that_needs_a_key_says_where_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        get_adapter("openai:m", get_task("omnigui"), [])
    adapter = get_adapter("openai:m", get_task("omnigui"), [], base_url="http://localhost:1/v1")
    assert adapter.name == "openai:m"


class OddError(Exception):
    def __str__(self) -> str:
        return f"odd {self.args[0][0]}"


OURS = OmnidataError(f"a {CANARY}", where=CANARY, expected=CANARY, remedy=CANARY)


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (ValueError(f"bad {CANARY}"), ValueError, r"bad \[key\]"),
        (OURS, OmnidataError, r"a \[key\]"),
        (OddError([CANARY]), CallError, "OddError"),
    ],
)
def test_any_error_is_cleaned_with_its_causes(
    monkeypatch: pytest.MonkeyPatch, error: Exception, kind: type[Exception], said: str
) -> None:
    async def fail(*_: object) -> None:
        raise error from KeyError(CANARY)

    adapter = keyed("openai:m", "http://127.0.0.1:9/v1", CANARY)
    monkeypatch.setattr(adapter, "send", fail)
    with pytest.raises(kind, match=said) as caught:
        ask(adapter)
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    assert CANARY not in f"{caught.value} {vars(caught.value)}"


def answer_of(text: str, key: str = CANARY) -> str:
    """What comes of a text that a server answers."""
    with running(ChatCompletions(key), [Fault(text=text)]) as server:
        return ask(keyed("openai:m", f"{server.url}/v1", key)).text


ESCAPED = [
    quote(CANARY, safe=""),
    quote(CANARY, safe="").lower(),
    quote(quote(CANARY, safe=""), safe=""),
    "".join(f"%{ord(letter):02x}" for letter in CANARY),
    "".join(rf"\u{ord(letter):04X}" for letter in CANARY),
    CANARY.replace("/", r"\/"),
    CANARY.replace("/", "&#x2F;").replace("=", "&#61;"),
]


def test_a_key_is_found_however_it_is_escaped() -> None:
    assert answer_of("; ".join(ESCAPED)) == "; ".join(["[key]"] * len(ESCAPED))


@pytest.mark.parametrize("encode", [b64encode, urlsafe_b64encode])
@pytest.mark.parametrize(("head", "tail"), HELD)
def test_a_key_is_found_in_base64(encode: Callable[[bytes], bytes], head: str, tail: str) -> None:
    text = answer_of(f"wrong: {encode(f'{head}{CANARY}{tail}'.encode()).decode()}.")
    assert "[key]" in text
    assert len(text.replace("[key]", "")) <= len("wrong: .") + 18  # its neighbours


def test_a_long_key_is_found_by_its_beginning() -> None:
    token = "eyJ0." + "Qx7-" * 500
    assert answer_of(f"the token {token} and more", token) == "the token [key] and more"


def test_a_placeholder_is_a_word_that_answers_may_hold() -> None:
    assert answer_of("the cart is EMPTY", "EMPTY") == "the cart is EMPTY"


def test_a_key_is_not_pickled() -> None:
    with pytest.raises(TypeError, match="key"):
        pickle.dumps(keyed("openai:m", "http://h/v1", CANARY))


def test_addresses_with_secrets_are_refused_without_quoting_them() -> None:
    for url in (
        f"http://me:{CANARY}@h/v1",
        f"http://{CANARY}@h/v1",
        f"https://h/v1?key={CANARY}",
        f"https://h/v1#{CANARY}",
        f"ftp://h/{CANARY}",
        f"file:///{CANARY}",
        f"h:8000/{CANARY}",
        f"http://[{CANARY}",
        f"http:///{CANARY}",
        f"http://h/ {CANARY}",
    ):
        with pytest.raises(UsageError, match="--base-url") as caught:
            keyed("openai:m", url, "")
        assert "canary" not in str(caught.value)


@pytest.mark.parametrize("spec", ["openai:m", "gemini:m", "minicpm-o-4.5", "vita-1.5"])
@pytest.mark.parametrize("secret", ["0f3a9c1b7d5e2468", "sk-gateway.canary", PLAIN])
def test_a_secret_in_the_path_of_an_address_is_sent_and_written_nowhere(
    spec: str, secret: str
) -> None:
    fault = Fault(status=500, body=f"no such path: /{secret}/v1".encode())
    with running(Anywhere(), [fault]) as server:
        adapter = keyed(spec, f"{server.url}/{secret}/v1", PLAIN)
        with pytest.raises(CallError) as caught:
            ask(adapter)
        assert [f"/{secret}/v1" in request.payload for request in server.asked] == [True]
    told = f"{adapter.settings} {caught.value} {vars(caught.value)}"
    assert "/[key]/v1" in told
    assert secret not in told


SECRETS: dict[str, object] = {
    **dict.fromkeys(("key", "Bearer", "cookie", "cookies", "pwd", "db_password"), PLAIN),
    **dict.fromkeys(("refresh_token", "hf-token", "githubToken", "id token"), PLAIN),
    "authorization": ["Bearer", PLAIN],
    "credentials": {"user": "me", "other": {"value": PLAIN}},
    "servers": [{"headers": {"x-api-key": PLAIN}}],
    "extra_body": json.dumps([{"access_token": PLAIN}]),
}
OTHERS = dict.fromkeys(("pad_token", "max_tokens", "keyboard", "key_frames", "tokenizer"), PLAIN)


def test_a_secret_is_known_by_its_name_whatever_holds_it(sample: Path, tmp_path: Path) -> None:
    model = Scripted(lambda *_: RIGHT)
    model.settings = SECRETS | OTHERS
    evaluate(TASK, TASK.load(sample, check_media=False), model, tmp_path, limit=1)
    kept = json.loads((tmp_path / "run.json").read_text())["model_settings"]
    assert {name for name, value in kept.items() if PLAIN in json.dumps(value)} == OTHERS.keys()
    assert kept.keys() == model.settings.keys()


def test_a_secret_in_the_settings_is_sent_and_written_nowhere(sample: Path, tmp_path: Path) -> None:
    task, run, file = get_task("omnigui"), tmp_path / "run", tmp_path / "key"
    file.write_text(CANARY)
    source = task.load(sample, check_media=False)
    body = {"gateway": {"api_key": PLAIN}, "pad_token": "<pad>"}
    options = {"extra_body": json.dumps(body)}

    def ask(secret: str) -> None:
        given = {"extra_body": options["extra_body"].replace(PLAIN, secret)}
        url = f"{server.url}/v1"
        adapter = get_adapter("openai:m", task, [], options=given, base_url=url, key_file=file)
        evaluate(task, source, adapter, run, model_options=given, limit=2)

    faults = [FINE, Fault(status=400, body=f"no such field: {PLAIN}".encode())]
    with running(ChatCompletions(CANARY, frozenset(body)), faults) as server:
        with pytest.warns(UnansweredWarning):
            ask(PLAIN)
        assert [asked.payload["gateway"] for asked in server.asked] == [body["gateway"]] * 2
        info = run / "run.json"
        # An earlier version wrote it there.
        info.write_text(info.read_text().replace("[key]", PLAIN))
        ask(PLAIN)
        ask("another-key-0123")
    assert len(server.asked) == 3
    told = "".join(path.read_text() for path in run.iterdir() if path.is_file())
    assert PLAIN not in told
    settings = json.loads(info.read_text())
    assert settings["model_settings"]["extra_body"] == {
        "gateway": {"api_key": "[key]"},
        "pad_token": "<pad>",
    }
