"""`omnidata fetch`: the data of a task, from a server that speaks the Hub's protocol."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import threading
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnidata
from omnidata import registry
from omnidata.data.convert import convert
from omnidata.errors import DataError, MediaError, UsageError
from omnidata.loaders.data_place import local_place
from omnidata.loaders.fetch import fetch
from omnidata.loaders.fetch_plan import FetchPlan, plan_fetch
from omnidata.media import read_bytes
from omnidata.tasks import get_task
from tests.cli.running import as_json, here
from tests.cli.running import omnidata as command
from tests.hub_server import TOKEN, Hub, files_of
from tests.limits import full_disk
from tests.loaders.desk import agentnet, screenspot, spot, trajectory
from tests.trees import row, write_app

HUB_PAGE = Path(__file__).resolve().parents[2] / "docs" / "hub.md"
V2 = "OS-Copilot/ScreenSpot-v2"
OMNIGUI = "OmniGUI/OmniGUI"


def zipped(files: dict[str, bytes]) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path, each in files.items():
            archive.writestr(path, each)
    return content.getvalue()


def omnigui(tmp_path: Path) -> dict[str, bytes]:
    write_app(tmp_path / "made" / "TED", [row("A"), row("A", 1)])
    return files_of(tmp_path / "made")


def spots(tmp_path: Path, **more: bytes) -> dict[str, bytes]:
    """ScreenSpot-v2 as its authors publish it: rows beside a zip of pictures."""
    name, images = "screenspot_web_v2.json", "screenspotv2_image"
    data = screenspot(tmp_path / "made", spot(), spot(), name=name, images=images)
    found = files_of(data)
    pictures = {path: each for path, each in found.items() if path.startswith(images)}
    return {name: found[name], f"{images}.zip": zipped(pictures), ".gitattributes": b"*", **more}


def spots_plan() -> FetchPlan:
    return plan_fetch("screenspot", source="ScreenSpot-v2")


def test_every_task_says_where_its_data_are_or_that_nobody_knows() -> None:
    for name in registry.names():
        if not registry.is_ours(name):
            continue
        task = registry.get_benchmark(registry.get_benchmark(name).data_of)
        assert bool(task.card.sources) != bool(task.card.unpublished), name
        names = [one.name.casefold() for one in task.card.sources]
        assert len(set(names)) == len(names), name
        for one in task.card.sources:
            assert bool(one.remote) != bool(one.by_hand), one
            if one.remote:
                assert one.remote.place.startswith(("hf://datasets/", "gs://")), one
                assert one.remote.note or one.licence, one


@pytest.mark.skipif(not HUB_PAGE.is_file(), reason="needs a checkout: the sdist has no docs")
def test_the_page_has_every_source_with_its_place_and_licence() -> None:
    rows = [line for line in HUB_PAGE.read_text("utf-8").splitlines() if line.startswith("| `")]
    for name in registry.benchmarks():
        for one in registry.get_benchmark(name).card.sources if registry.is_ours(name) else ():
            place = one.remote.place.replace("hf://datasets/", "hf://") if one.remote else one.url
            start = f"| `{name}` | {one.name} | "
            (row,) = [row for row in rows if row.startswith(start)]
            assert place in row
            assert f" | {one.licence or 'none stated'} | " in row
            if one.remote and one.remote.revision != "main":
                assert one.remote.revision[:12] in row


def test_what_comes_is_what_is_there_and_source_json_says_what_it_is(
    hub: Hub, tmp_path: Path
) -> None:
    files = omnigui(tmp_path)
    sha = hub.add(OMNIGUI, files | {".gitattributes": b"x"})
    data = fetch(plan_fetch("omnigui"), tmp_path / "out")
    assert data == tmp_path / "out" / "data"
    assert files_of(data) == files
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["data", "source.json"]
    told = json.loads((tmp_path / "out" / "source.json").read_text())
    assert (told["id"], told["commit"], told["licence"]) == (f"hf://{OMNIGUI}", sha, "")
    assert {each["path"]: each["sha256"] for each in told["files"]} == {
        path: hashlib.sha256(content).hexdigest() for path, content in files.items()
    }
    assert len(get_task("omnigui").load(data).steps) == 2
    assert not hub.tokens


def test_a_dry_run_says_what_would_come_and_asks_for_no_content(hub: Hub, tmp_path: Path) -> None:
    sha = hub.add(V2, spots(tmp_path))
    said = here("fetch", "screenspot", "--source", "screenspot-v2", "--dry-run").stdout
    assert f"hf://{V2}@{sha} at {hub.url}" in said
    assert "apache-2.0, as its publisher says" in said and "files: 2, " in said
    assert not any("/resolve/" in line for line in hub.seen)
    assert not (tmp_path / "caches" / "omnidata").exists()


def test_the_verb_fetches_unpacks_and_auto_is_what_it_fetched(hub: Hub, tmp_path: Path) -> None:
    hub.add(V2, spots(tmp_path))
    command("fetch", "screenspot", "--source", "ScreenSpot-v2", anew=True)
    told = here("info", "screenspot", "auto", "--json")
    assert as_json(told)["findings"] == []
    assert f"hf://{V2}" in told.stderr
    before = len(hub.seen)
    (step,) = omnidata.load_dataset("screenspot", "auto", split="test").select([0])
    assert step["screenshot"]["path"].endswith(".png")
    assert len(hub.seen) == before  # nobody is asked for what is there
    here("fetch", "screenspot", "--source", "ScreenSpot-v2")
    assert hub.reads("screenspotv2_image.zip") == 1


def test_auto_fetches_what_is_small_and_says_so(hub: Hub, tmp_path: Path) -> None:
    sha = hub.add(OMNIGUI, omnigui(tmp_path))
    said: list[str] = []
    place = local_place("auto", "omnigui", said.append)
    assert len(get_task("omnigui").load(place).steps) == 2
    assert sha in said[0] and "licence: not stated" in said[0]
    assert local_place("auto", "omnigui-idm") == place  # which asks about the same data


def test_only_and_revision_choose(hub: Hub, tmp_path: Path) -> None:
    files = omnigui(tmp_path)
    first = hub.add(OMNIGUI, files)
    hub.repos[OMNIGUI].commit({**files, "later.json": b"[]"})
    plan = plan_fetch("omnigui", revision=first[:40], only=["*.jsonl"])
    assert (plan.commit, plan.left_out) == (first, len(files) - len(plan.files))
    assert all(each.path.endswith(".jsonl") for each in plan.files)
    with pytest.raises(DataError, match=r"no file matches[^$]*TED/"):
        plan_fetch("omnigui", only=["*.parquet"])
    with pytest.raises(DataError, match='no revision "nowhere"'):
        plan_fetch("omnigui", revision="nowhere")


def test_another_commit_replaces_what_is_there_only_if_told(hub: Hub, tmp_path: Path) -> None:
    files = omnigui(tmp_path)
    hub.add(OMNIGUI, files)
    fetch(plan_fetch("omnigui"), tmp_path / "out")
    hub.repos[OMNIGUI].commit({**files, "more.txt": b"more"})
    with pytest.raises(UsageError, match="--overwrite"):
        fetch(plan_fetch("omnigui"), tmp_path / "out")
    data = fetch(plan_fetch("omnigui"), tmp_path / "out", overwrite=True)
    assert (data / "more.txt").read_bytes() == b"more"
    (data / "more.txt").unlink()  # which the next call notices
    with pytest.raises(UsageError, match="--overwrite"):
        fetch(plan_fetch("omnigui"), tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="something here already"):
        fetch(plan_fetch("omnigui"), tmp_path / "mine", overwrite=True)


def test_nobody_elses_file_is_overwritten(hub: Hub, tmp_path: Path) -> None:
    hub.add(V2, spots(tmp_path))
    data = fetch(spots_plan(), tmp_path / "out")
    hub.repos[V2].commit({**hub.repos[V2].files, "later.txt": b""})
    for mine in (data / "mine.txt", data / "screenspotv2_image" / "mine.png"):
        mine.write_text("mine")
        with pytest.raises(UsageError, match="something here already"):
            fetch(spots_plan(), tmp_path / "out", overwrite=True)
        assert mine.read_text() == "mine"
        mine.unlink()
    fetch(spots_plan(), tmp_path / "out", overwrite=True)


def test_a_lost_folder_of_an_archive_is_noticed(hub: Hub, tmp_path: Path) -> None:
    hub.add(V2, spots(tmp_path))
    plan = spots_plan()
    data = fetch(plan, tmp_path / "out")
    assert fetch(plan, tmp_path / "out") == data
    shutil.rmtree(data / "screenspotv2_image")
    with pytest.raises(UsageError, match="--overwrite"):
        fetch(plan, tmp_path / "out")
    fetch(plan, tmp_path / "out", overwrite=True)
    assert not get_task("screenspot").load(data).findings


def test_auto_says_that_it_is_a_part(hub: Hub, tmp_path: Path) -> None:
    hub.add(OMNIGUI, omnigui(tmp_path) | {"ZOO/dataset_ZOO.json": b"[]"})
    fetch(plan_fetch("omnigui", only=["TED/*"]))
    said: list[str] = []
    local_place("auto", "omnigui", said.append)
    assert "a part of it: fetched with --only TED/*" in said[-1]


# What goes wrong on the way.


def test_a_cut_connection_is_gone_on_with(hub: Hub, tmp_path: Path) -> None:
    hub.add(V2, spots(tmp_path))
    hub.cuts["screenspotv2_image.zip"] = 10
    assert not get_task("screenspot").load(fetch(spots_plan(), tmp_path / "out")).findings


def test_a_file_with_another_hash_is_removed_and_the_next_call_gets_it_right(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnidata.loaders.transfers._THREADS", 1)  # one after the other
    files = spots(tmp_path)
    hub.add(V2, files)
    name = "screenspotv2_image.zip"
    hub.altered[name] = bytes(reversed(files[name]))
    plan = spots_plan()
    with pytest.raises(DataError, match="differs from what the server announced"):
        fetch(plan, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    staged = tmp_path / ".out.unfinished" / "data"
    assert [path.name for path in staged.glob("*") if path.is_file()] == ["screenspot_web_v2.json"]
    hub.altered.clear()
    hub.seen.clear()
    fetch(plan, tmp_path / "out")
    assert hub.reads("screenspot_web_v2.json") == 0  # which was whole
    assert (tmp_path / "out" / "data" / "screenspotv2_image").is_dir()


def test_a_hash_that_is_published_elsewhere_is_held_too(hub: Hub, tmp_path: Path) -> None:
    hub.add(OMNIGUI, omnigui(tmp_path))
    plan = plan_fetch("omnigui")
    assert plan.publication.remote
    remote = replace(plan.publication.remote, sha256={plan.files[0].path: "0" * 64})
    with pytest.raises(DataError, match=f"Expected: {'0' * 64}"):
        fetch(replace(plan, publication=replace(plan.publication, remote=remote)), tmp_path / "out")


@pytest.mark.parametrize(
    ("about", "token", "said"),
    [
        ({"gated": True}, False, "accept the licence there in a browser"),
        ({"private": True}, False, "the Hub has no such dataset, or it is private"),
        ({}, True, "2 steps"),
    ],
)
def test_what_is_not_for_everyone_says_what_to_do(
    hub: Hub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    about: dict[str, Any],
    token: bool,
    said: str,
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    hub.add(OMNIGUI, omnigui(tmp_path), **about)
    flags = ["--token"] if token else []
    told = here("info", "omnigui", f"hf://{OMNIGUI}", *flags, code=0 if token else 2)
    assert said in " ".join((told.stdout + told.stderr).split())
    assert set(hub.tokens) == ({f"Bearer {TOKEN}"} if token else set())
    assert TOKEN not in told.stdout + told.stderr


def test_a_missing_dataset_names_the_nearest(hub: Hub) -> None:
    with pytest.raises(DataError, match=r"did you mean OmniGUI/OmniGUI\?"):
        local_place("hf://OmniGUI/OmniGui2")
    with pytest.raises(DataError) as told:
        local_place("hf://OmniGUI/OmniGUI")
    assert "did you mean" not in str(told.value)
    with pytest.raises(UsageError, match=r"hf://OmniGUI: this is not an address of a dataset"):
        local_place(Path("hf://OmniGUI"))


def test_a_listed_file_that_is_not_there_is_said(hub: Hub, tmp_path: Path) -> None:
    hub.add(OMNIGUI, {"extra.json": b"[]"})
    hub.lost.add("extra.json")
    with pytest.raises(DataError, match="a file that the Hub lists is missing"):
        fetch(plan_fetch("omnigui"), tmp_path / "out")


def test_without_room_nothing_is_asked_for(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(OMNIGUI, omnigui(tmp_path))
    monkeypatch.setattr("omnidata.loaders.transfers.RESERVE", 1 << 60)
    with pytest.raises(DataError, match="not enough disk space"):
        fetch(plan_fetch("omnigui"), tmp_path / "out")
    assert not any("/resolve/" in line for line in hub.seen)


def test_an_interrupted_download_leaves_what_is_whole_and_nothing_under_the_name(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = omnigui(tmp_path)
    hub.add(OMNIGUI, files)
    plan, told = plan_fetch("omnigui"), threading.Event()

    def interrupt(done: int, total: int) -> None:
        if done and not told.is_set():
            told.set()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(plan, tmp_path / "out", progress=interrupt)
    assert not (tmp_path / "out").exists()
    assert files_of(fetch(plan, tmp_path / "out")) == files


def test_the_next_call_goes_on_where_a_file_was_cut(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1000)
    content = bytes(range(256)) * 40
    hub.add(OMNIGUI, {"large.zip": content})
    plan = plan_fetch("omnigui")

    def interrupt(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    hub.cuts["large.zip"] = 5000
    with pytest.raises(KeyboardInterrupt):
        fetch(plan, tmp_path / "out", progress=interrupt)
    (part,) = (tmp_path / ".out.unfinished" / "data").iterdir()
    assert content.startswith(part.read_bytes())
    assert fetch(plan, tmp_path / "out").joinpath("large.zip").read_bytes() == content
    assert hub.ranges[-1].startswith("bytes=") and hub.ranges[-1] != "bytes=0-"


def test_other_counts_than_the_publishers_are_said(hub: Hub, tmp_path: Path) -> None:
    hub.add("agent-studio/CriticBench", {"data/a.parquet": b"no Parquet"})
    done = here("fetch", "criticbench", tmp_path / "out", code=1)
    assert "the files were downloaded but cannot be read as data" in done.stderr
    assert (tmp_path / "out" / "source.json").is_file()


def test_offline_uses_what_is_there(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    hub.add(OMNIGUI, omnigui(tmp_path))
    there = local_place(f"hf://{OMNIGUI}")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    before = len(hub.seen)
    assert local_place(f"hf://{OMNIGUI}") == there
    with pytest.raises(DataError, match="HF_HUB_OFFLINE=1 forbids"):
        local_place("hf://OmniGUI/Another")
    with pytest.raises(DataError, match="in the cache is nothing of it"):
        local_place("auto", "omnigui")
    assert len(hub.seen) == before


def test_offline_a_part_that_another_program_has_downloaded_is_not_taken_for_all(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants, hf_hub_download

    files = omnigui(tmp_path) | {"ZOO/dataset_ZOO.json": b"[]"}
    sha = hub.add(OMNIGUI, files)
    hf_hub_download(OMNIGUI, "TED/dataset_TED.json", repo_type="dataset", endpoint=hub.url)
    with monkeypatch.context() as patch:
        patch.setattr(constants, "HF_HUB_OFFLINE", True)
        for address in (f"hf://{OMNIGUI}", f"hf://{OMNIGUI}@{sha}", f"hf://{OMNIGUI}@{sha}/TED"):
            with pytest.raises(DataError, match="the cache may be incomplete"):
                local_place(address)
    local_place(f"hf://{OMNIGUI}@{sha}/TED")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert files_of(local_place(f"hf://{OMNIGUI}@{sha}/TED"))
    with pytest.raises(DataError, match="HF_HUB_OFFLINE=1 forbids"):
        local_place(f"hf://{OMNIGUI}@{sha}")


# hf:// in place of a folder.


def test_a_snapshot_is_read_once_and_pinned(hub: Hub, tmp_path: Path) -> None:
    sha = hub.add(OMNIGUI, omnigui(tmp_path))
    said: list[str] = []
    place = local_place(f"hf://{OMNIGUI}", "omnigui", said.append)
    assert place.name == sha and sha in said[0]
    source = get_task("omnigui").load(place)
    assert len(source.steps) == 2
    before = len(hub.seen)
    assert local_place(f"hf://{OMNIGUI}@{sha}") == place
    assert len(hub.seen) == before
    assert local_place(f"hf://{OMNIGUI}@{sha}/TED") == place / "TED"


def test_a_full_disk_is_said_of_the_hubs_cache(hub: Hub, tmp_path: Path) -> None:
    hub.add(OMNIGUI, {**omnigui(tmp_path), "notes.bin": bytes(200_000)})
    said = r"the Hub's cache cannot be written \(File too large"
    with full_disk(after=100_000), pytest.raises(DataError, match=said):
        local_place(f"hf://{OMNIGUI}")
    assert local_place(f"hf://{OMNIGUI}").is_dir()


def test_a_name_of_the_hub_is_a_path_and_no_server_hears_of_it(hub: Hub) -> None:
    hub.add("org/spots", {})
    with pytest.raises(DataError, match="no such file") as refused:
        local_place("org/spots")
    assert "hf://org/spots" in refused.value.remedy
    assert not hub.seen


def test_of_a_large_dataset_what_is_read_is_fetched_when_it_is_read(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add("org/spots", files_of(screenspot(tmp_path / "data", spot())))
    monkeypatch.setattr("omnidata.loaders.hub.LARGE", 100)
    said: list[str] = []
    place = local_place("hf://org/spots", "screenspot", said.append)
    assert "what is read is fetched when it is read" in said[-1]
    (step,) = get_task("screenspot").load(place, check_media=False).steps
    shot = step.media["screenshot"]
    assert shot
    read_bytes(shot)
    assert hub.reads(shot.path) == 1  # its size was looked at before


def test_a_snapshot_that_came_otherwise_is_not_read(hub: Hub, tmp_path: Path) -> None:
    files = omnigui(tmp_path)
    hub.add(OMNIGUI, files)
    name = next(iter(files))
    hub.altered[name] = bytes(reversed(files[name]))
    for _ in range(2):
        with pytest.raises(DataError, match="differs from what the server announced"):
            local_place(f"hf://{OMNIGUI}")
    hub.altered.clear()
    assert len(get_task("omnigui").load(local_place(f"hf://{OMNIGUI}")).steps) == 2


# Buckets.


def test_a_bucket_is_listed_in_pages_checked_and_gone_on_with(hub: Hub, tmp_path: Path) -> None:
    objects = {f"android_control/part-{n}": bytes(range(200)) * (n + 1) for n in range(5)}
    hub.buckets["gresearch"] = {**objects, "another/thing": b"x"}
    hub.cuts["android_control/part-3"] = 100
    data = fetch(plan_fetch("androidcontrol"), tmp_path / "out")
    assert files_of(data) == {path.partition("/")[2]: each for path, each in objects.items()}
    assert hub.reads("part-3") == 2
    hub.altered["android_control/part-1"] = bytes(400)
    with pytest.raises(DataError, match="its crc32c is"):
        fetch(plan_fetch("androidcontrol"), tmp_path / "again")
    with pytest.raises(UsageError, match="a bucket has no revisions"):
        plan_fetch("androidcontrol", revision="main")


# Archives in what is fetched.


def test_a_hostile_archive_leaves_nothing_and_is_named(hub: Hub, tmp_path: Path) -> None:
    archive = zipped({"../../up.png": b"x"})
    hub.add(V2, spots(tmp_path, **{"screenspotv2_image.zip": archive}))
    with pytest.raises(DataError, match=r"screenspotv2_image\.zip: '\.\./\.\./up\.png'"):
        fetch(spots_plan(), tmp_path / "out")
    assert not (tmp_path / "out").exists() and not list(tmp_path.rglob("up.png"))


def test_an_archive_does_not_overwrite_a_file(hub: Hub, tmp_path: Path) -> None:
    row = trajectory("pyautogui.click(0.5, 0.5)")
    files = files_of(agentnet(tmp_path / "made", row))
    taken = {**files, "Images/t1_0.png": b"x", "images.zip": zipped({"images/a.png": b"y"})}
    hub.add("xlangai/AgentNet", {path: taken[path] for path in taken if "images/t1" not in path})
    with pytest.raises(DataError, match="'Images' already exists"):
        fetch(plan_fetch("agentnet"), tmp_path / "out")


def test_an_archive_has_a_folder_of_its_name_whether_it_is_in_it_or_not(
    hub: Hub, tmp_path: Path
) -> None:
    files: dict[str, bytes] = {}
    for name, folder in (("ubuntu_5k", ""), ("win_mac_18k", "images/")):
        row = trajectory("pyautogui.click(0.5, 0.5)", own=name)
        made = files_of(agentnet(tmp_path / name, row, name=f"agentnet_{name}.jsonl"))
        pictures = {path.rpartition("/")[2]: made.pop(path) for path in [*made] if "png" in path}
        beside = {"__MACOSX/._a": b"x"} if folder else {}
        packed = zipped({**{folder + path: each for path, each in pictures.items()}, **beside})
        files |= {**made, f"{name.rpartition('_')[0]}_images/images.zip": packed}
    hub.add("xlangai/AgentNet", files)
    data = fetch(plan_fetch("agentnet"), tmp_path / "out")
    source = get_task("agentnet").load(data)
    assert not source.findings and len(source.steps) == 2
    assert {path.name for path in data.iterdir() if path.is_dir()} == {
        "ubuntu_images",
        "win_mac_images",
    }


def test_an_interrupted_unpacking_begins_anew_or_goes_on(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.add(V2, spots(tmp_path))

    def interrupted(*given: Any) -> int:
        raise KeyboardInterrupt

    for function in ("archives.unpack", "fetch._move"):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(f"omnidata.loaders.{function}", interrupted)
            fetch(spots_plan(), tmp_path / "out")
    data = fetch(spots_plan(), tmp_path / "out")
    assert not get_task("screenspot").load(data).findings
    assert {path.name for path in data.iterdir()} == {
        "screenspot_web_v2.json",
        "screenspotv2_image",
    }


def test_a_repository_whose_rows_name_files_opens_none_of_them(hub: Hub, tmp_path: Path) -> None:
    data = screenspot(tmp_path / "data", spot())
    convert(get_task("screenspot").load(data), tmp_path / "made", embed=True)
    (shard,) = (tmp_path / "made" / "data").rglob("*.parquet")
    table = pq.read_table(shard)
    place = table.schema.get_field_index("screenshot")
    named = pa.array([{"bytes": None, "path": "/etc/hostname"}], table.schema.field(place).type)
    pq.write_table(table.set_column(place, table.schema.field(place), named), shard)
    (tmp_path / "made" / "screenspot.py").write_text("raise SystemExit('it was run')")
    hub.add("org/hostile", files_of(tmp_path / "made"))
    with pytest.raises(DataError, match="path"):
        omnidata.load_dataset("screenspot", "hf://org/hostile", split="test")
    (step,) = get_task("screenspot").load(local_place("hf://org/hostile")).steps
    shot = step.media["screenshot"]
    assert shot
    with pytest.raises(MediaError):
        read_bytes(shot)


def test_a_model_is_asked_about_a_dataset_of_the_hub(hub: Hub, tmp_path: Path) -> None:
    sha = hub.add("org/spots", files_of(screenspot(tmp_path / "data", spot())))
    done = here(
        "evaluate", "screenspot", "hf://org/spots", "--model", "baseline:oracle",
        "--out", tmp_path / "run", "--json",
    )  # fmt: skip
    assert as_json(done)["counts"]["steps"] == 1
    assert sha in json.loads((tmp_path / "run" / "run.json").read_text())["data"]
