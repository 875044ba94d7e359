"""The frozen files: how a world is frozen, and compared with what was frozen of it."""

from __future__ import annotations

import json
import lzma
import os
import tempfile
import traceback
from pathlib import Path

from tests.goldens.pipeline import ASKED
from tests.goldens.record import WRITTEN, Record, differences, encode, make_runs, old_runs, records
from tests.goldens.surfaces import SURFACES, TEXTS
from tests.goldens.worlds import WORLDS, build

FROZEN = Path(__file__).with_name("frozen")
ACROSS = {**SURFACES, **ASKED, **TEXTS}
ALL = (*WORLDS, *ACROSS)


def frozen(world: str) -> list[Record]:
    """The records of a world as they were frozen."""
    with lzma.open(file_of(world), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def file_of(world: str) -> Path:
    return FROZEN / f"{world}.jsonl.xz"


def compare(world: str, folder: Path) -> list[str]:
    """What differs from what was frozen of a world."""
    old = frozen(world)
    if world in ACROSS:
        return differences(old, list(ACROSS[world](folder / world, old)))
    data = build(world, folder)
    return differences(old, [*records(world, data, old), *_of_old_runs(world, data)])


def freeze(world: str, folder: Path) -> int:
    """Write the records of a world; gives their number."""
    if world in ACROSS:
        made = list(ACROSS[world](folder / world, []))
    else:
        data = build(world, folder)
        made = list(records(world, data))
        if world in WRITTEN and not (FROZEN / "run_folders" / world).exists():
            make_runs(WORLDS[world][0], data, FROZEN / "run_folders" / world)
        made += _of_old_runs(world, data)
    with lzma.open(file_of(world), "wt", encoding="utf-8", preset=9) as file:
        file.writelines(encode(record) + "\n" for record in made)
    return len(made)


def _of_old_runs(world: str, data: Path) -> list[Record]:
    """What is made of the run folders that were frozen; they are never made again."""
    runs = sorted(path for path in (FROZEN / "run_folders" / world).glob("*") if path.is_dir())
    return list(old_runs(WORLDS[world][0], data, runs, data.parent)) if runs else []


def run(verb: str, world: str) -> tuple[list[str], str]:
    """Do one world in a folder of its own; gives its differences, and a line about it."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    with tempfile.TemporaryDirectory() as name:
        try:
            if verb == "freeze":
                return [], f"{world}: {freeze(world, Path(name))} records"
            found = compare(world, Path(name))
        except Exception:
            return [traceback.format_exc()], f"{world}: failed"
    return found, f"{world}: {len(found)} differences"
