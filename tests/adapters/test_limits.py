"""Counts of clips, tracks and media that a request may not exceed."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from omnidata.adapters.base import Capabilities
from omnidata.adapters.media_budget import excess, lacking
from omnidata.types import MediaRef, Message, Modality, Part

KINDS: tuple[Modality, ...] = ("image", "video", "audio")
LIMIT = st.none() | st.integers(0, 4)


def part(kind: Modality) -> Part:
    return Part(kind, media=MediaRef(kind, Path(), kind), role=kind)


@given(
    kinds=st.lists(st.sampled_from(KINDS), max_size=8),
    videos=LIMIT,
    audios=LIMIT,
    most=LIMIT,
    native=st.booleans(),
)
def test_what_is_kept_fits_and_is_the_last_of_its_kind(
    kinds: list[Modality], videos: int | None, audios: int | None, most: int | None, native: bool
) -> None:
    capabilities = Capabilities(
        video="native" if native else "frames",
        frames=2,
        max_videos=videos,
        max_audios=audios,
        max_media=most,
    )
    over = excess([part(kind) for kind in kinds], capabilities)
    kept = [number for number in range(len(kinds)) if number not in over]
    count = {kind: sum(kinds[number] == kind for number in kept) for kind in KINDS}
    weight = sum(count.values()) + (0 if native else count["video"])
    assert most is None or weight <= most
    assert audios is None or count["audio"] <= audios
    assert videos is None or not native or count["video"] <= videos
    for kind in KINDS:
        numbers = [number for number, has in enumerate(kinds) if has == kind]
        assert [n for n in numbers if n in kept] == numbers[len(numbers) - count[kind] :]


@given(kinds=st.lists(st.sampled_from(KINDS), max_size=8))
def test_without_limits_nothing_is_left_out(kinds: list[Modality]) -> None:
    assert excess([part(kind) for kind in kinds], Capabilities()) == {}


def test_what_does_not_fit_is_named() -> None:
    voice = Part("audio", media=MediaRef("audio", Path(), "v"), role="voice")
    said = lacking((Message("user", (part("audio"), voice)),), Capabilities(max_audios=1))
    assert said == "the model takes no more than 1 track, which leaves out audio"
