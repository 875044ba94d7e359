"""Freeze what stands, or compare with what was frozen.

    python -m tests.goldens compare
    python -m tests.goldens freeze omnigui aitz

Exit code 1 where something differs; each difference is printed, the old line above the new one.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import sys
import tempfile
from pathlib import Path

from tests.goldens.record import WRITTEN, Record, differences, encode, make_runs, old_runs, records
from tests.goldens.worlds import WORLDS, build

FROZEN = Path(__file__).with_name("frozen")
SHOWN = 20


def frozen(world: str) -> list[Record]:
    """The records of a world as they were frozen."""
    with lzma.open(FROZEN / f"{world}.jsonl.xz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def compare(world: str, folder: Path) -> list[str]:
    """What differs from what was frozen of a world."""
    old = frozen(world)
    answers = next((record["texts"] for record in old if record["kind"] == "answers"), None)
    data = build(world, folder)
    return differences(old, [*records(world, data, answers), *_of_old_runs(world, data)])


def freeze(world: str, folder: Path) -> int:
    """Write the records of a world; gives their number."""
    data = build(world, folder)
    made = list(records(world, data))
    if world in WRITTEN and not (FROZEN / "run_folders" / world).exists():
        make_runs(WORLDS[world][0], data, FROZEN / "run_folders" / world)
    made += _of_old_runs(world, data)
    with lzma.open(FROZEN / f"{world}.jsonl.xz", "wt", encoding="utf-8", preset=9) as file:
        file.writelines(encode(record) + "\n" for record in made)
    return len(made)


def _of_old_runs(world: str, data: Path) -> list[Record]:
    """What is made of the run folders that were frozen; they are never made again."""
    runs = sorted(path for path in (FROZEN / "run_folders" / world).glob("*") if path.is_dir())
    return list(old_runs(WORLDS[world][0], data, runs, data.parent)) if runs else []


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.goldens", description=__doc__)
    parser.add_argument("verb", choices=("freeze", "compare"))
    parser.add_argument("worlds", nargs="*", help=f"of {', '.join(WORLDS)}; all unless named")
    arguments = parser.parse_args()
    os.environ["HF_HUB_OFFLINE"] = "1"
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        for world in arguments.worlds or WORLDS:
            if arguments.verb == "freeze":
                print(f"{world}: {freeze(world, Path(name))} records")
                continue
            found = compare(world, Path(name))
            failed += bool(found)
            print(f"{world}: {len(found)} differences")
            for difference in found[:SHOWN]:
                print(difference)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
