"""TFRecords: framing, checksums, examples, and pictures that lie within them."""

from __future__ import annotations

import gzip
import struct
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnidata import media
from omnidata.errors import DataError, MediaError
from omnidata.loaders.tfrecord import (
    Record,
    is_tfrecord,
    read_example,
    records,
)
from omnidata.media import unpacked
from omnidata.tasks import get_task
from omnidata.tasks.observation import pack, unpack
from omnidata.types import ByteRange, MediaRef
from tests.loaders import phones
from tests.measured import cost

NAMES = st.text(min_size=1, max_size=8)
FEATURES = st.dictionaries(
    NAMES,
    st.one_of(
        st.lists(st.binary(max_size=20), min_size=1, max_size=4),
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4),
        st.lists(st.floats(width=32, allow_nan=False), min_size=1, max_size=4),
    ),
    max_size=4,
)


@given(st.lists(FEATURES, min_size=1, max_size=3), st.booleans())
def test_what_another_library_writes_is_read(
    tmp_path_factory: pytest.TempPathFactory, written: list[dict[str, list[object]]], packed: bool
) -> None:
    path = phones.records(tmp_path_factory.mktemp("tf") / "a", *written, packed=packed)
    found = [read_example(record.data) for record in records(path)]
    assert is_tfrecord(path)
    for example, wanted in zip(found, written, strict=True):
        assert {*example.texts, *example.numbers} == set(wanted)
        for name, values in wanted.items():
            if isinstance(values[0], bytes):
                assert [
                    text.encode("utf-8", "surrogateescape") for text in example.text(name)
                ] == values
                assert [example.data[part] for part in example.texts[name]] == values
            else:
                assert example.numbers[name] == values
                assert list(map(type, example.numbers[name])) == list(map(type, values))


def test_a_packed_list_is_the_same_as_one_field_for_each_number() -> None:
    # Feature "i" with int64_list {value: 1, value: 300}, not packed, as old writers have it.
    numbers = bytes([0x08, 0x01, 0x08, 0xAC, 0x02])
    feature = bytes([0x1A, len(numbers)]) + numbers
    entry = b"\x0a\x01i" + bytes([0x12, len(feature)]) + feature
    features = bytes([0x0A, len(entry)]) + entry
    assert read_example(bytes([0x0A, len(features)]) + features).numbers == {"i": [1, 300]}


@pytest.mark.parametrize("packed", [False, True])
def test_every_broken_byte_is_found_with_its_record(tmp_path: Path, packed: bool) -> None:
    path = phones.records(tmp_path / "a", {"a": [b"x" * 50]}, {"a": [b"y" * 50]}, packed=False)
    content = path.read_bytes()
    first = 16 + struct.unpack("<Q", content[:8])[0]
    for at, number in ((0, 0), (9, 0), (20, 0), (first - 1, 0), (first + 3, 1), (first + 30, 1)):
        broken = bytearray(content)
        broken[at] ^= 1
        path.write_bytes(gzip.compress(bytes(broken)) if packed else bytes(broken))
        found: list[Record] = []
        with pytest.raises(DataError, match="checksum") as caught:
            found.extend(records(path))
        assert caught.value.where == f"{path}, record {number}"
        assert len(found) == number


@pytest.mark.parametrize("cut", [1, 4, 20, 70])
def test_a_file_that_ends_too_early_is_found(tmp_path: Path, cut: int) -> None:
    noise = [np.random.default_rng(seed).bytes(500) for seed in (0, 1)]
    path = phones.records(tmp_path / "a", *({"a": [each]} for each in noise), packed=False)
    content = path.read_bytes()
    shorts = (content[:-cut], gzip.compress(content[:-cut]), gzip.compress(content)[:-cut])
    for number, short in enumerate(shorts):
        broken = tmp_path / f"broken{number}"
        broken.write_bytes(short)
        with pytest.raises(DataError, match=r"early|cannot be read|checksum") as caught:
            list(records(broken))
        assert caught.value.where.startswith(f"{broken}, record ")


def test_a_length_that_no_memory_has_is_refused(tmp_path: Path) -> None:
    head = struct.pack("<Q", 2**50)
    (tmp_path / "a").write_bytes(head + check(head))
    with pytest.raises(DataError, match="more than"):
        list(records(tmp_path / "a"))


def framed(data: bytes) -> bytes:
    """A record."""
    head = struct.pack("<Q", len(data))
    return head + check(head) + data + check(data)


def check(data: bytes) -> bytes:
    """The CRC-32C, masked."""
    import google_crc32c

    crc = google_crc32c.value(data)
    return struct.pack("<I", (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF)


@pytest.mark.parametrize("data", [b"", b"no example"], ids=["empty", "junk"])
@pytest.mark.parametrize("packed", [True, False])
def test_a_small_file_of_endless_records_is_refused(
    tmp_path: Path, data: bytes, packed: bool
) -> None:
    whole_file = framed(data) * 3_000
    (tmp_path / "a").write_bytes(gzip.compress(whole_file, 1) if packed else whole_file)
    most = 1000 + (tmp_path / "a").stat().st_size // 64
    found = records(tmp_path / "a")
    assert len(list(islice(found, most))) == most
    with pytest.raises(DataError, match=f"at most {most} records"):
        next(found)


def test_a_file_that_unpacks_to_more_than_it_may_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnidata.loaders.tfrecord.MAX_UNPACKED", 3_000_000)
    (tmp_path / "a").write_bytes(gzip.compress(framed(bytes(1_000_000)) * 8))
    found = records(tmp_path / "a")
    assert len(list(islice(found, 3))) == 3
    with pytest.raises(DataError, match="unpacks to at most"):
        list(found)
    noise = np.random.default_rng(0).bytes(1_000_000)
    (tmp_path / "b").write_bytes(gzip.compress(framed(noise) * 5, 1))
    assert len(list(records(tmp_path / "b"))) == 5


def test_a_record_is_held_once(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(gzip.compress(framed(bytes(60_000_000)), 1))
    found = cost(
        "import google_crc32c; from omnidata.loaders.tfrecord import records",
        "print(sum(len(record.data) for record in records(Path(sys.argv[1], 'a'))))",
        tmp_path,
    )
    assert int(found.said) == 60_000_000
    assert found.mebibytes < 90


def test_a_text_that_is_no_text_is_told(tmp_path: Path) -> None:
    wait, spaces = {"action_type": "wait"}, [b" " * 17_000_000]
    for name, bad, good in (
        ("aitw", phones.example(goal_info=spaces), phones.example(1)),
        ("androidcontrol", phones.episode(wait, goal=spaces), phones.episode(wait)),
    ):
        phones.records(tmp_path / "a-00000-of-00001", bad, good)
        source = get_task(name).load(tmp_path)
        assert len(source.steps) == 1
        assert any("texts of more than 16777216 bytes" in found.what for found in source.findings)


@given(st.binary(max_size=80))
def test_no_bytes_make_the_reader_of_messages_raise_anything_else(content: bytes) -> None:
    try:
        read_example(content)
    except ValueError as error:
        assert str(error)


def test_a_packed_forest_is_unpacked_as_it_was() -> None:
    found = phones.forest(((0, 0, 9, 9), [(1, 2, 3, 4), (-5, 0, 0, 7)]), ((5, 5, 6, 6), []))
    assert unpack(pack(found)) == found
    for text in ("!", "AAAA", pack(found)[:-8], pack(b"")[:4]):
        with pytest.raises(ValueError, match="tree"):
            unpack(text)


def test_a_packed_forest_that_unpacks_to_gigabytes_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("omnidata.tasks.observation.MAX_BYTES", 1000)
    assert unpack(pack(bytes(999))) == bytes(999)
    with pytest.raises(ValueError, match="more than 1000"):
        unpack(pack(bytes(1001)))


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, bytes]:
    """A gzip file of two members, whose states are kept every 64 KB, and what it holds."""
    monkeypatch.setattr(unpacked, "SPACING", 64 * 1024)
    draw = np.random.default_rng(0)
    content = draw.integers(0, 4, 1_500_000, np.uint8).tobytes()
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(content[:700_000], 1) + gzip.compress(content[700_000:], 6))
    return path, content


def test_any_stretch_of_a_gzip_file_is_read_in_any_order_by_any_thread(
    packed: tuple[Path, bytes],
) -> None:
    path, content = packed
    found = unpacked.open_unpacked(path)
    draw = np.random.default_rng(1)
    places = [(int(at), int(size)) for at, size in draw.integers(0, 1_400_000, (60, 2)) // (1, 9)]
    with ThreadPoolExecutor(4) as pool:
        read = list(pool.map(lambda place: found.read(*place), places))
    assert read == [content[at : at + size] for at, size in places]
    assert found.read(1_499_990, 50) == content[-10:]
    assert found.read(1_500_000, 1) == b""


def test_zeros_after_a_gzip_stream_are_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(b"abc") + bytes(600_000) + gzip.compress(b"def") + bytes(9))
    assert unpacked.open_unpacked(path).read(0, 100) == b"abcdef"


def test_a_file_that_was_replaced_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for content in (b"first", b"second one"):
        path.write_bytes(gzip.compress(content))
        assert unpacked.open_unpacked(path).read(0, 99) == content


def shot(root: Path, offset: int, size: int, **changes: object) -> MediaRef:
    place = ByteRange("a.gz", offset, size, **changes)  # type: ignore[arg-type]  # changes by name
    return MediaRef("image", root, "x.png", cell=place)


def test_a_picture_within_a_file_is_like_any_other(tmp_path: Path) -> None:
    content, bare = phones.png(1), phones.pixels(2)
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"...." + content + bare.tobytes()))
    file = shot(tmp_path, 4, len(content))
    assert media.read_bytes(file) == content
    assert media.image_size(file) == phones.SCREEN
    pixels = shot(tmp_path, 4 + len(content), bare.nbytes, pixels=bare.shape)
    assert np.array_equal(media.image(pixels).pixels, bare)
    assert media.linkable(file) is None
    with pytest.raises(MediaError, match="no file of its own"):
        media.resolve(file)


@pytest.mark.parametrize(
    ("place", "says"),
    [
        (ByteRange("a.gz", 10, 0), "empty"),
        (ByteRange("a.gz", 10, 2000), "shorter"),
        (ByteRange("a.gz", 0, 2**40), "more than"),
        (ByteRange("a.gz", 0, 12, (2, 2, 4)), "pixels of 4 channels"),
        (ByteRange("a.gz", 0, 13, (2, 2, 3)), "13 bytes"),
        (ByteRange("none", 0, 12), "missing"),
        (ByteRange("../a.gz", 0, 12), "leaves its folder"),
        (ByteRange("broken.gz", 0, 12), "cannot be read"),
    ],
)
def test_what_is_no_picture_says_why(tmp_path: Path, place: ByteRange, says: str) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(1000)))
    (tmp_path / "broken.gz").write_bytes(gzip.compress(bytes(1000))[:11])
    with pytest.raises(MediaError) as caught:
        media.read_bytes(MediaRef("image", tmp_path, "x.png", cell=place))
    assert says in caught.value.what
    assert caught.value.remedy


def _field(number: int, content: bytes) -> bytes:
    size, head = len(content), bytes([number << 3 | 2])
    while size > 127:
        head, size = head + bytes([size & 127 | 128]), size >> 7
    return head + bytes([size]) + content


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (1, b"\n\0" * 100_001),
        (2, _field(1, bytes(4 * 100_001))),
        (3, _field(1, bytes(100_001))),
        (3, b"\x08\0" * 100_001),
    ],
    ids=["texts", "floats", "packed numbers", "numbers"],
)
def test_a_small_file_of_millions_of_values_is_refused(kind: int, values: bytes) -> None:
    feature = _field(1, b"x") + _field(2, _field(kind, values))
    with pytest.raises(ValueError, match="more than 100000 values"):
        read_example(_field(1, _field(1, feature)))


def test_a_list_is_refused_before_it_is_unpacked() -> None:
    feature = _field(1, b"x") + _field(2, _field(3, _field(1, bytes(1_000_001))))
    with pytest.raises(ValueError, match="more than 1000000 bytes"):
        read_example(_field(1, _field(1, feature)))


def test_an_example_of_too_many_features_is_refused() -> None:
    entries = b"".join(_field(1, _field(1, str(n).encode())) for n in range(100_001))
    with pytest.raises(ValueError, match="more than 100000 features"):
        read_example(_field(1, entries))
