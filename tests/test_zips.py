"""Data in zips: the same as unpacked, on a disk and on a store."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import datasets
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnidata
from omnidata import media, mirror, mirror_cache, zips
from omnidata.cli import main
from omnidata.errors import (
    DataError,
    FileError,
    MediaError,
    MissingMediaError,
    StoreError,
)
from omnidata.loaders.files import fingerprint
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset, MediaRef
from tests.hub_server import Hub, files_of
from tests.loaders import desk, osworld, published_forms
from tests.loaders.test_archives import HOSTILE, mode_of, parts, zip_of
from tests.run.scripted import Looking


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OMNIDATA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def pack(folder: Path, out: Path) -> Path:
    """The data with each of their folders in a zip.

    By turns it is compressed, and holds the folder itself or what is in it.
    """
    out.mkdir()
    for number, path in enumerate(sorted(folder.iterdir())):
        if not path.is_dir():
            shutil.copy2(path, out)
            continue
        method = zipfile.ZIP_STORED if number % 3 else zipfile.ZIP_DEFLATED
        with zipfile.ZipFile(out / f"{path.name}.zip", "w", method) as archive:
            for file in sorted(path.rglob("*")):
                archive.write(file, file.relative_to(folder if number % 2 else path))
    return out


def screenspot(folder: Path) -> None:
    desk.screenspot(folder, desk.spot(), desk.spot(data_type="icon"))


DATA: dict[str, Callable[[Path], object]] = {
    "osworld": osworld.plain,
    "screenspot": screenspot,
    "gui-odyssey": published_forms.odyssey,
}


@pytest.fixture(params=["omnigui", *DATA])
def packed(request: pytest.FixtureRequest, few: Path, tmp_path: Path) -> tuple[str, Path, Path]:
    """A task, data of it, and the same in zips."""
    data = few
    if request.param in DATA:
        data = tmp_path / "data"
        DATA[request.param](data)
    return request.param, data, pack(data, tmp_path / "packed")


def told(source: LoadedDataset) -> list[Any]:
    """What is told of data, with the hashes of their media; no path that is a machine's."""
    steps = [
        (
            step.sample_id, step.episode, step.action, step.screen, step.tags, step.instruction,
            {role: ref and (ref.path, digest(ref)) for role, ref in step.media.items()},
        )
        for step in source.steps
    ]  # fmt: skip
    codes = [(found.code, found.sample_ids) for found in source.findings]
    return [source.fingerprint, steps, source.roles, codes]


def digest(ref: MediaRef) -> str:
    if ref.cell:  # a part of a recording, for which decoders open the file themselves
        return str(media.probe(ref))
    try:
        return hashlib.sha256(media.read_bytes(ref)).hexdigest()
    except MissingMediaError:
        return "missing"


def test_data_in_zips_are_the_same_steps_as_unpacked(
    packed: tuple[str, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, data, packs = packed
    task = get_task(name)
    there = task.load(packs)
    assert there.root != packs, "nothing was read out of a zip"
    assert told(there) == told(task.load(data))
    assert any(ref for step in there.steps for ref in step.media.values())


def test_validate_decodes_clips_and_sounds_of_zips_and_names_the_users_folder(
    few: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zips = pack(few, tmp_path / "packed")
    before = sorted(zips.iterdir())
    out = tmp_path / "bad.txt"
    with pytest.raises(SystemExit) as done:
        main(["validate", "omnigui", str(zips), "--quarantine", str(out), "--workers", "2"])
    said = capsys.readouterr()
    assert done.value.code == 0, said.err
    assert str(tmp_path / "cache") not in said.out + said.err + out.read_text()
    assert sorted(zips.iterdir()) == before, "the user's folder was written to"
    assert f"{zips}: its zips are read" in said.err


@pytest.fixture
def screens(tmp_path: Path) -> Path:
    """A folder with a zip of two pictures, and a file beside it."""
    data = tmp_path / "data"
    data.mkdir()
    zip_of(("a.png", b"A" * 5000), ("b/c.png", os.urandom(5000)), method=8)(data / "images.zip")
    (data / "rows.json").write_text("[]")
    return data


def test_what_lies_on_the_disk_is_not_taken_from_a_zip(screens: Path) -> None:
    """A zip that has been unpacked, into its folder or beside it, is left alone."""
    assert (mirror.local(screens) / "images/b/c.png").is_file()
    for place in ("images/a.png", "b/c.png"):
        path = screens / place
        path.parent.mkdir()
        path.write_bytes(b"own")
        assert mirror.local(screens) == screens
        shutil.rmtree(path.parent)
    (screens / "images").mkdir()
    (screens / "images" / "own.png").write_bytes(b"own")
    root = mirror.local(screens)
    mirror.fill(root / "images/own.png")
    assert (root / "images/own.png").read_bytes() == b"own"
    assert media.read_bytes(MediaRef("image", root, "images/a.png")) == b"A" * 5000
    assert media.linkable(MediaRef("image", root, "images/a.png")) is None


def test_a_named_file_has_media_in_the_zips_beside_it(screens: Path) -> None:
    path = mirror.local(screens / "rows.json")
    assert path.read_text() == "[]"
    assert media.read_bytes(MediaRef("image", path.parent, "images/a.png")) == b"A" * 5000
    assert mirror_cache.with_urls(str(path)) == str(screens / "rows.json")
    # The folder as a whole is another mirror: neither takes away what the other shows.
    (screens / "deep").mkdir()
    zip_of(("d.png", b"D"))(screens / "deep" / "more.zip")
    whole = mirror.local(screens)
    assert mirror.again(mirror.source(path)) == mirror.local(screens / "rows.json").parent != whole
    assert media.read_bytes(MediaRef("image", whole, "deep/more/d.png")) == b"D"
    assert media.read_bytes(MediaRef("image", path.parent, "images/a.png")) == b"A" * 5000
    assert mirror.again(mirror.source(whole)) == whole


def test_messages_and_records_name_data_as_the_user_did(
    screens: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(screens.parent)
    for name in ("data", "data/rows.json"):
        assert mirror_cache.display_path(mirror.local(name)) == name
    assert mirror_cache.display_path(mirror.local("data") / "images/a.png") == "data/images/a.png"


def test_a_zip_or_a_folder_in_it_may_be_the_data(tmp_path: Path) -> None:
    osworld.plain(tmp_path / "plain")
    zips = pack(tmp_path / "plain", tmp_path / "packed")
    task = get_task("osworld")
    here, there = task.load(tmp_path / "plain" / "pyautogui"), task.load(zips / "pyautogui.zip")
    assert told(there) == told(here)
    assert told(task.load(zips / "pyautogui" / "screenshot")) == told(
        task.load(tmp_path / "plain" / "pyautogui" / "screenshot")
    )
    missing = zips / "pyautogui" / "nothing"
    assert mirror.local(missing) == missing


def test_a_zip_that_has_changed_is_read_anew_and_versions_are_never_mixed(screens: Path) -> None:
    ref = MediaRef("image", mirror.local(screens), "images/a.png")
    gone = MediaRef("image", ref.root, "images/b/c.png")
    assert media.read_bytes(ref) == b"A" * 5000
    zip_of(("a.png", b"B" * 5000))(screens / "images.zip")
    with pytest.raises(StoreError, match="changed since it was looked into"):
        media.read_bytes(gone)
    assert mirror.local(screens) == ref.root
    assert media.read_bytes(ref) == b"B" * 5000
    with pytest.raises(MissingMediaError):
        media.read_bytes(gone)
    (screens / "images.zip").unlink()
    assert mirror.local(screens) == screens


def listed(folder: Path) -> dict[str, bytes]:
    """All files below a folder, those that links lead to among them."""
    walked = os.walk(folder, followlinks=True)
    paths = [Path(above, name) for above, _, names in walked for name in names]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_zips_that_come_and_go_beside_files_write_no_file_and_hide_none(screens: Path) -> None:
    """What was shown by one link to its folder is shown file by file, and by one link again."""
    (screens / "sub").mkdir()
    (screens / "sub" / "more.json").write_text("[1]")
    (screens / "far").mkdir()
    (screens / "far" / "own.png").write_bytes(b"own")
    first = listed(mirror.local(screens))
    for name, member in (("sub/images.zip", "c.png"), ("far.zip", "d.png")):
        zip_of((member, b"C"))(screens / name)
        before = listed(screens)
        root = mirror.local(screens)
        assert listed(screens) == before, "the user's folder was written to"
        ref = MediaRef("image", root, f"{name[:-4]}/{member}")
        assert media.read_bytes(ref) == b"C"
        assert {*listed(root)} == {*first, ref.path}
        assert listed(screens) == before
        (screens / name).unlink()
        assert {*listed(mirror.local(screens))} == {*first}


@pytest.mark.parametrize("way", ["medium", "file"])
def test_a_file_that_another_command_empties_before_it_is_read_is_an_error(
    way: str, screens: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has listed a zip that changed, and what was unpacked stands for nothing any more."""
    ref = MediaRef("image", mirror.local(screens), "images/a.png")
    opened = os.open if way == "file" else io.open

    def open_late(path: Any, *given: Any, **options: Any) -> Any:
        if os.fspath(path) == os.fspath(ref.root / ref.path):
            monkeypatch.undo()
            monkeypatch.setenv("OMNIDATA_CACHE", str(screens.parent / "cache"))
            zip_of(("a.png", b"B" * 5000))(screens / "images.zip")
            code = f"from omnidata import mirror; mirror.local({str(screens)!r})"
            subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
        return opened(path, *given, **options)

    mirror.fill(ref.root / ref.path)
    monkeypatch.setattr("os.open" if way == "file" else "io.open", open_late)
    with pytest.raises(StoreError, match="changed since it was listed"):
        if way == "medium":
            media.read_bytes(ref)
        else:
            fingerprint([ref.root / ref.path], ref.root)


@pytest.mark.parametrize("case", [case for case, about in HOSTILE.items() if about[0] == "a.zip"])
def test_a_hostile_zip_is_a_file_and_nothing_more(
    case: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnidata.zips.FREE", 100_000)
    name, make, _ = HOSTILE[case]
    data = tmp_path / "data"
    (data / "a").mkdir(parents=True)
    make(data / name)
    root = mirror.local(data)
    if root != data:  # broken where only its content tells
        files = [path for path in (root / "a").rglob("*") if path.is_file()]
        assert files
        with pytest.raises(FileError, match="is broken"):
            for path in files:
                mirror.fill(path)
        return
    with pytest.raises(MissingMediaError) as lacking:
        media.resolve(MediaRef("image", data, "a/x.png"))
    assert f"unpack {name}, which cannot be read" in str(lacking.value)
    assert not list(cache.rglob("*.png"))


def spoil(archive: Path, name: str) -> None:
    """Change a byte of a member, and leave its check sum."""
    with zipfile.ZipFile(archive) as packed:
        info = packed.getinfo(name)
    with archive.open("r+b") as file:
        file.seek(info.header_offset + 30 + len(name) + info.compress_size // 2)
        (byte,) = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))


def test_a_broken_member_is_a_broken_medium_and_other_media_are_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screenspot(tmp_path / "plain")
    data = pack(tmp_path / "plain", tmp_path / "packed")
    (archive,) = data.glob("*.zip")
    with zipfile.ZipFile(archive) as packed:
        spoiled = next(info.filename for info in packed.infolist() if not info.is_dir())
    spoil(archive, spoiled)
    with pytest.raises(SystemExit) as done:
        main(["validate", "screenspot", str(data), "--workers", "1", "--json"])
    said = capsys.readouterr()
    assert done.value.code == 1, said.err
    codes = [found["code"] for found in json.loads(said.out)["findings"]]
    assert codes == ["media-unreadable"]
    assert f"the file in {archive.name} is broken" in said.out
    task = get_task("screenspot")
    with pytest.raises(DataError, match="none of 2 steps has a usable target"):  # it has the size
        evaluate(task, task.load(data), Looking(), tmp_path / "run")


def test_a_broken_annotation_in_a_zip_ends_the_command_and_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    screenspot(tmp_path / "plain")
    (row,) = (tmp_path / "plain").rglob("*.json")
    (tmp_path / "packed").mkdir()
    zip_of((row.name, row.read_bytes()))(tmp_path / "packed" / "rows.zip")
    spoil(tmp_path / "packed" / "rows.zip", row.name)
    with pytest.raises(SystemExit) as done:
        main(["info", "screenspot", str(tmp_path / "packed")])
    assert done.value.code == 2
    assert "the file in rows.zip is broken" in capsys.readouterr().err


def test_rows_that_are_in_a_zip_and_elsewhere_are_a_finding(tmp_path: Path) -> None:
    """The ids of many benchmarks tell files apart, so that both copies count."""
    data, held = tmp_path / "data", io.BytesIO()
    screenspot(data)
    with zipfile.ZipFile(held, "w") as archive:
        for path in data.rglob("*.*"):
            archive.write(path, Path("old", path.relative_to(data)))
    task = get_task("screenspot")
    assert not task.load(data).findings
    (data / "backup.zip").write_bytes(held.getvalue())
    source = task.load(data)
    assert len(source.steps) == 4
    (again,) = source.findings
    assert (again.code, again.severity) == ("rows-again", "warning")
    assert "backup.zip repeats 1 file of rows" in again.what
    (data / "other.zip").write_bytes(held.getvalue())
    for path in data.glob("*.json"):
        path.unlink()
    (again,) = task.load(data).findings
    assert "other.zip repeats 1 file of rows" in again.what


def test_a_cache_in_data_with_zips_is_refused(
    screens: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("OMNIDATA_CACHE", str(screens / "cache"))
    with pytest.raises(SystemExit) as done:
        main(["info", "screenspot", str(screens)])
    assert done.value.code == 2
    assert "the cache lies in data with zips" in capsys.readouterr().err
    assert not (screens / "cache").exists()


def test_rows_for_datasets_are_those_of_the_zip_as_it_is_now(
    tmp_path: Path,
) -> None:
    """Their media lie in the table, which `datasets` keeps as long as its fingerprint holds."""
    screenspot(tmp_path / "plain")
    data = pack(tmp_path / "plain", tmp_path / "packed")
    omnidata.register()

    def load() -> Any:
        cache = str(tmp_path / "tables")
        return datasets.load_dataset(
            "screenspot", data_dir=str(data), split="test", cache_dir=cache
        )

    (picture,) = (tmp_path / "plain" / "images").iterdir()
    assert load()[0]["screenshot"]["bytes"] == picture.read_bytes()
    zip_of((picture.name, b"other"))(data / "images.zip")
    assert load()[0]["screenshot"]["bytes"] == b"other"
    rows = omnidata.load_dataset("screenspot", data, split="test", cache_dir=tmp_path / "tables")
    assert rows[0]["screenshot"]["bytes"] == b"other"


def test_a_cache_in_which_no_folder_can_be_made_is_said(screens: Path) -> None:
    root = mirror.local(screens)
    folder = root.parents[len(screens.parts) - 2]
    shutil.rmtree(folder)
    folder.write_text("in the way")
    with pytest.raises(StoreError, match=r"data: the cache cannot keep it \(Not a directory\)"):
        mirror.local(screens)


def test_a_snapshot_of_the_hub_whose_zip_is_a_link_to_its_blob_is_read(tmp_path: Path) -> None:
    own = tmp_path / "datasets--o--n"
    data = own / "snapshots" / "1"
    (own / "blobs").mkdir(parents=True)
    screenspot(tmp_path / "plain")
    for number, path in enumerate(pack(tmp_path / "plain", tmp_path / "packed").iterdir()):
        path.rename(own / "blobs" / str(number))
        data.mkdir(parents=True, exist_ok=True)
        (data / path.name).symlink_to(f"../../blobs/{number}")
    task = get_task("screenspot")
    there = task.load(data)
    assert there.root != data
    assert told(there) == told(task.load(tmp_path / "plain"))


def test_a_dataset_of_the_hub_that_is_all_in_zips_is_read_by_its_name(
    hub: Hub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `omnidata demo` and many others lay it out: the data are a folder `data`, here a zip."""
    screenspot(tmp_path / "plain" / "data")
    hub.add("org/zips", files_of(pack(tmp_path / "plain", tmp_path / "packed")))
    rows = omnidata.load_dataset("screenspot", "hf://org/zips", split="test")
    assert rows[0]["screenshot"]["bytes"].startswith(b"\x89PNG")
    with pytest.raises(SystemExit) as done:
        main(["info", "screenspot", "hf://org/zips"])
    assert done.value.code == 0
    said = capsys.readouterr()
    assert "2 steps" in said.out
    assert "its zips are read as if unpacked" in said.err


def test_a_zip_in_parts_is_not_read_and_the_finding_says_how_it_is(tmp_path: Path) -> None:
    data = tmp_path / "data"
    screenspot(data)
    shutil.rmtree(data / "images")
    parts(data)
    source = get_task("screenspot").load(data)
    assert source.root == data
    (absent,) = source.findings
    assert absent.code == "media-absent"
    assert "unpack images.zip, which cannot be read: it is the last of 3 parts" in absent.remedy


def test_a_zip_that_a_link_leads_to_elsewhere_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    zip_of(("a.png", b"private"))(tmp_path / "images.zip")
    (tmp_path / "data" / "images.zip").symlink_to(tmp_path / "images.zip")
    assert mirror.local(tmp_path / "data") == tmp_path / "data"


def test_a_zip_whose_folder_is_a_link_elsewhere_is_a_file(screens: Path, tmp_path: Path) -> None:
    """Else what lies there would be shown as the data's, and its links be no links."""
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (screens / "images").symlink_to(tmp_path / "elsewhere")
    assert mirror.local(screens) == screens


def test_zips_with_names_that_nobody_can_say_or_see_are_files(screens: Path) -> None:
    own = (screens / "images.zip").read_bytes()
    Path(os.fsdecode(os.fsencode(screens) + b"/\xff.zip")).write_bytes(own)
    (screens / ".hidden.zip").write_bytes(own)
    root = mirror.local(screens)
    assert sorted(path.name for path in root.iterdir() if path.is_dir()) == ["images"]
    fsspec = pytest.importorskip("fsspec")
    names = {"...zip", ".zip", ".zips.zip", "b/...zip", "images.zip"}
    for name in names:
        fsspec.filesystem("memory").pipe(f"/unseen/{name}", own)
    root = mirror.local("memory://unseen")
    kept = {name for name in names if name != "images.zip"}
    members = {"images/a.png", "images/b/c.png", ".zips/images.zip"}
    assert {*listed(root.parent)} == {f"unseen/{name}" for name in kept | members}


def test_more_than_a_medium_may_have_is_refused_before_it_is_unpacked(
    screens: Path, cache: Path
) -> None:
    ref = MediaRef("image", mirror.local(screens), "images/a.png")
    with pytest.raises(MediaError, match="5,000 bytes"):
        media.resolve(ref, budget=media.Budget(max_bytes=1000))
    assert (ref.root / ref.path).read_bytes() == bytes(5000), "it was unpacked"


def test_threads_and_forked_processes_read_members_at_once(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    contents = [os.urandom(70_000) for _ in range(40)]
    members = [(f"{number}.png", content) for number, content in enumerate(contents)]
    zip_of(*members, method=8)(data / "images.zip")
    root = mirror.local(data)
    refs = [MediaRef("image", root, f"images/{number}.png") for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(media.read_bytes, refs[:20] * 2)) == contents[:20] * 2
    code = (
        "import os, sys; from pathlib import Path\n"
        "from omnidata import media; from omnidata.types import MediaRef\n"
        f"refs = [MediaRef('image', Path({str(root)!r}), f'images/{{n}}.png') for n in range(40)]\n"
        "media.read_bytes(refs[0])\n"
        "children = [os.fork() for _ in range(2)]\n"
        "for ref in refs: media.read_bytes(ref)\n"
        "if 0 in children: os._exit(0)\n"
        "sys.exit(any(os.waitpid(child, 0)[1] for child in children))\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
    assert [media.read_bytes(ref) for ref in refs] == contents


@given(data=st.data())
def test_a_zip_of_whatever_bytes_is_read_or_refused(data: st.DataObject) -> None:
    """What is damaged is no file, or one that has not the check sum that it should have."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.png", b"A" * 300 + bytes(range(256)))
        archive.writestr("b.png", b"B" * 300)
    damaged = bytearray(held.getvalue())
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        members = zips.directory(Path("a.zip"), io.BytesIO(damaged), len(damaged))
    except DataError:
        return
    for member in members.values():
        with suppress(ValueError):
            found = b"".join(zips.content(member, lambda start, end: bytes(damaged[start:end])))
            assert (len(found), zlib.crc32(found)) == (member.size, member.crc)


# On a store.


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    pytest.importorskip("s3fs", reason="omnidata[s3] is not installed: `make test` installs it")
    pytest.importorskip("moto", reason="moto is not installed: `make test` installs it")
    from tests.s3_server import serving

    with serving() as server:
        yield server


def test_data_in_zips_on_a_store_are_the_same_steps(
    packed: tuple[str, Path, Path], store: Any
) -> None:
    name, data, packs = packed
    store.put_folder(packs, "zips")
    task = get_task(name)
    assert told(task.load("s3://bucket/zips")) == told(task.load(data))  # type: ignore[arg-type]


def test_one_of_200_members_is_fetched_without_the_zip(store: Any, tmp_path: Path) -> None:
    contents = [os.urandom(50_000) for _ in range(200)]
    members = [(f"{number}.png", content) for number, content in enumerate(contents)]
    zip_of(*members, method=8)(tmp_path / "images.zip")
    assert (tmp_path / "images.zip").stat().st_size > 10_000_000
    store.gets.clear()
    store.put("members/images.zip", (tmp_path / "images.zip").read_bytes())
    root = mirror.local("s3://bucket/members")
    looked = store.fetched()
    assert 0 < looked <= 2 * 256 * 1024, "more than the directory was fetched"
    ref = MediaRef("image", root, "images/77.png")
    assert media.read_bytes(ref) == contents[77]
    assert store.fetched() - looked < 50_000 + 1000
    assert len(store.gets) <= 3
    # Neither comes again: it is in the cache.
    assert mirror.local("s3://bucket/members") == root
    assert media.read_bytes(ref) == contents[77]
    assert len(store.gets) <= 3
    # What is there as an object is no member, and the zip a file again.
    store.put("members/images/3.png", b"own")
    assert mirror.local("s3://bucket/members") == root
    assert sorted(path.name for path in root.iterdir()) == [".zips", "images", "images.zip"]
    assert [path.name for path in (root / "images").iterdir()] == ["3.png"]


def test_a_zip_of_a_store_that_is_not_read_is_a_file(store: Any, tmp_path: Path) -> None:
    zip_of((mode_of(0o120777), b"/etc/passwd"))(tmp_path / "images.zip")
    content = (tmp_path / "images.zip").read_bytes()
    store.put("linked/images.zip", content)
    root = mirror.local("s3://bucket/linked")
    mirror.fill(root / "images.zip")
    assert (root / "images.zip").read_bytes() == content
    with pytest.raises(MissingMediaError, match="is a link or a device"):
        media.resolve(MediaRef("image", root, "images/a.png"))
