"""One line of the examination."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

Extra = Literal["base", "local", "train", "openai", "gemini", "plots", "voice", "unused"]
"""The extra that brings a package; "unused" is what omnidata does without."""

Group = Extra | Literal["gpu", "key"]
"""What a line belongs to."""

State = Literal["ok", "worked round", "absent", "broken"]
_INSTALLED_ALWAYS: frozenset[Group] = frozenset({"base"})


@dataclass(frozen=True, slots=True)
class Check:
    """What was found out about one package, GPU or key.

    Attributes:
        group: what it belongs to.
        name: of the distribution, the GPU or the environment variable.
        state: "ok" loads (a key: is set); "worked round" does not load by itself, but does within
            omnidata; "absent" is not installed (a key: not set); "broken" is installed and of no
            use.
        version: as installed; empty where there is none.
        detail: what it can do, or what is wrong.
        remedy: the command that mends or installs it; empty where nothing is to be done.
    """

    group: Group
    name: str
    state: State
    version: str = ""
    detail: str = ""
    remedy: str = ""

    @property
    def fault(self) -> bool:
        """Whether it is broken, or a package that omnidata always needs is absent."""
        return self.state == "broken" or (
            self.state == "absent" and self.group in _INSTALLED_ALWAYS
        )

    def as_dict(self) -> dict[str, str]:
        """The line as a JSON object."""
        return asdict(self)
