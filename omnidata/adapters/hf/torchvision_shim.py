"""torchvision beside a torch without CUDA.

transformers asks only whether torchvision is installed, and imports it. The usual Linux build is
linked against CUDA: beside a CPU-only torch its compiled operators stay away, and the import ends
in `operator torchvision::nms does not exist`. What processors need of torchvision is Python.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

from omnidata.errors import PlatformError

MISSING_OPERATOR = "operator torchvision::nms does not exist"
_SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_libraries: list[Any] = []
"""Operators live as long as the library that declares them."""


def prepare_imports() -> bool:
    """Make torchvision importable where a CUDA build of it stands beside CPU-only torch.

    To be called before the first import of transformers, peft or trl. Nothing happens where
    torchvision works or is not installed. Elsewhere the two operators that torchvision asks for at
    import are declared, without code behind them: the Python of torchvision works, and its compiled
    functions, which no processor of ours calls, say that they are not there.

    Returns:
        Whether operators were declared, now or before.

    Raises:
        PlatformError: torchvision is installed and cannot be loaded; transformers could not either.
    """
    if "torchvision" in sys.modules or find_spec("torchvision") is None:
        return bool(_libraries)
    try:
        _import()
    except (ImportError, OSError, RuntimeError) as error:
        if not (MISSING_OPERATOR in str(error) and _cpu_only()):
            raise _unusable(error) from error
        _declare()
        try:
            _import()
        except (ImportError, OSError, RuntimeError) as again:
            raise _unusable(again) from again
    return bool(_libraries)


def _import() -> None:
    try:
        import torchvision  # noqa: F401  # whether it loads is the question
    except BaseException:
        # A failed import leaves the submodules that came before the failure.
        for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
            del sys.modules[name]
        raise


def _cpu_only() -> bool:
    """Whether torch has no GPU code; elsewhere a missing operator means a torchvision for another.

    There the mistake is not to be hidden.
    """
    import torch

    return torch.version.cuda is None and torch.version.hip is None


def _declare() -> None:
    import torch

    if not _libraries:
        library = torch.library.Library("torchvision", "DEF")  # type: ignore[no-untyped-call]  # theirs has no types
        for name in ("nms", "qnms"):
            library.define(name + _SCHEMA)  # type: ignore[no-untyped-call]  # theirs has no types
        _libraries.append(library)


def _unusable(error: Exception) -> PlatformError:
    return PlatformError(
        f"torchvision cannot be loaded ({type(error).__name__}: {error}), and transformers "
        "imports it where it is installed",
        expected="the build of torchvision that was made for this torch",
        remedy="`omnidata doctor` prints the command that mends it",
    )
