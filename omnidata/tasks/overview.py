"""What a dataset holds, as `omnidata info` shows it: counts by tag, for every benchmark."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from omnidata.types import LoadedDataset, Task


@dataclass(frozen=True, slots=True)
class Table:
    """A table to print.

    Attributes:
        title: above it.
        header: names of the columns; "" for none.
        rows: as wide as the header.
        legend: what names of columns stand for.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    legend: Mapping[str, str] = field(default_factory=dict)


class View:
    """How many episodes and steps have which tag.

    A benchmark that has more to show overrides what it shows otherwise. An episode is labelled as
    its first step.

    Args:
        source: what the benchmark's `load` gave.
    """

    published: ClassVar[Mapping[str, str]] = {}
    """The published tables that counts can be compared with: name -> title."""
    draws: ClassVar[bool] = False
    """Whether there is a figure of its own, in place of the one that every dataset has."""

    def __init__(self, source: LoadedDataset) -> None:
        self.source = source
        self.counts = self._count()
        self.episodes: int = self.counts["total"]["episodes"]

    @classmethod
    def read(cls, task: Task, data: Path, *, strict: bool) -> LoadedDataset:
        """The dataset, as far as it can be shown; as `Task.load`."""
        return task.load(data, strict=strict)

    def _count(self) -> dict[str, Any]:
        """The counts; `total` has at least `episodes` and `steps`."""
        episodes: dict[str, Mapping[str, str]] = {}
        lengths: dict[str, int] = {}
        for step in self.source.steps:
            key = step.episode
            episodes.setdefault(key, step.tags)
            lengths[key] = lengths.get(key, 0) + 1
        tags: dict[str, dict[str, dict[str, int]]] = {name: {} for name in self.source.tags}
        for key, labels in episodes.items():
            for name, groups in tags.items():
                value = labels.get(name, "unlabelled")
                group = groups.setdefault(value, {"episodes": 0, "steps": 0})
                group["episodes"] += 1
                group["steps"] += lengths[key]
        total = {"episodes": len(episodes), "steps": len(self.source.steps)}
        return {"tags": tags, "total": total}

    def as_dict(self) -> dict[str, Any]:
        """All that was counted, as JSON values by name."""
        return {"counts": self.counts}

    def tables(self) -> list[Table]:
        """All that was counted, as tables."""
        total = self.counts["total"]
        rows = [
            [f"{tag}: {value}", *_cells(group, total)]
            for tag, groups in self.counts["tags"].items()
            for value, group in groups.items()
        ]
        title = f"Episodes and steps of {self.source.task}"
        header = ("", "episodes", "", "steps", "")
        return [Table(title, header, [*rows, ["total", *_cells(total, total)]])]

    def remarks(self) -> list[str]:
        """What else the summary says of the steps."""
        return []

    def differences(self, table: str) -> list[str]:
        """Where the counts differ from a published table, one sentence each.

        Args:
            table: one of `published`.
        """
        raise NotImplementedError(table)

    def draw(self, path: Path) -> Mapping[str, str]:
        """Draw the figure.

        Args:
            path: the file, which `omnidata.figures.check` has let pass.

        Returns:
            Names that no font can draw -> how they are written.
        """
        raise NotImplementedError(str(path))


def share(part: int, whole: int) -> str:
    """A share in percent.

    Examples:
        >>> share(1, 3), share(0, 0)
        ('33.3 %', '-')
    """
    return f"{100 * part / whole:.1f} %" if whole else "-"


def _cells(group: Mapping[str, int], total: Mapping[str, int]) -> list[str]:
    return [
        cell
        for key in ("episodes", "steps")
        for cell in (str(group[key]), share(group[key], total[key]))
    ]


# Tables and texts of data as Markdown: what reads it is not to obey.

_MARKDOWN = frozenset("\\`*_{}[]<>|#!~&$")
_UNSEEN = frozenset({"Cc", "Cf", "Cs"})
_JOINERS = frozenset("\u200c\u200d")


def text_markdown(table: Table) -> str:
    """A table of texts as Markdown, with its title; the first column is a label."""
    rule = "|" + "|".join(["---", *["---:"] * (len(table.header) - 1)]) + "|"
    rows = [pipes([*map(markdown_text, row)]) for row in (table.header, *table.rows)]
    return "\n".join([f"### {markdown_text(table.title)}", "", rows[0], rule, *rows[1:]])


def pipes(cells: Sequence[str]) -> str:
    """A line of a table."""
    return f"| {' | '.join(cells)} |"


def markdown_text(text: str) -> str:
    r"""The text on one line, with everything escaped that Markdown or HTML would take for a sign.

    Examples:
        >>> print(markdown_text("a|b *<c>"))
        a\|b \*\<c\>
        >>> print(markdown_text("gnp" + chr(0x202E) + ".exe"))
        gnp\\u202e.exe
    """
    line = spelled_out(" ".join(text.splitlines()))
    return "".join(f"\\{letter}" if letter in _MARKDOWN else letter for letter in line)


def markdown_code(text: str) -> str:
    """The text as code within a line, whatever backticks are in it (CommonMark, section 6.1).

    Examples:
        >>> markdown_code("ls"), markdown_code("a`b")
        ('`ls`', '`` a`b ``')
    """
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, pad = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def spelled_out(text: str) -> str:
    r"""The text with its escapes in place of what controls the letters around it, and is not seen.

    A mark that turns the direction of reading makes a name look like another. The two joiners stay:
    several scripts and many emoji are written with them.

    Examples:
        >>> print(spelled_out("a" + chr(0x202E) + chr(7) + "é"))
        a\u202e\u0007é
    """
    return "".join(
        (f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}")
        if unicodedata.category(letter) in _UNSEEN and letter not in _JOINERS
        else letter
        for letter in text
    )
