"""Rows are the same rows whatever file holds them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from omnidata.errors import FileError
from omnidata.loaders.row_files import head_of, read_rows
from omnidata.media import image_size

ROWS: list[dict[str, Any]] = [
    {"name": "é", "box": [1, 2.5], "inner": {"a": "x"}},
    {"name": "𝄞 line\u2028two", "box": [3, 4.0], "inner": {"a": "y", "b": 7}},
    {"name": "3", "box": [], "inner": {"a": ""}},
]

Writer = Callable[[Path, Sequence[Mapping[str, Any]]], None]


def _lines(encoding: str = "utf-8", end: str = "\n") -> Writer:
    def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
        texts = (json.dumps(row, ensure_ascii=False) + end for row in rows)
        path.write_bytes("".join(texts).encode(encoding))

    return write


def _value(wrap: Callable[[Sequence[Mapping[str, Any]]], Any], **how: Any) -> Writer:
    def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
        path.write_bytes(json.dumps(wrap(rows), **how).encode())

    return write


def _one_after_the_other(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    path.write_text("\n".join(json.dumps(row, indent=2) for row in rows), "utf-8")


def _parquet(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    names = dict.fromkeys(name for row in rows for name in row)
    table = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])
    pq.write_table(table, path, row_group_size=2)


FORMS: dict[str, tuple[str, Writer]] = {
    "lines": ("rows.jsonl", _lines()),
    "lines in .json": ("rows.json", _lines()),
    "lines in .txt": ("rows.txt", _lines()),
    "crlf": ("rows.jsonl", _lines(end="\r\n")),
    "blank lines": ("rows.json", _lines(end="\n\n \n")),
    "utf-8 with a mark": ("rows.jsonl", _lines("utf-8-sig")),
    "utf-16 with a mark": ("rows.jsonl", _lines("utf-16", "\r\n")),
    "utf-16 without a mark": ("rows.json", _lines("utf-16-le")),
    "utf-16 of the other order": ("rows.json", _lines("utf-16-be")),
    "utf-32": ("rows.jsonl", _lines("utf-32")),
    "list": ("rows.json", _value(list)),
    "list over lines": ("rows.json", _value(list, indent=1)),
    "list in .jsonl": ("rows.jsonl", _value(list)),
    "list over lines in .jsonl": ("rows.jsonl", _value(list, indent=1)),
    "data inside": ("rows.json", _value(lambda rows: {"version": 1, "data": rows}, indent=1)),
    "data inside .jsonl": ("rows.jsonl", _value(lambda rows: {"data": rows})),
    "splits": ("rows.json", _value(lambda rows: {"train": rows[:1], "test": rows[1:]})),
    "objects over lines": ("rows.json", _one_after_the_other),
    "parquet": ("rows.parquet", _parquet),
    "parquet by another name": ("rows.bin", _parquet),
    "parquet in .json": ("rows.json", _parquet),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_the_same_in_every_form(form: str, tmp_path: Path) -> None:
    name, write = FORMS[form]
    write(tmp_path / name, ROWS)
    found = list(read_rows(tmp_path / name))
    assert [line.row for line in found] == ROWS
    assert [line.number for line in found] == [0, 1, 2]
    assert len({line.where for line in found}) == 3
    assert b'"inner"' in head_of(tmp_path / name)


@given(
    rows=st.lists(
        st.fixed_dictionaries({"text": st.text(), "numbers": st.lists(st.integers(-9, 9))}),
        min_size=1,
        max_size=4,
    ),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"]),
    end=st.sampled_from(["\n", "\r\n", "\n\n"]),
    suffix=st.sampled_from([".json", ".jsonl"]),
)
def test_any_text_comes_back_from_any_encoding(
    rows: list[dict[str, Any]],
    encoding: str,
    end: str,
    suffix: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    path = tmp_path_factory.mktemp("rows") / f"rows{suffix}"
    _lines(encoding, end)(path, rows)
    assert [line.row for line in read_rows(path)] == rows


def test_one_object_in_json_is_one_row_that_stands_alone(tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text(json.dumps({"steps": [{"a": 1}]}, indent=1), "utf-8")
    (line,) = read_rows(path)
    assert line.alone
    assert line.row == {"steps": [{"a": 1}]}


@pytest.mark.parametrize(
    ("content", "where", "fault"),
    [
        (b'{"a": 1}\n{"a": \n{"a": 3}\n', ":2", "it is no JSON (column 6: Expecting value)"),
        (b'{"a": 1}\n{"a": "\xe9"}\n{"a": 3}\n', ":2", "not UTF-8 (byte 0xE9 at 7)"),
        (b'{"a": 1}\n' + '{"a": 2}\r\n'.encode("utf-16-le"), ":2", "zero bytes"),
        (b'[{"a": 1}, {"a": ', "", "no JSON (column 18"),
        (b"", "", "the file is empty"),
    ],
)
def test_a_broken_row_says_why(content: bytes, where: str, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_bytes(content)
    broken = [line for line in read_rows(path) if line.fault]
    assert broken[0].where == f"{path}{where}"
    assert fault in broken[0].fault


def test_nothing_of_a_broken_list_is_a_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('[\n{"a": 1},\n{"a": 2},\n{"a": 3}\n', "utf-8")
    [line] = read_rows(path)
    assert line.fault and not isinstance(line.row, dict)


def test_utf_16_that_breaks_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes('{"a": 1}\n'.encode("utf-16")[:-1])
    with pytest.raises(FileError, match=r"utf-16.*\n.*\n.*save the file as UTF-8"):
        list(read_rows(path))


def _png(width: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, 5)).save(file, "PNG")
    return file.getvalue()


def test_pictures_in_parquet_stay_there_until_they_are_opened(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    rows = [
        {
            "image": {"bytes": _png(7), "path": None},
            "images": [{"bytes": _png(8), "path": "a.png"}, {"bytes": _png(9), "path": "b.png"}],
            "screenshot": _png(6),
            "text": "x",
        }
    ]
    pq.write_table(pa.Table.from_pylist(rows), path)
    (line,) = read_rows(path)
    assert line.row == {"text": "x"}
    several = line.pictures["images"]
    assert isinstance(several, tuple)
    first, second = several
    assert [ref.path for ref in (first, second)] == ["a.png", "b.png"]
    assert [image_size(ref)[0] for ref in (first, second)] == [8, 9]
    for names, width in ((["image"], 7), (["nothing", "screenshot"], 6)):
        held = line.picture(names)
        assert held
        assert image_size(held)[0] == width
    assert line.picture(["images"]) is None


def test_pictures_that_parquet_only_names_are_files(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    kind = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    table = pa.table(
        {"image": pa.array([{"bytes": None, "path": "a.png"}, None], kind), "n": [1, 2]}
    )
    pq.write_table(table, path)
    assert [line.row for line in read_rows(path)] == [{"image": "a.png", "n": 1}, {"n": 2}]


def test_nulls_of_a_table_are_absent_keys(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [
        {"action": {"kind": "tap", "x": 1}},
        {"action": {"kind": "type", "text": "a"}, "n": 2},
    ]
    action = pa.struct({"kind": pa.string(), "x": pa.int64(), "text": pa.string()})
    table = pa.Table.from_pylist(rows, schema=pa.schema({"action": action, "n": pa.int64()}))
    pq.write_table(table, tmp_path / "rows.parquet")
    assert [line.row for line in read_rows(tmp_path / "rows.parquet")] == rows
