"""`omnidata synth recaption`: a new instruction is kept where it leads back to its element."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from omnidata.actions import Box
from omnidata.media import InMemoryMedia
from omnidata.synth.recaption import draw_frame, read_caption
from omnidata.tasks import get_task
from omnidata.types import MediaRef
from tests.adapters.servers import Fault, seen_image
from tests.cli.running import here
from tests.data.tiny import SIZE, png
from tests.loaders import agentstudio
from tests.synth.recordings import Rule, answering, ask, command, picture
from tests.trees import read_lines, same_files

BOX = [18, 40, 34, 76]
TARGET = Box(18, 40, 34, 76, "px")
THERE, ELSEWHERE = "Answer: (0.4, 0.4)", "Answer: (0.9, 0.9)"


RECAPTION = ("synth", "recaption")


def write_screens(folder: Path) -> Path:
    """Four rows of GroundUI; the instruction of the third is right, the others' say nothing."""
    told = ["NA", "icon_2", "the button", "icon_4"]
    rows = [
        agentstudio.ground(
            image=f"{n}.png", bbox=BOX, resolution=list(SIZE), instruction=text, source="omniact"
        )
        for n, text in enumerate(told)
    ]
    path = agentstudio.write(folder / "data" / "metadata.jsonl", *rows)
    (path.parent / "images").mkdir()
    for n in range(4):
        (path.parent / "images" / f"{n}.png").write_bytes(png(n))
    return path.parent


@pytest.fixture
def screens(tmp_path: Path) -> Path:
    return write_screens(tmp_path)


def mark(number: int) -> str:
    ref = MediaRef("image", Path("x"), "x.png")
    return f"user: {seen_image(frame(png(number), ref))}"


def frame(content: bytes, ref: MediaRef, screen: tuple[int, int] = SIZE) -> bytes:
    held = InMemoryMedia("image", ref.root, ref.path, content=content)
    return draw_frame(held, TARGET, screen)


def model(captions: dict[int, str], right: set[str]) -> Rule:
    """Writes captions by the framed screenshot; finds what is said in the right words."""
    known = {mark(number): said for number, said in captions.items()}

    def rule(seen: list[str]) -> Fault | str:
        if "red frame" in seen[-1]:
            return next(known[line] for line in seen if line in known)
        (said,) = [line for line in seen[-1].splitlines() if line.startswith("Instruction: ")]
        return THERE if said.removeprefix("Instruction: ") in right else ELSEWHERE

    return rule


CAPTIONS = {
    0: '"Open the mail."',
    1: "Open the second.",
    2: "I see\na button.",
    3: "Instruction: Close it.",
}


def test_what_leads_back_is_kept_with_the_old_words_beside_it(
    screens: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with answering(model(CAPTIONS, {"Open the mail.", "Close it.", "icon_2"})) as server:
        told = ask("recaption", server, screens, out)
        assert server.count == 4 + 3 + 3
        shown = [line for asked in server.asked[4:] for line in asked.seen]
    assert {line for line in shown if "image" in line} == {picture(n) for n in (0, 1, 3)}
    assert told["elements"] == {"all": 4, "captioned": 3, "kept": 2, "left_out": {}}
    assert [told["grounded"][when]["hits"] for when in ("before", "after")] == [1, 2]
    assert [told["grounded"][when]["n"] for when in ("before", "after")] == [3, 3]
    assert [(each["raw"], each["why"]) for each in told["rejected"]] == [
        ("the button", "not one line"),
        ("icon_2", "not found again"),
    ]
    rows = read_lines(out / "metadata.jsonl")
    assert [(row["raw_instruction"], row["instruction"]) for row in rows] == [
        ("NA", "Open the mail."),
        ("icon_4", "Close it."),
    ]
    about = {"of": "metadata/0", "model": "openai:tiny", "grounder": "openai:tiny"}
    assert rows[0]["recaption"] == about
    task = get_task("groundui")
    source = task.load(out)
    assert not source.findings
    assert [step.tags["source"] for step in source.steps] == ["omniact"] * 2
    profile = task.profiles[task.default_profile]
    for step in source.steps:
        assert profile.judge(step, THERE).values == (True,)
        assert profile.judge(step, ELSEWHERE).values == (False,)
    again = json.loads(
        here(*command("recaption", server, screens, out), "--json").stdout
    )  # the server is gone: nobody is asked
    assert again == told


def test_a_question_without_an_answer_writes_nothing_and_is_asked_again(
    screens: Path, tmp_path: Path
) -> None:
    out, broken = tmp_path / "out", [True]
    rule = model(CAPTIONS, {"Open the mail."})

    def failing(seen: list[str]) -> Fault | str:
        return Fault(status=500) if broken[0] and mark(1) in seen else rule(seen)

    with answering(failing) as server:
        done = here(*command("recaption", server, screens, out), code=1)
        assert "1 question got no answer" in done.stderr
        assert not out.exists()
        assert server.count == 4
        broken[0] = False
        told = ask("recaption", server, screens, out)
        assert server.count == 4 + 1 + 3 + 3
    assert told["elements"]["kept"] == 1


def test_nothing_is_written_where_nothing_leads_back_or_nothing_can_be_framed(
    screens: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    found = ("--model", "baseline:oracle", "--grounder", "baseline:oracle")
    here(*RECAPTION, screens, tmp_path / "same", *found)
    assert len(read_lines(tmp_path / "same" / "metadata.jsonl")) == 4
    missed = ("--model", "baseline:oracle", "--grounder", "baseline:center")
    done = here(*RECAPTION, screens, out, *missed, code=1)
    assert "no new instruction finds its element" in done.stderr
    assert not out.exists()
    for path in (screens / "images").iterdir():
        path.unlink()
    done = here(*RECAPTION, screens, out, *found, code=2)
    assert "no element can be framed: no screenshot" in done.stderr


def test_a_model_that_cannot_be_made_leaves_nothing_behind(screens: Path, tmp_path: Path) -> None:
    found = ("--model", "nobody:knows", "--grounder", "baseline:oracle")
    done = here(*RECAPTION, screens, tmp_path / "out", *found, code=2)
    assert 'no model is called "nobody:knows"' in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_baseline_is_asked_here_whatever_the_engine(screens: Path, tmp_path: Path) -> None:
    """It needs all questions, of which there is no file that workers could load."""
    made = [tmp_path / name / "out" for name in ("here", "there")]
    for out, more in zip(made, ((), ("--engine", "ray")), strict=True):
        done = here("synth", "recaption", screens, out, "--model", "baseline:oracle", *more)
        assert ("baseline:oracle runs on this machine" in done.stderr) == bool(more)
    assert same_files(*made)


def test_another_grounder_finds_what_has_been_written_and_nobody_writes_it_again(
    screens: Path, tmp_path: Path
) -> None:
    out, run = tmp_path / "out", tmp_path / "out.run"
    with answering(model(CAPTIONS, set())) as server:
        told = command("recaption", server, screens, out)
        here(*told, "--grounder", "baseline:center", code=1)
        assert server.count == 4
        assert {path.name for path in run.iterdir()} == {"captions", "by-baseline-center"}
        asked = json.loads(here(*told, "--grounder", "baseline:oracle", "--json").stdout)
        assert server.count == 4, "the same captions"
    assert {path.name for path in run.iterdir()} > {"by-baseline-center", "by-baseline-oracle"}
    assert (asked["grounder"], asked["elements"]["kept"]) == ("baseline:oracle", 3)
    error = here(*told, "--grounder", "baseline:center", code=2).stderr
    assert "its rows were grounded by baseline:oracle" in error


def test_a_screenshot_that_cannot_be_read_is_left_out_and_counted(
    screens: Path, tmp_path: Path
) -> None:
    broken = screens / "images" / "1.png"
    broken.write_bytes(broken.read_bytes()[:60])
    with answering(model(CAPTIONS, {"Open the mail.", "Close it."})) as server:
        told = ask("recaption", server, screens, tmp_path / "out")
    assert told["elements"] == {
        "all": 3, "captioned": 2, "kept": 2,
        "left_out": {"a screenshot that cannot be read": 1},
    }  # fmt: skip


def test_the_frame_is_around_the_element_whatever_the_size_of_the_picture() -> None:
    ref = MediaRef("image", Path("x"), "x.png")
    for scale in (1, 3):
        size = (SIZE[0] * scale, SIZE[1] * scale)
        plain = png(5, size)
        before, after = (
            np.asarray(Image.open(io.BytesIO(each)).convert("RGB"))
            for each in (plain, frame(plain, ref))
        )
        left, top, right, bottom = (edge * scale for edge in BOX)
        inner = np.s_[top + 1 : bottom - 1, left + 1 : right - 1]
        assert (before[inner] == after[inner]).all()
        changed = np.argwhere((before != after).any(axis=2))
        assert (changed.min(axis=0) >= (top - 4 * scale - 4, left - 4 * scale - 4)).all()
        assert (changed.max(axis=0) <= (bottom + 4 * scale + 4, right + 4 * scale + 4)).all()
        assert tuple(after[top - 1, (left + right) // 2]) == (230, 0, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  Open it. ", "Open it."),
        ('"Open it."', "Open it."),
        ('"Save" or "Keep"', '"Save" or "Keep"'),
        ("", None),
        ("Instruction:", None),
        ("a\nb", None),
        ("x" * 301, None),
    ],
)
def test_an_instruction_is_one_line(text: str, expected: str | None) -> None:
    assert read_caption(text) == expected
