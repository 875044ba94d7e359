"""Parquet repositories: what goes in comes out, by omnidata and by plain `datasets`."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnidata
from omnidata.data.convert import convert
from omnidata.errors import DataError, MediaError, MissingMediaError, UsageError
from omnidata.loaders.omnigui import load
from omnidata.media import frames, image, read_bytes, samples
from omnidata.types import Source, Step
from tests.cli.running import OMNIDATA, as_json
from tests.cli.running import omnidata as run
from tests.conftest import Once
from tests.data.ranges import serve
from tests.trees import row, write_app, write_rows

LINK_AND_EMBED = pytest.mark.parametrize("embed", [True, False], ids=["embed", "link"])


@pytest.fixture(scope="session")
def embedded(sample: Path, once: Once) -> Path:
    source = load(sample, check_media=False)
    return once("embedded", lambda out: convert(source, out, embed=True))


@pytest.fixture(scope="session")
def linked(sample: Path, once: Once) -> Path:
    source = load(sample, check_media=False)
    return once("linked", lambda out: convert(source, out, embed=False))


@pytest.fixture(params=["embedded", "linked"])
def repository(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


def said(step: Step) -> dict[str, Any]:
    """Everything about a step but where its media lie."""
    fields = {field.name: getattr(step, field.name) for field in dataclasses.fields(step)}
    media = {role: ref and (ref.kind, ref.path) for role, ref in step.media.items()}
    return {**fields, "media": media}


def small(folder: Path, sample: Path, *episodes: str) -> Path:
    """A copy of a few episodes of one of the sample's apps."""
    app = folder / "Chirp"
    (app / "media").mkdir(parents=True)
    for episode in episodes:
        shutil.copytree(sample / "Chirp" / "media" / episode, app / "media" / episode)
    for path in (sample / "Chirp").glob("*.jsonl"):
        lines = path.read_text(encoding="utf-8").splitlines()
        kept = [line for line in lines if json.loads(line)["ID"] in episodes]
        (app / path.name).write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    return folder


def plainly(repository: Path, name: str | None = None, **options: Any) -> Any:
    return datasets.load_dataset(str(repository), name, split="test", **options)


def test_steps_come_back_equal(sample: Path, repository: Path) -> None:
    source, back = load(sample), load(repository)
    assert [said(step) for step in back.steps] == [said(step) for step in source.steps]
    assert back.row_ids == source.row_ids
    assert back.findings == source.findings == []
    assert (back.fingerprint, back.skipped) == (source.fingerprint, source.skipped)


def test_media_come_back_equal(sample: Path, repository: Path) -> None:
    for step, back in list(zip(load(sample).steps, load(repository).steps, strict=True))[::7]:
        for role, ref in step.media.items():
            other = back.media[role]
            assert (ref is None) == (other is None)
            if ref and other:
                assert read_bytes(other) == read_bytes(ref)
        shot, clip, track = (back.media[role] for role in ("screenshot", "video", "audio"))
        assert shot
        assert image(shot).pixels.shape == (1600, 720, 3)
        if clip and track:
            assert len(frames(clip, num_frames=4).pixels) == 4
            assert samples(track).size > 1000


def test_an_evaluation_gives_the_same_table(sample: Path, repository: Path, tmp_path: Path) -> None:
    task = omnidata.get_task("omnigui")
    results = [
        omnidata.evaluate(task, task.load(data), "baseline:random", tmp_path / name)
        for name, data in (("tree", sample), ("repository", repository))
    ]
    assert results[0] == results[1]


def test_plain_datasets_opens_it_without_omnidata(repository: Path, tmp_path: Path) -> None:
    code = (
        "import datasets, json, sys; datasets.disable_progress_bars();"
        "d = datasets.load_dataset(sys.argv[1], cache_dir=sys.argv[2], split='test');"
        "assert not any(name.startswith('omnidata') for name in sys.modules);"
        "print(json.dumps([len(d), d[0]['sample_id'], d[0]['video']['path']]))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(repository), str(tmp_path)],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    count, first, video = json.loads(done.stdout)
    assert count == 149
    assert first in {step.sample_id for step in load(repository).steps}
    assert video.endswith(".mp4")


def test_every_label_is_a_subset_over_the_same_files(sample: Path, repository: Path) -> None:
    steps = load(sample).steps
    names = datasets.get_dataset_config_names(str(repository))
    labels = Counter(value for step in steps for value in step.tags.values())
    assert set(names) == {"all", *labels}
    for name, count in labels.items():
        found = plainly(repository, name)["sample_id"]
        assert len(found) == len(set(found)) == count
        assert set(found) == {step.sample_id for step in steps if name in step.tags.values()}


def test_all_is_the_default_and_its_columns_are_typed(sample: Path, repository: Path) -> None:
    data = plainly(repository)
    assert len(data) == len(load(sample).steps)
    omnidata.register()
    built = datasets.load_dataset("omnigui", data_dir=str(sample), split="test")
    media = {"screenshot", "history_screenshot", "video", "audio"}
    for name, feature in built.features.items():
        linked = name in media and repository.name == "linked"
        assert data.features[name] == ({"path": datasets.Value("string")} if linked else feature)
    for feature in (datasets.Image(), datasets.Video(decode=False), datasets.Audio(decode=False)):
        name = {"Image": "screenshot", "Video": "video", "Audio": "audio"}[type(feature).__name__]
        assert data.cast_column(name, feature)[0][name] is not None


def test_every_medium_has_its_hash_frames_and_duration(repository: Path) -> None:
    for item in plainly(repository):
        roles = {entry["role"]: entry for entry in item["media"]}
        assert set(roles) == {
            role
            for role in ("screenshot", "history_screenshot", "video", "audio")
            if item[role] is not None
        }
        for entry in roles.values():
            assert len(entry["sha256"]) == 64
            assert entry["bytes"] > 0
        assert roles["screenshot"]["frames"] == 1
        if item["video"]:
            assert roles["video"]["frames"] > 1
            assert roles["video"]["seconds"] == pytest.approx(roles["audio"]["seconds"], abs=0.2)


def test_pictures_decode_by_plain_datasets(embedded: Path) -> None:
    data = plainly(embedded, "Chirp").cast_column("screenshot", datasets.Image())
    assert data[0]["screenshot"].size == (720, 1600)


def test_num_proc_gives_every_row_once(embedded: Path, tmp_path: Path) -> None:
    found = plainly(embedded, num_proc=2, cache_dir=str(tmp_path))["sample_id"]
    assert len(found) == len(set(found)) == 149


def test_a_stream_is_shuffled_through_a_buffer(repository: Path) -> None:
    stream = plainly(repository, streaming=True)
    plain = [item["sample_id"] for item in stream]
    mixed = [item["sample_id"] for item in stream.shuffle(seed=1, buffer_size=20)]
    again = [item["sample_id"] for item in stream.shuffle(seed=1, buffer_size=20)]
    assert sorted(plain) == sorted(mixed)
    assert plain != mixed
    assert mixed == again


def test_a_stream_over_http_gives_the_same_rows(embedded: Path) -> None:
    with serve(embedded) as (address, requests):
        files = sorted(path.relative_to(embedded) for path in embedded.rglob("*.parquet"))
        stream = datasets.load_dataset(
            "parquet",
            data_files={"test": [f"{address}/{file.as_posix()}" for file in files]},
            split="test",
            streaming=True,
        )
        found = {item["sample_id"]: item for item in stream.shuffle(seed=1, buffer_size=20)}
    assert any(wanted for _, wanted in requests), "asked for parts of files"
    for item in plainly(embedded):
        assert found[item["sample_id"]] == item


def test_our_load_dataset_finds_subsets_in_any_case(repository: Path) -> None:
    assert len(omnidata.load_dataset("omnigui", repository, "chirp", split="test")) == 30
    assert len(omnidata.load_dataset("omnigui", repository, split="test")) == 149
    with pytest.raises(DataError, match=r'no subset "TED"(.|\n)*Chirp'):
        omnidata.load_dataset("omnigui", repository, "TED")
    omnidata.register()
    with pytest.raises(DataError, match="needs no builder"):
        datasets.load_dataset("omnigui", data_dir=str(repository), split="test")


def test_a_rewrite_is_noticed(tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    write_app(data / "TED", [row("A"), row("B")])
    convert(load(data), out, embed=True)
    assert len(plainly(out)) == 2
    first = (out / "README.md").read_text()
    changed = row("A", result_touch_xy="[[1,2],[3,4]]")
    write_app(data / "TED", [changed, row("B")])
    convert(load(data), out, embed=True, overwrite=True)
    (moved,) = [item for item in plainly(out) if item["episode_id"] == "A"]
    assert moved["action"]["start"][0]["left"] == 1
    write_app(data / "TED", [row("A"), row("B")])
    convert(load(data), out, embed=True, overwrite=True)
    assert (out / "README.md").read_text() == first, "the version follows the content"


@LINK_AND_EMBED
def test_the_same_source_gives_the_same_files(sample: Path, tmp_path: Path, embed: bool) -> None:
    data = small(tmp_path / "data", sample, "C001", "C002")
    for name in ("one", "two"):
        convert(load(data), tmp_path / name / "out", embed=embed)
    one, two = tmp_path / "one" / "out", tmp_path / "two" / "out"
    names = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(two) for path in two.rglob("*") if path.is_file())
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in names)


def test_a_killed_conversion_goes_on(sample: Path, tmp_path: Path) -> None:
    out, unfinished = tmp_path / "out", tmp_path / ".out.unfinished"
    command = [*OMNIDATA, "convert", "omnigui", str(sample), str(out)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        done = unfinished / ".done.jsonl"
        while not done.is_file() or done.read_bytes().count(b"\n") < 3:
            assert process.poll() is None
            time.sleep(0.02)
        process.kill()
    assert not out.exists()
    (unfinished / "data" / "left.partial").write_bytes(b"half a shard")
    with done.open("ab") as file:
        file.write(b'{"file": "data/cut sho')
    lines = done.read_bytes().split(b"\n")[:-1]
    before = {
        file: (unfinished / file).stat().st_ino
        for file in (json.loads(line)["file"] for line in lines)
    }
    run("convert", "omnigui", sample, out)
    assert {file: (out / file).stat().st_ino for file in before} == before, "not written again"
    assert [said(s) for s in load(out).steps] == [said(s) for s in load(sample).steps]
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".lock") == ["out"]
    assert not list(out.rglob("*.partial"))
    assert {path.name for path in out.iterdir()} == {"README.md", "data", "omnidata.json"}


class StoppedError(Exception):
    """Somebody pulled the plug."""


def stop(done: int, total: int) -> None:
    """Stops a conversion before its last shard is whole."""
    if done == total:
        raise StoppedError


@pytest.mark.parametrize("form", ["tree", "repository"])
def test_what_changed_since_the_interruption_is_made_again(
    sample: Path, tmp_path: Path, form: str
) -> None:
    data, out = small(tmp_path / "data", sample, "C001", "C002", "C005"), tmp_path / "out"
    other = tmp_path / "other" / "data"
    small(other, sample, "C001", "C002", "C005")
    picture = other / "Chirp" / "media" / "C001" / "1.png"
    picture.write_bytes((picture.parent / "2.png").read_bytes())
    first, second = load(data), load(other)
    if form == "repository":
        for name, source in (("a", first), ("b", second)):
            convert(source, tmp_path / name, embed=True)
        first, second = load(tmp_path / "a"), load(tmp_path / "b")
        (tmp_path / "b").rename(tmp_path / "c")
        (tmp_path / "a").rename(tmp_path / "b")
        (tmp_path / "c").rename(tmp_path / "a")
        second = load(tmp_path / "a")
    else:
        (data / "Chirp" / "media" / "C001" / "1.png").stat()
    with pytest.raises(StoppedError):
        convert(first if form == "tree" else load(tmp_path / "b"), out, embed=True, progress=stop)
    left = (tmp_path / ".out.unfinished" / ".done.jsonl").read_bytes().count(b"\n")
    assert left > 0
    if form == "tree":
        shutil.copy(picture, data / "Chirp" / "media" / "C001" / "1.png")
        second = load(data)
    convert(second, out, embed=True)
    shown = next(step for step in load(out).steps if step.sample_id == "Chirp/C001/0")
    assert shown.media["screenshot"]
    assert read_bytes(shown.media["screenshot"]) == picture.read_bytes()


def test_nothing_of_others_is_overwritten(sample: Path, tmp_path: Path) -> None:
    data = small(tmp_path / "data", sample, "C001")
    full = tmp_path / "full"
    full.mkdir()
    (full / "thesis.tex").write_text("years of work")
    (full / "omnidata.json").write_text("{}")
    for overwrite in (False, True):
        with pytest.raises(UsageError, match="something here already"):
            convert(load(data), full, embed=True, overwrite=overwrite)
    for name in (".new.unfinished", ".new.before"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match="something here already"):
        convert(load(data), tmp_path / "new", embed=True)
    assert len(list(tmp_path.rglob("thesis.tex"))) == 3
    convert(load(data), tmp_path / "out", embed=True)
    with pytest.raises(UsageError, match="--overwrite"):
        convert(load(data), tmp_path / "out", embed=True)
    done = run("convert", "omnigui", data, tmp_path / "out", code=2)
    assert "--overwrite" in done.stderr
    (tmp_path / "out" / "thesis.tex").write_text("years of work")
    assert (
        "something here"
        in run("convert", "omnigui", data, tmp_path / "out", "--overwrite", code=2).stderr
    )
    (tmp_path / "out" / "thesis.tex").unlink()
    run("convert", "omnigui", data, tmp_path / "out", "--link", "--overwrite")


def test_what_appears_while_converting_is_not_overwritten(sample: Path, tmp_path: Path) -> None:
    data, out = small(tmp_path / "data", sample, "C001"), tmp_path / "out"

    def fill(done: int, total: int) -> None:
        out.mkdir(exist_ok=True)
        (out / "thesis.tex").write_text("years of work")

    with pytest.raises(UsageError, match="something here already"):
        convert(load(data), out, embed=True, progress=fill)
    assert (out / "thesis.tex").exists()


def test_a_source_is_never_replaced_by_its_own_repository(sample: Path, tmp_path: Path) -> None:
    data, out = small(tmp_path / "out" / "data", sample, "C001"), tmp_path / "out"
    with pytest.raises(UsageError, match="lies in there"):
        convert(load(data), out, embed=True, overwrite=True)
    convert(load(data), tmp_path / "repository", embed=True)
    with pytest.raises(UsageError, match="lies in there"):
        convert(load(tmp_path / "repository"), tmp_path / "repository", embed=True, overwrite=True)


def test_a_place_may_be_a_link_or_relative(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = small(tmp_path / "data", sample, "C001")
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    convert(load(data), tmp_path / "link", embed=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "README.md").is_file()
    monkeypatch.chdir(tmp_path)
    convert(load(data), Path("relative/below/"), embed=True)
    assert len(load(tmp_path / "relative" / "below").steps) > 0
    for place in (Path(), Path("data/Chirp/media/C001/1.png/x"), Path("o[1]")):
        with pytest.raises((UsageError, DataError)):
            convert(load(data), place, embed=True)


def test_a_move_that_was_interrupted_is_finished(sample: Path, tmp_path: Path) -> None:
    data, out = small(tmp_path / "data", sample, "C001"), tmp_path / "out"
    convert(load(data), out, embed=True)
    before = (out / "omnidata.json").read_bytes()
    out.rename(tmp_path / ".out.before")  # killed between the two moves
    with pytest.raises(UsageError, match="--overwrite"):
        convert(load(data), out, embed=True)
    assert (out / "omnidata.json").read_bytes() == before
    shutil.copytree(out, tmp_path / ".out.before")  # killed after them
    (out / ".plan.json").write_text("{}")
    convert(load(data), out, embed=False, overwrite=True)
    assert sorted(path.name for path in out.iterdir()) == ["README.md", "data", "omnidata.json"]
    assert {path.name for path in tmp_path.iterdir()} == {"data", "out", ".out.lock"}


def test_two_conversions_to_one_place_are_refused(sample: Path, tmp_path: Path) -> None:
    data, out = small(tmp_path / "data", sample, "C001"), tmp_path / "out"
    errors: list[str] = []

    def again(done: int, total: int) -> None:
        with pytest.raises(DataError) as caught:
            convert(load(data), out, embed=True)
        errors.append(str(caught.value))

    convert(load(data), out, embed=True, progress=again)
    assert "another process is converting" in errors[0]


def test_large_sources_are_cut_into_shards_and_row_groups(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = small(tmp_path / "data", sample, "C001", "C002", "C005")
    source = load(data)
    monkeypatch.setattr("omnidata.data.convert.shards._SHARD_BYTES", 300_000)
    monkeypatch.setattr("omnidata.data.convert.shards._GROUP_BYTES", 150_000)
    convert(source, tmp_path / "out", embed=True)
    assert [said(s) for s in load(tmp_path / "out").steps] == [said(s) for s in source.steps]
    groups = 0
    shards = list((tmp_path / "out").rglob("*.parquet"))
    for path in shards:
        about = pq.ParquetFile(path).metadata
        groups += about.num_row_groups
        for group in map(about.row_group, range(about.num_row_groups)):
            columns = [group.column(number) for number in range(group.num_columns)]
            held = [c for c in columns if c.path_in_schema.endswith(".bytes")]
            media = [c for c in held if not c.path_in_schema.startswith("media.")]
            assert {c.compression for c in media} == {"UNCOMPRESSED"}
            assert not any(c.has_dictionary_page or c.is_stats_set for c in media)
            assert group.num_rows == 1 or sum(c.total_uncompressed_size for c in media) < 200_000
            assert all(c.compression == "ZSTD" for c in columns if c not in held)
    assert len(shards) > 3
    assert groups > len(shards)


def test_long_episodes_take_little_more_than_their_length(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "steps.json", [row("A", step) for step in range(400)])
    source = load(data, check_media=False)
    convert(source, tmp_path / "out", embed=False)
    back = load(tmp_path / "out", check_media=False)
    assert [said(s) for s in back.steps] == [said(s) for s in source.steps]
    kept = {id(action) for step in back.steps for action in step.history}
    assert len(kept) < 2 * 400, "the actions of a history are shared"


def test_a_repository_converts_to_the_same_repository(embedded: Path, tmp_path: Path) -> None:
    out = tmp_path / "embedded"
    convert(load(embedded), out, embed=True)
    assert (out / "README.md").read_text() == (embedded / "README.md").read_text()


def test_media_that_are_missing_or_broken_are_told_and_stay_so(
    sample: Path, tmp_path: Path
) -> None:
    data = small(tmp_path / "data", sample, "C001", "C002")
    folder = data / "Chirp" / "media" / "C001"
    (folder / "1.wav").unlink()
    (folder / "1.mp4").write_bytes((folder / "1.mp4").read_bytes()[:900])
    for form in ("--embed", "--link"):
        out = tmp_path / form
        summary = as_json(run("convert", "omnigui", data, out, form, "--json", code=1))
        assert sorted(item["where"] for item in summary["findings"]) == ["Chirp/C001/0"] * 2
        assert {item["code"] for item in summary["findings"]} == {"media-broken"}
        step = next(step for step in load(out).steps if step.sample_id == "Chirp/C001/0")
        clip, track = step.media["video"], step.media["audio"]
        assert clip
        assert track
        with pytest.raises(MissingMediaError):
            samples(track)
        with pytest.raises(MediaError):
            frames(clip, which="all")
        (held,) = [item for item in plainly(out) if item["sample_id"] == "Chirp/C001/0"]
        states = {entry["role"]: entry["state"] for entry in held["media"]}
        assert states == {"screenshot": "present", "video": "corrupt", "audio": "missing"}
        assert load(out).findings


def test_annotations_alone_convert_with_one_warning(tmp_path: Path) -> None:
    write_app(tmp_path / "TED", [row("A"), row("A", 1), row("B")])
    done = run("convert", "omnigui", tmp_path / "TED", tmp_path / "out", "--link")
    assert done.stderr.count("media-absent") == 1
    assert len(plainly(tmp_path / "out")) == 3
    assert [said(s) for s in load(tmp_path / "out").steps] == [
        said(s) for s in load(tmp_path / "TED").steps
    ]


def test_audio_that_a_row_holds_becomes_a_file(tmp_path: Path) -> None:
    tone = np.sin(np.arange(4000) / 9).astype(np.float32)
    held = {"array": tone.tolist(), "sampling_rate": 8000}
    data = write_rows(tmp_path / "steps.json", [row(current_audio=held, audio_path=None)])
    out = tmp_path / "out"
    convert(load(data), out, embed=True)
    ref = load(out).steps[0].media["audio"]
    assert ref
    assert np.array_equal(samples(ref, rate=8000), tone)
    assert plainly(out)[0]["audio"]["bytes"][:4] == b"RIFF"
    with pytest.raises(UsageError, match="cannot be linked"):
        convert(load(data), tmp_path / "linked", embed=False)


def test_subsets_are_those_of_the_source(tmp_path: Path) -> None:
    names = ["[a]", "小红书", "..", "Two Words", "x" * 90, "__x", "__MACOSX", "-", "none"]
    names += ["GTrans", "Google_Translate", "zh", "EN", "critical", "all", "Default", "a/b", "a*"]
    rows = [
        row(f"E{number}", app=name, language="en" if number % 2 else "zh", dependency="critical")
        for number, name in enumerate(names)
    ]
    rows.append(row("LONG", app="y" * 300))
    data = write_rows(tmp_path / "steps.json", rows)
    source = load(data)
    done = convert(source, tmp_path / "out", embed=True)
    assert {found.where for found in done.findings if found.code == "subset-unnamable"} == {
        "all", "Default", "a/b", "zh", "EN", "critical", "y" * 300,
    }  # fmt: skip
    assert [said(s) for s in load(tmp_path / "out").steps] == [said(s) for s in source.steps]
    listed = datasets.get_dataset_config_names(str(tmp_path / "out"))
    assert {"all", "en", "zh", "critical", *names[:9]} <= set(listed)
    assert len(plainly(tmp_path / "out", "[a]")) == 2  # with "a*": punctuation is passed over
    for name in listed:
        found = sorted(plainly(tmp_path / "out", name)["sample_id"])
        assert len(found) == len(set(found)) > 0
        for where in (data, tmp_path / "out"):
            ours = omnidata.load_dataset("omnigui", where, name.upper(), split="test")
            assert sorted(ours["sample_id"]) == found, (name, where)
    for where in (data, tmp_path / "out"):
        both = omnidata.load_dataset("omnigui", where, "googletranslate", split="test")
        assert set(both["app"]) == {"GTrans", "Google_Translate"}
        with pytest.raises(DataError, match="no subset"):
            omnidata.load_dataset("omnigui", where, "nowhere")


def test_lone_surrogates_do_not_stop_a_conversion(tmp_path: Path) -> None:
    rows = [
        row("A\ud800", image_path="\udc80.png"),
        row("A\ud801", app="\ud800", video_path="../\ud800.mp4"),
    ]
    source = load(write_rows(tmp_path / "steps.json", rows), check_media=False)
    for embed in (True, False):
        convert(source, tmp_path / f"{embed}", embed=embed)
        back = load(tmp_path / f"{embed}")
        assert [dict(s.source) for s in back.steps] == [dict(s.source) for s in source.steps]
        assert len(plainly(tmp_path / f"{embed}")) == 2


def test_findings_are_those_of_the_source(sample: Path, tmp_path: Path) -> None:
    data = small(tmp_path / "data", sample, "C001", "C002")
    for path in (data / "Chirp" / "media").glob("C00*/C00*.json"):
        rows = json.loads(path.read_text())
        rows[0]["image_width"] = 999
        rows[1]["image_path"] = ""
        rows[1]["result_action_type"] = 99
        path.write_text(json.dumps(rows))
    (data / "Chirp" / "media" / "C001" / "1.wav").unlink()
    first = tmp_path / "link"
    convert(load(data, check_media=False), first, embed=False)
    convert(load(data, check_media=False), tmp_path / "embed", embed=True)
    convert(load(tmp_path / "embed", check_media=False), tmp_path / "again", embed=True)
    for check in (True, False):
        wanted = Counter((f.code, f.severity) for f in load(data, check_media=check).findings)
        assert ("media-broken", "error") in wanted or not check
        for name in ("link", "embed", "again"):
            found = load(tmp_path / name, check_media=check).findings
            assert Counter((f.code, f.severity) for f in found) == wanted, (name, check)
            assert not any(str(tmp_path) in f.where for f in found)


def test_media_that_are_all_broken_are_not_taken_for_absent(tmp_path: Path, sample: Path) -> None:
    data = small(tmp_path / "data", sample, "C001")
    for path in (data / "Chirp" / "media" / "C001").glob("*.[mpw][pna][4gv]"):
        path.write_bytes(path.read_bytes()[:100])
    done = run("convert", "omnigui", data, tmp_path / "out", code=1)
    assert "media-broken" in done.stderr
    assert "media-absent" not in done.stderr


SECRET = b"PNG of somebody else"


@pytest.fixture
def hostile(tmp_path: Path, sample: Path) -> Iterator[tuple[Path, Source]]:
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
    hostile: tuple[Path, Source], tmp_path: Path, embed: bool
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


def forge(repository: Path, **changes: Any) -> None:
    path = repository / "omnidata.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_forged_manifest_opens_no_file_of_others(sample: Path, tmp_path: Path) -> None:
    data = small(tmp_path / "data", sample, "C001")
    out = tmp_path / "out"
    convert(load(data), out, embed=False)
    victim = tmp_path / "home" / "C001"
    victim.mkdir(parents=True)
    shutil.copy(data / "Chirp" / "media" / "C001" / "2.png", victim / "1.png")
    forge(out, roots=[str(tmp_path / "home")])
    ref = load(out, check_media=False).steps[0].media["screenshot"]
    assert ref
    for read in (image, read_bytes):
        with pytest.raises(MediaError, match="changed since it was linked"):
            read(ref)
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
    back = load(tmp_path / "out")
    assert [finding.where for finding in back.findings] == ["Chirp/C001/0"]
    ref = back.steps[0].media["audio"]
    assert ref
    with pytest.raises(MediaError, match=r"1\.wav: the file has changed"):
        samples(ref)


def test_a_hostile_readme_is_never_read(sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    convert(load(small(tmp_path / "data", sample, "C001")), out, embed=True)
    (tmp_path / "secret.txt").write_text("PRIVATE KEY")
    (out / "README.md").write_text(
        "---\nconfigs:\n- config_name: all\n  data_files: ../secret.txt\n---\n"
    )
    for streaming in (False, True):
        data = omnidata.load_dataset("omnigui", out, split="test", streaming=streaming)
        assert {item["app"] for item in data} == {"Chirp"}


def reforge(repository: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the rows of the only shard."""
    (shard,) = repository.rglob("*.parquet")
    table = pq.read_table(shard)
    rows = table.to_pylist()
    for item in rows:
        change(item)
    options = {"compression": "none", "use_dictionary": False}
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), shard, **options)


def test_an_embedded_path_is_refused(sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    convert(load(small(tmp_path / "data", sample, "C001")), out, embed=True)
    (tmp_path / "secret.png").write_bytes(SECRET)
    secret = {"bytes": None, "path": str(tmp_path / "secret.png")}
    reforge(out, lambda item: item.update(screenshot=secret))
    with pytest.raises(DataError, match="path without bytes"):
        omnidata.load_dataset("omnigui", out, split="test")
    with pytest.raises(DataError, match="path without bytes"):
        next(iter(omnidata.load_dataset("omnigui", out, split="test", streaming=True)))
    ref = load(out).steps[0].media["screenshot"]
    assert ref
    with pytest.raises(MediaError):
        read_bytes(ref)


@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_a_shard_that_is_no_file_of_the_repository_is_refused(
    sample: Path, tmp_path: Path, kind: str
) -> None:
    out = tmp_path / "out"
    convert(load(small(tmp_path / "data", sample, "C001")), out, embed=True)
    (shard,) = out.rglob("*.parquet")
    shard.rename(tmp_path / "outside.parquet")
    if kind == "fifo":
        os.mkfifo(shard)
    else:
        shard.symlink_to(tmp_path / "outside.parquet")
    with pytest.raises(DataError, match="the shard cannot be opened"):
        load(out)
    with pytest.raises(DataError, match="the shard cannot be opened"):
        omnidata.load_dataset("omnigui", out)


@pytest.mark.parametrize(
    "change",
    [
        {"sample_id": None},
        {"sample_id": "always the same"},
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
    ids=str,
)
def test_rows_that_are_no_steps_are_told(
    sample: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    out = tmp_path / "out"
    convert(load(small(tmp_path / "data", sample, "C001")), out, embed=True)
    reforge(out, lambda item: item.update(change))
    with pytest.raises(DataError, match=r"row \d+ is no step"):
        load(out)


def test_columns_of_another_type_are_told(sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    convert(load(small(tmp_path / "data", sample, "C001")), out, embed=True)
    (shard,) = out.rglob("*.parquet")
    whole = pq.read_table(shard)
    for name in ("position", "app", "history", "media"):
        number = whole.schema.get_field_index(name)
        for table in (
            whole.remove_column(number),
            whole.set_column(number, name, pa.array([{"x": 1}] * len(whole))),
        ):
            pq.write_table(table, shard)
            with pytest.raises(DataError, match=f"columns {name} are lacking"):
                load(out)


def test_rows_that_would_fill_the_memory_are_refused(sample: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    convert(load(small(tmp_path / "data", sample, "C001")), out, embed=True)
    (shard,) = out.rglob("*.parquet")
    table = pq.read_table(shard)
    rows = [table.to_pylist()[0] | {"source": " " * 10_000_000}] * 100
    pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), shard, compression="zstd")
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
    sample: Path, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    convert(load(small(tmp_path / "data", sample, "C001")), tmp_path / "out", embed=True)
    forge(tmp_path / "out", **changes)
    with pytest.raises(DataError, match=message):
        load(tmp_path / "out")
    assert "Remedy" in run("info", tmp_path / "out", code=2).stderr


def test_damaged_shards_are_told_with_their_name(sample: Path, tmp_path: Path) -> None:
    data = small(tmp_path / "data", sample, "C001")
    convert(load(data), tmp_path / "out", embed=True)
    (shard,) = (tmp_path / "out").rglob("*.parquet")
    whole = shard.read_bytes()
    rng = np.random.default_rng(0)
    read = 0
    for attempt in range(60):
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
    assert read < 20, "most damage is seen"
