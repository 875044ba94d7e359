"""How long pages take to be written and to be seen, how large they are, and how that grows.

Repeats the sample dataset (screens of 720 x 1600, clips, sounds) under other names until it has the
steps that are wanted, answers with `baseline:center`, and writes the run's pages with `omnidata
report --html` in a process of its own: as one file while that is allowed, and as a folder. A
browser then opens the first page and a step's page from the disk. Media are hard links, but every
step has files of its own, so that no small picture is made once for two.

    python benchmarks/report.py [--steps 150 2579] [--where FOLDER]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from omnidata.run.evaluate import evaluate
from omnidata.synth.sample import make_sample
from omnidata.tasks import get_task
from omnidata.viewer import MOST_IN_FILE

_CHILD = """
import json, resource, sys, time
from pathlib import Path
from omnidata import viewer
from omnidata.run.run_files import read_run
began = time.perf_counter()
viewer.write(read_run(Path(sys.argv[1])), Path(sys.argv[2]))
print(json.dumps([time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""
_SEEN = """() => {
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  const page = performance.getEntriesByType("navigation")[0];
  return [paint ? paint.startTime : NaN, page.domContentLoadedEventEnd,
          performance.memory ? performance.memory.usedJSHeapSize / 1e6 : NaN];
}"""


def main() -> None:
    """Run it and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, nargs="+", default=[150, 2579])
    parser.add_argument("--where", type=Path, help="for data and pages; they stay there")
    chosen = parser.parse_args()
    place = chosen.where or Path(tempfile.mkdtemp(prefix="omnidata-pages-"))
    try:
        sample = place / "sample"
        if not sample.exists():
            make_sample(sample)
        print(
            " steps  form    write s  ms/step  peak MB  index MB   all MB   files   FCP ms   DOM ms"
        )
        for steps in chosen.steps:
            run = run_of(sample, place, steps)
            if steps <= MOST_IN_FILE:
                show(run, place / f"report-{steps}.html", steps)
            show(run, place / f"site-{steps}", steps)
    finally:
        if not chosen.where:
            shutil.rmtree(place)


def run_of(sample: Path, place: Path, steps: int) -> Path:
    """A run on so many steps."""
    data, run = place / f"data-{steps}", place / f"run-{steps}"
    if not data.exists():
        repeat(sample, data, steps)
    if not run.exists():
        task = get_task("omnigui")
        source = task.load(data, check_media=False)
        evaluate(task, source, "baseline:center", run, limit=steps)
    return run


def repeat(sample: Path, data: Path, steps: int) -> None:
    """The sample under other names, often enough."""
    apps = sorted(path for path in sample.iterdir() if path.is_dir())
    size = sum(len(json.loads((app / f"dataset_{app.name}.json").read_text())) for app in apps)
    for number in range(-(-steps // size)):
        for app in apps:
            name = f"{app.name}{number}"
            for path in app.rglob("*"):
                if path.is_dir():
                    continue
                inside = path.relative_to(app)
                target = data / name / inside.with_name(inside.name.replace(app.name, name))
                target.parent.mkdir(parents=True, exist_ok=True)
                if path.suffix in (".json", ".jsonl"):
                    target.write_text(path.read_text().replace(f'"{app.name}"', f'"{name}"'))
                else:
                    os.link(path, target)


def show(run: Path, out: Path, steps: int) -> None:
    """Write pages and look at them."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(run), str(out)], capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    seconds, memory = json.loads(done.stdout)
    index = out if out.is_file() else out / "index.html"
    files = [out] if out.is_file() else [path for path in out.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    first, dom = seen(index)
    form = "file" if out.is_file() else "folder"
    print(
        f"{steps:6,}  {form:6} {seconds:8.1f} {1e3 * seconds / steps:8.1f} {memory / 1e3:8.0f}"
        f" {index.stat().st_size / 1e6:9.1f} {size / 1e6:8.1f} {len(files):7,}"
        f" {first:8.0f} {dom:8.0f}",
        flush=True,
    )


def seen(index: Path) -> tuple[float, float]:
    """Milliseconds to the first contentful paint, and until the list stands; the best of three."""
    from playwright.sync_api import sync_playwright

    found: list[list[Any]] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for _ in range(3):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.goto(index.as_uri(), wait_until="load", timeout=120_000)
            time.sleep(0.5)
            found.append(page.evaluate(_SEEN))
            page.close()
        browser.close()
    return min(each[0] for each in found), min(each[1] for each in found)


if __name__ == "__main__":
    main()
