"""Pickles are read as data: whatever one holds, nothing in it is imported or called."""

from __future__ import annotations

import gzip
import os
import pickle
import tempfile
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata.loaders.pickles import Passed, Record, read_pickle

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def read(content: bytes, **options: Any) -> Any:
    """What a file of this content holds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.pkl")
        path.write_bytes(content)
        return read_pickle(path, **options)


def refusal(content: bytes) -> str:
    with pytest.raises(ValueError, match=r"\S") as found:
        read(content)
    return str(found.value)


PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.tuples(inner, inner),
    max_leaves=20,
)


@given(PLAIN, st.sampled_from(PROTOCOLS), st.booleans())
def test_plain_data_are_what_python_reads(value: Any, protocol: int, is_zipped: bool) -> None:
    content = pickle.dumps(value, protocol)
    if b"__builtin__" in content or b"builtins" in content:  # how old protocols write no bytes
        return
    assert read(gzip.compress(content) if is_zipped else content) == value


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("core", [b"numpy._core.", b"numpy.core."])
def test_dates_and_numpys_arrays_and_numbers_are_read(protocol: int, core: bytes) -> None:
    """Also as NumPy before 2.0 names them, which is a letter shorter."""
    pixels = np.zeros((40, 30, 3), np.uint8)
    value = {
        "numbers": [np.float64(0.5), np.int64(-3), np.bool_(True), np.float32(1), np.str_("é")],
        "arrays": [pixels, np.arange(6.0).reshape(2, 3).T, np.array(["a", "bc"])],
        "at": datetime(2026, 1, 2, 3, 4, 5, 6),  # noqa: DTZ001  # as AndroidWorld has it
        "time": np.datetime64("2020-01-01"),
    }
    content = pickle.dumps(value, protocol)
    for name in (b"multiarray", b"numeric"):
        old, new = b"numpy._core." + name, core + name
        content = content.replace(bytes([len(old)]) + old, bytes([len(new)]) + new)
        content = content.replace(b"c" + old, b"c" + new)
    # In protocol 4 the names lie in frames that say how long they are; it does not matter here.
    assert read(content) == {
        "numbers": [0.5, -3, True, 1.0, "é"],
        "arrays": [Passed(3600), Passed(48), Passed(16)],
        "at": value["at"],
        "time": Passed(8),
    }


class Trap:
    """What a pickle runs when Python reads it."""

    def __init__(self, does: Callable[..., Any], *given: Any) -> None:
        self.done = does, given

    def __reduce__(self) -> tuple[Any, ...]:
        return self.done


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("does", "given", "named"),
    [
        (os.system, ("touch {0}",), ".system"),
        (os.mkdir, ("{0}",), ".mkdir"),
        (eval, ("open('{0}', 'w')",), "eval"),
        (getattr, (Path, "touch"), "getattr"),
        (np.load, ("{0}",), "numpy"),
        (np.memmap, ("{0}", "u1", "w+", 0, 1), "memmap"),
        (OrderedDict, (), "OrderedDict"),
        (UTC.__class__, (), "timezone"),
    ],
)
def test_what_is_called_is_refused_by_name_and_never_runs(
    tmp_path: Path, protocol: int, does: Any, given: Any, named: str
) -> None:
    sprung = tmp_path / "sprung"
    fitted = [one.format(sprung) if isinstance(one, str) else one for one in given]
    told = refusal(pickle.dumps([1, Trap(does, *fitted)], protocol))
    assert named in told
    assert not sprung.exists()


BY_HAND = {
    "a global and a call": (b"cos\nsystem\n(S'touch {0}'\ntR.", "os.system"),
    "an instance": (b"(S'touch {0}'\nios\nsystem\n.", "os.system"),
    "an object": (b"(cos\nsystem\nS'touch {0}'\no.", "os.system"),
    "a name from the stack": (b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x01a\x85R.", "os.system"),
    "a name with dots": (b"cnumpy\nload.__globals__\n.", "numpy.load.__globals__"),
    "a persistent id": (b"P1\n.", "PERSID"),
    "an extension": (b"\x82\x01.", "EXT1"),
    "an allowed class, called": (b"cnumpy\nndarray\n(K\x05tR.", "numpy.ndarray"),
    "an array of nothing known": (b"cnumpy\ndtype\n(V{dtype}\ntR.", "numpy.dtype"),
    "a new object of an allowed class": (b"cnumpy\nndarray\n)\x81.", "numpy.ndarray"),
    "the state of an allowed class": (b"cnumpy\nndarray\n}b.", "_Name"),
    "another encoding": (b"c_codecs\nencode\n(Va\nVrot13\ntR.", "_codecs.encode"),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_pickles_written_by_hand_are_refused(name: str, tmp_path: Path) -> None:
    content, said = BY_HAND[name]
    sprung = tmp_path / "sprung"
    assert said in refusal(content.replace(b"{0}", str(sprung).encode()))
    assert not sprung.exists()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arrays_of_objects_are_refused(protocol: int) -> None:
    trap = np.array([Trap(os.system, "true"), None], dtype=object)
    assert "array of objects" in refusal(pickle.dumps(np.array([1, "a"], object), protocol))
    assert refusal(pickle.dumps(trap, protocol))
    mixed = np.zeros(2, dtype=[("a", "i4"), ("b", object)])
    assert "numpy.dtype" in refusal(pickle.dumps(mixed, protocol))


def array(shape: str, content: bytes = b"C\x01a") -> bytes:
    """A pickled array of bytes whose header may say anything."""
    return (
        b"\x80\x03cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
        b"(K\x01" + shape.encode("latin1") + b"cnumpy\ndtype\nX\x02\x00\x00\x00u1K\x00K\x01\x87R"
        b"(K\x03X\x01\x00\x00\x00|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
        b"\x89" + content + b"tb."
    )


def test_a_header_says_no_more_than_is_there() -> None:
    assert read(array("K\x01\x85")) == Passed(1)
    for shape in ("K\x02\x85", "J\xff\xff\xff\x7f\x85", "J\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x86"):
        assert "bytes for an array of" in refusal(array(shape))
    assert refusal(array("J\xff\xff\xff\xff\x85")), "a negative length"
    assert refusal(array("K\x01\x85", b"]Na")), "a list of objects in place of bytes"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x80\x04\x8e" + (1 << 40).to_bytes(8, "little") + b"a.", "too large"),
        (b"\x80\x05\x96" + (1 << 40).to_bytes(8, "little") + b"a.", "too large"),
        (b"\x80\x04\x8e" + (1 << 20).to_bytes(8, "little") + b"a.", "only 2 remain"),
        (b"Nr\xff\xff\xff\xff", "STOP"),
        (b"", "STOP"),
        (b"(" * 1000, "STOP"),
        (b"j\x00\x00\x00\x00.", "KeyError"),
        (b"0" * 5, "IndexError"),
        (b"\x1f\x8b\x08\x00", "broken"),
        (gzip.compress(pickle.dumps([0] * 999), mtime=0)[:-20], "broken"),
        (b"L" + b"9" * 9999 + b"L\n.", "digits"),
        (b"<html>", "opcode"),
    ],
)
def test_what_is_broken_or_too_large_is_refused(content: bytes, said: str) -> None:
    assert said in refusal(content)


def test_a_number_that_python_writes_in_no_digits_is_refused() -> None:
    assert "a number of 20,001 bits" in refusal(pickle.dumps({"instance_id": 1 << 20_000}))


def test_what_a_refusal_repeats_is_short() -> None:
    assert len(refusal(b"P" + b"x" * 100_000 + b"\n.")) < 300


def test_there_is_an_end_to_how_much_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = gzip.compress(
        b"\x80\x04" + (b"\x8e" + (1 << 20).to_bytes(8, "little") + bytes(1 << 20)) * 9
    )
    assert len(bomb) < 20_000
    monkeypatch.setattr("omnidata.loaders.pickles.MOST_BYTES", 1 << 22)
    assert "unpacked" in refusal(bomb)
    monkeypatch.setattr("omnidata.loaders.pickles.MOST_OPERATIONS", 100)
    assert "operations" in refusal(pickle.dumps([[] for _ in range(99)]))
    monkeypatch.setattr("omnidata.loaders.pickles.MOST_TEXT", 100)
    assert "letters" in refusal(pickle.dumps(["a" * 60, "b" * 60]))


def test_objects_of_named_classes_are_their_attributes() -> None:
    content = pickle.dumps([Attributes(3)], 4)
    path = f"{__name__}.Attributes"
    assert read(content, records={path}) == [Record(path, {"x": 3})]
    assert path in refusal(content)


class Attributes:
    def __init__(self, x: int) -> None:
        self.x = x


@given(st.binary(max_size=200) | st.builds(
    lambda content, at, more: content[:at] + more + content[at:],
    st.sampled_from([pickle.dumps([{"a": np.zeros(3), "b": [1.5, "x"]}], n) for n in PROTOCOLS]),
    st.integers(0, 200), st.binary(min_size=1, max_size=4),
))  # fmt: skip
def test_no_bytes_make_the_reader_raise_anything_else(content: bytes) -> None:
    try:
        read(content)
    except ValueError as error:
        assert str(error)
