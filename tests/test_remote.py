"""Data on object stores, over a real S3 server and the real s3fs."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import subprocess
import sys
import textwrap
import threading
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from omnidata import load_dataset, media
from omnidata.errors import DataError, MediaError, PlatformError, StoreError, UsageError
from omnidata.loaders import steps_cache
from omnidata.loaders.hub import sending_token
from omnidata.run.evaluate import evaluate
from omnidata.tasks import get_task
from omnidata.types import ByteRange, LoadedDataset, MediaRef
from tests.cli.running import EXPORT, Started, here
from tests.hub_server import TOKEN, Answer, Hub, files_of, serving
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
    monkeypatch.setattr("omnidata.stores._WAITS", (0.01, 0.02))
    server.gets.clear()
    before = server.error
    yield server
    server.fails, server.error = lambda key: False, before
    server.bodies.clear()


@pytest.fixture(scope="module")
def uploaded(server: S3Server, few: Path) -> str:
    server.put_folder(few, "omnigui")
    return DATA


def cached(tmp_path: Path) -> list[Path]:
    """The files that the cache has downloaded, each of which takes up blocks of the disk."""
    files = (path for path in (tmp_path / "cache" / "remote").rglob("*") if path.is_file())
    return [path for path in files if path.stat().st_blocks and path.name != "about.json"]


def age(tmp_path: Path) -> None:
    """Let an hour pass for the cache."""
    for path in cached(tmp_path):
        found = path.stat()
        os.utime(path, ns=(found.st_atime_ns - 3600 * 10**9, found.st_mtime_ns))


def load(url: str) -> LoadedDataset:
    return TASK.load(url)  # type: ignore[arg-type]


def screenshots(source: LoadedDataset) -> list[MediaRef]:
    return [ref for step in source.steps if (ref := step.media["screenshot"])]


def test_steps_fingerprint_and_findings_are_those_of_the_same_data_on_a_disk(
    store: S3Server, uploaded: str, few: Path
) -> None:
    here, there = TASK.load(few), load(uploaded)
    assert there.fingerprint == here.fingerprint
    assert there.findings == here.findings == []
    for step, same in zip(there.steps, here.steps, strict=True):
        assert (step.sample_id, step.action) == (same.sample_id, same.action)
        assert {role: ref and ref.path for role, ref in step.media.items()} == {
            role: ref and ref.path for role, ref in same.media.items()
        }
    assert not [key for key, _ in store.gets if key.endswith((".png", ".mp4", ".wav"))]


def test_many_steps_are_kept_until_the_listing_changes(
    store: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OMNIDATA_NO_CACHE")
    monkeypatch.setenv("OMNIDATA_STEPS_IN_MEMORY", "0")

    def upload(steps: int) -> None:
        rows = [row("a", number) for number in range(steps)]
        store.put("kept/steps.json", json.dumps(rows).encode())

    kept: list[int] = []
    with steps_cache.reporting(lambda entry: kept.append(entry.steps)):
        upload(2)
        assert load("s3://bucket/kept") == load("s3://bucket/kept")
        upload(3)
        assert load("s3://bucket/kept") == load("s3://bucket/kept")
    assert kept == [2, 3]


def test_a_store_without_versions_tells_them_by_time(
    few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fsspec

    monkeypatch.setenv("OMNIDATA_CACHE", str(tmp_path / "cache"))
    fsspec.filesystem("memory").put(f"{few}/", "/bucket/few", recursive=True)
    source, here = load("memory://bucket/few"), TASK.load(few)
    assert source.fingerprint == here.fingerprint
    refs = zip(screenshots(source), screenshots(here), strict=True)
    assert all(media.read_bytes(ref) == media.read_bytes(own) for ref, own in refs)


def test_a_run_reads_only_the_media_that_it_shows_and_records_the_url(
    store: S3Server, uploaded: str, few: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    source = load(uploaded)
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
    store: S3Server, uploaded: str, few: Path, tmp_path: Path
) -> None:
    store.put("broken/Chirp/localization.jsonl", b"{not json}\n")
    assert json.loads(here("info", uploaded, "--json").stdout)
    other = ("--cache-dir", tmp_path / "other")
    told = here("info", "omnigui", "s3://bucket/broken", *other, code=2).stderr
    assert "s3://bucket/broken" in told
    assert str(tmp_path) not in told
    assert (tmp_path / "other" / "remote").is_dir()
    assert os.environ["OMNIDATA_CACHE"] == str(tmp_path / "cache")


@pytest.mark.parametrize(
    "verb",
    [
        "evaluate omnigui {data} --model baseline:center --out s3://bucket/run",
        "convert omnigui {data} s3://bucket/out",
        "demo --out s3://bucket/out",
        "fetch omnigui s3://bucket/out --dry-run",
        "evaluate omnigui {data} --model baseline:center --out file://{data}/run",
    ],
)
def test_what_is_written_lies_on_a_disk(
    verb: str, store: S3Server, few: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = here(*verb.format(data=few).split(), code=2).stderr
    assert "this must be on a disk" in said or "written without a scheme" in said
    assert not list(tmp_path.glob("s3*")) and not list(tmp_path.glob("file*"))


def test_media_on_a_store_are_not_linked(store: S3Server, uploaded: str, tmp_path: Path) -> None:
    done = here("convert", "omnigui", uploaded, tmp_path / "out", "--link", code=2)
    assert "cannot be linked" in done.stderr


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
            load(url)
        assert "heim" not in str(refused.value)


def test_other_schemes_empty_prefixes_and_missing_packages_are_errors(
    store: S3Server, few: Path
) -> None:
    with pytest.raises(UsageError, match="no supported object store"):
        load("http://host/data")
    with pytest.raises(DataError, match="s3://lacking/data: nothing is there"):
        load("s3://lacking/data")
    with pytest.raises(PlatformError, match=r"pip install .*azure"):
        load("abfs://container/data")
    assert load(few.as_uri()).root == few
    with pytest.raises(DataError, match="s3://lacking/data: nothing is there"):
        TASK.load(Path("s3://lacking/data"))  # a path has one slash


def noise(path: Path, side: int = 400) -> None:
    """A picture that nothing makes smaller."""
    import numpy as np
    from PIL import Image

    pixels = np.random.default_rng(zlib.crc32(path.name.encode())).integers(
        0, 256, (side, side, 3), np.uint8
    )
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


def test_a_repository_with_its_media_is_read_as_from_a_disk(
    store: S3Server, tmp_path: Path
) -> None:
    from omnidata.data.convert import convert

    out = tmp_path / "repository"
    convert(TASK.load(screens(tmp_path / "data", 4, side=40)), out, embed=True)
    store.put_folder(out, "repository")
    local, source = TASK.load(out), load("s3://bucket/repository")
    assert source.fingerprint == local.fingerprint
    for ref, own in zip(screenshots(source), screenshots(local), strict=True):
        assert media.read_bytes(ref) == media.read_bytes(own)
        assert media.place(ref).startswith("s3://bucket/repository/data/")
    table = load_dataset("omnigui", "s3://bucket/repository", split="test", cache_dir=tmp_path)
    assert len(table) == 4


def test_records_within_a_file_are_read(store: S3Server, tmp_path: Path) -> None:
    plain = os.urandom(300_000)
    store.put_folder(screens(tmp_path / "data", 1, side=40), "parts")
    store.put("parts/plain.bin", plain)
    store.put("parts/packed.gz", gzip.compress(plain, 1))
    root = load("s3://bucket/parts").root
    assert not store.fetched(".bin") and not store.fetched(".gz")
    for name in ("plain.bin", "packed.gz"):
        ref = MediaRef("image", root, "x", cell=ByteRange(name, 200_000, 1000))
        assert media.read_bytes(ref) == plain[200_000:201_000]


def test_the_least_recently_used_files_go_first_and_are_downloaded_again(
    store: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = screens(tmp_path / "data", 8)
    store.put_folder(data, "many")
    source = load("s3://bucket/many")
    refs = screenshots(source)
    one = len(media.read_bytes(refs[0]))
    monkeypatch.setenv("OMNIDATA_CACHE_BYTES", str(4 * one))
    with (refs[0].root / refs[0].path).open("rb") as reader:
        for ref in refs:
            age(tmp_path)
            assert media.read_bytes(ref) == (data / "TED" / "media" / ref.path).read_bytes()
        assert sum(path.stat().st_size for path in cached(tmp_path)) <= 4 * one
        assert reader.read() == (data / "TED" / "media" / "T1" / "1.png").read_bytes()
    before = len(store.gets)
    assert media.read_bytes(refs[-1]) and len(store.gets) == before
    assert media.read_bytes(refs[0]) and len(store.gets) == before + 1
    # Files in use stay, whatever the limit: a run under it completes.
    monkeypatch.setenv("OMNIDATA_CACHE_BYTES", str(one + 1))
    evaluate(TASK, source, Looking(), tmp_path / "run")
    assert set(finals(tmp_path / "run").values()) == {"ok"}
    monkeypatch.setenv("OMNIDATA_CACHE_BYTES", "1000")
    media.read_bytes(refs[-1])  # it is there already
    store.put("many/TED/media/T1/1.png", b"x" * 2000)
    with pytest.raises(StoreError, match="more than the cache may hold"):
        media.read_bytes(screenshots(load("s3://bucket/many"))[0])


def test_processes_share_a_cache(store: S3Server, tmp_path: Path) -> None:
    data, url = screens(tmp_path / "data", 12, side=200), "s3://bucket/shared"
    store.put_folder(data, "shared")
    with Started("fetch", url) as one, Started("fetch", url) as other:
        assert [one.wait(), other.wait()] == [0, 0], (one.said(), other.said())
    for ref in screenshots(load(url)):
        assert media.read_bytes(ref) == (data / "TED" / "media" / ref.path).read_bytes()
    assert len(store.gets) == len(set(store.gets)), "something was fetched twice"


def test_threads_and_forked_processes_download_a_file_once(store: S3Server, tmp_path: Path) -> None:
    store.put_folder(screens(tmp_path / "data", 3, side=200), "one")
    refs = screenshots(load("s3://bucket/one"))
    before = store.fetched(".png")
    with ThreadPoolExecutor(8) as pool:
        (content,) = set(pool.map(media.read_bytes, refs[:1] * 8))
    assert store.fetched(".png") - before == len(content)
    code = """
        import os, sys
        from omnidata import get_task, media
        steps = get_task('omnigui').load('s3://bucket/one').steps
        refs = [step.media['screenshot'] for step in steps]
        media.read_bytes(refs[1])
        children = [os.fork() for _ in range(2)]
        media.read_bytes(refs[2])
        if 0 in children: os._exit(0)
        sys.exit(any(os.waitpid(child, 0)[1] for child in children))
    """
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)]
    subprocess.run(command, check=True, timeout=120)
    assert len(store.gets) == len(set(store.gets)), "something was downloaded twice"


def test_a_changed_store_is_noticed_and_versions_never_mix(store: S3Server, tmp_path: Path) -> None:
    store.put_folder(screens(tmp_path / "data", 4, side=60), "changing")
    first = load("s3://bucket/changing")
    refs = screenshots(first)
    contents = [media.read_bytes(ref) for ref in refs[:2]]
    key = "changing/TED/media/T1/{}.png".format
    store.put(key(1), content := (tmp_path / "data/TED/media/T1/4.png").read_bytes())
    store.put(key(3), content)
    store.remove(key(4))
    with pytest.raises(StoreError, match="changed since it was listed"):
        media.read_bytes(refs[2])
    with pytest.raises(StoreError, match=r"s3://bucket/changing/.*4\.png: the object is gone"):
        media.read_bytes(refs[3])
    store.gets.clear()
    second = load("s3://bucket/changing")
    assert second.findings and not first.findings
    found = [media.read_bytes(ref) for ref in screenshots(second)[:3]]
    assert found == [content, contents[1], content]
    assert {key for key, _ in store.gets} == {key(1), key(3)}, "unchanged files were downloaded"
    # The first listing still has its own files, and asks for no other.
    assert [media.read_bytes(ref) for ref in refs[:2]] == contents
    # A URL of a file includes its neighbours.
    named = load("s3://bucket/changing/TED/dataset_TED.json")
    assert len(named.steps) == 4


def test_a_damaged_file_of_the_cache_is_downloaded_again(store: S3Server, tmp_path: Path) -> None:
    store.put_folder(screens(tmp_path / "data", 2, side=60), "damaged")
    refs = screenshots(load("s3://bucket/damaged"))
    contents = [media.read_bytes(ref) for ref in refs]
    path = refs[0].root / refs[0].path
    path.chmod(0o600)
    path.write_bytes(b"short")
    (refs[1].root / refs[1].path).unlink()
    next((tmp_path / "cache").rglob("about.json")).unlink()
    again = screenshots(load("s3://bucket/damaged"))
    assert [media.read_bytes(ref) for ref in again] == contents


def test_a_killed_download_leaves_nothing_that_is_read(store: S3Server, tmp_path: Path) -> None:
    store.put_folder(screens(tmp_path / "data", 1, side=200), "killed")
    key = "killed/TED/media/T1/1.png"
    content = (tmp_path / "data/TED/media/T1/1.png").read_bytes()
    begun = threading.Event()

    def slowly() -> Iterator[bytes]:
        yield content[:50_000]
        begun.set()
        time.sleep(20)

    store.bodies[key] = slowly
    with Started("fetch", "s3://bucket/killed") as reader:
        assert begun.wait(60)
        time.sleep(0.2)
        reader.kill()
    store.bodies.clear()
    (ref,) = screenshots(load("s3://bucket/killed"))
    assert media.read_bytes(ref) == content


def test_a_request_that_fails_is_sent_again(store: S3Server, uploaded: str, tmp_path: Path) -> None:
    failed: set[str] = set()

    def once(key: str) -> bool:
        fails = key not in failed
        failed.add(key)
        return fails

    store.fails = once
    source = load(uploaded)
    evaluate(TASK, source, Looking(), tmp_path / "run", limit=2)
    assert set(finals(tmp_path / "run").values()) == {"ok"}
    assert any(key.endswith(".png") for key in failed)


def test_media_that_a_store_does_not_give_are_asked_for_again_when_the_run_goes_on(
    store: S3Server, uploaded: str, tmp_path: Path
) -> None:
    source = load(uploaded)
    lost = source.steps[1].media["screenshot"]
    assert lost
    store.fails = lambda key: key.endswith(lost.path)
    out = tmp_path / "run"
    evaluate(TASK, source, Looking(), out, limit=4)
    deliveries = finals(out)
    assert deliveries[source.steps[0].sample_id] == "ok"
    assert deliveries[source.steps[1].sample_id] == "media_error"
    told = (out / "predictions.jsonl").read_text()
    assert f"{uploaded}/{lost.root.relative_to(source.root)}/{lost.path}" in told
    assert "3 attempts" in told
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
    with pytest.raises(StoreError, match=r"s3://bucket/omnigui/.*: the store does not answer"):
        load(uploaded)
    store.fails = lambda key: True
    with pytest.raises(StoreError, match="s3://bucket/omnigui: the store does not answer"):
        load(uploaded)


@pytest.mark.parametrize(
    "verb",
    [
        "convert omnigui {data} {out}",
        f"{' '.join(EXPORT)} omnigui {{data}} {{out}} --format swift",
        pytest.param(
            "validate omnigui {data} --workers 1 --quarantine {out}",
            marks=pytest.mark.full("its processes wait as long as a store is given"),
        ),
    ],
)
def test_nothing_lasting_is_made_without_media_that_a_store_does_not_give(
    verb: str, store: S3Server, uploaded: str, tmp_path: Path
) -> None:
    store.fails = lambda key: key.endswith(".wav")
    out = tmp_path / "out"
    done = here(*verb.format(data=uploaded, out=out).split(), code=2)
    assert "StoreError: s3://bucket/omnigui/" in done.stderr
    assert not out.exists() or not list(out.iterdir())


def test_a_store_that_gives_no_access_is_asked_once(
    store: S3Server, uploaded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    store.error = "403 Forbidden"
    store.fails = lambda key: not asked.append(key)  # type: ignore[func-returns-value]
    with pytest.raises(StoreError, match="s3://bucket/omnigui: the store denies access"):
        load(uploaded)
    assert len(asked) == 1


@pytest.mark.parametrize(
    "key",
    ["a/../../b", "/etc/passwd", "a//b", "./a", "a\\b", "a\0b", "A/b", "good/x", "n" * 300,
     "d/" * 65 + "n", "\ud800"],
)  # fmt: skip
def test_names_that_are_no_files_of_the_data_are_refused(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_as(monkeypatch, dict.fromkeys(("good", "a/b"), 1))
    with pytest.raises(StoreError, match="a/b: the object is gone"):  # its name is fine
        load("memory://bucket/fine")
    list_as(monkeypatch, dict.fromkeys(("good", "a/b", key), 1))
    with pytest.raises(DataError, match="cannot be a file of the data"):
        load("memory://bucket/data")


def test_folders_that_would_fill_the_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnidata.stores._MOST_LETTERS", 100_000)
    list_as(monkeypatch, {f"{number}/{'a/' * 60}x": 1 for number in range(30)})
    with pytest.raises(DataError, match="all folders have more than 100,000 letters"):
        load("memory://bucket/data")


@pytest.mark.parametrize("size", [None, "12", -1, 1.5, 1 << 70, float("nan")])
def test_sizes_that_no_file_has_are_refused(
    size: object, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("OMNIDATA_CACHE", str(tmp_path / "cache"))
    list_as(monkeypatch, {"a.json": size})
    with pytest.raises(DataError, match=r"memory://bucket/data: .* no valid size of 'a\.json'"):
        load("memory://bucket/data")
    assert not list(tmp_path.iterdir())


def list_as(monkeypatch: pytest.MonkeyPatch, sizes: dict[str, Any]) -> None:
    """Let a store in memory list objects of these names and sizes."""
    from fsspec.implementations.memory import MemoryFileSystem

    def find(_: object, base: str, **options: Any) -> dict[str, Any]:
        about = {"type": "file", "created": datetime.now(UTC)}
        return {f"{base}/{name}": about | {"size": size} for name, size in sizes.items()}

    monkeypatch.setattr(MemoryFileSystem, "find", find)


def test_a_medium_over_the_budget_is_refused_before_it_is_downloaded(
    store: S3Server, tmp_path: Path
) -> None:
    store.put_folder(screens(tmp_path / "data", 1), "large")
    (ref,) = screenshots(load("s3://bucket/large"))
    with pytest.raises(MediaError, match="480,622 bytes"):
        media.resolve(ref, budget=media.Budget(max_bytes=1000))
    assert not store.fetched(".png")


def endless() -> Iterator[bytes]:
    while True:
        yield b"x" * 65536


def trickling() -> Iterator[bytes]:
    while True:
        yield b"x"
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (endless, "sends more than the .* bytes that it listed"),
        (trickling, "has not finished its answer after"),
        (lambda: [b"x" * 100], "returned 100 of"),
    ],
)
def test_a_body_that_is_not_what_was_listed_ends(
    body: Any, error: str, store: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnidata.stores._PATIENCE_S", 0.5)
    monkeypatch.setattr("omnidata.stores._LEAST_RATE", 1e9)
    store.put_folder(screens(tmp_path / "data", 1, side=100), "body")
    (ref,) = screenshots(load("s3://bucket/body"))
    store.bodies["body/TED/media/T1/1.png"] = body
    with pytest.raises(StoreError, match=error):
        media.read_bytes(ref)
    assert not [path for path in cached(tmp_path) if path.suffix == ".png"]
    assert not list((tmp_path / "cache" / "new").iterdir())


def test_an_endless_listing_ends(store: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("omnidata.stores._LISTING_S", 0.3)
    pages = iter(range(1_000_000))

    def page() -> Iterable[bytes]:
        number = next(pages)
        yield (
            '<?xml version="1.0"?><ListBucketResult><Name>bucket</Name><IsTruncated>true'
            f"</IsTruncated><NextContinuationToken>{number}</NextContinuationToken><Contents>"
            f"<Key>endless/{number}</Key><Size>1</Size><ETag>1</ETag></Contents></ListBucketResult>"
        ).encode()

    store.bodies[""] = page
    with pytest.raises(StoreError, match=r"s3://bucket/endless: .* has not finished its answer"):
        load("s3://bucket/endless")
    asked = next(pages)
    time.sleep(0.2)
    assert next(pages) < asked + 3, "it goes on"


# The Hub.


@pytest.mark.parametrize("token", [False, True])
def test_a_commit_of_the_hub_is_read_and_the_token_is_sent_on_request_alone(
    token: bool, hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sha = hub.add("org/name", files_of(screens(tmp_path / "data", 2, side=60)))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with sending_token(token):
        source = load("hf://org/name@main")
        hub.repos["org/name"].commit({"TED/other.json": b"[]"})
        refs = screenshots(source)
        own = tmp_path / "data" / "TED" / "media"
        assert [media.read_bytes(ref) for ref in refs] == [
            (own / ref.path).read_bytes() for ref in refs
        ]
    reads = [line for line in hub.seen if "/resolve/" in line]
    assert reads and all(f"/resolve/{sha}/" in line for line in reads)
    assert bool(hub.tokens) is token
    assert media.place(refs[0]).startswith("hf://datasets/org/name@main/TED/")


def test_the_token_is_not_sent_to_a_server_that_a_listing_names(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    tree = f"/api/datasets/org/name/tree/{hub.add('org/name', {'a.json': b'[]'})}/"
    with serving() as other, sending_token():
        hub.instead[tree] = Answer([b"[]"], {"Link": f'<{other.url}/more>; rel="next"'})
        with pytest.raises(DataError, match="on another server"):
            load("hf://datasets/org/name")
        assert not other.seen
    assert {*hub.tokens} == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize(
    ("body", "link", "error"),
    [
        (endless, "", "a page of the listing has more than 100,000 bytes"),
        (lambda: [b"[]"], "?cursor=1", "the listing has more than 5 pages"),
        (lambda: [b"[[]]"], "", "is no list of files"),
        (lambda: [b"[" * 90_000], "", "is no list of files"),
        (lambda: [b"<html>"], "", "is no list of files"),
    ],
)
def test_a_listing_of_the_hub_that_is_none_is_one_refusal(
    body: Any, link: str, error: str, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnidata.stores._MOST_PAGES", 5)
    monkeypatch.setattr("omnidata.stores._MOST_PAGE_BYTES", 100_000)
    tree = f"/api/datasets/org/name/tree/{hub.add('org/name', {'a.json': b'[]'})}/"
    headers = {"Link": f'<{hub.url}{tree}{link}>; rel="next"'} if link else {}
    hub.instead[tree] = Answer(body(), headers)
    with pytest.raises(DataError, match=error):
        load("hf://datasets/org/name")
    assert sum("/tree/" in line for line in hub.seen) == (5 if link else 1)


# All files of a URL at once.


def test_fetch_downloads_all_files_of_a_url_into_the_cache(store: S3Server, tmp_path: Path) -> None:
    store.put_folder(screens(tmp_path / "data", 3, side=40), "all")
    said = here("fetch", "s3://bucket/all", "--dry-run").stdout
    assert said.startswith("s3://bucket/all: 5 files, ")
    assert not store.gets
    here("fetch", "s3://bucket/all")
    assert len(store.gets) == 5
    for ref in screenshots(load("s3://bucket/all")):
        media.read_bytes(ref)
    assert len(store.gets) == 5


def test_fetch_copies_a_url_into_a_folder_and_resumes(store: S3Server, tmp_path: Path) -> None:
    data, out = screens(tmp_path / "data", 3, side=40), tmp_path / "out"
    store.put_folder(data, "copied")
    fetch = ("fetch", "s3://bucket/copied", out)
    store.fails = lambda key: key.endswith("2.png")
    here(*fetch, code=2)
    assert not out.exists()
    store.fails = lambda key: False
    here(*fetch)
    assert len(store.gets) == len(set(store.gets)) == 5
    assert files_of(out / "data") == files_of(data)
    assert TASK.load(out / "data").fingerprint == load("s3://bucket/copied").fingerprint
    here(*fetch)
    assert len(store.gets) == 5
    store.put("copied/TED/more.txt", b"more")
    assert "add --overwrite" in here(*fetch, code=2).stderr
    here(*fetch, "--overwrite")
    assert (out / "data" / "TED" / "more.txt").read_bytes() == b"more"
    assert len(store.gets) == 6


def test_fetch_of_a_url_refuses_what_it_cannot_do(
    store: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put("refused/a.png", b"x" * 1000)
    monkeypatch.setenv("OMNIDATA_CACHE_BYTES", "999")
    url = "s3://bucket/refused"
    for argv, error in (
        ([url], "more than the cache may hold"),
        ([url, "s3://bucket/out"], "this must be on a disk"),
        ([url, "--only", "*.png"], "--only is for the data of a task"),
        ([tmp_path.as_uri()], "this is a local path"),
    ):
        assert error in here("fetch", *argv, code=2).stderr
    assert not store.gets


def test_fetch_of_the_hub_pins_the_commit(hub: Hub, tmp_path: Path) -> None:
    data = files_of(screens(tmp_path / "data", 2, side=40))
    sha = hub.add("org/name", data)
    done = here("fetch", "hf://org/name", tmp_path / "out")
    assert f"hf://org/name@{sha}: 4 files" in done.stdout + done.stderr
    assert files_of(tmp_path / "out" / "data") == data


# Zips are unpacked first.


@pytest.mark.parametrize("repeats", [True, False])
def test_the_remedy_for_media_in_a_zip_unpacks_it(repeats: bool, tmp_path: Path) -> None:
    data = screens(tmp_path / "data", 2, side=40)
    folder = data / "TED" / "media"
    with zipfile.ZipFile(data / "TED" / "media.zip", "w") as archive:
        for path in sorted(folder.rglob("*.png")):
            archive.write(path, path.relative_to(folder.parent if repeats else folder))
            path.unlink()
    (absent,) = TASK.load(data).findings
    assert absent.code == "media-absent"
    command = absent.remedy.partition("unpack it: python ")[2].partition(";")[0]
    subprocess.run([sys.executable, *shlex.split(command)], check=True)
    assert not TASK.load(data).findings


def test_data_that_are_all_in_a_zip_name_the_command(tmp_path: Path) -> None:
    data = screens(tmp_path / "data", 1, side=40)
    with zipfile.ZipFile(tmp_path / "packed.zip", "w") as archive:
        for path in data.rglob("*.*"):
            archive.write(path, path.relative_to(data))
    done = here("info", "omnigui", tmp_path / "packed.zip", code=2)
    assert f"zipfile -e {tmp_path}/packed.zip {tmp_path}/packed" in done.stderr


def test_media_in_a_zip_on_a_store_are_to_be_downloaded_and_unpacked(
    store: S3Server, tmp_path: Path
) -> None:
    data = screens(tmp_path / "data", 1, side=40)
    (data / "TED" / "media" / "T1" / "1.png").unlink()
    store.put_folder(data, "zip")
    store.put("zip/TED/media.zip", b"PK\3\4")
    (absent,) = load("s3://bucket/zip").findings
    assert "download and unpack s3://bucket/zip/TED/media.zip" in absent.remedy
    assert not store.fetched(".zip")
