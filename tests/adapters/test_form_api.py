"""MINICPM-o, VITA and BAICHUAN-Omni against servers that look at what they are sent."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from omnidata.errors import CallError, UsageError
from omnidata.types import Adapter, Message, Part, Request
from tests.adapters.asking import ask, keyed
from tests.adapters.servers import (
    Asked,
    Fault,
    Wire,
    running,
    seen_audio,
    seen_image,
    seen_text,
    seen_video,
)
from tests.adapters.servers_http import KEY, MiniCPMServer, baichuan, vita
from tests.adapters.shown import Shown

SYSTEM = "You are an agent."
GOAL = 'Goal: tap "分享"\nStep: 2'
LABEL = "[History Screenshot]:"
BLOCK = f"[System Instructions]\n{SYSTEM}\n[End System Instructions]\n\n[User]: {LABEL} {GOAL}"
MINICPM, VITA, BAICHUAN = "minicpm-o-4.5", "vita-1.5", "baichuan-omni-1.5"
SERVERS: list[tuple[str, Wire]] = [
    (MINICPM, MiniCPMServer()),
    (VITA, vita()),
    (BAICHUAN, baichuan()),
]


def made(spec: str, url: str, key: str = "", **options: str) -> Adapter:
    path = "/chat" if spec == BAICHUAN else ""
    return keyed(spec, url + path, key, options)


def lines(shown: Shown, *names: str) -> list[str]:
    readers = {".png": seen_image, ".mp4": seen_video, ".wav": seen_audio}
    return [readers[name[-4:]](shown.read(name)) for name in names]


MEDIA = ("history_screenshot.png", "screenshot.png", "video.mp4", "audio.wav")


@pytest.mark.parametrize(
    ("layout", "text"), [("paper", f"{SYSTEM}\n\n{LABEL}\n{GOAL}"), ("release", BLOCK)]
)
def test_minicpm_gets_all_texts_and_all_media(shown: Shown, layout: str, text: str) -> None:
    with running(MiniCPMServer()) as server:
        answer = ask(made(MINICPM, server.url, layout=layout), shown.request)
    assert answer.text == "\n".join([seen_text(text), *lines(shown, *MEDIA)])
    assert "degraded" not in answer.receipt
    assert answer.usage == {"inference_time_s": 0.5}


@pytest.mark.parametrize(
    ("temperature", "tokens", "sent"),
    [
        ("0", "4096", {"temperature": 0.0, "do_sample": False, "max_new_tokens": 4096}),
        ("0.7", "none", {"temperature": 0.7, "do_sample": True}),
        ("none", "none", {}),
    ],
)
def test_minicpm_samples_above_temperature_0(
    shown: Shown, temperature: str, tokens: str, sent: dict[str, Any]
) -> None:
    with running(MiniCPMServer()) as server:
        model = made(MINICPM, server.url, temperature=temperature, max_new_tokens=tokens)
        ask(model, shown.request)
        payload = server.asked[0].payload
    names = ("temperature", "do_sample", "max_new_tokens")
    assert {name: payload[name] for name in names if name in payload} == sent


def test_minicpm_may_answer_as_chat_completions_do(shown: Shown) -> None:
    def said(text: str, reason: str, index: int = 0) -> dict[str, Any]:
        return {"index": index, "message": {"content": text}, "finish_reason": reason}

    bodies = [
        {"choices": [{"message": {"content": "TAP"}}]},
        {"choices": [said("SWIPE", "length", 1), said("TAP", "stop")]},
        {"choices": [said("TAP", "length")]},
        {"choices": [said("TAP", "abort")]},
    ]
    faults = [Fault(body=json.dumps(body).encode()) for body in bodies]
    with running(MiniCPMServer(), faults) as server:
        found = [ask(made(MINICPM, server.url), shown.request) for _ in bodies[:3]]
        with pytest.raises(CallError, match="abort"):
            ask(made(MINICPM, server.url), shown.request)
    assert [(one.delivery, one.text) for one in found] == [
        ("ok", "TAP"), ("ok", "TAP"), ("truncated", "TAP")
    ]  # fmt: skip


def test_vita_takes_one_medium_of_a_kind_and_baichuan_one_in_all(shown: Shown) -> None:
    url = "http://127.0.0.1:9"
    assert "1 picture" in made(VITA, url).unsupported_reason(shown.conversation)
    said = made(BAICHUAN, url).unsupported_reason(shown.conversation)
    assert "no more than 1 medium" in said
    for role in ("history_screenshot", "audio", "screenshot"):
        assert role in said
    for spec, option in product((VITA, BAICHUAN), ({"degrade": "true"}, {"layout": "release"})):
        assert made(spec, url, **option).unsupported_reason(shown.conversation) == ""


def test_vita_gets_the_current_screen_when_the_rest_may_be_left_out(shown: Shown) -> None:
    with running(vita()) as server:
        model = made(VITA, server.url, degrade="true", temperature="0")
        answer = ask(model, shown.request)
        fields = server.asked[0].payload
    image, video, audio = lines(shown, "screenshot.png", "video.mp4", "audio.wav")
    text = seen_text(f"{SYSTEM}\n\n{GOAL}")
    expected = [text, f"image: {image}", f"video: {video}", f"audio: {audio}"]
    assert answer.text == "\n".join(expected)
    assert [part for part in answer.receipt["parts"] if "dropped" in part]
    assert "history_screenshot" in answer.receipt["degraded"][0]
    assert fields["model_type"] == fields["conv_mode"] == "qwen2p5_instruct"
    assert fields["temperature"] == "0"


def test_vita_in_the_layout_of_the_release_gets_the_last_of_each_kind(shown: Shown) -> None:
    with running(vita()) as server:
        answer = ask(made(VITA, server.url, layout="release"), shown.request)
    image, video, audio = lines(shown, "screenshot.png", "video.mp4", "audio.wav")
    expected = [seen_text(BLOCK), f"image: {image}", f"video: {video}", f"audio: {audio}"]
    assert answer.text == "\n".join(expected)
    assert answer.receipt["degraded"]


@pytest.mark.parametrize("row", [{"degrade": "true"}, {"layout": "release"}])
def test_baichuan_gets_the_clip_before_any_other_file(shown: Shown, row: dict[str, str]) -> None:
    with running(baichuan()) as server:
        answer = ask(made(BAICHUAN, server.url, **row), shown.request)
        fields = server.asked[0].payload
    text = BLOCK if "layout" in row else f"{SYSTEM}\n\n{GOAL}"
    assert answer.text == f"{seen_text(text)}\nvideo_file: {lines(shown, 'video.mp4')[0]}"
    assert [part["role"] for part in answer.receipt["parts"] if "dropped" not in part] == ["video"]
    assert len(answer.receipt["parts"]) == 4
    assert answer.receipt["degraded"]
    assert fields["generate_audio"] == "false"


@pytest.mark.parametrize(
    ("names", "field"),
    [
        (("audio.wav", "history_screenshot.png", "screenshot.png"), "image_file"),
        (("audio.wav",), "audio_file"),
        ((), ""),
    ],
)
def test_baichuan_gets_the_last_image_before_a_track(
    shown: Shown, names: tuple[str, ...], field: str
) -> None:
    parts = tuple(shown.part(name, name) for name in names)
    request = Request("a/T/0", (Message("user", parts), *shown.conversation[:1]))
    with running(baichuan()) as server:
        answer = ask(made(BAICHUAN, server.url, degrade="true"), request)
    expected = [f"{field}: {lines(shown, names[-1])[0]}"] if names else []
    assert answer.text.split("\n")[1:] == expected


@pytest.mark.parametrize("spec", [MINICPM, VITA, BAICHUAN])
@given(names=st.lists(st.sampled_from(["screenshot.png", "video.mp4", "audio.wav"]), max_size=6))
def test_the_release_sends_a_medium_or_names_it_as_dropped(
    shown: Shown, spec: str, names: list[str]
) -> None:
    last = {name: number for number, name in enumerate(names)}
    parts = tuple(shown.part(str(number), name) for number, name in enumerate(names))
    model = made(spec, "http://127.0.0.1:9", layout="release")
    receipt = model.prepare(
        Request("a/T/0", (Message("user", (*parts, Part("text", GOAL))),))
    ).receipt
    sent = [int(line["role"]) for line in receipt["parts"] if "dropped" not in line]
    if spec == BAICHUAN:
        first = [
            last[name] for name in ("video.mp4", "screenshot.png", "audio.wav") if name in last
        ]
        assert sent == first[:1]
    else:
        kept = {
            number
            for number, name in enumerate(names)
            if number == last[name] or (spec == MINICPM and name == "screenshot.png")
        }
        assert sent == sorted(kept)
    assert len(receipt["parts"]) == len(names)
    assert len(receipt.get("degraded", ())) == len(names) - len(sent)


@pytest.mark.parametrize(
    ("spec", "server", "text"),
    [
        (VITA, vita("☜{}<|im_end|>"), "CLICK ☜"),
        (VITA, vita("☜☜ {} <|im_end|>\n"), "a <|im_end|> b"),
        (BAICHUAN, baichuan("{}<|endoftext|>"), "CLICK"),
        (BAICHUAN, baichuan(" {} <|endoftext|>\n"), "a <|endoftext|> b"),
    ],
)
def test_marks_are_cut_off_the_ends_of_a_reply(
    shown: Shown, spec: str, server: Wire, text: str
) -> None:
    with running(server, [Fault(text=text)]) as running_server:
        answer = ask(made(spec, running_server.url, layout="release"), shown.request)
    assert answer.text == text


@pytest.mark.parametrize(("spec", "wire"), SERVERS)
def test_a_key_goes_as_a_bearer_token_and_only_if_there_is_one(
    shown: Shown, spec: str, wire: Wire
) -> None:
    with running(wire) as server:
        ask(made(spec, server.url, layout="release"), shown.request)
        ask(made(spec, server.url, KEY, layout="release"), shown.request)
        sent = [asked.headers.get("authorization") for asked in server.asked]
    assert sent == [None, f"Bearer {KEY}"]


@pytest.mark.parametrize(
    ("spec", "name", "value"),
    [
        (MINICPM, "seed", "1"),
        (VITA, "max_new_tokens", "100"),
        (BAICHUAN, "temperature", "0"),
    ],
)
def test_a_setting_that_cannot_be_sent_is_refused(spec: str, name: str, value: str) -> None:
    with pytest.raises(UsageError, match="cannot send"):
        made(spec, "http://127.0.0.1:9", **{name: value})


class Anything:
    """Takes any form, and keeps it as it came."""

    path = "/{any:.*}"

    async def read(self, request: web.Request) -> Asked:
        return Asked([], await request.text())

    def reply(self, asked: Asked, text: str | None, fault: Fault) -> object:
        return {"response": "BACK", "result": "BACK"}


def test_a_form_says_true_and_numbers_as_json_does() -> None:
    body = json.dumps({"a": True, "b": {"c": 1}, "d": "as it is", "e": 0.5})
    with running(Anything()) as server:
        ask(made(VITA, server.url, extra_body=body))
        sent = server.asked[0].payload
    for value in ("true", '{"c":1}', "as it is", "0.5"):
        assert f"\r\n\r\n{value}\r\n" in sent


@pytest.mark.parametrize(
    ("body", "throttled"),
    [
        (b'{"error": "out of memory"}', False),
        (b'{"text": null, "response": null}', False),
        (b'{"text": "TAP", "response": "TAP", "error": {"code": 429}}', True),
    ],
)
@pytest.mark.parametrize(("spec", "wire"), SERVERS)
def test_an_error_in_a_reply_is_a_failed_call(
    shown: Shown, spec: str, wire: Wire, body: bytes, throttled: bool
) -> None:
    with running(wire, [Fault(body=body)]) as server, pytest.raises(CallError) as caught:
        ask(made(spec, server.url, layout="release"), shown.request)
    assert (caught.value.transient, caught.value.throttled) == (True, throttled)
    assert server.count == 1


def test_a_text_that_utf8_cannot_hold_is_sent_and_an_empty_reply_is_an_answer() -> None:
    request = Request("a/T/0", (Message("user", (Part("text", "go \ud800 back"),)),))
    for spec, wire in SERVERS:
        with running(wire, [Fault(text="BACK"), Fault(text="")]) as server:
            found = [ask(made(spec, server.url), request) for _ in range(2)]
        assert [(one.delivery, one.text) for one in found] == [("ok", "BACK"), ("ok", "")]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"error": {"code": 502, "message": "upstream died"}}, "upstream died"),
        ({"tool_calls": [{"id": "1"}]}, "called a tool"),
        ({"function_call": {"name": "tap"}}, "called a tool"),
    ],
)
def test_a_choice_that_failed_or_calls_a_tool_is_no_answer(
    shown: Shown, more: dict[str, Any], said: str
) -> None:
    message = {"content": "TAP", **more}
    body = json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode()
    with running(MiniCPMServer(), [Fault(body=body)]) as server, pytest.raises(CallError) as caught:
        ask(made(MINICPM, server.url), shown.request)
    assert said in str(caught.value)
