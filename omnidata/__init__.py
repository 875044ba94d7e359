"""omnidata: offline, step-level, multimodal datasets and evaluation for GUI agents.

Examples:
    >>> import omnidata
    >>> omnidata.Action("tap", count=2).label
    'DOUBLE_TAP'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from omnidata.loaders.hooks import register_on_import

if TYPE_CHECKING:
    from omnidata.actions import Action
    from omnidata.errors import OmnidataError
    from omnidata.files import following
    from omnidata.loaders.builders import load_dataset
    from omnidata.loaders.decoding import decode
    from omnidata.loaders.hooks import register
    from omnidata.run.evaluate import evaluate
    from omnidata.run.scoring import score
    from omnidata.tasks import get_task
    from omnidata.types import Step

__all__ = [
    "Action",
    "OmnidataError",
    "Step",
    "decode",
    "evaluate",
    "following",
    "get_task",
    "load_dataset",
    "register",
    "score",
]

_HOMES = {
    "Action": "omnidata.actions",
    "OmnidataError": "omnidata.errors",
    "Step": "omnidata.types",
    "decode": "omnidata.loaders.decoding",
    "evaluate": "omnidata.run.evaluate",
    "following": "omnidata.files",
    "get_task": "omnidata.tasks",
    "load_dataset": "omnidata.loaders.builders",
    "register": "omnidata.loaders.hooks",
    "score": "omnidata.run.scoring",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used: `import omnidata` itself stays cheap."""
    if name not in _HOMES:
        raise AttributeError(f"module 'omnidata' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


register_on_import()
