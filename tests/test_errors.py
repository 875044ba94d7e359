"""Errors of other processes are what they were."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from omnidata.errors import CallError, DataError, MediaError, MissingMediaError, OmnidataError

ANSWERS: dict[str, Any] = {"where": "a.csv:3", "expected": "3 columns", "remedy": "add one"}


@pytest.mark.parametrize(
    "error",
    [
        DataError("2 columns", **ANSWERS),
        MediaError("2 columns", **ANSWERS, fault="changed"),
        MissingMediaError("2 columns", **ANSWERS),
        CallError("2 columns", **ANSWERS, retry_after=3.0, hopeless=True),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_comes_out_of_another_process_whole(error: OmnidataError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error) and vars(copy) == vars(error)
