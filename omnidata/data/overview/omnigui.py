"""What an OmniGUI dataset holds, as the paper's Table 7 and Figure 2 have it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from omnidata.data import overview
from omnidata.data.overview import Table, share
from omnidata.errors import counted
from omnidata.loaders.apps import DEPENDENCIES, DIMENSIONS
from omnidata.tasks.omnigui.counts import compare, count, distribution
from omnidata.types import Source


class View(overview.View):
    """Episodes and steps per app, and how they spread over languages, dimensions and levels."""

    published: ClassVar[Mapping[str, str]] = {"table7": "Table 7"}
    draws: ClassVar[bool] = True

    def __init__(self, source: Source) -> None:
        """Count."""
        super().__init__(source)
        self.spread = distribution(source.steps)

    def _count(self) -> dict[str, Any]:
        return count(self.source.steps)

    def as_dict(self) -> dict[str, Any]:
        """Table 7 and Figure 2 as JSON values."""
        return {"counts": self.counts, "distribution": self.spread}

    def tables(self) -> list[Table]:
        """Table 7 and Figure 2 as tables."""
        return [self._apps(), self._distribution()]

    def _apps(self) -> Table:
        total = self.counts["total"]
        keys = [key for key in total if key != "language"]
        rows = [
            [name, row["language"], *(str(row[key]) for key in keys)]
            for name, row in (*self.counts["apps"].items(), ("total", total))
        ]
        legend = {
            short: name.replace("_", " ")
            for name, short in (*DIMENSIONS.items(), *DEPENDENCIES.items())
            if short in keys
        }
        return Table("Episodes and steps, as in Table 7", ("app", "lang", *keys), rows, legend)

    def _distribution(self) -> Table:
        total = self.counts["total"]
        rows = []
        for axis, groups in self.spread.items():
            for name, row in groups.items():
                shares = [share(row[key], total[key]) for key in ("episodes", "steps")]
                numbers = (str(row["apps"]), str(row["episodes"]), shares[0], str(row["steps"]))
                rows.append([f"{axis}: {name}", *numbers, shares[1], _mean(row)])
        rows.append(
            ["total", "", str(total["episodes"]), "", str(total["steps"]), "", _mean(total)]
        )
        header = ("", "apps", "episodes", "", "steps", "", "steps/episode")
        return Table("Distribution, as in Figure 2", header, rows)

    def remarks(self) -> list[str]:
        """How many steps cannot be judged."""
        unusable = sum(step.action is None for step in self.source.steps)
        return [f"{counted(unusable, 'step')} without a usable target"]

    def differences(self, table: str) -> list[str]:
        """Where the counts differ from Table 7."""
        return compare(self.counts)

    def draw(self, path: Path) -> Mapping[str, str]:
        """Draw Figure 2; gives the apps that no font can draw, and how they are written."""
        from omnidata.data import plots

        return plots.draw(self.counts, self.spread, path)


def _mean(row: Mapping[str, int]) -> str:
    return f"{row['steps'] / row['episodes']:.2f}" if row["episodes"] else "-"
