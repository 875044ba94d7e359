"""Wilson's interval against SciPy's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.metrics.intervals import share, wilson


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_the_interval_is_scipys(counts: tuple[int, int]) -> None:
    from scipy.stats import binomtest

    found = wilson(*counts)
    wanted = binomtest(*counts).proportion_ci(method="wilson")
    assert found == pytest.approx((wanted.low, wanted.high), abs=1e-9)
    assert found is not None
    assert 0 <= found[0] <= counts[0] / counts[1] <= found[1] <= 1


def test_a_share_of_nothing_is_none() -> None:
    assert wilson(0, 0) is None
    assert share(0, 0) == {"hits": 0, "n": 0, "share": None, "ci95": None}
