"""Where the code of an adapter failed."""

from __future__ import annotations

import inspect
import traceback
from types import FunctionType

from omnidata.adapters.base import Model
from omnidata.errors import AdapterError
from omnidata.types import Adapter


def slip(adapter: Adapter, error: Exception, method: str) -> AdapterError:
    """What an error that is none of ours says of the adapter that raised it.

    Args:
        adapter: the model; anybody's code.
        error: what it raised, or what is wrong with what it gave.
        method: which of its methods was called.
    """
    return AdapterError(
        f"the adapter failed ({type(error).__name__}: {error})",
        where=_place(adapter, error, method),
        remedy=f"mend the code of {adapter.name}; the same command goes on",
    )


def _place(adapter: Adapter, error: Exception, method: str) -> str:
    """The last line of the adapter's own code; where there is none, the method's first."""
    files = {
        value.__code__.co_filename
        for owner in type(adapter).__mro__
        if owner is not Model
        for value in vars(owner).values()
        if isinstance(value, FunctionType)
    }
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files
    ]
    if frames:
        return f"{frames[-1].filename}:{frames[-1].lineno}, in {frames[-1].name}"
    function = getattr(type(adapter), method, None)
    if isinstance(function, FunctionType):
        function = inspect.unwrap(function)
        code = function.__code__
        return f"{code.co_filename}:{code.co_firstlineno}, in {method}"
    return f"{adapter.name}, {method}"
