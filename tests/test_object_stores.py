"""Data on object stores, over a real S3 server and the real s3fs."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from omnidata import load_dataset, media, mirror, mirror_cache
from omnidata.cli import main
from omnidata.errors import DataError, MediaError, PlatformError, StoreError, UsageError
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from omnidata.types import ByteRange, MediaRef
from tests.run.scripted import Looking, finals
from tests.trees import row, write_app

pytest.importorskip("s3fs", reason="omnidata[s3] is not installed: `make test` installs it")
pytest.importorskip("moto", reason="moto is not installed: `make test` installs it")
if TYPE_CHECKING:
    from tests.s3_server import S3Server

TASK = get_task("omnigui")
DATA = "s3://bucket/omnigui"


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    from tests.s3_server import serving

    with serving() as server:
        yield server


@pytest.fixture
def store(server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """The server, with an empty cache."""
    monkeypatch.setenv("OMNIDATA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("omnidata.object_stores._WAITS", (0.01, 0.02))
    server.gets.clear()
    before = server.error
    yield server
    server.fails, server.error = lambda key: False, before


@pytest.fixture(scope="module")
def uploaded(server: S3Server, few: Path) -> str:
    server.put_folder(few, "omnigui")
    return DATA


def age(tmp_path: Path) -> None:
    """Let an hour pass for what the cache holds."""
    import sqlite3

    with sqlite3.connect(tmp_path / "cache" / "stores.db") as base:
        base.execute("UPDATE objects SET used = used - 3600")
    base.close()


def held(tmp_path: Path) -> int:
    """Bytes on the disk below the cache's folder of files."""
    files = (path for path in (tmp_path / "cache" / "stores").rglob("*") if path.is_file())
    return sum(path.stat().st_blocks * 512 for path in files)


def test_steps_fingerprint_and_findings_are_those_of_the_same_data_on_a_disk(
    store: S3Server, uploaded: str, few: Path
) -> None:
    here, there = TASK.load(few), TASK.load(uploaded)  # type: ignore[arg-type]
    assert there.fingerprint == here.fingerprint
    assert there.findings == here.findings == []
    assert [step.sample_id for step in there.steps] == [step.sample_id for step in here.steps]
    for step, same in zip(there.steps, here.steps, strict=True):
        assert step.action == same.action
        assert {role: ref and ref.path for role, ref in step.media.items()} == {
            role: ref and ref.path for role, ref in same.media.items()
        }
    assert not [key for key, _ in store.gets if key.endswith((".png", ".mp4", ".wav"))]


def test_a_run_reads_only_the_media_that_it_shows_and_records_the_url(
    store: S3Server, uploaded: str, few: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    source = TASK.load(uploaded)  # type: ignore[arg-type]
    evaluate(TASK, source, Looking(), out, limit=3)
    shown = {
        f"omnigui/{ref.root.relative_to(source.root).as_posix()}/{ref.path}"
        for step in source.steps[:3]
        for ref in step.media.values()
        if ref
    }
    asked = {key for key, _ in store.gets if key.endswith((".png", ".mp4", ".wav"))}
    assert asked
    assert asked <= shown
    assert len(store.gets) == len(set(store.gets)), "something was fetched twice"
    recorded = json.loads((out / "run.json").read_text())
    assert recorded["data"] == uploaded
    # Another machine goes on with data of its own.
    model = Looking()
    evaluate(TASK, TASK.load(few), model, out, limit=3)
    assert not model.asked


def test_verbs_take_urls_and_name_them(
    store: S3Server, uploaded: str, few: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store.put("broken/Chirp/localization.jsonl", b"{not json}\n")
    with pytest.raises(SystemExit) as done:
        main(["info", uploaded, "--json"])
    assert done.value.code == 0, capsys.readouterr().err
    assert json.loads(capsys.readouterr().out)
    with pytest.raises(SystemExit) as done:
        main(["info", "omnigui", "s3://bucket/broken", "--cache-dir", str(tmp_path / "other")])
    assert done.value.code == 2
    told = capsys.readouterr().err
    assert "s3://bucket/broken" in told
    assert str(tmp_path) not in told
    assert (tmp_path / "other" / "stores.db").is_file()
    assert os.environ["OMNIDATA_CACHE"] == str(tmp_path / "cache")


@pytest.mark.parametrize(
    "verb",
    [
        "evaluate omnigui {data} --model baseline:center --out s3://bucket/run",
        "convert omnigui {data} s3://bucket/out",
        "evaluate omnigui {data} --model baseline:center --out file://{data}/run",
    ],
)
def test_what_is_written_lies_on_a_disk(
    verb: str,
    store: S3Server,
    few: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as refused:
        main(verb.format(data=few).split())
    assert refused.value.code == 2
    said = capsys.readouterr().err
    assert "this has to lie on a disk" in said or "a path is named as it is here" in said
    assert not list(tmp_path.glob("s3*")) and not list(tmp_path.glob("file*"))


def test_media_on_a_store_are_not_linked(
    store: S3Server, uploaded: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["convert", "omnigui", uploaded, str(tmp_path / "out"), "--link"])
    assert refused.value.code == 2
    assert "cannot be linked" in capsys.readouterr().err


def test_tables_of_a_store_hold_the_media_themselves(
    store: S3Server, uploaded: str, few: Path, tmp_path: Path
) -> None:
    there = load_dataset("omnigui", uploaded, split="test", cache_dir=tmp_path / "a")
    here = load_dataset("omnigui", few, split="test", cache_dir=tmp_path / "b")
    assert there["sample_id"] == here["sample_id"]
    from datasets import Image

    ours, own = (
        table.cast_column("screenshot", Image(decode=False))[0]["screenshot"]
        for table in (there, here)
    )
    assert ours["bytes"] == Path(own["path"]).read_bytes()


def test_a_url_with_credentials_is_refused_and_not_repeated(store: S3Server) -> None:
    for url in (
        "s3://key:geheim@bucket/data",
        "s3://key:ge/heim@bucket/data",
        "abfs://c@acc:geheim/data",
        "s3://bucket/data?X-Amz-Signature=geheim",
    ):
        with pytest.raises(UsageError) as refused:
            TASK.load(url)  # type: ignore[arg-type]
        assert "heim" not in str(refused.value)


def test_what_is_no_store_and_what_is_not_there_is_said(
    store: S3Server, tmp_path: Path, few: Path
) -> None:
    with pytest.raises(UsageError, match="no store of objects"):
        mirror.local("http://host/data")
    with pytest.raises(DataError, match="s3://lacking/data: nothing is there"):
        mirror.local("s3://lacking/data")
    with pytest.raises(PlatformError, match=r"pip install .*azure"):
        mirror.local("abfs://container/data")
    assert mirror.local(few.as_uri()) == few
    with pytest.raises(DataError, match="s3://lacking/data: nothing is there"):
        mirror.local(Path("s3://lacking/data"))  # a path has one slash


def noise(path: Path, side: int = 400) -> None:
    """A picture that nothing makes smaller."""
    import numpy as np
    from PIL import Image

    pixels = np.random.default_rng(len(path.name)).integers(0, 256, (side, side, 3), np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, compress_level=0)


def screens(folder: Path, steps: int, side: int = 400) -> Path:
    """Data of so many steps of an episode, each with a screenshot alone."""
    changes: dict[str, Any] = {
        **dict.fromkeys(("image_width", "image_height"), side),
        **dict.fromkeys(("audio_path", "video_path"), ""),
        "result_touch_xy": "[[10,10],[20,20]]",
    }
    app = write_app(folder / "TED", [row(step=number, **changes) for number in range(steps)])
    for number in range(steps):
        noise(app / "media" / "T1" / f"{number + 1}.png", side)
    return folder


def test_cells_of_a_repository_are_read_by_ranges(
    store: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnidata.data.convert import convert

    monkeypatch.setattr("omnidata.data.convert_shards._GROUP_BYTES", 1024**2)
    out = tmp_path / "repository"
    convert(TASK.load(screens(tmp_path / "data", 24)), out, embed=True)
    store.put_folder(out, "repository")
    (shard,) = (out / "data").rglob("*.parquet")
    size = shard.stat().st_size
    local, source = TASK.load(out), TASK.load("s3://bucket/repository")  # type: ignore[arg-type]
    assert source.fingerprint == local.fingerprint
    for place in (5, 20):
        ref, own = source.steps[place].media["screenshot"], local.steps[place].media["screenshot"]
        assert ref
        assert own
        before = store.fetched(shard.name)
        assert media.read_bytes(ref) == media.read_bytes(own)
        assert 0 < store.fetched(shard.name) - before < size / 5
    assert store.fetched(shard.name) > 0
    assert ref
    assert media.place(ref).startswith("s3://bucket/repository/data/")
    table = load_dataset("omnigui", "s3://bucket/repository", split="test", cache_dir=tmp_path)
    assert len(table) == 24


def test_what_was_used_longest_ago_goes_first_and_comes_again(
    store: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = screens(tmp_path / "data", 8)
    store.put_folder(data, "many")
    source = TASK.load("s3://bucket/many")  # type: ignore[arg-type]
    refs = [step.media["screenshot"] for step in source.steps]
    one = len(media.read_bytes(refs[0]))  # type: ignore[arg-type]
    monkeypatch.setenv("OMNIDATA_CACHE_BYTES", str(4 * one))
    with (refs[0].root / refs[0].path).open("rb") as reader:  # type: ignore[union-attr]
        for ref in refs:
            age(tmp_path)
            assert ref
            assert media.read_bytes(ref) == (data / "TED" / "media" / ref.path).read_bytes()
        assert held(tmp_path) < 5 * one
        assert reader.read() == (data / "TED" / "media" / "T1" / "1.png").read_bytes()
    before = len(store.gets)
    assert refs[0]
    assert refs[-1]
    assert media.read_bytes(refs[-1]) and len(store.gets) == before
    assert media.read_bytes(refs[0]) and len(store.gets) == before + 1
    # What is in use stays, whatever the limit: a run under it comes to its end.
    monkeypatch.setenv("OMNIDATA_CACHE_BYTES", str(one + 1))
    model = Looking()
    evaluate(TASK, source, model, tmp_path / "run")
    assert set(finals(tmp_path / "run").values()) == {"ok"}
    monkeypatch.setenv("OMNIDATA_CACHE_BYTES", "1000")
    age(tmp_path)
    mirror.fill(refs[-1].root / refs[-1].path)  # it is there already
    store.put("many/TED/media/T1/1.png", b"x" * 2000)
    with pytest.raises(StoreError, match="more than the cache may hold"):
        mirror.fill(mirror.local("s3://bucket/many") / "TED/media/T1/1.png")


def test_what_may_not_have_reached_the_disk_is_fetched_again_after_a_power_cut(
    store: S3Server, tmp_path: Path
) -> None:
    import sqlite3

    store.put("cut/early", b"1" * 1000)
    store.put("cut/late", b"2" * 1000)
    root = mirror.local("s3://bucket/cut")
    mirror.fill(root / "early")
    age(tmp_path)
    mirror.fill(root / "late")
    with sqlite3.connect(tmp_path / "cache" / "stores.db") as base:
        base.execute("UPDATE boot SET name = 'another'")
    base.close()
    (root / "late").write_bytes(bytes(1000))
    store.gets.clear()
    code = (
        "from omnidata import mirror; from pathlib import Path\n"
        f"for name in ('early', 'late'): mirror.fill(Path({str(root)!r}) / name)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert [key for key, _ in store.gets] == ["cut/late"]
    assert (root / "late").read_bytes() == b"2" * 1000


def test_processes_share_a_cache(store: S3Server, tmp_path: Path) -> None:
    store.put_folder(screens(tmp_path / "data", 12), "shared")
    code = (
        "import sys, hashlib\n"
        "from omnidata import get_task, media\n"
        "source = get_task('omnigui').load('s3://bucket/shared')\n"
        "refs = [step.media['screenshot'] for step in source.steps]\n"
        "for ref in refs: print(hashlib.sha256(media.read_bytes(ref)).hexdigest())\n"
    )
    command = [sys.executable, "-c", code]
    runs = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    told = [run.communicate(timeout=120) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], told
    assert told[0][0] == told[1][0]
    assert len(told[0][0].split()) == 12
    asked = [key for key, _ in store.gets]
    assert len(asked) == len(set(asked)), "something was fetched twice"


def test_threads_that_want_the_same_object_fetch_it_once(store: S3Server, tmp_path: Path) -> None:
    store.put("one/a.bin", os.urandom(3_000_000))
    path = mirror.local("s3://bucket/one") / "a.bin"
    threads = [threading.Thread(target=mirror.fill, args=(path,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.fetched() == path.stat().st_size


def test_a_changed_object_is_noticed_and_versions_are_never_mixed(store: S3Server) -> None:
    first, second = b"a" * 1_000_000, b"b" * 1_000_000
    store.put("changing/a.bin", first)
    store.put("changing/gone.bin", b"1")
    path = mirror.local("s3://bucket/changing") / "a.bin"
    stamp = path.stat()
    mirror.fill(path, 0, 1000)
    open_before = path.open("rb")
    store.put("changing/a.bin", second)
    store.remove("changing/gone.bin")
    with pytest.raises(StoreError, match="changed since it was listed"):
        mirror.fill(path)
    with pytest.raises(StoreError, match="is gone"):
        mirror.fill(path.with_name("gone.bin"))
    assert mirror.local("s3://bucket/changing") == path.parent
    assert path.stat().st_mtime_ns != stamp.st_mtime_ns
    assert not path.with_name("gone.bin").exists()
    mirror.fill(path)
    assert path.read_bytes() == second
    with open_before:
        assert open_before.read(1000) == first[:1000]
    fetched = store.fetched()
    mirror.fill(mirror.local("s3://bucket/changing/a.bin"))
    assert store.fetched() == fetched, "what has not changed is not fetched again"


def test_a_listing_holds_for_a_command_whatever_another_lists(store: S3Server) -> None:
    """The cache is one: what another command finds is not what this one has begun to read."""
    store.put("held/a.bin", b"a" * 1_000_000)
    store.put("held/gone.bin", b"1")
    path = mirror.local("s3://bucket/held") / "a.bin"
    reader = mirror.Ranged(path)
    assert reader.read(10) == b"a" * 10
    store.put("held/a.bin", b"b" * 1_000_000)
    store.remove("held/gone.bin")
    lists = "import os; os.environ.pop('OMNIDATA_LISTED'); from omnidata import mirror; "
    lists += "mirror.fill(mirror.local('s3://bucket/held') / 'a.bin')"
    subprocess.run([sys.executable, "-c", lists], check=True, timeout=60)
    reader.seek(600_000)
    with pytest.raises(StoreError, match="changed since it was listed"):
        reader.read(10)
    with pytest.raises(StoreError, match=r"s3://bucket/held/gone\.bin: the object is gone"):
        mirror.fill(path.with_name("gone.bin"))
    # Processes that this one starts hold to its listing too.
    reads = (
        f"from pathlib import Path; from omnidata import mirror; mirror.fill(Path({str(path)!r}))"
    )
    told = subprocess.run(
        [sys.executable, "-c", reads], capture_output=True, text=True, timeout=60, check=False
    )
    assert "changed since it was listed" in told.stderr
    mirror.fill(mirror.local("s3://bucket/held") / "a.bin")


def test_a_request_that_fails_is_sent_again(store: S3Server, uploaded: str, tmp_path: Path) -> None:
    failed: set[str] = set()

    def once(key: str) -> bool:
        fails = key not in failed
        failed.add(key)
        return fails

    store.fails = once
    source = TASK.load(uploaded)  # type: ignore[arg-type]
    evaluate(TASK, source, Looking(), tmp_path / "run", limit=2)
    assert set(finals(tmp_path / "run").values()) == {"ok"}
    assert any(key.endswith(".png") for key in failed)


def test_media_that_a_store_does_not_give_are_asked_for_again_when_the_run_goes_on(
    store: S3Server, uploaded: str, tmp_path: Path
) -> None:
    source = TASK.load(uploaded)  # type: ignore[arg-type]
    lost = source.steps[1].media["screenshot"]
    assert lost
    store.fails = lambda key: key.endswith(lost.path)
    out = tmp_path / "run"
    evaluate(TASK, source, Looking(), out, limit=4)
    deliveries = finals(out)
    assert deliveries[source.steps[0].sample_id] == "ok"
    assert deliveries[source.steps[1].sample_id] == "media_error"
    told = (out / "predictions.jsonl").read_text()
    assert f"{mirror_cache.display_path(lost.root)}/{lost.path}" in told
    assert "asked 3 times" in told
    assert "geheim" not in told
    store.fails = lambda key: False
    model = Looking()
    evaluate(TASK, source, model, out, limit=4)
    assert source.steps[0].sample_id not in model.asked
    assert set(finals(out).values()) == {"ok"}


def test_annotations_that_a_store_does_not_give_end_the_work(
    store: S3Server, uploaded: str
) -> None:
    store.fails = lambda key: key.endswith(".json")
    with pytest.raises(StoreError, match=r"s3://bucket/omnigui/.*: the store gives no answer"):
        TASK.load(uploaded)  # type: ignore[arg-type]
    store.fails = lambda key: True
    with pytest.raises(StoreError, match="s3://bucket/omnigui: the store gives no answer"):
        TASK.load(uploaded)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "verb",
    [
        "convert omnigui {data} {out}",
        "export omnigui {data} {out} --format swift",
        pytest.param(
            "validate omnigui {data} --workers 1 --quarantine {out}",
            marks=pytest.mark.full("its processes wait as long as a store is given"),
        ),
    ],
)
def test_nothing_lasting_is_made_without_media_that_a_store_does_not_give(
    verb: str,
    store: S3Server,
    uploaded: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store.fails = lambda key: key.endswith(".wav")
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as ended:
        main(verb.format(data=uploaded, out=out).split())
    assert ended.value.code == 2
    assert "StoreError: s3://bucket/omnigui/" in capsys.readouterr().err
    assert not out.exists() or not list(out.iterdir())


def test_a_store_that_gives_no_access_is_asked_once(
    store: S3Server, uploaded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    store.error = "403 Forbidden"
    store.fails = lambda key: not asked.append(key)  # type: ignore[func-returns-value]
    with pytest.raises(StoreError, match="s3://bucket/omnigui: the store gives no access"):
        mirror.local(uploaded)
    assert len(asked) == 1


def test_parts_of_large_files_are_fetched_alone(store: S3Server, tmp_path: Path) -> None:
    plain = os.urandom(4_000_000)
    store.put("parts/plain.bin", plain)
    store.put("parts/packed.gz", gzip.compress(plain, 1))
    root = mirror.local("s3://bucket/parts")

    def read(name: str, offset: int) -> bytes:
        return media.read_bytes(MediaRef("image", root, "x", cell=ByteRange(name, offset, 1000)))

    for offset in (3_000_000, 10):
        assert read("plain.bin", offset) == plain[offset : offset + 1000]
    assert store.fetched("plain.bin") <= 3 * 256 * 1024
    assert read("packed.gz", 1_000_000) == plain[1_000_000:1_001_000]
    assert store.fetched("packed.gz") < 3_000_000
    assert read("packed.gz", 3_500_000) == plain[3_500_000:3_501_000]
    assert len(store.gets) < 12


@pytest.mark.parametrize(
    "key",
    [
        "a/../../b",
        "/etc/passwd",
        "a//b",
        "./a",
        "a\\b",
        "a\0b",
        "A/b",
        "good/x",
        "n" * 300,
        "\ud800",
    ],
)
def test_names_that_are_no_files_of_the_data_are_refused(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fsspec.implementations.memory import MemoryFileSystem

    def find(_: object, base: str, **options: Any) -> dict[str, Any]:
        about = {"type": "file", "size": 1, "created": datetime.now(UTC)}
        return {f"{base}/{name}": about for name in names}

    monkeypatch.setattr(MemoryFileSystem, "find", find)
    names = ["good", "a/b"]
    mirror.local("memory://bucket/fine")
    names.append(key)
    with pytest.raises(DataError, match="cannot be a file of the data"):
        mirror.local("memory://bucket/data")


def test_hostile_keys_write_nothing_outside_the_cache(store: S3Server, tmp_path: Path) -> None:
    store.put("hostile/../../../escaped", b"x")
    store.put("hostile/fine", b"x")
    with pytest.raises(DataError, match="cannot be a file of the data"):
        mirror.local("s3://bucket/hostile")
    assert not list(tmp_path.rglob("escaped"))
    assert not list(tmp_path.rglob("fine"))


def test_a_size_that_nobody_allows_is_refused_before_it_is_fetched(
    store: S3Server, tmp_path: Path
) -> None:
    store.put("large/a.png", b"x" * 1_000_000)
    ref = MediaRef("image", mirror.local("s3://bucket/large"), "a.png")
    with pytest.raises(MediaError, match="1,000,000 bytes"):
        media.resolve(ref, budget=media.Budget(max_bytes=1000))
    assert not store.gets
