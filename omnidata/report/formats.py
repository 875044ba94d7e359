"""Tables as Markdown, LaTeX, CSV and JSON."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from omnidata.report.printing import beside, caption, header, labels, notes, number
from omnidata.report.tables import Cell, Table
from omnidata.run.escaping import csv_text, markdown_text

_TEX = {
    "\\": r"\textbackslash{}",
    **{letter: rf"\{letter}" for letter in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "[": "{[}",  # at the start of a row it would be an argument of the line break before
    "]": "{]}",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "§": r"\S{}",
    "¶": r"\P{}",
}
_MARKS_TEX = {"drop": r"\textcolor{red!75!black}", "gain": r"\textcolor{teal}"}
PREAMBLE = "% needs booktabs, xcolor and, with names that are not ASCII, a Unicode engine"


def markdown(table: Table) -> str:
    """The table for Markdown; the headers of groups stand before those of their columns."""
    heads = [
        " ".join(filter(None, (header(table, head), column.header)))
        for head in table.heads
        for column in head.columns
    ]
    names = [markdown_text(name) for name in (*table.labels, *heads)]
    rule = [":--"] * len(table.labels) + ["--:"] * len(heads)
    lines = [f"### {markdown_text(caption(table))}", "", _pipes(names), _pipes(rule)]
    for own, cells in zip(labels(table), _cells(table, _md_cell), strict=True):
        lines.append(_pipes([*map(markdown_text, own), *cells]))
    for note in notes(table):
        lines += ["", markdown_text(note)]
    return "\n".join(lines) + "\n"


def _pipes(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _md_cell(table: Table, cell: Cell, place: int) -> str:
    unit = table.columns[place].unit
    value, other = number(cell.value, unit), beside(table, cell, unit)
    if cell.mark == "best":
        value = f"**{value}**"
    elif cell.mark:
        other = f"**{other}**"
    return " ".join(filter(None, (value, other.replace("[", r"\[").replace("]", r"\]"))))


def markdown_remark(text: str) -> str:
    """A quotation, with an empty line after it."""
    return f"> {markdown_text(text)}\n"


def latex_remark(text: str) -> str:
    """A comment, which no typesetter shows; LaTeX has no place for a warning in a table."""
    return f"% {' '.join(text.splitlines())}\n"


def latex(table: Table) -> str:
    r"""A `table*` of booktabs; marks as in the paper: the best, and the worst drop, in bold.

    Text of the data is escaped; what is not ASCII is left to a Unicode engine.
    """
    wide = len(table.labels)
    spec = "l" * wide + "".join("r" * len(head.columns) for head in table.heads)
    lines = [
        PREAMBLE,
        r"\begin{table*}",
        r"\centering",
        rf"\caption{{{tex(' '.join([caption(table) + '.', *notes(table)]))}}}",
        rf"\label{{tab:{table.task}-{table.profile}-{table.name}}}",
        r"\begin{tabular}{@{}" + spec + "@{}}",
        r"\toprule",
    ]
    if any(head.header for head in table.heads):
        lines += _tex_heads(table)
    columns = [*table.labels, *(column.header for column in table.columns)]
    lines += [_ampersands([*map(tex, columns)]), r"\midrule"]
    before = None
    for row, own, cells in zip(table.rows, labels(table), _cells(table, _tex_cell), strict=True):
        if before is not None and bool(row.source) != bool(before.source):
            lines.append(r"\midrule")
        before = row
        lines.append(_ampersands([*map(tex, own), *cells]))
    lines += [r"\bottomrule", r"\end{tabular}", r"\end{table*}"]
    return "\n".join(lines) + "\n"


def _tex_heads(table: Table) -> list[str]:
    """The line of group headers and the rules below them."""
    start = len(table.labels) + 1
    cells, rules = [""] * len(table.labels), []
    for head in table.heads:
        end = start + len(head.columns) - 1
        cells.append(rf"\multicolumn{{{len(head.columns)}}}{{c}}{{{tex(header(table, head))}}}")
        rules.append(rf"\cmidrule(lr){{{start}-{end}}}")
        start = end + 1
    return [_ampersands(cells), "".join(rules)]


def _ampersands(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def tex(text: str) -> str:
    r"""The text with everything escaped that TeX would obey.

    Examples:
        >>> print(tex("50% of_{x} \\input"))
        50\% of\_\{x\} \textbackslash{}input
    """
    line = " ".join(text.splitlines())
    return "".join(_TEX.get(letter, letter) for letter in line if letter.isprintable())


def _tex_cell(table: Table, cell: Cell, place: int) -> str:
    unit = table.columns[place].unit
    value = number(cell.value, unit)
    other = tex(beside(table, cell, unit)).replace("-", "$-$")
    if cell.mark == "best":
        value = rf"\textbf{{{value}}}"
    elif cell.mark:
        other = rf"\textbf{{{_MARKS_TEX[cell.mark]}{{{other}}}}}"
    return " ".join(filter(None, ("--" if cell.value is None else value, other)))


def _cells(table: Table, shown: Callable[[Table, Cell, int], str]) -> list[list[str]]:
    return [
        [shown(table, cell, place) for place, cell in enumerate(row.cells)] for row in table.rows
    ]


def as_csv(tables: Sequence[Table]) -> str:
    """All tables as one, a line per number: fractions, unrounded, with what each number is."""
    records = [record for table in tables for record in table.records()]
    return csv_text(list(records[0]) if records else [], records)


def as_json(table: Table) -> Mapping[str, Any]:
    """The table as JSON values: fractions, unrounded."""
    found: dict[str, Any] = msgspec.to_builtins(table)
    return found
