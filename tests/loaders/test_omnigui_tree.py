"""The writer of OmniGUI trees, held against the paper's listings 1 to 3."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from omnidata.actions import Action, Box, Point
from omnidata.errors import DataError
from omnidata.loaders.tree_writer import TreeEpisode, TreeStep, TreeWriter
from tests.trees import DIMENSIONS

SCREEN = (720, 1600)
TAP = Action("tap", (Box(210, 786, 351, 850, "px"),))


def step(action: Action = TAP, **changes: Any) -> TreeStep:
    return replace(
        TreeStep(action, screen=SCREEN, screenshot=b"png", video=b"mp4", audio=b"wav"), **changes
    )


def episode(*steps: TreeStep, **changes: Any) -> TreeEpisode:
    whole = TreeEpisode(
        "T0540",
        app="TED",
        dimension="semantic_understanding",
        steps=steps or (step(),),
        instruction_en="Listen.",
        instruction_zh="请听。",
    )
    return replace(whole, **changes)


def write(root: Path, *episodes: TreeEpisode) -> Path:
    with TreeWriter(root) as tree:
        for one in episodes:
            tree.add(one)
    return root


def first_row(root: Path, *, app: str = "TED") -> dict[str, Any]:
    rows: list[dict[str, Any]] = json.loads((root / app / f"dataset_{app}.json").read_text())
    return rows[0]


def test_the_layout_is_that_of_listing_1(tmp_path: Path) -> None:
    root = write(tmp_path / "tree", episode(step(), step(Action.of("TASK_COMPLETE"))))
    found = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    assert found == {f"TED/{name}.jsonl" for name in DIMENSIONS} | {
        "TED/dataset_TED.json",
        "TED/media/T0540/T0540.json",
        *(f"TED/media/T0540/{n}.{suffix}" for n in (1, 2) for suffix in ("mp4", "wav", "png")),
    }


def test_the_row_of_an_episode_is_that_of_listing_2(tmp_path: Path) -> None:
    root = write(tmp_path / "tree", episode())
    lines = (root / "TED/semantic_understanding.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"ID": "T0540", "app": "TED", "instruction_zh": "请听。", "instruction_en": "Listen."}
    ]
    assert (root / "TED/localization.jsonl").read_text() == ""


def test_the_rows_of_the_steps_are_those_of_listing_3(tmp_path: Path) -> None:
    root = write(tmp_path / "tree", episode(step(Action("none")), step()))
    rows = json.loads((root / "TED/media/T0540/T0540.json").read_text())
    done = ((-1, ""), (0, "[[210,786],[351,850]]"))
    assert rows == [
        {
            "episode_id": "T0540",
            "episode_length": 2,
            "instruction_en": "Listen.",
            "image_width": 720,
            "image_height": 1600,
            "step_id": number,
            "video_path": f"T0540/{number + 1}.mp4",
            "audio_path": f"T0540/{number + 1}.wav",
            "image_path": f"T0540/{number + 1}.png",
            "result_action_type": kind,
            "result_action_text": "",
            "result_touch_xy": touch,
            "result_lift_xy": "",
            "result_action_json": f'{{"action_type":{kind},"text":"","touch_xy":"{touch}"}}',
        }
        for number, (kind, touch) in enumerate(done)
    ]


def test_the_index_of_an_app_holds_the_rows_of_all_its_episodes(tmp_path: Path) -> None:
    root = write(tmp_path / "tree", episode(), episode(step(), step(), id="T0541"))
    traces = [root / f"TED/media/{name}/{name}.json" for name in ("T0540", "T0541")]
    rows = [row for trace in traces for row in json.loads(trace.read_text())]
    assert json.loads((root / "TED/dataset_TED.json").read_text()) == rows
    assert len(rows) == 3


@pytest.mark.parametrize(
    ("start", "spelled"),
    [
        ((), ""),
        ((Point(5, 6, "px"),), "[5,6]"),
        ((Point(500, 500, "norm1000"),), "[360,800]"),
        ((Box(0.25, 0.5, 0.75, 1, "rel"),), "[[180,800],[540,1600]]"),
        ((Box(1, 1, 2, 2, "norm1000"),), "[[0.72,1.6],[1.44,3.2]]"),
        ((Box(1, 2, 3, 4, "px"), Box(5, 6, 7, 8, "px")), "[[[1,2],[3,4]],[[5,6],[7,8]]]"),
    ],
)
def test_targets_are_written_in_pixels(
    tmp_path: Path, start: tuple[Point | Box, ...], spelled: str
) -> None:
    swipe = Action.of("SWIPE_UP", start, start, words="Swipe the star")
    row = first_row(write(tmp_path / "tree", episode(step(swipe))))
    assert (row["result_touch_xy"], row["result_lift_xy"]) == (spelled, spelled)
    assert row["action_text"] == "Swipe the star"


@pytest.mark.parametrize("text", ["你好", 'a "quoted" \\ word', "two\nlines", "lone \ud83d half"])
def test_a_typed_text_survives(tmp_path: Path, text: str) -> None:
    root = write(tmp_path / "tree", episode(step(Action("type", text=text))))
    row = first_row(root)
    assert row["result_action_text"] == text
    assert json.loads(row["result_action_json"])["text"] == text


def test_media_are_taken_from_files_as_well(tmp_path: Path) -> None:
    source = tmp_path / "shot.png"
    source.write_bytes(b"from a file")
    root = write(tmp_path / "tree", episode(step(screenshot=source)))
    assert (root / "TED/media/T0540/1.png").read_bytes() == b"from a file"
    assert source.exists()


def test_an_absent_medium_has_an_empty_path_and_no_file(tmp_path: Path) -> None:
    root = write(tmp_path / "tree", episode(step(video=None, audio=None)))
    row = first_row(root)
    assert (row["video_path"], row["audio_path"]) == ("", "")
    assert [path.name for path in sorted((root / "TED/media/T0540").iterdir())] == [
        "1.png",
        "T0540.json",
    ]


def test_dependency_labels_have_a_file_of_their_own(tmp_path: Path) -> None:
    root = write(tmp_path / "tree", episode(dependency="critical"), episode(id="T2"))
    lines = (root / "dependency.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"app": "TED", "ID": "T0540", "dependency": "critical"}
    ]


def test_language_and_extra_columns_are_written_where_given(tmp_path: Path) -> None:
    steps = (step(extra={"code": "click()"}),)
    root = write(tmp_path / "tree", episode(*steps, language="zh", extra={"origin": "web"}))
    row = json.loads((root / "TED/semantic_understanding.jsonl").read_text())
    assert (row["language"], row["origin"]) == ("zh", "web")
    assert first_row(root)["code"] == "click()"


def test_steps_are_on_disk_before_the_next_one_is_made(tmp_path: Path) -> None:
    seen = []

    def steps() -> Any:
        for n in range(1, 4):
            seen.append((tmp_path / f"tree/TED/media/T0540/{n - 1}.wav").exists())
            yield step()

    write(tmp_path / "tree", replace(episode(), steps=steps()))
    assert seen == [False, True, True]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "..\\b", "a\0b", "a\nb", " a", "a:b", "x" * 300]
)
@pytest.mark.parametrize("role", ["id", "app"])
def test_a_name_that_cannot_be_a_folder_is_refused(tmp_path: Path, name: str, role: str) -> None:
    says = "cannot name a folder"
    with TreeWriter(tmp_path / "tree") as tree, pytest.raises(DataError, match=says):
        tree.add(episode(**{role: name}))
    assert [path.name for path in tmp_path.rglob("*")] == ["tree"]


@pytest.mark.parametrize("changes", [{}, {"id": "t0540"}, {"id": "T2", "app": "ted"}])
def test_a_name_that_is_taken_is_refused(tmp_path: Path, changes: dict[str, str]) -> None:
    with TreeWriter(tmp_path / "tree") as tree:
        tree.add(episode())
        tree.add(episode(app="IMDb"))
        with pytest.raises(DataError, match="already"):
            tree.add(episode(**changes))


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (replace(episode(), steps=()), "no step"),
        (episode(instruction_en=None, instruction_zh=""), "no instruction"),
        (episode(dimension="memory"), "unknown dimension"),
        (episode(extra={"ID": "x"}), "column of the format"),
        (episode(step(extra={"step_id": 4})), "column of the format"),
        (
            episode(step(Action("tap", (Point(1, 2, "px"), Point(3, 4, "px"))))),
            "not all of them boxes",
        ),
        (episode(step(Action("tap", (Point(float("nan"), 2, "px"),)))), "not a number"),
    ],
)
def test_an_episode_that_the_format_cannot_hold_is_refused(
    tmp_path: Path, bad: TreeEpisode, says: str
) -> None:
    with TreeWriter(tmp_path / "tree") as tree, pytest.raises(DataError, match=says) as caught:
        tree.add(bad)
    assert caught.value.where.startswith("TED/T0540")
    assert caught.value.expected
    assert caught.value.remedy


def test_a_tree_is_not_written_into_another(tmp_path: Path) -> None:
    root = write(tmp_path / "tree", episode())
    with pytest.raises(DataError, match="something here already"):
        TreeWriter(root)


def test_an_interrupted_tree_has_no_index_and_no_half_file(tmp_path: Path) -> None:
    root = tmp_path / "tree"

    def interrupted() -> Any:
        yield step()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), TreeWriter(root) as tree:
        tree.add(episode())
        tree.add(replace(episode(id="T2"), steps=interrupted()))
    names = {path.name for path in root.rglob("*") if path.is_file()}
    assert names == {"1.png", "1.mp4", "1.wav", "T0540.json"}
