"""Models of transformers on this machine: `hf:PATH_OR_ID`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnidata.adapters.hf.model import LocalModel


def load(path: str, options: Mapping[str, str]) -> LocalModel:
    """Return a checkpoint as a model.

    Args:
        path: a folder, or the name of a model that transformers finds.
        options: as given with `-M key=value`; see `options.LocalOptions`.

    Raises:
        PlatformError: the libraries of the extra `local` are missing or do not load.
        UsageError: there is no such checkpoint or option.
    """
    from omnidata.adapters.hf.model import LocalModel
    from omnidata.adapters.hf.options import parse

    return LocalModel(path, parse(options))
