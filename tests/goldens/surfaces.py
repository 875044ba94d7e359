"""Worlds that cut across benchmarks: exports, run folders, pages and printed texts.

Each is a function of a folder and of what was frozen. Commands run inside that folder and name
files relative to it, so that no line depends on where the folder is.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests import plugs
from tests.ablate import senses
from tests.cli.running import command_group, help_text
from tests.goldens.asking import Asking
from tests.goldens.record import call, drop_hashes
from tests.goldens.worlds import WORLDS, build

Record = dict[str, Any]
Surface = Callable[[Path, Sequence[Record]], Iterator[Record]]

RUNS = Path(__file__).with_name("frozen") / "run_folders"
_ENVIRONMENT = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb", "TZ": "UTC"}
_LONG = re.compile(r"-?\d+\.\d{9,}(?:e-?\d+)?")
_HASH = re.compile(r"\b(?=[0-9a-f]*[a-f])[0-9a-f]{12,64}\b")
_NESTED = re.compile(r'("(?:versions|timings)": )\{[^}]*\}')
_MASKED = re.compile(
    r'("(?:created|finished|started|latency_s|platform|data|duration_s|elapsed_s)": ?)'
    r'("(?:[^"\\]|\\.)*"|[-\d.e]+|null)'
)


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    """Work inside a folder, with the same terminal everywhere."""
    kept = dict(os.environ)
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(_ENVIRONMENT)
    try:
        with chdir(folder):
            yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


def _plain(text: str, folder: Path) -> str:
    """A text without the folder, the version, hashes and the last digits of numbers."""
    for place in (str(folder.resolve()), str(folder)):
        text = text.replace(place, "HOME")
    text = text.replace(version("omnidata"), "VERSION")
    text = _LONG.sub(lambda found: f"{float(found[0]):.9g}", text)
    return _HASH.sub("HASH", text)


def round_floats(value: Any) -> Any:
    """A JSON value with floats of nine digits: ends of bootstrap intervals differ in the last."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, Mapping):
        return {key: round_floats(item) for key, item in value.items()}
    return [round_floats(item) for item in value] if isinstance(value, list) else value


def _print(folder: Path, *argv: str | Path) -> Record:
    """What a verb prints, with its command."""
    text = _plain(call(*argv), folder)
    with contextlib.suppress(ValueError):
        return {
            "kind": "printed",
            "command": list(map(str, argv)),
            "is": round_floats(json.loads(text)),
        }
    return {"kind": "printed", "command": list(map(str, argv)), "is": text}


def _data(world: str, folder: Path) -> Path:
    """The data of a world, relative to the folder, which is the working one."""
    return build(world, folder).relative_to(folder)


@functools.cache
def dialect_names() -> Sequence[str]:
    """The names of all dialects."""
    return sorted(json.loads(call("info", "dialects", "--json")))


# --- training data --------------------------------------------------------------------------------

FULL_FORMS: tuple[tuple[str, ...], ...] = (
    ("swift", "--objects", "norm1"),
    ("swift", "--objects", "real"),
    ("swift", "--video", "frames", "--frames", "2"),
    ("llamafactory", "--image-size", "64"),
    ("llamafactory", "--drop-audio"),
    ("swift-grpo",),
    ("verl",),
    *(("verl", "--reward", recipe) for recipe in ("ui-r1", "gui-r1", "ui-s1")),
)
"""Exports of steps with clips and sound."""

PICTURE_FORMS: tuple[tuple[str, ...], ...] = (
    ("trl", "--coordinates", "px"),
    ("trl", "--coordinates", "rel"),
    ("qwen-vl", "--smart-resize", "28"),
    *((form,) for form in ("trl-grpo", "swift-grpo", "verl", "easyr1")),
)
"""Exports of steps with screenshots alone."""

PREFERENCES = ("swift-dpo", "llamafactory-dpo", "llamafactory-kto", "trl-dpo", "trl-kto")


def _exports(folder: Path, _: Sequence[Record]) -> Iterator[Record]:
    every = [(trainer, "nearest") for trainer in PREFERENCES]
    with _inside(folder):
        yield from _exports_of(folder, "omnigui-few", FULL_FORMS, every[:4])
        yield from _exports_of(folder, "aitz", PICTURE_FORMS, [*every, ("trl-dpo", "balanced")])
        yield from _exports_of(folder, "screenspot", [("verl", "--reward", "aepo")], ())


def _exports_of(
    folder: Path,
    world: str,
    forms: Sequence[tuple[str, ...]],
    preferences: Sequence[tuple[str, str]],
) -> Iterator[Record]:
    name, data = WORLDS[world][0], _data(world, folder)
    for form in forms:
        yield from _export(folder, name, data, *form)
    for model in ("oracle", "center"):
        call("evaluate", name, data, "--model", f"baseline:{model}", "--out", model)
    pairs = ("--pairs", "oracle", "--pairs", "center")
    for trainer, order in preferences:
        yield from _export(folder, name, data, trainer, *pairs, "--order", order)
    for model in ("oracle", "center"):
        shutil.rmtree(model)


def _export(folder: Path, name: str, data: Path, form: str, *more: str) -> Iterator[Record]:
    out = Path("out")
    printed = call(
        "export", name, data, out, "--format", form, *more, "--split", "train=1", "--workers", "1"
    )
    files = {}
    for path in sorted(out.rglob("*")) if out.exists() else ():
        if path.suffix == ".parquet":
            files[path.name] = pq.read_table(path).to_pylist()
        elif path.suffix in (".jsonl", ".json") and path.parent == out:
            files[path.name] = path.read_text(encoding="utf-8").splitlines()
    yield {
        "kind": "export",
        "task": name,
        "as": [form, *more],
        "failed": printed.startswith("exit"),
        "files": {
            file: [_plain(drop_hashes(_mask(_to_text(row))), folder) for row in rows]
            for file, rows in files.items()
        },
    }
    shutil.rmtree(out, ignore_errors=True)


def _to_text(row: Any) -> str:
    return row if isinstance(row, str) else json.dumps(row, default=repr, sort_keys=True)


# --- run folders ----------------------------------------------------------------------------------


def _mask(line: str) -> str:
    """A line of a file without the values of times and places; every other byte stays."""
    return _MASKED.sub(r"\1MASKED", line)


def _run_folders(folder: Path, _: Sequence[Record]) -> Iterator[Record]:
    with _inside(folder):
        for world in ("aitz", "criticbench"):
            name, data = WORLDS[world][0], _data(world, folder)
            command = ("evaluate", name, data, "--model", "baseline:oracle")
            call(*command, "--out", "whole")
            for part in (1, 2):
                call(*command, "--out", f"part{part}", "--shard", f"{part}/2")
            call("merge", "part1", "part2", "--out", "joined")
            call("score", name, data, "whole", "--profile", "all", "--out", "scored")
            for made in ("whole", "part1", "joined", "scored"):
                yield from _read_folder(folder, world, Path(made))
                shutil.rmtree(made, ignore_errors=True)


def _read_folder(folder: Path, world: str, made: Path) -> Iterator[Record]:
    for path in sorted(made.rglob("*")):
        if path.suffix not in (".json", ".jsonl") or not path.is_file():
            continue
        text = path.read_text(encoding="utf-8")
        if path.name == "run.json":
            text = _NESTED.sub(r"\1MASKED", text)
        lines = [_mask(line) for line in text.splitlines()]
        if path.suffix == ".jsonl":
            lines = sorted(re.sub(r'("timings": ?)\{[^}]*\}', r"\1MASKED", line) for line in lines)
        yield {
            "kind": "file",
            "world": world,
            "file": path.as_posix(),
            "ends": text[-1:],
            "is": [_plain(line, folder) for line in lines],
        }


# --- pages ----------------------------------------------------------------------------------------


def _write_pages(folder: Path, *worlds: str) -> Iterator[tuple[str, Path]]:
    """The pages of a run in each world."""
    with _inside(folder):
        for world in worlds:
            name, data = WORLDS[world][0], _data(world, folder)
            call("evaluate", name, data, "--model", "baseline:center", "--out", f"run-{world}")
            call("report", f"run-{world}", "--html", f"pages-{world}")
            yield world, Path(f"pages-{world}")


def _pages(folder: Path, _: Sequence[Record]) -> Iterator[Record]:
    for world, pages in _write_pages(folder, "omnigui-few", "aitz", "omnibench"):
        files = sorted(path.relative_to(pages).as_posix() for path in pages.rglob("*.html"))
        yield {"kind": "pages", "world": world, "files": files}
        for path in sorted(pages.rglob("*.html")):
            found = re.findall(
                r'<script type="application/json"[^>]*>(.*?)</script>',
                path.read_text("utf-8"),
                re.S,
            )
            for text in found:
                yield {
                    "kind": "page",
                    "world": world,
                    "file": path.relative_to(pages).as_posix(),
                    "is": round_floats(json.loads(_plain(text, folder))),
                }


def _page_texts(folder: Path, _: Sequence[Record]) -> Iterator[Record]:
    for world, pages in _write_pages(folder, "aitz", "screenspot"):
        for path in sorted(pages.rglob("*.html"))[:12]:
            text = re.sub(r"<(script|style)\b.*?</\1>", "", path.read_text("utf-8"), flags=re.S)
            words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "\n", text).replace("\n", " "))
            yield {
                "kind": "page text",
                "world": world,
                "file": path.relative_to(pages).as_posix(),
                "is": _plain(words, folder),
            }


# --- printed texts --------------------------------------------------------------------------------


def _help(folder: Path, _: Sequence[Record]) -> Iterator[Record]:
    with _inside(folder):
        for path in _verbs(command_group()):
            text = _plain(help_text(*path, width=100), folder)
            yield {"kind": "help", "verb": " ".join(path), "is": text}


def _verbs(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield path
    if hasattr(command, "list_commands"):
        for name in command.list_commands(None):
            yield from _verbs(command.get_command(None, name), (*path, name))


def _info(folder: Path, _: Sequence[Record]) -> Iterator[Record]:
    with _inside(folder):
        for form in ("terminal", "json"):
            yield _print(folder, "info", "--format", form)
        for task in sorted({task for task, _ in WORLDS.values()}):
            yield _print(folder, "info", task, "--format", "md")
        yield _print(folder, "info", "dialects")
        for task in ("omnigui", "androidcontrol", "screenspot"):
            yield _print(folder, "info", "dialects", "--task", task)
        for world in ("omnigui-few", "aitz", "omnibench"):
            data = _data(world, folder)
            for form in ("terminal", "md", "latex", "json"):
                yield _print(folder, "info", WORLDS[world][0], data, "--format", form)


FORMATS = ("terminal", "md", "latex", "csv", "json")


def _reports(folder: Path, _: Sequence[Record]) -> Iterator[Record]:
    with _inside(folder):
        data = _data("omnigui", folder)
        runs = {
            "oracle": ("baseline:oracle",),
            "center": ("baseline:center",),
            "majority": ("baseline:majority",),
            "silent": ("baseline:center", "-T", "modalities=I"),
        }
        for name, (model, *more) in runs.items():
            call("evaluate", "omnigui", data, "--model", model, *more, "--out", name)
        _mix(Path("oracle"), Path("mixed.jsonl"))
        call("score", "omnigui", data, "mixed.jsonl", "--out", "mixed")
        pair = ("majority", "mixed")
        for form in FORMATS:
            yield _print(folder, "report", *runs, "mixed", "--published", "--format", form)
            yield _print(folder, "report", *pair, "--errors", "--format", form)
            by = ("--by", "dimension", "--by", "element-size", "--format", form)
            yield _print(folder, "report", "center", "majority", *by)
        for form in ("terminal", "md", "csv", "json"):
            yield _print(folder, "compare", *pair, "--by", "dimension", "--format", form)
            yield _print(folder, "compare", "oracle", *pair, "--format", form)
            yield _print(folder, "items", "oracle", *pair, "--format", form)
        yield from _of_frozen_runs(folder)


def _mix(run: Path, out: Path) -> None:
    """Write the answers of a run, but for some that are unreadable, missing or of another step."""
    lines = [json.loads(line) for line in (run / "predictions.jsonl").open(encoding="utf-8")]
    lines.sort(key=lambda line: str(line["sample_id"]))
    texts = [line["output"] for line in lines]
    for number in range(0, len(texts), 3):
        texts[number] = texts[number - 1] if number % 2 else "I cannot tell."
    rows = [
        {"sample_id": line["sample_id"], "output": text}
        for number, (line, text) in enumerate(zip(lines, texts, strict=True))
        if number % 11 != 10
    ]
    out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _of_frozen_runs(folder: Path) -> Iterator[Record]:
    for home in sorted(path for path in RUNS.glob("*") if path.is_dir()):
        copies = sorted(
            Path(shutil.copytree(run, Path("old") / home.name / run.name)) for run in home.iterdir()
        )
        yield _print(folder, "report", *copies, "--format", "md")


@contextlib.contextmanager
def _hearing_model(data: Path) -> Iterator[tuple[str, ...]]:
    """A model that knows the answer to the sounds of every other step, as options of a verb."""
    site = Path("site").resolve()
    site.mkdir()
    (site / "senses_plugin.py").write_text(senses.PLUGIN, encoding="utf-8")
    plugs.install(site, "senses", "omnidata.adapters", "senses = senses_plugin:Senses")
    sys.path.insert(0, str(site))
    known = senses.learn(Asking("omnigui").load(data), "audio", Path("known.json"))
    answers = json.loads(known.read_text("utf-8"))
    known.write_text(json.dumps(dict(list(answers.items())[::2])), encoding="utf-8")
    try:
        yield "--model", "senses:audio", "-M", f"known={known}"
    finally:
        sys.path.remove(str(site))


def _ablations(folder: Path, _: Sequence[Record]) -> Iterator[Record]:
    with _inside(folder):
        data = _data("omnigui", folder)
        with _hearing_model(data) as model:
            command: tuple[str | Path, ...] = ("ablate", "omnigui", data, *model)
            for form in ("terminal", "md", "csv", "json"):
                grid = ("--controls", "silence,other-sound", "--out", "heard")
                yield _print(folder, *command, *grid, "--format", form)
                varied = ("--vary", "history=gold,none", "--vary", "media_until=1.0,0.5")
                yield _print(folder, *command, *varied, "--out", "varied-heard", "--format", form)
        command = ("ablate", "omnigui", data, "--model", "baseline:majority", "--limit", "16")
        vary = ("--vary", "history=gold,none")
        for form in ("terminal", "md", "csv", "json"):
            media = (
                "--modalities",
                "IAV,I",
                "--controls",
                "silence",
                "--by",
                "dimension",
                "--out",
                "media",
            )
            yield _print(folder, *command, *media, "--format", form)
            yield _print(folder, *command, *vary, "--out", "varied", "--format", form)


SURFACES: Mapping[str, Surface] = {
    "exports": _exports,
    "run-folders": _run_folders,
    "pages": _pages,
}
"""Name -> what is recorded of it."""

TEXTS: Mapping[str, Surface] = {
    "help": _help,
    "info": _info,
    "reports": _reports,
    "ablations": _ablations,
    "page-texts": _page_texts,
}
"""The same of texts, which may be edited without a change of what they count."""
