"""Chat Completions: what is sent is what the step holds."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from omnidata.types import GenerationParams, Message, Part, Request
from tests.adapters.asking import ask, keyed, model
from tests.adapters.servers import ChatCompletions, Wire, running
from tests.adapters.servers_tools import KEY, Messages, Responses
from tests.adapters.shown import Shown


def test_the_server_sees_every_part_whole_and_in_order(shown: Shown) -> None:
    with running(ChatCompletions()) as server:
        answer = ask(model(server, video="native"), shown.request)
        assert server.asked[0].seen == shown.seen()
    assert answer.delivery == "ok"
    assert answer.text == "\n".join(shown.seen())
    assert answer.latency_s > 0


def test_audio_url_is_for_servers_that_want_it(shown: Shown) -> None:
    with running(ChatCompletions()) as server:
        ask(model(server, video="native", audio_part="audio_url"), shown.request)
        kinds = [part["type"] for part in server.asked[0].payload["messages"][1]["content"]]
        assert server.asked[0].seen == shown.seen()
    assert kinds == ["text", "image_url", "video_url", "audio_url", "image_url", "text"]


def test_settings_and_extra_body_are_sent_and_nothing_else(shown: Shown) -> None:
    extra = '{"top_k": 1, "mm_processor_kwargs": {"fps": 1}}'
    with running(ChatCompletions(extra=frozenset({"top_k", "mm_processor_kwargs"}))) as server:
        adapter = model(server, extra_body=extra)
        ask(adapter, shown.request, GenerationParams(0.5, 99, 7))
        sent = dict(server.asked[0].payload)
    del sent["messages"]
    assert sent == {
        "model": "m",
        "temperature": 0.5,
        "max_tokens": 99,
        "seed": 7,
        **json.loads(extra),
    }


def test_what_is_left_to_the_server_is_not_sent(shown: Shown) -> None:
    with running(ChatCompletions()) as server:
        ask(model(server), shown.request, GenerationParams(None, None, None))
        assert server.asked[0].payload.keys() == {"model", "messages"}


@pytest.mark.parametrize(
    ("spec", "wire", "path"),
    [
        ("openai:m", lambda: ChatCompletions(KEY), "/v1"),
        ("openai-responses:m", Responses, "/v1"),
        ("anthropic:m", Messages, ""),
    ],
)
def test_headers_of_the_environment_are_sent_without_the_sdk(
    spec: str, wire: Callable[[], Wire], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, spec.partition("-")[0].partition(":")[0], None)
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1\r")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    for name in ("OPENAI_CUSTOM_HEADERS", "ANTHROPIC_CUSTOM_HEADERS"):
        monkeypatch.setenv(name, "user-agent: mine\nX-Team: a:b\nno header")
    with running(wire()) as server:
        ask(keyed(spec, server.url + path, KEY))
        sent = server.asked[0].headers
    assert (sent["user-agent"], sent["x-team"]) == ("mine", "a:b")
    assert sent["accept"] == "application/json"
    own = ("org-1", "proj-1") if spec.startswith("openai") else (None, None)
    assert (sent.get("openai-organization"), sent.get("openai-project")) == own


def test_where_an_answer_ends_and_how_it_begins_are_told_to_servers_that_can(shown: Shown) -> None:
    begun = (*shown.request.conversation, Message("assistant", (Part("text", "Thought: "),)))
    own = frozenset({"stop", "skip_special_tokens", "continue_final_message"})
    with running(ChatCompletions(extra=own | {"add_generation_prompt"})) as server:
        asked = Request(shown.request.sample_id, begun)
        ask(model(server), asked, GenerationParams(stop=("\n\n", "</s>"), special_tokens=True))
        sent = server.asked[0].payload
    assert sent["messages"][-1]["role"] == "assistant"
    assert sent["messages"][-1]["content"] == [{"type": "text", "text": "Thought: "}]
    assert sent["continue_final_message"] is True and sent["add_generation_prompt"] is False
    assert sent["stop"] == ["\n\n", "</s>"] and sent["skip_special_tokens"] is False


def test_the_token_limit_has_the_name_that_the_server_knows() -> None:
    def limit(url: str, **options: str) -> str:
        return str(keyed("openai:m", url, "any-key-0123", options).settings["token_limit"])

    assert limit("https://api.openai.com/v1") == "max_completion_tokens"
    assert limit("https://eu.api.openai.com/v1") == "max_completion_tokens"
    assert limit("http://localhost:8000/v1") == "max_tokens"
    assert limit("http://api.openai.com.example/v1") == "max_tokens"
    assert limit("http://h/v1", token_limit="max_completion_tokens") == "max_completion_tokens"


def test_equal_requests_have_equal_keys_and_others_do_not(shown: Shown, tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/v1"

    def key(request: Request, spec: str = "openai:m", **options: str) -> str:
        return keyed(spec, url, "", options).prepare(request).key

    same = key(shown.request)
    copy = Shown(tmp_path / "copy").write()
    assert key(Request("other", copy.conversation), max_images="10", degrade="true") == same
    others: list[Mapping[str, str]] = [
        {"frames": "3"},
        {"video": "native"},
        {"audio_part": "audio_url"},
        {"extra_body": '{"top_k": 1}'},
    ]
    keys = [key(shown.request, **options) for options in others]
    keys.append(key(shown.request, spec="openai:n"))
    keys.append(key(Shown(tmp_path / "other").write(seed=1).request))
    assert len({same, *keys}) == 1 + len(keys)


def test_what_the_model_does_not_take_is_said_before_anything_is_sent(shown: Shown) -> None:
    adapter = keyed("openai:m", "http://127.0.0.1:9", "", {"accepts": "image"})
    said = adapter.unsupported_reason(shown.conversation)
    assert "audio" in said
    assert "video" in said
    options = {"accepts": "image", "degrade": "true"}
    adapter = keyed("openai:m", "http://127.0.0.1:9", "", options)
    assert adapter.unsupported_reason(shown.conversation) == ""


def test_the_release_asks_as_the_released_adapter_did(shown: Shown) -> None:
    with running(ChatCompletions()) as server:
        ask(keyed("qwen3-omni", f"{server.url}/v1", "", {"layout": "release"}), shown.request)
        [system, user] = server.asked[0].payload["messages"]
    kinds = [part["type"] for part in user["content"]]
    block = "[System Instructions]\nYou are an agent.\n[End System Instructions]\n"
    assert system["content"] == [{"type": "text", "text": "You are an agent."}]
    assert kinds == ["text", *["image_url"] * 5, "audio_url", "image_url", "text"]
    assert user["content"][0]["text"] == block
    text: Any = user["content"][-1]["text"]
    assert text == '[User]: [History Screenshot]: Goal: tap "分享"\nStep: 2'
