"""`omnidata synth label`: answers become targets, and the precision comes out exactly."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnidata.actions import Action, Box, Point
from omnidata.metrics.intervals import wilson
from omnidata.tasks.omnigui.load import load
from omnidata.types import Step
from tests.adapters.servers import Fault
from tests.cli.running import as_json, here
from tests.data.tiny import png
from tests.synth.making import content, digests
from tests.synth.recordings import (
    END,
    HIT,
    MISS,
    TAP,
    answering,
    ask,
    by_first,
    command,
    picture,
    recording,
    rows,
    says,
)

BACK = Action("back")
EXPERT = [TAP, TAP, TAP, TAP, TAP, TAP, BACK, TAP, TAP, END]
BARE: list[Action | None] = [None] * len(EXPERT)
ANSWERS: dict[int, Fault | str] = {
    0: says(0, HIT),
    1: f"Sure!\n{says(0, HIT)}",
    2: says(0, MISS),
    3: says(8),
    4: "I cannot tell",
    5: '{"action_type": null}',
    6: says(8),
    7: says(0, [400, 1400]),
    8: Fault(text=says(0, HIT), finish="length"),
}
"""Two exact, one of the type only, one wrong, BACK right; four that label nothing."""


def steps_of(tree: Path) -> dict[str, Step]:
    return {step.sample_id: step for step in load(tree).steps}


def test_answers_become_targets_and_are_kept_and_the_precision_is_exact(tmp_path: Path) -> None:
    bare = recording(tmp_path / "bare", BARE)
    expert = recording(tmp_path / "expert", EXPERT)
    with answering(by_first(ANSWERS, "no")) as server:
        told = ask("label", server, bare, tmp_path / "out", "--known", expert, code=1)
        assert server.count == 9
    assert told["steps"] == {
        "all": 10,
        "with_target": 0,
        "asked": 9,
        "labelled": 5,
        "unlabelled": {"no-screenshot-after": 1, "truncated": 1, "unparsed": 2, "unusable": 1},
    }
    assert told["primitives"] == {"TAP": 3, "BACK": 2}
    assert told["known"] == {"data": 0, "same": 9, "others": 0, "unusable": 1}
    measured = told["precision"]
    assert measured["type"] == {"hits": 4, "n": 5, "share": 0.8, "ci95": list(wilson(4, 5) or ())}
    assert measured["exact"] == {"hits": 3, "n": 5, "share": 0.6, "ci95": list(wilson(3, 5) or ())}
    assert (measured["known"], measured["labelled"], measured["coverage"]) == (9, 5, 5 / 9)
    assert measured["most_frequent"] == {"primitive": "TAP", "share": 8 / 9}
    assert told["warnings"] == []
    found = steps_of(tmp_path / "out")
    place = (Point(28.8, 64, "px"),)
    assert found["App/E0/0"].action == found["App/E0/1"].action == Action("tap", place)
    assert found["App/E0/2"].action == Action("tap", (Point(64.8, 144, "px"),))
    assert found["App/E0/3"].action == found["App/E0/6"].action == BACK
    assert [found[f"App/E0/{n}"].action for n in (4, 5, 7, 8, 9)] == [None] * 5
    said: list[Any] = [row.get("idm") for row in rows(tmp_path / "out")]
    model = {"model": "openai:tiny"}
    assert said[0] == {**model, "answer": says(0, HIT), "outcome": "ok", "used": True}
    assert said[1] == {**model, "answer": f"Sure!\n{says(0, HIT)}", "outcome": "ok", "used": True}
    assert said[4]["answer"] == "I cannot tell"
    outcomes = [entry and (entry["outcome"], entry["used"]) for entry in said]
    assert outcomes == [
        *[("ok", True)] * 4,
        *[("unparsed", False)] * 2,
        ("ok", True),
        ("unusable", False),
        ("truncated", False),
        None,
    ]
    assert said[7]["why"] == "its place lies off the screen"
    assert "result_action_type" not in rows(tmp_path / "out")[4]


def test_the_model_sees_both_screenshots_the_clip_between_them_and_the_goal(tmp_path: Path) -> None:
    bare = recording(tmp_path / "bare", [None, None])
    shown: dict[str, list[str]] = {}
    for clip in ("between", "before", "off"):
        with answering(lambda seen: says(8)) as server:
            ask(
                "label", server, bare, tmp_path / clip,
                *("-T", f"clip={clip}", "-M", "video=native"),
            )  # fmt: skip
        (asked,) = server.asked
        shown[clip] = asked.seen[1:]
        assert asked.seen[0].startswith("system: text You are an inverse dynamics model")
    assert shown["off"] == [
        "user: text [Screenshot before the action]:",
        picture(0),
        "user: text [Screenshot after the action]:",
        picture(1),
        "user: text Goal: Task 0\n\n"
        "Which action was made on the screenshot before? Output it as JSON.",
    ]
    for clip, label in (
        ("between", "user: text [Clip from the action to the screenshot after it]:"),
        ("before", "user: text [Clip that leads up to the action]:"),
    ):
        assert shown[clip][:2] == shown["off"][:2]
        assert shown[clip][2] == label
        assert shown[clip][4:] == shown["off"][2:]
    assert shown["between"][3].startswith("user: video")
    assert shown["between"][3] != shown["before"][3]


def test_targets_that_the_data_have_stay_and_measure_the_model(tmp_path: Path) -> None:
    box = Action("tap", (Box(1, 2, 30, 40, "px"), Box(50, 60, 70, 80, "px")), words="tap!")
    mixed = recording(tmp_path / "mixed", [box, None, TAP, None], extra={"mine": [1, "x"]})
    with answering(by_first({0: says(8)}, says(0, HIT))) as server:
        told = ask("label", server, mixed, tmp_path / "out")
    assert told["steps"]["with_target"] == 2
    assert told["steps"]["labelled"] == 1
    assert told["known"] == {"data": 2, "unusable": 0}
    assert told["precision"]["exact"]["hits"] == 1
    before, after = rows(mixed), rows(tmp_path / "out")
    for number in (0, 2):
        assert {key: after[number][key] for key in before[number]} == before[number]
        assert after[number]["idm"]["used"] is False
    assert after[1]["idm"]["used"] is True
    assert all(row["mine"] == [1, "x"] for row in after)


def test_labels_of_a_model_are_no_truth_and_are_made_anew(tmp_path: Path) -> None:
    bare = recording(tmp_path / "bare", [None, None, None])
    first, second = tmp_path / "first", tmp_path / "second"
    with answering(lambda seen: says(0, HIT)) as server:
        ask("label", server, bare, first)
    with answering(by_first({0: says(8)}, "nothing")) as server:
        told = ask("label", server, first, second)
    assert told["precision"] is None
    assert told["steps"]["labelled"] == 1
    found = steps_of(second)
    assert found["App/E0/0"].action == BACK
    assert found["App/E0/1"].action is None
    assert "result_touch_xy" not in rows(second)[1]


def test_without_known_actions_nothing_is_measured_and_that_is_said(tmp_path: Path) -> None:
    bare = recording(tmp_path / "bare", [None, None])
    with answering(lambda seen: says(8)) as server:
        done = here(*command("label", server, bare, tmp_path / "out"))
    assert "precision not measured" in done.stderr
    assert "where the truth is known" not in done.stdout
    report = json.loads((tmp_path / "out" / "label.json").read_text("utf-8"))
    assert report["precision"] is None
    assert report["warnings"][0].startswith("precision not measured")


def test_known_steps_of_other_data_are_asked_about_and_not_written(tmp_path: Path) -> None:
    bare = recording(tmp_path / "bare", [None, None])
    other = recording(tmp_path / "other", [TAP, TAP, TAP, END], seed=50)  # the same ids
    rule = by_first({0: says(8), 50: says(0, HIT), 51: says(0, MISS)}, "no")
    with answering(rule) as server:
        told = ask("label", server, bare, tmp_path / "out", "--known", other)
        assert server.count == 4
    assert told["known"] == {"data": 0, "same": 0, "others": 3, "unusable": 1}
    assert told["precision"]["type"]["hits"] == told["precision"]["type"]["n"] == 2
    assert told["precision"]["exact"]["hits"] == 1
    assert told["precision"]["known"] == 3
    assert sorted(steps_of(tmp_path / "out")) == ["App/E0/0", "App/E0/1"]
    assert told["steps"]["asked"] == 1


def test_an_action_known_on_another_size_of_screen_measures_nothing(tmp_path: Path) -> None:
    bare = recording(tmp_path / "bare", [None, None, None])
    expert = recording(tmp_path / "expert", [TAP, BACK, END])
    for file in expert.rglob("*.png"):
        file.unlink()
    path = expert / "App/media/E0/E0.json"
    found = rows(expert)
    for name in ("image_width", "image_height"):  # before the screenshots were made smaller
        found[0][name] *= 2
    path.write_text(json.dumps(found))
    with answering(by_first({0: says(0, HIT)}, says(8))) as server:
        told = ask("label", server, bare, tmp_path / "out", "--known", expert)
        assert server.count == 2
    assert told["known"] == {"data": 0, "same": 1, "others": 0, "unusable": 2}
    assert told["precision"]["known"] == 1
    assert told["precision"]["exact"]["hits"] == 1


def test_annotations_alone_are_asked_about_where_the_data_have_their_steps(tmp_path: Path) -> None:
    bare = recording(tmp_path / "bare", [None, None])
    expert = recording(tmp_path / "expert", [BACK, END], [TAP, TAP, END])
    for file in expert.rglob("*.png"):
        file.unlink()
    with answering(lambda seen: says(8)) as server:
        told = ask("label", server, bare, tmp_path / "out", "--known", expert)
        assert server.count == 1
    assert told["known"] == {"data": 0, "same": 1, "others": 0, "unusable": 4}
    assert (told["precision"]["coverage"], told["precision"]["exact"]["share"]) == (1.0, 1.0)


def test_pixels_of_a_picture_that_was_made_smaller_land_on_the_screen(tmp_path: Path) -> None:
    bare = recording(tmp_path / "bare", [None, None])
    with answering(lambda seen: says(0, [18, 40])) as server:
        ask(
            "label", server, bare, tmp_path / "out",
            *("-T", "coordinates=px", "-T", "clip=off", "-M", "image_size=80"),
        )  # fmt: skip
    action = steps_of(tmp_path / "out")["App/E0/0"].action
    assert action == Action("tap", (Point(36, 80, "px"),))


def test_the_last_step_and_what_no_screenshot_follows_stay_unlabelled(tmp_path: Path) -> None:
    bare = recording(tmp_path / "bare", [None, None, None, None], [None])
    path = bare / "App/media/E0/E0.json"
    found = rows(bare)
    found[2]["image_path"] = ""
    path.write_text(json.dumps(found))
    with answering(lambda seen: says(8)) as server:
        told = ask("label", server, bare, tmp_path / "out")
        assert server.count == 1
    assert told["steps"]["unlabelled"] == {"no-screenshot": 1, "no-screenshot-after": 3}
    assert told["steps"]["labelled"] == 1


def test_a_missing_file_is_a_failure_and_no_label(tmp_path: Path) -> None:
    bare = recording(tmp_path / "bare", [None, None, None, None])
    (bare / "App/media/E0/2.png").unlink()
    with answering(lambda seen: says(8)) as server:
        told = ask("label", server, bare, tmp_path / "out", code=1)
    assert told["steps"]["unlabelled"] == {"media_error": 2, "no-screenshot-after": 1}
    assert told["steps"]["labelled"] == 1
    assert {f["code"] for f in told["findings"]} == {"media-left-out"}
    assert rows(tmp_path / "out")[1]["image_path"] == ""


def test_nothing_outside_the_data_is_copied(tmp_path: Path) -> None:
    bare = recording(tmp_path / "bare", [None, None, None])
    (tmp_path / "secret.png").write_bytes(png(7))
    (tmp_path / "secret.wav").write_bytes(b"secret")
    path = bare / "App/media/E0/E0.json"
    found = rows(bare)
    found[2] |= {"image_path": "../../../secret.png", "audio_path": str(tmp_path / "secret.wav")}
    path.write_text(json.dumps(found))
    (bare / "App/media/E0/2.wav").unlink()
    (bare / "App/media/E0/2.wav").symlink_to(tmp_path / "secret.wav")
    with answering(lambda seen: says(8)) as server:
        told = ask("label", server, bare, tmp_path / "out", code=1)
    assert told["steps"]["labelled"] == 1
    contents = [path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert not any(content in (png(7), b"secret") for content in contents)
    assert [row["audio_path"] for row in rows(tmp_path / "out")] == ["E0/1.wav", "", ""]


def test_answers_of_broken_unicode_are_kept_and_read(tmp_path: Path) -> None:
    bare = recording(tmp_path / "bare", [None, None, None])
    told = says(7, text="a\ud800b")
    with answering(by_first({0: told}, "\ud800")) as server:
        ask("label", server, bare, tmp_path / "out")
    first, second, _ = load(tmp_path / "out").steps
    assert first.action == Action("type", text="a\ud800b")
    assert second.source["idm"]["answer"] == "\ud800"


def test_one_step_episodes_alone_cannot_be_labelled(tmp_path: Path) -> None:
    bare = recording(tmp_path / "bare", [None], [None])
    done = here(*("synth", "label", bare, tmp_path / "out", "--model", "baseline:center"), code=2)
    assert "no step has a screenshot before and after" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bare"]


def test_an_episode_with_a_gap_is_left_out_and_named(tmp_path: Path) -> None:
    bare = recording(tmp_path / "bare", [None, None, None], [None, None])
    path = bare / "App/media/E0/E0.json"
    found = rows(bare)
    path.write_text(json.dumps([found[0], found[2]]))
    with answering(lambda seen: says(8)) as server:
        told = ask("label", server, bare, tmp_path / "out")
    assert told["episodes"] == 1
    assert ("episode-left-out", "App/E0") in {(f["code"], f["where"]) for f in told["findings"]}
    assert sorted(steps_of(tmp_path / "out")) == ["App/E1/0", "App/E1/1"]


def test_nothing_that_can_be_read_is_a_job_that_failed(tmp_path: Path) -> None:
    bare = recording(tmp_path / "bare", [None, None])
    with answering(lambda seen: "hm") as server:
        told = ask("label", server, bare, tmp_path / "out", code=1)
    assert told["steps"]["labelled"] == 0
    assert load(tmp_path / "out").steps


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("-T", "clip=after"), "clip=after"),
        (("-T", "modalities=I"), "modalities"),
        (("--known", "nowhere"), "nowhere"),
        (("--model", "baseline:clever"), "clever"),
        (("--attempts", "0"), "attempts"),
    ],
)
def test_bad_usage_is_said_and_nothing_is_written(
    tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    bare = recording(tmp_path / "bare", [None, None])
    model = ("--model", "baseline:center")
    done = here("synth", "label", bare, tmp_path / "out", *model, *options, code=2)
    assert told in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["bare"]


@pytest.mark.parametrize(
    ("extra", "known", "told"),
    [
        ({}, True, "no step there has a target"),
        ({"idm": "Idaho"}, False, 'a column "idm" that is not ours'),
    ],
)
def test_data_that_cannot_be_used_are_refused(
    tmp_path: Path, extra: dict[str, Any], known: bool, told: str
) -> None:
    bare = recording(tmp_path / "bare", [None, None], extra=extra)
    more = ("--known", bare) if known else ()
    model = ("--model", "baseline:oracle", *more)
    assert told in here("synth", "label", bare, tmp_path / "out", *model, code=2).stderr


@pytest.mark.parametrize(
    ("verb", "actions", "words", "name"),
    [
        ("label", [None, None], "[Screenshot after the action]:", "App/E0/0"),
        ("filter", [TAP, END], "TAP at [375, 375]", "App/E0"),
    ],
)
def test_a_dry_run_shows_the_question_and_leaves_nothing(
    tmp_path: Path, verb: str, actions: list[Action | None], words: str, name: str
) -> None:
    data = recording(tmp_path / "data", actions)
    with answering(lambda seen: says(8)) as server:
        arguments = command(verb, server, data, tmp_path / "out", "--dry-run")
        seen = as_json(here(*arguments, "--json"))
        assert words in here(*arguments).stdout
        assert server.count == 0
    assert (seen["requests"], seen["sample_id"]) == (1, name)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_what_nobody_changed_is_written_as_it_was(few: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    here("synth", "label", few, out, "--model", "baseline:majority")
    before, after = load(few), load(out)
    assert not after.findings
    assert len(before.steps) == len(after.steps)
    for old, new in zip(before.steps, after.steps, strict=True):
        for name in ("sample_id", "instruction", "tags", "screen", "action", "history"):
            assert getattr(old, name) == getattr(new, name)
        assert {key: new.source[key] for key in old.source} == old.source
        for role, ref in old.media.items():
            assert ref is None or content(old, role) == content(new, role)
    media = {name for name in digests(few) if not name.endswith((".json", ".jsonl"))}
    kept = digests(out)
    assert {name: kept[name] for name in media} == {
        name: digest for name, digest in digests(few).items() if name in media
    }
    for path in few.glob("*/*.jsonl"):
        assert (out / path.relative_to(few)).read_text() == path.read_text()


def test_other_forms_of_the_data_become_a_tree(tmp_path: Path) -> None:
    media = tmp_path / "media"
    media.mkdir()
    for number in range(2):
        (media / f"{number}.jpg").write_bytes(_jpeg(number))
    steps: list[dict[str, Any]] = [
        {
            "episode_id": "one",
            "step_id": number,
            "app": "amazon",
            "instruction": "去",
            "instruction_en": "Go",
            "image_path": f"{number}.jpg",
            "image_width": 72,
            "image_height": 160,
            "current_audio": {"array": [0.0, 0.5, -0.5] * 100, "sampling_rate": 16000},
        }
        for number in range(2)
    ]
    (tmp_path / "merged_sorted.json").write_text(json.dumps(steps))
    with answering(lambda seen: says(8)) as server:
        told = ask("label", server, tmp_path, tmp_path.with_name(f"{tmp_path.name}-out"))
    out = Path(told["out"])
    assert "dimension-assumed" in {finding["code"] for finding in told["findings"]}
    first, second = load(out).steps
    assert first.action == BACK
    assert (first.instruction, first.tags["app"]) == ("Go", "amazon")
    assert content(second, "screenshot").startswith(b"\x89PNG")
    assert content(second, "audio").startswith(b"RIFF")
    assert first.source["instruction"] == "去"


def _jpeg(seed: int) -> bytes:
    import io

    from PIL import Image

    out = io.BytesIO()
    Image.open(io.BytesIO(png(seed))).convert("RGB").save(out, "JPEG")
    return out.getvalue()
