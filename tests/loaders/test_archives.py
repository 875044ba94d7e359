"""Archives from anybody: what is unpacked, and what never is."""

from __future__ import annotations

import base64
import gzip
import io
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnidata.errors import DataError
from omnidata.loaders.fetch import fetch
from omnidata.loaders.fetch_plan import plan_fetch
from tests.full import FULL
from tests.hub_server import Hub, files_of, online, serving

Pack = Callable[[Path], object]


def unpack(hub: Hub, packed: Path, out: Path) -> Path:
    """Fetch a dataset of the archives in a folder; the folder with what was in them."""
    hub.add("OmniGUI/OmniGUI", files_of(packed))
    plan = plan_fetch("omnigui")
    assert plan.publication.remote
    remote = replace(plan.publication.remote, archives=("*",))
    return fetch(replace(plan, publication=replace(plan.publication, remote=remote)), out)


def pack(tmp_path: Path, name: str, write: Pack) -> Path:
    """The folder of an archive."""
    (tmp_path / "packed").mkdir()
    write(tmp_path / "packed" / name)
    return tmp_path / "packed"


def zip_of(*members: tuple[str | zipfile.ZipInfo, bytes], method: int = 0) -> Pack:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", method) as archive:
            for name, content in members:
                archive.writestr(name, content)

    return write


def mode_of(mode: int, name: str = "a.png") -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.create_system, info.external_attr = 3, mode << 16
    return info


def tar_of(kind: bytes = tarfile.REGTYPE, name: str = "a.png", **about: Any) -> Pack:
    def write(path: Path) -> None:
        with tarfile.open(path, "w") as archive:
            info = tarfile.TarInfo(name)
            info.type, info.size = kind, 3 if kind == tarfile.REGTYPE else 0
            for key, value in about.items():
                setattr(info, key, value)
            archive.addfile(info, io.BytesIO(b"abc"))

    return write


def altered(pack: Pack, change: Callable[[bytearray], None]) -> Pack:
    """The same archive with other bytes."""

    def write(path: Path) -> None:
        pack(path)
        content = bytearray(path.read_bytes())
        change(content)
        path.write_bytes(content)

    return write


def encrypted(content: bytearray) -> None:
    content[content.index(b"PK\1\2") + 8] |= 1
    content[6] |= 1


def says_less(content: bytearray) -> None:
    """Of a member that holds more than it says."""
    at = content.index(b"PK\1\2")
    struct.pack_into("<L", content, at + 24, 1)


def overlapping(content: bytearray) -> None:
    """Every entry of the directory names the first member."""
    at = 0
    while (at := content.find(b"PK\1\2", at)) >= 0:
        struct.pack_into("<L", content, at + 42, 0)
        struct.pack_into("<L", content, at + 20, 900)
        at += 4


def beyond(content: bytearray) -> None:
    """The first member begins before the file does."""
    struct.pack_into("<L", content, content.index(b"PK\5\6") + 16, 10_000)


def bytes_at_once(path: Path) -> None:
    """A header of a tar that has a gigabyte of names."""
    info = tarfile.TarInfo("long")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 1 << 30
    path.write_bytes(info.tobuf(tarfile.USTAR_FORMAT) + bytes(4096))


def terabyte(path: Path) -> None:
    """A few bytes that say they are the start of a terabyte."""
    info = tarfile.TarInfo("a")
    info.size = 1 << 40
    path.write_bytes(gzip.compress(info.tobuf(tarfile.GNU_FORMAT) + bytes(4096)))


def headers_of_headers(path: Path) -> None:
    """A name of a name of a name, two thousand times."""
    info = tarfile.TarInfo("long")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 4
    name = info.tobuf(tarfile.GNU_FORMAT) + b"name".ljust(tarfile.BLOCKSIZE, b"\0")
    path.write_bytes(name * 2000)


def two_files(path: Path) -> None:
    """A tar of which each member takes 1,024 bytes."""
    mode: Any = f"w:{path.suffix[1:].replace('tar', '')}"
    with tarfile.open(path, mode) as archive:
        for name in ("a", "b"):
            info = tarfile.TarInfo(name)
            info.size = 3
            archive.addfile(info, io.BytesIO(b"abc"))


def cut_at(place: int) -> Callable[[bytearray], None]:
    return lambda content: content.__delitem__(slice(place, None))


def flipped(place: int) -> Callable[[bytearray], None]:
    def change(content: bytearray) -> None:
        content[place] ^= 1

    return change


def padded(path: Path) -> None:
    """A tar with more behind its end than any tar has."""
    two_files(path)
    with path.open("ab") as file:
        file.write(bytes(200_000))


def nameless(content: bytearray) -> None:
    """The name begins with a NUL, and ends there for many a reader."""
    content[:] = content.replace(b"a.png", b"\0.png")


HOSTILE: dict[str, tuple[str, Pack, str]] = {
    "up": ("a.zip", zip_of(("../a.png", b"x")), 'leaves its folder through ".."'),
    "up-inside": ("a.zip", zip_of(("a/../../b", b"x")), 'leaves its folder through ".."'),
    "absolute": ("a.zip", zip_of(("/etc/a.png", b"x")), "absolute"),
    "drive": ("a.zip", zip_of(("C:/a.png", b"x")), "drive letter"),
    "backslash": ("a.zip", zip_of(("a\\b.png", b"x")), "no plain name"),
    "control": ("a.zip", zip_of(("a\x1b[2J.png", b"x")), "no plain name"),
    "nameless": ("a.zip", altered(zip_of(("a.png", b"x")), nameless), "no plain name"),
    "git": ("a.zip", zip_of(("sub/.GIT/config", b"x")), "folder of git"),
    "long": ("a.zip", zip_of(("a" * 2000, b"x")), "too long"),
    "case": ("a.zip", zip_of(("a.png", b"x"), ("A.png", b"y")), "would be one file"),
    "file-and-folder": ("a.zip", zip_of(("a", b"x"), ("A/b", b"y")), "a folder of"),
    "folder-and-file": ("a.zip", zip_of(("A/b", b"y"), ("a", b"x")), "a folder of"),
    "long-part": ("a.zip", zip_of(("b/" + "a" * 300, b"x")), "too long"),
    "folder-with-content": ("a.zip", zip_of(("a/", b"x")), "is a folder, and has content"),
    "link": ("a.zip", zip_of((mode_of(stat.S_IFLNK), b"/etc/passwd")), "link or a device"),
    "device": ("a.zip", zip_of((mode_of(stat.S_IFCHR), b"")), "link or a device"),
    "encrypted": ("a.zip", altered(zip_of(("a", b"x")), encrypted), "is encrypted"),
    "more-than-said": ("a.zip", altered(zip_of(("a", b"xyz")), says_less), "it is broken"),
    "overlapping": (
        "a.zip",
        altered(zip_of(*((f"{n}", bytes(100)) for n in range(9))), overlapping),
        "its members have",
    ),
    "beyond": ("a.zip", altered(zip_of(("a", b"xyz")), beyond), "position outside the archive"),
    "ratio": ("a.zip", zip_of(("a", bytes(200_000)), method=8), "100 times as much"),
    "empty": ("a.zip", zip_of(*((f"{n}", b"") for n in range(10_001))), "10,000 empty files"),
    "no-zip": ("a.zip", lambda path: path.write_bytes(b"PK nothing"), "it is broken"),
    "tar-up": ("a.tar", tar_of(name="../a"), 'leaves its folder through ".."'),
    "tar-link": ("a.tar", tar_of(tarfile.SYMTYPE, linkname="/etc/passwd"), "a link, a device"),
    "tar-like-lzma": ("a.tar", tar_of(tarfile.SYMTYPE, "l", linkname="/etc"), "a link, a device"),
    "tar-hard-link": ("a.tar", tar_of(tarfile.LNKTYPE, linkname="a"), "a link, a device"),
    "tar-device": ("a.tar", tar_of(tarfile.CHRTYPE), "a link, a device"),
    "tar-pipe": ("a.tar", tar_of(tarfile.FIFOTYPE), "a link, a device"),
    "tar-header": ("a.tar", bytes_at_once, "a header of 1,073,741,824 bytes"),
    "tar-terabyte": ("a.tar.gz", terabyte, "100 times as much"),
    "tar-headers": ("a.tar", headers_of_headers, "it is broken"),
    "tar-cut": (
        "a.tar",
        altered(tar_of(size=3), lambda content: content.__delitem__(slice(513, None))),
        "it is broken",
    ),
    "tar-cut-between": ("a.tar", altered(two_files, cut_at(1024)), "the end is missing"),
    "tar-without-end": ("a.tar", altered(two_files, cut_at(2048)), "the end is missing"),
    "tar-header-broken": ("a.tar", altered(two_files, flipped(1024)), "it is broken"),
    "tar-padded": ("a.tar", padded, "bytes follow its end"),
    "gzip-checksum": ("a.tar.gz", altered(two_files, flipped(-6)), "it is broken .*CRC"),
    "gzip-cut": ("a.tar.gz", altered(two_files, cut_at(-4)), "it is broken"),
    "bzip2-broken": ("a.tar.bz2", altered(two_files, flipped(-20)), "it is broken"),
    "xz-broken": ("a.tar.xz", altered(two_files, flipped(-40)), "it is broken"),
    "no-tar": ("a.tar.gz", lambda path: path.write_bytes(b"nothing"), "it is broken"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_archive_is_refused_and_nothing_of_it_is_left(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    name, write, said = HOSTILE[case]
    monkeypatch.setattr("omnidata.loaders.archives.FREE", 100_000)
    packed = pack(tmp_path, name, write)
    with pytest.raises(DataError, match=said):
        unpack(hub, packed, tmp_path / "out")
    unfinished = tmp_path / ".out.unfinished"
    ours = {"packed", ".out.lock", unfinished.name}
    assert {path.name for path in tmp_path.iterdir()} == ours
    assert [path.name for path in (unfinished / "data").iterdir()] == [name]
    assert not any(path.is_symlink() for path in unfinished.rglob("*"))


def test_too_many_members_are_refused(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnidata.loaders.archives.MOST_MEMBERS", 3)
    packed = pack(tmp_path, "a.zip", zip_of(*((f"{n}", b"x") for n in range(4))))
    with pytest.raises(DataError, match="more than 3 members"):
        unpack(hub, packed, tmp_path / "out")


def test_a_disk_that_would_be_full_is_said_before_it_is(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnidata.loaders.archives.RESERVE", 1 << 60)
    packed = pack(tmp_path, "a.zip", zip_of(("a", b"x")))
    with pytest.raises((OSError, DataError), match="the disk is full"):
        unpack(hub, packed, tmp_path / "out")


def test_what_is_well_formed_is_unpacked(hub: Hub, tmp_path: Path) -> None:
    names = {"b/a.png": b"one", "a.json": bytes(50_000), "ü/深.txt": b"two"}
    packed = pack(tmp_path, "a.zip", zip_of(("b/", b""), *names.items(), method=8))
    with tarfile.open(packed / "c.tar.gz", "w:gz") as archive:
        for name, content in names.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    data = unpack(hub, packed, tmp_path / "out")
    assert files_of(data) == {
        f"{folder}/{name}": content for folder in "ac" for name, content in names.items()
    }
    assert not any(path.stat().st_mode & 0o111 for path in data.rglob("*") if path.is_file())


# A zip in three parts, as `zip -s 64k` writes it: a folder `images` with 0.png to 3.png, of 40,000
# bytes each, stored as they are.


SPLIT = {
    "images.z01": (
        "ABzY8000000t4;JKMI0y7{}pX6d2-JEa(CbZ7yEGp+Uq!5uCh4CkUsOF4id`%7*@&pyhes11~S%B9GQZzFfs"
        "&cALgBe2Jbl?V+xQ&F^U3U#{6Hgt_E1+NFJ02LJ#70000000000000000000000000000000000000000000"
        "2st;m<F_;uZ;u`JHVdv*$8E_wc%_E1;DW}Eh1y#N3J00000000000000000000000000D%8`0Hn{II{*Ly00"
    ),
    "images.z02": (
        "ABzY8000000t4;HF$#iU0EXdTY!c6s)CnBgTD*XRgZwlkf|Hl%1me`v#X5yV+R)bC@I3Is$Co4k000000000"
        "0000000Dq)9r@Jg{mU*nl)8koAA#COAceysP9g5?=?_vM|00000000000000000000000000000000000000"
        "00000000KTeoy30Omna8@i-(KYu!dAY1munN-p*ZaOE+zl~0000000000@Y@?8NpNrg0096"
    ),
    "images.zip": (
        "ABzY8000000t4;MEp7rq7=Yo~EzqQ?=mn^+;nyJBqz=OcDk_={q79@9$ptW2g2MDT6<h(w4GLj5z?J|4&+|+"
        "sGh*KPq6h#00000000000000000000000000000000N~1W+EM&?a~Cpy)4^LfaGT#A!t$k%p54#)<m0<~91U"
        "K77SEFqvVDK>!EE^SA2lnzujIJw%tq_;<#>{pwR7d^%xG7xT6x*HZ05d9=6PA)mc>#W;!sRiIeqlo&)#hS(z"
        "VT_1aklY"
    ),
}


def parts(folder: Path) -> Path:
    """Write them; the last one, `images.zip`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, packed in SPLIT.items():
        (folder / name).write_bytes(gzip.decompress(base64.b85decode(packed)))
    return folder / "images.zip"


def test_a_zip_in_parts_is_one(hub: Hub, tmp_path: Path) -> None:
    data = unpack(hub, parts(tmp_path / "packed").parent, tmp_path / "out")
    assert files_of(data) == {
        f"images/{number}.png": bytes([value]) * 40_000 for number, value in enumerate((1, 1, 0, 0))
    }


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda folder: (folder / "images.z01").unlink(), "part 1 of the archive is missing"),
        (lambda folder: (folder / "images.z02").unlink(), "in 3 parts, and there are 2"),
        (
            lambda folder: (folder / "images.z02").write_bytes(b"cut"),
            "its members have",
        ),
        (lambda folder: (folder / "images.zip").write_bytes(b"cut"), "no end-of-archive record"),
    ],
)
def test_a_part_that_lacks_or_is_cut_is_said(
    hub: Hub, tmp_path: Path, harm: Callable[[Path], object], said: str
) -> None:
    packed = parts(tmp_path / "packed").parent
    harm(packed)
    with pytest.raises(DataError, match=said):
        unpack(hub, packed, tmp_path / "out")


@settings(max_examples=150 if FULL else 30)
@given(data=st.data())
def test_whatever_is_broken_in_an_archive_is_a_data_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("broken")
    kind = data.draw(st.sampled_from(["a.zip", "a.tar", "images.zip"]))
    if kind == "images.zip":
        path = parts(folder / "packed")
    else:
        path = pack(folder, kind, zip_of(("a", b"abc"), method=8) if "z" in kind else tar_of())
        path /= kind
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    with (
        pytest.MonkeyPatch.context() as patch,
        serving() as hub,
        online(hub, patch, folder / "caches"),
        suppress(DataError),
    ):
        assert len(files_of(unpack(hub, path.parent, folder / "out"))) <= 4
