"""Gemini, against a server that looks at what it is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest

from omnidata.errors import CallError
from omnidata.types import Adapter, Completion, GenerationParams, Message, Part, Request
from tests.adapters import asking
from tests.adapters.servers import FINE, Fault, running, seen_text
from tests.adapters.servers_http import KEY, GoogleFiles, GoogleGenAI
from tests.adapters.shown import Shown

Answer = TypeVar("Answer")
PARAMS = GenerationParams()


def gemini(url: str, **options: str) -> Adapter:
    return asking.keyed("gemini:gemini-test", url, KEY, options)


def ask(
    request: Request, wire: GoogleGenAI | None = None, fault: Fault = FINE, **options: str
) -> Completion:
    """One attempt at a request, to a server of its own."""
    with running(wire or GoogleGenAI(), [fault]) as server:
        return asking.ask(gemini(server.url, **options), request)


def closed_after(model: Adapter, work: Coroutine[Any, Any, Answer]) -> Answer:
    async def run() -> Answer:
        try:
            return await work
        finally:
            await model.close()

    return asyncio.run(run())


def test_the_model_sees_every_part_in_its_place_and_says_what_it_cost(shown: Shown) -> None:
    answer = ask(shown.request)
    assert (answer.delivery, answer.text) == ("ok", "\n".join(shown.seen()))
    kinds = [part["kind"] for part in answer.receipt["parts"]]
    assert kinds == ["image", "video", "audio", "image"]
    assert answer.receipt["tokens"] == {"text": 60, "image": 40}
    tokens = {"prompt_token_count": 100, "candidates_token_count": 10, "thoughts_token_count": 5}
    assert answer.usage.items() >= tokens.items()


def test_clips_can_go_as_frames(shown: Shown) -> None:
    answer = ask(shown.request, video="frames", frames="3", frame_times="false")
    assert "video" not in answer.text
    assert answer.text.count("user: image") == 2 + 3


def test_the_layout_of_the_release_says_the_system_prompt_twice(shown: Shown) -> None:
    answer = ask(shown.request, layout="release", video="native")
    block = "[System Instructions]\nYou are an agent.\n[End System Instructions]\n"
    text = '[User]: [History Screenshot]: Goal: tap "分享"\nStep: 2'
    media = [line for line in shown.seen() if not line.startswith(("system", "user: text"))]
    lines = [shown.seen()[0], f"user: {seen_text(block)}", *media, f"user: {seen_text(text)}"]
    assert answer.text == "\n".join(lines)


def test_turns_of_the_user_become_one_in_the_layout_of_the_release(shown: Shown) -> None:
    screen, sound = shown.part("screenshot", "screenshot.png"), shown.part("audio", "audio.wav")
    first, second = Part("text", "first"), Part("text", "second")
    alone = Message("user", (screen,))
    turns = (alone, Message("user", (first,)), Message("user", (sound, second)))
    text = f"user: {seen_text('[User]: first' + chr(10) * 2 + '[User]: second')}"
    *_, heard, seen, _ = shown.seen()
    whole = ask(Request("a/T/0", turns), layout="release")
    assert whole.text == "\n".join([seen, heard, text])
    one = ask(Request("a/T/1", (alone,)), layout="release")
    assert one.text == seen  # without an empty text


def test_generation_settings_and_extra_body_are_merged(shown: Shown) -> None:
    extra = {"generationConfig": {"mediaResolution": "MEDIA_RESOLUTION_LOW"}}
    params = GenerationParams(temperature=0.5, max_new_tokens=77, seed=3, stop=("\n\n",))
    with running(GoogleGenAI()) as server:
        asking.ask(gemini(server.url, extra_body=json.dumps(extra)), shown.request, params)
        asking.ask(gemini(server.url), shown.request, GenerationParams(None, None))
        sent = [asked.payload.get("generationConfig", {}) for asked in server.asked]
    assert sent[0] == {
        "temperature": 0.5,
        "maxOutputTokens": 77,
        "seed": 3,
        "stopSequences": ["\n\n"],
        "mediaResolution": "MEDIA_RESOLUTION_LOW",
    }
    assert sent[1] == {}


def test_the_frame_rate_is_sent_with_clips_alone(shown: Shown) -> None:
    answer = ask(shown.request, fps="5.0")
    assert [line for line in answer.text.split("\n") if line.endswith(" at 5.0 fps")] == [
        line + " at 5.0 fps" for line in shown.seen() if "video" in line
    ]


def test_a_text_that_utf8_cannot_hold_is_sent_without_its_broken_signs() -> None:
    broken = (Part("text", "go \ud800 back"),)
    request = Request("a/T/0", (Message("system", broken), Message("user", broken)))
    assert ask(request).text == "system: text go ? back\nuser: text go ? back"


def test_the_environment_changes_nothing(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_GENAI_API_VERSION", "v9")
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    monkeypatch.setenv("GOOGLE_API_KEY", "another")
    assert ask(shown.request).delivery == "ok"


def test_large_media_are_uploaded_once_and_deleted_at_the_end(shown: Shown) -> None:
    files = GoogleFiles(states=("PROCESSING", "PROCESSING", "ACTIVE"))
    extra = {"generationConfig": {"mediaResolution": "MEDIA_RESOLUTION_LOW"}}
    with running(GoogleGenAI(files)) as server:
        model = gemini(server.url, inline_limit_mb="0", fps="2.0", extra_body=json.dumps(extra))

        async def together() -> list[Sequence[Completion]]:
            ready = [[model.prepare(shown.request)] for _ in range(2)]
            return await asyncio.gather(*(model.generate(each, PARAMS) for each in ready))

        answers = closed_after(model, together())
    seen = [line + (" at 2.0 fps" if "video" in line else "") for line in shown.seen()]
    assert [answer.text for [answer] in answers] == ["\n".join(seen)] * 2
    assert files.starts == 4
    assert sorted(files.deleted) == ["f1", "f2", "f3", "f4"]


def test_the_largest_media_are_uploaded_until_the_rest_fits(shown: Shown) -> None:
    sizes = {name: len(shown.read(name)) for name in ("video.mp4", "audio.wav", "screenshot.png")}
    largest = max(sizes, key=lambda name: sizes[name])
    files = GoogleFiles()
    total = sum(sizes.values()) + len(shown.read("history_screenshot.png"))
    limit = (total - sizes[largest]) * 4 / 3 + 1000
    answer = ask(shown.request, GoogleGenAI(files), inline_limit_mb=str(limit / 1e6))
    assert answer.text == "\n".join(shown.seen())
    assert [data for data, _ in files.kept.values()] == [shown.read(largest)]


def test_a_file_about_to_expire_is_uploaded_again(shown: Shown) -> None:
    soon = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
    files = GoogleFiles(expires=soon)
    with running(GoogleGenAI(files)) as server:
        model = gemini(server.url, inline_limit_mb="0")

        async def twice() -> None:
            for _ in range(2):
                await model.generate([model.prepare(shown.request)], PARAMS)

        closed_after(model, twice())
    assert files.starts == 8


def test_a_file_that_the_service_cannot_read_fails_its_step_for_good(shown: Shown) -> None:
    files = GoogleFiles(states=("PROCESSING", "FAILED"))
    with pytest.raises(CallError, match="no frames in it") as caught:
        ask(shown.request, GoogleGenAI(files), inline_limit_mb="0")
    assert (caught.value.transient, caught.value.hopeless) == (False, False)
    assert len(files.deleted) == files.starts


@pytest.mark.parametrize(
    "files", [GoogleFiles(place="http://[::1/put/f1"), GoogleFiles(outcome="cancelled")]
)
def test_an_upload_that_comes_to_nothing_is_a_failed_call(shown: Shown, files: GoogleFiles) -> None:
    with pytest.raises(CallError, match="the File API"):
        ask(shown.request, GoogleGenAI(files), inline_limit_mb="0")


def test_a_failed_upload_is_tried_again_with_the_next_attempt(shown: Shown) -> None:
    files = GoogleFiles(status=503)
    clip = Request("a/T1/0", (Message("user", (shown.part("video", "video.mp4"),)),))
    with running(GoogleGenAI(files)) as server:
        model = gemini(server.url, inline_limit_mb="0")

        async def twice() -> Sequence[Completion]:
            with pytest.raises(CallError) as caught:
                await model.generate([model.prepare(clip)], PARAMS)
            assert caught.value.transient
            assert files.starts == 1  # nothing repeats it
            files.status = 200
            return await model.generate([model.prepare(clip)], PARAMS)

        [answer] = closed_after(model, twice())
    assert [answer.text] == [line for line in shown.seen() if "video" in line]


@pytest.mark.parametrize(
    ("finish", "delivery"),
    [
        ("stop", "ok"),
        ("max_tokens", "truncated"),
        ("safety", "refused"),
        ("prohibited_content", "refused"),
        ("blocklist", "refused"),
        ("spii", "refused"),
        ("recitation", "refused"),
        ("model_armor", "refused"),
    ],
)
def test_the_finish_reason_tells_the_delivery(shown: Shown, finish: str, delivery: str) -> None:
    answer = ask(shown.request, fault=Fault(finish=finish, text="TAP [1,2]"))
    assert (answer.delivery, answer.text) == (delivery, "TAP [1,2]")
    assert bool(answer.error) == (delivery != "ok")


def test_a_blocked_prompt_is_a_refusal(shown: Shown) -> None:
    answer = ask(shown.request, fault=Fault(refusal="PROHIBITED_CONTENT"))
    assert (answer.delivery, answer.text) == ("refused", "")
    assert "PROHIBITED_CONTENT" in answer.error


def candidate(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP", **more}]}


TAP, THOUGHT = {"text": "TAP"}, {"text": "Hm", "thought": True}
CALL = {"functionCall": {"name": "tap"}}


@pytest.mark.parametrize(
    ("answer", "said", "transient"),
    [
        (candidate(THOUGHT), "reasoning and no answer", False),
        (candidate(THOUGHT, {"text": " "}), "reasoning and no answer", False),
        (candidate(CALL), "called a tool", False),
        (candidate(TAP, CALL), "called a tool", False),
        (candidate(), "candidate without content", True),
        (candidate(content={"role": "model"}), "candidate without content", True),
        (candidate(content=None), "candidate without content", True),
        (candidate(TAP, finishReason=None), "", False),
        (candidate(TAP, finishReason="FINISH_REASON_UNSPECIFIED"), "", False),
        (candidate(TAP, finishReason="TIRED"), "", False),
        (candidate(finishReason="OTHER"), "", True),
        (candidate(finishReason="MALFORMED_FUNCTION_CALL"), "", True),
        ({"error": {"code": 503, "message": "overloaded"}, **candidate(TAP)}, "overloaded", True),
        ({"usageMetadata": {"promptTokenCount": 1}}, "", True),
        ({"candidates": []}, "", True),
        ({"candidates": "none"}, "", True),
        ([], "", True),
    ],
)
def test_what_is_no_whole_answer_is_no_prediction(
    shown: Shown, answer: Any, said: str, transient: bool
) -> None:
    with pytest.raises(CallError) as caught:
        ask(shown.request, GoogleGenAI(answer=answer))
    assert said in str(caught.value)
    assert caught.value.transient == transient


def test_thoughts_are_not_in_the_answer(shown: Shown) -> None:
    found = ask(shown.request, GoogleGenAI(answer=candidate(THOUGHT, TAP)))
    assert (found.delivery, found.text) == ("ok", "TAP")


@pytest.mark.parametrize("first", [{"index": 0}, {}])
def test_the_candidate_with_index_0_is_the_answer(shown: Shown, first: dict[str, int]) -> None:
    [one], [two] = (candidate({"text": text})["candidates"] for text in "ab")
    answer = {"candidates": [two | {"index": 1}, one | first]}
    assert ask(shown.request, GoogleGenAI(answer=answer)).text == "a"


def test_a_call_that_is_given_up_leaves_a_usable_client(shown: Shown) -> None:
    with running(GoogleGenAI(), [Fault(hang=True)]) as server:
        model = gemini(server.url)

        async def run() -> Sequence[Completion]:
            prepared = model.prepare(shown.request)
            given_up = asyncio.create_task(model.generate([prepared], PARAMS))
            while not server.asked:
                await asyncio.sleep(0.01)
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            return await model.generate([prepared], PARAMS)

        [answer] = closed_after(model, run())
    assert answer.text == "\n".join(shown.seen())


def test_other_media_have_another_key(shown: Shown, tmp_path: Path) -> None:
    model = gemini("http://127.0.0.1:9")
    other = Shown(tmp_path).write(seed=1)
    assert model.prepare(shown.request).key == model.prepare(shown.request).key
    assert model.prepare(shown.request).key != model.prepare(other.request).key
