"""Files that others wrote: no pipe, device or endless file is waited for, no private one opened."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import datasets
import pyarrow.parquet as pq
import pytest
from PIL import Image

import omnidata
from omnidata import files
from omnidata.data.convert import convert
from omnidata.errors import DataError, FileError, MediaError
from omnidata.media import read_bytes
from omnidata.tasks import get_task
from omnidata.types import LoadedDataset
from tests.cli.running import here
from tests.loaders import agentstudio, desk, omnibench, osworld, phones
from tests.trees import row, write_app, write_rows

LIMIT_S = 30
"""What any command may take; without care some of these never end."""
TERABYTE = 1 << 40


class EndlessError(BaseException):
    """Nobody catches it by mistake."""


@pytest.fixture(autouse=True)
def _impatient() -> Iterator[None]:
    """Stop what reads or waits without an end."""

    def stop(*_: object) -> None:
        raise EndlessError(f"not finished after {LIMIT_S} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(LIMIT_S)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def command(*arguments: object) -> tuple[int, str]:
    done = here(*arguments, code=None)
    return done.returncode, " ".join(f"{done.stdout} {done.stderr}".split())


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(TERABYTE)


SPOILT: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "pipe"),
    "device": (lambda path: path.symlink_to("/dev/zero"), "a device"),
    "sparse": (sparse, "bytes or more"),
    "folder": (Path.mkdir, "folder"),
    "pointer": (
        lambda path: path.write_text(
            f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 99\n"
        ),
        "git lfs pull",
    ),
}
"""What stands in the place of a file, and a word of what is said of it."""


def tree(folder: Path) -> Path:
    write_app(folder / "TED", [row("A"), row("A", 1)])
    (folder / "TED" / "media" / "A").mkdir(parents=True)
    (folder / "TED" / "media" / "A" / "A.json").write_text(json.dumps([row("A"), row("A", 1)]))
    (folder / "dependency.jsonl").write_text('{"app":"TED","ID":"A","dependency":"present"}\n')
    return folder


def repository(folder: Path) -> Path:
    source = get_task("omnigui").load(write_rows(folder.parent / "merged_sorted.json", [row("A")]))
    convert(source, folder, embed=True)
    return folder


def hub(folder: Path) -> Path:
    folder.mkdir()
    image = {"bytes": b"x", "path": "a.png"}
    rows = [agentstudio.ground(image=image) | {"image_path": "images/a.png"}]
    datasets.Dataset.from_list(rows).to_parquet(folder / "test.parquet")
    return folder


ANNOTATIONS: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "tree-metadata": ("omnigui", tree, "TED/localization.jsonl"),
    "tree-index": ("omnigui", tree, "TED/dataset_TED.json"),
    "tree-episode": ("omnigui", tree, "TED/media/A/A.json"),
    "tree-side": ("omnigui", tree, "dependency.jsonl"),
    "released": (
        "omnigui", lambda folder: write_rows(folder / "merged_sorted.json", [row("A")]),
        "merged_sorted.json",
    ),
    "lines": (
        "groundui", lambda folder: agentstudio.write(folder / "a.jsonl", agentstudio.ground()),
        "a.jsonl",
    ),
    "parquet": ("groundui", hub, "test.parquet"),
    "graphs": ("omnibench", omnibench.library, "tasks.jsonl"),
    "records": ("aitw", lambda f: phones.two_episodes("aitw", f), "general.tfrecord"),
    "zoo": ("aitw", lambda folder: phones.zoo_episode(folder, phones.zoo()), "**/*.json"),
    "control": (
        "androidcontrol", lambda f: phones.two_episodes("androidcontrol", f), "android_control",
    ),
    "agentnet": ("agentnet", lambda f: desk.bare("agentnet", f), "a.jsonl"),
    "bench": ("agentnet", lambda f: desk.bench(f, desk.bench_step(1)), "b1.json"),
    "screenspot": ("screenspot", lambda f: desk.bare("screenspot", f), "screenspot_web.json"),
    "manifest": ("omnigui", repository, "omnidata.json"),
    "shard": ("omnigui", repository, "*/**/*.parquet"),
    "trajectory": ("osworld", osworld.bare, "*/**/e1/traj.jsonl"),
    "result": ("osworld", osworld.bare, "*/**/e1/result.txt"),
}  # fmt: skip
"""Benchmark, how its data are made, and the file that is spoilt."""


def build(tmp_path: Path, name: str) -> tuple[str, Path, Path]:
    """The benchmark, data of it, and the file of them that a test spoils."""
    task, make, place = ANNOTATIONS[name]
    data = tmp_path / "data"
    (tmp_path if name in ("parquet", "manifest", "shard") else data).mkdir(exist_ok=True)
    make(data)
    (path,) = data.glob(place)
    return task, data, path


@pytest.mark.parametrize("kind", sorted(SPOILT.keys() - {"folder"}))
@pytest.mark.parametrize("name", ANNOTATIONS)
def test_annotations_that_are_no_files_are_told(tmp_path: Path, name: str, kind: str) -> None:
    task, data, path = build(tmp_path, name)
    path.unlink()
    spoil, said = SPOILT[kind]
    spoil(path)
    code, told = command("info", task, data)
    assert code in (1, 2)
    # Who reads only a part of a file sees no end, and that the part is not what it should be.
    assert said in told or "outside the dataset through a link" in told or kind == "sparse", told
    assert "Traceback" not in told


SETTINGS: dict[str, Callable[[Path, Path], list[str | Path]]] = {
    "models": lambda data, path: [
        "evaluate", "omnigui", data, "--model", "mine", "--models", path, "--out", "run",
    ],
    "prices": lambda data, path: [
        "evaluate", "omnigui", data, "--model", "baseline:center", "--out", "run",
        "--max-cost", "1", "--prices", path,
    ],
    "exclude": lambda data, path: [
        "evaluate", "omnigui", data, "--model", "baseline:center", "--out", "run",
        "--exclude", path,
    ],
    "key": lambda data, path: [
        "evaluate", "omnigui", data, "--model", "openai:x", "--key-file", path, "--out", "run",
        "--base-url", "http://127.0.0.1:9/v1",
    ],
    "replay": lambda data, path: [
        "evaluate", "omnigui", data, "--model", f"replay:{path}", "--out", "run",
    ],
    "suite": lambda data, path: ["suite", path],
    "predictions": lambda data, path: ["score", "omnigui", data, path],
    "log": lambda data, path: ["score", "omnigui", data, path, "--from", "lmms-eval"],
    "data": lambda data, path: ["info", "omnigui", path],
    "unnamed": lambda data, path: ["info", path],
    "quarantine": lambda data, path: ["validate", "omnigui", data, "--quarantine", path],
}  # fmt: skip
"""Verbs that read a file which the user names."""


@pytest.mark.parametrize("kind", ["pipe", "device", "sparse", "folder"])
@pytest.mark.parametrize("name", SETTINGS)
def test_files_that_the_user_names_and_that_are_none_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    data = write_rows(tmp_path / "merged_sorted.json", [row("A")])
    path = tmp_path / "given"
    SPOILT[kind][0](path)
    code, told = command(*SETTINGS[name](data, path))
    assert code == 2, told
    assert "given" in told
    assert "Traceback" not in told


@pytest.mark.parametrize("name", ["suite", "models", "prices"])
@pytest.mark.parametrize(
    "text", ["a = " + "[" * 100_000, "a" + ".a" * 100_000 + " = 1", "a = " + "9" * 5000]
)
def test_settings_without_a_sensible_end_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    data = write_rows(tmp_path / "merged_sorted.json", [row("A")])
    (tmp_path / "given.toml").write_text(text)
    code, told = command(*SETTINGS[name](data, tmp_path / "given.toml"))
    assert code == 2, told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    "name", [name for name, found in ANNOTATIONS.items() if found[2].endswith((".json", ".jsonl"))]
)
def test_numbers_of_thousands_of_digits_are_told(tmp_path: Path, name: str) -> None:
    task, data, path = build(tmp_path, name)
    text = path.read_text()
    path.write_text(text.replace("{", '{"step_id": ' + "9" * 5000 + ", ", 1))
    code, told = command("info", task, data)
    assert code in (1, 2), told
    assert "Traceback" not in told


def test_a_limit_is_raised_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(100))
    with pytest.raises(FileError, match=f"{files.LIMIT_VARIABLE}=100"):
        files.read_file(path, 99)
    monkeypatch.setenv(files.LIMIT_VARIABLE, "100")
    assert files.read_file(path, 99) == bytes(100)
    monkeypatch.setenv(files.LIMIT_VARIABLE, "many")
    with pytest.raises(omnidata.OmnidataError, match="no number of bytes"):
        files.read_file(path, 99)


def test_a_pointer_of_git_lfs_among_the_media_is_called_so(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "merged_sorted.json", [row("A")])
    (tmp_path / "benchmark" / "A").mkdir(parents=True)
    for name in ("1.png", "1.mp4", "1.wav"):
        SPOILT["pointer"][0](tmp_path / "benchmark" / "A" / name)
    source = get_task("omnigui").load(data)
    assert len(source.findings) == 3
    assert all("pointer of git-lfs" in finding.what for finding in source.findings)
    ref = source.steps[0].media["video"]
    assert ref
    with pytest.raises(MediaError, match="git lfs pull"):
        read_bytes(ref)


# What lies elsewhere


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """Somebody's own picture, outside all data."""
    home = tmp_path / "home" / "A"
    home.mkdir(parents=True)
    Image.new("RGB", (720, 1600), (9, 99, 199)).save(home / "1.png")
    return home.parent


def with_media_elsewhere(folder: Path, private: Path) -> Path:
    """A dataset whose media folder is a link to everything."""
    folder.mkdir()
    data = write_rows(folder / "merged_sorted.json", [row("A", video_path="", audio_path="")])
    (folder / "benchmark").symlink_to(private)
    return data


def screenshots(source: LoadedDataset) -> list[bytes]:
    refs = [step.media["screenshot"] for step in source.steps]
    return [read_bytes(ref) for ref in refs if ref]


def test_a_media_folder_that_is_a_link_to_the_outside_is_refused_until_it_is_named(
    tmp_path: Path, private: Path
) -> None:
    data = with_media_elsewhere(tmp_path / "data", private).parent
    task = get_task("omnigui")
    with pytest.raises(DataError, match=f"--media-root {private}"):
        task.load(data)
    closed = task.load(data, check_media=False)
    with pytest.raises(MediaError, match=f"--media-root {private}"):
        screenshots(closed)
    for number, verb in enumerate(("evaluate", "validate", "convert", "export", "info", "ablate")):
        out = tmp_path / f"out{number}"
        more: list[str | Path] = {
            "evaluate": ["--model", "baseline:center", "--out", out],
            "convert": [out],
            "export": [out, "--format", "llamafactory"],
            "ablate": ["--model", "baseline:center", "--out", out],
        }.get(verb, [])  # type: ignore[assignment]  # lists of other types
        code, told = command(verb, "omnigui", data, *more)
        assert code == 2, (verb, told)
        assert f"--media-root {private}" in told, (verb, told)
        assert not out.exists()
    with omnidata.following([private]):
        found = task.load(data)
    assert screenshots(found) == [(private / "A" / "1.png").read_bytes()], "after the block too"
    out = tmp_path / "named"
    run = ["evaluate", "omnigui", data, "--model", "baseline:center", "--out", out]
    code, told = command(*run, "--media-root", private)
    assert code == 0
    assert f"files below {private} may be opened" in told
    code, _ = command("score", "omnigui", data, out)
    assert code == 0, "what opens no medium needs no option"


def test_steps_keep_what_they_may_open_in_other_processes(tmp_path: Path, private: Path) -> None:
    import pickle

    data = with_media_elsewhere(tmp_path / "data", private)
    closed = get_task("omnigui").load(data, check_media=False)
    with omnidata.following([private]):
        named = get_task("omnigui").load(data, check_media=False)
    for source, may in ((closed, False), (named, True)):
        ref = pickle.loads(pickle.dumps(source.steps[0])).media["screenshot"]
        if may:
            assert read_bytes(ref)
        else:
            with pytest.raises(MediaError):
                read_bytes(replace(ref, path="./A/1.png"))


@pytest.mark.parametrize("name", ["released", "tree-index", "lines", "graphs", "zoo", "agentnet"])
def test_an_annotation_file_outside_is_refused_until_it_is_named(tmp_path: Path, name: str) -> None:
    task, data, path = build(tmp_path, name)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    path.rename(elsewhere / path.name)
    path.symlink_to(elsewhere / path.name)
    code, told = command("info", task, data, "--json")
    assert code == 2, told
    assert f"--media-root {elsewhere}" in told
    code, _ = command("info", task, data, "--json", "--media-root", elsewhere)
    assert code in (0, 1)


FOLDERS: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "records": ("aitw", lambda f: phones.two_episodes("aitw", f / "a"), "a"),
    "zoo": (
        "aitw", lambda f: [phones.zoo_episode(f, phones.zoo(episode_id=n), name=f"GENERAL-{n}")
                           for n in "12"], "GENERAL-1",
    ),
    "control": ("androidcontrol", lambda f: phones.two_episodes("androidcontrol", f / "a"), "a"),
    "agentnet": ("agentnet", lambda f: desk.bare("agentnet", f / "a"), "a"),
    "screenspot": ("screenspot", lambda f: desk.bare("screenspot", f / "a"), "a"),
    "osworld": ("osworld", osworld.bare, "*/**/e1"),
}  # fmt: skip
"""Benchmark, how its data are made, and the folder that lies elsewhere."""


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_of_data_outside_is_refused_until_it_is_named(tmp_path: Path, name: str) -> None:
    task, make, place = FOLDERS[name]
    data = tmp_path / "data"
    data.mkdir()
    make(data)
    whole = len(get_task(task).load(data).steps)
    path = next(data.glob(place))
    elsewhere = tmp_path / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)
    with pytest.raises(FileError, match=f"leads outside(.|\n)*--media-root {elsewhere}"):
        get_task(task).load(data)
    code, told = command("validate", task, data)
    assert code == 2, told
    assert f"--media-root {elsewhere}" in told
    with omnidata.following([elsewhere]):
        assert len(get_task(task).load(data).steps) == whole


def test_data_are_known_whatever_links_lie_beside_them(tmp_path: Path) -> None:
    """A look at them is no refusal; reading them is, and names all that must be named."""
    phones.zoo_episode(tmp_path / "data", phones.zoo())
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / "data" / f"A-{name}").symlink_to(tmp_path / name)
    code, told = command("info", tmp_path / "data")
    assert code == 2
    assert "A-one, and 1 more: the path leads outside" in told
    assert f"--media-root {tmp_path / 'one'} --media-root {tmp_path / 'two'}" in told


def test_a_link_to_a_folder_of_the_data_adds_nothing_and_one_to_a_hidden_folder_does(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    phones.zoo_episode(data, phones.zoo(episode_id="1"), name="GENERAL-1")
    phones.zoo_episode(data / ".store", phones.zoo(episode_id="2"), name="GENERAL-2")
    (data / "again").symlink_to("GENERAL-1")
    (data / "all").symlink_to(".")
    (data / ".store" / "self").symlink_to(".")
    assert len(get_task("aitw").load(data).steps) == 1
    (data / "kept").symlink_to(".store")
    source = get_task("aitw").load(data, check_media=False)
    assert len(source.steps) == 2
    assert "repeated-id" not in {finding.code for finding in source.findings}


def test_no_folder_is_too_deep_in_silence(tmp_path: Path) -> None:
    data = tmp_path / "data"
    phones.zoo_episode(data.joinpath(*"abcdefgh"), phones.zoo())
    assert len(get_task("aitw").load(data).steps) == 1
    data.joinpath(*["d"] * 40).mkdir(parents=True)
    with pytest.raises(DataError, match=r"nested too deeply(.|\n)*at most 32 levels"):
        get_task("aitw").load(data)


@pytest.mark.parametrize("verb", ["log", "sequences"])
def test_a_line_without_an_end_is_refused(tmp_path: Path, verb: str) -> None:
    lines = tmp_path / "lines.jsonl"
    with lines.open("wb") as file:
        file.write(b"[")  # and zeros, as UTF-32 has them
        file.truncate(200 * 1024**2)
    if verb == "log":
        data = write_rows(tmp_path / "merged_sorted.json", [row("A")])
        code, told = command("score", "omnigui", data, lines, "--from", "lmms-eval")
    else:
        data = omnibench.library(tmp_path / "tasks")
        code, told = command("score", "omnibench", data, lines)
    assert code == 2
    assert f"{lines}:1" in told
    assert ("zero bytes" if verb == "log" else "it is not JSON") in told


def test_data_that_are_a_link_are_what_it_leads_to(tmp_path: Path, private: Path) -> None:
    data = private / "merged_sorted.json"
    write_rows(data, [row("A", video_path="", audio_path="")])
    for link, leads in (("folder", private), ("file.json", data)):
        (tmp_path / link).symlink_to(leads)
    assert len(screenshots(get_task("omnigui").load(tmp_path / "folder"))) == 1
    assert len(get_task("omnigui").load(tmp_path / "file.json", check_media=False).steps) == 1


def test_a_folder_data_that_is_a_link_to_the_outside_is_not_read_for_its_own(
    tmp_path: Path, private: Path
) -> None:
    write_rows(private / "merged_sorted.json", [row("A", video_path="", audio_path="")])
    (tmp_path / "given").mkdir()
    (tmp_path / "given" / "data").symlink_to(private)
    for named in (["omnigui"], []):
        code, told = command("info", *named, tmp_path / "given")
        assert code == 2, told


def test_a_media_root_must_be_a_folder(tmp_path: Path) -> None:
    code, told = command("info", "omnigui", tmp_path, "--media-root", tmp_path / "none")
    assert code == 2
    assert "no such folder" in told


def linked(folder: Path, private: Path, digits: int, root: str) -> Path:
    """A linked repository of somebody else, who guessed where a picture lies."""
    home = folder.parent / "honest"
    shutil.copytree(private, home / "benchmark")
    steps = write_rows(home / "merged_sorted.json", [row("A", video_path="", audio_path="")])
    convert(get_task("omnigui").load(steps), folder, embed=False)
    (shard,) = folder.rglob("*.parquet")
    table = pq.read_table(shard)
    rows = table.to_pylist()
    for entry in rows[0]["media"]:
        entry["path"] = str((private / "A" / "1.png").relative_to(root))
        entry["sha256"] = entry["sha256"][:digits]
    rows[0]["screenshot"] = {"path": str(private / "A" / "1.png")}
    pq.write_table(type(table).from_pylist(rows, schema=table.schema), shard)
    manifest = folder / "omnidata.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"roots": [root]}))
    return folder


def test_a_hash_of_one_digit_opens_nothing(tmp_path: Path, private: Path) -> None:
    out = linked(tmp_path / "out", private, 1, "/")
    with omnidata.following(["/"]), pytest.raises(DataError, match="convert the source again"):
        get_task("omnigui").load(out)


def test_the_folders_of_a_linked_repository_are_followed_only_where_they_are_named(
    tmp_path: Path, private: Path
) -> None:
    out = linked(tmp_path / "out", private, 64, "/")
    task = get_task("omnigui")
    for verb in ("info", "validate"):
        code, told = command(verb, "omnigui", out)
        assert code == 2
        assert "--media-root /" in told
    with pytest.raises(MediaError, match="named with the dataset"):
        screenshots(task.load(out, check_media=False))
    for streaming in (False, True):
        with pytest.raises(DataError, match="--media-root /"):
            list(omnidata.load_dataset("omnigui", out, split="test", streaming=streaming))
        found = omnidata.load_dataset(
            "omnigui", out, split="test", streaming=streaming, media_roots=[private]
        )
        assert [item["screenshot"]["path"] for item in found] == [str(private / "A" / "1.png")]
    with omnidata.following([private]):
        assert len(screenshots(task.load(out, check_media=False))) == 1


@pytest.mark.parametrize(
    "changes",
    [{"rows": 2 * 10**9, "skipped": 2 * 10**9}, {"rows": 10**15, "skipped": 10**15}, {"rows": -1}],
)
def test_a_manifest_that_claims_rows_that_nobody_has_is_refused(
    tmp_path: Path, changes: dict[str, int]
) -> None:
    data = repository(tmp_path / "data")
    manifest = data / "omnidata.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | changes))
    code, told = command("info", "omnigui", data)
    assert code == 2
    assert "contradict" in told


@pytest.mark.parametrize("verb", ["info", "validate", "evaluate", "score", "suite", "view"])
def test_a_name_with_a_nul_is_told(tmp_path: Path, verb: str) -> None:
    bad = tmp_path / "a\0b"
    arguments: dict[str, list[str | Path]] = {
        "evaluate": ["omnigui", bad, "--model", "baseline:center", "--out", tmp_path / "o"],
        "score": ["omnigui", write_rows(tmp_path / "merged_sorted.json", [row("A")]), bad],
        "suite": [bad],
        "view": ["omnigui", bad],
    }
    code, told = command(verb, *arguments.get(verb, ["omnigui", bad]))
    assert code == 2
    assert "Traceback" not in told
