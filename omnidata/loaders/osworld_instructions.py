"""What the agents of OSWorld's rollouts were asked, which the release does not keep with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from omnidata.errors import MediaError
from omnidata.loaders.json_lines import decoded
from omnidata.loaders.osworld_tree import Rollout
from omnidata.media import Budget, resolve
from omnidata.types import MediaRef

INSTRUCTION: Final = "instruction.txt"
"""What forks call the file of the task."""

_SMALL: Final = Budget(max_bytes=1024**2)


@dataclass(slots=True)
class Instructions:
    """The tasks: as a fork's line or file says them, or as OSWorld's own examples do.

    Attributes:
        examples: the release's folder `evaluation_examples/examples`, with `<domain>/<id>.json`;
            None where there is none.
        missing: rollouts whose task nobody says.
    """

    examples: Path | None = None
    missing: set[str] = field(default_factory=set)
    _known: dict[str, str] = field(default_factory=dict)

    def of(self, rollout: Rollout, row: Mapping[str, Any]) -> str:
        """What an agent was asked; empty where nobody says.

        Args:
            rollout: the folder.
            row: one of its lines.
        """
        own = row.get("instruction")
        if isinstance(own, str) and own:
            return own
        if rollout.path not in self._known:
            self._known[rollout.path] = _beside(rollout) or self._listed(rollout)
        found = self._known[rollout.path]
        if not found:
            self.missing.add(rollout.path)
        return found

    def _listed(self, rollout: Rollout) -> str:
        if self.examples is None or not rollout.domain or not rollout.example_id:
            return ""
        name = f"{rollout.domain}/{rollout.example_id}.json"
        try:
            path = resolve(MediaRef("image", self.examples, name), budget=_SMALL)
            found = decoded(path.read_bytes())
        except (MediaError, OSError):
            return ""
        text = found.get("instruction") if isinstance(found, dict) else None
        return text if isinstance(text, str) else ""


def _beside(rollout: Rollout) -> str:
    try:
        return rollout.text(INSTRUCTION).decode("utf-8").strip()
    except (MediaError, OSError, UnicodeDecodeError):
        return ""
