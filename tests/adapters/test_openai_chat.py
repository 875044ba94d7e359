"""Chat Completions: what is sent is what the step holds, and every kind of answer is told apart."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.adapters import presets
from omnidata.adapters.keys import Key
from omnidata.adapters.openai_chat import OpenAIChat
from omnidata.errors import CallError, UsageError
from omnidata.types import Completion, GenerationParams, Message, Part, Prepared, Request
from tests.adapters.servers import ChatCompletions, Fault, Server, running, seen_pixels
from tests.adapters.shown import FRAMES, Shown


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(tmp_path / "media").write()


def model(server: Server, key: str = "", **options: str) -> OpenAIChat:
    spec = presets.find("openai:m", options, base_url=f"{server.url}/v1")
    assert spec is not None
    return OpenAIChat(spec, Key(key))


def ask(
    adapter: OpenAIChat, request: Request | Prepared, params: GenerationParams | None = None
) -> Completion:
    async def once() -> Completion:
        try:
            ready = request if isinstance(request, Prepared) else adapter.prepare(request)
            [answer] = await adapter.generate([ready], params or adapter.params)
            return answer
        finally:
            await adapter.close()

    return asyncio.run(once())


def fail(fault: Fault, request: Request, key: str = "") -> CallError:
    with running(ChatCompletions(key or "EMPTY"), [fault]) as server:
        with pytest.raises(CallError) as caught:
            ask(model(server, key), request)
        assert server.count == 1  # the SDK does not try again
    return caught.value


def test_the_server_sees_every_part_whole_and_in_order(shown: Shown) -> None:
    with running(ChatCompletions()) as server:
        answer = ask(model(server, video="native"), shown.request)
        assert server.asked[0].seen == shown.seen()
    assert answer.delivery == "ok"
    assert answer.text == "\n".join(shown.seen())
    assert answer.latency_s > 0


@pytest.mark.parametrize("name", ["screenshot.png", "video.mp4", "audio.wav"])
def test_another_medium_gives_another_answer(shown: Shown, tmp_path: Path, name: str) -> None:
    other = Shown(tmp_path / "other").write(seed=1)
    before = shown.seen()
    (shown.folder / name).write_bytes(other.read(name))
    with running(ChatCompletions()) as server:
        answer = ask(model(server, video="native"), shown.request)
    changed = [
        number
        for number, line in enumerate(answer.text.split("\nuser: "))
        if line.removeprefix("system: ") not in "\n".join(before)
    ]
    assert changed == [{"video.mp4": 3, "audio.wav": 4, "screenshot.png": 5}[name]]


def test_swapped_pictures_give_another_answer(shown: Shown) -> None:
    before = shown.seen()
    now, past = (shown.folder / f"{name}.png" for name in ("screenshot", "history_screenshot"))
    now.rename(shown.folder / "x")
    past.rename(now)
    (shown.folder / "x").rename(past)
    with running(ChatCompletions()) as server:
        answer = ask(model(server, video="native"), shown.request)
    lines = answer.text.split("\n")
    assert (lines[2], lines[5]) == (before[5], before[2])


def test_a_clip_goes_as_frames_with_their_times(shown: Shown) -> None:
    import av
    import numpy as np

    with av.open(str(shown.folder / "video.mp4"), "r") as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    chosen = [0, 4, 7, 11] if FRAMES == 12 else []
    with running(ChatCompletions()) as server:
        answer = ask(model(server), shown.request)
        seen = server.asked[0].seen
    pictures = [line for line in seen[2:-3] if "image" in line][1:]
    expected = [seen_pixels(np.asarray(frames[number])) for number in range(FRAMES)]
    indices = [expected.index(line.removeprefix("user: ")) for line in pictures]
    assert len(indices) == 4
    assert (indices[0], indices[-1]) == (chosen[0], chosen[-1])
    [clip] = [part for part in answer.receipt["parts"] if part["kind"] == "video"]
    assert clip["frames"] == 4
    assert clip["times_s"] == [round(number / 6, 3) for number in indices]


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


def test_the_token_limit_has_the_name_that_the_server_knows() -> None:
    def limit(url: str, **options: str) -> str:
        preset = presets.find("openai:m", options, base_url=url)
        assert preset is not None
        return preset.token_limit

    assert limit("https://api.openai.com/v1") == "max_completion_tokens"
    assert limit("https://eu.api.openai.com/v1") == "max_completion_tokens"
    assert limit("http://localhost:8000/v1") == "max_tokens"
    assert limit("http://api.openai.com.example/v1") == "max_tokens"
    assert limit("http://h/v1", token_limit="max_completion_tokens") == "max_completion_tokens"


def test_tokens_are_told_by_modality(shown: Shown) -> None:
    with running(ChatCompletions()) as server:
        answer = ask(model(server), shown.request)
    assert answer.receipt["tokens"] == {"text": 60, "image": 40}
    assert answer.usage["completion_tokens"] == 10


@pytest.mark.parametrize(
    ("fault", "delivery", "text", "error"),
    [
        (Fault(finish="length", text='{"a": '), "truncated", '{"a": ', "cut at 4096 tokens"),
        (Fault(finish="content_filter", text="Tap"), "refused", "Tap", "content filter"),
        (Fault(refusal="I will not."), "refused", "", "I will not."),
        (Fault(text=""), "ok", "", ""),
        (Fault(text=None), "ok", "", ""),
    ],
)
def test_answers_that_are_none_are_told_apart(
    shown: Shown, fault: Fault, delivery: str, text: str, error: str
) -> None:
    with running(ChatCompletions(), [fault]) as server:
        answer = ask(model(server), shown.request)
    assert (answer.delivery, answer.text) == (delivery, text)
    assert error in answer.error
    assert bool(answer.error) == (delivery != "ok")


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_transient(shown: Shown, status: int) -> None:
    error = fail(Fault(status=status), shown.request)
    assert error.transient
    assert not error.hopeless
    assert error.throttled == (status in (429, 529))
    assert f"scripted {status}" in str(error)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_a_request_that_is_wrong_is_not_sent_again(shown: Shown, status: int) -> None:
    error = fail(Fault(status=status), shown.request)
    assert not error.transient
    assert not error.hopeless


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_wrong_key_or_address_is_hopeless(shown: Shown, status: int) -> None:
    error = fail(Fault(status=status), shown.request)
    assert error.hopeless
    assert not error.transient


def test_a_redirect_is_not_followed(shown: Shown) -> None:
    error = fail(Fault(status=307, headers={"Location": "/v1/chat/completions"}), shown.request)
    assert error.hopeless


def test_the_servers_wish_to_wait_is_heard(shown: Shown) -> None:
    assert fail(Fault(status=429), shown.request).retry_after is None
    for headers, low, high in (
        ({"Retry-After": "7"}, 7, 7),
        ({"Retry-After": format_datetime(datetime.now(UTC) + timedelta(minutes=5), True)}, 1, 300),
    ):
        wait = fail(Fault(status=429, headers=headers), shown.request).retry_after
        assert wait is not None
        assert low <= wait <= high


@pytest.mark.parametrize(
    "fault",
    [
        Fault(body=b'{"choices": [{"mess'),
        Fault(body=b"\xff\xfe"),
        Fault(body=b""),
        Fault(body=b"null"),
        Fault(body=b"[" * 100_000),
        Fault(body=b'{"choices": []}'),
        Fault(body=b'{"choices": [{"message": {"content": 5}}]}'),
        Fault(body=b'{"choices": [{"finish_reason": "stop"}]}'),
        Fault(body=b'{"error": {"message": "no GPU"}}'),
        Fault(body=b"<html>Bad gateway</html>", headers={"Content-Type": "text/html"}),
        Fault(reset="before"),
        Fault(reset="mid-body"),
    ],
)
def test_what_is_no_answer_is_an_error_that_may_pass(shown: Shown, fault: Fault) -> None:
    error = fail(fault, shown.request)
    assert error.transient
    assert not error.hopeless
    assert not error.throttled


_NAMES = (
    *("choices", "message", "content", "refusal", "finish_reason"),
    *("usage", "prompt_tokens_details", "image_tokens", "error"),
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4)
    ),
)
_MESSAGES = st.fixed_dictionaries({"content": _VALUES, "refusal": _VALUES})
_CHOICES = st.fixed_dictionaries({"message": _MESSAGES | _VALUES, "finish_reason": _VALUES})
_ANSWERS = st.fixed_dictionaries({"choices": st.lists(_CHOICES), "usage": _VALUES}) | _VALUES


def test_whatever_the_server_says_is_an_answer_or_an_error() -> None:
    with running(ChatCompletions()) as server, asyncio.Runner() as runner:
        adapter = model(server)
        said = Message("user", (Part("text", "Goal"),))
        ready = adapter.prepare(Request("a", (said,)))

        @given(_ANSWERS.map(json.dumps).map(str.encode) | st.binary())
        def say(body: bytes) -> None:
            server.script = lambda number: Fault(body=body)
            with contextlib.suppress(CallError):
                [answer] = runner.run(adapter.generate([ready], adapter.params))
                assert answer.delivery in ("ok", "truncated", "refused")

        say()
        runner.run(adapter.close())


def test_sixteen_at_a_time_are_not_mixed_up(tmp_path: Path) -> None:
    steps = [Shown(tmp_path / str(seed)).write(seed) for seed in range(16)]

    async def all_at_once() -> list[str]:
        adapter = model(server, video="native")
        ready = [adapter.prepare(step.request) for step in steps]
        try:
            done = await asyncio.gather(
                *(adapter.generate([item], adapter.params) for item in ready)
            )
        finally:
            await adapter.close()
        return [answer.text for [answer] in done]

    with running(ChatCompletions(), lambda number: Fault(delay_s=0.3)) as server:
        answers = asyncio.run(all_at_once())
        assert server.most > 1
    assert answers == ["\n".join(step.seen()) for step in steps]


def test_an_answer_without_end_is_not_read_to_the_end(shown: Shown) -> None:
    error = fail(Fault(body=b'"' + b"x" * 17 * 2**20), shown.request)
    assert "longer than" in str(error)


def test_a_dead_server_is_named(shown: Shown) -> None:
    with running(ChatCompletions()) as server:
        pass
    with pytest.raises(CallError, match=r"127\.0\.0\.1") as caught:
        ask(model(server), shown.request)
    assert caught.value.transient


def test_a_hang_lasts_until_the_caller_has_enough(shown: Shown) -> None:
    async def impatient() -> None:
        adapter = model(server)
        try:
            ready = adapter.prepare(shown.request)
            async with asyncio.timeout(1.0):
                await adapter.generate([ready], adapter.params)
        finally:
            await adapter.close()

    with running(ChatCompletions(), [Fault(hang=True)]) as server:
        with pytest.raises(TimeoutError):
            asyncio.run(impatient())
        assert server.count == 1


def test_the_request_id_is_in_the_error(shown: Shown) -> None:
    for fault in (Fault(status=500), Fault(body=b"null")):
        with_id = replace(fault, headers={"x-request-id": "req-42"})
        assert "req-42" in str(fail(with_id, shown.request))


def test_reasoning_is_no_part_of_the_answer(shown: Shown) -> None:
    message = {"content": "Tap", "reasoning_content": "Hm", "audio": {"data": "AAAA"}}
    body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    with running(ChatCompletions(), [Fault(body=body)]) as server:
        assert ask(model(server), shown.request).text == "Tap"


def test_lone_surrogates_come_and_go(shown: Shown) -> None:
    body = rb'{"choices": [{"message": {"content": "\ud83d"}, "finish_reason": "stop"}]}'
    said = Message("user", (Part("text", "Goal: \ud83d"),))
    with running(ChatCompletions(), [Fault(body=body)]) as server:
        answer = ask(model(server), Request("a", (said,)))
        assert server.asked[0].seen == ["user: text Goal: \ud83d"]
    assert answer.text == "\ud83d"


def test_equal_requests_have_equal_keys_and_others_do_not(shown: Shown, tmp_path: Path) -> None:
    url = "http://127.0.0.1:9/v1"

    def key(request: Request, spec: str = "openai:m", **options: str) -> str:
        preset = presets.find(spec, options, base_url=url)
        assert preset is not None
        return OpenAIChat(preset, Key()).prepare(request).key

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


@pytest.mark.parametrize("name", ["model", "messages", "stream", "temperature", "max_tokens", "n"])
def test_extra_body_cannot_say_what_has_an_option(name: str) -> None:
    preset = presets.find("openai:m", {"extra_body": json.dumps({name: 1})}, base_url="http://h")
    assert preset is not None
    with pytest.raises(UsageError, match=f'"{name}" is not for extra_body'):
        OpenAIChat(preset, Key())


def test_what_the_model_does_not_take_is_said_before_anything_is_sent(shown: Shown) -> None:
    preset = presets.find("openai:m", {"accepts": "image"}, base_url="http://127.0.0.1:9")
    assert preset is not None
    said = OpenAIChat(preset, Key()).refuses(shown.conversation)
    assert "audio" in said
    assert "video" in said
    preset = presets.find(
        "openai:m", {"accepts": "image", "degrade": "true"}, base_url="http://127.0.0.1:9"
    )
    assert preset is not None
    assert OpenAIChat(preset, Key()).refuses(shown.conversation) == ""


def test_the_release_asks_as_the_released_adapter_did(shown: Shown) -> None:
    with running(ChatCompletions()) as server:
        preset = presets.find("qwen3-omni", {"layout": "release"}, base_url=f"{server.url}/v1")
        assert preset is not None
        ask(OpenAIChat(preset, Key()), shown.request)
        [system, user] = server.asked[0].payload["messages"]
    kinds = [part["type"] for part in user["content"]]
    block = "[System Instructions]\nYou are an agent.\n[End System Instructions]\n"
    assert system["content"] == [{"type": "text", "text": "You are an agent."}]
    assert kinds == ["text", *["image_url"] * 5, "audio_url", "image_url", "text"]
    assert user["content"][0]["text"] == block
    text: Any = user["content"][-1]["text"]
    assert text == '[User]: [History Screenshot]: Goal: tap "分享"\nStep: 2'
