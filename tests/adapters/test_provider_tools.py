"""Messages, Responses and Gemini, with and without the providers' own computer tools."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from omnidata.actions import Action, Point
from omnidata.dialects import Past, Question, Rules, get_dialect
from omnidata.errors import CallError, UsageError
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from omnidata.types import Adapter, LoadedDataset, Request, Step
from tests.adapters.asking import ask, keyed
from tests.adapters.servers import Fault, Server, Wire, running, seen_image, seen_text
from tests.adapters.servers_http import KEY as GOOGLE_KEY
from tests.adapters.servers_http import GoogleFiles, GoogleGenAI
from tests.adapters.servers_tools import KEY, Messages, Responses
from tests.adapters.shown import Shown

ANTHROPIC, RESPONSES = "anthropic:claude-test", "openai-responses:gpt-test"
BETAS = {
    "claude-computer-20241022": "computer-use-2024-10-22",
    "claude-computer-20250124": "computer-use-2025-01-24",
    "claude-computer-20251124": "computer-use-2025-11-24",
}


def model(name: str, server: Server, **options: str) -> Adapter:
    """The model of a SPEC, or of a dialect with a tool."""
    spec = name if ":" in name else spec_of(name)
    url = f"{server.url}/v1" if "openai" in spec else server.url
    return keyed(spec, url, GOOGLE_KEY if "gemini" in spec else KEY, options)


def plain(shown: Shown) -> Request:
    """A step without sound, which none of the two takes."""
    system, user = shown.conversation
    parts = tuple(part for part in user.parts if part.kind in ("text", "image"))
    return Request("1", (system, replace(user, parts=parts)))


def wire_of(spec: str, **answer: Any) -> Messages | Responses:
    return Messages(**answer) if spec == ANTHROPIC else Responses(**answer)


@pytest.mark.parametrize("spec", [ANTHROPIC, RESPONSES])
def test_texts_and_pictures_arrive_in_order(spec: str, shown: Shown) -> None:
    with running(wire_of(spec)) as server:
        answer = ask(model(spec, server), plain(shown))
        [request] = server.asked
    assert request.seen == [line for line in shown.seen(clip=False) if "audio" not in line]
    assert answer.text == "\n".join(request.seen)
    assert (answer.delivery, answer.usage["input_tokens"]) == ("ok", 100)
    limit = request.payload.get("max_tokens", request.payload.get("max_output_tokens"))
    # Anthropic's API has no temperature but in an old version, which is asked for one.
    assert (limit, request.payload.get("temperature")) == (4096, None if "anth" in spec else 0.0)
    assert KEY not in json.dumps([answer.text, answer.receipt, answer.usage])


def test_a_temperature_and_stop_texts_are_sent_to_messages(shown: Shown) -> None:
    """The reason of the latter is `stop_sequence`, an end like any other."""
    with running(Messages(), [Fault(finish="stop_sequence", text="Tap")]) as server:
        adapter = model(ANTHROPIC, server, temperature="0")
        answer = ask(adapter, plain(shown), replace(adapter.params, stop=("</done>",)))
        [request] = server.asked
    assert request.payload["temperature"] == 0.0  # by the version that takes one
    assert request.payload["stop_sequences"] == ["</done>"]
    assert (answer.delivery, answer.text) == ("ok", "Tap")


@pytest.mark.parametrize(
    ("spec", "fault", "answer", "delivery", "error"),
    [
        (ANTHROPIC, Fault(finish="max_tokens", text="Ta"), {}, "truncated", "greatest length"),
        (ANTHROPIC, Fault(finish="refusal", text=""), {}, "refused", "refusal"),
        (ANTHROPIC, Fault(text=""), {}, "ok", ""),
        (RESPONSES, Fault(text="Ta"), {"why": "max_output_tokens"}, "truncated", "length"),
        (RESPONSES, Fault(text=""), {"why": "content_filter"}, "refused", "content filter"),
        (RESPONSES, Fault(refusal="I will not."), {}, "refused", "I will not."),
    ],
)
def test_answers_that_are_none_are_told_apart(
    spec: str, fault: Fault, answer: dict[str, Any], delivery: str, error: str
) -> None:
    with running(wire_of(spec, **answer), [fault]) as server:
        found = ask(model(spec, server))
    assert found.delivery == delivery
    assert error in found.error


USE = {"type": "tool_use", "id": "toolu_9", "name": "computer", "input": {"action": "key"}}


@pytest.mark.parametrize(
    ("spec", "fault", "answer", "said", "transient"),
    [
        (ANTHROPIC, Fault(body=b"{}"), {}, "no message", True),
        (ANTHROPIC, Fault(body=b'{"type":"error","error":{"message":"x"}}'), {}, "x", True),
        (ANTHROPIC, Fault(finish="tool_use"), {"content": [USE]}, "called a tool", False),
        (ANTHROPIC, Fault(), {"content": [{"type": "thinking", "thinking": "Hm"}]},
         "reasoning", False),
        (RESPONSES, Fault(body=b"[]"), {}, "no response", True),
        (RESPONSES, Fault(), {"output": [{"type": "reasoning", "summary": []}]},
         "reasoning", False),
        (RESPONSES, Fault(), {"output": [{"type": "function_call", "name": "f"}]},
         "called a tool", False),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_an_error_of_the_call(
    spec: str, fault: Fault, answer: dict[str, Any], said: str, transient: bool
) -> None:
    with running(wire_of(spec, **answer), [fault]) as server:
        with pytest.raises(CallError) as caught:
            ask(model(spec, server))
        assert server.count == 1  # the SDK does not try again
    assert said in str(caught.value)
    assert (caught.value.transient, caught.value.hopeless) == (transient, False)


def test_a_key_is_in_no_log_and_no_error(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    fault = Fault(status=400, body=f'{{"error": "bad key {KEY}"}}'.encode())
    for spec in (ANTHROPIC, RESPONSES):
        with running(wire_of(spec), [fault, Fault(text=f"I know {KEY}")]) as server:
            with pytest.raises(CallError) as caught:
                ask(model(spec, server))
            assert ask(model(spec, server)).text == "I know [key]"
        assert KEY not in str(caught.value)
    assert KEY not in caplog.text


@pytest.mark.parametrize(
    ("spec", "options", "said"),
    [
        (ANTHROPIC, {"seed": "1"}, "seed"),
        (RESPONSES, {"seed": "1"}, "seed"),
        (ANTHROPIC, {"accepts": "image,audio"}, "audio"),
        (RESPONSES, {"accepts": "image,audio"}, "audio"),
        (ANTHROPIC, {"video": "native"}, "video"),
        (RESPONSES, {"video": "native"}, "video"),
        (ANTHROPIC, {"max_new_tokens": "none"}, "length limit"),
    ],
)
def test_what_a_request_cannot_hold_is_refused(
    spec: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        keyed(spec, "http://127.0.0.1:9", KEY, options)


# With a tool.


def question(shown: Shown, name: str) -> Request:
    """A step in a dialect, after one that was two actions and one that cannot be told as a call."""
    dialect = get_dialect(name)
    at = (Point(3, 4, dialect.frame.space),)
    before = replace(shown.part("history_screenshot", "history_screenshot.png"), size=(32, 48))
    now = replace(shown.part("screenshot", "screenshot.png"), size=(32, 48))
    done = (Action("tap", at), Action("type", text='a "b"'))
    past = (
        Past(done, before, (32, 48)),
        Past((Action("recent"),), before, (32, 48)),
        Past((Action("enter"),), before, (32, 48)),
    )
    asking = Question("action", "mobile", "Go on.", (now,), past, fed=(32, 48))
    return Request("1", dialect.conversation(asking))


def spec_of(name: str) -> str:
    if name.startswith("claude"):
        return ANTHROPIC
    return RESPONSES if name.startswith("openai") else "gemini:gemini-test"


def server_of(name: str, items: Any = None) -> Wire:
    if name.startswith("claude"):
        return Messages(items, BETAS[name])
    return Responses(items) if name.startswith("openai") else google(items)


def google(parts: Any) -> GoogleGenAI:
    content = {"role": "model", "parts": parts or [{"text": "(seen)"}]}
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return GoogleGenAI(answer={"candidates": [candidate], "modelVersion": "gemini-test"})


NAMES = (*BETAS, "openai-computer-preview", "openai-computer", "gemini-computer")


@pytest.mark.parametrize("name", NAMES)
def test_earlier_calls_and_their_screenshots_arrive(name: str, shown: Shown) -> None:
    request = question(shown, name)
    with running(server_of(name)) as server:
        answer = ask(model(name, server), request)
        [got] = server.asked
    # A turn without a call is the end.
    [end] = get_dialect(name).read(answer.text, (32, 48), rules="strict").actions
    assert end.kind == "done" and end.text
    before, now = (
        seen_image(shown.read(f"{role}.png")) for role in ("history_screenshot", "screenshot")
    )
    pictures = [line for line in got.seen if "image" in line]
    assert [line.partition("image")[2] for line in pictures][-1] == now.partition("image")[2]
    assert sum(before in line for line in pictures) >= 3
    assert (
        f"assistant: {seen_text('RECENT')}" in got.seen
        or f"model: {seen_text('RECENT')}" in got.seen
    )
    declared = [json.loads(part.text) for part in request.conversation[0].parts[1:]]
    if name != "gemini-computer":
        assert got.payload["tools"] == declared
        # A move and a click are two calls of the first tool; the last one has a call for all.
        calls = {"claude-computer-20241022": 4, "openai-computer": 2}.get(name, 3)
        assert sum(line.startswith(("call ", "assistant: call ")) for line in got.seen) == calls
        assert len({line for line in got.seen if "result of" in line}) == calls
    assert (got.payload.get("truncation") == "auto") == (name == "openai-computer-preview")


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("claude-computer-20250124",
         [{"type": "thinking", "thinking": "Hm", "signature": "s"}, {"type": "text", "text": "So."},
          {"type": "tool_use", "id": "toolu_1", "name": "computer",
           "input": {"action": "left_click", "coordinate": [3, 4]}}]),
        ("openai-computer-preview",
         [{"type": "reasoning", "id": "rs", "summary": []},
          {"type": "message", "id": "m", "role": "assistant",
           "content": [{"type": "output_text", "text": "So.", "annotations": []}]},
          {"type": "computer_call", "id": "cu", "call_id": "c", "status": "completed",
           "pending_safety_checks": [],
           "action": {"type": "click", "x": 3, "y": 4, "button": "left"}}]),
        ("openai-computer",
         [{"type": "message", "id": "m", "role": "assistant",
           "content": [{"type": "output_text", "text": "So.", "annotations": []}]},
          {"type": "computer_call", "id": "cu", "call_id": "c", "status": "completed",
           "pending_safety_checks": [],
           "actions": [{"type": "click", "x": 3, "y": 4, "button": "left"}]}]),
        ("gemini-computer",
         [{"text": "So."}, {"functionCall": {"name": "click_at", "args": {"x": 3, "y": 4}}}]),
    ],
)  # fmt: skip
def test_a_call_comes_back_as_what_the_dialect_reads(
    name: str, items: list[Any], shown: Shown
) -> None:
    dialect = get_dialect(name)
    finish = Fault(finish="tool_use")
    with running(server_of(name, items), [finish]) as server:
        answer = ask(model(name, server), question(shown, name))
    assert answer.delivery == "ok"
    for rules in get_args(Rules):
        found = dialect.read(answer.text, (32, 48), rules=rules)
        assert found.actions == (Action("tap", (Point(3, 4, dialect.frame.space),)),)
        assert found.thought == "So."


@pytest.mark.parametrize("name", NAMES)
def test_another_model_has_no_such_tool(name: str, shown: Shown, tmp_path: Path) -> None:
    request = question(shown, name)
    for options in ({}, {"degrade": "true"}):
        adapter = keyed("openai:gpt-test", "http://127.0.0.1:9", KEY, options)
        if not options:
            assert "no tool" in adapter.unsupported_reason(request.conversation)
            task = get_task("gui-odyssey", {"dialect": name})
            step = Step("1", "1", 0, 1, "Go on.", (32, 48), {}, (), (), None, {}, {})
            source = LoadedDataset(task.name, tmp_path, [step], [], 0, "", ["1"], (), {})
            with pytest.raises(UsageError, match="-T dialect"):
                evaluate(task, source, adapter, tmp_path / "run", must_judge=False)
        with pytest.raises(UsageError, match="tool"):
            adapter.prepare(request)


def test_a_release_has_no_place_for_a_tool(shown: Shown) -> None:
    adapter = keyed("gemini:m", "http://127.0.0.1:9", GOOGLE_KEY, {"layout": "release"})
    with pytest.raises(UsageError, match="release"):
        adapter.prepare(question(shown, "gemini-computer"))


@pytest.mark.parametrize("name", NAMES)
def test_a_call_whose_picture_is_left_out_is_still_answered(name: str, shown: Shown) -> None:
    with running(server_of(name)) as server:
        ask(model(name, server, degrade="true", max_images="1"), question(shown, name))
        [got] = server.asked
    assert sum("image" in line for line in got.seen) == 1


def test_a_tool_is_no_medium_to_upload(shown: Shown, caplog: pytest.LogCaptureFixture) -> None:
    files = GoogleFiles()
    request = question(shown, "gemini-computer")
    with running(GoogleGenAI(files)) as server, caplog.at_level(logging.WARNING):
        ask(model("gemini-computer", server, inline_limit_mb="0"), request)
    assert files.starts == len({shown.read(f"{n}screenshot.png") for n in ("", "history_")})
    assert not caplog.records  # the SDK warns of functions that it will not call by itself


def test_a_picture_is_sent_in_the_size_that_is_declared(shown: Shown) -> None:
    request = question(shown, "claude-computer-20250124")
    *turns, last = request.conversation
    now = replace(last.parts[-1], size=(16, 24))
    request = Request("1", (*turns, replace(last, parts=(now,))))
    with running(server_of("claude-computer-20250124")) as server:
        answer = ask(model("claude-computer-20250124", server), request)
        assert "image 16x24" in server.asked[0].seen[-1]
    line = answer.receipt["parts"][-1]
    assert (line["width"], line["height"], line["original"]) == (16, 24, [32, 48])
