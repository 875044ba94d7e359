"""`layout=release` sends what the released adapters send, part for part, and says what is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.adapters.media_budget import ReleaseRules, arrange
from omnidata.types import Conversation, MediaRef, Message, Modality, Part

BLOCK = "[System Instructions]\nBe an agent.\n[End System Instructions]"
SAID = "[User]: [History Screenshot]: Goal: Tap Share"
GEMINI = ReleaseRules()
MINICPM = ReleaseRules(system="block", last_only=("video", "audio"))
BAICHUAN = ReleaseRules(system="block", one_file=("video", "image", "audio"))


def medium(kind: Modality, role: str) -> Part:
    return Part(kind, media=MediaRef(kind, Path(), role), role=role)


def conversation(*left_out: str) -> Conversation:
    media = (
        Part("text", "[History Screenshot]:", role="history_screenshot"),
        medium("image", "history_screenshot"),
        medium("video", "video"),
        medium("audio", "audio"),
        medium("audio", "voice"),
        medium("image", "screenshot"),
        Part("text", "Goal: Tap Share"),
    )
    kept = tuple(part for part in media if part.kind == "text" or part.role not in left_out)
    return (Message("system", (Part("text", "Be an agent."),)), Message("user", kept))


def shown(arranged: Conversation) -> list[tuple[str, list[str]]]:
    return [
        (message.role, [part.text or part.role for part in message.parts]) for message in arranged
    ]


def test_the_papers_layout_changes_nothing() -> None:
    assert arrange(conversation(), "paper", BAICHUAN) == (conversation(), ())


def test_minicpm_gets_all_pictures_the_last_sound_and_one_text() -> None:
    arranged, dropped = arrange(conversation(), "release", MINICPM)
    media = ["history_screenshot", "video", "voice", "screenshot"]
    assert shown(arranged) == [("user", [*media, f"{BLOCK}\n\n{SAID}"])]
    assert dropped == (
        {
            "role": "audio",
            "kind": "audio",
            "dropped": "layout=release sends the last audio only",
        },
    )


@pytest.mark.parametrize(
    ("left_out", "sent"),
    [
        ((), "video"),
        (("video",), "screenshot"),
        (("video", "screenshot", "history_screenshot"), "voice"),
    ],
)
def test_baichuan_gets_one_file_and_the_receipt_says_what_it_never_sees(
    left_out: tuple[str, ...], sent: str
) -> None:
    arranged, dropped = arrange(conversation(*left_out), "release", BAICHUAN)
    assert shown(arranged) == [("user", [sent, f"{BLOCK}\n\n{SAID}"])]
    every = {"history_screenshot", "video", "audio", "voice", "screenshot"}
    assert {line["role"] for line in dropped} == every - set(left_out) - {sent}
    assert all("video before image before audio" in line["dropped"] for line in dropped)


def test_turns_of_the_user_become_one_and_stay_apart_in_its_text() -> None:
    turns = (
        Message("user", (medium("image", "before"),)),
        Message("user", (Part("text", "first"),)),
        Message("user", (medium("image", "after"), Part("text", "second"))),
    )
    arranged, _ = arrange(turns, "release", GEMINI)
    assert shown(arranged) == [("user", ["before", "after", "[User]: first\n\n[User]: second"])]


def test_a_conversation_of_media_alone_has_no_empty_text() -> None:
    arranged, _ = arrange((Message("user", (medium("image", "x"),)),), "release", GEMINI)
    assert shown(arranged) == [("user", ["x"])]


MODALITIES: tuple[Modality, ...] = ("image", "video", "audio")
TEXTS = st.text(min_size=1).map(lambda text: Part("text", text))
MEDIA = st.builds(medium, st.sampled_from(MODALITIES), st.text("abc", min_size=1, max_size=3))
PARTS = st.lists(st.one_of(TEXTS, MEDIA), max_size=8)
KINDS = st.lists(st.sampled_from(MODALITIES), unique=True).map(tuple)


@given(parts=PARTS, system=st.sampled_from(("twice", "block")), last=KINDS, one=KINDS)
def test_every_medium_is_sent_in_order_or_named_as_dropped_and_no_text_is_lost(
    parts: list[Part],
    system: Literal["twice", "block"],
    last: tuple[Modality, ...],
    one: tuple[Modality, ...],
) -> None:
    whole = (Message("system", (Part("text", "S"),)), Message("user", tuple(parts)))
    rules = ReleaseRules(system=system, last_only=last, one_file=one)
    arranged, dropped = arrange(whole, "release", rules)
    media = [part.role for part in parts if part.media]
    sent = [part.role for message in arranged for part in message.parts if part.media]
    assert sorted(sent + [line["role"] for line in dropped]) == sorted(media)
    left = iter(media)
    assert all(role in left for role in sent)  # in the order they had
    text = " ".join(part.text for part in parts if part.text)
    assert not text or arranged[-1].parts[-1].text.endswith(f"[User]: {text}")
    assert arranged[-1].role == "user"
