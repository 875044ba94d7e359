"""Does every reader of answers take time linear in their length?

Runs of every ASCII character, alone and with each other one, stand in every kind of answer of every
dialect, by both rules, and of every benchmark, by every profile. A run is doubled twice: a reader
whose time grows threefold each time is named. One kind of run and one place in an answer are tried
after the other, so that the first minutes say most.

    python benchmarks/readers.py --runs single
    python benchmarks/readers.py --runs pairs --only qwen3 ui-tars-1.5
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from tests.linear import ASCII, PAIRS, dialect_readers, grow, task_readers


def main() -> int:
    """Try every reader, and print what each took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", choices=["single", "pairs"], default="single")
    parser.add_argument("--length", type=int, default=16_000, help="characters of a run")
    parser.add_argument("--frames", type=int, default=1000, help="places in answers, at most")
    parser.add_argument("--only", nargs="*", default=[], help="dialects and benchmarks")
    asked = parser.parse_args()
    runs = ASCII if asked.runs == "single" else PAIRS
    steep = 0
    with tempfile.TemporaryDirectory() as folder:
        readers = [
            *dialect_readers(asked.only),
            *task_readers(Path(folder), asked.only),
        ]
        for reader in readers:
            began, tried = time.process_time(), 0
            for frame in reader.frames[: asked.frames]:
                for run in runs:
                    tried += 1
                    if found := grow(reader, frame, run, asked.length):
                        steep += 1
                        print(f"STEEP {found}", flush=True)
            spent = time.process_time() - began
            print(f"{reader.name}: {tried:,} runs, {spent:.1f} s", flush=True)
    print(f"{steep} runs on which a reader is not linear")
    return 1 if steep else 0


if __name__ == "__main__":
    sys.exit(main())
