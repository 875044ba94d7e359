"""Parquet repositories open nothing of others, and damage is told with its place."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnidata
from omnidata import following
from omnidata.data.convert import convert
from omnidata.data.validate import validate
from omnidata.errors import DataError, MediaError
from omnidata.media import image, read_bytes, samples
from omnidata.tasks.omnigui.load import load
from omnidata.types import LoadedDataset
from tests.cli.running import here
from tests.conftest import Once
from tests.data.converting import LINK_AND_EMBED, plainly, small
from tests.full import FULL
from tests.loaders.test_parquet_rows import again
from tests.trees import row, write_rows

SECRET = b"PNG of somebody else"


@pytest.fixture
def hostile(tmp_path: Path, sample: Path) -> Iterator[tuple[Path, LoadedDataset]]:
    """A dataset whose rows and links lead outside, beside one honest step."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.png").write_bytes(SECRET)
    media = tmp_path / "data" / "media"
    media.mkdir(parents=True)
    shutil.copy(sample / "Chirp" / "media" / "C001" / "1.png", media / "honest.png")
    (media / "link.png").symlink_to(outside / "secret.png")
    (media / "folder").symlink_to(outside)
    paths = [
        "../../outside/secret.png",
        str(outside / "secret.png"),
        (outside / "secret.png").as_uri(),
        "link.png",
        "folder/secret.png",
        "/dev/zero",
        "..\\..\\outside\\secret.png",
        "honest.png",
    ]
    rows = [
        row(f"E{number}", image_path=path, video_path=path, audio_path=path)
        for number, path in enumerate(paths)
    ]
    yield outside, load(write_rows(tmp_path / "data" / "steps.json", rows), check_media=False)


@LINK_AND_EMBED
def test_nothing_outside_can_be_embedded_by_any_export(
    hostile: tuple[Path, LoadedDataset], tmp_path: Path, embed: bool
) -> None:
    outside, source = hostile
    out = tmp_path / "out"
    findings = convert(source, out, embed=embed).findings
    told = {found.where.split()[0] for found in findings if "unsafe" in found.code}
    told |= {found.where for found in findings if "leads outside" in found.what}
    assert told == {f"unknown/E{number}/0" for number in range(7)}
    data = plainly(out)
    for item in data:
        for role in ("screenshot", "video", "audio"):
            if not item["sample_id"].startswith("unknown/E7"):
                assert item[role] is None, "what leads outside is no medium"
    export = data.cast_column("screenshot", datasets.Image(decode=False))
    export.save_to_disk(str(tmp_path / "saved"))
    saved = datasets.load_from_disk(str(tmp_path / "saved"))
    held = [item["screenshot"] for item in saved if item["screenshot"]]
    assert [Path(picture["path"]).name for picture in held] == ["honest.png"]
    for path in [*out.rglob("*"), *(tmp_path / "saved").rglob("*")]:
        if path.is_file():
            assert SECRET not in path.read_bytes(), path
    assert (outside / "secret.png").read_bytes() == SECRET


@pytest.fixture(scope="session")
def one(sample: Path, once: Once, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository of one episode; tests change copies of it."""
    source = load(small(tmp_path_factory.mktemp("one") / "data", sample, "C001"))
    return once("one-episode", lambda out: convert(source, out, embed=True))


def forge(repository: Path, **changes: Any) -> None:
    path = repository / "omnidata.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_forged_manifest_opens_no_file_of_others(sample: Path, tmp_path: Path) -> None:
    data, out = small(tmp_path / "data", sample, "C001"), tmp_path / "out"
    convert(load(data), out, embed=False)
    victim = tmp_path / "home" / "C001"
    victim.mkdir(parents=True)
    shutil.copy(data / "Chirp" / "media" / "C001" / "2.png", victim / "1.png")
    forge(out, roots=[str(tmp_path / "home")])
    for named, reason in (([], "was not named"), ([tmp_path / "home"], "changed since")):
        with following(named):
            ref = load(out, check_media=False).steps[0].media["screenshot"]
        for read in (image, read_bytes):
            with pytest.raises(MediaError, match=reason):
                read(ref or pytest.fail("no screenshot"))
    shards = json.loads((out / "omnidata.json").read_text())["shards"]
    forge(out, shards={f"../out/{name}": rows for name, rows in shards.items()})
    with pytest.raises(DataError, match="leaves its folder"):
        load(out)


def test_a_linked_file_that_changed_is_a_finding_and_is_not_opened(
    sample: Path, tmp_path: Path
) -> None:
    data = small(tmp_path / "data", sample, "C001")
    convert(load(data), tmp_path / "out", embed=False)
    folder = data / "Chirp" / "media" / "C001"
    shutil.copy(folder / "2.wav", folder / "1.wav")
    with following([data]):
        back = load(tmp_path / "out")
    assert [finding.where for finding in back.findings] == ["Chirp/C001/0"]
    ref = back.steps[0].media["audio"]
    with pytest.raises(MediaError, match=r"1\.wav: the file has changed"):
        samples(ref or pytest.fail("no audio"))


def test_a_hostile_readme_is_never_read(one: Path, tmp_path: Path) -> None:
    out = shutil.copytree(one, tmp_path / "out")
    (tmp_path / "secret.txt").write_text("PRIVATE KEY")
    (out / "README.md").write_text(
        "---\nconfigs:\n- config_name: all\n  data_files: ../secret.txt\n---\n"
    )
    for streaming in (False, True):
        data = omnidata.load_dataset("omnigui", out, split="test", streaming=streaming)
        assert {item["app"] for item in data} == {"Chirp"}


@pytest.mark.parametrize("name", ["my data", "a'b`c $(id)", "gnp\u202e_\x07'", "\\x é\u3000"])
def test_a_readme_names_its_folder_so_that_it_can_be_read_and_typed(
    tmp_path: Path, name: str
) -> None:
    data = write_rows(tmp_path / "steps.json", [row("A", app="App\u202e")])
    convert(load(data, check_media=False), tmp_path / name, embed=False)
    text = (tmp_path / name / "README.md").read_text()
    sheet = text[text.index("\n# ") :]
    assert "\u202e" not in sheet and "\x07" not in sheet
    (path,) = re.findall(r"^path = (.*)  # or", sheet, re.M)
    assert ast.literal_eval(path) == f"path/to/{name}"
    _, command = re.findall(r"(`+) ?(omnidata evaluate .* RUN) ?\1", sheet)[0]
    said = subprocess.run(
        ["bash", "-c", f"omnidata() {{ printf %s \"$3\"; }}; {command}"],
        capture_output=True, text=True, check=True, env={"LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    assert said.stdout == name


def reforge(repository: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the rows of the only shard."""
    (shard,) = repository.rglob("*.parquet")
    table = pq.read_table(shard)
    rows = table.to_pylist()
    for item in rows:
        change(item)
    options = {"compression": "none", "use_dictionary": False}
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), shard, **options)


def test_an_embedded_path_is_refused(one: Path, tmp_path: Path) -> None:
    out = shutil.copytree(one, tmp_path / "out")
    (tmp_path / "secret.png").write_bytes(SECRET)
    secret = {"bytes": None, "path": str(tmp_path / "secret.png")}
    reforge(out, lambda item: item.update(screenshot=secret))
    for streaming in (False, True):
        with pytest.raises(DataError, match="path without bytes"):
            opened = omnidata.load_dataset("omnigui", out, split="test", streaming=streaming)
            next(iter(opened))
    ref = load(out).steps[0].media["screenshot"]
    with pytest.raises(MediaError):
        read_bytes(ref or pytest.fail("no screenshot"))


@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_a_shard_that_is_no_file_of_the_repository_is_refused(
    one: Path, tmp_path: Path, kind: str
) -> None:
    out = shutil.copytree(one, tmp_path / "out")
    (shard,) = out.rglob("*.parquet")
    shard.rename(tmp_path / "outside.parquet")
    if kind == "fifo":
        os.mkfifo(shard)
    else:
        shard.symlink_to(tmp_path / "outside.parquet")
    for opens in (load, partial(omnidata.load_dataset, "omnigui")):
        with pytest.raises(DataError, match="the shard cannot be opened"):
            opens(out)


@pytest.mark.parametrize(
    "change",
    [
        {"sample_id": None},
        {"position": None},
        {"position": 0},
        {"row": -1},
        {"row": 10**6},
        {"step_index": None},
        {"screen_width": -3},
        {"source": "[]"},
        {"source": "[" * 100_000},
        {"history_screens": []},
        {"media": [{"role": "heart", "path": "x"}]},
        {"media": [{"role": "video"}]},
        {"media": [{"role": "video", "path": "x", "root": 5, "sha256": "0" * 64}]},
        {"action": {"kind": "TAP", "start": [{"left": None, "space": "px"}], "end": []}},
        {"action": {"kind": "FLY", "start": [], "end": []}},
    ],
    ids=lambda change: str(change)[:40],
)
def test_rows_that_are_no_steps_are_told(one: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    out = shutil.copytree(one, tmp_path / "out")
    reforge(out, lambda item: item.update(change))
    with pytest.raises(DataError, match=r"row \d+ is no step"):
        load(out)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"app": None}, "row-unusable"),
        ({"language": None}, "row-unusable"),
        ({"screen_width": 0}, "row-unusable"),
        ({"sample_id": "Chirp/C001/0"}, "repeated-id"),
    ],
    ids=str,
)
def test_a_row_that_lacks_what_every_step_has_is_skipped_and_told(
    one: Path, tmp_path: Path, change: dict[str, Any], code: str
) -> None:
    out = shutil.copytree(one, tmp_path / "out")
    whole = load(out)
    assert whole.steps[0].sample_id == "Chirp/C001/0"
    reforge(out, lambda item: item.update(change) if item["step_index"] == 1 else None)
    source = load(out, check_media=False)
    assert (len(source.steps), source.skipped) == (len(whole.steps) - 1, 1)
    told = [finding for finding in source.findings if finding.code == code]
    assert [finding.sample_ids for finding in told] == [
        (change.get("sample_id", whole.steps[1].sample_id),)
    ]
    assert source.row_ids.count(None) == 1
    assert validate(source, workers=0).checked["skipped"] == 1


def test_columns_of_another_type_are_told(one: Path, tmp_path: Path) -> None:
    out = shutil.copytree(one, tmp_path / "out")
    (shard,) = out.rglob("*.parquet")
    whole = pq.read_table(shard)
    for name in ("position", "app", "history", "media"):
        number = whole.schema.get_field_index(name)
        for table in (
            whole.remove_column(number),
            whole.set_column(number, name, pa.array([{"x": 1}] * len(whole))),
        ):
            pq.write_table(table, shard)
            with pytest.raises(DataError, match=f"columns {name} are missing"):
                load(out)


def test_rows_that_would_fill_the_memory_are_refused(one: Path, tmp_path: Path) -> None:
    out = shutil.copytree(one, tmp_path / "out")
    (shard,) = out.rglob("*.parquet")
    table = pq.read_table(shard)
    many = pa.concat_tables([table.slice(0, 1)] * 100)
    large = again(" " * 10_000_000, 100)
    many = many.set_column(table.schema.get_field_index("source"), "source", large)
    pq.write_table(many, shard, store_schema=False)  # which would say that these are a dictionary
    forge(out, shards={str(shard.relative_to(out)): 100})
    with pytest.raises(DataError, match="rows of 1"):
        load(out)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": 2}, "format 2"),
        ({"task": "groundui"}, "holds groundui"),
        ({"shards": 3}, "cannot be read"),
        ({"rows": 1}, "row"),
        ({"rows": 10**13}, "contradict"),
        ({"rows": 2**70}, "contradict"),
        ({"subsets": {"all": [-5]}}, "contradict"),
        ({"tags": ["colour"]}, "the tags are"),
    ],
)
def test_a_wrong_manifest_is_told(
    one: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    shutil.copytree(one, tmp_path / "out")
    forge(tmp_path / "out", **changes)
    with pytest.raises(DataError, match=message):
        load(tmp_path / "out")
    assert "Fix" in here("info", tmp_path / "out", code=2).stderr


def test_damaged_shards_are_told_with_their_name(one: Path, tmp_path: Path) -> None:
    shutil.copytree(one, tmp_path / "out")
    (shard,) = (tmp_path / "out").rglob("*.parquet")
    whole = shard.read_bytes()
    rng = np.random.default_rng(0)
    read, attempts = 0, 60 if FULL else 18
    for attempt in range(attempts):
        damaged = bytearray(whole)
        if attempt % 2:
            damaged = damaged[: rng.integers(0, len(whole))]
        else:
            for place in rng.integers(0, len(whole), 20):
                damaged[place] ^= int(rng.integers(1, 256))
        shard.write_bytes(damaged)
        try:
            for step in load(tmp_path / "out").steps:
                for ref in filter(None, step.media.values()):
                    read_bytes(ref)
            read += 1
        except (DataError, MediaError) as error:
            assert shard.name in str(error)
    assert read < attempts / 3, "most damage is seen"
