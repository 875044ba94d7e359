"""Freeze what stands, or compare with what was frozen.

    python -m tests.goldens compare
    python -m tests.goldens compare --only aitz
    python -m tests.goldens freeze omnigui aitz
    python -m tests.goldens compare asked-aitz
    python -m tests.goldens freeze texts

`asked-WORLD` is what an answer goes through, from the prompt to the table. `asked` stands for all
of these worlds, and `texts` for those of printed texts. Worlds are done side by side, one on each
core.
Exit code 1 where something differs; each difference is printed, the old line above the new one.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.goldens.pipeline import ASKED
from tests.goldens.store import ALL, file_of, run
from tests.goldens.surfaces import TEXTS

SHOWN = 20
GROUPS: Mapping[str, Iterable[str]] = {"asked": ASKED, "texts": TEXTS}


def _ordered(worlds: Sequence[str]) -> list[str]:
    """The largest first, so that no core ends with one alone."""
    sizes = {world: file_of(world).stat().st_size for world in worlds if file_of(world).exists()}
    return sorted(worlds, key=lambda world: -sizes.get(world, 0))


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.goldens",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("verb", choices=("freeze", "compare"))
    known = (*ALL, *GROUPS)
    parser.add_argument("worlds", nargs="*", help=f"of {', '.join(known)}; all unless named")
    parser.add_argument("--only", action="append", default=[], metavar="WORLD", help="the same")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes")
    arguments = parser.parse_intermixed_args()
    named = [*arguments.worlds, *arguments.only] or list(ALL)
    if unknown := [world for world in named if world not in known]:
        parser.error(f"no such world: {', '.join(unknown)}")
    worlds = {one: None for world in named for one in GROUPS.get(world, [world])}
    failed = 0
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(arguments.workers, len(worlds)), mp_context=context) as pool:
        for done in as_completed(
            [pool.submit(run, arguments.verb, world) for world in _ordered(list(worlds))]
        ):
            found, line = done.result()
            failed += bool(found)
            print(line, *found[:SHOWN], sep="\n", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
