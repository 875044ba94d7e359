"""What decides composed tasks; equal settings and an equal pool make equal bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from omnidata.errors import UsageError
from omnidata.synth.compose.levels import Aim, Levels, aim
from omnidata.synth.compose.partial_plan import EdgeRule

MOST_TASKS = 10_000_000


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings.

    Attributes:
        seed: of everything that chance decides.
        levels: of Table 2 that every task has.
        intents: texts, one of which an intent must contain, whatever the case; empty = all.
        edges: which edges there are, see `omnidata.synth.compose.partial_plan`.
        most: subtasks of a task.
        orders: topological orders that a task lists at most; all, where there are no more.
        trajectories: of a task, each along another order; 0 = graphs alone.
        initial: categories of resources that exist before a task begins; None = files, that is all
            whose name ends with `_path`.
    """

    seed: int = 0
    levels: Levels = field(default_factory=dict)
    intents: tuple[str, ...] = ()
    edges: EdgeRule = "latest"
    most: int = 10
    orders: int = 20
    trajectories: int = 1
    initial: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        """Refuse what no task can be composed by.

        Raises:
            UsageError: a number is out of range, or no graph can have the levels.
        """
        for name, value, low in (
            ("orders", self.orders, 1),
            ("trajectories", self.trajectories, 0),
        ):
            if value < low:
                raise UsageError(
                    f"{value} {name} are asked for", where=f"--{name}", expected=f"{low} or more"
                )
        if self.trajectories > self.orders:
            raise UsageError(
                f"{self.trajectories} trajectories are asked for, and {self.orders} orders",
                where="--trajectories",
                expected="no more than orders: each goes along another one",
            )
        self.aim()

    def aim(self) -> Aim:
        """What tasks are to be like.

        Raises:
            UsageError: no graph can have the levels.
        """
        return aim(self.levels, most=self.most)

    def as_dict(self) -> Mapping[str, Any]:
        """The settings as JSON values."""
        return {**asdict(self), "levels": dict(self.levels)}
