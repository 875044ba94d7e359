"""Does the cache of steps pay? The first and the second load of large annotations, and `view`.

Each load is a process of its own. Seconds of CPU, seconds, and at most so many MiB of its own
beyond those after the imports: pages of files that it has mapped do not count. With `--python`,
checkouts are measured in turns, each by its own interpreter.

    python benchmarks/cache.py [--keep FOLDER] [--python OTHER/.venv/bin/python ...]
    python benchmarks/cache.py --data tree100000 array2579
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from formats import FORMATS

DATA = ["array2579", "array25000", "tree100000", "array100000", "array1000000"]
LOAD = """
import json, pathlib, sys, threading, time
from omnidata.tasks import get_task

def held():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))

def watch():
    while not over.wait(0.1):
        peaks.append(held())

task, peaks, over = get_task(sys.argv[1]), [], threading.Event()
before = held()
threading.Thread(target=watch).start()
began, worked = time.perf_counter(), time.process_time()
source = task.load(pathlib.Path(sys.argv[2]), check_media=False)
found = {"cpu_s": time.process_time() - worked, "s": time.perf_counter() - began}
over.set()
peaks.append(held())
found |= {"peak_mib": max(peaks) - before, "held_mib": peaks[-1] - before}
assert len(source.steps) == int(sys.argv[3]), source.findings[:3]
print(json.dumps({name: round(value, 2) for name, value in found.items()}))
"""


def main() -> None:
    """Make data that are not there, and print a line for each load."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, help="a folder for the data, which stay there")
    parser.add_argument("--data", nargs="+", default=DATA, help="form and number of steps")
    parser.add_argument("--python", nargs="+", default=[sys.executable])
    parser.add_argument("--turns", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        for name in given.data:
            form = name.rstrip("0123456789")
            count = name.removeprefix(form)
            data = (given.keep or Path(made)) / name
            if not data.exists():
                data.mkdir(parents=True)
                FORMATS[form][1](data, int(count))
                time.sleep(3)  # what was just changed is not kept
            for _ in range(given.turns):
                for python in given.python:
                    with tempfile.TemporaryDirectory() as cache:
                        measure(python, cache, FORMATS[form][0], data, count)


def measure(python: str, cache: str, task: str, data: Path, count: str) -> None:
    """Load twice with an empty cache, and start the server of `view`.

    `-P`: each Python imports its own omnidata, not that of the current folder.
    """
    environment = os.environ | {"OMNIDATA_CACHE": cache}
    found: dict[str, object] = {"data": data.name, "python": python}
    for turn in ("first", "second"):
        command = [python, "-P", "-c", LOAD, task, str(data), count]
        answer = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        found[turn] = json.loads(answer.stdout)
    command = [python, "-P", "-m", "omnidata", "view", task, str(data)]
    began = time.perf_counter()
    server = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        addresses = (each for line in server.stdout for each in re.findall(r"http\S+", line))
        urllib.request.urlopen(next(addresses)).read()
        found["view_s"] = round(time.perf_counter() - began, 2)
        used = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        found["view_cpu_s"] = sum(map(int, used)) / os.sysconf("SC_CLK_TCK")
    finally:
        server.terminate()
        server.wait()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
