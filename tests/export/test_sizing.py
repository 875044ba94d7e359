"""Pictures get the size that the trainer's own processor would give them."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from omnidata.errors import MediaError, UsageError
from omnidata.training.media_store import Sizing

sides = st.integers(1, 6000)
Factor = Literal[28, 32]
factors: st.SearchStrategy[Factor] = st.sampled_from([28, 32])


@given(width=sides, height=sides, factor=factors, limit=st.integers(4, 4000))
def test_it_is_the_size_that_transformers_computes(
    width: int, height: int, factor: Factor, limit: int
) -> None:
    processing = pytest.importorskip(
        "transformers.models.qwen2_vl.image_processing_qwen2_vl", reason="needs the extra `local`"
    )
    assume(max(width, height) <= 200 * min(width, height))
    low, high = 4 * factor**2, limit * factor**2
    sizing = Sizing(factor=factor, min_pixels=low, max_pixels=high)
    found = processing.smart_resize(height, width, factor, low, high)
    assert sizing.fit((width, height)) == found[::-1]


@given(width=sides, height=sides, factor=factors)
def test_a_picture_of_that_size_is_left_as_it_is(width: int, height: int, factor: Factor) -> None:
    assume(max(width, height) <= 100 * min(width, height))
    sizing = Sizing(factor=factor)
    size = sizing.fit((width, height))
    assert sizing.fit(size) == size
    assert all(side % factor == 0 for side in size)


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(MediaError, match="10 x 3000 pixels"):
        Sizing(factor=28).fit((10, 3000))
    with pytest.raises(UsageError, match="one way only"):
        Sizing(longest=1000, factor=28)
    with pytest.raises(UsageError, match="belong to --smart-resize"):
        Sizing(max_pixels=1000)
    with pytest.raises(UsageError, match="no picture has"):
        Sizing(factor=28, max_pixels=500)
    with pytest.raises(UsageError, match="no picture has"):
        Sizing(factor=28, min_pixels=10_000, max_pixels=9_000)
