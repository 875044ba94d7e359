"""Tables as values: what is in them, not how they are printed."""

from __future__ import annotations

import csv
import io
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
from rich.cells import cell_len

from omnidata.tasks.overview import Table as TextTable
from omnidata.tasks.overview import markdown_text as markdown_text  # with the other formats
from omnidata.tasks.overview import pipes
from omnidata.tasks.overview import text_markdown as text_markdown

CellUnit = Literal["share", "number", "count", "episode", "money", "p"]
"""Shares are fractions and printed as percent; `episode` is a number of a step, from 1; money is
printed to a hundredth of a cent; `p` is the p of a test."""
Mark = Literal["", "best", "drop", "gain"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers.

    Attributes:
        header: as printed.
        metric: as in `results.json`.
        unit: of its values.
        group: of the steps that are counted; empty: all of them, or the row says.
        run: the folder, in tables with a column per run.
        source: where it is published; empty for a run's own.
    """

    header: str
    metric: str
    unit: CellUnit = "share"
    group: str = ""
    run: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Head:
    """Columns under a common header."""

    header: str
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """A number.

    Attributes:
        value: None where there is nothing to count, or nothing is known.
        ci95: both ends of its interval, where there is one.
        change: from the row that the table compares with, in the value's own unit.
        mark: what a reader should see first.
        digits: how many decimals are printed; None: as many as the unit has.
    """

    value: float | None
    ci95: tuple[float, float] | None = None
    change: float | None = None
    mark: Mark = ""
    digits: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A line of a table.

    Attributes:
        labels: one per label column.
        cells: one per column.
        group: of the steps that are counted, in tables with a row per group.
        run: the folder; empty for published figures.
        source: where it is published; empty for a run's own.
    """

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    group: str = ""
    run: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        name: in one word, for files and programs.
        title: what it shows, of which task and by which profile.
        task, profile: of its own runs.
        labels: the headers of the label columns.
        heads: the columns.
        rows: the lines.
        notes: what a reader must know to read it rightly.
    """

    name: str
    title: str
    task: str
    profile: str
    labels: tuple[str, ...]
    heads: tuple[Head, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns, in order."""
        return tuple(column for head in self.heads for column in head.columns)

    def records(self) -> Iterator[dict[str, Any]]:
        """One record per number, with everything that says what it is; nothing is rounded.

        A table without numbers has one per label beside a row's first, which is its name.
        """
        for row in self.rows:
            if not self.heads:
                own = {"table": self.name, "task": self.task, "profile": self.profile}
                own |= {"row": row.labels[0], "run": row.run}
                labelled = zip(self.labels[1:], row.labels[1:], strict=True)
                for name, said in labelled:
                    yield {**own, "metric": name, "value": None if said == DASH else said}
            for column, cell in zip(self.columns, row.cells, strict=True):
                low, high = cell.ci95 or (None, None)
                source = row.source or column.source
                yield {
                    "table": self.name,
                    "task": self.task,
                    "profile": "" if source else self.profile,
                    "row": " | ".join(filter(None, row.labels)),
                    "run": row.run or column.run,
                    "source": source and f"{PUBLISHED}: {source}",
                    "group": column.group or row.group,
                    "metric": column.metric,
                    "value": cell.value,
                    "low": low,
                    "high": high,
                    "change": cell.change,
                }


_WITH_INTERVALS = frozenset(
    {"overall", "history-compounding", "by-element-size"}
    | {"ranking", "pairs", "attempts", "rollout-endings"}
)
PUBLISHED = "as published, scorer not confirmed"
LOWER_IS_BETTER = frozenset({"edit_distance", "ece", "aurc"})


def marked_best(columns: Sequence[Column], rows: Sequence[Row]) -> list[Row]:
    """The rows with the best value of each column marked, where runs differ.

    Published figures take no part: nobody knows that they were scored by the same rules.
    """
    from dataclasses import replace

    best: list[float | None] = []
    for place, column in enumerate(columns):
        found = [row.cells[place].value for row in rows if not row.source]
        values = [value for value in found if value is not None]
        choose = min if column.metric in LOWER_IS_BETTER else max
        told = len(set(values)) > 1 and column.unit in ("share", "number")
        best.append(choose(values) if told else None)
    return [
        row
        if row.source
        else replace(
            row,
            cells=tuple(
                replace(cell, mark="best") if top is not None and cell.value == top else cell
                for cell, top in zip(row.cells, best, strict=True)
            ),
        )
        for row in rows
    ]


# Numbers and tables as text for the terminal.

DASH = "-"
_SIGNS = "†‡§¶"
_WIDEST_LABEL = 28
_NARROW = 9
"""Letters of a line of a header, in a table that is wider than the terminal."""
_GAP = "  "


def number(
    value: float | None, unit: CellUnit, *, sign: bool = False, digits: int | None = None
) -> str:
    """A value as the papers print it: shares in percent, a dash for what is not defined.

    Args:
        value: in the unit.
        unit: of the value.
        sign: whether a plus is printed.
        digits: decimals of a share or a number; None: one of percent, two of others.

    Examples:
        >>> number(0.6361, "share"), number(2.3, "number"), number(2579, "count")
        ('63.6', '2.30', '2579')
        >>> number(-0.5, "number", sign=True), number(None, "share"), number(0.0371, "p")
        ('-0.50', '-', '0.037')
        >>> number(0.0195, "share", digits=2)
        '1.95'
    """
    if value is None:
        return DASH
    if unit == "count":
        return f"{value:.0f}"
    if unit == "money":
        return f"{value:.4f}"
    if unit == "p":
        return "<0.001" if value < 0.001 else f"{value:.3f}"
    if unit == "share":
        shown = f"{round(100 * value, 9):+.{1 if digits is None else digits}f}"
    else:
        shown = f"{value:+.{2 if digits is None else digits}f}"
    if not float(shown):
        return shown[1:]  # minus nothing is nothing
    return shown if sign else shown.removeprefix("+")


def change(of: Cell, unit: CellUnit) -> str:
    """The change in brackets, in points for shares; empty where there is none.

    Examples:
        >>> change(Cell(0.5, change=-0.096), "share"), change(Cell(0.5), "share")
        ('(-9.6)', '')
    """
    if of.change is None:
        return ""
    value, places = (100 * of.change, 1) if unit == "share" else (of.change, 2)
    return f"({round(value, places) + 0.0:+.{places}f})"  # 0.0 added: no -0.0


def interval(of: Cell, unit: CellUnit) -> str:
    """Both ends of the interval in brackets; empty where there is none.

    Examples:
        >>> interval(Cell(0.5, ci95=(0.4, 0.625)), "share")
        '[40.0, 62.5]'
    """
    return f"[{number(of.ci95[0], unit)}, {number(of.ci95[1], unit)}]" if of.ci95 else ""


def beside(table: Table, of: Cell, unit: CellUnit) -> str:
    """What stands next to a number: its change, or its interval in the tables that show them."""
    shows_intervals = table.name in _WITH_INTERVALS
    return change(of, unit) or (interval(of, unit) if shows_intervals else "")


def caption(table: Table) -> str:
    """The title, with the unit where there are shares."""
    shares = any(column.unit == "share" for column in table.columns)
    return f"{table.title} (%)" if shares else table.title


def signs(table: Table) -> Mapping[str, str]:
    """The sign that marks what each published source says; the last one serves all that follow."""
    sources = [row.source for row in table.rows] + [column.source for column in table.columns]
    found = [source for source in dict.fromkeys(sources) if source]
    return {source: _SIGNS[min(place, len(_SIGNS) - 1)] for place, source in enumerate(found)}


def notes(table: Table) -> list[str]:
    """What stands below a table."""
    told = [f"{sign} {source}: {PUBLISHED}." for source, sign in signs(table).items()]
    return [*told, *table.notes]


def labels(table: Table) -> list[tuple[str, ...]]:
    """The labels of each row; those of published ones bear a sign."""
    told = signs(table)
    return [
        (f"{row.labels[0]} {told[row.source]}", *row.labels[1:]) if row.source else row.labels
        for row in table.rows
    ]


def header(table: Table, head: Head) -> str:
    """The header; a published one bears a sign."""
    source = head.columns[0].source
    return f"{head.header} {signs(table)[source]}" if source else head.header


@dataclass(frozen=True, slots=True)
class _Block:
    """Columns under one header: each line's numbers, and what stands under them.

    Attributes:
        header: of the block.
        columns: lines of the headers of the columns.
        lines: per row its numbers, and under them changes or intervals, which may be empty.
        widths: of the columns.
    """

    header: str
    columns: list[list[str]]
    lines: list[tuple[list[str], list[str]]]
    widths: list[int]

    @property
    def width(self) -> int:
        """With the gap before it."""
        return sum(self.widths) + len(_GAP) * len(self.widths)


def text(table: Table, *, width: int | None) -> str:
    """The table for a terminal: columns that do not fit stand below each other.

    Args:
        table: what to print.
        width: of the terminal; None: of no terminal, the table is whole.
    """
    width = width or sys.maxsize
    wrapped = [[_wrapped(label) for label in row] for row in labels(table)]
    widths = [
        max([cell_len(name), *(cell_len(line) for row in wrapped for line in row[place])])
        for place, name in enumerate(table.labels)
    ]
    left = sum(widths) + len(_GAP) * (len(widths) - 1)
    lines = textwrap.wrap(_line_of(caption(table)), width, break_on_hyphens=False)
    blocks = _blocks(table, width - left)
    if sum(block.width for block in blocks) > width - left:
        blocks = _blocks(table, width - left, narrow=True)
    for places in bands([block.width for block in blocks], width - left):
        band = [blocks[place] for place in places]
        lines.append("")
        if any(block.header for block in band):
            lines.append(" " * left + "".join(_centred(block) for block in band))
        tall = max((len(name) for block in band for name in block.columns), default=1)
        for nth in range(tall):
            names = table.labels if nth == tall - 1 else [""] * len(widths)
            heads = [
                cell
                for block in band
                for cell in _aligned(
                    block, [_from_below(name, nth, tall) for name in block.columns]
                )
            ]
            lines.append(_line(_padded(names, widths), heads))
        lines.append("-" * cell_len(lines[-1]))
        for nth, row in enumerate(wrapped):
            cells = [(block, block.lines[nth]) for block in band]
            told = any(value != DASH for _, (values, _) in cells for value in values)
            if told or not table.rows[nth].source:
                lines += _row(row, widths, cells)
    if notes(table):
        lines.append("")
    for note in notes(table):
        lines += textwrap.wrap(note, width, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join(line.rstrip() for line in lines) + "\n"


def bands(widths: Sequence[int], room: int) -> list[list[int]]:
    """Which of the things with these widths stand beside each other, in lines that fit.

    What is wider than the room has a line of its own.

    Examples:
        >>> bands([4, 4, 4, 20, 4], 10)
        [[0, 1], [2], [3], [4]]
    """
    found: list[list[int]] = [[]]
    taken = 0
    for place, width in enumerate(widths):
        if found[-1] and taken + width > room:
            found.append([])
            taken = 0
        found[-1].append(place)
        taken += width
    return found


def _blocks(table: Table, room: int, *, narrow: bool = False) -> list[_Block]:
    """The columns under each header; what is wider than the room stands under it more than once."""
    blocks, start = [], 0
    heads = [
        part
        for head in table.heads
        for part in ([head] if head.header else [Head("", (each,)) for each in head.columns])
    ]
    for head in heads:
        end = start + len(head.columns)
        whole = _block(table, head, start, end, narrow=narrow)
        for places in bands([wide + len(_GAP) for wide in whole.widths], room):
            part = Head(head.header, head.columns[places[0] : places[-1] + 1])
            first, last = start + places[0], start + places[-1] + 1
            blocks.append(_block(table, part, first, last, narrow=narrow))
        start = end
    return blocks


def _block(table: Table, head: Head, start: int, end: int, *, narrow: bool = False) -> _Block:
    """The columns from `start` to `end`; if narrow, their names have several lines."""
    units = [column.unit for column in head.columns]
    lines = []
    for row in table.rows:
        cells = list(zip(row.cells[start:end], units, strict=True))
        lines.append(
            (
                [number(cell.value, unit, digits=cell.digits) for cell, unit in cells],
                [beside(table, cell, unit) for cell, unit in cells],
            )
        )
    columns = [
        textwrap.wrap(name, _NARROW, break_long_words=False) if narrow and name else [name]
        for name in (_line_of(column.header) for column in head.columns)
    ]
    widths = [
        max([4, *map(len, name), *(len(cells[place]) for pair in lines for cells in pair)])
        for place, name in enumerate(columns)
    ]
    above = _line_of(header(table, head))
    lack = cell_len(above) - (sum(widths) + len(_GAP) * (len(widths) - 1))
    widths[0] += max(0, lack)
    return _Block(above, columns, lines, widths)


def _from_below(name: Sequence[str], nth: int, tall: int) -> str:
    """Return line `nth` of a header that ends in line `tall` - 1, above the numbers."""
    at = nth - (tall - len(name))
    return name[at] if at >= 0 else ""


def _row(
    row: Sequence[Sequence[str]],
    widths: Sequence[int],
    band: Sequence[tuple[_Block, tuple[list[str], list[str]]]],
) -> list[str]:
    tall = max(len(lines) for lines in row)
    found = []
    values = [cell for block, (above, _) in band for cell in _aligned(block, above)]
    below = [cell for block, (_, under) in band for cell in _aligned(block, under)]
    if any(cell.strip() for cell in below):
        tall = max(tall, 2)
    for nth in range(tall):
        texts = [lines[nth] if nth < len(lines) else "" for lines in row]
        cells = [values, below][nth] if nth < 2 else []
        found.append(_line(_padded(texts, widths), cells))
    return found


def _wrapped(label: str) -> list[str]:
    return textwrap.wrap(_line_of(label), _WIDEST_LABEL) or [""]


def _line_of(text: str) -> str:
    return " ".join(text.splitlines())


def _padded(texts: Sequence[str], widths: Sequence[int]) -> list[str]:
    """Left-aligned; a Chinese character is two columns wide."""
    return [each + " " * (wide - cell_len(each)) for each, wide in zip(texts, widths, strict=True)]


def _aligned(block: _Block, cells: Sequence[str]) -> list[str]:
    return [each.rjust(wide) for each, wide in zip(cells, block.widths, strict=True)]


def _centred(block: _Block) -> str:
    inner = block.width - len(_GAP)
    before = (inner - cell_len(block.header)) // 2
    after = inner - cell_len(block.header) - before
    return _GAP + " " * before + block.header + " " * after


def _line(labels: Sequence[str], cells: Sequence[str]) -> str:
    return _GAP.join([*labels, *cells])


# Tables as Markdown, LaTeX, CSV and JSON.

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
    "✓": r"$\checkmark$",
    "✗": r"$\times$",
    "²": r"$^2$",
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
    lines = [f"### {markdown_text(caption(table))}", "", pipes(names), pipes(rule)]
    for own, cells in zip(labels(table), _cells(table, _md_cell), strict=True):
        lines.append(pipes([*map(markdown_text, own), *cells]))
    for note in notes(table):
        lines += ["", markdown_text(note)]
    return "\n".join(lines) + "\n"


def _md_cell(table: Table, cell: Cell, place: int) -> str:
    unit = table.columns[place].unit
    value, other = number(cell.value, unit, digits=cell.digits), beside(table, cell, unit)
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
    value = number(cell.value, unit, digits=cell.digits)
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
    for row in found["rows"]:
        for cell in row["cells"]:
            if cell["digits"] is None:
                del cell["digits"]
    return found


def text_latex(table: TextTable) -> str:
    """A table of texts as a `table` of booktabs; the first column is a label."""
    spec = "l" + "r" * (len(table.header) - 1)
    rows = [_ampersands([*map(tex, row)]) for row in (table.header, *table.rows)]
    lines = [
        PREAMBLE,
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{tex(table.title)}.}}",
        r"\begin{tabular}{@{}" + spec + "@{}}",
        *(r"\toprule", rows[0], r"\midrule", *rows[1:], r"\bottomrule"),
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines)


# Texts of data and models inside CSV: what reads it is not to obey.

_FORMULA = ("=", "+", "-", "@")


def csv_text(fields: Sequence[str], records: Iterable[Mapping[str, Any]]) -> str:
    """Records as CSV, a line each below the header.

    A text that a spreadsheet would take for a formula gets an apostrophe before it, as
    spreadsheets themselves write it; numbers stay as they are.

    Args:
        fields: the columns, in order.
        records: with these keys, or some of them.

    Examples:
        >>> print(csv_text(["app", "change"], [{"app": "=1+1", "change": -0.5}]), end="")
        app,change
        '=1+1,-0.5
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, fields, lineterminator="\n")
    writer.writeheader()
    for record in records:
        writer.writerow({name: _harmless(value) for name, value in record.items()})
    return out.getvalue()


def _harmless(value: Any) -> Any:
    """The value, if a text then as one."""
    if not isinstance(value, str):
        return value
    text = value.replace("\r", "\\r")  # which csv does not quote, and readers take for a line's end
    # Spreadsheets pass over blanks before a formula.
    return f"'{text}" if value.lstrip().startswith(_FORMULA) else text
