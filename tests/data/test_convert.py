"""Parquet repositories: what goes in comes out, by omnidata and by plain `datasets`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import datasets
import numpy as np
import pyarrow.parquet as pq
import pytest

import omnidata
from omnidata import following
from omnidata.data.convert import convert
from omnidata.errors import DataError, MediaError, MissingMediaError, UsageError
from omnidata.media import frames, image, read_bytes, samples
from omnidata.tasks.omnigui.load import load
from tests.cli.running import as_json, here
from tests.data.converting import EMBEDDED_FIRST, plainly, said, small
from tests.data.ranges import serve
from tests.full import FULL
from tests.trees import row, write_app, write_rows


def test_steps_come_back_equal(few: Path, repository: Path) -> None:
    source, back = load(few), load(repository)
    assert [said(step) for step in back.steps] == [said(step) for step in source.steps]
    assert back.row_ids == source.row_ids
    assert back.findings == source.findings == []
    assert (back.fingerprint, back.skipped) == (source.fingerprint, source.skipped)


def test_media_come_back_equal(few: Path, repository: Path) -> None:
    for step, back in list(zip(load(few).steps, load(repository).steps, strict=True))[::7]:
        for role, ref in step.media.items():
            other = back.media[role]
            assert (other and read_bytes(other)) == (ref and read_bytes(ref))
        shot, clip, track = (back.media[role] for role in ("screenshot", "video", "audio"))
        assert shot and image(shot).pixels.shape == (1600, 720, 3)
        if clip and track:
            assert len(frames(clip, num_frames=4).pixels) == 4
            assert samples(track).size > 1000


@EMBEDDED_FIRST
def test_an_evaluation_gives_the_same_table(few: Path, repository: Path, tmp_path: Path) -> None:
    task = omnidata.get_task("omnigui")
    results = [
        omnidata.evaluate(task, task.load(data), "baseline:random", tmp_path / name)
        for name, data in (("tree", few), ("repository", repository))
    ]
    assert results[0] == results[1]


@EMBEDDED_FIRST
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
    assert count == 28
    assert first in {step.sample_id for step in load(repository).steps}
    assert video.endswith(".mp4")


@EMBEDDED_FIRST
def test_every_label_is_a_subset_over_the_same_files(few: Path, repository: Path) -> None:
    steps = load(few).steps
    labels = {value for step in steps for value in step.tags.values()}
    assert {*datasets.get_dataset_config_names(str(repository))} == {"all", *labels}
    for name in labels if FULL else ("critical", "Chirp", "zh"):
        wanted = sorted(step.sample_id for step in steps if name in step.tags.values())
        assert sorted(plainly(repository, name)["sample_id"]) == wanted


def test_all_is_the_default_and_its_columns_are_typed(few: Path, repository: Path) -> None:
    data = plainly(repository)
    assert len(data) == len(load(few).steps)
    omnidata.register()
    built = datasets.load_dataset("omnigui", data_dir=str(few), split="test")
    media = {"screenshot", "history_screenshot", "video", "audio"}
    for name, feature in built.features.items():
        linked = name in media and repository.name == "linked"
        assert data.features[name] == ({"path": datasets.Value("string")} if linked else feature)
    for feature in (datasets.Image(), datasets.Video(decode=False), datasets.Audio(decode=False)):
        name = {"Image": "screenshot", "Video": "video", "Audio": "audio"}[type(feature).__name__]
        assert data.cast_column(name, feature)[0][name] is not None
    assert data.cast_column("screenshot", datasets.Image())[0]["screenshot"].size == (720, 1600)


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


def test_num_proc_gives_every_row_once(embedded: Path, tmp_path: Path) -> None:
    found = plainly(embedded, num_proc=2, cache_dir=str(tmp_path))["sample_id"]
    assert len(found) == len(set(found)) == 28


@EMBEDDED_FIRST
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


@EMBEDDED_FIRST
def test_our_load_dataset_finds_subsets_in_any_case(repository: Path) -> None:
    assert len(omnidata.load_dataset("omnigui", repository, "chirp", split="test")) == 10
    assert len(omnidata.load_dataset("omnigui", repository, split="test")) == 28
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


def test_large_sources_are_cut_into_shards_and_row_groups(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = load(small(tmp_path / "data", sample, "C001", "C002", "C005"))
    monkeypatch.setattr("omnidata.data.convert_plan._SHARD_BYTES", 250_000)
    monkeypatch.setattr("omnidata.data.convert_shards._GROUP_BYTES", 100_000)
    convert(source, tmp_path / "out", embed=True)
    assert [said(s) for s in load(tmp_path / "out").steps] == [said(s) for s in source.steps]
    shards = [pq.ParquetFile(path).metadata for path in (tmp_path / "out").rglob("*.parquet")]
    groups = [about.row_group(n) for about in shards for n in range(about.num_row_groups)]
    for group in groups:
        columns = [group.column(number) for number in range(group.num_columns)]
        held = [c for c in columns if c.path_in_schema.endswith(".bytes")]
        media = [c for c in held if not c.path_in_schema.startswith("media.")]
        assert {c.compression for c in media} == {"UNCOMPRESSED"}
        assert not any(c.has_dictionary_page or c.is_stats_set for c in media)
        assert group.num_rows == 1 or sum(c.total_uncompressed_size for c in media) < 200_000
        assert all(c.compression == "ZSTD" for c in columns if c not in held)
    assert len(groups) > len(shards) > 3


def test_long_episodes_take_little_more_than_their_length(tmp_path: Path) -> None:
    data = write_rows(tmp_path / "steps.json", [row("A", step) for step in range(100)])
    source = load(data, check_media=False)
    convert(source, tmp_path / "out", embed=False)
    back = load(tmp_path / "out", check_media=False)
    assert [said(s) for s in back.steps] == [said(s) for s in source.steps]
    kept = {id(action) for step in back.steps for action in step.history}
    assert len(kept) < 2 * 100, "the actions of a history are shared"


def test_a_repository_converts_to_the_same_repository(sample: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "first" / "data", tmp_path / "second" / "data"
    convert(load(small(tmp_path / "tree", sample, "C001")), first, embed=True)
    convert(load(first), second, embed=True)
    assert (second / "README.md").read_text() == (first / "README.md").read_text()


def test_media_that_are_missing_or_broken_are_told_and_stay_so(
    sample: Path, tmp_path: Path
) -> None:
    data = small(tmp_path / "data", sample, "C001")
    folder = data / "Chirp" / "media" / "C001"
    (folder / "1.wav").unlink()
    (folder / "1.mp4").write_bytes((folder / "1.mp4").read_bytes()[:900])
    for form in ("--embed", "--link"):
        out = tmp_path / form
        summary = as_json(here("convert", "omnigui", data, out, form, "--json", code=1))
        told = [(item["where"], item["code"]) for item in summary["findings"]]
        assert told == [("Chirp/C001/0", "media-broken")] * 2
        with following([data]):
            back = load(out)
        assert back.findings
        step = next(step for step in back.steps if step.sample_id == "Chirp/C001/0")
        clip, track = step.media["video"], step.media["audio"]
        assert clip and track
        with pytest.raises(MissingMediaError):
            samples(track)
        with pytest.raises(MediaError):
            frames(clip, which="all")
        (held,) = [item for item in plainly(out) if item["sample_id"] == "Chirp/C001/0"]
        states = {entry["role"]: entry["state"] for entry in held["media"]}
        assert states == {"screenshot": "present", "video": "corrupt", "audio": "missing"}
    for path in (*folder.glob("*.png"), *folder.glob("*.mp4"), *folder.glob("*.wav")):
        path.write_bytes(path.read_bytes()[:100])
    (folder / "1.wav").touch()
    done = here("convert", "omnigui", data, tmp_path / "broken", code=1)
    assert "media-broken" in done.stderr
    assert "media-absent" not in done.stderr, "broken media are there"


def test_annotations_alone_convert_with_one_warning(tmp_path: Path) -> None:
    write_app(tmp_path / "TED", [row("A"), row("A", 1), row("B")])
    done = here("convert", "omnigui", tmp_path / "TED", tmp_path / "out", "--link")
    assert done.stderr.count("media-absent") == 1
    assert len(plainly(tmp_path / "out")) == 3
    assert [said(s) for s in load(tmp_path / "out").steps] == [
        said(s) for s in load(tmp_path / "TED").steps
    ]


def test_a_task_without_data_of_its_own_is_not_converted_and_reads_the_others_repository(
    few: Path, repository: Path, tmp_path: Path
) -> None:
    refused = here("convert", "omnigui-idm", few, tmp_path / "out", code=2)
    assert "Fix: convert omnigui; omnigui-idm reads that repository too" in refused.stderr
    assert not (tmp_path / "out").exists()
    idm = omnidata.get_task("omnigui-idm")
    ids = [[step.sample_id for step in idm.load(data).steps] for data in (few, repository)]
    assert ids[0] == ids[1] and ids[0]


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


SPECIAL = ("[a]", "__MACOSX")


def test_subsets_are_those_of_the_source(tmp_path: Path) -> None:
    names = [*SPECIAL, "小红书", "..", "Two Words", "x" * 90, "__x", "-", "none"]
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
        for where in (data, tmp_path / "out") if FULL or name in SPECIAL else (data,):
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
    data = small(tmp_path / "data", sample, "C001")
    media = data / "Chirp" / "media" / "C001"
    rows = json.loads((media / "C001.json").read_text())
    rows[0]["image_width"] = 999
    rows[1] |= {"image_path": "", "result_action_type": 99}
    write_rows(media / "C001.json", rows)
    (media / "1.wav").unlink()
    convert(load(data, check_media=False), tmp_path / "link", embed=False)
    convert(load(data, check_media=False), tmp_path / "embed", embed=True)
    convert(load(tmp_path / "embed", check_media=False), tmp_path / "again", embed=True)
    for check in (True, False):
        wanted = Counter((f.code, f.severity) for f in load(data, check_media=check).findings)
        assert ("media-broken", "error") in wanted or not check
        for name in ("link", "embed", "again"):
            with following([data]):
                found = load(tmp_path / name, check_media=check).findings
            assert Counter((f.code, f.severity) for f in found) == wanted, (name, check)
            assert not any(str(tmp_path) in f.where for f in found)


def test_what_only_the_episodes_rows_say_comes_back(tmp_path: Path) -> None:
    """The instruction in the other language, of which the rows of steps know nothing."""
    write_app(tmp_path / "tree" / "TED", [row("T1"), row("T2")])
    repository = tmp_path / "out"
    here("convert", "omnigui", tmp_path / "tree", repository, "--embed")
    assert load(repository).episode_rows == load(tmp_path / "tree").episode_rows
    for language, told in (("zh", "点击分享"), ("both", "Tap Share / 点击分享")):
        source = omnidata.get_task("omnigui", {"language": language}).load(repository)
        assert [step.instruction for step in source.steps] == [told, told]
    assert json.loads(plainly(repository)[0]["episode_source"])["instruction_zh"] == "点击分享"
