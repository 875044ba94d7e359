"""A run folder may be somebody else's: what it names is opened by nobody but the user."""

from __future__ import annotations

import json
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from omnidata.analysis.publish import push_run
from omnidata.errors import UsageError
from omnidata.run.run_files import read_run
from omnidata.tasks import get_task
from omnidata.viewer.book import open_run
from omnidata.viewer.step_page import step_page
from tests.cli.running import EXPORT, here
from tests.conftest import Once
from tests.data.converting import small
from tests.hub_server import TOKEN, Hub

CANARY = "CANARY-1f6c0a5e"
WORDS = "You press what you are told to press.\n"
EPISODES = ("C001", "H006", "P002")

# Every file that this process opens, as the interpreter reports it.

_opened: list[str] = []
_watching = threading.Event()


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching.is_set() and event in ("open", "os.listdir", "os.scandir"):
        _opened.append(str(arguments[0]))


sys.addaudithook(_note)


@pytest.fixture
def opened() -> Iterator[list[str]]:
    _opened.clear()
    _watching.set()
    yield _opened
    _watching.clear()


def verb(*arguments: object) -> tuple[int, str]:
    """Its exit code, and all that it said."""
    done = here(*arguments, code=None)
    return done.returncode, done.stdout + done.stderr


def make(data: Path, out: Path, *arguments: str) -> Path:
    code, said = verb(
        *("evaluate", "omnigui", data, "--model", "baseline:oracle", "--out", out, *arguments)
    )
    assert code == 0, said
    return out


@pytest.fixture(scope="module")
def steps(few: Path, once: Once) -> Path:
    """Episodes of three apps, 8 steps, with the labels."""

    def write(folder: Path) -> None:
        small(folder, few, *EPISODES)
        labels = (few / "dependency.jsonl").read_text().splitlines(keepends=True)
        kept = (label for label in labels if json.loads(label)["ID"] in EPISODES)
        (folder / "dependency.jsonl").write_text("".join(kept))

    return once("foreign-steps", write)


@pytest.fixture(scope="module")
def made(steps: Path, once: Once) -> Path:
    """Runs of a user's own: one with a text for the system, one with spoken instructions."""

    def write(folder: Path) -> None:
        words, voice = folder / "words.txt", folder / "voice"
        voice.mkdir(parents=True)
        words.write_text(WORDS)
        dialect = ("-T", "dialect=ui-tars-1.5", "-T", f"system={words}")
        make(steps, folder / "worded", *dialect)
        make(steps, folder / "half", *dialect, "--shard", "1/2")
        make(steps, folder / "other", *dialect, "--shard", "2/2")
        make(steps, folder / "spoken", "-T", f"voice={voice}", "-T", "voice_form=release")
        make(steps, folder / "plain")

    return once("foreign", write)


def changed(run: Path, out: Path, **settings: Any) -> Path:
    """A copy of a run with other settings, as an attacker sends it."""
    shutil.copytree(run, out)
    info = json.loads((run / "run.json").read_text())
    options = {**info["options"], **settings.pop("options", {})}
    info = {**info, **settings, "options": options}
    (out / "run.json").write_text(json.dumps({k: v for k, v in info.items() if v is not ...}))
    return out


def texts_below(folder: Path) -> str:
    return "".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


VERBS: dict[str, Callable[[Path, Path, Path], tuple[object, ...]]] = {
    "report": lambda run, data, out: ("report", run),
    "report of elements": lambda run, data, out: ("report", run, "--by", "element-size"),
    "page": lambda run, data, out: ("report", run, "--html", out / "page.html"),
    "pages": lambda run, data, out: ("report", run, "--html", out / "pages", "--data", data),
    "card": lambda run, data, out: ("report", run, "--card", out / "card.md"),
    "compare": lambda run, data, out: ("compare", run, run.parent / "worded"),
    "rank": lambda run, data, out: ("compare", run, run.parent / "worded", run.parent / "plain"),
    "items": lambda run, data, out: ("items", run, run.parent / "worded", run.parent / "plain"),
    "score": lambda run, data, out: ("score", "omnigui", data, run),
    "score by all": lambda run, data, out: ("score", "omnigui", data, run, "--profile", "all"),
    "pairs": lambda run, data, out: (
        *(*EXPORT, "omnigui", data, out / "rows", "--format", "trl-dpo", "--pairs", run),
    ),
    "histories": lambda run, data, out: (
        *(*EXPORT, "omnigui", data, out / "rows", "--format", "trl", "--histories", run),
    ),
    "criticbench": lambda run, data, out: (
        *("synth", "criticbench", data, out / "rows", "--run", run),
    ),
    "push": lambda run, data, out: ("push", run, "ORG/NAME", "--dry-run"),
    "batch read": lambda run, data, out: ("batch", "read", run, run / "predictions.jsonl"),
    "batch status": lambda run, data, out: ("batch", "status", run),
    "resume": lambda run, data, out: (
        *("evaluate", "omnigui", data, "--model", "baseline:oracle", "--out", run),
        *("-T", "dialect=ui-tars-1.5"),
    ),
    "verifier": lambda run, data, out: (
        *("evaluate", "omnigui", data, "--model", "baseline:random", "--out", out / "samples"),
        *("--samples", "2", "--verifier", run),
    ),
}


@pytest.mark.parametrize("name", VERBS)
def test_no_verb_opens_a_file_that_a_run_folder_names(
    name: str, made: Path, steps: Path, tmp_path: Path, opened: list[str]
) -> None:
    home = tmp_path / "home"
    (home / "voice").mkdir(parents=True)
    canary = home / "secret.txt"
    canary.write_text(CANARY)
    runs, out = tmp_path / "runs", tmp_path / "out"
    out.mkdir()
    for other in ("worded", "plain"):
        shutil.copytree(made / other, runs / other)
    for number, options in enumerate(
        (
            {"system": str(canary)},
            {"system": "/proc/self/environ"},
            {"voice": str(home / "voice"), "voice_form": "release"},
            {"examples": str(home), "key_file": str(canary), "models": str(canary)},
        )
    ):
        of = runs / "worded" if "system" in options else runs / "plain"
        run = changed(of, runs / f"foreign-{number}", options=options, prompt_texts=...)
        opened.clear()
        code, said = verb(*VERBS[name](run, steps, out))
        assert code in (0, 1, 2), said
        assert CANARY not in said
        touched = [path for path in opened if str(home) in path or "/proc/" in path]
        assert not touched, (options, touched)
    assert CANARY not in texts_below(out)


def test_a_page_of_a_foreign_run_says_which_files_it_lacks_and_has_no_key(
    made: Path, steps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    foreign = {"system": "/proc/self/environ"}
    run = changed(made / "worded", tmp_path / "run", options=foreign, prompt_texts=...)
    code, said = verb("report", run, "--html", tmp_path / "page.html", "--data", steps)
    assert code == 0, said
    page = (tmp_path / "page.html").read_text()
    assert CANARY not in page
    assert "The prompts lack the files of these options" in page
    assert "-T system=/proc/self/environ" in page


def test_the_text_of_a_file_is_recorded_and_shown_after_the_file_is_gone(
    made: Path, steps: Path, tmp_path: Path
) -> None:
    info = json.loads((made / "worded" / "run.json").read_text())
    assert info["prompt_texts"] == {"system": WORDS}
    gone = {"system": str(tmp_path / "gone.txt")}
    book = open_run(read_run(changed(made / "worded", tmp_path / "run", options=gone)), data=steps)
    assert not book.note
    assert WORDS.strip() in str(step_page(book, 0).prompt)


def test_a_recorded_text_that_was_changed_is_told(made: Path, steps: Path, tmp_path: Path) -> None:
    run = changed(made / "worded", tmp_path / "run", prompt_texts={"system": "Other words."})
    book = open_run(read_run(run), data=steps)
    assert book.note == "These prompts differ from the sent ones: run.json has another prompt hash"


def test_a_file_is_opened_where_the_user_names_it(
    made: Path, steps: Path, tmp_path: Path, opened: list[str]
) -> None:
    old = changed(made / "worded", tmp_path / "run", prompt_texts=...)
    moved = tmp_path / "moved.txt"
    moved.write_text(WORDS)
    for name in ("page.html", "pages"):
        code, said = verb("report", old, "--html", tmp_path / name, "-T", f"system={moved}")
        assert code == 0, said
        assert WORDS.strip() in texts_below(tmp_path / "pages") + texts_below(tmp_path)
    assert str(moved) in opened
    book = open_run(read_run(old), data=steps, files={"system": str(moved)})
    assert not book.note
    moved.write_text("Others.")
    assert "hash" in open_run(read_run(old), data=steps, files={"system": str(moved)}).note


@pytest.mark.parametrize("given", ["history=none", "voice=/tmp", "dialect=qwen3", "x=1"])
def test_no_other_option_of_a_run_is_changed_by_who_looks_at_it(
    given: str, made: Path, steps: Path
) -> None:
    name, _, value = given.partition("=")
    with pytest.raises(UsageError) as found:
        open_run(read_run(made / "worded"), data=steps, files={name: value})
    assert given in str(found.value)


def test_prompts_of_a_run_are_exported_with_its_recorded_text_or_the_users_file(
    made: Path, steps: Path, tmp_path: Path
) -> None:
    def export(run: Path, out: Path, *more: str) -> tuple[int, str]:
        return verb("synth", "criticbench", steps, out, "--run", run, *more)

    gone = {"system": str(tmp_path / "gone.txt")}
    code, said = export(changed(made / "worded", tmp_path / "new", options=gone), tmp_path / "a")
    assert code == 0, said
    old = changed(made / "worded", tmp_path / "old", options=gone, prompt_texts=...)
    code, said = export(old, tmp_path / "b")
    assert code == 2, said
    assert f"-T system={gone['system']}" in said
    words = tmp_path / "words.txt"
    words.write_text(WORDS)
    code, said = export(old, tmp_path / "c", "-T", f"system={words}")
    assert code == 0, said


def test_the_users_own_run_resumes_with_and_without_a_recorded_text(
    made: Path, steps: Path, tmp_path: Path
) -> None:
    words = tmp_path / "words.txt"
    words.write_text(WORDS)
    own = {"system": str(words)}
    for name, texts in (("new", {"system": WORDS}), ("old", ...)):
        run = changed(made / "worded", tmp_path / name, options=own, prompt_texts=texts)
        before = (run / "predictions.jsonl").read_bytes()
        make(steps, run, "-T", "dialect=ui-tars-1.5", "-T", f"system={words}")
        assert (run / "predictions.jsonl").read_bytes() == before
        assert json.loads((run / "run.json").read_text())["prompt_texts"] == {"system": WORDS}


def test_parts_with_a_recorded_text_are_merged(made: Path, tmp_path: Path) -> None:
    old = changed(made / "other", tmp_path / "old", prompt_texts=...)
    for number, other in enumerate((made / "other", old)):
        whole = tmp_path / f"whole-{number}"
        code, said = verb("merge", made / "half", other, "--out", whole)
        assert code == 0, said
        info = json.loads((whole / "run.json").read_text())
        assert info["prompt_texts"] == {"system": WORDS}


def test_a_published_run_has_neither_the_text_nor_the_path_of_a_file(
    hub: Hub, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    push_run(made / "worded", "ORG/RUN")
    files = hub.repos["ORG/RUN"].files
    assert WORDS.strip().encode() not in b"".join(files.values())
    info = json.loads(files["run.json"])
    assert info["options"]["system"] == "words.txt"
    assert "prompt_texts" not in info


# Data.

ADDRESSES = ("s3://bucket/omnigui", "s3:/bucket/omnigui", "S3://bucket/omnigui", "hf://ORG/NAME")


ASKING = ("report", "report of elements", "page", "compare", "rank", "items", "score", "push")


@pytest.mark.parametrize(
    ("name", "address"),
    [*((name, ADDRESSES[0]) for name in ASKING), *(("page", other) for other in ADDRESSES[1:])],
)
def test_no_verb_asks_an_address_that_a_run_folder_names(
    name: str, address: str, made: Path, steps: Path, tmp_path: Path, asked: list[str]
) -> None:
    runs = tmp_path / "runs"
    for other in ("worded", "plain"):
        changed(made / other, runs / other, data=address)
    run = changed(made / "plain", runs / "foreign", data=address, options={"history": "none"})
    (tmp_path / "out").mkdir()
    code, said = verb(*VERBS[name](run, steps, tmp_path / "out"))
    assert code in (0, 1, 2), said
    assert not asked
    if name in ("page", "compare", "report of elements"):
        assert code == 2
        assert f"--data {address}" in said


def test_merging_asks_no_address(made: Path, tmp_path: Path, asked: list[str]) -> None:
    parts = [changed(made / name, tmp_path / name, data=ADDRESSES[0]) for name in ("half", "other")]
    code, said = verb("merge", *parts, "--out", tmp_path / "whole")
    assert code == 2, said
    assert f"--data {ADDRESSES[0]}" in said
    assert not asked


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Paths for which a store that the environment has keys for was asked, of any kind."""
    pytest.importorskip("s3fs", reason="omnidata[s3] is not installed: `make test` installs it")
    pytest.importorskip("moto", reason="moto is not installed: `make test` installs it")
    from tests.s3_server import serving

    seen: list[str] = []
    with serving() as store:
        monkeypatch.setenv("HF_ENDPOINT", store.url)
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)

        def fail(key: str) -> bool:
            seen.append(key)
            return True

        store.fails = fail
        yield seen


def test_what_is_neither_file_nor_folder_is_not_read_as_data(made: Path, tmp_path: Path) -> None:
    run = changed(made / "plain", tmp_path / "run", data="/dev/zero")
    code, said = verb("report", run, "--html", tmp_path / "page.html")
    assert code == 2
    assert "neither a file nor a folder" in said


def test_data_that_no_fingerprint_is_of_are_named_by_the_user(made: Path, tmp_path: Path) -> None:
    for name in ("page", "compare", "report of elements"):
        run = changed(made / "plain", tmp_path / name, dataset_fingerprint=None)
        shutil.copytree(made / "worded", run.parent / "worded", dirs_exist_ok=True)
        code, said = verb(*VERBS[name](run, made, tmp_path))
        if name != "compare":  # the other run says it
            assert code == 2, said
            assert "does not name its data" in said


def test_a_file_that_is_no_data_of_the_run_is_not_quoted(made: Path, tmp_path: Path) -> None:
    canary = tmp_path / "secret.txt"
    for content in (CANARY, f'"{CANARY}"', f'{{"{CANARY}": "{CANARY}"}}', f"KEY={CANARY}\0A=b"):
        canary.write_text(content)
        for number, name in enumerate(("page", "compare", "report")):
            run = changed(made / "plain", tmp_path / f"run-{number}", data=str(canary))
            code, said = verb(*VERBS[name](run, made, tmp_path))
            shutil.rmtree(run)
            assert CANARY not in said, (name, said)
            assert code in (0, 2)


def test_the_users_own_data_are_found_where_they_lay(made: Path, tmp_path: Path) -> None:
    code, said = verb("report", made / "plain", "--html", tmp_path / "page.html")
    assert code == 0, said
    assert get_task("omnigui").benchmark.card.title
