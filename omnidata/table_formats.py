"""Tables as text for the terminal, Markdown, LaTeX, CSV and JSON, and texts of data within these.

Names and labels come from unvetted data: readers of a format must not obey them.
"""

from __future__ import annotations

import csv
import io
import re
import sys
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import msgspec
from rich.cells import cell_len

from omnidata.table import DASH, Head, Table, TextTable

# The terminal.

_GAP = "  "
_WIDEST_LABEL = 28
_NARROW = 9
"""Letters of a line of a header, in a table that is wider than the terminal."""
_LONGEST = 60
"""Letters of a text; longer ones are cut."""
_SHORTEST = 8
"""Letters that folded labels keep."""
_READABLE = 18
"""Letters that labels keep that are folded to have the table in one part."""
_SHORT = {"episodes": "ep."}
"""Headers where space is short."""
_RANGE = re.compile(r"^(-?[\d.]+) - (-?[\d.]+)$")


class Line(NamedTuple):
    """A line of a table in a terminal, with its role."""

    text: str
    role: Literal["title", "header", "row"] = "row"


@dataclass(slots=True)
class _Strip:
    header: list[str]
    cells: list[list[str]]
    width: int
    left: bool = False


def _strip(
    header: list[str], cells: list[list[str]], *, left: bool = False, least: int = 0
) -> _Strip:
    widths = (cell_len(line) for lines in (header, *cells) for line in lines)
    return _Strip(header, cells, max(least, *widths), left)


def _join(
    strips: Sequence[_Strip], cells: Sequence[Sequence[str]], gap: str, *, bottom: bool = False
) -> list[str]:
    tall = max(map(len, cells))
    lines = []
    for nth in range(tall):
        texts = []
        for strip, cell in zip(strips, cells, strict=True):
            at = nth - (tall - len(cell)) if bottom else nth
            text = cell[at] if 0 <= at < len(cell) else ""
            texts.append(_pad(text, strip.width, left=strip.left))
        lines.append(gap.join(texts))
    return lines


def _pad(text: str, width: int, *, left: bool = True) -> str:
    pad = " " * (width - cell_len(text))  # a Chinese character is two columns wide
    return text + pad if left else pad + text


def _bands(widths: Sequence[int], room: int) -> list[list[int]]:
    """Return which things of these widths stand beside each other, in lines that fit.

    A thing that is wider than the room has a line of its own.

    Examples:
        >>> _bands([4, 4, 4, 20, 4], 10)
        [[0, 1], [2], [3], [4]]
    """
    found: list[list[int]] = [[]]
    used = 0
    for place, width in enumerate(widths):
        if found[-1] and used + width > room:
            found.append([])
            used = 0
        found[-1].append(place)
        used += width
    return found


def text(table: Table, *, width: int | None) -> str:
    """Return a table of runs for a terminal: columns that do not fit stand below each other.

    Args:
        table: the table.
        width: of the terminal; None for a whole table.
    """
    width = width or sys.maxsize
    shown = [[_wrap_label(label) for label in labels] for labels in table.row_labels()]
    labels = [
        _strip([name], [row[place] for row in shown], left=True)
        for place, name in enumerate(table.labels)
    ]
    left = sum(each.width for each in labels) + len(_GAP) * (len(labels) - 1)
    blocks = _blocks(table, width - left)
    if sum(map(_size, blocks)) > width - left:
        blocks = _blocks(table, width - left, narrow=True)
    lines = textwrap.wrap(_line_of(table.caption), width, break_on_hyphens=False)
    for places in _bands([*map(_size, blocks)], width - left):
        band = [blocks[place] for place in places]
        strips = [*labels, *(each for block in band for each in block.strips)]
        lines.append("")
        if any(block.header for block in band):
            lines.append(" " * left + "".join(map(_centre, band)))
        lines += _join(strips, [each.header for each in strips], _GAP, bottom=True)
        lines.append("-" * (left + sum(map(_size, band))))
        for nth, row in enumerate(table.rows):
            cells = [each.cells[nth] for each in strips]
            if not row.source or any(cell[0] != DASH for cell in cells[len(labels) :]):
                lines += _join(strips, cells, _GAP)
    notes = table.footnotes()
    lines += [""] * bool(notes)
    for note in notes:
        lines += textwrap.wrap(note, width, subsequent_indent=_GAP, break_on_hyphens=False)
    return "\n".join(line.rstrip() for line in lines)


@dataclass(frozen=True, slots=True)
class _Block:
    header: str
    strips: list[_Strip]


def _size(block: _Block) -> int:
    return sum(each.width + len(_GAP) for each in block.strips)


def _blocks(table: Table, room: int, *, narrow: bool = False) -> list[_Block]:
    """Return the columns under each header; a header with too many has several blocks."""
    values = [table.values(row) for row in table.rows]
    strips = []
    for place, column in enumerate(table.columns):
        name = _line_of(column.header)
        names = textwrap.wrap(name, _NARROW, break_long_words=False) if narrow else []
        cells = [[each for each in row[place] if each] or [""] for row in values]
        strips.append(_strip(names or [name], cells, least=4))
    blocks = []
    for head in table.heads:
        own, strips = strips[: len(head.columns)], strips[len(head.columns) :]
        parts = [[place] for place in range(len(own))]
        if head.header:
            whole = _widen(_line_of(table.head_text(head)), own)
            parts = _bands([each.width + len(_GAP) for each in whole], room)
        for part in parts:
            columns = tuple(head.columns[place] for place in part)
            header = _line_of(table.head_text(Head(head.header, columns)))
            blocks.append(_Block(header, _widen(header, [own[place] for place in part])))
    return blocks


def _widen(header: str, strips: list[_Strip]) -> list[_Strip]:
    lack = cell_len(header) + len(_GAP) - _size(_Block(header, strips))
    first = strips[0]
    return [replace(first, width=first.width + max(0, lack)), *strips[1:]]


def _wrap_label(label: str) -> list[str]:
    return textwrap.wrap(_line_of(label), _WIDEST_LABEL) or [""]


def _line_of(text: str) -> str:
    return " ".join(text.splitlines())


def _centre(block: _Block) -> str:
    free = _size(block) - len(_GAP) - cell_len(block.header)
    before = free // 2
    return _GAP + " " * before + block.header + " " * (free - before)


def lines(table: TextTable, width: int, *, together: int = 1) -> Iterator[Line]:
    """Yield the lines of a table of texts for a terminal.

    A table that is wider than the terminal gets narrow gaps and headers of several lines. If that
    is not enough, its labels are folded, or it is printed in parts, each with the labels.

    Args:
        table: the table.
        width: of the terminal.
        together: so many heads stay in one part, if they fit.
    """
    label, blocks = _text_strips(table, compact=False)
    edge, gap = _GAP, f"{_GAP} "
    everything = [label, *(each for block in blocks for each in block)]
    compact = sum(each.width + len(gap) for each in everything) + 1 > width
    if compact:
        label, blocks = _text_strips(table, compact=True)
        edge, gap = "", _GAP

    def size(block: Sequence[_Strip]) -> int:
        return sum(each.width + len(gap) for each in block)

    left = label.width + 2 * len(edge)
    starts = range(0, len(blocks), together)
    wholes = [[each for block in blocks[at : at + together] for each in block] for at in starts]
    if left + max(map(size, wholes), default=0) <= width:
        blocks = wholes
    sizes = [size(block) for block in blocks]
    excess, over = (left + most - width for most in (max(sizes, default=0), sum(sizes)))
    if excess > 0:
        label = _fold_labels(label, max(_SHORTEST, label.width - excess))
    elif 0 < over <= label.width - _READABLE:
        label = _fold_labels(label, label.width - over)
    for nth, places in enumerate(_bands(sizes, width - label.width - 2 * len(edge))):
        strips = [label, *(each for place in places for each in blocks[place])]
        wide = size(strips) - len(gap) + 2 * len(edge)
        if nth and compact:
            yield Line("")
        if table.title and not nth:
            for line in _fold(plain(table.title), wide):
                yield Line(_pad(line, wide), "title")
        outside = [] if compact else [Line(" " * wide)]
        yield from outside
        for line in _join(strips, [each.header for each in strips], gap, bottom=True):
            yield Line(f"{edge}{line}{edge}", "header")
        yield Line("─" * wide if compact else f" {'─' * (wide - 2)} ")
        for row in range(len(table.rows)):
            for line in _join(strips, [each.cells[row] for each in strips], gap):
                yield Line(f"{edge}{line}{edge}")
        yield from outside


def _text_strips(table: TextTable, *, compact: bool) -> tuple[_Strip, list[list[_Strip]]]:

    def cells(texts: Iterable[str]) -> list[list[str]]:
        cut = (_cell(each) for each in texts)
        return [[_RANGE.sub("\\1–\\2", each) if compact else each] for each in cut]

    values = [table.values(row) for row in table.rows]
    blocks, start = [], 0
    for head in table.heads:
        block = []
        for place, column in enumerate(head.columns, start):
            name = _one_line(column.header)
            names = _SHORT.get(name, name).split(" ") if compact else [name]
            block.append(_strip(names, cells(row[place][0] for row in values)))
        start += len(block)
        blocks.append(block)
    labels = cells(row.labels[0] for row in table.rows)
    return _strip([_one_line(table.labels[0])], labels, left=True), blocks


def _fold_labels(strip: _Strip, width: int) -> _Strip:
    header, *cells = (_fold(lines[0], width) for lines in (strip.header, *strip.cells))
    return _Strip(header, cells, min(strip.width, width), strip.left)


def _fold(text: str, width: int) -> list[str]:
    from rich.console import Console
    from rich.text import Text

    folded = Text(text).wrap(Console(), width, overflow="fold")
    return [line.plain.rstrip() for line in folded] or [""]


def _one_line(text: str) -> str:
    return plain(text).replace("\n", "\\n")


def _cell(text: str) -> str:
    line = _one_line(text)
    return line if len(line) <= _LONGEST else line[: _LONGEST - 3] + "..."


def plain(text: str) -> str:
    r"""Return the text with control characters and lone surrogates escaped.

    Examples:
        >>> print(plain("TED" + chr(27) + "[2J"))
        TED\x1b[2J
    """
    if text.isprintable():
        return text
    return "".join(
        letter
        if letter.isprintable() or letter == "\n"
        else letter.encode("unicode_escape", "surrogatepass").decode()
        for letter in text
    )


# Markdown.

_MARKDOWN = frozenset("\\`*_{}[]<>|#!~&$")
_UNSEEN = frozenset({"Cc", "Cf", "Cs"})
_JOINERS = frozenset("\u200c\u200d")


def markdown(table: Table, *, level: int = 3) -> str:
    """Return the table for Markdown; common headers stand before those of their columns.

    Args:
        table: the table.
        level: of the heading.
    """
    heads = [
        " ".join(filter(None, (table.head_text(head), column.header)))
        for head in table.heads
        for column in head.columns
    ]
    names = [markdown_text(name) for name in (*table.labels, *heads)]
    rule = [":--"] * len(table.labels) + ["--:"] * len(heads)
    lines = [
        f"{'#' * level} {markdown_text(table.caption)}",
        "",
        _pipes(names),
        _pipes(rule) if table.name else f"|{'|'.join(['---', *['---:'] * len(heads)])}|",
    ]
    for row, own in zip(table.rows, table.row_labels(), strict=True):
        cells = []
        columns = zip(table.columns, row.cells, table.values(row), strict=True)
        for column, cell, (value, beside) in columns:
            if column.unit == "text":
                value = markdown_text(value)
            if cell.mark == "best":
                value = f"**{value}**"
            elif cell.mark:
                beside = f"**{beside}**"
            beside = beside.replace("[", r"\[").replace("]", r"\]")
            cells.append(f"{value} {beside}" if beside else value)
        lines.append(_pipes([*map(markdown_text, own), *cells]))
    for note in table.footnotes():
        lines += ["", markdown_text(note)]
    return "\n".join(lines)


def _pipes(cells: Sequence[str]) -> str:
    """Return a line of a Markdown table."""
    return f"| {' | '.join(cells)} |"


def pipe_table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table of cells that are Markdown already; the first row is the header."""
    head, *rest = [
        _pipes([escape_invisible(cell).replace("|", "\\|") for cell in row]) for row in rows
    ]
    return "\n".join([head, "|---" * len(rows[0]) + "|", *rest])


def markdown_remark(text: str) -> str:
    """Return the text as a quotation in Markdown."""
    return f"> {markdown_text(text)}"


def markdown_text(text: str) -> str:
    r"""Return the text on one line, with everything escaped that Markdown or HTML would obey.

    Examples:
        >>> print(markdown_text("a|b *<c>"))
        a\|b \*\<c\>
        >>> print(markdown_text("gnp" + chr(0x202E) + ".exe"))
        gnp\\u202e.exe
    """
    line = escape_invisible(" ".join(text.splitlines()))
    return "".join(f"\\{letter}" if letter in _MARKDOWN else letter for letter in line)


def markdown_code(text: str) -> str:
    """Return the text as code within a line, whatever backticks it has (CommonMark, section 6.1).

    Examples:
        >>> markdown_code("ls"), markdown_code("a`b")
        ('`ls`', '`` a`b ``')
    """
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence, pad = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def escape_invisible(text: str) -> str:
    r"""Return the text with controls and invisible characters escaped.

    A mark that turns the direction of reading makes a name look like another. The two joiners stay:
    several scripts and many emoji are written with them.

    Examples:
        >>> print(escape_invisible("a" + chr(0x202E) + chr(7) + "é"))
        a\u202e\u0007é
    """
    return "".join(
        (f"\\u{ord(letter):04x}" if ord(letter) < 0x10000 else f"\\U{ord(letter):08x}")
        if unicodedata.category(letter) in _UNSEEN and letter not in _JOINERS
        else letter
        for letter in text
    )


# LaTeX.

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
_PREAMBLE = "% needs booktabs, xcolor and, with names that are not ASCII, a Unicode engine"


def latex(table: Table) -> str:
    r"""Return the table in booktabs; marks as in the paper: the best, and the worst drop, in bold.

    A named table is a `table*` with a label. Text of the data is escaped; letters that are not
    ASCII are left to a Unicode engine.
    """
    kind = "table*" if table.name else "table"
    spec = "l" * len(table.labels) + "r" * len(table.columns)
    lines = [
        _PREAMBLE,
        rf"\begin{{{kind}}}",
        r"\centering",
        rf"\caption{{{tex(' '.join([table.caption + '.', *table.footnotes()]))}}}",
    ]
    if table.name:
        lines.append(rf"\label{{tab:{table.task}-{table.profile}-{table.name}}}")
    lines += [r"\begin{tabular}{@{}" + spec + "@{}}", r"\toprule"]
    if any(head.header for head in table.heads):
        lines += _tex_heads(table)
    headers = [*table.labels, *(column.header for column in table.columns)]
    lines += [_ampersands([*map(tex, headers)]), r"\midrule"]
    before = None
    for row, own in zip(table.rows, table.row_labels(), strict=True):
        if before is not None and bool(row.source) != bool(before.source):
            lines.append(r"\midrule")
        before = row
        cells = []
        columns = zip(table.columns, row.cells, table.values(row), strict=True)
        for column, cell, (value, beside) in columns:
            if column.unit == "text":
                value = tex(value)
            elif cell.value is None:
                value = "--"
            beside = tex(beside).replace("-", "$-$")
            if cell.mark == "best":
                value = rf"\textbf{{{value}}}"
            elif cell.mark:
                beside = rf"\textbf{{{_MARKS_TEX[cell.mark]}{{{beside}}}}}"
            cells.append(f"{value} {beside}" if beside else value)
        lines.append(_ampersands([*map(tex, own), *cells]))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", rf"\end{{{kind}}}"])


def _tex_heads(table: Table) -> list[str]:
    start = len(table.labels) + 1
    cells, rules = [""] * len(table.labels), []
    for head in table.heads:
        end = start + len(head.columns) - 1
        name = tex(table.head_text(head))
        cells.append(rf"\multicolumn{{{len(head.columns)}}}{{c}}{{{name}}}")
        rules.append(rf"\cmidrule(lr){{{start}-{end}}}")
        start = end + 1
    return [_ampersands(cells), "".join(rules)]


def _ampersands(cells: Sequence[str]) -> str:
    row = " & ".join(cells)
    # A star at the start would belong to the line break of the row before.
    return ("{}" if row.startswith("*") else "") + row + r" \\"


def latex_remark(text: str) -> str:
    """Return the text as a comment; LaTeX has no place for a warning in a table."""
    return f"% {' '.join(text.splitlines())}"


def tex(text: str) -> str:
    r"""Return the text with everything escaped that TeX would obey.

    Examples:
        >>> print(tex("50% of_{x} \\input"))
        50\% of\_\{x\} \textbackslash{}input
    """
    line = " ".join(text.splitlines())
    return "".join(_TEX.get(letter, letter) for letter in line if letter.isprintable())


# CSV and JSON.

_FORMULA = ("=", "+", "-", "@")


def as_csv(tables: Sequence[Table]) -> str:
    """Return all tables as one, a line per number: unrounded fractions, each with its meaning."""
    records = [record for table in tables for record in table.records()]
    return csv_text(list(records[0]) if records else [], records)


def csv_text(fields: Sequence[str], records: Iterable[Mapping[str, Any]]) -> str:
    """Return records as CSV, a line each below the header.

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
    if not isinstance(value, str):
        return value
    text = value.replace("\r", "\\r")  # csv does not quote it, and readers end a line there
    # Spreadsheets pass over blanks before a formula.
    return f"'{text}" if value.lstrip().startswith(_FORMULA) else text


def as_json(table: Table) -> Mapping[str, Any]:
    """Return a table of runs as JSON values: unrounded fractions."""
    found: dict[str, Any] = msgspec.to_builtins(table)
    del found["intervals"], found["legend"]
    for head in found["heads"]:
        for column in head["columns"]:
            if not column["lower_is_better"]:
                del column["lower_is_better"]
    for row in found["rows"]:
        for cell in row["cells"]:
            del cell["text"]
            if cell["digits"] is None:
                del cell["digits"]
    return found
