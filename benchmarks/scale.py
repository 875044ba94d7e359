"""What a run costs as its dataset grows: seconds and memory, on a cluster of this machine.

The dataset is a Parquet repository whose steps are linked: all have the media of one. The model is
an instant server in another process. Each size is measured in a process of its own: loading, a run
on Ray, and the same run resumed in one process after its last 100 lines are taken away. With
`--answered` all lines but the last 50,000 are made beforehand, so that the run on Ray goes on with
one that is nearly done.
Memory is what a process holds at most (VmHWM) beyond what it holds once all is imported.

    python benchmarks/scale.py [--steps 10000 100000 1000000] [--workers 4] [--keep FOLDER]
    python benchmarks/scale.py --steps 1000000 --answered
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from cluster import write
from PIL import Image
from runner import served

from omnidata.data.convert import convert
from omnidata.jsontext import encode
from omnidata.loaders.repository import MANIFEST, read_manifest
from omnidata.loaders.steps import ids_of
from omnidata.predictions import Prediction
from omnidata.run.asker import Recipe
from omnidata.run.cost import Limits
from omnidata.run.engines import Cluster
from omnidata.run.evaluate import evaluate
from omnidata.storage import write_json
from omnidata.tasks import get_task
from omnidata.tasks.asking import Asking
from omnidata.types import LoadedDataset

BASE = 10_000
IN_FLIGHT = 16
TASK = get_task("omnigui", {"modalities": "I", "history_screenshot": "off"})
LAST = 100
ASKED = 50_000


def main() -> None:
    """Measure each size, and print a line of JSON for each stage."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--keep", type=Path, help="a folder for data and runs, which stay there")
    parser.add_argument("--answered", action="store_true", help="make most answers beforehand")
    parser.add_argument("--stage", nargs=2, help="measure one stage here, with a server's address")
    given = parser.parse_args()
    if given.stage:
        name, url = given.stage
        stage(name, url, given.keep, given.steps[0], given.workers)
        return
    os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # a cluster of this machine alone
    with tempfile.TemporaryDirectory() as made, served(0.0) as url:
        folder = given.keep or Path(made)
        folder.mkdir(exist_ok=True)
        for count in given.steps:
            data = folder / str(count)
            stages = ["load", *(["answer"] if given.answered else []), "ray", "resume"]
            if not data.exists():
                data.mkdir()
                write_repository(folder, data, count)
            for each in stages:
                command = [sys.executable, __file__, "--stage", each, url, "--keep", str(folder)]
                command += ["--steps", str(count), "--workers", str(given.workers)]
                subprocess.run(command, check=True)


def stage(name: str, url: str, folder: Path, count: int, workers: int) -> None:
    """One stage of one size."""
    data, out = folder / f"{count}", folder / f"run-{count}"
    before = held()
    source, told = loaded(TASK, data)
    found: dict[str, Any] = {"stage": name, "steps": count, **told}
    if name == "answer":
        began_run(source, url, out)
        answer(out, source)
    elif name != "load":
        if name == "resume":
            cut(out / "predictions.jsonl", LAST)
        cluster = Cluster(workers=workers) if name == "ray" else None
        in_flight = IN_FLIGHT // workers if cluster else IN_FLIGHT
        with watched() as peaks:
            model = Recipe("openai:m", base_url=f"{url}/v1")
            began = time.perf_counter()
            results = evaluate(
                TASK, source, model, out, limits=Limits(concurrency=in_flight), cluster=cluster
            )
            found["wall_s"] = time.perf_counter() - began
        assert results["outcomes"] == {"ok": count}, results["outcomes"]
        found["peak_mib"] = most(os.getpid()) - before
        found["workers_mib"] = sorted(peaks.values())
        found["timings"] = json.loads((out / "run.json").read_text())["timings"]
        found["predictions_mb"] = (out / "predictions.jsonl").stat().st_size / 1e6
    print(json.dumps({key: rounded(value) for key, value in found.items()}), flush=True)


def loaded(task: Asking, data: Path) -> tuple[LoadedDataset, dict[str, float]]:
    """Data, and what it took to load them."""
    before, began, worked = held(), time.perf_counter(), time.process_time()
    source = task.load(data, check_media=False)
    return source, {
        "base_mib": before,
        "load_s": time.perf_counter() - began,
        "load_cpu_s": time.process_time() - worked,
        "load_peak_mib": most(os.getpid()) - before,
        "loaded_mib": held() - before,
    }


def rounded(value: Any) -> Any:
    """Numbers as a person reads them."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return round(value, 1) if isinstance(value, float) else value


def held() -> float:
    """MiB that this process holds now."""
    return status(os.getpid(), "VmRSS")


def most(process: int) -> float:
    """MiB that a process held at most."""
    return status(process, "VmHWM")


def status(process: int, name: str) -> float:
    """A line of what the system says of a process, in MiB."""
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    return 0.0


def parent(process: int) -> int:
    """The process that started another."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


@contextmanager
def watched() -> Iterator[dict[int, float]]:
    """The most that each worker of our own Ray holds, in MiB, looked at every second."""
    peaks: dict[int, float] = {}
    over = threading.Event()

    def look() -> None:
        while not over.wait(1.0):
            for path in Path("/proc").glob("[0-9]*"):
                try:
                    named = b"AskingWorker" in (path / "cmdline").read_bytes()
                    if named and parent(parent(int(path.name))) == os.getpid():
                        peaks[int(path.name)] = most(int(path.name))
                except OSError:  # it has just ended
                    continue

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield peaks
    finally:
        over.set()
        thread.join()


def write_repository(folder: Path, out: Path, count: int) -> None:
    """Steps as `omnidata convert --link` writes them: a repository of some, again and again."""
    base = folder / "base"
    if not base.exists():
        (folder / "source").mkdir()
        noise = np.random.default_rng(0).integers(0, 255, (160, 72, 3))
        Image.fromarray(noise.astype(np.uint8)).save(folder / "source" / "1.png")
        write(folder / "source" / "steps.json", BASE)
        for name in ("1.mp4", "1.wav"):
            (folder / "source" / name).write_bytes(b"")
        convert(TASK.load(folder / "source", check_media=False), base, embed=False)
    manifest = read_manifest(base)
    tables = {name: pq.read_table(base / name) for name in manifest.shards}
    shards: dict[str, int] = {}
    for copy in range(-(-count // BASE)):
        for number, table in enumerate(tables.values()):
            name = f"data/{copy}-{number}.parquet"
            shards[name] = len(table)
            (out / "data").mkdir(parents=True, exist_ok=True)
            pq.write_table(renamed(table, copy), out / name, compression="zstd")
    (out / "1.png").write_bytes((folder / "source" / "1.png").read_bytes())
    said = replace(
        manifest,
        shards=shards,
        subsets={"all": list(range(len(shards)))},
        rows=sum(shards.values()),
        roots=[str(out.absolute())],
        fingerprint=sha256(str(count).encode()).hexdigest(),
        findings=[],
        media_findings=[],
        skipped=0,
    )
    write_json(out / MANIFEST, msgspec.to_builtins(said))


def renamed(table: pa.Table, copy: int) -> pa.Table:
    """The rows with ids and places that no other copy has."""
    for name in table.column_names:
        column = table.column(name)
        if name == "sample_id":
            column = pc.replace_substring(column, "App/", f"App/{copy}-", max_replacements=1)
        elif name == "episode_id":
            column = pc.binary_join_element_wise(f"{copy}-", column, "")
        elif name in ("position", "row"):
            column = pc.add(column, copy * BASE)
        else:
            continue
        field = table.schema.field(name)
        table = table.set_column(table.column_names.index(name), field, column.cast(field.type))
    return table


def began_run(source: LoadedDataset, url: str, out: Path) -> None:
    """A run that has hardly begun: its budget ends with its first answers."""
    limits = Limits(concurrency=1, max_tokens=1)
    evaluate(TASK, source, Recipe("openai:m", base_url=f"{url}/v1"), out, limits=limits)


def answer(out: Path, source: LoadedDataset) -> None:
    """Lines that nobody was asked for, as long as a run's, for all steps but the last ones."""
    lines = out / "predictions.jsonl"
    with lines.open("rb") as file:
        one = msgspec.json.decode(file.readline(), type=Prediction)
    names = islice(ids_of(source.steps), max(0, len(source.steps) - ASKED))
    with lines.open("wb") as file:
        for name in names:
            file.write(encode(msgspec.structs.replace(one, sample_id=name)) + b"\n")


def cut(lines: Path, count: int) -> None:
    """Take the last lines away."""
    with lines.open("rb+") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(0, end - 64 * 1024 * 10))
        tail = file.read().splitlines(keepends=True)[-count:]
        file.truncate(end - sum(map(len, tail)))


if __name__ == "__main__":
    main()
