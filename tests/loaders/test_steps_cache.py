"""Many steps are read once; later loads open the file that was written, or read anew."""

import json
import logging
import multiprocessing
import os
import re
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from omnidata.loaders import steps_cache
from omnidata.tasks import get_task
from omnidata.tasks.omnigui import load as loader
from omnidata.types import LoadedDataset
from tests import plugs
from tests.cli.running import here
from tests.limits import full_disk
from tests.tasks import words
from tests.trees import row, write_rows


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("OMNIDATA_NO_CACHE")
    monkeypatch.setenv("OMNIDATA_STEPS_IN_MEMORY", "0")
    monkeypatch.setenv("OMNIDATA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "steps"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_data(tmp_path / "data")


def write_data(folder: Path, steps: int = 3) -> Path:
    folder.mkdir(exist_ok=True)
    rows = [row(name, number, app="TED") for name in "ab" for number in range(steps)]
    write_rows(folder / "steps.json", [*rows, row("c", step_id="z")])
    return make_old(folder)


def make_old(folder: Path) -> Path:
    """Files that were changed in the last seconds may change again and look the same."""
    for number, path in enumerate((folder, *folder.rglob("*"))):
        os.utime(path, (1e9 + number, 1e9 + number))
    time.sleep(0.06)  # the times of changes are known to some hundredths
    return folder


def load(data: Path, **options: str) -> LoadedDataset:
    return get_task("omnigui", options).load(data, check_media=False)


def is_cached(source: LoadedDataset, cache: Path) -> bool:
    path = source.steps.file.path  # type: ignore[attr-defined]
    return path is not None and path.is_relative_to(cache)


@pytest.fixture
def written() -> Iterator[list[steps_cache.Entry]]:
    """The entries that were written, each after the data were read."""
    found: list[steps_cache.Entry] = []
    with steps_cache.reporting(found.append):
        yield found


def test_a_second_load_reads_nothing_and_is_equal(
    cache: Path, data: Path, written: list[steps_cache.Entry]
) -> None:
    first, second = load(data), load(data)
    assert len(written) == 1
    assert second == first
    assert [*map(repr, second.steps)] == [*map(repr, first.steps)]
    assert {ref.within for step in second.steps for ref in step.media.values() if ref} == {
        ref.within for step in first.steps for ref in step.media.values() if ref
    }
    assert second.findings
    assert is_cached(first, cache)
    assert [entry.steps for entry in steps_cache.entries()] == [6]


def grow(data: Path) -> None:
    write_data(data, 4)


def rewrite_in_place(data: Path) -> None:
    path = data / "steps.json"
    about = path.stat()
    path.write_bytes(path.read_bytes().replace(b'"b"', b'"d"'))
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def add_a_file(data: Path) -> None:
    (data / "media").mkdir()
    (data / "media" / "0.png").write_bytes(b"no picture")
    make_old(data)


@pytest.mark.parametrize("edit", [grow, rewrite_in_place, add_a_file])
def test_edited_data_are_read_anew(
    cache: Path, data: Path, written: list[steps_cache.Entry], edit: Callable[[Path], None]
) -> None:
    load(data)
    edit(data)
    time.sleep(0.06)
    assert load(data) == load(data)
    assert len(written) == 2


def test_neighbours_of_a_file_are_noticed_but_for_runs(
    cache: Path, data: Path, written: list[steps_cache.Entry]
) -> None:
    def findings() -> list[str]:
        source = get_task("omnigui").load(data / "steps.json")
        return [finding.code for finding in source.findings]

    for name in ("a", "b", "run", "run/pages"):
        (data / name).mkdir()
    (data / "run" / "run.json").write_text("{}")
    make_old(data)
    missing = findings()
    (data / "run" / "pages" / "index.html").write_text("")
    assert findings() == missing
    assert len(written) == 1
    for path in {ref.path for step in load(data).steps for ref in step.media.values() if ref}:
        (data / path).write_bytes(b"no picture")
    assert findings() != missing


@pytest.mark.parametrize("later", [0, 1000])
def test_data_that_were_just_written_or_will_be_are_not_kept(
    cache: Path, data: Path, written: list[steps_cache.Entry], later: int
) -> None:
    os.utime(data / "steps.json", (time.time() + later,) * 2)
    assert load(data) == load(data)
    assert written == steps_cache.entries() == []


def cut(entry: Path) -> None:
    os.truncate(entry / "steps.arrow", 1000)


def overwrite(entry: Path) -> None:
    content = bytearray((entry / "steps.arrow").read_bytes())
    content[2000:2100] = bytes(100)
    (entry / "steps.arrow").write_bytes(content)


def lie(entry: Path) -> None:
    rest = (entry / "rest.bin").read_bytes()
    found = re.findall(rb"[0-9a-f]{64}", rest)  # the fingerprint
    (entry / "rest.bin").write_bytes(rest.replace(found[0], b"0" * 64))


def lead_out(entry: Path) -> None:
    head = json.loads((entry / "head.json").read_text())
    head["files"]["../../x"] = [0, 0]
    (entry / "head.json").write_text(json.dumps(head))


def empty(entry: Path) -> None:
    (entry / "head.json").write_text("")


def lose(entry: Path) -> None:
    (entry / "episodes.arrow").unlink()


@pytest.mark.parametrize("damage", [cut, overwrite, lie, lead_out, empty, lose])
def test_a_damaged_entry_is_written_anew(
    cache: Path, data: Path, written: list[steps_cache.Entry], damage: Callable[[Path], None]
) -> None:
    wanted = [*map(repr, load(data).steps)]
    (entry,) = steps_cache.entries()
    damage(entry.path)
    for _ in range(2):
        assert [*map(repr, load(data).steps)] == wanted
    assert len(written) == 2


def test_another_check_and_other_paths_to_the_data_are_other_entries(
    cache: Path, data: Path, written: list[steps_cache.Entry], monkeypatch: pytest.MonkeyPatch
) -> None:
    load(data)
    get_task("omnigui").load(data)
    monkeypatch.chdir(data.parent)
    assert load(Path("data")).steps[0].media["screenshot"].root == Path("data")  # type: ignore[union-attr]
    assert len(written) == 3


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OMNIDATA_NO_CACHE", "1"),
        ("OMNIDATA_STEPS_IN_MEMORY", "100"),
        ("OMNIDATA_CACHE", "a file"),
        ("OMNIDATA_CACHE", "~/omnidata"),
    ],
)
def test_nothing_is_kept_unless_there_are_many_steps_and_a_folder_for_them(
    cache: Path, data: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.chdir(data.parent)
    Path("a file").write_text("")
    monkeypatch.setenv(variable, value)
    assert load(data) == load(data)
    assert {path.name for path in Path().iterdir()} == {"data", "a file"}


def test_a_full_disk_is_a_warning_and_the_data_are_read_again(
    cache: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    with full_disk(after=4000) as free:

        def free_it(record: logging.LogRecord) -> None:
            warnings.append(record.getMessage())
            free()  # what is read again is on a disk too

        monkeypatch.setattr(logging.getLogger("omnidata"), "handle", free_it)
        source = load(data)
    assert len(source.steps) == 6
    assert warnings == [f"{cache}: the disk is full, so the steps are not kept"]
    assert [*cache.iterdir()] == []


def test_a_cache_that_others_may_write_to_is_not_used(cache: Path, data: Path) -> None:
    load(data)
    cache.chmod(0o770)
    assert not is_cached(load(data), cache)


PLUGIN = """
    import sys
    from pathlib import Path
    from omnidata.loaders import steps_cache
    from omnidata.tasks import get_task

    with steps_cache.reporting(lambda entry: print("kept", end=" ")):
        source = get_task("words").load(Path(sys.argv[1]), check_media=False)
    print(source.steps[0].instruction)
"""


def test_the_code_of_a_plug_in_counts_with_modules_that_it_imports_while_it_reads(
    cache: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    plugs.install(site, "omnidata-words", "omnidata.tasks", "words = words_plugin:Asks")
    (site / "words_plugin.py").write_text(
        f"{words.PLUGIN}\n\nclass Asks(Words):\n"
        "    def steps(self, data, note):\n"
        "        import words_text\n"
        "        for step in super().steps(data, note):\n"
        "            yield replace(step, instruction=words_text.TEXT)\n"
    )
    (data / "words.jsonl").write_text(json.dumps(words.ROWS[0]))
    make_old(data)
    monkeypatch.setenv("PYTHONPATH", str(site))

    def read() -> str:
        command = [sys.executable, "-c", textwrap.dedent(PLUGIN), str(data)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    (site / "words_text.py").write_text('TEXT = "one"')
    assert [read(), read()] == ["kept one", "one"]
    (site / "words_text.py").write_text('TEXT = "two"')
    assert read() == "kept two"


def test_what_was_not_used_for_longest_goes_first(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [write_data(tmp_path / name) for name in ("one", "two", "three")]
    for place in places[:2]:
        load(place)
    for entry in steps_cache.entries():
        used = 1e9 if entry.data.endswith("two") else 2e9
        os.utime(entry.path / "head.json", (used, used))
    (one, _) = steps_cache.entries()
    monkeypatch.setenv("OMNIDATA_CACHE_BYTES", str(2 * one.bytes + 500))
    load(places[2])
    assert {Path(entry.data).name for entry in steps_cache.entries()} == {"one", "three"}
    monkeypatch.setenv("OMNIDATA_CACHE_BYTES", "10")
    loaded = load(write_data(tmp_path / "four"))
    assert steps_cache.entries() == []
    assert loaded.steps[2] == load(tmp_path / "four").steps[2]


class Reader:
    """A process that reads the data and stops before a function of the loader."""

    def __init__(self, data: Path, before: str) -> None:
        self._pipe, there = FORK.Pipe()
        self.process = FORK.Process(target=read_and_stop, args=(data, before, there))
        self.process.start()
        self._pipe.recv()

    def finish(self) -> int:
        """Let it read to the end; the number of steps."""
        self._pipe.send("go on")
        count: int = self._pipe.recv()
        self.process.join()
        return count


FORK = multiprocessing.get_context("fork")


def read_and_stop(data: Path, before: str, pipe: Connection) -> None:
    function = getattr(loader, before)

    def stop(*given: object) -> object:
        pipe.send("stopped")
        pipe.recv()
        return function(*given)

    setattr(loader, before, stop)
    pipe.send(len(load(data).steps))


@pytest.fixture
def start(data: Path) -> Iterator[Callable[..., Reader]]:
    started: list[Reader] = []

    def begin(before: str = "merge_groups") -> Reader:
        started.append(Reader(data, before))
        return started[-1]

    yield begin
    for reader in started:
        reader.process.kill()
        reader.process.join()


def test_two_that_write_at_once_leave_one_entry(
    cache: Path, data: Path, start: Callable[..., Reader]
) -> None:
    both = [start(), start()]
    assert [reader.finish() for reader in both] == [6, 6]
    assert [path.name for path in cache.iterdir()] == [
        entry.path.name for entry in steps_cache.entries()
    ]
    assert is_cached(load(data), cache)


@pytest.mark.parametrize("before", ["dependencies", "merge_groups"])
def test_data_that_change_while_they_are_read_are_not_kept(
    cache: Path, data: Path, start: Callable[..., Reader], before: str
) -> None:
    """Before the first step is written, and after the last; the times of the files are old."""
    reading = start(before)
    grow(data)
    assert reading.finish() == 6
    assert [*cache.iterdir()] == []
    assert len(load(data).steps) == 8


def test_what_a_killed_process_left_is_never_read_and_goes_with_the_next(
    cache: Path,
    data: Path,
    written: list[steps_cache.Entry],
    start: Callable[..., Reader],
) -> None:
    alive, killed = start(), start()
    killed.process.kill()
    killed.process.join()
    assert len([*cache.iterdir()]) == 2
    assert steps_cache.entries() == []
    load(data)
    assert len(written) == 1
    left = [path for path in cache.iterdir() if path.name.startswith(".")]
    assert len(left) == 1  # of the one that is still writing
    assert alive.finish() == 6
    assert [path.name for path in cache.iterdir() if path.name.startswith(".")] == []


def test_steps_outlive_their_entry(cache: Path, data: Path) -> None:
    load(data)
    steps = load(data).steps
    (cache / f"{'0' * 16}-{'0' * 32}").mkdir()  # a damaged one
    steps_cache.clear()
    assert [step.sample_id for step in steps] == [*steps.column("sample_id")]  # type: ignore[attr-defined]
    assert [*cache.iterdir()] == []


def test_the_command_line_says_lists_and_clears(cache: Path, data: Path) -> None:
    assert "6 steps are in the cache now" in here("info", "omnigui", data, code=1).stderr
    assert "in the cache" not in here("info", "omnigui", data, code=1).stderr
    listed = json.loads(here("cache", "--json").stdout)
    assert [(entry["task"], entry["data"]) for entry in listed["entries"]] == [
        ("omnigui", str(data))
    ]
    assert str(data) in here("cache").stdout
    assert "removed" in here("cache", "--clear").stdout
    assert [*cache.iterdir()] == []
    assert "cache" not in here("info", "omnigui", data, "--no-cache", code=1).stderr
    assert [*cache.iterdir()] == []
